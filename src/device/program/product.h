/* Products of matrices that a library computes, as backends see them: the product read from code,
   which may come from a damaged file, checks of a launch, and a text for people. */
#ifndef TENON_DEVICE_PROGRAM_PRODUCT_H
#define TENON_DEVICE_PROGRAM_PRODUCT_H

#include <tenon/unstable/backend.h>

/** Reads a product from code of kind TN_CODE_PRODUCT. TN_ERR_FORMAT unless it is one that
    tn_product's comment allows. */
tn_status product_read(const tn_code *code, tn_product *p, tn_failure *f);

/** True if sizes and steps are those that tn_product's comment allows. */
bool product_is_valid(const tn_product *p);

/** TN_ERR_ARGUMENT unless the matrices are within the buffers of a launch. */
tn_status product_check_launch(const tn_product *p, const tn_launch *l, tn_failure *f);

/** Bytes of an element. */
static inline int64_t product_element_bytes(const tn_product *p) {
  return p->dtype == TN_F64 ? 8 : 4;
}

/** The number of matrices in the batch. */
static inline int64_t product_batch_size(const tn_product *p) {
  int64_t n = 1;
  for (int d = 0; d < TN_PRODUCT_BATCHES; d++) n *= p->batch[d];
  return n;
}

/** The first element of a matrix for the `at`-th of the batch. */
int64_t product_start(const tn_product *p, const tn_product_matrix *x, int64_t at);

/** The step between what is contiguous, as BLAS's leading dimension; *is_transposed: its columns
   are contiguous. */
int64_t product_pitch(const tn_product_matrix *x, bool *is_transposed);

/** Writes what a call of a library computes: "openblas: 1 product(s) of f32, …". */
enum { PRODUCT_TEXT_BYTES = 320 };
const char *product_text(const tn_product *p, const char *library, char text[PRODUCT_TEXT_BYTES]);

#endif
