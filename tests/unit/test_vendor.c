/* Tests kernels that are calls of a library in place of generated code: which products may be one,
   their results beside those of generated kernels, where plans, explanations and traces show them,
   plans on disk, the tuner with a library that is fast, slow or fails, runs whose calls fail, and a
   library that is absent or lacks a function. On the CPU
   TENON_OPENBLAS names the library: the stand-in (tests/vendor), or OpenBLAS itself; on CUDA all
   are stand-ins (tests/cuda). Another process is this program with arguments, as a library stays
   open in a process. */
#include "compile/compile_kernels.h"
#include "compile/kernel_cache.h"
#include "compile/match_product.h"
#include "device/program/product.h"
#include "ir/core/math_mode.h"
#include "support/temporary.h"
#include "support/tuned_kernels.h"
#include "tensor/context/context.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/wait.h>
#include <tenon/tune.h>
#include <tenon/unstable/explain.h>
#include <tenon/unstable/schedule.h>

enum { M = 48, N = 80, K = 33, B = 3, MOST = 100 * 100 * 4 };

static const char *program; /* of the tests */

/** Devices with a library. */
typedef struct vendor {
  const char *device, *name, *variable; /* variable: of the library's file */
  const char *decisions, *counter;      /* counter: a function of the stand-in */
  const char *missing, *lacking;        /* said of an absent library, and of another one */
} vendor;

static const vendor vendors[] = {{"CPU", "openblas", "TENON_OPENBLAS", "library:openblas",
                                  "stand_in_calls", "OpenBLAS is missing",
                                  "no openblas_set_num_threads"},
                                 {"CUDA", "cublas", "TENON_CUBLAS", "library:cublas",
                                  "stand_in_products", "cuBLAS is missing", "no cublasCreate_v2"}};

static const vendor *tested; /* by TENON_TEST_DEVICE */

static bool is_on_cpu(void) { return tested == vendors; }

/** Products, and graphs that are none. */
typedef enum shape_kind {
  PLAIN,
  LEFT_TRANSPOSED,
  RIGHT_TRANSPOSED,
  BOTH_TRANSPOSED,
  OF_ONE_INPUT, /* x · xᵀ */
  BATCHED,
  SHARED_RIGHT, /* of all matrices of a batch */
  SWAPPED,      /* the result is stored transposed */
  OF_DOUBLES,
  PRODUCTS,
  WITH_BIAS = PRODUCTS,
  OF_INTEGERS,
  OF_A_VECTOR,
  KINDS
} shape_kind;

typedef struct fixture {
  diag diag;
  arena arena;
  const char *above, *cache, *tuned;
  int remarks, library_spans;
} fixture;

static void prepare(void *arg) {
  fixture *f = arg;
  f->above = temporary_folder(&f->arena);
  f->cache = arena_printf(&f->arena, "%s/cache", f->above);
  f->tuned = arena_printf(&f->arena, "%s/tuned", f->above);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->above, f);
}

static void take_span(void *user, const tn_trace_span *span) {
  if (span->library && !strcmp(span->library, tested->name)) ((fixture *)user)->library_spans++;
}

static tn_context *open_with(fixture *f, const char *vendor) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 2;
  d.device = tested->device;
  d.cache_dir = f->cache;
  d.tuned = f->tuned;
  d.vendor = vendor;
  d.environment = false;
  d.logger = (tn_logger){count_warning, &f->remarks, NULL};
  d.tracer = (tn_tracer){take_span, f, NULL};
  return tn_open(&d);
}

/* Plans of one kernel. */

static tn_tensor *input(tn_context *c, const char *name, tn_dtype type, int64_t rows,
                        int64_t columns, int64_t batch) {
  return batch ? tn_input(c, name, tn_shape(batch, rows, columns), type)
               : tn_input(c, name, tn_shape(rows, columns), type);
}

