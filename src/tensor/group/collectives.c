/* Implements the collectives of a group as custom operations on arrays where they lie. Those along
   an axis work on an array whose first axis counts processes; movements of the graph bring it to
   its place. */
#include "tensor/api/custom_op.h"
#include "tensor/context/call.h"
#include "tensor/context/host_function.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/group/group.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/op_call.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/type_promotion.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 160 };

/** The payload of a custom operation. */
typedef struct collective_op {
  tn_group *group;
  collective what;
  char name[NAME_BYTES];
} collective_op;

static const char *kind_name(collective_kind kind) {
  switch (kind) {
  case COLLECTIVE_ALL_REDUCE: return "all_reduce";
  case COLLECTIVE_ALL_GATHER: return "all_gather";
  case COLLECTIVE_REDUCE_SCATTER: return "reduce_scatter";
  default: return "broadcast";
  }
}

static uint64_t element_count(const tn_type *t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t->shape.rank; i++) n *= (uint64_t)t->shape.size[i];
  return n;
}

static tn_status run_collective(void *user, tn_call *call) {
  collective_op *op = user;
  tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  bool gathers = op->what.kind == COLLECTIVE_ALL_GATHER;
  diag d = {0};
  const collective_array from = {in.data, host_function_in_span(call, 0)},
                         to = {out.data, host_function_out_span(call)};
  tn_status s = group_run(op->group, &op->what, &in.type,
                          element_count(gathers ? &in.type : &out.type), from, to, op->name, &d);
  if (s != TN_OK) tn_call_fail(call, d.text);
  return s;
}

static void destroy_collective(void *user) {
  collective_op *op = user;
  tn_group *g = op->group;
  mem_free(&g->context->mem, op, sizeof *op);
  group_release(g);
}

/** An invalid tensor, with a failure of a function. */
static tn_tensor *refuse(tn_tensor *x, const char *function, tn_status s, const char *text) {
  tn_context *c = call_context(&x, 1);
  if (!c || context_acquire(c) != TN_OK) return call_busy_tensor(c);
  failure *f = call_check(c, function, &x, 1, 0);
  if (!f) {
    diag_set(&c->diag, s, "%s", text);
    context_fail(c, function, &x, 1);
    f = context_last_failure(c);
  }
  tn_tensor *t = call_failed_tensor(c, f);
  context_release(c);
  return t;
}

/** The way of a collective of x, for explanations: this process's part of what decides it. */
static const char *way_of(const tn_group *g, const tn_tensor *x) {
  const char *device = tn_device_of(x);
  bool is_direct = g->device.engine && device && !strcmp(device, g->context->device->name);
  return is_direct ? "a collective by NCCL" : "a collective by MPI, through host memory";
}

static tn_tensor *make_op(tn_group *g, tn_tensor *x, const collective *what, tn_type type) {
  collective_op *op = mem_calloc(&g->context->mem, 1, sizeof *op);
  if (!op) return refuse(x, kind_name(what->kind), TN_ERR_MEMORY, "out of memory");
  *op = (collective_op){.group = group_retain(g), .what = *what};
  op->what.number = atomic_fetch_add(&g->n_built, 1);
  snprintf(op->name, sizeof op->name, "%s of %s", kind_name(what->kind),
           dtype_name((dtype)type.dtype));
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.name = kind_name(what->kind);
  desc.run = run_collective;
  desc.user = op;
  desc.destroy = destroy_collective;
  return custom_op_of_spans(g->context, &desc, way_of(g, x), x, &type);
}

/** The text of what is wrong with a group and a reduction; NULL: nothing. */
static const char *objection(const tn_group *g, const tn_tensor *x, tn_reduction r) {
  if (!g) return "the group is NULL";
  if (g->context != x->context) return "the group is of another context";
  return r < TN_REDUCTION_ADD || r > TN_REDUCTION_MAX ? "the reduction is none of the four" : NULL;
}

