/* Chooses register tiles: where indices of a nest read the same elements in its reductions, a block
   of them is computed at once, so that an element is loaded once for the whole block, and the block
   has as many independent accumulators as the processor's latency asks for. Up to two ranges of the
   nest are cut; the cuts become copies, which unroll_and_jam.c moves inside of the reductions'
   loops. All cuts are ordered by an estimate of cycles: throughput of
   loads and arithmetic, latency of additions, registers, and the cache level that operands come
   from. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/index/address_stride.h"
#include "ir/index/row_major_address.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

#include "base/map.h"

#include <math.h>
#include <stdlib.h>

enum {
  AXES = 2,             /* most ranges that a tile is cut from */
  MOST_ALTERNATIVES = 8 /* tiles of a nest that the search tries */
};

typedef VEC(const node *) range_list;

typedef struct tiling {
  choice *c;
  range_list pending; /* one range of each nest that may still be tiled */
  map uncut;          /* ranges that are not cut, or not cut again */
} tiling;

/* Loads and operations of a nest. */

/** Cache behaviour of a load inside of a tile. */
typedef struct load_facts {
  double element;            /* bytes that the load reads at once */
  double consecutive;        /* loads of consecutive elements in the loops inside of the tile */
  double bytes;              /* loaded by those loops, for one index of each axis */
  bool is_unit_stride[AXES]; /* reads consecutive elements along the axis */
  int64_t apart[AXES];       /* bytes from an element to that of the next index of the axis */
  bool is_open[AXES];        /* the distance is known only when the kernel runs */
} load_facts;

/** An operation of a reduction's innermost loop, or a load. */
typedef struct operation {
  double copies; /* unrolled copies of it, for one index of each axis */
  double cost;   /* operations that each copy takes */
  bool is_load, is_vector;
  bool depends[AXES]; /* on the axis */
  load_facts load;    /* of a load */
} operation;

/** The innermost loop of a FOLD. */
typedef struct inner_loop {
  VEC(operation) operations;
  double states; /* accumulators, for one index of each axis */
  double trips;  /* iterations for one tile */
} inner_loop;

/** A nest that might be tiled along some ranges. */
typedef struct tiled_nest {
  const choice *c;
  tn_hardware hardware;
  ir *g;
  const node *stage;
  const node *axis[AXES];  /* NULL: none */
  const node *lanes;       /* the stage's vector range; NULL: none */
  const map *padded;       /* bounds checks and selects that padded tiles will remove */
  bool has_remainder_nest; /* tiles may not overlap: remainders are nests of their own */
  bool has_lane_remainder; /* a reduction in lanes inside has a remainder loop */
  VEC(inner_loop) loops;   /* one after the other */
} tiled_nest;

/** A tile of a nest. */
typedef struct tile {
  const tiled_nest *nest;
  int64_t cut[AXES]; /* indices of each axis */
  double cost;       /* cycles for one index of each axis */
  size_t number;     /* in the order in which tiles are listed */
} tile;

typedef VEC(tile) tile_list;

static bool depends_on_tile(const tiled_nest *p, const node *n) {
  if (p->lanes && node_is_free_in(p->lanes, n)) return true;
  for (size_t k = 0; k < AXES; k++)
    if (p->axis[k] && node_is_free_in(p->axis[k], n)) return true;
  return false;
}

/** True if copies around a FOLD may move inside of its loop. */
static bool may_unroll_and_jam(const tiled_nest *p, const node *f) {
  if (f->op != OP_FOLD || !fold_has_scalar_states(f)) return false;
  for (size_t i = 0; i < fold_n_ranges(f); i++)
    if (depends_on_tile(p, range_extent(fold_range(f)[i]))) return false;
  return true;
}

static bool is_in_fold(const node *n, const node *fold) {
  return node_is_free_in(fold_innermost_range(fold), n);
}

/** Unrolled copies of a node, not counting lanes. */
static double copies_of_node(const node *n, const node *lanes) {
  double copies = 1;
  for (uint32_t i = 0; i < n->free->n; i++)
    if (n->free->at[i] != lanes && range_is_unrolled(n->free->at[i]))
      copies *= range_likely_trips(n->free->at[i]);
  return copies;
}

