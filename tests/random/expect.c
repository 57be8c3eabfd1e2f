/* Computes the expected values of a graph's roots by interpreting the graph, and error bounds of
   their elements by forward error propagation in topological order: each op has a tolerance of its
   own, and is evaluated at the ends of its operands' intervals. Compares results with values and
   bounds. */
#include "expect.h"

#include "generate.h"

#include "base/map.h"
#include "ir/core/scalar_eval.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"

#include <float.h>
#include <math.h>
#include <string.h>

expect_counts expect_counted;

/** Values and bounds of all nodes that are data. */
typedef struct expecting {
  const graph *g;
  arena *a;
  node_list nodes;
  interp_array *values;
  map number;           /* node → its place in `nodes`, + 1 */
  const double **bound; /* NULL: exact */
} expecting;

/* Tolerances, by type: of a function of the C library, and of one rounding. */

static double function_tolerance(dtype t) {
  switch (t) {
  case DT_F64: return 1e-12;
  case DT_F32: return 1e-5;
  case DT_F16: return 4e-3;
  default: return 1e-2;
  }
}

static double rounding(dtype t) { return ldexp(1, -dtype_facts_of(t)->mantissa_bits - 1); }

static double greatest(dtype t) {
  const dtype_facts *f = dtype_facts_of(t);
  return ldexp(2 - ldexp(1, -f->mantissa_bits), (1 << (f->exponent_bits - 1)) - 1);
}

static double least(dtype t) {
  const dtype_facts *f = dtype_facts_of(t);
  return ldexp(1, 2 - (1 << (f->exponent_bits - 1)) - f->mantissa_bits);
}

/* Elements. */

static size_t count_of(const interp_array *a) { return a->bytes / dtype_bytes(a->dtype); }

static uint64_t bits_at(const interp_array *a, size_t i) {
  return scalar_load(a->dtype, (const char *)a->data + i * dtype_bytes(a->dtype));
}

static double number_at(const interp_array *a, size_t i) {
  return scalar_to_double(a->dtype, bits_at(a, i));
}

static size_t place(const expecting *x, const node *n) {
  return (size_t)(uintptr_t)map_get(&x->number, n) - 1;
}

static const interp_array *value_of(const expecting *x, const node *n) {
  return &x->values[place(x, n)];
}

static const double *bound_of(const expecting *x, const node *n) {
  return n->dtype == DT_INDEX ? NULL : x->bound[place(x, n)];
}

static double *new_bound(expecting *x, const node *n, double at_first) {
  size_t count = count_of(value_of(x, n));
  double *b = arena_alloc(x->a, (count + 1) * sizeof *b);
  for (size_t i = 0; i < count; i++) b[i] = at_first;
  return b;
}

/* Elementwise. */

/** True for an exponential that may be 0: one below twice the least normal number, and, as operands
    may differ a little, below three times. */
static bool may_flush(const node *n, int math, double v) {
  const dtype_facts *f = dtype_facts_of(n->dtype);
  return n->op == OP_EXP && (math & MATH_FLUSH) && v < ldexp(3, 2 - (1 << (f->exponent_bits - 1)));
}

/** Returns the error that an approximate op adds to its result v. */
static double own_error(const node *n, int math, double v, double a, double b) {
  dtype t = (dtype)n->dtype;
  if (!is_approximate(n, math)) return 0;
  if (n->op == OP_ADD || n->op == OP_SUB) return 2 * rounding(t) * (fabs(a) + fabs(b)) + least(t);
  return (may_flush(n, math, v) ? 1 : function_tolerance(t)) * fabs(v) + 4 * least(t);
}

/** A bound on |y − v|, where y is the result for other operands. */
static double distance(dtype t, uint64_t v, uint64_t y) {
  if (same_scalar(t, v, y)) return 0;
  if (!dtype_is_float(t)) return INFINITY;
  double d = fabs(scalar_to_double(t, v) - scalar_to_double(t, y));
  return isnan(d) ? INFINITY : d;
}

