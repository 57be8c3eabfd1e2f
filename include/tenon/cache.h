/* Inspects the caches of compiled kernels, a folder on disk and kernels in memory, and trims or
   clears the folder. docs/library.md tells what is kept in each and when it is dropped. */
#ifndef TENON_CACHE_H
#define TENON_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Size of the folder, in bytes, above which it is trimmed by itself. */
#define TN_CACHE_LIMIT ((uint64_t)1 << 30)

/** Contents of the cache folder. */
typedef struct tn_cache_info {
  size_t size;        /**< sizeof(tn_cache_info), set by the caller */
  const char *folder; /**< its path, which lives as long as the context; NULL: switched off */
  uint64_t entries;   /**< kernels, plans and known compilers */
  uint64_t plans;     /**< plans among these */
  uint64_t bytes;     /**< on disk; kernels that were compiled together are one file */
} tn_cache_info;

#define TN_CACHE_INFO_INIT \
  { sizeof(tn_cache_info), NULL, 0, 0, 0 }

/* These three also work in a context that could not be opened as asked. A folder that does not
   exist yet is empty and is not made; a cache that is switched off has nothing. On failure *info is
   untouched: TN_ERR_IO where the folder cannot be used (a link, one of another user, one that
   others may write to) or read. */

/** Describes the folder. */
TN_API tn_status tn_cache_get(tn_context *context, tn_cache_info *info);

/** Removes the least recently used files until at most `bytes` bytes are left, and describes the
    rest; `info` may be NULL. TN_ERR_BUSY while another process removes files. */
TN_API tn_status tn_cache_trim(tn_context *context, uint64_t bytes, tn_cache_info *info);

/** Removes all files of the cache, and describes the rest; `info` may be NULL. Files of other names
    stay. TN_ERR_BUSY while another process removes files. */
TN_API tn_status tn_cache_clear(tn_context *context, tn_cache_info *info);

/** Kernels requested so far by all contexts that share the devices of one. */
typedef struct tn_kernel_cache_info {
  size_t size;       /**< sizeof(tn_kernel_cache_info), set by the caller */
  uint64_t compiled; /**< by a compiler */
  uint64_t found;    /**< in memory or on disk */
} tn_kernel_cache_info;

#define TN_KERNEL_CACHE_INFO_INIT \
  { sizeof(tn_kernel_cache_info), 0, 0 }

/** Counts kernels: the difference of two calls is the work of a compilation between them. */
TN_API tn_status tn_kernel_cache_get(tn_context *context, tn_kernel_cache_info *info);

#ifdef __cplusplus
}
#endif
#endif
