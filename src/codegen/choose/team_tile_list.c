/* Lists the tiles that a product for teams of workers may have, by an estimate of the time of a
   unit of the device, from rows of machine.def: operations, loads from group memory, barriers, and
   latency, which the groups hide that fit the unit at once, and blocks that are copied ahead. */
#include "codegen/choose/team_tiles.h"
#include "codegen/choose/teams.h"
#include "ir/core/topo_sort.h"
#include "target/kernel_estimates.h"
#include "target/machine.h"

#include <math.h>
#include <stdlib.h>

/* Nests. */

static bool is_reduction_of_scalars(const node *f) {
  bool is_plain = fold_has_scalar_states(f) && !fold_n_emits(f) && fold_n_ranges(f) <= MOST_RANGES;
  for (size_t i = 0; i < fold_n_ranges(f) && is_plain; i++)
    is_plain =
        range_kind_of(fold_range(f)[i]) == KIND_LOOP && !range_extent(fold_range(f)[i])->free->n;
  return is_plain;
}

const node *team_only_fold(choice *c, const node *stage) {
  const node *found = NULL;
  node_list order = topo_sort(ir_arena(c->laws.g), stage->src, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *b = order.at[i];
    if (b->op != OP_FOLD && b->op != OP_STAGE) continue;
    if (b->op == OP_STAGE || found || !is_reduction_of_scalars(b)) return NULL;
    found = b;
  }
  return found;
}

static bool is_in_fold(const node *fold, const node *n) {
  for (size_t i = 0; i < fold_n_ranges(fold); i++)
    if (node_is_free_in(fold_range(fold)[i], n)) return true;
  return false;
}

/** Adds an expression over elements of buffers that depends on one axis, or an element; false: it
   is neither. */
static bool add_operand(product *p, const node *n) {
  operand o = {.value = n};
  for (size_t k = 0; k < AXES; k++) o.depends[k] = node_is_free_in(p->axis[k], n);
  if (o.depends[ROWS] == o.depends[COLUMNS] && n->op != OP_INDEX) return false;
  vec_push(ir_arena(p->c->laws.g), &p->operands, o);
  return true;
}

/** Lists the operands, none of them a part of another one; true if each axis has one that its
    indices share. */
static bool find_operands(product *p) {
  arena *a = ir_arena(p->c->laws.g);
  bool is_shared[AXES] = {false, false};
  map expressions = {0}, parts = {0};
  node_list of_buffers = law_data_expressions(&p->c->laws, p->c->sink);
  node_list order = topo_sort(a, p->fold->src, fold_n_states(p->fold) * 2, NULL, NULL);
  for (size_t i = 0; i < of_buffers.n; i++) map_set(a, &expressions, of_buffers.at[i], NULL);
  p->operands.n = 0;
  for (size_t i = order.n; i-- > 0;) {
    const node *n = order.at[i];
    bool is_part = map_has(&parts, n), may_be = map_has(&expressions, n) && is_in_fold(p->fold, n);
    if (!is_part && !(may_be && add_operand(p, n))) continue;
    for (uint32_t k = 0; k < n->n_src; k++) map_set(a, &parts, n->src[k], NULL);
  }
  for (size_t i = 0; i < p->operands.n; i++) {
    const operand *o = &p->operands.at[i];
    for (size_t k = 0; k < AXES; k++) is_shared[k] |= !o->depends[k] && o->depends[!k];
  }
  return is_shared[ROWS] && is_shared[COLUMNS];
}

static bool is_axis(const product *p, const node *range) {
  return range_kind_of(range) == KIND_LOOP && !range_extent(range)->free->n &&
         node_is_free_in(range, p->fold);
}

static bool stores_side_by_side(const product *p, const node *range) {
  for (size_t i = 0; i < stage_n_values(p->stage); i++)
    if (!coordinates_are_unit_stride(p->c->laws.g, range, stage_rank(p->stage, i),
                                     stage_extents(p->stage, i), stage_coords(p->stage, i)))
      return false;
  return true;
}

