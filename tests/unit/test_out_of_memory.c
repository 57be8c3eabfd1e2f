/* Tests out-of-memory handling by fault injection: opens a context, loads a model, binds, runs,
   reads, applies and closes, while each allocation in turn fails, alone or with all that follow.
   There must be a status with a message, nothing may leak, and the same work must succeed in the
   same context once there is memory again. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include <math.h>
#include <unistd.h>

/* ThreadSanitizer makes this eight times slower, and finds nothing here. */
#if defined(__SANITIZE_THREAD__)
#define IS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_SLOW 1
#endif
#endif
#ifndef IS_SLOW
#define IS_SLOW 0
#endif

typedef struct failing {
  atomic_size_t calls, out;
  atomic_size_t from, to; /* failing calls, counted from 1: from ≤ call < to */
  size_t most;            /* larger blocks fail; 0: none does */
  int destroyed;
} failing;

static void *failing_alloc(void *user, size_t n, size_t align) {
  failing *f = user;
  size_t call = atomic_fetch_add(&f->calls, 1) + 1;
  if ((call >= f->from && call < f->to) || (f->most && n > f->most)) return NULL;
  size_t least = align < sizeof(void *) ? sizeof(void *) : align;
  void *at = aligned_alloc(least, (n + least - 1) / least * least);
  if (at) atomic_fetch_add(&f->out, n);
  return at;
}

static void failing_release(void *user, void *at, size_t n) {
  atomic_fetch_sub(&((failing *)user)->out, n);
  free(at);
}

static void failing_destroy(void *user) { ((failing *)user)->destroyed++; }

static tn_context *open_failing(failing *f, const char *device) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = device;
  d.threads = 1;
  d.allocator = (tn_allocator){failing_alloc, failing_release, f, failing_destroy};
  return tn_open(&d);
}

/* Workload. */

enum { ROWS = 2 };

static const float input[ROWS][LAYER_IN] = {{1, 2, 3, 4}, {-1, 0, 5, 2}};

typedef struct workload {
  const char *path;
  const bytes *file;
  const bytes *late;  /* a model whose shapes inputs decide on */
  const bytes *exact; /* a model whose sizes are known exactly at each run */
  const bytes *rows;  /* a model of which one plan computes with several values */
  bool computes;      /* the device computes, so results are compared */
} workload;

static void check_result(const workload *w, const float got[ROWS][LAYER_OUT]) {
  for (size_t i = 0; i < ROWS && w->computes; i++)
    for (size_t k = 0; k < LAYER_OUT; k++)
      if (got[i][k] != layer_expected(input[i], k))
        fail_msg("[%zu, %zu] is %g, not %g", i, k, got[i][k], layer_expected(input[i], k));
}

static tn_status load(tn_context *c, const workload *w, bool from_file, tn_model **m) {
  tn_status s = from_file ? tn_model_load(c, w->path, NULL, m)
                          : tn_model_load_bytes(c, w->file->at, w->file->n, NULL, m);
  if (s == TN_OK) return s;
  assert_null(*m);
  assert_int_equal(s, TN_ERR_MEMORY);
  check_text(tn_message(c), "memory");
  return s;
}

static tn_status bind_and_run(tn_context *c, const workload *w, tn_model *m) {
  float got[ROWS][LAYER_OUT] = {{0}};
  tn_binding *b;
  tn_status s = tn_model_bind(m, &b);
  if (s != TN_OK) {
    assert_null(b);
    assert_true(*tn_message(c));
    return s;
  }
  tn_binding_input(b, "x", tn_shape(ROWS, LAYER_IN), TN_F32, input, sizeof input);
  s = tn_binding_run(b);
  if (s == TN_OK) s = tn_binding_read(b, "y", TN_F32, got, sizeof got);
  if (s == TN_OK)
    check_result(w, (const float(*)[LAYER_OUT])got);
  else
    assert_true(*tn_binding_message(b));
  tn_binding_free(b);
  return s;
}

