/* Tests the rewrite rules of movement ops (reshape, permute, slice, pad, …) on random chains of
   these ops: sizes 0, 1 and unknown, steps of both signs, every type. Each rewrite that fires is
   evaluated on both sides. */
#include "evaluate.h"

#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "rules/rule_sets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CHAINS = 9000, LENGTH = 4, MOST_RANK = 4, MOST_STEPS = 64, MOST_RULES = 32 };

typedef struct chain {
  ir *g;
  arena *a;
  uint64_t state;
  dtype type;
  const node *x, *last_pad; /* last_pad: the value of the latest PAD */
  int64_t slots;            /* parameters so far */
  interp_var vars[2];
  struct {
    const node *before, *after;
    const char *rule;
  } steps[MOST_STEPS];
  size_t n_steps;
} chain;

/** Kinds of arrays that each rule fired on. */
typedef struct tally {
  const char *rule;
  size_t fired, empty, unknown, backwards;
  uint32_t types;
} tally;

static tally tallies[MOST_RULES];

static size_t below(chain *c, size_t n) {
  return (size_t)(random_value(DT_U64, &c->state) >> 7) % n;
}

static bool chance(chain *c, size_t percent) { return below(c, 100) < percent; }

/* Sizes. */

static const node *unknown(chain *c, size_t i) {
  int64_t bounds[] = {i ? 1 : 0, 6}; /* the first may be 0 */
  return ir_make(c->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = c->vars[i].name,
                                    .n_text = strlen(c->vars[i].name)});
}

static const node *any_size(chain *c) {
  static const int64_t sizes[] = {0, 1, 1, 1, 2, 3, 5};
  if (chance(c, 25)) return unknown(c, below(c, 2));
  return ix_const(c->g, sizes[below(c, sizeof sizes / sizeof *sizes)]);
}

static const node *input(chain *c, size_t rank, const node *const dims[]) {
  int64_t slot = c->slots++;
  return ir_node(c->g, OP_PARAM, c->type, dims, rank, &slot, 1);
}

/* Ops. */

static const node *reshaped(chain *c, const node *x) {
  const node *dims[MOST_RANK];
  size_t n = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool merges = n && chance(c, 30);
    if (merges)
      dims[n - 1] = ix_mul(c->g, dims[n - 1], x->dims[i]);
    else
      dims[n++] = x->dims[i];
  }
  if (n < MOST_RANK && chance(c, 50)) dims[n++] = ix_const(c->g, 1);
  return ir_reshape(c->g, x, n, dims);
}

static const node *expanded(chain *c, const node *x) {
  const node *dims[MOST_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    dims[i] = x->dims[i];
    if (!node_is_bits(dims[i], 1) || chance(c, 60)) continue;
    while (node_is_bits(dims[i], 1)) dims[i] = any_size(c);
  }
  return ir_expand(c->g, x, dims);
}

static const node *permuted(chain *c, const node *x) {
  int64_t axes[MOST_RANK];
  for (uint32_t i = 0; i < x->rank; i++) axes[i] = i;
  for (uint32_t i = x->rank; i > 1; i--) {
    size_t k = below(c, i);
    int64_t swapped = axes[k];
    axes[k] = axes[i - 1];
    axes[i - 1] = swapped;
  }
  return ir_permute(c->g, x, axes);
}

/** Random part of an axis: start + step·(size − 1) is inside. */
static void choose_slice(chain *c, const node *dim, const node **start, const node **size,
                         int64_t *step) {
  *start = ix_const(c->g, 0);
  *size = dim;
  *step = 1;
  if (chance(c, 30)) return;
  if (dim->op != OP_CONST) {
    if (dim->lo < 1) return;
    *step = chance(c, 50) ? -1 : 1; /* reversed, or without the first element */
    *start = *step < 0 ? ix_add_const(c->g, dim, -1) : ix_const(c->g, 1);
    *size = *step < 0 ? dim : ix_add_const(c->g, dim, -1);
    return;
  }
  int64_t n = node_int(dim), by = 1 + (int64_t)below(c, 3), first = n ? (int64_t)below(c, n) : 0;
  *step = chance(c, 50) ? by : -by;
  int64_t most = !n ? 0 : *step > 0 ? (n - 1 - first) / by + 1 : first / by + 1;
  *start = ix_const(c->g, first);
  *size = ix_const(c->g, most && chance(c, 90) ? most - (int64_t)below(c, most) : 0);
}

static const node *sliced(chain *c, const node *x) {
  const node *starts[MOST_RANK], *sizes[MOST_RANK];
  int64_t steps[MOST_RANK];
  for (uint32_t i = 0; i < x->rank; i++)
    choose_slice(c, x->dims[i], &starts[i], &sizes[i], &steps[i]);
  return ir_slice(c->g, x, starts, sizes, steps);
}

