/* Tests every rewrite rule: it fires on its example, and both sides have the same type and shape
   and evaluate equal, on all values of one 16-bit variable (of two at 8 bits), on edge cases and on
   random values. */
#include "evaluate.h"
#include "examples.h"

#include "base/map.h"
#include "ir/core/build.h"
#include "ir/core/check_node.h"
#include "ir/core/tensor_rows.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "rules/rule_sets.h"
#include "rules/simplifying_builder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_STEPS = 512, RANDOM = 20000, FEW = 1000, SANITIZED = 4000 };

typedef struct step {
  const char *rule;
  const node *before, *after;
} step;

typedef struct trial {
  const rule_example *e;
  ir *g;
  arena *a;
  step steps[MOST_STEPS];
  size_t n_steps;
  const node *before, *after;
  int math;
  dtype from, to; /* if different: replaces this type in the example */
  bool few;       /* fewer random values, as there are many such trials */
} trial;

static void fired(void *user, const char *rule, const node *before, const node *after) {
  trial *t = user;
  if (t->n_steps < MOST_STEPS) t->steps[t->n_steps++] = (step){rule, before, after};
}

static rewrite_rule_set set_of(const char *name) {
  static const struct {
    const char *name;
    rewrite_rule_set set;
  } sets[] = {{"algebra", rules_algebra},     {"fuse_multiply_add", rules_fuse_multiply_add},
              {"decompose", rules_decompose}, {"index_comparisons", rules_index_comparisons},
              {"movement", rules_movement},   {"transcendental", rules_transcendental}};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (!strcmp(sets[i].name, name)) return sets[i].set;
  fail_msg("no set of rules is called %s", name);
  return NULL;
}

/** Returns a target that lacks every op that rules can replace. */
static rule_target bare_target(void) {
  static const op lacks[] = {
      OP_NEG,   OP_ABS,  OP_FLOOR,    OP_CEIL,    OP_TRUNC,    OP_ROUND,  OP_EXP,   OP_EXP2,
      OP_EXPM1, OP_LOG,  OP_LOG2,     OP_LOG1P,   OP_SIN,      OP_COS,    OP_TAN,   OP_ASIN,
      OP_ACOS,  OP_ATAN, OP_SINH,     OP_COSH,    OP_TANH,     OP_ASINH,  OP_ACOSH, OP_ATANH,
      OP_ERF,   OP_CAST, OP_FLOORDIV, OP_MOD,     OP_MAX,      OP_MIN,    OP_SHL,   OP_SHR,
      OP_POW,   OP_FMA,  OP_DOT_U8I8, OP_DOT_I16, OP_DOT_BF16, OP_DOT_F16};
  rule_target t = {.lacks = {0}};
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
    rule_target_add_missing_op(&t, lacks[i]);
  return t;
}

/** Returns the example's target; contraction needs an fma. */
static rule_target target_for(const rule_example *e) {
  rule_target t = bare_target();
  if (!strcmp(e->set, "fuse_multiply_add")) t.lacks[OP_FMA / 64] &= ~(UINT64_C(1) << OP_FMA % 64);
  return t;
}

/** The example with one of its types replaced; constants keep their value. */
static const node *retyped(trial *t, const node *root, dtype from, dtype to) {
  node_list all = topo_sort(t->a, &root, 1, NULL, NULL);
  map image = {0};
  for (size_t i = 0; i < all.n; i++) {
    const node *n = all.at[i], *src[16];
    for (uint32_t k = 0; k < n->n_src && k < 16; k++) src[k] = map_get(&image, n->src[k]);
    dtype type = n->dtype == from ? to : (dtype)n->dtype;
    int64_t ints[2] = {n->n_int ? n->ints[0] : 0, n->n_int > 1 ? n->ints[1] : 0};
    if (n->op == OP_CONST) ints[0] = (int64_t)scalar_cast(type, (dtype)n->dtype, (uint64_t)ints[0]);
    const node *r = n->n_int > 2 ? n
                                 : ir_make(t->g, &(node_spec){.op = (op)n->op,
                                                              .dtype = type,
                                                              .lanes = n->lanes,
                                                              .src = src,
                                                              .n_src = n->n_src,
                                                              .ints = ints,
                                                              .n_int = n->n_int,
                                                              .text = n->text,
                                                              .n_text = n->n_text});
    map_set(t->a, &image, n, (void *)r);
  }
  return map_get(&image, root);
}

