/* Implements DATA, the packing of operands (cache_read in Halide and TVM; im2col's box without
   duplicates): copies the elements that an expression reads along the ranges `inner` into an array
   first, so that the inner loops read consecutive memory without cache conflicts.

     … x[base + Σ c·r] …   →   P = STAGE over d < 1 + Σ c·(extent(r) − 1)  (x[base + d])
                               … P[Σ c·r] …

   Each coordinate is split into a base and an offset that is affine in the inner ranges (c ≥ 0,
   constant extents). An extent that varies up to a number, as that of the last block of a split
   axis, counts as that number if the expression is a lone element: the copy repeats the buffer's
   last row beyond its end. A range in which an index is not affine, as with overlapping blocks,
   gets an axis of its own. Conditions on indices are kept; their offsets must be multiples of
   those. */
#include "laws/law_support.h"

#include "ir/core/affine.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/substitute.h"

/** Traversal stops at elements of buffers: their coordinates are not part of the expression. */
static bool is_entered(const node *n, void *user) {
  (void)user;
  return n->op != OP_INDEX || n->src[0]->op != OP_PARAM;
}

/** One coordinate of the element that is read: base + offset. */
typedef struct side {
  const node *base;   /* free of the inner ranges */
  const node *offset; /* Σ c·r over the inner ranges */
  int64_t extent;     /* of all offsets, at most: 1 + Σ c·(extent(r) − 1) */
  bool varies;        /* the extent of one of the ranges does */
} side;

/** Splits a coordinate; returns an objection or NULL. */
static const char *split_coordinate(ir *g, const node *coord, const node *const inner[], size_t n,
                                    side *s) {
  s->offset = ix_const(g, 0);
  s->extent = 1;
  s->varies = false;
  for (size_t i = 0; i < ix_terms(coord); i++) {
    const node *atom = ix_atom(coord, i);
    int64_t c = ix_coefficient_at(coord, i), reach;
    if (!nodes_contain(inner, n, atom)) continue;
    const node *extent = range_extent(atom);
    if (c < 0) return "the buffer is read backwards along one of the ranges";
    if (!ix_prove_le(g, ix_const(g, 1), extent)) return "one of the ranges may be empty";
    s->varies |= !node_is_const(extent);
    if (__builtin_mul_overflow(c, extent->hi - 1, &reach) ||
        __builtin_add_overflow(s->extent, reach, &s->extent))
      return "the packed array is too large";
    s->offset = ix_add(g, s->offset, ix_scale(g, atom, c));
  }
  s->base = ix_sub(g, coord, s->offset);
  return law_depends_on_any(inner, n, s->base) ? "the indices are not affine in the ranges" : NULL;
}

/** The expression to pack and the box of offsets that its reads cover. */
typedef struct box {
  ir *g;
  const node *expression; /* with the array's ranges in place of those with an axis of their own */
  const node *const *inner;           /* ranges in which all coordinates are affine */
  size_t n;                           /* number of these */
  size_t rank;                        /* of the buffer */
  side sides[IR_MAX_RANK];            /* its coordinates */
  const node *box_range[IR_MAX_RANK]; /* range of the array, for each side longer than 1 */
} box;

/** An axis of the packed array. */
typedef struct axis {
  const node *range; /* of the STAGE that fills it */
  const node *at;    /* coordinate of the element that is read */
} axis;

/** An index expression with each side's offset replaced by the array's range for it; NULL: its own
    offset is no multiple of a side's. */
static const node *index_in_box(const box *b, const node *x) {
  ir *g = b->g;
  side own;
  if (split_coordinate(g, x, b->inner, b->n, &own)) return NULL;
  if (own.extent == 1) return own.base;
  for (size_t i = 0; i < b->rank; i++) {
    const node *offset = b->sides[i].offset;
    if (b->sides[i].extent < 2) continue;
    int64_t multiple =
        ix_coefficient(own.offset, ix_atom(offset, 0)) / ix_coefficient_at(offset, 0);
    if (own.offset == ix_scale(g, offset, multiple))
      return ix_add(g, own.base, ix_scale(g, b->box_range[i], multiple));
  }
  return NULL;
}

/** The element whose coordinates have the array's ranges for the inner ones, and end with the
    buffer; NULL: the expression is more than an element, or may begin before the buffer. */
