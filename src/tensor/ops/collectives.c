/* Collectives over the devices of one process: each tensor of a list is on a device of its own, and
   each device gets a result. They are spelt as rings of moves and elementwise operations: a device
   sends to the next one alone, all devices at once, and the order in which parts are combined
   follows from the places in the list. */
#include "ir/core/node_device.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/op_call.h"
#include "tensor/ops/type_promotion.h"

typedef struct ring {
  builder *b;
  size_t n;
  const node **x;  /* the operands, of one type */
  uint8_t *device; /* of each, as node.device */
} ring;

typedef struct collective_call {
  tn_reduction reduction;
  int axis;
} collective_call;

static const node *moved(const ring *r, const node *n, size_t to) {
  int64_t ints[] = {r->device[to] - 1};
  if (n->device == r->device[to]) return n;
  return ir_node(r->b->ir, OP_TO, (dtype)n->dtype, &n, 1, ints, 1);
}

static ring open_ring(builder *b, const value in[], size_t n) {
  ring r = {.b = b, .n = n};
  if (!n) diag_raise(b->diag, TN_ERR_ARGUMENT, "the list of operands is empty");
  r.x = arena_alloc(b->arena, n * sizeof *r.x);
  r.device = arena_alloc(b->arena, n * sizeof *r.device);
  dtype t = values_promoted_dtype(b, in, n);
  for (size_t i = 0; i < n; i++) {
    r.x[i] = type_convert(b, in[i], t);
    r.device[i] = (uint8_t)(node_device_number(r.x[i], 0) + 1);
  }
  return r;
}

static void check_shapes(const ring *r) {
  sizes first = sizes_of(r->x[0]);
  for (size_t i = 1; i < r->n; i++) {
    sizes own = sizes_of(r->x[i]);
    if (!sizes_equal(&first, &own))
      diag_raise(r->b->diag, TN_ERR_SHAPE,
                 "operand %zu has shape %s and operand 1 has shape %s; shapes must be equal", i + 1,
                 sizes_text(r->b, &own), sizes_text(r->b, &first));
  }
}

static op op_of(builder *b, tn_reduction reduction, dtype t) {
  bool is_bool = t == DT_BOOL;
  switch (reduction) {
  case TN_REDUCTION_ADD: return is_bool ? OP_OR : OP_ADD;
  case TN_REDUCTION_MUL: return is_bool ? OP_AND : OP_MUL;
  case TN_REDUCTION_MIN: return OP_MIN;
  case TN_REDUCTION_MAX: return OP_MAX;
  default:
    diag_raise(b->diag, TN_ERR_ARGUMENT, "the reduction is %d, which combines nothing",
               (int)reduction);
  }
}

/** Part c of n of an axis: sizes of parts differ by 1 at most. */
static const node *part_of(const ring *r, const node *x, size_t axis, size_t c) {
  ir *g = r->b->ir;
  const node *size = x->dims[axis], *n = ix_const(g, (int64_t)r->n);
  const node *start = ix_floordiv(g, ix_scale(g, size, (int64_t)c), n);
  const node *stop = ix_floordiv(g, ix_scale(g, size, (int64_t)c + 1), n);
  return build_slice(r->b, value_of(x), (int64_t)axis, start, stop, 1).node;
}

/** Part c of all operands combined, on the device of operand c: it goes around from the next
    one. */
static const node *reduced_part(const ring *r, tn_reduction reduction, size_t axis, size_t c) {
  const node *sum = NULL;
  for (size_t k = 1; k <= r->n; k++) {
    size_t at = (c + k) % r->n;
    const node *own = moved(r, part_of(r, r->x[at], axis, c), at);
    dtype t = (dtype)own->dtype;
    sum = sum ? ex_binary(r->b, op_of(r->b, reduction, t), moved(r, sum, at), own) : own;
  }
  return sum;
}

/** Fills out with the concatenations of all parts, of which part c begins on device c. */
static void gather_parts(const ring *r, const node *const parts[], int64_t axis, value out[]) {
  value *all = arena_alloc(r->b->arena, r->n * r->n * sizeof *all); /* of each device */
  for (size_t c = 0; c < r->n; c++) {
    const node *part = parts[c];
    for (size_t k = 0; k < r->n; k++) {
      size_t at = (c + k) % r->n;
      part = moved(r, part, at);
      all[at * r->n + c] = value_of(part);
    }
  }
  for (size_t i = 0; i < r->n; i++) out[i] = build_concat(r->b, all + i * r->n, r->n, axis);
}

static void build_all_gather(builder *b, const value in[], size_t n, const void *options,
                             value out[], size_t n_out) {
  (void)n_out;
  const collective_call *c = options;
  ring r = open_ring(b, in, n);
  gather_parts(&r, r.x, c->axis, out);
}

static void build_reduce_scatter(builder *b, const value in[], size_t n, const void *options,
                                 value out[], size_t n_out) {
  (void)n_out;
  const collective_call *c = options;
  ring r = open_ring(b, in, n);
  check_shapes(&r);
  size_t axis = axis_of(b, c->axis, r.x[0]->rank);
  for (size_t i = 0; i < n; i++) out[i] = value_of(reduced_part(&r, c->reduction, axis, i));
}

static void build_all_reduce(builder *b, const value in[], size_t n, const void *options,
                             value out[], size_t n_out) {
  (void)n_out;
  const collective_call *c = options;
  ring r = open_ring(b, in, n);
  check_shapes(&r);
  sizes shape = sizes_of(r.x[0]), flat = {1, {NULL}};
  const node **parts = arena_alloc(b->arena, n * sizeof *parts);
  for (size_t i = 0; i < n; i++) r.x[i] = build_reshape(b, value_of(r.x[i]), &flat).node;
  for (size_t i = 0; i < n; i++) parts[i] = reduced_part(&r, c->reduction, 0, i);
  gather_parts(&r, parts, 0, out);
  for (size_t i = 0; i < n; i++) out[i] = build_reshape(b, out[i], &shape);
}

void tn_all_reduce(tn_context *c, tn_tensor *const x[], size_t n, tn_reduction reduction,
                   tn_tensor *out[]) {
  op_call_across(c, "all_reduce", x, n, build_all_reduce, &(collective_call){reduction, 0}, out);
}

void tn_all_gather(tn_context *c, tn_tensor *const x[], size_t n, int axis, tn_tensor *out[]) {
  op_call_across(c, "all_gather", x, n, build_all_gather,
                 &(collective_call){TN_REDUCTION_NONE, axis}, out);
}

void tn_reduce_scatter(tn_context *c, tn_tensor *const x[], size_t n, tn_reduction reduction,
                       int axis, tn_tensor *out[]) {
  op_call_across(c, "reduce_scatter", x, n, build_reduce_scatter,
                 &(collective_call){reduction, axis}, out);
}
