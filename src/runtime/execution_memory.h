/* Allocates the memory of an execution: evaluates sizes from the variables' values, places scratch
   buffers by their live ranges in one allocation, and grows memory where sizes grew. */
#ifndef TENON_RUNTIME_EXECUTION_MEMORY_H
#define TENON_RUNTIME_EXECUTION_MEMORY_H

#include "runtime/execution_state.h"

/** Allocates the lists of spans and lays out the slots of scratch memory in the order of steps;
    allocates no data. Raises through the arena. */
void execution_memory_open(struct execution *e);
void execution_memory_close(struct execution *e);

/** Gives each buffer that lives between two steps a slot of its own, in memory of the execution's
    own. Raises. */
void execution_keep_results(struct execution *e);

/** True for inputs and outputs, whose memory the caller may bind. */
bool execution_is_bindable(const struct execution *e, size_t buffer);

/** Evaluates all sizes, those that ITEMs decide with the least values of these. TN_ERR_ARGUMENT if
   a variable has no value. */
tn_status execution_evaluate_sizes(struct execution *e, diag *d);

/** TN_ERR_SHAPE if the size of a buffer cannot be computed or is none, with a step that uses it. */
tn_status execution_check_size(const struct execution *e, size_t buffer, diag *d);

/** Bytes of a buffer, from evaluated sizes. */
uint64_t execution_bytes_of(const struct execution *e, size_t buffer);

/** Evaluates the bytes of scratch memory and the offset of each slot, as far as they are known
    before a run. */
tn_status execution_place_slots(struct execution *e, diag *d);

/** Finds memory for every buffer whose size becomes known in a segment: checks the bound ones, and
    allocates or grows the others. */
tn_status execution_place_buffers(struct execution *e, size_t segment, diag *d);

/** Places the views of a buffer that has its place. */
void execution_place_views_of(struct execution *e, size_t buffer);

/** Reads the ITEMs of a segment, checks them and evaluates the sizes that they decide. TN_ERR_SHAPE
    names the tensor of one that is outside of its bounds. */
tn_status execution_read_items(struct execution *e, size_t segment, diag *d);

/** True if every buffer has its place: values and bound buffers are those of the last placement,
   and scratch memory that other executions share is still the same. */
bool execution_is_placed(const struct execution *e);

/** Forgets where scratch memory was. */
void execution_forget_scratch(struct execution *e);

/** How a run uses a buffer's contents, from before it and after it; neither: scratch memory. */
typedef struct contents_use {
  bool reads, writes;
} contents_use;

/** Calls `visit` for each buffer that runs use: bound ones, allocated ones, and scratch memory. */
void execution_for_buffers(struct execution *e,
                           void (*visit)(void *user, tn_buffer *b, contents_use use), void *user);

#endif
