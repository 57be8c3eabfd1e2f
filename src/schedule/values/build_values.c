/* Builds the values (fusion's units) of a normalised graph. It finds the tensors that become values
   and gives each a scalar body by asking for the element at its own coordinates, which turns
   movements into indices; collapses reductions over comparisons; finds the SETs (partial writes)
   that are mere stores of their value; applies the rewrites that the search would not find
   (factor_sums.c, online_softmax.c); and orders the values. */
#include "schedule/values/build_values.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/element_expression.h"
#include "ir/transform/rewrite.h"
#include "schedule/core/user_kernel.h"
#include "schedule/values/absorb_scans.h"
#include "schedule/values/collapse_reduction.h"
#include "schedule/values/factor_sums.h"
#include "schedule/values/guarded_values.h"
#include "schedule/values/late_values.h"
#include "schedule/values/moved_operands.h"
#include "schedule/values/online_softmax.h"
#include "schedule/values/scan_views.h"
#include "schedule/values/value_devices.h"
#include "schedule/values/value_order.h"
#include "schedule/values/versions.h"

typedef struct building {
  ir *g;
  arena *a;    /* of the values */
  arena *work; /* of the walk */
  int math;
  const machine *m;           /* NULL: nothing is rewritten by costs */
  const joins_policy *policy; /* of joins; NULL: none are made */
  const normalised *in;
  values *out;
  map is_value; /* tensor → itself */
  map is_old;   /* array → a SET that changes it */
  joins joins;
  node_list tensors; /* of values, sources first */
} building;

/* Tensors that become values: computed ones, and those needed as whole arrays. */

static bool enters(const node *n, void *user) {
  (void)user;
  return n->dtype != DT_INDEX;
}

static void add_tensor(building *r, const node *n) {
  if (n->op != OP_PARAM) map_set(r->work, &r->is_value, n, (void *)n);
}

static bool is_computed(const node *n) {
  if (n->dtype == DT_INDEX || n->dtype == DT_VOID) return false;
  if (op_is_movement((op)n->op)) return n->op == OP_GATHER;
  if (n->op == OP_TO) return value_is_copied_between_devices(n);
  return n->op != OP_CONST && n->op != OP_IOTA && n->op != OP_PARAM && n->op != OP_VAR;
}

static void find_tensors(building *r) {
  node_list order = topo_sort(r->work, r->in->roots, r->in->n_roots, enters, NULL);
  if (r->policy) r->joins = joins_choose(r->g, r->policy, r->in, &order, &r->out->places);
  node_list moved = r->m ? moved_operands_find(r->g, r->m, r->in, &order) : (node_list){0};
  for (size_t i = 0; i < moved.n; i++) add_tensor(r, moved.at[i]);
  for (size_t i = 0; i < r->in->n_roots; i++) add_tensor(r, r->in->roots[i]);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    for (size_t k = 0; k < value_whole_operands(n); k++) add_tensor(r, n->src[k]);
    if (op_overwrites((op)n->op)) map_set(r->work, &r->is_old, n->src[0], (void *)n);
    if (is_computed(n) || map_has(&r->in->copies, n) || map_has(&r->out->places, n))
      add_tensor(r, n);
  }
  for (size_t i = 0; i < r->joins.fresh.n; i++) add_tensor(r, r->joins.fresh.at[i]);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&r->is_value, order.at[i])) vec_push(r->work, &r->tensors, order.at[i]);
}

/* Bodies. */

/** An element of a tensor: an INDEX of a value or a PARAM, or an expression over these. */
static const node *body_element(building *r, const node *x, const node *const coords[]) {
  if (value_is_leaf(&r->is_value, x))
    return index_make(r->g, (dtype)x->dtype, x, 0, x->rank, coords);
  return element_expression(r->g, &r->is_value, x, x->rank, coords);
}

static void add_value(building *r, value *v, const node *body) {
  value_set_body_over(r->g, &r->is_value, r->out, v, body);
  vec_push(r->a, &r->out->at, v);
  map_set(r->a, &r->out->of, v->tensor, v);
}

