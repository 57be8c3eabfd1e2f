/* Tests plans over several devices: results are those of one device, on two and three devices of
   the CPU, on the reference backend, whose memory the host does not see, and on OpenCL where it is
   installed. */
#include "../backend/ref.c"
#include "support/tensor_check.h"

#include <math.h>
#include <stdlib.h>
#include <tenon/unstable/explain.h>
#include <tenon/unstable/schedule.h>
#include <unistd.h>

/** Devices that a test runs on, the context's own first. */
typedef struct device_set {
  size_t n;
  const char *at[3];
} device_set;

static const device_set sets[] = {
    {2, {"CPU:0", "CPU:1"}},      {3, {"CPU:0", "CPU:1", "CPU:2"}}, {2, {"CPU:0", "REF:0"}},
    {2, {"REF:0", "CPU:0"}},      {3, {"REF:0", "CPU:1", "REF:1"}}, {2, {"CPU:0", "OPENCL:0"}},
    {2, {"OPENCL:0", "OPENCL:1"}}};

enum { N_SETS = sizeof sets / sizeof *sets };

/** Drivers of OpenCL are not made for sanitizers. */
static bool is_usable(const char *device) { return !IS_SANITIZED || strncmp(device, "OPENCL:", 7); }

/** A context of its own devices and of those of a set; NULL where one is absent. */
static tn_context *open_set(const device_set *s) {
  tn_context *first = tn_open(NULL), *c = NULL;
  assert_non_null(first);
  check_ok(first, tn_backend_add(first, &ref_backend));
  size_t found = 0;
  tn_device_info info = TN_DEVICE_INFO_INIT;
  for (size_t i = 0; tn_device_get(first, i, &info) == TN_OK; i++)
    for (size_t k = 0; k < s->n; k++)
      found += !info.absent && !strcmp(info.name, s->at[k]) && is_usable(s->at[k]);
  for (size_t k = 0; k < s->n; k++) found += !strncmp(s->at[k], "CPU:", 4) && s->at[k][4] != '0';
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = s->at[0];
  if (found == s->n)
    c = tn_open(&desc);
  else
    print_message("skipped: %s and %s\n", s->at[0], s->at[1]);
  tn_close(first);
  return c;
}

typedef void set_test(tn_context *c, const device_set *s);

/** Runs a test on a set; false if a device of it is absent. */
static bool run_on(const device_set *s, set_test *test) {
  tn_context *c = open_set(s);
  if (!c) return false;
  test(c, s);
  assert_int_equal(tn_close(c), TN_OK);
  return true;
}

/** Runs a test on each set whose devices are there. */
static void on_all_sets(set_test *test) {
  for (size_t i = 0; i < N_SETS; i++) run_on(&sets[i], test);
}

/** Run a test on a set that is there everywhere. */
static void on_two_processors(set_test *test) { assert_true(run_on(&sets[0], test)); }
static void on_processor_and_streams(set_test *test) { assert_true(run_on(&sets[2], test)); }

static const char *last_of(const device_set *s) { return s->at[s->n - 1]; }

/* Tensors. */

static void check_tensors(tn_context *c, const device_set *s) {
  tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *y = tn_to(x, s->at[1]);
  assert_string_equal(tn_device_of(x), s->at[0]);
  assert_string_equal(tn_device_of(y), s->at[1]);
  check_floats(c, y, FLOATS(1, 2, 3));
  assert_string_equal(tn_device_of(y), s->at[1]);
  tn_tensor *z = tn_mul(tn_add(y, tn_num(c, 1)), y);
  assert_string_equal(tn_device_of(z), s->at[1]);
  check_floats(c, z, FLOATS(2, 6, 12));
  check_floats(c, tn_sub(tn_to(z, s->at[0]), x), FLOATS(1, 4, 9));
  check_floats(c, tn_to(tn_to(x, s->at[0]), s->at[0]), FLOATS(1, 2, 3));
}

static void tensors_move(void **state) {
  (void)state;
  on_all_sets(check_tensors);
}

static void check_operands(tn_context *c, const device_set *set) {
  (void)set;
  tn_tensor *x = floats(c, FLOATS(1, 2)), *y = tn_to(x, "CPU:1");
  assert_int_equal(tn_realize(c, (tn_tensor *[]){tn_add(x, y)}, 1), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "operand 1 is on device CPU:0 and operand 2 on device CPU:1");
  tn_tensor *s = tn_state(y);
  assert_string_equal(tn_device_of(s), "CPU:1");
  assert_null(tn_device_of(tn_assign(s, x)));
  check_text(tn_message(c), "is on device");
  assert_null(tn_device_of(tn_to(x, "NOWHERE")));
  check_text(tn_message(c), "unknown device \"NOWHERE\"");
  assert_null(tn_device_of(tn_to(x, NULL)));
  assert_null(tn_device_of(NULL));
}

static void operands_on_two_devices_are_refused(void **state) {
  (void)state;
  on_two_processors(check_operands);
}

/** Each device computes the values of constants that it reads. */
static void check_constants(tn_context *c, const device_set *s) {
  enum { N = 40 };
  float expected[N], more[N];
  tn_seed(c, 3);
  tn_tensor *r = tn_rand(c, tn_shape(N), TN_F32);
  tn_tensor *i = tn_arange(c, 0, N, 1, TN_F32), *sum = tn_sum(tn_mul(r, r), TN_ALL, false);
  tn_tensor *both = tn_add(tn_add(r, tn_exp(i)), sum);
  check_ok(c, tn_read(both, TN_F32, expected, sizeof expected));
  tn_tensor *x = tn_to(tn_from_host(c, tn_shape(N), TN_F32, expected, sizeof expected), s->at[1]);
  tn_tensor *own = tn_from_host(c, tn_shape(N), TN_F32, expected, sizeof expected);
  tn_seed(c, 3);
  r = tn_rand(c, tn_shape(N), TN_F32);
  sum = tn_sum(tn_mul(r, r), TN_ALL, false);
  both = tn_add(tn_add(r, tn_exp(i)), sum);
  tn_tensor *there = tn_sub(x, both), *here = tn_sub(own, both), *pinned = tn_to(both, last_of(s));
  assert_string_equal(tn_device_of(pinned), last_of(s));
  check_ok(c, tn_realize(c, (tn_tensor *[]){there, here, pinned, both}, 4));
  check_ok(c, tn_read(pinned, TN_F32, more, sizeof more));
  for (int k = 0; k < N; k++) assert_true(fabsf(more[k] / expected[k] - 1) < 1e-5f);
  check_ok(c, tn_read(there, TN_F32, more, sizeof more));
  for (int k = 0; k < N; k++) assert_true(fabsf(more[k] / expected[k]) < 1e-5f);
  check_ok(c, tn_read(here, TN_F32, more, sizeof more));
  for (int k = 0; k < N; k++) assert_true(fabsf(more[k] / expected[k]) < 1e-5f);
}

static void constants_are_anybodys(void **state) {
  (void)state;
  on_all_sets(check_constants);
}

