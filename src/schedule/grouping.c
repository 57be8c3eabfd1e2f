/* The search. Values are visited from outputs to inputs. Each group that reads a value has options
   for it: to compute it where it is read, or in a nest placed further out; and there is memory:
   written by one of the readers, by a group that has one like it, or by a group of its own. All are
   priced and the cheapest is taken, once. The order of groups follows from keys: a group's key is
   the position of its largest root, and a value is written only by a group whose key is below those
   of all other groups that read it; so no cycle can arise. */
#include "schedule/grouping.h"

static uint64_t next_random(grouping *s) {
  uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/** The option to take in a group, or NULL where there is none. */
static const option *choose(grouping *s, const options *o) {
  const option *best = o->n ? &o->at[0] : NULL;
  if (o->n && s->request->policy == GROUPING_RANDOM) return &o->at[next_random(s) % o->n];
  for (size_t i = 1; i < o->n; i++)
    if (o->at[i].price < best->price) best = &o->at[i];
  return best;
}

/** What it costs to have v in memory, beyond computing it once. */
static double write_price(const grouping *s, const value *v, const use *home) {
  const value_facts *f = v->facts;
  double parallel = f->reach < s->m->cores ? f->reach : s->m->cores;
  double others = (double)v->places->uses.n - (home ? 1 : 0);
  return f->work * (1 / parallel - 1 / s->m->cores) + (home ? 0 : s->m->launch) +
         price_load(s->m, v) * (1 + others);
}

static bool must_write(const grouping *s, const value *v, const option *const best[]) {
  bool must = v->stores.n || !v->body || v->is_cut;
  for (size_t i = 0; i < v->places->uses.n; i++) must |= !best[i];
  return must || s->request->policy == GROUPING_STAGED;
}

static bool better_written(grouping *s, const value *v, const option *const best[],
                           const use *home) {
  double kept = price_computed_in(v, v->places->uses.n);
  if (s->request->policy == GROUPING_RANDOM) return next_random(s) % 10 < 3;
  for (size_t i = 0; i < v->places->uses.n; i++) kept += best[i]->price;
  return kept > write_price(s, v, home);
}

/** Computes a value in all groups that read it. */
static void take_all(grouping *s, const value *v, const option *const best[]) {
  for (size_t i = 0; i < v->places->uses.n; i++) take(s, v->places->uses.at[i], best[i]);
}

static void visit(grouping *s, value *v) {
  size_t n = v->places->uses.n;
  if (!n && !v->stores.n) return; /* what reads it was simplified away */
  const option **best = arena_alloc(s->a, (n + 1) * sizeof *best);
  for (size_t i = 0; i < n; i++) {
    options *o = arena_alloc(s->a, sizeof *o);
    *o = options_of(s, v->places->uses.at[i]);
    best[i] = choose(s, o);
  }
  if (value_is_bound(v)) {
    take_all(s, v, best);
    return;
  }
  use *home = host_of(s, v, best);
  bool must = must_write(s, v, best), is_written = must || better_written(s, v, best, home);
  if (s->tells) tell_decision(s, v, home, must, is_written, write_price(s, v, home));
  if (is_written)
    write_value(s, v, best, home);
  else
    take_all(s, v, best);
}

static void sort_by_key(grouping *s) {
  size_t n = s->values->at.n;
  groups sorted = {0};
  map at = {0};
  for (size_t i = 0; i < s->groups.n; i++)
    map_set(s->a, &at, s->values->at.at[s->groups.at[i]->key], s->groups.at[i]);
  for (size_t i = 0; i < n; i++) {
    group *g = map_get(&at, s->values->at.at[i]);
    if (g) vec_push(s->a, &sorted, g);
  }
  s->groups = sorted;
}

/** The stores that values have whatever is decided. */
static size_t *given_stores(const grouping *s) {
  const values *v = s->values;
  size_t *n = arena_alloc(s->a, (v->at.n + 1) * sizeof *n);
  for (size_t i = 0; i < v->at.n; i++) n[i] = v->at.at[i]->stores.n;
  return n;
}

static void search(grouping *s, const size_t *stores) {
  const values *v = s->values;
  s->groups = (groups){0};
  s->recent = (map){0};
  s->random = s->request->seed;
  for (size_t i = 0; i < v->at.n; i++) {
    v->at.at[i]->stores.n = stores[i];
    v->at.at[i]->places = arena_calloc(s->a, 1, sizeof *v->at.at[i]->places);
  }
  schedule_facts(s->g, s->m, v);
  for (size_t i = v->at.n; i-- > 0;) visit(s, v->at.at[i]);
}

groups schedule_groups(ir *g, const grouping_request *r, values *v) {
  grouping s = {.g = g, .a = ir_arena(g), .request = r, .m = &r->machine, .values = v};
  const size_t *stores = given_stores(&s);
  search(&s, stores);
  s.tells = r->decided;
  if ((r->policy == GROUPING_PRICED && move_cuts(&s)) || s.tells) search(&s, stores);
  sort_by_key(&s);
  return s.groups;
}
