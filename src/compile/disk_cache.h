/* The disk cache of compiled kernels and plans, one for each context. Its failures are never
   failures of the context: work goes on without the cache, and a failure is reported once as a
   warning. Of files that cannot be used the first is told when it is read, and the number of the
   others on closing. Files are written under temporary names and renamed, so that no process reads
   half of one; several processes may write at once. Any thread may call it. */
#ifndef TENON_COMPILE_DISK_CACHE_H
#define TENON_COMPILE_DISK_CACHE_H

#include "compile/disk_cache_file.h"
#include "compile/disk_cache_folder.h"

typedef struct disk_cache disk_cache;

/** Receives a warning, one line. */
typedef void disk_cache_warning(void *user, const char *text);

/** Prepares the cache in a folder, found as by disk_cache_folder_path (NULL: the user's; "off":
    *out is NULL, and nothing is kept). The folder is opened when it is first used. False without
    memory. */
bool disk_cache_open(disk_cache **out, const char *folder, disk_cache_warning *warn, void *user,
                     const mem *m);
void disk_cache_close(disk_cache *k); /* NULL is allowed */

/** The folder's path; NULL, with the reason in `d`, if there is no place for one. */
const char *disk_cache_path(const disk_cache *k, diag *d);

/** Reads the file of a key; false if there is none. A damaged file is removed. The content is
    followed by a NUL. The file is freed with disk_cache_free_file. */
bool disk_cache_read(disk_cache *k, const cache_key *key, disk_cache_file *f);
void disk_cache_free_file(disk_cache *k, disk_cache_file *f);

/** Reads a file of a name in a folder, the cache's, that the caller opened; false if it cannot be
    used, and then leaves it alone. */
bool disk_cache_read_name(disk_cache *k, int folder, const char *name, disk_cache_file *f);

/** Warns that the content of a key's file is wrong, and removes the file. */
void disk_cache_reject(disk_cache *k, const cache_key *key, const char *why);

/** Appends the content of a file; raises through the string's arena. */
typedef void disk_cache_serialiser(void *user, str *to);

/** Writes content for some keys, in place of earlier files; does nothing without memory. The first
    time that the disk is full, the least recently used half of the cache makes room; where a file
    cannot be written after that, or for another reason, none is written any more. A file that finds
    the disk full while another process removes files is left out. */
void disk_cache_write(disk_cache *k, const cache_key *const keys[], size_t n,
                      disk_cache_serialiser *content, void *user);

#endif
