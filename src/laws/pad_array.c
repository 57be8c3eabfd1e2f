/* Implements UNGATE, halo padding of an array S (a padded tile of a convolution's input): turns
   reads of elements that may lie outside, all under their own bounds check and with one constant c,
   into plain reads of a wider array:

     S = STAGE over r < n (v(r));  where(0 ≤ e < n, S[e], c)
       →   S′ = STAGE over r < low + n + high (where(0 ≤ r − low < n, v(r − low), c));  S′[e + low]

   low and high are the reach of e by interval bounds. The coordinates of S are its ranges. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

enum { MOST_EXTENT = 1 << 24 }; /* of a padded array */

/** An array and its padding. */
typedef struct padding {
  laws *l;
  ir *g;
  const node *stage;
  size_t rank;
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK]; /* elements added before and after, by dimension */
  const node *fill;                            /* c; NULL: no read has a condition yet */
  map with;                                    /* reads → their replacements */
} padding;

static const node *extent_of(const padding *p, size_t i) { return stage_extents(p->stage, 0)[i]; }

static const char *array_objection(const node *s) {
  const char *why = law_plain_array_objection(s);
  if (why) return why;
  for (size_t i = 0; i < stage_rank(s, 0); i++) {
    const node *n = stage_extents(s, 0)[i];
    if (!node_is_const(n) || node_int(n) < 1 || node_int(n) > MOST_EXTENT)
      return "an extent of the array is not a number";
  }
  return NULL;
}

/** Objection to ranges inside the STAGE with extents that depend on its ranges: in the padding
   these could be negative. */
static const char *extent_objection(arena *a, const node *s) {
  node_list order = topo_sort(a, s->src, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE &&
        law_depends_on_any(stage_range(s), stage_n_ranges(s), range_extent(order.at[i])))
      return "the extent of a range inside the array depends on its indices";
  return NULL;
}

/** Bounds checks of a read, without those that always hold. */
static node_list bounds_checks(const padding *p, const node *index) {
  node_list all = {0};
  for (size_t i = 0; i < p->rank; i++) {
    const node *x = index->src[1 + i];
    const node *ends[] = {ix_le(p->g, ix_const(p->g, 0), x), ix_lt(p->g, x, extent_of(p, i))};
    for (int k = 0; k < 2; k++)
      if (!node_is_bits(ends[k], 1)) vec_push(ir_arena(p->g), &all, ends[k]);
  }
  return all;
}

/** True if a condition is the conjunction of exactly these. */
static bool is_conjunction_of(arena *a, const node *condition, const node_list *wanted) {
  node_list open = {0}, found = {0};
  vec_push(a, &open, condition);
  while (open.n) {
    const node *n = vec_pop(&open);
    if (n->op == OP_AND) {
      vec_push(a, &open, n->src[0]);
      vec_push(a, &open, n->src[1]);
    } else if (nodes_contain(wanted->at, wanted->n, n)) {
      vec_push(a, &found, n);
    } else if (!node_is_bits(n, 1)) {
      return false;
    }
  }
  for (size_t i = 0; i < wanted->n; i++)
    if (!nodes_contain(found.at, found.n, wanted->at[i])) return false;
  return true;
}

/** Widens the padding to cover a read; false if it would be too wide. */
static bool cover_read(padding *p, const node *index) {
  for (size_t i = 0; i < p->rank; i++) {
    const node *x = index->src[1 + i];
    int64_t n = node_int(extent_of(p, i));
    if (x->lo < -MOST_EXTENT || x->hi > MOST_EXTENT) return false;
    if (-x->lo > p->low[i]) p->low[i] = -x->lo;
    if (x->hi - n + 1 > p->high[i]) p->high[i] = x->hi - n + 1;
    if (n == 1 && p->low[i] + p->high[i] > 0)
      return false; /* a coordinate of extent 1 has no range */
  }
  return true;
}

/** Objection to a use of an element that may lie outside. */
static const char *use_objection(padding *p, const node *index, const node *use,
                                 const node_list *conditions) {
  if (use->op != OP_WHERE || use->src[1] != index || use->src[2]->op != OP_CONST)
    return "a read outside the array has no condition";
  if (p->fill && p->fill != use->src[2]) return "reads outside the array yield different constants";
  p->fill = use->src[2];
  if (!is_conjunction_of(ir_arena(p->g), use->src[0], conditions))
    return "a read of the array has conditions other than its bounds";
  return cover_read(p, index) ? NULL : "reads outside the array are too far away for padding";
}