static tn_tensor *graph_of(tn_context *c, shape_kind kind) {
  bool swaps_left = kind == LEFT_TRANSPOSED || kind == BOTH_TRANSPOSED;
  bool swaps_right = kind == RIGHT_TRANSPOSED || kind == BOTH_TRANSPOSED;
  tn_dtype type = kind == OF_DOUBLES ? TN_F64 : kind == OF_INTEGERS ? TN_I32 : TN_F32;
  int64_t batch = kind == BATCHED || kind == SHARED_RIGHT ? B : 0;
  int64_t columns = kind == OF_A_VECTOR ? 1 : N;
  tn_tensor *x =
      swaps_left ? tn_transpose(input(c, "x", type, K, M, 0)) : input(c, "x", type, M, K, batch);
  if (kind == OF_ONE_INPUT) return tn_matmul(x, tn_transpose(x));
  tn_tensor *y = swaps_right ? tn_transpose(input(c, "y", type, N, K, 0))
                             : input(c, "y", type, K, columns, kind == BATCHED ? batch : 0);
  tn_tensor *out = tn_matmul(x, y);
  if (kind == SWAPPED) return tn_transpose(out);
  return kind == WITH_BIAS ? tn_add(out, input(c, "bias", type, 1, N, 0)) : out;
}

static tn_plan *plan_of(tn_context *c, shape_kind kind) {
  tn_tensor *out = graph_of(c, kind);
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan;
  desc.tunable = true;
  check_ok(c, tn_plan_compile(c, &out, 1, &desc, &plan));
  return plan;
}

static void set_input(tn_binding *b, const tn_port *port, double values[], int seed) {
  size_t n = 1;
  tn_dtype type = port->type.dtype;
  for (int32_t i = 0; i < port->type.shape.rank; i++) n *= (size_t)port->type.shape.size[i];
  assert_true(n <= MOST);
  for (size_t i = 0; i < n; i++) {
    double value = (double)((i * 7 + (size_t)seed) % 23) - 11;
    if (type == TN_F64) values[i] = value / 8;
    if (type == TN_F32) ((float *)values)[i] = (float)value / 8;
    if (type == TN_I32) ((int32_t *)values)[i] = (int32_t)value;
  }
  const size_t bytes = n * (type == TN_F64 ? 8 : 4);
  assert_int_equal(tn_binding_input(b, port->name, port->type.shape, type, values, bytes), TN_OK);
}

