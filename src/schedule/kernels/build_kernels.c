/* Builds the kernel of each fusion group, a SINK (a kernel's root) over STAGE and FOLD nodes (array
   definitions and reductions), and the buffers between kernels. The expression of each element is
   built after those that it reads, with an explicit stack; all reductions of a nest become the
   states of one FOLD. Host functions (CUSTOM nodes), user kernels and loops get steps of their
   own. */
#include "schedule/kernels/build_kernels.h"

#include "ir/core/tensor_loop.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "schedule/core/param_like.h"
#include "schedule/core/user_kernel.h"
#include "schedule/kernels/item_steps.h"
#include "schedule/kernels/kernel_buffers.h"
#include "schedule/kernels/update_kernel.h"
#include "schedule/loops/outline_loops.h"
#include "schedule/values/guarded_values.h"

#include <stdlib.h>

/** The kernel that is being built: the nodes made so far for a group. */
typedef struct kernel_parts {
  group *group;
  map built;  /* INDEX over the group's ranges → the expression that it is */
  map stages; /* use → the STAGE that it is built in */
  map folds;  /* nest → its FOLD */
} kernel_parts;

typedef struct kernels {
  ir *g;
  arena *a;    /* of the schedule */
  arena *work; /* of the kernel that is being built */
  const normalised *in;
  const values *values;
  size_t arguments; /* most buffers of a kernel; 0: any number */
  size_t device;    /* of the steps and buffers that are added */
  schedule *s;
  kernel_parts now;
  map buffer_of;     /* array (PARAM, tensor, SET) → buffer number + 1 */
  map user_kernels;  /* user kernels that have a step, by their KERNEL for slot 0 */
  map loops;         /* loops that have a step */
  const node *guard; /* of the group's steps; NULL: none */
} kernels;

/* Buffers. */

static void set_buffer(kernels *k, const node *array, size_t number) {
  map_set(k->a, &k->buffer_of, array, (void *)(uintptr_t)(number + 1));
}

static size_t buffer_of(const kernels *k, const node *array) {
  return (size_t)(uintptr_t)map_get(&k->buffer_of, array) - 1;
}

static size_t new_buffer(kernels *k, const node *like) {
  schedule_buffer b = {
      .dtype = (dtype)like->dtype, .size = ir_element_count(k->g, like), .device = k->device};
  vec_push(k->a, &k->s->buffers, b);
  return k->s->buffers.n - 1;
}

/** The PARAM by which kernels know the buffer of an array: its slot is the buffer's number, its
    sizes are those of the array that holds this one. */
static const node *param_for(kernels *k, const node *array) {
  const node *holder = values_holder(k->values, array);
  size_t number = buffer_of(k, array);
  int64_t ints[2] = {(int64_t)number};
  uint8_t device = (uint8_t)(k->s->buffers.at[number].device + 1); /* also of what is anybody's */
  size_t n = 1 + node_device_argument_in(k->g, device, ints + 1);
  return ir_node(k->g, OP_PARAM, (dtype)holder->dtype, holder->dims, holder->rank, ints, n);
}

/** Adds buffers for the inputs of the graph, numbered as their slots. */
static void add_inputs(kernels *k, const normalised *in) {
  arena_mark here = arena_save(k->work);
  node_list order = topo_sort(k->work, in->roots, in->n_roots, NULL, NULL);
  schedule_buffer none = {.dtype = DT_U8,
                          .size = ix_const(k->g, 0)}; /* an input that was simplified away */
  for (size_t i = 0; i < in->origins.n; i++) vec_push(k->a, &k->s->buffers, none);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM) continue;
    size_t slot = (size_t)p->ints[0];
    k->s->buffers.at[slot] = (schedule_buffer){.dtype = (dtype)p->dtype,
                                               .size = ir_element_count(k->g, p),
                                               .origin = in->origins.at[slot],
                                               .device = node_device_number(p, in->device)};
    set_buffer(k, p, slot);
  }
  arena_rewind(k->work, here);
}

/** Adds a buffer for an array, or for the one that holds it. */
static void add_array_buffer(kernels *k, const node *array) {
  const node *pick = map_get(&k->values->sides, array);
  if (pick) {
    add_array_buffer(k, pick);
    set_buffer(k, array, buffer_of(k, pick));
    return;
  }
  const node *holder = values_holder(k->values, array);
  if (!map_has(&k->buffer_of, holder)) set_buffer(k, holder, new_buffer(k, holder));
  if (holder == array) return;
  set_buffer(k, array, buffer_of(k, holder));
  k->s->buffers.at[buffer_of(k, holder)].n_places++;
}

