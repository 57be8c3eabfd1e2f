/* Symbolic sizes for callers: tn_dim_var makes a variable with bounds, and tn_dim_add, _sub, _mul
   and _div compute sizes from sizes. Each is an index node, in the context's table of symbolic
   sizes (context/symbolic_dims.h). The result of a failed call is a size that every shape refuses
   with the failure's message. */
#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/context/symbolic_dims.h"

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
