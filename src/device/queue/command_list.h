/* Command lists, which are recorded once and submitted to queues any number of times. One thread
   records a list; any thread submits it. A list holds references to its signals and programs;
   launches, spans and values belong to the caller, and are copied when the list is submitted.
   Recording never fails: the first failure stays with the list, and queue_submit reports it. */
#ifndef TENON_DEVICE_QUEUE_COMMAND_LIST_H
#define TENON_DEVICE_QUEUE_COMMAND_LIST_H

#include "device/program/program.h"
#include "device/queue/work_graph.h"
#include "device/stream/signal.h"

typedef enum command_kind {
  COMMAND_WAIT,
  COMMAND_SIGNAL,
  COMMAND_EXEC,
  COMMAND_COPY,
  COMMAND_FILL,
  COMMAND_CALL,
  COMMAND_BARRIER,
  COMMAND_STAMP,
  COMMAND_GRAPH
} command_kind;

/** A command; comments name the kinds that use a field. */
typedef struct command {
  command_kind kind;
  bool ends;                                          /* WAIT: a failure will do, as an end */
  uint8_t fill;                                       /* FILL */
  tn_signal *signal;                                  /* WAIT, SIGNAL */
  uint64_t value;                                     /* WAIT, SIGNAL, if value_at is NULL */
  const uint64_t *value_at;                           /* WAIT, SIGNAL */
  tn_program *program;                                /* EXEC */
  const tn_launch *launch;                            /* EXEC */
  const tn_span *to, *from;                           /* COPY; FILL has no `from` */
  tn_status (*call)(void *user, tn_failure *failure); /* CALL */
  void *user;                                         /* CALL */
  int64_t *stamp;    /* STAMP: receives the time at which earlier commands are done, */
  int64_t *seen;     /* and when the host found that, by its own clock; NULL: nobody asks */
  work_graph *graph; /* GRAPH: of the launches that follow */
} command;

struct tn_commands {
  atomic_size_t count; /* owners, and submissions that have not ended */
  tn_device *device;
  command *at;
  size_t n, cap;
  tn_failure failure; /* of the first command that could not be recorded */
};

/** An empty list for queues of a device, with one reference; NULL without memory. */
tn_commands *command_list_open(tn_device *device);
tn_commands *command_list_retain(tn_commands *c);
void command_list_release(tn_commands *c); /* NULL is allowed */

void command_list_wait(tn_commands *c, tn_signal *s, uint64_t value);
void command_list_wait_at(tn_commands *c, tn_signal *s, const uint64_t *value);

/** A wait that the failure of the value ends too, and that never fails itself. */
void command_list_wait_end(tn_commands *c, tn_signal *s, uint64_t value);
void command_list_signal(tn_commands *c, tn_signal *s, uint64_t value);
void command_list_signal_at(tn_commands *c, tn_signal *s, const uint64_t *value);
void command_list_exec(tn_commands *c, tn_program *program, const tn_launch *launch);
void command_list_copy(tn_commands *c, const tn_span *to, const tn_span *from);
void command_list_fill(tn_commands *c, const tn_span *to, uint8_t byte);
void command_list_call(tn_commands *c, tn_status (*call)(void *user, tn_failure *failure),
                       void *user);
void command_list_barrier(tn_commands *c);
void command_list_timestamp(tn_commands *c, int64_t *at, int64_t *seen);

/** The failure of the first command that could not be recorded; TN_OK if there is none. */
tn_status command_list_status(const tn_commands *c, diag *d);

/** The value of a WAIT or SIGNAL. */
static inline uint64_t command_value(const command *c) {
  return c->value_at ? *c->value_at : c->value;
}

#endif
