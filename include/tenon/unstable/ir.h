/* Builds, parses, prints and interprets graphs of the intermediate representation (IR), and makes
   kernels from them. Nothing under unstable/ is promised to stay.

   Ops, types and their arguments are named as in the text form. Nodes are immutable, belong to
   their tn_ir and go with it; structurally equal nodes of one tn_ir are the same node. A tn_ir with
   its nodes is used by one thread at a time. */
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

typedef struct ir tn_ir;
typedef const struct node *tn_node;

/* ---- Graphs ---- */

/** A home for nodes. `allocator` NULL or absent: the C library's; its `destroy` is not called. On
    failure *ir is NULL and the status TN_ERR_MEMORY. */
TN_API tn_status tn_ir_open(const tn_allocator *allocator, tn_ir **ir);

/** Frees a tn_ir that tn_ir_open gave, with all its nodes and texts. NULL is allowed. */
TN_API void tn_ir_close(tn_ir *ir);

/** The last failure, TN_OK before any, and its message, "" before any, valid until the next. */
TN_API tn_status tn_ir_status(const tn_ir *ir);
TN_API const char *tn_ir_message(const tn_ir *ir);

/** The node that a text's `return` names. NULL for a text that is malformed (the message has the
    line) or returns more than one node. */
TN_API tn_node tn_ir_parse(tn_ir *ir, const char *text, size_t bytes);

/** A graph as text, which parses to the same graph; in the tn_ir's memory. NULL without memory. */
TN_API const char *tn_ir_print(tn_ir *ir, tn_node root);

/** Specification of a node. */
typedef struct tn_node_desc {
  size_t size;      /**< sizeof(tn_node_desc) */
  const char *op;   /**< "add" */
  const char *type; /**< "f32", "index", "void" */
  int32_t lanes;    /**< 1: a scalar */
  const tn_node *sources;
  size_t n_sources;
  const int64_t *ints; /**< the argument's integers */
  size_t n_ints;
  const char *text; /**< the argument's text or bytes */
  size_t n_text;
} tn_node_desc;

#define TN_NODE_DESC_INIT \
  { sizeof(tn_node_desc), NULL, NULL, 1, NULL, 0, NULL, 0, NULL, 0 }

/** A node. NULL where it is not well-formed: the message says why. */
TN_API tn_node tn_ir_make(tn_ir *ir, const tn_node_desc *desc);

/* ---- Nodes ---- What is asked of NULL is "" or 0. */

/** The op ("add") and the type of the elements ("f32"). Static strings. */
TN_API const char *tn_node_op(tn_node node);
TN_API const char *tn_node_type(tn_node node);

/** Elements side by side in a vector; 1: a scalar. */
TN_API int32_t tn_node_lanes(tn_node node);

/** The number of sources, and the first of them in *sources. */
TN_API size_t tn_node_sources(tn_node node, const tn_node **sources);

/** The number of integers of the argument, and the first of them in *ints. */
TN_API size_t tn_node_ints(tn_node node, const int64_t **ints);

/** The bytes of the argument's text, which ends in NUL, and where they are in *text. */
TN_API size_t tn_node_text(tn_node node, const char **text);

/* ---- Running ---- */

/** Memory of a PARAM. */
typedef struct tn_ir_buffer {
  int64_t slot;
  void *data;
  size_t bytes;
} tn_ir_buffer;

/** The value of a VAR, or of a SPECIAL other than core_id. */
typedef struct tn_ir_value {
  const char *name;
  int64_t value;
} tn_ir_value;

/** Runs a LINEAR (or a PROGRAM that has one) by the interpreter, as worker `core_id` of
    `core_count`. Every access is checked: one outside its memory, a value used before it is made,
    and the like are TN_ERR_INTERNAL, and the message names the node. */
TN_API tn_status tn_ir_execute(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers,
                               size_t n_buffers, const tn_ir_value *values, size_t n_values,
                               int64_t core_id, int64_t core_count);

/* ---- Kernels ---- */