/** Runs a plan on fixed inputs; the result as doubles, and the library of its only step. */
static size_t run(tn_context *c, tn_plan *plan, double result[], const char **library) {
  static double values[3][MOST];
  tn_binding *b;
  tn_port port = TN_PORT_INIT;
  tn_step step = TN_STEP_INIT;
  check_ok(c, tn_plan_bind(plan, &b));
  for (size_t i = 0; tn_plan_port(plan, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    set_input(b, &port, values[i], (int)i * 5);
  check_ok(c, tn_binding_run(b));
  const tn_type type = tn_binding_type_at(b, 0);
  size_t n = 1;
  for (int32_t i = 0; i < type.shape.rank; i++) n *= (size_t)type.shape.size[i];
  assert_true(n <= MOST);
  assert_int_equal(tn_binding_read_at(b, 0, TN_F64, result, n * sizeof *result), TN_OK);
  check_ok(c, tn_binding_step(b, 0, &step));
  *library = step.library;
  tn_binding_free(b);
  return n;
}

/* Records. */

typedef struct kernel_key {
  fixture *f;
  tn_context *c;
  tn_plan *plan;
  const char *key;
  bool is_product;
} kernel_key;

static void find_key(void *arg) {
  kernel_key *k = arg;
  diag *d = &k->f->diag;
  const kernel_copies kernels = plan_kernels(k->plan, d);
  const compile_options o = {.target = k->c->target, .math = (int)k->c->math};
  tn_product p;
  assert_int_equal(kernels.n, 1);
  if (compile_tuned_keys(&o, kernels.ir, kernels.at, 1, &k->f->arena, &k->key, d)) diag_rethrow(d);
  k->is_product = match_product(kernels.at[0], o.math, &p);
  assert_false(match_product(kernels.at[0], MATH_EXACT, &p));
  ir_free(kernels.ir);
}

static kernel_key key_of(fixture *f, shape_kind kind) {
  kernel_key k = {.f = f, .c = open_with(f, "off")};
  k.plan = plan_of(k.c, kind);
  if (diag_catch(&f->diag, find_key, &k)) fail_msg("%s", f->diag.text);
  check_ok(k.c, tn_close(k.c));
  return k;
}

static void keep_after(const fixture *f, const char *key, const char *decisions,
                       const char *other) {
  append_tuned_record(f->tuned,
                      &(tuned_record){key, TUNED_KEPT, {decisions, 1, 1}, {other, 1, 2}, false});
}

static void keep(fixture *f, const char *key, const char *decisions) {
  keep_after(f, key, decisions, "-");
}

/** Keeps a record by which the kernel of a plan is a call of the library. */
static void keep_library(fixture *f, shape_kind kind) {
  keep(f, key_of(f, kind).key, tested->decisions);
}

typedef struct process {
  uint64_t compiled;
  const char *library;
  size_t n;
  double result[MOST];
} process;

static const process *run_process(fixture *f, const char *vendor, shape_kind kind, process *to) {
  tn_context *c = open_with(f, vendor);
  f->remarks = f->library_spans = 0;
  to->n = run(c, plan_of(c, kind), to->result, &to->library);
  to->compiled = kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled;
  check_ok(c, tn_close(c));
  return to;
}

static void check_near(const process *a, const process *b) {
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++)
    if (!(fabs(a->result[i] - b->result[i]) <= 1e-4)) /* sums of 33 products of at most 2 */
      fail_msg("element %zu: %g, not %g", i, a->result[i], b->result[i]);
}

/** A function of the stand-in; NULL where the library is another one. */
static void *find_function(const char *name) {
  const char *file = getenv(tested->variable);
  void *library = dlopen(file && *file ? file : "libcublas.so.12", RTLD_NOW);
  return library ? dlsym(library, name) : NULL;
}

/** A number that the stand-in counts; -1 where the library is another one. */
static int stand_in(const char *name) {
  int (*function)(void);
  void *found = find_function(name);
  memcpy(&function, &found, sizeof found);
  return found ? function() : -1;
}

/* Tests. */

static void products_are_recognised(void **state) {
  for (shape_kind kind = 0; kind < KINDS; kind++)
    if (key_of(*state, kind).is_product != (kind < PRODUCTS)) fail_msg("graph %d", (int)kind);
}

static void results_are_those_of_kernels(void **state) {
  static process usual, called;
  fixture *f = *state;
  for (shape_kind kind = 0; kind < PRODUCTS; kind++) {
    keep_library(f, kind);
    run_process(f, is_on_cpu() ? NULL : "off", kind, &usual); /* off is the CPU's default */
    assert_null(usual.library);
    assert_int_equal(f->library_spans, 0);
    int calls = stand_in(tested->counter);
    run_process(f, is_on_cpu() ? "on" : NULL, kind, &called);
    assert_string_equal(called.library, tested->name);
    assert_int_equal(f->library_spans, 1);
    assert_true(calls < 0 || stand_in(tested->counter) > calls);
    check_near(&called, &usual);
  }
  assert_true(stand_in("stand_in_threads") < 0 || stand_in("stand_in_threads") == 1);
}

/** Records may be damaged, or of another build: a kernel that is no product is compiled. */
static void other_kernels_are_compiled(void **state) {
  static process usual, called;
  fixture *f = *state;
  for (shape_kind kind = PRODUCTS; kind < KINDS; kind++) {
    keep_library(f, kind);
    run_process(f, "off", kind, &usual);
    run_process(f, "on", kind, &called);
    assert_null(called.library);
    check_near(&called, &usual);
  }
  keep(f, key_of(f, PLAIN).key, "library:another");
  assert_null(run_process(f, "on", PLAIN, &called)->library);
}

/** Without a measurement no kernel is a call. */
static void nothing_is_called_without_a_record(void **state) {
  static process found;
  assert_null(run_process(*state, "on", PLAIN, &found)->library);
}

/** One that was measured against the library; what a tuning without it keeps does not. */
static void a_later_schedule_replaces_the_library(void **state) {
  static process found;
  fixture *f = *state;
  const kernel_key k = key_of(f, PLAIN);
  keep(f, k.key, tested->decisions);
  keep(f, k.key, "tile:0/8");
  assert_string_equal(run_process(f, "on", PLAIN, &found)->library, tested->name);
  keep_after(f, k.key, "tile:0/8", tested->decisions);
  assert_null(run_process(f, "on", PLAIN, &found)->library);
}

/** Plans with and without the library are both on disk. */
static void plans_on_disk_have_the_library(void **state) {
  static process found;
  fixture *f = *state;
  run_process(f, "on", PLAIN, &found); /* a plan of a compiled kernel is there before */
  keep_library(f, PLAIN);
  assert_string_equal(run_process(f, "on", PLAIN, &found)->library, tested->name);
  assert_int_equal(run_process(f, "on", PLAIN, &found)->compiled, 0);
  assert_string_equal(found.library, tested->name);
  assert_int_equal(run_process(f, "off", PLAIN, &found)->compiled, 0);
  assert_null(found.library);
  assert_int_equal(run_process(f, "on", PLAIN, &found)->compiled, 0);
  assert_string_equal(found.library, tested->name);
  assert_int_equal(f->remarks, 0);
}

/** Runs this program's plan in a process with another library; 0 if all went as `other_process`
    says. */
static int run_other(const fixture *f, const char *library, const char *expected) {
  pid_t child = fork();
  if (!child) {
    setenv(tested->variable, library, 1);
    execl(program, program, f->cache, f->tuned, expected, (char *)NULL);
    _exit(99);
  }
  int status;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static tn_status describe_device(tn_context *c, tn_device_info *info) {
  for (size_t i = 0; tn_device_get(c, i, info) == TN_OK; i++)
    if (!strncmp(info->name, tested->device, strlen(tested->device))) return TN_OK;
  return TN_ERR_DEVICE;
}

/** The other process: the kernel is compiled, with one warning, and the device says why. */
static int other_process(const char *cache, const char *tuned, const char *expected) {
  static process found;
  fixture f = {.cache = cache, .tuned = tuned};
  tn_device_info info = TN_DEVICE_INFO_INIT;
  tn_context *c = open_with(&f, "on");
  if (f.remarks != 1) return 1;
  if (describe_device(c, &info) || !strstr(info.library, expected)) return 2;
  if (run(c, plan_of(c, PLAIN), found.result, &found.library) != M * N) return 3;
  if (found.library) return 4;
  return tn_close(c) == TN_OK && f.remarks == 1 ? 0 : 5;
}

static void an_absent_library_is_said(void **state) {
  static process found;
  fixture *f = *state;
  Dl_info other = {NULL, NULL, NULL, NULL}; /* the C library */
  assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &other));
  keep_library(f, PLAIN);
  assert_string_equal(run_process(f, "on", PLAIN, &found)->library, tested->name);
  assert_int_equal(run_other(f, "/nonexistent.so", tested->missing), 0);
  assert_int_equal(run_other(f, other.dli_fname, tested->lacking), 0);
}

