/* Implements values, the units that fusion decides about: their construction, the lists of elements
   that a body reads, and the predicate for values that depend on their coordinates. */
#include "schedule/values/value.h"

#include "ir/core/binder.h"
#include "ir/core/node_device.h"
#include "ir/index/index_arithmetic.h"

size_t value_whole_operands(const node *n) {
  switch (n->op) {
  case OP_CUSTOM: return (size_t)n->ints[2];
  case OP_KERNEL:
  case OP_RESULT: return (size_t)n->ints[1];
  case OP_TO: return value_is_copied_between_devices(n);
  default: return op_overwrites((op)n->op);
  }
}

bool value_is_leaf(const map *tensors, const node *x) {
  return x->op == OP_PARAM || map_has(tensors, x);
}

static bool is_expression(const node *n, void *tensors) { return !value_is_leaf(tensors, n); }

node_list value_reads_of(ir *g, const map *tensors, const node *body) {
  arena *work = ir_scratch(g);
  arena_mark here = arena_save(work);
  node_list reads = {0}, order = topo_sort(work, &body, 1, is_expression, (void *)tensors);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0]->op != OP_STATE &&
        !node_is_binder(order.at[i]->src[0]))
      vec_push(ir_arena(g), &reads, order.at[i]);
  arena_rewind(work, here);
  return reads;
}

static node_list sources_of(ir *g, const node_list *reads) {
  arena *work = ir_scratch(g);
  arena_mark here = arena_save(work);
  node_list sources = {0};
  map seen = {0};
  for (size_t i = 0; i < reads->n; i++) {
    const node *tensor = reads->at[i]->src[0];
    if (map_has(&seen, tensor)) continue;
    map_set(work, &seen, tensor, NULL);
    vec_push(ir_arena(g), &sources, tensor);
  }
  arena_rewind(work, here);
  return sources;
}

bool value_is_index_function(const value *v) {
  return v && v->depends_on_coords && v->body && !value_is_reduction(v) &&
         !v->memory.is_never_inlined && !v->memory.stores.n;
}

static bool uses_index(const node *n) {
  if (n->op == OP_CAST && n->src[0]->dtype == DT_INDEX) return n->free->n;
  return op_facts_of((op)n->op)->type == TYPE_COMPARE && n->src[0]->dtype == DT_INDEX && n->free->n;
}

bool value_depends_on_coords(ir *g, const map *tensors, const node *body) {
  arena_mark here = arena_save(ir_scratch(g));
  node_list order = topo_sort(ir_scratch(g), &body, 1, is_expression, (void *)tensors);
  bool depends = false;
  for (size_t i = 0; i < order.n && !depends; i++) {
    const node *n = order.at[i];
    if (!is_expression(n, (void *)tensors)) continue;
    depends =
        n->op == OP_INDEX ? value_is_index_function(map_get(tensors, n->src[0])) : uses_index(n);
  }
  arena_rewind(ir_scratch(g), here);
  return depends;
}

value *value_of_tensor(ir *g, const node *tensor, size_t rank, const node *const dims[]) {
  value *v = arena_calloc(ir_arena(g), 1, sizeof *v);
  const node **coords = arena_alloc(ir_arena(g), (rank + 1) * sizeof *coords);
  for (size_t i = 0; i < rank; i++)
    coords[i] = node_is_bits(dims[i], 1) ? ix_const(g, 0) : range_make(g, dims[i], KIND_LOOP);
  v->tensor = tensor;
  v->rank = rank;
  v->dims = dims;
  v->coords = coords;
  v->reduction.op = OP_LIMIT;
  return v;
}

void value_set_body_over(ir *g, const map *tensors, const values *all, value *v, const node *body) {
  v->body = body;
  v->inputs.elements = body ? value_reads_of(g, tensors, body) : (node_list){0};
  v->depends_on_coords =
      body && !value_is_reduction(v) && value_depends_on_coords(g, &all->of, body);
  v->inputs.tensors = sources_of(g, &v->inputs.elements);
}

