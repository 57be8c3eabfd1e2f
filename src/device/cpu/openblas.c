/* Implements products by OpenBLAS, of which the declarations here are our own. Its own threads are
   set to one for the process once a product is loaded: the matrices of a batch, or else blocks of
   rows or columns of the result, are calls of their own on the host's threads, whose number the
   context decides and which spin between kernels. */
#include "device/cpu/openblas.h"

#include "base/environment.h"
#include "base/library.h"
#include "device/program/product.h"

#include <pthread.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

/** Multiplications that a thread is woken for. */
enum { LEAST_WORK = 1 << 18 };

/** Rows or columns of blocks of the result are multiples of this. */
enum { BLOCK = 16 };

typedef struct openblas_api {
  void (*set_num_threads)(int n);
  void (*sgemm)(int order, int left, int right, int m, int n, int k, float alpha, const float *a,
                int a_pitch, const float *b, int b_pitch, float beta, float *c, int c_pitch);
  void (*dgemm)(int order, int left, int right, int m, int n, int k, double alpha, const double *a,
                int a_pitch, const double *b, int b_pitch, double beta, double *c, int c_pitch);
} openblas_api;

/** The library, of which a process has one, with one number of threads. */
static struct {
  pthread_mutex_t lock; /* of the others */
  bool is_open;
  openblas_api api;
} openblas_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tn_status find_library(diag *d) {
  static const char *const names[] = {"openblas_set_num_threads", "cblas_sgemm", "cblas_dgemm"};
  const char *given = environment_get("TENON_OPENBLAS");
  const library l = {.file = given ? given : "libopenblas.so.0",
                     .what = "OpenBLAS",
                     .version = "OpenBLAS 0.3",
                     .hint =
                         "install it (on Debian: apt install libopenblas0), or name its file in "
                         "TENON_OPENBLAS",
                     .names = names,
                     .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof openblas_process.api, "a pointer for each name");
  return library_open(&l, &openblas_process.api, d);
}

tn_status openblas_open(void *device, tn_failure *f) {
  (void)device;
  diag d = {0};
  pthread_mutex_lock(&openblas_process.lock);
  tn_status status = openblas_process.is_open ? TN_OK : find_library(&d);
  openblas_process.is_open = !status;
  pthread_mutex_unlock(&openblas_process.lock);
  if (status) *f = d.failure;
  return status;
}

tn_status openblas_load(tn_failure *f) {
  tn_status status = openblas_open(NULL, f);
  if (!status) openblas_process.api.set_num_threads(1);
  return status;
}

/** A product, divided into parts that threads take. */
typedef struct division {
  const tn_product *product;
  char *at[3]; /* first bytes of the buffers of out, left, right */
  bool is_by_rows;
  int64_t blocks, block; /* of one matrix: their number, and rows or columns of each */
  int64_t parts, workers;
} division;

static char *element(const division *v, int which, int64_t index) {
  return v->at[which] + index * product_element_bytes(v->product);
}

/** Computes rows or columns of one matrix of the batch, from `first` on. */
static void run_block(const division *v, int64_t batch, int64_t first, int64_t size) {
  const tn_product *p = v->product;
  bool swaps_left, swaps_right;
  int left_pitch = (int)product_pitch(&p->left, &swaps_left),
      right_pitch = (int)product_pitch(&p->right, &swaps_right), pitch = (int)p->out.row;
  int64_t row = v->is_by_rows ? first : 0, column = v->is_by_rows ? 0 : first;
  int m = (int)(v->is_by_rows ? size : p->m), n = (int)(v->is_by_rows ? p->n : size);
  void *out = element(v, 0, product_start(p, &p->out, batch) + row * p->out.row + column);
  const void *left = element(v, 1, product_start(p, &p->left, batch) + row * p->left.row);
  const void *right = element(v, 2, product_start(p, &p->right, batch) + column * p->right.column);
  int left_form = swaps_left ? TRANSPOSED : PLAIN, right_form = swaps_right ? TRANSPOSED : PLAIN;
  const openblas_api *api = &openblas_process.api;
  if (p->dtype == TN_F64)
    api->dgemm(ROW_MAJOR, left_form, right_form, m, n, (int)p->k, 1, left, left_pitch, right,
               right_pitch, 0, out, pitch);
  else
    api->sgemm(ROW_MAJOR, left_form, right_form, m, n, (int)p->k, 1, left, left_pitch, right,
               right_pitch, 0, out, pitch);
}

/** A worker takes every `workers`-th part. */
static void run_worker(void *arg, size_t number) {
  const division *v = arg;
  int64_t length = v->is_by_rows ? v->product->m : v->product->n;
  for (int64_t i = (int64_t)number; i < v->parts; i += v->workers) {
    int64_t first = i % v->blocks * v->block, left = length - first;
    if (left > 0) run_block(v, i / v->blocks, first, left < v->block ? left : v->block);
  }
}

/** Divides a product for as many threads as its work is worth. */
static void divide(division *v, int64_t threads) {
  const tn_product *p = v->product;
  int64_t batch = product_batch_size(p), length = p->m > p->n ? p->m : p->n;
  double work = (double)batch * (double)p->m * (double)p->n * (double)p->k / LEAST_WORK;
  if (work < (double)threads) threads = work < 1 ? 1 : (int64_t)work;
  v->is_by_rows = p->m >= p->n;
  int64_t pieces = batch >= threads ? 1 : (threads + batch - 1) / batch;
  v->block = ((length + pieces - 1) / pieces + BLOCK - 1) / BLOCK * BLOCK;
  v->blocks = (length + v->block - 1) / v->block;
  v->parts = batch * v->blocks;
  v->workers = threads < v->parts ? threads : v->parts;
}

tn_status openblas_run(const cpu *c, const tn_product *p, const tn_launch *l, tn_failure *f) {
  tn_status status = product_check_launch(p, l, f);
  if (status) return status;
  const int64_t buffers[] = {p->out.buffer, p->left.buffer, p->right.buffer};
  division v = {.product = p};
  for (int i = 0; i < 3; i++)
    v.at[i] = (char *)l->buffers[buffers[i]].memory + l->buffers[buffers[i]].offset;
  divide(&v, c->host.threads);
  if (v.workers == 1)
    run_worker(&v, 0);
  else
    c->host.workers.run(c->host.workers.user, run_worker, &v, (size_t)v.workers);
  return TN_OK;
}

const tn_product_library openblas_products = {
    .size = sizeof openblas_products, .name = "openblas", .is_usual = false, .open = openblas_open};
