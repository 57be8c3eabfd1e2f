/* The order of the steps. A step follows those that make what it reads; a SET also follows every
   other reader of the contents that it overwrites. */
#include "schedule/passes.h"

typedef struct ordering {
  ir *g;
  arena *a;
  const drafts *d;
  map maker;      /* value → its draft's number + 1 */
  map readers;    /* value → VEC of draft numbers */
  uint8_t *state; /* of each draft: 0 not met, 1 being placed, 2 placed */
  VEC(size_t) order;
} ordering;

typedef VEC(size_t) numbers;

static void add_reader(ordering *o, const node *value, size_t draft_number) {
  numbers *n = map_get(&o->readers, value);
  if (!n) map_set(o->a, &o->readers, value, n = arena_calloc(o->a, 1, sizeof *n));
  vec_push(o->a, n, draft_number);
}

static void index_drafts(ordering *o) {
  for (size_t i = 0; i < o->d->at.n; i++) {
    const draft *d = &o->d->at.at[i];
    map_set(o->a, &o->maker, d->value, (void *)(uintptr_t)(i + 1));
    for (size_t k = 0; k < d->uses.n; k++) add_reader(o, d->uses.at[k], i);
  }
}

/** The drafts that come before one: those that make what it reads, then those that read what it
    overwrites. */
typedef struct visit {
  size_t draft_number, next;
  numbers before;
  size_t makers; /* how many of `before` are of the first kind */
} visit;

static visit visit_of(ordering *o, size_t i) {
  const draft *d = &o->d->at.at[i];
  visit v = {.draft_number = i};
  for (size_t k = 0; k < d->uses.n; k++) {
    size_t maker = (size_t)(uintptr_t)map_get(&o->maker, d->uses.at[k]);
    if (maker) vec_push(o->a, &v.before, maker - 1);
  }
  v.makers = v.before.n;
  const numbers *others = d->value->op == OP_SET ? map_get(&o->readers, d->value->src[0]) : NULL;
  for (size_t k = 0; others && k < others->n; k++)
    if (others->at[k] != i) vec_push(o->a, &v.before, others->at[k]);
  return v;
}

typedef VEC(visit) visits;

/** On a cycle of drafts, which ends the path and goes on at `met`, the SET that waits for a reader
    of the old contents: there is one, for making and reading alone have no cycles. */
static const node *culprit(const ordering *o, const visits *path, size_t met) {
  for (size_t i = path->n; i-- > 0;) {
    const visit *v = &path->at[i];
    if (v->next > v->makers) return o->d->at.at[v->draft_number].value;
    if (v->draft_number == met) break;
  }
  diag_raise(o->a->diag, TN_ERR_INTERNAL, "steps that wait for each other");
}

/** Places a draft after all that come before it; a SET if that is impossible. */
static const node *place(ordering *o, size_t root) {
  visits path = {0};
  if (o->state[root]) return NULL;
  o->state[root] = 1;
  vec_push(o->a, &path, visit_of(o, root));
  while (path.n) {
    visit *v = &vec_last(&path);
    if (v->next == v->before.n) {
      o->state[v->draft_number] = 2;
      vec_push(o->a, &o->order, v->draft_number);
      path.n--;
      continue;
    }
    size_t b = v->before.at[v->next++];
    if (o->state[b] == 1) return culprit(o, &path, b);
    if (o->state[b]) continue;
    o->state[b] = 1;
    vec_push(o->a, &path, visit_of(o, b));
  }
  return NULL;
}

static void use(schedule *s, size_t buffer, size_t step) {
  schedule_buffer *b = &s->buffers.at[buffer];
  if (b->first == SIZE_MAX) b->first = step;
  b->last = step;
}

static size_t buffer_of(const drafts *d, const node *value) {
  return (size_t)(uintptr_t)map_get(&d->buffer_of, value) - 1;
}

static schedule_step custom_step(ordering *o, const draft *d) {
  const node *c = d->value;
  size_t n = (size_t)c->ints[2], *buffers = arena_alloc(o->a, (n + 1) * sizeof *buffers);
  for (size_t i = 0; i < n; i++) buffers[i] = buffer_of(o->d, c->src[i]);
  buffers[n] = d->into;
  return (schedule_step){.kind = STEP_CUSTOM, .custom = c, .buffers = buffers, .n_buffers = n + 1};
}

static schedule_step kernel_step(ordering *o, const draft *d) {
  schedule_step s = {.kind = STEP_KERNEL};
  size_t *buffers;
  s.kernel = kernel_renamed(o->g, d->kernel, &buffers, &s.n_buffers);
  s.buffers = buffers;
  return s;
}

static void add_step(ordering *o, schedule *s, const draft *d) {
  schedule_step step = d->kernel ? kernel_step(o, d) : custom_step(o, d);
  for (size_t k = 0; k < step.n_buffers; k++) use(s, step.buffers[k], s->steps.n);
  vec_push(o->a, &s->steps, step);
}

const node *schedule_order(ir *g, const drafts *d, schedule *s) {
  ordering o = {.g = g, .a = ir_arena(g), .d = d};
  o.state = arena_calloc(o.a, d->at.n, 1);
  index_drafts(&o);
  for (size_t i = 0; i < d->at.n; i++) {
    const node *set = place(&o, i);
    if (set) return set;
  }
  for (size_t i = 0; i < s->buffers.n; i++) s->buffers.at[i].first = SIZE_MAX;
  for (size_t i = 0; i < o.order.n; i++) add_step(&o, s, &d->at.at[o.order.at[i]]);
  return NULL;
}
