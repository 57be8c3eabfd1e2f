/* Copies a schedule into a view, and places the buffers of the plan's own as executions do, but for
   the extra arrays of kernels, which no kernel has before it is compiled. */
#include "runtime/schedule_view.h"

#include "ir/core/build.h"
#include "ir/text/print.h"
#include "ir/text/sink_text.h"
#include "schedule/memory/memory_plan.h"

#include <string.h>

static const char *copy_text(arena *a, const char *text) {
  return arena_copy(a, text, strlen(text) + 1);
}

static void add_step(schedule_view *v, const schedule_step *s, const map programs[]) {
  static const char *const kinds[] = {[STEP_KERNEL] = "",
                                      [STEP_CUSTOM] = "a host function",
                                      [STEP_LOOP] = "a loop of steps",
                                      [STEP_COPY] = "a copy between devices"};
  arena *a = &v->arena;
  view_step x = {.name = copy_text(a, s->name),
                 .what = kinds[s->kind],
                 .kernel = SIZE_MAX,
                 .buffers = arena_copy(a, s->buffers, s->n_buffers * sizeof *s->buffers),
                 .n_buffers = s->n_buffers,
                 .n_outputs = s->kind == STEP_CUSTOM ? 0 : s->n_outputs,
                 .n_steps = s->loop ? s->loop->n_steps : 0};
  if (s->kernel) x.kernel = (size_t)(uintptr_t)map_get(&programs[s->device], s->kernel) - 1;
  if (s->kernel) v->kernels.at[x.kernel].n_steps++;
  vec_push(a, &v->steps, x);
}

static void add_kernel(schedule_view *v, const node *kernel) {
  arena *a = &v->arena;
  str text = str_new(a);
  print_graph(&text, &kernel, 1);
  vec_push(
      a, &v->kernels,
      (view_kernel){copy_text(a, sink_name(a, kernel)), copy_text(a, str_text(&text)), 0, NULL});
}

static const char *kind_of(const schedule_buffer *b) {
  if (b->within) return "view";
  if (b->is_double_buffered) return "state";
  if (b->origin) return "input";
  return b->is_output ? "output" : "scratch";
}

static void add_buffer(schedule_view *v, const schedule *s, size_t i) {
  const schedule_buffer *b = &s->buffers.at[i];
  view_buffer x = {.kind = kind_of(b),
                   .dtype = b->dtype,
                   .elements = node_is_const(b->size) ? node_int(b->size) : -1,
                   .first = b->first,
                   .last = b->last,
                   .within = b->within ? b->within - 1 : SIZE_MAX};
  if (b->within) x.offset = (uint64_t)b->start * dtype_bytes(b->dtype);
  x.is_own = !strcmp(x.kind, "scratch");
  v->has_offsets = v->has_offsets && x.elements >= 0 && !b->device;
  vec_push(&v->arena, &v->buffers, x);
}

static bool is_used(const schedule *s, size_t buffer) {
  for (size_t i = 0; i < s->steps.n; i++)
    for (size_t k = 0; k < s->steps.at[i].n_buffers; k++)
      if (schedule_storage(s, s->steps.at[i].buffers[k]) == buffer) return true;
  return false;
}

/** Places the plan's own buffers, in the order of the steps that first use them. */
static void place_buffers(schedule_view *v, const schedule *s) {
  arena *a = &v->arena;
  memory_plan_slot *slots = arena_calloc(a, v->buffers.n + 1, sizeof *slots);
  size_t *owners = arena_alloc(a, (v->buffers.n + 1) * sizeof *owners), n = 0;
  for (size_t i = 0; i < v->buffers.n; i++) {
    view_buffer *b = &v->buffers.at[i];
    b->is_own = b->is_own && is_used(s, i);
    if (!b->is_own) continue;
    size_t at = n++;
    for (; at && slots[at - 1].first > b->first; at--) {
      slots[at] = slots[at - 1];
      owners[at] = owners[at - 1];
    }
    slots[at] = (memory_plan_slot){
        .first = b->first, .last = b->last, .bytes = (uint64_t)b->elements * dtype_bytes(b->dtype)};
    owners[at] = i;
  }
  v->bytes = memory_plan_place(a, slots, n);
  for (size_t i = 0; i < n; i++) v->buffers.at[owners[i]].offset = slots[i].offset;
}

void schedule_view_fill(schedule_view *v, const schedule *s, const node_list *kernels,
                        const map programs[], const device_target *const targets[],
                        size_t n_watched) {
  v->has_offsets = true;
  for (size_t i = 0; i < kernels->n; i++) add_kernel(v, kernels->at[i]);
  for (size_t i = 0; i < s->steps.n; i++) {
    add_step(v, &s->steps.at[i], programs);
    v->steps.at[i].device = targets[s->steps.at[i].device]->device->name;
  }
  for (size_t i = 0; i < s->buffers.n; i++) add_buffer(v, s, i);
  if (v->has_offsets) place_buffers(v, s);
  v->n_slots = n_watched;
  v->slots = arena_copy(&v->arena, s->slots + s->n_slots - n_watched, n_watched * sizeof *v->slots);
}
