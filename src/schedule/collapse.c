/* A reduction is taken apart by the comparisons in its term: what the term is where one holds is
   reduced over the indices where it does, and the rest over the rest. Where the term no longer
   depends on the range, a count of indices is all that is needed of it; where an equality gives the
   index, one element. That is exact, but for sums of floats that are the same, and for the order of
   what is left, which a sum does not have in the default arithmetic. */
#include "schedule/collapse.h"

#include "ir/binder.h"
#include "ir/rewrite.h"
#include "ir/subst.h"
#include "rules/simple.h"
#include "schedule/groups.h"
#include "schedule/solve.h"

#include <math.h>

enum {
  MOST_OPENED = 64, /* values that a term is put together from, */
  MOST_LEVELS = 16, /* so many behind each other */
  MOST_SPLITS = 8,
  MOST_HOLES = 4,
  MOST_DEPTH = 8,
  MOST_SUMMED = 1 << 20 /* of what is summed as indices: sizes, and the factors in them */
};

typedef struct collapsing {
  ir *g;
  arena *a;
  const collapse_request *request;
  dtype type;
  const node *range;
  int splits;        /* left */
  const node *total; /* of the parts so far; NULL: there are none */
  size_t parts;
} collapsing;

/** The indices first … last − 1 of the range, first ≤ last, but for those of holes whose gates
 * hold.
 */
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

static node_list parts_of(const collapsing *c, const node *n) {
  return topo_sort(c->a, &n, 1, is_inside, (void *)c);
}

/** A node with other sources, and what is known then folded. */
static const node *remade(ir *g, const node *n, const node *const src[]) {
  if (!op_is_scalar((op)n->op) || n->lanes != 1) return subst_rebuild(g, n, src);
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

/** An expression with nodes replaced: `image` has what stands for them, and gets the rest. */
static const node *replaced(const collapsing *c, const node *root, map *image) {
  node_list order = parts_of(c, root);
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
    if (changed) map_set(c->a, image, n, (void *)remade(c->g, n, src));
  }
  const node *made = map_get(image, root);
  return made ? made : root;
}

static const node *replaced_one(const collapsing *c, const node *root, const node *from,
                                const node *to) {
  map image = {0};
  map_set(c->a, &image, from, (void *)to);
  return replaced(c, root, &image);
}

static const node *truth(const collapsing *c, bool b) { return ir_const_bits(c->g, DT_BOOL, b); }

static const node *both(const collapsing *c, const node *a, const node *b) {
  return simple_op2(c->g, OP_AND, a, b);
}

static const node *select(const collapsing *c, const node *g, const node *a, const node *b) {
  bool is_gate = g->op != OP_CONST && a->dtype == DT_BOOL;
  if (is_gate && node_is_bits(b, 0)) return both(c, g, a);
  return simple_op3(c->g, OP_WHERE, g, a, b);
}

static const node *start(const collapsing *c) {
  uint64_t bits = 0;
  op_identity(c->request->reduce, c->type, &bits);
  return ir_const_bits(c->g, c->type, bits);
}

/* Values whose elements depend on where they are take part in the term as what they are. */

static bool is_open(const value *v) {
  return v && v->has_places && v->body && !value_is_reduction(v) && !v->only_loaded && !v->stores.n;
}

static bool compares_places(const node *n) {
  if (n->op == OP_CAST && n->src[0]->dtype == DT_INDEX) return n->free->n;
  return op_get((op)n->op)->type == TYPE_COMPARE && n->src[0]->dtype == DT_INDEX && n->free->n;
}

bool schedule_has_places(ir *g, const map *values, const node *body) {
  collapse_request r = {.values = values};
  collapsing c = {.g = g, .a = ir_arena(g), .request = &r};
  node_list order = parts_of(&c, body);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_inside(n, &c)) continue;
    if (n->op == OP_INDEX ? is_open(map_get(values, n->src[0])) : compares_places(n)) return true;
  }
  return false;
}

static const node *opened(const collapsing *c, const node *index) {
  const value *v = map_get(c->request->values, index->src[0]);
  if (!is_open(v)) return NULL;
  map with = coords_at(c->a, v, index, NULL);
  return subst_ranges(c->g, v->body, &with);
}

/** The term over elements that are only loaded or reduced; what takes too much stays as it is. */
static const node *whole_term(const collapsing *c) {
  const node *term = c->request->term;
  size_t left = MOST_OPENED;
  for (int level = 0; level < MOST_LEVELS; level++) {
    map image = {0};
    node_list order = parts_of(c, term);
    for (size_t i = 0; i < order.n && left; i++) {
      const node *with = order.at[i]->op == OP_INDEX ? opened(c, order.at[i]) : NULL;
      if (!with) continue;
      map_set(c->a, &image, order.at[i], (void *)with);
      left--;
    }
    if (!image.n) break;
    term = replaced(c, term, &image);
  }
  return term;
}

