/* What groups read, and what they have room for. */
#include "schedule/grouping.h"

#include "ir/binder.h"
#include "ir/subst.h"

enum {
  MOST_MEMBERS = 400, /* values of a group: the search looks at all for each that may join */
  MOST_NESTS = 48,    /* loops of a group: below the bits of a range_mask, with room to split */
  MOST_CODE = 2048    /* instructions: what a compiler is done with in about a second */
};

static value_room room_sum(value_room a, value_room b) {
  return (value_room){a.nests + b.nests, a.ranges + b.ranges, a.arguments + b.arguments,
                      a.scratch + b.scratch};
}

void release(group *g, const value *v) {
  value_room *h = &g->held, less = v->room;
  *h = (value_room){h->nests - less.nests, h->ranges - less.ranges, h->arguments - less.arguments,
                    h->scratch - less.scratch};
}

use *use_of(grouping *s, group *g, value *v) {
  use *u = map_get(&g->use_of, v);
  if (u) return u;
  u = arena_calloc(s->a, 1, sizeof *u);
  *u = (use){.v = v, .g = g};
  map_set(s->a, &g->use_of, v, u);
  vec_push(s->a, &g->uses, u);
  vec_push(s->a, &v->places->uses, u);
  g->frontier++;
  g->held = room_sum(g->held, v->room);
  return u;
}

/** Whether an element is new to a group; its load is counted then. */
static bool is_new(grouping *s, group *g, point *p, size_t position) {
  if (map_has(&g->points, p->index)) return false;
  map_set(s->a, &g->points, p->index, (void *)(uintptr_t)(position + 1));
  p->code = price_read(s->g, s->values, p->index);
  g->code = code_sum(g->code, p->code);
  return true;
}

void add_point_of(grouping *s, group *g, value *v, const node *index, size_t under) {
  use *u = use_of(s, g, v);
  point p = {.index = index, .free = nests_free(&g->nests, index), .under = under};
  if (is_new(s, g, &p, u->points.n)) {
    vec_push(s->a, &u->points, p);
    return;
  }
  point *known = point_of(u, index);
  if (known->under < under) known->under = under;
}

point *point_of(const use *u, const node *index) {
  uintptr_t number = (uintptr_t)map_get(&u->g->points, index);
  return number ? &u->points.at[number - 1] : NULL;
}

static void add_point(grouping *s, group *g, const node *index, size_t under) {
  value *v = map_get(&s->values->of, index->src[0]);
  if (v) {
    add_point_of(s, g, v, point_index(s->g, v, index), under);
    return;
  }
  map_set(s->a, &g->inputs, index->src[0], g);
  is_new(s, g, &(point){.index = index}, 0);
}

const node *point_index(ir *g, const value *v, const node *index) {
  if (!v->scan) return index;
  return index_make(g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, index->src + 1);
}

map coords_at(arena *a, const value *v, const node *index, const nest *fold) {
  map with = {0};
  for (size_t i = 0; i < v->rank; i++)
    if (v->coords[i]->op == OP_RANGE) map_set(a, &with, v->coords[i], (void *)index->src[1 + i]);
  for (size_t i = 0; fold && i < v->n_reduced; i++)
    map_set(a, &with, v->reduced[i], (void *)fold->index[i]);
  for (size_t i = 0; fold && v->scan && i < v->scan->n; i++)
    for (size_t k = 0; k < v->scan->state[i].rank; k++)
      map_set(a, &with, v->scan->state[i].coords[k], (void *)fold->arrays[i]->index[k]);
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

size_t group_arguments(const group *g) {
  return g->frontier + g->inputs.n + g->outputs + g->held.arguments;
}

/** What computing v needs of those that are bound to be computed with it. */
static value_room room_behind(const grouping *s, const group *g, const value *v) {
  value_room room = {0};
  for (size_t i = 0; i < v->sources.n; i++) {
    const value *from = map_get(&s->values->of, v->sources.at[i]);
    if (from && from->scan && !map_has(&g->use_of, from)) room = room_sum(room, from->room);
  }
  return room;
}

/** What does not fit as a whole, but into another kernel, is not begun, but for a reduction's
   terms, of which there are many; nor what is computed from a contraction without it. */
static bool has_room_for_code(const group *g, const value *v, const demand *more) {
  double code = code_in(more->code, g->lanes);
  double whole = code_in(more->whole, g->lanes) + v->facts->tiles;
  double room = MOST_CODE - code_in(g->code, g->lanes);
  double least = code + (v->facts->tile > 0 ? 0 : v->facts->next);
  return code <= 0 || (least <= room && (whole <= room || whole > MOST_CODE || v->facts->is_term));
}

bool has_room(const grouping *s, const group *g, const value *v, const demand *more) {
  value_room behind = room_behind(s, g, v);
  size_t reads = new_reads(s, g, v) + behind.arguments;
  size_t nests = g->nests.at.n + g->held.nests + more->nests + behind.nests;
  size_t ranges = g->nests.n_ranges + g->held.ranges + more->ranges + behind.ranges;
  double scratch = behind.scratch ? g->scratch + g->held.scratch + behind.scratch : 0;
  return (group_arguments(g) + reads <= s->request->arguments || !reads) &&
         scratch <= s->m->scratch && g->members < MOST_MEMBERS && nests <= MOST_NESTS &&
         ranges <= MOST_RANGES && has_room_for_code(g, v, more);
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

bool may_read_at(grouping *s, const group *g, const value *v, const node *index) {
  return may_read(s, g, v, &(point){.index = index});
}

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
