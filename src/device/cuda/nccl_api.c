/* Implements the opening of NCCL, and names of its results. */
#include "device/cuda/nccl_api.h"

#include "device/cuda/find_toolkit.h"

tn_status nccl_open(nccl_api *nccl, diag *d) {
#define NCCL(name, result, parameters) "nccl" #name,
  static const char *const names[] = {
#include "device/cuda/nccl_functions.def"
  };
  static const char *const files[] = {"libnccl.so.2"};
  static const toolkit_library library = {
      .what = "NCCL",
      .variable = "TENON_NCCL",
      .files = files,
      .n_files = sizeof files / sizeof *files,
      .shown = "libnccl.so.2",
      .version = "NCCL 2.14",
      .hint = "install it (on Debian: NVIDIA's package libnccl2, or pip install nvidia-nccl-cu12), "
              "and set TENON_NCCL to the path of libnccl.so.2 where it is not found",
      .missing = TN_ERR_DEVICE};
  _Static_assert(sizeof names == sizeof *nccl, "a pointer for each name");
  return toolkit_open(&library, names, sizeof names / sizeof *names, nccl, d);
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
