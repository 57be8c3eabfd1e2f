/* Non-maximum suppression (nms). A LOOP takes the best box that is left of each class, and removes
   it and the boxes that overlap it; how often it runs is the most boxes that a class may give. What
   is left are integer keys that keep the order of the scores (order_keys.h): those of removed boxes
   are the least. The steps emit the boxes taken, or −1 where none was left, and a selection of
   those is the result. */
#include "tensor/ops/nms.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/selection.h"
#include "tensor/ops/type_promotion.h"

/** Corners and area of boxes: (batch, 1, boxes), or of one box of each class, (batch, class, 1). */
typedef struct corners {
  value low[2], high[2], area;
} corners;

static corners corners_of(builder *b, value boxes, nms_format format) {
  corners k;
  value part[4];
  for (int64_t i = 0; i < 4; i++) {
    part[i] = build_slice(b, boxes, 2, ix_const(b->ir, i), ix_const(b->ir, i + 1), 1);
    part[i] = build_swapaxes(b, part[i], 1, 2);
  }
  for (size_t i = 0; i < 2; i++) {
    value half = build_mul(b, part[i + 2], build_num(b, 0.5));
    k.low[i] = format == NMS_CENTRES ? build_sub(b, part[i], half)
                                     : build_minimum(b, part[i], part[i + 2]);
    k.high[i] = format == NMS_CENTRES ? build_add(b, part[i], half)
                                      : build_maximum(b, part[i], part[i + 2]);
  }
  k.area = build_mul(b, build_sub(b, k.high[0], k.low[0]), build_sub(b, k.high[1], k.low[1]));
  return k;
}

/** The elements (batch, 1, boxes) at the box of each class: (batch, class, 1). */
static value at_box(builder *b, value x, const node *box) {
  sizes s = sizes_of(x.node);
  s.at[1] = box->dims[1];
  return build_gather_elements(b, value_of(shape_broadcast(b, x.node, &s)), value_of(box), 2);
}

static corners corners_at(builder *b, const corners *all, const node *box) {
  corners k;
  for (size_t i = 0; i < 2; i++) {
    k.low[i] = at_box(b, all->low[i], box);
    k.high[i] = at_box(b, all->high[i], box);
  }
  k.area = at_box(b, all->area, box);
  return k;
}

/** True where the intersection over the union of boxes is greater than a number. */
static value overlap(builder *b, const corners *x, const corners *y, value most) {
  value side[2], zero = build_num(b, 0);
  for (size_t i = 0; i < 2; i++)
    side[i] = build_maximum(b,
                            build_sub(b, build_minimum(b, x->high[i], y->high[i]),
                                      build_maximum(b, x->low[i], y->low[i])),
                            zero);
  value both = build_mul(b, side[0], side[1]);
  value whole = build_sub(b, build_add(b, x->area, y->area), both);
  return build_logical_and(b, build_gt(b, both, zero),
                           build_gt(b, build_div(b, both, whole), most));
}

/** Keys (batch, class, boxes) of scores; the least of scores that are too small. */
static value score_keys(builder *b, value scores, value least_score, int64_t *least) {
  const node *key = node_order_keys(b, scores.node, false, false);
  *least = INT64_MIN >> (64 - 8 * dtype_bytes((dtype)key->dtype));
  if (!least_score.node) return value_of(key);
  value counts = build_gt(b, scores, least_score);
  return value_of(ex_where(b, counts.node, key, ex_int(b, key, *least)));
}

/** Columns batch, class and box (n, 3) of the boxes taken, (batch, class, steps). */
static value list_taken(builder *b, const node *taken) {
  ir *g = b->ir;
  sizes flat = {.rank = 1, .at = {ir_element_count(g, taken)}};
  const node *all = shape_reshape(b, taken, &flat);
  const node *mask = ex_binary(b, OP_LE, ex_int(b, all, 0), all);
  const node *at = node_selected_positions(b, mask);
  sizes s = sizes_of(at);
  value parts[3] = {[2] = build_take(b, value_of(all), value_of(at), 0)};
  for (size_t i = 2; i > 0; i--) {
    const node *size = ex_fill(b, ex_size(b, taken->dims[i], DT_I64), &s);
    at = ex_binary(b, OP_FLOORDIV, at, size);
    const node *classes = ex_fill(b, ex_size(b, taken->dims[1], DT_I64), &s);
    parts[i - 1] = value_of(i == 2 ? ex_binary(b, OP_MOD, at, classes) : at);
  }
  return build_stack(b, parts, 3, 1);
}