static tn_status apply_and_read(tn_context *c, const workload *w, tn_model *m) {
  float got[ROWS][LAYER_OUT] = {{0}};
  tn_tensor *x = tn_from_host(c, tn_shape(ROWS, LAYER_IN), TN_F32, input, sizeof input);
  tn_tensor *out[2];
  tn_model_apply(m, &x, 1, out, 2);
  tn_status s = tn_read(out[0], TN_F32, got, sizeof got);
  if (s == TN_OK)
    check_result(w, (const float(*)[LAYER_OUT])got);
  else
    assert_true(*tn_message(c));
  return s;
}

/** Runs steps with scalars that vary. */
static tn_status vary_and_read(tn_context *c, const workload *w) {
  tn_status s = TN_OK;
  for (int step = 0; step < 2 && s == TN_OK; step++) {
    float got[2] = {0}, by = (float)(step + 2);
    tn_tensor *x = floats(c, FLOATS(1, 2, 3, 4));
    tn_tensor *y = tn_mul(tn_slice(x, 0, step, step + 2, 1), tn_num(c, (double)by));
    s = tn_read(y, TN_F32, got, sizeof got);
    if (s != TN_OK) assert_true(*tn_message(c));
    for (int i = 0; i < 2 && w->computes && s == TN_OK; i++)
      assert_true(got[i] == by * (float)(step + i + 1));
  }
  return s;
}

static tn_status run_reshape(tn_context *c, const workload *w, tn_binding *b, int64_t rows) {
  const int64_t shape[] = {rows, 8 / rows};
  float got[8] = {0};
  (void)c;
  tn_binding_input(b, "x", tn_shape(ROWS, LAYER_IN), TN_F32, input, sizeof input);
  tn_binding_input(b, "shape", tn_shape(2), TN_I64, shape, sizeof shape);
  tn_status s = tn_binding_run(b);
  if (s == TN_OK) s = tn_binding_read(b, "y", TN_F32, got, sizeof got);
  if (s != TN_OK) assert_true(*tn_binding_message(b));
  for (size_t i = 0; i < 8 && w->computes && s == TN_OK; i++)
    assert_true(got[i] == fabsf((&input[0][0])[i]));
  return s;
}

static tn_status run_halves(tn_context *c, const workload *w, tn_binding *b, int64_t rows) {
  float got[8] = {0};
  (void)c;
  tn_binding_input(b, "x", tn_shape(2 * rows), TN_F32, input, (size_t)rows * 2 * sizeof(float));
  tn_status s = tn_binding_run(b);
  if (s == TN_OK) s = tn_binding_read(b, "y", TN_F32, got, (size_t)rows * 2 * sizeof(float));
  if (s != TN_OK) assert_true(*tn_binding_message(b));
  for (size_t i = 0; i < (size_t)rows * 2 && w->computes && s == TN_OK; i++)
    assert_true(got[i] == (&input[0][0])[i]);
  return s;
}

static tn_status run_first_rows(tn_context *c, const workload *w, tn_binding *b, int64_t end) {
  float got[8] = {0};
  (void)c;
  tn_binding_input(b, "x", tn_shape(ROWS, LAYER_IN), TN_F32, input, sizeof input);
  tn_binding_input(b, "end", tn_shape(1), TN_I64, &end, sizeof end);
  tn_status s = tn_binding_run(b);
  if (s == TN_OK) s = tn_binding_read(b, "y", TN_F32, got, (size_t)end * LAYER_IN * sizeof *got);
  if (s != TN_OK) assert_true(*tn_binding_message(b));
  for (size_t i = 0; i < 8 && w->computes && s == TN_OK; i++)
    assert_true(got[i] == ((int64_t)i < end * LAYER_IN ? fabsf((&input[0][0])[i]) : 0));
  return s;
}

