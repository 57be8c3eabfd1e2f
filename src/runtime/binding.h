/* Bindings: one run's memory and values for a plan. One thread at a time; its first run allocates,
   and a later one only where sizes grow. */
#ifndef TENON_RUNTIME_BINDING_H
#define TENON_RUNTIME_BINDING_H

#include "device/buffer.h"
#include "device/queue.h"
#include "runtime/plan.h"

typedef struct binding binding;

/** `queue` is borrowed for the binding's life; NULL: it gets a queue of its own. */
tn_status binding_open(binding **out, plan *p, tn_queue *queue, diag *d);
void binding_close(binding *b); /* NULL is allowed */

/** A variable's value for the runs to come. TN_ERR_ARGUMENT beyond its bounds or where the plan has
    none of that name. */
tn_status binding_set_var(binding *b, const char *name, int64_t value, diag *d);

/** The memory of an input or an output (its bytes are checked when it runs); held until replaced.
    For an output NULL: the binding's own. */
tn_status binding_set_buffer(binding *b, size_t buffer, tn_buffer *memory, diag *d);

/** The bytes a buffer of the plan has with the present values of variables. */
tn_status binding_bytes(binding *b, size_t buffer, uint64_t *bytes, diag *d);

/** The value of the i-th of the plan's `sizes` with the present values. */
tn_status binding_size(binding *b, size_t i, int64_t *value, diag *d);

/** Before and after its steps, every run waits for and raises these; set once. */
tn_status binding_order(binding *b, tn_signal *wait, const uint64_t *wait_value, tn_signal *signal,
                        const uint64_t *signal_value, diag *d);

/** Runs and waits for the end. TN_ERR_ARGUMENT names what has no value. */
tn_status binding_run(binding *b, diag *d);

/** The memory an output of the last run is in: for an output of its own, valid until the next run.
    Not retained. */
tn_buffer *binding_buffer(binding *b, size_t buffer);

/** Bytes of scratch and own outputs, now. */
uint64_t binding_scratch_bytes(const binding *b);

#endif