/** Kernels that were compiled, of those of all devices. */
typedef struct steps {
  uint64_t next, total, ends;
} steps;

static bool note_step(void *user, const char *what, uint64_t done, uint64_t total) {
  steps *s = user;
  if (strcmp(what, "kernels") != 0) return true;
  assert_int_equal(done, s->next++);
  if (done) assert_int_equal(total, s->total);
  s->total = total;
  s->ends += done == total;
  return true;
}

static void progress_is_that_of_all_devices(void **state) {
  (void)state;
  steps s = {0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){note_step, &s, NULL};
  tn_context *c = tn_open(&d);
  tn_tensor *x = tn_input(c, "x", tn_shape(5, 7), TN_F32), *y = tn_cumsum(tn_softmax(x, 0), 1);
  tn_tensor *z = tn_cumsum(tn_cumsum(tn_to(y, "CPU:1"), 1), 0);
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, (tn_tensor *[]){z, y}, 2, NULL, &plan));
  tn_plan_free(plan);
  assert_true(s.total > 2);
  assert_int_equal(s.ends, 1);
  assert_int_equal(s.next, s.total + 1);
  assert_int_equal(tn_close(c), TN_OK);
}

/** Counts the streams that are open. */
static tn_stream_functions counted_streams;
static tn_backend counted;
static atomic_int n_opened;

static tn_status open_counted(void *device, tn_queue_kind kind, void **stream, tn_failure *f) {
  atomic_fetch_add(&n_opened, 1);
  return ref_stream_open(device, kind, stream, f);
}

/** Values that are realised one after the other run on the queues of the first. */
static void queues_stay_open(void **state) {
  (void)state;
  counted_streams = streams;
  counted_streams.open = open_counted;
  counted = ref_backend;
  counted.name = "COUNTED";
  counted.streams = &counted_streams;
  counted.peer = NULL; /* copies of the backend know spans of their own device */
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1; /* devices of its own */
  tn_context *c = tn_open(&d);
  check_ok(c, tn_backend_add(c, &counted));
  tn_tensor *x = floats(c, FLOATS(1, 2));
  int first = 0;
  for (int i = 0; i < 5; i++) {
    tn_tensor *y = tn_add(tn_to(x, "COUNTED:0"), tn_num(c, i));
    tn_tensor *z = tn_add(tn_to(y, "COUNTED:1"), tn_num(c, 1));
    check_ok(c, tn_realize(c, (tn_tensor *[]){y, z}, 2));
    check_floats(c, z, FLOATS(2 + (float)i, 3 + (float)i));
    check_ok(c, tn_realize(c, (tn_tensor *[]){tn_mul(z, z)}, 1)); /* on one device alone */
    if (!i) first = n_opened;
  }
  assert_true(first >= 4); /* of kernels and copies */
  assert_int_equal(n_opened, first);
  assert_int_equal(tn_close(c), TN_OK);
}

/* Plans. */

/** A tensor bounces between devices, changed on each. */
static void check_bouncing(tn_context *c, const device_set *s) {
  enum { N = 1000, TIMES = 12 };
  float *in = malloc(N * sizeof *in), *got = malloc(N * sizeof *got);
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *y = x;
  for (size_t i = 0; i < TIMES; i++) {
    y = tn_to(y, s->at[(i + 1) % s->n]);
    y = tn_add(tn_mul(y, tn_num(c, 0.5)), tn_sum(y, TN_ALL, false));
  }
  tn_tensor *out[] = {tn_to(y, s->at[0]), y};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  for (size_t run = 0; run < 4; run++) {
    size_t count = run % 2 ? 7 : N;
    for (size_t i = 0; i < count; i++) in[i] = (float)(i % 5 + run) / 1024;
    check_bound(b,
                tn_binding_input(b, "x", tn_shape((tn_dim)count), TN_F32, in, count * sizeof *in));
    check_bound(b, tn_binding_run(b));
    double sum = 0, scale = 1, shift = 0;
    for (size_t i = 0; i < count; i++) sum += in[i];
    for (size_t i = 0; i < TIMES; i++) {
      shift = shift / 2 + sum;
      scale /= 2;
      sum = sum / 2 + sum * (double)count;
    }
    for (int o = 0; o < 2; o++) {
      check_bound(b, tn_binding_read(b, o ? "1" : "0", TN_F32, got, count * sizeof *got));
      for (size_t i = 0; i < count; i++)
        assert_true(fabs(got[i] / (in[i] * scale + shift) - 1) < 1e-4);
    }
  }
  tn_binding_free(b);
  free(in);
  free(got);
}

static void tensors_bounce(void **state) {
  (void)state;
  on_all_sets(check_bouncing);
}

/** Each device computes some columns of a product, of its part of the weights. */
static void check_split_product(tn_context *c, const device_set *s) {
  enum { M = 9, K = 33, EACH = 8 };
  size_t columns = EACH * s->n;
  float x[M * K], w[K * EACH * 3], expected[M * EACH * 3], got[M * EACH * 3];
  for (int i = 0; i < M * K; i++) x[i] = (float)(i % 7 - 3);
  for (size_t i = 0; i < K * columns; i++) w[i] = (float)(i % 11) - 5;
  tn_tensor *all =
      tn_from_host(c, tn_shape(K, (tn_dim)columns), TN_F32, w, K * columns * sizeof *w);
  tn_tensor *in = tn_input(c, "x", tn_shape(M, K), TN_F32), *parts[3];
  for (size_t i = 0; i < s->n; i++) {
    tn_tensor *own = tn_slice(all, 1, (tn_dim)(EACH * i), (tn_dim)(EACH * (i + 1)), 1);
    own = tn_to(own, s->at[i]);
    check_ok(c, tn_realize(c, &own, 1));
    parts[i] = tn_to(tn_relu(tn_matmul(tn_to(in, s->at[i]), own)), s->at[0]);
  }
  tn_tensor *out = tn_concat(parts, s->n, 1);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(M, K), TN_F32, x, sizeof x));
  for (size_t i = 0; i < M * columns; i++) {
    float sum = 0;
    for (size_t k = 0; k < K; k++) sum += x[i / columns * K + k] * w[k * columns + i % columns];
    expected[i] = sum > 0 ? sum : 0;
  }
  for (int run = 0; run < 20; run++) {
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, got, M * columns * sizeof *got));
    assert_memory_equal(got, expected, M * columns * sizeof *got);
  }
  tn_binding_free(b);
}

static void products_are_split(void **state) {
  (void)state;
  on_all_sets(check_split_product);
}

