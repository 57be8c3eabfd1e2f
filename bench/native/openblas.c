/* OpenBLAS as a peer (peer.h): matrix products. */
#include "peer.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
  blasint m, n, k;
  const float *a, *b;
  float *c;
} product;

/* Returns the version, the second word of the library's configuration text. */
const char *bench_peer_version(void) {
  static char version[32];
  if (sscanf(openblas_get_config(), "%*s %31s", version) != 1) return "";
  return version;
}

void *bench_peer_make(const char *kind, const int64_t numbers[], float *const in[], float *out) {
  if (strcmp(kind, "matmul")) return NULL;
  product *p = malloc(sizeof *p);
  if (!p) return NULL;
  *p = (product){(blasint)numbers[0], (blasint)numbers[1], (blasint)numbers[2], in[0], in[1], out};
  return p;
}

int bench_peer_run(void *work) {
  const product *p = work;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->m, p->n, p->k, 1, p->a, p->k, p->b,
              p->n, 0, p->c, p->n);
  return 0;
}

void bench_peer_free(void *work) { free(work); }