/** Adds buffers for the stores of a value; a SET has the buffer of the array that it changes. */
static void add_store_buffers(kernels *k, const value *v) {
  k->device = v->device - 1u;
  for (size_t i = 0; i < v->memory.stores.n; i++) {
    const node *array = v->memory.stores.at[i].array;
    if (!op_overwrites((op)array->op)) {
      add_array_buffer(k, array);
      continue;
    }
    size_t old = buffer_of(k, array->src[0]);
    set_buffer(k, array, old);
    k->s->buffers.at[old].is_written = true;
  }
}

/* Expressions of a group: elements of values become loads, or the expressions built for them. */

static bool is_tensor(const kernels *k, const node *n) {
  return n->op == OP_PARAM || map_has(&k->values->of, n);
}

static bool is_inside(const node *n, void *user) {
  const kernels *k = user;
  return !is_tensor(k, n) && !map_has(&k->now.built, n);
}

static const use *use_read(const kernels *k, const node *index) {
  const value *v = map_get(&k->values->of, index->src[0]);
  return v ? map_get(&k->now.group->use_of, v) : NULL;
}

/** Lists the coordinates of the axes that an array built in a nest has. Returns their number. */
static size_t drop_shared_axes(const use *u, const node *const from[], const node *to[]) {
  size_t n = 0;
  for (size_t i = 0; i < u->v->rank; i++)
    if (!(u->shared >> i & 1)) to[n++] = from[i];
  return n;
}

/** The array from which readers load a value. */
static const node *loaded_array(const kernels *k, const node *tensor) {
  const value *v = map_get(&k->values->of, tensor);
  return v ? v->memory.stores.at[0].array : tensor;
}

/** Reads a state of a scan: the coordinates after those of the scan are the state's own. */
static const node *read_state(kernels *k, const use *u, const node *index, const node *const *src) {
  const point *p = use_find_point(u, value_point_index(k->g, u->v, index));
  size_t rank = u->v->rank, n = index->n_src - 1 - rank;
  return index_make(k->g, (dtype)index->dtype, map_get(&k->now.folds, p->fold), index->ints[0], n,
                    src + 1 + rank);
}

/** Reads an element of an array: in memory, or built in a nest. */
static const node *read_element(kernels *k, const node *index, const node *const *src) {
  const use *u = use_read(k, index);
  dtype t = (dtype)index->dtype;
  const node **at = arena_copy(k->work, src + 1, (index->n_src - 1) * sizeof *at);
  if (u && u->v->scan) return read_state(k, u, index, src);
  if (!u || u->how != PLACED) {
    const node *array = loaded_array(k, index->src[0]);
    values_move_to_holder(k->g, k->values, array, at);
    return index_make(k->g, t, param_for(k, array), 0, index->n_src - 1, at);
  }
  size_t rank = drop_shared_axes(u, src + 1, at);
  return index_make(k->g, t, map_get(&k->now.stages, u), 0, rank, at);
}

static const node *resolve_reads(kernels *k, const node *expression) {
  map image = {0};
  arena_mark here = arena_save(k->work);
  node_list order = topo_sort(k->work, &expression, 1, is_inside, k);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *made = map_get(&k->now.built, n);
    if (!made && is_tensor(k, n)) continue;
    const node **src = arena_alloc(k->work, (n->n_src + 1) * sizeof *src);
    bool changed = false;
    for (uint32_t j = 0; j < n->n_src && !made; j++) {
      const node *with = map_get(&image, n->src[j]);
      src[j] = with ? with : n->src[j];
      changed |= src[j] != n->src[j];
    }
    if (!made && n->op == OP_INDEX && is_tensor(k, n->src[0])) made = read_element(k, n, src);
    if (!made && changed) made = subst_rebuild(k->g, n, src);
    if (made) map_set(k->work, &image, n, (void *)made);
  }
  const node *made = map_get(&image, expression);
  arena_rewind(k->work, here);
  return made ? made : expression;
}

/* FOLDs. */

