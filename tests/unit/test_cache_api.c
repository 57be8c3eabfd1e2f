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

/* Caches of the caller's. */

static tn_context *open_in(tn_kernel_cache *cache, int32_t threads) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.environment = false;
  desc.cache_dir = "/nowhere"; /* has no effect */
  desc.threads = threads;
  desc.kernel_cache = cache;
  return tn_open(&desc);
}

static tn_kernel_cache_info counts_of(tn_context *c) {
  tn_kernel_cache_info info = TN_KERNEL_CACHE_INFO_INIT;
  check_ok(c, tn_kernel_cache_get(c, &info));
  return info;
}

static void contexts_share_a_cache_of_the_callers(void **state) {
  (void)state;
  tn_kernel_cache *cache, *other;
  assert_int_equal(tn_kernel_cache_open(NULL, &cache), TN_OK);
  assert_int_equal(tn_kernel_cache_open(NULL, &other), TN_OK);
  tn_context *a = open_in(cache, 1), *b = open_in(cache, 1), *c = open_in(other, 1);
  tn_cache_info folder = TN_CACHE_INFO_INIT;
  compile_kernel(a, 3);
  compile_kernel(b, 3);
  assert_int_equal(counts_of(b).compiled, 1);
  assert_int_equal(counts_of(b).found, 1);
  assert_int_equal(counts_of(c).compiled, 0);
  compile_kernel(c, 3);
  assert_int_equal(counts_of(c).compiled, 1);
  check_ok(a, tn_cache_get(a, &folder));
  assert_null(folder.folder);
  tn_close(a);
  tn_close(b);
  a = open_in(cache, 1); /* kernels stay without a context */
  tn_kernel_cache_free(cache);
  compile_kernel(a, 3);
  assert_int_equal(counts_of(a).compiled, 1);
  assert_int_equal(counts_of(a).found, 2);
  tn_close(a);
  tn_close(c);
  tn_kernel_cache_free(other);
  tn_kernel_cache_free(NULL);
}

static void a_cache_of_the_callers_has_a_folder(void **state) {
  (void)state;
  tn_kernel_cache *cache;
  tn_kernel_cache_desc desc = TN_KERNEL_CACHE_DESC_INIT;
  tn_cache_info info = TN_CACHE_INFO_INIT;
  desc.folder = arena_printf(test_arena(), "%s/own", temporary_folder(test_arena()));
  for (int again = 0; again < 2; again++) {
    assert_int_equal(tn_kernel_cache_open(&desc, &cache), TN_OK);
    tn_context *c = open_in(cache, 1);
    compile_kernel(c, 4);
    assert_int_equal(counts_of(c).compiled, again ? 0 : 1);
    check_ok(c, tn_cache_get(c, &info));
    assert_string_equal(info.folder, desc.folder);
    assert_true(info.entries > 0);
    tn_close(c);
    tn_kernel_cache_free(cache);
  }
}

static void kernels_in_memory_are_trimmed(void **state) {
  (void)state;
  tn_kernel_cache *cache;
  tn_kernel_cache_desc desc = TN_KERNEL_CACHE_DESC_INIT;
  desc.kernels = 2;
  assert_int_equal(tn_kernel_cache_open(&desc, &cache), TN_OK);
  for (int i = 0; i < 4; i++) {
    tn_context *c = open_in(cache, 1);
    compile_kernel(c, (float)(10 + i));
    tn_close(c); /* with the plans that use the kernel */
  }
  tn_context *c = open_in(cache, 1);
  assert_int_equal(counts_of(c).idle, 2);
  assert_int_equal(counts_of(c).kernels, 2);
  check_ok(c, tn_kernel_cache_trim(c, 1, UINT64_MAX));
  assert_int_equal(counts_of(c).idle, 1);
  check_ok(c, tn_kernel_cache_trim(c, 1, 1));
  assert_int_equal(counts_of(c).kernels, 0);
  assert_int_equal(counts_of(c).bytes, 0);
  compile_kernel(c, 10);
  check_ok(c, tn_kernel_cache_trim(c, 0, 0));
  assert_int_equal(counts_of(c).kernels, 1); /* in use */
  assert_int_equal(tn_kernel_cache_trim(NULL, 0, 0), TN_ERR_ARGUMENT);
  tn_close(c);
  tn_kernel_cache_free(cache);
}

static void misuse_of_caches_is_refused(void **state) {
  (void)state;
  tn_kernel_cache *cache;
  tn_kernel_cache_desc bad = TN_KERNEL_CACHE_DESC_INIT;
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  bad.size = 4;
  assert_int_equal(tn_kernel_cache_open(&bad, &cache), TN_ERR_ARGUMENT);
  assert_null(cache);
  assert_int_equal(tn_kernel_cache_open(NULL, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_kernel_cache_open(NULL, &cache), TN_OK);
  tn_context *a = open_in(cache, 1), *b = open_in(cache, 2);
  assert_int_equal(tn_context_get(b, &info), TN_ERR_ARGUMENT);
  check_text(tn_message(b), "the contexts of a kernel cache share their threads: 1, not 2");
  tn_close(b);
  counting given = {0};
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.kernel_cache = cache;
  desc.allocator = (tn_allocator){counting_alloc, counting_release, &given, counting_destroy};
  b = tn_open(&desc);
  assert_int_equal(tn_context_get(b, &info), TN_ERR_ARGUMENT);
  check_text(tn_message(b), "has the library's allocator and workers");
  tn_close(b);
  assert_int_equal(given.destroyed, 1);
  compile_kernel(a, 5);
  tn_close(a);
  tn_kernel_cache_free(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_folder_is_counted_trimmed_and_cleared),
      cmocka_unit_test(a_cache_that_is_off_is_empty),
      cmocka_unit_test(a_folder_that_others_may_write_to_is_refused),
      cmocka_unit_test(kernels_are_counted),
      cmocka_unit_test(contexts_share_a_cache_of_the_callers),
      cmocka_unit_test(a_cache_of_the_callers_has_a_folder),
      cmocka_unit_test(kernels_in_memory_are_trimmed),
      cmocka_unit_test(misuse_of_caches_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
