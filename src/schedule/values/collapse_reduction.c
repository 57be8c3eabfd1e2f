/* Collapses reductions over index comparisons, as of arange, one-hot, triangular masks and gathers,
   by splitting their index set. A reduction over a range is split by the comparisons in its term:
   where one holds, the term simplified by that is reduced over those indices, and elsewhere over
   the rest. A term that no longer depends on the range needs only a count of indices; where an
   equality gives the index, one element. Exact, but for sums of equal floats, and for the order of
   the parts, which a sum does not have in the default arithmetic. */
#include "schedule/values/collapse_reduction.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"
#include "ir/transform/substitute.h"
#include "rules/simplifying_builder.h"
#include "schedule/values/solve_comparison.h"

#include <math.h>

enum {
  MOST_OPENED = 64, /* values that are substituted into a term, */
  MOST_LEVELS = 16, /* at most so many levels of them */
  MOST_SPLITS = 8,
  MOST_HOLES = 4,
  MOST_DEPTH = 8,
  MOST_SUMMED = 1 << 20 /* bound of sizes and coefficients summed as indices */
};

typedef struct collapsing {
  ir *g;
  arena *a;
  const collapse_request *request;
  dtype type;
  const node *range;
  int splits;        /* splits left */
  const node *total; /* combined parts so far; NULL: none */
  size_t parts;
} collapsing;

/** The indices first … last − 1 of the range, first ≤ last, without the holes whose gates hold. */
typedef struct domain {
  const node *first, *last;
  size_t n;
  struct {
    const node *gate, *at;
  } hole[MOST_HOLES];
} domain;

/* Expressions. */

static bool is_tensor(const node *n, const map *values) {
  return n->op == OP_PARAM || map_has(values, n);
}

static bool is_inside(const node *n, void *user) {
  const collapsing *c = user;
  return !is_tensor(n, c->request->values);
}

static node_list list_expression(const collapsing *c, const node *n) {
  return topo_sort(c->a, &n, 1, is_inside, (void *)c);
}

/** A node with other sources, simplified. */
static const node *rebuild_simplified(ir *g, const node *n, const node *const src[]) {
  if (!op_has_scalar_eval((op)n->op) || n->lanes != 1) return subst_rebuild(g, n, src);
  bool equates = (n->op == OP_EQ || n->op == OP_NE) && src[0]->dtype == DT_INDEX;
  switch (n->n_src) {
  case 1:
    if (n->op == OP_CAST) return simple_cast(g, src[0], (dtype)n->dtype);
    if (n->op == OP_BITCAST) return simple_bitcast(g, src[0], (dtype)n->dtype);
    return simple_op1(g, (op)n->op, src[0]);
  case 2:
    if (!equates) return simple_op2(g, (op)n->op, src[0], src[1]);
    const node *e = solve_equal(g, src[0], src[1]);
    return n->op == OP_EQ ? e : simple_op1(g, OP_NOT, e);
  default: return simple_op3(g, (op)n->op, src[0], src[1], src[2]);
  }
}

/** An expression with nodes replaced by their images; `image` gets the nodes above them too. */
static const node *replace_nodes(const collapsing *c, const node *root, map *image) {
  node_list order = list_expression(c, root);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (map_has(image, n) || !is_inside(n, (void *)c)) continue;
    const node **src = arena_alloc(c->a, (n->n_src + 1) * sizeof *src);
    bool changed = false;
    for (uint32_t k = 0; k < n->n_src; k++) {
      const node *with = map_get(image, n->src[k]);
      src[k] = with ? with : n->src[k];
      changed |= src[k] != n->src[k];
    }
    if (changed) map_set(c->a, image, n, (void *)rebuild_simplified(c->g, n, src));
  }
  const node *made = map_get(image, root);
  return made ? made : root;
}

static const node *replace_node(const collapsing *c, const node *root, const node *from,
                                const node *to) {
  map image = {0};
  map_set(c->a, &image, from, (void *)to);
  return replace_nodes(c, root, &image);
}

static const node *bool_const(const collapsing *c, bool b) {
  return ir_const_bits(c->g, DT_BOOL, b);
}

static const node *and_gates(const collapsing *c, const node *a, const node *b) {
  return simple_op2(c->g, OP_AND, a, b);
}

static const node *select_by(const collapsing *c, const node *g, const node *a, const node *b) {
  bool is_gate = g->op != OP_CONST && a->dtype == DT_BOOL;
  if (is_gate && node_is_bits(b, 0)) return and_gates(c, g, a);
  return simple_op3(c->g, OP_WHERE, g, a, b);
}

static const node *neutral_element(const collapsing *c) {
  uint64_t bits = 0;
  op_identity(c->request->reduce, c->type, &bits);
  return ir_const_bits(c->g, c->type, bits);
}

