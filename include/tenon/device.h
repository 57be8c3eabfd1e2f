/* Describes devices, which are named by strings: "CPU", "OPENCL:1", and the host's processor and
   compilers. CPU:1 to CPU:15 are further devices on the one processor that CPU, or CPU:0, is: for
   programs of several devices. They are not listed. */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Device and target that a context compiles for. Strings live as long as the context. */
typedef struct tn_context_info {
  size_t size;           /**< sizeof(tn_context_info), set by the caller */
  const char *device;    /**< name of the device: "CPU:0" */
  const char *target;    /**< instruction set of kernels: "x86-64-v3" */
  uint32_t vector_bytes; /**< width of the widest vector; 0: scalars only */
  int32_t threads;       /**< largest number of tasks that a kernel is divided into */
  bool computes;         /**< false: a test device, whose results and times are meaningless */
} tn_context_info;

#define TN_CONTEXT_INFO_INIT \
  { sizeof(tn_context_info), NULL, NULL, 0, 0, false }

/** Describes the device and target of a context; starts no compiler. Returns the failure of a
    context that failed to open, *info unchanged; so a call after tn_open tells whether the context
    is usable. */
TN_API tn_status tn_context_get(tn_context *context, tn_context_info *info);

/** The host's processor. Numbers are 0 where the system does not provide them. Strings live as long
    as the context. */
typedef struct tn_processor_info {
  size_t size;          /**< sizeof(tn_processor_info), set by the caller */
  const char *name;     /**< model name; "unknown" if the system provides none */
  const char *features; /**< instruction sets, separated by spaces: "avx avx2 fma" */
  const char *level; /**< instruction set of kernels, "x86-64-v3": the processor's highest that is
                        not above `limit` */
  const char *limit; /**< `cpu` of the context; NULL: no limit */
  uint32_t vector_bytes;       /**< width of the level's vectors */
  uint32_t cores, threads;     /**< physical and logical cores of the machine */
  uint32_t usable_cores;       /**< physical cores that this process may use */
  uint64_t l1_bytes, l2_bytes; /**< L1 data cache and L2 cache of one core */
  uint64_t l3_bytes;           /**< one last-level cache */
  uint32_t l3_cores;           /**< cores that share one last-level cache */
  uint32_t line_bytes;         /**< a cache line */
  uint64_t last_cache_bytes;   /**< all last-level caches together; a typical size if unknown */
} tn_processor_info;

#define TN_PROCESSOR_INFO_INIT \
  { sizeof(tn_processor_info), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Describes the processor. Also works in a context that failed to open. */
TN_API tn_status tn_processor_get(tn_context *context, tn_processor_info *info);

/** A compiler of this machine. Strings live as long as the context. */
typedef struct tn_compiler_info {
  size_t size;         /**< sizeof(tn_compiler_info), set by the caller */
  const char *path;    /**< path of its program, or of the LLVM module */
  const char *version; /**< first line of its output for --version; "LLVM 19.1.7" */
  bool used;           /**< true: the context compiles kernels with it */
} tn_compiler_info;

#define TN_COMPILER_INFO_INIT \
  { sizeof(tn_compiler_info), NULL, NULL, false }

/** Describes the `i`-th compiler: first the one in use, if any, then gcc and clang where they are
    other programs on the PATH, and LLVM where its module is found. The first call of a context
    starts each of them, and loads LLVM, to learn its version. Also works in a context that failed
   to open. TN_ERR_ARGUMENT past the last; *info and the message are then unchanged, so that a loop
   can end there. */
TN_API tn_status tn_compiler_get(tn_context *context, size_t i, tn_compiler_info *info);

/** A device that this library knows. Strings live as long as the context. */
typedef struct tn_device_info {
  size_t size;        /**< sizeof(tn_device_info), set by the caller */
  const char *name;   /**< as in tn_open_desc */
  const char *about;  /**< description for people: model, features */
  const char *absent; /**< why it cannot be used; NULL: it can */
  const char *pairs;  /**< its usable pairs of renderer and compiler, the default first, each as in
                         tn_open_desc, separated by spaces; "" with `absent` NULL: it has no
                         compiler, but runs kernels of the cache */
  uint64_t bytes;     /**< size of its memory; 0: unknown */
  const char *absent_pairs; /**< its other pairs, one a line, each followed by ": " and the reason
                               why it cannot be used; "": none */
  const char
      *queues; /**< who works through its queues: "the device", or "threads of this process" */
  const char *copies; /**< how data gets to it: "host memory is used in place", "directly, to memory
                          that the host addresses", "through staging memory", or "through staging
                          memory; host memory is used in place where the device is the
                          processor"; and "directly between its devices" where it is so */
  const char
      *library; /**< its library of products of matrices (tn_open_desc's `vendor`), followed by
                   ": " and the reason if it cannot be used; "": none */
} tn_device_info;

#define TN_DEVICE_INFO_INIT \
  { sizeof(tn_device_info), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL }

/** Describes the `i`-th device, the CPU first; absent devices are listed too, and looked for again
    in each call. TN_ERR_ARGUMENT past the last; *info and the message are then unchanged, so that a
    loop can end there. */
TN_API tn_status tn_device_get(tn_context *context, size_t i, tn_device_info *info);

#ifdef __cplusplus
}
#endif
#endif
