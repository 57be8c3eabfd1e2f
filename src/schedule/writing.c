/* Who writes a value. */
#include "schedule/grouping.h"

#include "ir/binder.h"

/** Whether a group may write v: all other groups that read it come later. */
static bool may_write(const group *g, const value *v) {
  for (size_t i = 0; i < v->places->uses.n; i++) {
    const use *u = v->places->uses.at[i];
    if (u->g == g ? u->is_whole : u->g->key <= g->key) return false;
  }
  return true;
}

static bool changes_an_array(const value *v) {
  for (size_t i = 0; i < v->stores.n; i++)
    if (v->stores.at[i].array->op == OP_SET) return true;
  return false;
}

/** Whether an index goes once through all that a size has, in the root's ranges. */
static bool is_whole_index(const group *g, const node *index, const node *size) {
  range_mask free = nests_free(&g->nests, index);
  if (index->op == OP_RANGE && free && !(free & ~g->root->own)) return range_extent(index) == size;
  for (size_t k = 0; k < g->root->n_index; k++)
    if (free && g->root->index[k] == index) return g->root->extents[k] == size;
  return false;
}

/** Whether a point is an element for each index of some of the root's ranges, each once; the other
    ranges have some index. Old contents are gone after the first time: a value that is stored over
    them is written once, so there are no other ranges. */
static bool is_identity(const group *g, const value *v, const point *p) {
  range_mask seen = 0;
  for (size_t k = 0; k < v->rank; k++) {
    const node *x = p->index->src[1 + k];
    if (node_is_bits(v->dims[k], 1) && node_is_bits(x, 0)) continue;
    range_mask free = nests_free(&g->nests, x);
    if (!is_whole_index(g, x, v->dims[k]) || free & seen) return false;
    seen |= free;
  }
  if (changes_an_array(v)) return seen == g->root->own;
  for (range_mask rest = g->root->own & ~seen; rest; rest &= rest - 1)
    if (range_extent(g->nests.range[__builtin_ctzll(rest)])->lo < 1) return false;
  return true;
}

/** Whether v would be written in some loops of a nest in the others of which products are added up:
    those are no tiles then. */
static bool breaks_tiles(const group *g, const point *p) {
  if (!(g->root->own & ~p->free)) return false;
  for (size_t i = 0; i < g->uses.n; i++) {
    const use *u = g->uses.at[i];
    if (u->how == INLINED && value_is_reduction(u->v) && u->v->facts->factors.n > 1 &&
        u->points.n && !(g->root->own & ~u->points.at[0].free))
      return true;
  }
  return false;
}

/** How many arrays hold v once it is written. */
static size_t arrays_of(const value *v) { return v->stores.n ? v->stores.n : 1; }

static bool has_extents(const group *g, const value *v) {
  if (g->root->n_index != v->rank) return false;
  for (size_t k = 0; k < v->rank; k++)
    if (g->root->extents[k] != v->dims[k]) return false;
  return true;
}

static const node *root_index(const grouping *s, const group *g, const value *v) {
  return index_make(s->g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, g->root->index);
}

/** Whether a group may compute v at each place of its root besides, for next to nothing. */
static bool is_free_at_root(grouping *s, const use *u, const option *how) {
  const group *g = u->g;
  const value *v = u->v;
  if (!has_extents(g, v) || changes_an_array(v)) return false;
  if (how->how == INLINED)
    return v->facts->again < s->m->launch && may_read_at(s, g, v, root_index(s, g, v));
  for (size_t k = 0; k < v->rank; k++)
    if (how->shared >> k & 1 && u->points.at[0].index->src[1 + k] != g->root->index[k])
      return false;
  return true;
}

/** The element at which a group that computes v may write it; NULL: none. New contents of an array
    are not computed again: what they are computed from is gone. */
static const node *index_to_write(grouping *s, const use *u, const option *how) {
  if (changes_an_array(u->v) && (u->points.n > 1 || how->how != INLINED)) return NULL;
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    if (is_identity(u->g, u->v, p) && !breaks_tiles(u->g, p)) return p->index;
  }
  return is_free_at_root(s, u, how) ? root_index(s, u->g, u->v) : NULL;
}

/** A group that reads v, computes it anyway at each of its elements, and may write it. */
use *host_of(grouping *s, const value *v, const option *const best[]) {
  if (s->request->policy == GROUPING_STAGED || v->only_loaded || v->is_cut) return NULL;
  if (!v->stores.n && v->places->uses.n < 2) return NULL;
  for (size_t i = 0; i < v->places->uses.n; i++) {
    use *u = v->places->uses.at[i];
    bool fits = best[i] && !u->g->custom && may_write(u->g, v) && index_to_write(s, u, best[i]);
    if (fits && group_arguments(u->g) + arrays_of(v) <= s->request->arguments) return u;
  }
  return NULL;
}

