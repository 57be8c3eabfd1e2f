/* Records the elements that fusion groups read, and checks the limits of a kernel against them:
   arguments, loops, members, scratch memory and code size. Also decides which arrays a group may
   still read before they are stored over. */
#include "schedule/fuse/search_state.h"

#include "ir/core/binder.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"

enum {
  MOST_MEMBERS = 400, /* values of a group: each that may join is compared with all */
  MOST_NESTS = 48 /* loops of a group: below the bits of a range_mask, so that some can be split */
};

static value_reserve reserve_add(value_reserve a, value_reserve b) {
  return (value_reserve){a.nests + b.nests, a.ranges + b.ranges, a.arguments + b.arguments,
                         a.scratch + b.scratch};
}

void group_end_reservation(group *g, const value *v) {
  value_reserve *h = &g->used.reserved, less = v->local.reserve;
  *h = (value_reserve){h->nests - less.nests, h->ranges - less.ranges,
                       h->arguments - less.arguments, h->scratch - less.scratch};
}

use *group_use_of(grouping *s, group *g, value *v) {
  use *u = map_get(&g->use_of, v);
  if (u) return u;
  u = arena_calloc(s->a, 1, sizeof *u);
  *u = (use){.v = v, .g = g};
  map_set(s->a, &g->use_of, v, u);
  vec_push(s->a, &g->uses, u);
  vec_push(s->a, &v->places->uses, u);
  g->used.frontier++;
  g->used.reserved = reserve_add(g->used.reserved, v->local.reserve);
  return u;
}

/** Adds an element to a group and counts its load; false: the group has it already. */
static bool add_element(grouping *s, group *g, point *p, size_t position) {
  if (map_has(&g->points, p->index)) return false;
  map_set(s->a, &g->points, p->index, (void *)(uintptr_t)(position + 1));
  p->code = cost_read_code(s->g, s->values, p->index);
  g->used.code = code_add(g->used.code, p->code);
  return true;
}

void group_add_point(grouping *s, group *g, value *v, const node *index, size_t under) {
  use *u = group_use_of(s, g, v);
  point p = {.index = index, .free = nests_free_ranges(&g->nests, index), .under = under};
  if (add_element(s, g, &p, u->points.n)) {
    vec_push(s->a, &u->points, p);
    return;
  }
  point *known = use_find_point(u, index);
  if (known->under < under) known->under = under;
}

point *use_find_point(const use *u, const node *index) {
  uintptr_t number = (uintptr_t)map_get(&u->g->points, index);
  return number ? &u->points.at[number - 1] : NULL;
}

static void add_point(grouping *s, group *g, const node *index, size_t under) {
  value *v = map_get(&s->values->of, index->src[0]);
  if (v) {
    group_add_point(s, g, v, value_point_index(s->g, v, index), under);
    return;
  }
  map_set(s->a, &g->inputs, index->src[0], g);
  add_element(s, g, &(point){.index = index}, 0);
}

const node *value_point_index(ir *g, const value *v, const node *index) {
  if (!v->scan) return index;
  return index_make(g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, index->src + 1);
}

map value_point_coords(arena *a, const value *v, const node *index, const nest *fold) {
  map with = value_coords_at(a, v, index);
  for (size_t i = 0; fold && i < v->reduction.n; i++)
    map_set(a, &with, v->reduction.ranges[i], (void *)fold->index[i]);
  for (size_t i = 0; fold && v->scan && i < v->scan->n; i++)
    for (size_t k = 0; k < v->scan->state[i].rank; k++)
      map_set(a, &with, v->scan->state[i].coords[k], (void *)fold->arrays[i]->index[k]);
  return with;
}

void group_add_items(grouping *s, group *g, const value *v) {
  for (size_t i = 0; i < v->inputs.items.n; i++)
    group_use_of(s, g, map_get(&s->values->of, v->inputs.items.at[i].element))->is_whole = true;
}

void group_add_reads(grouping *s, group *g, const value *v, const point *p) {
  arena_mark here = arena_save(s->work);
  map with = value_point_coords(s->work, v, p->index, p->fold);
  for (size_t i = 0; i < v->inputs.elements.n; i++)
    add_point(s, g, subst_ranges(s->g, v->inputs.elements.at[i], &with),
              p->under + v->facts->level.under[i]);
  group_add_items(s, g, v);
  arena_rewind(s->work, here);
}

/* Limits of a kernel. */

size_t group_count_new_reads(const grouping *s, const group *g, const value *v) {
  size_t n = 0;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&s->values->of, v->inputs.tensors.at[i]);
    n += from ? !map_has(&g->use_of, from) : !map_has(&g->inputs, v->inputs.tensors.at[i]);
  }
  return n;
}

size_t group_count_arguments(const group *g) {
  return g->used.frontier + g->inputs.n + g->used.outputs + g->used.reserved.arguments;
}

/** The reservations of scans that v reads and that are not in the group yet. */
static value_reserve unreserved_of_operands(const grouping *s, const group *g, const value *v) {
  value_reserve room = {0};
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&s->values->of, v->inputs.tensors.at[i]);
    if (from && from->scan && !map_has(&g->use_of, from))
      room = reserve_add(room, from->local.reserve);
  }
  return room;
}

/** Adds the elements that a value reads where it is computed at an element: those of operands that
    are not kept to `next`, and the instructions of loading others to `sum`. */
