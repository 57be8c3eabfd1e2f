/* Implements the search for NVRTC, and its opening. */
#include "device/cuda/nvrtc_api.h"

#include "base/environment.h"
#include "base/library.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char hint[] = "install CUDA's toolkit or its Python package (pip install "
                           "nvidia-cuda-nvrtc-cu12), and set TENON_NVRTC to the path of "
                           "libnvrtc.so.12 where it is not found";

/** Finds a version in the folder of `n` characters. */
static bool find_in(char path[NVRTC_PATH_BYTES], const char *folder, size_t n) {
  static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  if (!n || n > NVRTC_PATH_BYTES / 2) return false;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, NVRTC_PATH_BYTES, "%.*s/%s", (int)n, folder, files[i]);
    if (!access(path, R_OK)) return true;
  }
  return false;
}

/** Finds it in a list of folders with colons between. */
static bool find_along(char path[NVRTC_PATH_BYTES], const char *list) {
  while (list && *list) {
    size_t n = strcspn(list, ":");
    if (find_in(path, list, n)) return true;
    list += n + (list[n] == ':');
  }
  return false;
}

tn_status nvrtc_find(char path[NVRTC_PATH_BYTES], diag *d) {
  static const char usual[] =
      "/usr/local/cuda/lib64:/usr/local/cuda/lib:/opt/cuda/lib64:/usr/lib/x86_64-linux-gnu:"
      "/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib";
  const char *given = environment_get("TENON_NVRTC");
  diag_clear(d);
  if (given && snprintf(path, NVRTC_PATH_BYTES, "%s", given) < NVRTC_PATH_BYTES &&
      !access(path, R_OK))
    return TN_OK;
  if (!given && (find_along(path, environment_get("LD_LIBRARY_PATH")) || find_along(path, usual)))
    return TN_OK;
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
