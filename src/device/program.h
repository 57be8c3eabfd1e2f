/* Compiled programs, and how they come about. A kernel is looked up in the cache by its key, then
   on disk; what is not there goes through the stages of PROGRAM(SINK, DEVICE, LINEAR, SOURCE,
   BINARY): code is generated, rendered and compiled; then it is loaded. */
#ifndef TENON_DEVICE_PROGRAM_H
#define TENON_DEVICE_PROGRAM_H

#include "codegen/codegen.h"
#include "device/device.h"
#include "device/disk.h"
#include "device/launch.h"
#include "ir/ir.h"

#include <stdatomic.h>
#include <stdbool.h>

/** A program that is loaded on a device. It belongs to the kernel cache, which keeps it at least as
    long as `uses` is not 0. Stateless: any thread. */
struct tn_program {
  tn_device *device;
  struct kernel *kernel;  /* whose it is */
  void *handle;           /* the backend's */
  const char *name;       /* of the first kernel that asked for it */
  tn_program_facts facts; /* the launch it takes */
  launch_code sizes;      /* launch_sizes, of the values */
  launch_terms terms;
  atomic_size_t uses;
  struct tn_program *next; /* the same kernel on another device */
};

typedef struct program_options {
  const device_target *target;
  int math;            /* math_mode, of kernels that code is generated for */
  codegen_watch watch; /* of that; where somebody watches it is done for kernels in the cache too */
  void (*tell)(void *user, size_t done, size_t total); /* of kernels, now and then; may raise; NULL:
                                                          nobody is told */
  /** A kernel, one of `n` that one call of the compiler made in `ns`; NULL: nobody is told. */
  void (*made)(void *user, const char *name, size_t n, int64_t ns);
  /** The source of each kernel, also of those that are in the cache; NULL: nobody is told. */
  void (*rendered)(void *user, const node *kernel, const char *source);
  void *user;
  disk *disk; /* where kernels are found and kept; NULL: nowhere */
} program_options;

/** Compiles kernels of one ir, SINKs (stage K) or PROGRAM(SINK, DEVICE, LINEAR) nodes, in few calls
    of the compiler, or finds them in the cache: equal kernels are one program. Two threads that ask
    for one kernel compile it once. Each program is held once for the caller; on failure all are
    NULL. */
tn_status program_compile(const program_options *o, ir *g, const node *const kernels[], size_t n,
                          tn_program *programs[], diag *d);

/** What a program is found again by, in another process too, and what the code says of its launch,
    with which its steps were made. */
typedef struct program_record {
  const char *name;
  const void *key; /* key_own's */
  size_t key_bytes;
  size_t n_globals, n_values;
  const int64_t *globals;
  const char *const *value_names;
} program_record;

/** The record of a program. Lives as long as that. */
program_record program_tell(const tn_program *p);

/** Finds programs by their records, in the cache or on disk, where kernels have been compiled by
   the compiler that is in use now. *found: each is there, is as it was, and is held once for the
    caller; else none is held. */
tn_status program_find(const program_options *o, const program_record records[], size_t n,
                       tn_program *programs[], bool *found, diag *d);

/** Holds a program that is held once more. */
static inline tn_program *program_retain(tn_program *p) {
  atomic_fetch_add_explicit(&p->uses, 1, memory_order_relaxed);
  return p;
}
/** Gives a hold back; after the last the program may be gone. NULL is allowed. */
void program_release(tn_program *p);

/** Checks a launch, computes its sizes, runs it, and returns when it is done. TN_ERR_ARGUMENT where
    the numbers of buffers or values are others than the program's, or as launch_sizes says;
    TN_ERR_DEVICE for a buffer of another backend. Allocates nothing of its own. */
tn_status program_execute(tn_program *p, const tn_launch *launch, tn_failure *f);

#endif