/* Indices of a domain. */

static const node *within(const collapsing *c, const domain *d, const node *gate, const node *at) {
  gate = both(c, gate, ix_le(c->g, d->first, at));
  gate = both(c, gate, ix_lt(c->g, at, d->last));
  for (size_t i = 0; i < d->n; i++) {
    const node *same = both(c, d->hole[i].gate, solve_equal(c->g, d->hole[i].at, at));
    gate = both(c, gate, simple_op1(c->g, OP_NOT, same));
  }
  return gate;
}

static const node *count(const collapsing *c, const domain *d) {
  const node *zero = ix_const(c->g, 0), *one = ix_const(c->g, 1);
  const node *n = ix_sub(c->g, d->last, d->first);
  domain holes = *d;
  for (holes.n = 0; holes.n < d->n; holes.n++) {
    const node *gate = within(c, &holes, d->hole[holes.n].gate, d->hole[holes.n].at);
    n = ix_sub(c->g, n, simple_op3(c->g, OP_WHERE, gate, one, zero));
  }
  return n;
}

/* Parts of the result. Each says whether it could be added. */

/** Whether NaN and infinities do not matter. */
static bool is_fast(const collapsing *c) { return (c->request->math & MATH_FAST) == MATH_FAST; }

static bool may_reorder(const collapsing *c) { return math_may_reorder(c->request->math, c->type); }

static bool add_part(collapsing *c, const node *part) {
  c->total = c->total ? simple_op2(c->g, c->request->reduce, c->total, part) : part;
  return c->parts++ == 0 || may_reorder(c);
}

/** Whether sums of up to n such terms are exact, all of them. */
static bool is_rounding_free(const node *x, int64_t n) {
  dtype t = (dtype)x->dtype;
  double most = t == DT_BF16 ? 0x1p8 : t == DT_F16 ? 0x1p11 : t == DT_F32 ? 0x1p24 : 0x1p53, each;
  if (x->op == OP_CAST && x->src[0]->dtype == DT_BOOL) return (double)n <= most;
  if (x->op != OP_CONST) return false;
  each = fabs(scalar_to_double(t, (uint64_t)node_int(x)));
  return each == floor(each) && each * (double)n <= most;
}

/** Whether a float is no NaN and no infinity. */
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

/** Whether terms of this value change nothing. Both zeros of floats are none in a sum, which starts
    at 0; and 0 times what is finite is one of them. */
static bool is_neutral(const collapsing *c, const node *n, int depth) {
  bool is_sum = dtype_is_float(c->type) && c->request->reduce == OP_ADD;
  if (n == start(c) || (is_sum && is_zero(n))) return true;
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
  return add_part(c, select(c, ix_lt(c->g, ix_const(c->g, 0), n), product, start(c)));
}

/** The same term for all indices of a domain. */
static bool add_repeated(collapsing *c, const node *term, const domain *d) {
  const node *n = count(c, d), *zero = ix_const(c->g, 0), *two = ix_const(c->g, 2);
  switch (c->request->reduce) {
  case OP_ADD: return add_product(c, term, n);
  case OP_MAX:
  case OP_MIN:
  case OP_AND:
  case OP_OR: return add_part(c, select(c, ix_lt(c->g, zero, n), term, start(c)));
  case OP_XOR:
    return add_part(c, select(c, ix_lt(c->g, zero, ix_mod(c->g, n, two)), term, start(c)));
  default: return false;
  }
}

/** The term at one index, if that is in the domain. */
static bool add_point(collapsing *c, const node *term, const domain *d, const solution *s) {
  const node *gate = within(c, d, s->gate, s->first);
  term = replaced_one(c, term, c->range, s->first);
  if (node_is_bits(gate, 0) || is_neutral(c, term, MOST_DEPTH)) return true;
  return add_part(c, select(c, gate, term, start(c)));
}

static bool is_summable(const node *n) {
  bool fits = n->lo >= -MOST_SUMMED && n->hi <= MOST_SUMMED && ix_offset(n) <= MOST_SUMMED &&
              ix_offset(n) >= -MOST_SUMMED;
  for (size_t i = 0; fits && i < ix_terms(n); i++)
    fits = ix_factor(n, i) <= MOST_SUMMED && ix_factor(n, i) >= -MOST_SUMMED;
  return fits;
}

/** The sum of k·r + rest. */
static bool add_sum(collapsing *c, int64_t k, const node *rest, const domain *d) {
  bool fits = is_summable(d->first) && is_summable(d->last) && is_summable(rest);
  if (!fits || !may_reorder(c)) return false;
  const node *n = count(c, d), *ends = ix_add_const(c->g, ix_add(c->g, d->first, d->last), -1);
  const node *sum = ix_floordiv(c->g, ix_mul(c->g, ends, n), ix_const(c->g, 2));
  sum = ix_add(c->g, ix_scale(c->g, sum, k), ix_mul(c->g, rest, n));
  return add_part(c, simple_cast(c->g, sum, c->type));
}

