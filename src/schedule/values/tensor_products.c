/* Rewrites contractions of small types to rows of tensor_rows.def (the law TENSOR, on values):

     Σ_k cast(x[…k…]) · cast(y[…k…])   →   Σ_q op(0, X[…q…], Y[…q…])

   where X packs the `group` elements x[group·q + p] of a word, the first in the lowest bits;
   elements behind the last one are 0. The words are values like any others: those of constants are
   packed once, the others by kernels of their own, and loops, lanes, tiles and copies of the sums
   over words are chosen as for any contraction.

   Both operands are casts of small tensors behind movements, in which the axis of k stays whole;
   the words are made of the small tensor, so that an element which windows or products read many
   times is packed once.

   A row multiplies unsigned by signed bytes. Where an operand has the other sign, adding 128 modulo
   256 to its elements makes it of the row's sign, and the sum too large or small by 128 times the
   sum of the other operand:

     Σ x·y = Σ (x + 128)·y − Σ 128·y    x signed, as the first operand
     Σ x·y = Σ x·(y − 128) − Σ x·(−128) y unsigned, as the second one

   The last sums are over words too, with 128 or −128 in each byte. All of this is exact, as
   integers wrap. */
#include "schedule/values/tensor_products.h"

#include "ir/core/affine.h"
#include "ir/core/build.h"
#include "ir/core/likely_value.h"
#include "ir/core/math_mode.h"
#include "ir/core/tensor_rows.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "schedule/core/axis_views.h"
#include "target/machine.h"

/** An operand: movements of the cast of a tensor of a small type. */
typedef struct operand {
  const node *top;    /* with the axes of the product */
  const node *leaf;   /* of the small type */
  size_t leaf_axis;   /* of the leaf, along the reduction */
  bool is_biased;     /* its words get 128 added to each byte, modulo 256 */
  bool has_expansion; /* some axis is repeated below the last movement */
  int multiple;       /* of its words along the reduction: there are 0 behind the last */
} operand;

/** A contraction that a row is for. */
typedef struct contraction {
  const tensor_row *row;
  const node *sum; /* the REDUCE */
  size_t axis;     /* of the product, along which words are packed */
  operand x, y;    /* the row's first and second operand */
} contraction;

/* Matching. */

/** The axis of a reshaped tensor's operand that is an axis of it; the operand's rank: none is. */
static size_t axis_before_reshape(ir *g, const node *n, size_t axis) {
  const node *x = n->src[0], *before = ix_const(g, 1), *at = ix_const(g, 1);
  size_t k = 0;
  for (size_t i = 0; i < axis; i++) before = ix_mul(g, before, n->dims[i]);
  while (k < x->rank && (at != before || x->dims[k] != n->dims[axis]))
    at = ix_mul(g, at, x->dims[k++]);
  return k;
}

static bool is_all_of_axis(const node *n, size_t axis, const node *start, int64_t step) {
  return node_is_bits(start, 0) && step == 1 && n->dims[axis] == n->src[0]->dims[axis];
}

/** The axis of a movement's operand that is an axis of it; the operand's rank: none is. */
static size_t axis_before(ir *g, const node *n, size_t axis) {
  const node *x = n->src[0];
  switch (n->op) {
  case OP_PERMUTE: return (size_t)n->ints[axis];
  case OP_EXPAND: return x->dims[axis] == n->dims[axis] ? axis : x->rank;
  case OP_RESHAPE: return axis_before_reshape(g, n, axis);
  case OP_SLICE: return is_all_of_axis(n, axis, n->src[1 + axis], n->ints[axis]) ? axis : x->rank;
  case OP_PAD: {
    bool is_zero = node_is_bits(n->src[1], 0);
    return is_zero && is_all_of_axis(n, axis, n->src[2 + axis], 1) ? axis : x->rank;
  }
  default: return x->rank;
  }
}

static bool is_small(dtype t) {
  return t == DT_U8 || t == DT_I8 || t == DT_I16 || t == DT_BF16 || t == DT_F16;
}

/** Finds the small tensor behind an operand of a product; false: none, or the axis does not stay
    whole. */
