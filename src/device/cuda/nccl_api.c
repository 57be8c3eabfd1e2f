/* Implements the opening of NCCL, and names of its results. */
#include "device/cuda/nccl_api.h"

#include "base/environment.h"
#include "base/library.h"
#include "device/cuda/find_toolkit.h"

static const char hint[] = "install it (on Debian: NVIDIA's package libnccl2, or pip install "
                           "nvidia-nccl-cu12), and set TENON_NCCL to the path of libnccl.so.2 "
                           "where it is not found";

tn_status nccl_open(nccl_api *nccl, diag *d) {
#define NCCL(name, result, parameters) "nccl" #name,
  static const char *const names[] = {
#include "device/cuda/nccl_functions.def"
  };
  static const char *const files[] = {"libnccl.so.2"};
  const char *given = environment_get("TENON_NCCL");
  char path[TOOLKIT_PATH_BYTES];
  if (!toolkit_find(path, given, files, sizeof files / sizeof *files))
    return diag_set(d, TN_ERR_DEVICE, "NCCL is missing (%s): %s", given ? given : files[0], hint);
  const library l = {.file = path,
                     .what = "NCCL",
                     .version = "NCCL 2.14",
                     .hint = hint,
                     .names = names,
                     .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof *nccl, "a pointer for each name");
  return library_open(&l, nccl, d);
}

const char *nccl_result_name(nccl_result r) {
  static const struct {
    nccl_result number;
    const char *name;
  } results[] = {
#define NCCL_RESULT(number, name) {number, name},
#include "device/cuda/nccl_functions.def"
  };
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (results[i].number == r) return results[i].name;
  return "an unknown result";
}
