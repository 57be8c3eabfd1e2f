/* Chooses the fusion group that stores a value which is to be in memory. A reader that computes it
   anyway at each of its elements hosts the store; otherwise the value becomes one more root of a
   group of the same sizes that has an input in common, or the root of a new group. */
#include "schedule/fuse/search_state.h"

#include "ir/core/binder.h"

/** True if a group may write v: all other groups that read it run later. */
static bool may_write(const group *g, const value *v) {
  for (size_t i = 0; i < v->places->uses.n; i++) {
    const use *u = v->places->uses.at[i];
    if (u->g == g ? u->is_whole : u->g->key <= g->key) return false;
  }
  return true;
}

/** True for the group of a value that a FOLD computes, which stores nothing else. */
static bool computes_updates(const group *g) {
  return g->stores.n && g->stores.at[0].use->v->updates;
}

static bool overwrites_array(const value *v) {
  for (size_t i = 0; i < v->memory.stores.n; i++)
    if (op_overwrites((op)v->memory.stores.at[i].array->op)) return true;
  return false;
}

/** True if a group writes an array that lies in the same one as an array of v: a kernel writes a
    buffer once. */
static bool writes_holder(const grouping *s, const group *g, const value *v) {
  const values *all = s->values;
  if (!all->places.n || !map_has(&all->places, v->tensor)) return false;
  for (size_t i = 0; i < g->stores.n; i++) {
    const node *other = g->stores.at[i].use->v->tensor;
    if (values_holder(all, other) == values_holder(all, v->tensor)) return true;
  }
  return false;
}

/** True if an index over the root's ranges takes each index of a size once. */
static bool covers_size_once(const group *g, const node *index, const node *size) {
  range_mask free = nests_free_ranges(&g->nests, index);
  if (index->op == OP_RANGE && free && !(free & ~g->root->own)) return range_extent(index) == size;
  for (size_t k = 0; k < g->root->n_index; k++)
    if (free && g->root->index[k] == index) return g->root->extents[k] == size;
  return false;
}

/** True if a point takes each element of v once, over some of the root's ranges; the other ranges
   are not empty. A value that is stored over old contents must be written once, as they are gone
   after the first time: then there are no other ranges. */
static bool covers_value_once(const group *g, const value *v, const point *p) {
  range_mask seen = 0;
  for (size_t k = 0; k < v->rank; k++) {
    const node *x = p->index->src[1 + k];
    if (node_is_bits(v->dims[k], 1) && node_is_bits(x, 0)) continue;
    range_mask free = nests_free_ranges(&g->nests, x);
    if (!covers_size_once(g, x, v->dims[k]) || free & seen) return false;
    seen |= free;
  }
  if (overwrites_array(v)) return seen == g->root->own;
  for (range_mask rest = g->root->own & ~seen; rest; rest &= rest - 1)
    if (range_extent(g->nests.range[__builtin_ctzll(rest)])->lo < 1) return false;
  return true;
}

/** True if v would be written in some loops of the root nest while a contraction runs in all of
   them: its register tiles would be lost. */
static bool breaks_tiles(const group *g, const point *p) {
  if (!(g->root->own & ~p->free)) return false;
  for (size_t i = 0; i < g->uses.n; i++) {
    const use *u = g->uses.at[i];
    if (u->how == FUSION_INLINED && value_is_contraction(u->v) && u->points.n &&
        !(g->root->own & ~u->points.at[0].free))
      return true;
  }
  return false;
}

/** The number of arrays that hold v once it is written. */
static size_t count_arrays(const value *v) { return v->memory.stores.n ? v->memory.stores.n : 1; }

static bool has_extents(const group *g, const value *v) {
  if (g->root->n_index != v->rank) return false;
  for (size_t k = 0; k < v->rank; k++)
    if (g->root->extents[k] != v->dims[k]) return false;
  return true;
}

static const node *root_index(const grouping *s, const group *g, const value *v) {
  return index_make(s->g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, g->root->index);
}

