/* Tests operator builders on dynamic sizes: each graph built with a variable size is interpreted
   for several values of the variable, and must give what the same builder gives for the
   constant. */
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "ir/verify/verify_graph.h"
#include "support/index_var.h"
#include "tensor/ops/operators.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { MOST_SIZE = 300, DATA = MOST_SIZE * 64 };

typedef struct world {
  diag d;
  arena a;
  ir *g;
  builder b;
  float data[DATA];
} world;

static void open_world(world *w) {
  *w = (world){0};
  arena_init(&w->a, &mem_system, &w->d);
  w->g = ir_new(&mem_system, &w->d, false);
  assert_non_null(w->g);
  w->b = (builder){.ir = w->g, .arena = &w->a, .diag = &w->d};
  for (int i = 0; i < DATA; i++) w->data[i] = (float)((i * 7919) % 1013) / 64 - 8;
}

static void close_world(world *w) {
  ir_free(w->g);
  arena_free(&w->a);
}

/** Makes an f32 param; a size of 0 stands for n. */
static value input(builder *b, int64_t slot, const node *n, size_t rank, const int64_t dims[]) {
  const node *at[SIZES_MAX_RANK];
  for (size_t i = 0; i < rank; i++) at[i] = dims[i] ? ix_const(b->ir, dims[i]) : n;
  return value_of(ir_node(b->ir, OP_PARAM, DT_F32, at, rank, &slot, 1));
}