/** Moves an operand to the low end, the middle or the high end of its interval. */
static uint64_t moved(dtype t, uint64_t bits, double bound, int where) {
  if (!bound || !where) return bits;
  double v = scalar_to_double(t, bits);
  return scalar_from_double(t, where == 1 ? v - bound : v + bound);
}

typedef struct operands {
  size_t n;
  dtype type[3];
  uint64_t bits[3];
  double bound[3];
} operands;

/** True if an interval is too wide for its ends to bound the result. */
static bool is_too_wide(op o, dtype t, uint64_t bits, double bound) {
  bool turns = o == OP_SIN || o == OP_COS || o == OP_TAN;
  if (isinf(bound)) return true;
  if (!dtype_is_float(t)) return false;
  return bound > (turns ? 0.1 : 0.01 * fmax(1, fabs(scalar_to_double(t, bits))));
}

static double propagated(const node *n, const operands *o, uint64_t v) {
  dtype t = o->type[scalar_typed_operand((op)n->op)];
  double most = 0;
  bool overflow = false;
  for (size_t i = 0; i < o->n; i++) {
    bool chosen = n->op != OP_WHERE || o->bound[0] || i == 0 || (o->bits[0] ? 1u : 2u) == i;
    if (chosen && is_too_wide((op)n->op, o->type[i], o->bits[i], o->bound[i])) return INFINITY;
  }
  for (int corner = 1; corner < 27; corner++) {
    uint64_t args[3];
    int rest = corner;
    for (size_t i = 0; i < o->n; i++, rest /= 3)
      args[i] = moved(o->type[i], o->bits[i], isinf(o->bound[i]) ? 0 : o->bound[i], rest % 3);
    most = fmax(most, distance((dtype)n->dtype, v,
                               scalar_eval((op)n->op, t, (dtype)n->dtype, args, &overflow)));
  }
  return 1.5 * most;
}

static const double *elementwise_bound(expecting *x, const node *n) {
  bool exact = !is_approximate(n, x->g->math);
  for (uint32_t i = 0; i < n->n_src; i++) exact &= !bound_of(x, n->src[i]);
  if (exact) return NULL;
  double *b = new_bound(x, n, 0);
  const interp_array *y = value_of(x, n);
  for (size_t k = 0; k < count_of(y); k++) {
    operands o = {.n = n->n_src};
    double v[3] = {0};
    bool moves = false;
    for (uint32_t i = 0; i < n->n_src; i++) {
      const interp_array *a = value_of(x, n->src[i]);
      o.type[i] = a->dtype;
      o.bits[i] = bits_at(a, k);
      o.bound[i] = bound_of(x, n->src[i]) ? bound_of(x, n->src[i])[k] : 0;
      v[i] = number_at(a, k);
      moves |= o.bound[i] > 0;
    }
    if (moves) b[k] = propagated(n, &o, bits_at(y, k));
    double own = own_error(n, x->g->math, number_at(y, k), v[0], v[1]);
    b[k] += isfinite(own) ? own : 0;
    /* rounding to the type may go the other way */
    if (b[k] > 0 && dtype_is_float(y->dtype))
      b[k] += 2 * rounding(y->dtype) * fabs(number_at(y, k)) + least(y->dtype);
    if (isnan(b[k])) b[k] = INFINITY;
  }
  return b;
}

/* Movement: the bounds move as the values do. */

typedef struct moving {
  const expecting *x;
  interp_array arrays[2];
} moving;

static const interp_array *moved_buffer(void *user, int64_t uid, int64_t version) {
  (void)version;
  return &((moving *)user)->arrays[uid];
}

/** Makes a BUFFER of f64 with the bounds of a node's source. */
static const node *bounds_buffer(expecting *x, moving *m, const node *src, int64_t k) {
  const interp_array *v = value_of(x, src);
  const double *b = bound_of(x, src);
  size_t count = count_of(v);
  double *data = arena_calloc(x->a, count + 1, sizeof *data);
  if (b) memcpy(data, b, count * sizeof *data);
  m->arrays[k] = *v;
  m->arrays[k].dtype = DT_F64;
  m->arrays[k].data = data;
  m->arrays[k].bytes = count * sizeof *data;
  int64_t ints[] = {k, 0};
  return ir_node(x->g->ir, OP_BUFFER, DT_F64, src->dims, src->rank, ints, 2);
}

