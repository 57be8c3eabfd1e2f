#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_shown(const char *path, char shown[FILE_SHOWN]) {
  char *at = shown;
  for (; *path && at - shown < FILE_SHOWN - 8; path++) {
    unsigned char c = (unsigned char)*path;
    if (c == '\n')
      at += sprintf(at, "\\n");
    else if (c < 0x20 || c == 0x7f)
      at += sprintf(at, "\\x%02x", c);
    else
      *at++ = *path;
  }
  strcpy(at, *path ? "…" : "");
  return shown;
}

static tn_status io_error(diag *d, const char *what, const char *path) {
  char why[WRITE_REASON], shown[FILE_SHOWN];
  write_reason(errno, why);
  return diag_set(d, TN_ERR_IO, "cannot %s \"%s\": %s", what, file_shown(path, shown), why);
}

static tn_status map_descriptor(file_map *f, int fd, const char *path, diag *d) {
  struct stat s;
  if (fstat(fd, &s)) return io_error(d, "read", path);
  char shown[FILE_SHOWN];
  if (!S_ISREG(s.st_mode))
    return diag_set(d, TN_ERR_IO, "cannot read \"%s\": %s", file_shown(path, shown),
                    S_ISDIR(s.st_mode) ? "a folder, not a file" : "not a regular file");
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

/** Whether a path without links is that of a folder without links, or leads below it. */
static bool is_within(const char *path, const char *folder) {
  size_t n = strlen(folder);
  if (n && folder[n - 1] == '/') n--; /* the root */
  return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

tn_status file_map_below(file_map *f, const char *path, const char *folder, const char *beside,
                         diag *d) {
  char at[PATH_MAX], top[PATH_MAX], shown[FILE_SHOWN];
  *f = (file_map){0};
  if (!realpath(path, at)) return io_error(d, "open", path);
  if (!realpath(*folder ? folder : ".", top)) return io_error(d, "open", folder);
  if (is_within(at, top)) return file_map_open(f, at, d);
  if (beside && realpath(beside, top)) {
    *strrchr(top, '/') = 0;
    if (is_within(at, top)) return file_map_open(f, at, d);
  }
  return diag_set(d, TN_ERR_IO, "cannot read \"%s\": a link leads out of the folder it must be in",
                  file_shown(path, shown));
}

/* Pipes: what is read lies in memory that file_map_close gives back as it does a file's. */

enum { PIPE_BYTES = 1 << 16 };

/** Makes room for at least one byte more; false where there is none. */
static bool grow(unsigned char **at, size_t bytes, size_t *room) {
  size_t larger = *room ? *room * 2 : PIPE_BYTES;
  void *made = mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  if (bytes) memcpy(made, *at, bytes);
  if (*room) munmap(*at, *room);
  *at = made;
  *room = larger;
  return true;
}

/** Reads to the end; false, with errno set, where that fails. */
static bool read_all(int fd, unsigned char **at, size_t *bytes, size_t *room) {
  for (;;) {
    if (*bytes == *room && !grow(at, *bytes, room)) return false;
    ssize_t n = read(fd, *at + *bytes, *room - *bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return !n;
    *bytes += (size_t)n;
  }
}

/** Gives back the pages past the bytes that are used. */
static void trim(unsigned char *at, size_t bytes, size_t room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
  if (used < room) munmap(at + used, room - used);
}

static tn_status read_pipe(file_map *f, const char *path, diag *d) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(d, "open", path);
  unsigned char *at = NULL;
  size_t bytes = 0, room = 0;
  bool ok = read_all(fd, &at, &bytes, &room);
  tn_status s = ok ? TN_OK : io_error(d, "read", path);
  close(fd);
  if (!ok) bytes = 0;
  if (room) trim(at, bytes, room);
  *f = (file_map){.data = bytes ? at : NULL, .bytes = bytes, .was_pipe = ok};
  return s;
}

tn_status file_map_read(file_map *f, const char *path, diag *d) {
  struct stat s;
  *f = (file_map){0};
  bool is_pipe = !stat(path, &s) && S_ISFIFO(s.st_mode);
  return is_pipe ? read_pipe(f, path, d) : file_map_open(f, path, d);
}

void file_map_close(file_map *f) {
  if (f->data) munmap((void *)f->data, f->bytes);
  *f = (file_map){0};
}

/* Only of a file: what memory alone has would be gone. */
void file_map_drop(const file_map *f, const void *at, size_t bytes) {
  if (!f->data || !bytes || f->was_pipe) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;
  (void)madvise((void *)from, (uintptr_t)at + bytes - from, MADV_DONTNEED);
}

/* Writing. */

enum { PATH_BYTES = 4096, MOST_LINKS = 40 };

/** What a path is written to. */
typedef struct target {
  char path[PATH_BYTES]; /* without a link at its end */
  struct stat old;
  bool there;    /* something is; `old` tells what */
  bool in_place; /* it is not replaced but opened and written, by the path asked for */
} target;

/** The file that a path's links lead to, whether or not it is there, takes the path's place. */
static bool follow_links(char *path) {
  char to[PATH_BYTES];
  for (int i = 0; i < MOST_LINKS; i++) {
    ssize_t n = readlink(path, to, sizeof to);
    if (n < 0) return errno == EINVAL || errno == ENOENT; /* no link, or nothing */
    const char *slash = strrchr(path, '/');
    size_t folder = to[0] != '/' && slash ? (size_t)(slash + 1 - path) : 0;
    if (folder + (size_t)n + 1 >= sizeof to) {
      errno = ENAMETOOLONG;
      return false;
    }
    memcpy(path + folder, to, (size_t)n);
    path[folder + (size_t)n] = 0;
  }
  errno = ELOOP;
  return false;
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/** The part of a path after its folder. */
static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void folder_of(const char *path, char folder[PATH_BYTES]) {
  size_t n = (size_t)(last_name(path) - path);
  memcpy(folder, path, n);
  strcpy(folder + n, ".");
}

/** Finds out whether something can be written to a path, and how; errno tells why not. */
static bool find_target(target *t, const char *path) {
  struct stat s;
  char folder[PATH_BYTES];
  size_t n = strlen(path);
  t->there = !stat(path, &t->old);
  if (!t->there && errno != ENOENT) return false;
  if (n + 1 >= sizeof t->path) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(t->path, path, n + 1);
  t->in_place = t->there && !S_ISREG(t->old.st_mode);
  if (t->there && S_ISDIR(t->old.st_mode)) errno = EISDIR;
  if (t->there && (S_ISDIR(t->old.st_mode) || access(path, W_OK))) return false;
  if (t->in_place) return true;
  if (!follow_links(t->path)) return false;
  folder_of(t->path, folder);
  bool fixed = access(folder, W_OK | X_OK);
  /* an open file by its number in /proc may have no name to be replaced by */
  t->in_place = t->there && (fixed || stat(t->path, &s) || !is_same(&s, &t->old));
  return t->in_place || !fixed;
}

static bool close_after(int fd, bool ok) {
  int error = errno;
  if (close(fd) && ok) return false;
  errno = error;
  return ok;
}

static bool write_in_place(const char *path, const file_part parts[], size_t n) {
  int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  return fd >= 0 && close_after(fd, write_over(fd, parts, n));
}

static bool replace(const target *t, const file_part parts[], size_t n) {
  char path[PATH_BYTES];
  int mode = t->there ? (int)(t->old.st_mode & 0777) : WRITE_USUAL;
  folder_of(t->path, path);
  int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return folder >= 0 &&
         close_after(folder, write_whole(folder, last_name(t->path), mode, parts, n));
}

/** Whether an error means that a name keeps the file that it has: it is a mount point, or somebody
    else's in a folder where each removes only his own. */
static bool is_held(int error) { return error == EBUSY || error == EXDEV || error == EPERM; }

static bool write_target(const target *t, const char *path, const file_part parts[], size_t n) {
  if (t->in_place) return write_in_place(path, parts, n);
  return replace(t, parts, n) || (t->there && is_held(errno) && write_in_place(path, parts, n));
}

tn_status file_check_target(const char *path, diag *d) {
  target t;
  return find_target(&t, path) ? TN_OK : io_error(d, "write", path);
}

bool file_is_there(const char *path) { return !access(path, F_OK); }

/** Whether two paths, where nothing is, are to be one file's. */
static bool name_one(const char *a, const char *b) {
  target s, t;
  struct stat f, g;
  char folder[PATH_BYTES];
  if (!find_target(&s, a) || !find_target(&t, b)) return false;
  folder_of(s.path, folder);
  bool known = !stat(folder, &f);
  folder_of(t.path, folder);
  return known && !stat(folder, &g) && is_same(&f, &g) &&
         !strcmp(last_name(s.path), last_name(t.path));
}

bool file_is_same(const char *a, const char *b) {
  struct stat s, t;
  bool is_there = !stat(a, &s), other = !stat(b, &t);
  if (is_there && other) return S_ISREG(s.st_mode) && is_same(&s, &t);
  return !is_there && !other && name_one(a, b);
}

tn_status file_write_parts(const char *path, const file_part parts[], size_t n, diag *d) {
  target t;
  bool ok = find_target(&t, path) && write_target(&t, path, parts, n);
  return ok ? TN_OK : io_error(d, "write", path);
}

tn_status file_write_open(int fd, const char *name, const file_part parts[], size_t n, diag *d) {
  return write_parts(fd, parts, n) ? TN_OK : io_error(d, "write", name);
}

tn_status file_write(const char *path, const void *data, size_t bytes, diag *d) {
  return file_write_parts(path, &(file_part){data, bytes}, 1, d);
}

tn_status file_check_folder(const char *path, diag *d) {
  static const char name[] = "/tenon-XXXXXX";
  char at[PATH_BYTES + sizeof name];
  size_t n = strlen(path);
  if (!n || n >= PATH_BYTES) {
    errno = n ? ENAMETOOLONG : ENOENT;
    return io_error(d, "create", path);
  }
  memcpy(at, path, n + 1);
  while (access(at, F_OK) && errno == ENOENT && n) {
    n = (size_t)(last_name(at) - at);
    while (n && at[n - 1] == '/') n--;
    at[n] = 0;
  }
  strcpy(at + n, n || *path == '/' ? name : name + 1);
  if (!mkdtemp(at)) return io_error(d, "create", path);
  rmdir(at);
  return TN_OK;
}

tn_status file_make_folder(const char *path, mode_t mode, diag *d) {
  char part[PATH_BYTES];
  size_t n = strlen(path);
  if (n >= sizeof part) {
    errno = ENAMETOOLONG;
    return io_error(d, "create", path);
  }
  memcpy(part, path, n + 1);
  for (size_t i = 1; i <= n; i++) {
    if (part[i] != '/' && part[i]) continue;
    char here = part[i];
    part[i] = 0;
    if (mkdir(part, mode) && errno != EEXIST) return io_error(d, "create", part);
    part[i] = here;
  }
  struct stat s;
  if (stat(path, &s)) return io_error(d, "create", path);
  if (S_ISDIR(s.st_mode)) return TN_OK;
  errno = ENOTDIR;
  return io_error(d, "create", path);
}
