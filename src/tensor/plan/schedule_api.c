/* Public functions on schedules: a plan is built of the graph, and its variant with all sizes open
   is scheduled into a view; the plan is freed again. And the slots of bindings. */
#include "runtime/schedule_view.h"
#include "tensor/context/call.h"
#include "tensor/context/descriptor.h"
#include "tensor/plan/binding.h"

#include <tenon/unstable/schedule.h>

struct tn_schedule {
  attachment attachment; /* to its context */
  tn_context *context;
  schedule_view view;
};

static void destroy(attachment *of) {
  tn_schedule *x = (tn_schedule *)of;
  arena_free(&x->view.arena);
  mem_free(&x->context->mem, x, sizeof *x);
}

static tn_status fill(tn_schedule *x, tn_tensor *const out[], size_t n, const tn_plan_desc *desc) {
  tn_plan *plan = NULL;
  tn_context *c = x->context;
  tn_status s = plan_of_tensors(c, out, n, desc, false, &plan);
  if (s == TN_OK) s = plan_variant_view(plan, &x->view, &c->diag);
  plan_release(plan);
  return s;
}

static tn_status make_schedule(tn_context *c, tn_tensor *const out[], size_t n,
                               const tn_plan_desc *desc, tn_schedule **schedule) {
  if (!schedule) return diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the schedule is NULL");
  tn_schedule *x = mem_calloc(&c->mem, 1, sizeof *x);
  if (!x) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  x->attachment.destroy = destroy;
  x->context = c;
  arena_init(&x->view.arena, &c->mem, NULL);
  tn_status s = fill(x, out, n, desc);
  if (s != TN_OK) {
    destroy(&x->attachment);
    return s;
  }
  context_attach(c, &x->attachment);
  *schedule = x;
  return s;
}

tn_status tn_schedule_make(tn_context *c, tn_tensor *const out[], size_t n,
                           const tn_plan_desc *desc, tn_schedule **schedule) {
  if (schedule) *schedule = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  failure *f = call_check(c, "schedule_make", out, n, 0);
  if (f) {
    s = context_return_failure(c, f);
  } else {
    s = make_schedule(c, out, n, desc, schedule);
    if (s != TN_OK) context_fail(c, "schedule_make", out, schedule ? n : 0);
  }
  context_release(c);
  return s;
}

void tn_schedule_free(tn_schedule *x) {
  tn_context *c = x ? x->context : NULL;
  if (!x || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  context_detach(c, &x->attachment);
  destroy(&x->attachment);
  context_end_concurrent(c);
}

/* Descriptions. */

tn_status tn_schedule_step(const tn_schedule *x, size_t i, tn_scheduled_step *step) {
  if (!x || i >= x->view.steps.n) return TN_ERR_ARGUMENT;
  const view_step *s = &x->view.steps.at[i];
  const tn_scheduled_step found = {.size = sizeof found,
                                   .name = s->name,
                                   .kernel = s->kernel == SIZE_MAX ? -1 : (int64_t)s->kernel,
                                   .what = s->what,
                                   .buffers = s->buffers,
                                   .n_buffers = s->n_buffers,
                                   .n_outputs = s->n_outputs,
                                   .steps = s->n_steps,
                                   .device = s->device};
  diag unread = {0};
  return descriptor_write(&unread, step, &found, sizeof found, "tn_scheduled_step");
}

tn_status tn_schedule_kernel(const tn_schedule *x, size_t i, tn_scheduled_kernel *kernel) {
  if (!x || i >= x->view.kernels.n) return TN_ERR_ARGUMENT;
  const view_kernel *k = &x->view.kernels.at[i];
  const tn_scheduled_kernel found = {sizeof found, k->name, k->text, k->n_steps, k->library};
  diag unread = {0};
  return descriptor_write(&unread, kernel, &found, sizeof found, "tn_scheduled_kernel");
}

static uint64_t bytes_of(const view_buffer *b) {
  return b->elements < 0 ? 0 : (uint64_t)b->elements * dtype_bytes(b->dtype);
}

static bool has_offset(const schedule_view *v, const view_buffer *b) {
  return (b->is_own && v->has_offsets) || b->within != SIZE_MAX;
}

tn_status tn_schedule_buffer(const tn_schedule *x, size_t i, tn_scheduled_buffer *buffer) {
  if (!x || i >= x->view.buffers.n) return TN_ERR_ARGUMENT;
  const view_buffer *b = &x->view.buffers.at[i];
  const tn_scheduled_buffer found = {.size = sizeof found,
                                     .kind = b->kind,
                                     .dtype = (tn_dtype)b->dtype,
                                     .elements = b->elements,
                                     .bytes = bytes_of(b),
                                     .first = b->first,
                                     .last = b->last,
                                     .within = b->within == SIZE_MAX ? -1 : (int64_t)b->within,
                                     .has_offset = has_offset(&x->view, b),
                                     .offset = b->offset};
  diag unread = {0};
  return descriptor_write(&unread, buffer, &found, sizeof found, "tn_scheduled_buffer");
}

uint64_t tn_schedule_bytes(const tn_schedule *x) { return x ? x->view.bytes : 0; }

/* Slots. */

tn_status tn_schedule_slot(const tn_schedule *x, size_t i, tn_slot *slot) {
  if (!x || i >= x->view.n_slots) return TN_ERR_ARGUMENT;
  const schedule_slot *s = &x->view.slots[i];
  tn_slot found = {.size = sizeof found, .has_buffer = s->buffer != SIZE_MAX};
  if (found.has_buffer) {
    const view_buffer *b = &x->view.buffers.at[s->buffer];
    found.is_overwritten = s->is_overwritten;
    found.dtype = (tn_dtype)b->dtype;
    found.bytes = bytes_of(b);
    found.offset = b->offset;
    found.buffer = s->buffer;
  }
  diag unread = {0};
  return descriptor_write(&unread, slot, &found, sizeof found, "tn_slot");
}

static tn_status find_slot(tn_binding *b, size_t i, tn_slot *slot) {
  execution_slot s;
  tn_status status = binding_prepare(b);
  if (status == TN_OK && b->plan->is_interpreted)
    return diag_set(&b->diag, TN_ERR_UNSUPPORTED, "interpreted plans have no slots");
  if (status == TN_OK) status = execution_slot_at(b->execution, i, &s, &b->diag);
  if (status != TN_OK) return status;
  tn_slot found = {.size = sizeof found, .has_buffer = s.has_buffer};
  if (s.has_buffer) {
    found.is_overwritten = s.is_overwritten;
    found.dtype = (tn_dtype)s.dtype;
    found.bytes = s.bytes;
    found.offset = s.offset;
    found.buffer = s.buffer;
    if (b->ran == b->execution && s.is_placed) found.span = s.span;
  }
  return descriptor_write(&b->diag, slot, &found, sizeof found, "tn_slot");
}

tn_status tn_binding_slot(tn_binding *b, size_t i, tn_slot *slot) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = binding_show_failure(b, find_slot(b, i, slot));
  binding_leave(b);
  return s;
}

/* Graphs. */

tn_status tn_binding_kernel_run(tn_binding *b, size_t i, tn_kernel_run *run) {
  execution_kernels k;
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  if (!b->ran || !execution_kernels_at(b->ran, i, &k)) {
    s = TN_ERR_ARGUMENT;
  } else {
    tn_kernel_run found = {sizeof found, k.device, k.n, !k.why, k.why ? k.why : ""};
    s = binding_show_failure(
        b, descriptor_write(&b->diag, run, &found, sizeof found, "tn_kernel_run"));
  }
  binding_leave(b);
  return s;
}
