/* One element of a tensor value, as a scalar expression. INDEX(value, coordinates) is rewritten
   from the outside in: a movement changes the coordinates, an elementwise op becomes the same op on
   elements, a reduction opens ranges, until what is left is elements of PARAMs and of values that
   are written down. Each (value, coordinates) is done once. */
#include "ir/element.h"

#include "ir/binder.h"
#include "ir/reshape.h"
#include "ir/topo.h"

typedef struct sweep {
  ir *g;
  arena *a;
  const map *known;
  const node *entered; /* the value this sweep is about, entered though it is cut */
  map done;            /* INDEX → its expression */
  node_list stack;     /* INDEX nodes to be done, the last one first */
  bool waits;          /* the step at hand needs something that is on the stack */
} sweep;

/** An element of x: its expression if it is done; else it goes on the stack, and anything of its
    type stands for it until the step is taken again. */
static const node *element(sweep *w, const node *x, const node *const coords[]) {
  const node *as = x != w->entered ? map_get(w->known, x) : NULL;
  const node *key = index_make(w->g, (dtype)x->dtype, as ? as : x, 0, x->rank, coords);
  if (x->op == OP_PARAM || as) return key;
  const node *have = map_get(&w->done, key);
  if (have) return have;
  vec_push(w->a, &w->stack, key);
  w->waits = true;
  return ir_const_bits(w->g, (dtype)x->dtype, 0);
}

static const node *zero(sweep *w, const node *like) {
  return ir_const_bits(w->g, (dtype)like->dtype, 0);
}

static const node *select(sweep *w, const node *g, const node *a, const node *b) {
  if (g->op == OP_CONST) return node_int(g) ? a : b;
  return ir_op3(w->g, OP_WHERE, g, a, b);
}

/* Movements: the coordinates in the source. */

static void permuted(const node *n, const node *const e[], const node *to[]) {
  for (size_t i = 0; i < n->rank; i++) to[n->ints[i]] = e[i];
}

static void sliced(sweep *w, const node *n, const node *const e[], const node *to[]) {
  for (size_t i = 0; i < n->rank; i++)
    to[i] = ix_add(w->g, n->src[1 + i], ix_scale(w->g, e[i], n->ints[i]));
}

static void expanded(sweep *w, const node *n, const node *const e[], const node *to[]) {
  const node *x = n->src[0];
  for (size_t i = 0; i < n->rank; i++) to[i] = x->dims[i] == n->dims[i] ? e[i] : ix_const(w->g, 0);
}

static bool through_movement(sweep *w, const node *n, const node *const e[], const node *to[]) {
  switch (n->op) {
  case OP_PERMUTE: permuted(n, e, to); return true;
  case OP_SLICE: sliced(w, n, e, to); return true;
  case OP_EXPAND: expanded(w, n, e, to); return true;
  case OP_RESHAPE:
    reshape_coordinates(w->g, n->rank, n->dims, e, n->src[0]->rank, n->src[0]->dims, to);
    return true;
  default: return false;
  }
}

void element_through(ir *g, const node *view, const node *x, const node *const coords[],
                     const node *into[]) {
  sweep w = {.g = g, .a = ir_arena(g)};
  const node *const *e = coords;
  while (view != x) {
    const node **to = arena_alloc(w.a, (view->src[0]->rank + 1) * sizeof *to);
    through_movement(&w, view, e, to);
    view = view->src[0];
    e = to;
  }
  for (size_t i = 0; i < x->rank; i++) into[i] = e[i];
}

/* One step: an element in terms of elements of the sources. */

static const node *pad_step(sweep *w, const node *n, const node *const e[]) {
  const node *x = n->src[0], **to = arena_alloc(w->a, (x->rank + 1) * sizeof *to);
  for (size_t i = 0; i < n->rank; i++) to[i] = ix_sub(w->g, e[i], n->src[2 + i]);
  return select(w, ix_inside(w->g, x->rank, to, x->dims), element(w, x, to),
                element(w, n->src[1], NULL));
}

/** An index that a user gave, as a coordinate that is inside where *g is true: any number may come,
    so bounds are tested before there is arithmetic on it. */
static const node *given_index(sweep *w, const node *index, const node *dim, const node **g) {
  ir *k = w->g;
  if (index->op == OP_CAST && index->src[0]->dtype == DT_INDEX) {
    const node *at = index->src[0];
    *g = ix_and(k, *g, ix_inside(k, 1, &at, &dim));
    return at;
  }
  dtype t = (dtype)index->dtype;
  const node *first = ir_op2(k, OP_LE, ir_const_int(k, t, 0), index);
  const node *last = ir_op2(k, OP_LT, index, ir_cast(k, dim, t));
  *g = ix_and(k, *g, ix_and(k, first, last));
  const node *at = ix_max(k, ir_cast(k, index, DT_INDEX), ix_const(k, 0));
  return ix_min(k, at, ix_add_const(k, dim, -1));
}

static const node *gather_step(sweep *w, const node *n, const node *const e[]) {
  const node *x = n->src[0], **to = arena_alloc(w->a, (x->rank + 1u) * sizeof *to);
  const node *g = ir_const_bits(w->g, DT_BOOL, 1);
  for (size_t i = 0; i < x->rank; i++) to[i] = element(w, n->src[1 + i], e);
  if (w->waits) return NULL; /* the coordinates come first */
  for (size_t i = 0; i < x->rank; i++) to[i] = given_index(w, to[i], x->dims[i], &g);
  return select(w, g, element(w, x, to), zero(w, n));
}

static const node *elementwise_step(sweep *w, const node *n, const node *const e[]) {
  const node **src = arena_alloc(w->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++)
    src[i] = n->src[i]->dtype == DT_INDEX ? n->src[i] : element(w, n->src[i], e);
  return ir_with_sources(w->g, n, src);
}

static const node *step(sweep *w, const node *key) {
  const node *n = key->src[0], *const *e = key->src + 1;
  const node *x = n->n_src ? n->src[0] : NULL;
  const node **to = arena_alloc(w->a, ((x ? x->rank : 0) + 1u) * sizeof *to);
  if (through_movement(w, n, e, to)) return element(w, x, to);
  switch (n->op) {
  case OP_PAD: return pad_step(w, n, e);
  case OP_GATHER: return gather_step(w, n, e);
  case OP_CONST: return n;
  case OP_IOTA: return ir_cast(w->g, e[n->ints[0]], (dtype)n->dtype);
  default: return elementwise_step(w, n, e);
  }
}

/* The rewriting, with an explicit stack: a step that finds something missing is taken again. */

static const node *resolve(sweep *w, const node *root) {
  vec_push(w->a, &w->stack, root);
  while (w->stack.n) {
    const node *key = vec_last(&w->stack);
    w->waits = false;
    const node *s = map_has(&w->done, key) ? NULL : step(w, key);
    if (w->waits) continue;
    if (s) map_set(w->a, &w->done, key, (void *)s);
    w->stack.n--;
  }
  return map_get(&w->done, root);
}

const node *element_of(ir *g, const map *known, const node *value, size_t rank,
                       const node *const coords[]) {
  sweep w = {.g = g, .a = ir_arena(g), .known = known, .entered = value};
  return resolve(&w, index_make(g, (dtype)value->dtype, value, 0, rank, coords));
}