static tn_tensor *refuse_storage(tn_tensor *x, const char *function) {
  return refuse(x, function, TN_ERR_DTYPE,
                "elements of this type cannot be combined: cast them first");
}

/** The type in which elements of a type are combined: 16-bit floats are summed in f32, and small
    integers in 32 bits, as Open MPI 4.1 saturates sums of 8 and 16 bits. */
static tn_dtype type_of_sums(tn_dtype t) {
  if (t == TN_BOOL) return TN_U8;
  if (dtype_bytes((dtype)t) >= 4) return t;
  return dtype_is_float((dtype)t) ? TN_F32 : dtype_is_signed((dtype)t) ? TN_I32 : TN_U32;
}

static value call_keys(builder *b, const value in[], size_t n, const void *options) {
  (void)n, (void)options;
  return value_of(node_order_keys(b, value_typed(b, in[0]).node, false, true));
}

static value call_of_keys(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return value_of(node_of_order_keys(b, in[0].node, false, *(const dtype *)options));
}

/** The greatest floats as those of integer keys, of which NaN is the greatest: an engine compares
    floats, so that a NaN would hide others or be lost, depending on the order of processes. */
static tn_tensor *reduce_by_keys(tn_group *g, tn_tensor *x, const collective *what, tn_type type) {
  const char *name = kind_name(what->kind);
  dtype t = (dtype)type.dtype;
  type.dtype = dtype_bytes(t) == 8 ? TN_I64 : TN_I32;
  tn_tensor *key = make_op(g, op_call(name, &x, 1, 0, call_keys, NULL), what, type);
  return op_call(name, &key, 1, 0, call_of_keys, &t);
}

/** Reduces x of the type in which elements are combined. The least floats are the greatest of
    negative ones. */
static tn_tensor *reduce_wide(tn_group *g, tn_tensor *x, collective what, tn_type type) {
  bool is_min = what.reduction == TN_REDUCTION_MIN, is_max = what.reduction == TN_REDUCTION_MAX;
  if (!dtype_is_float((dtype)type.dtype) || (!is_min && !is_max)) return make_op(g, x, &what, type);
  what.reduction = TN_REDUCTION_MAX;
  return is_min ? tn_neg(reduce_by_keys(g, tn_neg(x), &what, type))
                : reduce_by_keys(g, x, &what, type);
}

/** Reduces x as `what`; `type` is the result's. Sums of bools are "or", products "and". */
static tn_tensor *reduce(tn_group *g, tn_tensor *x, collective what, tn_type type) {
  tn_dtype kept = type.dtype;
  if (kept == TN_BOOL && what.reduction == TN_REDUCTION_ADD) what.reduction = TN_REDUCTION_MAX;
  if (kept == TN_BOOL && what.reduction == TN_REDUCTION_MUL) what.reduction = TN_REDUCTION_MIN;
  type.dtype = type_of_sums(kept);
  if (type.dtype == kept) return reduce_wide(g, x, what, type);
  return tn_cast(reduce_wide(g, tn_cast(x, type.dtype), what, type), kept);
}