/** True if a range is a loop of the nest, or one around the nest. */
static bool is_outside_tile(const tiled_nest *p, const node *range) {
  for (size_t k = 0; k < stage_n_ranges(p->stage); k++)
    if (stage_range(p->stage)[k] == range) return range_kind_of(range) == KIND_LOOP;
  return node_is_free_in(range, p->stage);
}

/** Bytes that an INDEX loads in the loops inside of a tile. */
static double bytes_inside(const tiled_nest *p, const node *index) {
  double bytes = (double)dtype_bytes((dtype)index->dtype);
  for (uint32_t i = 0; i < index->free->n; i++) {
    const node *r = index->free->at[i];
    if (!is_outside_tile(p, r)) bytes *= range_likely_trips(r);
  }
  return bytes;
}

static bool has_unit_stride(const node *index, const node *range) {
  return ix_coefficient(index->src[index->n_src - 1], range) == 1;
}

/** Loads of consecutive elements by an INDEX in the loops inside of a tile. */
static double consecutive_loads(const tiled_nest *p, const node *index) {
  double loads = 1;
  for (uint32_t i = 0; i < index->free->n; i++) {
    const node *r = index->free->at[i];
    if (!is_outside_tile(p, r) && has_unit_stride(index, r)) loads *= range_likely_trips(r);
  }
  return loads;
}

/** Finds the distance of elements of a buffer along an axis. */
static void find_distance(const tiled_nest *p, const node *index, size_t k, load_facts *l) {
  const node *from = index->src[0];
  if (from->op != OP_PARAM) return;
  const node *a = row_major_address(p->g, from->rank, from->dims, index->src + 1);
  int64_t stride = address_likely_stride(a, p->axis[k]);
  l->apart[k] = stride * (int64_t)dtype_bytes((dtype)index->dtype);
  l->is_open[k] = stride && !address_stride(a, p->axis[k]);
}

/** True if the lines that a tile reads at once conflict in the sets of the first cache. */
static bool has_set_conflicts(const tiled_nest *p, const load_facts *l, const int64_t cut[]) {
  for (size_t k = 0; k < AXES; k++)
    if (hardware_rows_bytes(&p->hardware, l->apart[k], (double)cut[k]) >
        (double)p->hardware.l1_bytes)
      return true;
  return false;
}

/** Time of a load in loads from the first cache, by the cache level that its data stays in. */
static double load_cost(const tiled_nest *p, const operation *o, const int64_t cut[],
                        double times) {
  double bytes = o->load.bytes * times / o->copies;
  double row = o->load.consecutive * o->load.element; /* bytes side by side */
  double line = (double)p->hardware.line_bytes,
         second = MACHINE_L2_OPERAND_SHARE * (double)p->hardware.l2_bytes;
  bool conflicts = has_set_conflicts(p, &o->load, cut);
  if (bytes <= hardware_l1_resident_bytes(&p->hardware) && !conflicts) return 1;
  for (size_t k = 0; k < AXES; k++) row *= o->load.is_unit_stride[k] ? (double)cut[k] : 1;
  double lines = conflicts ? 1 : o->load.element / (row > line ? line : row);
  return 1 + (bytes <= second ? MACHINE_L2_LINE_LOADS : MACHINE_L3_LINE_LOADS) * lines;
}

/** Iterations of a FOLD for one tile. */
static double trips_per_tile(const tiled_nest *p, const node *fold) {
  double times = 1;
  for (size_t i = 0; i < fold_n_ranges(fold); i++) times *= range_likely_trips(fold_range(fold)[i]);
  for (uint32_t i = 0; i < fold->free->n; i++) {
    const node *r = fold->free->at[i];
    if (range_kind_of(r) == KIND_LOOP && !is_outside_tile(p, r)) times *= range_likely_trips(r);
  }
  return times;
}

