/* Stores a scan as the graph's output that is its elements in another shape, as the scan of an axis
   in blocks is: its kernel writes there, and no kernel copies. The output reads the scan at
   coordinates that are its own, or the quotient and remainder of one by the size of a block; each
   may be counted from the end of the output's axis, as a reversed scan's are:

     y[i] = s[i div B, i mod B]   →   s stored at y[b · B + r]
     y[i] = s[j div B, j mod B], j = n − 1 − i   →   s stored at y[n − 1 − b · B − r]

   The kernel may store an expression of the element alone, as its conversion to a narrower type.
   Elements of the last block beyond the output's end fall outside of it. */
#include "schedule/values/scan_views.h"

#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

typedef struct scan_views {
  ir *g;
  values *all;
  map readers; /* values_only_readers */
} scan_views;

/** An index over an axis from its end. */
static const node *from_end(ir *g, const node *size, const node *index) {
  return ix_sub(g, ix_add_const(g, size, -1), index);
}

/** True if a scan is read at an index of one axis, or at its quotient and remainder by a block. */
static bool is_read_at(ir *g, const node *const at[], const node *index, int64_t block) {
  if (!block) return at[0] == index;
  return at[0] == ix_floordiv(g, index, ix_const(g, block)) &&
         at[1] == ix_mod(g, index, ix_const(g, block));
}

/** The index along an axis of a view of the scan's element with some coordinates: of the scan's
    axis i, or of that and the one behind it, which has a block's size. NULL: another form. */
static const node *view_index(ir *g, const value *view, size_t axis, const value *scan, size_t i,
                              int64_t block, const node *const at[]) {
  const node *index = scan->coords[i], *own = view->coords[axis], *size = view->dims[axis];
  if (block) index = ix_add(g, ix_scale(g, index, block), scan->coords[i + 1]);
  if (is_read_at(g, at + i, own, block)) return index;
  return is_read_at(g, at + i, from_end(g, size, own), block) ? from_end(g, size, index) : NULL;
}

/** The coordinates in a view of an element of the scan, where each of the scan's is one of the
    view's, or two are quotient and remainder of one; false: another is there. */
static bool invert(ir *g, const value *view, const value *scan, const node *const at[],
                   const node *to[]) {
  size_t n = 0;
  for (size_t i = 0; i < scan->rank; i++, n++) {
    if (n == view->rank) return false;
    to[n] = view_index(g, view, n, scan, i, 0, at);
    if (to[n]) continue;
    if (i + 1 == scan->rank || !node_is_const(scan->dims[i + 1])) return false;
    to[n] = view_index(g, view, n, scan, i, node_int(scan->dims[i + 1]), at);
    if (!to[n]) return false;
    i++;
  }
  return n == view->rank;
}

/** True if a value depends on an element that it reads alone. */
static bool depends_on_read(ir *g, const value *v, const node *read) {
  map with = {0};
  map_set(ir_scratch(g), &with, read, (void *)ir_const_bits(g, (dtype)read->dtype, 0));
  return !subst(g, v->body, &with)->free->n;
}

/** The scan of whose elements a value is a function, and which nothing else reads; NULL: there is
    none. */
static value *viewed_scan(const scan_views *s, const value *v) {
  if (!v->body || v->inputs.elements.n != 1 || v->inputs.arrays.n) return NULL;
  const node *read = v->inputs.elements.at[0];
  value *scan = depends_on_read(s->g, v, read) ? map_get(&s->all->of, read->src[0]) : NULL;
  if (!scan || !scan->updates || !scan->updates->is_scan || scan->updates->classes) return NULL;
  bool is_alone = scan->tensor == read->src[0] && map_get(&s->readers, scan->tensor) == v;
  return is_alone && !scan->memory.stores.n && scan->device == v->device ? scan : NULL;
}

/** True if some value reads a tensor, or needs it as an array. */
static bool is_read(const scan_views *s, const node *x) {
  for (size_t i = 0; i < s->all->at.n; i++) {
    const value_inputs *in = &s->all->at.at[i]->inputs;
    if (nodes_contain(in->tensors.at, in->tensors.n, x) ||
        nodes_contain(in->arrays.at, in->arrays.n, x))
      return true;
  }
  return false;
}

/** True for a root's value that is an expression, and has no place yet. */
static bool is_plain(const scan_views *s, const value *v, const node *root) {
  return v && v->tensor == root && !v->memory.stores.n && !value_is_reduction(v) && !v->updates &&
         !v->scan && !map_has(&s->all->overwriter, root);
}

static void store_root(scan_views *s, const node *root) {
  const value *v = map_get(&s->all->of, root);
  value *scan = is_plain(s, v, root) ? viewed_scan(s, v) : NULL;
  if (!scan || is_read(s, root)) return;
  arena *a = ir_arena(s->g);
  const node **to = arena_alloc(a, (v->rank + 1) * sizeof *to);
  const node *read = v->inputs.elements.at[0];
  if (!invert(s->g, v, scan, read->src + 1, to)) return;
  if (v->body != read) {
    value_updates *u = arena_copy(a, scan->updates, sizeof *u);
    u->stored = v->body;
    u->read = read;
    scan->updates = u;
  }
  vec_push(a, &scan->memory.stores, (value_store){root, to, v->rank});
  map_set(a, &s->all->of, root, scan);
}

void scan_views_store(ir *g, const normalised *in, values *v) {
  arena_mark here = arena_save(ir_scratch(g));
  scan_views s = {.g = g, .all = v};
  s.readers = values_only_readers(ir_scratch(g), v, in->roots, in->n_roots);
  for (size_t i = 0; i < in->n_roots; i++) store_root(&s, in->roots[i]);
  arena_rewind(ir_scratch(g), here);
}