void value_set_body(ir *g, const values *v, value *x, const node *body) {
  value_set_body_over(g, &v->of, v, x, body);
}

const node *value_new_array(ir *g, dtype t, size_t rank, const node *const dims[]) {
  int64_t ints[3] = {-1 - ir_fresh_id(g), 0};
  size_t n = 2 + node_device_argument_in(g, 0, ints + 2);
  return ir_node(g, OP_BUFFER, t, dims, rank, ints, n);
}

value *value_make(ir *g, values *v, op named, dtype t, size_t rank, const node *const dims[]) {
  const node *any = value_new_array(g, t, rank, dims), *src[] = {any, any};
  const node *tensor = ir_node(g, named, t, src, op_facts_of(named)->least, NULL, 0);
  value *made = value_of_tensor(g, tensor, rank, dims);
  vec_push(ir_arena(g), &v->at, made);
  map_set(ir_arena(g), &v->of, tensor, made);
  return made;
}

const node *values_holder(const values *v, const node *tensor) {
  for (const array_place *p; (p = map_get(&v->places, tensor));) tensor = p->array;
  return tensor;
}

void values_move_to_holder(ir *g, const values *v, const node *tensor, const node *coords[]) {
  for (const array_place *p; (p = map_get(&v->places, tensor)); tensor = p->array)
    coords[p->axis] = ix_add(g, coords[p->axis], p->start);
}

const value_store *value_store_over(const value *v, const node *array) {
  for (size_t i = 0; i < v->memory.stores.n; i++) {
    const node *set = v->memory.stores.at[i].array;
    if (op_overwrites((op)set->op) && set->src[0] == array) return &v->memory.stores.at[i];
  }
  return NULL;
}

map value_coords_at(arena *a, const value *v, const node *index) {
  map with = {0};
  for (size_t i = 0; i < v->rank; i++)
    if (v->coords[i]->op == OP_RANGE) map_set(a, &with, v->coords[i], (void *)index->src[1 + i]);
  return with;
}

bool value_reads_in_place(const value *v, const node *read, size_t rank) {
  size_t at = 0;
  for (size_t k = 0; k < rank; k++) {
    const node *x = read->src[1 + k];
    if (x->op == OP_CONST) continue;
    while (at < v->rank && v->coords[at]->op != OP_RANGE) at++;
    if (at == v->rank || x != v->coords[at++]) return false;
  }
  while (at < v->rank && v->coords[at]->op != OP_RANGE) at++;
  return at == v->rank;
}

bool value_reads_scan(const values *all, const value *v) {
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&all->of, v->inputs.tensors.at[i]);
    if (from && from->scan) return true;
  }
  return false;
}

value_list *values_readers(arena *a, const values *v) {
  value_list *readers = arena_calloc(a, v->at.n + 1, sizeof *readers);
  for (size_t i = 0; i < v->at.n; i++)
    for (size_t k = 0; k < v->at.at[i]->inputs.tensors.n; k++) {
      const value *from = map_get(&v->of, v->at.at[i]->inputs.tensors.at[k]);
      if (from) vec_push(a, &readers[from->position], v->at.at[i]);
    }
  return readers;
}

static void note_reader(arena *a, map *readers, const node *tensor, const value *reader) {
  const value *only = map_has(readers, tensor) ? NULL : reader;
  map_set(a, readers, tensor, (void *)only);
}

map values_only_readers(arena *a, const values *v, const node *const roots[], size_t n) {
  map readers = {0};
  for (size_t i = 0; i < v->at.n; i++) {
    const value *x = v->at.at[i];
    for (size_t k = 0; k < x->inputs.tensors.n; k++)
      note_reader(a, &readers, x->inputs.tensors.at[k], x);
    for (size_t k = 0; k < x->inputs.arrays.n; k++)
      note_reader(a, &readers, x->inputs.arrays.at[k], NULL);
  }
  for (size_t i = 0; i < n; i++) note_reader(a, &readers, roots[i], NULL);
  return readers;
}
