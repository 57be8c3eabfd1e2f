/* Versioned public structs: copies between a caller's struct and the library's own by the size that
   the caller's begins with. Sizes below that of version 1, and unknown fields that are set, are
   refused. */
#include "tensor/context/descriptor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tenon/tenon.h>
#include <tenon/unstable/explain.h>
#include <tenon/unstable/model_file.h>
#include <tenon/unstable/schedule.h>

/* Bytes of version 1 of each type, up to its last field then. An appended field begins past the
   padding, which callers of that version left unset. */
#define FIRST(type, last) \
  { #type, offsetof(type, last) + sizeof((type *)0)->last }
static const struct version_one {
  const char *type;
  size_t bytes;
} first_versions[] = {
    FIRST(tn_open_desc, progress),
    FIRST(tn_plan_desc, outputs),
    FIRST(tn_model_desc, folder),
    FIRST(tn_model_size, likely),
    FIRST(tn_custom_desc, destroy),
    FIRST(tn_conv_desc, groups),
    FIRST(tn_pool_desc, count_include_pad),
    FIRST(tn_device_info, bytes),
    FIRST(tn_port, sizes),
    FIRST(tn_step, end),
    FIRST(tn_memory, scratch),
    FIRST(tn_scan_desc, reverse),
    FIRST(tn_cond_desc, user),
    FIRST(tn_context_info, computes),
    FIRST(tn_processor_info, last_cache_bytes),
    FIRST(tn_compiler_info, used),
    FIRST(tn_cache_info, bytes),
    FIRST(tn_kernel_cache_info, found),
    FIRST(tn_kernel_cache_desc, bytes),
    FIRST(tn_explained_step, is_output),
    FIRST(tn_explained_kernel, cost),
    FIRST(tn_explained_pass, cost),
    FIRST(tn_scheduled_step, device),
    FIRST(tn_scheduled_kernel, steps),
    FIRST(tn_scheduled_buffer, offset),
    FIRST(tn_slot, span),
    FIRST(tn_kernel_run, why),
    FIRST(tn_tune_desc, user),
    FIRST(tn_tuning, file),
    FIRST(tn_contractions, is_float),
    FIRST(tn_model_file_info, external),
    FIRST(tn_declared_port, is_weight),
    FIRST(tn_model_node, n_outputs),
    FIRST(tn_group_desc, timeout),
};
#undef FIRST

static size_t first_bytes(const char *type) {
  for (size_t i = 0; i < sizeof first_versions / sizeof *first_versions; i++)
    if (!strcmp(first_versions[i].type, type)) return first_versions[i].bytes;
  return SIZE_MAX;
}

static size_t caller_size(const void *desc) {
  size_t size;
  memcpy(&size, desc, sizeof size);
  return size;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static tn_status refuse_size(diag *d, const char *type, size_t size_given, size_t bytes) {
  return diag_set(d, TN_ERR_ARGUMENT, "%s.size is %zu, not %zu: begin with its INIT", type,
                  size_given, bytes);
}

tn_status descriptor_read(diag *d, void *into, const void *from, size_t bytes, const char *type) {
  if (!from) return TN_OK;
  size_t size_given = caller_size(from);
  if (size_given < first_bytes(type)) return refuse_size(d, type, size_given, bytes);
  memcpy(into, from, smaller(size_given, bytes));
  for (size_t i = bytes; i < size_given; i++)
    if (((const unsigned char *)from)[i])
      return diag_set(d, TN_ERR_ARGUMENT,
                      "%s has a field that this library does not know: it was built with a newer "
                      "header",
                      type);
  return TN_OK;
}

tn_status descriptor_write(diag *d, void *to, const void *from, size_t bytes, const char *type) {
  if (!to) return diag_set(d, TN_ERR_ARGUMENT, "the place for the %s is NULL", type);
  size_t size_given = caller_size(to), own = sizeof size_given;
  if (size_given < first_bytes(type)) return refuse_size(d, type, size_given, bytes);
  memcpy((char *)to + own, (const char *)from + own, smaller(size_given, bytes) - own);
  if (size_given > bytes) memset((char *)to + bytes, 0, size_given - bytes);
  return TN_OK;
}