static const node *padded(chain *c, const node *x) {
  const node *lows[MOST_RANK], *sizes[MOST_RANK];
  bool none = chance(c, 20);
  for (uint32_t i = 0; i < x->rank; i++) {
    lows[i] = none || chance(c, 50) ? ix_const(c->g, 0)
              : chance(c, 25)       ? unknown(c, 0)
                                    : ix_const(c->g, 2);
    const node *high = ix_const(c->g, none ? 0 : (int64_t)below(c, 3));
    sizes[i] = ix_add(c->g, ix_add(c->g, x->dims[i], lows[i]), high);
  }
  if (!c->last_pad || chance(c, 20)) c->last_pad = input(c, 0, NULL);
  return ir_pad(c->g, x, c->last_pad, lows, sizes);
}

static const node *reduced_over_nothing(chain *c, const node *x) {
  static const op ops[] = {OP_ADD, OP_MUL, OP_MAX, OP_MIN, OP_AND, OP_OR, OP_XOR};
  op o = ops[below(c, sizeof ops / sizeof *ops)];
  return op_takes(o, c->type) ? ir_reduce(c->g, x, o, 0, NULL) : x;
}

enum { RESHAPED, EXPANDED, PERMUTED, SLICED, PADDED, REDUCED, WAYS };

static const node *moved(chain *c, const node *x, size_t way) {
  switch (way) {
  case RESHAPED: return reshaped(c, x);
  case EXPANDED: return expanded(c, x);
  case PERMUTED: return permuted(c, x);
  case SLICED: return sliced(c, x);
  case PADDED: return padded(c, x);
  default: return reduced_over_nothing(c, x);
  }
}

static const node *start(chain *c, size_t way) {
  const node *dims[MOST_RANK];
  size_t rank = below(c, MOST_RANK + 1);
  for (size_t i = 0; i < rank; i++)
    dims[i] = way == EXPANDED && chance(c, 60) ? ix_const(c->g, 1) : any_size(c);
  if (chance(c, 80)) return input(c, rank, dims);
  uint64_t bits = random_value(c->type, &c->state);
  return ir_fill(c->g, ir_const_bits(c->g, c->type, bits), rank, dims);
}

/* Running. */

static void fired(void *user, const char *rule, const node *before, const node *after) {
  chain *c = user;
  if (c->n_steps == MOST_STEPS) return;
  c->steps[c->n_steps].rule = rule;
  c->steps[c->n_steps].before = before;
  c->steps[c->n_steps++].after = after;
}

static int64_t value_of(const chain *c, const node *size) {
  const node *names[] = {size};
  program p = program_make(c->a, names, 1);
  uint64_t inputs[MOST_INPUTS] = {0};
  for (size_t i = 0; i < p.inputs; i++)
    inputs[i] = (uint64_t)c->vars[p.input[i]->text[0] != c->vars[0].name[0]].value;
  assert_true(program_run(&p, inputs));
  return (int64_t)program_result(&p, 0);
}

static interp_array filled(chain *c, const node *param) {
  interp_array a = {.dtype = (dtype)param->dtype, .rank = param->rank};
  size_t count = 1, bytes = dtype_bytes(a.dtype);
  for (size_t i = 0; i < param->rank; i++)
    count *= (size_t)(a.dims[i] = value_of(c, param->dims[i]));
  a.bytes = count * bytes;
  a.data = arena_alloc(c->a, a.bytes + 1);
  for (size_t i = 0; i < count; i++)
    scalar_store(a.dtype, (char *)a.data + i * bytes, random_value(a.dtype, &c->state));
  return a;
}

/** True if two arrays are equal up to the bits of NaN. */
static bool same_array(const interp_array *x, const interp_array *y) {
  size_t bytes = dtype_bytes(x->dtype);
  if (x->dtype != y->dtype || x->bytes != y->bytes || x->rank != y->rank) return false;
  for (size_t i = 0; i < x->rank; i++)
    if (x->dims[i] != y->dims[i]) return false;
  for (size_t i = 0; i < x->bytes; i += bytes) {
    uint64_t a = scalar_load(x->dtype, (char *)x->data + i);
    uint64_t b = scalar_load(y->dtype, (char *)y->data + i);
    bool nan = dtype_is_float(x->dtype) && isnan(scalar_to_double(x->dtype, a)) &&
               isnan(scalar_to_double(x->dtype, b));
    if (a != b && !nan) return false;
  }
  return true;
}

