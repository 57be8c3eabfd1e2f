/* Where cuts are. The search finds that a value is to be written, and had put what is computed from
   each of its elements into the kernels that read it, where that is done for every tile and worker.
   The cut costs the same after it: then the value's kernel does it, once. */
#include "schedule/grouping.h"

enum { MOST_BEHIND = 8 }; /* values one behind another that are looked at */

typedef struct cutting {
  grouping *s;
  value **reader; /* of each value, by position: its only one; NULL: none, or several */
} cutting;

static void find_readers(cutting *c) {
  const values *v = c->s->values;
  c->reader = arena_calloc(c->s->a, v->at.n + 1, sizeof *c->reader);
  for (size_t i = 0; i < v->at.n; i++)
    for (size_t k = 0; k < v->at.at[i]->sources.n; k++) {
      const value *from = map_get(&v->of, v->at.at[i]->sources.at[k]);
      if (from) c->reader[from->position] = from->facts->readers == 1 ? v->at.at[i] : NULL;
    }
}

/** Whether a read of v is of the element of the other value at v's own place; axes of one index do
    not count. */
static bool is_in_place(const value *v, const node *read, size_t rank) {
  size_t at = 0;
  for (size_t k = 0; k < rank; k++) {
    const node *x = read->src[1 + k];
    if (x->op == OP_CONST) continue;
    while (at < v->rank && v->coords[at]->op != OP_RANGE) at++;
    if (at == v->rank || x != v->coords[at++]) return false;
  }
  while (at < v->rank && v->coords[at]->op != OP_RANGE) at++;
  return at == v->rank;
}

/** Whether a value is in memory, or will be: those that are read come first. */
static bool is_there(const value *v) { return v->places->home || v->is_cut; }

/** Whether a kernel computes a value. */
static bool is_computed_in(const value *v, const group *g) {
  for (size_t i = 0; i < v->places->uses.n; i++) {
    const use *u = v->places->uses.at[i];
    if (u->g == g && (u->how == INLINED || u->how == PLACED)) return true;
  }
  return false;
}

/** Whether a value can be had where u is written for no more than elsewhere: it is there or little,
    or what reads it is computed, alone, from such. */
static bool is_at_hand(const cutting *c, const value *v, const value *u, size_t depth) {
  if (!v || is_there(v) || v->facts->points < u->facts->points) return true;
  if (is_computed_in(v, u->places->home)) return true;
  if (!depth || !v->body || value_is_reduction(v) || v->facts->readers > 1) return false;
  for (size_t i = 0; i < v->sources.n; i++)
    if (!is_at_hand(c, map_get(&c->s->values->of, v->sources.at[i]), u, depth - 1)) return false;
  return true;
}

/** Whether v is computed from each element of `last`, and from what is at hand where u is written.
 */
static bool follows(const cutting *c, const value *v, const value *last, const value *u) {
  if (!v->body || value_is_reduction(v) || v->only_loaded || v->places->home) return false;
  if (value_is_bound(v)) return false;
  if (v->facts->bytes > last->facts->bytes || v->facts->points != last->facts->points) return false;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *from = map_get(&c->s->values->of, read->src[0]);
    if (from == last ? !is_in_place(v, read, last->rank) : !is_at_hand(c, from, u, MOST_BEHIND))
      return false;
  }
  return true;
}

/** Whether v is written, and computed once from each element of `last`: then it does not matter
    where that is computed. */
static bool is_written_from(const value *v, const value *last) {
  bool from = v->places->home && !value_is_reduction(v);
  for (size_t i = 0; from && i < v->reads.n; i++)
    from = v->reads.at[i]->src[0] != last->tensor || is_in_place(v, v->reads.at[i], last->rank);
  return from;
}

/** The last value that is better written than u; u itself where none is. */
static value *moved(const cutting *c, value *u) {
  value *last = u, *v = c->reader[u->position];
  for (; v && follows(c, v, last, u); v = c->reader[v->position]) last = v;
  return v && is_written_from(v, last) ? u : last;
}

/** Finds values that are better written than those that they are computed from, and notes what else
    is written; whether there are any. */
bool move_cuts(grouping *s) {
  cutting c = {.s = s};
  bool any = false;
  find_readers(&c);
  for (size_t i = 0; i < s->values->at.n; i++) {
    value *u = s->values->at.at[i];
    value *last = u->places->is_free ? moved(&c, u) : u;
    last->is_cut |= last != u;
    u->was_written = u->places->is_free && last == u;
    any |= last != u;
  }
  for (size_t i = 0; i < s->values->at.n && !any; i++) s->values->at.at[i]->was_written = false;
  return any;
}
