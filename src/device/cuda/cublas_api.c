/* Implements the opening of cuBLAS. */
#include "device/cuda/cublas_api.h"

#include "base/environment.h"
#include "base/library.h"
#include "device/cuda/find_toolkit.h"

static const char hint[] = "install CUDA's toolkit or its Python package (pip install "
                           "nvidia-cublas-cu12), and set TENON_CUBLAS to the path of "
                           "libcublas.so.12 where it is not found";

tn_status cublas_open(cublas_api *blas, diag *d) {
#define CUBLAS(text, name, parameters) "cublas" text,
  static const char *const names[] = {
#include "device/cuda/cublas_functions.def"
  };
#undef CUBLAS
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  const char *given = environment_get("TENON_CUBLAS");
  char path[TOOLKIT_PATH_BYTES];
  if (!toolkit_find(path, given, files, sizeof files / sizeof *files))
    return diag_set(d, TN_ERR_DEVICE, "cuBLAS is missing (%s): %s",
                    given ? given : "libcublas.so.13, 12 or 11", hint);
  const library l = {.file = path,
                     .what = "cuBLAS",
                     .version = "CUDA 11.0",
                     .hint = hint,
                     .names = names,
                     .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof *blas, "a pointer for each name");
  return library_open(&l, blas, d);
}