static void compare(chain *c, const node *before, const node *after, const char *rule) {
  const node *roots[] = {before, after};
  interp_array *params = arena_calloc(c->a, (size_t)c->slots, sizeof *params), results[2];
  node_list all = topo_sort(c->a, roots, 2, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_PARAM) params[all.at[i]->ints[0]] = filled(c, all.at[i]);
  interp_env env = {.params = params, .n_params = (size_t)c->slots, .vars = c->vars, .n_vars = 2};
  if (interp_tensor(&env, roots, 2, results, c->a) != TN_OK) diag_rethrow(c->a->diag);
  if (!same_array(&results[0], &results[1]))
    fail_msg("%s changes the result of a chain of %s", rule, dtype_name(c->type));
}

static void count(const chain *c, size_t step) {
  const node *n = c->steps[step].before;
  size_t i = 0;
  while (i + 1 < MOST_RULES && tallies[i].rule && strcmp(tallies[i].rule, c->steps[step].rule)) i++;
  tally *t = &tallies[i];
  bool empty = false, unknown = false, backwards = false;
  for (uint32_t k = 0; k < n->rank; k++) {
    empty |= value_of(c, n->dims[k]) == 0;
    unknown |= n->dims[k]->op != OP_CONST;
    backwards |= n->op == OP_SLICE && n->ints[k] < 0;
  }
  t->rule = c->steps[step].rule;
  t->fired++;
  t->empty += empty;
  t->unknown += unknown;
  t->backwards += backwards;
  t->types |= UINT32_C(1) << c->type;
}

static void body(void *user) {
  chain *c = user;
  static const rewrite_rule_set set = rules_movement;
  rewriter rw = {.ir = c->g, .math = MATH_EXACT, .fired = fired, .user = c};
  size_t way = below(c, WAYS);
  const node *x = start(c, way), *root;
  for (size_t i = 0; i < LENGTH; i++) {
    x = moved(c, x, way); /* repeats an op often, so that rules compose the two */
    if (chance(c, 40)) way = below(c, WAYS);
  }
  root = x;
  rewrite(&rw, &set, 1, &root, 1);
  for (size_t i = 0; i < c->n_steps; i++) {
    count(c, i);
    compare(c, c->steps[i].before, c->steps[i].after, c->steps[i].rule);
  }
  compare(c, x, root, "the whole");
}

static void run_chain(uint64_t seed) {
  chain c = {.state = seed};
  diag d = {0};
  arena a;
  do c.type = (dtype)below(&c, DT_LIMIT);
  while (!dtype_is_data(c.type));
  c.vars[0] = (interp_var){"n", (int64_t)below(&c, 7)};
  c.vars[1] = (interp_var){"m", 1 + (int64_t)below(&c, 6)};
  arena_init(&a, &mem_system, &d);
  c.a = &a;
  c.g = ir_new(&mem_system, &d, false);
  if (diag_catch(&d, body, &c) != TN_OK)
    fail_msg("chain %llu: %s", (unsigned long long)seed, d.text);
  ir_free(c.g);
  arena_free(&a);
}

static void chains(void **state) {
  (void)state;
  for (uint64_t i = 0; i < CHAINS; i++) run_chain(i);
}

static int bits(uint32_t set) {
  int n = 0;
  for (; set; set &= set - 1) n++;
  return n;
}

static bool named(const tally *t, const char *part) { return strstr(t->rule, part) != NULL; }

/** Checks that every rule of movement.rules fired on every kind of array that it applies to. */
static void everything_was_met(void **state) {
  (void)state;
  static const char *const rules[] = {"reshape-constant", "expand-constant", "permute-constant",
                                      "slice-constant",   "reshape-same",    "reshape-reshape",
                                      "expand-same",      "expand-expand",   "permute-same",
                                      "permute-permute",  "slice-same",      "slice-slice",
                                      "pad-same",         "pad-pad",         "reduce-nothing"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const tally *t = tallies;
    while (t->rule && strcmp(t->rule, rules[i])) t++;
    if (!t->rule) fail_msg("%s never fired", rules[i]);
    print_message("%-16s %4zu, %3zu empty, %3zu of unknown size, %3zu backwards, %d types\n",
                  t->rule, t->fired, t->empty, t->unknown, t->backwards, bits(t->types));
    int types = named(t, "reduce-nothing") ? 13 : 23; /* storage types are moved alone */
    assert_true(t->fired >= 50 && t->empty >= 5 && t->unknown >= 10 && bits(t->types) == types);
    if (named(t, "slice") && !named(t, "same")) assert_true(t->backwards >= 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains),
      cmocka_unit_test(everything_was_met),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