static const node *make_fold(kernels *k, const nest *f, const node *const *terms) {
  const node *ranges[MOST_RANGES];
  size_t n = f->states.n, n_ranges = nests_loop_order(&k->now.group->nests, f, ranges);
  const node **inits = arena_alloc(k->work, n * sizeof *inits);
  int64_t *ops = arena_alloc(k->work, n * sizeof *ops);
  for (size_t i = 0; i < n; i++) {
    uint64_t start = 0;
    dtype t = (dtype)terms[i]->dtype;
    op o = f->states.at[i].v->reduction.op;
    op_identity(o, t, &start);
    inits[i] = ir_const_bits(k->g, t, start);
    ops[i] = o;
  }
  return fold_make(k->g, &(fold_spec){.n_states = n,
                                      .n_ranges = n_ranges,
                                      .inits = inits,
                                      .steps = terms,
                                      .ops = ops,
                                      .ranges = ranges});
}

/* Values built in a nest of their own. */

static const node *build_stage(kernels *k, const use *u, const node *x) {
  const node *ranges[MOST_RANGES];
  size_t n_ranges = nests_loop_order(&k->now.group->nests, u->stage, ranges);
  const node **coords = arena_alloc(k->work, (u->v->rank + 1) * sizeof *coords);
  const node **extents = arena_alloc(k->work, (u->v->rank + 1) * sizeof *extents);
  size_t rank = drop_shared_axes(u, u->stage->index, coords);
  drop_shared_axes(u, u->v->dims, extents);
  return stage_make(k->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = n_ranges,
                                        .values = &x,
                                        .ranks = &rank,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = ranges});
}

/* Elements of a group: each is built after those that it reads. */

/** An element that is built in this group. */
typedef struct element {
  const use *use;
  const point *point;
} element;

typedef VEC(element) elements;

/** Adds the element that has to be built for an INDEX, unless it is loaded or built. */
static void add_missing(kernels *k, const node *index, elements *wanted) {
  const use *u = use_read(k, index);
  if (!u || u->how == FUSION_LOADED || (u->how == PLACED && map_has(&k->now.stages, u))) return;
  const point *p =
      u->how == PLACED ? &u->built : use_find_point(u, value_point_index(k->g, u->v, index));
  if (p && u->v->scan && map_has(&k->now.folds, p->fold)) return;
  if (!p)
    diag_raise(ir_diag(k->g), TN_ERR_INTERNAL,
               "a kernel reads an element that it does not compute");
  vec_push(k->work, wanted, (element){u, p});
}

/** The body of an element, if all that it reads is built; else NULL, and the missing elements are
 * added. */
static const node *try_body(kernels *k, const value *v, const point *p, elements *missing) {
  map with = value_point_coords(k->work, v, p->index, p->fold);
  const node *body = subst_ranges(k->g, v->body, &with);
  node_list order = topo_sort(k->work, &body, 1, is_inside, k);
  size_t before = missing->n;
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && !map_has(&k->now.built, order.at[i]))
      add_missing(k, order.at[i], missing);
  return missing->n == before ? resolve_reads(k, body) : NULL;
}

/** The STAGE over all coordinates of a nest. */
static const node *stage_over(kernels *k, const nest *n, const node *x) {
  const node *ranges[MOST_RANGES];
  return stage_make(k->g,
                    &(stage_spec){.n_values = 1,
                                  .n_ranges = nests_loop_order(&k->now.group->nests, n, ranges),
                                  .values = &x,
                                  .ranks = &n->n_index,
                                  .coords = n->index,
                                  .extents = n->extents,
                                  .ranges = ranges});
}

/** The FOLD of a scan; NULL: elements are missing. */
static const node *try_scan(kernels *k, const nest *loop, elements *missing) {
  const value *v = loop->states.at[0].v;
  const value_scan *scan = v->scan;
  const node *body = try_body(k, v, loop->states.at[0].point, missing);
  if (!body) return NULL;
  const node **inits = arena_alloc(k->work, scan->n * sizeof *inits);
  const node **steps = arena_alloc(k->work, scan->n * sizeof *steps);
  int64_t *ops = arena_alloc(k->work, scan->n * sizeof *ops);
  int64_t *components = arena_alloc(k->work, scan->n * sizeof *components);
  for (size_t i = 0; i < scan->n; i++) {
    const nest *array = loop->arrays[i];
    inits[i] = scan->state[i].init;
    steps[i] = array ? stage_over(k, array, body->src[i]) : body->src[i];
    ops[i] = -1;
    components[i] = array ? 0 : -1;
  }
  const node *made = fold_make(k->g, &(fold_spec){.n_states = scan->n,
                                                  .n_ranges = 1,
                                                  .inits = inits,
                                                  .steps = steps,
                                                  .ops = ops,
                                                  .components = components,
                                                  .ranges = loop->index});
  map_set(k->work, &k->now.folds, loop, (void *)made);
  return made;
}

