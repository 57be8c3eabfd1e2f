/* A stand-in for OpenBLAS, by plain loops: tests of calls of libraries need no OpenBLAS, and see
   how often and by how many threads it is called. */
#define _DEFAULT_SOURCE /* usleep */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

void openblas_set_num_threads(int n);
int stand_in_threads(void);
int stand_in_calls(void);
void stand_in_product_fault(const char *fault);
void cblas_sgemm(int order, int left, int right, int m, int n, int k, float alpha, const float *a,
                 int a_pitch, const float *b, int b_pitch, float beta, float *c, int c_pitch);
void cblas_dgemm(int order, int left, int right, int m, int n, int k, double alpha, const double *a,
                 int a_pitch, const double *b, int b_pitch, double beta, double *c, int c_pitch);

enum { ROW_MAJOR = 101, TRANSPOSED = 112 };

static atomic_int calls, threads, pause_ms;

void openblas_set_num_threads(int n) { threads = n; }

/** The last number of threads that was set. */
int stand_in_threads(void) { return threads; }

/** Calls so far. */
int stand_in_calls(void) { return calls; }

/** Has each call take milliseconds from now on, as "slow:5"; NULL: not. */
void stand_in_product_fault(const char *fault) {
  int ms;
  pause_ms = fault && sscanf(fault, "slow:%d", &ms) == 1 ? ms : 0;
}

#define GEMM(name, type)                                                                    \
  void name(int order, int left, int right, int m, int n, int k, type alpha, const type *a, \
            int a_pitch, const type *b, int b_pitch, type beta, type *c, int c_pitch) {     \
    calls++;                                                                                \
    usleep((unsigned)pause_ms * 1000);                                                      \
    for (int i = 0; i < m && order == ROW_MAJOR && !beta; i++)                              \
      for (int j = 0; j < n; j++) {                                                         \
        type sum = 0;                                                                       \
        for (int t = 0; t < k; t++)                                                         \
          sum += a[left == TRANSPOSED ? t * a_pitch + i : i * a_pitch + t] *                \
                 b[right == TRANSPOSED ? j * b_pitch + t : t * b_pitch + j];                \
        c[i * c_pitch + j] = alpha * sum;                                                   \
      }                                                                                     \
  }

GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
