/* The compile driver, from kernels to loaded programs. A kernel is looked up by its key in the
   memory cache, then in the disk cache; the others go through the stages of PROGRAM(SINK, DEVICE,
   LINEAR, SOURCE, BINARY) (code generation, rendering, the target's compiler), in batches that are
   compiled in parallel, are published in both caches and loaded on the device. A kernel that is a
   product of matrices, and whose tuned choice is the device's library, goes through none of the
   stages: its code is the product (match_product.h), which the backend hands to the library. */
#ifndef TENON_COMPILE_COMPILE_KERNELS_H
#define TENON_COMPILE_COMPILE_KERNELS_H

#include "codegen/codegen.h"
#include "compile/disk_cache.h"
#include "compile/program_record.h"
#include "compile/tuned_store.h"
#include "device/core/device_target.h"
#include "device/program/program.h"
#include "ir/core/ir.h"

#include <stdbool.h>

typedef struct compile_options {
  const device_target *target;
  int math;                  /* math_mode, of kernels that code is generated for */
  codegen_observer observer; /* of code generation; if set, cached kernels are generated too */
  /** Reports that `done` of `total` kernels were generated; may raise. NULL: no reports. */
  void (*report_progress)(void *user, size_t done, size_t total);
  /** Reports one of the `n` kernels that one call of the compiler took `ns` for, by the name of its
      function, as steps that share a kernel differ in theirs; or NULL. */
  void (*report_compiled)(void *user, const char *entry, size_t n, int64_t ns);
  /** Reports the source of each kernel; if set, cached kernels are rendered too. */
  void (*report_source)(void *user, const node *kernel, const char *source);
  void *user;
  const atomic_bool *background; /* not NULL: code is generated and compilers run on the calling
                                    thread alone, until this is set */
  disk_cache *disk;              /* NULL: nothing is found or kept on disk */
  tuned_choice tuned;            /* schedules of kernels that were measured; zero: none */
  const map *found; /* kernel → decision_list that the search finds for it, where it is known; or
                       NULL */
  size_t *n_compiled; /* number of kernels that no cache has; NULL: not asked for */
  bool is_trial;      /* programs to be measured: compiled anew, and kept in no cache */
} compile_options;

/** Compiles kernels of one ir, SINKs (stage K) or PROGRAM(SINK, DEVICE, LINEAR) nodes, or finds
    them in a cache: equal kernels are one program. Two threads that want one kernel compile it
   once. Each program has a reference for the caller; on failure all are NULL. */
tn_status compile_kernels(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                          tn_program *programs[], diag *d);

/** Generates the code of a SINK of any ir with a schedule of these decisions, as text: in `g`, a
    PROGRAM(SINK, DEVICE, LINEAR) to be compiled; NULL on failure. */
tn_status compile_generate(const compile_options *o, ir *g, const node *sink, const char *decisions,
                           const node **program, diag *d);

/** The names of SINKs in stores of tuned schedules; in `a`, which raises through `d`. */
tn_status compile_tuned_keys(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                             arena *a, const char *keys[], diag *d);

/** The name of the device's library that a SINK may become a call of; NULL: it is no product, or
   the device has no library that can be opened. Raises through the ir's diag without memory. */
const char *compile_library_for(const compile_options *o, ir *g, const node *sink);

/** The names of the libraries that SINKs become calls of by their tuned choices; NULL for those
   that are compiled. Names are static. */
tn_status compile_list_libraries(const compile_options *o, ir *g, const node *const kernels[],
                                 size_t n, const char *names[], diag *d);

/** Finds programs by their records, in memory or on disk, among kernels of the compiler that is in
    use now. *found: all are there, with the same buffers and values, and each has a reference for
    the caller; else all are NULL. */
tn_status compile_find_programs(const compile_options *o, const program_record records[], size_t n,
                                tn_program *programs[], bool *found, diag *d);

#endif
