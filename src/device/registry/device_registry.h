/* The device registry: the backends known by name, the devices that are open, and the threads and
   compiled kernels that these share. One registry serves the whole process; a context with its own
   allocator or threads has its own. Any thread may call the functions. */
#ifndef TENON_DEVICE_REGISTRY_DEVICE_REGISTRY_H
#define TENON_DEVICE_REGISTRY_DEVICE_REGISTRY_H

#include "base/diag.h"
#include "base/mem.h"
#include "base/reentrancy.h"

#include <tenon/device.h>
#include <tenon/unstable/backend.h>

typedef struct registry registry;
typedef struct thread_pool thread_pool;

/** Options of a registry that does not serve the whole process. */
typedef struct registry_desc {
  const mem *mem;     /* NULL: the C library's; else copied */
  int32_t threads;    /* 0: as many as physical cores; at most THREAD_POOL_MAX */
  tn_workers workers; /* run == NULL: the registry's own threads; the caller calls `destroy` */
} registry_desc;

/** The registry of the process, opened by the first call and never closed. */
tn_status registry_global(registry **r, diag *d);

tn_status registry_open(registry **r, const registry_desc *desc, diag *d);

/** Closes all devices and frees the registry. No buffer, signal, queue, list or program of its
    devices may exist. NULL is allowed. */
void registry_close(registry *r);

/** Adds a backend; one that was added before stays. TN_ERR_ARGUMENT if it is incomplete or another
    backend has its name. */
tn_status registry_add_backend(registry *r, const tn_backend *b, diag *d);

/** The device of a name, opened if it was not: "CPU" is "CPU:0", and "cpu" too if no other backend
    has the name in such case. The message for an unknown name lists the known ones. The device
    stays open until the registry is closed. */
tn_status registry_open_device(registry *r, const char *name, tn_device **device, diag *d);

/** A device that may exist. */
typedef struct device_id {
  const tn_backend *backend;
  int32_t index;
} device_id;

/** The `i`-th device of all, absent ones included; false past the last. */
bool registry_device_at(registry *r, size_t i, device_id *id);

/** The contents of tn_device_get, with strings of its own. */
typedef struct device_description {
  device_id id;
  char name[48];
  char *about, *absent, *pairs; /* absent: NULL if the device can be used */
  char *absent_pairs;
  char *library; /* of products, with the reason if it cannot be used; "": none */
  uint64_t bytes;
  bool is_addressed;               /* without `import`: the host addresses its memory */
  struct device_description *next; /* in a list of the caller's */
} device_description;

/** Describes a device and the renderer/compiler pairs that work there; `compiler` is as in
    tn_open_desc. Each call probes anew, which may take as long as a compiler takes to print its
    version, and holds no lock meanwhile. A failure becomes `absent`, except TN_ERR_MEMORY. */
tn_status registry_probe(registry *r, const device_id *id, const char *compiler,
                         device_description **description, diag *d);
void registry_free_description(registry *r, device_description *k); /* NULL is allowed */

/** False for the device of tests whose kernels do nothing. */
bool registry_device_computes(const tn_device *device);

const mem *registry_mem(const registry *r);
thread_pool *registry_thread_pool(registry *r);

/** The threads inside functions of callers whose kernels and memory the registry uses. */
reentrancy_list *registry_reentrancy(registry *r);

/** A later layer that keeps state in each registry, as the kernel cache does. */
typedef struct registry_service {
  void *(*open)(registry *r);                                  /* NULL without memory */
  void (*forget_device)(void *state, const tn_device *device); /* before the device is closed */
  void (*close)(void *state);                                  /* after all devices are closed */
} registry_service;

/** The state of a service, opened by the first call; NULL without memory. A registry has room for
    one service: all calls pass the same one. */
void *registry_service_state(registry *r, const registry_service *s);

#endif
