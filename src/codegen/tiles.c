/* Register tiles. Where indices of a nest read the same elements in its reductions, some of them
   are computed at once: each element is read once for all of them, and there are as many
   independent sums as the processor can keep going. The nest's ranges are cut into copies, which
   come inside of the reductions' loops later (copies.c). */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/topo.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

#include <math.h>

/* What a tile must save, times, to be worth its code twice where a size varies. */
static const double VARYING = 1.5;

enum {
  AXES = 2,        /* ranges that a tile is cut from */
  MOST_CUT = 32,   /* indices of one range in a tile */
  LEAST_TILED = 2, /* indices of a range, for certain, of which tiles may overlap */
  LATENCY = 4,     /* cycles from an operand of an addition to its result */
  AT_ONCE = 2,     /* additions, and loads, that start in a cycle */
  BESIDE = 16,     /* operations beside what takes longer that cost as much as one of these */
  LOOP_COST = 1,   /* cycles an iteration, besides */
  JOINT = 4,       /* the power in which the times of what waits for each other are added */
  MOST_CODE = 512, /* instructions of the innermost loop */
  GATES = 4,       /* conditions on indices that are computed in the time of one operation */
  FROM_SECOND = 1,
  FROM_THIRD = 3, /* loads in whose time a line comes */
  SPARE = 1       /* registers for what is read and used at once */
};

typedef VEC(const node *) range_list;

typedef struct tiling {
  choice *c;
  range_list work; /* a range of each nest that is still to be looked at */
  map spent;       /* ranges that are not cut (any more) */
} tiling;

/* What a nest reads. */

/** An operation of a reduction's innermost loop, or a load. */
typedef struct operation {
  double copies;  /* of it, for one index of each axis */
  double each;    /* operations that each of them is */
  double element; /* bytes of a load */
  double alike;   /* loads of consecutive elements in the loops inside of the tile */
  double bytes;   /* that all loops inside of the tile's load, for one index of each axis */
  bool is_load, is_vector;
  bool along[AXES];  /* depends on the axis */
  bool next[AXES];   /* and reads consecutive elements along it */
  double slot[AXES]; /* bytes of the first cache that each index of it competes for, at least */
} operation;

/** An innermost loop of a nest, of a FOLD. */
typedef struct inner_loop {
  VEC(operation) operations;
  double states; /* for one index of each axis */
  double times;  /* that it runs for a tile */
} inner_loop;

/** A nest that might be tiled. */
typedef struct plan {
  const choice *c;
  tn_hardware hardware;
  ir *g;
  const node *stage;
  const node *axis[AXES]; /* NULL: none */
  const node *lanes;      /* the stage's vector; NULL: none */
  map gone;               /* what is not computed once there are boxes */
  bool is_parted;         /* what a tile leaves over is a nest of its own */
  bool has_parts;         /* so is what lanes of a reduction in it leave over */
  VEC(inner_loop) loops;  /* one after the other */
} plan;

typedef struct tile {
  int64_t cut[AXES];
  double cost; /* of all indices */
} tile;

static bool is_along(const plan *p, const node *n) {
  if (p->lanes && node_is_free_in(p->lanes, n)) return true;
  for (size_t k = 0; k < AXES; k++)
    if (p->axis[k] && node_is_free_in(p->axis[k], n)) return true;
  return false;
}

/** Whether copies of a FOLD can be put inside of it. */
static bool is_simple(const plan *p, const node *f) {
  if (f->op != OP_FOLD || !fold_is_of_scalars(f)) return false;
  for (size_t i = 0; i < fold_ranges(f); i++)
    if (is_along(p, range_extent(fold_range(f)[i]))) return false;
  return true;
}

static bool is_in_fold(const node *n, const node *fold) {
  return node_is_free_in(fold_innermost(fold), n);
}

/** The copies that there are of a node, without lanes. */
static double copies_of_node(const node *n, const node *lanes) {
  double copies = 1;
  for (uint32_t i = 0; i < n->free->n; i++)
    if (n->free->at[i] != lanes && range_is_copies(n->free->at[i]))
      copies *= weigh_indices(n->free->at[i]);
  return copies;
}

/** Whether a range is a loop of the nest, or of what is around it. */
static bool is_outside_tile(const plan *p, const node *range) {
  for (size_t k = 0; k < stage_ranges(p->stage); k++)
    if (stage_range(p->stage)[k] == range) return range_kind_of(range) == KIND_LOOP;
  return node_is_free_in(range, p->stage);
}

