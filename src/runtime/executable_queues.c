/* Finds the queues of a plan's steps and what they wait for, by clocks: each queue knows of each
   other one how many steps are done before its next one begins. */
#include "runtime/executable_queues.h"

#include "runtime/executable.h"

/** The accesses to a buffer so far. Steps count from 1; 0: none. */
typedef struct accesses {
  size_t writer;
  size_t *readers; /* of each queue, the last one since */
} accesses;

typedef struct linking {
  executable *p;
  arena *a;
  executable_queues *queues;
  size_t *known;     /* of each queue, of each other one: steps done before its next one */
  size_t *at_step;   /* `known` of a step's queue when the step is done */
  accesses *of;      /* each buffer */
  size_t *last_user; /* of each buffer, on each queue */
  size_t *wanted;    /* of each queue: the step that the present one waits for */
  size_t custom;     /* the last step so far that calls a host function */
  VEC(size_t) waits;
} linking;

static size_t *known_by(const linking *l, size_t queue) { return l->known + queue * l->queues->n; }
static size_t *known_at(const linking *l, size_t step) { return l->at_step + step * l->queues->n; }

/* Queues. */

static size_t queue_for(linking *l, size_t device, bool copies) {
  executable_queues *x = l->queues;
  for (size_t i = 0; i < x->n; i++)
    if (x->at[i].device == device && x->at[i].copies == copies) return i;
  x->at[x->n] = (executable_queue){device, copies};
  return x->n++;
}

/** The device that all steps run on; device 0 if there are several, or a copy. */
static size_t only_device(const executable *p) {
  size_t device = p->n_steps ? p->steps[0].device : 0;
  for (size_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].device != device || p->steps[i].kind == STEP_COPY) return 0;
  return device;
}

static void find_queues(linking *l) {
  executable *p = l->p;
  executable_queues *x = l->queues;
  x->at = arena_calloc(&p->arena, 2 * p->n_targets, sizeof *x->at);
  x->of_step = arena_calloc(&p->arena, p->n_steps + 1, sizeof *x->of_step);
  queue_for(l, only_device(p), false);
  for (size_t i = 0; i < p->n_steps; i++)
    x->of_step[i] = queue_for(l, p->steps[i].device, p->steps[i].kind == STEP_COPY);
}

bool executable_begins_section(const executable *p, size_t step) {
  if (!step) return true;
  const executable_step *s = &p->steps[step], *before = s - 1;
  return s->kind == STEP_LOOP || before->kind == STEP_LOOP || s->parent != before->parent ||
         s->segment != before->segment || s->guard != before->guard;
}

/* Waits. */

static void want(linking *l, size_t step) {
  if (!step) return;
  size_t *latest = &l->wanted[l->queues->of_step[step - 1]];
  if (step > *latest) *latest = step;
}

/** Finds the last step of each queue that a step must come after. Host functions come after each
    other on all queues, as those that talk to other processes do so in the same order in each. */
static void find_wanted(linking *l, size_t step) {
  const executable_step *s = &l->p->steps[step];
  for (size_t i = 0; i < l->queues->n; i++) l->wanted[i] = 0;
  for (size_t k = 0; k < s->n_buffers; k++) {
    const accesses *x = &l->of[l->p->buffers[s->buffers[k]].within];
    want(l, x->writer);
    for (size_t i = 0; i < l->queues->n && executable_step_writes(l->p, s, k); i++)
      want(l, x->readers[i]);
  }
  if (s->kind != STEP_CUSTOM) return;
  want(l, l->custom);
  l->custom = step + 1;
}

static void note_accesses(linking *l, size_t step) {
  const executable_step *s = &l->p->steps[step];
  size_t queue = l->queues->of_step[step];
  for (size_t k = 0; k < s->n_buffers; k++) {
    size_t b = l->p->buffers[s->buffers[k]].within;
    accesses *x = &l->of[b];
    l->last_user[b * l->queues->n + queue] = step + 1;
    if (!executable_step_writes(l->p, s, k)) {
      x->readers[queue] = step + 1;
      continue;
    }
    x->writer = step + 1;
    for (size_t i = 0; i < l->queues->n; i++) x->readers[i] = 0;
  }
}

