/* Declares the part of cuBLAS, NVIDIA's library of products of matrices, that is used, and opens it
   at run time. */
#ifndef TENON_DEVICE_CUDA_CUBLAS_API_H
#define TENON_DEVICE_CUDA_CUBLAS_API_H

#include "device/cuda/cuda_api.h"

typedef int cublas_status;
typedef struct cublas_object *cublas_handle;

enum { CUBLAS_PLAIN = 0, CUBLAS_TRANSPOSED = 1 };
enum { CUBLAS_ALLOCATION_FAILED = 3 };

/** The functions that are used. */
typedef struct cublas_api {
#define CUBLAS(text, name, parameters) cublas_status(*name) parameters;
#include "device/cuda/cublas_functions.def"
#undef CUBLAS
} cublas_api;

/** Opens the file that TENON_CUBLAS names, or else the newest version in the first folder that has
   one. TN_ERR_DEVICE with a sentence that says what is missing. */
tn_status cublas_open(cublas_api *blas, diag *d);

#endif