/** The number that an ITEM is: the arrays here are others than those that decide it. */
static const node *number_of_item(void *user, const node *n, const node *const src[]) {
  const expecting *x = user;
  (void)src;
  return n->op == OP_ITEM ? ix_const(x->g->ir, graph_size(x->g, n)) : NULL;
}

static const double *run_moved(expecting *x, moving *m, const node *root) {
  interp_env e = graph_env(x->g);
  interp_array result;
  e.buffer = moved_buffer;
  e.user = m;
  if (ir_has_items(x->g->ir)) ir_copy(x->g->ir, x->a, &root, 1, number_of_item, x, &root);
  if (interp_tensor(&e, &root, 1, &result, x->a) != TN_OK) diag_rethrow(x->a->diag);
  return result.data;
}

/** Rebuilds the view of a SET over other contents. */
static const node *view_of(expecting *x, const node *view, const node *old, const node *to) {
  node_list chain = {0};
  for (; view != old; view = view->src[0]) vec_push(x->a, &chain, view);
  while (chain.n) {
    const node *v = vec_pop(&chain);
    const node **src = arena_copy(x->a, v->src, v->n_src * sizeof *src);
    src[0] = to;
    to = ir_node(x->g->ir, (op)v->op, DT_F64, src, v->n_src, v->ints, v->n_int);
  }
  return to;
}

static const double *set_bound(expecting *x, const node *n) {
  if (!bound_of(x, n->src[0]) && !bound_of(x, n->src[2])) return NULL;
  moving m = {.x = x};
  const node *old = bounds_buffer(x, &m, n->src[0], 0);
  const node *src[] = {old, view_of(x, n->src[1], n->src[0], old),
                       bounds_buffer(x, &m, n->src[2], 1)};
  return run_moved(x, &m, ir_node(x->g->ir, OP_SET, DT_F64, src, 3, NULL, 0));
}

static const double *gather_bound(expecting *x, const node *n) {
  if (!bound_of(x, n->src[0])) return NULL;
  double *b = new_bound(x, n, 0);
  const interp_array *from = value_of(x, n->src[0]);
  for (size_t k = 0; k < count_of(value_of(x, n)); k++) {
    size_t at = 0;
    bool inside = true;
    for (uint32_t i = 1; i < n->n_src; i++) {
      int64_t c = (int64_t)bits_at(value_of(x, n->src[i]), k);
      inside &= c >= 0 && c < from->dims[i - 1];
      at = at * (size_t)from->dims[i - 1] + (size_t)c;
    }
    if (inside) b[k] = bound_of(x, n->src[0])[at];
  }
  return b;
}

static const double *movement_bound(expecting *x, const node *n) {
  bool pads = n->op == OP_PAD;
  for (uint32_t i = 1; i < n->n_src; i++)
    if (n->src[i]->dtype != DT_INDEX && bound_of(x, n->src[i]) && !pads)
      return new_bound(x, n, INFINITY);
  if (n->op == OP_GATHER) return gather_bound(x, n);
  if (!bound_of(x, n->src[0]) && !(pads && bound_of(x, n->src[1]))) return NULL;
  moving m = {.x = x};
  const node **src = arena_copy(x->a, n->src, n->n_src * sizeof *src);
  src[0] = bounds_buffer(x, &m, n->src[0], 0);
  if (pads) src[1] = bounds_buffer(x, &m, n->src[1], 1);
  return run_moved(x, &m, ir_node(x->g->ir, (op)n->op, DT_F64, src, n->n_src, n->ints, n->n_int));
}

/* Reduction. */

