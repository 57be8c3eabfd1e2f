/* One of several processes that test_group.py starts by mpirun: runs the case that its argument
   names, and tells by its exit status and output what it saw.

     group_processes collectives | few | products | training | devices | differ | shapes | swapped |
   dies | refuses | engine

   GROUP_ENGINE names the group's engine, GROUP_TIMEOUT its time limit. */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
#include <tenon/unstable/explain.h>
#include <time.h>
#include <unistd.h>

static tn_context *tn;
static tn_group *group;
static int64_t rank, size;
static char line_of_engine[1024];

static atomic_llong bytes_in_use;

static void *counted_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  void *at = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (at) atomic_fetch_add(&bytes_in_use, (long long)bytes);
  return at;
}

static void counted_release(void *user, void *at, size_t bytes) {
  (void)user;
  if (at) atomic_fetch_sub(&bytes_in_use, (long long)bytes);
  free(at);
}

static void fail(const char *what) {
  fprintf(stderr, "process %" PRId64 ": %s: %s\n", rank, what, tn_message(tn));
  _Exit(1);
}

static void ok(tn_status s, const char *what) {
  if (s != TN_OK) fail(what);
}

static void check(int is_true, const char *what) {
  if (!is_true) fail(what);
}

/** Small whole numbers, other ones in each process. */
static double element(int64_t of, size_t i) { return (double)((i * 7 + (size_t)of * 5) % 11); }

static double combine(tn_reduction r, double a, double b) {
  switch (r) {
  case TN_REDUCTION_ADD: return a + b;
  case TN_REDUCTION_MUL: return a * b;
  case TN_REDUCTION_MIN: return fmin(a, b);
  default: return fmax(a, b);
  }
}

/** The value in a type: bools are true or false, bytes wrap. */
static double in_type(tn_dtype t, double v) {
  switch (t) {
  case TN_BOOL: return v != 0;
  case TN_U8: return (double)(uint8_t)(int64_t)v;
  case TN_I8: return (double)(int8_t)(uint8_t)(int64_t)v;
  default: return v;
  }
}

static double combined(tn_dtype t, tn_reduction r, size_t i) {
  double all = in_type(t, element(0, i));
  for (int64_t p = 1; p < size; p++) all = combine(r, all, in_type(t, element(p, i)));
  return in_type(t, all);
}

static tn_tensor *own_elements(tn_shape shape, tn_dtype t, size_t n) {
  double *at = malloc(n * sizeof *at);
  for (size_t i = 0; i < n; i++) at[i] = in_type(t, element(rank, i));
  tn_tensor *x = tn_from_host(tn, shape, TN_F64, at, n * sizeof *at);
  free(at);
  return tn_cast(x, t);
}

static void expect(tn_tensor *x, const double wanted[], size_t n, const char *what) {
  double *got = malloc(n * sizeof *got);
  ok(tn_read(x, TN_F64, got, n * sizeof *got), what);
  for (size_t i = 0; i < n; i++)
    if (got[i] != wanted[i]) {
      fprintf(stderr, "process %" PRId64 ": %s: element %zu is %g, not %g\n", rank, what, i, got[i],
              wanted[i]);
      _Exit(1);
    }
  free(got);
}

static void reductions(tn_dtype t, tn_reduction r, int64_t columns) {
  enum { ROWS = 12 };
  size_t n = (size_t)(ROWS * columns);
  double *wanted = malloc(n * sizeof *wanted);
  tn_scope_begin(tn);
  tn_tensor *x = own_elements(tn_shape(ROWS, columns), t, n);
  for (size_t i = 0; i < n; i++) wanted[i] = combined(t, r, i);
  expect(tn_group_all_reduce(group, x, r), wanted, n, "all_reduce");
  size_t part = n / (size_t)size;
  for (size_t i = 0; i < part; i++) wanted[i] = combined(t, r, i + part * (size_t)rank);
  expect(tn_group_reduce_scatter(group, x, r, 0), wanted, part, "reduce_scatter of rows");
  ok(tn_scope_end(tn), "reductions");
  free(wanted);
}

