/* Implements tn_output, a growing byte buffer: appends bytes, doubling its capacity. */
#include "device/core/output.h"

#include <stdint.h>
#include <string.h>

static bool reserve_bytes(tn_output *o, size_t more) {
  if (o->cap - o->n > more) return true;
  if (more > SIZE_MAX / 2 - o->n - 64) return false;
  size_t cap = (o->n + more) * 2 + 64;
  char *at = mem_resize(o->mem, o->at, o->cap, cap);
  if (!at) return false;
  o->at = at;
  o->cap = cap;
  return true;
}

void tn_output_add(tn_output *o, const void *data, size_t bytes) {
  if (!bytes || o->failed) return;
  o->failed = !reserve_bytes(o, bytes);
  if (o->failed) return;
  memcpy(o->at + o->n, data, bytes);
  o->n += bytes;
  o->at[o->n] = 0;
}

void output_free(tn_output *o) {
  mem_free(o->mem, o->at, o->cap);
  *o = output_new(o->mem);
}

tn_status output_check(const tn_output *o, diag *d) {
  return o->failed ? diag_set(d, TN_ERR_MEMORY, "out of memory") : TN_OK;
}
