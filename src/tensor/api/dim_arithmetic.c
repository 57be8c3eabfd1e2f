/* Symbolic sizes for callers: tn_dim_var makes a variable with bounds, tn_dim_item is an element of
   a tensor, and tn_dim_add, _sub, _mul and _div compute sizes from sizes. Each is an index node, in
   the context's table of symbolic sizes (context/symbolic_dims.h). The result of a failed call is a
   size that every shape refuses with the failure's message. */
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/context/call.h"
#include "tensor/context/shape.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/realize.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/handle_node.h"

#include <string.h>

typedef struct dim_job {
  tn_context *c;
  op op;            /* OP_VAR, or the operator on a and b */
  const char *name; /* of OP_VAR */
  int64_t min, max; /* bounds of OP_VAR */
  tn_dim a, b;
  tn_dim result;
} dim_job;

static void make_var(dim_job *j, builder *b) {
  if (!j->name || !*j->name) diag_raise(b->diag, TN_ERR_ARGUMENT, "the variable needs a name");
  if (j->min < 0 || j->min > j->max || j->max > INT64_C(1) << 40)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "%.100s is from %lld to %lld; its bounds must be ordered, from 0 to 2^40", j->name,
               (long long)j->min, (long long)j->max);
  const char *text = var_name_in_graph(b->arena, j->name);
  int64_t ints[] = {j->min, j->max};
  const node *var = ir_make(b->ir, &(node_spec){.op = OP_VAR,
                                                .dtype = DT_INDEX,
                                                .ints = ints,
                                                .n_int = 2,
                                                .text = text,
                                                .n_text = strlen(text)});
  const node *other = dim_find_same_name(j->c, var);
  if (other)
    diag_raise(
        b->diag, TN_ERR_ARGUMENT,
        "%.100s is from %lld to %lld, and was from %lld to %lld: equal names need equal bounds",
        j->name, (long long)j->min, (long long)j->max, (long long)other->ints[0],
        (long long)other->ints[1]);
  j->result = dim_from_node(b, var);
}

static const node *combine_sizes(builder *b, op o, const node *x, const node *y) {
  switch (o) {
  case OP_ADD: return ix_add(b->ir, x, y);
  case OP_SUB: return ix_sub(b->ir, x, y);
  case OP_MUL: return ix_mul(b->ir, x, y);
  default: break;
  }
  if (y->lo <= 0 && y->hi >= 0)
    diag_raise(b->diag, TN_ERR_SHAPE, "the divisor can be 0: it is from %lld to %lld",
               (long long)y->lo, (long long)y->hi);
  return ix_floordiv(b->ir, x, y);
}

static void make_dim(void *arg) {
  dim_job *j = arg;
  builder b = context_builder(j->c);
  if (j->op == OP_VAR) {
    make_var(j, &b);
    return;
  }
  const node *n = combine_sizes(&b, j->op, dim_to_node(&b, j->a), dim_to_node(&b, j->b));
  if (n->lo == BOUND_LOW || n->hi == BOUND_HIGH)
    diag_raise(b.diag, TN_ERR_SHAPE,
               "the size can exceed 64 bits: give its variables smaller maxima");
  j->result = dim_from_node(&b, n);
}

static tn_dim compute_dim(dim_job j, const char *op) {
  tn_status s = context_acquire_valid(j.c);
  if (s != TN_OK) return s == TN_ERR_BUSY ? DIM_BUSY : DIM_INVALID;
  if (diag_catch(&j.c->diag, make_dim, &j) != TN_OK) {
    context_fail(j.c, op, NULL, 0);
    const bool is_var = j.op == OP_VAR;
    const size_call call = {
        j.op, {is_var ? j.min : j.a, is_var ? j.max : j.b}, is_var ? j.name : NULL};
    j.result = dim_from_last_failure(j.c, &call);
  }
  context_release(j.c);
  return j.result;
}

tn_dim tn_dim_var(tn_context *c, const char *name, int64_t min, int64_t max) {
  return compute_dim((dim_job){.c = c, .op = OP_VAR, .name = name, .min = min, .max = max},
                     "dim_var");
}

tn_dim tn_dim_add(tn_context *c, tn_dim a, tn_dim b) {
  return compute_dim((dim_job){.c = c, .op = OP_ADD, .a = a, .b = b}, "dim_add");
}

