/* One kernel for each value that is written down, and the buffers between them. */
#include "ir/binder.h"
#include "ir/subst.h"
#include "schedule/passes.h"

typedef struct kernels {
  ir *g;
  arena *a;
  places *places;
  schedule *s;
  drafts *out;
} kernels;

static void set_buffer(kernels *k, const node *value, size_t number) {
  map_set(k->a, &k->out->buffer_of, value, (void *)(uintptr_t)(number + 1));
}

static size_t buffer_of(const kernels *k, const node *value) {
  return (size_t)(uintptr_t)map_get(&k->out->buffer_of, value) - 1;
}

static size_t new_buffer(kernels *k, const node *like, const node *origin) {
  const node *size = ir_size(k->g, like);
  schedule_buffer b = {.dtype = (dtype)like->dtype, .size = size, .origin = origin};
  vec_push(k->a, &k->s->buffers, b);
  return k->s->buffers.n - 1;
}

/** The PARAM by which kernels know a buffer: its slot is the buffer's number, its shape the
 * value's. */
static const node *param_for(kernels *k, const node *value, size_t buffer) {
  int64_t slot = (int64_t)buffer;
  return ir_node(k->g, OP_PARAM, (dtype)value->dtype, value->dims, value->rank, &slot, 1);
}

/** Whether a node is looked into: values that are written down are not part of an expression. */
static bool is_inside(const node *n, void *user) {
  const kernels *k = user;
  return !map_has(&k->out->buffer_of, n);
}

/** Elements of written-down values become elements of their buffers' PARAMs. Only as what an INDEX
    reads: a scalar of index arithmetic may be the same node as a written-down value of rank 0. */
static const node *with_params(kernels *k, const node *expression, draft *d) {
  node_list order = topo_sort(k->a, &expression, 1, is_inside, k);
  map image = {0}, used = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], **src = arena_alloc(k->a, n->n_src * sizeof *src);
    bool changed = false, inside = is_inside(n, k);
    for (uint32_t j = 0; j < n->n_src && inside; j++) {
      const node *s = n->src[j], *made = map_get(&image, s);
      bool read = n->op == OP_INDEX && !j && map_has(&k->out->buffer_of, s);
      if (read && !map_has(&used, s)) vec_push(k->a, &d->uses, s);
      if (read) map_set(k->a, &used, s, NULL);
      src[j] = read ? param_for(k, s, buffer_of(k, s)) : made ? made : s;
      changed |= src[j] != s;
    }
    if (changed) map_set(k->a, &image, n, (void *)subst_rebuild(k->g, n, src));
  }
  const node *made = map_get(&image, expression);
  return made ? made : expression;
}

/** A nest over a shape: a range for each dimension that is not 1. */
typedef struct nest {
  const node **coords, **ranges;
  size_t n;
} nest;

static nest open_nest(kernels *k, const node *shape) {
  nest e = {arena_alloc(k->a, (shape->rank + 1u) * sizeof *e.coords),
            arena_alloc(k->a, (shape->rank + 1u) * sizeof *e.ranges), 0};
  for (size_t i = 0; i < shape->rank; i++) {
    bool one = node_is_bits(shape->dims[i], 1);
    e.coords[i] = one ? ix_const(k->g, 0) : range_make(k->g, shape->dims[i], KIND_LOOP);
    if (!one) e.ranges[e.n++] = e.coords[i];
  }
  return e;
}

static const node *element_of(kernels *k, const node *value, const node *const coords[]) {
  bool leaf = value->op == OP_PARAM;
  if (leaf) return index_make(k->g, (dtype)value->dtype, value, 0, value->rank, coords);
  return ranges_element(k->g, &k->places->is_cut, value, value->rank, coords);
}

/** SINK(OUT(param, STAGE(value; coords; the nest's ranges))) */
static const node *sink_of(kernels *k, const node *param, const node *value,
                           const node *const coords[], const nest *e) {
  size_t rank = param->rank;
  const node *stage = stage_make(k->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = e->n,
                                                     .values = &value,
                                                     .ranks = &rank,
                                                     .coords = coords,
                                                     .extents = param->dims,
                                                     .ranges = e->ranges,
                                                     .cut = true});
  const node *out = ir_node(k->g, OP_OUT, DT_VOID, (const node *[]){param, stage}, 2, NULL, 0);
  return ir_node(k->g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
}

