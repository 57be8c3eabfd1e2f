/* Implements TENSOR: applies a row of tensor_rows.def, an instruction for groups of small elements,
   to a reduction of products:

     FOLD(init; add cast(x(r)) · cast(y(r)); …, r, …)
       →   FOLD(init; add op(0, X(q), Y(q)); …, q, …)        X(q) = x(g·q) | x(g·q + 1) << b | …

   A word X holds the g elements of a group along r, of b bits each, the first in the lowest ones;
   elements behind the last are 0. Words are expressions over elements of buffers, which DATA packs
   in the order of the instruction, groups innermost. Lowering makes the sum the first operand of
   op. Integers wrap, so the reduction keeps its value; rows of floats round in another order. */
#include "laws/law_support.h"

#include "ir/core/tensor_rows.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

/** The small elements that an operand converts: e of cast(e) or of where(c, cast(e), 0); NULL. */
static const node *small_elements(ir *g, const node *x, dtype type) {
  bool is_choice = x->op == OP_WHERE && node_is_bits(x->src[2], 0);
  const node *cast = is_choice ? x->src[1] : x;
  if (cast->op != OP_CAST || cast->src[0]->dtype != type) return NULL;
  if (!is_choice) return cast->src[0];
  return ir_op3(g, OP_WHERE, x->src[0], cast->src[0], ir_const_bits(g, type, 0));
}

static const char *fold_objection(const node *f, const node *range) {
  if (fold_n_states(f) != 1 || fold_n_emits(f) || fold_op(f, 0) != OP_ADD ||
      fold_component(f, 0) >= 0)
    return "the FOLD is no sum of scalars";
  if (range_kind_of(range) != KIND_LOOP) return "the range already has a kind";
  for (size_t i = 0; i < fold_n_ranges(f); i++)
    if (node_is_free_in(range, range_extent(fold_range(f)[i])))
      return "the extent of another range depends on it";
  return NULL;
}

/** Objection to evaluating an operand at other indices of a range. */
static const char *operand_objection(laws *l, const node *x, const node *range) {
  node_list order = topo_sort(ir_arena(l->g), &x, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    bool binds = node_is_binder(order.at[i]) || order.at[i]->op == OP_STATE;
    if (binds && order.at[i]->op != OP_RANGE) return "an operand is computed in the kernel";
  }
  return node_is_free_in(range, x) ? NULL : "an operand does not depend on the range";
}

/** The operands of a row among those of a product, in the row's order; false: it is for others. */
static bool find_operands(ir *g, const tensor_row *row, const node *term, const node *operand[2]) {
  if (term->op != OP_MUL || term->dtype != row->sum) return false;
  for (size_t i = 0; i < 2; i++) {
    operand[0] = small_elements(g, term->src[i], row->x);
    operand[1] = small_elements(g, term->src[1 - i], row->y);
    if (operand[0] && operand[1]) return true;
  }
  return false;
}

/** Element p of group q, as an unsigned number of 32 bits; 0 behind the last. */
static const node *element(ir *g, const node *x, const node *range, const node *q, int p,
                           const tensor_row *row) {
  dtype t = (dtype)x->dtype, bits = dtype_is_float(row->sum) ? DT_U32 : DT_I32;
  const node *extent = range_extent(range);
  const node *at = ix_add_const(g, ix_scale(g, q, row->group), p);
  map with = {0};
  map_set(ir_arena(g), &with, range, (void *)at);
  x = subst(g, x, &with);
  if (at->hi >= extent->lo)
    x = ir_op3(g, OP_WHERE, ir_op2(g, OP_LT, at, extent), x, ir_const_bits(g, t, 0));
  return ir_cast(g, ir_bitcast(g, x, dtype_bytes(t) == 1 ? DT_U8 : DT_U16), bits);
}

static const node *word(ir *g, const node *x, const node *range, const node *q,
                        const tensor_row *row) {
  const node *w = element(g, x, range, q, 0, row);
  for (int p = 1; p < row->group; p++) {
    const node *by = ir_const_int(g, (dtype)w->dtype, p * 32 / row->group);
    w = ir_op2(g, OP_OR, w, ir_op2(g, OP_SHL, element(g, x, range, q, p, row), by));
  }
  return ir_bitcast(g, w, row->sum);
}

/** The FOLD over groups. */
static const node *fold_groups(laws *l, const node *f, const node *range, const node *q,
                               const tensor_row *row, const node *const operand[2]) {
  ir *g = l->g;
  arena *a = ir_arena(g);
  size_t n = fold_n_ranges(f);
  const node **src = arena_copy(a, f->src, f->n_src * sizeof *src);
  const node **ranges = arena_copy(a, fold_range(f), n * sizeof *ranges);
  src[fold_n_states(f)] =
      ir_op3(g, row->op, ir_const_bits(g, row->sum, 0), word(g, operand[0], range, q, row),
             word(g, operand[1], range, q, row));
  ranges[range_position(ranges, range)] = q;
  return binder_with_ranges(g, f, src, n, ranges);
}

const node *law_tensor(laws *l, const node *sink, const node *range, int64_t row,
                       const node **groups) {
  ir *g = l->g;
  const node *f = law_find_binder(l, sink, range), *operand[2];
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  if (row < 0 || row >= TENSOR_ROWS) return law_refuse(l, "there is no such row");
  const tensor_row *r = &tensor_rows[row];
  const char *why = fold_objection(f, range);
  if (why) return law_refuse(l, why);
  if (!find_operands(g, r, fold_step(f, 0), operand))
    return law_refuse(l, "the FOLD does not sum products of the row's types");
  for (size_t i = 0; i < 2 && !why; i++) why = operand_objection(l, operand[i], range);
  if (why) return law_refuse(l, why);
  const node *rounded_up = ix_add_const(g, range_extent(range), r->group - 1);
  const node *extent = ix_floordiv(g, rounded_up, ix_const(g, r->group));
  if (extent->lo < 2) return law_refuse(l, "the range may be one group");
  *groups = range_make(g, extent, KIND_LOOP);
  const node *made = law_replace(l, sink, f, fold_groups(l, f, range, *groups, r, operand));
  law_args args = {.subject = range, .number = row};
  return law_record(l, sink, made, LAW_TENSOR, &args, groups);
}