/** Sums over the elements that make one result. */
typedef struct sums {
  double bound, size, relative, log_up, log_down;
  size_t n;
  bool special;        /* a NaN or an infinity */
  bool odd;            /* an element with an infinite bound */
  bool may_swap_zeros; /* their order decides between 0 and -0 */
} sums;

static void add_to(sums *s, double v, double bound) {
  double magnitude = fabs(v);
  s->n++;
  s->bound = s->bound > bound ? s->bound : bound;
  if (isfinite(v))
    s->size += magnitude;
  else
    s->special = true;
  if (isinf(bound)) s->odd = true;
  if (bound) s->relative += bound / magnitude;
  if (isfinite(v) && v) *(magnitude > 1 ? &s->log_up : &s->log_down) += fabs(log2(magnitude));
}

static double reduced_bound(const node *n, const sums *s, double total, double v) {
  dtype t = (dtype)n->dtype;
  if (s->odd) return INFINITY;
  if (!dtype_is_float(t)) return s->bound ? INFINITY : 0;
  double u = (double)(s->n + 1) * rounding(t);
  int exponent = (1 << (dtype_facts_of(t)->exponent_bits - 1)) - 4;
  switch ((op)n->ints[0]) {
  case OP_ADD:
    if (s->size + total > greatest(t)) return INFINITY;
    /* A factor taken out of terms that are products changes how subnormal ones round. */
    return s->special ? 0 : total + 2 * u * s->size + (double)s->n * least(t);
  case OP_MUL: {
    double b = 1.5 * fabs(v) * (s->relative + u) + least(t);
    bool may_overflow = s->log_up > exponent || s->log_down > exponent;
    if (may_overflow || (s->special && s->bound) || isnan(b)) return INFINITY;
    return s->special ? 0 : b;
  }
  default: return s->may_swap_zeros && v == 0 ? fmax(s->bound, least(t)) : s->bound;
  }
}

/** Returns the result to which an element of the source contributes. */
static size_t target_of(const node *n, const interp_array *from, size_t k) {
  size_t at = 0, scale = 1;
  for (size_t i = from->rank; i-- > 0;) {
    size_t c = k % (size_t)from->dims[i];
    bool goes = false;
    k /= (size_t)from->dims[i];
    for (uint32_t j = 1; j < n->n_int; j++) goes |= n->ints[j] == (int64_t)i;
    if (goes) continue;
    at += c * scale;
    scale *= (size_t)from->dims[i];
  }
  return at;
}

static const double *reduce_bound(expecting *x, const node *n) {
  const interp_array *from = value_of(x, n->src[0]), *y = value_of(x, n);
  const double *e = bound_of(x, n->src[0]);
  bool is_extreme = n->ints[0] == OP_MAX || n->ints[0] == OP_MIN;
  bool swaps = is_extreme && math_may_reorder(x->g->math, (dtype)n->dtype) &&
               dtype_is_float((dtype)n->dtype);
  if (!e && !is_approximate(n, x->g->math) && !swaps) return NULL;
  size_t count = count_of(y);
  double *b = new_bound(x, n, 0), *total = arena_calloc(x->a, count + 1, sizeof *total);
  sums *s = arena_calloc(x->a, count + 1, sizeof *s);
  for (size_t k = 0; k < count; k++) s[k].may_swap_zeros = swaps;
  for (size_t k = 0; k < count_of(from); k++) {
    size_t at = target_of(n, from, k);
    add_to(&s[at], number_at(from, k), e ? e[k] : 0);
    total[at] += e ? e[k] : 0;
  }
  for (size_t k = 0; k < count; k++) b[k] = reduced_bound(n, &s[k], total[k], number_at(y, k));
  return b;
}

/* All. */

/** Returns infinite bounds, for an op about which nothing is known. */
static const double *custom_bound(expecting *x, const node *n) {
  if (is_approximate(n, x->g->math)) return new_bound(x, n, INFINITY);
  for (uint32_t i = 0; i < n->n_src; i++)
    if (bound_of(x, n->src[i])) return new_bound(x, n, INFINITY);
  return NULL;
}

