/* Names, counts and removes the files of the disk cache, whose limit is TN_CACHE_LIMIT of
   tenon/cache.h. Files of other names in its folder are left alone. Trimming evicts the least
   recently used files. */
#ifndef TENON_COMPILE_DISK_CACHE_TRIM_H
#define TENON_COMPILE_DISK_CACHE_TRIM_H

#include "base/diag.h"
#include "base/mem.h"
#include "compile/cache_keys.h"

#include <stdbool.h>
#include <stdint.h>

enum { DISK_CACHE_NAME_BYTES = 72 };

/** The name of the file for a key: its hash, and what it is a key of. */
void disk_cache_file_name(const cache_key *key, char name[DISK_CACHE_NAME_BYTES]);

/** Names of files. */
typedef struct disk_cache_names {
  const char **at;
  size_t n;
} disk_cache_names;

/** Lists one name of each file of the cache, least recently used first, in the arena; with
    `compilers` those of compiler identities alone. */
tn_status disk_cache_list(int fd, bool compilers, arena *a, disk_cache_names *names, diag *d);

typedef struct disk_cache_usage {
  uint64_t entries; /* names: one for each kernel, plan and compiler identity */
  uint64_t plans;   /* of these */
  uint64_t bytes;   /* of files: kernels that were compiled together are one, of several names */
} disk_cache_usage;

/** Counts the files of the cache. */
tn_status disk_cache_count(int fd, const mem *m, disk_cache_usage *u, diag *d);

/** Limits of trimming. */
typedef struct disk_cache_trim_limits {
  uint64_t above;   /* bytes up to which no file is removed for its size */
  uint64_t down_to; /* beyond: bytes to which files are removed, the least recently used first */
  bool all;         /* removes everything, also files that are being written, and empty folders in
                       the place of files; folders that are not empty are TN_ERR_IO in the end */
} disk_cache_trim_limits;

/** Removes files by the limits, and temporary files that are older than an hour. *left (`left` may
    be NULL) counts the rest. TN_ERR_BUSY while another process trims the folder. */
tn_status disk_cache_trim(int fd, const mem *m, const disk_cache_trim_limits *b,
                          disk_cache_usage *left, diag *d);

#endif
