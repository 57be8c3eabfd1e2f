/* Internal header of the compile driver: the state of a compilation, and the functions by which its
   source files share it. Each kernel is a request, which moves from its key through the caches or
   through code generation, rendering and compiling to a published kernel; then its program is
   loaded. Code generation and compilers run on the thread pool; the caller's graph is only read
   there, and changed on the calling thread alone. compile_kernels.c shows the whole way. */
#ifndef TENON_COMPILE_COMPILATION_H
#define TENON_COMPILE_COMPILATION_H

#include "compile/compile_kernels.h"
#include "compile/kernel_cache.h"
#include "device/core/output.h"
#include "device/program/product.h"

#include <pthread.h>
#include <stdatomic.h>

/** One kernel to be compiled or found. */
typedef struct request {
  const node *program; /* a SINK, or a PROGRAM with the stages so far; NULL: found by `record` */
  const program_record *record;
  kernel_graph_key graph;
  const char *tuned;          /* decisions of its schedule, as text; "": the search's */
  const tn_product *product;  /* its code, by which it is a call of a library; NULL: it is none */
  const decision_list *found; /* by the search, before; or NULL */
  cache_key key;
  kernel *kernel; /* with a reference; NULL: another thread compiles it */
  bool claimed;   /* this compilation compiles it, into: */
  bool is_other;  /* the disk has its kernel, which takes other buffers or values */
  ir *ir;         /* of the program, once code is generated */
  diag diag;      /* of that ir, unless it is the caller's */
  tn_program_spec spec;
  launch_exprs sizes;
  launch_limits limits;
} request;

/** The kernels that are done, and those that were reported. Only the compilation's own thread
    reports. */
typedef struct progress {
  pthread_t thread;
  atomic_size_t done;
  size_t reported;
} progress;

/** Kernels that one call of the compiler makes (compile_batches.c). */
typedef struct batch batch;

/** The kernels of one compilation. */
typedef struct work {
  const node *const *kernels; /* NULL: they are found by records */
  size_t n;
  request *requests;     /* one for each */
  tn_program **programs; /* NULL: none are made */
  batch *batches;        /* all that were prepared */
  progress progress;
} work;

/** Resources that outlive a raised failure, to be freed at the end. */
typedef struct resources {
  tn_output output;     /* of the compiler's key */
  disk_cache_file file; /* the file of the disk cache that is being read */
  void *module;         /* loaded from that file, and not published yet; or NULL */
} resources;

/** A compilation: its environment, its work and its resources. Everything raises through `diag`. */
typedef struct compilation {
  const compile_options *options;
  const device_target *target;
  codegen_options codegen;
  kernel_cache *cache;
  disk_cache *disk; /* NULL: nothing is kept on disk, or nothing any more */
  ir *ir;
  arena *arena;
  diag *diag;           /* the ir's */
  const char *identity; /* the compiler's, as keys have it */
  void *compiler;       /* NULL: not opened */
  work work;
  resources own;
} compilation;

/** True if somebody observes code generation, or is given the sources. */
static inline bool compilation_is_watched(const compilation *c) {
  return c->codegen.observer.after || c->codegen.observer.law || c->options->report_source;
}

/** True if the target has the scratch memory that a kernel needs. */
static inline bool compilation_fits_scratch(const compilation *c, const tn_program_spec *s) {
  uint64_t most = c->target->caps.max_scratch;
  return !most || s->scratch <= most;
}

/** Raises the failure that the compilation's diag records, with the name of what failed before its
    message; "": without one. */
static inline _Noreturn void compilation_fail(const compilation *c, const char *name) {
  if (*name) diag_prefix(c->diag, "%s", name);
  diag_rethrow(c->diag);
}

/* compilation.c */

/** Runs a compilation of which options, ir and work are set, and frees its resources; also the
    programs, unless it succeeds. The body gets the compilation, or what begins with it. */
tn_status compilation_run(compilation *c, void (*body)(void *c), diag *d);

/** Runs a compilation of kernels of an ir. */
tn_status compilation_run_on_kernels(compilation *c, void (*body)(void *c), diag *d);

/** Releases the programs that were loaded: all are NULL afterwards. */
void compilation_drop_programs(const compilation *c);

/* request_keys.c */

/** Makes the requests, and finds the compiler's identity. */
void compilation_begin_requests(compilation *c);

/** Begins the requests of the work's kernels, with their keys. */
void compilation_begin_kernels(compilation *c);

/** Opens the compiler. If its identity is not the one that keys were made with, its code is not
    kept on disk. */
void compilation_open_compiler(compilation *c);

/** The device's library, if kernels may be calls of it and it can be opened; NULL: not. */
const tn_product_library *compilation_open_library(const compilation *c);

/** The product that a kernel of the ir is; NULL: it is none. */
const tn_product *compilation_find_product(compilation *c, const node *kernel);

/** Sets the schedule and the key of a request, whose kernel has this graph. */
void request_set_key(compilation *c, request *r, kernel_graph_key graph);

/** The name of a request's kernel in stores of tuned schedules. */
const char *request_tuned_key(compilation *c, const request *r);

/** The SINK of a request that has a program. */
const node *request_sink(const request *r);

/** The name of a request's kernel, for messages and programs. */
const char *request_name(const compilation *c, const request *r);

/** Looks a request up in the memory cache, by flags of kernel_cache_lookup. */
void request_look_up(compilation *c, request *r, unsigned flags);

/* kernels_on_disk.c */

/** Publishes the kernel of a claimed request, and those of all others in the same file, if the disk
    cache has it and it can be loaded; they are claimed no more then. */
void request_find_on_disk(compilation *c, request *r);

/** Keeps the kernels of requests, which one call of the compiler made, in the disk cache. */
void requests_keep_on_disk(compilation *c, request *const requests[],
                           const compiled_kernel kernels[], size_t n, const tn_code *code);

/** Frees the file that was being read when a failure was raised, and what was loaded from it. */
void compilation_free_file(compilation *c);

/* make_sources.c */

/** SINK → PROGRAM(SINK, DEVICE, LINEAR), in the ir `to`; `decisions`: NULL, or of the schedule;
    `found`: NULL, or what the search finds. The passes make many times the nodes that remain, so
   they have an ir of their own, which is freed at once; but an observer counts nodes in the
   caller's. */
const node *compilation_generate(const compilation *c, ir *passes, ir *to, const node *program,
                                 const decision_list *decisions, const decision_list *found);

/** Makes the sources of kernels, on all threads unless somebody watches or it happens in the
    background; raises the first failure, or that of a report. Each kernel has irs of its own, so
   its code does not depend on the threads. */
void compilation_make_sources(compilation *c, request *const *requests, size_t n);

/** Makes the sources of all kernels that need one and reports each kernel that is done: those that
    are in a cache first. Lent workers make a round of them at a time. Reports may raise. */
void compilation_make_all_sources(compilation *c);

/* compile_batches.c */

enum { BATCH_MOST = 6 }; /* kernels in one call of the compiler */

/** Compiles rendered kernels; publishes all batches that succeed, then raises the first failure. */
void compilation_compile(compilation *c, request **claimed, size_t n);

/** Publishes a claimed kernel that is a call of a library, and keeps it on disk. */
void request_publish_call(compilation *c, request *r);

void compilation_free_batches(const compilation *c);

/* load_programs.c */

/** Loads the program of the i-th kernel, into work.programs. */
tn_status compilation_load_program(compilation *c, size_t i);

/** Loads the programs of all kernels. Code that was found on disk and that the device rejects is
    dropped, and its request has no kernel any more; returns the number of such. */
size_t compilation_load_programs(compilation *c);

#endif