static bool match_operand(ir *g, const node *top, size_t axis, operand *o) {
  const node *n = top;
  *o = (operand){.top = top};
  while (op_is_movement((op)n->op) && n->op != OP_GATHER) {
    axis = axis_before(g, n, axis);
    if (axis == n->src[0]->rank) return false;
    o->has_expansion |= n->op == OP_EXPAND && n != top;
    n = n->src[0];
  }
  if (n->op != OP_CAST || !is_small((dtype)n->src[0]->dtype)) return false;
  o->leaf = n->src[0];
  o->leaf_axis = axis;
  return true;
}

/** True if an operand's bytes have a type, or will have it once they are biased. */
static bool fits(operand *o, dtype t) {
  dtype own = (dtype)o->leaf->dtype;
  o->is_biased = own != t && dtype_bytes(t) == 1 && dtype_bytes(own) == 1;
  return own == t || o->is_biased;
}

/** The sum of the other operand can be computed once for all that reads it. */
static bool may_correct(const node *sum, const operand *other) {
  const node *top = other->top;
  for (size_t i = 0; i < top->rank && top->op == OP_EXPAND; i++)
    if (reduce_has_axis(sum, i) && top->src[0]->dims[i] != top->dims[i]) return false;
  return !other->has_expansion;
}

/** True if a row is for the operands in this order. */
static bool row_fits(const tensor_row *row, contraction *c) {
  if (row->sum != c->sum->dtype || !fits(&c->x, row->x) || !fits(&c->y, row->y)) return false;
  if (c->x.is_biased && c->y.is_biased) return false;
  if (c->x.is_biased) return may_correct(c->sum, &c->y);
  return !c->y.is_biased || may_correct(c->sum, &c->x);
}

/** True if a target has a row's instruction, or one for tiles of it. */
static bool has_row(const tensor_products_request *r, size_t row) {
  bool has = r->rows >> row & 1;
  for (size_t i = 0; i < TENSOR_TILES; i++)
    has |= tensor_tiles[i].row == (int)row && r->rows >> (TENSOR_ROWS + i) & 1;
  return has;
}

static bool find_row(const tensor_products_request *r, contraction *c) {
  for (size_t i = 0; i < TENSOR_ROWS; i++) {
    bool is_free = tensor_rows[i].is_exact || (r->math & MATH_DEFAULT) == MATH_DEFAULT;
    if (!has_row(r, i) || !is_free) continue;
    c->row = &tensor_rows[i];
    if (row_fits(c->row, c)) return true;
    operand first = c->x;
    c->x = c->y, c->y = first;
    if (row_fits(c->row, c)) return true;
  }
  return false;
}

static double elements_of(const node *n) {
  double all = 1;
  for (size_t i = 0; i < n->rank; i++) all *= ix_likely(n->dims[i]);
  return all;
}

static double packed_each_time(const tensor_products_request *r, const operand *o) {
  bool once = r->is_constant && r->is_constant(r->user, o->leaf);
  return once ? 0 : elements_of(o->leaf);
}

/** True if the products are many times the elements that are packed for them. */
static bool pays(const tensor_products_request *r, const contraction *c) {
  double packed = packed_each_time(r, &c->x) + packed_each_time(r, &c->y);
  return elements_of(c->sum->src[0]) >= MACHINE_TENSOR_ROW_REUSE * packed;
}

/* Tiles. */

/** True if an operand is the same for all indices of a product's axis. */
static bool repeats(const operand *o, size_t axis) {
  const node *top = o->top;
  return top->op == OP_EXPAND && top->src[0]->dims[axis] != top->dims[axis];
}

/** Indices of a product's axes that one operand varies along, and the other does not. */
static double indices_of(const node *sum, const operand *x, const operand *other) {
  double n = 1;
  for (size_t i = 0; i < x->top->rank; i++)
    if (repeats(other, i) && !repeats(x, i) && !reduce_has_axis(sum, i))
      n *= ix_likely(x->top->dims[i]);
  return n;
}

/** True if the words of the operand that the last axis of the results repeats, which are rows of
    tiles, lie side by side. */
static bool has_rows(const contraction *c) {
  size_t last = c->sum->src[0]->rank;
  while (last > 0 && reduce_has_axis(c->sum, last - 1)) last--;
  if (!last || repeats(&c->x, last - 1) == repeats(&c->y, last - 1)) return false;
  const operand *rows = repeats(&c->x, last - 1) ? &c->x : &c->y;
  return rows->leaf_axis + 1 == rows->leaf->rank;
}