/** A concatenation whose columns several kernels write is moved as a whole. */
static void check_moved_pieces(tn_context *c, const device_set *s) {
  enum { ROWS_OF = 32, K = 16, LEFT = 24, RIGHT = 8, ALL = LEFT + RIGHT };
  float x[ROWS_OF * K], w[K * ALL], got[ROWS_OF * ALL];
  for (int i = 0; i < ROWS_OF * K; i++) x[i] = (float)(i % 7 - 3);
  for (int i = 0; i < K * ALL; i++) w[i] = (float)(i % 11 - 5);
  tn_tensor *in = tn_input(c, "x", tn_shape(ROWS_OF, K), TN_F32);
  tn_tensor *all = tn_from_host(c, tn_shape(K, ALL), TN_F32, w, sizeof w), *out;
  out = tn_concat((tn_tensor *[]){tn_matmul(in, tn_slice(all, 1, 0, LEFT, 1)),
                                  tn_matmul(in, tn_slice(all, 1, LEFT, ALL, 1))},
                  2, 1);
  out = tn_to(out, s->at[1]);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS_OF, K), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "0", TN_F32, got, sizeof got));
  for (int i = 0; i < ROWS_OF * ALL; i++) {
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[i / ALL * K + k] * w[k * ALL + i % ALL];
    assert_true(got[i] == sum);
  }
  tn_binding_free(b);
}

static void pieces_are_moved(void **state) {
  (void)state;
  on_all_sets(check_moved_pieces);
}

/* Training: the parts of a batch on several devices. */

enum { ROWS = 6, IN = 5, OUT = 3, STEPS = 4 };

/** Sum of squares of x w − y over rows, and its gradient by w. */
static tn_tensor *gradient(tn_context *c, tn_tensor *x, tn_tensor *y, tn_tensor *w,
                           tn_tensor **loss) {
  tn_tensor *d = tn_sub(tn_matmul(x, w), y);
  *loss = tn_sum(tn_mul(d, d), TN_ALL, false);
  return tn_mul(tn_matmul(tn_swapaxes(x, 0, 1), d), tn_full(c, tn_shape(1), TN_F32, 2));
}

static void check_training(tn_context *c, const device_set *s) {
  float x[ROWS * IN], y[ROWS * OUT], w[IN * OUT] = {0}, losses[STEPS];
  for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i * 7 % 11 - 5) / 4;
  for (int i = 0; i < ROWS * OUT; i++) y[i] = (float)(i % 5 - 2);
  tn_tensor *state[3], *grads[3], *loss[3], *sum = NULL, *total = NULL;
  size_t each = ROWS / s->n;
  for (size_t i = 0; i < s->n; i++)
    state[i] = tn_state(tn_to(tn_zeros(c, tn_shape(IN, OUT), TN_F32), s->at[i]));
  tn_tensor *all_x = tn_input(c, "x", tn_shape(ROWS, IN), TN_F32);
  tn_tensor *all_y = tn_input(c, "y", tn_shape(ROWS, OUT), TN_F32);
  tn_scope_begin(c);
  for (size_t i = 0; i < s->n; i++) {
    tn_dim first = (tn_dim)(i * each), end = (tn_dim)((i + 1) * each);
    tn_tensor *own_x = tn_to(tn_slice(all_x, 0, first, end, 1), s->at[i]);
    tn_tensor *own_y = tn_to(tn_slice(all_y, 0, first, end, 1), s->at[i]);
    grads[i] = gradient(c, own_x, own_y, state[i], &loss[i]);
    tn_tensor *here = tn_to(grads[i], s->at[0]), *cost = tn_to(loss[i], s->at[0]);
    sum = sum ? tn_add(sum, here) : here;
    total = total ? tn_add(total, cost) : cost;
  }
  for (size_t i = 0; i < s->n; i++)
    tn_assign(state[i], tn_sub(state[i], tn_mul(tn_to(sum, s->at[i]), tn_num(c, 0.01))));
  tn_binding *b = bind_compiled(c, &total, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS, IN), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_input(b, "y", tn_shape(ROWS, OUT), TN_F32, y, sizeof y));
  for (int step = 0; step < STEPS; step++) {
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, &losses[step], sizeof losses[step]));
  }
  tn_scope_end(c);
  for (int step = 0; step < STEPS; step++) {
    float d[ROWS * OUT], expected = 0;
    for (int r = 0; r < ROWS; r++)
      for (int o = 0; o < OUT; o++) {
        d[r * OUT + o] = -y[r * OUT + o];
        for (int k = 0; k < IN; k++) d[r * OUT + o] += x[r * IN + k] * w[k * OUT + o];
        expected += d[r * OUT + o] * d[r * OUT + o];
      }
    assert_true(fabsf(losses[step] / expected - 1) < 1e-4f);
    for (int k = 0; k < IN; k++)
      for (int o = 0; o < OUT; o++)
        for (int r = 0; r < ROWS; r++) w[k * OUT + o] -= 0.02f * x[r * IN + k] * d[r * OUT + o];
  }
  for (size_t i = 0; i < s->n; i++) {
    float got[IN * OUT];
    assert_string_equal(tn_device_of(state[i]), s->at[i]);
    check_ok(c, tn_read(state[i], TN_F32, got, sizeof got));
    for (int k = 0; k < IN * OUT; k++) assert_true(fabsf(got[k] - w[k]) < 1e-4f);
  }
  tn_binding_free(b);
}

static void batches_are_divided(void **state) {
  (void)state;
  on_all_sets(check_training);
}

/* Training: the columns of a layer's weights, and the rows of the next one's, on several devices.
 */

enum { HIDDEN = 6, WEIGHTS = HIDDEN * (IN + OUT) };

/** The weights of both layers on a device: its columns of the first, and its rows of the second. */
typedef struct layers {
  tn_tensor *first, *second;
} layers;

static layers layers_on(tn_context *c, const char *device, size_t begin, size_t end) {
  float first[IN * HIDDEN], second[HIDDEN * OUT];
  for (int i = 0; i < IN * HIDDEN; i++) first[i] = (float)(i * 5 % 13 - 6) / 8;
  for (int i = 0; i < HIDDEN * OUT; i++) second[i] = (float)(i * 3 % 7 - 3) / 8;
  tn_tensor *columns = tn_from_host(c, tn_shape(IN, HIDDEN), TN_F32, first, sizeof first);
  tn_tensor *rows = tn_from_host(c, tn_shape(HIDDEN, OUT), TN_F32, second, sizeof second);
  columns = tn_slice(columns, 1, (tn_dim)begin, (tn_dim)end, 1);
  rows = tn_slice(rows, 0, (tn_dim)begin, (tn_dim)end, 1);
  return (layers){tn_state(tn_to(columns, device)), tn_state(tn_to(rows, device))};
}

/** A step for the part of both layers on a device, by the gradient of the result. */
static void step_layers(tn_context *c, layers w, tn_tensor *x, tn_tensor *hidden, tn_tensor *d) {
  tn_tensor *rate = tn_num(c, -0.02), *back = tn_matmul(d, tn_swapaxes(w.second, 0, 1));
  back = tn_where(tn_gt(hidden, tn_num(c, 0)), back, tn_num(c, 0));
  tn_tensor *first = tn_matmul(tn_swapaxes(x, 0, 1), back);
  tn_tensor *second = tn_matmul(tn_swapaxes(hidden, 0, 1), d);
  tn_assign(w.first, tn_add(w.first, tn_mul(first, rate)));
  tn_assign(w.second, tn_add(w.second, tn_mul(second, rate)));
}

