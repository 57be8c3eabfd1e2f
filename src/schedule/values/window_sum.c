/* Matches sums over windows by the coordinates of the elements that a term multiplies. Movements
   between the operands and the product are index arithmetic then, so that any spelling of the
   windows and any order of axes is found. */
#include "schedule/values/window_sum.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/element_expression.h"

enum { WINDOW = 3, MOST_AXES = 12 /* of a sum's operand, so that all views have a rank */ };

/** An operand of the product: elements of a tensor at coordinates. */
typedef struct operand {
  const node *leaf;
  const node **at; /* over the RANGEs of the sum's axes */
} operand;

static bool is_view(const node *x) {
  return x->op == OP_PERMUTE || x->op == OP_SLICE || x->op == OP_EXPAND || x->op == OP_RESHAPE;
}

static const node *skip_views(const node *x) {
  while (is_view(x)) x = x->src[0];
  return x;
}

static operand operand_of(ir *g, const node *view, const node *const coords[]) {
  operand o = {skip_views(view), NULL};
  o.at = arena_alloc(ir_scratch(g), (o.leaf->rank + 1u) * sizeof *o.at);
  element_source_coordinates(g, view, o.leaf, coords, o.at);
  return o;
}

static bool has(const node_list *ranges, const node *r) {
  for (size_t i = 0; i < ranges->n; i++)
    if (ranges->at[i] == r) return true;
  return false;
}

/** The axis along which an operand is read at a range; SIZE_MAX: none, or more than one. */
static size_t axis_of(const operand *o, const node *range) {
  size_t axis = SIZE_MAX;
  for (size_t i = 0; i < o->leaf->rank; i++) {
    if (!node_is_free_in(range, o->at[i])) continue;
    if (axis != SIZE_MAX) return SIZE_MAX;
    axis = i;
  }
  return axis;
}

/** True if a coordinate is a number, or one range times a number, plus a number. */
static bool is_simple(const node *x) {
  return !ix_terms(x) || (ix_terms(x) == 1 && ix_atom(x, 0)->op == OP_RANGE);
}

/** True if a coordinate is i + k plus a number, for a range i of the result and a summed k below 3;
    `window`: k, `place`: i. */
static bool is_window(const node *x, const node_list *result, const node **place,
                      const node **window) {
  if (ix_terms(x) != 2 || ix_coefficient_at(x, 0) != 1 || ix_coefficient_at(x, 1) != 1)
    return false;
  size_t first = has(result, ix_atom(x, 0)) ? 0 : 1;
  *place = ix_atom(x, first);
  *window = ix_atom(x, 1 - first);
  return has(result, *place) && (*window)->op == OP_RANGE && !has(result, *window) &&
         node_is_bits(range_extent(*window), WINDOW);
}

/** Finds the two coordinates of x that are places in windows; the others, and those of w, must be
    simple. */
static bool find_windows(const operand *x, const operand *w, window_sum *to) {
  size_t n = 0;
  for (size_t i = 0; i < x->leaf->rank; i++) {
    if (is_simple(x->at[i])) continue;
    if (n == 2 || !is_window(x->at[i], &to->result, &to->place[n], &to->window[n])) return false;
    n++;
  }
  for (size_t i = 0; i < w->leaf->rank; i++)
    if (!is_simple(w->at[i])) return false;
  return n == 2 && to->window[0] != to->window[1] && to->place[0] != to->place[1];
}

/** Sorts the other ranges by the operands that are read at them: the result's by one alone, the
    summed ones by both. */
static bool sort_ranges(ir *g, const operand *x, const operand *w, const node_list *summed,
                        window_sum *to) {
  arena *a = ir_scratch(g);
  for (size_t i = 0; i < to->result.n; i++) {
    const node *r = to->result.at[i];
    bool in_x = axis_of(x, r) != SIZE_MAX, in_w = axis_of(w, r) != SIZE_MAX;
    if (in_x == in_w) return false;
    if (r == to->place[0] || r == to->place[1]) {
      if (in_w) return false;
      continue;
    }
    vec_push(a, in_x ? &to->batch : &to->outputs, r);
  }
  for (size_t i = 0; i < summed->n; i++) {
    const node *r = summed->at[i];
    if (axis_of(x, r) == SIZE_MAX || axis_of(w, r) == SIZE_MAX) return false;
    if (r != to->window[0] && r != to->window[1]) vec_push(a, &to->channels, r);
  }
  return true;
}

