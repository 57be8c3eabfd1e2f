/* Tests the description of the hardware: detection of caches and cores, defaults for facts that are
   unknown or implausible, their part in cache keys, and decisions of scheduling that depend on
   cache sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compile/cache_keys.h"
#include "device/cpu/detect_caches.h"
#include "device/registry/device_registry.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "schedule/schedule.h"
#include "target/hardware.h"

#include <string.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const tn_hardware usual = {.l1_bytes = 32 * KIB,
                                  .l2_bytes = MIB,
                                  .l3_bytes = 32 * MIB,
                                  .l3_cores = 2,
                                  .line_bytes = 64,
                                  .page_bytes = 4096,
                                  .cores = 2};

static void check_same(tn_hardware a, tn_hardware b) {
  assert_int_equal(a.l1_bytes, b.l1_bytes);
  assert_int_equal(a.l2_bytes, b.l2_bytes);
  assert_int_equal(a.l3_bytes, b.l3_bytes);
  assert_int_equal(a.l3_cores, b.l3_cores);
  assert_int_equal(a.line_bytes, b.line_bytes);
  assert_int_equal(a.page_bytes, b.page_bytes);
  assert_int_equal(a.cores, b.cores);
}

static void what_is_not_known_is_usual(void **state) {
  (void)state;
  check_same(hardware_with_defaults(&(tn_hardware){0}), usual);
  tn_hardware server = {.l1_bytes = 48 * KIB,
                        .l2_bytes = 2 * MIB,
                        .l3_bytes = 260 * (uint64_t)MIB,
                        .l3_cores = 48,
                        .line_bytes = 128,
                        .page_bytes = 65536,
                        .cores = 96};
  check_same(hardware_with_defaults(&server), server);
}

/** Contradictory or impossible facts are replaced by defaults; the others are used. */
static void what_cannot_be_is_usual(void **state) {
  (void)state;
  tn_hardware told = {.l1_bytes = 3,
                      .l2_bytes = 16 * KIB,
                      .l3_bytes = UINT64_MAX,
                      .l3_cores = 8,
                      .line_bytes = 65,
                      .page_bytes = 1u << 31,
                      .cores = 4};
  tn_hardware want = usual;
  want.cores = want.l3_cores = 4;
  check_same(hardware_with_defaults(&told), want);
}

static void scratch_is_a_part_of_the_second_cache(void **state) {
  (void)state;
  tn_hardware h = usual;
  assert_int_equal(hardware_scratch_bytes(&h, 0), 256 * KIB);
  assert_int_equal(hardware_scratch_bytes(&h, 64 * KIB), 64 * KIB);
  h.l2_bytes = 256 * KIB;
  assert_int_equal(hardware_scratch_bytes(&h, 256 * KIB), 64 * KIB);
}

/** Sets repeat every page, so rows about a multiple of a page apart fall into few of them. */
static void rows_compete_for_sets(void **state) {
  (void)state;
  static const struct {
    int64_t apart;
    double rows, bytes;
  } cases[] = {{0, 9, 0},           {4, 100, 400},       {64, 64, 4096},   {64, 128, 8192},
               {-1024, 8, 8192},    {4096, 8, 8 * 4096}, {12288, 2, 8192}, {4100, 16, 16 * 4096},
               {4100, 32, 65536.0}, {4160, 64, 4096}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(hardware_rows_bytes(&usual, cases[i].apart, cases[i].rows) == cases[i].bytes);
}

/** The description does not depend on the process's CPU affinity. */
static void the_processor_tells_what_it_is(void **state) {
  (void)state;
  tn_hardware h = cpu_hardware();
  check_same(h, cpu_hardware());
  assert_int_equal(h.page_bytes, sysconf(_SC_PAGESIZE));
  assert_true(h.cores <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF) && h.l3_cores <= h.cores);
  if (h.l1_bytes && h.l2_bytes) assert_true(h.l1_bytes <= h.l2_bytes);
}

/* Choices that follow from the hardware. */

typedef struct fixture {
  diag diag;
  ir *g;
  registry *registry;
  tn_device *device;
} fixture;

static void ok(fixture *f, tn_status s) {
  if (s != TN_OK) fail_msg("%s", f->diag.text);
}

static int open_all(void **state) {
  static fixture f;
  f = (fixture){0};
  f.g = ir_new(&mem_system, &f.diag, false);
  assert_non_null(f.g);
  ok(&f, registry_open(&f.registry, &(registry_desc){.mem = &mem_system, .threads = 2}, &f.diag));
  ok(&f, registry_open_device(f.registry, "NULL", &f.device, &f.diag));
  *state = &f;
  return 0;
}

