/* Implements products of matrices by cuBLAS. Each stream has a handle of its own, made with its
   first product, as a handle is of one stream at a time. cuBLAS stores matrices by columns: of
   ours, which are by rows, it sees the transposed ones, and computes the product's transposed as
   the right factor times the left one. */
#include "device/cuda/cuda_device.h"
#include "device/program/product.h"

#include <stdio.h>

static tn_status open_library(void *device, tn_failure *f) {
  cuda_device *v = device;
  diag d = {0};
  mutex_lock(&v->lock);
  tn_status status = v->has_blas ? TN_OK : cublas_open(&v->blas, &d);
  v->has_blas = !status;
  mutex_unlock(&v->lock);
  if (status) *f = d.failure;
  return status;
}

/** Fails a call of cuBLAS, whose statuses do not tell whether the device is lost: the driver is
    asked, which repeats the status of a loss for ever. */
static tn_status fail(cuda_device *v, cuda_stream stream, const char *call, cublas_status s,
                      tn_failure *f) {
  cuda_status known = v->cu.StreamQuery(stream);
  char text[80];
  snprintf(text, sizeof text, "cublas%s", call);
  if (cuda_status_is_loss(known)) return cuda_fail(v, text, known, TN_ERR_DEVICE, f);
  return tn_fail(f, s == CUBLAS_ALLOCATION_FAILED ? TN_ERR_MEMORY : TN_ERR_UNSUPPORTED,
                 "CUDA:%d (%s): %s fails with status %d of cuBLAS (TENON_VENDOR=off has kernels "
                 "compiled in its place)",
                 (int)v->index, v->facts.name, text, (int)s);
}

/** A product with the addresses of its buffers. */
typedef struct call {
  const cublas_api *blas;
  cublas_handle handle;
  const tn_product *product;
  cuda_address out, left, right;
} call;

static void *matrix_at(const call *c, cuda_address buffer, const tn_product_matrix *x, int64_t at) {
  int64_t start = product_start(c->product, x, at);
  return (void *)(uintptr_t)(buffer + (cuda_address)(start * product_element_bytes(c->product)));
}

/** Computes the matrices of the first size of the batch, from the `at`-th on. */
static cublas_status run_batch(const call *c, int64_t at) {
  static const float one = 1, zero = 0;
  static const double one64 = 1, zero64 = 0;
  const tn_product *p = c->product;
  bool swaps_left, swaps_right;
  int left_pitch = (int)product_pitch(&p->left, &swaps_left),
      right_pitch = (int)product_pitch(&p->right, &swaps_right), pitch = (int)p->out.row;
  int left_form = swaps_left ? CUBLAS_TRANSPOSED : CUBLAS_PLAIN,
      right_form = swaps_right ? CUBLAS_TRANSPOSED : CUBLAS_PLAIN;
  int m = (int)p->m, n = (int)p->n, k = (int)p->k, batch = (int)p->batch[0];
  void *out = matrix_at(c, c->out, &p->out, at);
  const void *left = matrix_at(c, c->left, &p->left, at),
             *right = matrix_at(c, c->right, &p->right, at);
  long long from_left = p->left.batch[0], from_right = p->right.batch[0], to = p->out.batch[0];
  if (p->dtype == TN_F64)
    return c->blas->DgemmStridedBatched(c->handle, right_form, left_form, n, m, k, &one64, right,
                                        right_pitch, from_right, left, left_pitch, from_left,
                                        &zero64, out, pitch, to, batch);
  return c->blas->SgemmStridedBatched(c->handle, right_form, left_form, n, m, k, &one, right,
                                      right_pitch, from_right, left, left_pitch, from_left, &zero,
                                      out, pitch, to, batch);
}

static cuda_address address_of(const tn_launch *l, const tn_product_matrix *x) {
  const tn_span *s = &l->buffers[x->buffer];
  return ((const cuda_memory *)s->memory)->address + s->offset;
}

/** The stream's handle, made if there is none. */
static tn_status find_handle(cuda_device *v, cuda_stream stream, cublas_handle *handle,
                             tn_failure *f) {
  if (*handle) return TN_OK;
  cublas_status s = v->blas.Create(handle);
  if (s) {
    *handle = NULL;
    return fail(v, stream, "Create", s, f);
  }
  s = v->blas.SetStream(*handle, stream);
  if (!s) return TN_OK;
  v->blas.Destroy(*handle);
  *handle = NULL;
  return fail(v, stream, "SetStream", s, f);
}

tn_status cuda_product_run(cuda_device *v, cuda_stream stream, cublas_handle *handle,
                           const tn_product *p, const tn_launch *l, tn_failure *f) {
  tn_status status = product_check_launch(p, l, f);
  if (!status) status = find_handle(v, stream, handle, f);
  if (status) return status;
  const call c = {.blas = &v->blas,
                  .handle = *handle,
                  .product = p,
                  .out = address_of(l, &p->out),
                  .left = address_of(l, &p->left),
                  .right = address_of(l, &p->right)};
  for (int64_t at = 0; at < product_batch_size(p); at += p->batch[0]) {
    cublas_status s = run_batch(&c, at);
    if (s)
      return fail(v, stream, p->dtype == TN_F64 ? "DgemmStridedBatched" : "SgemmStridedBatched", s,
                  f);
  }
  return TN_OK;
}

const tn_product_library cuda_product_library = {
    .size = sizeof cuda_product_library, .name = "cublas", .is_usual = true, .open = open_library};
