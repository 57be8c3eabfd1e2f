/* Tests contexts: opening and bad descriptors, environment variables, error messages by thread,
   refusal of concurrent calls, cancellation by the progress callback, logging, and that closing
   frees everything. */
#include "support/tensor_check.h"

#include "base/thread.h"
#include "tensor/context/context.h"

#include <tenon/unstable/queue.h>

static void open_and_close(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  assert_non_null(c);
  assert_string_equal(tn_message(c), "");
  check_ok(c, tn_close(c));
  assert_int_equal(tn_close(NULL), TN_OK);
  check_text(tn_message(NULL), "no context");
}

/** Checks that every call on a context that failed to open returns its failure. */
static void check_broken(tn_context *c, tn_status status, const char *words) {
  float f = 0;
  tn_plan *plan;
  assert_non_null(c);
  check_text(tn_message(c), words);
  assert_int_equal(tn_read(floats(c, 1, &f), TN_F32, &f, 4), status);
  assert_int_equal(tn_realize(c, NULL, 0), status);
  assert_int_equal(tn_plan_compile(c, NULL, 0, NULL, &plan), status);
  tn_scope_begin(c);
  assert_int_equal(tn_scope_end(c), status);
  check_text(tn_message(c), words);
  assert_int_equal(tn_close(c), TN_OK);
}

/** Memory for a call's own work is kept from one call to the next. */
static void calls_keep_memory_for_their_work(void **state) {
  (void)state;
  enum { CALLS = 10 };
  counting memory = {.fail_at = 0};
  tn_context *c = open_counting(&memory, NULL);
  tn_tensor *x = tn_input(c, "x", tn_shape(4), TN_F32);
  assert_non_null(tn_add(x, x));
  size_t calls = memory.calls;
  for (int i = 0; i < CALLS; i++) assert_non_null(tn_add(x, x));
  assert_int_equal(memory.calls - calls, 2 * CALLS); /* one for the tensor, one for its nodes */
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

static void bad_descriptors_break_the_context(void **state) {
  (void)state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "GPU:7";
  check_broken(tn_open(&d), TN_ERR_DEVICE, "GPU:7");
  d.device = NULL;
  d.dump = "nonsense";
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "nonsense");
  d.dump = NULL;
  d.threads = -1;
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "number of threads is -1");
  d.threads = 0;
  d.math = (tn_math)99;
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "99");
  d.math = TN_MATH_DEFAULT;
  d.pair = "none/none";
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "none/none");
  d.pair = NULL;
  d.size = 8;
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "INIT");
}

static void unknown_tails_are_refused(void **state) {
  (void)state;
  struct {
    tn_open_desc known;
    uint64_t more;
  } d = {TN_OPEN_DESC_INIT, 0};
  d.known.size = sizeof d;
  tn_context *c = tn_open(&d.known);
  assert_string_equal(tn_message(c), "");
  check_ok(c, tn_close(c));
  d.more = 1;
  check_broken(tn_open(&d.known), TN_ERR_ARGUMENT, "does not know");
}

static void the_environment_is_heeded(void **state) {
  (void)state;
  setenv("TENON_DEVICE", "ABSENT", 1);
  check_broken(tn_open(NULL), TN_ERR_DEVICE, "ABSENT");
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "CPU";
  tn_context *c = tn_open(&d);
  assert_string_equal(tn_message(c), "");
  check_ok(c, tn_close(c));
  d.device = NULL;
  d.environment = false;
  d.cache_dir = "off";
  c = tn_open(&d);
  assert_string_equal(tn_message(c), "");
  check_ok(c, tn_close(c));
  unsetenv("TENON_DEVICE");
  setenv("TENON_CPU", "pentium", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT, "TENON_CPU: unknown processor level \"pentium\"");
  d = (tn_open_desc)TN_OPEN_DESC_INIT;
  d.cpu = "i486";
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "open: unknown processor level \"i486\"");
  unsetenv("TENON_CPU");
  setenv("TENON_PAIR", "c/none", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT, "TENON_PAIR: device CPU:0 has no renderer/compiler");
  unsetenv("TENON_PAIR");
  setenv("TENON_THREADS", "many", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT, "TENON_THREADS");
  setenv("TENON_THREADS", "2", 1);
  setenv("TENON_MATH", "sloppy", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT, "TENON_MATH");
