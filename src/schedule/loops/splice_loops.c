/* Implements the splicing of loop bodies into the schedule around them: renumbers the buffers of a
   body, adds the three buffers by which a state that cannot be changed in place is double-buffered
   (now, next and spare), and lists in the loop's step all buffers that live through it. */
#include "schedule/loops/splice_loops.h"

#include "ir/core/tensor_loop.h"

typedef struct splicing {
  ir *g;
  arena *a;
  const schedule_request *request;
  schedule *s;
  VEC(schedule_step) steps; /* of the whole, so far */
} splicing;

static size_t add_buffer(splicing *x, schedule_buffer b) {
  vec_push(x->a, &x->s->buffers, b);
  return x->s->buffers.n - 1;
}

static size_t add_buffer_like(splicing *x, size_t buffer, bool is_double_buffered) {
  const schedule_buffer *b = &x->s->buffers.at[buffer];
  return add_buffer(x, (schedule_buffer){.dtype = b->dtype,
                                         .size = b->size,
                                         .is_double_buffered = is_double_buffered,
                                         .device = b->device});
}

/** Maps the buffers of a body to those of the whole: its slots to the loop's buffers, the others to
   new ones. Fills in the buffers of the states. */
static size_t *map_buffers(splicing *x, const schedule_step *step, const schedule *body,
                           schedule_state states[]) {
  const extracted_loop *p = step->plan;
  size_t n = loop_n_states(p->loop), m = loop_n_emits(p->loop), slots = p->body.origins.n, at = 0;
  const size_t *results = step->buffers, *inputs = step->buffers + step->n_outputs;
  size_t *to = arena_alloc(x->a, (body->buffers.n + 1) * sizeof *to);
  for (size_t i = 0; i < n; i++) {
    to[p->now[i]] = to[p->next[i]] = inputs[i];
    if (loops_is_invariant(p, i)) continue;
    size_t result = results[at];
    schedule_state s = {inputs[i], result, result, result, result};
    if (p->now[i] != p->next[i]) {
      s.now = add_buffer_like(x, s.result, true);
      s.next = add_buffer_like(x, s.result, true);
      s.spare = add_buffer_like(x, s.result, false);
    }
    to[p->now[i]] = s.now;
    to[p->next[i]] = s.next;
    states[at++] = s;
  }
  for (size_t i = 0; i < m; i++) to[p->emits[i]] = results[at + i];
  for (size_t i = 0; i < p->n_captured; i++) to[p->captured[i]] = inputs[n + i];
  for (size_t i = slots; i < body->buffers.n; i++) {
    schedule_buffer b = body->buffers.at[i];
    if (b.within) b.within = to[b.within - 1] + 1;
    to[i] = add_buffer(x, b);
  }
  return to;
}

static const size_t *renumber_buffers(splicing *x, const size_t buffers[], size_t n,
                                      const size_t to[]) {
  size_t *made = arena_alloc(x->a, (n + 1) * sizeof *made);
  for (size_t i = 0; i < n; i++) made[i] = to[buffers[i]];
  return made;
}

static const schedule_loop *renumber_loop(splicing *x, const schedule_loop *loop,
                                          const size_t to[]) {
  schedule_loop *made = arena_copy(x->a, loop, sizeof *made);
  schedule_state *states = arena_copy(x->a, loop->states, loop->n_states * sizeof *states);
  for (size_t i = 0; i < loop->n_states; i++) {
    const schedule_state *s = &loop->states[i];
    states[i] = (schedule_state){to[s->init], to[s->result], to[s->now], to[s->next], to[s->spare]};
  }
  made->states = states;
  return made;
}

/** Adds the steps of a loop's body. Its graph has no labels: their own names are those of ops. */
static void add_body(splicing *x, const schedule_step *loop, const schedule *body,
                     const size_t to[]) {
  for (size_t i = 0; i < body->steps.n; i++) {
    schedule_step step = body->steps.at[i];
    step.name = arena_printf(x->a, "%s: %s", loop->name, step.name);
    step.buffers = renumber_buffers(x, step.buffers, step.n_buffers, to);
    if (step.loop) step.loop = renumber_loop(x, step.loop, to);
    vec_push(x->a, &x->steps, step);
  }
}

/** The step of a loop, with all buffers that live while it runs. */
static schedule_step complete_loop_step(splicing *x, const schedule_step *step,
                                        const schedule *body, const schedule_state states[]) {
  schedule_step made = *step;
  schedule_loop *loop = arena_copy(x->a, step->loop, sizeof *loop);
  VEC(size_t) buffers = {0};
  loop->states = states;
  loop->n_states = step->n_outputs - loop_n_emits(step->plan->loop);
  loop->n_steps = body->steps.n;
  loop->until = SIZE_MAX;
  for (size_t i = 0, at = 0; i < loop_n_states(step->plan->loop); i++) {
    if (i == loop_until(step->plan->loop)) loop->until = at;
    at += !loops_is_invariant(step->plan, i);
  }
  for (size_t i = 0; i < step->n_buffers; i++) vec_push(x->a, &buffers, step->buffers[i]);
  for (size_t i = 0; i < loop->n_states; i++) {
    const schedule_state *s = &states[i];
    if (s->now == s->result) continue;
    vec_push(x->a, &buffers, s->now);
    vec_push(x->a, &buffers, s->next);
    vec_push(x->a, &buffers, s->spare);
  }
  made.loop = loop;
  made.buffers = buffers.at;
  made.n_buffers = buffers.n;
  return made;
}

static void splice_loop(splicing *x, const schedule_step *step, loops_body_scheduler make) {
  extracted_loop *p = (extracted_loop *)step->plan;
  schedule_request r = *x->request;
  r.may_overwrite = loops_may_write;
  r.user = p;
  r.n_labels = 0;
  const schedule *body = make(x->g, &r, &p->body, p->depth + 1);
  schedule_state *states = arena_calloc(x->a, loop_n_states(p->loop) + 1, sizeof *states);
  const size_t *to = map_buffers(x, step, body, states);
  vec_push(x->a, &x->steps, complete_loop_step(x, step, body, states));
  add_body(x, step, body, to);
}

void loops_splice(ir *g, const schedule_request *r, schedule *s, loops_body_scheduler make) {
  splicing x = {.g = g, .a = ir_arena(g), .request = r, .s = s};
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    if (step->kind == STEP_LOOP)
      splice_loop(&x, step, make);
    else
      vec_push(x.a, &x.steps, *step);
  }
  s->steps.at = x.steps.at;
  s->steps.n = x.steps.n;
  s->steps.cap = x.steps.cap;
}