/** Trains layers that are divided among devices; gives the losses, and the weights put together. */
static void train_layers(tn_context *c, const device_set *s, float losses[], float weights[]) {
  float x[ROWS * IN], y[ROWS * OUT];
  for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i * 7 % 11 - 5) / 4;
  for (int i = 0; i < ROWS * OUT; i++) y[i] = (float)(i % 5 - 2);
  layers w[3];
  tn_tensor *hidden[3], *part[3], *result[3], *loss = NULL, *first[3], *second[3];
  for (size_t i = 0; i < s->n; i++)
    w[i] = layers_on(c, s->at[i], HIDDEN * i / s->n, HIDDEN * (i + 1) / s->n);
  tn_scope_begin(c);
  tn_tensor *in = tn_input(c, "x", tn_shape(ROWS, IN), TN_F32);
  tn_tensor *wanted = tn_input(c, "y", tn_shape(ROWS, OUT), TN_F32);
  for (size_t i = 0; i < s->n; i++) {
    hidden[i] = tn_relu(tn_matmul(tn_to(in, s->at[i]), w[i].first));
    part[i] = tn_matmul(hidden[i], w[i].second);
  }
  tn_all_reduce(c, part, s->n, TN_REDUCTION_ADD, result);
  for (size_t i = 0; i < s->n; i++) {
    tn_tensor *d = tn_sub(result[i], tn_to(wanted, s->at[i]));
    if (!i) loss = tn_sum(tn_mul(d, d), TN_ALL, false);
    step_layers(c, w[i], tn_to(in, s->at[i]), hidden[i], d);
  }
  tn_binding *b = bind_compiled(c, &loss, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS, IN), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_input(b, "y", tn_shape(ROWS, OUT), TN_F32, y, sizeof y));
  for (int step = 0; step < STEPS; step++) {
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, &losses[step], sizeof losses[step]));
  }
  tn_scope_end(c);
  tn_binding_free(b);
  for (size_t i = 0; i < s->n; i++) {
    first[i] = tn_to(w[i].first, s->at[0]);
    second[i] = tn_to(w[i].second, s->at[0]);
  }
  enum { N_FIRST = IN * HIDDEN, N_SECOND = HIDDEN * OUT };
  check_ok(c, tn_read(tn_concat(first, s->n, 1), TN_F32, weights, N_FIRST * sizeof *weights));
  check_ok(c, tn_read(tn_concat(second, s->n, 0), TN_F32, weights + N_FIRST,
                      N_SECOND * sizeof *weights));
}

static void check_divided_layers(tn_context *c, const device_set *s) {
  float losses[2][STEPS], weights[2][WEIGHTS];
  train_layers(c, &(device_set){1, {s->at[0]}}, losses[0], weights[0]);
  train_layers(c, s, losses[1], weights[1]);
  assert_true(losses[0][STEPS - 1] < 0.9f * losses[0][0]);
  for (int i = 0; i < STEPS; i++) assert_true(fabsf(losses[1][i] / losses[0][i] - 1) < 1e-5f);
  for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(weights[1][i] - weights[0][i]) < 1e-5f);
}

static void layers_are_divided(void **state) {
  (void)state;
  on_all_sets(check_divided_layers);
}

/* Collectives. */

static void check_collectives(tn_context *c, const device_set *s) {
  enum { A = 5, B = 7 };
  tn_tensor *x[3], *sum[3], *most[3], *all[3], *parts[3];
  int32_t in[3][A][B], got[3 * A * B];
  for (size_t i = 0; i < s->n; i++) {
    for (int k = 0; k < A * B; k++) in[i][k / B][k % B] = k * 13 % 17 - (int)i * k % 5;
    x[i] = tn_to(tn_from_host(c, tn_shape(A, B), TN_I32, in[i], sizeof in[i]), s->at[i]);
  }
  tn_all_reduce(c, x, s->n, TN_REDUCTION_ADD, sum);
  tn_all_reduce(c, x, s->n, TN_REDUCTION_MAX, most);
  tn_all_gather(c, x, s->n, 0, all);
  tn_reduce_scatter(c, x, s->n, TN_REDUCTION_ADD, 1, parts);
  for (size_t i = 0; i < s->n; i++) {
    tn_tensor *const out[] = {sum[i], most[i], all[i], parts[i]};
    for (int k = 0; k < 4; k++) assert_string_equal(tn_device_of(out[k]), s->at[i]);
    check_ok(c, tn_read(sum[i], TN_I32, got, sizeof in[0]));
    int32_t sums[A][B], extremes[A][B];
    for (int k = 0; k < A * B; k++) {
      int32_t total = 0, extreme = INT32_MIN;
      for (size_t d = 0; d < s->n; d++) {
        int32_t v = in[d][k / B][k % B];
        total += v;
        extreme = v > extreme ? v : extreme;
      }
      sums[k / B][k % B] = total;
      extremes[k / B][k % B] = extreme;
    }
    assert_memory_equal(got, sums, sizeof sums);
    check_ok(c, tn_read(most[i], TN_I32, got, sizeof in[0]));
    assert_memory_equal(got, extremes, sizeof extremes);
    check_ok(c, tn_read(all[i], TN_I32, got, s->n * sizeof in[0]));
    assert_memory_equal(got, in, s->n * sizeof in[0]);
    size_t first = B * i / s->n, end = B * (i + 1) / s->n, columns = end - first;
    assert_int_equal(tn_type_of(parts[i]).shape.size[1], columns);
    check_ok(c, tn_read(parts[i], TN_I32, got, A * columns * sizeof *got));
    for (size_t k = 0; k < A * columns; k++)
      assert_int_equal(got[k], sums[k / columns][first + k % columns]);
  }
  tn_tensor *one = tn_to(tn_int(c, 3), s->at[0]), *same[1];
  tn_all_reduce(c, &one, 1, TN_REDUCTION_MUL, same);
  check_ok(c, tn_read(same[0], TN_I32, got, 4));
  assert_int_equal(got[0], 3);
}

static void lists_are_reduced_and_gathered(void **state) {
  (void)state;
  on_all_sets(check_collectives);
}