/** Adds the innermost loop of a FOLD. */
static void add_loop(tiled_nest *p, const node *fold) {
  arena *a = ir_arena(p->g);
  node_list nest = nest_nodes(a, fold);
  const node *lanes = nest_lane_range(p->g, fold, &nest);
  inner_loop l = {.trips = trips_per_tile(p, fold)};
  for (size_t i = 0; lanes && lanes != p->lanes && i < fold_n_ranges(fold); i++)
    p->has_lane_remainder |= !node_is_const(range_extent(fold_range(fold)[i]));
  l.states = (double)fold_n_states(fold) * copies_of_node(fold, lanes);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    bool is_product = n->op == OP_MUL || tensor_row_of((op)n->op); /* fused with the sum */
    bool computes =
        op_is_elementwise((op)n->op) && n->dtype != DT_INDEX && n->op != OP_CAST && !is_product;
    if (!is_in_fold(n, fold) || !(nest_is_array_read(n) || computes) || map_has(p->padded, n))
      continue;
    operation o = {.copies = copies_of_node(n, lanes), .is_load = nest_is_array_read(n)};
    o.cost = o.is_load ? 1 : op_instruction_cost((op)n->op);
    o.is_vector = lanes && node_is_free_in(lanes, n);
    bool scattered = o.is_vector && o.is_load && !read_is_unit_stride(p->g, lanes, n);
    if (scattered && !choice_is_packed(p->c, p->stage, n, MACHINE_TILE_SIDE_MOST / 2))
      o.cost = MACHINE_GATHER_OPERATIONS * range_likely_trips(lanes);
    if (n->dtype == DT_BOOL && !o.is_vector) o.cost = 1.0 / MACHINE_CHECKS_PER_OPERATION;
    if (o.is_load) {
      o.load.bytes = bytes_inside(p, n);
      o.load.consecutive = o.is_vector ? 1 : consecutive_loads(p, n);
      o.load.element =
          (double)dtype_bytes((dtype)n->dtype) * (o.is_vector ? range_likely_trips(lanes) : 1);
    }
    for (size_t k = 0; k < AXES; k++) {
      o.depends[k] = p->axis[k] && node_is_free_in(p->axis[k], n);
      o.load.is_unit_stride[k] =
          o.depends[k] && o.is_load && !o.is_vector && has_unit_stride(n, p->axis[k]);
      if (o.depends[k] && o.is_load) find_distance(p, n, k, &o.load);
    }
    vec_push(a, &l.operations, o);
  }
  vec_push(a, &p->loops, l);
}

/** True if a FOLD holds no other one. */
static bool is_innermost(arena *a, const node *fold) {
  node_list nest = nest_nodes(a, fold);
  for (size_t i = 0; i < nest.n; i++)
    if (nest.at[i]->op == OP_FOLD && is_in_fold(nest.at[i], fold)) return false;
  return true;
}

/** Fills the loops of a nest for its axes; false: copies of some binder could not be jammed. */
static bool fill_nest(tiled_nest *p) {
  arena *a = ir_arena(p->g);
  node_list nest = nest_nodes(a, p->stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *b = nest.at[i];
    if ((b->op != OP_STAGE && b->op != OP_FOLD) || !depends_on_tile(p, b)) continue;
    if (!may_unroll_and_jam(p, b)) return false;
    if (!is_innermost(a, b)) continue;
    add_loop(p, b);
  }
  return p->loops.n > 0;
}

/* The cost of a tile. */

/** Cycles of two bounds that overlap: a norm near their maximum, since where both are about equal,
    each now and then waits for the other. */
static double overlapped_cycles(double a, double b) {
  return pow(pow(a, MACHINE_OVERLAP_POWER) + pow(b, MACHINE_OVERLAP_POWER),
             1.0 / MACHINE_OVERLAP_POWER);
}

/** Addresses of the elements that a load's copies take: those apart by an open distance have one
    each, the others are offsets of one. */
static double addresses_of(const operation *o, const int64_t cut[]) {
  double addresses = 1;
  for (size_t k = 0; k < AXES; k++) addresses *= o->load.is_open[k] ? (double)cut[k] : 1;
  return addresses;
}

