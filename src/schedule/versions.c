/* Versions of arrays. A SET writes into the storage of what it changes. Where the old contents must
   survive it changes a copy instead; where others read them later, those read a copy. A copy is an
   identity SLICE that is written down. */
#include "ir/build.h"
#include "ir/subst.h"
#include "schedule/passes.h"

const node *versions_identity(ir *g, const node *x) {
  arena *a = ir_arena(g);
  const node **starts = arena_alloc(a, (x->rank + 1u) * sizeof *starts);
  int64_t *steps = arena_alloc(a, (x->rank + 1u) * sizeof *steps);
  for (size_t i = 0; i < x->rank; i++) {
    starts[i] = ix_const(g, 0);
    steps[i] = 1;
  }
  return ir_slice(g, x, starts, x->dims, steps);
}

/** A copy that nothing else reads or changes: where there is one already, a copy of that. */
static const node *copy_of(ir *g, normalised *n, const node *x) {
  const node *last = map_get(&n->last_copy, x), *copy = versions_identity(g, last ? last : x);
  while (map_has(&n->copies, copy)) copy = versions_identity(g, copy);
  map_set(ir_arena(g), &n->copies, copy, (void *)copy);
  map_set(ir_arena(g), &n->last_copy, x, (void *)copy);
  return copy;
}

/** Remakes the graph in one walk; `change` gives a node of the new graph for one of the old, with
    its sources already new. Copies that are remade stay copies. */
typedef struct remaking {
  ir *g;
  normalised *n;
  const schedule_request *request;
  map image;
  map roots, copies; /* as they were */
  map sets, kept;    /* versions_copy_for_readers: SETs; what they change, as it is now */
} remaking;

static const node *same(remaking *m, const node *n) {
  const node **src = arena_alloc(ir_arena(m->g), n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&m->image, n->src[i]);
  const node *made = subst_rebuild(m->g, n, src);
  if (map_has(&m->copies, n)) map_set(ir_arena(m->g), &m->n->copies, made, (void *)made);
  return made;
}

static void remake(remaking *m, const node *(*change)(remaking *m, const node *n)) {
  arena *a = ir_arena(m->g);
  node_list order = topo_sort(a, m->n->roots, m->n->n_roots, NULL, NULL);
  m->copies = m->n->copies;
  m->n->copies = m->n->last_copy = (map){0};
  for (size_t i = 0; i < m->n->n_roots; i++) map_set(a, &m->roots, m->n->roots[i], NULL);
  for (size_t i = 0; i < order.n; i++)
    map_set(a, &m->image, order.at[i], (void *)change(m, order.at[i]));
  for (size_t i = 0; i < m->n->n_roots; i++) m->n->roots[i] = map_get(&m->image, m->n->roots[i]);
}

static bool may_change(const remaking *m, const node *old) {
  const schedule_request *r = m->request;
  if (map_has(&m->roots, old)) return false;
  if (old->op != OP_PARAM) return true;
  return r->may_overwrite && r->may_overwrite(r->user, m->n->origins.at[old->ints[0]]);
}

static const node *over_copy(remaking *m, const node *n) {
  const node *made = same(m, n);
  if (n->op != OP_SET || may_change(m, n->src[0])) return made;
  const node *old = made->src[0], *copy = copy_of(m->g, m->n, old);
  const node *view = subst_view(m->g, ir_arena(m->g), made->src[1], old, copy);
  const node *src[] = {copy, view, made->src[2]};
  return ir_with_sources(m->g, made, src);
}

void schedule_versions(ir *g, const schedule_request *r, normalised *n) {
  remaking m = {.g = g, .n = n, .request = r};
  remake(&m, over_copy);
  for (size_t i = 0; i < n->n_roots; i++)
    if (n->roots[i]->op == OP_PARAM) n->roots[i] = copy_of(g, n, n->roots[i]);
}

static const node *set_again(remaking *m, const node *n) {
  const node *old = map_get(&m->kept, n->src[0]), *copy = map_get(&m->image, n->src[0]);
  const node *view = subst_view(m->g, ir_arena(m->g), map_get(&m->image, n->src[1]), copy, old);
  const node *src[] = {old, view, map_get(&m->image, n->src[2])};
  return ir_with_sources(m->g, n, src);
}

/** What a SET changes stays; what all others read of it is a copy. */
static const node *reading_copy(remaking *m, const node *n) {
  const node *made = map_has(&m->sets, n) ? set_again(m, n) : same(m, n);
  if (!map_has(&m->kept, n)) return made;
  map_set(ir_arena(m->g), &m->kept, n, (void *)made);
  return copy_of(m->g, m->n, made);
}

void versions_copy_for_readers(ir *g, normalised *n, const node *const sets[], size_t n_sets) {
  remaking m = {.g = g, .n = n};
  for (size_t i = 0; i < n_sets; i++) {
    map_set(ir_arena(g), &m.sets, sets[i], (void *)sets[i]);
    map_set(ir_arena(g), &m.kept, sets[i]->src[0], NULL);
  }
  remake(&m, reading_copy);
}
