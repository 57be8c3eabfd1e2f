/* Implements the opening of CUDA's driver, and texts of statuses. */
#include "device/cuda/cuda_api.h"

#include "base/library.h"

#include <stdio.h>

tn_status cuda_api_open(cuda_api *cu, diag *d) {
#define CUDA(name, parameters) "cu" #name,
  static const char *const names[] = {
#include "device/cuda/cuda_functions.def"
  };
#undef CUDA
  enum { FUNCTIONS = sizeof names / sizeof *names };
  static const library driver = {.file = "libcuda.so.1",
                                 .what = "the CUDA driver",
                                 .version = "CUDA 11.1",
                                 .hint = "install NVIDIA's driver (on Debian: apt install "
                                         "nvidia-driver)",
                                 .names = names,
                                 .n_names = FUNCTIONS};
  _Static_assert(sizeof names == sizeof *cu, "a pointer for each name");
  return library_open(&driver, cu, d);
}

bool cuda_status_is_loss(cuda_status status) {
  enum {
    DEINITIALIZED = 4,
    ECC_UNCORRECTABLE = 214,
    NVLINK_UNCORRECTABLE = 220,
    CONTAINED = 226,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_TIMEOUT = 702,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    HARDWARE_STACK_ERROR = 714,
    LAUNCH_FAILED = 719,
    TENSOR_MEMORY_LEAK = 721,
    UNKNOWN = 999
  };
  static const cuda_status losses[] = {DEINITIALIZED,        ECC_UNCORRECTABLE,
                                       NVLINK_UNCORRECTABLE, CONTAINED,
                                       ILLEGAL_ADDRESS,      LAUNCH_TIMEOUT,
                                       CONTEXT_IS_DESTROYED, ASSERT,
                                       TENSOR_MEMORY_LEAK,   UNKNOWN};
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
    if (losses[i] == status) return true;
  return status >= HARDWARE_STACK_ERROR && status <= LAUNCH_FAILED;
}

const char *cuda_status_text(const cuda_api *cu, cuda_status status, char text[CUDA_STATUS_BYTES]) {
  const char *name = NULL, *about = NULL;
  if (cu->GetErrorName(status, &name) || !name) name = "an unknown status";
  if (cu->GetErrorString(status, &about) || !about) about = "";
  snprintf(text, CUDA_STATUS_BYTES, *about ? "%.60s (%.90s)" : "%.60s", name, about);
  return text;
}
