/* Expands UNROLL and VECTOR ranges into copies and vector operations, inner loops first.

   UNROLL: END(r, effects), a loop, becomes a GROUP (list) of copies of the effects, r a constant in
   each. An ALLOC (allocation) that has r among its sources, its place, is a separate storage in
   each copy.

   VECTOR: nodes that depend on r get as many lanes as r has indices. Data is computed in vectors.
   Index arithmetic stays scalar, one copy a lane where it is not affine. A comparison of affine
   indices is one of a vector of numbers with a bound where data asks for it, and scalar where an
   address does. A load or store of stride 1
   or −1 is one vector access, any other one access a lane. An array in scratch memory whose place
   is inside r holds each element once for every lane, side by side. */
#include "codegen/codegen.h"
#include "codegen/lower/memory_access.h"
#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/kernel_estimates.h"

/* UNROLL. */

/** The copies of one END's effects. */
typedef struct unroller {
  ir *g;
  arena *a;
  const node *body;
  map old; /* nodes that a copy may replace, and their sources */
} unroller;

static bool is_in_loops(const node *n, void *user) {
  (void)user;
  return n->free->n > 0;
}

static bool is_not_old(const node *n, void *user) { return !map_has(user, n); }

/** The sources of a copied node, without r as a place, which is a constant now. */
static size_t copied_sources(const map *image, const node *n, const node *src[]) {
  size_t count = 0;
  for (uint32_t k = 0; k < n->n_src; k++)
    if (!node_is_scope_source(n, k) || !node_is_const(n->src[k]))
      src[count++] = map_get(image, n->src[k]);
  return count;
}

/** A copied node. Storage gets a new number. An AFTER with r as a source reads states carried
   around r, so it follows the effects of the copy before. */
static const node *finish_copy(unroller *u, const map *image, const node *n, const node *before) {
  const node **src = arena_alloc(u->a, (n->n_src + 1) * sizeof *src);
  size_t count = copied_sources(image, n, src);
  if (count < n->n_src && n->op == OP_AFTER && before) src[count++] = before;
  bool is_storage = n->op == OP_ALLOC;
  if (!is_storage && node_n_operands(n) == n->n_src) return subst_rebuild(u->g, n, src);
  node_spec s = node_spec_with_sources(n, src, count);
  int64_t *numbers = arena_copy(u->a, n->ints, n->n_int * sizeof *numbers);
  if (is_storage) numbers[0] = ir_fresh_id(u->g);
  s.ints = numbers;
  return ir_make(u->g, &s);
}

/** The effects for index i, after those of the copy before. */
static const node *copy_effects(unroller *u, const node *r, int64_t i, const node *before) {
  map with = {0}, image = {0};
  map_set(u->a, &with, r, (void *)ix_const(u->g, i));
  const node *copy = subst_fresh_ranges(u->g, u->body, &with);
  node_list order = topo_sort(u->a, &copy, 1, is_not_old, &u->old);
  for (size_t k = 0; k < order.n; k++) {
    const node *n = order.at[k];
    map_set(u->a, &image, n,
            (void *)(is_not_old(n, &u->old) ? finish_copy(u, &image, n, before) : n));
  }
  return map_get(&image, copy);
}

static const node *unroll_loop(ir *g, const node *end) {
  unroller u = {.g = g, .a = ir_arena(g)};
  u.body = ir_node(g, OP_GROUP, DT_VOID, end->src + 1, end->n_src - 1, NULL, 0);
  node_list order = topo_sort(u.a, &u.body, 1, is_in_loops, NULL);
  for (size_t i = 0; i < order.n; i++) map_set(u.a, &u.old, order.at[i], (void *)order.at[i]);
  int64_t n = node_int(range_extent(end->src[0]));
  const node **copies = arena_alloc(u.a, (size_t)n * sizeof *copies);
  for (int64_t i = 0; i < n; i++)
    copies[i] = copy_effects(&u, end->src[0], i, i ? copies[i - 1] : NULL);
  return ir_node(g, OP_GROUP, DT_VOID, copies, (size_t)n, NULL, 0);
}

/* VECTOR. */

typedef struct vectoriser {
  ir *g;
  arena *a;
  const node *range;
  uint16_t lanes;
  map vectors;  /* node of data, storage, effect or comparison → its vector form */
  map per_lane; /* node of index logic → const node *[lanes] */
  map states;   /* register of a scan → its state after the step in each lane */
} vectoriser;

static bool depends(const vectoriser *v, const node *n) { return node_is_free_in(v->range, n); }

