/* Times products of square matrices of f32 by CLBlast on the first OpenCL device, to compare with
   `tenon bench matmul:NxNxN --device OPENCL`, which copies operands and result as well:

     cmake --preset release -DTENON_BENCH=ON
     cmake --build --preset release --target clblast_bench
     build/release/bench/clblast_bench 512 1024

   Prints a line for each size: the best time of as many runs as fit in a second, 10 at least. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct device {
  cl_context context;
  cl_command_queue queue;
} device;

static bool open_device(device *d) {
  cl_platform_id platform;
  cl_device_id id;
  cl_int status;
  if (clGetPlatformIDs(1, &platform, NULL) ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL))
    return false;
  d->context = clCreateContext(NULL, 1, &id, NULL, NULL, &status);
  if (!status) d->queue = clCreateCommandQueue(d->context, id, 0, &status);
  return !status;
}

/** A square matrix of ones; NULL: no memory. */
static cl_mem make_matrix(const device *d, size_t n) {
  cl_int status;
  size_t bytes = n * n * sizeof(float);
  float *ones = malloc(bytes);
  for (size_t i = 0; ones && i < n * n; i++) ones[i] = 1;
  cl_mem made =
      ones ? clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, bytes, ones, &status) : NULL;
  free(ones);
  return made;
}

/** Seconds of a product; < 0: it failed. */
static double time_product(device *d, size_t n, cl_mem a, cl_mem b, cl_mem c) {
  int64_t start = bench_now();
  if (CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, 1, a, 0,
                   n, b, 0, n, 0, c, 0, n, &d->queue, NULL) ||
      clFinish(d->queue))
    return -1;
  return (double)(bench_now() - start) * 1e-9;
}

static bool time_size(device *d, size_t n) {
  enum { LEAST_RUNS = 10 };
  cl_mem a = make_matrix(d, n), b = make_matrix(d, n), c = make_matrix(d, n);
  double best = a && b && c ? time_product(d, n, a, b, c) : -1, all = 0;
  for (int i = 0; best >= 0 && (i < LEAST_RUNS || all < 1); i++) {
    double seconds = time_product(d, n, a, b, c);
    all += seconds;
    if (seconds < best) best = seconds;
  }
  if (best > 0)
    printf("%zux%zux%zu  %.3f ms  %.1f GFLOP/s\n", n, n, n, best * 1e3,
           2.0 * (double)n * (double)n * (double)n / best * 1e-9);
  for (int i = 0; i < 3; i++)
    if ((cl_mem[]){a, b, c}[i]) clReleaseMemObject((cl_mem[]){a, b, c}[i]);
  return best > 0;
}

int main(int count, char **arguments) {
  device d = {0};
  if (!open_device(&d)) {
    fprintf(stderr, "clblast_bench: there is no OpenCL device\n");
    return 1;
  }
  for (int i = 1; i < count; i++) {
    char *end;
    size_t n = strtoul(arguments[i], &end, 10);
    if (*end || !n || !time_size(&d, n)) {
      fprintf(stderr, "clblast_bench: no product of size %s\n", arguments[i]);
      return 1;
    }
  }
  return 0;
}