/* Values that depend on their coordinates are substituted into the term. */

static const node *open_element(const collapsing *c, const node *index) {
  const value *v = map_get(c->request->values, index->src[0]);
  if (!value_is_index_function(v)) return NULL;
  map with = value_coords_at(c->a, v, index);
  return subst_ranges(c->g, v->body, &with);
}

/** The term with such values substituted, up to limits. */
static const node *open_term(const collapsing *c) {
  const node *term = c->request->term;
  size_t left = MOST_OPENED;
  for (int level = 0; level < MOST_LEVELS; level++) {
    map image = {0};
    node_list order = list_expression(c, term);
    for (size_t i = 0; i < order.n && left; i++) {
      const node *with = order.at[i]->op == OP_INDEX ? open_element(c, order.at[i]) : NULL;
      if (!with) continue;
      map_set(c->a, &image, order.at[i], (void *)with);
      left--;
    }
    if (!image.n) break;
    term = replace_nodes(c, term, &image);
  }
  return term;
}

/* Domains. */

static const node *index_in_domain(const collapsing *c, const domain *d, const node *gate,
                                   const node *at) {
  gate = and_gates(c, gate, ix_le(c->g, d->first, at));
  gate = and_gates(c, gate, ix_lt(c->g, at, d->last));
  for (size_t i = 0; i < d->n; i++) {
    const node *same = and_gates(c, d->hole[i].gate, solve_equal(c->g, d->hole[i].at, at));
    gate = and_gates(c, gate, simple_op1(c->g, OP_NOT, same));
  }
  return gate;
}

static const node *count_domain(const collapsing *c, const domain *d) {
  const node *zero = ix_const(c->g, 0), *one = ix_const(c->g, 1);
  const node *n = ix_sub(c->g, d->last, d->first);
  domain holes = *d;
  for (holes.n = 0; holes.n < d->n; holes.n++) {
    const node *gate = index_in_domain(c, &holes, d->hole[holes.n].gate, d->hole[holes.n].at);
    n = ix_sub(c->g, n, simple_op3(c->g, OP_WHERE, gate, one, zero));
  }
  return n;
}

/* Parts of the result. Each function returns false if its part cannot be added. */

/** True if NaN and infinities do not matter. */
static bool is_fast(const collapsing *c) { return (c->request->math & MATH_FAST) == MATH_FAST; }

static bool may_reorder(const collapsing *c) { return math_may_reorder(c->request->math, c->type); }

static bool add_part(collapsing *c, const node *part) {
  c->total = c->total ? simple_op2(c->g, c->request->reduce, c->total, part) : part;
  return c->parts++ == 0 || may_reorder(c);
}

/** True if sums of up to n such terms are exact. */
static bool is_rounding_free(const node *x, int64_t n) {
  dtype t = (dtype)x->dtype;
  double most = t == DT_BF16 ? 0x1p8 : t == DT_F16 ? 0x1p11 : t == DT_F32 ? 0x1p24 : 0x1p53, each;
  if (x->op == OP_CAST && x->src[0]->dtype == DT_BOOL) return (double)n <= most;
  if (x->op != OP_CONST) return false;
  each = fabs(scalar_to_double(t, (uint64_t)node_int(x)));
  return each == floor(each) && each * (double)n <= most;
}

/** True if a float is certainly neither NaN nor infinite. */
static bool is_finite(const node *n, int depth) {
  if (!depth) return false;
  switch (n->op) {
  case OP_CONST: return isfinite(scalar_to_double((dtype)n->dtype, (uint64_t)node_int(n)));
  case OP_CAST:
    if (dtype_is_float((dtype)n->src[0]->dtype)) return false;
    return n->dtype != DT_F16 || (n->src[0]->lo > -65504 && n->src[0]->hi < 65504);
  case OP_NEG:
  case OP_ABS: return is_finite(n->src[0], depth - 1);
  case OP_MIN:
  case OP_MAX: return is_finite(n->src[0], depth - 1) && is_finite(n->src[1], depth - 1);
  case OP_WHERE: return is_finite(n->src[1], depth - 1) && is_finite(n->src[2], depth - 1);
  default: return false;
  }
}

static bool is_zero(const node *n) {
  return n->op == OP_CONST && scalar_to_double((dtype)n->dtype, (uint64_t)node_int(n)) == 0;
}

/** True if terms of this value leave the result as it is. In a sum of floats, which starts at 0,
   both zeros do, and so does 0 times a finite number. */
