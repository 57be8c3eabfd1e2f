/* Implements substitution: rebuilds the affected nodes in topological order. With ranges as keys,
   nodes in which no key is free are shared with the original without being visited. */
#include "ir/transform/substitute.h"

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"

typedef struct substitution {
  ir *g;
  arena *a;
  map images;            /* node → its replacement */
  const range_set *keys; /* NULL: enter every node */
  uint64_t oldest;       /* the least id of a node with a replacement from the start */
} substitution;

/** Replaces a node from the start on. */
static void replace_node(substitution *s, const node *n, const node *with) {
  map_set(s->a, &s->images, n, (void *)with);
  if (n->id < s->oldest) s->oldest = n->id;
}

/** AND or OR with a constant side: the other side or a constant. NULL if neither is constant. */
static const node *simplify_logic(const node *n, const node *const src[]) {
  for (int k = 0; k < 2; k++) {
    if (src[k]->op != OP_CONST || src[k]->lanes != n->lanes) continue;
    bool decides = (node_int(src[k]) != 0) == (n->op == OP_OR);
    return src[decides ? k : 1 - k];
  }
  return NULL;
}

/** A PICK of other sources. Its sizes are the images of the old ones, which others' are too, except
    where both sides have come to be of one size. */
static const node *rebuild_pick(ir *g, const node *n, const node *const src[]) {
  const node *all[IR_MAX_RANK + 3] = {src[0], src[1], src[2]};
  if (src[1] == src[2] || node_is_const(src[0])) return ir_pick(g, src[0], src[1], src[2]);
  for (size_t i = 0; i < src[1]->rank; i++) {
    bool is_same = src[1]->dims[i] == src[2]->dims[i];
    all[3 + i] = is_same ? src[1]->dims[i] : src[3 + i];
  }
  return ir_with_sources(g, n, all);
}

const node *subst_rebuild(ir *g, const node *n, const node *const src[]) {
  bool of_index = n->n_src && n->src[0]->dtype == DT_INDEX;
  if (n->op == OP_LT && of_index) return ix_lt(g, src[0], src[1]);
  if (n->op == OP_LE && of_index) return ix_le(g, src[0], src[1]);
  if (n->op == OP_RANGE && of_index) return range_with(g, n, src[0], range_kind_of(n));
  if (n->op == OP_WHERE && src[0]->op == OP_CONST && src[0]->lanes == 1)
    return src[node_int(src[0]) ? 1 : 2];
  if ((n->op == OP_AND || n->op == OP_OR) && n->dtype == DT_BOOL) {
    const node *simpler = simplify_logic(n, src);
    if (simpler) return simpler;
  }
  if (n->dtype == DT_INDEX && n->n_src) return ix_rebuild(g, n, src);
  if (n->op == OP_PICK) return rebuild_pick(g, n, src);
  return ir_with_sources(g, n, src);
}

const node *subst_view_base(ir *g, arena *a, const node *view, const node *old, const node *other) {
  node_list chain = {0};
  for (; view != old; view = view->src[0]) vec_push(a, &chain, view);
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = arena_copy(a, v->src, v->n_src * sizeof *src);
    src[0] = other;
    other = ir_with_sources(g, v, src);
  }
  return other;
}

/** True for nodes to be rebuilt. Users have larger ids than their sources. */
static bool is_affected(const node *n, void *user) {
  const substitution *s = user;
  return n->id > s->oldest && !map_has(&s->images, n) &&
         (!s->keys || range_set_intersects(n->free, s->keys));
}

static const node *image(const substitution *s, const node *n) {
  const node *with = n->id < s->oldest ? NULL : map_get(&s->images, n);
  return with ? with : n;
}

/** Remakes a node with scope sources; one that has become an index is replaced by its free
    ranges. */
