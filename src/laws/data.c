#include "laws/laws.h"

#include "ir/subst.h"

/** One coordinate of what is read: a base, and how far the inner ranges lead from it. */
typedef struct side {
  const node *base, *offset;
  int64_t extent; /* of all offsets: 1 + Σ c·(extent − 1) */
} side;

static bool is_inner(const node *const inner[], size_t n, const node *range) {
  for (size_t i = 0; i < n; i++)
    if (inner[i] == range) return true;
  return false;
}

static const char *side_of(ir *g, const node *coord, const node *const inner[], size_t n, side *s) {
  s->offset = ix_const(g, 0);
  s->extent = 1;
  for (size_t i = 0; i < ix_terms(coord); i++) {
    const node *atom = ix_atom(coord, i);
    int64_t c = ix_factor(coord, i), far;
    if (!is_inner(inner, n, atom)) continue;
    const node *extent = range_extent(atom);
    if (c < 0) return "it is read against one of the ranges";
    if (!node_is_const(extent) || node_int(extent) < 1)
      return "the extent of one of the ranges is not a number";
    if (__builtin_mul_overflow(c, node_int(extent) - 1, &far) ||
        __builtin_add_overflow(s->extent, far, &s->extent))
      return "what is read is too large";
    s->offset = ix_add(g, s->offset, ix_scale(g, atom, c));
  }
  s->base = ix_sub(g, coord, s->offset);
  for (size_t i = 0; i < n; i++)
    if (node_is_free_in(inner[i], s->base)) return "its indices are not affine in the ranges";
  return NULL;
}

/** The sides that are longer than 1, that along `lanes` last. */
static size_t order_sides(const side sides[], size_t rank, const node *lanes, size_t order[]) {
  size_t n = 0;
  for (int last = 0; last < 2; last++)
    for (size_t i = 0; i < rank; i++) {
      bool along = lanes && node_is_free_in(lanes, sides[i].offset);
      if (sides[i].extent > 1 && along == last) order[n++] = i;
    }
  return n;
}

/** The array of what is read, and the element of it that is. */
static const node *gathered(ir *g, const node *index, const side sides[], const size_t order[],
                            size_t rank) {
  arena *a = ir_arena(g);
  const node **ranges = arena_alloc(a, rank * sizeof *ranges);
  const node **extents = arena_alloc(a, rank * sizeof *extents);
  const node **at = arena_alloc(a, rank * sizeof *at);
  const node **coords = arena_alloc(a, index->n_src * sizeof *coords);
  for (size_t i = 0; i + 1 < index->n_src; i++) coords[i] = sides[i].base;
  for (size_t i = 0; i < rank; i++) {
    const side *s = &sides[order[i]];
    extents[i] = ix_const(g, s->extent);
    ranges[i] = range_make(g, extents[i], KIND_LOOP);
    coords[order[i]] = ix_add(g, s->base, ranges[i]);
    at[i] = s->offset;
  }
  dtype t = (dtype)index->dtype;
  const node *value = index_make(g, t, index->src[0], index->ints[0], index->n_src - 1, coords);
  const node *stage = stage_make(g, &(stage_spec){.n_values = 1,
                                                  .n_ranges = rank,
                                                  .values = &value,
                                                  .ranks = &rank,
                                                  .coords = ranges,
                                                  .extents = extents,
                                                  .ranges = ranges});
  return index_make(g, t, stage, 0, rank, at);
}

static bool is_written(const node *sink, const node *param) {
  for (uint32_t i = 0; i < sink->n_src && sink->op == OP_SINK; i++)
    for (uint32_t k = 0; k + 1 < sink->src[i]->n_src; k++)
      if (sink->src[i]->src[k] == param) return true;
  return false;
}

const node *law_data(laws *l, const node *sink, const node *index, const node *const inner[],
                     size_t n, const node *lanes, const node **element) {
  if (index->op != OP_INDEX || index->src[0]->op != OP_PARAM)
    return law_refuse(l, "it is no element of a buffer");
  if (is_written(sink, index->src[0])) return law_refuse(l, "the kernel writes to the buffer");
  size_t rank = index->n_src - 1, order[IR_MOST_RANK];
  side sides[IR_MOST_RANK];
  for (size_t i = 0; i < rank; i++) {
    const char *why = side_of(l->g, index->src[1 + i], inner, n, &sides[i]);
    if (why) return law_refuse(l, why);
  }
  size_t count = order_sides(sides, rank, lanes, order);
  if (!count) return law_refuse(l, "it does not vary along the ranges");
  *element = gathered(l->g, index, sides, order, count);
  return law_made(l, sink, law_replace(l, sink, index, *element),
                  "DATA of buffer %" PRId64 " inside of r%" PRId64, index->src[0]->ints[0],
                  law_id(inner[0]));
}