typedef tn_status late_run(tn_context *c, const workload *w, tn_binding *b, int64_t rows);

/** Runs a model with a late plan, for several values or sizes. */
static tn_status run_late(tn_context *c, const workload *w, const bytes *from, late_run *run,
                          const int64_t rows[], size_t n) {
  tn_model *m;
  tn_binding *b;
  tn_status s = tn_model_load_bytes(c, from->at, from->n, NULL, &m);
  if (s == TN_OK) s = tn_model_bind(m, &b);
  if (s != TN_OK) {
    assert_true(*tn_message(c));
    tn_model_free(m);
    return s;
  }
  for (size_t i = 0; i < n && s == TN_OK; i++) s = run(c, w, b, rows[i]);
  tn_model_free(m);
  tn_binding_free(b);
  return s;
}

/** Runs the whole workload, up to the first failure. */
static tn_status work(tn_context *c, const workload *w) {
  tn_model *m = NULL;
  tn_status s = TN_OK, ended;
  tn_scope_begin(c);
  for (int from_file = 0; from_file < 2 && s == TN_OK; from_file++) {
    s = load(c, w, from_file, &m);
    if (s == TN_OK) s = bind_and_run(c, w, m);
    if (s == TN_OK && from_file) s = apply_and_read(c, w, m);
    tn_model_free(m);
  }
  if (s == TN_OK) s = run_late(c, w, w->late, run_reshape, (int64_t[]){2, 4}, 2);
  if (s == TN_OK) s = run_late(c, w, w->exact, run_halves, (int64_t[]){2, 4}, 2);
  if (s == TN_OK) s = run_late(c, w, w->rows, run_first_rows, (int64_t[]){2, 1, 0}, 3);
  if (s == TN_OK) s = vary_and_read(c, w);
  ended = tn_scope_end(c);
  return s == TN_OK ? ended : s;
}

/* One attempt. */

typedef struct outcome {
  bool struck;   /* an allocation failed */
  bool got_open; /* the context existed when it failed */
  tn_status status;
} outcome;

static outcome attempt(const workload *w, const char *device, size_t from, size_t to, bool again) {
  failing f = {.from = from, .to = to};
  outcome o = {.status = TN_ERR_MEMORY};
  tn_context *c = open_failing(&f, device);
  if (c) {
    o.got_open = true;
    o.status = work(c, w);
    o.struck = f.calls >= from;
    if (o.status != TN_OK && !o.struck) fail_msg("no allocation failed, but: %s", tn_message(c));
    if (o.status != TN_OK && o.status != TN_ERR_MEMORY)
      fail_msg("call %zu: status %d: %s", from, (int)o.status, tn_message(c));
    f.from = SIZE_MAX;
    if (again) check_ok(c, work(c, w));
    assert_int_equal(tn_close(c), TN_OK);
  } else {
    o.struck = true;
  }
  if (f.out) fail_msg("call %zu: %zu bytes are left behind", from, (size_t)f.out);
  assert_int_equal(f.destroyed, 1);
  return o;
}

static size_t calls_of(const workload *w, const char *device) {
  failing f = {.from = SIZE_MAX};
  tn_context *c = open_failing(&f, device);
  assert_non_null(c);
  check_ok(c, work(c, w));
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(f.out, 0);
  return f.calls;
}

/** Fails every `step`-th call in turn: alone, then with all later ones. */
static void fail_at_every(const workload *w, const char *device, size_t step, bool again) {
  size_t calls = calls_of(w, device), failed = 0, opened = 0;
  for (size_t n = 1; n <= calls; n += step) {
    outcome once = attempt(w, device, n, n + 1, again);
    outcome all = attempt(w, device, n, SIZE_MAX, again);
    if (all.status == TN_OK) fail_msg("calls from %zu of %zu on fail, unnoticed", n, calls);
    failed += once.status != TN_OK;
    opened += all.got_open;
  }
  /* More than half of the single failures must be reported (a dozen calls may hide theirs), and not
     only at opening. */
  if (failed * 3 < calls / step || opened * 2 < calls / step)
    fail_msg("%zu of %zu failed, %zu after opening", failed, calls / step, opened);
}