/** True if a group may compute v at each index of its root too, for next to nothing. */
static bool is_cheap_at_root(grouping *s, const use *u, const option *how) {
  const group *g = u->g;
  const value *v = u->v;
  if (!has_extents(g, v) || overwrites_array(v)) return false;
  if (how->how == FUSION_INLINED)
    return v->facts->cost.again < s->m->launch && group_may_read_at(s, g, v, root_index(s, g, v));
  for (size_t k = 0; k < v->rank; k++)
    if (how->shared >> k & 1 && u->points.at[0].index->src[1 + k] != g->root->index[k])
      return false;
  return true;
}

/** The element at which a group that computes v may write it; NULL: none. New contents of an array
   are computed once, as the old contents are gone afterwards. */
static const node *index_to_write(grouping *s, const use *u, const option *how) {
  if (overwrites_array(u->v) && (u->points.n > 1 || how->how != FUSION_INLINED)) return NULL;
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    if (covers_value_once(u->g, u->v, p) && !breaks_tiles(u->g, p)) return p->index;
  }
  return is_cheap_at_root(s, u, how) ? root_index(s, u->g, u->v) : NULL;
}

use *store_find_host(grouping *s, const value *v, const option *const best[]) {
  if (s->request->policy == FUSION_NONE || v->memory.is_never_inlined || v->memory.is_cut)
    return NULL;
  if (!v->memory.stores.n && v->places->uses.n < 2) return NULL;
  for (size_t i = 0; i < v->places->uses.n; i++) {
    use *u = v->places->uses.at[i];
    bool fits = best[i] && !u->g->custom && !computes_updates(u->g) && may_write(u->g, v) &&
                group_guard(u->g) == v->guard && !writes_holder(s, u->g, v) &&
                index_to_write(s, u, best[i]);
    if (fits && group_count_arguments(u->g) + count_arrays(v) <= s->request->arguments) return u;
  }
  return NULL;
}

/** Orders the root nest of updates: the ranges along which they may meet are those of a FOLD,
   inside of the others. */
static void order_update_ranges(group *g, const value *v) {
  range_mask apart = 0;
  if (!v->updates || (v->updates->is_distinct && !v->updates->is_scan)) return;
  for (size_t k = 0; k < v->rank; k++)
    if (!(v->updates->along >> k & 1)) apart |= nests_free_ranges(&g->nests, g->root->index[k]);
  nests_fix_order(&g->nests, apart);
}

static group *new_group(grouping *s, value *v) {
  group *g = arena_calloc(s->a, 1, sizeof *g);
  g->key = v->position;
  g->nests.g = s->g;
  g->used.lanes = cost_vector_lanes(s->m, (dtype)v->tensor->dtype);
  if (!v->body) g->custom = v;
  g->root =
      nests_add(&g->nests, NEST_ROOT, v->rank, v->dims, v->updates ? NULL : v->facts->blocks, 0);
  if (!g->root) diag_raise(ir_diag(s->g), TN_ERR_UNSUPPORTED, "a value has too many dimensions");
  order_update_ranges(g, v);
  vec_push(s->a, &s->groups, g);
  return g;
}

/** True if v may become one more root of a group: of the same sizes, and read by none of its
 * members. */
static bool may_become_root(grouping *s, const group *g, const value *v) {
  if (g->custom || !g->stores.n || v->device != group_device(g)) return false;
  if (v->updates || computes_updates(g) || !has_extents(g, v) || map_has(&g->use_of, v))
    return false;
  if (writes_holder(s, g, v) || group_guard(g) != v->guard) return false;
  /* A stopgap: contractions in one nest seldom share loads, and a tile of each needs registers. */
  if (v->facts->tiles.path > 0 && !value_reads_scan(s->values, v)) return false;
  point at = {.index = root_index(s, g, v), .free = g->root->own};
  demand more = {.nests = value_is_reduction(v),
                 .ranges = v->reduction.n,
                 .code = code_add(v->facts->code.own, v->facts->code.reads[0]),
                 .whole = v->facts->code.whole,
                 .points = 1};
  more.code.once += inline_tile_code(s, g, v, &at);
  return may_write(g, v) && group_may_read_at(s, g, v, at.index) &&
         group_has_room(s, g, v, &more) &&
         group_count_arguments(g) + count_arrays(v) + group_count_new_reads(s, g, v) <=
             s->request->arguments;
}

