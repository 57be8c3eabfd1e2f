/* Implements the search for NVRTC, and its opening. */
#include "device/cuda/nvrtc_api.h"

#include "base/environment.h"
#include "base/library.h"

static const char hint[] = "install CUDA's toolkit or its Python package (pip install "
                           "nvidia-cuda-nvrtc-cu12), and set TENON_NVRTC to the path of "
                           "libnvrtc.so.12 where it is not found";

tn_status nvrtc_find(char path[NVRTC_PATH_BYTES], diag *d) {
  static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  const char *given = environment_get("TENON_NVRTC");
  diag_clear(d);
  if (toolkit_find(path, given, files, sizeof files / sizeof *files)) return TN_OK;
  return diag_set(d, TN_ERR_COMPILE, "NVRTC, the compiler of CUDA C, is missing (%s): %s",
                  given ? given : "libnvrtc.so.13, 12 or 11.2", hint);
}

tn_status nvrtc_open(nvrtc_api *rtc, diag *d) {
#define NVRTC(name, result, parameters) "nvrtc" #name,
  static const char *const names[] = {
#include "device/cuda/nvrtc_functions.def"
  };
#undef NVRTC
  enum { FUNCTIONS = sizeof names / sizeof *names };
  char path[NVRTC_PATH_BYTES];
  tn_status status = nvrtc_find(path, d);
  if (status) return status;
  const library l = {.file = path,
                     .what = "NVRTC, the compiler of CUDA C,",
                     .version = "CUDA 11.1",
                     .hint = hint,
                     .names = names,
                     .n_names = FUNCTIONS};
  _Static_assert(sizeof names == sizeof *rtc, "a pointer for each name");
  return library_open(&l, rtc, d);
}
