/* Writing: to what is open, and files of a folder, which are there whole or not at all. Where it
   fails, errno tells why; a limit of the process on the size of files is EFBIG, and no signal. */
#ifndef TENON_BASE_WRITE_H
#define TENON_BASE_WRITE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct file_part {
  const void *data;
  size_t bytes;
} file_part;

/** Writes several parts, one after another, to what is open, and leaves it open. */
bool write_parts(int fd, const file_part parts[], size_t n);

/** The same to what has just been opened; a file has nothing else then. Where there is no room for
    all of it, it is left as it is; where anything else fails, it has a part. */
bool write_over(int fd, const file_part parts[], size_t n);

/** The mode of a new file as the user has it. */
enum { WRITE_USUAL = -1 };

/** Writes a file of a folder that is open, in the place of what has its name. While it is written
    it has no name, or a temporary one where the file system has no such files. */
bool write_whole(int folder, const char *name, int mode, const file_part parts[], size_t n);

/** Gives a file of a folder one more name, in the place of what has that. */
bool write_alias(int folder, const char *there, const char *name);

/** How long the name is of which `name` is a temporary one; 0: of none. */
size_t write_temporary_of(const char *name);

/** Why writing failed, in words. */
enum { WRITE_REASON = 160 };
const char *write_reason(int error, char text[WRITE_REASON]);

#endif