/** Takes two ranges of a nest as its rows and columns; false: no tile would share operands. */
static bool take_axes(product *p, const node *rows, const node *columns) {
  p->axis[ROWS] = rows;
  p->axis[COLUMNS] = columns;
  if (rows == columns || !is_axis(p, rows) || !is_axis(p, columns) || !find_operands(p))
    return false;
  p->others = p->terms = 1;
  for (size_t i = 0; i < stage_n_ranges(p->stage); i++) {
    const node *r = stage_range(p->stage)[i];
    if (r != rows && r != columns) p->others *= range_likely_trips(r);
  }
  for (size_t k = 0; k < AXES; k++) p->indices[k] = range_likely_trips(p->axis[k]);
  for (size_t i = 0; i < fold_n_ranges(p->fold); i++)
    p->terms *= range_likely_trips(fold_range(p->fold)[i]);
  return true;
}

/* The cost of a tile. */

int64_t team_group_indices(const team_tile *t, size_t axis) {
  return t->workers[axis] * t->copies[axis] * team_tensor_side(t, axis);
}

int64_t team_group_workers(const team_tile *t) {
  return t->workers[ROWS] * t->workers[COLUMNS] * (t->tensor ? t->tensor->workers : 1);
}

/** True if an operand has a copy in the memory of the group: workers share its elements. */
static bool is_packed(const team_tile *t, const operand *o) {
  if (o->depends[ROWS] == o->depends[COLUMNS]) return false;
  return t->workers[o->depends[ROWS] ? COLUMNS : ROWS] > 1;
}

/** Bytes of the copies of a block of the reduction. */
static double packed_bytes(const team_tile *t) {
  double bytes = 0;
  if (t->tensor) return team_tensor_bytes(t);
  for (size_t i = 0; i < t->of->operands.n; i++) {
    const operand *o = &t->of->operands.at[i];
    if (is_packed(t, o))
      bytes += (double)(dtype_bytes((dtype)o->value->dtype) * (size_t)t->block) *
               (double)team_group_indices(t, o->depends[ROWS] ? ROWS : COLUMNS);
  }
  return bytes;
}

static double warp_of(const team_tile *t) {
  uint32_t warp = t->of->c->target->warp;
  return warp ? (double)warp : MACHINE_TEAM_WARP;
}

/** Cycles in which a unit loads what one term of all of a group's workers needs. */
static double load_cycles(const team_tile *t, double warps) {
  double cycles = 0;
  if (t->tensor) return team_tensor_loads(t);
  for (size_t i = 0; i < t->of->operands.n; i++) {
    const operand *o = &t->of->operands.at[i];
    double loads = o->depends[ROWS] ? (double)t->copies[ROWS] : 1;
    double workers = o->depends[COLUMNS] ? fmin((double)t->workers[COLUMNS], warp_of(t)) : 1;
    if (o->depends[COLUMNS]) loads *= (double)(t->copies[COLUMNS] / t->lanes);
    double bytes = workers * (double)dtype_bytes((dtype)o->value->dtype) *
                   (double)(o->depends[COLUMNS] ? t->lanes : 1);
    double each = fmax(1, bytes / MACHINE_TEAM_GROUP_BYTES_PER_CYCLE);
    cycles += loads * each * (is_packed(t, o) ? 1 : MACHINE_TEAM_GLOBAL_LOADS);
  }
  return cycles * warps;
}

static double registers_for(const team_tile *t, const node *value) {
  return (double)target_registers_for(t->of->c->target, dtype_bytes((dtype)value->dtype));
}

