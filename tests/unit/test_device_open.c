/* Tests how a context opens its device: the C compiler that is named is used, a compiler that was
   missing is looked for again, and the number of threads is bounded. */
#include "base/file.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/** Computes an expression that no other test of this file computes; returns the status, and the
    message in *text if the context is broken. */
static tn_status compute(const tn_open_desc *d, char *text, size_t bytes) {
  static float serial = 1;
  float x[2] = {1, 2}, y[2];
  tn_context *c = tn_open(d);
  tn_tensor *a = floats(c, 2, x);
  serial += 1;
  tn_tensor *sum = tn_add(tn_mul(a, a), tn_num(c, serial));
  tn_status s = tn_read(sum, TN_F32, y, sizeof y);
  snprintf(text, bytes, "%s", tn_message(c));
  if (s == TN_OK) assert_true(y[1] == 4 + serial);
  tn_close(c);
  return s;
}

static void the_compiler_is_the_one_that_is_named(void **state) {
  (void)state;
  char text[4096];
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1; /* separate devices and kernels */
  d.compiler = "no-such-compiler";
  assert_int_equal(compute(&d, text, sizeof text), TN_ERR_COMPILE);
  check_text(text, "\"no-such-compiler\"");
  d.compiler = NULL;
  setenv("CC", "no-such-cc", 1);
  assert_int_equal(compute(&d, text, sizeof text), TN_ERR_COMPILE);
  check_text(text, "\"no-such-cc\"");
  d.compiler = "cc";
  assert_int_equal(compute(&d, text, sizeof text), TN_OK); /* the option precedes CC */
  d.compiler = NULL;
  d.environment = false;
  d.cache_dir = "off";
  assert_int_equal(compute(&d, text, sizeof text), TN_OK);
  unsetenv("CC");
}

static void devices_tell_of_the_compiler(void **state) {
  (void)state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  tn_device_info info = TN_DEVICE_INFO_INIT;
  d.compiler = "no-such-compiler";
  for (int i = 0; i < 2; i++) {
    tn_context *c = tn_open(&d);
    check_ok(c, tn_device_get(c, 0, &info));
    assert_int_equal(info.absent != NULL, i == 0);
    check_ok(c, tn_close(c));
    d.compiler = NULL;
  }
}

/** A compiler installed later is found by a context that reported it absent; the earlier report
    stays valid. */
static void absent_devices_are_asked_after_again(void **state) {
  (void)state;
  diag problem = {0};
  arena a;
  char *path;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  tn_device_info info[3] = {TN_DEVICE_INFO_INIT, TN_DEVICE_INFO_INIT, TN_DEVICE_INFO_INIT};
  arena_init(&a, &mem_system, &problem);
  char *folder = temporary_folder(&a);
  assert_non_null(folder);
  path = arena_printf(&a, "%s/cc", folder);
  d.compiler = path;
  tn_context *c = tn_open(&d);
  for (int i = 0; i < 2; i++) {
    check_ok(c, tn_device_get(c, 0, &info[i]));
    check_text(info[i].absent, path);
  }
  assert_ptr_equal(info[0].absent, info[1].absent);
  static const char script[] = "#!/bin/sh\necho 'gcc 1 (fake)'\n";
  assert_int_equal(file_write(path, script, sizeof script - 1, &problem), TN_OK);
  assert_int_equal(chmod(path, 0700), 0);
  check_ok(c, tn_device_get(c, 0, &info[2]));
  assert_null(info[2].absent);
  assert_string_equal(info[2].pairs, "c/cc");
  check_text(info[0].absent, path);
  check_ok(c, tn_close(c));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
  arena_free(&a);
}

static void threads_are_bounded(void **state) {
  (void)state;
  char text[4096];
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1025;
  assert_int_equal(compute(&d, text, sizeof text), TN_ERR_ARGUMENT);
  check_text(text, "the number of threads is 1025, not 0 to 1024");
  d.threads = 0;
  setenv("TENON_THREADS", "1025", 1);
  assert_int_equal(compute(&d, text, sizeof text), TN_ERR_ARGUMENT);
  check_text(text, "not a number from 0 to 1024");
  unsetenv("TENON_THREADS");
  d.threads = 1024;
  tn_context *c = tn_open(&d);
  check_ok(c, tn_close(c));
}

int main(void) {
  setenv("TENON_LLVM", "off", 1); /* the C compiler is the one to miss */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_compiler_is_the_one_that_is_named),
      cmocka_unit_test(devices_tell_of_the_compiler),
      cmocka_unit_test(absent_devices_are_asked_after_again),
      cmocka_unit_test(threads_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
