/* Executables: a schedule compiled for one device. Immutable and counted; any thread. */
#ifndef TENON_RUNTIME_EXECUTABLE_H
#define TENON_RUNTIME_EXECUTABLE_H

#include "base/thread.h"
#include "device/program.h"
#include "ir/dump.h"
#include "runtime/explanation.h"
#include "schedule/schedule.h"

typedef struct executable executable;

/** What a buffer of an executable is. */
typedef enum executable_role {
  ROLE_INPUT,  /* a BUFFER of the graph: the execution is told which memory that is */
  ROLE_OUTPUT, /* the value of a root that lives in no input: memory of its own in each execution */
  ROLE_SCRATCH, /* lives between two steps; its place in the execution's memory is planned */
  ROLE_STATE    /* of a loop: whichever buffer its state is in, or becomes, in a trip */
} executable_role;

typedef struct executable_buffer {
  dtype dtype;
  executable_role role;
  bool is_written;      /* an input that is changed in place */
  int64_t uid, version; /* ROLE_INPUT: of the BUFFER node */
  size_t first, last;   /* ROLE_SCRATCH: the steps it lives through */
} executable_buffer;

/** Runs a CUSTOM node on the host: arrays of the buffers it reads and the one it fills. */
typedef struct executable_call {
  int64_t uid, output;
  size_t n_inputs;
  void *const *data; /* inputs, then the result */
  const uint64_t *bytes;
} executable_call;

/** Host functions of CUSTOM nodes. Called on a queue's thread; counted with the executable. */
typedef struct executable_host {
  tn_status (*call)(void *user, const executable_call *c, tn_failure *failure);
  void (*release)(void *user); /* when the executable goes; or NULL */
  void *user;
} executable_host;

typedef struct executable_request {
  const char *name;         /* in messages and dumps */
  const node *const *roots; /* of any ir; what they need is copied */
  size_t n_roots;
  const device_target *target;
  int math;                                              /* math_mode */
  bool (*may_overwrite)(void *user, const node *buffer); /* NULL: no BUFFER may be written */
  void *user;
  const schedule_label *labels; /* of nodes below the roots, for the names of steps */
  size_t n_labels;
  const node *const *sizes; /* index expressions whose values executions tell (execution_sizes) */
  size_t n_sizes;
  executable_host host;
  dump *dump;                  /* NULL: nothing is written */
  explanation *explanation;    /* open and empty; NULL: nobody asks why */
  const tn_progress *progress; /* NULL: nobody is told */
  const tn_logger *logger;     /* of kernels compiled; NULL: nobody is told */
  disk *disk;                  /* of kernels and executables; NULL: they are not kept there */
  mutex *reports;              /* held while any of these is used; NULL: nobody else does */
} executable_request;

/** Schedules and compiles, or finds it on disk. On failure *out is NULL and request->host.release
    is called. */
tn_status executable_make(executable **out, const executable_request *r, const mem *m, diag *d);
executable *executable_retain(executable *p);
void executable_release(executable *p); /* NULL is allowed */

size_t executable_buffers(const executable *p);
const executable_buffer *executable_buffer_at(const executable *p, size_t i);
/** The buffer that holds the value of a root. */
size_t executable_output(const executable *p, size_t root);
/** The buffer of BUFFER(uid, version); SIZE_MAX if it is not read. */
size_t executable_input(const executable *p, int64_t uid, int64_t version);
size_t executable_steps(const executable *p);
/** How many different kernels it has. */
size_t executable_kernels(const executable *p);

/** Variables, by name. */
size_t executable_vars(const executable *p);
const tn_program_var *executable_var_at(const executable *p, size_t i);
/** The variable of that name; SIZE_MAX if there is none. */
size_t executable_var(const executable *p, const char *name);

#endif