static const node *make_vector_op(vectoriser *v, op o, dtype t, const node *const src[], size_t n,
                                  const node *like) {
  return ir_make(v->g, &(node_spec){.op = o,
                                    .dtype = t,
                                    .lanes = v->lanes,
                                    .src = src,
                                    .n_src = n,
                                    .ints = like ? like->ints : NULL,
                                    .n_int = like ? like->n_int : 0});
}

static const node *vectorize_lanes(vectoriser *v, dtype t, const node *const lanes[]) {
  return make_vector_op(v, OP_VECTORIZE, t, lanes, v->lanes, NULL);
}

/** A value as a vector: splat, vector form, or gathered lanes. */
static const node *vector_of(vectoriser *v, const node *n) {
  if (!depends(v, n)) return make_vector_op(v, OP_SPLAT, (dtype)n->dtype, &n, 1, NULL);
  const node *w = map_get(&v->vectors, n);
  return w ? w : vectorize_lanes(v, (dtype)n->dtype, map_get(&v->per_lane, n));
}

static const node *extract_lane(vectoriser *v, const node *value, uint16_t i) {
  int64_t k = i;
  return ir_make(v->g, &(node_spec){.op = OP_EXTRACT,
                                    .dtype = (dtype)value->dtype,
                                    .src = &value,
                                    .n_src = 1,
                                    .ints = &k,
                                    .n_int = 1});
}

/** One lane of any value. */
static const node *lane_of(vectoriser *v, const node *n, uint16_t i) {
  if (!depends(v, n)) return n;
  const node *const *each = map_get(&v->per_lane, n);
  return each ? each[i] : extract_lane(v, map_get(&v->vectors, n), i);
}

/** The vector form of a node that is no data: storage or an effect. */
static const node *vector_form(vectoriser *v, const node *n) {
  const node *w = map_get(&v->vectors, n);
  return w ? w : n;
}

static bool has_index_source(const node *n) {
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i]->dtype == DT_INDEX) return true;
  return false;
}

/** True for index arithmetic, comparisons of it and conversions from it: scalar, lane by lane. */
static bool is_index_logic(const vectoriser *v, const node *n) {
  if (n->dtype == DT_INDEX) return true;
  if (!op_is_elementwise((op)n->op) || (n->dtype != DT_BOOL && !has_index_source(n))) return false;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (depends(v, n->src[i]) && !map_has(&v->per_lane, n->src[i])) return false;
  return true;
}

static void copy_per_lane(vectoriser *v, const node *n) {
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  for (uint16_t i = 0; i < v->lanes; i++) {
    if (n == v->range) {
      each[i] = ix_const(v->g, i);
      continue;
    }
    for (uint32_t k = 0; k < n->n_src; k++) src[k] = lane_of(v, n->src[k], i);
    each[i] = subst_rebuild(v->g, n, src);
  }
  map_set(v->a, &v->per_lane, n, each);
}

/* Comparisons of indices: base + stride·r < 0 for all lanes is {0, stride, 2·stride, …} < −base. */

/** The narrowest of 32 and 64 bits that holds an index and the numbers up to `most` or down to it.
 */
static dtype compared_type(const node *bound, int64_t most) {
  const int64_t limit = INT32_MAX;
  bool fits = bound->lo > -limit && bound->hi < limit && most > -limit && most < limit;
  return fits ? DT_I32 : DT_I64;
}

/** The numbers 0, stride, 2·stride, … as a vector. */
static const node *multiples(vectoriser *v, dtype t, int64_t stride) {
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  for (uint16_t i = 0; i < v->lanes; i++) each[i] = ir_const_int(v->g, t, stride * i);
  return vectorize_lanes(v, t, each);
}

/** The vector form of a comparison of indices; NULL: their difference is not affine in the range.
 */
static const node *compare_indices(vectoriser *v, const node *n) {
  int64_t stride;
  const node *difference = ix_sub(v->g, n->src[0], n->src[1]);
  if (!address_has_stride(v->g, v->range, difference, &stride)) return NULL;
  if (stride <= -INT32_MAX || stride >= INT32_MAX) return NULL;
  const node *base = ix_sub(v->g, difference, ix_scale(v->g, v->range, stride));
  const node *bound = ix_scale(v->g, base, -1);
  dtype t = compared_type(bound, stride * (v->lanes - 1));
  const node *src[] = {multiples(v, t, stride), vector_of(v, ir_cast(v->g, bound, t))};
  return make_vector_op(v, (op)n->op, DT_BOOL, src, 2, NULL);
}

/** Logic on indices that data may ask for: the vector form of comparisons, and of logic on these.
 */
