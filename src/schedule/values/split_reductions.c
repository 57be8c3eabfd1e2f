/* Splits reductions into partial reductions that run in parallel (split-K). A kernel's cores share
   the elements that it writes; a reduction with fewer results than cores keeps some idle. It is
   reduced in parts, which are elements of their own, and these to the result. The number of parts
   follows from the sizes and the machine of its device, not from the cores in use, so that results
   do not depend on these. */
#include "schedule/values/split_reductions.h"

#include "ir/core/build.h"
#include "ir/core/likely_value.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/rewrite.h"
#include "schedule/core/axis_views.h"
#include "target/machine.h"

typedef struct splitting {
  ir *g;
  const machine *m;
  int math;
} splitting;

static double size_of(const node *n) {
  double size = 1;
  for (size_t i = 0; i < n->rank; i++) size *= ix_likely(n->dims[i]);
  return size;
}

/** True if cores would idle for longer than it takes to start two more kernels. */
static bool leaves_cores_idle(const machine *m, const node *reduce) {
  double work = MACHINE_REDUCTION_TERM_OPERATIONS * size_of(reduce->src[0]) * m->operation,
         shared = size_of(reduce);
  if (shared < 1) shared = 1;
  return shared < m->cores &&
         work * (1 / shared - 1 / m->cores) > MACHINE_SPLIT_REDUCTION_LAUNCHES * m->launch;
}

/** The reduction to parts: over the same axes after the split, but for the outer half. */
static const node *reduce_to_parts(ir *g, const node *reduce, const node *x, int64_t axis) {
  size_t n = reduce->n_int - 1u;
  int64_t *axes = arena_alloc(ir_scratch(g), n * sizeof *axes);
  for (size_t i = 0; i < n; i++) axes[i] = reduce->ints[1 + i] + (reduce->ints[1 + i] >= axis);
  return ir_reduce(g, x, (op)reduce->ints[0], n, axes);
}

/** The position of an axis among those that remain after the reduction. */
static int64_t remaining_position(const node *reduce, int64_t axis) {
  int64_t place = axis;
  for (size_t i = 1; i < reduce->n_int; i++) place -= reduce->ints[i] < axis;
  return place;
}

/** The first axis long enough to be split into n; -1: none. */
static int64_t find_axis_to_split(const node *reduce, int64_t n) {
  const node *x = reduce->src[0];
  for (size_t i = 1; i < reduce->n_int; i++) {
    int64_t axis = reduce->ints[i];
    double part = size_of(x) / size_of(reduce) / (double)n;
    if (node_is_const(x->dims[axis]) && node_int(x->dims[axis]) >= n &&
        part >= MACHINE_PART_LEAST_ELEMENTS)
      return axis;
  }
  return -1;
}

static const node *split_reduction(splitting *p, const machine *m, const node *reduce,
                                   const node *x) {
  ir *g = p->g;
  op o = (op)reduce->ints[0];
  int64_t n = (int64_t)m->cores * MACHINE_PARTS_PER_CORE, axis = find_axis_to_split(reduce, n);
  if (axis < 0) return NULL;
  int64_t size = node_int(x->dims[axis]), even = size / n * n,
          place = remaining_position(reduce, axis);
  const node *most = even < size ? axis_slice(g, x, (size_t)axis, 0, ix_const(g, even), 1) : x;
  const node *made =
      reduce_to_parts(g, reduce,
                      axis_reshape(g, most, (size_t)axis, 2,
                                   (const node *[]){ix_const(g, n), ix_const(g, even / n)}),
                      axis);
  made = ir_reduce(g, made, o, 1, &place);
  if (even == size) return made;
  const node *rest = axis_slice(g, x, (size_t)axis, even, ix_const(g, size - even), 1);
  return ir_op2(g, o, made, ir_reduce(g, rest, o, reduce->n_int - 1u, reduce->ints + 1));
}

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  splitting *p = user;
  bool may_split = n->op == OP_REDUCE && math_may_reorder(p->math, (dtype)n->dtype);
  const machine *m = machine_of_device(p->m, n->device);
  return may_split && leaves_cores_idle(m, n) ? split_reduction(p, m, n, src[0]) : NULL;
}

void split_reductions(ir *g, const machine *m, int math, normalised *n, size_t n_labels) {
  splitting p = {g, m, math};
  arena_mark here = arena_save(ir_scratch(g));
  ir_copy(g, ir_scratch(g), n->roots, n->n_roots + n_labels, rewrite_node, &p, n->roots);
  arena_rewind(ir_scratch(g), here);
}