/** The elements of an operand that are read, one axis for each of `n` ranges; along a window's axis
    those of all windows. */
static const node *view_of(ir *g, const operand *o, size_t n, const node *const ranges[]) {
  size_t rank = o->leaf->rank, last = n;
  arena *a = ir_scratch(g);
  const node **starts = arena_alloc(a, rank * sizeof *starts);
  const node **sizes = arena_alloc(a, (rank + n) * sizeof *sizes);
  int64_t *steps = arena_alloc(a, rank * sizeof *steps), *to = arena_alloc(a, rank * sizeof *to);
  for (size_t i = 0; i < rank; i++) {
    starts[i] = ix_const(g, ix_offset(o->at[i]));
    sizes[i] = ix_const(g, 1);
    steps[i] = 1;
    if (!ix_terms(o->at[i])) to[last++] = (int64_t)i;
  }
  for (size_t k = 0; k < n; k++) {
    size_t axis = axis_of(o, ranges[k]);
    bool is_window = ix_terms(o->at[axis]) == 2;
    sizes[axis] = ix_add_const(g, range_extent(ranges[k]), is_window ? WINDOW - 1 : 0);
    steps[axis] = ix_coefficient(o->at[axis], ranges[k]);
    to[k] = (int64_t)axis;
  }
  const node *x = ir_permute(g, ir_slice(g, o->leaf, starts, sizes, steps), to);
  return ir_reshape(g, x, n, x->dims);
}

static void append(ir *g, node_list *to, size_t n, const node *const ranges[]) {
  for (size_t i = 0; i < n; i++) vec_push(ir_scratch(g), to, ranges[i]);
}

static bool match_operands(ir *g, const operand *x, const operand *w, const node_list *summed,
                           window_sum *to) {
  to->batch = to->outputs = to->channels = (node_list){0};
  if (!find_windows(x, w, to) || !sort_ranges(g, x, w, summed, to)) return false;
  node_list of_x = {0}, of_w = {0};
  append(g, &of_x, to->batch.n, to->batch.at);
  append(g, &of_x, 2, to->place);
  append(g, &of_x, to->channels.n, to->channels.at);
  append(g, &of_w, 2, to->window);
  append(g, &of_w, to->outputs.n, to->outputs.at);
  append(g, &of_w, to->channels.n, to->channels.at);
  to->leaf = w->leaf;
  to->x = view_of(g, x, of_x.n, of_x.at);
  to->w = view_of(g, w, of_w.n, of_w.at);
  return true;
}

bool window_sum_match(ir *g, const node *reduce, window_sum *to) {
  arena *a = ir_scratch(g);
  node_list summed = {0};
  if (reduce->op != OP_REDUCE || reduce->ints[0] != OP_ADD || reduce->src[0]->rank > MOST_AXES)
    return false;
  const node *x = reduce->src[0], *product = skip_views(x);
  if (product->op != OP_MUL) return false;
  const node **at = arena_alloc(a, (x->rank + 1u) * sizeof *at);
  *to = (window_sum){0};
  for (size_t i = 0; i < x->rank; i++) {
    at[i] = ix_const(g, 0);
    if (node_is_bits(x->dims[i], 1)) continue;
    at[i] = range_make(g, x->dims[i], KIND_LOOP);
    vec_push(a, reduce_has_axis(reduce, i) ? &summed : &to->result, at[i]);
  }
  operand of = operand_of(g, x, at); /* the product at the sum's coordinates */
  operand first = operand_of(g, product->src[0], of.at);
  operand second = operand_of(g, product->src[1], of.at);
  return match_operands(g, &first, &second, &summed, to) ||
         match_operands(g, &second, &first, &summed, to);
}
