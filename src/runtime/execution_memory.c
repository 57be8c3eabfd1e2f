/* Implements the memory of an execution. Buffers that live between two steps share one allocation:
   a slot for each live range, placed by schedule/memory/memory_plan.h. Placing takes longer than
   many a run, so it is repeated only if a slot's bytes change; buffers are bound more often than
   sizes change. */
#include "runtime/execution_memory.h"

#include "device/memory/buffer_resize.h"
#include "device/memory/span.h"
#include "ir/core/var_names.h"
#include "ir/index/item_bounds.h"

/* Opening. */

static size_t count_scratch(const struct execution *e) {
  return e->p->n_segments * e->p->n_targets;
}

static void add_slot(struct execution *e, execution_scratch *x, size_t step, size_t last,
                     size_t buffer) {
  if (!x->slots) {
    x->slots = arena_calloc(&e->arena, e->p->n_buffers + e->p->n_steps, sizeof *x->slots);
    x->owners = arena_calloc(&e->arena, e->p->n_buffers + e->p->n_steps, sizeof *x->owners);
  }
  x->slots[x->n_slots] = (memory_plan_slot){.first = step, .last = last};
  x->owners[x->n_slots++] = (slot_owner){step, buffer};
}

/** Lists slots by first step: buffers are numbered in the order of the nodes that make them, which
    need not be that of the steps. `keeps`: buffers live in all steps, and stand first. */
static void add_slots(struct execution *e, bool keeps) {
  const executable *p = e->p;
  bool *is_added = arena_calloc(&e->arena, p->n_buffers + 1, sizeof *is_added);
  for (size_t i = 0; keeps && i < p->n_buffers; i++) {
    if (p->buffers[i].role != BUFFER_ROLE_SCRATCH) continue;
    is_added[i] = true;
    add_slot(e, execution_scratch_on(e, p->buffers[i].segment, p->buffers[i].device), 0, SIZE_MAX,
             i);
  }
  for (size_t step = 0; step < p->n_steps; step++) {
    for (size_t k = 0; k < p->steps[step].n_buffers; k++) {
      size_t i = p->buffers[p->steps[step].buffers[k]].within;
      if (p->buffers[i].role != BUFFER_ROLE_SCRATCH || p->buffers[i].first != step || is_added[i])
        continue;
      is_added[i] = true;
      size_t last = p->queues.n > 1 ? p->queues.free_buffer[i] : p->buffers[i].last;
      add_slot(e, execution_scratch_on(e, p->buffers[i].segment, p->buffers[i].device), step, last,
               i);
    }
    if (p->steps[step].scratch)
      add_slot(e, execution_scratch_on(e, 0, p->steps[step].device), step,
               p->queues.n > 1 ? p->queues.free_step[step] : step, SIZE_MAX);
  }
}

void execution_memory_open(struct execution *e) {
  const executable *p = e->p;
  arena *a = &e->arena;
  e->values.vars = arena_calloc(a, p->n_vars + 1, sizeof *e->values.vars);
  e->values.has_value = arena_calloc(a, p->n_vars + 1, sizeof *e->values.has_value);
  e->values.sizes = arena_calloc(a, p->sizes.n_results + 1, sizeof *e->values.sizes);
  e->values.is_used = arena_calloc(a, p->n_buffers + 1, sizeof *e->values.is_used);
  e->values.terms = arena_calloc(a, p->sizes.n_terms + 1, sizeof *e->values.terms);
  e->memory.buffers = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.buffers);
  e->memory.is_allocated = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.is_allocated);
  e->memory.spans = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.spans);
  for (size_t i = 0; i < p->n_vars; i++) e->values.has_value[i] = var_is_trip(p->vars[i].name);
  for (size_t i = 0; i < p->n_items; i++) e->values.has_value[p->items[i].var] = true;
  size_t n_scratch = p->n_segments * p->n_targets;
  e->memory.scratch = arena_calloc(a, n_scratch, sizeof *e->memory.scratch);
  for (size_t i = 0; i < n_scratch; i++) e->memory.scratch[i].at = &e->memory.scratch[i].memory;
  add_slots(e, false);
  execution_forget_items(e);
}