/** A term that is k·r + rest: its sum, or its greatest or least, at one of the ends. */
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
  const node *at = replaced_one(c, term, c->range, end);
  return add_part(c, select(c, ix_lt(c->g, d->first, d->last), at, start(c)));
}

/* Taking apart. */

/** A comparison that says of the range where it holds: at one index (or not there), or between two.
 */
static const node *comparison(const collapsing *c, const node *term, bool equates, solution *s) {
  node_list order = parts_of(c, term);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_inside(n, (void *)c) || !solve_is_comparison(n, c->range)) continue;
    if (solve_comparison(c->g, n, c->range, s) && !s->last == equates) return n;
  }
  return NULL;
}

static bool reads_at_range(const collapsing *c, const node *term) {
  node_list order = parts_of(c, term);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && node_is_free_in(c->range, order.at[i])) return true;
  return false;
}

static bool add_terms(collapsing *c, const node *term, const domain *d);

static bool add_around_point(collapsing *c, const node *there, const node *elsewhere,
                             const domain *d, const solution *s) {
  domain rest = *d;
  if (d->n == MOST_HOLES || !add_point(c, there, d, s)) return false;
  rest.hole[rest.n].gate = s->gate;
  rest.hole[rest.n++].at = s->first;
  return add_terms(c, elsewhere, &rest);
}

static const node *brought_into(const collapsing *c, const node *limit, const domain *d) {
  return ix_max(c->g, ix_min(c->g, limit, d->last), d->first);
}

static bool add_around_block(collapsing *c, const node *there, const node *elsewhere,
                             const domain *d, const solution *s) {
  domain low = *d, in = *d, high = *d;
  low.last = in.first = s->first ? brought_into(c, s->first, d) : d->first;
  in.last = high.first = brought_into(c, s->last, d);
  if (s->first && !add_terms(c, elsewhere, &low)) return false;
  return add_terms(c, there, &in) && add_terms(c, elsewhere, &high);
}

/** The depth is that of comparisons in a term, of which there are few. */
static bool add_terms(collapsing *c, const node *term, const domain *d) {
  solution s;
  if (is_neutral(c, term, MOST_DEPTH)) return true;
  if (!node_is_free_in(c->range, term)) return add_repeated(c, term, d);
  if (c->splits-- <= 0) return false;
  const node *by = comparison(c, term, true, &s);
  if (!by && !reads_at_range(c, term)) by = comparison(c, term, false, &s);
  if (!by) return add_linear(c, term, d);
  if (!s.gate) s.gate = truth(c, true);
  const node *there = replaced_one(c, term, by, truth(c, !s.is_inverse));
  const node *elsewhere = replaced_one(c, term, by, truth(c, s.is_inverse));
  return s.last ? add_around_block(c, there, elsewhere, d, &s)
                : add_around_point(c, there, elsewhere, d, &s);
}

/* Ranges. */

/** The sum of all parts of a term over a range; NULL: there is none without it. */
static const node *over_range(collapsing *c, const node *term, const node *range) {
  domain all = {.first = ix_const(c->g, 0), .last = range_extent(range)};
  c->range = range;
  c->splits = MOST_SPLITS;
  c->total = NULL;
  c->parts = 0;
  if (!add_terms(c, term, &all)) return NULL;
  return c->total ? c->total : start(c);
}

/** One range less in the request, and the term without it; false: all of them stay. */
static bool take_one(collapsing *c, collapse_request *r, const node **term) {
  for (size_t i = 0; i < r->n; i++) {
    const node *without = over_range(c, *term, r->ranges[i]);
    if (!without) continue;
    *term = without;
    for (r->n--; i < r->n; i++) r->ranges[i] = r->ranges[i + 1];
    return true;
  }
  return false;
}

/** The result, where it may be −0: a sum starts at 0. */
static const node *from_start(const collapsing *c, const node *total) {
  bool is_counted = total->op == OP_CAST && !dtype_is_float((dtype)total->src[0]->dtype);
  return is_counted ? total : simple_op2(c->g, c->request->reduce, total, start(c));
}

static bool is_worth_trying(ir *g, const collapse_request *r) {
  for (size_t i = 0; i < r->n; i++)
    if (!node_is_free_in(r->ranges[i], r->term)) return true;
  return schedule_has_places(g, r->values, r->term);
}

const node *schedule_collapse(ir *g, collapse_request *r) {
  collapsing c = {.g = g, .a = ir_arena(g), .request = r, .type = (dtype)r->term->dtype};
  size_t n = r->n;
  if (!is_worth_trying(g, r) || (n > 1 && !may_reorder(&c))) return NULL;
  const node *term = whole_term(&c);
  while (r->n && take_one(&c, r, &term)) {}
  if (r->n == n) return NULL;
  return r->n ? term : from_start(&c, term);
}
