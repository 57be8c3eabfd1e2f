/* Implements PARTITION, index-set splitting: splits a range r < n at a point p into r < p and r < n
   − p, each with a copy of the nest:

     OUT(STAGE over r < n (v(r)))
       →   OUT(STAGE over r < p (v(r))),  OUT(STAGE over r < n − p (v(p + r)))
     S = STAGE over r < n (v(r));  S[e]
       →   L = STAGE over r < p,  H = STAGE over r < n − p;  where(e < p, L[e], H[e − p])
     FOLD over r < n from i
       →   FOLD over r < n − p from the result of (FOLD over r < p from i)

   So conditions are constant in one part, or each part has a constant extent. p is constant or the
   last multiple of a constant. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"

#include "base/vec.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"

/* A STAGE that is stored to a buffer: two OUTs. */

/** A copy of a STAGE for the indices `from` … of `range`, `extent` of them. Extents of inner ranges
    may depend on outer ones: all ranges are copied from the outermost in. All sources are copied as
    one body, so that a binder which two values read is copied once. */
static const node *copy_stage_part(laws *l, const node *stage, const node *range, const node *from,
                                   const node *extent, const node **part) {
  const node *const *ranges;
  size_t n = binder_ranges(stage, &ranges);
  const node **fresh = arena_alloc(ir_arena(l->g), n * sizeof *fresh);
  map with = {0};
  for (size_t i = 0; i < n; i++) {
    const node *e = ranges[i] == range ? extent : range_extent(ranges[i]);
    const node *index = fresh[i] = range_clone(l->g, ranges[i], subst_ranges(l->g, e, &with));
    if (ranges[i] == range) {
      *part = fresh[i];
      index = ix_add(l->g, subst_ranges(l->g, from, &with), index);
    }
    map_set(ir_arena(l->g), &with, ranges[i], (void *)index);
  }
  const node *body = binder_with_ranges(l->g, stage, stage->src, 0, NULL);
  body = subst_fresh_ranges(l->g, body, &with);
  return binder_with_ranges(l->g, body, body->src, n, fresh);
}

static const node *out_with_stage(laws *l, const node *out, const node *stage) {
  const node **src = arena_copy(ir_arena(l->g), out->src, out->n_src * sizeof *src);
  src[out->n_src - 1] = stage;
  return ir_with_sources(l->g, out, src);
}

typedef struct partition {
  laws *l;
  const node *binder, *range;
  const node *at;         /* the point: the extent of the low part */
  const node *rest;       /* the extent of the high part */
  const node *low, *high; /* the ranges of the parts */
} partition;

static const node *low_part(partition *p) {
  return copy_stage_part(p->l, p->binder, p->range, ix_const(p->l->g, 0), p->at, &p->low);
}

static const node *high_part(partition *p) {
  return copy_stage_part(p->l, p->binder, p->range, p->at, p->rest, &p->high);
}

static const node *partition_out(partition *p, const node *sink, const node *out) {
  ir *g = p->l->g;
  size_t at = range_position(stage_range(p->binder), p->range);
  const char *why = law_in_place_objection(p->l, sink, p->binder, at, 1, true);
  if (why) return law_refuse(p->l, why);
  VEC(const node *) effects = {0};
  for (uint32_t i = 0; i < sink->n_src; i++) {
    if (sink->src[i] != out) {
      vec_push(ir_arena(g), &effects, sink->src[i]);
      continue;
    }
    vec_push(ir_arena(g), &effects, out_with_stage(p->l, out, low_part(p)));
    vec_push(ir_arena(g), &effects, out_with_stage(p->l, out, high_part(p)));
  }
  node_spec s = node_spec_with_sources(sink, effects.at, effects.n);
  return ir_make(g, &s);
}

/* A STAGE that the kernel reads: two arrays, and each reader selects one. */

/** Finds the only coordinate of a value that depends on the range; false unless it is the range. */
static bool find_own_coordinate(const node *stage, size_t value, const node *range, size_t *axis) {
  const node *const *coords = stage_coords(stage, value);
  size_t found = 0;
  for (size_t i = 0; i < stage_rank(stage, value); i++) {
    if (!node_is_free_in(range, coords[i])) continue;
    if (coords[i] != range) return false;
    *axis = i;
    found++;
  }
  return found == 1;
}