static void gathers(tn_dtype t) {
  enum { ROWS = 3, COLUMNS = 5 };
  double wanted[ROWS * COLUMNS * 8];
  tn_scope_begin(tn);
  tn_tensor *x = own_elements(tn_shape(ROWS, COLUMNS), t, ROWS * COLUMNS);
  size_t all = (size_t)size * COLUMNS;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < all; j++)
      wanted[i * all + j] = in_type(t, element((int64_t)(j / COLUMNS), i * COLUMNS + j % COLUMNS));
  expect(tn_group_all_gather(group, x, -1), wanted, ROWS * all, "all_gather of columns");
  for (size_t i = 0; i < ROWS * COLUMNS; i++) wanted[i] = in_type(t, element(size - 1, i));
  expect(tn_group_broadcast(group, x, size - 1), wanted, ROWS * COLUMNS, "broadcast");
  ok(tn_scope_end(tn), "gathers");
}

/** A NaN in one process, zeros of both signs, and infinities: the same in each process. */
static void extremes(tn_dtype t) {
  const double own[] = {rank == size / 2 ? NAN : (double)rank, rank ? 0.0 : -0.0,
                        rank == size - 1 ? -INFINITY : 1, -1 - (double)rank};
  const double most[] = {NAN, size > 1 ? 0.0 : -0.0, size > 1 ? 1 : -INFINITY, -1};
  const double least[] = {NAN, -0.0, -INFINITY, -(double)size};
  tn_scope_begin(tn);
  tn_tensor *x = tn_cast(tn_from_host(tn, tn_shape(4), TN_F64, own, sizeof own), t);
  for (int k = 0; k < 2; k++) {
    const double *wanted = k ? least : most;
    double got[4];
    tn_tensor *y = tn_group_all_reduce(group, x, k ? TN_REDUCTION_MIN : TN_REDUCTION_MAX);
    ok(tn_read(y, TN_F64, got, sizeof got), "extremes");
    for (size_t i = 0; i < 4; i++) {
      bool is_same = got[i] == wanted[i] && !signbit(got[i]) == !signbit(wanted[i]);
      check(isnan(wanted[i]) ? isnan(got[i]) : is_same, "an extreme is wrong");
    }
  }
  ok(tn_scope_end(tn), "extremes");
}

static void collectives(void) {
  static const tn_dtype types[] = {TN_BOOL, TN_I8,  TN_U8,  TN_I16,  TN_U16, TN_I32, TN_U32,
                                   TN_I64,  TN_U64, TN_F16, TN_BF16, TN_F32, TN_F64};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    tn_dtype t = types[i];
    for (int r = TN_REDUCTION_ADD; r <= TN_REDUCTION_MAX; r++) reductions(t, (tn_reduction)r, 5);
    gathers(t);
  }
  for (size_t i = 9; i < sizeof types / sizeof *types; i++) extremes(types[i]);
  reductions(TN_F32, TN_REDUCTION_ADD, 250000); /* in pieces */
  reductions(TN_F32, TN_REDUCTION_ADD, 0);
}

/** Each kind of collective, of types that engines see in other ways. */
static void few(void) {
  static const tn_dtype types[] = {TN_BOOL, TN_I32, TN_BF16, TN_F64};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    for (int r = TN_REDUCTION_ADD; r <= TN_REDUCTION_MAX; r++)
      reductions(types[i], (tn_reduction)r, 5);
    gathers(types[i]);
  }
  extremes(TN_F32);
  reductions(TN_F32, TN_REDUCTION_ADD, 250000); /* above the bytes of a piece */
  reductions(TN_F32, TN_REDUCTION_ADD, 0);
}