static void descriptions_name_the_library(void **state) {
  fixture *f = *state;
  tn_explanation *x;
  tn_schedule *schedule;
  tn_explained_kernel k = TN_EXPLAINED_KERNEL_INIT;
  tn_scheduled_kernel s = TN_SCHEDULED_KERNEL_INIT;
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  keep_library(f, BATCHED);
  tn_context *c = open_with(f, "on");
  tn_tensor *out = graph_of(c, BATCHED);
  check_ok(c, tn_schedule_make(c, &out, 1, &desc, &schedule));
  check_ok(c, tn_schedule_kernel(schedule, 0, &s));
  assert_string_equal(s.library, tested->name);
  check_ok(c, tn_explain(c, true, &x));
  plan_of(c, BATCHED);
  check_ok(c, tn_explanation_kernel(x, 0, &k));
  assert_string_equal(k.library, tested->name);
  assert_non_null(strstr(k.source, "3 product(s) of f32, 48 x 80"));
  check_ok(c, tn_close(c));
}

/* Tuning. */

/** Has the stand-in fail or be slow (stand_in_product_fault); false: the library is no stand-in. */
static bool set_fault(const char *fault) {
  void (*function)(const char *);
  void *found = find_function("stand_in_product_fault");
  memcpy(&function, &found, sizeof found);
  if (found) function(fault);
  return found != NULL;
}

