/* Host functions of CUSTOM nodes as a plan sees them: how a step calls one, and what it says of
   itself. */
#ifndef TENON_RUNTIME_EXECUTABLE_HOST_H
#define TENON_RUNTIME_EXECUTABLE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/unstable/backend.h>

/** Arguments of a CUSTOM node's host function: the arrays it reads and the one it fills. */
typedef struct executable_call {
  int64_t uid, output; /* of the node */
  size_t n_inputs;
  void *const *data;     /* inputs, then the result; NULL: on a device, see executable_host.facts */
  const uint64_t *bytes; /* size of each array */
  const tn_span *spans;  /* memory of each array; NULL: it is the host's */
  const void *run;       /* the execution: one for all calls of a run, and no other run's */
} executable_call;

/** Facts of a CUSTOM node's host function. */
typedef struct executable_host_facts {
  const char *what; /* kind of the step, for explanations: "a host function" */
  size_t n_spans;   /* inputs, the first ones, that it takes as spans where the host does not see
                       their memory, and then its result too; 0: it gets copies of all */
} executable_host_facts;

/** Host functions of CUSTOM nodes. Called on a queue's thread; live as long as the executable. */
typedef struct executable_host {
  tn_status (*call)(void *user, const executable_call *c, tn_failure *failure);
  void (*release)(void *user); /* called when the executable is freed; or NULL */
  void *user;
  executable_host_facts (*facts)(void *user, int64_t uid); /* NULL: those usual of all */
} executable_host;

/** Facts of a function that nobody says anything else of. */
static inline executable_host_facts executable_host_usual_facts(void) {
  return (executable_host_facts){"a host function", 0};
}

static inline executable_host_facts executable_host_facts_of(const executable_host *h,
                                                             int64_t uid) {
  return h->facts ? h->facts(h->user, uid) : executable_host_usual_facts();
}

#endif
