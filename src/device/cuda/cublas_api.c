/* Implements the opening of cuBLAS. */
#include "device/cuda/cublas_api.h"

#include "device/cuda/find_toolkit.h"

tn_status cublas_open(cublas_api *blas, diag *d) {
#define CUBLAS(text, name, parameters) "cublas" text,
  static const char *const names[] = {
#include "device/cuda/cublas_functions.def"
  };
#undef CUBLAS
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  static const toolkit_library cublas = {
      .what = "cuBLAS",
      .variable = "TENON_CUBLAS",
      .files = files,
      .n_files = sizeof files / sizeof *files,
      .shown = "libcublas.so.13, 12 or 11",
      .version = "CUDA 11.0",
      .hint = "install CUDA's toolkit or its Python package (pip install nvidia-cublas-cu12), and "
              "set TENON_CUBLAS to the path of libcublas.so.12 where it is not found",
      .missing = TN_ERR_DEVICE};
  _Static_assert(sizeof names == sizeof *blas, "a pointer for each name");
  return toolkit_open(&cublas, names, sizeof names / sizeof *names, blas, d);
}