static void add_vector_logic(vectoriser *v, const node *n) {
  const node *made = NULL;
  if (n->dtype != DT_BOOL || !n->n_src) return;
  if (n->src[0]->dtype == DT_INDEX) {
    if (op_facts_of((op)n->op)->type == TYPE_COMPARE) made = compare_indices(v, n);
  } else {
    const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
    bool has_vector = false;
    for (uint32_t i = 0; i < n->n_src; i++) {
      has_vector |= map_has(&v->vectors, n->src[i]);
      src[i] = vector_of(v, n->src[i]);
    }
    if (has_vector) made = make_vector_op(v, (op)n->op, DT_BOOL, src, n->n_src, n);
  }
  if (made) map_set(v->a, &v->vectors, n, (void *)made);
}

/* Addresses: WHERE(mask, base ± r, INVALID) are consecutive if mask and base are free of r. */

/** The lowest of the lanes' addresses, if these are consecutive, from lane 0 upwards or downwards;
    else NULL. */
static const node *consecutive_base(vectoriser *v, const node *address, bool *is_reversed) {
  const node *mask, *a = memory_access_unmask(address, &mask);
  int64_t stride;
  if (!address_has_stride(v->g, v->range, a, &stride) || (stride != 1 && stride != -1)) return NULL;
  if (mask && depends(v, mask)) return NULL;
  const node *base = ix_sub(v->g, a, ix_scale(v->g, v->range, stride));
  *is_reversed = stride < 0;
  if (*is_reversed) base = ix_add_const(v->g, base, 1 - v->lanes);
  return mask ? ir_op3(v->g, OP_WHERE, mask, base, address->src[2]) : base;
}

static bool is_register(const node *s) {
  const node *root = node_storage_root(s);
  return root->op == OP_ALLOC && root->ints[1] == 0;
}

/** True for scratch memory whose place is inside the range: each element has its lanes side by
 * side. */
static bool holds_lanes(const vectoriser *v, const node *s) {
  const node *root = node_storage_root(s);
  return root->op == OP_ALLOC && root->ints[1] == 1 && depends(v, root);
}

/** The address of one lane's element in such memory. */
static const node *address_in_lanes(vectoriser *v, const node *address, uint16_t i) {
  const node *mask, *a = memory_access_unmask(address, &mask);
  if (a->op == OP_INVALID) return a;
  a = ix_add_const(v->g, ix_scale(v->g, a, v->lanes), i);
  return mask ? ir_op3(v->g, OP_WHERE, mask, a, address->src[2]) : a;
}

/** The address of a vector access that reaches all lanes, the last one first if `*is_reversed`;
   else NULL. The lanes of bools, which are masks in registers, are not reversed. */
static const node *vector_address(vectoriser *v, const node *storage, const node *address, dtype t,
                                  bool *is_reversed) {
  *is_reversed = false;
  if (is_register(storage)) return address;
  if (!holds_lanes(v, storage)) {
    const node *base = consecutive_base(v, address, is_reversed);
    return *is_reversed && t == DT_BOOL ? NULL : base;
  }
  return depends(v, address) ? NULL : address_in_lanes(v, address, 0);
}

static const node *lane_address(vectoriser *v, const node *storage, const node *address,
                                uint16_t i) {
  const node *a = lane_of(v, address, i);
  return holds_lanes(v, storage) ? address_in_lanes(v, a, i) : a;
}

/** A vector with its lanes in reverse order. */
static const node *reverse_lanes(vectoriser *v, const node *x) {
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  for (uint16_t i = 0; i < v->lanes; i++)
    each[i] = extract_lane(v, x, (uint16_t)(v->lanes - 1 - i));
  return vectorize_lanes(v, (dtype)x->dtype, each);
}

static void vectorise_load(vectoriser *v, const node *n) {
  const node *at = vector_form(v, n->src[0]), *address = n->src[1];
  bool is_reversed;
  const node *base = vector_address(v, n->src[0], address, (dtype)n->dtype, &is_reversed);
  if (base) {
    const node *src[] = {at, base};
    const node *loaded = make_vector_op(v, OP_LOAD, (dtype)n->dtype, src, 2, NULL);
    map_set(v->a, &v->vectors, n, (void *)(is_reversed ? reverse_lanes(v, loaded) : loaded));
    return;
  }
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  for (uint16_t i = 0; i < v->lanes; i++) {
    const node *src[] = {at, lane_address(v, n->src[0], address, i)};
    each[i] = ir_node(v->g, OP_LOAD, (dtype)n->dtype, src, 2, NULL, 0);
  }
  map_set(v->a, &v->vectors, n, (void *)vectorize_lanes(v, (dtype)n->dtype, each));
}

