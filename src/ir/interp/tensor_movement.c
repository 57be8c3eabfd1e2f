/* Computes movements of a tensor graph: result[at] = source[f(at)]. They change strides and the
   first element; only PAD, and a RESHAPE of which no strides give the order, copy elements. */
#include "ir/interp/tensor_run.h"

/** The view that a SLICE, EXPAND or PERMUTE has of an array. */
typedef struct view {
  run *r;
  const node *n;
  const strided *x;
  strided y;
} view;

/** Shows x[first], x[first + step], … along an axis of the result. */
static void show_axis(view *v, size_t axis, size_t of, int64_t first, int64_t step) {
  int64_t last, n = v->y.dims[axis];
  bool is_beyond = __builtin_mul_overflow(step, n - 1, &last) ||
                   __builtin_add_overflow(first, last, &last) || first < 0 || last < 0 ||
                   first >= v->x->dims[of] || last >= v->x->dims[of];
  if (is_beyond) raise_bad_shape(v->r, v->n);
  v->y.data += first * v->x->strides[of] * (int64_t)dtype_bytes(v->x->dtype);
  v->y.strides[axis] = n == 1 ? 0 : v->x->strides[of] * step;
}

static void show(view *v) {
  const node *n = v->n;
  for (size_t i = 0; i < n->rank; i++) {
    bool repeats = n->op == OP_EXPAND && v->x->dims[i] == 1;
    size_t of = n->op == OP_PERMUTE ? (size_t)n->ints[i] : i;
    int64_t first = n->op == OP_SLICE ? tensor_index(v->r, n->src[1 + i]) : 0;
    int64_t step = n->op == OP_SLICE ? n->ints[i] : !repeats;
    show_axis(v, i, of, first, step);
  }
}

static void reshape(view *v, const value *x, value **slot) {
  strided *y = &v->y;
  if (strided_count(y) != strided_count(v->x)) raise_bad_shape(v->r, v->n);
  if (strided_reshape(v->x, y->rank, y->dims, y->strides))
    new_view(v->r, slot, y, x->memory);
  else
    strided_copy(v->x, new_array(v->r, slot, v->n, y->dtype, y->rank, y->dims)->data);
}

/** Limits an array and its padded one, along an axis, to the elements that they have in common;
    false: there are none. */
static bool find_common(strided *x, strided *y, size_t axis, int64_t low) {
  int64_t bytes = (int64_t)dtype_bytes(x->dtype), begin = low > 0 ? low : 0;
  if (low >= y->dims[axis] || low <= -x->dims[axis]) return false;
  int64_t rest = x->dims[axis] - (begin - low), room = y->dims[axis] - begin;
  x->dims[axis] = y->dims[axis] = rest < room ? rest : room;
  x->data += (begin - low) * x->strides[axis] * bytes;
  y->data += begin * y->strides[axis] * bytes;
  return true;
}

static void pad(const view *v, uint64_t fill, value **slot) {
  strided x = *v->x;
  strided y = *new_array(v->r, slot, v->n, x.dtype, v->y.rank, v->y.dims);
  if (fill) strided_fill(&y, fill);
  if (!strided_count(&x) || !strided_count(&y)) return;
  for (size_t i = 0; i < y.rank; i++)
    if (!find_common(&x, &y, i, tensor_index(v->r, v->n->src[2 + i]))) return;
  strided_store(&y, &x);
}

void move_value(run *r, const node *n, const value *x, uint64_t fill, value **slot) {
  view v = {.r = r, .n = n, .x = &x->a};
  int64_t dims[INTERP_MAX_RANK];
  tensor_dims(r, n, dims);
  bool is_empty = !interp_element_count(n->rank, dims, dtype_bytes(x->a.dtype), n, r->d);
  v.y = strided_dense(x->a.dtype, n->rank, dims, x->a.data);
  if (n->op != OP_RESHAPE && x->a.rank != n->rank) raise_bad_shape(r, n);
  if (n->op == OP_RESHAPE) {
    reshape(&v, x, slot);
  } else if (n->op == OP_PAD) {
    pad(&v, fill, slot);
  } else {
    if (!is_empty) show(&v);
    new_view(r, slot, &v.y, x->memory);
  }
}

void run_movement(run *r, const node *n) {
  uint64_t fill = n->op == OP_PAD ? strided_read(tensor_array(r, n->src[1]), 0) : 0;
  move_value(r, n, tensor_value(r, n->src[0]), fill, tensor_slot(r, n));
}