static void apply(trial *t) {
  rule_target target = target_for(t->e);
  rewriter rw = {.ir = t->g, .math = t->math, .target = &target, .fired = fired, .user = t};
  rewrite_rule_set set = set_of(t->e->set);
  t->n_steps = 0;
  t->before = t->after = t->e->build(t->g);
  if (t->from != t->to) t->before = t->after = retyped(t, t->before, t->from, t->to);
  rewrite(&rw, &set, 1, &t->after, 1);
}

static bool has_fired(const trial *t) {
  for (size_t i = 0; i < t->n_steps; i++)
    if (!strcmp(t->steps[i].rule, t->e->rule)) return true;
  return false;
}

/* Comparing. */

/** Tolerance between two values. */
typedef struct tolerance {
  uint64_t ulps; /* tolerance for inexact functions */
  bool fast;     /* only ordinary numbers count */
  bool contract; /* differences up to `bound` are allowed */
  dtype words;   /* inputs are pairs of such floats; DT_VOID: numbers */
  double bound;  /* rounding error of the largest product of two inputs */
} tolerance;

static dtype words_of(arena *a, const node *root) {
  node_list all = topo_sort(a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_DOT_BF16 || all.at[i]->op == OP_DOT_F16)
      return tensor_row_of((op)all.at[i]->op)->x;
  return DT_VOID;
}

