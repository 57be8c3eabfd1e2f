/* Tests the public interface of the kernel caches: folder, size and entries of the disk cache,
   trimming and clearing it, refusal of unsafe folders, and counts of compiled and found kernels. */
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <sys/stat.h>

static arena *test_arena(void) {
  static arena a;
  static diag d;
  if (!a.diag) arena_init(&a, &mem_system, &d);
  return &a;
}

static tn_context *open_with(const char *folder) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.environment = false;
  desc.cache_dir = folder;
  desc.threads = 1; /* separate devices and kernels */
  return tn_open(&desc);
}

static void compile_kernel(tn_context *c, float add) {
  float x[] = {1, 2, 3};
  const float expected[] = {1 + add, 2 + add, 3 + add};
  check_floats(c, tn_add(floats(c, 3, x), tn_num(c, add)), 3, expected);
}

static void the_folder_is_counted_trimmed_and_cleared(void **state) {
  (void)state;
  const char *folder = arena_printf(test_arena(), "%s/cache", temporary_folder(test_arena()));
  tn_context *c = open_with(folder);
  tn_cache_info info = TN_CACHE_INFO_INIT;
  check_ok(c, tn_cache_get(c, &info));
  assert_string_equal(info.folder, folder);
  assert_true(!info.entries && !info.plans && !info.bytes);
  assert_int_equal(access(folder, F_OK), -1); /* not created */
  compile_kernel(c, 1);
  check_ok(c, tn_cache_get(c, &info));
  assert_true(info.entries > info.plans && info.bytes > 0);
  uint64_t bytes = info.bytes;
  check_ok(c, tn_cache_trim(c, bytes, &info));
  assert_true(info.bytes == bytes);
  check_ok(c, tn_cache_trim(c, bytes / 2, NULL));
  check_ok(c, tn_cache_get(c, &info));
  assert_true(info.bytes <= bytes / 2);
  check_ok(c, tn_cache_clear(c, &info));
  assert_true(!info.entries && !info.bytes);
  tn_close(c);
}

static void a_cache_that_is_off_is_empty(void **state) {
  (void)state;
  tn_context *c = open_with("off");
  tn_cache_info info = TN_CACHE_INFO_INIT;
  info.folder = "as it was";
  check_ok(c, tn_cache_clear(c, &info));
  assert_null(info.folder);
  assert_int_equal(tn_cache_get(c, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_cache_get(NULL, &info), TN_ERR_ARGUMENT);
  tn_close(c);
}

static void a_folder_that_others_may_write_to_is_refused(void **state) {
  (void)state;
  const char *folder = temporary_folder(test_arena());
  chmod(folder, 0777);
  tn_context *c = open_with(folder);
  tn_cache_info info = TN_CACHE_INFO_INIT;
  info.entries = 7;
  assert_int_equal(tn_cache_clear(c, &info), TN_ERR_IO);
  check_text(tn_message(c), "the kernel cache: the cache folder");
  assert_int_equal(info.entries, 7);
  tn_close(c);
}

static void kernels_are_counted(void **state) {
  (void)state;
  tn_context *c = open_with("off");
  tn_kernel_cache_info before = TN_KERNEL_CACHE_INFO_INIT, after = before;
  check_ok(c, tn_kernel_cache_get(c, &before));
  compile_kernel(c, 2);
  check_ok(c, tn_kernel_cache_get(c, &after));
  assert_true(after.compiled == before.compiled + 1 && after.found == before.found);
  assert_int_equal(tn_kernel_cache_get(c, NULL), TN_ERR_ARGUMENT);
  tn_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_folder_is_counted_trimmed_and_cleared),
      cmocka_unit_test(a_cache_that_is_off_is_empty),
      cmocka_unit_test(a_folder_that_others_may_write_to_is_refused),
      cmocka_unit_test(kernels_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