/** The longest axis of a product that one operand varies along, and the other does not. */
static double longest_axis(const node *sum, const operand *x, const operand *other) {
  double most = 1;
  for (size_t i = 0; i < x->top->rank; i++)
    if (repeats(other, i) && !repeats(x, i) && !reduce_has_axis(sum, i) &&
        ix_likely(x->top->dims[i]) > most)
      most = ix_likely(x->top->dims[i]);
  return most;
}

/** True if a product fills tiles of a worker, or of a warp, which lie along one axis each. */
static bool fills(const contraction *c, const tensor_tile *t) {
  if (t->workers > 1)
    return longest_axis(c->sum, &c->x, &c->y) >= t->m && longest_axis(c->sum, &c->y, &c->x) >= t->m;
  return has_rows(c) && indices_of(c->sum, &c->x, &c->y) >= t->m &&
         indices_of(c->sum, &c->y, &c->x) >= t->n;
}

/** Lets the words of a product fill tiles, where the target has one and the product is large
    enough. */
static void fit_to_tiles(const tensor_products_request *r, contraction *c) {
  double words = ix_likely(c->sum->src[0]->dims[c->axis]) / c->row->group;
  for (size_t i = 0; i < TENSOR_TILES; i++) {
    const tensor_tile *t = &tensor_tiles[i];
    if (&tensor_rows[t->row] != c->row || !(r->rows >> (TENSOR_ROWS + i) & 1)) continue;
    bool fits =
        fills(c, t) && words > t->k && elements_of(c->sum->src[0]) >= MACHINE_TILED_TERMS_LEAST;
    c->x.multiple = c->y.multiple = fits ? t->k : 1;
  }
}

/** True if the target has tiles of a row whose own instructions are not faster than f32, and a
    product is too small for them. */
static bool is_too_small(const tensor_products_request *r, const contraction *c) {
  bool has_tiles = false;
  for (size_t i = 0; i < TENSOR_TILES; i++)
    has_tiles |= &tensor_rows[tensor_tiles[i].row] == c->row && r->rows >> (TENSOR_ROWS + i) & 1;
  return has_tiles && !c->row->is_exact && c->x.multiple == 1;
}

/** Finds a row for a sum, with words along the longest axis that both operands have whole. */
static bool match(ir *g, const tensor_products_request *r, const node *sum, contraction *c) {
  const node *product = sum->src[0];
  double best = MACHINE_TENSOR_ROW_LENGTH - 1;
  bool found = false;
  if (sum->ints[0] != OP_ADD || product->op != OP_MUL) return false;
  for (size_t i = 0; i < product->rank; i++) {
    contraction here = {.sum = sum, .axis = i};
    double length = ix_likely(product->dims[i]);
    if (!reduce_has_axis(sum, i) || length <= best) continue;
    if (!match_operand(g, product->src[0], i, &here.x) ||
        !match_operand(g, product->src[1], i, &here.y) || !find_row(r, &here))
      continue;
    here.x.multiple = here.y.multiple = 1;
    fit_to_tiles(r, &here);
    if (is_too_small(r, &here)) continue;
    *c = here;
    best = length;
    found = true;
  }
  return found && pays(r, c);
}

/* Words. */

static const node *fill_like(ir *g, const node *like, int64_t value) {
  return ir_fill(g, ir_const_int(g, (dtype)like->dtype, value), like->rank, like->dims);
}

/** Elements as unsigned numbers of the type of a word's bits. */
static const node *widen(ir *g, const node *x, const tensor_row *row) {
  dtype bits = dtype_is_float(row->sum) ? DT_U32 : DT_I32;
  return ir_cast(g, ir_bitcast(g, x, dtype_bytes((dtype)x->dtype) == 1 ? DT_U8 : DT_U16), bits);
}

static const node *rounded_up(ir *g, const node *size, int by) {
  return ix_floordiv(g, ix_add_const(g, size, by - 1), ix_const(g, by));
}

/** The words of an operand along the reduction. */
static const node *words_of(ir *g, const node *size, const tensor_row *row, const operand *o) {
  return ix_scale(g, rounded_up(g, size, row->group * o->multiple), o->multiple);
}