static void add_computed(kernels *k, const node *value) {
  draft d = {.value = value, .into = new_buffer(k, value, NULL)};
  nest e = open_nest(k, value);
  const node *x = with_params(k, element_of(k, value, e.coords), &d);
  d.kernel = sink_of(k, param_for(k, value, d.into), x, e.coords, &e);
  set_buffer(k, value, d.into);
  vec_push(k->a, &k->out->at, d);
}

/** Whether an expression reads an array anywhere but at these coordinates. */
static bool reads_elsewhere(kernels *k, const node *expression, const node *array,
                            const node *const coords[]) {
  const node *here = index_make(k->g, (dtype)array->dtype, array, 0, array->rank, coords);
  node_list order = topo_sort(k->a, &expression, 1, is_inside, k);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0] == array && order.at[i] != here)
      return true;
  return false;
}

/** A value that is written down before a SET that reads the old contents elsewhere than it stores.
 */
static const node *written_before(kernels *k, const node *value) {
  const node *copy = value;
  while (copy->op == OP_PARAM || map_has(&k->places->is_cut, copy))
    copy = versions_identity(k->g, copy);
  map_set(k->a, &k->places->is_cut, copy, (void *)copy);
  add_computed(k, copy);
  return copy;
}

/** SET: its value is stored through the view into the storage of the old contents. */
static void add_set(kernels *k, const node *set) {
  const node *old = set->src[0], *view = set->src[1], *value = set->src[2];
  draft d = {.value = set, .into = buffer_of(k, old)};
  nest e = open_nest(k, view);
  const node **coords = arena_alloc(k->a, (old->rank + 1u) * sizeof *coords);
  ranges_through(k->g, view, old, e.coords, coords);
  bool is_cut = map_has(&k->places->is_cut, value) || value->op == OP_PARAM;
  const node *x = is_cut ? index_make(k->g, (dtype)value->dtype, value, 0, value->rank, e.coords)
                         : element_of(k, value, e.coords);
  if (reads_elsewhere(k, x, old, coords)) {
    value = written_before(k, value);
    x = index_make(k->g, (dtype)value->dtype, value, 0, value->rank, e.coords);
  }
  x = with_params(k, x, &d);
  d.kernel = sink_of(k, param_for(k, old, d.into), x, coords, &e);
  vec_push(k->a, &d.uses, old);
  set_buffer(k, set, d.into);
  k->s->buffers.at[d.into].is_written = true;
  vec_push(k->a, &k->out->at, d);
}

static void add_custom(kernels *k, const node *custom) {
  draft d = {.value = custom, .into = new_buffer(k, custom, NULL)};
  for (int64_t i = 0; i < custom->ints[2]; i++) vec_push(k->a, &d.uses, custom->src[i]);
  set_buffer(k, custom, d.into);
  vec_push(k->a, &k->out->at, d);
}

/** The inputs of the graph, under the numbers of their slots. */
static void add_inputs(kernels *k, const normalised *in) {
  node_list order = topo_sort(k->a, in->roots, in->n_roots, NULL, NULL);
  schedule_buffer none = {.dtype = DT_U8, .size = ix_const(k->g, 0)}; /* simplified away */
  for (size_t i = 0; i < in->origins.n; i++) vec_push(k->a, &k->s->buffers, none);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM) continue;
    size_t slot = (size_t)p->ints[0];
    k->s->buffers.at[slot] = (schedule_buffer){
        .dtype = (dtype)p->dtype, .size = ir_size(k->g, p), .origin = in->origins.at[slot]};
    set_buffer(k, p, slot);
  }
}

void schedule_kernels(ir *g, const normalised *in, places *p, schedule *s, drafts *out) {
  kernels k = {.g = g, .a = ir_arena(g), .places = p, .s = s, .out = out};
  *out = (drafts){0};
  add_inputs(&k, in);
  for (size_t i = 0; i < p->cuts.n; i++) {
    const node *value = p->cuts.at[i];
    if (value->op == OP_SET)
      add_set(&k, value);
    else if (value->op == OP_CUSTOM)
      add_custom(&k, value);
    else
      add_computed(&k, value);
  }
  size_t *outputs = arena_alloc(k.a, in->n_roots * sizeof *outputs);
  for (size_t i = 0; i < in->n_roots; i++) {
    outputs[i] = buffer_of(&k, in->roots[i]);
    s->buffers.at[outputs[i]].is_output = true;
  }
  s->outputs = outputs;
}