static void add_store(building *r, value *v, const node *array, size_t rank,
                      const node *const *coords) {
  vec_push(r->a, &v->memory.stores, (value_store){array, coords, rank});
}

/** The reduction of a single element: a sum starts from 0, so that of −0 is 0. */
static const node *reduce_single(building *r, const node *n, const node *v) {
  uint64_t start;
  op o = (op)n->ints[0];
  if (!op_identity(o, (dtype)v->dtype, &start)) return v;
  return ir_op2(r->g, o, v, ir_const_bits(r->g, (dtype)v->dtype, start));
}

/** Adds a reduction over the ranges that collapsing leaves, if any. */
static void add_reduced(building *r, value *v, op o, size_t n, const node *ranges[],
                        const node *term) {
  collapse_request q = {&r->out->of, r->math, o, term, n, ranges};
  const node *less = collapse_reduction(r->g, &q);
  if (q.n) {
    v->reduction.op = o;
    v->reduction.ranges = ranges;
    v->reduction.n = q.n;
  }
  add_value(r, v, less ? less : term);
}

static void add_reduction(building *r, const node *n) {
  const node *x = n->src[0], **to = arena_alloc(r->work, (x->rank + 1u) * sizeof *to);
  const node **ranges = arena_alloc(r->a, (x->rank + 1u) * sizeof *ranges);
  value *v = value_of_tensor(r->g, n, n->rank, n->dims);
  size_t opened = 0, kept = 0;
  for (size_t i = 0; i < x->rank; i++) {
    if (!reduce_has_axis(n, i))
      to[i] = v->coords[kept++];
    else if (node_is_bits(x->dims[i], 1))
      to[i] = ix_const(r->g, 0);
    else
      to[i] = ranges[opened++] = range_make(r->g, x->dims[i], KIND_LOOP);
  }
  const node *term = body_element(r, x, to);
  if (opened)
    add_reduced(r, v, (op)n->ints[0], opened, ranges, term);
  else
    add_value(r, v, reduce_single(r, n, term));
}

static void add_computed(building *r, const node *n) {
  value *v = value_of_tensor(r->g, n, n->rank, n->dims);
  v->memory.is_never_inlined = map_has(&r->in->copies, n);
  add_value(r, v, element_expression(r->g, &r->is_value, n, n->rank, v->coords));
}

static void add_opaque(building *r, const node *n) {
  value *v = value_of_tensor(r->g, n, n->rank, n->dims);
  for (size_t i = 0; i < value_whole_operands(n); i++) vec_push(r->a, &v->inputs.arrays, n->src[i]);
  v->memory.is_never_inlined = true;
  add_value(r, v, NULL);
}

/** Adds a join after its pieces, of which nothing else reads those that are not in the graph. */
static void add_join(building *r, const join *j) {
  value *v = value_of_tensor(r->g, j->tensor, j->tensor->rank, j->tensor->dims);
  for (size_t i = 0; i < j->pieces.n; i++)
    if (!map_has(&r->out->of, j->pieces.at[i])) add_computed(r, j->pieces.at[i]);
  v->inputs.arrays = j->pieces;
  v->is_join = v->memory.is_never_inlined = true;
  add_value(r, v, NULL);
}

/** One side of a PICK, as a value of its own that is stored to the PICK's array. */
static const node *add_side(building *r, const node *pick, const node *x) {
  const node *any = value_new_array(r->g, (dtype)x->dtype, x->rank, x->dims);
  const node *tensor = versions_identity_slice(r->g, any);
  value *v = value_of_tensor(r->g, tensor, x->rank, x->dims);
  add_value(r, v, body_element(r, x, v->coords));
  map_set(r->a, &r->out->sides, tensor, (void *)pick);
  return tensor;
}

