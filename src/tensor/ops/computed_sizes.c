/* Implements checks of computed sizes: an ITEM of its own that is outside of its bounds where sizes
   do not fit. A tensor whose axis has the checked size reads another one only up to that, so
   that each step which relies on the check waits for it. */
#include "tensor/ops/computed_sizes.h"

#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/item_bounds.h"

bool size_has_part(const node *n, void *unused) {
  (void)unused;
  bool compares = n->dtype == DT_BOOL && n->n_src && n->src[0]->dtype == DT_INDEX;
  return n->dtype == DT_INDEX || compares;
}

bool size_has_item(arena *a, const node *size) {
  node_list order = topo_sort(a, &size, 1, size_has_part, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ITEM) return true;
  return false;
}

bool size_is_computed(builder *b, const node *size) {
  return ir_has_items(b->ir) && size_has_item(b->arena, size);
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

/** A size that a run checks: it is refused unless two numbers are equal. */
static const node *size_if_numbers_equal(builder *b, const node *size, const node *x,
                                         const node *y) {
  ir *g = b->ir;
  const node *checked =
      ir_op3(g, OP_WHERE, ir_op2(g, OP_EQ, x, y), number_of(b, size), unfit_number(g, x, y));
  return ir_item(g, checked, NULL, 0, size);
}

const node *size_if_equal(builder *b, const node *size, const node *x, const node *y) {
  return size_if_numbers_equal(b, size, number_of(b, x), number_of(b, y));
}

/** The product of numbers that are at least 0, or `most` if it is greater. */
static const node *product_up_to(ir *g, const node *x, const node *y, int64_t most) {
  const node *limit = ir_const_int(g, DT_I64, most);
  const node *divisor = ir_op2(g, OP_MAX, y, ir_const_int(g, DT_I64, 1));
  const node *fits = ir_op2(g, OP_LE, x, ir_op2(g, OP_FLOORDIV, limit, divisor));
  return ir_op3(g, OP_WHERE, fits, ir_op2(g, OP_MUL, x, y), limit);
}

/** The number of elements of a shape, or `most` if it is greater: computed sizes, which a run has
    not compared yet, may have a product beyond 64 bits. */
static const node *count_elements(builder *b, size_t rank, const node *const dims[], int64_t most) {
  const node *index = ix_const(b->ir, 1), *number = NULL;
  double bound = 1;
  for (size_t i = 0; i < rank; i++) {
    bound *= (double)dims[i]->hi;
    if (!number && bound < (double)most) {
      index = ix_mul(b->ir, index, dims[i]);
      continue;
    }
    if (!number) number = number_of(b, index);
    number = product_up_to(b->ir, number, number_of(b, dims[i]), most);
  }
  return number ? number : number_of(b, index);
}

const node *size_if_fits(builder *b, const node *size, const sizes *shape, const node *x) {
  const int64_t most = INT64_C(1) << 62; /* two shapes of more elements do not fit */
  return size_if_numbers_equal(b, size, count_elements(b, shape->rank, shape->at, most),
                               count_elements(b, x->rank, x->dims, most - 1));
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
  const node *most = size->src[size->n_src - 1];
  for (size_t i = 0; i < 2; i++) {
    const node *equal = size_of_number(b, where->src[0]->src[i]);
    if (equal && size_if_equal(b, most, most, equal) == size)
      return other == most || other == equal;
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
  const node *size = is_swapped ? y : x;
  return size_if_equal(b, size, size, is_swapped ? x : y);
}