/** Sizes vary, and are too small for a part a device; results replace their operands. */
static void check_open_collectives(tn_context *c, const device_set *s) {
  enum { MOST = 100, COLUMNS = 3 };
  tn_dim n = tn_dim_var(c, "n", 0, MOST);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, COLUMNS), TN_I32), *sum[3], *out[6];
  for (size_t i = 0; i < s->n; i++) sum[i] = tn_mul(tn_to(x, s->at[i]), tn_int(c, (int64_t)i + 1));
  tn_reduce_scatter(c, sum, s->n, TN_REDUCTION_ADD, 0, out + s->n);
  tn_all_reduce(c, sum, s->n, TN_REDUCTION_ADD, sum);
  for (size_t i = 0; i < s->n; i++) out[i] = tn_add(sum[i], tn_to(x, s->at[i]));
  tn_binding *b = bind_compiled(c, out, 2 * s->n, NULL);
  for (size_t k = 0; k < 5; k++) {
    int32_t in[MOST * COLUMNS], got[MOST * COLUMNS];
    size_t count = (const size_t[]){1, 0, 2, 7, MOST}[k], bytes = count * COLUMNS * sizeof *in;
    int32_t factor = (int32_t)(s->n * (s->n + 1) / 2);
    for (size_t i = 0; i < count * COLUMNS; i++) in[i] = (int32_t)(i * 7 % 19) - 9;
    check_bound(b, tn_binding_input(b, "x", tn_shape((tn_dim)count, COLUMNS), TN_I32, in, bytes));
    check_bound(b, tn_binding_run(b));
    for (size_t o = 0; o < 2 * s->n; o++) {
      const char name[] = {(char)('0' + o), 0};
      size_t i = o % s->n, first = o < s->n ? 0 : count * i / s->n;
      size_t end = o < s->n ? count : count * (i + 1) / s->n;
      assert_int_equal(tn_binding_type(b, name).shape.size[0], end - first);
      check_bound(b, tn_binding_read(b, name, TN_I32, got, (end - first) * COLUMNS * sizeof *got));
      for (size_t e = 0; e < (end - first) * COLUMNS; e++)
        assert_int_equal(got[e], (factor + (o < s->n)) * in[first * COLUMNS + e]);
    }
  }
  tn_binding_free(b);
}

static void lists_of_open_sizes_are_reduced(void **state) {
  (void)state;
  on_all_sets(check_open_collectives);
}

static void check_wrong_collectives(tn_context *c, const device_set *set) {
  (void)set;
  tn_tensor *x[] = {floats(c, FLOATS(1, 2)), tn_to(floats(c, FLOATS(1, 2, 3)), "CPU:1")}, *out[2];
  tn_all_reduce(c, x, 2, TN_REDUCTION_ADD, out);
  assert_null(tn_device_of(out[0]));
  check_text(tn_message(c), "operand 2 has shape 3 and operand 1 has shape 2");
  x[1] = x[0];
  tn_all_reduce(c, x, 2, TN_REDUCTION_NONE, out);
  check_text(tn_message(c), "combines nothing");
  tn_reduce_scatter(c, x, 1, TN_REDUCTION_ADD, 1, out);
  assert_int_equal(tn_realize(c, out, 1), TN_ERR_SHAPE);
}

static void wrong_collectives_are_refused(void **state) {
  (void)state;
  on_two_processors(check_wrong_collectives);
}

/* Other steps on a second device: states that the host writes, loops, host functions, computed
   sizes. */

static void check_states(tn_context *c, const device_set *s) {
  tn_tensor *x = tn_state(tn_to(floats(c, FLOATS(1, 2, 3, 4)), last_of(s)));
  assert_string_equal(tn_device_of(x), last_of(s));
  tn_assign(tn_slice(x, 0, 1, 3, 1), tn_mul(tn_slice(x, 0, 0, 2, 1), tn_num(c, 10)));
  check_floats(c, x, FLOATS(1, 10, 20, 4));
  check_ok(c, tn_write(x, TN_F32, (float[]){5, 6, 7, 8}, 16));
  check_floats(c, tn_to(x, s->at[0]), FLOATS(5, 6, 7, 8));
  check_floats(c, tn_add(tn_to(x, s->at[0]), floats(c, FLOATS(1, 1, 1, 1))), FLOATS(6, 7, 8, 9));
}

static void states_are_on_devices(void **state) {
  (void)state;
  on_all_sets(check_states);
}

static size_t count_steps(tn_binding *b) {
  tn_step step = TN_STEP_INIT;
  size_t n = 0;
  while (tn_binding_step(b, n, &step) == TN_OK) n++;
  return n;
}

/** One way to assign to a state what comes from another device. */
typedef struct assigned_copy {
  enum { ONLY_ASSIGNED, RETURNED_TOO, OLD_IS_READ, OLD_IS_MOVED } way;
  size_t n_steps;
  float out[2][2], state[2]; /* the output in each run, and the state after both */
} assigned_copy;

static const assigned_copy assigned_copies[] = {
    {ONLY_ASSIGNED, 1, {{3, 4}, {3, 4}}, {3, 4}},
    {RETURNED_TOO, 2, {{3, 4}, {3, 4}}, {3, 4}},
    {OLD_IS_READ, 2, {{11, 21}, {4, 5}}, {3, 4}},
    {OLD_IS_MOVED, 3, {{13, 24}, {16, 28}}, {16, 28}},
};

static tn_binding *bind_assigned_copy(tn_context *c, const device_set *s, tn_tensor *state,
                                      const assigned_copy *k) {
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F32), *moved = tn_to(x, last_of(s)), *out = moved;
  if (k->way == OLD_IS_READ) out = tn_add(state, tn_num(c, 1));
  if (k->way == OLD_IS_MOVED) moved = tn_to(out = tn_add(tn_to(state, s->at[0]), x), last_of(s));
  tn_assign(state, moved);
  return bind_compiled(c, &out, k->way != ONLY_ASSIGNED, NULL);
}

/** A state takes what comes from another device without another copy, and what it held before is
    read first. */
static void check_assigned_copies(tn_context *c, const device_set *s) {
  for (size_t i = 0; i < sizeof assigned_copies / sizeof *assigned_copies; i++) {
    const assigned_copy *k = &assigned_copies[i];
    tn_tensor *state = tn_state(tn_to(floats(c, FLOATS(10, 20)), last_of(s)));
    check_ok(c, tn_realize(c, &state, 1));
    tn_scope_begin(c);
    tn_binding *b = bind_assigned_copy(c, s, state, k);
    check_bound(b, tn_binding_input(b, "x", tn_shape(2), TN_F32, (float[]){3, 4}, 8));
    for (int run = 0; run < 2; run++) {
      check_bound(b, tn_binding_run(b));
      if (k->way != ONLY_ASSIGNED) check_output_floats(b, "0", 2, k->out[run]);
    }
    assert_int_equal(count_steps(b), k->n_steps);
    tn_scope_end(c);
    check_floats(c, state, 2, k->state);
    tn_binding_free(b);
  }
}

static void states_take_copies(void **state) {
  (void)state;
  on_all_sets(check_assigned_copies);
}

/** Two states on different devices take each other's contents. */
static void check_exchange(tn_context *c, const device_set *s) {
  tn_tensor *here = tn_state(floats(c, FLOATS(1, 2, 3)));
  tn_tensor *there = tn_state(tn_to(floats(c, FLOATS(4, 5, 6)), last_of(s)));
  check_ok(c, tn_realize(c, (tn_tensor *[]){here, there}, 2));
  for (int is_plan = 0; is_plan < 2; is_plan++) {
    tn_scope_begin(c);
    tn_tensor *from_here = tn_to(here, last_of(s)), *from_there = tn_to(there, s->at[0]);
    tn_assign(here, from_there);
    tn_assign(there, from_here);
    if (is_plan) {
      tn_binding *b = bind_compiled(c, NULL, 0, NULL);
      for (int run = 0; run < 4; run++) check_bound(b, tn_binding_run(b));
      tn_binding_free(b);
    }
    tn_scope_end(c);
    check_floats(c, here, FLOATS(4, 5, 6));
    check_floats(c, there, FLOATS(1, 2, 3));
  }
}