#define OPENS(mode, text)                 \
  setenv("TENON_MATH", text, 1);          \
  c = tn_open(NULL);                      \
  assert_string_equal(tn_message(c), ""); \
  assert_int_equal(c->math, mode);        \
  check_ok(c, tn_close(c));
  TN_MATH_LIST(OPENS)
#undef OPENS
  unsetenv("TENON_MATH");
  unsetenv("TENON_THREADS");
  setenv("TENON_MEMORY", "4 pages", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT,
               "TENON_MEMORY is \"4 pages\", not a number of bytes");
  setenv("TENON_MEMORY", "1.5g", 1);
  setenv("TENON_COMPILE_SECONDS", "-1", 1);
  check_broken(tn_open(NULL), TN_ERR_ARGUMENT, "TENON_COMPILE_SECONDS is \"-1\"");
  setenv("TENON_COMPILE_SECONDS", "60", 1);
  c = tn_open(NULL);
  assert_int_equal(c->limit.most, UINT64_C(3) << 29);
  assert_true(c->options.compile_seconds == 60);
  check_ok(c, tn_close(c));
  unsetenv("TENON_MEMORY");
  unsetenv("TENON_COMPILE_SECONDS");
}

/** A sum of `n` ones, which are stored. */
static tn_status sum_ones(tn_context *c, int64_t n) {
  float got = 0;
  tn_tensor *ones = tn_ones(c, tn_shape(n), TN_F32);
  tn_scope_begin(c);
  tn_status s = tn_realize(c, &ones, 1);
  if (s == TN_OK) s = tn_read(tn_sum(ones, TN_ALL, false), TN_F32, &got, sizeof got);
  if (s == TN_OK) assert_true(got == (float)n);
  assert_int_equal(tn_scope_end(c), s);
  return s;
}