void execution_keep_results(struct execution *e) {
  execution_forget_scratch(e);
  for (size_t i = 0; i < count_scratch(e); i++) {
    execution_scratch *x = &e->memory.scratch[i];
    x->n_slots = 0;
    x->is_placed = false;
    x->at = &x->memory;
  }
  add_slots(e, true);
  e->memory.is_placed = false;
}

void execution_memory_close(struct execution *e) {
  execution_memory *m = &e->memory;
  for (size_t i = 0; m->buffers && i < e->p->n_buffers; i++)
    if (m->buffers[i]) buffer_release(m->buffers[i]);
  execution_forget_scratch(e);
  for (size_t i = 0; m->scratch && i < count_scratch(e); i++)
    if (m->scratch[i].memory) buffer_release(m->scratch[i].memory);
}

bool execution_is_bindable(const struct execution *e, size_t buffer) {
  buffer_role role = e->p->buffers[buffer].role;
  return role == BUFFER_ROLE_INPUT || role == BUFFER_ROLE_OUTPUT;
}

/* Sizes. */

/** Sets sizes to 0 of what only steps use that the run skips: it may have none. */
static void drop_skipped(struct execution *e) {
  const executable *p = e->p;
  execution_values *v = &e->values;
  if (!p->has_guards) return;
  for (size_t i = 0; i < p->n_buffers; i++) v->is_used[i] = execution_is_bindable(e, i);
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++) {
      size_t b = p->buffers[p->steps[i].buffers[k]].within;
      if (!v->is_used[b]) v->is_used[b] = !executable_skips(p, i, p->buffers[b].segment, v->sizes);
    }
  for (size_t i = 0; i < p->n_buffers; i++)
    if (!v->is_used[p->buffers[i].within]) v->sizes[i] = 0;
}

tn_status execution_evaluate_sizes(struct execution *e, diag *d) {
  const executable *p = e->p;
  execution_values *v = &e->values;
  if (v->is_evaluated) return TN_OK;
  for (size_t i = 0; i < p->n_vars; i++)
    if (!v->has_value[i])
      return diag_set(d, TN_ERR_ARGUMENT, "%s: variable %s has no value", p->name,
                      var_user_name(p->vars[i].name));
  tn_status s = launch_exprs_eval(&p->sizes, v->vars, v->terms, v->sizes, d);
  if (s == TN_OK) drop_skipped(e);
  v->is_evaluated = s == TN_OK;
  return s;
}

void execution_forget_items(struct execution *e) {
  for (size_t i = 0; i < e->p->n_items; i++) {
    size_t var = e->p->items[i].var;
    e->values.vars[var] = e->p->vars[var].min;
  }
  if (e->p->n_items) e->values.is_evaluated = false;
}

static tn_status read_item(struct execution *e, const executable_item *item, diag *d) {
  const tn_program_var *v = &e->p->vars[item->var];
  const tn_span *span = &e->memory.spans[item->buffer];
  int64_t value = 0;
  if (executable_skips(e->p, item->writer, e->segment, e->values.sizes)) return TN_OK;
  if (span->bytes < sizeof value)
    return diag_set(d, TN_ERR_INTERNAL, "%s: a size has no element", e->p->name);
  tn_status s = span_read(span, DT_I64, DT_I64, &value, 1, d);
  if (s != TN_OK) return s;
  if (value < item->min || value < v->min || value > v->max)
    return item_refuse(e->p->name, item->name, value, item->min, v->max, d);
  e->values.vars[item->var] = value;
  e->values.is_evaluated = false;
  return TN_OK;
}

