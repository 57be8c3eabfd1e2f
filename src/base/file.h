/* File utilities: memory-maps files for reading, or reads parts of them, writes them (by atomic
   replacement where the folder permits it), creates folders, tests whether two paths are the same
   file, and makes paths absolute. A failure is TN_ERR_IO with a message that
   names the path. */
#ifndef TENON_BASE_FILE_H
#define TENON_BASE_FILE_H

#include "base/atomic_write.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** A read-only view of a file's bytes, NULL and 0 for an empty file. */
typedef struct file_map {
  const unsigned char *data;
  size_t bytes;
  bool is_copy;  /* in memory, of a pipe or a detached file: it cannot be read again */
  bool in_parts; /* `data` is memory, zero where file_map_read has not read the file yet */
  int fd;        /* in parts: the open file */
} file_map;

/** Maps a regular file; anything else is TN_ERR_IO. file_map_close unmaps it. */
tn_status file_map_open(file_map *f, const char *path, diag *d);
void file_map_close(file_map *f);

/** Maps a file that, after all links, lies in `folder` or below ("" is the working directory), or
   in or below the folder of the file `beside` (NULL: none). Others are TN_ERR_IO; so is any where
    /proc is not mounted. */
tn_status file_map_open_within(file_map *f, const char *path, const char *folder,
                               const char *beside, diag *d);

/** Maps a file as file_map_open does, or reads a pipe to its end, waiting for its writers. */
tn_status file_map_open_or_pipe(file_map *f, const char *path, diag *d);

/* A map of a file that another process cuts ends this process where it is read. A file in parts
   does not: reading what is not there any more is TN_ERR_IO. Both open a pipe, and files within a
   folder, as the functions above do. */
tn_status file_parts_open_or_pipe(file_map *f, const char *path, diag *d);
tn_status file_parts_open_within(file_map *f, const char *path, const char *folder,
                                 const char *beside, diag *d);

/** Has bytes of a file in parts at their place in `data`; does nothing to maps and copies. Several
    threads may read the same bytes. */
tn_status file_map_read(const file_map *f, const void *at, size_t bytes, diag *d);

/** Copies bytes of a file, `from` being their place in `data`, which those of a file in parts pass
    by. */
tn_status file_map_copy(const file_map *f, const void *from, size_t bytes, void *to, diag *d);

/** Replaces a map's pages by copies, at the same address, or reads all parts: the file may change
    then. */
tn_status file_map_detach(file_map *f, diag *d);

/** Drops the pages of some of a map's bytes from the process's resident memory. They can be read at
    any time and are then loaded again. Does nothing to bytes of a pipe or a file in parts. */
void file_map_evict(const file_map *f, const void *at, size_t bytes);

/** Replaces a file atomically, or creates it: readers see the old contents or the new ones, and a
    failure changes nothing. Links are followed. A replaced file keeps its mode; a new one has 0666
    less the umask. Two kinds are opened and overwritten instead: devices and pipes (which may raise
    SIGPIPE), and files that can be written but not replaced (a mount point, or one in a folder that
    cannot be written to). Readers may then see a part, which stays there if writing fails for
    another reason than a lack of room. */
tn_status file_write(const char *path, const void *data, size_t bytes, diag *d);

/** Writes several parts one after another, as file_write does. */
tn_status file_write_parts(const char *path, const write_part parts[], size_t n, diag *d);

/** Writes to an open descriptor, and leaves it open; messages call it `name`. */
tn_status file_write_fd(int fd, const char *name, const write_part parts[], size_t n, diag *d);

/** TN_ERR_IO if file_write would fail for lack of permission, of a folder, or because a folder has
    that path. Changes nothing. */
tn_status file_check_writable(const char *path, diag *d);

/** True if the path, after links, leads to anything. */
bool file_exists(const char *path);

/** True if two paths lead to the same regular file, or would where none exists yet. */
bool file_same(const char *a, const char *b);

/** Makes a path absolute by the current folder. TN_ERR_IO for one that is too long then: `absolute`
    is empty. */
enum { FILE_PATH_BYTES = 4096 };
tn_status file_absolute_path(const char *path, char absolute[FILE_PATH_BYTES], diag *d);

/** Creates a folder and those above it, with a mode; existing ones stay as they are. */
tn_status file_create_folders(const char *path, mode_t mode, diag *d);

/** TN_ERR_IO if a folder cannot be created, or exists and cannot be written to. Tries it: creates
    and removes a folder with a temporary name in the deepest folder of the path that exists. */
tn_status file_check_folder_writable(const char *path, diag *d);

#endif
