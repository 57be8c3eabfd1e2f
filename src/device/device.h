/* An open device. */
#ifndef TENON_DEVICE_DEVICE_H
#define TENON_DEVICE_DEVICE_H

#include "base/thread.h"
#include "codegen/target.h"
#include "device/blocks.h"
#include "device/table.h"

typedef struct device_target device_target;

/** A compiler of a device. */
typedef struct device_compiler {
  size_t pair;
  char *name; /* as asked for; NULL: the one that is found */
  mutex lock; /* of what follows: finding a compiler takes time, and nobody else waits for that */
  bool is_open;
  void *handle; /* the backend's */
  struct device_compiler *next;
} device_compiler;

struct tn_device {
  table *table;
  const mem *mem;
  const tn_backend *backend;
  void *state; /* the backend's */
  tn_host host;
  int32_t index;
  char name[48]; /* "CPU:0" */
  blocks blocks;
  mutex lock; /* of what follows: lists, which stay until the device closes */
  device_target *targets;
  device_compiler *compilers; /* opened when first needed */
};

/** What programs are made for: a pair, with a target's capabilities. Made once; what is found out
    of its compiler later (identity.h) is all that changes. */
struct device_target {
  tn_device *device;
  size_t pair;
  const tn_renderer *renderer;
  const tn_compiler *compiler;
  device_compiler *opened; /* the compiler itself */
  tn_capabilities caps;
  target target; /* the same, for code generation */
  char *limit;   /* as asked for; NULL: none */
  device_target *next;
  /* Under opened->lock: what the compiler's `key` says, and what was taken for it until it was
     asked; NULL: not known. */
  char *identity, *former_identity;
  bool is_remembered; /* from the disk: it has not been asked */
};

/** Opens a device: table_device's. */
tn_status device_open(tn_device **device, table *t, const tn_backend *b, int32_t index,
                      const tn_host *host, diag *d);
void device_close(tn_device *device);

/** What a target is asked for by; NULL: not said. */
typedef struct target_desc {
  const char *pair;     /* "RENDERER/COMPILER"; else the backend's first */
  const char *limit;    /* as tn_open_desc's `cpu` */
  const char *compiler; /* as tn_open_desc's */
} target_desc;

/** The target of a description (NULL: nothing is said). Lives as long as the device. */
tn_status device_target_get(tn_device *device, const target_desc *desc,
                            const device_target **target, diag *d);

/** The compiler of a target, opened if it was not. */
tn_status device_compiler_get(const device_target *t, void **compiler, diag *d);

/** Where the host sees a span of a device; NULL: it does not. */
void *device_host_pointer(const tn_span *span);

#endif