static void learn(size_t n, size_t *known, const size_t *also) {
  for (size_t i = 0; i < n; i++)
    if (also[i] > known[i]) known[i] = also[i];
}

/** Adds the waits of a step, the latest first: others may follow from it. */
static void add_waits(linking *l, size_t step) {
  size_t queue = l->queues->of_step[step], *known = known_by(l, queue), n = l->queues->n;
  find_wanted(l, step);
  for (;;) {
    size_t latest = 0;
    for (size_t i = 0; i < n; i++)
      if (i != queue && l->wanted[i] > known[i] && l->wanted[i] > latest) latest = l->wanted[i];
    if (!latest) break;
    vec_push(&l->p->arena, &l->waits, latest - 1);
    l->queues->is_awaited[latest - 1] = true;
    learn(n, known, known_at(l, latest - 1));
  }
  known[queue] = step + 1;
  for (size_t i = 0; i < n; i++) known_at(l, step)[i] = known[i];
}

static void meet(linking *l, size_t step) {
  for (size_t i = 0; i < l->queues->n * l->queues->n; i++) l->known[i] = step;
}

static void find_waits(linking *l) {
  executable *p = l->p;
  executable_queues *x = l->queues;
  x->first_wait = arena_calloc(&p->arena, p->n_steps + 1, sizeof *x->first_wait);
  x->is_awaited = arena_calloc(&p->arena, p->n_steps + 1, sizeof *x->is_awaited);
  for (size_t i = 0; i < p->n_steps; i++) {
    if (executable_begins_section(p, i)) meet(l, i);
    x->first_wait[i] = l->waits.n;
    add_waits(l, i);
    note_accesses(l, i);
  }
  x->first_wait[p->n_steps] = l->waits.n;
  x->waits = l->waits.at;
}

/* Memory. */

/** The step after which every queue of a device comes after these users, one of each queue, of
   memory whose life ends at step `last`. */
static size_t find_free(const linking *l, size_t device, size_t last, const size_t *users) {
  const executable *p = l->p;
  size_t n = l->queues->n, latest = last;
  for (size_t queue = 0; queue < n; queue++) {
    if (l->queues->at[queue].device != device) continue;
    for (size_t s = last + 1; s < p->n_steps; s++) {
      if (l->queues->of_step[s] != queue) continue;
      bool is_after = true;
      for (size_t i = 0; i < n && is_after; i++)
        is_after = i == queue || users[i] <= known_at(l, s)[i];
      if (is_after) break;
      if (s > latest) latest = s;
    }
  }
  return latest;
}

static void find_lives(linking *l) {
  executable *p = l->p;
  executable_queues *x = l->queues;
  size_t *own = arena_calloc(l->a, x->n, sizeof *own);
  x->free_buffer = arena_calloc(&p->arena, p->n_buffers + 1, sizeof *x->free_buffer);
  x->free_step = arena_calloc(&p->arena, p->n_steps + 1, sizeof *x->free_step);
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    if (b->role == BUFFER_ROLE_SCRATCH && b->first < p->n_steps)
      x->free_buffer[i] = find_free(l, b->device, b->last, l->last_user + i * x->n);
  }
  for (size_t i = 0; i < p->n_steps; i++) {
    own[x->of_step[i]] = i + 1;
    x->free_step[i] = p->steps[i].scratch ? find_free(l, p->steps[i].device, i, own) : i;
    own[x->of_step[i]] = 0;
  }
}

void executable_link_queues(executable *p) {
  linking l = {.p = p, .a = &p->arena, .queues = &p->queues};
  find_queues(&l);
  if (p->queues.n == 1) return;
  size_t n = p->queues.n;
  l.known = arena_calloc(l.a, n * n, sizeof *l.known);
  l.at_step = arena_calloc(l.a, n * (p->n_steps + 1), sizeof *l.at_step);
  l.of = arena_calloc(l.a, p->n_buffers + 1, sizeof *l.of);
  l.last_user = arena_calloc(l.a, n * (p->n_buffers + 1), sizeof *l.last_user);
  l.wanted = arena_calloc(l.a, n, sizeof *l.wanted);
  for (size_t i = 0; i < p->n_buffers; i++)
    l.of[i].readers = arena_calloc(l.a, n, sizeof *l.of[i].readers);
  find_waits(&l);
  find_lives(&l);
}
