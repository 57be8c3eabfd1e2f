/* States and assigns: tn_state and tn_assign. An assign broadcasts its value to the shape of a view
   of the state, as in NumPy, and appends a version (state/state.h). Views that repeat or add
   elements cannot be assigned to. */
#include "tensor/api/assign.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/context/call.h"
#include "tensor/context/shape.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/substitute_values.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"
#include "tensor/state/handle_node.h"
#include "tensor/state/state.h"

/** Says how the sizes of a tensor come to fit a state, as a part of a message. */
static const char *hint_for_computed(builder *b, const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (size_is_computed(b, n->dims[i]))
      return "; sizes that follow from elements are numbers once it is realised (tn_realize)";
  return "";
}

typedef struct state_job {
  tn_tensor *init, *made;
} state_job;

static void make_state(void *arg) {
  state_job *j = arg;
  builder b = context_builder(j->init->context);
  const node *init = handle_typed_node(&b, j->init);
  for (size_t i = 0; i < init->rank; i++)
    if (!node_is_const(init->dims[i]))
      diag_raise(b.diag, TN_ERR_SHAPE,
                 "the size of axis %zu varies; the sizes of a state must be numbers%s", i,
                 hint_for_computed(&b, init));
  refuse_unbound_graph(b.context, init);
  uint64_t count;
  dims_static_count(init, &count);
  if (count > (uint64_t)PTRDIFF_MAX / dtype_bytes((dtype)init->dtype))
    diag_raise(b.diag, TN_ERR_SHAPE, "the state has more elements than memory can hold");
  state_record *k;
  if (state_open(b.context, init, &k) != TN_OK) diag_rethrow(b.diag);
  if (j->made != b.context->handles.no_memory) handle_set_state(j->made, k, k->versions.view_base);
  state_release(k);
}

tn_tensor *tn_state(tn_tensor *init) {
  tn_context *c = call_context(&init, 1);
  if (context_acquire(c) != TN_OK) return call_busy_tensor(c);
  state_job j = {.init = init};
  failure *f = call_check(c, "state", &init, 1, 0);
  if (!f) {
    j.made = handle_new(c);
    f = call_run(c, "state", &init, 1, make_state, &j);
    if (f && j.made != c->handles.no_memory) handle_set_failure(j.made, f);
    failure_release(c, f);
  } else {
    j.made = call_failed_tensor(c, f);
  }
  context_release(c);
  return j.made;
}

/** The value, broadcast to the shape of a view. */
static const node *broadcast_to_view(builder *b, const node *value, const node *view) {
  size_t missing = view->rank - value->rank;
  bool broadcasts = value->rank <= view->rank;
  for (size_t i = 0; broadcasts && i < value->rank; i++)
    broadcasts = value->dims[i] == view->dims[missing + i] || node_is_bits(value->dims[i], 1);
  if (!broadcasts) {
    sizes from = sizes_of(value), to = sizes_of(view);
    diag_raise(b->diag, TN_ERR_SHAPE, "the value, of shape %s, does not broadcast to shape %s%s",
               sizes_text(b, &from), sizes_text(b, &to), hint_for_computed(b, value));
  }
  if (ir_same_shape(value, view)) return value;
  const node **dims = arena_alloc(b->arena, (view->rank + 1u) * sizeof *dims);
  for (size_t i = 0; i < view->rank; i++)
    dims[i] = i < missing ? ix_const(b->ir, 1) : value->dims[i - missing];
  if (missing) value = ir_reshape(b->ir, value, view->rank, dims);
  return ir_same_shape(value, view) ? value : ir_expand(b->ir, value, view->dims);
}

void state_check_assignable(builder *b, const tn_tensor *dst) {
  if (b->context->entry.n_loop_bodies)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "a state cannot be assigned to in the body of a loop: make it a state of the loop");
  if (b->context->entry.n_branches)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "a state cannot be assigned to in a branch: make its new contents a result");
  if (!dst->state)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "only a state, or a movement of one, can be assigned to");
  for (const node *n = dst->node; n != dst->state->versions.view_base; n = n->src[0])
    if (n->op != OP_RESHAPE && n->op != OP_PERMUTE && n->op != OP_SLICE)
      diag_raise(b->diag, TN_ERR_ARGUMENT,
                 "this movement of a state cannot be assigned to: it repeats or adds elements, as "
                 "expand, tile, roll and pad do");
}

void state_assign(builder *b, const tn_tensor *dst, const node *value) {
  state_check_assignable(b, dst);
  value = broadcast_to_view(b, value, dst->node);
  state_append_version(b, dst->state, dst->node, ex_cast(b, value, (dtype)dst->node->dtype));
}

typedef struct assign_job {
  tn_tensor *dst, *value;
} assign_job;

static void make_assign(void *arg) {
  assign_job *j = arg;
  builder b = context_builder(j->dst->context);
  state_assign(&b, j->dst, handle_node(&b, j->value));
}

tn_tensor *tn_assign(tn_tensor *dst, tn_tensor *value) {
  tn_tensor *const in[] = {dst, value};
  tn_context *c = call_context(in, 2);
  if (context_acquire(c) != TN_OK) return call_busy_tensor(c);
  failure *f = call_check(c, "assign", in, 2, 0);
  if (!f) f = call_run(c, "assign", in, 2, make_assign, &(assign_job){dst, value});
  if (f) {
    context_keep_assign_failure(c, f);
    dst = call_failed_tensor(c, f);
  }
  context_release(c);
  return dst;
}
