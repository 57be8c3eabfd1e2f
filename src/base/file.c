#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static tn_status io_error(diag *d, const char *what, const char *path) {
  int error = errno;
  return diag_set(d, TN_ERR_IO, "cannot %s %s: %s", what, path, strerror(error));
}

static tn_status map_descriptor(file_map *f, int fd, const char *path, diag *d) {
  struct stat s;
  if (fstat(fd, &s)) return io_error(d, "read", path);
  if (!S_ISREG(s.st_mode))
    return diag_set(d, TN_ERR_IO, "cannot read %s: not a regular file", path);
  f->bytes = (size_t)s.st_size;
  if (!f->bytes) return TN_OK;
  void *at = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) {
    f->bytes = 0;
    return io_error(d, "map", path);
  }
  f->data = at;
  return TN_OK;
}

tn_status file_map_open(file_map *f, const char *path, diag *d) {
  *f = (file_map){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(d, "open", path);
  tn_status s = map_descriptor(f, fd, path, d);
  close(fd);
  return s;
}

void file_map_close(file_map *f) {
  if (f->data) munmap((void *)f->data, f->bytes);
  *f = (file_map){0};
}

static bool write_all(int fd, const char *at, size_t bytes) {
  while (bytes) {
    ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

enum { MOST_NAMES = 1000 };

/** Opens a new file beside `path` for writing; its name goes to `temporary`. */
static int open_beside(const char *path, char *temporary, size_t size) {
  for (int i = 0; i < MOST_NAMES; i++) {
    int n = snprintf(temporary, size, "%s.%ld-%d.part", path, (long)getpid(), i);
    if (n < 0 || (size_t)n >= size) {
      errno = ENAMETOOLONG;
      return -1;
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

tn_status file_write(const char *path, const void *data, size_t bytes, diag *d) {
  char temporary[4096];
  struct stat old;
  if (!stat(path, &old) && !S_ISREG(old.st_mode))
    return diag_set(d, TN_ERR_IO, "cannot write %s: it is there and no regular file", path);
  int fd = open_beside(path, temporary, sizeof temporary);
  if (fd < 0) return io_error(d, "write", path);
  bool ok = write_all(fd, data, bytes);
  tn_status s = ok ? TN_OK : io_error(d, "write", path);
  if (close(fd) && ok) s = io_error(d, "write", path);
  if (s == TN_OK && rename(temporary, path)) s = io_error(d, "write", path);
  if (s != TN_OK) unlink(temporary);
  return s;
}

tn_status file_make_folder(const char *path, diag *d) {
  char part[4096];
  size_t n = strlen(path);
  if (n >= sizeof part)
    return diag_set(d, TN_ERR_IO, "cannot create %.100s…: the path is too long", path);
  memcpy(part, path, n + 1);
  for (size_t i = 1; i <= n; i++) {
    if (part[i] != '/' && part[i]) continue;
    char here = part[i];
    part[i] = 0;
    if (mkdir(part, 0700) && errno != EEXIST) return io_error(d, "create", part);
    part[i] = here;
  }
  struct stat s;
  if (stat(path, &s)) return io_error(d, "create", path);
  return S_ISDIR(s.st_mode) ? TN_OK : diag_set(d, TN_ERR_IO, "%s is not a folder", path);
}

tn_status file_make_temporary_folder(char **path, arena *a, diag *d) {
  const char *under = getenv("TMPDIR");
  char *at = arena_printf(a, "%s/tenon-XXXXXX", under && *under ? under : "/tmp");
  if (!mkdtemp(at)) return io_error(d, "create", at);
  *path = at;
  return TN_OK;
}

void file_remove(const char *path) { unlink(path); }
void file_remove_folder(const char *path) { rmdir(path); }