/** 128 in each byte of a word. */
static const int64_t bias = (int64_t)(int32_t)0x80808080;

static const node *pack(ir *g, const tensor_row *row, const operand *o) {
  const node *groups = words_of(g, o->leaf->dims[o->leaf_axis], row, o), *word = NULL;
  const node *x = axis_extend(g, o->leaf, o->leaf_axis, ix_scale(g, groups, row->group));
  for (int p = 0; p < row->group; p++) {
    const node *e = widen(g, axis_slice(g, x, o->leaf_axis, p, groups, row->group), row);
    if (p) e = ir_op2(g, OP_SHL, e, fill_like(g, e, p * 32 / row->group));
    word = word ? ir_op2(g, OP_OR, word, e) : e;
  }
  if (o->is_biased) word = ir_op2(g, OP_XOR, word, fill_like(g, word, bias));
  return ir_bitcast(g, word, row->sum);
}

/** The sources of a movement with another operand, and another size of one axis of the result. */
static const node *move_words(ir *g, const node *n, const node *words, size_t axis,
                              const node *size, const tensor_row *row, const operand *o) {
  const node **src = arena_copy(ir_scratch(g), n->src, n->n_src * sizeof *src);
  src[0] = words;
  if (n->op == OP_EXPAND || n->op == OP_RESHAPE) src[1 + axis] = size;
  if (n->op == OP_SLICE) src[1 + n->rank + axis] = size;
  if (n->op == OP_PAD) {
    src[1] = ir_const_int(g, row->sum, o->is_biased ? bias : 0);
    src[2 + n->rank + axis] = size;
  }
  return ir_node(g, (op)n->op, row->sum, src, n->n_src, n->ints, n->n_int);
}

/** The words of an operand behind its movements. */
static const node *words_behind(ir *g, const node *n, size_t axis, const tensor_row *row,
                                const operand *o) {
  if (n->op == OP_CAST) return pack(g, row, o);
  const node *words = words_behind(g, n->src[0], axis_before(g, n, axis), row, o);
  return move_words(g, n, words, axis, words_of(g, n->dims[axis], row, o), row, o);
}

/* Sums. */

static const node *sum_words(ir *g, const contraction *c, const node *x, const node *y) {
  const node *product = ir_op3(g, c->row->op, fill_like(g, x, 0), x, y);
  return ir_reduce(g, product, OP_ADD, c->sum->n_int - 1, c->sum->ints + 1);
}

/** Without the movement that repeats axes. */
static const node *unexpanded(const node *words) {
  return words->op == OP_EXPAND ? words->src[0] : words;
}

/** Σ 128·y, or Σ x·(−128), with the shape of the sum. */
static const node *correction(ir *g, const contraction *c, const node *x, const node *y) {
  const node *all = unexpanded(c->x.is_biased ? y : x), *same = fill_like(g, all, bias);
  all = c->x.is_biased ? sum_words(g, c, same, all) : sum_words(g, c, all, same);
  return ir_same_shape(all, c->sum) ? all : ir_expand(g, all, c->sum->dims);
}

static const node *rewrite_sum(ir *g, const contraction *c) {
  const node *x = words_behind(g, c->x.top, c->axis, c->row, &c->x);
  const node *y = words_behind(g, c->y.top, c->axis, c->row, &c->y);
  const node *sum = sum_words(g, c, x, y);
  if (!c->x.is_biased && !c->y.is_biased) return sum;
  return ir_op2(g, OP_SUB, sum, correction(g, c, x, y));
}

typedef struct rewriting {
  ir *g;
  const tensor_products_request *request;
} rewriting;

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  rewriting *f = user;
  contraction c;
  if (n->op != OP_REDUCE || (n->dtype != DT_I32 && n->dtype != DT_F32)) return NULL;
  const node *sum = ir_with_sources(f->g, n, src);
  return match(f->g, f->request, sum, &c) ? rewrite_sum(f->g, &c) : sum;
}

void tensor_products_rewrite(ir *g, const tensor_products_request *r) {
  rewriting f = {.g = g, .request = r};
  if (!r->rows) return;
  arena_mark here = arena_save(ir_scratch(g));
  ir_copy(g, ir_scratch(g), r->roots, r->n_roots, rewrite_node, &f, r->roots);
  arena_rewind(ir_scratch(g), here);
}