/** Splits a product by columns, and one by rows: joined, they are the whole. */
static void products(void) {
  enum { M = 24, K = 48, N = 40 };
  tn_scope_begin(tn);
  tn_seed(tn, 7); /* the same numbers in all processes */
  tn_tensor *a = tn_randn(tn, tn_shape(M, K), TN_F32), *b = tn_randn(tn, tn_shape(K, N), TN_F32);
  tn_tensor *c = tn_randn(tn, tn_shape(N, K), TN_F32), *whole = tn_matmul(a, b);
  int64_t n = N / size, k = K / size;
  tn_tensor *columns = tn_slice(b, 1, rank * n, (rank + 1) * n, 1);
  tn_tensor *joined = tn_group_all_gather(group, tn_matmul(a, columns), 1);
  tn_tensor *split = tn_matmul(tn_slice(a, 1, rank * k, (rank + 1) * k, 1),
                               tn_slice(b, 0, rank * k, (rank + 1) * k, 1));
  tn_tensor *sum = tn_group_all_reduce(group, split, TN_REDUCTION_ADD);
  tn_tensor *part = tn_group_reduce_scatter(group, split, TN_REDUCTION_ADD, 1);
  tn_tensor *out[] = {whole, joined, sum, tn_matmul(joined, c), tn_matmul(whole, c), part};
  tn_tensor *part_wanted = tn_slice(whole, 1, rank * n, (rank + 1) * n, 1);
  tn_plan *plan = NULL;
  tn_binding *run = NULL;
  ok(tn_plan_compile(tn,
                     (tn_tensor *[]){tn_max(tn_abs(tn_sub(out[0], out[1])), TN_ALL, false),
                                     tn_max(tn_abs(tn_sub(out[0], out[2])), TN_ALL, false),
                                     tn_max(tn_abs(tn_sub(out[3], out[4])), TN_ALL, false),
                                     tn_max(tn_abs(tn_sub(part, part_wanted)), TN_ALL, false)},
                     4, NULL, &plan),
     "compiling the products");
  ok(tn_plan_bind(plan, &run), "binding the products");
  for (int i = 0; i < 3; i++) ok(tn_binding_run(run), tn_binding_message(run));
  for (size_t i = 0; i < 4; i++) {
    float most = 0;
    ok(tn_binding_read_at(run, i, TN_F32, &most, sizeof most), "reading the products");
    check(most < 1e-4f, "a divided product differs from the whole");
  }
  tn_binding_free(run);
  tn_plan_free(plan);
  ok(tn_scope_end(tn), "products");
}

/** Two layers trained on divided batches, beside a copy that is trained on whole ones. */
static void training(void) {
  enum { BATCH = 24, IN = 6, HIDDEN = 10, STEPS = 20 };
  tn_tensor *w[2][2];
  tn_seed(tn, 3);
  for (int copy = 0; copy < 2; copy++) {
    tn_seed(tn, 3);
    w[copy][0] = tn_state(tn_mul(tn_randn(tn, tn_shape(IN, HIDDEN), TN_F32), tn_num(tn, 0.3)));
    w[copy][1] = tn_state(tn_mul(tn_randn(tn, tn_shape(HIDDEN, 1), TN_F32), tn_num(tn, 0.3)));
  }
  for (int step = 0; step < STEPS; step++) {
    tn_scope_begin(tn);
    tn_seed(tn, 100 + (uint64_t)step);
    tn_tensor *all = tn_randn(tn, tn_shape(BATCH, IN), TN_F32);
    int64_t n = BATCH / size;
    for (int copy = 0; copy < 2; copy++) {
      tn_tensor *x = copy ? all : tn_slice(all, 0, rank * n, (rank + 1) * n, 1);
      tn_tensor *y = tn_sum(tn_sin(x), tn_axes(1), true);
      tn_tensor *h = tn_tanh(tn_matmul(x, w[copy][0]));
      tn_tensor *e = tn_sub(tn_matmul(h, w[copy][1]), y);
      tn_tensor *g1 = tn_matmul(tn_transpose(h), e);
      tn_tensor *back =
          tn_mul(tn_matmul(e, tn_transpose(w[copy][1])), tn_sub(tn_num(tn, 1), tn_mul(h, h)));
      tn_tensor *g0 = tn_matmul(tn_transpose(x), back);
      if (!copy) {
        g1 = tn_group_all_reduce(group, g1, TN_REDUCTION_ADD);
        g0 = tn_group_all_reduce(group, g0, TN_REDUCTION_ADD);
      }
      tn_assign(w[copy][0], tn_sub(w[copy][0], tn_mul(g0, tn_num(tn, 0.1 / BATCH))));
      tn_assign(w[copy][1], tn_sub(w[copy][1], tn_mul(g1, tn_num(tn, 0.1 / BATCH))));
    }
    ok(tn_scope_end(tn), "a step of training");
  }
  for (int layer = 0; layer < 2; layer++) {
    float most = 0;
    tn_tensor *d = tn_max(tn_abs(tn_sub(w[0][layer], w[1][layer])), TN_ALL, false);
    ok(tn_read(d, TN_F32, &most, sizeof most), "reading weights");
    check(most < 1e-5f, "weights of divided training differ");
  }
}