/** Adds a PICK after its sides, of which a run stores one. */
static void add_pick(building *r, const node *n) {
  value *v = value_of_tensor(r->g, n, n->rank, n->dims);
  node_list sides = {0};
  for (size_t i = 1; i <= 2; i++) vec_push(r->a, &sides, add_side(r, n, n->src[i]));
  v->inputs.arrays = sides;
  v->is_join = v->memory.is_never_inlined = true;
  add_value(r, v, NULL);
}

/* A SET is stored over the old contents. Either it reads these only where it stores, or the new
   contents are computed first, into an array of their own. */

static bool reads_elsewhere(const node_list *reads, const node *here) {
  for (size_t i = 0; i < reads->n; i++)
    if (reads->at[i]->src[0] == here->src[0] && reads->at[i] != here) return true;
  return false;
}

static const node *index_of(building *r, const node *array, const node *const coords[]) {
  return index_make(r->g, (dtype)array->dtype, array, 0, array->rank, coords);
}

static void store_over(building *r, const node *set, value *v, size_t rank,
                       const node *const coords[]) {
  vec_push(r->a, &v->inputs.arrays, set->src[0]);
  add_store(r, v, set, rank, coords);
  map_set(r->a, &r->out->of, set, v);
  map_set(r->a, &r->out->overwriter, set->src[0], v);
}

/** True if an array is an input, or a copy of one: no value comes before. */
static bool is_input_or_copy(const building *r, const node *array) {
  if (map_has(&r->in->copies, array)) array = array->src[0];
  return array->op == OP_PARAM;
}

static bool may_store_over(building *r, const value *v, const node *old) {
  if (value_is_copy_between_devices(v)) return true; /* it reads arrays of another device alone */
  if (v->tensor->op == OP_KERNEL) return user_kernel_is_in_place(r->g, v->tensor, old);
  return !v->memory.is_never_inlined &&
         !reads_elsewhere(&v->inputs.elements, index_of(r, old, v->coords));
}

/** Makes a SET of a whole array a store of the value it is set to. False, where that value reads
   old contents elsewhere, is stored over an array already, or a later SET changes either. */
static bool add_as_store(building *r, const node *set) {
  const node *old = set->src[0], *x = set->src[2];
  value *v = map_get(&r->out->of, x);
  if (set->src[1] != old || !v || v->tensor != x) return false;
  if (!is_input_or_copy(r, old)) return false;
  if (v->memory.stores.n || map_has(&r->is_old, x) || map_has(&r->is_old, set)) return false;
  if (!may_store_over(r, v, old)) return false;
  store_over(r, set, v, v->rank, v->coords);
  return true;
}

/** An element of a tensor that is computed first, into an array of its own. */
static const node *element_of_copy(building *r, const node *x, const value *v) {
  const node *copy = versions_identity_slice(r->g, x);
  if (!map_has(&r->is_value, copy)) {
    add_tensor(r, copy);
    add_computed(r, copy);
  }
  return index_of(r, copy, v->coords);
}

static const node *new_contents(building *r, const node *set, const value *v,
                                const node *const coords[]) {
  const node *x = set->src[2], *body = body_element(r, x, v->coords);
  node_list reads = value_reads_of(r->g, &r->is_value, body);
  bool may_follow = reads_elsewhere(&reads, index_of(r, set->src[0], coords));
  return may_follow ? element_of_copy(r, x, v) : body;
}

static void add_set(building *r, const node *set) {
  if (add_as_store(r, set)) return;
  const node *old = set->src[0], *view = set->src[1];
  const node **coords = arena_alloc(r->a, (old->rank + 1u) * sizeof *coords);
  value *v = value_of_tensor(r->g, set, view->rank, view->dims);
  element_source_coordinates(r->g, view, old, v->coords, coords);
  const node *body = new_contents(r, set, v, coords);
  v->memory.is_never_inlined = true;
  add_value(r, v, body);
  store_over(r, set, v, set->rank, coords);
}

/* Values that a FOLD computes. */

/** Notes the coordinate of the updates that an axis of an array is indexed by, if it is one:
    updates that differ along it are apart. */