static int close_all(void **state) {
  fixture *f = *state;
  registry_close(f->registry);
  ir_free(f->g);
  return 0;
}

/** The null device has the same hardware everywhere. */
static void the_null_device_is_usual(void **state) {
  fixture *f = *state;
  const device_target *t;
  ok(f, device_target_find(f->device, NULL, &t, &f->diag));
  check_same(t->caps.hardware, usual);
  check_same(t->target.hardware, usual);
}

static void every_fact_is_in_keys(void **state) {
  fixture *f = *state;
  const device_target *t;
  ok(f, device_target_find(f->device, NULL, &t, &f->diag));
  arena *a = ir_arena(f->g);
  const node *sink = ir_node(f->g, OP_SINK, DT_VOID, NULL, 0, NULL, 0);
  kernel_graph_key graph = kernel_graph_key_make(a, 0, sink);
  cache_key as_is = kernel_key_make(a, t, "", "", graph);
  const char *tuned = tuned_key_make(a, t, "", graph);
  for (int i = 0; i < 8; i++) {
    device_target other = *t;
    tn_hardware *h = &other.target.hardware;
    h->l1_bytes += i == 0;
    h->l2_bytes += i == 1;
    h->l3_bytes += i == 2;
    h->l3_cores += i == 3;
    h->line_bytes += i == 4;
    h->page_bytes += i == 5;
    h->cores += i == 6;
    if (i == 7) strcpy(other.caps.target, "x86-64-v4+avx512vnni"); /* features are in its name */
    cache_key key = kernel_key_make(a, &other, "", "", graph),
              identity = compiler_identity_key_make(a, t, "");
    cache_key other_identity = compiler_identity_key_make(a, &other, "");
    assert_memory_not_equal(as_is.hash, key.hash, sizeof key.hash);
    assert_memory_not_equal(identity.hash, other_identity.hash, sizeof identity.hash);
    assert_string_not_equal(tuned, tuned_key_make(a, &other, "", graph));
  }
}

static const node *buffer(ir *g, int64_t uid, int64_t n, int64_t m) {
  const node *dims[] = {ix_const(g, n), ix_const(g, m)};
  return ir_node(g, OP_BUFFER, DT_F32, dims, 2, (int64_t[]){uid, 0}, 2);
}

/** Counts the arrays that the kernels of exp(x) / sum exp(x) build, a row of x at a time. */
static size_t arrays_for_rows(fixture *f, int64_t columns, tn_hardware h) {
  ir *g = f->g;
  const node *one[] = {ix_const(g, 8), ix_const(g, 1)}, *all[] = {one[0], ix_const(g, columns)};
  const node *e = ir_op1(g, OP_EXP, buffer(g, 1, 8, columns));
  const node *sum = ir_reduce(g, e, OP_ADD, 1, (int64_t[]){1});
  const node *y = ir_op2(g, OP_DIV, e, ir_expand(g, ir_reshape(g, sum, 2, one), all));
  schedule_request r = {
      .roots = &y, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = 64, .target.hardware = h};
  schedule *s = schedule_make(g, &r);
  size_t n = 0;
  for (size_t k = 0; k < s->steps.n; k++) {
    node_list order = topo_sort(ir_arena(g), &s->steps.at[k].kernel, 1, NULL, NULL);
    for (size_t i = 0; i < order.n; i++)
      n += order.at[i]->op == OP_STAGE && !stage_is_cut(order.at[i]);
  }
  return n;
}

/** A row that exceeds the L2 cache is not kept. */
static void arrays_fit_the_second_cache(void **state) {
  fixture *f = *state;
  tn_hardware small = usual;
  small.l2_bytes = 256 * KIB;
  assert_int_equal(arrays_for_rows(f, 1000, usual), 1);
  assert_int_equal(arrays_for_rows(f, 1000, small), 1);
  assert_int_equal(arrays_for_rows(f, 20000, usual), 1);
  assert_int_equal(arrays_for_rows(f, 20000, small), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_known_is_usual),
      cmocka_unit_test(what_cannot_be_is_usual),
      cmocka_unit_test(scratch_is_a_part_of_the_second_cache),
      cmocka_unit_test(rows_compete_for_sets),
      cmocka_unit_test(the_processor_tells_what_it_is),
      cmocka_unit_test_setup_teardown(the_null_device_is_usual, open_all, close_all),
      cmocka_unit_test_setup_teardown(every_fact_is_in_keys, open_all, close_all),
      cmocka_unit_test_setup_teardown(arrays_fit_the_second_cache, open_all, close_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