/** Registers of a worker: of its sums, and of what one term of them reads of each operand. */
static double registers_of(const team_tile *t) {
  const product *p = t->of;
  double all = MACHINE_TEAM_SPARE_REGISTERS, sums = (double)(t->copies[ROWS] * t->copies[COLUMNS]);
  if (t->tensor) return team_tensor_registers(t);
  for (size_t i = 0; i < fold_n_states(p->fold); i++)
    all += sums * registers_for(t, fold_step(p->fold, i));
  for (size_t i = 0; i < p->operands.n; i++) {
    const operand *o = &p->operands.at[i];
    bool along_one = o->depends[ROWS] != o->depends[COLUMNS];
    double copies = along_one ? (double)t->copies[o->depends[ROWS] ? ROWS : COLUMNS] : 1;
    all += copies * registers_for(t, o->value);
  }
  return all;
}

/** True for an element, and for one that is 0 outside of its buffer: no worker computes it. */
static bool is_loaded_alone(const node *value) {
  bool is_gated = value->op == OP_WHERE && node_is_bits(value->src[2], 0);
  return (is_gated ? value->src[1] : value)->op == OP_INDEX;
}

/** True if workers can copy a block of the reduction while they go on with another. */
static bool may_copy_ahead(const team_tile *t) {
  size_t sizes = t->of->c->target->copy_bytes;
  bool is_any = false;
  if (t->of->terms <= (double)t->block) return false;
  for (size_t i = 0; i < t->of->operands.n; i++) {
    const operand *o = &t->of->operands.at[i];
    if (!t->tensor && !is_packed(t, o)) continue;
    if (!is_loaded_alone(o->value) || !(sizes & dtype_bytes((dtype)o->value->dtype))) return false;
    is_any = true;
  }
  return is_any;
}

/** Workers that a group takes of a unit: whole warps. */
static double occupied_workers(const team_tile *t) {
  return ceil((double)team_group_workers(t) / warp_of(t)) * warp_of(t);
}

/** Groups that one unit computes. */
static double groups_of_unit(const team_tile *t) {
  double cores = t->of->c->target->hardware.cores, groups = t->of->others;
  for (size_t k = 0; k < AXES; k++)
    groups *= ceil(t->of->indices[k] / (double)team_group_indices(t, k));
  return ceil(groups / fmax(1, cores));
}

/** Occupancy: groups that are resident on a unit at once, by registers, workers, and memory. */
static double resident_groups(const team_tile *t) {
  double workers = occupied_workers(t), bytes = packed_bytes(t) * (double)t->slots;
  double memory = fmax(MACHINE_TEAM_UNIT_GROUP_BYTES, (double)t->of->c->target->group_bytes);
  double groups = MACHINE_TEAM_UNIT_REGISTERS / (registers_of(t) * workers);
  groups = fmin(groups, MACHINE_TEAM_UNIT_WORKERS / workers);
  if (bytes > 0) groups = fmin(groups, memory / bytes);
  return fmax(1, fmin(floor(groups), groups_of_unit(t)));
}

/** Cycles in which a unit works on a block of the reduction for one group. */
static double busy_cycles(const team_tile *t) {
  double workers = occupied_workers(t), sums = (double)fold_n_states(t->of->fold);
  sums *= (double)(t->copies[ROWS] * t->copies[COLUMNS]);
  double work = t->tensor ? team_tensor_work(t) : workers * sums / MACHINE_TEAM_UNIT_LANES;
  double loads = load_cycles(t, workers / warp_of(t));
  double term = fmax(work, loads) + fmin(work, loads) / MACHINE_HIDDEN_OPERATIONS;
  return (double)t->block * term + packed_bytes(t) / MACHINE_TEAM_GLOBAL_BYTES_PER_CYCLE;
}

/** Cycles of a unit for its share of the groups; < 0: a limit is exceeded. */
static double tile_cycles(const team_tile *t) {
  const target *to = t->of->c->target;
  double slots = (double)t->slots, barriers = slots > 1 ? 1 : 2;
  if (registers_of(t) > to->registers || packed_bytes(t) * slots > (double)to->group_bytes)
    return -1;
  double resident = resident_groups(t), busy = busy_cycles(t);
  double iteration = fmax(busy + barriers * MACHINE_TEAM_BARRIER_CYCLES / resident,
                          (MACHINE_TEAM_LATENCY_CYCLES + busy) / (resident * slots));
  return groups_of_unit(t) * ceil(t->of->terms / (double)t->block) * iteration;
}