static void states_exchange_contents(void **state) {
  (void)state;
  on_all_sets(check_exchange);
}

static void count_span(void *user, const tn_trace_span *span) { *(int *)user += span->step >= 0; }

/** An assignment without a plan copies once too. */
static void realized_states_take_copies(void **state) {
  (void)state;
  int steps = 0;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.tracer = (tn_tracer){count_span, &steps, NULL};
  tn_context *c = tn_open(&desc);
  tn_tensor *moved = tn_state(tn_to(floats(c, FLOATS(1, 2)), "CPU:1")),
            *x = floats(c, FLOATS(3, 4));
  check_ok(c, tn_realize(c, (tn_tensor *[]){moved, x}, 2));
  steps = 0;
  tn_assign(moved, tn_to(x, "CPU:1"));
  check_ok(c, tn_realize(c, &moved, 1));
  assert_int_equal(steps, 1);
  check_floats(c, moved, FLOATS(3, 4));
  assert_int_equal(tn_close(c), TN_OK);
}

/** y ← 2 y + x, on the device of x. */
static void double_and_add(void *user, tn_tensor *index, tn_tensor *const in[],
                           tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index;
  y[0] = next[0] = tn_add(tn_mul(in[0], tn_num(user, 2)), x[0]);
}

static void move_in_loop(void *user, tn_tensor *index, tn_tensor *const in[], tn_tensor *const x[],
                         tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  next[0] = tn_to(in[0], user);
}

static void check_loops(tn_context *c, const device_set *s) {
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  tn_tensor *own = floats(c, FLOATS(1, 2, 3, 4)), *x = tn_to(own, last_of(s)), *out[2], *here[2];
  tn_tensor *zero = tn_zeros(c, tn_shape(0), TN_F32);
  zero = tn_sum(zero, TN_ALL, false); /* anybody's */
  d.body = double_and_add;
  d.user = c;
  tn_scan(c, &d, &zero, 1, &x, 1, out, 1);
  tn_scan(c, &d, &zero, 1, &own, 1, here, 1);
  assert_string_equal(tn_device_of(out[1]), last_of(s));
  tn_tensor *moved[] = {tn_to(out[0], s->at[0]), tn_to(out[1], s->at[0]), here[0]};
  check_ok(c, tn_realize(c, moved, 3));
  check_floats(c, here[0], FLOATS(26));
  check_floats(c, moved[0], FLOATS(26));
  check_floats(c, moved[1], FLOATS(1, 4, 11, 26));
  d.body = move_in_loop;
  d.user = (void *)s->at[0];
  d.steps = 2;
  tn_scan(c, &d, &x, 1, NULL, 0, out, 0);
  assert_null(tn_device_of(out[0]));
  check_text(tn_message(c), "the steps of a loop run on one device");
}

static void loops_run_on_a_device(void **state) {
  (void)state;
  on_all_sets(check_loops);
}

/** Adds 1; fails for a first element below 0. */
static tn_status add_one(void *user, tn_call *call) {
  (void)user;
  tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  const float *x = in.data;
  for (size_t i = 0; i < 3; i++) ((float *)out.data)[i] = x[i] + 1;
  if (x[0] >= 0) return TN_OK;
  tn_call_fail(call, "below 0");
  return TN_ERR_ARGUMENT;
}

/** A host function fails between copies: all queues end, and the next run is right. */
static void check_host_functions(tn_context *c, const device_set *s) {
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.run = add_one;
  const tn_type type = {TN_F32, tn_shape(3)};
  tn_tensor *x = tn_input(c, "x", tn_shape(3), TN_F32), *y = tn_to(x, last_of(s)), *called;
  tn_tensor *before = tn_mul(y, tn_num(c, 3));
  tn_custom(c, &desc, &before, 1, &type, &called, 1);
  assert_string_equal(tn_device_of(called), last_of(s));
  tn_tensor *out[] = {tn_add(tn_to(called, s->at[0]), x), tn_to(before, s->at[0])};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  for (int run = 0; run < 6; run++) {
    float in[3] = {run % 3 == 1 ? -1 : 1, 2, 3};
    check_bound(b, tn_binding_input(b, "x", tn_shape(3), TN_F32, in, sizeof in));
    if (run % 3 == 1) {
      assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
      check_text(tn_binding_message(b), "below 0");
    } else {
      check_bound(b, tn_binding_run(b));
      check_output_floats(b, "0", FLOATS(5, 9, 13));
      check_output_floats(b, "1", FLOATS(3, 6, 9));
    }
  }
  tn_binding_free(b);
}

static void host_functions_run_beside_copies(void **state) {
  (void)state;
  on_all_sets(check_host_functions);
}

/** Lets the other device go on, and waits until it has. */
static tn_status meet(void *user, tn_call *call) {
  tn_array out = tn_call_out(call, 0);
  size_t before = atomic_load(&ref_works);
  (void)user;
  memset(out.data, 0, 4);
  atomic_store(&ref_is_paused, false);
  for (int i = 0; i < 60000 && atomic_load(&ref_works) == before; i++) usleep(1000);
  if (atomic_load(&ref_works) > before) return TN_OK;
  tn_call_fail(call, "the other queue does not run");
  return TN_ERR_TIMEOUT;
}

/** A step of one device begins before one of another, and ends after it, whichever comes first in
    the plan. */
static void check_overlap(tn_context *c, const device_set *set) {
  (void)set;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.run = meet;
  const tn_type type = {TN_F32, tn_shape(1)};
  tn_tensor *x = tn_input(c, "x", tn_shape(1), TN_F32), *out[2];
  for (int first = 0; first < 2; first++) {
    tn_custom(c, &desc, &x, 1, &type, &out[first], 1);
    out[!first] = tn_exp(tn_to(x, "REF:0"));
    tn_binding *b = bind_compiled(c, out, 2, NULL);
    check_bound(b, tn_binding_input(b, "x", tn_shape(1), TN_F32, &(float){0}, 4));
    for (int run = 0; run < 3; run++) {
      atomic_store(&ref_is_paused, true);
      check_bound(b, tn_binding_run(b));
      check_output_floats(b, first ? "0" : "1", FLOATS(1));
    }
    tn_binding_free(b);
  }
}

static void queues_overlap(void **state) {
  (void)state;
  on_processor_and_streams(check_overlap);
}

static tn_status refuse(void *user, tn_call *call) {
  (void)user;
  tn_call_fail(call, "refused");
  return TN_ERR_ARGUMENT;
}

static void *let_streams_go_on(void *unused) {
  usleep(100000);
  atomic_store(&ref_is_paused, false);
  return unused;
}