static bool is_neutral(const collapsing *c, const node *n, int depth) {
  bool is_sum = dtype_is_float(c->type) && c->request->reduce == OP_ADD;
  if (n == neutral_element(c) || (is_sum && is_zero(n))) return true;
  if (!depth) return false;
  if (n->op == OP_WHERE)
    return is_neutral(c, n->src[1], depth - 1) && is_neutral(c, n->src[2], depth - 1);
  for (size_t i = 0; is_sum && n->op == OP_MUL && i < 2; i++)
    if (is_zero(n->src[i]) && (is_fast(c) || is_finite(n->src[1 - i], MOST_DEPTH))) return true;
  return false;
}

static bool add_product(collapsing *c, const node *term, const node *n) {
  bool is_float = dtype_is_float(c->type);
  if (!may_reorder(c) && !is_rounding_free(term, n->hi)) return false;
  dtype wide = c->type == DT_F16 || c->type == DT_BF16 ? DT_F32 : c->type;
  const node *x = simple_cast(c->g, term, wide), *times = simple_cast(c->g, n, wide);
  const node *product = simple_cast(c->g, simple_op2(c->g, OP_MUL, x, times), c->type);
  if (!is_float || is_finite(term, MOST_DEPTH)) return add_part(c, product);
  return add_part(c, select_by(c, ix_lt(c->g, ix_const(c->g, 0), n), product, neutral_element(c)));
}

/** Adds a term that is the same for all indices of a domain. */
static bool add_repeated(collapsing *c, const node *term, const domain *d) {
  const node *n = count_domain(c, d), *zero = ix_const(c->g, 0), *two = ix_const(c->g, 2);
  switch (c->request->reduce) {
  case OP_ADD: return add_product(c, term, n);
  case OP_MAX:
  case OP_MIN:
  case OP_AND:
  case OP_OR: return add_part(c, select_by(c, ix_lt(c->g, zero, n), term, neutral_element(c)));
  case OP_XOR:
    return add_part(
        c, select_by(c, ix_lt(c->g, zero, ix_mod(c->g, n, two)), term, neutral_element(c)));
  default: return false;
  }
}

/** Adds the term at one index, if that is in the domain. */
static bool add_point(collapsing *c, const node *term, const domain *d, const solution *s) {
  const node *gate = index_in_domain(c, d, s->gate, s->first);
  term = replace_node(c, term, c->range, s->first);
  if (node_is_bits(gate, 0) || is_neutral(c, term, MOST_DEPTH)) return true;
  return add_part(c, select_by(c, gate, term, neutral_element(c)));
}

static bool is_summable(const node *n) {
  bool fits = n->lo >= -MOST_SUMMED && n->hi <= MOST_SUMMED && ix_offset(n) <= MOST_SUMMED &&
              ix_offset(n) >= -MOST_SUMMED;
  for (size_t i = 0; fits && i < ix_terms(n); i++)
    fits = ix_coefficient_at(n, i) <= MOST_SUMMED && ix_coefficient_at(n, i) >= -MOST_SUMMED;
  return fits;
}

/** Adds the sum of k·r + rest. */
static bool add_sum(collapsing *c, int64_t k, const node *rest, const domain *d) {
  bool fits = is_summable(d->first) && is_summable(d->last) && is_summable(rest);
  if (!fits || !may_reorder(c)) return false;
  const node *n = count_domain(c, d),
             *ends = ix_add_const(c->g, ix_add(c->g, d->first, d->last), -1);
  const node *sum = ix_floordiv(c->g, ix_mul(c->g, ends, n), ix_const(c->g, 2));
  sum = ix_add(c->g, ix_scale(c->g, sum, k), ix_mul(c->g, rest, n));
  return add_part(c, simple_cast(c->g, sum, c->type));
}

/** Adds a term k·r + rest: its sum, or its maximum or minimum, at one end of the domain. */
static bool add_linear(collapsing *c, const node *term, const domain *d) {
  bool converts = dtype_is_float(c->type) && term->op == OP_CAST;
  const node *a = solve_index(c->g, converts ? term->src[0] : term, c->range);
  int64_t k = a ? ix_coefficient(a, c->range) : 0;
  op o = c->request->reduce;
  if (!k || d->n || !solve_is_small(a)) return false;
  if (converts && !is_finite(term, MOST_DEPTH)) return false;
  const node *rest = ix_sub(c->g, a, ix_scale(c->g, c->range, k));
  if (node_is_free_in(c->range, rest)) return false;
  if (o == OP_ADD) return add_sum(c, k, rest, d);
  if (o != OP_MAX && o != OP_MIN) return false;
  const node *end = (k > 0) == (o == OP_MAX) ? ix_add_const(c->g, d->last, -1) : d->first;
  const node *at = replace_node(c, term, c->range, end);
  return add_part(c, select_by(c, ix_lt(c->g, d->first, d->last), at, neutral_element(c)));
}

/* Splitting by comparisons. */