static const char *array_objection(partition *p, const node_list *order) {
  size_t axis;
  for (size_t i = 0; i < stage_n_ranges(p->binder); i++)
    if (node_is_free_in(stage_range(p->binder)[i], p->at) ||
        node_is_free_in(stage_range(p->binder)[i], p->rest))
      return "the parts would have different sizes along another range of the STAGE";
  for (size_t i = 0; i < stage_n_values(p->binder); i++)
    if (!find_own_coordinate(p->binder, i, p->range, &axis))
      return "the range is not a coordinate of every value";
  return law_readers_objection(order, p->binder);
}

/** A part whose arrays have the extent of the part. */
static const node *shrink_arrays(partition *p, const node *part, const node *range,
                                 const node *extent) {
  const node **src = arena_copy(ir_arena(p->l->g), part->src, part->n_src * sizeof *src);
  for (size_t i = 0, axis = 0; i < stage_n_values(part); i++) {
    find_own_coordinate(p->binder, i, p->range, &axis);
    src[(size_t)(stage_coords(part, i) - part->src) + axis] = range;
    src[(size_t)(stage_extents(part, i) - part->src) + axis] = extent;
  }
  return ir_with_sources(p->l->g, part, src);
}

/** A read of the STAGE as one of its parts, selected by coordinate. */
static const node *select_part(partition *p, const node *n, const node *low, const node *high,
                               const map *with) {
  ir *g = p->l->g;
  size_t axis = 0;
  find_own_coordinate(p->binder, (size_t)n->ints[0], p->range, &axis);
  const node **coords = arena_alloc(ir_arena(g), n->n_src * sizeof *coords);
  for (uint32_t i = 1; i < n->n_src; i++)
    coords[i - 1] = law_replace_coordinate(g, n->src[i], with);
  const node *below = ix_lt(g, coords[axis], p->at);
  const node *first = index_make(g, (dtype)n->dtype, low, n->ints[0], n->n_src - 1, coords);
  coords[axis] = ix_sub(g, coords[axis], p->at);
  const node *second = index_make(g, (dtype)n->dtype, high, n->ints[0], n->n_src - 1, coords);
  if (node_is_const(below)) return node_int(below) ? first : second;
  return ir_op3(g, OP_WHERE, below, first, second);
}

static const node *partition_array(partition *p, const node *sink) {
  arena *a = ir_arena(p->l->g);
  node_list order = law_index_of(p->l, sink).nodes;
  const char *why = array_objection(p, &order);
  if (why) return law_refuse(p->l, why);
  const node *low = low_part(p), *high = high_part(p);
  low = shrink_arrays(p, low, p->low, p->at);
  high = shrink_arrays(p, high, p->high, p->rest);
  map with = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0] == p->binder)
      map_set(a, &with, order.at[i], (void *)select_part(p, order.at[i], low, high, &with));
  return subst(p->l->g, sink, &with);
}

/* A FOLD: the second part starts from the results of the first. */

static const char *fold_objection(const node *f, const node *range) {
  if (fold_n_emits(f)) return "the FOLD emits values";
  for (size_t i = 0; i < fold_n_states(f); i++) {
    if (fold_component(f, i) >= 0) return "a state of the FOLD is an array";
    if (fold_op(f, i) < 0 && fold_range(f)[0] != range)
      return "the FOLD has an order in which the range is not outermost";
  }
  return NULL;
}

/** A copy of the FOLD with fresh ranges; `own` maps the old ranges to them. */
static const node *copy_fold(partition *p, map *own) {
  ir *g = p->l->g;
  const node *f = p->binder, *const *ranges = fold_range(f);
  size_t n = fold_n_ranges(f), states = fold_n_states(f);
  const node **fresh = law_copy_ranges(g, ranges, n, own);
  const node **src = arena_copy(ir_arena(g), f->src, f->n_src * sizeof *src);
  /* One body, so that operands which two steps share are copied once. */
  const node *steps = ir_node(g, OP_GROUP, DT_VOID, src + states, states, NULL, 0);
  steps = subst_fresh_ranges(g, steps, own);
  for (size_t i = 0; i < states; i++) src[states + i] = steps->src[i];
  return binder_with_ranges(g, f, src, n, fresh);
}