/** True if a group's block of an axis fits in it, or, of an open size, in what is likely. */
static bool fits_axis(const team_tile *t, size_t axis) {
  const node *extent = range_extent(t->of->axis[axis]);
  int64_t block = team_group_indices(t, axis);
  return node_is_const(extent) ? block <= node_int(extent) : block <= ix_likely(extent);
}

static int64_t lanes_of(const product *p) {
  int64_t lanes = 1;
  for (size_t i = 0; i < p->operands.n; i++) {
    const node *value = p->operands.at[i].value;
    const target *to = p->c->target;
    int64_t most = target_lanes(to, to->vector_bytes, dtype_bytes((dtype)value->dtype));
    if (most > lanes) lanes = most;
  }
  return stores_side_by_side(p, p->axis[COLUMNS]) ? lanes : 1;
}

static void add_tile(team_tile t, team_tile_list *to) {
  choice *c = t.of->c;
  if (team_group_workers(&t) > c->target->team_workers || !fits_axis(&t, ROWS) ||
      !fits_axis(&t, COLUMNS))
    return;
  for (size_t k = 0; k < AXES; k++) {
    int64_t side = team_side(c, team_digit_axis(k)); /* of another nest of the kernel */
    if (side && side != t.workers[k]) return;
  }
  if (t.tensor && (team_group_workers(&t) == t.tensor->workers || !team_tensor_fits(t.of, t.block)))
    return;
  t.cost = tile_cycles(&t);
  t.number = to->n;
  if (t.cost < 0) return;
  bool may_be_ahead = may_copy_ahead(&t);
  team_tile ahead = t;
  for (ahead.slots = 2; may_be_ahead && ahead.slots <= TILE_SLOTS_MOST; ahead.slots++) {
    ahead.cost = tile_cycles(&ahead);
    if (ahead.cost >= 0 && ahead.cost < t.cost) t = ahead;
  }
  vec_push(ir_arena(c->laws.g), to, t);
}

/** Adds the tiles of a nest whose indices workers divide, or warps in tiles: sides are powers of 2.
 */
static void add_tiles(const product *p, const tensor_tile *tensor, team_tile_list *to) {
  int64_t lanes = tensor ? 1 : lanes_of(p);
  for (int64_t workers = 1; workers <= p->c->target->team_workers; workers *= 2)
    for (int64_t across = 1; across <= workers; across *= 2)
      for (int64_t rows = 1; rows <= MOST_SIDE; rows *= 2)
        for (int64_t columns = 1; columns <= MOST_SIDE; columns *= 2)
          for (int64_t block = MOST_BLOCK / 4; block <= MOST_BLOCK; block *= 2)
            add_tile((team_tile){.of = p,
                                 .tensor = tensor,
                                 .workers = {workers / across, across},
                                 .copies = {rows, columns},
                                 .lanes = columns % lanes ? 1 : lanes,
                                 .block = block,
                                 .slots = 1},
                     to);
}

static int compare_tiles(const void *a, const void *b) {
  const team_tile *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

team_tile_list team_list_tiles(choice *c, const node *stage, const node *fold, bool tensor) {
  team_tile_list all = {0};
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      product *p = arena_calloc(ir_arena(c->laws.g), 1, sizeof *p);
      *p = (product){.c = c, .stage = stage, .fold = fold};
      if (!take_axes(p, stage_range(stage)[i], stage_range(stage)[k])) continue;
      const tensor_tile *tile = tensor ? team_tensor_tile(p) : NULL;
      if ((tile || !tensor) && stores_side_by_side(p, p->axis[COLUMNS])) add_tiles(p, tile, &all);
    }
  if (all.n) qsort(all.at, all.n, sizeof *all.at, compare_tiles);
  if (all.n > MOST_ALTERNATIVES) all.n = MOST_ALTERNATIVES;
  return all;
}
