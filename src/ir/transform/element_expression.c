/* Derives the scalar expression of one tensor element: rewrites INDEX(value, coordinates) from the
   outside in, where a movement changes the coordinates and an elementwise op becomes the same op on
   elements, until only elements of PARAMs and of materialised values remain. Each (value,
   coordinates) is rewritten once; an explicit stack replaces recursion. */
#include "ir/transform/element_expression.h"

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/reshape_coordinates.h"

typedef struct sweep {
  ir *g;
  arena *a;
  const map *known;
  const node *value; /* the value whose element is asked for; entered though it is in `known` */
  map done;          /* INDEX → its expression */
  node_list stack;   /* INDEXes to rewrite, the last one first */
  bool waits;        /* the current step needs an INDEX that was pushed on the stack */
} sweep;

/** The expression of an element of x. If it is not known yet, pushes it on the stack and returns a
    placeholder; the step is repeated later. */
static const node *element_of(sweep *w, const node *x, const node *const coords[]) {
  const node *as = x != w->value ? map_get(w->known, x) : NULL;
  const node *key = index_make(w->g, (dtype)x->dtype, as ? as : x, 0, x->rank, coords);
  if (x->op == OP_PARAM || as) return key;
  const node *have = map_get(&w->done, key);
  if (have) return have;
  vec_push(w->a, &w->stack, key);
  w->waits = true;
  return ir_const_bits(w->g, (dtype)x->dtype, 0);
}

static const node *select(sweep *w, const node *g, const node *a, const node *b) {
  if (g->op == OP_CONST) return node_int(g) ? a : b;
  return ir_op3(w->g, OP_WHERE, g, a, b);
}

static void permute_coordinates(const node *n, const node *const e[], const node *to[]) {
  for (size_t i = 0; i < n->rank; i++) to[n->ints[i]] = e[i];
}

static void slice_coordinates(sweep *w, const node *n, const node *const e[], const node *to[]) {
  for (size_t i = 0; i < n->rank; i++)
    to[i] = ix_add(w->g, n->src[1 + i], ix_scale(w->g, e[i], n->ints[i]));
}

static void expand_coordinates(sweep *w, const node *n, const node *const e[], const node *to[]) {
  const node *x = n->src[0];
  for (size_t i = 0; i < n->rank; i++) to[i] = x->dims[i] == n->dims[i] ? e[i] : ix_const(w->g, 0);
}

/** Writes the coordinates in the source of a movement; false if n is none. */
static bool source_coordinates(sweep *w, const node *n, const node *const e[], const node *to[]) {
  switch (n->op) {
  case OP_PERMUTE: permute_coordinates(n, e, to); return true;
  case OP_SLICE: slice_coordinates(w, n, e, to); return true;
  case OP_EXPAND: expand_coordinates(w, n, e, to); return true;
  case OP_RESHAPE:
    reshape_coordinates(w->g, n->rank, n->dims, e, n->src[0]->rank, n->src[0]->dims, to);
    return true;
  default: return false;
  }
}

void element_source_coordinates(ir *g, const node *view, const node *x, const node *const coords[],
                                const node *into[]) {
  sweep w = {.g = g, .a = ir_scratch(g)};
  arena_mark here = arena_save(w.a);
  const node *const *e = coords;
  while (view != x) {
    const node **to = arena_alloc(w.a, (view->src[0]->rank + 1) * sizeof *to);
    source_coordinates(&w, view, e, to);
    view = view->src[0];
    e = to;
  }
  for (size_t i = 0; i < x->rank; i++) into[i] = e[i];
  arena_rewind(w.a, here);
}

/* Steps: an element in terms of elements of the sources. */

static const node *pad_step(sweep *w, const node *n, const node *const e[]) {
  const node *x = n->src[0], **to = arena_alloc(w->a, (x->rank + 1) * sizeof *to);
  for (size_t i = 0; i < n->rank; i++) to[i] = ix_sub(w->g, e[i], n->src[2 + i]);
  const node *inside = ix_in_bounds(w->g, x->rank, to, x->dims);
  bool is_known = inside->op == OP_CONST;
  if (is_known && node_int(inside)) return element_of(w, x, to);
  const node *fill = element_of(w, n->src[1], NULL);
  return is_known ? fill : select(w, inside, element_of(w, x, to), fill);
}

/** A user's index as a coordinate that is inside where *g is true. The index may be any number, so
    it is compared before it is clamped and used in index arithmetic. */