static bool has_function(arena *a, const node *root) {
  node_list all = topo_sort(a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (op_is_transcendental((op)all.at[i]->op)) return true;
  return false;
}

static tolerance tolerance_of(const trial *t, const step *s) {
  return (tolerance){.ulps = has_function(t->a, s->before),
                     .fast = t->e->math == 4,
                     .contract = t->e->math == MATH_CONTRACT,
                     .words = words_of(t->a, s->before)};
}

static bool close_enough(const tolerance *t, dtype type, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (!dtype_is_float(type)) return false;
  double x = scalar_to_double(type, a), y = scalar_to_double(type, b);
  if (isnan(x) && isnan(y)) return true;
  if (t->fast) return fabs(x - y) <= 1e-6 * fabs(x);
  if (t->contract) return fabs(x - y) <= t->bound;
  return ulp_distance(type, a, b) <= t->ulps;
}

static bool is_ordinary(dtype t, uint64_t bits) {
  double v = dtype_is_float(t) ? fabs(scalar_to_double(t, bits)) : 1;
  return v > 1e-3 && v < 1e3;
}

/** The magnitude of an input; of a word of two elements of a type, that of the larger one. The
   input itself is about as large as its high element, of bf16. */
static double magnitude(dtype t, uint64_t bits, dtype element) {
  double v = fabs(scalar_to_double(t, bits));
  if (element == DT_VOID) return v;
  v = fmax(v, fabs(scalar_to_double(element, bits & 0xffff)));
  return fmax(v, fabs(scalar_to_double(element, bits >> 16 & 0xffff)));
}

/** The largest magnitude among the inputs and the products of two of them. */
static double greatest_product(const program *p, const uint64_t inputs[], dtype words) {
  double most = 0, v[MOST_INPUTS];
  for (size_t i = 0; i < p->inputs; i++) {
    v[i] = magnitude((dtype)p->input[i]->dtype, inputs[i], words);
    most = fmax(most, v[i]);
    for (size_t k = 0; k < i; k++) most = fmax(most, v[i] * v[k]);
  }
  return most;
}

typedef struct comparison {
  const trial *t;
  const step *s;
  program p;
  tolerance tolerance;
  dtype type;
} comparison;

static void compare_at(comparison *c, const uint64_t inputs[]) {
  for (size_t i = 0; i < c->p.inputs && (c->tolerance.fast || c->tolerance.contract); i++)
    if (!is_ordinary((dtype)c->p.input[i]->dtype, inputs[i])) return;
  tolerance within = c->tolerance;
  if (within.contract) within.bound = ldexp(greatest_product(&c->p, inputs, within.words), -23);
  if (!program_run(&c->p, inputs)) return;
  uint64_t a = program_result(&c->p, 0), b = program_result(&c->p, 1);
  if (!close_enough(&within, c->type, a, b))
    fail_msg(
        "%s:%d: %s (in the example of %s) makes %#llx of %#llx for the inputs %#llx %#llx %#llx",
        c->t->e->set, c->t->e->line, c->s->rule, c->t->e->rule, (unsigned long long)b,
        (unsigned long long)a, (unsigned long long)inputs[0], (unsigned long long)inputs[1],
        (unsigned long long)inputs[2]);
}

static uint64_t input_value(const node *n, uint64_t *state) {
  uint64_t v = random_value((dtype)n->dtype, state);
  if (n->op != OP_VAR) return v;
  return (uint64_t)(n->ints[0] + (int64_t)(v % (uint64_t)(n->ints[1] - n->ints[0] + 1)));
}

static int input_bits(const node *n) { return n->op == OP_VAR ? 64 : dtype_bits((dtype)n->dtype); }

/** Compares on all inputs if there are at most 2^16. */
static bool compare_all(comparison *c) {
  int bits = 0;
  for (size_t i = 0; i < c->p.inputs; i++) bits += input_bits(c->p.input[i]);
  if (bits > 16) return false;
  for (uint64_t v = 0; v < UINT64_C(1) << bits; v++) {
    uint64_t inputs[MOST_INPUTS] = {0}, rest = v;
    for (size_t i = 0; i < c->p.inputs; i++) {
      dtype t = (dtype)c->p.input[i]->dtype;
      uint64_t own = rest & ((UINT64_C(1) << dtype_bits(t)) - 1);
      inputs[i] = dtype_is_float(t) ? own : scalar_cast(t, DT_U64, own);
      rest >>= dtype_bits(t);
    }
    compare_at(c, inputs);
  }
  return true;
}

static void compare_edges(comparison *c) {
  uint64_t a[64], b[64], inputs[MOST_INPUTS] = {0}, state = 1;
  if (!c->p.inputs || c->p.input[0]->op == OP_VAR) return;
  const node *second = c->p.input[c->p.inputs > 1];
  size_t n = edge_values((dtype)c->p.input[0]->dtype, a), m = edge_values((dtype)second->dtype, b);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < m; k++) {
      for (size_t j = 2; j < c->p.inputs; j++) inputs[j] = input_value(c->p.input[j], &state);
      if (c->p.inputs > 1) inputs[1] = b[k];
      inputs[0] = a[i];
      compare_at(c, inputs);
    }
}

/** Number of random inputs of a trial. Sanitizers look for undefined behaviour in the interpreter;
    the equality of both sides is checked with all values in builds without. */
static int random_values(const trial *t) {
  const char *sanitizers = getenv("TENON_SANITIZE");
  if (t->few) return FEW;
  return sanitizers && *sanitizers ? SANITIZED : RANDOM;
}

static void compare_random(comparison *c) {
  uint64_t state = 42;
  for (int i = 0, n = random_values(c->t); i < n; i++) {
    uint64_t inputs[MOST_INPUTS] = {0};
    for (size_t k = 0; k < c->p.inputs; k++) inputs[k] = input_value(c->p.input[k], &state);
    compare_at(c, inputs);
  }
}

static void compare_scalars(const trial *t, const step *s) {
  comparison c = {.t = t, .s = s, .tolerance = tolerance_of(t, s), .type = (dtype)s->after->dtype};
  c.p = program_make(t->a, (const node *const[]){s->before, s->after}, 2);
  if (compare_all(&c)) return;
  compare_edges(&c);
  compare_random(&c);
}