/** The FOLD of a nest with all its states; NULL: elements are missing. */
static const node *try_fold(kernels *k, const nest *n, elements *missing) {
  const node *made = map_get(&k->now.folds, n), **terms;
  size_t before = missing->n;
  if (made) return made;
  if (n->arrays) return try_scan(k, n, missing);
  terms = arena_alloc(k->work, n->states.n * sizeof *terms);
  for (size_t i = 0; i < n->states.n; i++)
    terms[i] = try_body(k, n->states.at[i].v, n->states.at[i].point, missing);
  if (missing->n > before) return NULL;
  made = make_fold(k, n, terms);
  map_set(k->work, &k->now.folds, n, (void *)made);
  return made;
}

/** Builds an element; false: elements are missing. */
static bool build_element(kernels *k, const element *e, elements *missing) {
  const value *v = e->use->v;
  const node *x;
  if (value_is_reduction(v)) {
    const node *fold = try_fold(k, e->point->fold, missing);
    dtype t = (dtype)v->tensor->dtype;
    x = fold ? index_make(k->g, t, fold, (int64_t)e->point->state, 0, NULL) : NULL;
  } else {
    x = try_body(k, v, e->point, missing);
  }
  if (!x) return false;
  if (e->use->how == PLACED) {
    map_set(k->work, &k->now.stages, e->use, (void *)build_stage(k, e->use, x));
    x = read_element(k, e->point->index, e->point->index->src);
  }
  map_set(k->work, &k->now.built, e->point->index, (void *)x);
  return true;
}

/** Builds an element and all that it reads. An element waits once: when it is on top of the stack
   again, all that it reads is built. */
static void build_with_operands(kernels *k, element root) {
  elements stack = {0};
  map waits = {0};
  vec_push(k->work, &stack, root);
  while (stack.n) {
    element e = vec_last(&stack);
    size_t n = stack.n;
    if (map_has(&k->now.built, e.point->index) || build_element(k, &e, &stack)) {
      stack.n = n - 1;
      continue;
    }
    if (map_has(&waits, e.point))
      diag_raise(ir_diag(k->g), TN_ERR_INTERNAL,
                 "cyclic dependence between the elements of a kernel");
    map_set(k->work, &waits, e.point, NULL);
  }
}

/* The root nest and its stores. */

typedef struct outputs {
  VEC(const node *) params, values, coords, extents;
  VEC(size_t) ranks;
} outputs;

static void add_output(kernels *k, outputs *o, const fusion_store *at, const value_store *to) {
  const value *v = at->use->v;
  const node *param = param_for(k, to->array), **coords;
  map with = value_coords_at(k->work, v, at->index);
  vec_push(k->work, &o->params, param);
  vec_push(k->work, &o->values, resolve_reads(k, at->index));
  vec_push(k->work, &o->ranks, to->rank);
  coords = arena_alloc(k->work, (to->rank + 1) * sizeof *coords);
  for (size_t i = 0; i < to->rank; i++) coords[i] = subst_ranges(k->g, to->coords[i], &with);
  values_move_to_holder(k->g, k->values, to->array, coords);
  for (size_t i = 0; i < to->rank; i++) {
    vec_push(k->work, &o->coords, coords[i]);
    vec_push(k->work, &o->extents, param->dims[i]);
  }
}

/** The kernel of a value that a FOLD computes. */
static const node *sink_of_updates(kernels *k, const value *v, const node *index) {
  const node *ranges[MOST_RANGES];
  update_kernel u = {.g = k->g,
                     .a = k->work,
                     .v = v,
                     .body = resolve_reads(k, index),
                     .index = index->src + 1,
                     .param = param_for(k, v->memory.stores.at[0].array),
                     .ranges = ranges};
  u.n_ranges = nests_loop_order(&k->now.group->nests, k->now.group->root, ranges);
  return update_kernel_make(&u);
}