/* Tests. */

static char path[] = "/tmp/tenon-faults-XXXXXX";
static bytes file, late_file, exact_file, rows_file;

static int write_file(void **state) {
  (void)state;
  layer_model(&file);
  reshape_model(&late_file);
  halves_model(&exact_file);
  first_rows_model(&rows_file);
  int fd = mkstemp(path);
  if (fd < 0) return -1;
  bool written = write(fd, file.at, file.n) == (ssize_t)file.n;
  return close(fd) || !written;
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

static void every_allocation_fails(void **state) {
  (void)state;
  fail_at_every(&(workload){path, &file, &late_file, &exact_file, &rows_file, false}, "NULL",
                IS_SLOW ? 7 : 1, true);
}

static void allocations_fail_where_kernels_are_compiled(void **state) {
  (void)state;
  const workload w = {path, &file, &late_file, &exact_file, &rows_file, true};
  size_t attempts = getenv("TENON_LONG") ? 1000 : 12;
  fail_at_every(&w, NULL, 1 + calls_of(&w, NULL) / attempts, true);
}

/* Messages. */

enum { WIDE = 2048, MOST_BYTES = 4 << 20 /* less than WIDE * WIDE numbers */ };

static tn_context *open_limited(failing *f) {
  tn_context *c = open_failing(f, "NULL");
  f->most = MOST_BYTES;
  return c;
}

/** exp(x · yᵀ): more than the memory holds. */
static tn_tensor *outer(tn_tensor *x, tn_tensor *y) {
  return tn_exp(tn_mul(tn_reshape(x, tn_shape(WIDE, 1)), tn_reshape(y, tn_shape(1, WIDE))));
}

static void check_run(tn_context *c, tn_tensor *result, size_t n, const char *words) {
  tn_binding *b = bind_compiled(c, &result, 1, NULL);
  float *x = calloc(n, sizeof *x);
  check_ok(c, tn_binding_input(b, "x", tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x));
  assert_int_equal(tn_binding_run(b), TN_ERR_MEMORY);
  check_text(tn_binding_message(b), words);
  free(x);
}

/** A block that is too large is told with the tensor that it is for. */
static void messages_name_what_is_too_large(void **state) {
  (void)state;
  failing f = {.from = 0};
  tn_context *c = open_limited(&f);
  tn_tensor *x = tn_input(c, "x", tn_shape(WIDE), TN_F32), *all = outer(x, x);
  check_run(c, all, WIDE, "output 0: out of memory (16.0 MiB)");
  tn_tensor *sum = tn_sum(tn_matmul(all, tn_tanh(tn_matmul(all, all))), TN_ALL, false);
  check_run(c, sum, WIDE, "intermediate results, the largest of step ");
  x = tn_input(c, "x", tn_shape(2 * MOST_BYTES), TN_F32);
  check_run(c, tn_sum(x, TN_ALL, false), (size_t)2 * MOST_BYTES,
            "input x: out of memory (32.0 MiB)");
  x = tn_full(c, tn_shape(WIDE), TN_F32, 1);
  tn_tensor *result = outer(x, tn_state(x));
  assert_int_equal(tn_realize(c, &result, 1), TN_ERR_MEMORY);
  check_text(tn_message(c), "realize(f32[2048,2048]): out of memory (16.0 MiB)");
  check_ok(c, tn_close(c));
  assert_int_equal(f.out, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_fails),
      cmocka_unit_test(allocations_fail_where_kernels_are_compiled),
      cmocka_unit_test(messages_name_what_is_too_large),
  };
  return cmocka_run_group_tests_name("faults", tests, write_file, remove_file);
}
