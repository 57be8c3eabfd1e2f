/* Implements the summary of a scheduled kernel: finds the tree of its loops from the places of its
   binders, and adds each node to the loop that executes it. */
#include "target/kernel_summary.h"

#include "base/map.h"
#include "ir/core/affine.h"
#include "ir/core/math_mode.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/index/address_stride.h"
#include "ir/index/row_major_address.h"
#include "ir/index/tile_match.h"
#include "laws/laws.h"
#include "target/machine.h"
#include "target/scan_axis.h"

#include <math.h>

typedef struct builder {
  ir *g;
  arena *a;
  const target *t;
  kernel_summary s;
  map loop_of; /* range → number of its loop */
  map users;   /* node → number of its users */
  map fused;   /* product → the sum that it becomes one multiply-add with */
  map tiled;   /* the ranges of tiles, the FOLDs of their terms, and of these */
  map scanned; /* the FOLDs of scans in vectors along their axis, and the ranges → lanes */
} builder;

/* Loops. */

static bool is_loop(const builder *b, const node *range) {
  if (range_kind_of(range) == KIND_TILE) return !map_has(&b->tiled, range);
  return range_kind_of(range) != KIND_UNROLL && range_kind_of(range) != KIND_VECTOR;
}

/** Notes the tiles of a kernel that are instructions. */
static void find_tiles(builder *b, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *f = order->at[i];
    tile_match m;
    if (f->op != OP_FOLD || !tile_match_fold(b->g, f, &m) ||
        rule_target_lacks_op(&b->t->rules, m.tile->op))
      continue;
    for (int k = 0; k < TILE_SIDES; k++) map_set(b->a, &b->tiled, m.range[k], NULL);
    map_set(b->a, &b->tiled, f, NULL);
    map_set(b->a, &b->tiled, stage_value(fold_step(f, 0), 0)->src[0], NULL);
  }
}

/** Notes the scans of a kernel that are computed in vectors along their axis. An iteration of their
    loops is a vector. */
static void find_scans(builder *b, const node_list *order, int math) {
  bool any = false;
  scan_axis found;
  for (size_t i = 0; i < order->n; i++)
    any |= order->at[i]->op == OP_FOLD && fold_n_emits(order->at[i]);
  for (size_t i = 0; i < order->n && any; i++) {
    if (order->at[i]->op != OP_STAGE || !scan_axis_match(b->g, order->at[i], b->t, math, &found))
      continue;
    const node *const keys[] = {found.fold, fold_range(found.fold)[0], found.along};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      map_set(b->a, &b->scanned, keys[k], (void *)(intptr_t)found.lanes);
  }
}

/** Lanes of the vectors of a scan, by its FOLD or a range; 1: it is none of these. */
static double scanned_lanes(const builder *b, const node *n) {
  intptr_t lanes = (intptr_t)map_get(&b->scanned, n);
  return lanes ? (double)lanes : 1;
}

/** Iterations of a range's loop. */
static double loop_trips(const builder *b, const node *range) {
  return ceil(range_likely_trips(range) / scanned_lanes(b, range));
}

static size_t loop_of_range(const builder *b, const node *range) {
  return (uintptr_t)map_get(&b->loop_of, range);
}

/** The innermost of the loops that a node depends on. */
static size_t loop_of_node(const builder *b, const node *n) {
  size_t inner = 0;
  for (uint32_t i = 0; i < n->free->n; i++) {
    size_t loop = loop_of_range(b, n->free->at[i]);
    if (b->s.loops.at[loop].depth > b->s.loops.at[inner].depth) inner = loop;
  }
  return inner;
}

/** Adds the loops of a binder; those that it depends on are known. */
static void add_loops(builder *b, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges), parent = loop_of_node(b, binder);
  for (size_t i = 0; i < n; i++) {
    if (!is_loop(b, ranges[i])) continue;
    const summary_loop *around = &b->s.loops.at[parent];
    double trips = loop_trips(b, ranges[i]);
    summary_loop l = {.parent = parent,
                      .depth = around->depth + 1,
                      .is_divided = range_kind_of(ranges[i]) == KIND_THREAD,
                      .trips = trips,
                      .runs = around->runs * trips};
    parent = b->s.loops.n;
    map_set(b->a, &b->loop_of, ranges[i], (void *)(uintptr_t)parent);
    vec_push(b->a, &b->s.loops, l);
  }
}

/** The innermost of a binder's first `n` loops, or the loop around it. */
static size_t innermost_loop(const builder *b, const node *binder, size_t n) {
  const node *const *ranges;
  binder_ranges(binder, &ranges);
  while (n-- > 0)
    if (is_loop(b, ranges[n])) return loop_of_range(b, ranges[n]);
  return loop_of_node(b, binder);
}