/** Cycles of one iteration of an innermost loop; < 0: too many instructions or registers. */
static double iteration_cycles(const tiled_nest *p, const inner_loop *l, const int64_t cut[],
                               double registers) {
  double all = 1, loads = 0, work = 0, held = MACHINE_SPARE_REGISTERS, addresses = 0;
  for (size_t k = 0; k < AXES; k++) all *= (double)cut[k];
  for (size_t i = 0; i < l->operations.n; i++) {
    const operation *o = &l->operations.at[i];
    double times = o->copies;
    for (size_t k = 0; k < AXES; k++) times *= o->depends[k] ? (double)cut[k] : 1;
    if (o->is_load)
      loads += o->cost * times * load_cost(p, o, cut, times);
    else
      work += o->cost * times;
    if (o->is_load && o->is_vector) held += times;
    if (o->is_load) addresses += addresses_of(o, cut);
  }
  loads += fmax(addresses - MACHINE_ADDRESS_REGISTERS, 0); /* spilled */
  work += l->states * all;
  held += l->states * all;
  if (held > registers || loads + work > MACHINE_TILED_LOOP_CODE) return -1;
  double most = (loads > work ? loads + work / MACHINE_HIDDEN_OPERATIONS
                              : work + loads / MACHINE_HIDDEN_OPERATIONS) /
                MACHINE_ISSUED_PER_CYCLE;
  return overlapped_cycles(most, MACHINE_FLOAT_ADD_CYCLES) + MACHINE_LOOP_CYCLES;
}

/** Cycles of one tile; < 0: impossible. Loops run one after the other, each with all registers: the
    results of earlier ones are spilled. */
static double tile_cycles(const tiled_nest *p, const int64_t cut[], double registers) {
  double sum = 0;
  for (size_t i = 0; i < p->loops.n; i++) {
    double each = iteration_cycles(p, &p->loops.at[i], cut, registers);
    if (each < 0) return each;
    sum += each * p->loops.at[i].trips;
  }
  return sum;
}

/** Cycles for all indices of the axes, in tiles of which the last overlaps the one before. */
static double cost_with_overlap(const tiled_nest *p, const int64_t cut[], double registers) {
  double times = 1, each = tile_cycles(p, cut, registers);
  for (size_t k = 0; k < AXES && p->axis[k]; k++)
    times *= ceil(range_likely_trips(p->axis[k]) / (double)cut[k]);
  return each < 0 ? each : each * times;
}

/** Cycles of a nest in tiles, with smaller tiles for the remainders. */
static double cost_with_remainders(const tiled_nest *p, const int64_t cut[], double registers) {
  double sum = 0;
  for (unsigned part = 0; part < 1u << AXES; part++) {
    int64_t here[AXES];
    double times = 1;
    for (size_t k = 0; k < AXES; k++) {
      bool is_remainder = part >> k & 1;
      double n = p->axis[k] ? range_likely_trips(p->axis[k]) : 1;
      int64_t whole = (int64_t)n / cut[k], over = (int64_t)n - whole * cut[k];
      here[k] = is_remainder ? over : cut[k];
      times *= is_remainder ? over > 0 : (double)whole;
    }
    if (times == 0) continue;
    double each = tile_cycles(p, here, registers);
    if (each < 0) return -1;
    sum += each * times;
  }
  return sum;
}

static int64_t most_cut(const tiled_nest *p, size_t k) {
  const node *extent = p->axis[k] ? range_extent(p->axis[k]) : NULL;
  int64_t n = !extent ? 1 : p->has_remainder_nest ? extent->hi : extent->lo;
  return n < MACHINE_TILE_SIDE_MOST ? n : MACHINE_TILE_SIDE_MOST;
}

/** Adds all tiles of a nest that are possible. `weight`: indices of both axes over the gain that is
    required, so that tiles along different ranges compare. */
static void add_tiles(const tiled_nest *p, double registers, double weight, tile_list *to) {
  for (int64_t x = 1; x <= most_cut(p, 0); x++)
    for (int64_t y = p->axis[1] ? 2 : 1; y <= most_cut(p, 1); y++) {
      if (p->axis[1] && x == 1) continue; /* a tile along one axis */
      tile t = {.nest = p, .cut = {x, y}, .number = to->n};
      t.cost = p->has_remainder_nest ? cost_with_remainders(p, t.cut, registers)
                                     : cost_with_overlap(p, t.cut, registers);
      t.cost /= weight;
      if (t.cost >= 0) vec_push(ir_arena(p->g), to, t);
    }
}