static const char *read_objection(padding *p, const node *index, const node_list *order) {
  const char *why = NULL;
  node_list conditions = bounds_checks(p, index);
  for (size_t i = 0; i < order->n && conditions.n && !why; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src && !why; k++)
      if (order->at[i]->src[k] == index) why = use_objection(p, index, order->at[i], &conditions);
  return why;
}

static const char *kernel_objection(padding *p, const node_list *order) {
  const char *why = law_readers_objection(order, p->stage);
  for (size_t i = 0; i < order->n && !why; i++) {
    const node *n = order->at[i];
    if (n->op == OP_INDEX && n->src[0] == p->stage) why = read_objection(p, n, order);
  }
  if (why) return why;
  return p->fill ? NULL : "no read of the array has a bounds check";
}

/** The padded array. */
static const node *padded_array(padding *p) {
  ir *g = p->g;
  arena *a = ir_arena(g);
  const node *s = p->stage, *inside = ir_const_bits(g, DT_BOOL, 1);
  size_t n = stage_n_ranges(s);
  const node *const *coords = stage_coords(s, 0);
  const node **ranges = arena_copy(a, stage_range(s), n * sizeof *ranges);
  const node **src = arena_copy(a, s->src, s->n_src * sizeof *src);
  map with = {0};
  for (size_t i = 0; i < p->rank; i++) {
    if (!p->low[i] && !p->high[i]) continue;
    const node *extent = ix_add_const(g, extent_of(p, i), p->low[i] + p->high[i]);
    const node *own = range_make(g, extent, KIND_LOOP), *x = ix_add_const(g, own, -p->low[i]);
    const node *old = extent_of(p, i);
    inside = ix_and(g, inside, ix_in_bounds(g, 1, &x, &old));
    map_set(a, &with, coords[i], (void *)x);
    for (size_t k = 0; k < n; k++) ranges[k] = ranges[k] == coords[i] ? own : ranges[k];
    src[(size_t)(&coords[i] - s->src)] = own;
    src[(size_t)(&stage_extents(s, 0)[i] - s->src)] = extent;
  }
  src[0] = ir_op3(g, OP_WHERE, inside, subst(g, stage_value(s, 0), &with), p->fill);
  return binder_with_ranges(g, s, src, n, ranges);
}

/** Maps reads of the array, and selects between a read and c, to reads of the padded array. */
static void replace_reads(padding *p, const node *padded, const node_list *order) {
  arena *a = ir_arena(p->g);
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    if (n->op == OP_WHERE && map_has(&p->with, n->src[1]) && n->src[1]->src[0] == p->stage &&
        bounds_checks(p, n->src[1]).n)
      map_set(a, &p->with, n, map_get(&p->with, n->src[1]));
    if (n->op != OP_INDEX || n->src[0] != p->stage) continue;
    const node **coords = arena_alloc(a, (p->rank + 1) * sizeof *coords);
    for (size_t k = 0; k < p->rank; k++)
      coords[k] = ix_add_const(p->g, subst(p->g, n->src[1 + k], &p->with), p->low[k]);
    map_set(a, &p->with, n,
            (void *)index_make(p->g, (dtype)n->dtype, padded, n->ints[0], p->rank, coords));
  }
}

const node *law_ungate(laws *l, const node *sink, const node *stage) {
  const char *why = array_objection(stage);
  if (!why) why = extent_objection(ir_arena(l->g), stage);
  if (why) return law_refuse(l, why);
  padding p = {.l = l, .g = l->g, .stage = stage, .rank = stage_rank(stage, 0)};
  node_list order = law_index_of(l, sink).nodes;
  why = kernel_objection(&p, &order);
  if (why) return law_refuse(l, why);
  replace_reads(&p, padded_array(&p), &order);
  return law_record(l, sink, subst(l->g, sink, &p.with), LAW_UNGATE, &(law_args){.subject = stage},
                    NULL);
}
