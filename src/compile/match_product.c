/* Implements the search for products. A kernel is one if it writes one array, each element of which
   is a sum over one range of products of an element of each of two arrays, all at affine
   coordinates. The steps by which a range moves through the three arrays tell its part: the rows of
   the result are read by the left factor alone, its columns, which are contiguous, by the right one
   alone, and all other ranges are the batch. */
#include "compile/match_product.h"

#include "device/program/product.h"
#include "ir/core/binder_layout.h"
#include "ir/core/math_mode.h"
#include "ir/text/sink_text.h"

#include <string.h>

enum { OUT, LEFT, RIGHT, MATRICES, MOST_RANGES = TN_PRODUCT_BATCHES + 3 };

/** A range, and its steps through the arrays. */
typedef struct product_range {
  const node *range;
  int64_t extent, step[MATRICES];
} product_range;

typedef struct product_match {
  product_range ranges[MOST_RANGES]; /* the sum's first */
  size_t n;
  const node *param[MATRICES];
  int64_t start[MATRICES];
} product_match;

static product_range *find_range(product_match *m, const node *range) {
  for (size_t i = 0; i < m->n; i++)
    if (m->ranges[i].range == range) return &m->ranges[i];
  return NULL;
}

static bool add_range(product_match *m, const node *range) {
  const node *extent = range_extent(range);
  if (m->n == MOST_RANGES || !node_is_const(extent)) return false;
  if (range_kind_of(range) != KIND_LOOP) return false;
  m->ranges[m->n++] = (product_range){.range = range, .extent = node_int(extent)};
  return true;
}

/** Adds `factor` times a coordinate to the steps through an array. */
static bool add_coordinate(product_match *m, int array, const node *x, int64_t factor) {
  bool is_sum = x->op == OP_AFFINE;
  if (node_is_const(x)) return m->start[array] += factor * node_int(x), true;
  if (is_sum) m->start[array] += factor * x->ints[0];
  for (size_t i = 0; i < (is_sum ? x->n_src : 1); i++) {
    const node *atom = is_sum ? x->src[i] : x;
    product_range *r = atom->op == OP_RANGE ? find_range(m, atom) : NULL;
    if (!r) return false;
    r->step[array] += factor * (is_sum ? x->ints[i + 1] : 1);
  }
  return true;
}

/** Adds all coordinates of an element of a PARAM of fixed sizes, which are within it. */
static bool add_access(product_match *m, int array, const node *param, const node *const x[],
                       size_t rank) {
  int64_t factor = 1;
  if (param->op != OP_PARAM || param->rank != rank) return false;
  m->param[array] = param;
  for (size_t i = rank; i-- > 0;) {
    const node *size = param->dims[i];
    if (!node_is_const(size) || x[i]->lo < 0 || x[i]->hi >= node_int(size)) return false;
    if (!add_coordinate(m, array, x[i], factor)) return false;
    if (node_int(size) > INT32_MAX / 2 || factor > INT64_MAX / (INT32_MAX / 2)) return false;
    factor *= node_int(size);
  }
  return true;
}

static bool add_factor(product_match *m, int array, const node *x) {
  return x->op == OP_INDEX && add_access(m, array, x->src[0], x->src + 1, x->n_src - 1);
}

/** Takes apart the sum of products that is the kernel's value. */
static bool match_sum(product_match *m, const node *value) {
  if (value->op != OP_INDEX || value->n_src != 1 || value->src[0]->op != OP_FOLD) return false;
  const node *fold = value->src[0];
  if (fold_n_states(fold) != 1 || fold_n_emits(fold) || fold_n_ranges(fold) != 1) return false;
  if (fold_n_pins(fold) || fold_op(fold, 0) != OP_ADD || fold_component(fold, 0) >= 0) return false;
  const node *term = fold_step(fold, 0);
  if (!node_is_bits(fold_init(fold, 0), 0) || term->op != OP_MUL) return false;
  if (term->dtype != DT_F32 && term->dtype != DT_F64) return false;
  return m->ranges[0].range == fold_innermost_range(fold) && add_factor(m, LEFT, term->src[0]) &&
         add_factor(m, RIGHT, term->src[1]);
}

/** The sum's range of the kernel's value; NULL: there is none. */
static const node *sum_range(const node *value) {
  bool is_fold = value->op == OP_INDEX && value->src[0]->op == OP_FOLD;
  return is_fold && fold_n_ranges(value->src[0]) ? fold_innermost_range(value->src[0]) : NULL;
}

