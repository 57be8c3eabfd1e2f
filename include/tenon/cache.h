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

/** Size of the folder, in bytes, above which the library trims it. */
#define TN_CACHE_LIMIT ((uint64_t)1 << 30)

/** Contents of the cache folder. */
typedef struct tn_cache_info {
  size_t size; /**< sizeof(tn_cache_info), set by the caller */
  /** its path, which lives as long as the context; NULL: the disk cache is off */
  const char *folder;
  uint64_t entries; /**< kernels, plans and known compilers */
  uint64_t plans;   /**< plans among these */
  uint64_t bytes;   /**< size on disk; kernels that were compiled together share a file */
  uint64_t tuned;   /**< after an export: schedules in the context's file of tuned schedules, which
                       the exported file lacks; else 0 */
} tn_cache_info;

#define TN_CACHE_INFO_INIT \
  { sizeof(tn_cache_info), NULL, 0, 0, 0, 0 }

/* The next three functions also work in a context that failed to open. A folder that does not exist
   counts as empty and is not created, likewise a disk cache that is off. On failure *info is
   unchanged: TN_ERR_IO where the folder cannot be read or used (a symbolic link, another user's,
   writable by others). */

/** Describes the folder. */
TN_API tn_status tn_cache_get(tn_context *context, tn_cache_info *info);

/** Removes the least recently used files until at most `bytes` bytes are left, then describes the
    rest; `info` may be NULL. TN_ERR_BUSY while another process removes files. */
TN_API tn_status tn_cache_trim(tn_context *context, uint64_t bytes, tn_cache_info *info);

/** Removes all of the cache's files, but no others, then describes the rest; `info` may be NULL.
    TN_ERR_BUSY while another process removes files. */
TN_API tn_status tn_cache_clear(tn_context *context, tn_cache_info *info);

/** Writes the kernels and plans of the folder that are for the context's processor level (`cpu`,
   else this machine's) to a file, which other machines of at least that level import: they then
   need no compiler. The file is replaced as a whole or not at all. *info (which may be NULL)
   describes what it holds. TN_ERR_UNSUPPORTED where there is nothing to export, and for a disk
    cache that is off; TN_ERR_ARGUMENT for a NULL path. */
TN_API tn_status tn_cache_export(tn_context *context, const char *path, tn_cache_info *info);

/** Adds a file of tn_cache_export to the folder, for contexts that are opened afterwards; *info
    (which may be NULL) describes what it holds. On failure nothing is added: TN_ERR_FORMAT for a
   file that is damaged or none of these, TN_ERR_UNSUPPORTED for one of another build of the
   library, for a processor with features that this one lacks, for one above the cache's limit and
   for a disk cache that is off; TN_ERR_ARGUMENT for a NULL path. Kernels are code that will be run,
   and a checksum proves no origin: import only files that you trust. */
TN_API tn_status tn_cache_import(tn_context *context, const char *path, tn_cache_info *info);

/** Options of tn_kernel_cache_open. Strings are copied. */
typedef struct tn_kernel_cache_desc {
  size_t size;        /**< sizeof(tn_kernel_cache_desc) */
  const char *folder; /**< of its kernels and plans, as `cache_dir` of tn_open_desc; NULL: none,
                         they are in memory alone */
  uint64_t kernels;   /**< most kernels in memory that nothing uses */
  uint64_t bytes;     /**< most bytes of these */
} tn_kernel_cache_desc;

#define TN_KERNEL_CACHE_DESC_INIT \
  { sizeof(tn_kernel_cache_desc), NULL, 1024, (uint64_t)64 << 20 }

/** Opens a cache of kernels for contexts that are opened with it (`kernel_cache` of tn_open_desc):
    what one of them compiled, the others find, also after it was closed. `desc` NULL: INIT. On
    failure *cache is NULL: TN_ERR_ARGUMENT for a descriptor that does not begin with its INIT,
    TN_ERR_MEMORY. Any thread. */
TN_API tn_status tn_kernel_cache_open(const tn_kernel_cache_desc *desc, tn_kernel_cache **cache);

/** Frees a cache; contexts that were opened with it keep it until they are closed. NULL is allowed.
    Any thread. */
TN_API void tn_kernel_cache_free(tn_kernel_cache *cache);

/** Unloads the kernels in memory that nothing uses, the least recently used first, until at most
    `kernels` of them are left, of at most `bytes` bytes: those of all contexts that share this
    context's devices. */
TN_API tn_status tn_kernel_cache_trim(tn_context *context, uint64_t kernels, uint64_t bytes);

/** Number of kernels requested so far by all contexts that share this context's devices. */
typedef struct tn_kernel_cache_info {
  size_t size;       /**< sizeof(tn_kernel_cache_info), set by the caller */
  uint64_t compiled; /**< compiled by a compiler */
  uint64_t found;    /**< found in memory or on disk */
  uint64_t kernels;  /**< in memory now, */
  uint64_t bytes;    /**< and their bytes */
  uint64_t idle;     /**< of these, kernels that nothing uses */
} tn_kernel_cache_info;

#define TN_KERNEL_CACHE_INFO_INIT \
  { sizeof(tn_kernel_cache_info), 0, 0, 0, 0, 0 }

/** Counts requested kernels; the difference between two calls is the work in between. */
TN_API tn_status tn_kernel_cache_get(tn_context *context, tn_kernel_cache_info *info);

#ifdef __cplusplus
}
#endif
#endif
