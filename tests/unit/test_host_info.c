/* Tests the queries of the host: a context's device, the processor's description and the list of C
   compilers, also for contexts that failed to open and with allocations that fail. */
#include "support/tensor_check.h"

static tn_context *open_with(const char *device, const char *cpu, const char *compiler) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.environment = false;
  desc.device = device;
  desc.cpu = cpu;
  desc.compiler = compiler;
  desc.threads = 2;
  return tn_open(&desc);
}

static void a_context_tells_its_device(void **state) {
  (void)state;
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  tn_context *c = open_with("CPU", NULL, NULL);
  check_ok(c, tn_context_get(c, &info));
  assert_string_equal(info.device, "CPU:0");
  assert_true(*info.target);
  assert_int_equal(info.threads, 2);
  assert_true(info.computes);
  assert_int_equal(tn_context_get(c, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the place for the tn_context_info is NULL");
  tn_close(c);
  c = open_with("NULL", NULL, NULL);
  check_ok(c, tn_context_get(c, &info));
  assert_false(info.computes);
  tn_close(c);
  assert_int_equal(tn_context_get(NULL, &info), TN_ERR_ARGUMENT);
}

static void a_broken_context_tells_why(void **state) {
  (void)state;
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  tn_processor_info processor = TN_PROCESSOR_INFO_INIT;
  tn_compiler_info compiler = TN_COMPILER_INFO_INIT;
  tn_context *c = open_with("none such", "x86-64-v9", NULL);
  assert_int_equal(tn_context_get(c, &info), TN_ERR_DEVICE);
  check_text(tn_message(c), "unknown device");
  assert_null(info.device);
  check_ok(c, tn_processor_get(c, &processor));
  assert_string_equal(processor.limit, "x86-64-v9"); /* no known level: no limit */
  check_ok(c, tn_compiler_get(c, 0, &compiler));
  tn_close(c);
}

static void the_processor_is_described(void **state) {
  (void)state;
  tn_processor_info p = TN_PROCESSOR_INFO_INIT, again = TN_PROCESSOR_INFO_INIT;
  tn_context *c = open_with("CPU", NULL, NULL);
  check_ok(c, tn_processor_get(c, &p));
  assert_true(*p.name && *p.level && p.vector_bytes && p.usable_cores);
  assert_true(p.cores <= p.threads && p.last_cache_bytes > 0);
  assert_null(p.limit);
  assert_null(strstr(p.features, "  "));
  check_ok(c, tn_processor_get(c, &again));
  assert_ptr_equal(p.features, again.features);
  tn_close(c);
#if defined(__x86_64__)
  c = open_with("CPU", "x86-64", NULL);
  check_ok(c, tn_processor_get(c, &p));
  assert_string_equal(p.level, "x86-64");
  assert_string_equal(p.limit, "x86-64");
  assert_int_equal(p.vector_bytes, 16);
  tn_close(c);
#endif
}

static void compilers_are_listed(void **state) {
  (void)state;
  tn_compiler_info k = TN_COMPILER_INFO_INIT;
  tn_context *c = open_with("CPU", NULL, NULL);
  size_t n = 0;
  for (; tn_compiler_get(c, n, &k) == TN_OK; n++) {
    assert_true(*k.path == '/' && *k.version);
    assert_int_equal(k.used, n == 0);
  }
  assert_true(n > 0);
  assert_string_equal(tn_message(c), "");
  assert_int_equal(tn_compiler_get(c, 0, NULL), TN_ERR_ARGUMENT);
  tn_close(c);
  c = open_with("CPU", NULL, "/none/such/cc");
  for (n = 0; tn_compiler_get(c, n, &k) == TN_OK; n++) assert_false(k.used);
  tn_close(c);
}

/** Each allocation fails in turn: TN_ERR_MEMORY and no leak. */
static void memory_may_run_out(void **state) {
  (void)state;
  bool has_failed = true;
  for (size_t at = 1; has_failed; at++) {
    counting m = {0};
    tn_compiler_info k = TN_COMPILER_INFO_INIT;
    tn_processor_info p = TN_PROCESSOR_INFO_INIT;
    tn_context *c = open_counting(&m, "CPU");
    m.fail_at = m.calls + at;
    tn_status s = tn_processor_get(c, &p);
    if (s == TN_OK) s = tn_compiler_get(c, 0, &k);
    has_failed = s != TN_OK;
    if (has_failed) assert_int_equal(s, TN_ERR_MEMORY);
    m.fail_at = 0;
    check_ok(c, tn_compiler_get(c, 0, &k));
    tn_close(c);
    assert_int_equal(m.out, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_context_tells_its_device), cmocka_unit_test(a_broken_context_tells_why),
      cmocka_unit_test(the_processor_is_described), cmocka_unit_test(compilers_are_listed),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
