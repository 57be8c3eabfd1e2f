/* Public functions on the caches of a context: tn_cache_get, tn_cache_trim and tn_cache_clear for
   the disk cache of kernels and plans, tn_kernel_cache_get and tn_kernel_cache_trim for the kernels
   in memory, tn_cache_export and tn_cache_import for files of it. */
#include "compile/disk_cache.h"
#include "compile/disk_cache_trim.h"
#include "compile/frozen_cache.h"
#include "compile/kernel_cache.h"
#include "compile/tuned_store.h"
#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"

#include <tenon/cache.h>
#include <unistd.h>

/** Trims the cache folder of a context, which need not exist, to `limits` (NULL: leaves it as it
    is) and counts the files that are left. *path is NULL without a cache. */
static tn_status use_folder(tn_context *c, const disk_cache_trim_limits *limits, const char **path,
                            disk_cache_usage *left) {
  int folder;
  if (!c->disk) return TN_OK;
  *path = disk_cache_path(c->disk, &c->diag);
  tn_status s = *path ? disk_cache_folder_open(*path, false, &folder, &c->diag) : c->diag.status;
  if (s != TN_OK || folder < 0) return s;
  s = limits ? disk_cache_trim(folder, &c->mem, limits, left, &c->diag)
             : disk_cache_count(folder, &c->mem, left, &c->diag);
  close(folder);
  return s;
}

static tn_status use_cache(tn_context *c, const disk_cache_trim_limits *limits, tn_cache_info *info,
                           bool is_info_needed) {
  const char *path = NULL;
  disk_cache_usage left = {0};
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  diag_clear(&c->diag);
  s = use_folder(c, limits, &path, &left);
  if (s != TN_OK) diag_prefix(&c->diag, "the kernel cache");
  if (s == TN_OK && (info || is_info_needed)) {
    const tn_cache_info found = {sizeof found, path, left.entries, left.plans, left.bytes, 0};
    s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_cache_info");
  }
  if (s != TN_OK) context_fail_call(c, NULL);
  context_release(c);
  return s;
}

tn_status tn_cache_get(tn_context *c, tn_cache_info *info) {
  return use_cache(c, NULL, info, true);
}

tn_status tn_cache_trim(tn_context *c, uint64_t bytes, tn_cache_info *info) {
  return use_cache(c, &(disk_cache_trim_limits){bytes, bytes, false}, info, false);
}

tn_status tn_cache_clear(tn_context *c, tn_cache_info *info) {
  return use_cache(c, &(disk_cache_trim_limits){.all = true}, info, false);
}

tn_status tn_kernel_cache_get(tn_context *c, tn_kernel_cache_info *info) {
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  const kernel_cache_stats counts = kernel_cache_get_stats(kernel_cache_of(c->registry));
  const tn_kernel_cache_info found = {sizeof found,   counts.compiled, counts.found,
                                      counts.kernels, counts.bytes,    counts.idle};
  s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_kernel_cache_info");
  if (s != TN_OK) context_fail_call(c, "kernel_cache_get");
  context_release(c);
  return s;
}

tn_status tn_kernel_cache_trim(tn_context *c, uint64_t kernels, uint64_t bytes) {
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  kernel_cache_trim(kernel_cache_of(c->registry), kernels < SIZE_MAX ? (size_t)kernels : SIZE_MAX,
                    bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX);
  context_release(c);
  return TN_OK;
}

/** Exports or imports a file, and describes what it holds. */
static tn_status use_frozen(tn_context *c, bool exports, const char *path, tn_cache_info *info) {
  disk_cache_usage content = {0};
  const char *verb = exports ? "cache_export" : "cache_import", *folder = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  diag_clear(&c->diag);
  if (!path)
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the path is NULL");
  else
    s = exports ? frozen_cache_export(c->disk, c->target, path, &content, &c->diag)
                : frozen_cache_import(c->disk, c->device, path, &content, &c->diag);
  if (s == TN_OK && info) {
    folder = disk_cache_path(c->disk, &c->diag);
    const uint64_t tuned = exports && c->tuned ? tuned_store_count(c->tuned) : 0;
    const tn_cache_info held = {sizeof held,   folder,        content.entries,
                                content.plans, content.bytes, tuned};
    s = descriptor_write(&c->diag, info, &held, sizeof held, "tn_cache_info");
  }
  if (s != TN_OK) context_fail_call(c, verb);
  context_release(c);
  return s;
}

tn_status tn_cache_export(tn_context *c, const char *path, tn_cache_info *info) {
  return use_frozen(c, true, path, info);
}

tn_status tn_cache_import(tn_context *c, const char *path, tn_cache_info *info) {
  return use_frozen(c, false, path, info);
}