static void add_distinct_reads(const grouping *s, const value *v, const node *index, map *seen,
                               node_list *next, code *sum) {
  map with = value_coords_at(s->work, v, index);
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = subst_ranges(s->g, v->inputs.elements.at[i], &with);
    const value *from = map_get(&s->values->of, read->src[0]);
    if (map_has(seen, read)) continue;
    map_set(s->work, seen, read, NULL);
    if (from && from->body && !from->facts->is_kept)
      vec_push(s->work, next, read);
    else
      *sum = code_add(*sum, cost_read_code(s->g, s->values, read));
  }
}

/** The instructions of an element of a value with all operands that are not kept, where each
    element that several of them read is computed once; above a kernel's limit, some number above
    it. */
static code count_distinct_code(const grouping *s, const value *v) {
  arena_mark here = arena_save(s->work);
  code sum = {0};
  map seen = {0};
  node_list next = {0};
  vec_push(s->work, &next,
           index_make(s->g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, v->coords));
  while (next.n && sum.once + sum.each <= MACHINE_KERNEL_CODE) {
    const node *index = next.at[--next.n];
    const value *at = map_get(&s->values->of, index->src[0]);
    sum = code_add(sum, at->facts->code.own);
    add_distinct_reads(s, at, index, &seen, &next, &sum);
  }
  arena_rewind(s->work, here);
  return sum;
}

/** True if a value and all its operands fit where elements that several operands read count once,
    not as a tree. */
static bool fits_distinct_code(const grouping *s, const group *g, const value *v, size_t points,
                               double room) {
  code *c = &v->facts->code.distinct;
  if (!(c->once + c->each > 0)) *c = count_distinct_code(s, v);
  return (double)points * code_for_lanes(*c, g->used.lanes) + v->facts->tiles.path <= room;
}

/** True if the code of v fits. Does not start inlining a value whose operands would exceed the
   limit here but fit into another kernel, except for terms of a reduction, of which there are many;
   nor one that reads a contraction for which there would be no room. */
static bool fits_code(const grouping *s, const group *g, const value *v, const demand *more) {
  double code = code_for_lanes(more->code, g->used.lanes);
  double whole = code_for_lanes(more->whole, g->used.lanes) + v->facts->tiles.path;
  double room = MACHINE_KERNEL_CODE - code_for_lanes(g->used.code, g->used.lanes);
  double least = code + (v->facts->tiles.own > 0 ? 0 : v->facts->tiles.next);
  if (code <= 0) return true;
  if (least > room) return false;
  return whole <= room || whole > MACHINE_KERNEL_CODE || v->facts->is_term ||
         fits_distinct_code(s, g, v, more->points, room);
}

bool group_has_room(const grouping *s, const group *g, const value *v, const demand *more) {
  value_reserve behind = unreserved_of_operands(s, g, v);
  size_t reads = group_count_new_reads(s, g, v) + behind.arguments;
  size_t nests = g->nests.at.n + g->used.reserved.nests + more->nests + behind.nests;
  size_t ranges = g->nests.n_ranges + g->used.reserved.ranges + more->ranges + behind.ranges;
  double scratch = behind.scratch ? g->used.scratch + g->used.reserved.scratch + behind.scratch : 0;
  return (group_count_arguments(g) + reads <= s->request->arguments || !reads) &&
         scratch <= s->m->scratch && g->used.members < MOST_MEMBERS && nests <= MOST_NESTS &&
         ranges <= MOST_RANGES && fits_code(s, g, v, more);
}

static const node *substitute_point(grouping *s, const value *v, const point *p, const node *n) {
  arena_mark here = arena_save(s->work);
  map with = value_point_coords(s->work, v, p->index, p->fold);
  const node *there = subst_ranges(s->g, n, &with);
  arena_rewind(s->work, here);
  return there;
}

/** True if v, computed at p, reads an array exactly where w is stored over it; false for updates,
    which are stored where memory says. */
static bool reads_where_stored(grouping *s, const value *v, const point *p, const node *read,
                               const value *w) {
  const value_store *over = value_store_over(w, read->src[0]);
  point home = {.index = w->places->store_index};
  if (value_is_reduction(v) || !over || w->updates) return false;
  read = substitute_point(s, v, p, read);
  for (size_t i = 0; i < over->rank; i++)
    if (substitute_point(s, w, &home, over->coords[i]) != read->src[1 + i]) return false;
  return true;
}

/** True if v, computed at p in a group, reads no old contents after they are stored over. */
static bool may_read(grouping *s, const group *g, const value *v, const point *p) {
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *w = map_get(&s->values->overwriter, read->src[0]);
    const group *home = w ? w->places->home : NULL;
    if (!home || home->key > g->key) continue;
    if (home != g || !reads_where_stored(s, v, p, read, w)) return false;
  }
  return true;
}

bool group_may_read_at(grouping *s, const group *g, const value *v, const node *index) {
  return may_read(s, g, v, &(point){.index = index});
}

bool group_may_read_anywhere(const grouping *s, const group *g, const value *v) {
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *w = map_get(&s->values->overwriter, v->inputs.tensors.at[i]);
    if (w && w->places->home && w->places->home->key <= g->key) return false;
  }
  return true;
}

bool group_may_read_all(grouping *s, const use *u) {
  for (size_t i = 0; i < u->points.n; i++)
    if (!may_read(s, u->g, u->v, &u->points.at[i])) return false;
  return true;
}

range_mask group_ranges_of_coords(const group *g, const value *v, const node *const coords[],
                                  uint64_t mask) {
  range_mask free = 0;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (mask >> i & 1) free |= nests_free_ranges(&g->nests, coords[i]);
  return free;
}
