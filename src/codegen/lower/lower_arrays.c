/* Builds the parts of a lowered kernel: storage, loads, stores, loops, and loops that copy or fill
   whole arrays. */
#include "codegen/lower/lowering.h"
#include "ir/index/row_major_address.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"
#include "laws/laws.h"

enum { SPACE_REGISTER, SPACE_SCRATCH };

const node *lower_node(lowering *l, const node *n) { return map_get(&l->image, n); }

const node **lower_nodes(lowering *l, const node *const *from, size_t n) {
  const node **to = arena_alloc(l->a, n * sizeof *to);
  for (size_t i = 0; i < n; i++) to[i] = lower_node(l, from[i]);
  return to;
}

static const node *alloc_make(lowering *l, dtype t, const node *binder, const node *size,
                              int64_t space) {
  const range_set *place = map_get(&l->places, binder);
  const node **src = arena_alloc(l->a, (place->n + 1) * sizeof *src);
  src[0] = size;
  for (uint32_t i = 0; i < place->n; i++) src[i + 1] = lower_node(l, place->at[i]);
  int64_t ints[] = {ir_fresh_id(l->g), space};
  return ir_node(l->g, OP_ALLOC, t, src, place->n + 1, ints, 2);
}

const node *lower_after(lowering *l, const node *storage, const node *const *effects, size_t n,
                        const node *const *ranges, size_t n_ranges) {
  const node **src = arena_alloc(l->a, (n + n_ranges + 1) * sizeof *src);
  src[0] = storage;
  for (size_t i = 0; i < n; i++) src[i + 1] = effects[i];
  for (size_t i = 0; i < n_ranges; i++) src[n + i + 1] = ranges[i];
  return ir_node(l->g, OP_AFTER, (dtype)storage->dtype, src, n + n_ranges + 1, NULL, 0);
}

const node *lower_load(lowering *l, dtype t, const node *storage, const node *address) {
  return ir_node(l->g, OP_LOAD, t, (const node *[]){storage, address}, 2, NULL, 0);
}

const node *lower_store(lowering *l, const node *storage, const node *address, const node *value) {
  return ir_node(l->g, OP_STORE, DT_VOID, (const node *[]){storage, address, value}, 3, NULL, 0);
}

const node *lower_group(lowering *l, const node_list *effects) {
  if (effects->n == 1) return effects->at[0];
  return ir_node(l->g, OP_GROUP, DT_VOID, effects->at, effects->n, NULL, 0);
}

const node *lower_close_loops(lowering *l, const node *const *effects, const size_t *levels,
                              size_t n, const node *const *ranges, size_t n_ranges) {
  node_list inside = {0};
  for (size_t level = n_ranges;; level--) {
    for (size_t i = 0; i < n; i++)
      if ((levels ? levels[i] : n_ranges) == level) vec_push(l->a, &inside, effects[i]);
    if (!level) return lower_group(l, &inside);
    if (!inside.n) continue;
    const node **src = arena_alloc(l->a, (inside.n + 1) * sizeof *src);
    src[0] = ranges[level - 1];
    for (size_t i = 0; i < inside.n; i++) src[i + 1] = inside.at[i];
    const node *end = ir_node(l->g, OP_END, DT_VOID, src, inside.n + 1, NULL, 0);
    inside = (node_list){0};
    vec_push(l->a, &inside, end);
  }
}

const node *lower_alloc(lowering *l, dtype t, const node *binder, size_t rank,
                        const node *const *extents) {
  int64_t space = rank ? SPACE_SCRATCH : SPACE_REGISTER;
  return alloc_make(l, t, binder, row_major_size(l->g, rank, extents), space);
}

const node *lower_element_load(lowering *l, const node *n, const home *h) {
  const node **coords = lower_nodes(l, n->src + 1, n->n_src - 1);
  const node *address = row_major_address(l->g, h->rank, h->extents, coords);
  return lower_load(l, (dtype)n->dtype, h->storage, address);
}

const node *lower_stage_address(lowering *l, const node *s, size_t i) {
  size_t rank = stage_rank(s, i);
  const node **coords = lower_nodes(l, stage_coords(s, i), rank);
  return row_major_address(l->g, rank, lower_nodes(l, stage_extents(s, i), rank), coords);
}

/* Loops over whole arrays. */

