/* Fuzzes the .npy reader: arbitrary bytes are refused, or make an array all of whose elements can
   be read. */
#include "formats/npy/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct job {
  diag d;
  arena a;
  const void *bytes;
  size_t n;
  npy_array array;
} job;

static void read_array(void *arg) {
  job *j = arg;
  if (npy_parse(&j->array, j->bytes, j->n, "x.npy", &j->a, &j->d) != TN_OK) diag_rethrow(&j->d);
}

static volatile unsigned seen;

static void see(const npy_array *n) {
  size_t elements = 1;
  if (n->rank > NPY_RANK_MAX || !dtype_is_data(n->dtype)) abort();
  for (size_t i = 0; i < n->rank; i++) {
    if (n->dims[i] < 0) abort();
    elements *= (size_t)n->dims[i];
  }
  if (elements * dtype_bytes(n->dtype) != n->bytes) abort();
  for (size_t i = 0; i < n->bytes; i++) seen += ((const unsigned char *)n->data)[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  job j = {.bytes = data, .n = bytes};
  arena_init(&j.a, &mem_system, &j.d);
  tn_status s = diag_catch(&j.d, read_array, &j);
  if (s == TN_OK)
    see(&j.array);
  else if ((s != TN_ERR_FORMAT && s != TN_ERR_UNSUPPORTED) || !j.d.text[0])
    abort();
  arena_free(&j.a);
  return 0;
}
