/* Files: mapped for reading, written whole or not at all where their folders let them. */
#ifndef TENON_BASE_FILE_H
#define TENON_BASE_FILE_H

#include "base/diag.h"
#include "base/write.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** A read-only view of a file's bytes, NULL and 0 for an empty file. */
typedef struct file_map {
  const unsigned char *data;
  size_t bytes;
  bool was_pipe; /* and is empty now */
} file_map;

/** Maps a regular file. A folder, a device or a missing file is TN_ERR_IO, and the message names
 * it. */
tn_status file_map_open(file_map *f, const char *path, diag *d);
void file_map_close(file_map *f);

/** The same of a file that, when all links are followed, lies in a folder or below ("" is the
    working directory), or in or below the folder of the file that `beside` leads to (NULL: none).
 */
tn_status file_map_below(file_map *f, const char *path, const char *folder, const char *beside,
                         diag *d);

/** The same as file_map_open, and reads a pipe to its end, waiting for who writes it. */
tn_status file_map_read(file_map *f, const char *path, diag *d);

/** Lets go of the pages that some of a map's bytes lie on: they are no memory of the process any
    more, until somebody reads them again, as anybody may at any time. What was a pipe stays. */
void file_map_drop(const file_map *f, const void *at, size_t bytes);

/** Writes a file that takes the place of what is there once it is whole: readers see the old file
   or the new one, and a failure leaves no trace. Links are followed. A file that is there keeps its
    mode, a new one has the user's. What is there and no regular file (a device, a pipe) is opened
    and written as it is, and may raise SIGPIPE as any pipe does. So is a file that can be written
    and not be replaced (its folder cannot be written to, or it is a mount point): readers may see a
    part of it, which stays where writing fails for another reason than a lack of room. */
tn_status file_write(const char *path, const void *data, size_t bytes, diag *d);

/** The same of several parts, one after another. */
tn_status file_write_parts(const char *path, const file_part parts[], size_t n, diag *d);

/** Writes to what is open, and leaves it open; `name` is what messages call it. */
tn_status file_write_open(int fd, const char *name, const file_part parts[], size_t n, diag *d);

/** TN_ERR_IO where a file would not be written because of what is there, or of what is not. */
tn_status file_check_target(const char *path, diag *d);

bool file_is_there(const char *path);

/** Whether two paths lead to one regular file, or to where one would be written. */
bool file_is_same(const char *a, const char *b);

/** A path as messages show it, without control characters, and cut where it is very long. */
enum { FILE_SHOWN = 1024 };
const char *file_shown(const char *path, char shown[FILE_SHOWN]);

/** Creates a folder and those above it, of a mode; one that is there is fine. */
tn_status file_make_folder(const char *path, mode_t mode, diag *d);

/** TN_ERR_IO where a folder can neither be created nor be written to. Only trying tells: another
    one is created, as far down as there are folders, and removed. */
tn_status file_check_folder(const char *path, diag *d);

#endif
