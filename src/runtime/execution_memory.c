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
  vec_push(&e->arena, &x->slots, (memory_plan_slot){.first = step, .last = last});
  vec_push(&e->arena, &x->owners, (slot_owner){step, buffer});
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
  e->values.items = arena_calloc(a, p->n_items + 1, sizeof *e->values.items);
  e->values.is_used = arena_calloc(a, p->n_buffers + 1, sizeof *e->values.is_used);
  e->values.terms = launch_terms_open(a, p->sizes.n_terms);
  e->memory.buffers = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.buffers);
  e->memory.is_allocated = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.is_allocated);
  e->memory.spans = arena_calloc(a, p->n_buffers + 1, sizeof *e->memory.spans);
  for (size_t i = 0; i < p->n_vars; i++) e->values.has_value[i] = var_is_trip(p->vars[i].name);
  for (size_t i = 0; i < p->n_items; i++) e->values.has_value[p->items[i].var] = true;
  size_t n_scratch = p->n_segments * p->n_targets;
  e->memory.scratch = arena_calloc(a, n_scratch, sizeof *e->memory.scratch);
  for (size_t i = 0; i < n_scratch; i++) e->memory.scratch[i].at = &e->memory.scratch[i].memory;
  add_slots(e, false);
}

void execution_keep_results(struct execution *e) {
  execution_forget_scratch(e);
  for (size_t i = 0; i < count_scratch(e); i++) {
    execution_scratch *x = &e->memory.scratch[i];
    x->slots.n = x->owners.n = 0;
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

/** True if a step that the run does not skip uses a buffer or a part of it, as far as guards are
    known when the buffer gets its place. */
static bool is_used(const struct execution *e, size_t buffer) {
  const executable *p = e->p;
  bool found = execution_is_bindable(e, buffer);
  for (size_t k = p->users.first[buffer]; k < p->users.first[buffer + 1] && !found; k++)
    found = !executable_skips(p, p->users.at[k], p->buffers[buffer].segment, e->values.sizes);
  return found;
}

/** Evaluates the sizes that become known with a segment. What only steps use that the run skips has
    the size 0: its expression may have no value. */
static void evaluate_segment(struct execution *e, size_t segment) {
  const executable *p = e->p;
  const executable_segments *s = &p->segments;
  execution_values *v = &e->values;
  size_t first = s->terms.first[segment], n = s->terms.first[segment + 1] - first;
  launch_terms_eval(&v->terms, &p->sizes, s->terms.at + first, n, v->vars);
  for (size_t k = s->results.first[segment]; k < s->results.first[segment + 1]; k++)
    v->sizes[s->results.at[k]] = launch_terms_result(&v->terms, &p->sizes, s->results.at[k]);
  for (size_t k = s->buffers.first[segment]; k < s->buffers.first[segment + 1]; k++) {
    size_t i = s->buffers.at[k], of = p->buffers[i].within;
    if (p->has_guards && of == i) v->is_used[i] = is_used(e, i);
    bool has_size = !p->has_guards || v->is_used[of];
    v->sizes[i] = has_size ? launch_terms_result(&v->terms, &p->sizes, i) : 0;
  }
}

/** Forgets what earlier runs read: an ITEM has the least value until it is read. */
static void forget_items(struct execution *e) {
  for (size_t i = 0; i < e->p->n_items; i++) {
    size_t var = e->p->items[i].var;
    e->values.vars[var] = e->p->vars[var].min;
  }
}

tn_status execution_evaluate_sizes(struct execution *e, diag *d) {
  const executable *p = e->p;
  execution_values *v = &e->values;
  if (v->is_evaluated) return TN_OK;
  for (size_t i = 0; i < p->n_vars; i++)
    if (!v->has_value[i])
      return diag_set(d, TN_ERR_ARGUMENT, "%s: variable %s has no value", p->name,
                      var_user_name(p->vars[i].name));
  forget_items(e);
  for (size_t i = 0; i <= p->n_segments; i++) evaluate_segment(e, i);
  v->is_evaluated = true;
  return TN_OK;
}

/** Says why a size has no value; `of`: what needs it, "" if that has no name. */
static tn_status refuse_size(const struct execution *e, size_t size, const char *of, diag *d) {
  launch_terms_refuse(&e->values.terms, &e->p->sizes, size, e->values.vars, d);
  d->status = TN_ERR_SHAPE;
  if (*of) diag_prefix(d, "%.200s", of);
  return diag_prefix(d, "%s", e->p->name);
}

/** Refuses the size of a buffer, and names the first step that uses it. */
static tn_status refuse_buffer(const struct execution *e, size_t buffer, diag *d) {
  const executable *p = e->p;
  const char *of = "";
  int64_t n = e->values.sizes[buffer];
  for (size_t i = p->n_steps; i-- > 0;)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++)
      if (p->steps[i].buffers[k] == buffer) of = p->steps[i].name;
  if (n == LAUNCH_NO_VALUE) return refuse_size(e, buffer, of, d);
  diag_set(d, TN_ERR_SHAPE, "a tensor has %lld elements", (long long)n);
  if (*of) diag_prefix(d, "%.200s", of);
  return diag_prefix(d, "%s", p->name);
}

/** Reads an element. Its bounds are checked once the sizes of the segment are evaluated, as the
    ITEM's guard is one of them; until then the variable keeps to its own. */
static tn_status read_item(struct execution *e, size_t number, diag *d) {
  const executable_item *item = &e->p->items[number];
  const tn_program_var *v = &e->p->vars[item->var];
  const tn_span *span = &e->memory.spans[item->buffer];
  int64_t value = v->min;
  if (!executable_skips(e->p, item->writer, e->segment, e->values.sizes)) {
    if (span->bytes < sizeof value)
      return diag_set(d, TN_ERR_INTERNAL, "%s: a size has no element", e->p->name);
    tn_status s = span_read(span, DT_I64, DT_I64, &value, 1, d);
    if (s != TN_OK) return s;
  }
  e->values.items[number] = value;
  e->values.vars[item->var] = value < v->min || value > v->max ? v->min : value;
  return TN_OK;
}

/** Refuses an element that is out of its bounds, where the ITEM's guard holds. */
static tn_status check_item(const struct execution *e, size_t number, diag *d) {
  const executable_item *item = &e->p->items[number];
  const tn_program_var *v = &e->p->vars[item->var];
  int64_t value = e->values.items[number], most = e->values.sizes[item->most];
  if (item->guard != SIZE_MAX && !e->values.sizes[item->guard]) return TN_OK;
  if (value < item->min || value < v->min || value > v->max)
    return item_refuse(e->p->name, item->name, value, item->min, v->max, d);
  if (value <= most) return TN_OK;
  if (most == LAUNCH_NO_VALUE) return refuse_size(e, item->most, item->name, d);
  return item_refuse(e->p->name, item->name, value, item->min, most, d);
}

tn_status execution_read_items(struct execution *e, size_t segment, diag *d) {
  const executable *p = e->p;
  const segment_list *items = &p->segments.items;
  size_t first = items->first[segment], end = items->first[segment + 1];
  tn_status s = TN_OK;
  for (size_t k = first; k < end && s == TN_OK; k++) s = read_item(e, items->at[k], d);
  if (s == TN_OK) evaluate_segment(e, segment);
  for (size_t k = first; k < end && s == TN_OK; k++) s = check_item(e, items->at[k], d);
  return s;
}

uint64_t execution_bytes_of(const struct execution *e, size_t buffer) {
  return (uint64_t)e->values.sizes[buffer] * dtype_bytes(e->p->buffers[buffer].dtype);
}

tn_status execution_check_size(const struct execution *e, size_t buffer, diag *d) {
  uint64_t most = UINT64_MAX / 2 / dtype_bytes(e->p->buffers[buffer].dtype);
  int64_t n = e->values.sizes[buffer];
  return n < 0 || (uint64_t)n > most ? refuse_buffer(e, buffer, d) : TN_OK;
}

/** Refuses sizes of a segment whose bytes do not fit in an int64. */
static tn_status check_sizes(const struct execution *e, size_t segment, diag *d) {
  const segment_list *buffers = &e->p->segments.buffers;
  tn_status s = TN_OK;
  for (size_t k = buffers->first[segment]; k < buffers->first[segment + 1] && s == TN_OK; k++)
    s = execution_check_size(e, buffers->at[k], d);
  return s;
}

/** Refuses views that do not fit in their buffers. */
static tn_status check_views(const struct execution *e, size_t segment, diag *d) {
  const executable *p = e->p;
  const segment_list *buffers = &p->segments.buffers;
  for (size_t k = buffers->first[segment]; k < buffers->first[segment + 1]; k++) {
    size_t i = buffers->at[k];
    const executable_buffer *b = &p->buffers[i];
    uint64_t all = (uint64_t)e->values.sizes[b->within], own = (uint64_t)e->values.sizes[i];
    bool is_skipped = p->has_guards && !e->values.is_used[b->within];
    if (b->role == BUFFER_ROLE_VIEW && !is_skipped && (b->start > all || own > all - b->start))
      return diag_set(d, TN_ERR_INTERNAL, "%s: a part of a buffer is outside of it", p->name);
  }
  return TN_OK;
}

/** Keeps trip numbers within their variables' bounds, which kernels were compiled for. */
static tn_status check_trips(const struct execution *e, size_t segment, diag *d) {
  const executable *p = e->p;
  const segment_list *steps = &p->segments.steps;
  for (size_t k = steps->first[segment]; k < steps->first[segment + 1]; k++) {
    const executable_step *s = &p->steps[steps->at[k]];
    if (s->kind != STEP_LOOP || executable_skips(p, steps->at[k], segment, e->values.sizes))
      continue;
    int64_t trips = e->values.sizes[s->trips];
    if (trips == LAUNCH_NO_VALUE) return refuse_size(e, s->trips, s->name, d);
    if (s->trip != SIZE_MAX && trips > 0 && trips - 1 > p->vars[s->trip].max)
      return diag_set(d, TN_ERR_INTERNAL,
                      "%s: a loop has %lld iterations, but was compiled for %lld", p->name,
                      (long long)trips, (long long)p->vars[s->trip].max + 1);
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
  p->x->bytes = memory_plan_place(&p->e->arena, p->x->slots.at, p->x->slots.n);
  arena_rewind(&p->e->arena, here);
  p->x->is_placed = true;
}

static tn_status place_slots(struct execution *e, execution_scratch *x, diag *d) {
  slot_placing p = {e, x};
  for (size_t i = 0; i < x->slots.n; i++) {
    uint64_t bytes = slot_bytes(e, x->owners.at[i]);
    if (bytes != x->slots.at[i].bytes) x->is_placed = false;
    x->slots.at[i].bytes = bytes;
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
    is_placed = !x->slots.n || x->placed == *x->at;
  }
  return is_placed;
}

/** Says that there is no room for the buffers that live between steps, with the step of the
    largest. */
static tn_status refuse_scratch(const struct execution *e, const execution_scratch *x, diag *d) {
  size_t most = 0;
  for (size_t i = 1; i < x->slots.n; i++)
    if (x->slots.at[i].bytes > x->slots.at[most].bytes) most = i;
  return diag_prefix(d, "intermediate results, the largest of step %.200s",
                     e->p->steps[x->owners.at[most].step].name);
}

/** The timeline on which new memory may still be in use: the run's, which waits for other users of
    its buffers once the first segment is placed. Later the host waits for them instead. */
static const tn_signal *placing_timeline(const struct execution *e) {
  return e->segment ? NULL : execution_timeline(e);
}

/** Places the scratch memory of a segment on a device. */
static tn_status place_scratch(struct execution *e, size_t segment, size_t device, diag *d) {
  execution_scratch *x = execution_scratch_on(e, segment, device);
  tn_span all;
  const tn_buffer *before = x->placed;
  tn_status s = place_slots(e, x, d);
#ifdef TENON_VERIFY
  if (s == TN_OK && memory_plan_overlaps(x->slots.at, x->slots.n))
    s = diag_set(d, TN_ERR_INTERNAL, "%s: two live buffers overlap", e->p->name);
#endif
  const tn_signal *timeline = placing_timeline(e);
  if (s == TN_OK && x->slots.n)
    s = buffer_reserve_on(e->p->targets[device]->device, x->at, x->bytes, timeline, d);
  if (s == TN_ERR_MEMORY && x->slots.n) refuse_scratch(e, x, d);
  forget_placed(x);
  if (s == TN_OK && x->slots.n) s = buffer_span_on(*x->at, timeline, &all, d);
  if (s == TN_OK && x->slots.n) x->placed = buffer_retain(*x->at);
  if (x->placed != before) step_reuse_forget(&e->reuse);
  for (size_t i = 0; i < x->slots.n && s == TN_OK; i++)
    *slot_span(e, x->owners.at[i]) = span_slice(&all, x->slots.at[i].offset, x->slots.at[i].bytes);
  return s;
}

static void place_view(struct execution *e, size_t i) {
  const executable_buffer *b = &e->p->buffers[i];
  e->memory.spans[i] = span_slice(&e->memory.spans[b->within], b->start * dtype_bytes(b->dtype),
                                  execution_bytes_of(e, i));
}

/** Places the views of buffers that have their places. */
static void place_views(struct execution *e, size_t segment) {
  const segment_list *buffers = &e->p->segments.buffers;
  for (size_t k = buffers->first[segment]; k < buffers->first[segment + 1]; k++) {
    const executable_buffer *b = &e->p->buffers[buffers->at[k]];
    if (e->p->has_guards && !e->values.is_used[b->within]) continue;
    if (b->role == BUFFER_ROLE_VIEW) place_view(e, buffers->at[k]);
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
    s = buffer_reserve_on(executable_device_of(e->p, i), &m->buffers[i], bytes, placing_timeline(e),
                          d);
    m->is_allocated[i] = true;
    step_reuse_move(&e->reuse, i);
  }
  if (s == TN_OK) s = buffer_span_on(m->buffers[i], placing_timeline(e), &m->spans[i], d);
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
  const segment_list *buffers = &e->p->segments.buffers;
  tn_status s = execution_evaluate_sizes(e, d);
  if (s == TN_OK) s = check_sizes(e, segment, d);
  if (s == TN_OK) s = check_trips(e, segment, d);
  if (s == TN_OK) s = check_views(e, segment, d);
  for (size_t k = buffers->first[segment]; k < buffers->first[segment + 1] && s == TN_OK; k++) {
    size_t i = buffers->at[k];
    if (!execution_is_bindable(e, i)) continue;
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
