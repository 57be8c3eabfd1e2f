/* The cache of kernels and plans on disk, as a context uses it. What is wrong with it is never a
   failure: it is told once, and work goes on without. A file has no name of the
   cache's before it is whole, so that nobody sees half of one; several processes may write at once.
   Any thread. */
#ifndef TENON_DEVICE_DISK_H
#define TENON_DEVICE_DISK_H

#include "device/disk_file.h"
#include "device/disk_folder.h"

typedef struct disk disk;

/** Takes a remark, one line. */
typedef void disk_remark(void *user, const char *text);

/** Prepares the cache in a folder, as disk_folder_find has it (NULL: the user's; "off": *out is
    NULL, and nothing is kept). The folder is not touched before it is needed. False without
    memory. */
bool disk_open(disk **out, const char *folder, disk_remark *remark, void *user, const mem *m);
void disk_close(disk *k); /* NULL is allowed */

/** Its folder's path; NULL, with the reason in `d`, if there is no place for one. */
const char *disk_path(const disk *k, diag *d);

/** Reads the file of a key; false if there is none. A file that is not as it was written is
    removed. After the content there is a NUL. The file is freed with disk_free. */
bool disk_read(disk *k, const kernel_key *key, disk_file *f);
void disk_free(disk *k, disk_file *f);

/** Says that what a file holds for a key is wrong, and removes it. */
void disk_refuse(disk *k, const kernel_key *key, const char *why);

/** Appends the content of a file; raises through the string's arena. */
typedef void disk_content(void *user, str *to);

/** Keeps content for some keys, in place of what there was; nothing without memory for it. */
void disk_write(disk *k, const kernel_key *const keys[], size_t n, disk_content *content,
                void *user);

#endif
