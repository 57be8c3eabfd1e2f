/* Tests the queues of plans over several devices, on random plans of which no kernel is compiled:
   accesses of which one writes are ordered by queues and waits, memory is used again only after all
   its users, and no wait follows from others. */
#include "runtime/executable.h"

#include "../random/random.h"
#include "support/tensor_check.h"

enum { STEPS = 24, BUFFERS = 9, DEVICES = 3, PLANS = 4000 };

typedef struct plan {
  rng r;
  diag d;
  executable p;
  size_t buffers[STEPS][3];
  tn_program programs[STEPS];
  launch_operand arrays[STEPS][3];
  tn_program *list[STEPS];
  bool before[STEPS][STEPS];
} plan;

/** A kernel or a host function over buffers of one device, or a copy. */
static void make_step(plan *t, size_t i) {
  executable_step *s = &t->p.steps[i];
  *s = (executable_step){.buffers = t->buffers[i], .parent = SIZE_MAX, .program = i};
  s->kind = rng_chance(&t->r, 40) ? STEP_COPY : rng_chance(&t->r, 20) ? STEP_CUSTOM : STEP_KERNEL;
  s->device = rng_below(&t->r, DEVICES);
  s->scratch = s->kind == STEP_KERNEL && rng_chance(&t->r, 20);
  s->segment = i / 10;
  s->guard = i / 14 ? SIZE_MAX : 0;
  s->n_buffers = s->kind == STEP_COPY ? 2 : 1 + rng_below(&t->r, 3);
  t->list[i] = &t->programs[i];
  t->programs[i].limits.arrays = t->arrays[i];
  for (size_t k = 0; k < s->n_buffers; k++) {
    size_t device = s->device;
    if (s->kind == STEP_COPY && k) device = (device + 1 + rng_below(&t->r, DEVICES - 1)) % DEVICES;
    t->buffers[i][k] = device + DEVICES * rng_below(&t->r, BUFFERS / DEVICES);
    t->arrays[i][k].is_stored = rng_chance(&t->r, 50);
  }
}

static bool stores(const plan *t, size_t i, size_t k) {
  const executable_step *s = &t->p.steps[i];
  if (s->kind == STEP_CUSTOM) return k + 1 == s->n_buffers;
  return s->kind == STEP_COPY ? !k : t->arrays[i][k].is_stored;
}

static void make_body(void *arg) {
  plan *t = arg;
  executable *p = &t->p;
  p->n_targets = DEVICES;
  p->n_steps = STEPS;
  p->n_buffers = BUFFERS;
  p->programs = t->list;
  p->steps = arena_calloc(&p->arena, STEPS, sizeof *p->steps);
  p->buffers = arena_calloc(&p->arena, BUFFERS, sizeof *p->buffers);
  for (size_t i = 0; i < BUFFERS; i++)
    p->buffers[i] = (executable_buffer){
        .role = BUFFER_ROLE_SCRATCH, .device = i % DEVICES, .within = i, .first = SIZE_MAX};
  for (size_t i = 0; i < STEPS; i++) {
    make_step(t, i);
    for (size_t k = 0; k < p->steps[i].n_buffers; k++) {
      executable_buffer *b = &p->buffers[t->buffers[i][k]];
      if (b->first == SIZE_MAX) b->first = i;
      b->last = i;
    }
  }
  executable_link_queues(p);
}

static bool is_in_other_section(const plan *t, size_t a, size_t b) {
  const executable_step *x = &t->p.steps[a], *y = &t->p.steps[b];
  return x->segment != y->segment || x->guard != y->guard;
}

/** Finds which steps are done before which, without the wait `without`. */
static void find_order(plan *t, size_t without) {
  const executable_queues *x = &t->p.queues;
  memset(t->before, 0, sizeof t->before);
  for (size_t i = 0; i < STEPS; i++)
    for (size_t k = 0; k < i; k++) {
      bool is_before = x->of_step[k] == x->of_step[i] || is_in_other_section(t, k, i);
      for (size_t w = x->first_wait[i]; w < x->first_wait[i + 1]; w++)
        is_before |= x->waits[w] == k && w != without;
      if (!is_before) continue;
      t->before[k][i] = true;
      for (size_t j = 0; j < k; j++) t->before[j][i] |= t->before[j][k];
    }
}

