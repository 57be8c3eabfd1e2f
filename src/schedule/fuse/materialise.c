/* Moves materialisation points, the values stored to memory between kernels, to later values. Where
   the search stores a value by choice, the kernels that read it compute the elementwise values that
   follow from each of its elements, for every tile and worker. To store the last of these instead
   costs as much memory, and the kernel of the value computes them once: the point moves there, and
   the search runs again. */
#include "schedule/fuse/search_state.h"

/** The only reader of a value; NULL: none, or several. */
static value *only_reader(const grouping *s, const value *v) {
  const value_list *r = &s->readers[v->position];
  return r->n == 1 ? r->at[0] : NULL;
}

/** True if a value is in memory, or will be: operands are visited first. */
static bool is_in_memory(const value *v) { return v->places->home || v->memory.is_cut; }

/** True if a kernel computes a value. */
static bool is_computed_in(const value *v, const group *g) {
  for (size_t i = 0; i < v->places->uses.n; i++) {
    const use *u = v->places->uses.at[i];
    if (u->g == g && (u->how == FUSION_INLINED || u->how == PLACED)) return true;
  }
  return false;
}

/** True if v costs no more in the kernel that writes u than elsewhere: it is in memory, or small,
   or computed there, or it has one reader and is computed from such values. */
static bool is_available(const grouping *s, const value *v, const value *u, size_t depth) {
  if (!v || is_in_memory(v) || v->facts->size.points < u->facts->size.points) return true;
  if (is_computed_in(v, u->places->home)) return true;
  if (!depth || !v->body || value_is_reduction(v) || v->facts->readers > 1) return false;
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    if (!is_available(s, map_get(&s->values->of, v->inputs.tensors.at[i]), u, depth - 1))
      return false;
  return true;
}

/** True if v is computed from each element of `last`, and from values available where u is written.
 */
static bool may_follow(const grouping *s, const value *v, const value *last, const value *u) {
  if (!v->body || value_is_reduction(v) || v->memory.is_never_inlined || v->places->home)
    return false;
  if (value_is_never_stored(v)) return false;
  if (v->facts->size.bytes > last->facts->size.bytes ||
      v->facts->size.points != last->facts->size.points)
    return false;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *from = map_get(&s->values->of, read->src[0]);
    if (from == last ? !value_reads_in_place(v, read, last->rank)
                     : !is_available(s, from, u, FUSION_MOST_CHAIN))
      return false;
  }
  return true;
}

/** True if v is written and computed once from each element of `last`: then nothing is gained. */
static bool is_already_written(const value *v, const value *last) {
  bool from = v->places->home && !value_is_reduction(v);
  for (size_t i = 0; from && i < v->inputs.elements.n; i++)
    from = v->inputs.elements.at[i]->src[0] != last->tensor ||
           value_reads_in_place(v, v->inputs.elements.at[i], last->rank);
  return from;
}

/** The last value on the chain from u that is better written than u; u itself if none is. */
static value *find_last(const grouping *s, value *u) {
  value *last = u, *v = only_reader(s, u);
  for (; v && may_follow(s, v, last, u); v = only_reader(s, v)) last = v;
  return v && is_already_written(v, last) ? u : last;
}

bool materialise_move(grouping *s) {
  bool any = false;
  for (size_t i = 0; i < s->values->at.n; i++) {
    value *u = s->values->at.at[i];
    value *last = u->places->is_free ? find_last(s, u) : u;
    last->memory.is_cut |= last != u;
    u->memory.was_stored = u->places->is_free && last == u;
    any |= last != u;
  }
  for (size_t i = 0; i < s->values->at.n && !any; i++)
    s->values->at.at[i]->memory.was_stored = false;
  return any;
}