static int compare_tiles(const void *a, const void *b) {
  const tile *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/** True if two tiles are cut alike along one of the same axes. */
static bool is_alike(const tile *a, const tile *b) {
  bool same_axes = a->nest->axis[0] == b->nest->axis[0] && a->nest->axis[1] == b->nest->axis[1];
  return same_axes && (!a->nest->axis[1] || a->cut[0] == b->cut[0] || a->cut[1] == b->cut[1]);
}

/** Keeps the cheapest tiles of which no two are alike; one that costs far more is left out. */
static void keep_alternatives(tile_list *all) {
  size_t n = 0;
  if (all->n) qsort(all->at, all->n, sizeof *all->at, compare_tiles);
  for (size_t i = 0; i < all->n && n < MOST_ALTERNATIVES; i++) {
    bool is_new = all->at[i].cost <= MACHINE_ALTERNATIVE_COST * all->at[0].cost;
    for (size_t k = 0; k < n && is_new; k++) is_new = !is_alike(&all->at[k], &all->at[i]);
    if (is_new) all->at[n++] = all->at[i];
  }
  all->n = n;
}

static bool is_axis(const tiling *t, const node *r) {
  return range_kind_of(r) == KIND_LOOP && range_extent(r)->hi > 1 && !map_has(&t->uncut, r);
}

/** True if some load does not depend on an axis, so that its indices share it. */
static bool has_shared_load(const tiled_nest *p, size_t k) {
  for (size_t l = 0; l < p->loops.n; l++)
    for (size_t i = 0; i < p->loops.at[l].operations.n; i++) {
      const operation *o = &p->loops.at[l].operations.at[i];
      if (o->is_load && !o->depends[k]) return true;
    }
  return false;
}

/** The gain that a tile along an axis must bring, for the code of remainders that a varying size
    needs, its own or those of reductions in lanes; INFINITY: no load is shared along the axis. */
static double required_gain(const tiled_nest *p, size_t k) {
  if (!p->axis[k]) return 1;
  bool has_code_twice = p->has_remainder_nest && !node_is_const(range_extent(p->axis[k]));
  if (!has_code_twice && !p->has_lane_remainder) return 1;
  if (!has_shared_load(p, k)) return INFINITY;
  return has_code_twice ? MACHINE_OPEN_TILE_GAIN : 1;
}

/** For each of a nest's ranges, true if tiles along it may overlap and it has indices for one. */
static const bool *overlapping_ranges(choice *c, const node *stage) {
  size_t n = stage_n_ranges(stage);
  bool *may = arena_alloc(ir_arena(c->laws.g), (n + 1) * sizeof *may);
  for (size_t i = 0; i < n; i++) {
    const node *r = stage_range(stage)[i];
    may[i] = range_extent(r)->lo >= MACHINE_OVERLAPPED_TILE_LEAST &&
             law_may_overlap(&c->laws, c->sink, r, 1);
  }
  return may;
}

/** A nest of which no axis is chosen. */
static tiled_nest nest_without_axes(choice *c, const node *stage) {
  map *padded = arena_calloc(ir_arena(c->laws.g), 1, sizeof *padded);
  choice_padded_conditions(c, stage, padded);
  return (tiled_nest){.c = c,
                      .g = c->laws.g,
                      .stage = stage,
                      .hardware = hardware_with_defaults(&c->target->hardware),
                      .lanes = nest_vector_range(stage),
                      .padded = padded};
}

/** Adds the tiles of a nest along one range, or two. */
static void add_tiles_along(const tiling *m, const tiled_nest *of, const node *first,
                            const node *second, bool may_overlap, tile_list *to) {
  tiled_nest *p = arena_copy(ir_arena(of->g), of, sizeof *of);
  p->axis[0] = first;
  p->axis[1] = second;
  p->has_remainder_nest = !may_overlap;
  if (!is_axis(m, first) || (second && !is_axis(m, second))) return;
  if (second && node_is_free_in(first, range_extent(second))) return;
  if (!fill_nest(p)) return;
  double indices = range_likely_trips(first) * (second ? range_likely_trips(second) : 1);
  double gain = required_gain(p, 0) * required_gain(p, 1);
  if (!isinf(gain)) add_tiles(p, m->c->target->registers, indices / gain, to);
}

/** Different tiles of a nest along one or two of its ranges, the cheapest one first. */
static tile_list list_tiles(const tiling *m, const node *stage) {
  tile_list all = {0};
  size_t n = stage_n_ranges(stage);
  const bool *may = overlapping_ranges(m->c, stage);
  const tiled_nest nest = nest_without_axes(m->c, stage);
  for (size_t i = 0; i < n; i++)
    for (size_t k = i; k < n; k++)
      add_tiles_along(m, &nest, stage_range(stage)[i], k > i ? stage_range(stage)[k] : NULL,
                      may[i] && may[k], &all);
  keep_alternatives(&all);
  return all;
}

/* Cutting a tile out of a nest. */

/** The range at a position of the nest that binds `any`: replaced ranges keep their positions. */
static const node *range_at(choice *c, const node *any, size_t position) {
  const node *const *ranges;
  binder_ranges(law_find_binder(&c->laws, c->sink, any), &ranges);
  return ranges[position];
}

/** Splits a range in blocks of `cut` copies, and moves these just inside of all loops. */
static void unroll_range(choice *c, const node *range, int64_t cut) {
  laws *l = &c->laws;
  const node *outer, *inner, *copies, *const *ranges;
  const node *made = law_overlap(l, c->sink, range, cut, &outer, &inner);
  if (!made) made = law_split(l, c->sink, range, cut, &outer, &inner);
  if (!made) return;
  size_t n = binder_ranges(law_find_binder(l, made, inner), &ranges), at = n;
  while (at > 0 && range_kind_of(ranges[at - 1]) != KIND_LOOP) at--;
  const node *moved = law_order(l, made, inner, at ? at - 1 : 0);
  if (moved) made = law_kind(l, moved, inner, KIND_UNROLL, &copies);
  if (made && moved) c->sink = made;
}

/** Cuts a tile out of a nest. Remainders are nests that may be tiled in turn; those of a varying
   size are small and stay as they are. */
static void cut_tile(tiling *m, const tile *t) {
  const tiled_nest *p = t->nest;
  choice *c = m->c;
  arena *a = ir_arena(c->laws.g);
  size_t position[AXES];
  const node *whole = p->axis[0], *rest, *before = c->sink;
  for (size_t k = 0; k < AXES && p->axis[k]; k++)
    position[k] = range_position(stage_range(p->stage), p->axis[k]);
  for (size_t k = 0; k < AXES && p->axis[k]; k++) {
    const node *range = range_at(c, whole, position[k]);
    if (!p->has_remainder_nest) {
      whole = range;
      continue;
    }
    if (!choice_split_remainder(c, range, t->cut[k], &whole, &rest)) {
      c->sink = before;
      map_set(a, &m->uncut, p->axis[k], NULL);
      vec_push(a, &m->pending, p->axis[k]);
      return;
    }
    if (rest) vec_push(a, &m->pending, rest);
    if (rest && !node_is_const(range_extent(rest))) map_set(a, &m->uncut, rest, NULL);
  }
  const node *first = range_at(c, whole, position[0]);
  const node *second = p->axis[1] ? range_at(c, whole, position[1]) : NULL;
  if (t->cut[0] > 1) unroll_range(c, first, t->cut[0]);
  if (second && t->cut[1] > 1) unroll_range(c, second, t->cut[1]);
}

/** Tiles the nest that binds a range, unless it has copies already. */
static void tile_nest(tiling *m, const node *range) {
  const node *stage = law_find_binder(&m->c->laws, m->c->sink, range);
  if (!stage || stage->op != OP_STAGE || nest_is_unrolled(stage)) return;
  tile_list tiles = list_tiles(m, stage);
  if (!tiles.n) return;
  const tile *t = &tiles.at[choice_decide(m->c, DECISION_TILE, tiles.n)];
  if (t->cut[0] * t->cut[1] > 1) cut_tile(m, t);
}

void choose_register_tiles(choice *c) {
  tiling m = {.c = c};
  node_list binders = choice_binders(c);
  bool has_vectors = c->target->registers && !c->target->team_workers; /* those are of 32 bits */
  for (size_t i = 0; i < binders.n && has_vectors; i++)
    if (binders.at[i]->op == OP_STAGE && stage_n_ranges(binders.at[i]))
      vec_push(ir_arena(c->laws.g), &m.pending, stage_range(binders.at[i])[0]);
  while (m.pending.n && !choice_at_node_limit(c)) tile_nest(&m, vec_pop(&m.pending));
}
