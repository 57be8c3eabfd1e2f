/* Loops of the plan. A LOOP becomes a graph of its own, over PARAMs for its states, for what it
   emits to and for the arrays of the graph around it that it reads, and a variable for the number
   of the trip; of the graph around it, a RESULT that reads those arrays as a KERNEL does. What
   depends on no trip is computed before the loop, but for movements and what reads no array.

   A state whose step is a chain of SETs on the state is changed where it is, and what must be read
   before that or copied is found as for any state of a plan. Others step from one array to another.
   What a state becomes is SET as a whole, so that one value can be that of several states. */
#include "ir/loop.h"
#include "ir/subst.h"
#include "ir/var.h"
#include "schedule/passes.h"

#include <string.h>

/* States that no trip changes are what they start as. */

static bool is_fixed(const node *loop, size_t state) {
  return loop_step(loop, state) == loop_init(loop, state);
}

bool loops_is_fixed(const loop_plan *p, size_t component) {
  return component < loop_states(p->loop) && is_fixed(p->loop, component);
}

/** The carry of a state as the loop's body has it. */
static const node *carry_of(ir *g, const node *loop, size_t state) {
  return carry_make(g, loop_range(loop), (int64_t)state, loop_init(loop, state));
}

/** Also those that become such a state, which starts alike. */
static void find_fixed(ir *g, const node *loop, map *with) {
  for (size_t known = SIZE_MAX; known != with->n;) {
    known = with->n;
    for (size_t i = 0; i < loop_states(loop); i++) {
      const node *carry = carry_of(g, loop, i), *step = loop_step(loop, i);
      if (is_fixed(loop, i) || step == carry || map_get(with, step) == loop_init(loop, i))
        map_set(ir_arena(g), with, carry, (void *)loop_init(loop, i));
    }
  }
}

/** As one, so that what several share is looked at once. */
static const node *const *subst_all(ir *g, const node *const roots[], size_t n, const map *with) {
  return n ? subst(g, ir_node(g, OP_GROUP, DT_VOID, roots, n, NULL, 0), with)->src : roots;
}

/** Whether there are loops. What one starts as may be such a state of the loop around it. */
static bool settle_fixed(ir *g, normalised *n) {
  for (bool changed, any = false;;) {
    node_list order = topo_sort(ir_arena(g), n->roots, n->n_roots, NULL, NULL);
    map with = {0};
    for (size_t i = 0; i < order.n; i++) {
      if (order.at[i]->op != OP_LOOP) continue;
      any = true;
      find_fixed(g, order.at[i], &with);
    }
    const node *const *made = subst_all(g, n->roots, n->n_roots, &with);
    changed = memcmp(made, n->roots, n->n_roots * sizeof *made);
    memcpy(n->roots, made, n->n_roots * sizeof *made);
    if (!changed) return any;
  }
}

typedef struct looping {
  ir *g;
  arena *a;
  normalised *n;
  size_t depth;
  map image;  /* of what depends on no trip */
  map plans;  /* LOOP → loop_plan */
  map arrays; /* nodes that were looked at → themselves if they read an array */
} looping;

/* What a loop reads of the graph around it. */

static bool is_array(const node *n) {
  switch (n->op) {
  case OP_PARAM:
  case OP_RESULT:
  case OP_CUSTOM:
  case OP_KERNEL:
  case OP_SET: return true;
  default: return false;
  }
}

static bool is_unseen(const node *n, void *user) { return !map_has(&((looping *)user)->arrays, n); }

static void find_arrays(looping *l, const node_list *roots) {
  node_list order = topo_sort(l->a, roots->at, roots->n, is_unseen, l);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    bool reads = is_array(n);
    if (!is_unseen(n, l)) continue;
    for (uint32_t k = 0; k < n->n_src; k++) reads |= map_get(&l->arrays, n->src[k]) != NULL;
    map_set(l->a, &l->arrays, n, (void *)(reads ? n : NULL));
  }
}

static bool is_captured(const looping *l, const node *n) {
  if (n->free->n || n->dtype == DT_INDEX || n->dtype == DT_VOID) return false;
  if (op_is_movement((op)n->op) && n->op != OP_GATHER) return false;
  return map_get(&l->arrays, n) != NULL;
}

static bool enters(const node *n, void *user) { return !is_captured(user, n); }

