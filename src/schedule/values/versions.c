/* Inserts copies of arrays around writes in place. A SET (a partial write) writes into the storage
   of the array that it changes. Where the old contents must survive, it changes a copy instead;
   where others read them later, those read a copy; and of several SETs of an array, one keeps it. A
   copy is an identity SLICE that is written to memory. */
#include "schedule/values/versions.h"

#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/element_expression.h"
#include "ir/transform/substitute.h"

/** SLICE(x) of all of x; others of the same x have other numbers. */
static const node *numbered_slice(ir *g, const node *x, size_t number) {
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  const node **starts = arena_alloc(a, (x->rank + 1u) * sizeof *starts);
  int64_t *steps = arena_alloc(a, (x->rank + 1u) * sizeof *steps);
  for (size_t i = 0; i < x->rank; i++) {
    starts[i] = ix_const(g, 0);
    steps[i] = 1;
  }
  const node *slice = ir_slice(g, x, starts, x->dims, steps);
  steps[x->rank] = (int64_t)number;
  if (number)
    slice = ir_node(g, OP_SLICE, (dtype)x->dtype, slice->src, slice->n_src, steps, x->rank + 1u);
  arena_rewind(a, here);
  return slice;
}

const node *versions_identity_slice(ir *g, const node *x) { return numbered_slice(g, x, 0); }

/** A new copy of x, which nothing else reads or changes. */
static const node *add_copy(ir *g, normalised *n, const node *x) {
  size_t number = (size_t)(uintptr_t)map_get(&n->n_copies, x);
  const node *copy = numbered_slice(g, x, number++);
  while (map_has(&n->copies, copy)) copy = numbered_slice(g, x, number++);
  map_set(ir_arena(g), &n->copies, copy, (void *)copy);
  map_set(ir_arena(g), &n->n_copies, x, (void *)(uintptr_t)number);
  return copy;
}

/** State of one walk that rebuilds the graph. */
typedef struct rebuilding {
  ir *g;
  normalised *n;
  const schedule_request *request;
  map image;
  map roots, copies;   /* of the graph before */
  map keepers, others; /* versions_copy_for_readers: SETs that keep their arrays, others */
  map changed_arrays;  /* arrays that the keepers change → in the new graph */
} rebuilding;

/** A node over its new sources; a TO that computes a constant anew needs no copy of its array. */
static const node *rebuild_node(rebuilding *m, const node *n) {
  const node **src = arena_alloc(ir_scratch(m->g), n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&m->image, n->src[i]);
  if (element_is_computed_anew(n) && map_has(&m->changed_arrays, n->src[0]))
    src[0] = map_get(&m->changed_arrays, n->src[0]);
  const node *made = subst_rebuild(m->g, n, src);
  if (map_has(&m->copies, n)) map_set(ir_arena(m->g), &m->n->copies, made, (void *)made);
  return made;
}

/** Rebuilds the graph; `change` gives the new node for an old one, whose sources are new already.
    Copies stay copies, and labels stay at what they label. */
static void rebuild_graph(rebuilding *m, const node *(*change)(rebuilding *m, const node *n)) {
  arena *a = ir_scratch(m->g);
  node_list order = topo_sort(a, m->n->roots, m->n->n_roots, NULL, NULL);
  m->copies = m->n->copies;
  m->n->copies = m->n->n_copies = (map){0};
  for (size_t i = 0; i < m->n->n_roots; i++) map_set(a, &m->roots, m->n->roots[i], NULL);
  for (size_t i = 0; i < order.n; i++)
    map_set(a, &m->image, order.at[i], (void *)change(m, order.at[i]));
  for (size_t i = 0; i < m->n->n_roots; i++) m->n->roots[i] = map_get(&m->image, m->n->roots[i]);
  for (size_t i = 0; i < m->n->n_labelled; i++) {
    const node *made = map_get(&m->image, m->n->labelled[i]);
    if (made) m->n->labelled[i] = made;
  }
}

static bool may_overwrite_array(const rebuilding *m, const node *old) {
  const schedule_request *r = m->request;
  if (map_has(&m->roots, old)) return false;
  if (old->op != OP_PARAM) return true;
  return r->may_overwrite && r->may_overwrite(r->user, m->n->origins.at[old->ints[0]]);
}

/** A SCATTER of other old contents. */
static const node *with_old_contents(rebuilding *m, const node *scatter, const node *old) {
  arena *a = ir_scratch(m->g);
  const node **src = arena_copy(a, scatter->src, scatter->n_src * sizeof *src);
  src[0] = old;
  return ir_with_sources(m->g, scatter, src);
}

static const node *set_on_copy(rebuilding *m, const node *n) {
  const node *made = rebuild_node(m, n);
  if (!op_overwrites((op)n->op) || may_overwrite_array(m, n->src[0])) return made;
  const node *old = made->src[0], *copy = add_copy(m->g, m->n, old);
  if (n->op == OP_SCATTER) return with_old_contents(m, made, copy);
  const node *view = subst_view_base(m->g, ir_scratch(m->g), made->src[1], old, copy);
  const node *src[] = {copy, view, made->src[2]};
  return ir_with_sources(m->g, made, src);
}

void versions_insert_copies(ir *g, const schedule_request *r, normalised *n) {
  rebuilding m = {.g = g, .n = n, .request = r};
  arena_mark here = arena_save(ir_scratch(g));
  rebuild_graph(&m, set_on_copy);
  arena_rewind(ir_scratch(g), here);
  for (size_t i = 0; i < n->n_roots; i++)
    if (n->roots[i]->op == OP_PARAM) n->roots[i] = add_copy(g, n, n->roots[i]);
}

/** A SET on the array that it keeps, or on a copy of its own. */
static const node *rebuild_set(rebuilding *m, const node *n) {
  const node *old = map_get(&m->changed_arrays, n->src[0]), *copy = map_get(&m->image, n->src[0]);
  if (map_has(&m->others, n)) old = add_copy(m->g, m->n, old);
  if (n->op == OP_SCATTER) return with_old_contents(m, rebuild_node(m, n), old);
  const node *view =
      subst_view_base(m->g, ir_scratch(m->g), map_get(&m->image, n->src[1]), copy, old);
  const node *src[] = {old, view, map_get(&m->image, n->src[2])};
  return ir_with_sources(m->g, n, src);
}

/** The array that SETs change stays; all readers but these SETs get a copy. */
static const node *copy_for_others(rebuilding *m, const node *n) {
  bool is_set = map_has(&m->keepers, n) || map_has(&m->others, n);
  const node *made = is_set ? rebuild_set(m, n) : rebuild_node(m, n);
  if (!map_has(&m->changed_arrays, n)) return made;
  map_set(ir_scratch(m->g), &m->changed_arrays, n, (void *)made);
  return add_copy(m->g, m->n, made);
}

void versions_copy_for_readers(ir *g, normalised *n, const node *const sets[], size_t n_sets) {
  rebuilding m = {.g = g, .n = n};
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  for (size_t i = 0; i < n_sets; i++) {
    bool is_kept = map_has(&m.changed_arrays, sets[i]->src[0]);
    map_set(a, is_kept ? &m.others : &m.keepers, sets[i], (void *)sets[i]);
    map_set(a, &m.changed_arrays, sets[i]->src[0], NULL);
  }
  rebuild_graph(&m, copy_for_others);
  arena_rewind(a, here);
}