tn_status execution_read_items(struct execution *e, size_t segment, diag *d) {
  const executable *p = e->p;
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->n_items && s == TN_OK; i++)
    if (p->items[i].segment == segment) s = read_item(e, &p->items[i], d);
  if (s == TN_OK) s = execution_evaluate_sizes(e, d);
  for (size_t i = 0; i < p->n_items && s == TN_OK; i++) {
    const executable_item *item = &p->items[i];
    int64_t value = e->values.vars[item->var], most = e->values.sizes[item->most];
    bool is_read =
        item->segment == segment && !executable_skips(p, item->writer, e->segment, e->values.sizes);
    if (is_read && value > most) s = item_refuse(e->p->name, item->name, value, item->min, most, d);
  }
  return s;
}

uint64_t execution_bytes_of(const struct execution *e, size_t buffer) {
  return (uint64_t)e->values.sizes[buffer] * dtype_bytes(e->p->buffers[buffer].dtype);
}

/** Refuses sizes of a segment whose bytes do not fit in an int64. */
static tn_status check_sizes(const struct execution *e, size_t segment, diag *d) {
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    if (e->p->buffers[i].segment != segment) continue;
    uint64_t most = UINT64_MAX / 2 / dtype_bytes(e->p->buffers[i].dtype);
    int64_t n = e->values.sizes[i];
    if (n < 0 || (uint64_t)n > most)
      return diag_set(d, TN_ERR_SHAPE, "%s: a tensor has %lld elements", e->p->name, (long long)n);
  }
  return TN_OK;
}

/** Refuses views that do not fit in their buffers. */
static tn_status check_views(const struct execution *e, size_t segment, diag *d) {
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    const executable_buffer *b = &e->p->buffers[i];
    if (e->p->buffers[b->within].segment != segment) continue;
    uint64_t all = (uint64_t)e->values.sizes[b->within], own = (uint64_t)e->values.sizes[i];
    bool is_skipped = e->p->has_guards && !e->values.is_used[b->within];
    if (b->role == BUFFER_ROLE_VIEW && !is_skipped && (b->start > all || own > all - b->start))
      return diag_set(d, TN_ERR_INTERNAL, "%s: a part of a buffer is outside of it", e->p->name);
  }
  return TN_OK;
}

/** Keeps trip numbers within their variables' bounds, which kernels were compiled for. */
static tn_status check_trips(const struct execution *e, size_t segment, diag *d) {
  for (size_t i = 0; i < e->p->n_steps; i++) {
    const executable_step *s = &e->p->steps[i];
    if (s->kind != STEP_LOOP || s->trip == SIZE_MAX || s->segment != segment) continue;
    if (executable_skips(e->p, i, segment, e->values.sizes)) continue;
    int64_t most = e->p->vars[s->trip].max, trips = e->values.sizes[s->trips];
    if (trips > 0 && trips - 1 > most)
      return diag_set(d, TN_ERR_INTERNAL,
                      "%s: a loop has %lld iterations, but was compiled for %lld", e->p->name,
                      (long long)trips, (long long)most + 1);
  }
  return TN_OK;
}

/* Scratch memory. */

static uint64_t slot_bytes(const struct execution *e, slot_owner owner) {
  if (owner.buffer != SIZE_MAX) return execution_bytes_of(e, owner.buffer);
  const executable_step *step = &e->p->steps[owner.step];
  bool has_workers = e->p->programs[step->program]->facts.core_id >= 0;
  return step->scratch * (has_workers ? (uint64_t)execution_workers(e, step->device) : 1);
}

static tn_span *slot_span(struct execution *e, slot_owner owner) {
  if (owner.buffer != SIZE_MAX) return &e->memory.spans[owner.buffer];
  return &e->launch.spans[owner.step][e->p->steps[owner.step].n_buffers];
}

typedef struct slot_placing {
  struct execution *e;
  execution_scratch *x;
} slot_placing;

static void place_slots_body(void *arg) {
  slot_placing *p = arg;
  arena_mark here = arena_save(&p->e->arena);
  p->x->bytes = memory_plan_place(&p->e->arena, p->x->slots, p->x->n_slots);
  arena_rewind(&p->e->arena, here);
  p->x->is_placed = true;
}

