/* Replaces files of a folder atomically, so that a reader sees the old file or the whole new one,
   and writes to open descriptors. Functions return false with errno set; a file beyond RLIMIT_FSIZE
   is EFBIG, and raises no SIGXFSZ. */
#ifndef TENON_BASE_ATOMIC_WRITE_H
#define TENON_BASE_ATOMIC_WRITE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct write_part {
  const void *data;
  size_t bytes;
} write_part;

/** Writes parts one after another to an open descriptor, and leaves it open. */
bool write_parts(int fd, const write_part parts[], size_t n);

/** Writes parts from the start of a file just opened, and cuts off what it held beyond them. Where
    the file system or RLIMIT_FSIZE has no room for all, the file keeps its contents; where anything
    else fails, it holds a part of the new ones. On other descriptors the same as write_parts. */
bool write_replace_contents(int fd, const write_part parts[], size_t n);

/** The mode of a new file as open(2) gives it: 0666 less the umask. */
enum { WRITE_DEFAULT_MODE = -1 };

/** Writes a file into an open folder, in place of any file of that name. Until it is whole it has
   no name (O_TMPFILE), or a temporary one on file systems without such files. */
bool write_atomic(int folder, const char *name, int mode, const write_part parts[], size_t n);

/** Gives a file of a folder a second name, in place of any file that has it. */
bool write_hard_link(int folder, const char *there, const char *name);

/** Returns the length of NAME if `name` is a temporary name of it, else 0. */
size_t write_temporary_stem(const char *name);

/** Formats an errno of the functions above; names the limit where that is the cause. Returns
 * `text`. */
enum { WRITE_ERROR_TEXT = 160 };
const char *write_error_text(int error, char text[WRITE_ERROR_TEXT]);

#endif
