/* Stands in for cuBLAS, libcublas.so.12: products by plain loops, in the order of the stand-in
   driver's streams. Matrices are stored by columns. */
#include "device/cuda/cublas_api.h"
#include "stand_in.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cublas_status cublasCreate_v2(cublas_handle *h);
cublas_status cublasDestroy_v2(cublas_handle h);
cublas_status cublasSetStream_v2(cublas_handle h, cuda_stream stream);
cublas_status cublasSgemmStridedBatched(cublas_handle h, int a_form, int b_form, int m, int n,
                                        int k, const float *alpha, const float *a, int a_pitch,
                                        long long a_step, const float *b, int b_pitch,
                                        long long b_step, const float *beta, float *c, int c_pitch,
                                        long long c_step, int batch);
cublas_status cublasDgemmStridedBatched(cublas_handle h, int a_form, int b_form, int m, int n,
                                        int k, const double *alpha, const double *a, int a_pitch,
                                        long long a_step, const double *b, int b_pitch,
                                        long long b_step, const double *beta, double *c,
                                        int c_pitch, long long c_step, int batch);

enum { INVALID_VALUE = 7 };

struct cublas_object {
  cuda_stream stream;
};

static atomic_int products;

/** The fault that stand_in_product_fault set between runs; runs read it. */
static struct {
  char call[32];
  int number; /* the status, or milliseconds */
} fault;

void stand_in_product_fault(const char *text) {
  fault.call[0] = 0;
  if (text && sscanf(text, "%31[^:]:%d", fault.call, &fault.number) != 2) fault.call[0] = 0;
}

/** The number of the fault that a call has; 0: none. */
static int fault_of(const char *call) { return strcmp(fault.call, call) ? 0 : fault.number; }

int stand_in_products(void) { return products; }

cublas_status cublasCreate_v2(cublas_handle *h) {
  if (fault_of("Create")) return fault_of("Create");
  *h = calloc(1, sizeof **h);
  return *h ? 0 : CUBLAS_ALLOCATION_FAILED;
}

cublas_status cublasDestroy_v2(cublas_handle h) {
  free(h);
  return 0;
}

cublas_status cublasSetStream_v2(cublas_handle h, cuda_stream stream) {
  if (fault_of("SetStream")) return fault_of("SetStream");
  h->stream = stream;
  return 0;
}

/** Arguments of a product; elements are at i · row + j · column. */
typedef struct product {
  const void *a, *b;
  void *c;
  size_t a_row, a_column, b_row, b_column, c_pitch;
  long long a_step, b_step, c_step;
  int m, n, k, batch, ms; /* ms: of a pause before */
} product;

#define MULTIPLY(name, type)                                                                     \
  static void name(const void *arguments) {                                                      \
    const product *p = arguments;                                                                \
    usleep((unsigned)p->ms * 1000);                                                              \
    for (int s = 0; s < p->batch; s++)                                                           \
      for (int i = 0; i < p->m; i++)                                                             \
        for (int j = 0; j < p->n; j++) {                                                         \
          const type *a = (const type *)p->a + s * p->a_step + (size_t)i * p->a_row;             \
          const type *b = (const type *)p->b + s * p->b_step + (size_t)j * p->b_column;          \
          type sum = 0;                                                                          \
          for (size_t t = 0; t < (size_t)p->k; t++) sum += a[t * p->a_column] * b[t * p->b_row]; \
          ((type *)p->c)[s * p->c_step + i + (long long)((size_t)j * p->c_pitch)] = sum;         \
        }                                                                                        \
  }

MULTIPLY(multiply_f32, float)
MULTIPLY(multiply_f64, double)

#define GEMM(name, call, type, multiply)                                                         \
  cublas_status name(cublas_handle h, int a_form, int b_form, int m, int n, int k,               \
                     const type *alpha, const type *a, int a_pitch, long long a_step,            \
                     const type *b, int b_pitch, long long b_step, const type *beta, type *c,    \
                     int c_pitch, long long c_step, int batch) {                                 \
    bool swaps_a = a_form == CUBLAS_TRANSPOSED, swaps_b = b_form == CUBLAS_TRANSPOSED;           \
    if (*alpha != 1 || *beta != 0 || !h->stream || c_pitch < m || a_pitch < (swaps_a ? k : m) || \
        b_pitch < (swaps_b ? n : k))                                                             \
      return INVALID_VALUE;                                                                      \
    if (fault_of(call)) return fault_of(call);                                                   \
    const size_t a_far = (size_t)a_pitch, b_far = (size_t)b_pitch;                               \
    const product p = {a,                                                                        \
                       b,                                                                        \
                       c,                                                                        \
                       swaps_a ? a_far : 1,                                                      \
                       swaps_a ? 1 : a_far,                                                      \
                       swaps_b ? b_far : 1,                                                      \
                       swaps_b ? 1 : b_far,                                                      \
                       (size_t)c_pitch,                                                          \
                       a_step,                                                                   \
                       b_step,                                                                   \
                       c_step,                                                                   \
                       m,                                                                        \
                       n,                                                                        \
                       k,                                                                        \
                       batch,                                                                    \
                       fault_of("slow")};                                                        \
    products++;                                                                                  \
    return stand_in_call(h->stream, multiply, &p, sizeof p) ? INVALID_VALUE : 0;                 \
  }

GEMM(cublasSgemmStridedBatched, "Sgemm", float, multiply_f32)
GEMM(cublasDgemmStridedBatched, "Dgemm", double, multiply_f64)