/** Compares arrays filled with distinct numbers. */
static void compare_arrays(const trial *t, const step *s) {
  interp_array params[4] = {{0}}, results[2];
  node_list all = topo_sort(t->a, &s->before, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    const node *p = all.at[i];
    if (p->op != OP_PARAM) continue;
    interp_array *a = &params[p->ints[0]];
    size_t count = 1;
    *a = (interp_array){.dtype = (dtype)p->dtype, .rank = p->rank};
    for (size_t k = 0; k < p->rank; k++) count *= (size_t)(a->dims[k] = node_int(p->dims[k]));
    a->bytes = count * dtype_bytes(a->dtype);
    float *data = arena_alloc(t->a, a->bytes);
    for (size_t k = 0; k < count; k++) data[k] = (float)(k + 1) + 100 * (float)p->ints[0];
    a->data = data;
  }
  interp_env env = {.params = params, .n_params = 4};
  const node *roots[] = {s->before, s->after};
  if (interp_tensor(&env, roots, 2, results, t->a) != TN_OK) diag_rethrow(t->a->diag);
  assert_int_equal(results[0].bytes, results[1].bytes);
  assert_true(results[0].bytes > 0);
  assert_memory_equal(results[0].data, results[1].data, results[0].bytes);
}

static bool is_scalar(arena *a, const node *root) {
  node_list all = topo_sort(a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->rank) return false;
  return true;
}

static void compare_step(const trial *t, const step *s) {
  assert_int_equal(s->before->dtype, s->after->dtype);
  assert_int_equal(s->before->lanes, s->after->lanes);
  assert_int_equal(s->before->rank, s->after->rank);
  for (size_t i = 0; i < s->before->rank; i++)
    assert_ptr_equal(s->before->dims[i], s->after->dims[i]);
  if (s->before->lanes > 1) return;
  if (!is_scalar(t->a, s->before))
    compare_arrays(t, s);
  else
    compare_scalars(t, s);
}

/** The functions of transcendental.rules are compared in test_functions.c. */
static bool is_approximate(const rule_example *e) { return !strcmp(e->set, "transcendental"); }

static void try_example(void *arg) {
  trial *t = arg;
  t->math = t->e->math ? MATH_FAST : MATH_FAST & ~MATH_FLUSH; /* exp-flushed precedes exp */
  apply(t);
  if (!has_fired(t))
    fail_msg("%s:%d: %s does not fire on its example", t->e->set, t->e->line, t->e->rule);
  for (size_t i = 0; i < t->n_steps && !is_approximate(t->e); i++)
    if (!strcmp(t->steps[i].rule, t->e->rule)) compare_step(t, &t->steps[i]);
  if (!t->e->math) return;
  t->math = MATH_FAST & ~t->e->math;
  apply(t);
  if (has_fired(t)) fail_msg("%s fires where the mode does not allow it", t->e->rule);
}

static bool has_type(arena *a, const node *root, dtype type) {
  node_list all = topo_sort(a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->dtype == type) return true;
  return false;
}

/** Tries every other type of the class: where the rule fires, both sides must be equal. */
static void try_other_types(void *arg) {
  trial *t = arg;
  static const dtype usual[] = {DT_I8, DT_U8, DT_I32, DT_F32, DT_F16};
  t->math = MATH_EXACT;
  t->from = t->to = DT_VOID;
  apply(t);
  const node *example = t->before;
  if (!is_scalar(t->a, example)) return;
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    for (int to = 0; to < DT_LIMIT; to++) {
      bool alike = dtype_is_data((dtype)to) && !dtype_is_storage((dtype)to) &&
                   (dtype_is_float(usual[i]) == dtype_is_float((dtype)to)) && to != DT_BOOL &&
                   to != (int)usual[i];
      if (!alike || !has_type(t->a, example, usual[i])) continue;
      t->from = usual[i];
      t->to = (dtype)to;
      apply(t);
      for (size_t k = 0; k < t->n_steps; k++)
        if (!strcmp(t->steps[k].rule, t->e->rule)) compare_step(t, &t->steps[k]);
    }
}

static void run_trial(const rule_example *e, void (*body)(void *arg)) {
  static trial t; /* large */
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  t = (trial){.e = e, .g = ir_new(&mem_system, &d, false), .a = &a};
  if (diag_catch(&d, body, &t) != TN_OK)
    fail_msg("%s:%d: %s: %s", e->set, e->line, e->rule, d.text);
  ir_free(t.g);
  arena_free(&a);
}

