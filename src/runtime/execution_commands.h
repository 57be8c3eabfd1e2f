/* Records the command lists of an execution: the plan is divided into sections at the ends of
   loops, and the steps of a section are recorded once. Commands point to launches whose spans and
   values each run, or each trip of a loop, fills anew. */
#ifndef TENON_RUNTIME_EXECUTION_COMMANDS_H
#define TENON_RUNTIME_EXECUTION_COMMANDS_H

#include "device/queue/launch_runs.h"
#include "runtime/execution_state.h"

/** Divides the plan into sections and allocates the lists of launches. Raises through the arena. */
void execution_commands_open(struct execution *e);

/** Records the command lists of all sections: before the first run, and again after
    execution_commands_release. */
tn_status execution_commands_record(struct execution *e, diag *d);

/** The command list of the steps of a section that the run at hand needs; NULL: it needs none. */
tn_status execution_commands_of_run(struct execution *e, size_t section, tn_commands **list,
                                    diag *d);

/** The i-th run of launches of the recorded lists, and its device; false past the last. */
bool execution_launches_at(const struct execution *e, size_t i, tn_device **device,
                           launch_run *run);

/** Releases the command lists, such as when profiling is turned on or off. */
void execution_commands_release(struct execution *e);

/** Fills the launch of a kernel step with the present spans and values. */
void execution_fill_launch(struct execution *e, size_t step);

/** Gives an input that has no memory its place, for the steps that read it. */
tn_status execution_begin_use(const input_use *u, tn_failure *failure);

/** Checks that a filled launch's buffers are as large as its kernel's code takes them to be. */
tn_status execution_check_launch(struct execution *e, size_t step, diag *d);

#endif
