/* An open device: one index of a backend, with the allocator of its memory and the targets that
   kernels are compiled for there. The registry opens it, and closes it at its own end. */
#ifndef TENON_DEVICE_CORE_DEVICE_H
#define TENON_DEVICE_CORE_DEVICE_H

#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>

#include <tenon/unstable/backend.h>

typedef struct registry registry;
typedef struct caching_allocator caching_allocator;
typedef struct device_target device_target;
typedef struct device_compiler device_compiler;

/** Staging memory: two pieces, which a transfer uses by turns. */
typedef struct staging_pieces {
  void *memory[2];
  char *at[2];      /* their addresses */
  uint64_t bytes;   /* of each; 0: not allocated */
  uint64_t counted; /* bytes of both, against the limit of the host's allocator */
} staging_pieces;

/** A stream for work that the host waits for, and staging memory through which its data passes
    (stream/immediate_stream.h). */
typedef struct immediate_stream {
  mutex lock;             /* of handing work over */
  void *stream;           /* the backend's; NULL: nothing was handed over so far */
  mutex staging_lock;     /* of the pieces, during a transfer */
  staging_pieces staging; /* as large as the largest transfer needed, where there was memory */
} immediate_stream;

/** A queue of a device, as the device's memory sees it. */
typedef struct device_queue {
  struct device_queue *next, **link; /* in the device's list */
  tn_signal *timeline;               /* rises to the number of each submission that is done */
  /** The value at which all that was submitted is done; 0: it is. */
  uint64_t (*busy_until)(struct device_queue *q);
} device_queue;

struct tn_device {
  registry *registry;
  const mem *mem;
  const tn_backend *backend;
  void *state; /* the backend's */
  tn_host host;
  int32_t index;
  char name[48]; /* "CPU:0" */
  caching_allocator *allocator;
  immediate_stream immediate; /* unused by a backend without streams */
  mutex queues_lock;          /* of the list below */
  device_queue *queues;
  atomic_size_t refused_graphs; /* rises with each graph of works that was refused */
  mutex lock;                   /* of the lists below, whose members stay until the device closes */
  device_target *targets;
  device_compiler *compilers;
};

#endif