/** Memory beyond the limit is refused before it is asked for, and what fits still works. */
static void memory_is_limited(void **state) {
  (void)state;
  counting memory = {0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.memory_limit = UINT64_C(96) << 20;
  d.allocator = (tn_allocator){counting_alloc, counting_release, &memory, counting_destroy};
  tn_context *c = tn_open(&d);
  check_ok(c, sum_ones(c, 1 << 20));
  uint64_t used = atomic_load(&c->limit.used);
  assert_true(used > 1 << 20 && used < d.memory_limit);
  assert_int_equal(sum_ones(c, INT64_C(1) << 40), TN_ERR_MEMORY);
  check_text(tn_message(c), "out of memory (4.0 TiB): ");
  check_text(tn_message(c), " of the limit of 96.0 MiB are in use");
  assert_int_equal(sum_ones(c, 1 << 25), TN_ERR_MEMORY);
  check_ok(c, sum_ones(c, 1 << 20));
  check_ok(c, tn_close(c));
  assert_int_equal(memory.destroyed, 1);
}

static void compiling_ends_in_time(void **state) {
  (void)state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.cache_dir = "off";
  d.compile_seconds = 1e-7;
  tn_context *c = tn_open(&d);
  assert_int_equal(sum_ones(c, 12345), TN_ERR_TIMEOUT);
  check_text(tn_message(c), "compiling realize");
  check_text(tn_message(c), "it takes longer than 1e-07 s (compile_seconds");
  check_ok(c, tn_close(c));
  d.compile_seconds = 0;
  c = tn_open(&d);
  check_ok(c, sum_ones(c, 12345));
  check_ok(c, tn_close(c));
  d.compile_seconds = -1;
  check_broken(tn_open(&d), TN_ERR_ARGUMENT, "-1 seconds");
}

static void count_destroyed(void *user) { ++*(int *)user; }

static void keep_line(void *user, tn_log_level level, const char *text) {
  (void)level;
  snprintf(user, 256, "%s", text);
}

static void run_tasks(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  (void)user;
  for (size_t i = n; i-- > 0;) task(arg, i);
}

static void payloads_are_destroyed_once(void **state) {
  (void)state;
  counting memory = {0};
  int workers = 0, progress = 0, absent = 0;
  char line[256] = "";
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.allocator = (tn_allocator){counting_alloc, counting_release, &memory, counting_destroy};
  d.workers = (tn_workers){run_tasks, &workers, count_destroyed};
  d.logger = (tn_logger){keep_line, line, NULL};
  d.progress = (tn_progress){NULL, &absent, count_destroyed};
  tn_context *c = tn_open(&d);
  check_text(line, "CPU");
  check_floats(c, tn_add(floats(c, FLOATS(1, 2)), tn_num(c, 1)), FLOATS(2, 3));
  check_ok(c, tn_close(c));
  assert_int_equal(workers, 1);
  assert_int_equal(progress, 0);
  assert_int_equal(absent, 0);
  assert_int_equal(memory.destroyed, 1);
  assert_int_equal(memory.out, 0);
}

static void count_kernels(void *user, tn_log_level level, const char *text) {
  bool is_kernel = !strncmp(text, "kernel ", 7);
  if (is_kernel && (level != TN_LOG_DEBUG || !strstr(text, "compiled in"))) abort();
  *(int *)user += is_kernel;
}

/** Compiled kernels are logged; kernels found in a cache are not. */
static void kernels_are_logged(void **state) {
  (void)state;
  int kernels = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1; /* separate devices and kernels */
  d.cache_dir = "off";
  d.logger = (tn_logger){count_kernels, &kernels, NULL};
  tn_context *c = tn_open(&d);
  for (int i = 0; i < 3; i++) {
    float x[2] = {(float)i, 2};
    check_floats(c, tn_add(floats(c, 2, x), tn_num(c, 1)), FLOATS((float)i + 1, 3));
    assert_int_equal(kernels, 1);
  }
  check_floats(c, tn_mul(floats(c, FLOATS(1, 2)), tn_num(c, 3)), FLOATS(3, 6));
  assert_int_equal(kernels, 2);
  check_ok(c, tn_close(c));
}

static void check_line(void *user, tn_log_level level, const char *text) {
  (void)level;
  if (strpbrk(text, "\n\r\x1b")) abort();
  *(int *)user += strstr(text, "a WARNING: forged") != NULL;
}

/** A name with a newline cannot forge a log line. */
static void remarks_are_one_line(void **state) {
  (void)state;
  int lines = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.cache_dir = "off";
  d.logger = (tn_logger){check_line, &lines, NULL};
  tn_context *c = tn_open(&d);
  tn_plan_desc p = TN_PLAN_DESC_INIT;
  tn_tensor *out = tn_add(floats(c, FLOATS(1, 2)), tn_num(c, 1));
  p.name = "a\nWARNING: forged";
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, &out, 1, &p, &plan));
  assert_true(lines > 0);
  tn_plan_free(plan);
  check_ok(c, tn_close(c));
}

static bool cancel(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  ++*(int *)user;
  return false;
}

static void progress_cancels(void **state) {
  (void)state;
  int calls = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){cancel, &calls, NULL};
  tn_context *c = tn_open(&d);
  float f;
  tn_tensor *y = tn_add(floats(c, FLOATS(1)), tn_num(c, 1));
  assert_int_equal(tn_read(y, TN_F32, &f, 4), TN_ERR_CANCELLED);
  assert_int_equal(calls, 1);
  check_ok(c, tn_close(c));
}

static bool go_on(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  return *(bool *)user;
}

typedef struct steps {
  uint64_t next, total, ends, schedules;
} steps;

