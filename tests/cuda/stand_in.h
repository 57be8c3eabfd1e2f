/* The form of a "cubin" for the stand-ins of CUDA's driver and of NVRTC: a shared object
   of emulated kernels, and the switches for tests.

   STAND_IN_DEVICES      number of devices; default 2
   STAND_IN_CAPABILITY   their compute capability; default 9.0
   STAND_IN_FAIL         CALL:STATUS or CALL:STATUS:N, as "cuLaunchKernel:701": the call fails, the
                         N-th one and later ones; "kernel" is the run of a kernel, and loses the
                         device
   STAND_IN_SOURCES      folder in which NVRTC leaves each source that it compiles */
#ifndef TENON_TESTS_CUDA_STAND_IN_H
#define TENON_TESTS_CUDA_STAND_IN_H

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

/** The number of calls of NVRTC's nvrtcCompileProgram. A function of libnvrtc.so. */
int stand_in_compilations(void);

#endif
