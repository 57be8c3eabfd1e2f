/* Tiles products for teams of workers: a group computes a block of rows and columns of a nest, and
   each of its workers a register tile in it, whose rows and columns lie as many apart as the group
   has workers there. Reductions run in blocks; operands that depend on rows or on columns alone are
   copied for each block to memory that the group shares, by all of its workers together; where the
   device can copy while workers go on, some blocks ahead. Tiles are ordered by an estimate of the
   time of a unit of the device, from rows of machine.def: operations, loads from group memory,
   barriers, and latency, which the groups hide that fit the unit at once, and blocks that are
   copied ahead.

     for i, j { FOLD k }
       →  for gi, gj (groups), il, jl (workers)
            FOLD over ko, ki (STAGE over copies of i, j),  operands packed for each ko */
#include "codegen/choose/team_tiles.h"
#include "codegen/choose/teams.h"
#include "ir/core/topo_sort.h"
#include "target/kernel_estimates.h"
#include "target/machine.h"

#include <math.h>
#include <stdlib.h>

typedef VEC(team_tile) team_tile_list;

/* Nests. */

/** Axes of digits: columns are the fastest. */
static int64_t digit_axis(size_t axis) { return axis == COLUMNS ? 0 : 1; }

static bool is_reduction_of_scalars(const node *f) {
  bool is_plain = fold_has_scalar_states(f) && !fold_n_emits(f) && fold_n_ranges(f) <= MOST_RANGES;
  for (size_t i = 0; i < fold_n_ranges(f) && is_plain; i++)
    is_plain =
        range_kind_of(fold_range(f)[i]) == KIND_LOOP && !range_extent(fold_range(f)[i])->free->n;
  return is_plain;
}

/** The only reduction of a nest without arrays; NULL: there is none, or more. */
static const node *only_fold(choice *c, const node *stage) {
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

/** Lists the operands; true if each axis has one that its indices share. */
static bool find_operands(product *p) {
  arena *a = ir_arena(p->c->laws.g);
  bool is_shared[AXES] = {false, false};
  node_list order = topo_sort(a, p->fold->src, fold_n_states(p->fold) * 2, NULL, NULL);
  p->operands.n = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_PARAM || !is_in_fold(p->fold, n)) continue;
    operand o = {.index = n};
    for (size_t k = 0; k < AXES; k++) o.depends[k] = node_is_free_in(p->axis[k], n);
    for (size_t k = 0; k < AXES; k++) is_shared[k] |= !o.depends[k] && o.depends[!k];
    vec_push(a, &p->operands, o);
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

static int64_t group_indices(const team_tile *t, size_t axis) {
  return t->workers[axis] * t->copies[axis] * team_tensor_side(t, axis);
}

static int64_t team_of(const team_tile *t) {
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
      bytes += (double)(dtype_bytes((dtype)o->index->dtype) * (size_t)t->block) *
               (double)group_indices(t, o->depends[ROWS] ? ROWS : COLUMNS);
  }
  return bytes;
}

/** Cycles in which a unit loads what one term of all of a group's workers needs. */
static double load_cycles(const team_tile *t, double warps, double warp) {
  double cycles = 0;
  if (t->tensor) return team_tensor_loads(t);
  for (size_t i = 0; i < t->of->operands.n; i++) {
    const operand *o = &t->of->operands.at[i];
    double loads = o->depends[ROWS] ? (double)t->copies[ROWS] : 1;
    double apart = o->depends[COLUMNS] ? fmin((double)t->workers[COLUMNS], warp) : 1;
    if (o->depends[COLUMNS]) loads *= (double)(t->copies[COLUMNS] / t->lanes);
    double bytes = apart * (double)dtype_bytes((dtype)o->index->dtype) *
                   (double)(o->depends[COLUMNS] ? t->lanes : 1);
    double each = fmax(1, bytes / MACHINE_TEAM_GROUP_BYTES_PER_CYCLE);
    cycles += loads * each * (is_packed(t, o) ? 1 : MACHINE_TEAM_FAR_LOADS);
  }
  return cycles * warps;
}

