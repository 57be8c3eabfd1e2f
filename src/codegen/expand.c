/* UNROLL and VECTOR ranges disappear.

   UNROLL: END(r, effects) → GROUP of copies of the effects with r a constant; an ALLOC whose place
   is inside r has r among its sources: each copy gets storage of its own.
   VECTOR: what depends on r gets as many lanes as r has values. Data is computed in vectors; index
   arithmetic stays scalar, once for each lane where it is not affine; a load or store at
   consecutive addresses is one vector access, any other one access a lane. Scratch memory whose
   place is inside has its elements once for each lane. */
#include "codegen/codegen.h"
#include "ir/binder.h"
#include "ir/subst.h"
#include "ir/topo.h"

/* UNROLL. */

/** The copies of what an END closes. */
typedef struct unroller {
  ir *g;
  arena *a;
  const node *body;
  map old; /* what may change in a copy, and what that uses */
} unroller;

static bool is_in_loops(const node *n, void *user) {
  (void)user;
  return n->free->n > 0;
}

static bool is_new(const node *n, void *user) { return !map_has(user, n); }

/** The sources of a node of a copy: not r, now a constant, as a place. */
static size_t settled_sources(const map *image, const node *n, const node *src[]) {
  size_t count = 0;
  for (uint32_t k = 0; k < n->n_src; k++)
    if (!node_is_place(n, k) || !node_is_const(n->src[k])) src[count++] = map_get(image, n->src[k]);
  return count;
}

/** A node of a copy. Its storage has a number of its own, and what it finds in states carried
    around r is what the copy before it left. */
static const node *settled(unroller *u, const map *image, const node *n, const node *before) {
  const node **src = arena_alloc(u->a, (n->n_src + 1) * sizeof *src);
  size_t count = settled_sources(image, n, src);
  if (count < n->n_src && n->op == OP_AFTER && before) src[count++] = before;
  bool is_storage = n->op == OP_ALLOC;
  if (!is_storage && node_values(n) == n->n_src) return subst_rebuild(u->g, n, src);
  node_spec s = ir_spec(n, src, count);
  int64_t numbers[2];
  if (is_storage) {
    numbers[0] = ir_fresh(u->g);
    numbers[1] = n->ints[1];
    s.ints = numbers;
  }
  return ir_make(u->g, &s);
}

/** The body for index i. */
static const node *copy_of_body(unroller *u, const node *r, int64_t i, const node *before) {
  map with = {0}, image = {0};
  map_set(u->a, &with, r, (void *)ix_const(u->g, i));
  const node *copy = subst_copy(u->g, u->body, &with);
  node_list order = topo_sort(u->a, &copy, 1, is_new, &u->old);
  for (size_t k = 0; k < order.n; k++) {
    const node *n = order.at[k];
    map_set(u->a, &image, n, (void *)(is_new(n, &u->old) ? settled(u, &image, n, before) : n));
  }
  return map_get(&image, copy);
}

static const node *unrolled(ir *g, const node *end) {
  unroller u = {.g = g, .a = ir_arena(g)};
  u.body = ir_node(g, OP_GROUP, DT_VOID, end->src + 1, end->n_src - 1, NULL, 0);
  node_list order = topo_sort(u.a, &u.body, 1, is_in_loops, NULL);
  for (size_t i = 0; i < order.n; i++) map_set(u.a, &u.old, order.at[i], (void *)order.at[i]);
  int64_t n = node_int(range_extent(end->src[0]));
  const node **copies = arena_alloc(u.a, (size_t)n * sizeof *copies);
  for (int64_t i = 0; i < n; i++)
    copies[i] = copy_of_body(&u, end->src[0], i, i ? copies[i - 1] : NULL);
  return ir_node(g, OP_GROUP, DT_VOID, copies, (size_t)n, NULL, 0);
}

/* VECTOR. */

typedef struct vectoriser {
  ir *g;
  arena *a;
  const node *range;
  uint16_t lanes;
  map whole; /* node → its vector (data, storage, effects) */
  map each;  /* index logic node → const node *[lanes] */
} vectoriser;

static bool depends(const vectoriser *v, const node *n) { return node_is_free_in(v->range, n); }

static const node *with_lanes(vectoriser *v, op o, dtype t, const node *const src[], size_t n,
                              const node *like) {
  return ir_make(v->g, &(node_spec){.op = o,
                                    .dtype = t,
                                    .lanes = v->lanes,
                                    .src = src,
                                    .n_src = n,
                                    .ints = like ? like->ints : NULL,
                                    .n_int = like ? like->n_int : 0});
}

static const node *gathered(vectoriser *v, dtype t, const node *const lane[]) {
  return with_lanes(v, OP_VECTORIZE, t, lane, v->lanes, NULL);
}

/** A data value as a vector. */
static const node *vector(vectoriser *v, const node *n) {
  if (!depends(v, n)) return with_lanes(v, OP_SPLAT, (dtype)n->dtype, &n, 1, NULL);
  const node *w = map_get(&v->whole, n);
  return w ? w : gathered(v, (dtype)n->dtype, map_get(&v->each, n));
}