#define INPUT(b, slot, n, ...) \
  input(b, slot, n, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* Builders under test: each makes one result from the size n. */

#define AXES(...) tn_axes(__VA_ARGS__)
#define CASE(name, ...) \
  static value try_##name(builder *b, const node *n) { return __VA_ARGS__; }
#define X     INPUT(b, 0, n, 3, 0, 4)
#define Y     INPUT(b, 1, n, 0, 1)
#define IX(k) ix_const(b->ir, k)

static value try_topk_of(builder *b, value x) {
  value out[2];
  build_topk(b, x, ix_const(b->ir, 1), 1, true, out);
  return out[0];
}

CASE(add, build_add(b, X, Y))
CASE(where, build_where(b, build_lt(b, Y, X), X, build_int(b, 1)))
CASE(sum, build_sum(b, X, AXES(1), false))
CASE(mean, build_mean(b, X, AXES(0, 1), true))
CASE(var, build_var(b, X, AXES(1), 5, false))
CASE(logsumexp, build_logsumexp(b, X, AXES(1, 2), false))
CASE(argmax, build_argmax(b, X, 1, false))
CASE(cumsum, build_cumsum(b, X, 1))
CASE(cumprod, build_cumprod(b, build_sigmoid(b, X), 1))
CASE(cummax, build_cummax(b, X, 1))
CASE(sort, build_sort(b, X, 1, true))
CASE(argsort, build_argsort(b, X, 1, false))
CASE(topk, try_topk_of(b, X))
CASE(searchsorted, build_searchsorted(b, build_arange(b, IX(-9), n, 1, DT_I64), X, true))
CASE(bincount, build_bincount(b, build_cast(b, X, DT_I32), X, n))
CASE(scatter, build_scatter_elements(b, X, build_argsort(b, X, 1, false), X, 1, OP_ADD))
CASE(softmax, build_softmax(b, X, 1))
CASE(layer_norm, build_layer_norm(b, X, build_exp(b, Y), value_of(NULL), 1, 1e-5))
CASE(instance_norm, build_instance_norm(b, X, value_of(NULL), value_of(NULL), 1e-5))
CASE(flatten, build_flatten(b, X, 0, 1))
CASE(flip, build_flip(b, X, AXES(1)))
CASE(permute, build_permute(b, X, AXES(1, 0, 2)))
CASE(slice_all, build_slice(b, X, 1, IX(-1), NULL, -1))
CASE(slice_step, build_slice(b, X, 1, IX(1), n, 2))
CASE(slice_end, build_slice(b, X, 1, IX(-2), IX(-1), 1))
CASE(slice_outside, build_slice(b, X, 1, IX(-5), IX(5), 1))
CASE(slice_any_sign, build_slice(b, X, 1, ix_add_const(b->ir, n, -4), IX(-6), -1))
CASE(slice_inside, build_slice_inside(b, X, 1, IX(-5), NULL, -1))
CASE(pad_edge, build_pad(b, X, &(sizes){3, {IX(0), IX(2), IX(0)}}, &(sizes){3, {IX(0), n, IX(1)}},
                         TN_PAD_CONSTANT, build_num(b, -1)))
CASE(edge, build_pad(b, X, &(sizes){3, {IX(0), n, IX(0)}}, &(sizes){3, {IX(0), IX(1), IX(0)}},
                     TN_PAD_EDGE, build_num(b, 0)))
CASE(reflect, build_pad(b, X, &(sizes){3, {IX(0), IX(1), IX(0)}},
                        &(sizes){3, {IX(0), ix_add_const(b->ir, n, -1), IX(0)}}, TN_PAD_REFLECT,
                        build_num(b, 0)))
CASE(concat, build_concat(b, (value[]){X, build_neg(b, X), X}, 3, 1))
CASE(stack, build_stack(b, (value[]){X, build_neg(b, X)}, 2, 2))
CASE(tile, build_tile(b, X, &(sizes){3, {IX(1), IX(2), n}}))
CASE(repeat, build_repeat(b, X, 1, n))
CASE(roll, build_roll(b, X, 1, IX(-3)))
CASE(roll_by, build_roll(b, X, 2, n))
CASE(take, build_take(b, X, build_arange(b, IX(-1), IX(2), 1, DT_I64), 1))
CASE(take_n, build_take(b, X, build_arange(b, IX(0), n, 1, DT_U8), 2))
CASE(gather, build_gather_elements(b, X, build_argmax(b, X, 1, true), 1))
CASE(one_hot, build_one_hot(b, build_argmax(b, X, 1, false), n, DT_F32))
CASE(tril, build_tril(b, X, ix_add_const(b->ir, n, -3)))
CASE(matmul, build_matmul(b, X, INPUT(b, 1, n, 4, 0)))
CASE(matmul_k, build_matmul(b, X, build_permute(b, X, AXES(0, 2, 1))))
CASE(matmul_inner, build_matmul(b, build_permute(b, X, AXES(0, 2, 1)), X))
CASE(arange, build_arange(b, n, ix_scale(b->ir, n, 2), 3, DT_I32))
CASE(linspace, build_linspace(b, -1, 2, n, DT_F64))
CASE(eye, build_eye(b, n, ix_add_const(b->ir, n, 1), DT_U8))
CASE(full, build_full(b, &(sizes){2, {n, IX(2)}}, DT_F16, 0.5))
CASE(rand, build_rand(b, 99, &(sizes){2, {IX(3), n}}, DT_F32))
CASE(split_left, build_reshape(b, X, &(sizes){3, {n, NULL, IX(2)}}))

#define IMAGE INPUT(b, 0, n, 1, 2, 0, 5)
#define BATCH INPUT(b, 0, n, 0, 2, 3, 5)
static const tn_conv_desc wide = {sizeof wide, {2, 1, 1}, {2, 1, 1}, {3, 1, 0},
                                  {2, 0, 0},   {0, 0, 0}, 2};
static const tn_conv_desc across = {sizeof across, {3, 2, 1}, {1, 2, 1}, {1, 0, 0},
                                    {0, 1, 0},     {2, 1, 0}, 2};
static const tn_pool_desc hanging = {sizeof hanging, {3, 2, 1}, {2, 2, 1}, {1, 1, 1},
                                     {1, 0, 0},      {0, 1, 0}, true,      false};

CASE(conv, build_conv(b, IMAGE, INPUT(b, 1, n, 4, 1, 3, 2), INPUT(b, 2, n, 4), &wide))
CASE(conv_batch, build_conv(b, BATCH, INPUT(b, 1, n, 4, 1, 3, 2), value_of(NULL), &wide))
CASE(conv_transpose,
     build_conv_transpose(b, IMAGE, INPUT(b, 1, n, 2, 2, 3, 2), value_of(NULL), &across))
CASE(max_pool, build_max_pool(b, IMAGE, &hanging))
CASE(avg_pool, build_avg_pool(b, IMAGE, &hanging))
CASE(global_avg_pool, build_global_avg_pool(b, IMAGE))

typedef struct trial {
  const char *name;
  value (*build)(builder *b, const node *n);
} trial;

#define TRIAL(name) \
  { #name, try_##name }
static const trial trials[] = {
    TRIAL(add),
    TRIAL(where),
    TRIAL(sum),
    TRIAL(mean),
    TRIAL(var),
    TRIAL(logsumexp),
    TRIAL(argmax),
    TRIAL(cumsum),
    TRIAL(cummax),
    TRIAL(sort),
    TRIAL(argsort),
    TRIAL(topk),
    TRIAL(searchsorted),
    TRIAL(bincount),
    TRIAL(scatter),
    TRIAL(cumprod),
    TRIAL(softmax),
    TRIAL(layer_norm),
    TRIAL(instance_norm),
    TRIAL(flatten),
    TRIAL(flip),
    TRIAL(permute),
    TRIAL(slice_all),
    TRIAL(slice_step),
    TRIAL(slice_end),
    TRIAL(slice_outside),
    TRIAL(slice_any_sign),
    TRIAL(slice_inside),
    TRIAL(pad_edge),
    TRIAL(edge),
    TRIAL(reflect),
    TRIAL(concat),
    TRIAL(stack),
    TRIAL(tile),
    TRIAL(repeat),
    TRIAL(roll),
    TRIAL(roll_by),
    TRIAL(take),
    TRIAL(take_n),
    TRIAL(gather),
    TRIAL(one_hot),
    TRIAL(tril),
    TRIAL(matmul),
    TRIAL(matmul_k),
    TRIAL(matmul_inner),
    TRIAL(arange),
    TRIAL(linspace),
    TRIAL(eye),
    TRIAL(full),
    TRIAL(rand),
    TRIAL(conv),
    TRIAL(conv_batch),
    TRIAL(max_pool),
    TRIAL(avg_pool),
    TRIAL(split_left),
    TRIAL(conv_transpose),
    TRIAL(global_avg_pool),
};

/* Execution. */

typedef struct job {
  world *w;
  const trial *t;
  const node *n;
  int64_t value;
  interp_array result;
} job;

/** Binds a graph's params by slot, with their sizes for this value of n, and interprets it. */
static void interpret(job *j, const node *root) {
  interp_array params[4] = {{0}};
  interp_var n = {"n", j->value};
  world *w = j->w;
  node_list order = topo_sort(&w->a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM) continue;
    interp_array a = {.dtype = DT_F32, .rank = p->rank, .bytes = 4};
    for (size_t k = 0; k < p->rank; k++) {
      a.dims[k] = node_is_const(p->dims[k]) ? node_int(p->dims[k]) : j->value;
      a.bytes *= (size_t)a.dims[k];
    }
    a.data = w->data + p->ints[0] * 17;
    params[p->ints[0]] = a;
  }
  interp_env env = {.params = params, .n_params = 4, .vars = &n, .n_vars = 1};
  if (verify_graph(&root, 1, LEVEL_TENSOR, &mem_system, &w->d) != TN_OK) diag_rethrow(&w->d);
  if (interp_tensor(&env, &root, 1, &j->result, &w->a) != TN_OK) diag_rethrow(&w->d);
}

static void body(void *arg) {
  job *j = arg;
  interpret(j, j->t->build(&j->w->b, j->n).node);
}

static interp_array outcome(world *w, const trial *t, const node *n, int64_t v) {
  job j = {.w = w, .t = t, .n = n, .value = v};
  if (diag_catch(&w->d, body, &j) != TN_OK)
    fail_msg("%s with n = %lld: %s", t->name, (long long)v, w->d.text);
  return j.result;
}

/** Compares arrays, with a tolerance for scans, which round in another order with another number of
    blocks. */
static bool alike(const interp_array *a, const interp_array *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes) return false;
  if (memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)) return false;
  if (!memcmp(a->data, b->data, a->bytes)) return true;
  if (a->dtype != DT_F32) return false;
  const float *x = a->data, *y = b->data;
  for (size_t i = 0; i < a->bytes / sizeof *x; i++)
    if (!(fabsf(x[i] - y[i]) <= 1e-5f * fabsf(y[i])) && memcmp(&x[i], &y[i], 4)) return false;
  return true;
}