/** Returns exact bounds if all sources of a loop are exact, else infinite ones. */
static const double *result_bound(expecting *x, const node *n) {
  node_list order = topo_sort(x->a, &n, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (is_approximate(order.at[i], x->g->math)) return new_bound(x, n, INFINITY);
  return NULL;
}

static const double *find_bound(expecting *x, const node *n) {
  if (op_is_elementwise((op)n->op)) return elementwise_bound(x, n);
  if (op_is_movement((op)n->op)) return movement_bound(x, n);
  if (n->op == OP_REDUCE) return reduce_bound(x, n);
  if (n->op == OP_SET) return set_bound(x, n);
  if (n->op == OP_TO) return bound_of(x, n->src[0]);
  if (n->op == OP_RESULT) return result_bound(x, n);
  if (n->op == OP_PICK) return bound_of(x, n->src[graph_size(x->g, n->src[0]) ? 1 : 2]);
  bool unknown =
      n->op == OP_CUSTOM || n->op == OP_KERNEL || n->op == OP_SCATTER || n->op == OP_SCAN;
  return unknown ? custom_bound(x, n) : NULL;
}

const expected *expect(const graph *g) {
  expecting x = {.g = g, .a = g->a};
  node_list all = topo_sort(x.a, g->roots, g->n_roots, NULL, NULL), order = {0};
  map open = graph_open_nodes(x.a, &all); /* nodes without a value outside of their loops */
  for (size_t i = 0; i < all.n; i++)
    if (!map_has(&open, all.at[i]) && all.at[i]->dtype != DT_VOID) vec_push(x.a, &order, all.at[i]);
  x.nodes = order;
  for (size_t i = 0; i < order.n; i++)
    map_set(x.a, &x.number, order.at[i], (void *)(uintptr_t)(i + 1));
  x.values = arena_calloc(x.a, order.n, sizeof *x.values);
  x.bound = arena_calloc(x.a, order.n, sizeof *x.bound);
  interp_env e = graph_env(g);
  if (interp_tensor(&e, order.at, order.n, x.values, x.a) != TN_OK) diag_rethrow(x.a->diag);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->dtype != DT_INDEX) x.bound[i] = find_bound(&x, order.at[i]);
  expected *out = arena_alloc(x.a, g->n_roots * sizeof *out);
  for (size_t i = 0; i < g->n_roots; i++) {
    size_t k = place(&x, g->roots[i]);
    out[i] = (expected){x.values[k], x.bound[k]};
  }
  return out;
}

/* Comparison. */

static bool is_nan(dtype t, uint64_t bits) {
  return dtype_is_float(t) && isnan(scalar_to_double(t, bits));
}

bool same_scalar(dtype t, uint64_t a, uint64_t b) {
  return a == b || (is_nan(t, a) && is_nan(t, b));
}

static bool within(dtype t, uint64_t want, uint64_t got, double bound) {
  if (same_scalar(t, want, got)) return true;
  if (isinf(bound)) return true;
  if (!bound || !dtype_is_float(t)) return false;
  double w = scalar_to_double(t, want), v = scalar_to_double(t, got);
  if (isnan(w) || isnan(v)) return false;
  if (isinf(v) != isinf(w)) { /* near the largest number one may round to infinity */
    double a = fabs(isinf(v) ? w : v);
    return a + bound >= greatest(t) || a >= greatest(t) * (1 - 2 * function_tolerance(t));
  }
  return fabs(v - w) <= bound;
}

size_t expect_differs(const expected *e, const void *data) {
  dtype t = e->value.dtype;
  for (size_t i = 0; i < count_of(&e->value); i++) {
    double bound = e->bound ? e->bound[i] : 0;
    uint64_t got = scalar_load(t, (const char *)data + i * dtype_bytes(t));
    uint64_t *counter = !bound         ? &expect_counted.exact
                        : isinf(bound) ? &expect_counted.unknown
                                       : &expect_counted.bounded;
    ++*counter;
    if (!within(t, bits_at(&e->value, i), got, bound)) return i;
  }
  return SIZE_MAX;
}