/** A copy of the FOLD for the indices `from` … of the range, `extent` of them. STATEs are named by
   the innermost range, which keeps its role in the index. */
static const node *copy_fold_part(partition *p, const node *from, const node *extent,
                                  const node *const inits[], const node **part) {
  ir *g = p->l->g;
  map copied = {0}, with = {0};
  const node *f = copy_fold(p, &copied), *const *ranges = fold_range(f);
  const node *range = map_get(&copied, p->range);
  size_t n = fold_n_ranges(f), states = fold_n_states(f);
  const node **own = arena_copy(ir_arena(g), ranges, n * sizeof *own);
  const node **src = arena_copy(ir_arena(g), f->src, f->n_src * sizeof *src);
  *part = range_clone(g, range, subst_ranges(g, extent, &copied));
  const node *index = ix_add(g, subst_ranges(g, from, &copied), *part);
  map_set(ir_arena(g), &with, range, (void *)index);
  for (size_t i = 0; i < n; i++) own[i] = own[i] == range ? *part : subst(g, own[i], &with);
  for (size_t i = states; i < 2 * states; i++) {
    if (range == ranges[n - 1]) src[i] = law_rename_state(g, src[i], range, *part);
    src[i] = subst(g, src[i], &with);
  }
  for (size_t i = 0; i < states; i++) src[i] = inits[i];
  return binder_with_ranges(g, f, src, n, own);
}

static const node *partition_fold(partition *p, const node *sink) {
  ir *g = p->l->g;
  const node *f = p->binder;
  const char *why = fold_objection(f, p->range);
  if (why) return law_refuse(p->l, why);
  size_t n = fold_n_states(f);
  const node **so_far = arena_alloc(ir_arena(g), n * sizeof *so_far);
  const node *first = copy_fold_part(p, ix_const(g, 0), p->at, f->src, &p->low);
  for (size_t i = 0; i < n; i++)
    so_far[i] = index_make(g, (dtype)fold_init(f, i)->dtype, first, (int64_t)i, 0, NULL);
  return law_replace(p->l, sink, f, copy_fold_part(p, p->at, p->rest, so_far, &p->high));
}

static const node *point_index(ir *g, law_point at, const node *extent) {
  if (!at.is_multiple) return ix_const(g, at.number);
  return ix_scale(g, ix_floordiv(g, extent, ix_const(g, at.number)), at.number);
}

/** The extent less the point; of a multiple as a remainder, whose bounds are tighter. */
static const node *extent_after(ir *g, law_point at, const node *extent) {
  const node *number = ix_const(g, at.number);
  return at.is_multiple ? ix_mod(g, extent, number) : ix_sub(g, extent, number);
}

const node *law_partition(laws *l, const node *sink, const node *range, law_point point,
                          const node **low, const node **high) {
  ir *g = l->g;
  const node *binder = law_find_binder(l, sink, range);
  if (!binder || binder->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  if (point.is_multiple && point.number < 1) return law_refuse(l, "the factor is not positive");
  const node *extent = range_extent(range), *at = point_index(g, point, extent), *made;
  range_kind kind = range_kind_of(range);
  if (kind == KIND_VECTOR || kind == KIND_UNROLL)
    return law_refuse(l, "the range has kind vector or unroll");
  if (!ix_prove_nonnegative(g, at) || !ix_prove_le(g, at, extent))
    return law_refuse(l, "the point is not proved to lie inside the range");
  partition p = {l, binder, range, at, extent_after(g, point, extent), NULL, NULL};
  if (at->hi <= 0 || p.rest->hi <= 0) return law_refuse(l, "one of the parts would be empty");
  const node *out = law_find_out(sink, binder);
  if (binder->op == OP_FOLD)
    made = partition_fold(&p, sink);
  else
    made = out ? partition_out(&p, sink, out) : partition_array(&p, sink);
  if (!made) return NULL;
  *low = p.low;
  *high = p.high;
  law_args args = {.subject = range, .number = point.number, .is_multiple = point.is_multiple};
  return law_record(l, sink, made, LAW_PARTITION, &args, (const node *[]){p.low, p.high});
}
