/* The CPU device, as both of its renderer/compiler pairs see it. */
#ifndef TENON_DEVICE_CPU_CPU_DEVICE_H
#define TENON_DEVICE_CPU_CPU_DEVICE_H

#include "base/mem.h"
#include "base/str.h"
#include "device/cpu/c_compiler.h"
#include "ir/core/tensor_rows.h"

#include <tenon/unstable/backend.h>

/* The kernels of a library that is built with a sanitizer are instrumented too, by the C compiler.
 */
#if defined(__SANITIZE_ADDRESS__)
#define CPU_INSTRUMENT CC_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define CPU_INSTRUMENT CC_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CPU_INSTRUMENT CC_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define CPU_INSTRUMENT CC_THREAD_SANITIZER
#endif
#endif
#ifndef CPU_INSTRUMENT
#define CPU_INSTRUMENT CC_NO_SANITIZER
#endif

/** A device. All CPU devices are the same processor. */
typedef struct cpu {
  mem mem;
  tn_host host;
  /* Ops that a target lacks, by its set of TENSOR_ROWs: first fma, which only some levels lack;
     then other rows; then those that some renderer has no form of. */
  const char *lacks[1 << TENSOR_LONE_OPS][OP_LIMIT + 2];
} cpu;

/** Capabilities, which the pairs share: so they get the same programs. */
tn_status cpu_describe(void *device, const char *limit, tn_capabilities *caps, tn_failure *f);

/* The pair llvm/llvm. */
extern const tn_renderer llvm_renderer;
extern const tn_compiler llvm_compiler;
tn_status llvm_present(void *device, const char *compiler, tn_failure *f); /* of tn_pair */

#endif