static tn_status sum_of(int64_t n) {
  tn_scope_begin(tn);
  tn_tensor *y = tn_group_all_reduce(group, tn_ones(tn, tn_shape(n), TN_F32), TN_REDUCTION_ADD);
  float got[64] = {0};
  tn_status s = tn_read(y, TN_F32, got, (size_t)n * sizeof *got);
  if (s == TN_OK) check(got[0] == (float)size, "a sum of ones is wrong");
  tn_scope_end(tn);
  return s;
}

/** Collectives of tensors of several devices in one plan, which are alike and independent, run in
    the same order in all processes. */
static void devices(void) {
  enum { N = 64, ROUNDS = 100 };
  for (int round = 0; round < ROUNDS; round++) {
    float got[3][N];
    tn_tensor *y[3];
    tn_scope_begin(tn);
    for (int i = 0; i < 3; i++) {
      char name[24];
      snprintf(name, sizeof name, "CPU:%d", i);
      tn_tensor *x = tn_full(tn, tn_shape(N), TN_F32, (double)(100 * i + rank + round));
      y[i] = tn_group_all_reduce(group, tn_to(x, name), TN_REDUCTION_ADD);
    }
    ok(tn_realize(tn, y, 3), "sums on several devices");
    for (int i = 0; i < 3; i++) {
      double wanted = (double)(size * (100 * i + round) + size * (size - 1) / 2);
      ok(tn_read(y[i], TN_F32, got[i], sizeof got[i]), "a sum of a device");
      check(got[i][0] == wanted && got[i][N - 1] == wanted, "a sum of a device is wrong");
    }
    tn_scope_end(tn);
  }
}

/** The processes run two collectives that are alike in turns: all are told. */
static void swapped(void) {
  tn_tensor *y[2];
  float got[4];
  for (int i = 0; i < 2; i++)
    y[i] = tn_group_all_reduce(group, tn_full(tn, tn_shape(4), TN_F32, i + 1), TN_REDUCTION_ADD);
  tn_status s = tn_read(y[rank], TN_F32, got, sizeof got);
  printf("process %" PRId64 ": %s\n", rank, tn_message(tn));
  check(s == TN_ERR_ARGUMENT, "another order is not told");
}

/** The processes run collectives of other sizes: all are told, and go on being told. */
static void differ(void) {
  ok(sum_of(4), "a sum");
  tn_status s = sum_of(4 + rank);
  printf("process %" PRId64 ": %s\n", rank, tn_message(tn));
  check(s == TN_ERR_ARGUMENT, "the difference is not told");
  check(sum_of(4) == TN_ERR_ARGUMENT, "a lost group goes on");
}