tn_dim tn_dim_sub(tn_context *c, tn_dim a, tn_dim b) {
  return compute_dim((dim_job){.c = c, .op = OP_SUB, .a = a, .b = b}, "dim_sub");
}

tn_dim tn_dim_mul(tn_context *c, tn_dim a, tn_dim b) {
  return compute_dim((dim_job){.c = c, .op = OP_MUL, .a = a, .b = b}, "dim_mul");
}

tn_dim tn_dim_div(tn_context *c, tn_dim a, tn_dim b) {
  return compute_dim((dim_job){.c = c, .op = OP_FLOORDIV, .a = a, .b = b}, "dim_div");
}

/* Sizes that a run computes. */

typedef struct item_job {
  tn_tensor *x;
  int64_t min;
  tn_dim max, result;
} item_job;

static void make_item(void *arg) {
  item_job *j = arg;
  builder b = context_builder(j->x->context);
  const node *x = handle_typed_node(&b, j->x), *at[IR_MAX_RANK], *most = dim_to_node(&b, j->max);
  if (!dtype_is_int((dtype)x->dtype) && x->dtype != DT_BOOL)
    diag_raise(b.diag, TN_ERR_DTYPE, "a size is an integer or a bool, not %s",
               dtype_name((dtype)x->dtype));
  for (size_t i = 0; i < x->rank; i++) {
    if (!node_is_bits(x->dims[i], 1))
      diag_raise(b.diag, TN_ERR_SHAPE, "a size is one element; axis %zu has size %s", i,
                 size_text(&b, x->dims[i]));
    at[i] = ix_const(b.ir, 0);
  }
  if (j->min > most->hi || j->min < -(INT64_C(1) << 40) || most->hi > INT64_C(1) << 40)
    diag_raise(b.diag, TN_ERR_ARGUMENT,
               "the size is from %lld to %s; its bounds must be ordered, up to 2^40 in magnitude",
               (long long)j->min, size_text(&b, most));
  j->result = dim_from_node(&b, ir_item(b.ir, x, at, j->min, most));
}

tn_dim tn_dim_item(tn_tensor *x, int64_t min, tn_dim max) {
  if (!x) return DIM_INVALID;
  tn_context *c = x->context;
  item_job j = {x, min, max, DIM_INVALID};
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s == TN_ERR_BUSY ? DIM_BUSY : DIM_INVALID;
  s = handle_check(c, x, "dim_item");
  if (s == TN_OK && (s = diag_catch(&c->diag, make_item, &j)) != TN_OK)
    context_fail(c, "dim_item", &x, 1);
  if (s != TN_OK)
    j.result = dim_from_last_failure(
        c,
        &(size_call){OP_ITEM, {(int64_t)(intptr_t)x, min ^ (int64_t)((uint64_t)max << 1)}, NULL});
  context_release(c);
  return j.result;
}

typedef struct value_job {
  tn_context *c;
  tn_dim d;
  const node *number; /* the size as a tensor, retained */
  int64_t *value;
} value_job;

static void make_number(void *arg) {
  value_job *j = arg;
  builder b = context_builder(j->c);
  j->number = ir_retain(ir_cast(b.ir, dim_to_node(&b, j->d), DT_I64));
}

static tn_status read_number(value_job *j) {
  tn_span span;
  tn_status s = buffer_span(graph_input_of(j->c, j->number)->memory, &span, &j->c->diag);
  return s == TN_OK ? span_read(&span, DT_I64, DT_I64, j->value, 1, &j->c->diag) : s;
}

tn_status tn_dim_value(tn_context *c, tn_dim d, int64_t *value) {
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  value_job j = {.c = c, .d = d, .value = value};
  s = value ? diag_catch(&c->diag, make_number, &j)
            : diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the value is NULL");
  const evaluation_request r = {.slot = &j.number};
  if (s == TN_OK) s = realize(c, REALIZE_ALL_ASSIGNS, &r, 1);
  if (s == TN_OK) s = read_number(&j);
  if (s != TN_OK) context_fail(c, "dim_value", NULL, 0);
  ir_release(c->ir, j.number);
  context_release(c);
  return s;
}
