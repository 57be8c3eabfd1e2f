/* A request to build an executable: the graph's roots, the target, the host functions of CUSTOM
   nodes (host-function calls), and the observers of the compilation. */
#ifndef TENON_RUNTIME_BUILD_REQUEST_H
#define TENON_RUNTIME_BUILD_REQUEST_H

#include "base/stop.h"
#include "base/thread.h"
#include "compile/compile_kernels.h"
#include "ir/text/dump_after_pass.h"
#include "runtime/executable_host.h"
#include "runtime/explanation.h"
#include "schedule/schedule.h"

/** Copies of an executable's distinct kernels. */
typedef struct kernel_copies {
  ir *ir;          /* where they go; has the build's diag */
  const node **at; /* SINKs, in the order of the executable's programs */
  size_t n;
} kernel_copies;

struct schedule_view;

/** All pointers are borrowed for the build; `host` passes to the executable. */
typedef struct executable_request {
  const char *name;         /* in messages and dumps */
  const node *const *roots; /* of any ir; the nodes they depend on are copied */
  size_t n_roots;
  const device_target *target;
  int math;                                              /* math_mode */
  bool (*may_overwrite)(void *user, const node *buffer); /* NULL: no BUFFER may be written */
  void *user;
  const schedule_label *labels; /* of nodes below the roots, for the names of steps */
  size_t n_labels;
  size_t n_watched; /* of the labels, the last ones: nodes whose slots the executable lists */
  executable_host host;
  dump *dump;                    /* of the IR after passes; NULL: none */
  explanation *explanation;      /* open and empty, to be filled; NULL: none */
  const tn_progress *progress;   /* NULL: progress is not reported */
  const tn_logger *logger;       /* receives a line for each compiled kernel; NULL: none */
  const atomic_bool *background; /* of compile_options; its setting cancels the build */
  stop_condition stop;           /* `cancelled` is NULL */
  disk_cache *disk;              /* of kernels and plans; NULL: no disk cache */
  tuned_choice tuned;            /* of compile_options */
  kernel_copies *kernels;        /* to be filled; the plan is scheduled for it. NULL: none */
  struct schedule_view *view;    /* of executable_view: open and empty, to be filled */
  mutex *reports; /* held while dump, progress or logger is used; NULL: nothing else uses them */
  const device_target *const *more; /* of devices 1 … of the graph; `target` is that of device 0 */
  size_t n_more;
} executable_request;

/** The target of a device of the graph. */
static inline const device_target *executable_request_target(const executable_request *r,
                                                             size_t device) {
  return device ? r->more[device - 1] : r->target;
}

#endif