static tn_status place_slots(struct execution *e, execution_scratch *x, diag *d) {
  slot_placing p = {e, x};
  for (size_t i = 0; i < x->n_slots; i++) {
    uint64_t bytes = slot_bytes(e, x->owners[i]);
    if (bytes != x->slots[i].bytes) x->is_placed = false;
    x->slots[i].bytes = bytes;
  }
  if (!x->is_placed) step_reuse_forget(&e->reuse);
  return x->is_placed ? TN_OK : diag_catch(d, place_slots_body, &p);
}

tn_status execution_place_slots(struct execution *e, diag *d) {
  tn_status s = execution_evaluate_sizes(e, d);
  if (s == TN_OK) s = check_sizes(e, 0, d);
  for (size_t i = 0; i < e->p->n_targets && s == TN_OK; i++)
    s = place_slots(e, execution_scratch_on(e, 0, i), d);
  return s;
}

static void forget_placed(execution_scratch *x) {
  if (x->placed) buffer_release(x->placed);
  x->placed = NULL;
}

void execution_forget_scratch(struct execution *e) {
  for (size_t i = 0; e->memory.scratch && i < count_scratch(e); i++)
    forget_placed(&e->memory.scratch[i]);
}

bool execution_is_placed(const struct execution *e) {
  bool is_placed = e->memory.is_placed;
  for (size_t i = 0; i < e->p->n_targets && is_placed; i++) {
    const execution_scratch *x = execution_scratch_on(e, 0, i);
    is_placed = !x->n_slots || x->placed == *x->at;
  }
  return is_placed;
}

/** Says that there is no room for the buffers that live between steps, with the step of the
    largest. */
static tn_status refuse_scratch(const struct execution *e, const execution_scratch *x, diag *d) {
  size_t most = 0;
  for (size_t i = 1; i < x->n_slots; i++)
    if (x->slots[i].bytes > x->slots[most].bytes) most = i;
  return diag_prefix(d, "intermediate results, the largest of step %.200s",
                     e->p->steps[x->owners[most].step].name);
}

/** Places the scratch memory of a segment on a device. */
static tn_status place_scratch(struct execution *e, size_t segment, size_t device, diag *d) {
  execution_scratch *x = execution_scratch_on(e, segment, device);
  tn_span all;
  const tn_buffer *before = x->placed;
  tn_status s = place_slots(e, x, d);
#ifdef TENON_VERIFY
  if (s == TN_OK && memory_plan_overlaps(x->slots, x->n_slots))
    s = diag_set(d, TN_ERR_INTERNAL, "%s: two live buffers overlap", e->p->name);
#endif
  const tn_signal *timeline = execution_timeline(e);
  if (s == TN_OK && x->n_slots)
    s = buffer_reserve_on(e->p->targets[device]->device, x->at, x->bytes, timeline, d);
  if (s == TN_ERR_MEMORY && x->n_slots) refuse_scratch(e, x, d);
  forget_placed(x);
  if (s == TN_OK && x->n_slots) s = buffer_span_on(*x->at, timeline, &all, d);
  if (s == TN_OK && x->n_slots) x->placed = buffer_retain(*x->at);
  if (x->placed != before) step_reuse_forget(&e->reuse);
  for (size_t i = 0; i < x->n_slots && s == TN_OK; i++)
    *slot_span(e, x->owners[i]) = span_slice(&all, x->slots[i].offset, x->slots[i].bytes);
  return s;
}

static void place_view(struct execution *e, size_t i) {
  const executable_buffer *b = &e->p->buffers[i];
  e->memory.spans[i] = span_slice(&e->memory.spans[b->within], b->start * dtype_bytes(b->dtype),
                                  execution_bytes_of(e, i));
}

/** Places the views of buffers that have their places. */
static void place_views(struct execution *e, size_t segment) {
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    const executable_buffer *b = &e->p->buffers[i];
    if (e->p->has_guards && !e->values.is_used[b->within]) continue;
    if (b->role == BUFFER_ROLE_VIEW && e->p->buffers[b->within].segment == segment)
      place_view(e, i);
  }
}