/** Takes a kernel apart. */
static bool match_kernel(product_match *m, const node *sink) {
  size_t bytes;
  if (sink_schedule(sink, &bytes) || sink->n_src != 1) return false;
  const node *out = sink->src[0];
  if (out->op != OP_OUT || out->n_src != 2 || out->src[1]->op != OP_STAGE) return false;
  const node *stage = out->src[1];
  if (stage_n_values(stage) != 1 || stage_n_pins(stage)) return false;
  const node *value = stage_value(stage, 0), *summed = sum_range(value);
  bool fits = summed && add_range(m, summed);
  for (size_t i = 0; fits && i < stage_n_ranges(stage); i++)
    fits = add_range(m, stage_range(stage)[i]);
  return fits && value->dtype == out->src[0]->dtype &&
         add_access(m, OUT, out->src[0], stage_coords(stage, 0), stage_rank(stage, 0)) &&
         match_sum(m, value);
}

/** The position of a kernel's buffer among those of a launch, which come by their slots. */
static int64_t position_of(const product_match *m, int array) {
  int64_t slot = m->param[array]->ints[0], position = 0;
  for (int i = 0; i < MATRICES; i++) {
    int64_t other = m->param[i]->ints[0];
    bool is_new = other < slot;
    for (int k = 0; k < i && is_new; k++) is_new = m->param[k]->ints[0] != other;
    position += is_new;
  }
  return position;
}

/** The matrix of an array: `row` and `column` are ranges. */
static tn_product_matrix matrix_of(const product_match *m, int array, const product_range *row,
                                   const product_range *column) {
  return (tn_product_matrix){.buffer = position_of(m, array),
                             .start = m->start[array],
                             .row = row->step[array],
                             .column = column->step[array]};
}

/** Makes the product of which these ranges are the rows and the columns; false if it is none. */
static bool make_product(const product_match *m, const product_range *row,
                         const product_range *column, int left, tn_product *p) {
  const product_range *sum = &m->ranges[0];
  int right = left == LEFT ? RIGHT : LEFT, n = 0;
  *p = (tn_product){.dtype = m->param[OUT]->dtype == DT_F64 ? TN_F64 : TN_F32,
                    .m = row->extent,
                    .n = column->extent,
                    .k = sum->extent,
                    .out = matrix_of(m, OUT, row, column),
                    .left = matrix_of(m, left, row, sum),
                    .right = matrix_of(m, right, sum, column)};
  for (int d = 0; d < TN_PRODUCT_BATCHES; d++) p->batch[d] = 1;
  for (size_t i = 1; i < m->n; i++) {
    const product_range *r = &m->ranges[i];
    if (r == row || r == column) continue;
    p->batch[n] = r->extent;
    p->out.batch[n] = r->step[OUT];
    p->left.batch[n] = r->step[left];
    p->right.batch[n++] = r->step[right];
  }
  return product_is_valid(p);
}

/** True for a range that one factor reads and the other does not. */
static bool is_of(const product_range *r, int factor, int other) {
  return r->step[OUT] && r->step[factor] && !r->step[other];
}

/** The product with the most rows whose columns are contiguous. */
static bool choose_parts(const product_match *m, int left, tn_product *p) {
  int right = left == LEFT ? RIGHT : LEFT;
  bool is_found = false;
  for (size_t i = 1; i < m->n; i++) {
    const product_range *column = &m->ranges[i];
    if (column->step[OUT] != 1 || !is_of(column, right, left)) continue;
    for (size_t k = 1; k < m->n; k++) {
      tn_product found;
      if (!is_of(&m->ranges[k], left, right)) continue;
      if (!make_product(m, &m->ranges[k], column, left, &found)) continue;
      if (!is_found || found.m > p->m) *p = found;
      is_found = true;
    }
  }
  return is_found;
}

bool match_product(const node *sink, int math, tn_product *p) {
  product_match m = {.n = 0};
  if (!(math & MATH_CONTRACT) || !(math & MATH_REORDER)) return false;
  if (!match_kernel(&m, sink)) return false;
  for (size_t i = 1; i < m.n; i++)
    if (!m.ranges[i].step[OUT]) return false;
  return choose_parts(&m, LEFT, p) || choose_parts(&m, RIGHT, p);
}
