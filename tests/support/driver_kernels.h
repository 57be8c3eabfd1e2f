/* Runs rendered kernels on the first OpenCL device, for tests that compare their results. */
#ifndef TENON_TESTS_SUPPORT_OPENCL_KERNELS_H
#define TENON_TESTS_SUPPORT_OPENCL_KERNELS_H

#include "device/registry/device_registry.h"

typedef struct opencl_kernels {
  registry *registry;
  tn_device *device;
  void *module;
  diag diag;
} opencl_kernels;

/** Opens OPENCL:0; false and the reason in the diag if it cannot be used, or in a build with
    sanitizers, which the drivers are not made for. */
bool opencl_kernels_open(opencl_kernels *k);
void opencl_kernels_close(opencl_kernels *k);

/** Compiles the sources of `n` specs with the capabilities of a target's name ("opencl+double";
    NULL: the device's), and loads the code. */
tn_status opencl_kernels_compile(opencl_kernels *k, const char *target,
                                 const tn_program_spec *const specs[], size_t n);

/** Runs a kernel that is loaded, on copies of the spec's buffers, `groups` groups of `workers`. */
tn_status opencl_kernels_run(opencl_kernels *k, const tn_program_spec *spec, void *const data[],
                             const size_t bytes[], const int64_t values[], int64_t groups,
                             int64_t workers);

#endif