/** The result of tuning a product, the file that it wrote, and a run afterwards. */
typedef struct tuned_product {
  tn_status status; /* of tn_tune */
  tn_tuning told;
  char message[512];
  char file[1 << 16]; /* the tuned schedules */
  process after;      /* a run of the same binding, without `compiled` */
  bool is_run;
} tuned_product;

static void read_tuned(const fixture *f, tuned_product *t) {
  FILE *file = fopen(f->tuned, "r");
  t->file[0] = 0;
  if (!file) return;
  t->file[fread(t->file, 1, sizeof t->file - 1, file)] = 0;
  fclose(file);
}

/** Ends a tuning after its first measurement, which is the library's. */
static bool goes_on(void *user, const tn_tuning *now) {
  (void)user;
  return !now->measured;
}

/** Tunes a product while the stand-in has a fault, which ends before the run after it. */
static const tuned_product *tune(fixture *f, const char *fault, tuned_product *t) {
  static double values[2][MOST];
  tn_context *c = open_with(f, "on");
  tn_plan *plan = plan_of(c, PLAIN);
  tn_binding *b;
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  tn_port port = TN_PORT_INIT;
  tn_step step = TN_STEP_INIT;
  desc.progress = goes_on;
  check_ok(c, tn_plan_bind(plan, &b));
  for (size_t i = 0; tn_plan_port(plan, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    set_input(b, &port, values[i], (int)i * 5);
  set_fault(fault);
  t->told = (tn_tuning)TN_TUNING_INIT;
  t->status = tn_tune(b, &desc, &t->told);
  snprintf(t->message, sizeof t->message, "%s", tn_binding_message(b));
  set_fault(NULL);
  t->is_run = tn_binding_run(b) == TN_OK;
  t->after.n = M * N;
  if (t->is_run) {
    assert_int_equal(tn_binding_read_at(b, 0, TN_F64, t->after.result, M * N * sizeof(double)),
                     TN_OK);
    check_ok(c, tn_binding_step(b, 0, &step));
    t->after.library = step.library ? tested->name : NULL;
  }
  check_ok(c, tn_close(c));
  read_tuned(f, t);
  return t;
}

/** True if the file has a line of the library with a verdict. */
static bool has_verdict(fixture *f, const tuned_product *t, const char *verdict) {
  const char *text = arena_printf(&f->arena, " %s %s ", verdict, tested->decisions);
  return strstr(t->file, text) != NULL;
}

/** Has each kernel of the stand-in for CUDA take milliseconds more. */
static void slow_kernels(int ms) {
  void (*function)(int);
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "stand_in_slow_kernels");
  memcpy(&function, &found, sizeof found);
  function(ms);
}

/** The tuner measures the library, and says so in its file. */
static void the_tuner_measures_the_library(void **state) {
  static tuned_product t;
  fixture *f = *state;
  assert_int_equal(tune(f, NULL, &t)->status, TN_OK);
  assert_true(t.is_run);
  assert_true(has_verdict(f, &t, "slower") || has_verdict(f, &t, "faster"));
  assert_string_equal(t.told.library, tested->name);
  assert_int_equal(t.told.library_measured, 1);
  assert_int_equal(t.told.library_faster, has_verdict(f, &t, "faster"));
}

/** A library that is slower than kernels is not called after the tuning. */
static void a_slow_library_is_not_kept(void **state) {
  static tuned_product t;
  static process usual;
  fixture *f = *state;
  if (!set_fault(NULL)) skip();
  run_process(f, "off", PLAIN, &usual);
  assert_int_equal(tune(f, is_on_cpu() ? "slow:1" : "slow:200", &t)->status, TN_OK);
  assert_true(has_verdict(f, &t, "slower") && !has_verdict(f, &t, "kept"));
  assert_true(t.told.library_measured == 1 && !t.told.library_faster && !t.told.library_kept);
  assert_null(t.after.library);
  check_near(&t.after, &usual);
  assert_null(run_process(f, "on", PLAIN, &usual)->library);
}

/** The tuner keeps a library that is faster than kernels, and the plan calls it from then on, in
    this process and in later ones. */
static void a_fast_library_is_kept(void **state) {
  static tuned_product t;
  static process usual, later;
  fixture *f = *state;
  if (is_on_cpu()) skip();
  run_process(f, "off", PLAIN, &usual);
  slow_kernels(5);
  assert_int_equal(tune(f, NULL, &t)->status, TN_OK);
  slow_kernels(0);
  if (!has_verdict(f, &t, "faster") || !has_verdict(f, &t, "kept")) fail_msg("%s", t.file);
  assert_true(t.told.kept == 1 && t.told.library_faster == 1 && t.told.library_kept == 1);
  assert_string_equal(t.after.library, tested->name);
  check_near(&t.after, &usual);
  int calls = stand_in(tested->counter);
  assert_string_equal(run_process(f, "on", PLAIN, &later)->library, tested->name);
  assert_true(stand_in(tested->counter) > calls);
  check_near(&later, &usual);
  assert_null(run_process(f, "off", PLAIN, &later)->library);
}

/** A library whose calls fail is recorded so, and the kernels are tuned without it. */
static void a_failing_library_is_not_kept(void **state) {
  static const char *const faults[] = {"Create:1", "SetStream:7", "Sgemm:13", "Sgemm:14"};
  static tuned_product t;
  static process usual;
  fixture *f = *state;
  if (is_on_cpu()) skip();
  run_process(f, "off", PLAIN, &usual);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    tune(f, faults[i], &t);
    if (t.status || !has_verdict(f, &t, "failed") || has_verdict(f, &t, "kept"))
      fail_msg("%s: %d, %s", faults[i], (int)t.status, t.message);
    assert_null(t.after.library);
    check_near(&t.after, &usual);
    unlink(f->tuned);
  }
}

