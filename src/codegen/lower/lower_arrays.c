/* Builds the parts of a lowered kernel: storage, loads, stores, loops, and loops that copy or fill
   whole arrays. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_proof.h"
#include "ir/index/row_major_address.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"
#include "laws/laws.h"

const node *lower_node(lowering *l, const node *n) { return map_get(&l->image, n); }

const node **lower_nodes(lowering *l, const node *const *from, size_t n) {
  const node **to = arena_alloc(l->a, n * sizeof *to);
  for (size_t i = 0; i < n; i++) to[i] = lower_node(l, from[i]);
  return to;
}

const node *lower_alloc(lowering *l, dtype t, const node *binder, const node *size, int64_t space) {
  const range_set *place = map_get(&l->places, binder);
  const node **src = arena_alloc(l->a, (place->n + 1) * sizeof *src);
  const node **loops = lower_loops(l, place->at, place->n);
  size_t n = 0;
  src[n++] = size;
  for (uint32_t i = 0; i < place->n; i++)
    if (loops[i]) src[n++] = loops[i];
  int64_t ints[] = {ir_fresh_id(l->g), space, map_has(&l->turns, binder) ? stage_slots(binder) : 1};
  return ir_node(l->g, OP_ALLOC, t, src, n, ints, ints[2] > 1 ? 3 : 2);
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
                              size_t n, const node *const *loops, size_t n_loops) {
  node_list inside = {0};
  for (size_t level = n_loops;; level--) {
    for (size_t i = 0; i < n; i++)
      if ((levels ? levels[i] : n_loops) == level) vec_push(l->a, &inside, effects[i]);
    if (!level) return lower_group(l, &inside);
    if (!inside.n || !loops[level - 1]) continue;
    const node **src = arena_alloc(l->a, (inside.n + 1) * sizeof *src);
    src[0] = loops[level - 1];
    for (size_t i = 0; i < inside.n; i++) src[i + 1] = inside.at[i];
    const node *end = ir_node(l->g, OP_END, DT_VOID, src, inside.n + 1, NULL, 0);
    inside = (node_list){0};
    vec_push(l->a, &inside, end);
  }
}

const node **lower_loops(lowering *l, const node *const *ranges, size_t n) {
  const node **loops = arena_alloc(l->a, n * sizeof *loops);
  for (size_t i = 0; i < n; i++) {
    const node *own = lower_node(l, ranges[i]);
    loops[i] = range_is_digit(ranges[i]) ? map_get(&l->gates, ranges[i]) : own;
  }
  return loops;
}

/* Homes. */

static size_t home_rank(const home *h) {
  return h->outer.n + h->rank - (size_t)__builtin_popcount(h->dropped);
}

/** The dimensions of a home's storage among those of its array, behind a list of others. */
static const node **home_dims(lowering *l, const home *h, const node_list *first,
                              const node *const *dims) {
  const node **all = arena_alloc(l->a, home_rank(h) * sizeof *all);
  size_t n = 0;
  for (size_t i = 0; i < first->n; i++) all[n++] = first->at[i];
  for (size_t i = 0; i < h->rank; i++)
    if (!(h->dropped >> i & 1)) all[n++] = dims[i];
  return all;
}

/** True (as a node) where the dropped coordinates are inside of the array. */
static const node *has_part(lowering *l, const home *h, const node *const *coords) {
  const node *at[IR_MAX_RANK], *extents[IR_MAX_RANK];
  size_t n = 0;
  for (size_t i = 0; i < h->rank; i++) {
    at[n] = coords[i];
    extents[n] = h->extents[i];
    n += h->dropped >> i & 1;
  }
  return ix_in_bounds(l->g, n, at, extents);
}

/** Maps the digits that a node depends on to their lowered indices. */
static void map_digits(lowering *l, const node *n, map *with) {
  for (uint32_t i = 0; i < n->free->n; i++) {
    const node *r = n->free->at[i];
    if (range_is_digit(r) && !map_has(with, r)) map_set(l->a, with, r, (void *)lower_node(l, r));
  }
}

/** The address of an element of an array that lies in a part of an output. */
static const node *address_in_output(lowering *l, const home *h, const node *const *coords) {
  const node *param = h->part->param, *at[IR_MAX_RANK];
  map with = {0};
  for (size_t i = 0; i < param->rank; i++) {
    bool is_own = h->part->axis[i] < h->rank;
    if (!is_own) map_digits(l, h->part->at[i], &with);
    at[i] = is_own ? coords[h->part->axis[i]] : subst_ranges(l->g, h->part->at[i], &with);
  }
  return row_major_address(l->g, param->rank, lower_nodes(l, param->dims, param->rank), at);
}

