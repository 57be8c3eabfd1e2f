/* Graph inputs: the data, plan inputs and host functions that BUFFER and CUSTOM nodes stand for. A
   node names its input by number (uid) and by how often that number was used before (version). An
   input is freed with its nodes. Computed values are nodes whose value a BUFFER holds. */
#ifndef TENON_TENSOR_STATE_GRAPH_INPUT_H
#define TENON_TENSOR_STATE_GRAPH_INPUT_H

#include "device/memory/buffer.h"
#include "tensor/context/context.h"

typedef enum graph_input_kind {
  GRAPH_INPUT_FREE,
  GRAPH_INPUT_DATA,         /* contents in memory, or still to be computed (a state's first) */
  GRAPH_INPUT_VIEW_BASE,    /* node over which movements of a state are built */
  GRAPH_INPUT_PLAN,         /* input of a plan, with a value in each run */
  GRAPH_INPUT_HOST_FUNCTION /* function of the host, of CUSTOM nodes */
} graph_input_kind;

struct graph_input {
  graph_input_kind kind;
  int64_t version; /* inputs that had its number before */
  /* DATA: */
  tn_buffer *memory;          /* contents; NULL: still to be computed */
  state_record *state;        /* whose newest contents these are; NULL: none's */
  state_record *former_state; /* whose newest contents these were until a concurrent run left
                                 others, which plans read; NULL: none's */
  struct state_storage *former_storage; /* of a freed state that held these contents and whose runs
                                           may still change them; NULL: none may */
  failure *failure;                     /* why there are no contents; else NULL */
  /* PLAN: */
  char *name;
  /* HOST_FUNCTION: */
  struct host_function *host_function;
  size_t n_nodes; /* CUSTOM nodes that name it */
  /* FREE: */
  size_t next_free; /* index of the next free input, plus 1; 0: none */
};

/** The input of a BUFFER or CUSTOM node. Valid until another is opened. */
graph_input *graph_input_of(tn_context *c, const node *n);

/** True for a node that has a value in runs of plans alone: an input, or a variable. */
bool graph_input_is_of_runs(tn_context *c, const node *n);

/** A BUFFER node over a new input, on a device (node.device; anybody's is device 0), retained for
   the caller. Under no catch: failures are set in the context's diag. */
tn_status graph_input_open(tn_context *c, graph_input_kind kind, uint8_t device, dtype t,
                           size_t rank, const node *const dims[], const node **out);

/** Opens the input of a host function for CUSTOM nodes that the caller makes next; and closes it
    again if there are none. */
tn_status graph_input_open_custom(tn_context *c, struct host_function *host, int64_t *uid);
void graph_input_close_custom(tn_context *c, int64_t uid);

/** Sets the memory of a BUFFER's input, which is retained. */
void graph_input_set_memory(tn_context *c, const node *n, tn_buffer *memory);

/** The BUFFER that holds a node's value; NULL if there is none. */
const node *computed_value_of(tn_context *c, const node *n);

/** Records that a BUFFER holds a node's value for as long as the node lives; and drops the record.
    Raises without memory. */
void computed_value_set(tn_context *c, const node *n, const node *buffer);
void computed_value_forget(tn_context *c, const node *n);

/** The observer of the context's ir, which frees inputs and computed values with their nodes. */
ir_observer graph_input_observer(tn_context *c);

/** Frees everything that inputs hold, when no node is used any more. */
void graph_input_free_all(tn_context *c);

#endif
