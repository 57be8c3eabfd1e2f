#include "tensor/desc.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tenon/tenon.h>

/* What version 1 of a type was: up to its last field then. A field that is appended begins past
   what was padding, which nobody set. */
#define FIRST(type, last) \
  { #type, offsetof(type, last) + sizeof((type *)0)->last }
static const struct first {
  const char *type;
  size_t bytes;
} firsts[] = {
    FIRST(tn_open_desc, progress), FIRST(tn_plan_desc, outputs),
    FIRST(tn_model_desc, folder),  FIRST(tn_custom_desc, destroy),
    FIRST(tn_conv_desc, groups),   FIRST(tn_pool_desc, count_include_pad),
    FIRST(tn_device_info, bytes),  FIRST(tn_port, sizes),
    FIRST(tn_step, end),           FIRST(tn_memory, scratch),
    FIRST(tn_scan_desc, reverse),
};
#undef FIRST

static size_t first_bytes(const char *type) {
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
    if (!strcmp(firsts[i].type, type)) return firsts[i].bytes;
  return SIZE_MAX;
}

static size_t size_of(const void *desc) {
  size_t size;
  memcpy(&size, desc, sizeof size);
  return size;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static bool is_zero(const unsigned char *at, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (at[i]) return false;
  return true;
}

static tn_status refuse_size(diag *d, const char *type, size_t given, size_t bytes) {
  return diag_set(d, TN_ERR_ARGUMENT, "%s.size is %zu, not %zu: begin with its INIT", type, given,
                  bytes);
}

tn_status desc_read(diag *d, void *into, const void *from, size_t bytes, const char *type) {
  if (!from) return TN_OK;
  size_t given = size_of(from);
  if (given < first_bytes(type)) return refuse_size(d, type, given, bytes);
  memcpy(into, from, least(given, bytes));
  if (given > bytes && !is_zero((const unsigned char *)from + bytes, given - bytes))
    return diag_set(d, TN_ERR_ARGUMENT, "%s has a field that this library does not know", type);
  return TN_OK;
}

tn_status desc_give(diag *d, void *to, const void *from, size_t bytes, const char *type) {
  if (!to) return diag_set(d, TN_ERR_ARGUMENT, "the place for the %s is NULL", type);
  size_t given = size_of(to), own = sizeof given;
  if (given < first_bytes(type)) return refuse_size(d, type, given, bytes);
  memcpy((char *)to + own, (const char *)from + own, least(given, bytes) - own);
  if (given > bytes) memset((char *)to + bytes, 0, given - bytes);
  return TN_OK;
}