static bool note_step(void *user, const char *what, uint64_t done, uint64_t total) {
  steps *s = user;
  if (!strcmp(what, "schedules")) {
    assert_int_equal(s->next, 0); /* before the first kernel */
    assert_int_equal(done, ++s->schedules);
    assert_int_equal(total, 0);
    return true;
  }
  assert_string_equal(what, "kernels");
  assert_int_equal(done, s->next);
  if (done) assert_int_equal(total, s->total);
  s->total = total;
  s->ends += done == total;
  s->next = done == total ? 0 : done + 1;
  return true;
}

static void each_kernel_is_a_step(void **state) {
  (void)state;
  steps s = {0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){note_step, &s, NULL};
  tn_context *c = tn_open(&d);
  tn_tensor *y[] = {tn_softmax(tn_rand(c, tn_shape(4, 4), TN_F32), 0),
                    tn_matmul(tn_rand(c, tn_shape(5, 6), TN_F32), tn_ones(c, tn_shape(6), TN_F32))};
  check_ok(c, tn_realize(c, y, 2));
  assert_true(s.total > 1);
  assert_int_equal(s.ends, 1);
  assert_int_equal(s.next, 0);
  check_ok(c, tn_close(c));
}

/** Ends with the third kernel that is estimated. */
static bool end_scheduling(void *user, const char *what, uint64_t done, uint64_t total) {
  steps *s = user;
  (void)total;
  assert_string_equal(what, "schedules");
  s->schedules = done;
  return done < 3;
}

static void progress_ends_scheduling(void **state) {
  (void)state;
  steps s = {0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){end_scheduling, &s, NULL};
  d.cache_dir = "off";
  tn_context *c = tn_open(&d);
  tn_tensor *x = tn_rand(c, tn_shape(64, 64), TN_F32);
  for (int i = 0; i < 4; i++) x = tn_softmax(tn_matmul(x, x), 1);
  assert_int_equal(tn_realize(c, &x, 1), TN_ERR_CANCELLED);
  check_text(tn_message(c), "was cancelled");
  assert_int_equal(s.schedules, 3);
  check_ok(c, tn_close(c));
}

/** Allocations at the start, at the first report of a finished kernel and at the last one before
   all are compiled. */
typedef struct pace {
  counting memory;
  size_t start, first, last;
} pace;

static bool note_pace(void *user, const char *what, uint64_t done, uint64_t total) {
  pace *p = user;
  if (strcmp(what, "kernels") != 0) return true;
  size_t calls = (size_t)atomic_load(&p->memory.calls);
  if (!done) p->start = calls;
  if (done == 1) p->first = calls;
  if (done + 1 == total) p->last = calls;
  return true;
}

/** Progress is reported while other kernels are still to be generated. */
static void steps_are_told_at_once(void **state) {
  (void)state;
  enum { KERNELS = 24 };
  for (int32_t threads = 1; threads <= 2; threads++) {
    pace p = {0};
    tn_open_desc d = TN_OPEN_DESC_INIT;
    d.allocator = (tn_allocator){counting_alloc, counting_release, &p.memory, NULL};
    d.progress = (tn_progress){note_pace, &p, NULL};
    d.cache_dir = "off";
    d.threads = threads;
    tn_context *c = tn_open(&d);
    tn_tensor *y[KERNELS];
    for (int i = 0; i < KERNELS; i++) y[i] = tn_softmax(tn_rand(c, tn_shape(4, 5 + i), TN_F32), 0);
    check_ok(c, tn_realize(c, y, KERNELS));
    assert_true(p.start < p.first);
    assert_true(2 * (p.first - p.start) < p.last - p.start);
    check_ok(c, tn_close(c));
  }
}

static void cancelled_work_is_done_later(void **state) {
  (void)state;
  bool goes_on = false;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){go_on, &goes_on, NULL};
  tn_context *c = tn_open(&d);
  float f;
  tn_tensor *s = tn_state(tn_mul(floats(c, FLOATS(2)), tn_num(c, 2)));
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  assert_int_equal(tn_read(s, TN_F32, &f, 4), TN_ERR_CANCELLED);
  goes_on = true;
  check_floats(c, s, FLOATS(5));
  goes_on = false;
  tn_assign(s, tn_sub(s, tn_num(c, 3)));
  assert_int_equal(tn_read(s, TN_F32, &f, 4), TN_ERR_CANCELLED);
  goes_on = true;
  check_floats(c, s, FLOATS(2));
  check_ok(c, tn_close(c));
}