static void every_type(void **state) {
  (void)state;
  for (size_t i = 0; i < rule_example_count; i++)
    if (!is_approximate(&rule_examples[i])) run_trial(&rule_examples[i], try_other_types);
}

static void every_rule(void **state) {
  (void)state;
  assert_true(rule_example_count > 100);
  for (size_t i = 0; i < rule_example_count; i++) run_trial(&rule_examples[i], try_example);
  print_message("%zu rules\n", rule_example_count);
}

/* Properties beyond examples. */

/** A graph built by hand and rewritten by one rule set. */
typedef struct by_hand {
  trial t;
  rule_example e;
  void (*body)(struct by_hand *b);
  dtype types[3];
  op ops[2];
  bool swapped[2];
  size_t fired;
} by_hand;

static void call_body(void *arg) {
  by_hand *b = arg;
  b->body(b);
}

static void run_by_hand(by_hand *b) {
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  b->t.g = ir_new(&mem_system, &d, false);
  b->t.a = &a;
  b->t.e = &b->e;
  if (diag_catch(&d, call_body, b) != TN_OK) fail_msg("%s", d.text);
  ir_free(b->t.g);
  arena_free(&a);
}

static const node *index_between(ir *g, const char *name, int64_t low, int64_t high) {
  int64_t bounds[] = {low, high};
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = DT_INDEX,
                                 .ints = bounds,
                                 .n_int = 2,
                                 .text = name,
                                 .n_text = strlen(name)});
}

static const node *scalar_input(ir *g, dtype t, int64_t slot) {
  int64_t bounds[] = {-100, 300};
  if (t != DT_INDEX) return ir_node(g, OP_PARAM, t, NULL, 0, &slot, 1);
  return ir_make(
      g,
      &(node_spec){.op = OP_VAR, .dtype = t, .ints = bounds, .n_int = 2, .text = "i", .n_text = 1});
}

/** Rewrites by algebra, and compares the two sides. */
static void compare_algebra(by_hand *b, const node *before) {
  step s = {.rule = b->e.rule, .before = before, .after = before};
  rewriter rw = {.ir = b->t.g, .math = MATH_EXACT, .fired = fired, .user = &b->t};
  rewrite_rule_set set = rules_algebra;
  b->t.n_steps = 0;
  rewrite(&rw, &set, 1, &s.after, 1);
  b->fired += s.after != before;
  if (s.after != before) compare_scalars(&b->t, &s);
}

static void two_conversions(by_hand *b) {
  const node *n = scalar_input(b->t.g, b->types[0], 0);
  for (int i = 1; i < 3; i++) n = ir_node(b->t.g, OP_CAST, b->types[i], &n, 1, NULL, 0);
  compare_algebra(b, n);
}

/** A cast of a cast, for all types. */
static void every_two_casts(void **state) {
  (void)state;
  by_hand b = {
      .e = {.set = "algebra", .rule = "two casts"}, .body = two_conversions, .t.few = true};
  for (int from = 0; from < DT_LIMIT; from++)
    for (int by = 0; by < DT_LIMIT; by++)
      for (int to = 0; to < DT_LIMIT; to++) {
        const int types[] = {from, by, to};
        bool there = true;
        for (int i = 0; i < 3; i++) {
          there &= op_takes(OP_CAST, (dtype)types[i]);
          b.types[i] = (dtype)types[i];
        }
        if (there) run_by_hand(&b);
      }
  assert_true(b.fired > 500);
}

static void maximum_of_maximum(by_hand *b) {
  ir *g = b->t.g;
  const node *x = scalar_input(g, b->types[0], 0), *z = scalar_input(g, b->types[0], 1);
  const node *inner = b->swapped[0] ? ir_op2(g, b->ops[0], z, x) : ir_op2(g, b->ops[0], x, z);
  compare_algebra(b,
                  b->swapped[1] ? ir_op2(g, b->ops[1], inner, x) : ir_op2(g, b->ops[1], x, inner));
}

