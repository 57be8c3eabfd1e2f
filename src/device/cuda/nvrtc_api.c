/* Implements the search for NVRTC, and its opening. */
#include "device/cuda/nvrtc_api.h"

static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

static const toolkit_library nvrtc = {
    .what = "NVRTC, the compiler of CUDA C,",
    .variable = "TENON_NVRTC",
    .files = files,
    .n_files = sizeof files / sizeof *files,
    .shown = "libnvrtc.so.13, 12 or 11.2",
    .version = "CUDA 11.1",
    .hint =
        "install CUDA's toolkit or its Python package (pip install nvidia-cuda-nvrtc-cu12), and "
        "set TENON_NVRTC to the path of libnvrtc.so.12 where it is not found",
    .missing = TN_ERR_COMPILE};

tn_status nvrtc_find(char path[TOOLKIT_PATH_BYTES], diag *d) {
  return toolkit_find(&nvrtc, path, d);
}

tn_status nvrtc_open(nvrtc_api *rtc, diag *d) {
#define NVRTC(name, result, parameters) "nvrtc" #name,
  static const char *const names[] = {
#include "device/cuda/nvrtc_functions.def"
  };
#undef NVRTC
  _Static_assert(sizeof names == sizeof *rtc, "a pointer for each name");
  return toolkit_open(&nvrtc, names, sizeof names / sizeof *names, rtc, d);
}
