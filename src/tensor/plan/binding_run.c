/* Runs a binding: assigns buffers to inputs, outputs and states, runs the executable, and copies
   outputs to the caller's memory.

   A run compiles the variant for its facts if there is none, and pending assigns to its states; it
   allocates only where sizes have grown. It takes the context's `lock` for the turns of its states
   and to exchange their memory, and not at all in a plan without states; the locks of its queue and
   signals; and the context itself if assigns to its states are pending. */
#include "tensor/plan/binding.h"

#include "base/stop.h"
#include "device/memory/buffer_resize.h"
#include "device/memory/span.h"
#include "tensor/eval/realize.h"
#include "tensor/plan/late_plan.h"

#include <stdio.h>
#include <string.h>

/* Inputs and outputs. */

enum { MAX_NAME_SHOWN = 100 };

/** Appends a name, cut short if it is long, to a list in a text of `bytes` bytes. */
static void append_name(char *text, size_t bytes, const char *name) {
  size_t n = strlen(text);
  bool is_long = strlen(name) > MAX_NAME_SHOWN;
  snprintf(text + n, bytes - n, "%s%.*s%s", n ? ", " : "", MAX_NAME_SHOWN, name,
           is_long ? "…" : "");
}

static tn_status check_all_set(tn_binding *b) {
  char names[512] = "";
  bool is_missing = false;
  for (size_t i = 0; i < b->plan->ports.n_inputs; i++) {
    if (b->inputs[i].is_set) continue;
    is_missing = true;
    append_name(names, sizeof names, b->plan->ports.inputs[i].name);
  }
  if (!is_missing) return TN_OK;
  return diag_set(&b->diag, TN_ERR_ARGUMENT, "inputs without a value: %s", names);
}

static tn_status count_output(tn_binding *b, size_t i, tn_shape *shape, uint64_t *count) {
  const plan_port *p = &b->plan->ports.outputs[i];
  *shape = (tn_shape){.rank = (int32_t)p->rank};
  for (size_t k = 0; k < p->rank; k++) shape->size[k] = b->sizes[p->first_size + k];
  if (binding_element_count(*shape, 8, count)) return TN_OK;
  return diag_set(&b->diag, TN_ERR_SHAPE, "output %s is larger than memory", p->name);
}

/** Refuses a caller's memory that is too small for an output. */
static tn_status check_output_memory(tn_binding *b, size_t i) {
  const bound_output *o = &b->outputs[i];
  uint64_t bytes = o->count * dtype_bytes(o->dtype);
  if (!o->data || bytes <= o->bytes) return TN_OK;
  return diag_set(&b->diag, TN_ERR_SHAPE, "output %s needs %llu bytes; the buffer has %zu",
                  b->plan->ports.outputs[i].name, (unsigned long long)bytes, o->bytes);
}

/** Counts the elements of outputs, but of those whose sizes the run computes. */
static tn_status size_outputs(tn_binding *b) {
  const tn_plan *p = b->plan;
  for (size_t i = 0; i < p->ports.n_outputs; i++) {
    bound_output *o = &b->outputs[i];
    tn_shape shape;
    tn_status s = count_output(b, i, &shape, &o->count);
    if (s != TN_OK) return s;
    o->type = p->ports.outputs[i].dtype;
    o->rank = p->ports.outputs[i].rank;
    memcpy(o->size, shape.size, sizeof o->size);
    if (p->ports.outputs[i].has_computed_size) continue;
    if ((s = check_output_memory(b, i)) != TN_OK) return s;
  }
  return TN_OK;
}

/** Notes a failure of a shared plan that its work for the run's values has. */
static void note_misfit(tn_binding *b, tn_status s) {
  if (b->plan->is_shared && !stops_work(s)) b->misfit = s;
}

/** Notes a run that a shared plan fails as sizes do not fit. */
static tn_status checked_run(tn_binding *b, tn_status s) {
  if (s == TN_ERR_SHAPE || s == TN_ERR_UNSUPPORTED) note_misfit(b, s);
  return s;
}

