/* Loaded programs: a kernel's code on one device, with reference counts, and launches of it, which
   are checked here before a backend sees them. The loader of a program (the kernel cache) owns it
   and may keep it when nothing refers to it any more. Programs are stateless: any thread may launch
   them. */
#ifndef TENON_DEVICE_PROGRAM_PROGRAM_H
#define TENON_DEVICE_PROGRAM_PROGRAM_H

#include "device/core/device.h"
#include "device/program/launch_expr.h"

#include <stdatomic.h>

/** A program that is loaded on a device. Its owner keeps it at least as long as `uses` is not 0. */
struct tn_program {
  tn_device *device;
  void *handle;                   /* the backend's */
  const char *name;               /* of the first kernel that was compiled to it */
  const char *library;            /* that it is a call of; NULL: it is code of the compiler's */
  tn_program_facts facts;         /* its entry, buffers and values, as the backend sees them */
  launch_exprs sizes;             /* launch_grid_eval, of the values */
  launch_limits limits;           /* limits that plans read from disk are checked against */
  atomic_size_t uses;             /* references */
  void (*release)(tn_program *p); /* the owner's: drops a reference that may be the last */
};

/** Adds a reference to a program that has one. */
static inline tn_program *program_retain(tn_program *p) {
  atomic_fetch_add_explicit(&p->uses, 1, memory_order_relaxed);
  return p;
}

/** Drops a reference; after the last the owner may free the program. NULL is allowed. */
void program_release(tn_program *p);

/** Checks a launch, and computes the work that it is. TN_ERR_ARGUMENT if the number of buffers or
    values differs from the program's, for a buffer of another device, or as launch_grid_eval says.
    Allocates nothing. */
tn_status program_prepare(const tn_program *p, const tn_launch *launch, tn_work *work,
                          tn_failure *failure);

/** True if all arrays that a launch stores are empty: it may loop over very many rows without
    elements, and need not run. */
bool program_stores_nothing(const tn_program *p, const tn_launch *launch);

/** Runs a launch, and returns when it is done. Allocates nothing of its own. */
tn_status program_execute(tn_program *p, const tn_launch *launch, tn_failure *f);

#endif