/** One lane of a vector. */
static const node *extracted(vectoriser *v, const node *value, uint16_t i) {
  int64_t k = i;
  return ir_make(v->g, &(node_spec){.op = OP_EXTRACT,
                                    .dtype = (dtype)value->dtype,
                                    .src = &value,
                                    .n_src = 1,
                                    .ints = &k,
                                    .n_int = 1});
}

/** One lane of any value. */
static const node *lane(vectoriser *v, const node *n, uint16_t i) {
  if (!depends(v, n)) return n;
  const node *const *each = map_get(&v->each, n);
  return each ? each[i] : extracted(v, map_get(&v->whole, n), i);
}

/** Storage and other operands that are no data: replaced as wholes. */
static const node *operand(vectoriser *v, const node *n) {
  const node *w = map_get(&v->whole, n);
  return w ? w : n;
}

static bool has_index_source(const node *n) {
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i]->dtype == DT_INDEX) return true;
  return false;
}

/** Index arithmetic, conditions on it and conversions from it: kept scalar, lane by lane. */
static bool is_index_logic(const vectoriser *v, const node *n) {
  if (n->dtype == DT_INDEX) return true;
  if (!op_is_elementwise((op)n->op) || (n->dtype != DT_BOOL && !has_index_source(n))) return false;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (depends(v, n->src[i]) && !map_has(&v->each, n->src[i])) return false;
  return true;
}

static void each_lane(vectoriser *v, const node *n) {
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  for (uint16_t i = 0; i < v->lanes; i++) {
    if (n == v->range) {
      each[i] = ix_const(v->g, i);
      continue;
    }
    for (uint32_t k = 0; k < n->n_src; k++) src[k] = lane(v, n->src[k], i);
    each[i] = subst_rebuild(v->g, n, src);
  }
  map_set(v->a, &v->each, n, each);
}

/* Addresses: WHERE(gate, base + r, INVALID) with gate and base free of r is consecutive. */

static const node *ungated(const node *address, const node **gate) {
  bool gated = address->op == OP_WHERE && address->src[2]->op == OP_INVALID;
  *gate = gated ? address->src[0] : NULL;
  return gated ? address->src[1] : address;
}

/** The address of lane 0 if the lanes' addresses are consecutive; else NULL. */
static const node *consecutive(vectoriser *v, const node *address) {
  const node *gate, *a = ungated(address, &gate);
  if (!depends(v, a) || ix_coefficient(a, v->range) != 1 || (gate && depends(v, gate))) return NULL;
  const node *base = ix_sub(v->g, a, v->range);
  if (depends(v, base)) return NULL;
  return gate ? ir_op3(v->g, OP_WHERE, gate, base, address->src[2]) : base;
}

static bool is_register(const node *s) {
  const node *root = node_storage_root(s);
  return root->op == OP_ALLOC && root->ints[1] == 0;
}

/** Scratch memory whose place is inside the range: each lane has its own, the lanes side by side.
 */
static bool is_in_lanes(const vectoriser *v, const node *s) {
  const node *root = node_storage_root(s);
  return root->op == OP_ALLOC && root->ints[1] == 1 && depends(v, root);
}

/** The address, in such memory, of what one lane has at `address`. */
static const node *in_lane(vectoriser *v, const node *address, uint16_t i) {
  const node *gate, *a = ungated(address, &gate);
  if (a->op == OP_INVALID) return a;
  a = ix_add_const(v->g, ix_scale(v->g, a, v->lanes), i);
  return gate ? ir_op3(v->g, OP_WHERE, gate, a, address->src[2]) : a;
}

/** The address of lane 0 if one access does for all lanes; else NULL. */
static const node *whole_address(vectoriser *v, const node *storage, const node *address) {
  if (is_register(storage)) return address;
  if (!is_in_lanes(v, storage)) return consecutive(v, address);
  return depends(v, address) ? NULL : in_lane(v, address, 0);
}

static const node *lane_address(vectoriser *v, const node *storage, const node *address,
                                uint16_t i) {
  const node *a = lane(v, address, i);
  return is_in_lanes(v, storage) ? in_lane(v, a, i) : a;
}

static void vector_load(vectoriser *v, const node *n) {
  const node *at = operand(v, n->src[0]), *address = n->src[1];
  const node *base = whole_address(v, n->src[0], address);
  if (base) {
    const node *src[] = {at, base};
    map_set(v->a, &v->whole, n, (void *)with_lanes(v, OP_LOAD, (dtype)n->dtype, src, 2, NULL));
    return;
  }
  const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
  for (uint16_t i = 0; i < v->lanes; i++) {
    const node *src[] = {at, lane_address(v, n->src[0], address, i)};
    each[i] = ir_node(v->g, OP_LOAD, (dtype)n->dtype, src, 2, NULL, 0);
  }
  map_set(v->a, &v->whole, n, (void *)gathered(v, (dtype)n->dtype, each));
}