/** Options of making a kernel. */
typedef struct tn_kernel_desc {
  size_t size;          /**< sizeof(tn_kernel_desc) */
  const char *schedule; /**< laws, a line each, which `tenon explain --kernel` prints; "": the loops
                             as they stand; NULL: what the sink's text says, else chosen */
} tn_kernel_desc;

#define TN_KERNEL_DESC_INIT \
  { sizeof(tn_kernel_desc), NULL }

/** Makes a tn_kernel (tensor.h) for tn_custom_desc's `kernel`: immutable, of no tn_ir, for any
    thread, with a count of 1; of a copy of a SINK of stage K (kernels over binders; one OUT).
    Its PARAMs have the slots 0 … n − 1, each one type and shape: first the inputs in order, then
   the outputs. Its ranges are loops. It writes all outputs and reads none, and may write inputs;
   all that it reads is what was there before it ran. Sizes may be VARs, each of the name and bounds
   of the tn_dim_var that the tensors have there: %n = var index [min=0 max=500] "rows"; others than
   those in PARAMs' shapes it has none. Elements of an output that it does not write are undefined;
   one outside of its array is read as 0, and not written.
    No STAGE writes an element twice, but for a value that is the same both times: the ranges that a
    value depends on must follow from its coordinates. These are ranges, sums of them in a mixed
    radix, as 32 · i + j with j below 32, or what div and mod by constants make of such; what
   several of them say counts together. What goes to places that are computed otherwise, or to some
   of them again, a FOLD emits, in its order. y = x · x + z of 1000 numbers:

        %x = param f32 1000 [slot=0]
        %z = param f32 1000 [slot=1]
        %y = param f32 1000 [slot=2]
        %i = range index 1000 [id=0 kind=loop axis=0 tail=0]
        %a = index f32 %x %i [component=0]
        %b = index f32 %z %i [component=0]
        %c = mul f32 %a %a
        %d = add f32 %c %b
        %s = stage void %d %i 1000 %i [values=1 ranges=1 pins=0 cut=1 1]
        %o = out void %y %s
        %k = sink void %o "square_add"
        return %k

    (the stage: its value, the coordinate at which that is stored, the size of the array, the range
    that is bound). TN_ERR_ARGUMENT, and the tn_ir's message says why, for anything else; *kernel is
    NULL then.

    A schedule says how it runs on every target. Lines name the kernel's ranges by their ids, and
    what they make after a colon, for the lines below:

        SPLIT r0 by 8: r1 r2
        KIND r2 vector

    Where a law makes more ranges than its description names, they follow, outer ones first; of
    PARTITION's parts those of the second come before those of the first. Threads are given to a
    range of each OUT's nest, of both parts, too, or to none.
    All laws are in docs/pipeline.md. Each checks that it changes no result but for the order of
    reductions; one that does not apply is refused, and the message has its line, where it is one,
    and the reason: TN_ERR_ARGUMENT, or TN_ERR_FORMAT for what is no line of a schedule. Laws take
    an array that the kernel reads and writes as changed in place, also where a copy is made for it:
    one that would have elements written in another order is refused if it is read elsewhere than it
    is written. After the end of a SINK's name its text may hold a schedule too. `desc` NULL is its
    INIT. */
TN_API tn_status tn_kernel_make(tn_ir *ir, tn_node sink, const tn_kernel_desc *desc,
                                tn_kernel **kernel);

/** Names the `i`-th law of schedules, its arguments and its effect; after the laws come the words
    that stand in arguments, with *arguments NULL and *about their meaning. Strings are static. Past
    the last: TN_ERR_ARGUMENT, which leaves all three alone, so that a loop ends there. Any thread.
 */
TN_API tn_status tn_law_get(size_t i, const char **name, const char **arguments,
                            const char **about);

/** One count more, or fewer. NULL is allowed. What was built with the kernel needs it no more. */
TN_API tn_kernel *tn_kernel_retain(tn_kernel *kernel);
TN_API void tn_kernel_free(tn_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