/* Failing calls of a library that was kept. */

/** Binds the plan of a product whose library was kept. */
static tn_binding *bind_kept(fixture *f, tn_context **c) {
  static double values[2][MOST];
  tn_binding *b;
  tn_port port = TN_PORT_INIT;
  keep_library(f, PLAIN);
  *c = open_with(f, "on");
  tn_plan *plan = plan_of(*c, PLAIN);
  check_ok(*c, tn_plan_bind(plan, &b));
  for (size_t i = 0; tn_plan_port(plan, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    set_input(b, &port, values[i], (int)i * 5);
  return b;
}

/** A run says which call failed and how to do without the library; the device is not lost. */
static void failing_calls_fail_the_run(void **state) {
  static const struct {
    const char *fault, *said;
    tn_status status;
  } all[] = {
      {"Create:1", "cublasCreate fails with status 1 of cuBLAS", TN_ERR_UNSUPPORTED},
      {"Create:3", "cublasCreate fails with status 3 of cuBLAS", TN_ERR_MEMORY},
      {"SetStream:7", "cublasSetStream fails with status 7 of cuBLAS", TN_ERR_UNSUPPORTED},
      {"Sgemm:13", "cublasSgemmStridedBatched fails with status 13", TN_ERR_UNSUPPORTED},
      {"Sgemm:14", "(TENON_VENDOR=off has kernels compiled in its place)", TN_ERR_UNSUPPORTED},
  };
  static process usual, later;
  fixture *f = *state;
  if (is_on_cpu()) skip();
  run_process(f, "off", PLAIN, &usual);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    tn_context *c;
    tn_binding *b = bind_kept(f, &c);
    set_fault(all[i].fault);
    tn_status status = tn_binding_run(b);
    set_fault(NULL);
    if (status != all[i].status || !strstr(tn_binding_message(b), all[i].said))
      fail_msg("%s: %d, %s", all[i].fault, (int)status, tn_binding_message(b));
    later.n = M * N;
    if (tn_binding_run(b)) fail_msg("after %s: %s", all[i].fault, tn_binding_message(b));
    assert_int_equal(tn_binding_read_at(b, 0, TN_F64, later.result, M * N * sizeof(double)), TN_OK);
    check_near(&later, &usual);
    check_ok(c, tn_close(c));
  }
}

/** A call that fails since the device is lost says so, and all runs after it do. */
static void a_lost_device_is_told_apart(void **state) {
  fixture *f = *state;
  tn_context *c;
  if (is_on_cpu()) skip();
  tn_binding *b = bind_kept(f, &c);
  void (*fail_driver)(const char *);
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "stand_in_fail");
  memcpy(&fail_driver, &found, sizeof found);
  set_fault("Sgemm:13");
  fail_driver("cuStreamQuery:700");
  assert_int_equal(tn_binding_run(b), TN_ERR_DEVICE);
  check_text(tn_binding_message(b),
             "cublasSgemmStridedBatched fails with CUDA_ERROR_ILLEGAL_ADDRESS");
  set_fault(NULL);
  fail_driver(NULL);
  assert_int_equal(tn_binding_run(b), TN_ERR_DEVICE);
  check_text(tn_binding_message(b), "was lost");
  tn_close(c);
}

