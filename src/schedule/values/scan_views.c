/* Stores a scan as the graph's output that is its elements in another shape, as the scan of an axis
   in blocks is: its kernel writes there, and no kernel copies. The output reads the scan at
   coordinates that are its own, or the quotient and remainder of one by the size of a block:

     y[i] = s[i div B, i mod B]   →   s stored at y[b · B + r]

   Elements of the last block beyond the output's end fall outside of it. */
#include "schedule/values/scan_views.h"

#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

typedef struct scan_views {
  ir *g;
  const normalised *in;
  values *all;
  map readers; /* tensor → its only reader; NULL: several, or one that needs it as an array */
} scan_views;

static void note_reader(scan_views *s, const node *tensor, const value *reader) {
  const value *only = map_has(&s->readers, tensor) ? NULL : reader;
  map_set(ir_scratch(s->g), &s->readers, tensor, (void *)only);
}

static void find_readers(scan_views *s) {
  for (size_t i = 0; i < s->all->at.n; i++) {
    const value *v = s->all->at.at[i];
    for (size_t k = 0; k < v->inputs.tensors.n; k++) note_reader(s, v->inputs.tensors.at[k], v);
    for (size_t k = 0; k < v->inputs.arrays.n; k++) note_reader(s, v->inputs.arrays.at[k], NULL);
  }
  for (size_t i = 0; i < s->in->n_roots; i++) note_reader(s, s->in->roots[i], NULL);
}

/** The coordinates in a view of an element of the scan, where each of the scan's is one of the
    view's, or two are quotient and remainder of one; false: another is there. */
static bool invert(ir *g, const value *view, const value *scan, const node *const at[],
                   const node *to[]) {
  size_t n = 0;
  for (size_t i = 0; i < scan->rank; i++, n++) {
    if (n == view->rank) return false;
    to[n] = scan->coords[i];
    if (at[i] == view->coords[n]) continue;
    if (i + 1 == scan->rank || !node_is_const(scan->dims[i + 1])) return false;
    int64_t block = node_int(scan->dims[i + 1]);
    to[n] = ix_add(g, ix_scale(g, scan->coords[i], block), scan->coords[i + 1]);
    if (at[i] != ix_floordiv(g, view->coords[n], ix_const(g, block)) ||
        at[i + 1] != ix_mod(g, view->coords[n], ix_const(g, block)))
      return false;
    i++;
  }
  return n == view->rank;
}

/** The scan whose elements a value is, and which nothing else reads; NULL: there is none. */
static value *viewed_scan(const scan_views *s, const value *v) {
  const node *read = v->body;
  value *scan = read && read->op == OP_INDEX ? map_get(&s->all->of, read->src[0]) : NULL;
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
  if (!invert(s->g, v, scan, v->body->src + 1, to)) return;
  vec_push(a, &scan->memory.stores, (value_store){root, to, v->rank});
  map_set(a, &s->all->of, root, scan);
}

void scan_views_store(ir *g, const normalised *in, values *v) {
  arena_mark here = arena_save(ir_scratch(g));
  scan_views s = {.g = g, .in = in, .all = v};
  find_readers(&s);
  for (size_t i = 0; i < in->n_roots; i++) store_root(&s, in->roots[i]);
  arena_rewind(ir_scratch(g), here);
}
