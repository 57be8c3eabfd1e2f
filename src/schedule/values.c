#include "schedule/values.h"

#include "ir/binder.h"
#include "ir/element.h"
#include "ir/rewrite.h"
#include "schedule/collapse.h"
#include "schedule/given.h"
#include "schedule/law_groups.h"

typedef struct reading {
  ir *g;
  arena *a;
  int math;
  const normalised *in;
  values *out;
  map is_value;      /* tensor → itself */
  map is_old;        /* array → a SET that changes it */
  node_list tensors; /* of values, sources first */
} reading;

/* Which tensors are values: all that is computed, and what is needed as a whole array. */

static bool enters(const node *n, void *user) {
  (void)user;
  return n->dtype != DT_INDEX;
}

static void add_tensor(reading *r, const node *n) {
  if (n->op != OP_PARAM) map_set(r->a, &r->is_value, n, (void *)n);
}

/** CUSTOMs, KERNELs and loops read their inputs as whole arrays, and so does a SET the array it
    changes. */
static size_t whole_operands(const node *n) {
  switch (n->op) {
  case OP_CUSTOM: return (size_t)n->ints[2];
  case OP_KERNEL:
  case OP_RESULT: return (size_t)n->ints[1];
  default: return n->op == OP_SET;
  }
}

static bool makes_value(const node *n) {
  if (n->dtype == DT_INDEX || n->dtype == DT_VOID) return false;
  if (op_is_movement((op)n->op)) return n->op == OP_GATHER;
  return n->op != OP_CONST && n->op != OP_IOTA && n->op != OP_PARAM && n->op != OP_VAR;
}

static void find_tensors(reading *r) {
  node_list order = topo_sort(r->a, r->in->roots, r->in->n_roots, enters, NULL);
  for (size_t i = 0; i < r->in->n_roots; i++) add_tensor(r, r->in->roots[i]);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    for (size_t k = 0; k < whole_operands(n); k++) add_tensor(r, n->src[k]);
    if (n->op == OP_SET) map_set(r->a, &r->is_old, n->src[0], (void *)n);
    if (makes_value(n) || map_has(&r->in->copies, n)) add_tensor(r, n);
  }
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&r->is_value, order.at[i])) vec_push(r->a, &r->tensors, order.at[i]);
}

/* Bodies. */

/** Whether something is read as it is: a PARAM, or a tensor that is a key of a map. */
static bool is_known(const map *tensors, const node *x) {
  return x->op == OP_PARAM || map_has(tensors, x);
}

static bool is_inside(const node *n, void *tensors) { return !is_known(tensors, n); }

static node_list reads_of(arena *a, const map *tensors, const node *body) {
  node_list reads = {0}, order = topo_sort(a, &body, 1, is_inside, (void *)tensors);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0]->op != OP_STATE)
      vec_push(a, &reads, order.at[i]);
  return reads;
}

static node_list sources_of(arena *a, const node_list *reads) {
  node_list sources = {0};
  map seen = {0};
  for (size_t i = 0; i < reads->n; i++) {
    const node *tensor = reads->at[i]->src[0];
    if (map_has(&seen, tensor)) continue;
    map_set(a, &seen, tensor, NULL);
    vec_push(a, &sources, tensor);
  }
  return sources;
}

/** An element of a tensor: of a value or a PARAM as it is, of anything else in terms of these. */
static const node *element(reading *r, const node *x, const node *const coords[]) {
  if (is_known(&r->is_value, x)) return index_make(r->g, (dtype)x->dtype, x, 0, x->rank, coords);
  return element_of(r->g, &r->is_value, x, x->rank, coords);
}

static const node *const *open_coords(ir *g, size_t rank, const node *const dims[]) {
  const node **coords = arena_alloc(ir_arena(g), (rank + 1) * sizeof *coords);
  for (size_t i = 0; i < rank; i++)
    coords[i] = node_is_bits(dims[i], 1) ? ix_const(g, 0) : range_make(g, dims[i], KIND_LOOP);
  return coords;
}

static value *new_value(ir *g, const node *tensor, size_t rank, const node *const dims[]) {
  value *v = arena_calloc(ir_arena(g), 1, sizeof *v);
  v->tensor = tensor;
  v->rank = rank;
  v->dims = dims;
  v->coords = open_coords(g, rank, dims);
  v->reduce = OP_LIMIT;
  return v;
}

static void set_body(ir *g, const map *tensors, const values *all, value *v, const node *body) {
  v->body = body;
  v->reads = body ? reads_of(ir_arena(g), tensors, body) : (node_list){0};
  v->has_places = body && !value_is_reduction(v) && schedule_has_places(g, &all->of, body);
  v->sources = sources_of(ir_arena(g), &v->reads);
}

static void add_value(reading *r, value *v, const node *body) {
  set_body(r->g, &r->is_value, r->out, v, body);
  vec_push(r->a, &r->out->at, v);
  map_set(r->a, &r->out->of, v->tensor, v);
}