static tn_context *open_cancelling(bool *goes_on) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){go_on, goes_on, NULL};
  d.cache_dir = "off"; /* kernels in the cache could not be cancelled */
  return tn_open(&d);
}

/** Compiles the pending assignments of the innermost scope, in which something was cancelled, and
    runs the plan once after `s` was set to 100. */
static void run_at_100(tn_context *c, tn_tensor *s) {
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plan));
  assert_int_equal(tn_scope_end(c), TN_ERR_CANCELLED);
  check_ok(c, tn_plan_bind(plan, &b));
  tn_assign(s, tn_num(c, 100));
  assert_int_equal(tn_binding_run(b), TN_OK);
}

/** A cancelled compilation must not have replaced the states that its assignments read by
    values. */
static void cancelled_plans_are_compiled_later(void **state) {
  (void)state;
  bool goes_on = true;
  tn_plan *plan;
  tn_context *c = open_cancelling(&goes_on);
  tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = tn_state(floats(c, FLOATS(1)));
  check_ok(c, tn_realize(c, NULL, 0));
  check_ok(c, tn_write(s, TN_F32, (float[]){2}, 4));
  tn_tensor *sum = tn_add(s, y);
  check_ok(c, tn_realize(c, NULL, 0));
  tn_assign(s, tn_add(s, sum));
  tn_scope_begin(c);
  tn_assign(y, s);
  goes_on = false;
  assert_int_equal(tn_plan_compile(c, NULL, 0, NULL, &plan), TN_ERR_CANCELLED);
  goes_on = true;
  run_at_100(c, s);
  check_floats(c, y, FLOATS(100));
  check_ok(c, tn_close(c));
}

static void cancelled_reads_do_not_freeze_assigns(void **state) {
  (void)state;
  bool goes_on = true;
  float f;
  tn_context *c = open_cancelling(&goes_on);
  tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = tn_state(floats(c, FLOATS(0)));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_tensor *twice = tn_mul(s, tn_num(c, 2)), *all = tn_mul(twice, tn_num(c, 3));
  check_floats(c, twice, FLOATS(2));
  tn_assign(y, all);
  goes_on = false;
  assert_int_equal(tn_read(tn_exp(s), TN_F32, &f, 4), TN_ERR_CANCELLED);
  goes_on = true;
  run_at_100(c, s);
  check_floats(c, y, FLOATS(600));
  check_ok(c, tn_close(c));
}

static void devices_are_listed(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_device_info info = TN_DEVICE_INFO_INIT;
  check_ok(c, tn_device_get(c, 0, &info));
  check_text(info.name, "CPU");
  size_t i = 1;
  while (tn_device_get(c, i, &info) == TN_OK) i++;
  assert_true(i < 100);
  assert_string_equal(tn_message(c), "");
  tn_device *device;
  tn_failure failure;
  assert_int_equal(tn_device_open(c, NULL, &device, &failure), TN_OK);
  assert_string_equal(tn_device_name(device), "CPU:0");
  assert_int_equal(tn_device_open(c, "ABSENT", &device, &failure), TN_ERR_DEVICE);
  check_text(failure.text, "ABSENT");
  check_ok(c, tn_close(c));
}

/* One thread at a time. */

typedef struct inside {
  tn_context *c;
  tn_tensor *x;
  tn_status read, close, scope;
  tn_tensor *built, *many[2];
  tn_dim size;
  atomic_int stage; /* 1: the operation runs; 2: it may return */
} inside;

static tn_status enter_again(void *user, tn_call *call) {
  inside *in = user;
  float f;
  in->read = tn_read(in->x, TN_F32, &f, 4);
  in->built = tn_keep(tn_own(tn_relu(tn_add(in->x, in->x))));
  tn_release(in->built);
  tn_split(in->x, 0, NULL, in->many, 2);
  in->size = tn_dim_var(in->c, "n", 1, 4);
  in->close = tn_close(in->c);
  in->scope = tn_scope_end(in->c);
  *(float *)tn_call_out(call, 0).data = 7;
  return TN_OK;
}