/** A store like another one, in the same place. */
static const node *store_like(vectoriser *v, const node *n, const node *to, const node *address,
                              const node *value) {
  const node **src = arena_copy(v->a, n->src, n->n_src * sizeof *src);
  src[0] = to;
  src[1] = address;
  src[2] = value;
  return ir_node(v->g, OP_STORE, DT_VOID, src, n->n_src, NULL, 0);
}

static void vector_store(vectoriser *v, const node *n) {
  const node *at = operand(v, n->src[0]), *address = n->src[1], *result;
  const node *base = whole_address(v, n->src[0], address), *value = vector(v, n->src[2]);
  if (base) {
    result = store_like(v, n, at, base, value);
  } else {
    const node **each = arena_alloc(v->a, v->lanes * sizeof *each);
    for (uint16_t i = 0; i < v->lanes; i++)
      each[i] =
          store_like(v, n, at, lane_address(v, n->src[0], address, i), extracted(v, value, i));
    result = ir_node(v->g, OP_GROUP, DT_VOID, each, v->lanes, NULL, 0);
  }
  map_set(v->a, &v->whole, n, (void *)result);
}

/** ALLOC, AFTER, END, GROUP: the range goes from their sources. */
static void without_range(vectoriser *v, const node *n) {
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  size_t count = 0;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i] != v->range || !node_is_place(n, i)) src[count++] = operand(v, n->src[i]);
  bool wide = is_register(n) && n->op != OP_END && n->op != OP_GROUP;
  if (n->op == OP_ALLOC && !wide) src[0] = ix_scale(v->g, src[0], v->lanes);
  node_spec s = ir_spec(n, src, count);
  s.lanes = wide ? v->lanes : 1;
  map_set(v->a, &v->whole, n, (void *)ir_make(v->g, &s));
}

static void vectorise_node(vectoriser *v, const node *n) {
  if (is_index_logic(v, n)) {
    each_lane(v, n);
    return;
  }
  switch (n->op) {
  case OP_LOAD: vector_load(v, n); return;
  case OP_STORE: vector_store(v, n); return;
  default: break;
  }
  if (!op_is_elementwise((op)n->op)) {
    without_range(v, n);
    return;
  }
  const node **src = arena_alloc(v->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = vector(v, n->src[i]);
  map_set(v->a, &v->whole, n, (void *)with_lanes(v, (op)n->op, (dtype)n->dtype, src, n->n_src, n));
}

static bool depends_on_range(const node *n, void *user) { return depends(user, n); }

static const node *vectorised(ir *g, const node *end) {
  vectoriser v = {.g = g,
                  .a = ir_arena(g),
                  .range = end->src[0],
                  .lanes = (uint16_t)node_int(range_extent(end->src[0]))};
  const node **effects = arena_alloc(v.a, end->n_src * sizeof *effects);
  node_list order = topo_sort(v.a, end->src + 1, end->n_src - 1, depends_on_range, &v);
  for (size_t i = 0; i < order.n; i++)
    if (depends(&v, order.at[i])) vectorise_node(&v, order.at[i]);
  for (uint32_t i = 1; i < end->n_src; i++) effects[i - 1] = operand(&v, end->src[i]);
  return ir_node(g, OP_GROUP, DT_VOID, effects, end->n_src - 1, NULL, 0);
}

/* GROUPs were for keeping several effects as one node; their members take their places. */

typedef VEC(const node *) members;

static void add_members(arena *a, const map *image, const node *effect, members *out) {
  const node *n = map_get(image, effect);
  if (n->op != OP_GROUP) {
    vec_push(a, out, n);
    return;
  }
  for (uint32_t i = 0; i < n->n_src; i++) vec_push(a, out, n->src[i]);
}

/** A group's members are flat: its sources come first. */
static const node *ungrouped(ir *g, const node *sink) {
  arena *a = ir_arena(g);
  map image = {0};
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    members src = {0};
    for (uint32_t k = 0; k < n->n_src; k++) add_members(a, &image, n->src[k], &src);
    node_spec s = ir_spec(n, src.at, src.n);
    bool same = src.n == n->n_src; /* index arithmetic is put in canonical form again */
    map_set(a, &image, n, (void *)(same ? subst_rebuild(g, n, src.at) : ir_make(g, &s)));
  }
  return map_get(&image, sink);
}

/** What stands for a node whose sources are expanded. */
static const node *expanded(ir *g, const node *n) {
  if (n->op != OP_END) return n;
  switch (range_kind_of(n->src[0])) {
  case KIND_UNROLL: return unrolled(g, n);
  case KIND_VECTOR: return vectorised(g, n);
  default: return n;
  }
}

/** Sources come first, so inner loops do before outer ones. */
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
    map_set(a, &image, n, (void *)expanded(g, changed ? subst_rebuild(g, n, src) : n));
  }
  return ungrouped(g, map_get(&image, sink));
}
