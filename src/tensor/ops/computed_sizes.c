/* Implements checks of computed sizes: an ITEM of its own that is outside of its bounds where sizes
   do not fit. A tensor whose axis has the checked size reads another one only up to that, so
   that each step which relies on the check waits for it. */
#include "tensor/ops/computed_sizes.h"

#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/item_bounds.h"

static bool is_index(const node *n, void *user) {
  (void)user;
  bool compares = n->dtype == DT_BOOL && n->n_src && n->src[0]->dtype == DT_INDEX;
  return n->dtype == DT_INDEX || compares;
}

bool size_is_computed(builder *b, const node *size) {
  if (!ir_has_items(b->ir)) return false;
  node_list order = topo_sort(b->arena, &size, 1, is_index, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ITEM) return true;
  return false;
}

static const node *number_of(builder *b, const node *size) {
  return node_is_const(size) ? ir_const_int(b->ir, DT_I64, node_int(size))
                             : ir_cast(b->ir, size, DT_I64);
}

/** A number that tells two sizes which differ. */
static const node *unfit_number(ir *g, const node *x, const node *y) {
  const node *most = ir_const_int(g, DT_I64, ITEM_UNFIT_MOST);
  const node *base = ir_const_int(g, DT_I64, ITEM_UNFIT_MOST + 1);
  const node *high = ir_op2(g, OP_MUL, ir_op2(g, OP_MIN, x, most), base);
  const node *both = ir_op2(g, OP_ADD, high, ir_op2(g, OP_MIN, y, most));
  return ir_op2(g, OP_SUB, ir_const_int(g, DT_I64, ITEM_UNFIT), both);
}

const node *size_if_equal(builder *b, const node *size, const node *x, const node *y) {
  ir *g = b->ir;
  const node *m = number_of(b, x), *n = number_of(b, y);
  const node *checked =
      ir_op3(g, OP_WHERE, ir_op2(g, OP_EQ, m, n), number_of(b, size), unfit_number(g, m, n));
  return ir_item(g, checked, NULL, 0, size);
}

const node *size_checked(builder *b, const node *size, const node *rest, const node *whole) {
  return size_if_equal(b, size, ix_mul(b->ir, size, rest), whole);
}

const node *size_at_least(builder *b, const node *size, int64_t least) {
  return ir_item(b->ir, number_of(b, size), NULL, least, size);
}

const node *size_at_most(builder *b, const node *size, const node *most) {
  return ir_item(b->ir, number_of(b, size), NULL, 0, most);
}

/** The size whose number is compared; NULL: none. */
static const node *size_of_number(builder *b, const node *n) {
  if (n->op == OP_CONST) return ix_const(b->ir, node_int(n));
  return n->op == OP_CAST && n->src[0]->dtype == DT_INDEX ? n->src[0] : NULL;
}

/** True if a size is one that a run checks to be equal to another one. */
static bool is_checked_as(builder *b, const node *size, const node *other) {
  const node *where = size->op == OP_ITEM ? size->src[0] : NULL;
  if (!where || where->op != OP_WHERE || where->src[0]->op != OP_EQ) return false;
  const node *most = size->src[size->n_src - 1], *one = ix_const(b->ir, 1);
  for (size_t i = 0; i < 2; i++) {
    const node *equal = size_of_number(b, where->src[0]->src[i]);
    if (equal && size_checked(b, most, one, equal) == size) return other == most || other == equal;
  }
  return false;
}

const node *size_agreed(builder *b, const node *x, const node *y) {
  bool x_is_computed = x != y && size_is_computed(b, x);
  if (x == y) return x;
  if (!x_is_computed && !size_is_computed(b, y)) return NULL;
  if (is_checked_as(b, x, y)) return x;
  if (is_checked_as(b, y, x)) return y;
  bool is_swapped = x_is_computed && (!size_is_computed(b, y) || y->id < x->id);
  return size_checked(b, is_swapped ? y : x, ix_const(b->ir, 1), is_swapped ? x : y);
}
