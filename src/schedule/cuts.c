/* Where cuts are. The search finds that a value is to be written, and had put what is computed from
   each of its elements into the kernels that read it, where that is done for every tile and worker.
   The cut costs the same after it: then the value's kernel does it, once. */
#include "schedule/grouping.h"

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

/** Whether v is computed from each element of u, and from what is there or little. */
static bool follows(const cutting *c, const value *v, const value *u) {
  if (!v->body || value_is_reduction(v) || v->only_loaded || v->places->home) return false;
  if (v->facts->bytes > u->facts->bytes || v->facts->points != u->facts->points) return false;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *from = map_get(&c->s->values->of, read->src[0]);
    if (from == u ? !is_in_place(v, read, u->rank)
                  : from && !is_there(from) && from->facts->points >= u->facts->points)
      return false;
  }
  return true;
}

/** Finds values that are better written than those that they are computed from; whether
    there are any. */
bool move_cuts(grouping *s) {
  cutting c = {.s = s};
  bool any = false;
  find_readers(&c);
  for (size_t i = 0; i < s->values->at.n; i++) {
    value *u = s->values->at.at[i], *last = u;
    if (!u->places->is_free) continue;
    for (value *v = c.reader[u->position]; v && follows(&c, v, last); v = c.reader[v->position])
      last = v;
    last->is_cut |= last != u;
    any |= last != u;
  }
  return any;
}