static void note_own_axis(building *r, const value *v, const node *index, const node *dim,
                          uint64_t *apart) {
  for (size_t k = 0; k < v->rank; k++)
    if (index == v->coords[k] && ix_prove_le(r->g, v->dims[k], dim)) *apart |= UINT64_C(1) << k;
}

/** An element of a SCATTER's values or indices, of old contents alone: of an array of their own
   where they depend on the array that the updates change. */
static const node *update_element(building *r, const node *x, const node *old, const value *v) {
  const node *body = body_element(r, x, v->coords);
  node_list reads = value_reads_of(r->g, &r->is_value, body);
  for (size_t i = 0; i < reads.n; i++)
    if (reads.at[i]->src[0] == old) return element_of_copy(r, x, v);
  return body;
}

static void add_scatter(building *r, const node *n) {
  const node *old = n->src[0], *x = n->src[1];
  value *v = value_of_tensor(r->g, n, x->rank, x->dims);
  value_updates *u = arena_calloc(ir_arena(r->g), 1, sizeof *u);
  const node **src = arena_alloc(r->work, (old->rank + 1u) * sizeof *src);
  uint64_t apart = 0;
  src[0] = update_element(r, x, old, v);
  for (size_t i = 0; i < old->rank; i++) {
    const node *index = update_element(r, n->src[2 + i], old, v);
    src[1 + i] = element_coordinate(r->g, index, old->dims[i]);
    note_own_axis(r, v, src[1 + i], old->dims[i], &apart);
  }
  u->op = n->ints[0];
  u->is_distinct = n->n_int > 1;
  for (size_t k = 0; k < v->rank; k++)
    if (v->coords[k]->op == OP_RANGE && !(apart >> k & 1)) u->along |= UINT64_C(1) << k;
  v->updates = u;
  v->memory.is_never_inlined = true;
  add_value(r, v, ir_node(r->g, OP_GROUP, DT_VOID, src, old->rank + 1u, NULL, 0));
  store_over(r, n, v, v->rank, v->coords);
}

/** GROUP(value; class) of a scan by classes. */
static const node *with_class(building *r, const node *n, const value *v, const node *body,
                              int64_t *classes) {
  *classes = n->ints[2];
  const node *index = body_element(r, n->src[1], v->coords);
  const node *src[] = {body, element_coordinate(r->g, index, ix_const(r->g, *classes))};
  return ir_node(r->g, OP_GROUP, DT_VOID, src, 2, NULL, 0);
}

static void add_scan(building *r, const node *n) {
  const node *x = n->src[0];
  size_t axis = (size_t)n->ints[1];
  value *v = value_of_tensor(r->g, n, n->rank, n->dims);
  const node *body = body_element(r, x, v->coords);
  v->memory.is_never_inlined = true;
  if (v->coords[axis]->op == OP_RANGE) {
    value_updates *u = arena_calloc(ir_arena(r->g), 1, sizeof *u);
    *u = (value_updates){.op = n->ints[0], .along = UINT64_C(1) << axis, .is_scan = true};
    if (n->n_src > 1) body = with_class(r, n, v, body, &u->classes);
    v->updates = u;
  } else {
    body = reduce_single(r, n, body);
  }
  add_value(r, v, body);
}

static void add_tensor_value(building *r, const node *n) {
  const join *j = map_get(&r->joins.of, n);
  if (j) {
    add_join(r, j);
    return;
  }
  switch (n->op) {
  case OP_SET: add_set(r, n); return;
  case OP_TO: value_is_copied_between_devices(n) ? add_opaque(r, n) : add_computed(r, n); return;
  case OP_CUSTOM:
  case OP_KERNEL:
  case OP_RESULT: add_opaque(r, n); return;
  case OP_PICK: add_pick(r, n); return;
  case OP_SCATTER: add_scatter(r, n); return;
  case OP_SCAN: add_scan(r, n); return;
  case OP_REDUCE: add_reduction(r, n); return;
  default: add_computed(r, n); return;
  }
}

