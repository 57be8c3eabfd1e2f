/* Computes the live ranges and live bytes of a schedule's buffers. Open sizes count as likely
   ones. Replays an order of steps to find its peak, the in-place reuses that are possible, and the
   bytes of the memory plan. */
#include "schedule/memory/liveness.h"

#include "ir/core/likely_value.h"
#include "schedule/memory/array_parts.h"
#include "schedule/memory/memory_plan.h"

/** Limit of a buffer's bytes, so that sums stay in 64 bits. */
#define MOST_BYTES ((double)(UINT64_C(1) << 40))

/** Finds the likely bytes of all buffers. */
static void find_bytes(lives *l, const schedule *s) {
  for (size_t i = 0; i < l->n_buffers; i++) {
    const schedule_buffer *b = &s->buffers.at[i];
    double bytes = ix_likely(b->size) * (double)dtype_bytes(b->dtype);
    if (b->origin || b->is_output || b->is_double_buffered || node_is_bits(b->size, 0)) continue;
    l->bytes[i] = (uint64_t)(bytes < MOST_BYTES ? bytes : MOST_BYTES);
  }
}

/* Steps. */

/** The accesses of a step. The result of a CUSTOM is its last buffer, and its inputs may repeat. */
static step_accesses accesses_of(lives *l, const schedule_step *s, size_t number, size_t seen[]) {
  bool is_kernel = s->kind != STEP_CUSTOM;
  size_t *all = arena_alloc(l->a, (s->n_buffers + s->n_items + 1) * sizeof *all);
  step_accesses u = {.buffers = all, .n_written = is_kernel ? s->n_outputs : 1};
  for (size_t i = 0; i < s->n_buffers + s->n_items; i++) {
    size_t b = i >= s->n_buffers
                   ? s->items[i - s->n_buffers]
                   : s->buffers[is_kernel ? i : (i + s->n_buffers - 1) % s->n_buffers];
    if (seen[b] == number + 1) continue;
    seen[b] = number + 1;
    l->users[b]++;
    all[u.n++] = b;
  }
  return u;
}

/** The accesses of a step without a kernel, to all of an array. */
static array_accesses all_accesses(bool writes) {
  return (array_accesses){.read.is_all = !writes, .written.is_all = writes};
}

/** Finds the parts that a step accesses of arrays which several steps write. */
static void find_parts(lives *l, const schedule *s, size_t number) {
  const node *kernel = s->steps.at[number].kernel;
  step_accesses *u = &l->steps[number];
  array_accesses *parts = NULL;
  node_list nodes = {0};
  for (size_t k = 0; k < u->n; k++) {
    if (!s->buffers.at[u->buffers[k]].n_places) continue;
    if (!parts) parts = arena_calloc(l->a, u->n, sizeof *parts);
    if (kernel && !nodes.n) nodes = topo_sort(l->a, &kernel, 1, NULL, NULL);
    parts[k] =
        kernel ? array_accesses_of(&nodes, kernel, u->buffers[k]) : all_accesses(k < u->n_written);
  }
  u->parts = parts;
}

lives liveness_of(ir *g, const schedule *s) {
  lives l = {.a = ir_scratch(g), .n_steps = s->steps.n, .n_buffers = s->buffers.n};
  size_t *seen = arena_calloc(l.a, l.n_buffers + 1, sizeof *seen);
  l.steps = arena_alloc(l.a, (l.n_steps + 1) * sizeof *l.steps);
  l.bytes = arena_calloc(l.a, l.n_buffers + 1, sizeof *l.bytes);
  l.users = arena_calloc(l.a, l.n_buffers + 1, sizeof *l.users);
  for (size_t i = 0; i < l.n_steps; i++) {
    l.steps[i] = accesses_of(&l, &s->steps.at[i], i, seen);
    find_parts(&l, s, i);
  }
  find_bytes(&l, s);
  return l;
}

/* An order. */

static const step_accesses *step_at(const lives *l, const size_t order[], size_t i) {
  return &l->steps[order ? order[i] : i];
}

/** Chooses the reuses of a step: a result that is new there over an operand that nothing uses
   afterwards. Returns the bytes saved. `left`: the users to come of each buffer. */