/** Loops over the elements of an array, and the coordinates by them. */
typedef struct nest {
  const node **ranges, **coords;
  size_t n;
} nest;

static nest whole_nest(lowering *l, size_t rank, const node *const *extents) {
  nest e = {arena_alloc(l->a, rank * sizeof *e.ranges), arena_alloc(l->a, rank * sizeof *e.coords),
            0};
  for (size_t i = 0; i < rank; i++) {
    bool one = node_is_bits(extents[i], 1);
    e.coords[i] = one ? ix_const(l->g, 0) : range_make(l->g, extents[i], KIND_LOOP);
    if (!one) e.ranges[e.n++] = e.coords[i];
  }
  return e;
}

static bool reads_memory(lowering *l, const node *const *n, size_t count) {
  node_list order = topo_sort(l->a, n, count, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX) return true;
  return false;
}

/** A copy of a range; a vector becomes a loop where `reader` is in lanes already. */
static const node *copy_range(lowering *l, const node *range, const node *extent,
                              const node *reader) {
  bool in_lanes = false;
  for (uint32_t i = 0; i < reader->free->n; i++)
    in_lanes |= map_has(&l->lanes, reader->free->at[i]);
  if (range_kind_of(range) == KIND_VECTOR && in_lanes) return range_make(l->g, extent, KIND_LOOP);
  return range_clone(l->g, range, extent);
}

/** Loops over the elements that a stage's value writes: copies of its own loops, so that no other
    element is touched; over the whole array where those may not be repeated. */
static nest written_nest(lowering *l, const node *stage, size_t value, const node *reader) {
  size_t rank = stage_rank(stage, value), level = stage_loop_depth(stage, value);
  const node *const *ranges = stage_range(stage), *const *coords = stage_coords(stage, value);
  if (!stage_writes_once(stage, value) || reads_memory(l, ranges, level) ||
      reads_memory(l, coords, rank))
    return whole_nest(l, rank, lower_nodes(l, stage_extents(stage, value), rank));
  nest e = {arena_alloc(l->a, level * sizeof *e.ranges), arena_alloc(l->a, rank * sizeof *e.coords),
            level};
  map with = {0};
  for (size_t i = 0; i < level; i++) {
    const node *extent = subst_ranges(l->g, range_extent(ranges[i]), &with);
    e.ranges[i] = copy_range(l, ranges[i], extent, reader);
    map_set(l->a, &with, ranges[i], (void *)e.ranges[i]);
  }
  for (size_t i = 0; i < rank; i++) e.coords[i] = subst_ranges(l->g, coords[i], &with);
  return e;
}

/** True if a stage's value provably writes all elements of its array, each once. */
static bool writes_all(const node *stage, size_t value) {
  double written = 1, elements = 1;
  for (size_t i = 0; i < stage_loop_depth(stage, value); i++) {
    const node *extent = range_extent(stage_range(stage)[i]);
    written *= node_is_const(extent) ? (double)node_int(extent) : 0;
  }
  for (size_t i = 0; i < stage_rank(stage, value); i++)
    elements *= (double)stage_extents(stage, value)[i]->hi;
  return written == elements && stage_writes_once(stage, value);
}

const node *lower_copy_array(lowering *l, const node *stage, size_t value, const node *reader,
                             const node *to, int64_t o) {
  const home *from = (const home *)map_get(&l->homes, stage) + value;
  dtype t = (dtype)to->dtype;
  nest e = written_nest(l, stage, value, reader);
  const node *address = row_major_address(l->g, from->rank, from->extents, e.coords);
  const node *x = lower_load(l, t, from->storage, address);
  if (o >= 0) x = ir_op2(l->g, (op)o, lower_load(l, t, to, address), x);
  x = lower_store(l, to, address, x);
  return lower_close_loops(l, &x, NULL, 1, e.ranges, e.n);
}

const node *lower_fill(lowering *l, const home *h, const node *to, const node *x, const node *stage,
                       size_t value, const node *reader) {
  bool has_loops = stage && writes_all(stage, value);
  nest e = has_loops ? written_nest(l, stage, value, reader) : whole_nest(l, h->rank, h->extents);
  x = lower_store(l, to, row_major_address(l->g, h->rank, h->extents, e.coords), x);
  return lower_close_loops(l, &x, NULL, 1, e.ranges, e.n);
}