/** Gives a tensor that is needed as an array one of its own. */
static void add_own_store(building *r, const node *x) {
  value *v = map_get(&r->out->of, x);
  if (!v) return;
  for (size_t i = 0; i < v->memory.stores.n; i++)
    if (v->memory.stores.at[i].array == x) return;
  add_store(r, v, x, v->rank, v->coords);
}

static void add_required_stores(building *r) {
  for (size_t i = 0; i < r->in->n_roots; i++) add_own_store(r, r->in->roots[i]);
  for (size_t i = 0; i < r->out->at.n; i++) {
    const value *v = r->out->at.at[i];
    if (v->memory.is_never_inlined && !v->memory.stores.n) add_own_store(r, v->tensor);
    for (size_t k = 0; k < v->inputs.arrays.n; k++) add_own_store(r, v->inputs.arrays.at[k]);
  }
}

typedef struct needed {
  map is;
  VEC(const value *) at;
} needed;

static void need_value(building *r, needed *to, const value *v) {
  if (!v || map_has(&to->is, v)) return;
  map_set(r->work, &to->is, v, NULL);
  vec_push(r->work, &to->at, v);
}

static void need_values(building *r, needed *to, const node_list *tensors) {
  for (size_t i = 0; i < tensors->n; i++) need_value(r, to, map_get(&r->out->of, tensors->at[i]));
}

/** Drops values that nothing reads any more. */
static void drop_unread(building *r) {
  needed all = {0};
  values *v = r->out;
  size_t n = v->at.n, kept = 0;
  for (size_t i = 0; i < n; i++)
    if (v->at.at[i]->memory.stores.n) need_value(r, &all, v->at.at[i]);
  for (size_t i = 0; i < all.at.n; i++) {
    need_values(r, &all, &all.at.at[i]->inputs.tensors);
    need_values(r, &all, &all.at.at[i]->inputs.arrays);
  }
  for (size_t i = 0; i < n; i++)
    if (map_has(&all.is, v->at.at[i])) v->at.at[kept++] = v->at.at[i];
  v->at.n = kept;
}

/** Rewrites that only pay together: the search, one step at a time, would not find them. */
static void rewrite_sums(building *r, const machine *m) {
  if (!m || !(r->math & MATH_REORDER)) return;
  factor_sums(r->g, r->out);
  online_softmax_apply(r->g, m, r->out);
  drop_unread(r);
}

static size_t count_sets(ir *g, const normalised *in) {
  arena_mark here = arena_save(ir_scratch(g));
  node_list order = topo_sort(ir_scratch(g), in->roots, in->n_roots, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += op_overwrites((op)order.at[i]->op);
  arena_rewind(ir_scratch(g), here);
  return n;
}

void values_build(ir *g, int math, const machine *m, const joins_policy *p, normalised *in,
                  values *out) {
  size_t sets = count_sets(g, in), resolved = 0;
  for (;;) {
    *out = (values){0};
    arena *work = ir_scratch(g);
    arena_mark here = arena_save(work);
    building r = {.g = g,
                  .a = ir_arena(g),
                  .work = work,
                  .math = math,
                  .m = m,
                  .policy = p,
                  .in = in,
                  .out = out};
    find_tensors(&r);
    for (size_t i = 0; i < r.tensors.n; i++) add_tensor_value(&r, r.tensors.at[i]);
    if (m) absorb_scans(g, m, in, out);
    if (m) scan_views_store(g, in, out);
    add_required_stores(&r);
    drop_unread(&r);
    rewrite_sums(&r, m);
    guarded_values_find(g, in, out);
    node_list conflicts = {0};
    arena_rewind(work, here);
    values_order(g, in, out, &conflicts);
    if (!conflicts.n) {
      values_set_devices(g, in, out);
      return;
    }
    resolved += conflicts.n;
    if (resolved > sets) /* once its readers have a copy, a SET waits for nothing after it */
      diag_raise(ir_diag(g), TN_ERR_INTERNAL, "copies do not order the SETs of a graph");
    versions_copy_for_readers(g, in, conflicts.at, conflicts.n);
  }
}