/** The permutation that moves an axis of `rank` to the front, or from there. */
static tn_axes moved_axis(int rank, int axis, bool to_front) {
  tn_axes p = {.count = rank};
  for (int i = 0, next = 0; i < rank; i++) {
    if (to_front)
      p.axis[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    else
      p.axis[i] = i == axis ? 0 : ++next;
  }
  return p;
}

/** The axis from 0 on; −1: there is no such axis. */
static int known_axis(const tn_type *t, int axis) {
  int from_zero = axis < 0 ? axis + t->shape.rank : axis;
  return from_zero >= 0 && from_zero < t->shape.rank ? from_zero : -1;
}

tn_tensor *tn_group_all_reduce(tn_group *g, tn_tensor *x, tn_reduction r) {
  static const char function[] = "group_all_reduce";
  tn_type t = tn_type_of(x);
  if (!x || !t.dtype) return refuse(x, function, TN_ERR_ARGUMENT, "there is no tensor");
  const char *why = objection(g, x, r);
  if (why) return refuse(x, function, TN_ERR_ARGUMENT, why);
  if (dtype_is_storage((dtype)t.dtype)) return refuse_storage(x, function);
  return reduce(g, x, (collective){.kind = COLLECTIVE_ALL_REDUCE, .reduction = r}, t);
}

tn_tensor *tn_group_broadcast(tn_group *g, tn_tensor *x, int64_t root) {
  static const char function[] = "group_broadcast";
  tn_type t = tn_type_of(x);
  if (!x || !t.dtype) return refuse(x, function, TN_ERR_ARGUMENT, "there is no tensor");
  const char *why = objection(g, x, TN_REDUCTION_ADD);
  if (!why && (root < 0 || root >= g->size)) why = "there is no process of this number";
  if (why) return refuse(x, function, TN_ERR_ARGUMENT, why);
  return make_op(
      g, x,
      &(collective){.kind = COLLECTIVE_BROADCAST, .reduction = TN_REDUCTION_ADD, .root = root}, t);
}

tn_tensor *tn_group_all_gather(tn_group *g, tn_tensor *x, int axis) {
  static const char function[] = "group_all_gather";
  tn_type t = tn_type_of(x), joined = t;
  if (!x || !t.dtype) return refuse(x, function, TN_ERR_ARGUMENT, "there is no tensor");
  const char *why = objection(g, x, TN_REDUCTION_ADD);
  int at = known_axis(&t, axis);
  if (!why && (at < 0 || t.shape.rank == TN_MAX_RANK)) why = "there is no such axis";
  if (why) return refuse(x, function, TN_ERR_ARGUMENT, why);
  joined.shape.size[at] = tn_dim_mul(g->context, t.shape.size[at], g->size);
  for (int i = t.shape.rank++; i > 0; i--) t.shape.size[i] = t.shape.size[i - 1];
  t.shape.size[0] = g->size;
  tn_tensor *y =
      make_op(g, x, &(collective){.kind = COLLECTIVE_ALL_GATHER, .reduction = TN_REDUCTION_ADD}, t);
  y = tn_permute(y, moved_axis(t.shape.rank, at, false));
  return tn_reshape(y, joined.shape);
}

tn_tensor *tn_group_reduce_scatter(tn_group *g, tn_tensor *x, tn_reduction r, int axis) {
  static const char function[] = "group_reduce_scatter";
  tn_type t = tn_type_of(x), part = t;
  if (!x || !t.dtype) return refuse(x, function, TN_ERR_ARGUMENT, "there is no tensor");
  const char *why = objection(g, x, r);
  int at = known_axis(&t, axis);
  if (!why && (at < 0 || t.shape.rank == TN_MAX_RANK)) why = "there is no such axis";
  if (why) return refuse(x, function, TN_ERR_ARGUMENT, why);
  if (dtype_is_storage((dtype)t.dtype)) return refuse_storage(x, function);
  tn_dim whole = t.shape.size[at];
  if (whole >= 0 && whole < DIM_NUMBER_LIMIT && whole % g->size)
    return refuse(x, function, TN_ERR_SHAPE,
                  "the axis's size is no multiple of the number of processes");
  part.shape.size[at] = tn_dim_div(g->context, t.shape.size[at], g->size);
  for (int i = t.shape.rank++; i > at; i--) t.shape.size[i] = t.shape.size[i - 1];
  t.shape.size[at] = g->size;
  t.shape.size[at + 1] = part.shape.size[at];
  x = tn_permute(tn_reshape(x, t.shape), moved_axis(t.shape.rank, at, true));
  return reduce(g, x, (collective){.kind = COLLECTIVE_REDUCE_SCATTER, .reduction = r}, part);
}
