/* Implements the checks of products: all arithmetic is on numbers that are bounded before. */
#include "device/program/product.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const int64_t most_elements = (int64_t)1 << 48;

int64_t product_pitch(const tn_product_matrix *x, bool *is_transposed) {
  *is_transposed = x->column != 1;
  return *is_transposed ? x->column : x->row;
}

/** True for a matrix of rows × columns. */
static bool is_matrix(const tn_product_matrix *x, int64_t rows, int64_t columns) {
  bool is_transposed;
  int64_t pitch = product_pitch(x, &is_transposed), least = is_transposed ? rows : columns;
  if (pitch < least || pitch > INT32_MAX || (is_transposed && x->row != 1)) return false;
  for (int d = 0; d < TN_PRODUCT_BATCHES; d++)
    if (x->batch[d] < 0 || x->batch[d] > most_elements) return false;
  return x->buffer >= 0 && x->buffer < 3 && x->start >= 0 && x->start <= most_elements;
}

static bool is_size(int64_t n) { return n > 0 && n <= INT32_MAX; }

/** Elements up to the last one of a matrix, of all batches; −1: too many. */
static int64_t count_elements(const tn_product *p, const tn_product_matrix *x, int64_t rows,
                              int64_t columns) {
  int64_t last = x->start + (rows - 1) * x->row + (columns - 1) * x->column;
  for (int d = 0; d < TN_PRODUCT_BATCHES && last <= most_elements; d++) {
    if (x->batch[d] > most_elements / p->batch[d]) return -1;
    last += (p->batch[d] - 1) * x->batch[d];
  }
  return last < most_elements ? last + 1 : -1;
}

bool product_is_valid(const tn_product *p) {
  int64_t n = 1;
  if (p->dtype != TN_F32 && p->dtype != TN_F64) return false;
  if (!is_size(p->m) || !is_size(p->n) || !is_size(p->k)) return false;
  for (int d = 0; d < TN_PRODUCT_BATCHES; d++) {
    if (!is_size(p->batch[d]) || n > INT32_MAX / p->batch[d]) return false;
    n *= p->batch[d];
  }
  return is_matrix(&p->out, p->m, p->n) && is_matrix(&p->left, p->m, p->k) &&
         is_matrix(&p->right, p->k, p->n) && p->out.column == 1 &&
         p->out.buffer != p->left.buffer && p->out.buffer != p->right.buffer &&
         count_elements(p, &p->out, p->m, p->n) > 0 &&
         count_elements(p, &p->left, p->m, p->k) > 0 &&
         count_elements(p, &p->right, p->k, p->n) > 0;
}

tn_status product_read(const tn_code *code, tn_product *p, tn_failure *f) {
  bool is_whole = code->kind == TN_CODE_PRODUCT && code->bytes == sizeof *p;
  if (is_whole) memcpy(p, code->data, sizeof *p);
  return is_whole && product_is_valid(p) ? TN_OK
                                         : tn_fail(f, TN_ERR_FORMAT, "no product of matrices");
}

tn_status product_check_launch(const tn_product *p, const tn_launch *l, tn_failure *f) {
  const struct {
    const tn_product_matrix *matrix;
    int64_t rows, columns;
  } all[] = {{&p->out, p->m, p->n}, {&p->left, p->m, p->k}, {&p->right, p->k, p->n}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const tn_product_matrix *x = all[i].matrix;
    int64_t bytes = count_elements(p, x, all[i].rows, all[i].columns) * product_element_bytes(p);
    if ((uint64_t)x->buffer >= l->n_buffers || l->buffers[x->buffer].bytes < (uint64_t)bytes)
      return tn_fail(f, TN_ERR_ARGUMENT, "a product of matrices needs %lld bytes in buffer %lld",
                     (long long)bytes, (long long)x->buffer);
  }
  return TN_OK;
}

int64_t product_start(const tn_product *p, const tn_product_matrix *x, int64_t at) {
  int64_t start = x->start;
  for (int d = 0; d < TN_PRODUCT_BATCHES; at /= p->batch[d], d++)
    start += at % p->batch[d] * x->batch[d];
  return start;
}

static const char *layout_of(const tn_product_matrix *x) {
  return x->column == 1 ? "rows" : "columns";
}

const char *product_text(const tn_product *p, const char *library, char text[PRODUCT_TEXT_BYTES]) {
  snprintf(text, PRODUCT_TEXT_BYTES,
           "%.40s: %lld product(s) of %s, %lld x %lld = %lld x %lld (%s) . %lld x %lld (%s)\n",
           library, (long long)product_batch_size(p), p->dtype == TN_F64 ? "f64" : "f32",
           (long long)p->m, (long long)p->n, (long long)p->m, (long long)p->k, layout_of(&p->left),
           (long long)p->k, (long long)p->n, layout_of(&p->right));
  return text;
}