static tn_tensor *custom_of(tn_context *c, tn_status (*run)(void *, tn_call *), void *user) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  const tn_type type = {TN_F32, TN_SCALAR};
  tn_tensor *out;
  d.run = run;
  d.user = user;
  tn_custom(c, &d, NULL, 0, &type, &out, 1);
  return out;
}

static void a_second_call_is_refused(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  inside in = {.c = c, .x = floats(c, FLOATS(1))};
  float f;
  check_ok(c, tn_read(custom_of(c, enter_again, &in), TN_F32, &f, 4));
  assert_true(f == 7);
  assert_int_equal(in.read, TN_ERR_BUSY);
  assert_int_equal(in.close, TN_ERR_BUSY);
  assert_int_equal(in.scope, TN_ERR_BUSY);
  assert_non_null(in.built);
  assert_int_equal(tn_type_of(in.built).dtype, TN_UNDEFINED);
  tn_scope_begin(c);
  assert_int_equal(tn_read(tn_keep(in.built), TN_F32, &f, 4), TN_ERR_BUSY);
  check_text(tn_message(c), "in another call");
  assert_int_equal(tn_read(tn_add(in.x, in.many[1]), TN_F32, &f, 4), TN_ERR_BUSY);
  assert_int_equal(tn_scope_end(c), TN_ERR_BUSY);
  assert_int_equal(tn_read(tn_zeros(c, tn_shape(in.size), TN_F32), TN_F32, &f, 4), TN_ERR_BUSY);
  check_text(tn_message(c), "in another call when a size was made");
  check_ok(c, tn_close(c));
}

static tn_status wait_inside(void *user, tn_call *call) {
  inside *in = user;
  atomic_store(&in->stage, 1);
  while (atomic_load(&in->stage) != 2) thread_spin_hint();
  *(float *)tn_call_out(call, 0).data = 1;
  return TN_OK;
}

static void *run_binding(void *arg) {
  tn_binding_run(arg);
  return NULL;
}

static void *build_and_read(void *arg) {
  inside *in = arg;
  float f;
  in->built = tn_add(tn_ones(in->c, tn_shape(1), TN_F32), tn_num(in->c, 1));
  in->read = tn_read(in->built, TN_F32, &f, 4);
  return NULL;
}

static tn_status start_other(void *user, tn_call *call) {
  diag d = {0};
  thread t;
  if (thread_start(&t, build_and_read, user, &d) != TN_OK) return d.status;
  thread_join(t);
  *(float *)tn_call_out(call, 0).data = 1;
  return TN_OK;
}

static void a_second_thread_is_told_why(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  inside in = {.c = c};
  float f;
  check_ok(c, tn_read(custom_of(c, start_other, &in), TN_F32, &f, 4));
  assert_int_equal(in.read, TN_ERR_BUSY);
  assert_non_null(in.built);
  assert_int_equal(tn_read(in.built, TN_F32, &f, 4), TN_ERR_BUSY);
  check_text(tn_message(c), "one thread at a time");
  check_ok(c, tn_close(c));
}

/* Messages are per thread: failures of other threads that bind, compile or run do not change
   them. */

enum { MESSAGE_ROUNDS = 300 };

typedef struct binder {
  tn_plan *plan;
  tn_context *c;
  const char *name; /* of the plan */
  bool is_wrong;
} binder;

/** Fails to bind and reads the message. */
static void *fail_to_bind(void *arg) {
  binder *b = arg;
  for (int i = 0; i < MESSAGE_ROUNDS && !b->is_wrong; i++) {
    if (tn_plan_bind(b->plan, NULL) != TN_ERR_ARGUMENT) b->is_wrong = true;
    const char *text = tn_message(b->c);
    char copy[64] = "";
    strncpy(copy, text, sizeof copy - 1);
    b->is_wrong |= strncmp(copy, b->name, strlen(b->name)) != 0;
    b->is_wrong |= tn_message(b->c) != text;
  }
  return NULL;
}