/** A run that fails returns after what streams had been given before. */
static void check_failed_runs(tn_context *c, const device_set *set) {
  (void)set;
  enum { N = 32 };
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.run = refuse;
  const tn_type type = {TN_F32, tn_shape(N, N)};
  static const float zeros[N * N];
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32), *refused, *a;
  a = tn_to(tn_from_host(c, tn_shape(N, N), TN_F32, zeros, sizeof zeros), "REF:0");
  check_ok(c, tn_realize(c, &a, 1));
  tn_custom(c, &desc, &x, 1, &type, &refused, 1);
  tn_tensor *out = tn_matmul(tn_exp(tn_matmul(a, a)), tn_to(refused, "REF:0"));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(N, N), TN_F32, zeros, sizeof zeros));
  for (int run = 0; run < 2; run++) {
    pthread_t thread;
    size_t before = atomic_load(&ref_works);
    atomic_store(&ref_is_paused, true);
    assert_int_equal(pthread_create(&thread, NULL, let_streams_go_on, NULL), 0);
    assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
    check_text(tn_binding_message(b), "refused");
    assert_true(atomic_load(&ref_works) > before);
    pthread_join(thread, NULL);
  }
  tn_binding_free(b);
}

static void failed_runs_leave_nothing_behind(void **state) {
  (void)state;
  on_processor_and_streams(check_failed_runs);
}

/** A size that one device computes is one of an array on another. */
static void check_sizes(tn_context *c, const device_set *s) {
  tn_tensor *x = tn_input(c, "x", tn_shape(6), TN_F32);
  tn_tensor *y = tn_to(tn_nonzero(tn_to(x, last_of(s))), s->at[0]);
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  for (int n = 0; n <= 6; n += 3) {
    float in[6] = {0};
    int64_t got[6];
    for (int i = 0; i < n; i++) in[5 - i] = 1;
    check_bound(b, tn_binding_input(b, "x", tn_shape(6), TN_F32, in, sizeof in));
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_type(b, "0").shape.size[0], n);
    check_bound(b, tn_binding_read(b, "0", TN_I64, got, (size_t)n * sizeof *got));
    for (int i = 0; i < n; i++) assert_int_equal(got[i], 6 - n + i);
  }
  tn_binding_free(b);
}

static void sizes_are_computed_anywhere(void **state) {
  (void)state;
  on_all_sets(check_sizes);
}

/** Inputs are on the context's own device. */
static void check_carried_outputs(tn_context *c, const device_set *set) {
  (void)set;
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F32);
  tn_tensor *out[] = {tn_add(tn_to(x, "CPU:1"), tn_num(c, 1)), tn_mul(x, tn_num(c, 2))};
  for (int o = 0; o < 2; o++) {
    tn_binding *b = bind_compiled(c, out, 2, NULL);
    check_bound(b, tn_binding_carry(b, o ? "1" : "0", "x"));
    check_bound(b, tn_binding_input(b, "x", tn_shape(2), TN_F32, (float[]){1, 2}, 8));
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_run(b), o ? TN_OK : TN_ERR_DEVICE);
    if (o) check_output_floats(b, "1", FLOATS(4, 8));
    if (o) check_output_floats(b, "0", FLOATS(3, 5));
    if (!o) check_text(tn_binding_message(b), "an array on device CPU:1 is needed on device CPU:0");
    tn_binding_free(b);
  }
}

static void outputs_elsewhere_are_not_carried(void **state) {
  (void)state;
  on_two_processors(check_carried_outputs);
}

typedef struct branches {
  tn_context *c;
  tn_tensor *x;
  const device_set *set;
} branches;

/** 2 x here, computed there; x + 1 there; what is anybody's. */
static void compute_there(void *user, tn_tensor *out[]) {
  const branches *k = user;
  tn_tensor *x = tn_to(k->x, last_of(k->set));
  out[0] = tn_to(tn_mul(x, tn_num(k->c, 2)), k->set->at[0]);
  out[1] = tn_add(x, tn_num(k->c, 1));
  out[2] = tn_exp(tn_arange(k->c, 0, 2, 1, TN_F32));
}

/** x - 1 here; 3 x there, computed here; what is anybody's. */
static void compute_here(void *user, tn_tensor *out[]) {
  const branches *k = user;
  out[0] = tn_sub(k->x, tn_num(k->c, 1));
  out[1] = tn_to(tn_mul(k->x, tn_num(k->c, 3)), last_of(k->set));
  out[2] = tn_full(k->c, tn_shape(2), TN_F32, 7);
}

/** Branches that compute on both devices, of which a run takes one. */
static void check_branches(tn_context *c, const device_set *s) {
  branches k = {c, tn_input(c, "x", tn_shape(2), TN_F32), s};
  const tn_cond_desc d = {sizeof d, compute_there, compute_here, &k};
  tn_tensor *out[4];
  tn_cond(c, tn_gt(tn_sum(k.x, TN_ALL, false), tn_num(c, 0)), &d, out, 3);
  assert_string_equal(tn_device_of(out[0]), s->at[0]);
  assert_string_equal(tn_device_of(out[1]), last_of(s));
  out[1] = tn_add(tn_to(out[1], s->at[0]), k.x);
  out[3] = tn_add(out[2], tn_to(k.x, last_of(s)));
  out[2] = tn_sub(out[2], k.x);
  tn_binding *b = bind_compiled(c, out, 4, NULL);
  for (int run = 0; run < 6; run++) {
    float x[] = {run % 3 ? -5 : 4, (float)run}, e = expf(1), want[4][2];
    bool is_there = x[0] + x[1] > 0;
    for (int i = 0; i < 2; i++) {
      float anybodys = is_there ? (i ? e : 1) : 7;
      want[0][i] = is_there ? 2 * x[i] : x[i] - 1;
      want[1][i] = is_there ? 2 * x[i] + 1 : 4 * x[i];
      want[2][i] = anybodys - x[i];
      want[3][i] = anybodys + x[i];
    }
    check_bound(b, tn_binding_input(b, "x", tn_shape(2), TN_F32, x, sizeof x));
    check_bound(b, tn_binding_run(b));
    for (int o = 0; o < 4; o++) {
      float got[2];
      check_bound(b, tn_binding_read(b, (const char[]){(char)('0' + o), 0}, TN_F32, got, 8));
      for (int i = 0; i < 2; i++) assert_true(fabsf(got[i] - want[o][i]) < 1e-5f);
    }
  }
  tn_binding_free(b);
}

static void branches_compute_on_devices(void **state) {
  (void)state;
  on_all_sets(check_branches);
}

/* Reports. */