/** Bytes of what the loops inside of a tile load of an INDEX. */
static double bytes_inside(const plan *p, const node *index) {
  double bytes = (double)dtype_bytes((dtype)index->dtype);
  for (uint32_t i = 0; i < index->free->n; i++) {
    const node *r = index->free->at[i];
    if (!is_outside_tile(p, r)) bytes *= weigh_indices(r);
  }
  return bytes;
}

static bool is_next(const node *index, const node *range) {
  return ix_coefficient(index->src[index->n_src - 1], range) == 1;
}

/** How many loads of consecutive elements there are in the loops inside of a tile. */
static double loads_alike(const plan *p, const node *index) {
  double loads = 1;
  for (uint32_t i = 0; i < index->free->n; i++) {
    const node *r = index->free->at[i];
    if (!is_outside_tile(p, r) && is_next(index, r)) loads *= weigh_indices(r);
  }
  return loads;
}

/** Bytes that elements compete for in a cache in which those a page apart have one place: of these
    that come after each other along a range only some find a place at once. */
static double slot_of(const plan *p, const node *index, const node *range) {
  const node *from = index->src[0];
  int64_t page = p->hardware.page_bytes, line = p->hardware.line_bytes;
  if (from->op != OP_PARAM) return 0;
  const node *a = address_of(p->g, from->rank, from->dims, index->src + 1);
  int64_t apart = ix_coefficient(a, range) * (int64_t)dtype_bytes((dtype)index->dtype);
  int64_t largest = apart ? apart & -apart : 0; /* power of two in it */
  return largest < line ? 0 : (double)(largest < page ? largest : page);
}

/** Whether the lines that a tile reads at once have no place in the first cache beside each other.
 */
static bool is_crowded(const plan *p, const operation *o, const int64_t cut[]) {
  for (size_t k = 0; k < AXES; k++)
    if (o->slot[k] * (double)cut[k] > (double)p->hardware.l1_bytes) return true;
  return false;
}

/** How many loads something takes that is one by itself, if it comes from a further cache. */
static double loads_from(const plan *p, const operation *o, const int64_t cut[], double times) {
  double bytes = o->bytes * times / o->copies, alike = o->alike * o->element;
  double line = (double)p->hardware.line_bytes, second = (double)p->hardware.l2_bytes / 2;
  bool crowded = is_crowded(p, o, cut);
  if (bytes <= hardware_first_keeps(&p->hardware) && !crowded) return 1;
  for (size_t k = 0; k < AXES; k++) alike *= o->next[k] ? (double)cut[k] : 1;
  double lines = crowded ? 1 : o->element / (alike > line ? line : alike);
  return 1 + (bytes <= second ? FROM_SECOND : FROM_THIRD) * lines;
}

/** How often the loop of a FOLD runs for a tile. */
static double times_of(const plan *p, const node *fold) {
  double times = 1;
  for (size_t i = 0; i < fold_ranges(fold); i++) times *= weigh_indices(fold_range(fold)[i]);
  for (uint32_t i = 0; i < fold->free->n; i++) {
    const node *r = fold->free->at[i];
    if (range_kind_of(r) == KIND_LOOP && !is_outside_tile(p, r)) times *= weigh_indices(r);
  }
  return times;
}