/** Maxima and minima of a maximum or minimum, with every order of operands: 0 and −0 differ. */
static void zeros_of_maxima(void **state) {
  (void)state;
  by_hand b = {.e = {.set = "algebra", .rule = "max of max"}, .body = maximum_of_maximum};
  for (int i = 0; i < 16; i++) {
    b.ops[0] = i & 1 ? OP_MAX : OP_MIN;
    b.ops[1] = i & 2 ? OP_MAX : OP_MIN;
    b.swapped[0] = i & 4;
    b.swapped[1] = i & 8;
    b.types[0] = DT_F32;
    run_by_hand(&b);
    b.types[0] = DT_F64;
    run_by_hand(&b);
  }
  assert_int_equal(b.fired, 2 * 2 * 3); /* three of the four orders preserve the zero */
}

/** An index cast to an integer that holds -100 … 100, or only some of it. */
static void integers_of_indices(by_hand *b) {
  ir *g = b->t.g;
  dtype t = b->types[0];
  const node *i = index_between(g, "i", -100, 100), *j = index_between(g, "j", 0, 200);
  const node *c = ir_const_int(g, t, 42), *x = ir_cast(g, i, t), *y = ir_cast(g, j, t);
  const node *tests[] = {ir_op2(g, b->ops[0], x, c), ir_op2(g, b->ops[0], c, x),
                         ir_op2(g, b->ops[0], y, c), ir_op2(g, b->ops[0], x, y)};
  bool holds_i = dtype_is_signed(t), holds_j = dtype_max(t) >= 200;
  bool commutes = b->ops[0] == OP_EQ || b->ops[0] == OP_NE;
  bool becomes[] = {holds_i, holds_i && !commutes, holds_j && t != DT_U64, holds_i && holds_j};
  for (size_t k = 0; k < 4; k++) {
    step s = {.rule = "comparison of indices", .before = tests[k], .after = tests[k]};
    rewriter rw = {.ir = g, .math = MATH_EXACT};
    rewrite_rule_set set = rules_index_comparisons;
    rewrite(&rw, &set, 1, &s.after, 1);
    bool changed = s.after != s.before;
    if (becomes[k]) assert_int_equal(s.after->src[0]->dtype, DT_INDEX);
    if (!becomes[k] && changed && !commutes) fail_msg("%zu of %s", k, dtype_name(t));
    if (changed) compare_scalars(&b->t, &s);
  }
}

static void indices_as_integers(void **state) {
  (void)state;
  static const op ops[] = {OP_LT, OP_LE, OP_EQ, OP_NE};
  by_hand b = {.e = {.set = "index", .rule = "integers"}, .body = integers_of_indices};
  for (size_t i = 0; i < 4; i++)
    for (int t = 0; t < DT_LIMIT; t++) {
      if (!dtype_is_data((dtype)t) || !dtype_is_int((dtype)t)) continue;
      b.ops[0] = ops[i];
      b.types[0] = (dtype)t;
      run_by_hand(&b);
    }
}

/** After lowering, masks from laws and expansion are combined. */
static void joined_gates(by_hand *b) {
  ir *g = b->t.g;
  rule_target target = bare_target();
  rewriter rw = {.ir = g, .math = MATH_EXACT, .target = &target};
  const node *i = index_between(g, "i", 0, 90), *x = scalar_input(g, DT_F32, 0);
  const node *five = ix_lt(g, i, ix_const(g, 5)), *seven = ix_lt(g, i, ix_const(g, 7));
  const node *zero = ir_const(g, DT_F32, 0),
             *invalid = ir_node(g, OP_INVALID, DT_INDEX, NULL, 0, NULL, 0);
  const node *roots[] = {
      ir_op2(g, OP_AND, five, seven),
      ir_op3(g, OP_WHERE, five, ir_op3(g, OP_WHERE, seven, x, zero), zero),
      ir_op3(g, OP_WHERE, five, ir_op3(g, OP_WHERE, seven, i, invalid), invalid)};
  rewrite(&rw, rules_lower, RULES_LOWER, roots, 3);
  assert_ptr_equal(roots[0], five);
  assert_ptr_equal(roots[1], ir_op3(g, OP_WHERE, five, x, zero));
  assert_ptr_equal(roots[2], ir_op3(g, OP_WHERE, five, i, invalid));
}

