/* Compiled programs, and how they come about: PROGRAM nodes are rendered, looked up in the kernel
   cache, compiled if they are not there, and loaded. */
#ifndef TENON_DEVICE_PROGRAM_H
#define TENON_DEVICE_PROGRAM_H

#include "device/device.h"
#include "ir/ir.h"

#include <stdatomic.h>

/** A program that is loaded on a device. It belongs to the kernel cache, which keeps it at least as
    long as `uses` is not 0. Stateless: any thread. */
struct tn_program {
  tn_device *device;
  void *handle;           /* the backend's */
  const char *name;       /* of the first kernel that asked for it */
  tn_program_facts facts; /* the launch it takes */
  atomic_size_t uses;
  struct tn_program *next; /* the same kernel on another device */
};

/** Compiles PROGRAM(SINK, DEVICE, LINEAR) nodes of one ir for a target, each in few calls of the
    compiler, or finds them in the cache: equal programs are one. Two threads that ask for one
   kernel compile it once. Each program is held once for the caller; on failure all are NULL. */
tn_status program_compile(const device_target *t, ir *g, const node *const nodes[], size_t n,
                          tn_program *programs[], diag *d);

/** The source of a program, with its entry named `entry`; in the ir's memory. Raises through the
    ir's diag. */
const char *program_render(const device_target *t, ir *g, const node *program, const char *entry,
                           size_t *bytes);

static inline tn_program *program_retain(tn_program *p) {
  atomic_fetch_add_explicit(&p->uses, 1, memory_order_relaxed);
  return p;
}
/** NULL is allowed. */
static inline void program_release(tn_program *p) {
  if (p) atomic_fetch_sub_explicit(&p->uses, 1, memory_order_release);
}

/** TN_ERR_ARGUMENT if a launch does not fit the program: numbers of buffers and values, sizes that
    are not positive, workers for a program that has none, a buffer of another backend. */
tn_status program_check_launch(const tn_program *p, const tn_launch *launch, tn_failure *f);

/** Checks a launch, runs it, and returns when it is done. */
tn_status program_execute(tn_program *p, const tn_launch *launch, tn_failure *f);

#endif
