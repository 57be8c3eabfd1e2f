/* Plans and bindings of the public kind. A plan is immutable; what is done through a binding is
   done beside the context, on any thread. */
#ifndef TENON_TENSOR_PLAN_H
#define TENON_TENSOR_PLAN_H

#include "base/names.h"
#include "ir/topo.h"
#include "runtime/execution.h"
#include "tensor/store.h"

/** A size of a port. */
typedef struct port_size {
  size_t expression; /* of the executable's `sizes` */
  /* A variable that can be read off it: size = offset + scale · variable. */
  size_t var;    /* of the executable; SIZE_MAX: none */
  bool is_fixed; /* the size is `offset` */
  int64_t offset, scale;
} port_size;

/** An input or an output. */
typedef struct plan_port {
  const char *name;
  dtype dtype;
  size_t rank;
  port_size size[TN_MAX_RANK];
  size_t buffer;  /* of the executable; SIZE_MAX: an input that nothing reads */
  bool is_shared; /* an output in a buffer that is something else's, too: it is copied */
} plan_port;

/** Where a run reads a variable off: the first size that tells it. */
typedef struct plan_var {
  size_t input, axis; /* input SIZE_MAX: it is the trips of a loop */
} plan_var;

/** A state that a plan reads (`in`) or writes (`out`); both are buffers of the executable or
    SIZE_MAX. */
typedef struct plan_state {
  store *store;
  size_t in, out;
  bool is_in_place;    /* it is written where it is read */
  bool is_overwritten; /* what is read is, by the new contents or on the way to them */
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
  executable *executable;
  plan_port *inputs, *outputs;
  names input_of, output_of; /* name → port */
  plan_var *vars;            /* of the executable */
  plan_state *states;
  plan_value *values;
  size_t n_inputs, n_outputs, n_states, n_values;
  bool has_custom; /* functions of the host among its steps */
};

/** What a BUFFER of a graph is: one of these is set. */
typedef struct plan_leaf {
  const char *input; /* its name */
  store *store;
  tn_buffer *memory;
} plan_leaf;

/** A graph to be compiled, of any ir. */
typedef struct plan_graph {
  const char *name;
  const node *const *inputs; /* the first inputs, whether anything reads them or not */
  size_t n_inputs;
  const node *const *outputs;
  const char *const *output_names; /* NULL: numbers */
  size_t n_outputs;
  const schedule_label *labels; /* of nodes below the outputs */
  size_t n_labels;
  const node *const *contents; /* new ones of states */
  store *const *written;       /* which */
  size_t n_written;
  ir *ir; /* of the graph, to make nodes in, if memory of its leaves never changes; else NULL */
  plan_leaf (*leaf)(void *user, const node *buffer); /* may raise */
  void (*was_read)(void *user, const node *buffer);  /* told of a leaf in memory from which others
                                                        were made, once they are; or NULL */
  tn_status (*host)(void *user, const node_list *order, executable_host *out); /* or NULL */
  void *user;
} plan_graph;

/** Compiles, on any thread; `work` is where lists of the compilation live, and has `d` as its diag.
    The plan is in no list yet. */
tn_status plan_make(tn_context *c, const plan_graph *g, arena *work, diag *d, tn_plan **out);

void plan_drop(tn_plan *p); /* one holder fewer; NULL is allowed */

/** Frees a plan's handle. */
void plan_free(tn_plan *p);

/** Frees all plans and bindings of a context that nobody uses. */
void plan_free_all(tn_context *c);

/** Whether a run that was started goes on. */
bool plan_any_runs(tn_context *c);

/** Frees a binding that is in no list any more. */
void binding_destroy(tn_binding *b);

#endif
