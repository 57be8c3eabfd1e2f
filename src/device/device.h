/* An open device. */
#ifndef TENON_DEVICE_DEVICE_H
#define TENON_DEVICE_DEVICE_H

#include "base/thread.h"
#include "codegen/target.h"
#include "device/blocks.h"
#include "device/table.h"

typedef struct device_target device_target;

struct tn_device {
  table *table;
  const mem *mem;
  const tn_backend *backend;
  void *state; /* the backend's */
  tn_host host;
  int32_t index;
  char name[48]; /* "CPU:0" */
  blocks blocks;
  mutex lock;             /* of what follows */
  device_target *targets; /* a list; they stay until the device closes */
  void **compilers;       /* by pair; opened when first needed */
  bool *compiler_open;
};

/** What programs are made for: a pair, with a target's capabilities. Made once, never changed. */
struct device_target {
  tn_device *device;
  size_t pair;
  const tn_renderer *renderer;
  const tn_compiler *compiler;
  tn_capabilities caps;
  target target; /* the same, for code generation */
  char *limit;   /* as asked for; "" for none */
  device_target *next;
};

/** Opens a device: table_device's. */
tn_status device_open(tn_device **device, table *t, const tn_backend *b, int32_t index,
                      const tn_host *host, diag *d);
void device_close(tn_device *device);

/** The target of a pair, "RENDERER/COMPILER" (NULL: the backend's first), and of a limit, as in
    tn_open_desc's `cpu` (NULL: none). Lives as long as the device. */
tn_status device_target_get(tn_device *device, const char *pair, const char *limit,
                            const device_target **target, diag *d);

/** The compiler of a target, opened if it was not. */
tn_status device_compiler(const device_target *t, void **compiler, diag *d);

/** Where the host sees a span of a device; NULL: it does not. */
void *device_host_pointer(const tn_span *span);

#endif