/** Registers of a worker. */
static double registers_of(const team_tile *t) {
  if (t->tensor) return team_tensor_registers(t);
  double rows = (double)t->copies[ROWS], columns = (double)t->copies[COLUMNS];
  return rows * columns * (double)fold_n_states(t->of->fold) + rows + columns +
         MACHINE_TEAM_SPARE_REGISTERS;
}

/** True if workers can copy a block of the reduction while they go on with another. */
static bool may_copy_ahead(const team_tile *t) {
  size_t sizes = t->of->c->target->copy_bytes;
  bool is_any = false;
  if (t->of->terms <= (double)t->block) return false;
  for (size_t i = 0; i < t->of->operands.n; i++) {
    const operand *o = &t->of->operands.at[i];
    if (!t->tensor && !is_packed(t, o)) continue;
    if (!(sizes & dtype_bytes((dtype)o->index->dtype))) return false;
    is_any = true;
  }
  return is_any;
}

/** Cycles of a unit for its share of the groups; < 0: a limit is exceeded. */
static double tile_cycles(const team_tile *t) {
  const target *to = t->of->c->target;
  double warp = to->warp ? (double)to->warp : MACHINE_TEAM_WARP, registers = registers_of(t);
  double workers = ceil((double)team_of(t) / warp) * warp, block = packed_bytes(t);
  double slots = (double)t->slots, bytes = block * slots, barriers = slots > 1 ? 1 : 2;
  double most = to->registers ? to->registers : MACHINE_TEAM_REGISTERS;
  if (registers > most || bytes > (double)to->group_bytes) return -1;
  double units = to->hardware.cores ? (double)to->hardware.cores : 1, groups = t->of->others;
  for (size_t k = 0; k < AXES; k++) groups *= ceil(t->of->indices[k] / (double)group_indices(t, k));
  double share = ceil(groups / units), here = MACHINE_TEAM_UNIT_REGISTERS / (registers * workers);
  here = fmin(here, MACHINE_TEAM_UNIT_WORKERS / workers);
  if (bytes > 0)
    here = fmin(here, fmax(MACHINE_TEAM_UNIT_GROUP_BYTES, (double)to->group_bytes) / bytes);
  here = fmax(1, fmin(floor(here), share));
  double products =
      (double)(t->copies[ROWS] * t->copies[COLUMNS]) * (double)fold_n_states(t->of->fold);
  double work = t->tensor ? team_tensor_work(t) : workers * products / MACHINE_TEAM_UNIT_LANES;
  double loads = load_cycles(t, workers / warp, warp);
  double busy =
      (double)t->block * (fmax(work, loads) + fmin(work, loads) / MACHINE_HIDDEN_OPERATIONS);
  busy += block / MACHINE_TEAM_FAR_BYTES_PER_CYCLE;
  double turn = fmax(busy + barriers * MACHINE_TEAM_BARRIER_CYCLES / here,
                     (MACHINE_TEAM_LATENCY_CYCLES + busy) / (here * slots));
  return share * ceil(t->of->terms / (double)t->block) * turn;
}

/** True if a group's block of an axis fits in it, or, of an open size, in what is likely. */
static bool fits_axis(const team_tile *t, size_t axis) {
  const node *extent = range_extent(t->of->axis[axis]);
  int64_t block = group_indices(t, axis);
  return node_is_const(extent) ? block <= node_int(extent) : block <= ix_likely(extent);
}

static int64_t lanes_of(const product *p) {
  int64_t lanes = 1;
  for (size_t i = 0; i < p->operands.n; i++) {
    const node *index = p->operands.at[i].index;
    const target *to = p->c->target;
    int64_t most = target_lanes(to, to->vector_bytes, dtype_bytes((dtype)index->dtype));
    if (most > lanes) lanes = most;
  }
  return stores_side_by_side(p, p->axis[COLUMNS]) ? lanes : 1;
}

