/* Runs the sections of a plan with several queues (executable_queues.h): each section is a command
   list a queue, and the host waits for all of them before the next section. */
#ifndef TENON_RUNTIME_EXECUTION_QUEUES_H
#define TENON_RUNTIME_EXECUTION_QUEUES_H

#include "runtime/execution_state.h"

/** Opens a queue: one of the execution's pool, or its own. */
tn_status execution_queue_open(struct execution *e, tn_device *device, tn_queue_kind kind,
                               tn_queue **queue, bool *is_own, diag *d);

/** Opens the queues and signals of the queues, if there are several; the first has the execution's
    queue. */
tn_status execution_queues_open(struct execution *e, diag *d);
void execution_queues_close(struct execution *e);

/** Opens the lists of a section's queues, and records the waits and signals of a step around
    `record`, which records the step. */
tn_status execution_queues_open_lists(struct execution *e, command_section *section, diag *d);
void execution_queues_record(struct execution *e, command_section *section,
                             void (*record)(struct execution *e, tn_commands *list, size_t step));

/** Waits until other runs are done with the buffers of this one. */
tn_status execution_queues_await_buffers(struct execution *e, diag *d);

/** Runs the steps of a section. */
tn_status execution_queues_run(struct execution *e, const command_section *section, diag *d);

#endif
