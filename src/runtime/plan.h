/* Plans: a schedule compiled for one device. Immutable and counted; any thread. */
#ifndef TENON_RUNTIME_PLAN_H
#define TENON_RUNTIME_PLAN_H

#include "device/program.h"
#include "ir/dump.h"
#include "schedule/schedule.h"

typedef struct plan plan;

/** What a buffer of a plan is. */
typedef enum plan_role {
  ROLE_INPUT,  /* a BUFFER of the graph: the binding is told which memory that is */
  ROLE_OUTPUT, /* the value of a root that lives in no input: memory of its own in each binding */
  ROLE_SCRATCH /* lives between two steps; its place in the binding's arena is planned */
} plan_role;

typedef struct plan_buffer {
  dtype dtype;
  plan_role role;
  bool is_written;      /* an input that is changed in place */
  int64_t uid, version; /* ROLE_INPUT: of the BUFFER node */
  const node *size;     /* number of elements, over the plan's variables */
  size_t first, last;   /* ROLE_SCRATCH: the steps it lives through */
} plan_buffer;

/** Runs a CUSTOM node on the host: arrays of the buffers it reads and the one it fills. */
typedef struct plan_custom_call {
  int64_t uid, output;
  size_t n_inputs;
  void *const *data; /* inputs, then the result */
  const uint64_t *bytes;
} plan_custom_call;

/** Host functions of CUSTOM nodes. Called on a queue's thread; counted with the plan. */
typedef struct plan_host {
  tn_status (*call)(void *user, const plan_custom_call *c, tn_failure *failure);
  void (*release)(void *user); /* when the plan goes; or NULL */
  void *user;
} plan_host;

typedef struct plan_request {
  const char *name;         /* in messages and dumps */
  const node *const *roots; /* of any ir; what they need is copied */
  size_t n_roots;
  const device_target *target;
  int math;                                              /* math_mode */
  bool (*may_overwrite)(void *user, const node *buffer); /* NULL: no BUFFER may be written */
  void *user;
  const node *const *sizes; /* index expressions whose values bindings tell (binding_size) */
  size_t n_sizes;
  plan_host host;
  dump *dump;                  /* NULL: nothing is written */
  const tn_progress *progress; /* NULL: nobody is told */
} plan_request;

/** Schedules and compiles. On failure *out is NULL and request->host.release is called. */
tn_status plan_make(plan **out, const plan_request *r, const mem *m, diag *d);
plan *plan_retain(plan *p);
void plan_release(plan *p); /* NULL is allowed */

size_t plan_buffers(const plan *p);
const plan_buffer *plan_buffer_at(const plan *p, size_t i);
/** The buffer that holds the value of a root. */
size_t plan_output(const plan *p, size_t root);
/** The buffer of BUFFER(uid, version); SIZE_MAX if the plan reads no such one. */
size_t plan_input(const plan *p, int64_t uid, int64_t version);
size_t plan_steps(const plan *p);
/** How many different kernels it has. */
size_t plan_kernels(const plan *p);

/** Variables, by name. */
size_t plan_vars(const plan *p);
const tn_program_var *plan_var_at(const plan *p, size_t i);

#endif