const node *lower_address(lowering *l, const home *h, const node *const *coords) {
  if (h->part) return address_in_output(l, h, coords);
  const node *inside = h->is_partial ? has_part(l, h, coords) : NULL;
  const node *address =
      row_major_address(l->g, home_rank(h), home_dims(l, h, &h->extended, h->extents),
                        home_dims(l, h, &h->outer, coords));
  if (!inside || node_is_bits(inside, 1)) return address;
  const node *invalid = ir_node(l->g, OP_INVALID, DT_INDEX, NULL, 0, NULL, 0);
  if (address->op == OP_WHERE) {
    inside = ix_and(l->g, inside, address->src[0]);
    address = address->src[1];
  }
  return ir_op3(l->g, OP_WHERE, inside, address, invalid);
}

/** Adds the digits around a binder, of those that the sharers of an array differ in. */
static void add_outer_digits(lowering *l, home *h, const node *binder, storage_space space) {
  const node_list *open = map_get(&l->teams.open, binder);
  for (size_t i = 0; i < open->n && space_is_shared(space); i++) {
    range_kind k = range_kind_of(open->at[i]);
    if (k != KIND_WARP && (k != KIND_LOCAL || space != SPACE_GROUP)) continue;
    if (!team_differs_along(l->g, binder, open->at[i])) continue; /* there is one array for all */
    const team_digit *d = team_digits_find(&l->teams.digits, open->at[i]);
    vec_push(l->a, &h->outer, lower_digit_value(l, d));
    vec_push(l->a, &h->extended, d->extent);
  }
}

/** Adds the slots of a STAGE that is built ahead. */
static void add_slots(lowering *l, home *h, const node *binder) {
  if (!map_has(&l->turns, binder)) return;
  vec_push(l->a, &h->outer, lower_slot(l, binder));
  vec_push(l->a, &h->extended, ix_const(l->g, stage_slots(binder)));
}

home lower_home(lowering *l, const node *binder, size_t component) {
  bool is_stage = binder->op == OP_STAGE;
  const team_array *a = team_arrays_find(&l->teams, binder, component);
  size_t rank = is_stage ? stage_rank(binder, component) : fold_rank(binder, component);
  const node *const *extents =
      is_stage ? stage_extents(binder, component) : fold_extents(binder, component);
  home h = {.rank = rank,
            .extents = lower_nodes(l, extents, rank),
            .dropped = a->dropped,
            .is_partial = a->is_partial,
            .part = is_stage ? NULL : lower_output_of(l, binder, component)};
  if (h.part) h.storage = lower_node(l, h.part->param);
  if (h.part) return h;
  storage_space space = team_array_space(a, rank);
  add_slots(l, &h, binder);
  add_outer_digits(l, &h, binder, space);
  const node *size = row_major_size(l->g, home_rank(&h), home_dims(l, &h, &h.extended, h.extents));
  dtype t = is_stage ? (dtype)stage_value(binder, component)->dtype : fold_dtype(binder, component);
  h.storage = lower_alloc(l, t, binder, size, space);
  return h;
}

home lower_param_home(lowering *l, const node *stage, size_t i) {
  size_t rank = stage_rank(stage, i);
  return (home){.rank = rank, .extents = lower_nodes(l, stage_extents(stage, i), rank)};
}

/** A home's storage as seen inside the gates of the dropped coordinates: an address that they do
   not appear in would leave a load outside, where workers without a part run it too. */
static const node *inside_gates(lowering *l, const home *h, const node *const *coords) {
  node_list gates = {0};
  for (size_t i = 0; i < h->rank && h->is_partial; i++)
    for (uint32_t k = 0; h->dropped >> i & 1 && k < coords[i]->free->n; k++)
      vec_push(l->a, &gates, coords[i]->free->at[k]);
  return gates.n ? lower_after(l, h->storage, NULL, 0, gates.at, gates.n) : h->storage;
}

const node *lower_home_load(lowering *l, dtype t, const home *h, const node *const *coords) {
  return lower_load(l, t, inside_gates(l, h, coords), lower_address(l, h, coords));
}

const node *lower_element_load(lowering *l, const node *n, const home *h) {
  return lower_home_load(l, (dtype)n->dtype, h, lower_nodes(l, n->src + 1, n->n_src - 1));
}

const node *lower_stage_address(lowering *l, const home *h, const node *s, size_t i) {
  return lower_address(l, h, lower_nodes(l, stage_coords(s, i), stage_rank(s, i)));
}

/* Loops over whole arrays. */

/** Loops over the elements of an array, and the coordinates by them. */
typedef struct nest {
  const node **loops, **coords;
  size_t n;
} nest;