/** A store with other operands and the same place. */
static const node *store_with(vectoriser *v, const node *n, const node *to, const node *address,
                              const node *value) {
  const node **src = arena_copy(v->a, n->src, n->n_src * sizeof *src);
  src[0] = to;
  src[1] = address;
  src[2] = value;
  return ir_node(v->g, OP_STORE, DT_VOID, src, n->n_src, NULL, 0);
}

static void vectorise_store(vectoriser *v, const node *n) {
  const node *at = vector_form(v, n->src[0]), *address = n->src[1], *result;
  const node *value = vector_of(v, n->src[2]);
  bool is_reversed;
  const node *base = vector_address(v, n->src[0], address, (dtype)value->dtype, &is_reversed);
  if (base) {
    result = store_with(v, n, at, base, is_reversed ? reverse_lanes(v, value) : value);
  } else {
    const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
    for (uint16_t i = 0; i < v->lanes; i++)
      each[i] =
          store_with(v, n, at, lane_address(v, n->src[0], address, i), extract_lane(v, value, i));
    result = ir_node(v->g, OP_GROUP, DT_VOID, each, v->lanes, NULL, 0);
  }
  map_set(v->a, &v->vectors, n, (void *)result);
}

/* Scans: a register outside of the range, stepped in each lane. */

/** True for an access of such a register, and for its AFTERs. */
static bool is_carried(const vectoriser *v, const node *n) {
  const node *s = n->op == OP_LOAD || n->op == OP_STORE ? n->src[0] : n;
  return (s == n ? n->op == OP_AFTER : true) && is_register(s) && !depends(v, node_storage_root(s));
}

/** A vector moved up by some lanes, with a value in those that become free. */
static const node *shift_lanes(vectoriser *v, const node *x, uint16_t by, const node *fill) {
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  for (uint16_t i = 0; i < v->lanes; i++)
    each[i] = i < by ? fill : extract_lane(v, x, (uint16_t)(i - by));
  return vectorize_lanes(v, (dtype)x->dtype, each);
}

/** In lane i, lanes 0 to i of a vector combined. */
static const node *scan_lanes(vectoriser *v, op o, const node *x) {
  uint64_t neutral = 0;
  op_identity(o, (dtype)x->dtype, &neutral);
  const node *fill = ir_const_bits(v->g, (dtype)x->dtype, neutral);
  for (uint16_t by = 1; by < v->lanes; by = (uint16_t)(2 * by)) {
    const node *src[] = {shift_lanes(v, x, by, fill), x};
    x = make_vector_op(v, o, (dtype)x->dtype, src, 2, NULL);
  }
  return x;
}

/** The step of a state: all lanes' terms. The state is combined with the last lane alone, which is
    the only op from vector to vector; the lanes' states are made from the state before. */
static void vectorise_step(vectoriser *v, const node *store) {
  const node *step = store->src[2], *at = vector_form(v, store->src[0]);
  int own = step->src[0]->op == OP_LOAD && step->src[0]->src[0] == store->src[0];
  const node *before =
      ir_node(v->g, OP_LOAD, (dtype)step->dtype, (const node *[]){at, store->src[1]}, 2, NULL, 0);
  const node *lanes = scan_lanes(v, (op)step->op, vector_of(v, step->src[own]));
  const node *last =
      ir_op2(v->g, (op)step->op, before, extract_lane(v, lanes, (uint16_t)(v->lanes - 1)));
  const node *src[] = {make_vector_op(v, OP_SPLAT, (dtype)step->dtype, &before, 1, NULL), lanes};
  map_set(v->a, &v->vectors, store, (void *)store_with(v, store, at, store->src[1], last));
  map_set(v->a, &v->states, node_storage_root(store->src[0]),
          (void *)make_vector_op(v, (op)step->op, (dtype)step->dtype, src, 2, NULL));
}

/** An AFTER of a state loses the range; a load of it is that of all lanes after their steps, or of
    none before them, which only the step asks for. */
static void vectorise_state(vectoriser *v, const node *n) {
  const node *state;
  switch (n->op) {
  case OP_STORE: vectorise_step(v, n); return;
  case OP_LOAD:
    state = map_get(&v->states, node_storage_root(n->src[0]));
    map_set(v->a, &v->vectors, n, (void *)(state ? state : n));
    return;
  default: break;
  }
  node_list src = {0};
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i] != v->range || !node_is_scope_source(n, i))
      vec_push(v->a, &src, vector_form(v, n->src[i]));
  node_spec s = node_spec_with_sources(n, src.at, src.n);
  map_set(v->a, &v->vectors, n, (void *)ir_make(v->g, &s));
}