/* The graph of a loop. */

typedef struct extraction {
  looping *l;
  loop_plan *p;
  node_list roots;      /* steps, emits, places: as they are outside */
  node_list sources;    /* of the RESULTs: inits, and what is captured */
  map with;             /* what becomes of nodes in the body */
  VEC(bool) is_written; /* of the slots so far */
} extraction;

static const node *add_param(extraction *x, dtype t, size_t rank, const node *const dims[],
                             bool is_written) {
  int64_t slot = (int64_t)x->is_written.n;
  const node *param = ir_node(x->l->g, OP_PARAM, t, dims, rank, &slot, 1);
  vec_push(x->l->a, &x->is_written, is_written);
  vec_push(x->l->a, &x->p->body.origins, param);
  return param;
}

/** Whether a step only changes parts of its state. */
static bool changes_parts(const node *loop, size_t state) {
  const node *step = loop_step(loop, state);
  bool changes = step->op == OP_SET;
  while (step->op == OP_SET) step = step->src[0];
  return changes && step->op == OP_CARRY && step->src[0] == loop_range(loop) &&
         (size_t)step->ints[0] == state;
}

static void list_roots(extraction *x) {
  const node *loop = x->p->loop;
  for (size_t i = 1 + loop_states(loop); i < loop->n_src; i++)
    vec_push(x->l->a, &x->roots, loop->src[i]);
}

static void open_states(extraction *x) {
  looping *l = x->l;
  loop_plan *p = x->p;
  size_t n = loop_states(p->loop), most = loop_results(p->loop);
  p->now = arena_alloc(l->a, (n + 1) * sizeof *p->now);
  p->next = arena_alloc(l->a, (n + 1) * sizeof *p->next);
  p->emits = arena_alloc(l->a, (most + 1) * sizeof *p->emits);
  for (size_t i = 0; i < n; i++) {
    const node *init = loop_init(p->loop, i);
    bool in_place = changes_parts(p->loop, i);
    p->now[i] = x->is_written.n;
    const node *param = add_param(x, (dtype)init->dtype, init->rank, init->dims, in_place);
    map_set(l->a, &x->with, carry_of(l->g, p->loop, i), (void *)param);
    p->next[i] = in_place ? p->now[i] : x->is_written.n;
    if (!in_place) add_param(x, (dtype)init->dtype, init->rank, init->dims, true);
    vec_push(l->a, &x->sources, init);
  }
}

static void capture(extraction *x) {
  looping *l = x->l;
  find_arrays(l, &x->roots);
  node_list order = topo_sort(l->a, x->roots.at, x->roots.n, enters, l);
  x->p->captured = arena_alloc(l->a, (order.n + 1) * sizeof *x->p->captured);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_captured(l, n)) continue;
    x->p->captured[x->p->n_captured++] = x->is_written.n;
    const node *param = add_param(x, (dtype)n->dtype, n->rank, n->dims, false);
    map_set(l->a, &x->with, n, (void *)param);
    vec_push(l->a, &x->sources, n);
  }
}

static const node *set_whole(ir *g, const node *old, const node *value) {
  return ir_node(g, OP_SET, (dtype)old->dtype, (const node *[]){old, old, value}, 3, NULL, 0);
}

static const node *set_entry(ir *g, const node *array, const node *place, const node *value) {
  const node *starts[IR_MOST_RANK], *sizes[IR_MOST_RANK];
  int64_t steps[IR_MOST_RANK];
  for (size_t i = 0; i < array->rank; i++) {
    starts[i] = i ? ix_const(g, 0) : place;
    sizes[i] = i ? array->dims[i] : ix_const(g, 1);
    steps[i] = 1;
  }
  const node *entry = ir_slice(g, array, starts, sizes, steps);
  const node *src[] = {array, entry, ir_reshape(g, value, array->rank, sizes)};
  return ir_node(g, OP_SET, (dtype)array->dtype, src, 3, NULL, 0);
}

static const node *trip_var(looping *l, const node *range) {
  int64_t most = range_extent(range)->hi, bounds[] = {0, most > 0 ? most - 1 : 0};
  const char *text = arena_printf(l->a, VAR_TRIP "%zu_%lld", l->depth, (long long)bounds[1]);
  return ir_make(l->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = text,
                                    .n_text = strlen(text)});
}

