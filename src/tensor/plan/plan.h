/* Plans: an executable with named inputs and outputs, and the states that it reads and writes. A
   plan is immutable; bindings run it concurrently with the context, on any thread. */
#ifndef TENON_TENSOR_PLAN_PLAN_H
#define TENON_TENSOR_PLAN_PLAN_H

#include "base/map.h"
#include "ir/core/topo_sort.h"
#include "runtime/execution.h"
#include "tensor/state/state_storage.h"

/** A size of a port. */
typedef struct port_size {
  size_t expression; /* of the executable's `sizes` */
  /* A variable that the size determines: size = offset + scale · variable. */
  size_t var;    /* of the executable; SIZE_MAX: none */
  bool is_fixed; /* the size is `offset` */
  int64_t offset, scale;
  const char *text; /* in words, for tn_port */
  int64_t min, max; /* bounds that the graph gives */
  int32_t number;   /* equal for sizes that are equal in every run; -1: a number */
} port_size;

/** An input or an output. */
typedef struct plan_port {
  const char *name;
  dtype dtype;
  size_t rank;
  port_size size[TN_MAX_RANK];
  size_t buffer;  /* of the executable; SIZE_MAX: an input that nothing reads */
  bool is_shared; /* an output in a buffer that is also an input, a state or another output: it is
                     copied */
} plan_port;

/** The size that determines a variable: the first one that does. */
typedef struct plan_var {
  size_t input, axis; /* input SIZE_MAX: the trip count of a loop */
} plan_var;

/** A state that a plan reads or writes. */
typedef struct plan_state {
  state_storage *storage;
  size_t in, out;   /* buffers of the executable that hold the old and the new contents; SIZE_MAX:
                       not read, not written */
  bool is_in_place; /* the new contents are written over the old ones */
  bool is_overwritten; /* the old contents are, by the new ones or by a value on the way to them */
} plan_state;

/** A value that existed when the plan was built. */
typedef struct plan_value {
  tn_buffer *memory;
  size_t buffer; /* of the executable; SIZE_MAX: not read */
} plan_value;

/** Ports of a plan, and how its variables follow from the sizes of its inputs. */
typedef struct plan_ports {
  plan_port *inputs, *outputs;
  size_t n_inputs, n_outputs;
  string_map input_of, output_of; /* name → port */
  plan_var *vars;                 /* of the executable */
} plan_ports;

struct tn_plan {
  atomic_size_t count; /* its handle, and bindings */
  tn_context *context;
  tn_plan *next,
      **link;  /* in the context's list, under its lock; link NULL: the handle was freed */
  arena arena; /* of all that follows */
  const char *name;
  executable *executable;
  plan_ports ports;
  plan_state *states;
  plan_value *values;
  size_t n_states, n_values;
  bool has_host_calls; /* among its steps */
};

/** The origin of a BUFFER of a graph: one of the fields is set. */
typedef struct plan_graph_input {
  const char *input; /* name of an input of the plan */
  state_storage *storage;
  tn_buffer *memory;
} plan_graph_input;

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
  const node *const *contents;   /* new contents of states */
  state_storage *const *written; /* these states */
  size_t n_written;
  ir *ir; /* of the graph, for new nodes, if the memory of its BUFFERs never changes; else NULL: no
             constants are folded */
  plan_graph_input (*input_of)(void *user, const node *buffer); /* may raise */
  void (*on_last_read)(void *user, const node *buffer); /* called for a BUFFER in memory once the
                                                           constants made of it exist; or NULL */
  tn_status (*host)(void *user, const node_list *order, executable_host *out); /* or NULL */
  void *user;
} plan_graph;

/** Compiles a plan, on any thread; lists of the compilation live in `work`, whose diag is `d`. The
    plan is in no list yet. */
tn_status plan_build(tn_context *c, const plan_graph *g, arena *work, diag *d, tn_plan **out);

void plan_release(tn_plan *p); /* NULL is allowed */

/** Frees a plan's handle. */
void plan_free(tn_plan *p);

/** Frees all plans and bindings of a context that nobody uses. */
void plan_free_all(tn_context *c);

/** True if an asynchronous run of any binding goes on. */
bool plan_any_runs(tn_context *c);

#endif