/** Adds the innermost loop of a FOLD. */
static void add_loop(plan *p, const node *fold) {
  arena *a = ir_arena(p->g);
  node_list nest = weigh_nest(a, fold);
  const node *lanes = weigh_lanes(p->g, fold, &nest);
  inner_loop l = {.times = times_of(p, fold)};
  for (size_t i = 0; lanes && lanes != p->lanes && i < fold_ranges(fold); i++)
    p->has_parts |= !node_is_const(range_extent(fold_range(fold)[i]));
  l.states = (double)fold_states(fold) * copies_of_node(fold, lanes);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    bool work =
        op_is_elementwise((op)n->op) && n->dtype != DT_INDEX && n->op != OP_CAST && n->op != OP_MUL;
    if (!is_in_fold(n, fold) || !(weigh_is_read(n) || work) || map_has(&p->gone, n)) continue;
    operation o = {.copies = copies_of_node(n, lanes), .is_load = weigh_is_read(n)};
    o.each = o.is_load ? 1 : op_work((op)n->op);
    o.is_vector = lanes && node_is_free_in(lanes, n);
    bool scattered = o.is_vector && o.is_load && !weigh_reads_streamed(p->g, lanes, n);
    if (scattered && !choice_is_panel(p->c, p->stage, n, MOST_CUT / 2))
      o.each = WEIGH_SCATTERED * weigh_indices(lanes);
    if (n->dtype == DT_BOOL && !o.is_vector) o.each = 1.0 / GATES;
    if (o.is_load) {
      o.bytes = bytes_inside(p, n);
      o.alike = o.is_vector ? 1 : loads_alike(p, n);
      o.element = (double)dtype_bytes((dtype)n->dtype) * (o.is_vector ? weigh_indices(lanes) : 1);
    }
    for (size_t k = 0; k < AXES; k++) {
      o.along[k] = p->axis[k] && node_is_free_in(p->axis[k], n);
      o.next[k] = o.along[k] && o.is_load && !o.is_vector && is_next(n, p->axis[k]);
      if (o.along[k] && o.is_load) o.slot[k] = slot_of(p, n, p->axis[k]);
    }
    vec_push(a, &l.operations, o);
  }
  vec_push(a, &p->loops, l);
}

/** The FOLDs of a nest that hold no other: their loops are the innermost. */
static bool is_innermost(arena *a, const node *fold) {
  node_list nest = weigh_nest(a, fold);
  for (size_t i = 0; i < nest.n; i++)
    if (nest.at[i]->op == OP_FOLD && is_in_fold(nest.at[i], fold)) return false;
  return true;
}

/** Fills a plan for two ranges; false: not all that depends on one of them could be put inside. */
static bool make_plan(plan *p) {
  arena *a = ir_arena(p->g);
  node_list nest = weigh_nest(a, p->stage);
  choice_boxed(p->c, p->stage, &p->gone);
  for (size_t i = 0; i < nest.n; i++) {
    const node *b = nest.at[i];
    if ((b->op != OP_STAGE && b->op != OP_FOLD) || !is_along(p, b)) continue;
    if (!is_simple(p, b)) return false;
    if (!is_innermost(a, b)) continue;
    add_loop(p, b);
  }
  return p->loops.n > 0;
}

/* How much it costs. */

/** Cycles that two things take beside each other: where both take about as long, each now and then
    waits for the other. */
static double longer(double a, double b) { return pow(pow(a, JOINT) + pow(b, JOINT), 1.0 / JOINT); }

/** Cycles of an iteration of an innermost loop for a tile of these cuts; < 0: it has too many
    instructions, or registers. */
static double cycles_of(const plan *p, const inner_loop *l, const int64_t cut[], double registers) {
  double all = 1, loads = 0, work = 0, held = SPARE;
  for (size_t k = 0; k < AXES; k++) all *= (double)cut[k];
  for (size_t i = 0; i < l->operations.n; i++) {
    const operation *o = &l->operations.at[i];
    double times = o->copies;
    for (size_t k = 0; k < AXES; k++) times *= o->along[k] ? (double)cut[k] : 1;
    if (o->is_load)
      loads += o->each * times * loads_from(p, o, cut, times);
    else
      work += o->each * times;
    if (o->is_load && o->is_vector) held += times;
  }
  work += l->states * all;
  held += l->states * all;
  if (held > registers || loads + work > MOST_CODE) return -1;
  double most = (loads > work ? loads + work / BESIDE : work + loads / BESIDE) / AT_ONCE;
  return longer(most, LATENCY) + LOOP_COST;
}

/** Cycles for a tile of these cuts; < 0: it cannot be. What a loop made waits in memory while
    another one needs the registers. */
static double cycles(const plan *p, const int64_t cut[], double registers) {
  double sum = 0;
  for (size_t i = 0; i < p->loops.n; i++) {
    double each = cycles_of(p, &p->loops.at[i], cut, registers);
    if (each < 0) return each;
    sum += each * p->loops.at[i].times;
  }
  return sum;
}

/** Cycles for all indices of both ranges, in tiles of which the last overlaps the one before. */
static double cost_of_overlapping(const plan *p, const int64_t cut[], double registers) {
  double times = 1, each = cycles(p, cut, registers);
  for (size_t k = 0; k < AXES && p->axis[k]; k++)
    times *= ceil(weigh_indices(p->axis[k]) / (double)cut[k]);
  return each < 0 ? each : each * times;
}

