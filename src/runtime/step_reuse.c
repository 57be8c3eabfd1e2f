/* Implements the choice of the steps that a run needs. A buffer is changed if it is an input that
   the caller changed or moved, or if a step that reads a changed buffer writes it. A step runs if
   it reads a changed buffer, if an output of its own has moved, or always: host functions, loops
   with their bodies, steps that write inputs (states) in place, and steps that write a buffer which
   another step writes too. */
#include "runtime/step_reuse.h"

#include "runtime/execution_state.h"

/** The buffer whose memory a buffer is, or is a part of. */
static size_t storage_of(const executable *p, size_t buffer) { return p->buffers[buffer].within; }

/** True if a step writes its k-th buffer; those in which a loop keeps its states are not counted
    here. */
static bool stores(const executable *p, const executable_step *s, size_t k) {
  return s->kind != STEP_LOOP && executable_step_writes(p, s, k);
}

/** Counts the steps that write each buffer. */
static size_t *count_writers(arena *a, const executable *p) {
  size_t *writers = arena_calloc(a, p->n_buffers + 1, sizeof *writers);
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    for (size_t k = 0; k < s->n_buffers; k++)
      writers[storage_of(p, s->buffers[k])] += stores(p, s, k);
    for (size_t k = 0; k < s->n_states; k++) {
      writers[storage_of(p, s->states[k].result)]++;
      writers[storage_of(p, s->states[k].spare)]++;
    }
  }
  return writers;
}

static bool may_skip(const executable *p, const executable_step *s, const size_t writers[]) {
  if (s->kind != STEP_KERNEL || s->parent != SIZE_MAX || p->n_items) return false;
  for (size_t k = 0; k < s->n_buffers; k++) {
    size_t b = storage_of(p, s->buffers[k]);
    buffer_role role = p->buffers[b].role;
    if (!stores(p, s, k)) continue;
    if ((role != BUFFER_ROLE_SCRATCH && role != BUFFER_ROLE_OUTPUT) || writers[b] != 1)
      return false;
  }
  return true;
}

void step_reuse_open(struct execution *e) {
  const executable *p = e->p;
  step_reuse *r = &e->reuse;
  arena *a = &e->arena;
  if (r->may_skip) return;
  bool *skips = arena_calloc(a, p->n_steps + 1, sizeof *skips);
  r->is_touched = arena_calloc(a, p->n_buffers + 1, sizeof *r->is_touched);
  r->is_moved = arena_calloc(a, p->n_buffers + 1, sizeof *r->is_moved);
  r->is_changed = arena_calloc(a, p->n_buffers + 1, sizeof *r->is_changed);
  r->runs = arena_calloc(a, p->n_steps + 1, sizeof *r->runs);
  r->recorded = arena_calloc(a, p->n_steps + 1, sizeof *r->recorded);
  r->lists = arena_calloc(a, e->n_sections + 1, sizeof *r->lists);
  size_t *writers = count_writers(a, p);
  for (size_t i = 0; i < p->n_steps; i++) skips[i] = may_skip(p, &p->steps[i], writers);
  r->may_skip = skips;
}

void step_reuse_release(struct execution *e) {
  for (size_t i = 0; e->reuse.lists && i < e->n_sections; i++) {
    command_list_release(e->reuse.lists[i]);
    e->reuse.lists[i] = NULL;
  }
}

/* A run. */

static bool reads_changed(const struct execution *e, const executable_step *s) {
  for (size_t k = 0; k < s->n_buffers; k++)
    if (e->reuse.is_changed[storage_of(e->p, s->buffers[k])]) return true;
  return false;
}

static bool writes_moved(const struct execution *e, const executable_step *s) {
  for (size_t k = 0; k < s->n_buffers; k++)
    if (e->reuse.is_moved[storage_of(e->p, s->buffers[k])]) return true;
  return false;
}

/** Marks what a step with changed operands writes. */
static void mark_changed(struct execution *e, const executable_step *s) {
  const executable *p = e->p;
  for (size_t k = 0; k < s->n_buffers; k++)
    if (stores(p, s, k)) e->reuse.is_changed[storage_of(p, s->buffers[k])] = true;
  for (size_t k = 0; k < s->n_states; k++) {
    e->reuse.is_changed[storage_of(p, s->states[k].result)] = true;
    e->reuse.is_changed[storage_of(p, s->states[k].spare)] = true;
  }
}

void step_reuse_begin(struct execution *e) {
  const executable *p = e->p;
  step_reuse *r = &e->reuse;
  if (!r->is_on) return;
  for (size_t b = 0; b < p->n_buffers; b++) {
    bool is_input = p->buffers[b].role == BUFFER_ROLE_INPUT;
    r->is_changed[b] = is_input && (r->is_touched[b] || r->is_moved[b]);
  }
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    bool is_volatile = s->kind != STEP_KERNEL || s->parent != SIZE_MAX;
    bool is_dirty = !r->is_valid || is_volatile || reads_changed(e, s);
    if (is_dirty) mark_changed(e, s);
    r->runs[i] = is_dirty || !r->may_skip[i] || writes_moved(e, s);
  }
}

void step_reuse_end(struct execution *e, bool succeeded) {
  step_reuse *r = &e->reuse;
  if (!r->is_on) return;
  r->is_valid = succeeded;
  for (size_t b = 0; b < e->p->n_buffers; b++) r->is_touched[b] = r->is_moved[b] = false;
}

bool step_reuse_runs_all(const step_reuse *r, size_t first, size_t n) {
  bool all = true;
  for (size_t i = first; r->is_on && i < first + n && all; i++) all = r->runs[i];
  return all;
}