void value_set_body(ir *g, const values *v, value *x, const node *body) {
  set_body(g, &v->of, v, x, body);
}

value *value_make(ir *g, values *v, op named, dtype t, size_t rank, const node *const dims[]) {
  int64_t ints[] = {-1 - ir_fresh(g), 0};
  const node *any = ir_node(g, OP_BUFFER, t, dims, rank, ints, 2), *src[] = {any, any};
  const node *tensor = ir_node(g, named, t, src, op_get(named)->least, NULL, 0);
  value *made = new_value(g, tensor, rank, dims);
  vec_push(ir_arena(g), &v->at, made);
  map_set(ir_arena(g), &v->of, tensor, made);
  return made;
}

static void add_store(reading *r, value *v, const node *array, size_t rank,
                      const node *const *coords) {
  vec_push(r->a, &v->stores, (value_store){array, coords, rank});
}

/** The reduction of one element: a sum of −0 alone is 0, as its start is. */
static const node *single(reading *r, const node *reduce, const node *v) {
  uint64_t start;
  op o = (op)reduce->ints[0];
  if (!op_identity(o, (dtype)v->dtype, &start)) return v;
  return ir_op2(r->g, o, v, ir_const_bits(r->g, (dtype)v->dtype, start));
}

/** Over ranges that the pass leaves, if any. */
static void reduce(reading *r, value *v, op o, size_t n, const node *ranges[], const node *term) {
  collapse_request q = {&r->out->of, r->math, o, term, n, ranges};
  const node *less = schedule_collapse(r->g, &q);
  if (q.n) {
    v->reduce = o;
    v->reduced = ranges;
    v->n_reduced = q.n;
  }
  add_value(r, v, less ? less : term);
}

static void add_reduction(reading *r, const node *n) {
  const node *x = n->src[0], **to = arena_alloc(r->a, (x->rank + 1u) * sizeof *to);
  const node **ranges = arena_alloc(r->a, (x->rank + 1u) * sizeof *ranges);
  value *v = new_value(r->g, n, n->rank, n->dims);
  size_t opened = 0, kept = 0;
  for (size_t i = 0; i < x->rank; i++) {
    if (!reduce_has_axis(n, i))
      to[i] = v->coords[kept++];
    else if (node_is_bits(x->dims[i], 1))
      to[i] = ix_const(r->g, 0);
    else
      to[i] = ranges[opened++] = range_make(r->g, x->dims[i], KIND_LOOP);
  }
  const node *term = element(r, x, to);
  if (opened)
    reduce(r, v, (op)n->ints[0], opened, ranges, term);
  else
    add_value(r, v, single(r, n, term));
}

static void add_computed(reading *r, const node *n) {
  value *v = new_value(r->g, n, n->rank, n->dims);
  v->only_loaded = map_has(&r->in->copies, n);
  add_value(r, v, element_of(r->g, &r->is_value, n, n->rank, v->coords));
}

static void add_custom(reading *r, const node *n) {
  value *v = new_value(r->g, n, n->rank, n->dims);
  for (size_t i = 0; i < whole_operands(n); i++) vec_push(r->a, &v->arrays, n->src[i]);
  v->only_loaded = true;
  add_value(r, v, NULL);
}

const value_store *value_store_over(const value *v, const node *array) {
  for (size_t i = 0; i < v->stores.n; i++) {
    const node *set = v->stores.at[i].array;
    if (set->op == OP_SET && set->src[0] == array) return &v->stores.at[i];
  }
  return NULL;
}

/* SET: stored over what was there. What is read of the old contents is read where it is stored; or
   the new contents are computed before, into an array of their own. */

static bool reads_elsewhere(const node_list *reads, const node *here) {
  for (size_t i = 0; i < reads->n; i++)
    if (reads->at[i]->src[0] == here->src[0] && reads->at[i] != here) return true;
  return false;
}

static const node *at(reading *r, const node *array, const node *const coords[]) {
  return index_make(r->g, (dtype)array->dtype, array, 0, array->rank, coords);
}

static void overwrite(reading *r, const node *set, value *v, const node *const coords[]) {
  vec_push(r->a, &v->arrays, set->src[0]);
  add_store(r, v, set, set->rank, coords);
  map_set(r->a, &r->out->of, set, v);
  map_set(r->a, &r->out->overwriter, set->src[0], v);
}

/** Whether an array is there from the start, or is a copy of one that is: no value comes before. */
static bool is_from_the_start(const reading *r, const node *array) {
  if (map_has(&r->in->copies, array)) array = array->src[0];
  return array->op == OP_PARAM;
}

static bool may_be_stored_over(reading *r, const value *v, const node *old) {
  if (v->tensor->op == OP_KERNEL) return given_is_in_place(r->g, v->tensor, old);
  return !v->only_loaded && !reads_elsewhere(&v->reads, at(r, old, v->coords));
}