/** A solvable comparison in a term: of one index (`equates`), or between two; NULL: none. */
static const node *find_comparison(const collapsing *c, const node *term, bool equates,
                                   solution *s) {
  node_list order = list_expression(c, term);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_inside(n, (void *)c) || !solve_is_solvable(n, c->range)) continue;
    if (solve_comparison(c->g, n, c->range, s) && !s->last == equates) return n;
  }
  return NULL;
}

static bool reads_at_range(const collapsing *c, const node *term) {
  node_list order = list_expression(c, term);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && node_is_free_in(c->range, order.at[i])) return true;
  return false;
}

static bool add_terms(collapsing *c, const node *term, const domain *d);

static bool split_at_point(collapsing *c, const node *there, const node *elsewhere, const domain *d,
                           const solution *s) {
  domain rest = *d;
  if (d->n == MOST_HOLES || !add_point(c, there, d, s)) return false;
  rest.hole[rest.n].gate = s->gate;
  rest.hole[rest.n++].at = s->first;
  return add_terms(c, elsewhere, &rest);
}

static const node *clamp_to_domain(const collapsing *c, const node *limit, const domain *d) {
  return ix_max(c->g, ix_min(c->g, limit, d->last), d->first);
}

static bool split_at_block(collapsing *c, const node *there, const node *elsewhere, const domain *d,
                           const solution *s) {
  domain low = *d, in = *d, high = *d;
  low.last = in.first = s->first ? clamp_to_domain(c, s->first, d) : d->first;
  in.last = high.first = clamp_to_domain(c, s->last, d);
  if (s->first && !add_terms(c, elsewhere, &low)) return false;
  return add_terms(c, there, &in) && add_terms(c, elsewhere, &high);
}

/** Recurses as deep as comparisons are nested in a term, at most MOST_SPLITS. */
static bool add_terms(collapsing *c, const node *term, const domain *d) {
  solution s;
  if (is_neutral(c, term, MOST_DEPTH)) return true;
  if (!node_is_free_in(c->range, term)) return add_repeated(c, term, d);
  if (c->splits-- <= 0) return false;
  const node *by = find_comparison(c, term, true, &s);
  if (!by && !reads_at_range(c, term)) by = find_comparison(c, term, false, &s);
  if (!by) return add_linear(c, term, d);
  if (!s.gate) s.gate = bool_const(c, true);
  const node *there = replace_node(c, term, by, bool_const(c, !s.is_negated));
  const node *elsewhere = replace_node(c, term, by, bool_const(c, s.is_negated));
  return s.last ? split_at_block(c, there, elsewhere, d, &s)
                : split_at_point(c, there, elsewhere, d, &s);
}

/* Ranges. */

/** The reduction of a term over a range, without the range; NULL: not found. */
static const node *reduce_over_range(collapsing *c, const node *term, const node *range) {
  domain all = {.first = ix_const(c->g, 0), .last = range_extent(range)};
  c->range = range;
  c->splits = MOST_SPLITS;
  c->total = NULL;
  c->parts = 0;
  if (!add_terms(c, term, &all)) return NULL;
  return c->total ? c->total : neutral_element(c);
}

/** Removes one range from the request and the term; false: none can be removed. */
static bool collapse_one(collapsing *c, collapse_request *r, const node **term) {
  for (size_t i = 0; i < r->n; i++) {
    const node *without = reduce_over_range(c, *term, r->ranges[i]);
    if (!without) continue;
    *term = without;
    for (r->n--; i < r->n; i++) r->ranges[i] = r->ranges[i + 1];
    return true;
  }
  return false;
}

/** The result combined with the start, as a sum that starts at 0 is never −0. */
static const node *add_start(const collapsing *c, const node *total) {
  bool is_counted = total->op == OP_CAST && !dtype_is_float((dtype)total->src[0]->dtype);
  return is_counted ? total : simple_op2(c->g, c->request->reduce, total, neutral_element(c));
}

static bool is_worth_trying(ir *g, const collapse_request *r) {
  for (size_t i = 0; i < r->n; i++)
    if (!node_is_free_in(r->ranges[i], r->term)) return true;
  return value_depends_on_coords(g, r->values, r->term);
}

const node *collapse_reduction(ir *g, collapse_request *r) {
  collapsing c = {.g = g, .a = ir_scratch(g), .request = r, .type = (dtype)r->term->dtype};
  size_t n = r->n;
  if (!is_worth_trying(g, r) || (n > 1 && !may_reorder(&c))) return NULL;
  arena_mark here = arena_save(c.a);
  const node *term = open_term(&c);
  while (r->n && collapse_one(&c, r, &term)) {}
  arena_rewind(c.a, here);
  if (r->n == n) return NULL;
  return r->n ? term : add_start(&c, term);
}