static tn_plan *named_plan(tn_context *c, const char *name) {
  tn_plan_desc d = TN_PLAN_DESC_INIT;
  tn_plan *p;
  tn_tensor *y = tn_neg(tn_input(c, "x", tn_shape(4), TN_F32));
  d.name = name;
  check_ok(c, tn_plan_compile(c, &y, 1, &d, &p));
  return p;
}

static void messages_are_of_threads(void **state) {
  (void)state;
  enum { BINDERS = 3 };
  static const char *const names[BINDERS] = {"first", "second", "third"};
  tn_context *c = tn_open(NULL);
  binder b[BINDERS];
  pthread_t threads[BINDERS];
  for (size_t i = 0; i < BINDERS; i++)
    b[i] = (binder){.plan = named_plan(c, names[i]), .c = c, .name = names[i]};
  tn_add(tn_full(c, tn_shape(2), TN_F32, 1), tn_full(c, tn_shape(3), TN_F32, 1));
  const char *text = tn_message(c);
  for (size_t i = 0; i < BINDERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, fail_to_bind, &b[i]), 0);
  for (int i = 0; i < MESSAGE_ROUNDS; i++) {
    check_text(text, "add(f32[2], f32[3])");
    assert_ptr_equal(tn_message(c), text);
  }
  for (size_t i = 0; i < BINDERS; i++) pthread_join(threads[i], NULL);
  check_text(tn_message(c), "add(f32[2], f32[3])");
  for (size_t i = 0; i < BINDERS; i++) assert_false(b[i].is_wrong);
  assert_int_equal(tn_close(c), TN_OK);
}

static void *fail_once(void *arg) {
  binder *b = arg;
  b->is_wrong = tn_plan_bind(b->plan, NULL) != TN_ERR_ARGUMENT;
  return NULL;
}

static void *read_message(void *arg) {
  binder *b = arg;
  b->is_wrong = strstr(tn_message(b->c), "add(f32[2], f32[3])") == NULL;
  return NULL;
}

/** A new thread with the pthread_t of one that ended does not see its message. */
static void ended_threads_leave_no_message(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  binder b = {.plan = named_plan(c, "ended"), .c = c, .name = "ended"};
  pthread_t before, after;
  bool is_same = false;
  tn_add(tn_full(c, tn_shape(2), TN_F32, 1), tn_full(c, tn_shape(3), TN_F32, 1));
  for (int i = 0; i < 100 && !is_same; i++) {
    assert_int_equal(pthread_create(&before, NULL, fail_once, &b), 0);
    pthread_join(before, NULL);
    assert_false(b.is_wrong);
    assert_int_equal(pthread_create(&after, NULL, read_message, &b), 0);
    is_same = pthread_equal(before, after) != 0;
    pthread_join(after, NULL);
    assert_false(b.is_wrong);
  }
  assert_int_equal(tn_close(c), TN_OK);
  if (!is_same) skip(); /* no thread got the pthread_t of an ended one */
}

/** A thread's message is its newest failure, whichever kind of work failed. */
static void the_newest_message_counts(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_plan *p = named_plan(c, "net");
  for (int i = 0; i < 2; i++) {
    tn_add(tn_full(c, tn_shape(2), TN_F32, 1), tn_full(c, tn_shape(3), TN_F32, 1));
    check_text(tn_message(c), "add(f32[2], f32[3])");
    assert_int_equal(tn_plan_bind(p, NULL), TN_ERR_ARGUMENT);
    check_text(tn_message(c), "net: plan_bind");
  }
  assert_int_equal(tn_close(c), TN_OK);
}

/** Runs a binding, which fails by a pending assignment. */
static void *run_and_fail(void *arg) {
  binder *b = arg;
  tn_binding *of;
  b->is_wrong = tn_plan_bind(b->plan, &of) != TN_OK || tn_binding_run(of) == TN_OK;
  b->is_wrong |= !strstr(tn_message(b->c), "not today");
  return NULL;
}

