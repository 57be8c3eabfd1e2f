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

/** What is copied, and the array of it. */
typedef struct box {
  ir *g;
  const node *what;         /* with stand-ins for the ranges apart */
  const node *const *inner; /* ranges that sides lead along */
  size_t n, rank;
  side sides[IR_MOST_RANK];
  const node *stand_ins[IR_MOST_RANK]; /* a range of the array, for each side longer than 1 */
} box;

/** An axis of the array. */
typedef struct axis {
  const node *range; /* along which it is filled */
  const node *at;    /* which of its elements is read */
} axis;

/** An index expression with each side's offset replaced by what stands for it; NULL: it leads along
    the inner ranges otherwise than the sides do. */
static const node *led(const box *b, const node *x) {
  ir *g = b->g;
  side own;
  if (side_of(g, x, b->inner, b->n, &own)) return NULL;
  if (own.extent == 1) return own.base;
  for (size_t i = 0; i < b->rank; i++) {
    const node *offset = b->sides[i].offset;
    if (b->sides[i].extent < 2) continue;
    int64_t times = ix_coefficient(own.offset, ix_atom(offset, 0)) / ix_factor(offset, 0);
    if (own.offset == ix_scale(g, offset, times))
      return ix_add(g, own.base, ix_scale(g, b->stand_ins[i], times));
  }
  return NULL;
}

/** What is read, at the elements of the box; NULL: its indices do not allow that. */
static const node *in_box(const box *b) {
  arena *a = ir_arena(b->g);
  node_list order = topo_sort(a, &b->what, 1, is_entered, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *user = order.at[i];
    for (uint32_t k = 0; k < user->n_src && user->dtype != DT_INDEX; k++) {
      const node *x = user->src[k];
      if (x->dtype != DT_INDEX || !law_depends(b->inner, b->n, x)) continue;
      const node *made = led(b, x);
      if (!made) return NULL;
      map_set(a, &with, x, (void *)made);
    }
  }
  return subst(b->g, b->what, &with);
}

/** The array of what is read, and the element of it that is. */
static const node *gathered(const box *b, const axis axes[], size_t rank) {
  const node *value = in_box(b), *ranges[IR_MOST_RANK], *extents[IR_MOST_RANK], *at[IR_MOST_RANK];
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
  return index_make(b->g, (dtype)b->what->dtype, stage, 0, rank, at);
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

/** What a coordinate is but for the terms that are inner ranges. */
static const node *rest_of(ir *g, const node *coord, const node *const inner[], size_t n) {
  const node *rest = coord;
  for (size_t i = 0; i < n; i++)
    rest = ix_sub(g, rest, ix_scale(g, inner[i], ix_coefficient(coord, inner[i])));
  return rest;
}

/** Puts the ranges in which an index is not affine, as where blocks overlap, behind the others: the
    array has an axis for each. How many others there are. */
static size_t affine_first(ir *g, const node *index, const node **inner, size_t n) {
  for (uint32_t i = 1; i < index->n_src; i++)
    for (size_t k = n; k-- > 0;) {
      const node *r = inner[k];
      if (!node_is_free_in(r, rest_of(g, index->src[i], inner, n))) continue;
      inner[k] = inner[--n];
      inner[n] = r;
    }
  return n;
}

/** Whether the extent of a range that something depends on depends on another one. */
static bool bounds_one(const node *range, const node *what) {
  for (uint32_t i = 0; i < what->free->n; i++)
    if (node_is_free_in(range, range_extent(what->free->at[i]))) return true;
  return false;
}

/** An axis for each range apart, which stands for it in what is read; NULL: fine, else why not. */
static const char *add_apart(box *b, const node *const apart[], size_t n, axis axes[]) {
  map with = {0};
  for (size_t i = 0; i < n; i++) {
    const node *extent = range_extent(apart[i]);
    if (!node_is_const(extent) || node_int(extent) < 1)
      return "the extent of one of the ranges is not a number";
    if (bounds_one(apart[i], b->what)) return "the extent of a range depends on one of them";
    axes[i] = (axis){range_make(b->g, extent, KIND_LOOP), apart[i]};
    map_set(ir_arena(b->g), &with, apart[i], (void *)axes[i].range);
  }
  b->what = subst_copy(b->g, b->what, &with); /* a FOLD in its indices is one of its own */
  return NULL;
}

/** All axes: those of sides that are longer than 1, those apart, and what is along `lanes` last. */
static size_t order_axes(box *b, const axis apart[], size_t n_apart, const node *lanes,
                         axis axes[]) {
  size_t n = 0;
  for (int last = 0; last < 2; last++) {
    for (size_t i = 0; i < b->rank; i++) {
      const side *s = &b->sides[i];
      bool along = lanes && node_is_free_in(lanes, s->offset);
      if (s->extent < 2 || along != last) continue;
      b->stand_ins[i] = range_make(b->g, ix_const(b->g, s->extent), KIND_LOOP);
      axes[n++] = (axis){b->stand_ins[i], s->offset};
    }
    for (size_t i = 0; i < n_apart; i++)
      if ((apart[i].at == lanes) == last) axes[n++] = apart[i];
  }
  return n;
}

const node *law_data(laws *l, const node *sink, const node *what, const node *const inner[],
                     size_t n, const node *lanes, const node **element) {
  const node *index = element_in(l, what);
  if (!index) return law_refuse(l, "it is not computed from elements of buffers alone");
  if (law_reads_written(l, sink, what)) return law_refuse(l, "the kernel writes to the buffer");
  const node **ranges = arena_copy(ir_arena(l->g), inner, n * sizeof *ranges);
  box b = {.g = l->g, .what = what, .inner = ranges, .rank = index->n_src - 1};
  axis apart[IR_MOST_RANK], axes[IR_MOST_RANK];
  b.n = affine_first(l->g, index, ranges, n);
  if (b.rank + n - b.n > IR_MOST_RANK) return law_refuse(l, "what is read has too many axes");
  const char *why = law_state_objection(l, sink, what, inner, n);
  if (!why) why = add_apart(&b, ranges + b.n, n - b.n, apart);
  index = element_in(l, b.what);
  for (size_t i = 0; i < b.rank && !why; i++)
    why = side_of(l->g, index->src[1 + i], b.inner, b.n, &b.sides[i]);
  if (why) return law_refuse(l, why);
  size_t count = order_axes(&b, apart, n - b.n, lanes, axes);
  if (!count) return law_refuse(l, "it does not vary along the ranges");
  *element = gathered(&b, axes, count);
  if (!*element) return law_refuse(l, "its conditions go along the ranges unlike its indices");
  law_args args = {.subject = what, .other = lanes, .list = inner, .n = n};
  return law_made(l, sink, law_replace(l, sink, what, *element), LAW_DATA, &args, NULL);
}
