/* Computes a scan in the kernel of the updates that read it, so that its elements need no array in
   memory. That holds where updates at distinct places read the scan at their own coordinates, by
   values of one reader each, and nothing else reads it: the kernel has a nest of its own for these
   updates, in whose loop over the scan's axis the FOLD emits one element each. Where that loop is
   not fused with the FOLD's, the elements of a row lie in scratch memory: rows are bounded. In
   kernels for teams each worker would run the FOLD of a row for the few elements that it updates.
 */
#include "schedule/values/absorb_scans.h"

#include "ir/core/binder.h"
#include "ir/transform/substitute.h"

enum { SCRATCH_SHARE = 4 }; /* a row's elements take that part of a kernel's scratch memory */

/** The axis of a scan. */
static size_t scan_axis(const value *scan) {
  size_t axis = 0;
  while (!(scan->updates->along >> axis & 1)) axis++;
  return axis;
}

/** True if an element is read at the coordinates of the value that reads it. */
static bool is_at_own_coordinates(const value *v, const node *read) {
  if (read->n_src - 1u != v->rank) return false;
  for (size_t i = 0; i < v->rank; i++)
    if (read->src[1 + i] != v->coords[i]) return false;
  return true;
}

typedef struct absorbing {
  ir *g;
  const machine *machine;
  values *all;
  map readers;  /* values_only_readers */
  map carriers; /* tensors of scans, and of values that read one, each of one reader */
} absorbing;

/** True for a scan without classes, of rows that fit into scratch memory, and not of other scans.
 */
static bool is_short_scan(const absorbing *s, const value *v) {
  if (!v->updates || !v->updates->is_scan || v->updates->classes || v->memory.stores.n)
    return false;
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    if (map_has(&s->carriers, v->inputs.tensors.at[i])) return false;
  double bytes = (double)v->dims[scan_axis(v)]->hi * (double)dtype_bytes((dtype)v->body->dtype);
  return bytes * SCRATCH_SHARE <= s->machine->scratch;
}

/** True if a value is an expression, which is computed where it is read. */
static bool is_plain(const value *v) {
  return v->body && !value_is_reduction(v) && !v->updates && !v->memory.is_never_inlined &&
         !v->memory.stores.n && !value_is_never_stored(v);
}

/** True if v reads a scan that it may compute, and all such at its own coordinates. */
static bool reads_carriers(const absorbing *s, const value *v) {
  bool any = false;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    if (!map_has(&s->carriers, read->src[0])) continue;
    if (!is_at_own_coordinates(v, read)) return false;
    any = true;
  }
  return any;
}

static void find_carriers(absorbing *s) {
  for (size_t i = 0; i < s->all->at.n; i++) {
    const value *v = s->all->at.at[i];
    bool carries = is_short_scan(s, v) || (is_plain(v) && reads_carriers(s, v));
    if (carries && map_get(&s->readers, v->tensor))
      map_set(ir_scratch(s->g), &s->carriers, v->tensor, NULL);
  }
}

/** The element of a scan at coordinates, from a FOLD over a range of its own. */
static const node *scanned_element(ir *g, const value *scan, const node *const at[]) {
  size_t axis = scan_axis(scan), rank = 1;
  dtype t = (dtype)scan->body->dtype;
  map with = {0};
  const node *extent = range_extent(scan->coords[axis]),
             *r = range_clone(g, scan->coords[axis], extent);
  for (size_t i = 0; i < scan->rank; i++)
    if (scan->coords[i]->op == OP_RANGE)
      map_set(ir_arena(g), &with, scan->coords[i], (void *)(i == axis ? r : at[i]));
  uint64_t start = 0;
  op_identity((op)scan->updates->op, t, &start);
  const node *init = ir_const_bits(g, t, start), *step = subst(g, scan->body, &with);
  const node *state = index_make(g, t, fold_state_make(g, t, r, 0), 0, 0, NULL);
  const node *fold = fold_make(g, &(fold_spec){.n_states = 1,
                                               .n_emits = 1,
                                               .n_ranges = 1,
                                               .inits = &init,
                                               .steps = &step,
                                               .ops = &scan->updates->op,
                                               .emits = &state,
                                               .ranks = &rank,
                                               .coords = &r,
                                               .extents = &extent,
                                               .ranges = &r});
  return index_make(g, t, fold, 1, 1, &at[axis]);
}

/** The expression of an element of a scan, or of a value that reads one. */
static const node *carried_element(ir *g, const value *v, const node *read) {
  if (v->updates) return scanned_element(g, v, read->src + 1);
  map with = value_coords_at(ir_arena(g), v, read);
  return subst_ranges(g, v->body, &with);
}

/** Replaces the elements that v reads of carriers, which are added to a list; false: there are
 * none.
 */
static bool replace_elements(const absorbing *s, value *v, value_list *replaced) {
  map with = {0};
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    if (!map_has(&s->carriers, read->src[0])) continue;
    value *from = map_get(&s->all->of, read->src[0]);
    vec_push(ir_scratch(s->g), replaced, from);
    map_set(ir_scratch(s->g), &with, read, (void *)carried_element(s->g, from, read));
  }
  if (with.n) value_set_body(s->g, s->all, v, subst(s->g, v->body, &with));
  return with.n;
}

static bool reads(const value *v, const node *tensor) {
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    if (v->inputs.tensors.at[i] == tensor) return true;
  return false;
}

/** Makes v compute the scans that it reads, which are no arrays then; not those of the array that
   it changes, of which it would read elements that it has written. */
static void absorb_into(const absorbing *s, value *v) {
  const node *body = v->body, *old = v->tensor->src[0];
  bool reads_old = reads(v, old);
  value_list replaced = {0};
  if (!reads_carriers(s, v)) return;
  while (replace_elements(s, v, &replaced)) continue;
  if (!reads_old && reads(v, old)) {
    value_set_body(s->g, s->all, v, body);
    return;
  }
  for (size_t i = 0; i < replaced.n; i++) replaced.at[i]->memory.is_never_inlined = false;
}

static bool has_teams(const machine *m) {
  bool any = m->teams;
  for (size_t i = 0; i < m->n_more; i++) any |= m->more[i].teams;
  return any;
}

void absorb_scans(ir *g, const machine *m, const normalised *in, values *v) {
  if (has_teams(m)) return;
  arena_mark here = arena_save(ir_scratch(g));
  absorbing s = {.g = g, .machine = m, .all = v};
  s.readers = values_only_readers(ir_scratch(g), v, in->roots, in->n_roots);
  find_carriers(&s);
  for (size_t i = 0; i < v->at.n; i++)
    if (v->at.at[i]->updates && v->at.at[i]->updates->is_distinct) absorb_into(&s, v->at.at[i]);
  arena_rewind(ir_scratch(g), here);
}
