#define _POSIX_C_SOURCE 200809L
#include "features.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static ssize_t read_at(int fd, unsigned char *to, size_t size, off_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = pread(fd, to + done, size - done, offset + (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

static void fill_begin(const feature_format *f, const unsigned char *bytes, size_t size,
                       int32_t *features) {
  for (size_t i = 0; i < f->begin; i++) features[i] = i < size ? bytes[i] : f->padding;
}

static void fill_end(const feature_format *f, const unsigned char *bytes, size_t size,
                     int32_t *features) {
  for (size_t i = 1; i <= f->end; i++)
    features[f->end - i] = i <= size ? bytes[size - i] : f->padding;
}

/* JSON strings are UTF-8, and the library that makes them refuses all else. */
static finding text_or_binary(const unsigned char *bytes, size_t size) {
  json_t *text = json_stringn((const char *)bytes, size);
  json_decref(text);
  return text ? IS_TEXT : IS_BINARY;
}

static finding read_begin(const feature_format *f, int fd, unsigned char *block, size_t size,
                          int32_t *features) {
  ssize_t n = read_at(fd, block, size, 0);
  if (n < 0) return UNREADABLE;
  size_t skip = 0, got = (size_t)n;
  while (skip < got && is_space(block[skip])) skip++;
  if (got - skip < f->least) return text_or_binary(block, got);
  fill_begin(f, block + skip, got - skip, features);
  return NEEDS_MODEL;
}

static finding read_end(const feature_format *f, int fd, unsigned char *block, size_t size,
                        off_t offset, int32_t *features) {
  ssize_t n = read_at(fd, block, size, offset);
  if (n < 0) return UNREADABLE;
  size_t got = (size_t)n;
  while (got > 0 && is_space(block[got - 1])) got--;
  fill_end(f, block, got, features + f->begin);
  return NEEDS_MODEL;
}

static finding read_ends(const feature_format *f, int fd, int32_t *features) {
  struct stat st;
  if (fstat(fd, &st) != 0) return UNREADABLE;
  if (st.st_size == 0) return IS_EMPTY;
  size_t size = st.st_size < (off_t)f->block ? (size_t)st.st_size : f->block;
  unsigned char *block = malloc(size);
  if (!block) return UNREADABLE;
  finding found = read_begin(f, fd, block, size, features);
  if (found == NEEDS_MODEL)
    found = read_end(f, fd, block, size, st.st_size - (off_t)size, features);
  free(block);
  return found;
}

finding features_read(const feature_format *format, const char *path, bool dereference,
                      int32_t *features) {
  struct stat st;
  if ((dereference ? stat : lstat)(path, &st) != 0) return UNREADABLE;
  if (S_ISLNK(st.st_mode)) return IS_SYMLINK;
  if (S_ISDIR(st.st_mode)) return IS_DIRECTORY;
  if (!S_ISREG(st.st_mode)) return IS_BINARY;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return UNREADABLE;
  finding found = read_ends(format, fd, features);
  int cause = errno;
  close(fd);
  errno = cause;
  return found;
}