/** Adds the values that made a late plan to the message of a failure of its sizes, or kernels. */
static tn_status explained(tn_binding *b, tn_status s) {
  if (s != TN_OK && b->late) late_plan_explain(b->late, b->plan, &b->diag);
  note_misfit(b, s);
  return s;
}

static tn_status find_sizes(tn_binding *b) {
  tn_status s = check_all_set(b);
  if (s == TN_OK) s = binding_choose_plan(b);
  return s == TN_OK ? explained(b, binding_find_sizes(b)) : s;
}

static tn_status choose_variant(tn_binding *b) { return explained(b, binding_choose_variant(b)); }

/* Memory. */

/** The device of a buffer of the executable. */
static tn_device *device_of(const tn_binding *b, size_t buffer) {
  return executable_device_of(b->variant->executable, buffer);
}

/** True if n bytes are 0 or 1. */
static bool are_bools(const unsigned char *x, uint64_t n) {
  const uint64_t others = UINT64_C(0xfefefefefefefefe);
  uint64_t seen = 0, i = 0;
  for (; i + 32 <= n && !(seen & others); i += 32) {
    uint64_t word[4];
    memcpy(word, x + i, sizeof word);
    seen |= word[0] | word[1] | word[2] | word[3];
  }
  for (; i < n; i++) seen |= x[i];
  return !(seen & others);
}

/** Imports the caller's memory if its type agrees and the device can use it. Bools
    with other bytes than 0 and 1, on which readers rely, are copied, which makes these 1. */
static bool import_input(tn_binding *b, bound_input *in, dtype t) {
  if (in->dtype != t || !in->count) return false;
  if (t == DT_BOOL && !are_bools(in->data, in->count)) return false;
  if (in->imported) return true;
  if (!b->context->device->backend->import || (uintptr_t)in->data % dtype_bytes(t)) return false;
  diag d = {0};
  return buffer_import(b->context->device, (void *)in->data, in->count * dtype_bytes(t), NULL, NULL,
                       &in->imported, &d) == TN_OK;
}

static tn_status place_input(tn_binding *b, size_t i) {
  bound_input *in = &b->inputs[i];
  const plan_port *p = &b->plan->ports.inputs[i];
  size_t buffer = b->variant->inputs[i].buffer;
  if (buffer == SIZE_MAX) return TN_OK;
  tn_buffer *memory = in->carried_memory;
  tn_status s = TN_OK;
  if (!memory && import_input(b, in, p->dtype)) memory = in->imported;
  if (!memory && b->reuses && in->is_copied && !in->is_fresh) memory = in->copy;
  if (!memory) {
    tn_span span;
    int64_t begin = clock_now_ns();
    s = buffer_reserve(device_of(b, buffer), &in->copy, in->count * dtype_bytes(p->dtype),
                       &b->diag);
    if (s != TN_OK) return diag_prefix(&b->diag, "input %s", p->name);
    s = buffer_span(in->copy, &span, &b->diag);
    if (s == TN_OK)
      s = span_write(&span, p->dtype, in->dtype, in->data, (size_t)in->count, &b->diag);
    in->is_copied = s == TN_OK;
    if (s == TN_OK) context_trace_copy(b->context, begin, "input", p->name);
    memory = in->copy;
  }
  return s == TN_OK ? execution_set_buffer(b->execution, buffer, memory, &b->diag) : s;
}

/** True if an output is written to memory of an input. */
static bool is_overwritten(const tn_binding *b, const bound_input *in) {
  uintptr_t begin = (uintptr_t)in->data, end = begin + in->count * dtype_bytes(in->dtype);
  for (size_t i = 0; i < b->plan->ports.n_outputs; i++) {
    uintptr_t at = (uintptr_t)b->outputs[i].data;
    if (at && at < end && at + b->outputs[i].bytes > begin) return true;
  }
  return false;
}

