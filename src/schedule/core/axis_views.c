/* Builds views along one axis of the movements of the tensor graph. */
#include "schedule/core/axis_views.h"

#include "ir/core/build.h"
#include "ir/core/interval.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"

const node *axis_slice(ir *g, const node *x, size_t axis, int64_t start, const node *size,
                       int64_t step) {
  arena *a = ir_scratch(g);
  const node **starts = arena_alloc(a, x->rank * sizeof *starts);
  const node **sizes = arena_copy(a, x->dims, x->rank * sizeof *sizes);
  int64_t *steps = arena_alloc(a, x->rank * sizeof *steps);
  for (size_t i = 0; i < x->rank; i++) {
    starts[i] = ix_const(g, i == axis ? start : 0);
    steps[i] = i == axis ? step : 1;
  }
  sizes[axis] = size;
  return ir_slice(g, x, starts, sizes, steps);
}

const node *axis_reshape(ir *g, const node *x, size_t axis, size_t n, const node *const sizes[]) {
  const node **dims = arena_alloc(ir_scratch(g), (x->rank + n) * sizeof *dims);
  size_t rank = 0;
  for (size_t i = 0; i < axis; i++) dims[rank++] = x->dims[i];
  for (size_t i = 0; i < n; i++) dims[rank++] = sizes[i];
  for (size_t i = axis + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
  return ir_reshape(g, x, rank, dims);
}

const node *axis_expand(ir *g, const node *x, size_t axis, const node *size) {
  const node **dims = arena_copy(ir_scratch(g), x->dims, x->rank * sizeof *dims);
  dims[axis] = size;
  return ir_expand(g, x, dims);
}

const node *axis_extend(ir *g, const node *x, size_t axis, const node *size) {
  if (x->dims[axis] == size) return x;
  const node **lows = arena_alloc(ir_scratch(g), x->rank * sizeof *lows);
  const node **sizes = arena_copy(ir_scratch(g), x->dims, x->rank * sizeof *sizes);
  for (size_t i = 0; i < x->rank; i++) lows[i] = ix_const(g, 0);
  sizes[axis] = size;
  return ir_pad(g, x, ir_const_int(g, (dtype)x->dtype, 0), lows, sizes);
}

/** The axis is repeated and cut into rows one element longer than it, so that row k begins at
    element k; k + i · stride is inside the axis, so that no more is read of a row. */
const node *axis_windows(ir *g, const node *x, size_t axis, int64_t n, int64_t stride,
                         const node *count) {
  const node *size = x->dims[axis], *row = ix_add_const(g, size, 1), *all = ix_scale(g, row, n);
  int64_t repeats = n + 2; /* n · (size + 1) ≤ (n + 2) · size, as n ≤ size */
  if (node_is_const(size)) repeats = floor_div(node_int(all) - 1, node_int(size)) + 1;
  x = axis_reshape(g, x, axis, 2, (const node *[]){ix_const(g, 1), size});
  x = axis_expand(g, x, axis, ix_const(g, repeats));
  const node *flat = ix_scale(g, size, repeats);
  const node **dims = arena_alloc(ir_scratch(g), x->rank * sizeof *dims);
  for (size_t i = 0; i + 1 < x->rank; i++) dims[i] = x->dims[i < axis ? i : i + 1];
  dims[axis] = flat;
  x = axis_slice(g, ir_reshape(g, x, x->rank - 1u, dims), axis, 0, all, 1);
  x = axis_reshape(g, x, axis, 2, (const node *[]){ix_const(g, n), row});
  return axis_slice(g, x, axis + 1, 0, count, stride);
}