/** Steps in order, with times by one clock, which for streams is met as well as the host sees. */
static void check_steps(tn_context *c, const device_set *s) {
  tn_explanation *x;
  tn_schedule *schedule;
  check_ok(c, tn_explain(c, false, &x));
  tn_tensor *in = tn_input(c, "x", tn_shape(64), TN_F32);
  tn_tensor *out = tn_to(tn_exp(tn_to(tn_exp(in), s->at[1])), s->at[0]);
  check_ok(c, tn_schedule_make(c, &out, 1, NULL, &schedule));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  float zero[64] = {0};
  check_bound(b, tn_binding_input(b, "x", tn_shape(64), TN_F32, zero, sizeof zero));
  check_bound(b, tn_binding_profile(b, true));
  check_bound(b, tn_binding_run(b));
  const char *const devices[] = {s->at[0], s->at[1], s->at[1], s->at[0]};
  bool is_exact = !strncmp(s->at[0], "CPU", 3) && !strncmp(s->at[1], "CPU", 3); /* one clock */
  int64_t end = 0;
  for (size_t i = 0; i < 4; i++) {
    tn_step step = TN_STEP_INIT;
    tn_explained_step explained = TN_EXPLAINED_STEP_INIT;
    tn_scheduled_step scheduled = TN_SCHEDULED_STEP_INIT;
    check_bound(b, tn_binding_step(b, i, &step));
    assert_int_equal(tn_explanation_step(x, i, &explained), TN_OK);
    assert_string_equal(step.device, devices[i]);
    assert_string_equal(explained.device, devices[i]);
    assert_int_equal(tn_schedule_step(schedule, i, &scheduled), TN_OK);
    assert_string_equal(scheduled.device, devices[i]);
    assert_int_equal(step.kernel >= 0, i % 2 == 0);
    if (i % 2) assert_string_equal(explained.what, "a copy between devices");
    if (i % 2) assert_true(step.bytes == 512);
    assert_true((step.begin >= end || !is_exact) && step.end >= step.begin);
    assert_true(step.end < INT64_C(100000000000));
    end = step.end;
  }
  tn_step none = TN_STEP_INIT;
  assert_int_equal(tn_binding_step(b, 4, &none), TN_ERR_ARGUMENT);
  tn_explanation_free(x);
  tn_schedule_free(schedule);
  tn_binding_free(b);
}

static void steps_name_their_devices(void **state) {
  (void)state;
  on_all_sets(check_steps);
}

/** When the first span was told, and the latest end of any. */
typedef struct told_spans {
  size_t n;
  int64_t first, end;
} told_spans;

static int64_t host_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void tell_slowly(void *user, const tn_trace_span *span) {
  told_spans *t = user;
  if (span->step < 0) return; /* a copy by the host */
  if (!t->n++) t->first = host_clock();
  if (span->end > t->end) t->end = span->end;
  usleep(10000);
}

/** Steps of a stream that are told together ended before. */
static void slow_tracers_shift_nothing(void **state) {
  (void)state;
  enum { N = 32 };
  told_spans told = {0};
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = "REF:0";
  desc.tracer = (tn_tracer){tell_slowly, &told, NULL};
  tn_context *other = open_set(&sets[3]), *c = tn_open(&desc); /* the former has the backend */
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32), *y = tn_exp(tn_matmul(x, x));
  y = tn_matmul(y, y);
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  static const float zeros[N * N];
  check_bound(b, tn_binding_input(b, "x", tn_shape(N, N), TN_F32, zeros, sizeof zeros));
  told = (told_spans){0};
  check_bound(b, tn_binding_run(b));
  assert_true(told.n > 1 && told.end <= told.first);
  tn_binding_free(b);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(tn_close(other), TN_OK);
}

static void note_found(void *user, tn_log_level level, const char *text) {
  (void)level;
  *(int *)user += strstr(text, "found on disk") != NULL;
}

/** Equal devices under other numbers have one plan. */
static void plans_are_found_on_disk(void **state) {
  (void)state;
  char folder[] = "/tmp/tenon-devices-XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  for (int time = 0; time < 3; time++) {
    static int found;
    tn_open_desc desc = TN_OPEN_DESC_INIT;
    desc.cache_dir = folder;
    desc.logger = (tn_logger){note_found, &found, NULL};
    tn_context *c = tn_open(&desc);
    const char *other = time < 2 ? "CPU:1" : "CPU:2";
    tn_tensor *x = tn_to(floats(c, FLOATS(1, 2, 3)), other);
    x = tn_to(tn_mul(tn_add(x, tn_num(c, 1)), x), "CPU");
    found = 0;
    check_floats(c, tn_sqrt(x), FLOATS(sqrtf(2), sqrtf(6), sqrtf(12)));
    assert_int_equal(found, time > 0);
    assert_int_equal(tn_close(c), TN_OK);
  }
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

/** A type that a backend's table lacks is refused before anything is rendered. */
static void types_that_a_backend_lacks_are_refused(void **state) {
  (void)state;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = "REF:3"; /* which is described here first */
  tn_context *first = tn_open(NULL);
  check_ok(first, tn_backend_add(first, &ref_backend));
  ref_lacks_types = UINT64_C(1) << TN_F64;
  tn_context *c = tn_open(&desc);
  assert_int_equal(tn_close(first), TN_OK);
  tn_tensor *x = tn_arange(c, 0, 4, 1, TN_F32);
  double found[4];
  assert_int_equal(tn_read(tn_sqrt(tn_cast(x, TN_F64)), TN_F64, found, sizeof found),
                   TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "the kernel computes with f64, which target ref of REF lacks");
  float roots[4];
  check_ok(c, tn_read(tn_sqrt(x), TN_F32, roots, sizeof roots));
  assert_true(roots[1] == 1 && roots[3] == sqrtf(3));
  assert_int_equal(tn_close(c), TN_OK);
  ref_lacks_types = 0;
}

int main(void) {
  setenv("POCL_DEVICES", "pthread pthread", 0);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_move),
      cmocka_unit_test(operands_on_two_devices_are_refused),
      cmocka_unit_test(constants_are_anybodys),
      cmocka_unit_test(progress_is_that_of_all_devices),
      cmocka_unit_test(queues_stay_open),
      cmocka_unit_test(tensors_bounce),
      cmocka_unit_test(products_are_split),
      cmocka_unit_test(pieces_are_moved),
      cmocka_unit_test(batches_are_divided),
      cmocka_unit_test(layers_are_divided),
      cmocka_unit_test(lists_are_reduced_and_gathered),
      cmocka_unit_test(lists_of_open_sizes_are_reduced),
      cmocka_unit_test(wrong_collectives_are_refused),
      cmocka_unit_test(states_are_on_devices),
      cmocka_unit_test(states_take_copies),
      cmocka_unit_test(states_exchange_contents),
      cmocka_unit_test(realized_states_take_copies),
      cmocka_unit_test(loops_run_on_a_device),
      cmocka_unit_test(host_functions_run_beside_copies),
      cmocka_unit_test(queues_overlap),
      cmocka_unit_test(failed_runs_leave_nothing_behind),
      cmocka_unit_test(sizes_are_computed_anywhere),
      cmocka_unit_test(outputs_elsewhere_are_not_carried),
      cmocka_unit_test(branches_compute_on_devices),
      cmocka_unit_test(steps_name_their_devices),
      cmocka_unit_test(slow_tracers_shift_nothing),
      cmocka_unit_test(types_that_a_backend_lacks_are_refused),
      cmocka_unit_test(plans_are_found_on_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