/** Tells the execution which inputs and states may have changed since its last run. */
static void touch_changed(tn_binding *b) {
  if (!b->reuses) return;
  if (b->ran != b->execution) execution_forget_results(b->execution);
  for (size_t i = 0; i < b->plan->ports.n_inputs; i++) {
    bound_input *in = &b->inputs[i];
    size_t buffer = b->variant->inputs[i].buffer;
    in->is_fresh = in->is_fresh || in->carried_output || is_overwritten(b, in);
    if (in->is_fresh && buffer != SIZE_MAX) execution_touch_input(b->execution, buffer);
  }
  for (size_t i = 0; i < b->plan->n_states; i++)
    if (b->variant->states[i].in != SIZE_MAX)
      execution_touch_input(b->execution, b->variant->states[i].in);
}

static bool is_carried(const tn_binding *b, const tn_buffer *memory) {
  for (size_t i = 0; i < b->plan->ports.n_inputs; i++)
    if (memory && b->inputs[i].carried_memory == memory) return true;
  return false;
}

/** True if a run computes the size of an output's buffer before it asks for its memory. */
static bool is_placed_late(const tn_binding *b, size_t i) {
  const executable *e = b->variant->executable;
  return executable_buffer_at(e, b->variant->outputs[i].buffer)->segment;
}

tn_status binding_reserve_output(tn_binding *b, size_t i, tn_device *v) {
  bound_output *o = &b->outputs[i];
  const plan_port *p = &b->plan->ports.outputs[i];
  if (is_carried(b, o->memory)) {
    tn_buffer *m = o->memory;
    o->memory = o->previous;
    o->previous = m;
  }
  tn_status s = buffer_reserve(v, &o->memory, o->count * dtype_bytes(p->dtype), &b->diag);
  return s == TN_OK ? s : diag_prefix(&b->diag, "output %s", p->name);
}

static tn_status place_output(tn_binding *b, size_t i) {
  const variant_port *v = &b->variant->outputs[i];
  tn_status s = binding_reserve_output(b, i, device_of(b, v->buffer));
  if (s != TN_OK || v->is_shared) return s;
  return execution_set_buffer(b->execution, v->buffer, b->outputs[i].memory, &b->diag);
}

/** Makes a copy the state's contents; readers of the old contents keep those. */
static tn_status copy_state(tn_binding *b, size_t i) {
  state_storage *t = b->plan->states[i].storage;
  tn_status s = buffer_reserve(buffer_device(t->memory), &b->spares[i], t->bytes, &b->diag);
  if (s == TN_OK) s = buffer_copy_prefix(b->spares[i], t->memory, t->bytes, &b->diag);
  if (s == TN_OK) b->spares[i] = state_storage_replace(t, b->spares[i]);
  return s;
}

tn_status binding_place_late_output(void *user, size_t buffer, uint64_t bytes, diag *d) {
  tn_binding *b = user;
  for (size_t i = 0; i < b->plan->ports.n_outputs; i++) {
    const variant_port *v = &b->variant->outputs[i];
    if (v->buffer != buffer || v->is_shared) continue;
    b->outputs[i].count = bytes / dtype_bytes(b->plan->ports.outputs[i].dtype);
    tn_status s = place_output(b, i);
    return s == TN_OK || d == &b->diag ? s : diag_set(d, s, "%s", b->diag.failure.text);
  }
  return TN_OK;
}

/** Sets the buffers of a state. The state's turn has come. New contents that are not written in
    place go to a spare buffer. */