static tn_status refuse_today(void *user, tn_call *call) {
  (void)user;
  tn_call_fail(call, "not today");
  return TN_ERR_IO;
}

static void messages_of_runs_are_of_threads(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_tensor *s = tn_state(tn_full(c, tn_shape(4), TN_F32, 1)), *out, *y = tn_neg(s);
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  binder b = {.c = c};
  pthread_t t;
  check_ok(c, tn_realize(c, &s, 1));
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &b.plan));
  d.run = refuse_today;
  tn_custom(c, &d, NULL, 0, &(tn_type){TN_F32, tn_shape(4)}, &out, 1);
  tn_assign(s, out);
  assert_string_equal(tn_message(c), "");
  assert_int_equal(pthread_create(&t, NULL, run_and_fail, &b), 0);
  pthread_join(t, NULL);
  assert_false(b.is_wrong);
  assert_string_equal(tn_message(c), "");
  assert_int_equal(tn_close(c), TN_OK);
}

static void a_running_binding_keeps_it_open(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  inside in = {.c = c};
  tn_tensor *out = custom_of(c, wait_inside, &in);
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  diag d = {0};
  thread t;
  assert_int_equal(thread_start(&t, run_binding, b, &d), TN_OK);
  while (atomic_load(&in.stage) != 1) thread_spin_hint();
  assert_int_equal(tn_close(c), TN_ERR_BUSY);
  assert_int_equal(tn_binding_run(b), TN_ERR_BUSY);
  atomic_store(&in.stage, 2);
  thread_join(t);
  float f;
  check_ok(c, tn_binding_read(b, "0", TN_F32, &f, 4));
  assert_true(f == 1);
  check_ok(c, tn_close(c));
}

static void closing_frees_everything(void **state) {
  (void)state;
  counting memory = {0};
  tn_context *c = open_counting(&memory, NULL);
  tn_scope_begin(c);
  tn_scope_begin(c);
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_own(tn_add(s, tn_num(c, 1)));
  tn_keep(tn_mul(s, s));
  tn_assign(s, tn_num(c, 3));
  tn_dim_var(c, "n", 1, 5);
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 1, 5)), TN_F32);
  tn_tensor *y = tn_add(x, tn_num(c, 1));
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  tn_plan_free(plan);
  tn_assign(s, floats(c, FLOATS(1, 2, 3)));
  check_ok(c, tn_close(c));
  assert_int_equal(memory.out, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(open_and_close),
      cmocka_unit_test(calls_keep_memory_for_their_work),
      cmocka_unit_test(bad_descriptors_break_the_context),
      cmocka_unit_test(unknown_tails_are_refused),
      cmocka_unit_test(the_environment_is_heeded),
      cmocka_unit_test(memory_is_limited),
      cmocka_unit_test(compiling_ends_in_time),
      cmocka_unit_test(payloads_are_destroyed_once),
      cmocka_unit_test(kernels_are_logged),
      cmocka_unit_test(remarks_are_one_line),
      cmocka_unit_test(progress_cancels),
      cmocka_unit_test(steps_are_told_at_once),
      cmocka_unit_test(each_kernel_is_a_step),
      cmocka_unit_test(progress_ends_scheduling),
      cmocka_unit_test(cancelled_work_is_done_later),
      cmocka_unit_test(cancelled_plans_are_compiled_later),
      cmocka_unit_test(cancelled_reads_do_not_freeze_assigns),
      cmocka_unit_test(devices_are_listed),
      cmocka_unit_test(a_second_call_is_refused),
      cmocka_unit_test(a_second_thread_is_told_why),
      cmocka_unit_test(messages_are_of_threads),
      cmocka_unit_test(ended_threads_leave_no_message),
      cmocka_unit_test(the_newest_message_counts),
      cmocka_unit_test(messages_of_runs_are_of_threads),
      cmocka_unit_test(a_running_binding_keeps_it_open),
      cmocka_unit_test(closing_frees_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
