/* Manages the folder of the disk cache, and names its files. It holds code that will be run: it is
   used only if it belongs to the user alone, and no link in it is followed. Files of other names
   are left alone. Trimming evicts the least recently used files. */
#ifndef TENON_COMPILE_DISK_CACHE_FOLDER_H
#define TENON_COMPILE_DISK_CACHE_FOLDER_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The limit of the cache, in bytes; context.h and the command's help state it too. */
#define DISK_CACHE_MOST_BYTES ((uint64_t)1 << 30)

enum { DISK_CACHE_PATH_BYTES = 4096, DISK_CACHE_NAME_BYTES = 72 };

/** The path of the folder: `given`, made absolute; if that is NULL $XDG_CACHE_HOME/tenon, else
    $HOME/.cache/tenon, if HOME is an existing folder. TN_ERR_IO if there is no such place. */
tn_status disk_cache_folder_path(const char *given, char path[DISK_CACHE_PATH_BYTES], diag *d);

/** Opens the folder, and with `make` creates it; *fd is -1 on failure, and if it does not exist and
    is not made. TN_ERR_IO for a folder that cannot be opened or made, that is a link, that others
    own or may write to, or whose lock is no file. */
tn_status disk_cache_folder_open(const char *path, bool make, int *fd, diag *d);

/** The name of the file for the hash of a key, which is a plan's or another. */
void disk_cache_file_name(const uint64_t hash[2], bool is_plan, char name[DISK_CACHE_NAME_BYTES]);

typedef struct disk_cache_usage {
  uint64_t entries; /* names: one for each kernel, plan and compiler identity */
  uint64_t plans;   /* of these */
  uint64_t bytes;   /* of files: kernels that were compiled together are one, of several names */
} disk_cache_usage;

/** Counts the files of the cache. */
tn_status disk_cache_folder_usage(int fd, const mem *m, disk_cache_usage *u, diag *d);

/** Limits of trimming. */
typedef struct disk_cache_trim_limits {
  uint64_t above;   /* bytes up to which no file is removed for its size */
  uint64_t down_to; /* beyond: bytes to which files are removed, the least recently used first */
  bool all;         /* removes everything, also files that are being written, and empty folders in
                       the place of files; folders that are not empty are TN_ERR_IO in the end */
} disk_cache_trim_limits;

/** Removes files by the limits, and temporary files that are older than an hour. *left (`left` may
    be NULL) counts the rest. TN_ERR_BUSY while another process trims the folder. */
tn_status disk_cache_folder_trim(int fd, const mem *m, const disk_cache_trim_limits *b,
                                 disk_cache_usage *left, diag *d);

#endif