static tn_status place_state(tn_binding *b, size_t i) {
  const variant_state *p = &b->variant->states[i];
  state_storage *t = b->plan->states[i].storage;
  bool is_in_spare = p->out != SIZE_MAX && !p->is_in_place;
  tn_status s = p->is_overwritten && b->turns[i].is_copy_on_write ? copy_state(b, i) : TN_OK;
  if (s == TN_OK && is_in_spare)
    s = buffer_reserve(device_of(b, p->out), &b->spares[i], t->bytes, &b->diag);
  if (s == TN_OK && p->in != SIZE_MAX)
    s = execution_set_buffer(b->execution, p->in, t->memory, &b->diag);
  if (s != TN_OK || !is_in_spare) return s;
  if (executable_buffer_at(b->variant->executable, p->out)->role != BUFFER_ROLE_OUTPUT) return s;
  return execution_set_buffer(b->execution, p->out, b->spares[i], &b->diag);
}

/** Makes contents that were computed in a spare buffer those of the state. */
static tn_status commit_spare(tn_binding *b, size_t i) {
  const variant_state *p = &b->variant->states[i];
  state_storage *t = b->plan->states[i].storage;
  if (p->out == SIZE_MAX || p->is_in_place) return TN_OK;
  tn_buffer *made = execution_buffer(b->execution, p->out);
  tn_status s = TN_OK;
  if (made != b->spares[i]) s = buffer_copy_prefix(b->spares[i], made, t->bytes, &b->diag);
  if (s == TN_OK) b->spares[i] = state_storage_replace(t, b->spares[i]);
  return s;
}

/* A run. */

/** Sets the size of an output that the plan does not know. */
static tn_status set_size(tn_binding *b, size_t i, const int64_t size[]) {
  bound_output *o = &b->outputs[i];
  tn_shape shape = {.rank = (int32_t)o->rank};
  for (size_t k = 0; k < o->rank; k++) shape.size[k] = o->size[k] = size[k];
  if (binding_element_count(shape, 8, &o->count)) return TN_OK;
  return diag_set(&b->diag, TN_ERR_SHAPE, "output %s is larger than memory",
                  b->plan->ports.outputs[i].name);
}

/** Takes the sizes of an output that the plan does not know: those of the variant, or of the
    execution. */
static tn_status take_sizes(tn_binding *b, size_t i) {
  int64_t size[TN_MAX_RANK];
  const int64_t *known = b->variant->outputs[i].size;
  if (known) return set_size(b, i, known);
  tn_status s = execution_root_sizes(b->execution, i, b->outputs[i].rank, size, &b->diag);
  return s == TN_OK ? set_size(b, i, size) : s;
}

static tn_status copy_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < b->plan->ports.n_outputs && s == TN_OK; i++) {
    const variant_port *v = &b->variant->outputs[i];
    bool is_computed = b->plan->ports.outputs[i].has_computed_size;
    if (is_computed) s = take_sizes(b, i);
    if (is_computed && v->is_shared && s == TN_OK) s = place_output(b, i);
    if (s != TN_OK) return s;
    uint64_t bytes = b->outputs[i].count * dtype_bytes(b->plan->ports.outputs[i].dtype);
    if (v->is_shared)
      s = buffer_copy_prefix(b->outputs[i].memory, execution_buffer(b->execution, v->buffer), bytes,
                             &b->diag);
  }
  return s;
}

/** Tells of kernels that ran one by one because the device refused them as a graph. */
static void tell_refusals(tn_binding *b) {
  execution_kernels k;
  while (execution_take_refusal(b->execution, &k))
    context_log(b->context, TN_LOG_WARNING, "%s: %zu kernels of %s are no graph: %s", b->plan->name,
                k.n, k.device, k.why);
}

static tn_status run_in_turn(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = storage_turns_wait(b->turns, p->n_states, &b->diag);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = place_state(b, i);
  int64_t begin = binding_run_begins(b);
  if (s == TN_OK) {
    s = checked_run(b, execution_run(b->execution, &b->diag));
    tell_refusals(b);
  }
  if (s == TN_OK) binding_run_ended(b, begin);
  if (s == TN_OK) s = copy_outputs(b);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = commit_spare(b, i);
  return s;
}