static const node *clamp_index(sweep *w, const node *index, const node *dim, const node **g) {
  ir *k = w->g;
  if (index->op == OP_CAST && index->src[0]->dtype == DT_INDEX) {
    const node *at = index->src[0];
    *g = ix_and(k, *g, ix_in_bounds(k, 1, &at, &dim));
    return at;
  }
  dtype t = (dtype)index->dtype;
  const node *first = ir_op2(k, OP_LE, ir_const_int(k, t, 0), index);
  const node *last = ir_op2(k, OP_LT, index, ir_cast(k, dim, t));
  *g = ix_and(k, *g, ix_and(k, first, last));
  const node *at = ix_max(k, ir_cast(k, index, DT_INDEX), ix_const(k, 0));
  return ix_min(k, at, ix_add_const(k, dim, -1));
}

const node *element_coordinate(ir *g, const node *index, const node *dim) {
  sweep w = {.g = g};
  const node *inside = ir_const_bits(g, DT_BOOL, 1), *at = clamp_index(&w, index, dim, &inside);
  return select(&w, inside, at, ix_const(g, -1));
}

static const node *gather_step(sweep *w, const node *n, const node *const e[]) {
  const node *x = n->src[0], **to = arena_alloc(w->a, (x->rank + 1u) * sizeof *to);
  const node *g = ir_const_bits(w->g, DT_BOOL, 1);
  for (size_t i = 0; i < x->rank; i++) to[i] = element_of(w, n->src[1 + i], e);
  if (w->waits) return NULL; /* coordinates before the element */
  for (size_t i = 0; i < x->rank; i++) to[i] = clamp_index(w, to[i], x->dims[i], &g);
  return select(w, g, element_of(w, x, to), ir_const_bits(w->g, (dtype)n->dtype, 0));
}

bool element_is_of_leaf(const node *x) {
  for (uint32_t i = 0; i < x->n_src; i++)
    if (x->src[i]->dtype != DT_INDEX) return false;
  return x->op != OP_PARAM && x->op != OP_BUFFER;
}

bool element_is_computed_anew(const node *n) {
  return n->op == OP_TO && n->src[0]->op != OP_TO && element_is_of_leaf(n->src[0]);
}

/** An element of a TO is that of its operand; a leaf, which is anybody's, is computed there anew.
 */
static const node *to_step(sweep *w, const node *n, const node *const e[]) {
  const node *x = n->src[0];
  if (!element_is_computed_anew(n)) return element_of(w, x, e);
  const node *key = index_make(w->g, (dtype)x->dtype, x, 0, x->rank, e);
  const node *have = map_get(&w->done, key);
  if (have) return have;
  vec_push(w->a, &w->stack, key);
  w->waits = true;
  return NULL;
}

static const node *elementwise_step(sweep *w, const node *n, const node *const e[]) {
  const node **src = arena_alloc(w->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++)
    src[i] = n->src[i]->dtype == DT_INDEX ? n->src[i] : element_of(w, n->src[i], e);
  return ir_with_sources(w->g, n, src);
}

static const node *rewrite_step(sweep *w, const node *key) {
  const node *n = key->src[0], *const *e = key->src + 1;
  const node *x = n->n_src ? n->src[0] : NULL;
  const node **to = arena_alloc(w->a, ((x ? x->rank : 0) + 1u) * sizeof *to);
  if (source_coordinates(w, n, e, to)) return element_of(w, x, to);
  switch (n->op) {
  case OP_TO: return to_step(w, n, e);
  case OP_PAD: return pad_step(w, n, e);
  case OP_GATHER: return gather_step(w, n, e);
  case OP_CONST: return n;
  case OP_IOTA: return ir_cast(w->g, e[n->ints[0]], (dtype)n->dtype);
  default: return elementwise_step(w, n, e);
  }
}

/** Rewrites the stack until it is empty; a step that lacks an operand is repeated after it. */
static const node *resolve(sweep *w, const node *root) {
  vec_push(w->a, &w->stack, root);
  while (w->stack.n) {
    const node *key = vec_last(&w->stack);
    w->waits = false;
    const node *s = map_has(&w->done, key) ? NULL : rewrite_step(w, key);
    if (w->waits) continue;
    if (s) map_set(w->a, &w->done, key, (void *)s);
    w->stack.n--;
  }
  return map_get(&w->done, root);
}

const node *element_expression(ir *g, const map *known, const node *value, size_t rank,
                               const node *const coords[]) {
  sweep w = {.g = g, .a = ir_scratch(g), .known = known, .value = value};
  arena_mark here = arena_save(w.a);
  const node *x = resolve(&w, index_make(g, (dtype)value->dtype, value, 0, rank, coords));
  arena_rewind(w.a, here);
  return x;
}
