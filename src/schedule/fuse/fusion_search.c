/* Implements the fusion search, a greedy one: visits values from outputs to inputs and decides each
   once. Each group that reads a value has options for it: computed where it is read, or built in a
   nest further out. The value may also be written to memory, by one of its readers, by a group with
   a value like it, or by a group of its own. The cheapest by the cost model is taken. Groups run in
   the order of their keys, the position of a group's largest root. Only a group whose key is below
   those of all other groups that read a value may write it, so no cycle can arise. */
#include "schedule/fuse/fusion_search.h"
#include "schedule/fuse/search_state.h"

#include "base/random.h"

/** The cheapest option (a random one in tests); NULL: there is none. */
static const option *choose_option(grouping *s, const options *o) {
  const option *best = o->n ? &o->at[0] : NULL;
  if (o->n && s->request->policy == FUSION_RANDOM) return &o->at[random_next(&s->random) % o->n];
  for (size_t i = 1; i < o->n; i++)
    if (o->at[i].cost < best->cost) best = &o->at[i];
  return best;
}

/** ns to have v in memory, beyond computing it once. */
static double write_cost(const grouping *s, const value *v, const use *home) {
  const value_facts *f = v->facts;
  double parallel = f->size.reach < s->m->cores ? f->size.reach : s->m->cores;
  double others = (double)v->places->uses.n - (home ? 1 : 0);
  return f->cost.work * (1 / parallel - 1 / s->m->cores) + (home ? 0 : s->m->launch) +
         cost_load(s->m, v) * (1 + others);
}

/** True if storing v and loading it costs less than computing it in all groups that read it. */
static bool is_cheaper_written(grouping *s, const value *v, const option *const best[],
                               const use *home) {
  double fused = cost_recompute(v, v->places->uses.n);
  if (s->request->policy == FUSION_RANDOM) return random_next(&s->random) % 10 < 3;
  for (size_t i = 0; i < v->places->uses.n; i++) fused += best[i]->cost;
  return fused > write_cost(s, v, home);
}

/** Computes a value in all groups that read it, by the best option of each. */
static void inline_in_all_readers(grouping *s, const value *v, const option *const best[]) {
  for (size_t i = 0; i < v->places->uses.n; i++)
    inline_by_option(s, v->places->uses.at[i], best[i]);
}

static void decide_value(grouping *s, value *v) {
  size_t n = v->places->uses.n;
  if (!n && !v->memory.stores.n) return; /* its readers were simplified away */
  s->m = machine_of_device(&s->request->machine, v->device);
  const option **best = arena_alloc(s->work, (n + 1) * sizeof *best);
  options *tried = arena_alloc(s->work, (n + 1) * sizeof *tried);
  for (size_t i = 0; i < n; i++) {
    tried[i] = fusion_options_of(s, v->places->uses.at[i]);
    best[i] = choose_option(s, &tried[i]);
  }
  if (value_is_never_stored(v)) {
    inline_in_all_readers(s, v, best);
    return;
  }
  use *home = store_find_host(s, v, best);
  bool must =
      v->memory.stores.n || !v->body || v->memory.is_cut || s->request->policy == FUSION_NONE;
  for (size_t i = 0; i < n; i++) must |= !best[i];
  bool is_written =
      must || (v->memory.wish != WISH_INLINED && is_cheaper_written(s, v, best, home));
  if (s->reports) report_decision(s, v, home, must, is_written, write_cost(s, v, home));
  if (is_written)
    store_write_value(s, v, best, home);
  else
    inline_in_all_readers(s, v, best);
}

static void sort_groups_by_key(grouping *s) {
  size_t n = s->values->at.n;
  groups sorted = {0};
  map at = {0};
  for (size_t i = 0; i < s->groups.n; i++)
    map_set(s->work, &at, s->values->at.at[s->groups.at[i]->key], s->groups.at[i]);
  for (size_t i = 0; i < n; i++) {
    group *g = map_get(&at, s->values->at.at[i]);
    if (g) vec_push(s->a, &sorted, g);
  }
  s->groups = sorted;
}

/** Decides about all values, from outputs to inputs, by the facts that were measured. */
static void search_once(grouping *s) {
  const values *v = s->values;
  s->groups = (groups){0};
  s->recent = (map){0};
  s->random = s->request->seed * UINT64_C(0x9e3779b97f4a7c15) | 1; /* not 0 */
  for (size_t i = 0; i < v->at.n; i++)
    v->at.at[i]->places = arena_calloc(s->a, 1, sizeof *v->at.at[i]->places);
  for (size_t i = v->at.n; i-- > 0;) {
    arena_mark here = arena_save(s->work);
    decide_value(s, v->at.at[i]);
    arena_rewind(s->work, here);
  }
}

/** Searches once more. `stores`: the number of stores of each value before the first search, which
    added some. */
static void search_again(grouping *s, const size_t *stores) {
  const values *v = s->values;
  for (size_t i = 0; i < v->at.n; i++) v->at.at[i]->memory.stores.n = stores[i];
  cost_model_measure(s->g, &s->request->machine, v);
  search_once(s);
}

void fusion_wish_stores(ir *g, const fusion_request *r, values *v) {
  grouping s = {
      .g = g, .a = ir_arena(g), .work = ir_scratch(g), .request = r, .m = &r->machine, .values = v};
  arena_mark here = arena_save(s.work);
  s.readers = values_readers(s.work, v);
  cost_model_measure(g, s.m, v);
  fusion_force_stores(&s);
  for (size_t i = 0; i < v->at.n; i++) v->at.at[i]->facts = NULL;
  arena_rewind(s.work, here);
}

/** Marks the values that are stored by wish, and forgets what an earlier search decided. */
static void begin_search(values *v) {
  for (size_t i = 0; i < v->at.n; i++) {
    value_memory *m = &v->at.at[i]->memory;
    m->is_cut = m->wish == WISH_KEPT || m->wish == WISH_FORCED || m->wish == WISH_STORED;
    m->was_stored = false;
  }
}

groups fuse_values(ir *g, const fusion_request *r, values *v) {
  grouping s = {
      .g = g, .a = ir_arena(g), .work = ir_scratch(g), .request = r, .m = &r->machine, .values = v};
  arena_mark here = arena_save(s.work);
  size_t *stores = arena_alloc(s.work, (v->at.n + 1) * sizeof *stores); /* required ones, of each */
  for (size_t i = 0; i < v->at.n; i++) stores[i] = v->at.at[i]->memory.stores.n;
  begin_search(v);
  s.readers = values_readers(s.work, v);
  cost_model_measure(g, s.m, v);
  search_once(&s);
  s.reports = r->decided;
  if ((r->policy == FUSION_BY_COST && materialise_move(&s)) || s.reports) search_again(&s, stores);
  sort_groups_by_key(&s);
  for (size_t i = 0; i < v->at.n; i++) v->at.at[i]->facts = NULL;
  arena_rewind(s.work, here);
  return s.groups;
}