static const node *rebuild_scoped(substitution *s, const node *n, const node *const src[]) {
  node_list all = {0};
  for (uint32_t i = 0; i < n->n_src; i++) {
    bool moved = node_is_scope_source(n, i) && src[i]->op != OP_RANGE && src[i]->op != OP_CONST;
    const node *const *from = moved ? src[i]->free->at : &src[i];
    for (uint32_t k = 0; k < (moved ? src[i]->free->n : 1); k++) vec_push(s->a, &all, from[k]);
  }
  node_spec spec = node_spec_with_sources(n, all.at, all.n);
  return ir_make(s->g, &spec);
}

static const node *rebuild_image(substitution *s, const node *n) {
  bool changed = false;
  arena_mark here = arena_save(s->a);
  const node **src = arena_alloc(s->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image(s, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *r = n;
  if (changed && node_n_operands(n) < n->n_src)
    r = rebuild_scoped(s, n, src);
  else if (changed)
    r = subst_rebuild(s->g, n, src);
  arena_rewind(s->a, here);
  return r;
}

static const node *substitute_below(substitution *s, const node *root) {
  node_list order = topo_sort(s->a, &root, 1, is_affected, s);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_affected(n, s)) continue;
    const node *with = rebuild_image(s, n);
    if (with != n) map_set(s->a, &s->images, n, (void *)with);
  }
  return image(s, root);
}

static void start_substitution(substitution *s, ir *g, arena *a, const map *with) {
  *s = (substitution){.g = g, .a = a, .oldest = UINT64_MAX};
  for (size_t i = 0; i < with->n; i++) replace_node(s, with->at[i].key, with->at[i].value);
}

/** The set of the keys, which are RANGEs; free ranges of their extents are not in it. */
static const range_set *set_of_keys(ir *g, const map *with) {
  const range_set *keys = NULL;
  for (size_t i = 0; i < with->n; i++) {
    const node *r = with->at[i].key;
    const range_set *self = r->free;
    for (uint32_t k = r->free->n; k-- > 0;)
      if (r->free->at[k] != r) self = range_set_without(g, self, r->free->at[k]);
    keys = keys ? range_set_union(g, keys, self) : self;
  }
  return keys;
}

static const node *run_substitution(ir *g, const node *root, const map *with, const range_set *keys,
                                    bool copy);

const node *subst(ir *g, const node *root, const map *with) {
  return with->n ? run_substitution(g, root, with, NULL, false) : root;
}

const node *subst_ranges(ir *g, const node *root, const map *with) {
  return with->n ? run_substitution(g, root, with, set_of_keys(g, with), false) : root;
}

const node *subst_fresh_ranges(ir *g, const node *root, const map *with) {
  return with->n ? run_substitution(g, root, with, set_of_keys(g, with), true) : root;
}

static void freshen_binder(substitution *s, const node *b) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges);
  for (size_t k = 0; k < n; k++) {
    if (map_has(&s->images, ranges[k])) continue;
    const node *r = ranges[k], *fresh = range_clone(s->g, r, substitute_below(s, range_extent(r)));
    map one = {0};
    map_set(s->a, &one, r, (void *)fresh);
    replace_node(s, r, fresh);
    s->keys = range_set_union(s->g, s->keys, set_of_keys(s->g, &one));
  }
}

static bool depends_on_keys(const node *n, void *user) {
  return range_set_intersects(n->free, ((const substitution *)user)->keys);
}

/** Gives fresh ids to the ranges of every binder that changes, outer binders first. Each fresh
    range is a key that may change more binders, so this iterates to a fixed point. */
static void freshen_binders(substitution *s, const node *root) {
  for (const range_set *known = NULL; known != s->keys;) {
    known = s->keys;
    node_list order = topo_sort(s->a, &root, 1, depends_on_keys, s);
    for (size_t i = order.n; i-- > 0;)
      if (node_is_binder(order.at[i]) && depends_on_keys(order.at[i], s))
        freshen_binder(s, order.at[i]);
  }
}

static const node *run_substitution(ir *g, const node *root, const map *with, const range_set *keys,
                                    bool copy) {
  substitution s;
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  start_substitution(&s, g, a, with);
  s.keys = keys;
  if (copy) freshen_binders(&s, root);
  const node *result = substitute_below(&s, root);
  arena_rewind(a, here);
  return result;
}