/** A SET of a whole array is a store of the value it is set to, if that reads the old contents in
    place only, is not stored over an array already, and nothing is stored over either later. */
static bool is_a_store(reading *r, const node *set) {
  const node *old = set->src[0], *x = set->src[2];
  value *v = map_get(&r->out->of, x);
  if (set->src[1] != old || !v || v->tensor != x) return false;
  if (!is_from_the_start(r, old)) return false;
  if (v->stores.n || map_has(&r->is_old, x) || map_has(&r->is_old, set)) return false;
  if (!may_be_stored_over(r, v, old)) return false;
  overwrite(r, set, v, v->coords);
  return true;
}

static const node *new_contents(reading *r, const node *set, const value *v,
                                const node *const coords[]) {
  const node *x = set->src[2], *body = element(r, x, v->coords);
  node_list reads = reads_of(r->a, &r->is_value, body);
  if (!reads_elsewhere(&reads, at(r, set->src[0], coords))) return body;
  const node *copy = versions_identity(r->g, x);
  if (!map_has(&r->is_value, copy)) {
    add_tensor(r, copy);
    add_computed(r, copy);
  }
  return at(r, copy, v->coords);
}

static void add_set(reading *r, const node *set) {
  if (is_a_store(r, set)) return;
  const node *old = set->src[0], *view = set->src[1];
  const node **coords = arena_alloc(r->a, (old->rank + 1u) * sizeof *coords);
  value *v = new_value(r->g, set, view->rank, view->dims);
  element_through(r->g, view, old, v->coords, coords);
  const node *body = new_contents(r, set, v, coords);
  v->only_loaded = true;
  add_value(r, v, body);
  overwrite(r, set, v, coords);
}

static void add(reading *r, const node *n) {
  switch (n->op) {
  case OP_SET: add_set(r, n); return;
  case OP_CUSTOM:
  case OP_KERNEL:
  case OP_RESULT: add_custom(r, n); return;
  case OP_REDUCE: add_reduction(r, n); return;
  default: add_computed(r, n); return;
  }
}

/** A tensor that is needed as an array has one. */
static void store_at_home(reading *r, const node *x) {
  value *v = map_get(&r->out->of, x);
  if (!v) return;
  for (size_t i = 0; i < v->stores.n; i++)
    if (v->stores.at[i].array == x) return;
  add_store(r, v, x, v->rank, v->coords);
}

static void store_whole_ones(reading *r) {
  for (size_t i = 0; i < r->in->n_roots; i++) store_at_home(r, r->in->roots[i]);
  for (size_t i = 0; i < r->out->at.n; i++) {
    const value *v = r->out->at.at[i];
    if (v->only_loaded && !v->stores.n) store_at_home(r, v->tensor);
    for (size_t k = 0; k < v->arrays.n; k++) store_at_home(r, v->arrays.at[k]);
  }
}

typedef struct needed {
  map is;
  VEC(const value *) at;
} needed;

static void need(reading *r, needed *to, const value *v) {
  if (!v || map_has(&to->is, v)) return;
  map_set(r->a, &to->is, v, NULL);
  vec_push(r->a, &to->at, v);
}

static void need_all(reading *r, needed *to, const node_list *tensors) {
  for (size_t i = 0; i < tensors->n; i++) need(r, to, map_get(&r->out->of, tensors->at[i]));
}

/** Drops values that nothing reads any more. */
static void drop_unread(reading *r) {
  needed all = {0};
  values *v = r->out;
  size_t n = v->at.n, kept = 0;
  for (size_t i = 0; i < n; i++)
    if (v->at.at[i]->stores.n) need(r, &all, v->at.at[i]);
  for (size_t i = 0; i < all.at.n; i++) {
    need_all(r, &all, &all.at.at[i]->sources);
    need_all(r, &all, &all.at.at[i]->arrays);
  }
  for (size_t i = 0; i < n; i++)
    if (map_has(&all.is, v->at.at[i])) v->at.at[kept++] = v->at.at[i];
  v->at.n = kept;
}

/** Laws that are applied before the search. */
static void apply_law_groups(reading *r, const machine *m) {
  if (!m || !(r->math & MATH_SUM)) return;
  schedule_factor(r->g, r->out);
  schedule_rescale(r->g, m, r->out);
  drop_unread(r);
}

void schedule_values(ir *g, int math, const machine *m, normalised *in, values *out) {
  for (;;) {
    *out = (values){0};
    reading r = {.g = g, .a = ir_arena(g), .math = math, .in = in, .out = out};
    find_tensors(&r);
    for (size_t i = 0; i < r.tensors.n; i++) add(&r, r.tensors.at[i]);
    store_whole_ones(&r);
    drop_unread(&r);
    apply_law_groups(&r, m);
    node_list conflicts = {0};
    values_order(g, out, &conflicts);
    if (!conflicts.n) return;
    versions_copy_for_readers(g, in, conflicts.at, conflicts.n);
  }
}