static void make_roots(extraction *x) {
  ir *g = x->l->g;
  loop_plan *p = x->p;
  const node *loop = p->loop, *const *inside = subst_all(g, x->roots.at, x->roots.n, &x->with);
  size_t n = loop_states(loop), m = loop_emits(loop), at = 0;
  p->body.roots = arena_alloc(x->l->a, (n + m + 1) * sizeof *p->body.roots);
  for (size_t i = 0; i < n; i++) {
    if (is_fixed(loop, i)) continue;
    const node *step = inside[i];
    if (p->now[i] != p->next[i]) step = set_whole(g, p->body.origins.at[p->next[i]], step);
    p->body.roots[at++] = step;
  }
  for (size_t i = 0; i < m; i++) {
    const node *sizes[IR_MOST_RANK + 1];
    size_t rank = loop_result_sizes(loop, n + i, sizes);
    p->emits[i] = x->is_written.n;
    const node *array = add_param(x, loop_result_dtype(loop, n + i), rank, sizes, true);
    p->body.roots[at++] = set_entry(g, array, inside[n + m + i], inside[n + i]);
  }
  p->body.n_roots = at;
}

bool loops_may_write(void *user, const node *param) {
  return ((const loop_plan *)user)->is_written[param->ints[0]];
}

/** The arrays that a loop reads, in the graph around it. */
static node_list extract(looping *l, const node *loop) {
  loop_plan *p = arena_calloc(l->a, 1, sizeof *p);
  extraction x = {.l = l, .p = p};
  *p = (loop_plan){.loop = loop, .trip = trip_var(l, loop_range(loop)), .depth = l->depth};
  vec_push(l->a, &l->n->loops, p);
  map_set(l->a, &x.with, loop_range(loop), (void *)p->trip);
  list_roots(&x);
  open_states(&x);
  capture(&x);
  make_roots(&x);
  p->is_written = x.is_written.at;
  return x.sources;
}

/* The graph around. */

typedef struct extracted {
  size_t number; /* from 1 on */
  node_list sources;
} extracted;

static const node *image_of(const looping *l, const node *n) {
  const node *image = map_get(&l->image, n);
  return image ? image : n;
}

static const node *around(looping *l, const node *result) {
  const node *loop = result->src[0];
  const extracted *e = map_get(&l->plans, loop);
  size_t component = (size_t)result->ints[0], n = e->sources.n, rank = result->rank;
  if (component < loop_states(loop) && is_fixed(loop, component))
    return image_of(l, loop_init(loop, component));
  const node **src = arena_alloc(l->a, (n + rank + 1) * sizeof *src);
  int64_t ints[] = {result->ints[0], (int64_t)n, (int64_t)e->number};
  for (size_t i = 0; i < n; i++) src[i] = image_of(l, e->sources.at[i]);
  for (size_t i = 0; i < rank; i++) src[n + i] = result->dims[i];
  return ir_node(l->g, OP_RESULT, (dtype)result->dtype, src, n + rank, ints, 3);
}

static void take_out(looping *l, const node *loop) {
  extracted *e = arena_alloc(l->a, sizeof *e);
  e->sources = extract(l, loop);
  e->number = l->n->loops.n;
  map_set(l->a, &l->plans, loop, e);
}