/** The same with smaller tiles for what a cut leaves over. */
static double cost_of_parts(const plan *p, const int64_t cut[], double registers) {
  double sum = 0;
  for (unsigned part = 0; part < 1u << AXES; part++) {
    int64_t here[AXES];
    double times = 1;
    for (size_t k = 0; k < AXES; k++) {
      bool left = part >> k & 1;
      double n = p->axis[k] ? weigh_indices(p->axis[k]) : 1;
      int64_t whole = (int64_t)n / cut[k], over = (int64_t)n - whole * cut[k];
      here[k] = left ? over : cut[k];
      times *= left ? over > 0 : (double)whole;
    }
    if (times == 0) continue;
    double each = cycles(p, here, registers);
    if (each < 0) return -1;
    sum += each * times;
  }
  return sum;
}

static double cost_of(const plan *p, const int64_t cut[], double registers) {
  return p->is_parted ? cost_of_parts(p, cut, registers) : cost_of_overlapping(p, cut, registers);
}

static int64_t most_cut(const plan *p, size_t k) {
  const node *extent = p->axis[k] ? range_extent(p->axis[k]) : NULL;
  int64_t n = !extent ? 1 : p->is_parted ? extent->hi : extent->lo;
  return n < MOST_CUT ? n : MOST_CUT;
}

/** Puts the cheapest tile of a plan in the place of `best`, if it is cheaper. */
static bool find_tile(const plan *p, double registers, tile *best) {
  bool found = false;
  for (int64_t x = 1; x <= most_cut(p, 0); x++)
    for (int64_t y = 1; y <= most_cut(p, 1); y++) {
      tile t = {.cut = {x, y}};
      t.cost = cost_of(p, t.cut, registers);
      if (t.cost < 0 || t.cost >= best->cost) continue;
      *best = t;
      found = true;
    }
  return found;
}

static bool is_axis(const tiling *t, const node *r) {
  return range_kind_of(r) == KIND_LOOP && range_extent(r)->hi > 1 && !map_has(&t->spent, r);
}

static bool is_shared_along(const plan *p, size_t k) {
  for (size_t l = 0; l < p->loops.n; l++)
    for (size_t i = 0; i < p->loops.at[l].operations.n; i++) {
      const operation *o = &p->loops.at[l].operations.at[i];
      if (o->is_load && !o->along[k]) return true;
    }
  return false;
}

/** Where a size varies, there is code for what it leaves over as well: of the tile's own ranges, or
    of lanes that reductions have in themselves. To be worth it, something must be read that does
   not depend on the range; and not little must be saved by what is made twice for the tile. */
static double price_of_code(const plan *p, size_t k) {
  if (!p->axis[k]) return 1;
  bool is_twice = p->is_parted && !node_is_const(range_extent(p->axis[k]));
  if (!is_twice && !p->has_parts) return 1;
  if (!is_shared_along(p, k)) return INFINITY;
  return is_twice ? VARYING : 1;
}

/** For each of a nest's ranges, whether tiles along it may overlap, and there are indices for one.
 */
static const bool *overlaps(choice *c, const node *stage) {
  size_t n = stage_ranges(stage);
  bool *may = arena_alloc(ir_arena(c->laws.g), (n + 1) * sizeof *may);
  for (size_t i = 0; i < n; i++) {
    const node *r = stage_range(stage)[i];
    may[i] = range_extent(r)->lo >= LEAST_TILED && law_may_overlap(&c->laws, c->sink, r, 1);
  }
  return may;
}