static group *new_group(grouping *s, value *v) {
  group *g = arena_calloc(s->a, 1, sizeof *g);
  g->key = v->position;
  g->nests.g = s->g;
  g->lanes = price_lanes(s->m, (dtype)v->tensor->dtype);
  if (!v->body) g->custom = v;
  g->root = nest_open(&g->nests, NEST_ROOT, v->rank, v->dims, v->facts->blocks, 0);
  if (!g->root) diag_raise(ir_diag(s->g), TN_ERR_UNSUPPORTED, "a value has too many dimensions");
  vec_push(s->a, &s->groups, g);
  return g;
}

/** Whether v may be one more root of a group: of the same sizes, and read by none of its members.
 */
static bool may_join(grouping *s, const group *g, const value *v) {
  if (g->custom || !g->stores.n || !has_extents(g, v) || map_has(&g->use_of, v)) return false;
  point at = {.index = root_index(s, g, v), .free = g->root->own};
  demand more = {.nests = value_is_reduction(v),
                 .ranges = v->n_reduced,
                 .code = code_sum(v->facts->own, v->facts->reads[0]),
                 .whole = v->facts->whole};
  more.code.once += tile_code(s, g, v, &at);
  return may_write(g, v) && may_read_at(s, g, v, at.index) && has_room(s, g, v, &more) &&
         group_arguments(g) + arrays_of(v) + new_reads(s, g, v) <= s->request->arguments;
}

static group *group_led_by(grouping *s, const node *lead, const value *v) {
  recent *r = map_get(&s->recent, lead);
  for (size_t i = 0; r && i < RECENT_GROUPS; i++)
    if (r->at[i] && may_join(s, r->at[i], v)) return r->at[i];
  return NULL;
}

/** A group that has an input of v's, and may write v too. */
static group *group_to_join(grouping *s, const value *v) {
  if (s->request->policy == GROUPING_STAGED || !v->body) return NULL;
  group *g = group_led_by(s, v->facts->lead, v);
  for (size_t i = 0; !g && i < v->sources.n; i++) {
    const value *from = map_get(&s->values->of, v->sources.at[i]);
    g = group_led_by(s, from ? from->facts->lead : v->sources.at[i], v);
  }
  return g;
}

static void remember(grouping *s, const value *v, group *g) {
  recent *r = map_get(&s->recent, v->facts->lead);
  if (!r) map_set(s->a, &s->recent, v->facts->lead, r = arena_calloc(s->a, 1, sizeof *r));
  r->at[r->next++ % RECENT_GROUPS] = g;
}

/** v is written by a group that computes it there. */
static void write_at(grouping *s, value *v, use *u, const node *index) {
  if (!v->stores.n) {
    v->places->is_free = true;
    vec_push(s->a, &v->stores, (value_store){v->tensor, v->coords, v->rank});
  }
  v->places->home = u->g;
  u->g->outputs += v->stores.n;
  v->places->home_index = index;
  vec_push(s->a, &u->g->stores, (group_store){u, index});
}

/** A root of a group, new or not. */
static use *add_root(grouping *s, value *v) {
  group *g = group_to_join(s, v);
  if (!g) remember(s, v, g = new_group(s, v));
  const node *index = root_index(s, g, v);
  add_point_of(s, g, v, index, 0);
  use *u = use_of(s, g, v);
  write_at(s, v, u, index);
  take(s, u, &(option){.how = INLINED});
  return u;
}

/** Arrays that must be in memory before v is written. */
static void need_arrays(grouping *s, const value *v, group *home) {
  for (size_t i = 0; i < v->arrays.n; i++) {
    value *from = map_get(&s->values->of, v->arrays.at[i]);
    if (from && from != v) use_of(s, home, from)->is_whole = true;
  }
}

void write_value(grouping *s, value *v, const option *const best[], use *home) {
  size_t readers = v->places->uses.n;
  if (home) {
    size_t i = 0;
    while (v->places->uses.at[i] != home) i++;
    const node *index = index_to_write(s, home, best[i]);
    add_point_of(s, home->g, v, index, 0);
    write_at(s, v, home, index);
    take(s, home, best[i]);
  } else {
    home = add_root(s, v);
  }
  need_arrays(s, v, home->g);
  double load = price_load(s->m, v);
  for (size_t i = 0; i < readers; i++) {
    use *u = v->places->uses.at[i];
    if (u == home) continue;
    bool cheap = best[i] && best[i]->how == INLINED && s->request->policy == GROUPING_PRICED &&
                 best[i]->price + v->facts->again < load && may_read_all(s, u);
    if (cheap)
      take(s, u, best[i]);
    else
      u->how = LOADED;
  }
}