static group *recent_group_to_join(grouping *s, const node *lead, const value *v) {
  recent *r = map_get(&s->recent, lead);
  for (size_t i = 0; r && i < FUSION_RECENT_GROUPS; i++)
    if (r->at[i] && may_become_root(s, r->at[i], v)) return r->at[i];
  return NULL;
}

/** A group with an input of v's that may write v too; NULL: none. */
static group *group_to_join(grouping *s, const value *v) {
  if (s->request->policy == FUSION_NONE || !v->body) return NULL;
  group *g = recent_group_to_join(s, v->facts->lead, v);
  for (size_t i = 0; !g && i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&s->values->of, v->inputs.tensors.at[i]);
    g = recent_group_to_join(s, from ? from->facts->lead : v->inputs.tensors.at[i], v);
  }
  return g;
}

static void remember_group(grouping *s, const value *v, group *g) {
  recent *r = map_get(&s->recent, v->facts->lead);
  if (!r) map_set(s->a, &s->recent, v->facts->lead, r = arena_calloc(s->a, 1, sizeof *r));
  r->at[r->next++ % FUSION_RECENT_GROUPS] = g;
}

/** Lets the group of a use write v at an element. */
static void add_store(grouping *s, value *v, use *u, const node *index) {
  if (!v->memory.stores.n) {
    v->places->is_free = true;
    vec_push(s->a, &v->memory.stores, (value_store){v->tensor, v->coords, v->rank});
  }
  v->places->home = u->g;
  u->g->used.outputs += v->memory.stores.n;
  v->places->store_index = index;
  vec_push(s->a, &u->g->stores, (fusion_store){u, index});
}

/** Makes v a root of a group that it joins, or of a new one. */
static use *add_root(grouping *s, value *v) {
  group *g = group_to_join(s, v);
  if (!g) remember_group(s, v, g = new_group(s, v));
  const node *index = root_index(s, g, v);
  group_add_point(s, g, v, index, 0);
  use *u = group_use_of(s, g, v);
  add_store(s, v, u, index);
  inline_by_option(s, u, &(option){.how = FUSION_INLINED});
  return u;
}

/** Adds the arrays that must be in memory before v is written to the reads of its group. */
static void add_whole_reads(grouping *s, const value *v, group *home) {
  for (size_t i = 0; i < v->inputs.arrays.n; i++) {
    value *from = map_get(&s->values->of, v->inputs.arrays.at[i]);
    if (from && from != v) group_use_of(s, home, from)->is_whole = true;
  }
  group_add_items(s, home, v);
}

/** True if a reader other than the home computes a value again for less than it takes to load it.
 */
static bool is_cheaper_again(grouping *s, const value *v, size_t i, const option *best,
                             const use *home) {
  use *u = v->places->uses.at[i];
  return u != home && best && best->how == FUSION_INLINED && s->request->policy == FUSION_BY_COST &&
         best->cost + v->facts->cost.again < cost_load(s->m, v) && group_may_read_all(s, u);
}

/** True if some reader loads a value, or its array is needed whoever reads it: else it would be
   stored for nobody if readers computed it again. */
static bool is_stored_for_somebody(grouping *s, const value *v, const option *const best[],
                                   const use *home, bool is_required) {
  bool loads = is_required;
  for (size_t i = 0; i < v->places->uses.n; i++)
    loads |= v->places->uses.at[i] != home && !is_cheaper_again(s, v, i, best[i], home);
  return loads;
}

void store_write_value(grouping *s, value *v, const option *const best[], use *home) {
  size_t readers = v->places->uses.n;
  bool is_required = v->memory.stores.n;
  if (home) {
    size_t i = 0;
    while (v->places->uses.at[i] != home) i++;
    const node *index = index_to_write(s, home, best[i]);
    group_add_point(s, home->g, v, index, 0);
    add_store(s, v, home, index);
    inline_by_option(s, home, best[i]);
  } else {
    home = add_root(s, v);
  }
  add_whole_reads(s, v, home->g);
  bool may_repeat = is_stored_for_somebody(s, v, best, home, is_required);
  for (size_t i = 0; i < readers; i++) {
    use *u = v->places->uses.at[i];
    if (u == home) continue;
    if (may_repeat && is_cheaper_again(s, v, i, best[i], home))
      inline_by_option(s, u, best[i]);
    else
      u->how = FUSION_LOADED;
  }
}