static double choose_reuses(const lives *l, const step_accesses *u, const size_t left[],
                            reuses *taken) {
  double saved = 0;
  *taken = (reuses){0};
  for (size_t i = 0; i < u->may.n; i++) {
    reuse r = u->may.at[i];
    bool is_free = left[r.to] == l->users[r.to] && left[r.from] == 1;
    for (size_t k = 0; k < taken->n; k++)
      is_free &= taken->at[k].to != r.to && taken->at[k].from != r.from;
    if (!is_free) continue;
    vec_push(l->a, taken, r);
    saved += (double)l->bytes[r.to];
  }
  return saved;
}

double liveness_peak_bytes(const lives *l, const size_t order[], double need[], reuses taken[]) {
  size_t *left = arena_copy(l->a, l->users, (l->n_buffers + 1) * sizeof *left);
  double live = 0, peak = 0;
  for (size_t i = 0; i < l->n_steps; i++) {
    const step_accesses *u = step_at(l, order, i);
    for (size_t k = 0; k < u->n; k++)
      if (left[u->buffers[k]] == l->users[u->buffers[k]]) live += (double)l->bytes[u->buffers[k]];
    need[i] = live;
    double with = live - choose_reuses(l, u, left, &taken[i]);
    if (with > peak) peak = with;
    for (size_t k = 0; k < u->n; k++)
      if (!--left[u->buffers[k]]) live -= (double)l->bytes[u->buffers[k]];
  }
  return peak;
}

size_t *liveness_storage(const lives *l, const reuses taken[]) {
  size_t *homes = arena_alloc(l->a, (l->n_buffers + 1) * sizeof *homes);
  for (size_t i = 0; i < l->n_buffers; i++) homes[i] = i;
  for (size_t i = 0; i < l->n_steps; i++)
    for (size_t k = 0; k < taken[i].n; k++) homes[taken[i].at[k].to] = homes[taken[i].at[k].from];
  return homes;
}

uint64_t liveness_plan_bytes(const lives *l, const size_t order[], const reuses taken[]) {
  const size_t *homes = liveness_storage(l, taken);
  size_t *slot = arena_calloc(l->a, l->n_buffers + 1, sizeof *slot), n = 0; /* its number + 1 */
  memory_plan_slot *slots = arena_alloc(l->a, (l->n_buffers + 1) * sizeof *slots);
  for (size_t i = 0; i < l->n_steps; i++) {
    const step_accesses *u = step_at(l, order, i);
    for (size_t k = 0; k < u->n; k++) {
      size_t b = homes[u->buffers[k]];
      if (!l->bytes[b]) continue;
      if (!slot[b]) slots[n] = (memory_plan_slot){.first = i, .bytes = l->bytes[b]};
      if (!slot[b]) slot[b] = ++n;
      slots[slot[b] - 1].last = i;
    }
  }
  return memory_plan_place(l->a, slots, n);
}

bool liveness_is_safe(const lives *l, const size_t order[], const size_t homes[]) {
  size_t *held = arena_alloc(l->a, (l->n_buffers + 1) * sizeof *held);
  bool *is_made = arena_calloc(l->a, l->n_buffers + 1, sizeof *is_made);
  for (size_t i = 0; i < l->n_buffers; i++) held[i] = i;
  for (size_t i = 0; i < l->n_steps; i++) {
    const step_accesses *u = step_at(l, order, i);
    for (size_t k = 0; k < u->n; k++) {
      size_t b = u->buffers[k];
      if (is_made[b] && held[homes[b]] != b) return false;
    }
    for (size_t k = 0; k < u->n_written; k++) {
      held[homes[u->buffers[k]]] = u->buffers[k];
      is_made[u->buffers[k]] = true;
    }
  }
  return true;
}

void liveness_set_ranges(schedule *s) {
  for (size_t i = 0; i < s->buffers.n; i++) s->buffers.at[i].first = SIZE_MAX;
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    size_t last = i + (step->loop ? step->loop->n_steps : 0);
    for (size_t k = 0; k < step->n_buffers; k++) {
      schedule_buffer *b = &s->buffers.at[schedule_storage(s, step->buffers[k])];
      if (b->first == SIZE_MAX) b->first = b->last = i;
      if (last > b->last) b->last = last;
    }
  }
}