/* Operations. */

static double copies_of(const node *n) {
  double copies = 1;
  for (uint32_t i = 0; i < n->free->n; i++)
    if (range_is_unrolled(n->free->at[i])) copies *= range_likely_trips(n->free->at[i]);
  return copies;
}

static double element_bytes(const node *n) {
  return n->dtype == DT_INDEX ? (double)sizeof(int64_t) : (double)dtype_bytes((dtype)n->dtype);
}

/** Vectors that the lanes of a node fill. */
static double vectors_of(const builder *b, const node *n, const node *lanes) {
  double bytes = element_bytes(n), width = b->t->vector_bytes;
  if (!lanes || !width) return 1;
  if (dtype_is_float((dtype)n->dtype) && bytes < MACHINE_COMPUTED_FLOAT_BYTES)
    bytes = MACHINE_COMPUTED_FLOAT_BYTES;
  return ceil(bytes * range_likely_trips(lanes) / width);
}

static bool is_float_product(const node *n) {
  return (n->op == OP_MUL && dtype_is_float((dtype)n->dtype)) || tensor_row_of((op)n->op);
}

/** Marks a product that is the operand of this sum alone. */
static bool fuse(builder *b, const node *product, const node *sum) {
  if (!is_float_product(product) || (uintptr_t)map_get(&b->users, product) != 1) return false;
  map_set(b->a, &b->fused, product, (void *)sum);
  return true;
}

static void find_fused(builder *b, const node *n) {
  if (n->op == OP_ADD || n->op == OP_SUB)
    if (!fuse(b, n->src[0], n)) fuse(b, n->src[1], n);
  for (size_t i = 0; n->op == OP_FOLD && i < fold_n_states(n); i++) {
    const node *step = fold_step(n, i);
    if (step->op == OP_STAGE) step = stage_value(step, (size_t)fold_component(n, i));
    if (fold_op(n, i) == OP_ADD) fuse(b, step, n);
  }
}

/** Adds an elementwise node. Logic on indices runs lane by lane; scalar conditions and integers run
   beside the vectors. */
static void add_operation(builder *b, const node *n) {
  bool computes = op_is_elementwise((op)n->op) && n->dtype != DT_INDEX;
  if (!computes || map_has(&b->fused, n)) return;
  const node *lanes = node_vector_range(n);
  bool is_index_logic = n->dtype == DT_BOOL && n->n_src && n->src[0]->dtype == DT_INDEX;
  bool is_integer = n->op == OP_WHERE || !dtype_is_float((dtype)n->dtype);
  double cost = op_cost((op)n->op) * copies_of(n);
  summary_loop *l = &b->s.loops.at[loop_of_node(b, n)];
  if (is_index_logic && lanes) l->lanes_moved += copies_of(n) * range_likely_trips(lanes);
  if (is_index_logic || (is_integer && !lanes))
    l->scalars += lanes ? cost * range_likely_trips(lanes) : cost;
  else
    l->operations += cost * vectors_of(b, n, lanes);
}

/* Accesses. */

/** Number of different elements that an address takes along a range: fewer than indices where the
    range is divided. */
static double count_distinct(const node *address, const node *range) {
  double trips = range_likely_trips(range), most = 1;
  for (size_t i = 0; i < ix_terms(address); i++) {
    const node *x = ix_atom(address, i);
    bool divides = x->op == OP_FLOORDIV && x->src[0] == range && node_is_const(x->src[1]);
    double n = !node_is_free_in(range, x) ? 1
               : divides                  ? ceil(trips / (double)node_int(x->src[1]))
                                          : trips;
    if (n > most) most = n;
  }
  return most;
}

/** Part of an access that is made along one range. */
static summary_stride stride_of(const builder *b, const node *address, const node *range,
                                double bytes) {
  double stride = (double)address_likely_stride(address, range), lanes = scanned_lanes(b, range);
  bool is_irregular = stride == 0; /* a quotient, or a gathered index */
  if (is_irregular) stride = MACHINE_IRREGULAR_STRIDE;
  return (summary_stride){loop_of_range(b, range), ceil(count_distinct(address, range) / lanes),
                          fabs(stride) * bytes * lanes, is_irregular};
}

/** An array of a node `at`: its extents and the coordinates that are accessed. */
typedef struct place {
  const node *array;
  size_t component; /* value of a STAGE */
  size_t rank;
  const node *const *extents;
  const node *const *coords;
} place;