static void variable_is_number(void **state) {
  static const int64_t values[] = {3, 4, 7, 64, 65, 130};
  static world w;
  (void)state;
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
      if (values[k] > 7 && !strstr(trials[i].name, "cum")) continue;
      open_world(&w);
      interp_array a = outcome(&w, &trials[i], index_var(w.g, "n", 3, MOST_SIZE), values[k]);
      interp_array b = outcome(&w, &trials[i], ix_const(w.g, values[k]), values[k]);
      if (!alike(&a, &b))
        fail_msg("%s with n = %lld differs", trials[i].name, (long long)values[k]);
      close_world(&w);
    }
}

/* Refused: properties that do not hold for every value. */

CASE(reflect_outside,
     build_pad(b, X, &(sizes){3, {IX(0), IX(3), IX(0)}}, &(sizes){3, {IX(0), IX(0), IX(0)}},
               TN_PAD_REFLECT, build_num(b, 0)))
CASE(not_divided, build_reshape(b, X, &(sizes){2, {NULL, IX(5)}}))
CASE(not_equal, build_add(b, X, INPUT(b, 1, n, 3, 4, 4)))
CASE(window_outside,
     build_max_pool(
         b, IMAGE,
         &(tn_pool_desc){
             sizeof hanging, {4, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, false, true}))
CASE(kernel_varies,
     build_conv(b, INPUT(b, 0, n, 1, 2, 9), INPUT(b, 1, n, 3, 2, 0), value_of(NULL), NULL))
CASE(parts_left,
     build_group_norm(b, INPUT(b, 0, n, 2, 0, 3), value_of(NULL), value_of(NULL), 2, 1e-5))

static const trial refused[] = {
    TRIAL(reflect_outside), TRIAL(not_divided),   TRIAL(not_equal),
    TRIAL(window_outside),  TRIAL(kernel_varies), TRIAL(parts_left),
};

static void unknown_is_refused(void **state) {
  static world w;
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    open_world(&w);
    job j = {.w = &w, .t = &refused[i], .n = index_var(w.g, "n", 3, MOST_SIZE), .value = 3};
    tn_status s = diag_catch(&w.d, body, &j);
    if (s != TN_ERR_SHAPE) fail_msg("%s: status %d, %s", refused[i].name, (int)s, w.d.text);
    assert_non_null(strchr(w.d.text, 'n'));
    close_world(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variable_is_number),
      cmocka_unit_test(unknown_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
