/* Reductions of much to little. A kernel's cores share out the elements that it writes, and what
   has fewer of them than there are cores keeps some idle: it is reduced in parts, elements of their
   own, and these to the result. How many follows from the sizes and the machine, not from the cores
   in use. */
#include "ir/build.h"
#include "ir/copy.h"
#include "ir/rewrite.h"
#include "schedule/prices.h"

enum {
  PARTS_A_CORE = 8, /* so that any number of threads has about as many each */
  LEAST_PART = 1024 /* elements */
};

typedef struct parting {
  ir *g;
  const machine *m;
  int math;
} parting;

static double size_of(const node *n) {
  double size = 1;
  for (size_t i = 0; i < n->rank; i++) size *= price_size(n->dims[i]);
  return size;
}

/** Whether cores would wait for another one for longer than it takes to start two kernels more. */
static bool is_lopsided(const machine *m, const node *reduce) {
  double work = 2 * size_of(reduce->src[0]) * m->operation, shared = size_of(reduce);
  if (shared < 1) shared = 1;
  return shared < m->cores && work * (1 / shared - 1 / m->cores) > 2 * m->launch;
}

/** x from `from` on along an axis, `size` elements. */
static const node *stretch(ir *g, const node *x, size_t axis, int64_t from, int64_t size) {
  arena *a = ir_arena(g);
  const node **starts = arena_alloc(a, x->rank * sizeof *starts);
  const node **sizes = arena_copy(a, x->dims, x->rank * sizeof *sizes);
  int64_t *steps = arena_alloc(a, x->rank * sizeof *steps);
  for (size_t i = 0; i < x->rank; i++) {
    starts[i] = ix_const(g, i == axis ? from : 0);
    steps[i] = 1;
  }
  sizes[axis] = ix_const(g, size);
  return ir_slice(g, x, starts, sizes, steps);
}

/** x with an axis as two, the outer one of `n` indices. */
static const node *cut_axis(ir *g, const node *x, size_t axis, int64_t n) {
  const node **dims = arena_alloc(ir_arena(g), (x->rank + 1u) * sizeof *dims);
  for (size_t i = 0; i <= x->rank; i++) dims[i] = x->dims[i > axis ? i - 1 : i];
  dims[axis] = ix_const(g, n);
  dims[axis + 1] = ix_const(g, node_int(x->dims[axis]) / n);
  return ir_reshape(g, x, x->rank + 1u, dims);
}

/** The reduction over the same axes where one is two, but for the outer one. */
static const node *parts(ir *g, const node *reduce, const node *x, int64_t axis) {
  size_t n = reduce->n_int - 1u;
  int64_t *axes = arena_alloc(ir_arena(g), n * sizeof *axes);
  for (size_t i = 0; i < n; i++) axes[i] = reduce->ints[1 + i] + (reduce->ints[1 + i] >= axis);
  return ir_reduce(g, x, (op)reduce->ints[0], n, axes);
}

/** Where an axis of what is reduced comes to lie among those that are left. */
static int64_t place_of(const node *reduce, int64_t axis) {
  int64_t place = axis;
  for (size_t i = 1; i < reduce->n_int; i++) place -= reduce->ints[i] < axis;
  return place;
}

/** The first axis long enough to be cut; -1: none is. */
static int64_t axis_to_cut(const node *reduce, int64_t n) {
  const node *x = reduce->src[0];
  for (size_t i = 1; i < reduce->n_int; i++) {
    int64_t axis = reduce->ints[i];
    double part = size_of(x) / size_of(reduce) / (double)n;
    if (node_is_const(x->dims[axis]) && node_int(x->dims[axis]) >= n && part >= LEAST_PART)
      return axis;
  }
  return -1;
}

static const node *in_parts(parting *p, const node *reduce, const node *x) {
  ir *g = p->g;
  op o = (op)reduce->ints[0];
  int64_t n = (int64_t)p->m->cores * PARTS_A_CORE, axis = axis_to_cut(reduce, n);
  if (axis < 0) return NULL;
  int64_t size = node_int(x->dims[axis]), even = size / n * n, place = place_of(reduce, axis);
  const node *most = even < size ? stretch(g, x, (size_t)axis, 0, even) : x;
  const node *made = parts(g, reduce, cut_axis(g, most, (size_t)axis, n), axis);
  made = ir_reduce(g, made, o, 1, &place);
  if (even == size) return made;
  const node *rest = stretch(g, x, (size_t)axis, even, size - even);
  return ir_op2(g, o, made, ir_reduce(g, rest, o, reduce->n_int - 1u, reduce->ints + 1));
}

static const node *parted(void *user, const node *n, const node *const src[]) {
  parting *p = user;
  bool parts = n->op == OP_REDUCE && math_may_reorder(p->math, (dtype)n->dtype);
  return parts && is_lopsided(p->m, n) ? in_parts(p, n, src[0]) : NULL;
}

void schedule_parts(ir *g, const machine *m, int math, normalised *n, size_t n_labels) {
  parting p = {g, m, math};
  ir_copy(g, ir_arena(g), n->roots, n->n_roots + n_labels, parted, &p, n->roots);
}
