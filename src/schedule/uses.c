/* What groups read, and what they have room for. */
#include "schedule/grouping.h"

#include "ir/binder.h"
#include "ir/subst.h"

enum { MOST_MEMBERS = 400, MOST_NESTS = 48 };

use *use_of(grouping *s, group *g, value *v) {
  use *u = map_get(&g->use_of, v);
  if (u) return u;
  u = arena_calloc(s->a, 1, sizeof *u);
  *u = (use){.v = v, .g = g};
  map_set(s->a, &g->use_of, v, u);
  vec_push(s->a, &g->uses, u);
  vec_push(s->a, &v->places->uses, u);
  g->frontier++;
  return u;
}

void add_point_of(grouping *s, group *g, value *v, const node *index, size_t under) {
  use *u = use_of(s, g, v);
  for (size_t i = 0; i < u->points.n; i++) {
    point *p = &u->points.at[i];
    if (p->index == index && p->under < under) p->under = under;
    if (p->index == index) return;
  }
  vec_push(s->a, &u->points,
           (point){.index = index, .free = nests_free(&g->nests, index), .under = under});
}

static void add_point(grouping *s, group *g, const node *index, size_t under) {
  value *v = map_get(&s->values->of, index->src[0]);
  if (v)
    add_point_of(s, g, v, index, under);
  else
    map_set(s->a, &g->inputs, index->src[0], g);
}

map coords_at(arena *a, const value *v, const node *index, const nest *fold) {
  map with = {0};
  for (size_t i = 0; i < v->rank; i++)
    if (v->coords[i]->op == OP_RANGE) map_set(a, &with, v->coords[i], (void *)index->src[1 + i]);
  for (size_t i = 0; fold && i < v->n_reduced; i++)
    map_set(a, &with, v->reduced[i], (void *)fold->index[i]);
  return with;
}

/** What computing a value at a point reads. */
void add_reads(grouping *s, group *g, const value *v, const point *p) {
  map with = coords_at(s->a, v, p->index, p->fold);
  for (size_t i = 0; i < v->reads.n; i++)
    add_point(s, g, subst_ranges(s->g, v->reads.at[i], &with), p->under + v->facts->under[i]);
}

/* What a group has room for. */

size_t new_reads(const grouping *s, const group *g, const value *v) {
  size_t n = 0;
  for (size_t i = 0; i < v->sources.n; i++) {
    const value *from = map_get(&s->values->of, v->sources.at[i]);
    n += from ? !map_has(&g->use_of, from) : !map_has(&g->inputs, v->sources.at[i]);
  }
  return n;
}

size_t group_arguments(const group *g) { return g->frontier + g->inputs.n + g->outputs; }

bool has_room(const grouping *s, const group *g, const value *v, size_t nests, size_t ranges) {
  size_t more = new_reads(s, g, v);
  return (group_arguments(g) + more <= s->request->arguments || !more) &&
         g->members < MOST_MEMBERS && g->nests.at.n + nests <= MOST_NESTS &&
         g->nests.n_ranges + ranges <= MOST_RANGES;
}

static const node *at_point(grouping *s, const value *v, const point *p, const node *n) {
  map with = coords_at(s->a, v, p->index, p->fold);
  return subst_ranges(s->g, n, &with);
}

/** Whether v, computed at p, reads an array just where its home group stores over it. */
static bool reads_in_place(grouping *s, const value *v, const point *p, const node *read,
                           const value *w) {
  const value_store *over = value_store_over(w, read->src[0]);
  point home = {.index = w->places->home_index};
  if (value_is_reduction(v) || !over) return false;
  read = at_point(s, v, p, read);
  for (size_t i = 0; i < over->rank; i++)
    if (at_point(s, w, &home, over->coords[i]) != read->src[1 + i]) return false;
  return true;
}

/** Old contents are read before they are stored over: by groups of smaller keys; or by the group
    that stores, where it stores. */
static bool may_read(grouping *s, const group *g, const value *v, const point *p) {
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *w = map_get(&s->values->overwriter, read->src[0]);
    const group *home = w ? w->places->home : NULL;
    if (!home || home->key > g->key) continue;
    if (home != g || !reads_in_place(s, v, p, read, w)) return false;
  }
  return true;
}

/** The same at any point. */
bool may_read_anywhere(const grouping *s, const group *g, const value *v) {
  for (size_t i = 0; i < v->sources.n; i++) {
    const value *w = map_get(&s->values->overwriter, v->sources.at[i]);
    if (w && w->places->home && w->places->home->key <= g->key) return false;
  }
  return true;
}

bool may_read_all(grouping *s, const use *u) {
  for (size_t i = 0; i < u->points.n; i++)
    if (!may_read(s, u->g, u->v, &u->points.at[i])) return false;
  return true;
}

range_mask dependence(const group *g, const value *v, const node *const coords[], uint64_t mask) {
  range_mask free = 0;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (mask >> i & 1) free |= nests_free(&g->nests, coords[i]);
  return free;
}