static bool uses(const plan *t, size_t step, size_t buffer) {
  for (size_t k = 0; k < t->p.steps[step].n_buffers; k++)
    if (t->buffers[step][k] == buffer) return true;
  return false;
}

static void check_accesses(const plan *t) {
  for (size_t i = 0; i < STEPS; i++)
    for (size_t k = 0; k < i; k++)
      for (size_t a = 0; a < t->p.steps[i].n_buffers; a++)
        for (size_t b = 0; b < t->p.steps[k].n_buffers; b++)
          if (t->buffers[i][a] == t->buffers[k][b] && (stores(t, i, a) || stores(t, k, b)))
            assert_true(t->before[k][i]);
}

static void check_memory(const plan *t) {
  const executable_queues *x = &t->p.queues;
  for (size_t s = 0; s < STEPS; s++) {
    for (size_t b = 0; b < BUFFERS; b++) {
      const executable_buffer *own = &t->p.buffers[b];
      if (own->first == SIZE_MAX || s <= x->free_buffer[b]) continue;
      if (t->p.steps[s].device != own->device) continue;
      for (size_t user = own->first; user <= own->last; user++)
        if (uses(t, user, b)) assert_true(t->before[user][s]);
    }
    for (size_t k = 0; k < s; k++)
      if (t->p.steps[k].scratch && s > x->free_step[k] &&
          t->p.steps[s].device == t->p.steps[k].device)
        assert_true(t->before[k][s]);
  }
}

/** A wait that others imply is none. */
static void check_waits(plan *t) {
  const executable_queues *x = &t->p.queues;
  for (size_t i = 0; i < STEPS; i++)
    for (size_t w = x->first_wait[i]; w < x->first_wait[i + 1]; w++) {
      assert_true(x->waits[w] < i && x->is_awaited[x->waits[w]]);
      assert_int_not_equal(x->of_step[x->waits[w]], x->of_step[i]);
      find_order(t, w);
      assert_false(t->before[x->waits[w]][i]);
    }
}

static void random_plans_are_ordered(void **state) {
  (void)state;
  plan *t = calloc(1, sizeof *t);
  size_t waits = 0, early = 0;
  for (uint64_t seed = 1; seed <= PLANS; seed++) {
    *t = (plan){.r = {seed}};
    arena_init(&t->p.arena, &mem_system, &t->d);
    assert_int_equal(diag_catch(&t->d, make_body, t), TN_OK);
    find_order(t, SIZE_MAX);
    check_accesses(t);
    check_memory(t);
    check_waits(t);
    waits += t->p.queues.first_wait[STEPS];
    for (size_t b = 0; b < BUFFERS; b++)
      early += t->p.buffers[b].first != SIZE_MAX && t->p.queues.free_buffer[b] + 1 < STEPS;
    arena_free(&t->p.arena);
  }
  assert_true(waits > PLANS && early > PLANS);
  free(t);
}

/** Steps of one device, whichever it is, have one queue, and nothing besides. */
static void steps_of_one_device_have_one_queue(void **state) {
  (void)state;
  plan *t = calloc(1, sizeof *t);
  for (size_t device = 0; device < DEVICES; device++) {
    executable_step steps[2] = {{.kind = STEP_KERNEL, .parent = SIZE_MAX, .device = device},
                                {.kind = STEP_KERNEL, .parent = SIZE_MAX, .device = device}};
    *t = (plan){.p = {.n_targets = DEVICES, .n_steps = 2, .steps = steps}};
    arena_init(&t->p.arena, &mem_system, &t->d);
    executable_link_queues(&t->p);
    assert_int_equal(t->p.queues.n, 1);
    assert_int_equal(t->p.queues.at[0].device, device);
    assert_null(t->p.queues.waits);
    assert_null(t->p.queues.first_wait);
    arena_free(&t->p.arena);
  }
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_plans_are_ordered),
      cmocka_unit_test(steps_of_one_device_have_one_queue),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
