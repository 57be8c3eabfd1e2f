/* Compilation targets of a device: a renderer and a compiler of its backend, with the
   capabilities that a limit (as "x86-64-v3") leaves. A target is found by its description and
   made once; its compiler is opened when something is first compiled with it. Any thread may call
   the functions. */
#ifndef TENON_DEVICE_CORE_DEVICE_TARGET_H
#define TENON_DEVICE_CORE_DEVICE_TARGET_H

#include "device/core/device.h"
#include "target/target.h"

/** A compiler of a device. */
struct device_compiler {
  size_t pair; /* its index among the backend's pairs */
  char *name;  /* as the description has it; NULL: the first that is found */
  mutex lock;  /* of the fields below; of its own, as finding a compiler takes time */
  bool is_open;
  void *handle; /* the backend's */
  device_compiler *next;
};

/** A target. Only the identity of its compiler, which is found out later, ever changes. */
struct device_target {
  tn_device *device;
  size_t pair;
  const tn_renderer *renderer;
  const tn_compiler *compiler;
  device_compiler *opened; /* the compiler itself */
  tn_capabilities caps;
  target target; /* the same capabilities, in the form that code generation reads */
  char *limit;   /* as the description has it; NULL: none */
  device_target *next;
  /* Under opened->lock: the text of the compiler's `key`, and the one that was used until the
     compiler itself was asked; NULL: not known. */
  char *identity, *previous_identity;
  bool is_identity_from_disk;       /* the compiler itself has not been asked */
  const tn_hardware *hardware;      /* stated by the description, in `target`; NULL: the device's */
  const char *stated_identity;      /* by the description; NULL: none */
  bool is_imported;                 /* as the description has it */
  const device_target *alternative; /* as the description has it */
};

/** A description of a target; NULL leaves a choice open. */
typedef struct device_target_desc {
  const char *pair;                   /* "RENDERER/COMPILER"; else the first that is present */
  const char *limit;                  /* as tn_open_desc's `cpu` */
  const char *compiler;               /* as tn_open_desc's */
  const char *pair_from, *limit_from; /* environment variables that messages name; NULL: none */
  /* Facts of the machine in place of the device's, and the identity of the compiler, which is not
     asked then: of kernels that were made elsewhere. */
  const tn_hardware *hardware;
  const char *identity;
  bool is_imported; /* the kernels are those of an exported cache */
  /* Another target of the device, whose plans and kernels are as good where this one has none. */
  const device_target *alternative;
} device_target_desc;

/** TN_OK if a pair is present on this machine; else the reason why not. `compiler` is the name in a
    description. */
tn_status device_target_check_pair(const tn_device *device, size_t pair, const char *compiler,
                                   diag *d);

/** The target of a description (NULL: all choices open). Lives as long as the device. */
tn_status device_target_find(tn_device *device, const device_target_desc *desc,
                             const device_target **target, diag *d);

/** The compiler of a target, opened if it was not. */
tn_status device_target_open_compiler(const device_target *t, void **compiler, diag *d);

/** Frees all targets of a device, and closes its compilers. */
void device_targets_free(tn_device *device);

#endif
