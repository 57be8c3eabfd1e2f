/* Plans and bindings of the public kind. A plan is immutable; what is done through a binding is
   done beside the context, on any thread. */
#ifndef TENON_TENSOR_PLAN_H
#define TENON_TENSOR_PLAN_H

#include "runtime/binding.h"
#include "tensor/state.h"

/** A size of an input: where a run reads a variable off it, size = offset + scale · variable. */
typedef struct port_size {
  size_t expression; /* of the plan's `sizes` */
  size_t var;        /* of the plan's variables; SIZE_MAX: none is read off it */
  int64_t offset, scale;
} port_size;

/** An input or an output. */
typedef struct plan_port {
  const char *name;
  dtype dtype;
  size_t rank;
  port_size size[TN_MAX_RANK];
  size_t buffer; /* of the plan; SIZE_MAX: an input that nothing reads */
} plan_port;

/** A state that a plan reads (`in`) or writes (`out`); both are buffers of the plan or SIZE_MAX,
   and the same where it is written in place. */
typedef struct plan_state {
  store *store;
  size_t in, out;
} plan_state;

/** A value that was there when the plan was made. */
typedef struct plan_value {
  tn_buffer *memory;
  size_t buffer;
} plan_value;

struct tn_plan {
  atomic_size_t count; /* its handle, and bindings */
  tn_context *context;
  tn_plan *next, **link; /* under the context's lock; link NULL: its handle was freed */
  arena arena;           /* all of what follows */
  const char *name;
  plan *plan;
  plan_port *inputs, *outputs;
  plan_state *states;
  plan_value *values;
  size_t n_inputs, n_outputs, n_states, n_values;
};

/** What a model compiles: values of the context's graph over inputs, which are ports in this order
    whether anything reads them or not. */
typedef struct plan_source {
  const char *name;
  const node *const *inputs; /* leaves */
  size_t n_inputs;
  const node *const *outputs;
  const char *const *output_names;
  size_t n_outputs;
} plan_source;

/** Compiles, in a taken context and not under its catch; the failure is in its diag. The plan is in
    no list yet. */
tn_status plan_compile_source(tn_context *c, const plan_source *s, tn_plan **out);

void plan_drop(tn_plan *p); /* one holder fewer; NULL is allowed */

/** Frees all plans and bindings of a context that nobody uses. */
void plan_free_all(tn_context *c);

/** Frees a binding that is in no list any more. */
void binding_destroy(tn_binding *b);

#endif
