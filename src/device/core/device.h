/* An open device: one index of a backend, with the allocator of its memory and the targets that
   kernels are compiled for there. The registry opens it, and closes it at its own end. */
#ifndef TENON_DEVICE_CORE_DEVICE_H
#define TENON_DEVICE_CORE_DEVICE_H

#include "base/mem.h"
#include "base/thread.h"

#include <tenon/unstable/backend.h>

typedef struct registry registry;
typedef struct caching_allocator caching_allocator;
typedef struct device_target device_target;
typedef struct device_compiler device_compiler;

struct tn_device {
  registry *registry;
  const mem *mem;
  const tn_backend *backend;
  void *state; /* the backend's */
  tn_host host;
  int32_t index;
  char name[48]; /* "CPU:0" */
  caching_allocator *allocator;
  mutex lock; /* of the lists below, whose members stay until the device closes */
  device_target *targets;
  device_compiler *compilers;
};

#endif