static nest whole_nest(lowering *l, const home *h) {
  nest e = {arena_alloc(l->a, h->rank * sizeof *e.loops),
            arena_alloc(l->a, h->rank * sizeof *e.coords), 0};
  for (size_t i = 0; i < h->rank; i++) {
    bool one = node_is_bits(h->extents[i], 1) || h->dropped >> i & 1;
    e.coords[i] = one ? ix_const(l->g, 0) : range_make(l->g, h->extents[i], KIND_LOOP);
    if (!one) e.loops[e.n++] = e.coords[i];
  }
  return e;
}

static bool reads_memory(lowering *l, const node *const *n, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (node_reads_memory(l->g, n[i])) return true;
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

bool lower_may_repeat(lowering *l, const node *stage, size_t value) {
  return stage_writes_once(stage, value) &&
         !reads_memory(l, stage_range(stage), stage_loop_depth(stage, value)) &&
         !reads_memory(l, stage_coords(stage, value), stage_rank(stage, value));
}

/** Loops over the elements that a stage's value writes: copies of its own loops, so that no other
    element is touched; over the whole array where those may not be repeated. */
static nest written_nest(lowering *l, const home *h, const node *stage, size_t value,
                         const node *reader) {
  size_t rank = stage_rank(stage, value), level = stage_loop_depth(stage, value);
  const node *const *ranges = stage_range(stage), *const *coords = stage_coords(stage, value);
  if (!lower_may_repeat(l, stage, value)) return whole_nest(l, h);
  nest e = {arena_alloc(l->a, level * sizeof *e.loops), arena_alloc(l->a, rank * sizeof *e.coords),
            level};
  map with = {0};
  for (size_t i = 0; i < level; i++) {
    map_digits(l, range_extent(ranges[i]), &with);
    const node *extent = subst_ranges(l->g, range_extent(ranges[i]), &with);
    const node *copy = copy_range(l, ranges[i], extent, reader), *index = copy;
    if (range_is_digit(copy)) index = lower_digit(l, copy);
    e.loops[i] = range_is_digit(copy) ? map_get(&l->gates, copy) : copy;
    map_set(l->a, &with, ranges[i], (void *)index);
  }
  for (size_t i = 0; i < rank; i++) {
    map_digits(l, coords[i], &with);
    e.coords[i] = subst_ranges(l->g, coords[i], &with);
  }
  return e;
}

/** True if a step of a FOLD, a STAGE's value, provably writes all elements of its array, each once,
    and the same way in all iterations. */
static bool step_writes_all(lowering *l, const node *fold, const node *stage, size_t value) {
  const node *const *coords = stage_coords(stage, value);
  size_t rank = stage_rank(stage, value);
  double written = 1, elements = 1;
  if (!ix_prove_in_bounds(l->g, rank, stage_extents(stage, value), coords)) return false;
  for (size_t i = 0; i < rank; i++)
    for (size_t k = 0; k < fold_n_ranges(fold); k++)
      if (node_is_free_in(fold_range(fold)[k], coords[i])) return false;
  for (size_t i = 0; i < stage_loop_depth(stage, value); i++) {
    const node *extent = range_extent(stage_range(stage)[i]);
    written *= node_is_const(extent) ? (double)node_int(extent) : 0;
  }
  for (size_t i = 0; i < rank; i++) elements *= (double)stage_extents(stage, value)[i]->hi;
  return written == elements && stage_writes_once(stage, value);
}

const node *lower_copy_array(lowering *l, const node *stage, size_t value, const node *reader,
                             const home *to, int64_t o) {
  const home *from = (const home *)map_get(&l->homes, stage) + value;
  dtype t = (dtype)to->storage->dtype;
  nest e = written_nest(l, from, stage, value, reader);
  const node *x = lower_home_load(l, t, from, e.coords);
  if (o >= 0) x = ir_op2(l->g, (op)o, lower_home_load(l, t, to, e.coords), x);
  x = lower_store(l, to->storage, lower_address(l, to, e.coords), x);
  x = lower_store_once(l, x, to, stage, value);
  return lower_close_loops(l, &x, NULL, 1, e.loops, e.n);
}

const node *lower_copy_home(lowering *l, const home *from, const home *to, const node *storage) {
  nest e = whole_nest(l, to);
  const node *x = lower_home_load(l, (dtype)storage->dtype, from, e.coords);
  x = lower_store(l, storage, lower_address(l, to, e.coords), x);
  return lower_close_loops(l, &x, NULL, 1, e.loops, e.n);
}

const node *lower_fill(lowering *l, const home *h, const node *to, const node *x, const node *stage,
                       size_t value, const node *reader) {
  bool has_loops = stage && step_writes_all(l, reader, stage, value);
  nest e = has_loops ? written_nest(l, h, stage, value, reader) : whole_nest(l, h);
  x = lower_store(l, to, lower_address(l, h, e.coords), x);
  return lower_close_loops(l, &x, NULL, 1, e.loops, e.n);
}