/** Adds the accesses of all copies at a place. Lanes at consecutive addresses are one access, and a
   move of lanes where the addresses fall; others are one each, and are inserted into a vector, or
   extracted from it, one by one. */
static void add_access(builder *b, const node *at, const place *w, size_t loop, bool is_store) {
  const node *address = row_major_address(b->g, w->rank, w->extents, w->coords);
  const node *mask = address->op == OP_WHERE ? address->src[0] : NULL;
  if (mask) address = address->src[1];
  double bytes = element_bytes(at), count = 1, by_lanes = 0;
  bool is_reversed = false;
  summary_access x = {.array = w->array,
                      .component = w->component,
                      .loop = loop,
                      .element = bytes,
                      .size = bytes,
                      .offset = (double)ix_offset(address) * bytes,
                      .is_store = is_store};
  for (size_t i = 0; i < w->rank; i++) x.size *= ix_likely(w->extents[i]);
  for (uint32_t i = 0; i < address->free->n && x.n < SUMMARY_MOST_STRIDES; i++) {
    const node *r = address->free->at[i];
    bool is_alike = !mask || !node_is_free_in(r, mask); /* all lanes exist, or none */
    summary_stride stride = stride_of(b, address, r, bytes);
    bool is_tile = map_has(&b->tiled, r);
    if (is_tile && address_stride(address, r) == 1) { /* a row of a tile */
      x.element = bytes * range_likely_trips(r);
      continue;
    }
    if (range_is_unrolled(r) || is_tile) count *= range_likely_trips(r);
    bool is_lane = range_kind_of(r) == KIND_VECTOR, is_scanned = map_has(&b->scanned, r);
    int64_t step = address_stride(address, r);
    if (((is_lane && is_alike) || is_scanned) && (step == 1 || step == -1)) {
      x.element = bytes * (is_scanned ? scanned_lanes(b, r) : range_likely_trips(r));
      if (step < 0) x.offset -= x.element - bytes;
      is_reversed |= step < 0;
      if (is_lane) count *= vectors_of(b, at, r);
      if (is_lane) continue;
    }
    if (step < 0) x.offset -= stride.bytes * (stride.trips - 1);
    x.along[x.n++] = stride;
    if (range_kind_of(r) == KIND_VECTOR) by_lanes = is_alike ? stride.trips : range_likely_trips(r);
  }
  if (by_lanes > 0) count *= by_lanes;
  vec_push(b->a, &b->s.accesses, x);
  summary_loop *l = &b->s.loops.at[loop];
  *(is_store ? &l->stores : &l->loads) += count;
  if (by_lanes > 0 || is_reversed) l->lanes_moved += count;
  if (mask) l->scalars += count;
}

/** True if an element of a binder is read at indices that vary in loops: it is in memory then. */
static bool is_read_in_loops(const builder *b, const node *index) {
  for (uint32_t k = 1; k < index->n_src; k++)
    for (uint32_t i = 0; i < index->src[k]->free->n; i++)
      if (is_loop(b, index->src[k]->free->at[i])) return true;
  return false;
}

static void add_load(builder *b, const node *n) {
  const node *from = n->src[0];
  size_t loop = loop_of_node(b, n), component = (size_t)n->ints[0];
  place w = {.array = from, .coords = n->src + 1};
  if (from->op == OP_STAGE) w.component = component;
  if (from->op == OP_PARAM) {
    w.rank = from->rank;
    w.extents = from->dims;
    add_access(b, n, &w, loop, false);
  } else if (from->op == OP_STAGE && (!stage_is_in_registers(from) || is_read_in_loops(b, n))) {
    w.rank = stage_rank(from, component);
    w.extents = stage_extents(from, component);
    add_access(b, n, &w, loop, false);
  } else if (from->op == OP_FOLD && !map_has(&b->scanned, from) &&
             is_read_in_loops(b, n)) { /* spilled, and loaded again */
    double count = copies_of(n) * vectors_of(b, n, node_vector_range(n));
    b->s.loops.at[loop].loads += count;
    b->s.loops.at[loop].stores += count;
  }
}

/** Adds the stores of a STAGE to its arrays, or to the PARAMs of an OUT. */
static void add_stores(builder *b, const node *stage, const node *out) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const place w = {out ? out->src[i] : stage, out ? 0 : i, stage_rank(stage, i),
                     stage_extents(stage, i), stage_coords(stage, i)};
    add_access(b, stage_value(stage, i), &w, innermost_loop(b, stage, stage_loop_depth(stage, i)),
               true);
  }
}

/* Reductions. */

/** Adds the steps of one state: operations of the FOLD's innermost loop, or, where the state is an
    array in memory, of the loop over its elements. Returns the operations of the FOLD's loop. */