static void gates_of_lowered_kernels(void **state) {
  (void)state;
  run_by_hand(&(by_hand){.body = joined_gates});
}

/* The pipelines on whole ops. */

typedef struct lowered {
  op op;
  dtype operand, result;
  size_t n;
  uint64_t ulps; /* tolerance of the decomposition */
} lowered;

static const node *whole_op(ir *g, const lowered *l, const node *src[]) {
  for (int64_t i = 0; i < (int64_t)l->n; i++)
    src[i] = ir_make(g, &(node_spec){.op = OP_PARAM, .dtype = l->operand, .ints = &i, .n_int = 1});
  return ir_make(g, &(node_spec){.op = l->op, .dtype = l->result, .src = src, .n_src = l->n});
}

/** True for ops that a target has at least for some operands, even if it lists them as lacking. */
static bool always_there(const node *n) {
  switch (n->op) {
  case OP_SHL:
  case OP_SHR:
  case OP_CAST: return true;
  case OP_NEG: return dtype_is_int((dtype)n->dtype);
  case OP_FMA: return n->dtype == DT_F64;
  default: return false;
  }
}

typedef struct lowering {
  const lowered *l;
  trial t;
} lowering;

static void lower_whole(void *arg) {
  lowering *w = arg;
  const node *src[3];
  rule_target target = bare_target();
  rewriter rw = {.ir = w->t.g, .math = MATH_DEFAULT, .target = &target};
  step s = {.rule = "the pipeline"};
  s.before = s.after = whole_op(w->t.g, w->l, src);
  rewrite(&rw, rules_lower, RULES_LOWER, &s.after, 1);
  node_list all = topo_sort(w->t.a, &s.after, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    const node *n = all.at[i];
    if (rule_target_lacks_op(&target, (op)n->op) && !always_there(n))
      fail_msg("%s of %s leaves %s", op_name(w->l->op), dtype_name(w->l->operand),
               op_name((op)n->op));
  }
  comparison c = {.t = &w->t, .s = &s, .type = w->l->result};
  c.tolerance = (tolerance){.ulps = w->l->ulps};
  c.p = program_make(w->t.a, (const node *const[]){s.before, s.after}, 2);
  if (compare_all(&c)) return;
  compare_edges(&c);
  compare_random(&c);
}

static void lower_op(op o, dtype operand, dtype result, size_t n, uint64_t ulps) {
  lowered l = {o, operand, result, n, ulps};
  rule_example e = {.set = op_name(o), .rule = dtype_name(operand)};
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  lowering w = {.l = &l, .t = {.e = &e, .g = ir_new(&mem_system, &d, false), .a = &a}};
  if (diag_catch(&d, lower_whole, &w) != TN_OK)
    fail_msg("%s of %s: %s", op_name(o), dtype_name(operand), d.text);
  ir_free(w.t.g);
  arena_free(&a);
}

static bool takes_cast(int t) { return dtype_is_data((dtype)t) && op_takes(OP_CAST, (dtype)t); }

static void every_cast(void **state) {
  (void)state;
  for (int from = 0; from < DT_LIMIT; from++)
    for (int to = 0; to < DT_LIMIT; to++)
      if (takes_cast(from) && takes_cast(to)) lower_op(OP_CAST, (dtype)from, (dtype)to, 1, 0);
}

static void every_exact_op(void **state) {
  (void)state;
  static const op ops[] = {OP_NEG, OP_ABS, OP_FLOOR, OP_CEIL,     OP_TRUNC, OP_ROUND, OP_ADD,
                           OP_SUB, OP_MUL, OP_DIV,   OP_FLOORDIV, OP_MOD,   OP_MAX,   OP_MIN,
                           OP_SHL, OP_SHR, OP_SQRT,  OP_FMA,      OP_LT,    OP_LE,    OP_EQ,
                           OP_NE,  OP_NOT, OP_AND,   OP_OR,       OP_XOR};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    for (int t = 0; t < DT_LIMIT; t++) {
      if (!dtype_is_data((dtype)t) || !op_takes(ops[i], (dtype)t)) continue;
      bool compares = op_facts_of(ops[i])->type == TYPE_COMPARE;
      lower_op(ops[i], (dtype)t, compares ? DT_BOOL : (dtype)t, op_facts_of(ops[i])->most, 0);
    }
}