void execution_place_views_of(struct execution *e, size_t buffer) {
  for (size_t i = 0; i < e->p->n_buffers; i++)
    if (e->p->buffers[i].role == BUFFER_ROLE_VIEW && e->p->buffers[i].within == buffer)
      place_view(e, i);
}

/* Inputs and outputs. */

static tn_status place_bindable(struct execution *e, size_t i, diag *d) {
  execution_memory *m = &e->memory;
  uint64_t bytes = execution_bytes_of(e, i);
  bool is_absent = !m->buffers[i] && e->p->buffers[i].role == BUFFER_ROLE_INPUT;
  if (is_absent && (!e->readers.begin || e->queues))
    return diag_set(d, TN_ERR_ARGUMENT, "%s: an input has no value", e->p->name);
  if (is_absent) { /* it gets its place before it is read */
    m->spans[i] = (tn_span){.device = executable_device_of(e->p, i), .bytes = bytes};
    return TN_OK;
  }
  tn_status s = TN_OK;
  if (!m->buffers[i] || m->is_allocated[i]) {
    s = buffer_reserve_on(executable_device_of(e->p, i), &m->buffers[i], bytes,
                          execution_timeline(e), d);
    m->is_allocated[i] = true;
    step_reuse_move(&e->reuse, i);
  }
  if (s == TN_OK) s = buffer_span_on(m->buffers[i], execution_timeline(e), &m->spans[i], d);
  if (s == TN_OK && m->spans[i].bytes < bytes)
    s = diag_set(d, TN_ERR_SHAPE, "%s: expected %llu bytes, got %llu", e->p->name,
                 (unsigned long long)m->spans[i].bytes, (unsigned long long)bytes);
  if (s == TN_OK) m->spans[i].bytes = bytes;
  return s;
}

/** Asks for the memory of an output whose size became known in the run. */
static tn_status place_late_output(struct execution *e, size_t i, diag *d) {
  const late_outputs *to = &e->late_outputs;
  bool is_asked =
      to->place && e->p->buffers[i].segment && e->p->buffers[i].role == BUFFER_ROLE_OUTPUT;
  return is_asked ? to->place(to->user, i, execution_bytes_of(e, i), d) : TN_OK;
}

tn_status execution_place_buffers(struct execution *e, size_t segment, diag *d) {
  tn_status s = execution_evaluate_sizes(e, d);
  if (s == TN_OK) s = check_sizes(e, segment, d);
  if (s == TN_OK) s = check_trips(e, segment, d);
  if (s == TN_OK) s = check_views(e, segment, d);
  for (size_t i = 0; i < e->p->n_buffers && s == TN_OK; i++) {
    if (!execution_is_bindable(e, i) || e->p->buffers[i].segment != segment) continue;
    s = place_late_output(e, i, d);
    if (s == TN_OK) s = place_bindable(e, i, d);
  }
  for (size_t i = 0; i < e->p->n_targets && s == TN_OK; i++) s = place_scratch(e, segment, i, d);
  if (s == TN_OK) place_views(e, segment);
  return s;
}

/* Uses. */

static contents_use use_of(const executable_buffer *b) {
  bool is_input = b->role == BUFFER_ROLE_INPUT;
  return (contents_use){is_input, is_input ? b->is_written : b->role == BUFFER_ROLE_OUTPUT};
}

void execution_for_buffers(struct execution *e,
                           void (*visit)(void *user, tn_buffer *b, contents_use use), void *user) {
  for (size_t i = 0; i < e->p->n_buffers; i++)
    if (e->memory.buffers[i]) visit(user, e->memory.buffers[i], use_of(&e->p->buffers[i]));
  for (size_t i = 0; i < count_scratch(e); i++)
    if (*e->memory.scratch[i].at) visit(user, *e->memory.scratch[i].at, (contents_use){0});
}