static const node *remade(looping *l, const node *n) {
  if (n->op == OP_RESULT && !n->ints[2]) return around(l, n);
  const node **src = arena_alloc(l->a, (n->n_src + 1) * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(l, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  return changed ? subst_rebuild(l->g, n, src) : n;
}

void schedule_loops(ir *g, const schedule_request *r, normalised *n, size_t depth) {
  looping l = {.g = g, .a = ir_arena(g), .n = n, .depth = depth};
  if (!settle_fixed(g, n)) return;
  node_list order = topo_sort(l.a, n->roots, n->n_roots, NULL, NULL);
  if (depth >= LOOP_DEPTH)
    diag_raise(l.a->diag, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_DEPTH);
  for (size_t i = 0; i < order.n; i++) {
    const node *at = order.at[i];
    if (at->free->n) continue;
    if (at->op == OP_LOOP)
      take_out(&l, at);
    else
      map_set(l.a, &l.image, at, (void *)remade(&l, at));
  }
  for (size_t i = 0; i < n->n_roots; i++) n->roots[i] = image_of(&l, n->roots[i]);
  for (size_t i = 0; i < r->n_labels; i++) n->labelled[i] = image_of(&l, n->labelled[i]);
}

/* The steps of bodies behind those of the loops. */

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

static size_t like(splicing *x, size_t buffer, bool is_by_turns) {
  const schedule_buffer *b = &x->s->buffers.at[buffer];
  return add_buffer(
      x, (schedule_buffer){.dtype = b->dtype, .size = b->size, .is_by_turns = is_by_turns});
}

/** The buffers of the whole for those of a body: first what its slots are. */
static size_t *buffers_of(splicing *x, const schedule_step *step, const schedule *body,
                          schedule_state states[]) {
  const loop_plan *p = step->plan;
  size_t n = loop_states(p->loop), m = loop_emits(p->loop), slots = p->body.origins.n, at = 0;
  const size_t *results = step->buffers, *inputs = step->buffers + step->n_outputs;
  size_t *to = arena_alloc(x->a, (body->buffers.n + 1) * sizeof *to);
  for (size_t i = 0; i < n; i++) {
    to[p->now[i]] = to[p->next[i]] = inputs[i];
    if (loops_is_fixed(p, i)) continue;
    size_t result = results[at];
    schedule_state s = {inputs[i], result, result, result, result};
    if (p->now[i] != p->next[i]) {
      s.now = like(x, s.result, true);
      s.next = like(x, s.result, true);
      s.spare = like(x, s.result, false);
    }
    to[p->now[i]] = s.now;
    to[p->next[i]] = s.next;
    states[at++] = s;
  }
  for (size_t i = 0; i < m; i++) to[p->emits[i]] = results[at + i];
  for (size_t i = 0; i < p->n_captured; i++) to[p->captured[i]] = inputs[n + i];
  for (size_t i = slots; i < body->buffers.n; i++) to[i] = add_buffer(x, body->buffers.at[i]);
  return to;
}

static const size_t *renumbered(splicing *x, const size_t buffers[], size_t n, const size_t to[]) {
  size_t *made = arena_alloc(x->a, (n + 1) * sizeof *made);
  for (size_t i = 0; i < n; i++) made[i] = to[buffers[i]];
  return made;
}

static const schedule_loop *renumbered_loop(splicing *x, const schedule_loop *loop,
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

static void add_body(splicing *x, const schedule *body, const size_t to[]) {
  for (size_t i = 0; i < body->steps.n; i++) {
    schedule_step step = body->steps.at[i];
    step.buffers = renumbered(x, step.buffers, step.n_buffers, to);
    if (step.loop) step.loop = renumbered_loop(x, step.loop, to);
    vec_push(x->a, &x->steps, step);
  }
}

/** The step of a loop, with all buffers that live through it. */
static schedule_step loop_step_of(splicing *x, const schedule_step *step, const schedule *body,
                                  const schedule_state states[]) {
  schedule_step made = *step;
  schedule_loop *loop = arena_copy(x->a, step->loop, sizeof *loop);
  VEC(size_t) buffers = {0};
  loop->states = states;
  loop->n_states = step->n_outputs - loop_emits(step->plan->loop);
  loop->n_steps = body->steps.n;
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

static void splice(splicing *x, const schedule_step *step, schedule_maker make) {
  loop_plan *p = (loop_plan *)step->plan;
  schedule_request r = *x->request;
  r.may_overwrite = loops_may_write;
  r.user = p;
  r.n_labels = 0;
  const schedule *body = make(x->g, &r, &p->body, p->depth + 1);
  schedule_state *states = arena_calloc(x->a, loop_states(p->loop) + 1, sizeof *states);
  const size_t *to = buffers_of(x, step, body, states);
  vec_push(x->a, &x->steps, loop_step_of(x, step, body, states));
  add_body(x, body, to);
}

void schedule_bodies(ir *g, const schedule_request *r, schedule *s, schedule_maker make) {
  splicing x = {.g = g, .a = ir_arena(g), .request = r, .s = s};
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    if (step->kind == STEP_LOOP)
      splice(&x, step, make);
    else
      vec_push(x.a, &x.steps, *step);
  }
  s->steps.at = x.steps.at;
  s->steps.n = x.steps.n;
  s->steps.cap = x.steps.cap;
  lives_set(s);
}