tn_status binding_copy_output(tn_binding *b, size_t i, dtype to, void *data) {
  tn_span span;
  bound_output *o = &b->outputs[i];
  tn_status s = buffer_span(o->memory, &span, &b->diag);
  if (s != TN_OK || !o->count) return s;
  int64_t begin = clock_now_ns();
  s = span_read(&span, o->type, to, data, (size_t)o->count, &b->diag);
  if (s == TN_OK)
    context_trace_copy(b->context, begin, "output", binding_ports(b)->ports.outputs[i].name);
  return s;
}

/** Copies outputs to the caller's memory. One whose memory is too small, as is known after the run,
    fails once the others are written. */
static tn_status copy_out_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  size_t small = SIZE_MAX;
  for (size_t i = 0; i < b->plan->ports.n_outputs && s == TN_OK; i++) {
    const bound_output *o = &b->outputs[i];
    bool fits = o->count * dtype_bytes(o->dtype) <= o->bytes;
    if (o->data && fits) s = binding_copy_output(b, i, o->dtype, o->data);
    if (o->data && !fits && small == SIZE_MAX) small = i;
  }
  return s == TN_OK && small != SIZE_MAX ? check_output_memory(b, small) : s;
}

/** Makes outputs the inputs of the next run. */
static void carry_outputs(tn_binding *b) {
  for (size_t i = 0; i < b->plan->ports.n_inputs; i++) {
    bound_input *in = &b->inputs[i];
    if (!in->carried_output) continue;
    const bound_output *o = &b->outputs[in->carried_output - 1];
    binding_set_memory(&in->carried_memory, buffer_retain(o->memory));
    binding_set_memory(&in->imported, NULL); /* its size may differ */
    in->rank = o->rank;
    memcpy(in->size, o->size, sizeof in->size);
    in->count = o->count;
  }
}

/** Places an output before the run, or leaves it to the run, which computes its size. A size that
    other variants compute may be one of this variant's inputs', as where branches agree. */
static tn_status prepare_output(tn_binding *b, size_t i) {
  tn_status s = TN_OK;
  if (is_placed_late(b, i) && !b->variant->outputs[i].size) return s;
  if (b->plan->ports.outputs[i].has_computed_size) {
    s = take_sizes(b, i);
    if (s == TN_OK) s = check_output_memory(b, i);
  }
  return s == TN_OK && !is_placed_late(b, i) ? place_output(b, i) : s;
}

static tn_status run_compiled(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = choose_variant(b);
  if (s == TN_OK) touch_changed(b);
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++) s = place_input(b, i);
  for (size_t i = 0; i < p->ports.n_outputs && s == TN_OK; i++) s = prepare_output(b, i);
  if (s != TN_OK) return s;
  storage_turns_take(b->context, b->turns, p->n_states);
  s = run_in_turn(b);
  storage_turns_end(b->turns, p->n_states);
  if (s != TN_OK) return s;
  for (size_t i = 0; i < p->ports.n_inputs; i++) b->inputs[i].is_fresh = false;
  b->ran = b->execution;
  b->last_variant = b->variant->number;
  return s;
}

/** Does what chooses a plan, again with one for the values of inputs alone where a shared one does
    not fit them. After other failures than of sizes shared plans are not used any more. */
static tn_status retry_exactly(tn_binding *b, tn_status (*act)(tn_binding *b)) {
  char why[512];
  b->misfit = TN_OK;
  tn_status s = act(b), misfit = b->misfit;
  if (misfit == TN_OK) return s;
  snprintf(why, sizeof why, "%.500s", b->diag.text);
  diag_clear(&b->diag);
  b->wants_exact = true;
  s = act(b);
  b->wants_exact = false;
  if (s == TN_OK && misfit != TN_ERR_SHAPE) late_plan_refuse_shared(b->late, why);
  return s;
}

static tn_status compute(tn_binding *b) {
  tn_status s = find_sizes(b);
  if (s == TN_OK) s = size_outputs(b);
  if (s == TN_OK)
    s = b->plan->is_interpreted ? checked_run(b, binding_interpret(b)) : run_compiled(b);
  return s;
}

