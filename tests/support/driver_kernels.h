/* Runs rendered kernels on the first device of a backend with a maker's driver, for tests that
   compare their results. */
#ifndef TENON_TESTS_SUPPORT_DRIVER_KERNELS_H
#define TENON_TESTS_SUPPORT_DRIVER_KERNELS_H

#include "device/registry/device_registry.h"

typedef struct driver_kernels {
  const tn_backend *backend;
  registry *registry;
  tn_device *device;
  void *module;
  diag diag;
} driver_kernels;

/** Opens the first device; false and the reason in the diag if it cannot be used, or in a build
   with sanitizers, which the drivers are not made for. */
bool driver_kernels_open(driver_kernels *k, const tn_backend *backend);
void driver_kernels_close(driver_kernels *k);

/** Compiles the sources of `n` specs with the capabilities of a target's name ("opencl+double";
    NULL: the device's), and loads the code. */
tn_status driver_kernels_compile(driver_kernels *k, const char *target,
                                 const tn_program_spec *const specs[], size_t n);

/** Runs a kernel that is loaded, on copies of the spec's buffers, `groups` groups of `workers`. */
tn_status driver_kernels_run(driver_kernels *k, const tn_program_spec *spec, void *const data[],
                             const size_t bytes[], const int64_t values[], int64_t groups,
                             int64_t workers);

#endif