/** ALLOC, AFTER, END and GROUP lose the range as a source; registers get lanes, scratch memory
 * grows. */
static void vectorise_structure(vectoriser *v, const node *n) {
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  size_t count = 0;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i] != v->range || !node_is_scope_source(n, i))
      src[count++] = vector_form(v, n->src[i]);
  bool is_vector = is_register(n) && n->op != OP_END && n->op != OP_GROUP;
  if (n->op == OP_ALLOC && !is_vector) src[0] = ix_scale(v->g, src[0], v->lanes);
  node_spec s = node_spec_with_sources(n, src, count);
  s.lanes = is_vector ? v->lanes : 1;
  map_set(v->a, &v->vectors, n, (void *)ir_make(v->g, &s));
}

static void vectorise_node(vectoriser *v, const node *n) {
  if (is_carried(v, n)) {
    vectorise_state(v, n);
    return;
  }
  if (is_index_logic(v, n)) {
    copy_per_lane(v, n);
    add_vector_logic(v, n);
    return;
  }
  switch (n->op) {
  case OP_LOAD: vectorise_load(v, n); return;
  case OP_STORE: vectorise_store(v, n); return;
  default: break;
  }
  if (!op_is_elementwise((op)n->op)) {
    vectorise_structure(v, n);
    return;
  }
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = vector_of(v, n->src[i]);
  map_set(v->a, &v->vectors, n,
          (void *)make_vector_op(v, (op)n->op, (dtype)n->dtype, src, n->n_src, n));
}

static bool depends_on_range(const node *n, void *user) { return depends(user, n); }

static const node *vectorise_loop(ir *g, const node *end) {
  vectoriser v = {.g = g,
                  .a = ir_arena(g),
                  .range = end->src[0],
                  .lanes = (uint16_t)node_int(range_extent(end->src[0]))};
  const node **effects = arena_alloc(v.a, end->n_src * sizeof *effects);
  node_list order = topo_sort(v.a, end->src + 1, end->n_src - 1, depends_on_range, &v);
  for (size_t i = 0; i < order.n; i++)
    if (depends(&v, order.at[i])) vectorise_node(&v, order.at[i]);
  for (uint32_t i = 1; i < end->n_src; i++) effects[i - 1] = vector_form(&v, end->src[i]);
  return ir_node(g, OP_GROUP, DT_VOID, effects, end->n_src - 1, NULL, 0);
}

/* GROUPs: effects that stand for one node until here are listed by their users. */

typedef VEC(const node *) members;

static void add_effects(arena *a, const map *image, const node *effect, members *out) {
  const node *n = map_get(image, effect);
  if (n->op != OP_GROUP) {
    vec_push(a, out, n);
    return;
  }
  for (uint32_t i = 0; i < n->n_src; i++) vec_push(a, out, n->src[i]);
}

/** The graph without GROUPs. Their members are flat, as sources come first. */
static const node *dissolve_groups(ir *g, const node *sink) {
  arena *a = ir_arena(g);
  map image = {0};
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    members src = {0};
    for (uint32_t k = 0; k < n->n_src; k++) add_effects(a, &image, n->src[k], &src);
    node_spec s = node_spec_with_sources(n, src.at, src.n);
    bool same = src.n == n->n_src; /* rebuilding makes index arithmetic canonical again */
    map_set(a, &image, n, (void *)(same ? subst_rebuild(g, n, src.at) : ir_make(g, &s)));
  }
  return map_get(&image, sink);
}

/** The expansion of a node whose sources are expanded. */
static const node *expand_node(ir *g, const node *n) {
  if (n->op != OP_END) return n;
  switch (range_kind_of(n->src[0])) {
  case KIND_UNROLL: return unroll_loop(g, n);
  case KIND_VECTOR: return vectorise_loop(g, n);
  default: return n;
  }
}

const node *codegen_expand(ir *g, const node *sink) {
  arena *a = ir_arena(g);
  map image = {0};
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], **src = arena_alloc(a, n->n_src * sizeof *src);
    bool changed = false;
    for (uint32_t k = 0; k < n->n_src; k++) {
      src[k] = map_get(&image, n->src[k]);
      changed |= src[k] != n->src[k];
    }
    map_set(a, &image, n, (void *)expand_node(g, changed ? subst_rebuild(g, n, src) : n));
  }
  return dissolve_groups(g, map_get(&image, sink));
}