static double add_state(builder *b, const node *fold, size_t state) {
  const node *step = fold_step(fold, state), *lanes = node_vector_range(fold), *value = step;
  double copies = copies_of(fold);
  bool is_array = step->op == OP_STAGE, is_loaded = is_array && !stage_is_in_registers(step);
  if (is_array) value = stage_value(step, (size_t)fold_component(fold, state));
  for (size_t i = 0; is_array && i < stage_n_ranges(step); i++) {
    const node *r = stage_range(step)[i];
    if (range_is_unrolled(r)) copies *= range_likely_trips(r);
    if (range_kind_of(r) == KIND_VECTOR) lanes = r;
  }
  double count = copies * vectors_of(b, value, lanes);
  if (is_loaded) {
    summary_loop *l = &b->s.loops.at[innermost_loop(b, step, stage_n_ranges(step))];
    l->loads += count;
    l->stores += count;
    if (fold_op(fold, state) >= 0) l->operations += count;
    return 0;
  }
  return fold_op(fold, state) >= 0 ? count : 0; /* operations of other steps are nodes */
}

static void add_fold(builder *b, const node *fold) {
  size_t n = fold_n_ranges(fold);
  summary_loop *l = &b->s.loops.at[innermost_loop(b, fold, n)]; /* no loop is added any more */
  if (map_has(&b->tiled, fold)) { /* sums, or the terms that one op adds to a sum */
    bool is_terms = range_is_tile(fold_innermost_range(fold), TILE_K);
    if (is_terms) l->operations += copies_of(fold) * MACHINE_TILE_OPERATIONS;
    return;
  }
  double operations = 0, copies = 1, trips = 1;
  for (size_t i = 0; i < n; i++)
    *(is_loop(b, fold_range(fold)[i]) ? &trips : &copies) *= loop_trips(b, fold_range(fold)[i]);
  for (size_t i = 0; i < fold_n_states(fold); i++) operations += add_state(b, fold, i);
  if (map_has(&b->scanned, fold))
    operations +=
        MACHINE_SCAN_STEP_OPERATIONS * log2(scanned_lanes(b, fold)) + MACHINE_SCAN_STATE_OPERATIONS;
  l->operations += operations * copies;
  double chain = MACHINE_FLOAT_ADD_CYCLES * copies;
  if (trips > 1 && chain > l->chain) {
    l->chain = chain;
    l->steps = trips;
  }
}

/* The summary. */

static void count_users(builder *b, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++) {
      uintptr_t n = (uintptr_t)map_get(&b->users, order->at[i]->src[k]);
      map_set(b->a, &b->users, order->at[i]->src[k], (void *)(n + 1));
    }
}

/** STAGEs that are the steps of FOLDs, as keys: their elements are accumulators. */
static map find_steps(arena *a, const node_list *order) {
  map steps = {0};
  for (size_t i = 0; i < order->n; i++)
    for (size_t k = 0; order->at[i]->op == OP_FOLD && k < fold_n_states(order->at[i]); k++)
      map_set(a, &steps, fold_step(order->at[i], k), (void *)order->at[i]);
  return steps;
}

kernel_summary kernel_summary_of(ir *g, const node *sink, const target *t, int math) {
  builder b = {.g = g, .a = ir_scratch(g), .t = t};
  node_list order = topo_sort(b.a, &sink, 1, NULL, NULL);
  map steps = find_steps(b.a, &order);
  count_users(&b, &order);
  find_tiles(&b, &order);
  find_scans(&b, &order, math);
  vec_push(b.a, &b.s.loops, (summary_loop){.trips = 1, .runs = 1});
  for (size_t i = order.n; i-- > 0;) /* users first: a binder is inside of its users' loops */
    if (node_is_binder(order.at[i])) add_loops(&b, order.at[i]);
  for (size_t i = 0; i < order.n && math & MATH_CONTRACT; i++) find_fused(&b, order.at[i]);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    const node *out = n->op == OP_STAGE ? law_find_out(sink, n) : NULL;
    if (n->op == OP_INDEX) add_load(&b, n);
    if (n->op == OP_FOLD) add_fold(&b, n);
    if (out || (n->op == OP_STAGE && !map_has(&steps, n) && !stage_is_in_registers(n)))
      add_stores(&b, n, out);
    add_operation(&b, n);
  }
  return b.s;
}

bool summary_is_inside(const kernel_summary *s, size_t loop, size_t outer) {
  while (s->loops.at[loop].depth > s->loops.at[outer].depth) loop = s->loops.at[loop].parent;
  return loop == outer;
}
