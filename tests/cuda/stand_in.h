/* The form of a "cubin" for the stand-ins of CUDA's driver and of NVRTC: a shared object
   of emulated kernels, the switches for tests, and the streams as the stand-in of cuBLAS uses them.

   STAND_IN_DEVICES      number of devices; default 2
   STAND_IN_CAPABILITY   their compute capability; default 9.0
   STAND_IN_FAIL         CALL:STATUS or CALL:STATUS:N, as "cuLaunchKernel:701": the call fails, the
                         N-th one and later ones; "kernel" is the run of a kernel, and loses the
                         device
   STAND_IN_NCCL         CALL:RESULT, as "ncclAllReduce:2": a function of NCCL fails; "later:6": the
                         communicator tells of a failure after a collective was started; "skip:1":
                         collectives are left out here, so that other processes wait
   STAND_IN_SOURCES      folder in which NVRTC leaves each source that it compiles */
#ifndef TENON_TESTS_CUDA_STAND_IN_H
#define TENON_TESTS_CUDA_STAND_IN_H

#include "device/cuda/cuda_api.h"

#include <stddef.h>
#include <stdint.h>

enum { IMAGE_TARGET_BYTES = 16 };

typedef struct image_head {
  char magic[8]; /* IMAGE_MAGIC */
  char target[IMAGE_TARGET_BYTES];
  uint64_t bytes; /* of the shared object that follows */
} image_head;
#define IMAGE_MAGIC "STANDIN"

/** As STAND_IN_FAIL, for the rest of the process; NULL: nothing fails, and devices that were lost
    are found again. A function of libcuda.so.1. */
void stand_in_fail(const char *fault);

/** Has each kernel take milliseconds more from now on. A function of libcuda.so.1. */
void stand_in_slow_kernels(int ms);

/** Has a stream call a function with a copy of the arguments. A function of libcuda.so.1. */
cuda_status stand_in_call(cuda_stream stream, void (*call)(const void *arguments),
                          const void *arguments, size_t bytes);

/** Has cuBLAS fail from now on, as "Sgemm:13" or "Create:1", or take milliseconds for each product,
    as "slow:5"; NULL: neither. A function of libcublas.so. */
void stand_in_product_fault(const char *fault);

/** The number of products that cuBLAS computed. A function of libcublas.so. */
int stand_in_products(void);

/** The number of collectives that NCCL was handed. A function of libnccl.so. */
int stand_in_collectives(void);

/** The number of calls of NVRTC's nvrtcCompileProgram. A function of libnvrtc.so. */
int stand_in_compilations(void);

#endif
