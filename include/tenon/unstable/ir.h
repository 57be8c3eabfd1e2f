/* Builds, parses, prints and interprets graphs of the intermediate representation (IR), and makes
   kernels from them. Nothing under unstable/ is promised to stay.

   Ops, types and their arguments have the names of the text form. Nodes are immutable, belong to
   their tn_ir and are freed with it; structurally equal nodes of one tn_ir are the same node. A
   tn_ir and its nodes are used by one thread at a time. */
#ifndef TENON_UNSTABLE_IR_H
#define TENON_UNSTABLE_IR_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A graph: the owner of nodes and their memory. */
typedef struct ir tn_ir;
/** A node of a tn_ir. */
typedef const struct node *tn_node;

/* ---- Graphs ---- */

/** Opens a tn_ir. `allocator` NULL or absent: the C library's; its `destroy` is not called. On
    failure *ir is NULL and the status TN_ERR_MEMORY. */
TN_API tn_status tn_ir_open(const tn_allocator *allocator, tn_ir **ir);

/** Frees a tn_ir of tn_ir_open with all its nodes and texts. NULL is allowed. */
TN_API void tn_ir_close(tn_ir *ir);

/** Return the last failure (TN_OK before any) and its message ("" before any), which is valid until
    the next failure. */
TN_API tn_status tn_ir_status(const tn_ir *ir);
TN_API const char *tn_ir_message(const tn_ir *ir);

/** Parses a text and returns the node that its `return` names. NULL if the text is malformed (the
    message names the line) or returns more than one node. */
TN_API tn_node tn_ir_parse(tn_ir *ir, const char *text, size_t bytes);

/** Prints a graph as text that parses to the same graph, in the tn_ir's memory. NULL if memory is
    exhausted. */
TN_API const char *tn_ir_print(tn_ir *ir, tn_node root);

/** Specification of a node. */
typedef struct tn_node_desc {
  size_t size;      /**< sizeof(tn_node_desc) */
  const char *op;   /**< op: "add" */
  const char *type; /**< element type: "f32", "index", "void" */
  int32_t lanes;    /**< elements of a vector; 1: a scalar */
  const tn_node *sources;
  size_t n_sources;
  const int64_t *ints; /**< the argument's integers */
  size_t n_ints;
  const char *text; /**< the argument's text or bytes */
  size_t n_text;
} tn_node_desc;

#define TN_NODE_DESC_INIT \
  { sizeof(tn_node_desc), NULL, NULL, 1, NULL, 0, NULL, 0, NULL, 0 }

/** Makes a node. NULL if it is not well-formed; the message says why. */
TN_API tn_node tn_ir_make(tn_ir *ir, const tn_node_desc *desc);

/* ---- Nodes ---- NULL nodes give "" or 0. */

/** Return the op ("add") and the element type ("f32"). The strings are static. */
TN_API const char *tn_node_op(tn_node node);
TN_API const char *tn_node_type(tn_node node);

/** Returns the elements of a vector; 1 for a scalar. */
TN_API int32_t tn_node_lanes(tn_node node);

/** Returns the number of sources and sets *sources to the first. */
TN_API size_t tn_node_sources(tn_node node, const tn_node **sources);

/** Returns the number of the argument's integers and sets *ints to the first. */
TN_API size_t tn_node_ints(tn_node node, const int64_t **ints);

/** Returns the length of the argument's text and sets *text to its bytes, which end in NUL. */
TN_API size_t tn_node_text(tn_node node, const char **text);

/* ---- Running ---- */

/** Memory of a PARAM for tn_ir_execute. */
typedef struct tn_ir_buffer {
  int64_t slot;
  void *data;
  size_t bytes;
} tn_ir_buffer;

/** Value of a VAR, or of a SPECIAL other than core_id, for tn_ir_execute. */
typedef struct tn_ir_value {
  const char *name;
  int64_t value;
} tn_ir_value;

/** Interprets a LINEAR (or a PROGRAM that has one) as worker `core_id` of `core_count`. Every
    access is checked: out-of-bounds accesses, values used before they are computed and the like are
    TN_ERR_INTERNAL, and the message names the node. */
TN_API tn_status tn_ir_execute(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers,
                               size_t n_buffers, const tn_ir_value *values, size_t n_values,
                               int64_t core_id, int64_t core_count);

/** A launch of a program in teams, for tn_ir_execute_in_teams. Numbers have at most 31 bits. */
typedef struct tn_ir_teams {
  size_t size;     /**< sizeof(tn_ir_teams) */
  int64_t groups;  /**< groups of the launch: values of the SPECIAL g0 */
  int64_t workers; /**< workers of a group: values of the SPECIAL l0 */
  int64_t warp;    /**< workers of a warp; 1: there are none */
  uint64_t seed;   /**< of the order in which the workers of a group run */
} tn_ir_teams;

/** Interprets a LINEAR (or a PROGRAM that has one) in teams. Workers run each by itself from
   barrier to barrier, in random order. Besides what tn_ir_execute checks, TN_ERR_INTERNAL: two
   workers access an element of shared memory or of a buffer, one of them writes it, and no barrier
   lies between; a team does not meet at a barrier. */
TN_API tn_status tn_ir_execute_in_teams(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers,
                                        size_t n_buffers, const tn_ir_value *values,
                                        size_t n_values, const tn_ir_teams *teams);

/* ---- Kernels ---- */

/** Options of tn_kernel_make. Schedules are laws, one per line, as `tenon explain --kernel` prints
    them. */
typedef struct tn_kernel_desc {
  size_t size; /**< sizeof(tn_kernel_desc) */
  /** "": loops unchanged; NULL: the one in the sink's text, else the compiler's choice */
  const char *schedule;
} tn_kernel_desc;

#define TN_KERNEL_DESC_INIT \
  { sizeof(tn_kernel_desc), NULL }

/** Makes a kernel for tn_custom_desc's `kernel` from a copy of a SINK of stage K (kernels over
    binders; one OUT): immutable, independent of the tn_ir, usable from any thread, with a reference
    count of 1. Its PARAMs are the operation's inputs, then its outputs. docs/library.md, "Kernels
    in the IR", lists its rules, with an example, and the form of schedules. `desc` NULL: INIT. On
    failure *kernel is NULL and the tn_ir's message says why: TN_ERR_ARGUMENT for a kernel or a law
    that is not allowed, TN_ERR_FORMAT for a line that is none of a schedule. */
TN_API tn_status tn_kernel_make(tn_ir *ir, tn_node sink, const tn_kernel_desc *desc,
                                tn_kernel **kernel);

/** Describes the `i`-th law of schedules: its name, arguments and effect. After the laws come the
    words used in arguments, with *arguments NULL and their meaning in *about. The strings are
    static. TN_ERR_ARGUMENT past the last; all three are then unchanged, so that a loop can end
    there. Any thread. */
TN_API tn_status tn_law_get(size_t i, const char **name, const char **arguments,
                            const char **about);

/** Increment and decrement the reference count. NULL is allowed. Tensors built with the kernel do
    not need it any more. */
TN_API tn_kernel *tn_kernel_retain(tn_kernel *kernel);
TN_API void tn_kernel_free(tn_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