static void add_tile(team_tile t, team_tile_list *to) {
  choice *c = t.of->c;
  if (team_of(&t) > c->target->team_workers || !fits_axis(&t, ROWS) || !fits_axis(&t, COLUMNS))
    return;
  for (size_t k = 0; k < AXES; k++) {
    int64_t side = team_side(c, digit_axis(k)); /* of another nest of the kernel */
    if (side && side != t.workers[k]) return;
  }
  if (t.tensor && (team_of(&t) == t.tensor->workers || !team_tensor_fits(t.of, t.block))) return;
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

/** The best tiles of a nest, the cheapest first; of equal ones along two pairs of axes the earlier.
 */
static team_tile_list list_tiles(choice *c, const node *stage, const node *fold, bool tensor) {
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

/* Cutting a tile out of a nest. */

bool team_set(choice *c, const node *sink) {
  if (sink) c->sink = sink;
  return sink != NULL;
}

/** Finds the nest of whole blocks: what is left over of an open size is a nest of its own. */
static bool cut_remainders(choice *c, const team_tile *t, cut *made) {
  const product *p = t->of;
  const node *stage = p->stage, *whole = p->axis[ROWS], *rest;
  for (size_t k = 0; k < AXES; k++) {
    size_t at = range_position(stage_range(p->stage), p->axis[k]);
    const node *range = stage_range(stage)[at];
    if (node_is_const(range_extent(range))) continue;
    if (!choice_split_remainder(c, range, group_indices(t, k), &whole, &rest)) return false;
    stage = law_find_binder(&c->laws, c->sink, whole);
  }
  for (size_t k = 0; k < AXES; k++)
    made->axis[k] = stage_range(stage)[range_position(stage_range(p->stage), p->axis[k])];
  made->fold = only_fold(c, stage);
  return made->fold != NULL;
}

static bool cut_axis(choice *c, const team_tile *t, size_t axis, cut *made) {
  const node *inner, *rest;
  int64_t lanes = t->tensor ? team_tensor_side(t, axis) : axis == COLUMNS ? t->lanes : 1;
  /* The last block overlaps the one before. */
  if (!team_set(c, law_overlap(&c->laws, c->sink, made->axis[axis], group_indices(t, axis),
                               &made->groups[axis], &inner)))
    return false;
  if (!team_set(c, law_split(&c->laws, c->sink, inner, t->workers[axis] * lanes,
                             &made->copies[axis], &rest)))
    return false;
  made->workers[axis] = rest;
  if (lanes == 1) return true;
  if (t->tensor)
    return team_set(c, law_split(&c->laws, c->sink, rest, lanes, &made->workers[axis], &inner)) &&
           team_tensor_cut(c, t, axis, inner, made);
  if (!team_set(c, law_split(&c->laws, c->sink, rest, lanes, &made->workers[axis], &made->lanes)))
    return false;
  return true;
}

/** Blocks of a reduction: its innermost ranges, and a part of the next. */
static bool cut_terms(choice *c, const team_tile *t, cut *made) {
  const node *fold = made->fold, *outer, *inner;
  int64_t left = t->block;
  size_t n = fold_n_ranges(fold);
  made->n_terms = 0;
  while (n > 0) {
    const node *r = fold_range(fold)[--n], *extent = range_extent(r);
    bool is_whole = node_is_const(extent) && node_int(extent) <= left;
    if (!is_whole && left < 2) break;
    inner = r;
    if (!is_whole && !team_set(c, law_split(&c->laws, c->sink, r, left, &outer, &inner)))
      return false;
    made->terms[made->n_terms++] = inner;
    if (!is_whole) break;
    left /= node_int(extent);
  }
  return made->n_terms > 0;
}

static bool is_among_terms(const cut *k, const node *n) {
  for (size_t i = 0; i < k->n_terms; i++)
    if (node_is_free_in(k->terms[i], n)) return true;
  return false;
}

/** Lists the ranges of an axis inside of a group. */
static size_t inside_group(const cut *k, size_t axis, const node *to[]) {
  size_t n = 0;
  if (k->copies[axis]) to[n++] = k->copies[axis];
  if (k->workers[axis]) to[n++] = k->workers[axis];
  if (axis == COLUMNS && k->lanes) to[n++] = k->lanes;
  const node *tile[] = {axis == ROWS ? k->part[axis] : k->lane[axis],
                        axis == ROWS ? k->lane[axis] : k->part[axis]};
  for (size_t i = 0; i < 2 && tile[i]; i++) to[n++] = tile[i];
  return n;
}

static bool varies_along(const cut *k, size_t axis, const node *n) {
  const node *inside[MOST_INSIDE];
  size_t count = inside_group(k, axis, inside);
  for (size_t i = 0; i < count; i++)
    if (node_is_free_in(inside[i], n)) return true;
  return false;
}

/** Packs an expression of the reduction that depends on one axis, if workers along the other share
    it; NULL: refused. */
static const node *pack(choice *c, const team_tile *t, const cut *k, const node *e) {
  const node *inner[MOST_RANGES + MOST_INSIDE], *element;
  bool along[AXES] = {varies_along(k, ROWS, e), varies_along(k, COLUMNS, e)};
  if (!is_among_terms(k, e) || along[ROWS] == along[COLUMNS]) return NULL;
  if (!t->tensor && t->workers[along[ROWS] ? COLUMNS : ROWS] < 2) return NULL;
  size_t n = 0, count = inside_group(k, along[ROWS] ? ROWS : COLUMNS, inner);
  for (size_t i = 0; i < count; i++)
    if (node_is_free_in(inner[i], e)) inner[n++] = inner[i];
  for (size_t i = 0; i < k->n_terms; i++)
    if (node_is_free_in(k->terms[i], e)) inner[n++] = k->terms[i];
  const node *lanes = along[COLUMNS] && k->lanes && node_is_free_in(k->lanes, e) ? k->lanes : NULL;
  return law_data(&c->laws, c->sink, e, inner, n, lanes, &element);
}

static void pack_operands(choice *c, const team_tile *t, const cut *k) {
  for (bool changed = true; changed;) {
    node_list all = law_data_expressions(&c->laws, c->sink);
    changed = false;
    for (size_t i = 0; i < all.n && !changed; i++) changed = team_set(c, pack(c, t, k, all.at[i]));
  }
}

/** Gives a range a kind, and moves it behind the others of its nest. */
static bool set_copies(choice *c, const node **range, range_kind kind) {
  const node *const *ranges, *changed;
  if (!*range) return true;
  size_t n = binder_ranges(law_find_binder(&c->laws, c->sink, *range), &ranges);
  if (ranges[n - 1] != *range && !team_set(c, law_order(&c->laws, c->sink, *range, n - 1)))
    return false;
  if (!team_set(c, law_kind(&c->laws, c->sink, *range, kind, &changed))) return false;
  *range = changed;
  return true;
}

bool team_set_digit(choice *c, const node **range, range_kind kind, int64_t axis) {
  const node *changed;
  if (!*range) return true;
  if (!team_set(c, law_kind_on_axis(&c->laws, c->sink, *range, kind, axis, &changed))) return false;
  *range = changed;
  return true;
}

static bool set_kinds(choice *c, cut *k) {
  for (size_t i = 0; i < AXES; i++)
    if (!team_set_digit(c, &k->groups[i], KIND_GLOBAL, digit_axis(i)) ||
        !team_set_digit(c, &k->workers[i], KIND_LOCAL, digit_axis(i)) ||
        !team_set_digit(c, &k->lane[i], KIND_WARP, digit_axis(i)))
      return false;
  return set_copies(c, &k->copies[ROWS], KIND_UNROLL) &&
         set_copies(c, &k->copies[COLUMNS], KIND_UNROLL) &&
         set_copies(c, &k->part[ROWS], KIND_UNROLL) &&
         set_copies(c, &k->part[COLUMNS], KIND_UNROLL) && set_copies(c, &k->lanes, KIND_VECTOR);
}

/** Other ranges of a nest become groups, as long as there are axes. */
static void set_other_groups(choice *c, const node *any) {
  const node *stage = law_find_binder(&c->laws, c->sink, any);
  node_list ranges = {0};
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    vec_push(ir_arena(c->laws.g), &ranges, stage_range(stage)[i]);
  for (size_t i = ranges.n, axis = AXES; i-- > 0 && axis < LAW_AXES;)
    if (range_kind_of(ranges.at[i]) == KIND_LOOP)
      axis += team_set_digit(c, &ranges.at[i], KIND_GLOBAL, (int64_t)axis);
}

/* Copies that a team fills. */

/** True for a packed operand that was none of the kernel's arrays before, and whose loops nobody
   has divided yet. */
static bool is_copy(choice *c, const map *before, const node *b) {
  bool is_array = b->op == OP_STAGE && !choice_is_out(c, b) && stage_n_ranges(b);
  if (!is_array || map_has(before, b)) return false;
  for (size_t i = 0; i < stage_n_ranges(b); i++)
    if (range_kind_of(stage_range(b)[i]) != KIND_LOOP) return false;
  node_list nodes = topo_sort(ir_arena(c->laws.g), b->src, stage_n_values(b), NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_STATE || nodes.at[i]->op == OP_FOLD) return false;
  return true;
}

/** The range of a copy along which its source lies side by side; NULL: none. */
static const node *range_of_source(choice *c, const node *stage) {
  node_list nodes = topo_sort(ir_arena(c->laws.g), stage->src, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *n = nodes.at[i], *r = stage_range(stage)[k];
      if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM && node_is_free_in(r, n) &&
          read_is_unit_stride(c->laws.g, r, n))
        return r;
    }
  return NULL;
}

/** One range for all of a copy's; that along its source is the fastest. NULL: refused. */
static const node *flatten(choice *c, const node *stage) {
  const node *fast = range_of_source(c, stage), *any = stage_range(stage)[0], *const * ranges;
  size_t n = stage_n_ranges(stage);
  if (fast && stage_range(stage)[n - 1] != fast &&
      !team_set(c, law_order(&c->laws, c->sink, fast, n - 1)))
    return NULL;
  while (binder_ranges(law_find_binder(&c->laws, c->sink, any), &ranges) > 1)
    if (!team_set(c, law_flatten(&c->laws, c->sink, ranges[0], &any))) return NULL;
  return any;
}

/** Divides a range of all workers of a group among its warps. */
static bool fill_by_warps(choice *c, const team_tile *t, const node *team) {
  const node *rows, *columns, *inside, *warp;
  int64_t warps = t->workers[COLUMNS], workers = t->tensor->workers;
  return team_set(c, law_split(&c->laws, c->sink, team, warps * workers, &rows, &inside)) &&
         team_set(c, law_split(&c->laws, c->sink, inside, workers, &columns, &warp)) &&
         team_set_digit(c, &columns, KIND_LOCAL, digit_axis(COLUMNS)) &&
         team_set_digit(c, &rows, KIND_LOCAL, digit_axis(ROWS)) && team_tensor_fill(c, warp);
}

/** Divides a copy among all workers of a group, in turns of one element of each. */
static bool fill_by_team(choice *c, const team_tile *t, const node *stage) {
  const node *all = flatten(c, stage), *turns, *team, *rows = NULL, *columns;
  if (!all || !team_set(c, law_split(&c->laws, c->sink, all, team_of(t), &turns, &team)))
    return false;
  if (t->tensor) return fill_by_warps(c, t, team);
  columns = team;
  if (t->workers[ROWS] > 1 && t->workers[COLUMNS] > 1 &&
      !team_set(c, law_split(&c->laws, c->sink, team, t->workers[COLUMNS], &rows, &columns)))
    return false;
  if (t->workers[COLUMNS] == 1) rows = columns, columns = NULL;
  return team_set_digit(c, &columns, KIND_LOCAL, digit_axis(COLUMNS)) &&
         team_set_digit(c, &rows, KIND_LOCAL, digit_axis(ROWS));
}

static bool fill_copies(choice *c, const team_tile *t, const map *before) {
  for (bool changed = true; changed;) {
    node_list binders = choice_binders(c);
    changed = false;
    for (size_t i = 0; i < binders.n && !changed; i++) {
      if (!is_copy(c, before, binders.at[i])) continue;
      if (!fill_by_team(c, t, binders.at[i])) return false;
      changed = true;
    }
  }
  return true;
}

/** Gives the copies slots, as far as laws allow it. */
static void set_slots(choice *c, int64_t slots, const map *before) {
  for (bool changed = true; changed;) {
    node_list binders = choice_binders(c);
    changed = false;
    for (size_t i = 0; i < binders.n && !changed; i++) {
      const node *b = binders.at[i];
      bool is_new = b->op == OP_STAGE && !map_has(before, b) && stage_slots(b) == 1;
      changed = is_new && team_set(c, law_depth(&c->laws, c->sink, b, slots));
    }
  }
}

static bool fits_group(const choice *c) {
  return team_shared_bytes(c, c->sink) <= (double)c->target->group_bytes;
}

/** Builds the copies ahead, in as many slots as fit up to those of the tile. */
static void copy_ahead(choice *c, const team_tile *t, const map *before) {
  const node *plain = c->sink;
  for (int64_t slots = t->slots; slots > 1; slots--) {
    set_slots(c, slots, before);
    if (fits_group(c)) return;
    c->sink = plain;
  }
}

/** Tiles a nest; false: a law refuses, or the arrays that the group shares are too large. */
static bool apply(choice *c, const team_tile *t) {
  cut k = {0};
  map before = {0};
  node_list arrays = choice_binders(c);
  for (size_t i = 0; i < arrays.n; i++) map_set(ir_arena(c->laws.g), &before, arrays.at[i], NULL);
  if (!cut_remainders(c, t, &k) || !cut_axis(c, t, ROWS, &k) || !cut_axis(c, t, COLUMNS, &k) ||
      !cut_terms(c, t, &k))
    return false;
  pack_operands(c, t, &k);
  if (!set_kinds(c, &k)) return false;
  set_other_groups(c, t->tensor ? k.lane[COLUMNS] : k.lanes ? k.lanes : k.workers[COLUMNS]);
  if (t->tensor && !team_tensor_jam(c, t, &k)) return false;
  if (!t->tensor) choose_unroll_and_jam(c);
  if (!fill_copies(c, t, &before) || (t->tensor && !team_tensor_finish(c))) return false;
  copy_ahead(c, t, &before);
  return fits_group(c);
}

/** Tiles a nest by one of the best tiles, in tiles of warps or not. */
static bool choose_tile(choice *c, const node *stage, const node *fold, bool tensor) {
  const node *before = c->sink;
  team_tile_list tiles = list_tiles(c, stage, fold, tensor);
  if (!tiles.n) return false;
  size_t taken = choice_decide(c, DECISION_TILE, tiles.n);
  for (size_t i = 0; i < tiles.n; i++) {
    if (apply(c, &tiles.at[(taken + i) % tiles.n])) return true;
    c->sink = before;
  }
  return false;
}

bool choose_team_tile(choice *c, const node *stage) {
  const node *fold = only_fold(c, stage);
  return fold && (choose_tile(c, stage, fold, true) || choose_tile(c, stage, fold, false));
}