static tn_status place_and_run(tn_binding *b) {
  tn_status s = retry_exactly(b, compute);
  if (s == TN_OK) s = copy_out_outputs(b);
  if (s == TN_OK) carry_outputs(b);
  return s;
}

static tn_status prepare(tn_binding *b) {
  tn_status s = find_sizes(b);
  return s == TN_OK && !b->plan->is_interpreted ? choose_variant(b) : s;
}

tn_status binding_prepare(tn_binding *b) { return retry_exactly(b, prepare); }

/** Counts the elements of an output of the next run; 0 where the run computes its sizes. */
static tn_status count_known_output(tn_binding *b, size_t i, uint64_t *count) {
  const plan_port *p = &b->plan->ports.outputs[i];
  const int64_t *known = b->variant->outputs[i].size;
  tn_shape shape = {.rank = (int32_t)p->rank};
  if (!p->has_computed_size) return count_output(b, i, &shape, count);
  *count = 0;
  if (!known) return TN_OK;
  memcpy(shape.size, known, p->rank * sizeof *known);
  if (binding_element_count(shape, 8, count)) return TN_OK;
  return diag_set(&b->diag, TN_ERR_SHAPE, "output %s is larger than memory", p->name);
}

tn_status binding_memory(tn_binding *b, tn_memory *m) {
  tn_status s = binding_prepare(b);
  const tn_plan *p = b->plan; /* a late plan's follows from the values */
  if (s == TN_OK && p->is_interpreted)
    s = diag_set(&b->diag, TN_ERR_UNSUPPORTED, "the memory of interpreted runs is not planned");
  for (size_t i = 0; i < p->ports.n_outputs && s == TN_OK; i++) {
    uint64_t count = 0;
    s = count_known_output(b, i, &count);
    m->outputs += count * dtype_bytes(p->ports.outputs[i].dtype);
  }
  if (s == TN_OK) s = execution_scratch_bytes(b->execution, &m->scratch, &b->diag);
  if (s == TN_OK) m->uncounted = execution_late_buffers(b->execution);
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++)
    m->inputs += b->inputs[i].count * dtype_bytes(p->ports.inputs[i].dtype);
  for (size_t i = 0; s == TN_OK && i < b->variant->n_values; i++)
    m->values += buffer_bytes(b->variant->values[i].memory);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) m->states += p->states[i].storage->bytes;
  return s;
}

static bool has_pending(const tn_binding *b) {
  for (size_t i = 0; i < b->plan->n_states; i++)
    if (atomic_load(&b->plan->states[i].storage->has_pending)) return true;
  return false;
}

static tn_status refuse_callback(tn_binding *b) {
  return diag_set(&b->diag, TN_ERR_BUSY,
                  "a callback of the context may not run what reads or writes a state, or calls a "
                  "function of the host");
}

/** Runs the assigns to the plan's states that were made before. */
static tn_status run_pending(tn_binding *b) {
  tn_context *c = b->context;
  if (context_acquire_for_run(c) != TN_OK) return refuse_callback(b);
  tn_status s = realize(c, REALIZE_ALL_ASSIGNS, NULL, 0);
  if (s != TN_OK) b->diag.failure = c->diag.failure;
  if (s != TN_OK) context_fail_call(c, "binding_run");
  context_release(c);
  return s;
}

tn_status binding_check_caller(tn_binding *b) {
  bool may_wait = b->plan->n_states || b->plan->template.has_host_calls;
  return may_wait && reentrancy_of_thread(&b->context->entry.visits) != REENTRANCY_NONE
             ? refuse_callback(b)
             : TN_OK;
}

tn_status binding_run(tn_binding *b) {
  tn_status s = binding_check_caller(b);
  if (s == TN_OK && has_pending(b)) s = run_pending(b);
  if (s == TN_OK) s = place_and_run(b);
  return s;
}