static const node *element_in_box(const box *b) {
  const node *element = b->expression, *at[IR_MAX_RANK];
  if (element->op != OP_INDEX) return NULL;
  for (size_t i = 0; i < b->rank; i++) {
    const side *s = &b->sides[i];
    const node *size = element->src[0]->dims[i];
    at[i] = s->extent > 1 ? ix_add(b->g, s->base, b->box_range[i]) : element->src[1 + i];
    if (s->varies && !ix_prove_nonnegative(b->g, s->base)) return NULL;
    if (s->varies) at[i] = ix_min(b->g, at[i], ix_sub(b->g, size, ix_const(b->g, 1)));
  }
  return index_make(b->g, (dtype)element->dtype, element->src[0], 0, b->rank, at);
}

/** The expression in terms of the array's ranges; NULL: an index has another offset. */
static const node *expression_in_box(const box *b) {
  arena *a = ir_arena(b->g);
  node_list order = topo_sort(a, &b->expression, 1, is_entered, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *user = order.at[i];
    for (uint32_t k = 0; k < user->n_src && user->dtype != DT_INDEX; k++) {
      const node *x = user->src[k];
      if (x->dtype != DT_INDEX || !law_depends_on_any(b->inner, b->n, x)) continue;
      const node *made = index_in_box(b, x);
      if (!made) return NULL;
      map_set(a, &with, x, (void *)made);
    }
  }
  return subst(b->g, b->expression, &with);
}

/** The element of the packed array that replaces the expression; NULL: not possible. */
static const node *packed_element(const box *b, const axis axes[], size_t rank) {
  bool varies = false;
  for (size_t i = 0; i < b->rank; i++) varies |= b->sides[i].varies;
  const node *value = varies ? element_in_box(b) : expression_in_box(b);
  const node *ranges[IR_MAX_RANK], *extents[IR_MAX_RANK], *at[IR_MAX_RANK];
  if (!value) return NULL;
  for (size_t i = 0; i < rank; i++) {
    ranges[i] = axes[i].range;
    extents[i] = range_extent(axes[i].range);
    at[i] = axes[i].at;
  }
  const node *stage = stage_make(b->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = rank,
                                                     .values = &value,
                                                     .ranks = &rank,
                                                     .coords = ranges,
                                                     .extents = extents,
                                                     .ranges = ranges});
  return index_make(b->g, (dtype)b->expression->dtype, stage, 0, rank, at);
}

/** Nodes that are expressions over elements of buffers alone, and those that are not. */
typedef struct elements {
  map best;  /* node → the INDEX of a buffer in it with the most coordinates */
  map other; /* nodes that contain a STAGE, a FOLD or another node with a place of its own */
} elements;

static void note_element(arena *a, elements *e, const node *n) {
  const node *best = n->op == OP_INDEX && n->src[0]->op == OP_PARAM ? n : NULL;
  bool other = !best && n->dtype != DT_INDEX && n->op != OP_CONST && !op_is_elementwise((op)n->op);
  for (uint32_t i = 0; i < n->n_src && best != n; i++) {
    const node *found = map_get(&e->best, n->src[i]);
    other |= map_has(&e->other, n->src[i]);
    if (found && (!best || found->n_src > best->n_src)) best = found;
  }
  if (other) map_set(a, &e->other, n, NULL);
  if (best && !other) map_set(a, &e->best, n, (void *)best);
}

/** The INDEX of a buffer with the most coordinates in an expression over elements of buffers alone;
    NULL for other expressions. */
static const node *element_in(laws *l, const node *expression) {
  elements e = {0};
  node_list order = topo_sort(ir_arena(l->g), &expression, 1, is_entered, NULL);
  for (size_t i = 0; i < order.n; i++) note_element(ir_arena(l->g), &e, order.at[i]);
  return map_get(&e.best, expression);
}

node_list law_data_expressions(laws *l, const node *sink) {
  elements e = {0};
  arena *a = ir_arena(l->g);
  node_list order = law_index_of(l, sink).nodes, found = {0};
  for (size_t i = 0; i < order.n; i++) note_element(a, &e, order.at[i]);
  for (size_t i = order.n; i-- > 0;)
    if (order.at[i]->dtype != DT_INDEX && map_has(&e.best, order.at[i]))
      vec_push(a, &found, order.at[i]);
  return found;
}

/** A coordinate less its terms in inner ranges. */
static const node *without_inner_terms(ir *g, const node *coord, const node *const inner[],
                                       size_t n) {
  const node *rest = coord;
  for (size_t i = 0; i < n; i++)
    rest = ix_sub(g, rest, ix_scale(g, inner[i], ix_coefficient(coord, inner[i])));
  return rest;
}

