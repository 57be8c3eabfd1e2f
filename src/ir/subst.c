#include "ir/subst.h"

#include "ir/binder.h"
#include "ir/topo.h"

typedef struct substitution {
  ir *g;
  arena *a;
  map done;              /* node → what stands for it */
  const range_set *keys; /* NULL: enter every node */
} substitution;

/** What AND or OR is where one side is known; NULL: none is. */
static const node *decided_by_one(const node *n, const node *const src[]) {
  for (int k = 0; k < 2; k++) {
    if (src[k]->op != OP_CONST || src[k]->lanes != n->lanes) continue;
    bool decides = (node_int(src[k]) != 0) == (n->op == OP_OR);
    return src[decides ? k : 1 - k];
  }
  return NULL;
}

const node *subst_rebuild(ir *g, const node *n, const node *const src[]) {
  bool of_index = n->n_src && n->src[0]->dtype == DT_INDEX;
  if (n->op == OP_LT && of_index) return ix_lt(g, src[0], src[1]);
  if (n->op == OP_LE && of_index) return ix_le(g, src[0], src[1]);
  if (n->op == OP_RANGE && of_index) return range_with(g, n, src[0], range_kind_of(n));
  if (n->op == OP_WHERE && src[0]->op == OP_CONST && src[0]->lanes == 1)
    return src[node_int(src[0]) ? 1 : 2];
  if ((n->op == OP_AND || n->op == OP_OR) && n->dtype == DT_BOOL) {
    const node *decided = decided_by_one(n, src);
    if (decided) return decided;
  }
  if (n->dtype == DT_INDEX && n->n_src) return ix_rebuild(g, n, src);
  return ir_with_sources(g, n, src);
}

const node *subst_view(ir *g, arena *a, const node *view, const node *old, const node *other) {
  node_list chain = {0};
  for (; view != old; view = view->src[0]) vec_push(a, &chain, view);
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = arena_copy(a, v->src, v->n_src * sizeof *src);
    src[0] = other;
    other = ir_with_sources(g, v, src);
  }
  return other;
}

static bool enters(const node *n, void *user) {
  const substitution *s = user;
  return !map_has(&s->done, n) && (!s->keys || range_set_meets(n->free, s->keys));
}

static const node *image(const substitution *s, const node *n) {
  const node *with = map_get(&s->done, n);
  return with ? with : n;
}

/** A node whose places may have become indices: it is where the ranges of these are. */
static const node *placed(substitution *s, const node *n, const node *const src[]) {
  node_list all = {0};
  for (uint32_t i = 0; i < n->n_src; i++) {
    bool moved = node_is_place(n, i) && src[i]->op != OP_RANGE && src[i]->op != OP_CONST;
    const node *const *from = moved ? src[i]->free->at : &src[i];
    for (uint32_t k = 0; k < (moved ? src[i]->free->n : 1); k++) vec_push(s->a, &all, from[k]);
  }
  node_spec spec = ir_spec(n, all.at, all.n);
  return ir_make(s->g, &spec);
}

static const node *substituted(substitution *s, const node *n) {
  bool changed = false;
  arena_mark here = arena_here(s->a);
  const node **src = arena_alloc(s->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image(s, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *r = n;
  if (changed && node_values(n) < n->n_src)
    r = placed(s, n, src);
  else if (changed)
    r = subst_rebuild(s->g, n, src);
  arena_reset(s->a, here);
  return r;
}

static const node *run(substitution *s, const node *root) {
  node_list order = topo_sort(s->a, &root, 1, enters, s);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!enters(n, s)) continue;
    const node *with = substituted(s, n);
    if (with != n) map_set(s->a, &s->done, n, (void *)with);
  }
  return image(s, root);
}

static void start(substitution *s, ir *g, arena *a, const map *with) {
  *s = (substitution){.g = g, .a = a};
  for (size_t i = 0; i < with->cap; i++)
    if (with->slot[i].key) map_set(a, &s->done, with->slot[i].key, with->slot[i].value);
}

/** Only RANGE nodes are keys; the set holds each key itself, not what its extent depends on. */
static const range_set *key_set(ir *g, const map *with) {
  const range_set *keys = NULL;
  for (size_t i = 0; i < with->cap; i++) {
    const node *r = with->slot[i].key;
    if (!r) continue;
    const range_set *self = r->free;
    for (uint32_t k = r->free->n; k-- > 0;)
      if (r->free->at[k] != r) self = ir_range_without(g, self, r->free->at[k]);
    keys = keys ? ir_range_union(g, keys, self) : self;
  }
  return keys;
}

static const node *with_scratch(ir *g, const node *root, const map *with, const range_set *keys,
                                bool copy);

const node *subst(ir *g, const node *root, const map *with) {
  return with->n ? with_scratch(g, root, with, NULL, false) : root;
}

const node *subst_ranges(ir *g, const node *root, const map *with) {
  return with->n ? with_scratch(g, root, with, key_set(g, with), false) : root;
}

const node *subst_copy(ir *g, const node *root, const map *with) {
  return with->n ? with_scratch(g, root, with, key_set(g, with), true) : root;
}

static void freshen_binder(substitution *s, const node *b) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges);
  for (size_t k = 0; k < n; k++) {
    if (map_has(&s->done, ranges[k])) continue;
    const node *r = ranges[k], *fresh = range_copy(s->g, r, run(s, range_extent(r)));
    map one = {0};
    map_set(s->a, &one, r, (void *)fresh);
    map_set(s->a, &s->done, r, (void *)fresh);
    s->keys = ir_range_union(s->g, s->keys, key_set(s->g, &one));
  }
}

static bool meets_keys(const node *n, void *user) {
  return range_set_meets(n->free, ((const substitution *)user)->keys);
}

/** Gives the ranges of every binder that will change a fresh identity, outer binders first: until
    those of one binder make no other change. */
static void freshen(substitution *s, const node *root) {
  for (const range_set *known = NULL; known != s->keys;) {
    known = s->keys;
    node_list order = topo_sort(s->a, &root, 1, meets_keys, s);
    for (size_t i = order.n; i-- > 0;)
      if (node_is_binder(order.at[i]) && meets_keys(order.at[i], s)) freshen_binder(s, order.at[i]);
  }
}

/* The work lists live in an arena of their own; results are in the ir's. */

typedef struct job {
  substitution s;
  arena work;
  const map *with;
  const node *root, *result;
  bool copy;
} job;

static void body(void *arg) {
  job *j = arg;
  const range_set *keys = j->s.keys;
  start(&j->s, j->s.g, &j->work, j->with);
  j->s.keys = keys;
  if (j->copy) freshen(&j->s, j->root);
  j->result = run(&j->s, j->root);
}

static const node *with_scratch(ir *g, const node *root, const map *with, const range_set *keys,
                                bool copy) {
  job j = {.s = {.g = g, .keys = keys}, .with = with, .root = root, .copy = copy};
  arena_init(&j.work, ir_mem(g), ir_diag(g));
  tn_status status = diag_catch(ir_diag(g), body, &j);
  arena_free(&j.work);
  if (status != TN_OK) diag_rethrow(ir_diag(g));
  return j.result;
}
