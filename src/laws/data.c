#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

/** Arrays are read, not entered. */
static bool is_entered(const node *n, void *user) {
  (void)user;
  return n->op != OP_INDEX || n->src[0]->op != OP_PARAM;
}

/** One coordinate of what is read: a base, and how far the inner ranges lead from it. */
typedef struct side {
  const node *base, *offset;
  int64_t extent; /* of all offsets: 1 + Σ c·(extent − 1) */
} side;

static const char *side_of(ir *g, const node *coord, const node *const inner[], size_t n, side *s) {
  s->offset = ix_const(g, 0);
  s->extent = 1;
  for (size_t i = 0; i < ix_terms(coord); i++) {
    const node *atom = ix_atom(coord, i);
    int64_t c = ix_factor(coord, i), far;
    if (!law_is_one_of(inner, n, atom)) continue;
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
  return law_depends(inner, n, s->base) ? "its indices are not affine in the ranges" : NULL;
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

/** An index expression with each side's offset replaced by what stands for it; NULL: it leads along
    the inner ranges otherwise than the sides do. */
static const node *led(ir *g, const node *x, const node *const inner[], size_t n,
                       const side sides[], const node *const stand_ins[], size_t rank) {
  side own;
  if (side_of(g, x, inner, n, &own)) return NULL;
  if (own.extent == 1) return own.base;
  for (size_t i = 0; i < rank; i++) {
    if (sides[i].extent < 2) continue;
    int64_t each = ix_factor(sides[i].offset, 0);
    int64_t times = ix_coefficient(own.offset, ix_atom(sides[i].offset, 0)) / each;
    if (own.offset == ix_scale(g, sides[i].offset, times))
      return ix_add(g, own.base, ix_scale(g, stand_ins[i], times));
  }
  return NULL;
}

/** What is read, at the elements of the box; NULL: its indices do not allow that. */
static const node *in_box(ir *g, const node *what, const node *const inner[], size_t n,
                          const side sides[], const node *const stand_ins[], size_t rank) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &what, 1, is_entered, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *user = order.at[i];
    for (uint32_t k = 0; k < user->n_src && user->dtype != DT_INDEX; k++) {
      const node *x = user->src[k];
      if (x->dtype != DT_INDEX || !law_depends(inner, n, x)) continue;
      const node *made = led(g, x, inner, n, sides, stand_ins, rank);
      if (!made) return NULL;
      map_set(a, &with, x, (void *)made);
    }
  }
  return subst(g, what, &with);
}

/** The array of what is read, and the element of it that is. */
static const node *gathered(ir *g, const node *what, const node *const inner[], size_t n,
                            const side sides[], size_t all, const size_t order[], size_t rank) {
  arena *a = ir_arena(g);
  const node **ranges = arena_alloc(a, rank * sizeof *ranges);
  const node **extents = arena_alloc(a, rank * sizeof *extents);
  const node **at = arena_alloc(a, rank * sizeof *at);
  const node **stand_ins = arena_calloc(a, all, sizeof *stand_ins);
  for (size_t i = 0; i < rank; i++) {
    const side *s = &sides[order[i]];
    extents[i] = ix_const(g, s->extent);
    stand_ins[order[i]] = ranges[i] = range_make(g, extents[i], KIND_LOOP);
    at[i] = s->offset;
  }
  const node *value = in_box(g, what, inner, n, sides, stand_ins, all);
  if (!value) return NULL;
  const node *stage = stage_make(g, &(stage_spec){.n_values = 1,
                                                  .n_ranges = rank,
                                                  .values = &value,
                                                  .ranks = &rank,
                                                  .coords = ranges,
                                                  .extents = extents,
                                                  .ranges = ranges});
  return index_make(g, (dtype)what->dtype, stage, 0, rank, at);
}

static bool is_written(const node *sink, const node *param) {
  for (uint32_t i = 0; i < sink->n_src && sink->op == OP_SINK; i++)
    for (uint32_t k = 0; k + 1 < sink->src[i]->n_src; k++)
      if (sink->src[i]->src[k] == param) return true;
  return false;
}

/** What nodes are as expressions over elements of buffers. */
typedef struct elements {
  map best;  /* node → the INDEX of a buffer in it that has the most indices */
  map other; /* nodes that compute something which has a place of its own */
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

/** NULL: it reads none, or computes something that has a place of its own. */
static const node *element_in(laws *l, const node *what) {
  elements e = {0};
  node_list order = topo_sort(ir_arena(l->g), &what, 1, is_entered, NULL);
  for (size_t i = 0; i < order.n; i++) note_element(ir_arena(l->g), &e, order.at[i]);
  return map_get(&e.best, what);
}

node_list law_expressions(laws *l, const node *sink) {
  elements e = {0};
  arena *a = ir_arena(l->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL), found = {0};
  for (size_t i = 0; i < order.n; i++) note_element(a, &e, order.at[i]);
  for (size_t i = order.n; i-- > 0;)
    if (order.at[i]->dtype != DT_INDEX && map_has(&e.best, order.at[i]))
      vec_push(a, &found, order.at[i]);
  return found;
}

static bool reads_written(laws *l, const node *sink, const node *what) {
  node_list order = topo_sort(ir_arena(l->g), &what, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && is_written(sink, order.at[i]->src[0])) return true;
  return false;
}

const node *law_data(laws *l, const node *sink, const node *what, const node *const inner[],
                     size_t n, const node *lanes, const node **element) {
  const node *index = element_in(l, what);
  if (!index) return law_refuse(l, "it is not computed from elements of buffers alone");
  if (reads_written(l, sink, what)) return law_refuse(l, "the kernel writes to the buffer");
  size_t rank = index->n_src - 1, order[IR_MOST_RANK];
  side sides[IR_MOST_RANK];
  for (size_t i = 0; i < rank; i++) {
    const char *why = side_of(l->g, index->src[1 + i], inner, n, &sides[i]);
    if (why) return law_refuse(l, why);
  }
  size_t count = order_sides(sides, rank, lanes, order);
  if (!count) return law_refuse(l, "it does not vary along the ranges");
  *element = gathered(l->g, what, inner, n, sides, rank, order, count);
  if (!*element) return law_refuse(l, "its conditions go along the ranges unlike its indices");
  law_args args = {.subject = what, .other = lanes, .list = inner, .n = n};
  return law_made(l, sink, law_replace(l, sink, what, *element), LAW_DATA, &args, NULL);
}