/* Vectors and tensors: every node that a rule creates must verify. */

typedef struct shaped {
  ir *g;
  arena *a;
  op op;
  dtype operand, result;
  bool tensor;
} shaped;

/** Makes a source of many elements: a tensor, or a loaded vector. */
static const node *many(const shaped *s, int64_t slot) {
  const node *sizes[] = {ix_const(s->g, 4)};
  const node *param = ir_node(s->g, OP_PARAM, s->operand, sizes, 1, &slot, 1);
  const node *src[] = {param, ix_const(s->g, 0)};
  if (s->tensor) return param;
  return ir_make(
      s->g, &(node_spec){.op = OP_LOAD, .dtype = s->operand, .lanes = 4, .src = src, .n_src = 2});
}

static void check_node(ir *g, const node *n) {
  (void)g;
  const char *wrong = ir_check_spec(&(node_spec){.op = (op)n->op,
                                                 .dtype = (dtype)n->dtype,
                                                 .lanes = n->lanes,
                                                 .src = n->src,
                                                 .n_src = n->n_src,
                                                 .ints = n->ints,
                                                 .n_int = n->n_int,
                                                 .text = n->text,
                                                 .n_text = n->n_text});
  if (wrong) fail_msg("%s of %s: %s", op_name((op)n->op), dtype_name((dtype)n->dtype), wrong);
}

static void lower_shaped(void *arg) {
  shaped *s = arg;
  const node *src[3], *root;
  rule_target target = bare_target();
  rewriter rw = {.ir = s->g, .math = MATH_DEFAULT, .target = &target};
  for (int i = 0; i < op_facts_of(s->op)->most; i++) src[i] = many(s, i);
  root = ir_node(s->g, s->op, s->result, src, op_facts_of(s->op)->most, NULL, 0);
  uint16_t lanes = root->lanes, rank = root->rank;
  rewrite(&rw, rules_lower, RULES_LOWER, &root, 1);
  assert_int_equal(root->lanes, lanes);
  assert_int_equal(root->rank, rank);
  assert_true(s->tensor ? rank == 1 : lanes == 4);
  node_list all = topo_sort(s->a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) check_node(s->g, all.at[i]);
}

static void shape(op o, dtype operand, dtype result, bool tensor) {
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  shaped s = {ir_new(&mem_system, &d, false), &a, o, operand, result, tensor};
  if (diag_catch(&d, lower_shaped, &s) != TN_OK) fail_msg("%s: %s", op_name(o), d.text);
  ir_free(s.g);
  arena_free(&a);
}

static void vectors_and_tensors(void **state) {
  (void)state;
  for (int o = 0; o < OP_LIMIT; o++) {
    const op_facts *f = op_facts_of((op)o);
    if (!op_has_scalar_eval((op)o) || f->type == TYPE_SELECT || f->type == TYPE_FREE) continue;
    for (int t = 0; t < DT_LIMIT; t++)
      if (dtype_is_data((dtype)t) && op_takes((op)o, (dtype)t))
        for (int tensor = 0; tensor < 2; tensor++)
          shape((op)o, (dtype)t, f->type == TYPE_COMPARE ? DT_BOOL : (dtype)t, tensor);
  }
  for (int from = 0; from < DT_LIMIT; from++)
    for (int to = 0; to < DT_LIMIT; to++)
      if (takes_cast(from) && takes_cast(to) && from != to)
        for (int tensor = 0; tensor < 2; tensor++) shape(OP_CAST, (dtype)from, (dtype)to, tensor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule),          cmocka_unit_test(every_type),
      cmocka_unit_test(every_two_casts),     cmocka_unit_test(zeros_of_maxima),
      cmocka_unit_test(indices_as_integers), cmocka_unit_test(gates_of_lowered_kernels),
      cmocka_unit_test(every_cast),          cmocka_unit_test(every_exact_op),
      cmocka_unit_test(vectors_and_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