/** The processes combine as many elements in other shapes. */
static void shapes(void) {
  tn_tensor *x = tn_ones(tn, rank ? tn_shape(2, 3) : tn_shape(3, 2), TN_F32);
  float got[6];
  tn_status s = tn_read(tn_group_all_reduce(group, x, TN_REDUCTION_ADD), TN_F32, got, sizeof got);
  printf("process %" PRId64 ": %s\n", rank, tn_message(tn));
  check(s == TN_ERR_ARGUMENT, "other shapes are not told");
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Process 1 is killed: each other one gets an error, in time. */
static void dies(void) {
  ok(sum_of(4), "a sum");
  if (rank == 1) raise(SIGKILL);
  double start = now();
  tn_status s = sum_of(4);
  check(s == TN_ERR_TIMEOUT || s == TN_ERR_IO, "the death is not told");
  check(now() - start < 10, "the death is told late");
  printf("process %" PRId64 " goes on: %s\n", rank, tn_message(tn));
  fflush(stdout);
  _exit(0);
}

static void refused_as(tn_status status, tn_tensor *x, const char *text) {
  if (tn_realize(tn, &x, 1) != status || !strstr(tn_message(tn), text)) fail(text);
}

static void refused(tn_tensor *x, const char *text) { refused_as(TN_ERR_ARGUMENT, x, text); }

static void refuses(void) {
  tn_group *none = NULL;
  tn_group_desc desc = TN_GROUP_DESC_INIT;
  desc.engine = "PIGEON";
  check(tn_group_open(tn, &desc, &none) == TN_ERR_ARGUMENT && !none, "an unknown engine");
  desc = (tn_group_desc)TN_GROUP_DESC_INIT;
  desc.timeout = -1;
  check(tn_group_open(tn, &desc, &none) == TN_ERR_ARGUMENT, "a negative time limit");
  check(tn_group_open(tn, NULL, NULL) == TN_ERR_ARGUMENT, "no place for the group");
  check(tn_group_size(NULL) == -1 && tn_group_rank(NULL) == -1, "no group");
  tn_tensor *x = tn_ones(tn, tn_shape(3, 4), TN_F32);
  refused(tn_group_all_reduce(NULL, x, TN_REDUCTION_ADD), "the group is NULL");
  refused(tn_group_all_reduce(group, x, TN_REDUCTION_NONE), "none of the four");
  refused(tn_group_all_gather(group, x, 2), "no such axis");
  refused(tn_group_reduce_scatter(group, x, TN_REDUCTION_ADD, 5), "no such axis");
  if (size > 1)
    refused_as(TN_ERR_SHAPE, tn_group_reduce_scatter(group, x, TN_REDUCTION_ADD, 0), "multiple");
  tn_tensor *stored = tn_cast(x, TN_F8E5M2);
  refused_as(TN_ERR_DTYPE, tn_group_all_reduce(group, stored, TN_REDUCTION_ADD), "cast them");
  refused_as(TN_ERR_DTYPE, tn_group_reduce_scatter(group, stored, TN_REDUCTION_MAX, 1),
             "cast them");
  refused(tn_group_broadcast(group, x, size), "no process of this number");
  tn_tensor *bad = tn_matmul(x, x);
  refused_as(TN_ERR_SHAPE, tn_group_all_gather(group, bad, 0), "matmul");
  tn_group *second = NULL;
  ok(tn_group_open(tn, NULL, &second), "a second group");
  tn_tensor *y = tn_group_all_reduce(second, x, TN_REDUCTION_ADD);
  tn_group_free(second); /* the tensor keeps it */
  float got[12];
  ok(tn_read(y, TN_F32, got, sizeof got), "a sum in the second group");
  check(got[11] == (float)size, "the second group's sum is wrong");
}

/** One process's tensor is on the CPU, and the others' on the context's device. */
static void moved(void) {
  tn_scope_begin(tn);
  tn_tensor *x = tn_full(tn, tn_shape(2, 3), TN_F32, (double)rank);
  if (rank == size - 1) x = tn_to(x, "CPU");
  tn_tensor *y = tn_group_all_gather(group, x, 1);
  float got[2 * 3 * 8];
  ok(tn_read(y, TN_F32, got, (size_t)size * 6 * sizeof *got), "gathering a tensor on the CPU");
  for (int64_t i = 0; i < 6 * size; i++)
    check(got[i] == (float)(i / 3 % size), "an element from another device is wrong");
  ok(tn_scope_end(tn), "moved");
}

/** Tells by what collectives go: as the logger and an explanation say, and how many NCCL got. */
static void engine(void) {
  union {
    void *symbol;
    int (*count)(void);
  } nccl = {NULL};
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library) nccl.symbol = dlsym(library, "stand_in_collectives");
  tn_explanation *x = NULL;
  tn_explained_step step = {.size = sizeof step};
  tn_plan *plan = NULL;
  tn_tensor *sum = tn_group_all_reduce(
      group, tn_add(tn_input(tn, "x", tn_shape(4), TN_F32), tn_num(tn, 1)), TN_REDUCTION_ADD);
  ok(tn_explain(tn, false, &x), "asking for an explanation");
  ok(tn_plan_compile(tn, &sum, 1, NULL, &plan), "compiling a sum");
  for (size_t i = 0; tn_explanation_step(x, i, &step) == TN_OK; i++)
    if (step.kernel < 0) printf("process %" PRId64 " explains: %s\n", rank, step.what);
  tn_explanation_free(x);
  tn_plan_free(plan);
  tn_status s = sum_of(4);
  if (s == TN_OK) moved();
  printf("process %" PRId64 " logs: %s\n", rank, line_of_engine);
  if (s != TN_OK) printf("process %" PRId64 " fails: %s\n", rank, tn_message(tn));
  printf("process %" PRId64 ": %d by NCCL\n", rank, nccl.symbol ? nccl.count() : 0);
  if (s == TN_OK) return;
  check(sum_of(4) == s, "a lost group goes on");
  fflush(stdout);
  _exit(0);
}