/** Moves the ranges in which an index is not affine (overlapping blocks) behind the others; returns
    the number of the others. */
static size_t affine_first(ir *g, const node *index, const node **inner, size_t n) {
  for (uint32_t i = 1; i < index->n_src; i++)
    for (size_t k = n; k-- > 0;) {
      const node *r = inner[k];
      if (!node_is_free_in(r, without_inner_terms(g, index->src[i], inner, n))) continue;
      inner[k] = inner[--n];
      inner[n] = r;
    }
  return n;
}

/** True if the extent of a free range of an expression depends on `range`. */
static bool bounds_free_range(const node *range, const node *expression) {
  for (uint32_t i = 0; i < expression->free->n; i++)
    if (node_is_free_in(range, range_extent(expression->free->at[i]))) return true;
  return false;
}

/** Makes an axis for each range in which an index is not affine, and substitutes the axis' range in
    the expression; returns an objection or NULL. */
static const char *add_own_axes(box *b, const node *const apart[], size_t n, axis axes[]) {
  map with = {0};
  for (size_t i = 0; i < n; i++) {
    const node *extent = range_extent(apart[i]);
    if (!node_is_const(extent) || node_int(extent) < 1)
      return "the extent of one of the ranges is not a number";
    if (bounds_free_range(apart[i], b->expression))
      return "the extent of a range depends on one of them";
    axes[i] = (axis){range_make(b->g, extent, KIND_LOOP), apart[i]};
    map_set(ir_arena(b->g), &with, apart[i], (void *)axes[i].range);
  }
  b->expression = subst_fresh_ranges(b->g, b->expression, &with); /* FOLDs in indices are copied */
  return NULL;
}

/** Collects all axes: of sides longer than 1, then ranges with an axis of their own; those along
    `lanes` come last. Returns their number. */
static size_t order_axes(box *b, const axis apart[], size_t n_apart, const node *lanes,
                         axis axes[]) {
  size_t n = 0;
  for (int last = 0; last < 2; last++) {
    for (size_t i = 0; i < b->rank; i++) {
      const side *s = &b->sides[i];
      bool is_along_lanes = lanes && node_is_free_in(lanes, s->offset);
      if (s->extent < 2 || is_along_lanes != last) continue;
      b->box_range[i] = range_make(b->g, ix_const(b->g, s->extent), KIND_LOOP);
      axes[n++] = (axis){b->box_range[i], s->offset};
    }
    for (size_t i = 0; i < n_apart; i++)
      if ((apart[i].at == lanes) == last) axes[n++] = apart[i];
  }
  return n;
}

const node *law_data(laws *l, const node *sink, const node *expression, const node *const inner[],
                     size_t n, const node *lanes, const node **element) {
  const node *index = element_in(l, expression);
  if (!index) return law_refuse(l, "the expression is not computed from elements of buffers alone");
  if (law_reads_output(l, sink, expression))
    return law_refuse(l, "the kernel writes to the buffer");
  const node **ranges = arena_copy(ir_arena(l->g), inner, n * sizeof *ranges);
  box b = {.g = l->g, .expression = expression, .inner = ranges, .rank = index->n_src - 1};
  axis apart[IR_MAX_RANK], axes[IR_MAX_RANK];
  b.n = affine_first(l->g, index, ranges, n);
  if (b.rank + n - b.n > IR_MAX_RANK) return law_refuse(l, "the packed array has too many axes");
  const char *why = law_carried_state_objection(l, sink, expression, inner, n);
  if (!why) why = add_own_axes(&b, ranges + b.n, n - b.n, apart);
  index = element_in(l, b.expression);
  for (size_t i = 0; i < b.rank && !why; i++)
    why = split_coordinate(l->g, index->src[1 + i], b.inner, b.n, &b.sides[i]);
  if (why) return law_refuse(l, why);
  size_t count = order_axes(&b, apart, n - b.n, lanes, axes);
  if (!count) return law_refuse(l, "the expression does not vary along the ranges");
  *element = packed_element(&b, axes, count);
  if (!*element) return law_refuse(l, "a condition and the indices use the ranges differently");
  law_args args = {.subject = expression, .other = lanes, .list = inner, .n = n};
  return law_record(l, sink, law_replace(l, sink, expression, *element), LAW_DATA, &args, NULL);
}