/** Files of the cache may be damaged: what is out of place is no product. */
static void damaged_products_are_refused(void **state) {
  (void)state;
  const tn_product sound = {.dtype = TN_F32,
                            .m = 4,
                            .n = 5,
                            .k = 6,
                            .batch = {2, 1, 1, 1},
                            .out = {0, 0, 5, 1, {20}},
                            .left = {1, 0, 1, 4, {24}},
                            .right = {2, 3, 5, 1, {0}}};
  tn_product bad[12], found;
  for (size_t i = 0; i < 12; i++) bad[i] = sound;
  bad[0].dtype = TN_I32;
  bad[1].m = 0;
  bad[2].k = INT64_MAX;
  bad[3].batch[2] = 0;
  bad[4].batch[3] = INT64_C(1) << 31;
  bad[5].out.row = 4;     /* rows overlap */
  bad[6].out.column = 2;  /* neither rows nor columns are contiguous */
  bad[7].left.column = 3; /* columns overlap */
  bad[8].right.start = -1;
  bad[9].out.buffer = 1; /* a factor's */
  bad[10].left.batch[0] = INT64_MAX;
  bad[11].right.buffer = 3;
  tn_failure f;
  tn_code code = {TN_CODE_PRODUCT, &sound, sizeof sound};
  assert_int_equal(product_read(&code, &found, &f), TN_OK);
  assert_memory_equal(&found, &sound, sizeof sound);
  for (size_t i = 0; i < 12; i++) {
    code.data = &bad[i];
    if (product_read(&code, &found, &f) != TN_ERR_FORMAT) fail_msg("damage %zu", i);
  }
  code.data = &sound;
  code.bytes--;
  assert_int_equal(product_read(&code, &found, &f), TN_ERR_FORMAT);
  tn_span spans[] = {{.bytes = 40 * 4}, {.bytes = 48 * 4}, {.bytes = 33 * 4}};
  const tn_launch launch = {.buffers = spans, .n_buffers = 3};
  assert_int_equal(product_check_launch(&sound, &launch, &f), TN_OK);
  for (size_t i = 0; i < 3; i++) {
    spans[i].bytes--;
    assert_int_equal(product_check_launch(&sound, &launch, &f), TN_ERR_ARGUMENT);
    spans[i].bytes++;
  }
}

static void bad_options_are_refused(void **state) {
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  tn_context *c = open_with(*state, "openblas");
  assert_int_equal(tn_context_get(c, &info), TN_ERR_ARGUMENT);
  assert_non_null(strstr(tn_message(c), "not on or off"));
  tn_close(c);
}

int main(int argc, char **argv) {
  program = argv[0];
  const char *device = getenv("TENON_TEST_DEVICE");
  tested = &vendors[device && !strcmp(device, "CUDA")];
  if (argc == 4) return other_process(argv[1], argv[2], argv[3]);
  if (!getenv(tested->variable)) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(products_are_recognised, set_up, tear_down),
      cmocka_unit_test_setup_teardown(results_are_those_of_kernels, set_up, tear_down),
      cmocka_unit_test_setup_teardown(other_kernels_are_compiled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_called_without_a_record, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_later_schedule_replaces_the_library, set_up, tear_down),
      cmocka_unit_test_setup_teardown(plans_on_disk_have_the_library, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_absent_library_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(descriptions_name_the_library, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_tuner_measures_the_library, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_slow_library_is_not_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_fast_library_is_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_failing_library_is_not_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(failing_calls_fail_the_run, set_up, tear_down),
      cmocka_unit_test(damaged_products_are_refused),
      cmocka_unit_test_setup_teardown(bad_options_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_lost_device_is_told_apart, set_up, tear_down), /* last */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
