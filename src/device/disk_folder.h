/* The folder of the cache on disk, and what its files are called. It holds code that will be run:
   it is used only if it belongs to the user alone, and no link in it is followed. Files of other
   names are somebody else's, and left alone. */
#ifndef TENON_DEVICE_DISK_FOLDER_H
#define TENON_DEVICE_DISK_FOLDER_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the cache may grow to, in bytes; context.h and the command's help say so too. */
#define DISK_LIMIT ((uint64_t)1 << 30)

enum { DISK_PATH = 4096, DISK_NAME = 72 };

/** The path of a folder: `given`, made absolute, or where that is NULL $XDG_CACHE_HOME/tenon, else
    $HOME/.cache/tenon, where HOME is a folder that is there. TN_ERR_IO if there is no such place.
 */
tn_status disk_folder_find(const char *given, char path[DISK_PATH], diag *d);

/** Opens it; *fd is -1 on failure, and where there is none and none is made. TN_ERR_IO for a folder
    that cannot be opened, or could not be made, that is a link, that others own or may write to, or
    whose lock is no file. */
tn_status disk_folder_open(const char *path, bool make, int *fd, diag *d);

/** The name of the file for a hash: of a plan, or of anything else. */
void disk_name(const uint64_t hash[2], bool is_plan, char name[DISK_NAME]);

typedef struct disk_usage {
  uint64_t entries; /* files by name: one for each kernel, each plan and each compiler known */
  uint64_t plans;   /* of these */
  uint64_t bytes;   /* kernels that were compiled together are one file of several names */
} disk_usage;

/** What is in the folder. */
tn_status disk_folder_usage(int fd, const mem *m, disk_usage *u, diag *d);

/** What trimming leaves. */
typedef struct disk_bounds {
  uint64_t above;   /* nothing is removed for its size where there are no more bytes than these */
  uint64_t down_to; /* else files go, the least recently used first, until so many are left */
  bool all;         /* everything goes, also what was begun to be written just now, and empty
                       folders in the place of files; others are TN_ERR_IO when all is done */
} disk_bounds;

/** Removes files, as the bounds say, and what was begun to be written an hour ago and never
    finished. *left (`left` may be NULL) is what is there then. TN_ERR_BUSY while another process
   does so. */
tn_status disk_folder_trim(int fd, const mem *m, const disk_bounds *b, disk_usage *left, diag *d);

#endif