static const node *sink_of(kernels *k) {
  outputs o = {0};
  const node *ranges[MOST_RANGES];
  const group *group = k->now.group;
  const value *first = group->stores.at[0].use->v;
  if (first->updates) return sink_of_updates(k, first, group->stores.at[0].index);
  for (size_t i = 0; i < group->stores.n; i++) {
    const value *v = group->stores.at[i].use->v;
    for (size_t j = 0; j < v->memory.stores.n; j++)
      add_output(k, &o, &group->stores.at[i], &v->memory.stores.at[j]);
  }
  size_t n_ranges = nests_loop_order(&group->nests, group->root, ranges);
  const node *stage = stage_make(k->g, &(stage_spec){.n_values = o.values.n,
                                                     .n_ranges = n_ranges,
                                                     .values = o.values.at,
                                                     .ranks = o.ranks.at,
                                                     .coords = o.coords.at,
                                                     .extents = o.extents.at,
                                                     .ranges = ranges,
                                                     .cut = true});
  vec_push(k->work, &o.params, stage);
  const node *out = ir_node(k->g, OP_OUT, DT_VOID, o.params.at, o.params.n, NULL, 0);
  return ir_node(k->g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
}

static const node *kernel_of(kernels *k, group *g) {
  arena_mark here = arena_save(k->work);
  k->now = (kernel_parts){.group = g};
  for (size_t i = 0; i < g->stores.n; i++) {
    elements roots = {0};
    add_missing(k, g->stores.at[i].index, &roots);
    for (size_t j = 0; j < roots.n; j++) build_with_operands(k, roots.at[j]);
  }
  const node *sink = sink_of(k);
  arena_rewind(k->work, here);
  return sink;
}

/* Steps. */

static schedule_step custom_step(kernels *k, const value *v) {
  const node *c = v->tensor;
  size_t n = v->inputs.arrays.n, *buffers = arena_alloc(k->a, (n + 1) * sizeof *buffers);
  for (size_t i = 0; i < n; i++) buffers[i] = buffer_of(k, v->inputs.arrays.at[i]);
  buffers[n] = buffer_of(k, c);
  schedule_step s = {.kind = STEP_CUSTOM, .custom = c, .buffers = buffers, .n_buffers = n + 1};
  vec_push(k->a, &s.values, c);
  return s;
}

/** Refuses a kernel with too many buffers: some ops, such as a gather along many axes, cannot be
 * split. */
static void check_arguments(const kernels *k, const node *what, size_t n) {
  if (!k->arguments || n <= k->arguments) return;
  diag_raise(k->a->diag, TN_ERR_UNSUPPORTED,
             "%s of rank %d needs %zu buffers in one kernel; this device supports at most %zu, the "
             "CPU any number",
             op_name((op)what->op), what->rank, n, k->arguments);
}

/** The step of a kernel; `what`: the tensor that it computes, for messages. */
static schedule_step kernel_step(kernels *k, const node *kernel, const node *what) {
  schedule_step s = {.kind = STEP_KERNEL, .kernel = kernel, .n_outputs = kernel->src[0]->n_src - 1};
  s.buffers = kernel_buffers(k->g, kernel, &s.n_buffers);
  check_arguments(k, what, s.n_buffers);
  return s;
}

static void add_step(kernels *k, schedule_step step) {
  step.guard = k->guard;
  step.device = k->device;
  vec_push(k->a, &k->s->steps, step);
}

static void add_copy(kernels *k, const node *like, size_t from, size_t to) {
  add_step(k, kernel_step(k, user_kernel_copy(k->g, like, from, to), like));
}

/** The value that a user kernel writes to a slot; NULL: nothing reads it. */
static const value *written_value(kernels *k, const kernel_signature *f, const node *n,
                                  size_t slot) {
  size_t n_inputs = (size_t)n->ints[1];
  return map_get(&k->values->of, kernel_make_node(k->g, k->a, f, (int64_t)slot, n->src, n_inputs,
                                                  n->text, n->n_text));
}

static bool occurs_before(const size_t buffers[], size_t at) {
  size_t i = 0;
  while (buffers[i] != buffers[at]) i++;
  return i < at;
}

/** Adds the step of a user kernel, for all KERNELs with its text and inputs. Inputs that it writes
   only in part are copied first, and a result that several arrays hold is copied afterwards. */
static void add_user_kernel(kernels *k, const node *n) {
  kernel_signature f = kernel_signature_of_node(k->g, k->a, n);
  size_t n_inputs = (size_t)n->ints[1], *from = arena_alloc(k->a, (f.n + 1) * sizeof *from);
  size_t *to = arena_alloc(k->a, (f.n + 1) * sizeof *to);
  kernel_signature_check_inputs(k->a, &f, n->src, n_inputs);
  const node *key = kernel_make_node(k->g, k->a, &f, 0, n->src, n_inputs, n->text, n->n_text);
  if (map_has(&k->user_kernels, key)) return;
  map_set(k->a, &k->user_kernels, key, (void *)key);
  for (size_t i = 0; i < f.n; i++) {
    const value *v = f.params[i].is_written ? written_value(k, &f, n, i) : NULL;
    to[i] = v                        ? buffer_of(k, v->memory.stores.at[0].array)
            : f.params[i].is_written ? new_buffer(k, f.params[i].param)
                                     : SIZE_MAX;
    from[i] = i < n_inputs ? buffer_of(k, n->src[i]) : to[i];
    if (user_kernel_is_scheduled(&f) && occurs_before(from, i)) {
      size_t copy = new_buffer(k, f.params[i].param);
      add_copy(k, f.params[i].param, from[i], copy);
      from[i] = copy;
    }
    if (i < n_inputs && f.params[i].is_written && !user_kernel_writes_all(k->g, &f, i))
      add_copy(k, f.params[i].param, from[i], to[i]);
  }
  schedule_step step = kernel_step(k, user_kernel_bind(k->g, &f, from, to), n);
  vec_push(k->a, &step.values, n);
  add_step(k, step);
  for (size_t i = 0; i < f.n; i++) {
    const value *v = f.params[i].is_written ? written_value(k, &f, n, i) : NULL;
    for (size_t j = 1; v && j < v->memory.stores.n; j++)
      add_copy(k, f.params[i].param, to[i], buffer_of(k, v->memory.stores.at[j].array));
  }
}

/** The buffer of a result of a loop; a new one, if nothing reads the result. */
static size_t result_buffer(kernels *k, const extracted_loop *p, const node *like,
                            size_t component) {
  const node *sizes[IR_MAX_RANK + 1];
  size_t n = (size_t)like->ints[1], rank = loop_result_sizes(p->loop, component, sizes);
  const node **src = arena_alloc(k->a, (n + rank + 1) * sizeof *src);
  int64_t ints[] = {(int64_t)component, like->ints[1], like->ints[2]};
  for (size_t i = 0; i < n; i++) src[i] = like->src[i];
  for (size_t i = 0; i < rank; i++) src[n + i] = sizes[i];
  const node *result =
      ir_node(k->g, OP_RESULT, loop_result_dtype(p->loop, component), src, n + rank, ints, 3);
  const value *v = map_get(&k->values->of, result);
  return v ? buffer_of(k, v->memory.stores.at[0].array) : new_buffer(k, result);
}

/** Adds the step of the loop of a RESULT, once: its results, then the arrays that it reads. */
static void add_loop(kernels *k, const node *n) {
  const extracted_loop *p = k->in->loops.at[n->ints[2] - 1];
  size_t n_results = 0, n_inputs = (size_t)n->ints[1], most = loop_n_results(p->loop);
  if (map_has(&k->loops, p)) return;
  map_set(k->a, &k->loops, p, NULL);
  size_t *buffers = arena_alloc(k->a, (most + n_inputs) * sizeof *buffers);
  for (size_t i = 0; i < most; i++)
    if (!loops_is_invariant(p, i)) buffers[n_results++] = result_buffer(k, p, n, i);
  for (size_t i = 0; i < n_inputs; i++) buffers[n_results + i] = buffer_of(k, n->src[i]);
  schedule_loop *loop = arena_calloc(k->a, 1, sizeof *loop);
  *loop = (schedule_loop){.trips = range_extent(loop_range(p->loop)), .trip = p->trip};
  schedule_step s = {.kind = STEP_LOOP,
                     .buffers = buffers,
                     .n_buffers = n_results + n_inputs,
                     .n_outputs = n_results,
                     .loop = loop,
                     .plan = p};
  vec_push(k->a, &s.values, n);
  add_step(k, s);
}

/** The tensors that a group computes, from inputs to outputs. */
static node_list computed_tensors(kernels *k, const group *at) {
  node_list all = {0};
  for (size_t i = at->uses.n; i-- > 0;)
    if (at->uses.at[i]->how == FUSION_INLINED || at->uses.at[i]->how == PLACED)
      vec_push(k->a, &all, at->uses.at[i]->v->tensor);
  return all;
}

/** True if a group loads the elements of a value and stores them as they are. */
static bool is_copied(const kernels *k, const group *at, const value *v) {
  if (!v->body || v->body->op != OP_INDEX || value_is_reduction(v)) return false;
  const value *from = map_get(&k->values->of, v->body->src[0]);
  const use *u = from ? map_get(&at->use_of, from) : NULL;
  return !from || (u && u->how == FUSION_LOADED);
}

/** Counts the arrays that lie inside of others and that a group computes, and those that it copies.
 */
static void count_places(const kernels *k, const group *at, schedule_step *s) {
  for (size_t i = 0; i < at->stores.n; i++) {
    const value *v = at->stores.at[i].use->v;
    if (map_has(&k->values->places, v->tensor))
      (*(is_copied(k, at, v) ? &s->n_copies : &s->n_places))++;
  }
}

/** Adds the step of a copy of an array of another device. A result that several arrays hold is
    copied on from the first. */
static void add_device_copy(kernels *k, const value *v) {
  size_t *buffers = arena_alloc(k->a, 2 * sizeof *buffers);
  buffers[0] = buffer_of(k, v->memory.stores.at[0].array);
  buffers[1] = buffer_of(k, v->inputs.arrays.at[0]);
  schedule_step s = {.kind = STEP_COPY, .buffers = buffers, .n_buffers = 2, .n_outputs = 1};
  vec_push(k->a, &s.values, v->tensor);
  add_step(k, s);
  for (size_t i = 1; i < v->memory.stores.n; i++)
    add_copy(k, v->tensor, buffers[0], buffer_of(k, v->memory.stores.at[i].array));
}

static void add_steps(kernels *k, group *at) {
  if (at->custom && at->custom->is_join) return; /* its pieces are in place */
  k->guard = guarded_values_condition(k->g, group_guard(at));
  k->device = group_device(at) - 1u;
  if (!at->custom) {
    schedule_step s = kernel_step(k, kernel_of(k, at), at->stores.at[0].use->v->tensor);
    s.values = computed_tensors(k, at);
    count_places(k, at, &s);
    add_step(k, s);
  } else if (at->custom->tensor->op == OP_KERNEL)
    add_user_kernel(k, at->custom->tensor);
  else if (at->custom->tensor->op == OP_RESULT)
    add_loop(k, at->custom->tensor);
  else if (at->custom->tensor->op == OP_TO)
    add_device_copy(k, at->custom);
  else
    add_step(k, custom_step(k, at->custom));
}

/** The slot of a labelled node. An array that lies inside of another one has none. */
static schedule_slot slot_of(const kernels *k, const node *n) {
  bool has_buffer =
      map_has(&k->buffer_of, n) && !op_overwrites((op)n->op) && values_holder(k->values, n) == n;
  return (schedule_slot){has_buffer ? buffer_of(k, n) : SIZE_MAX, false};
}

static void add_items(kernels *k) {
  size_t n = k->in->items->at.n;
  item_steps_find(k->g, k->in, k->s);
  k->s->item_guards = arena_alloc(k->a, (n + 1) * sizeof *k->s->item_guards);
  for (size_t i = 0; i < n; i++)
    k->s->item_guards[i] = guarded_values_condition(k->g, k->values->item_guards[i]);
}

void kernels_build(ir *g, const normalised *in, const values *v, const groups *groups,
                   size_t arguments, schedule *s) {
  kernels k = {.g = g,
               .a = ir_arena(g),
               .work = ir_scratch(g),
               .in = in,
               .values = v,
               .arguments = arguments,
               .s = s};
  add_inputs(&k, in);
  for (size_t i = 0; i < v->at.n; i++) add_store_buffers(&k, v->at.at[i]);
  for (size_t i = 0; i < groups->n; i++) add_steps(&k, groups->at[i]);
  size_t *out = arena_alloc(k.a, in->n_roots * sizeof *out);
  for (size_t i = 0; i < in->n_roots; i++) {
    out[i] = buffer_of(&k, in->roots[i]);
    s->buffers.at[out[i]].is_output = true;
  }
  s->outputs = out;
  s->n_slots = in->n_labelled;
  s->slots = arena_alloc(k.a, (s->n_slots + 1) * sizeof *s->slots);
  for (size_t i = 0; i < s->n_slots; i++) s->slots[i] = slot_of(&k, in->labelled[i]);
  if (in->items) add_items(&k);
}