/** The two ranges of a nest (the same twice: one) and their cuts that cost least. */
static bool best_tile(const tiling *m, const node *stage, plan *chosen, tile *best) {
  double registers = m->c->target->registers;
  bool found = false;
  size_t n = stage_ranges(stage);
  const bool *may = overlaps(m->c, stage);
  for (size_t i = 0; i < n; i++)
    for (size_t k = i; k < n; k++) {
      plan p = {.c = m->c, .g = m->c->laws.g, .stage = stage};
      p.hardware = hardware_known(&m->c->target->hardware);
      p.lanes = weigh_vector(stage);
      p.axis[0] = stage_range(stage)[i];
      p.axis[1] = k > i ? stage_range(stage)[k] : NULL;
      if (!is_axis(m, p.axis[0]) || (p.axis[1] && !is_axis(m, p.axis[1]))) continue;
      p.is_parted = !may[i] || !may[k];
      if (p.axis[1] && node_is_free_in(p.axis[0], range_extent(p.axis[1]))) continue;
      if (!make_plan(&p)) continue;
      /* What the other ranges do is the same for all: costs of one index of each. */
      double each = weigh_indices(p.axis[0]) * (p.axis[1] ? weigh_indices(p.axis[1]) : 1);
      double price = price_of_code(&p, 0) * price_of_code(&p, 1);
      if (isinf(price)) continue;
      each /= price;
      tile t = {.cost = best->cost * each};
      if (!find_tile(&p, registers, &t)) continue;
      t.cost /= each;
      *best = t;
      *chosen = p;
      found = true;
    }
  return found;
}

/* Cutting. */

/** The ranges of a nest after one of them was replaced are at the same positions. */
static const node *range_at(choice *c, const node *any, size_t position) {
  const node *const *ranges;
  binder_ranges(law_binder(&c->laws, c->sink, any), &ranges);
  return ranges[position];
}

/** Cuts `cut` indices off a range, as copies, and puts them just inside of all loops. */
static void unroll(choice *c, const node *range, int64_t cut) {
  laws *l = &c->laws;
  const node *outer, *inner, *copies, *const *ranges;
  const node *made = law_overlap(l, c->sink, range, cut, &outer, &inner);
  if (!made) made = law_split(l, c->sink, range, cut, &outer, &inner);
  if (!made) return;
  size_t n = binder_ranges(law_binder(l, made, inner), &ranges), at = n;
  while (at > 0 && range_kind_of(ranges[at - 1]) != KIND_LOOP) at--;
  const node *moved = law_order(l, made, inner, at ? at - 1 : 0);
  if (moved) made = law_kind(l, moved, inner, KIND_UNROLL, &copies);
  if (made && moved) c->sink = made;
}

/** Cuts a tile out of a nest. What is left over is looked at by itself; of a size that varies,
    little is. */
static void cut_tile(tiling *m, const plan *p, const tile *t) {
  choice *c = m->c;
  arena *a = ir_arena(c->laws.g);
  size_t position[AXES];
  const node *whole = p->axis[0], *rest, *before = c->sink;
  for (size_t k = 0; k < AXES && p->axis[k]; k++)
    position[k] = range_place(stage_range(p->stage), p->axis[k]);
  for (size_t k = 0; k < AXES && p->axis[k]; k++) {
    const node *range = range_at(c, whole, position[k]);
    if (!p->is_parted) {
      whole = range;
      continue;
    }
    if (!choice_part(c, range, t->cut[k], &whole, &rest)) {
      c->sink = before;
      map_set(a, &m->spent, p->axis[k], NULL);
      vec_push(a, &m->work, p->axis[k]);
      return;
    }
    if (rest) vec_push(a, &m->work, rest);
    if (rest && !node_is_const(range_extent(rest))) map_set(a, &m->spent, rest, NULL);
  }
  const node *first = range_at(c, whole, position[0]);
  const node *second = p->axis[1] ? range_at(c, whole, position[1]) : NULL;
  if (t->cut[0] > 1) unroll(c, first, t->cut[0]);
  if (second && t->cut[1] > 1) unroll(c, second, t->cut[1]);
}

static bool is_unrolled(const node *stage) {
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (range_is_copies(stage_range(stage)[i])) return true;
  return false;
}

/** Tiles the nest that binds a range. */
static void tile_nest(tiling *m, const node *range) {
  const node *stage = law_binder(&m->c->laws, m->c->sink, range);
  plan p;
  tile t = {.cost = INFINITY};
  if (!stage || stage->op != OP_STAGE || is_unrolled(stage)) return;
  if (!best_tile(m, stage, &p, &t)) return;
  if (t.cut[0] * t.cut[1] > 1) cut_tile(m, &p, &t);
}

void choose_tiles(choice *c) {
  tiling m = {.c = c};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n && c->target->registers; i++)
    if (binders.at[i]->op == OP_STAGE && stage_ranges(binders.at[i]))
      vec_push(ir_arena(c->laws.g), &m.work, stage_range(binders.at[i])[0]);
  while (m.work.n && !choice_is_full(c)) tile_nest(&m, vec_pop(&m.work));
}