static void take_line(void *user, tn_log_level level, const char *text) {
  (void)user, (void)level;
  if (!strncmp(text, "collectives of", 14))
    snprintf(line_of_engine, sizeof line_of_engine, "%s", text);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"collectives", collectives}, {"few", few},         {"products", products},
               {"training", training},       {"differ", differ},   {"shapes", shapes},
               {"devices", devices},         {"swapped", swapped}, {"dies", dies},
               {"refuses", refuses},         {"engine", engine}};
  tn_open_desc open = TN_OPEN_DESC_INIT;
  open.logger = (tn_logger){take_line, NULL, NULL};
  open.allocator = (tn_allocator){counted_alloc, counted_release, NULL, NULL};
  tn = tn_open(&open);
  tn_group_desc desc = TN_GROUP_DESC_INIT;
  if (argc > 1 && !strcmp(argv[1], "dies")) desc.timeout = 4;
  if (getenv("GROUP_TIMEOUT")) desc.timeout = atof(getenv("GROUP_TIMEOUT"));
  desc.engine = getenv("GROUP_ENGINE");
  ok(tn_group_open(tn, &desc, &group), "opening the group");
  rank = tn_group_rank(group);
  size = tn_group_size(group);
  size_t i = 0;
  while (i < sizeof cases / sizeof *cases && (argc < 2 || strcmp(cases[i].name, argv[1]))) i++;
  if (i == sizeof cases / sizeof *cases) return 2;
  cases[i].run();
  tn_close(tn);
  if (bytes_in_use) {
    fprintf(stderr, "process %" PRId64 ": %lld bytes are left\n", rank, (long long)bytes_in_use);
    return 1;
  }
  return 0;
}