value build_nms(builder *b, value boxes, value scores, nms_format format, const node *most,
                value overlap_most, value least_score) {
  ir *g = b->ir;
  int64_t least;
  corners all = corners_of(b, boxes, format);
  value init = score_keys(b, scores, least_score, &least), next, emit, out[2];
  const node *n = scores.node->dims[2], *range = build_loop_range(b, ix_min(g, most, n));
  value key = build_loop_state(b, range, 0, init);
  tn_axes along = {.count = 1, .axis = {2}};
  axis_list boxes_axis = axes_from(2, 3);
  value best = value_of(node_reduce(b, OP_MAX, key.node, &boxes_axis, true)),
        box = build_argmax(b, key, 2, true);
  value removed = value_of(ex_int(b, key.node, least));
  value is_left = build_ne(b, best, build_int(b, least));
  corners one = corners_at(b, &all, box.node);
  value is_box = build_eq(b, value_of(node_all_indices(b, n)), box);
  value goes = build_logical_or(b, is_box, overlap(b, &all, &one, overlap_most));
  next = build_where(b, goes, removed, key);
  emit = build_squeeze(b, build_where(b, is_left, box, build_int(b, -1)), along);
  const node *place = build_loop_index(b, range, false);
  build_loop(b, range, &init, &next, 1, &emit, &place, 1, out);
  return list_taken(b, build_permute(b, out[1], (tn_axes){3, {1, 2, 0}}).node);
}

/* ---- Public functions ---- */

static void check_boxes(builder *b, const node *boxes, const node *scores) {
  sizes s[] = {sizes_of(boxes), sizes_of(scores)};
  if (boxes->rank != 2 || scores->rank != 1 || !node_is_bits(boxes->dims[1], 4) ||
      boxes->dims[0] != scores->dims[0])
    diag_raise(b->diag, TN_ERR_SHAPE, "boxes have shape %s and scores %s, expected nx4 and n",
               sizes_text(b, &s[0]), sizes_text(b, &s[1]));
}

/** Numbers in the order of integer scores, an earlier one of equal ones the greater: 0 and less, as
    a key of removed boxes may be a score itself. */
static value ranks_of_integers(builder *b, value scores) {
  const node *order = node_argsort(b, node_order_keys(b, scores.node, true, false));
  return build_neg(b, value_of(node_argsort(b, order)));
}

static value call_nms(builder *b, const value in[], size_t n, const void *options) {
  value boxes = value_widen(b, value_typed(b, in[0])), scores = value_typed(b, in[1]);
  tn_axes first = {.count = 1, .axis = {0}}, two = {.count = 2, .axis = {0, 1}};
  (void)n;
  if (!dtype_has_floats((dtype)boxes.node->dtype))
    diag_raise(b->diag, TN_ERR_DTYPE, "the boxes are %s, not floats",
               dtype_name((dtype)boxes.node->dtype));
  check_operand_type(b, RULE_NUMBER, (dtype)scores.node->dtype);
  check_boxes(b, boxes.node, scores.node);
  const node *most = scores.node->dims[0];
  if (!dtype_has_floats((dtype)scores.node->dtype)) scores = ranks_of_integers(b, scores);
  value taken = build_nms(b, build_unsqueeze(b, boxes, first), build_unsqueeze(b, scores, two),
                          NMS_CORNERS, most, build_num(b, *(const double *)options), (value){0});
  return build_squeeze(b, build_slice(b, taken, 1, ix_const(b->ir, 2), ix_const(b->ir, 3), 1),
                       (tn_axes){.count = 1, .axis = {1}});
}

tn_tensor *tn_nms(tn_tensor *boxes, tn_tensor *scores, double overlap_most) {
  return op_call("nms", (tn_tensor *[]){boxes, scores}, 2, 0, call_nms, &overlap_most);
}
