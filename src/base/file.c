/* Implements the file utilities. Reading maps a file with mmap, or copies a pipe, or parts of a
   file, into anonymous memory that is unmapped in the same way. Writing first follows symbolic
   links, as a rename would replace the link and not the file behind it, and then replaces the file
   (atomic_write.h) or overwrites it. */
#include "base/file.h"

#include "base/printable.h"

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

static tn_status io_error(diag *d, const char *what, const char *path) {
  char why[WRITE_ERROR_TEXT], shown[TEXT_PRINTABLE_BYTES];
  write_error_text(errno, why);
  return diag_set(d, TN_ERR_IO, "cannot %s \"%s\": %s", what, text_printable(path, shown), why);
}

tn_status file_absolute_path(const char *path, char absolute[FILE_PATH_BYTES], diag *d) {
  char here[FILE_PATH_BYTES] = "";
  *absolute = 0;
  if (*path != '/' && !getcwd(here, sizeof here)) return io_error(d, "find the folder of", path);
  int n = snprintf(absolute, FILE_PATH_BYTES, "%s%s%s", here, here[0] && here[1] ? "/" : "", path);
  if (n >= 0 && n < FILE_PATH_BYTES) return TN_OK;
  *absolute = 0;
  errno = ENAMETOOLONG;
  return io_error(d, "use", path);
}

typedef enum access_kind { MAPPED, IN_PARTS } access_kind;

/** Maps a file, or reserves memory for it and keeps a descriptor of its own. */
static bool map_bytes(file_map *f, int fd, access_kind how) {
  int flags = how == MAPPED ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  int own = how == MAPPED ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  int protection = how == MAPPED ? PROT_READ : PROT_READ | PROT_WRITE;
  void *at = mmap(NULL, f->bytes, protection, flags, how == MAPPED ? fd : -1, 0);
  if (at != MAP_FAILED) {
    f->data = at;
    f->in_parts = how == IN_PARTS;
    f->fd = own;
    return true;
  }
  int error = errno;
  if (how == IN_PARTS) close(own);
  errno = error;
  return false;
}

static tn_status map_descriptor(file_map *f, int fd, const char *path, access_kind how, diag *d) {
  struct stat s;
  if (fstat(fd, &s)) return io_error(d, "read", path);
  char shown[TEXT_PRINTABLE_BYTES];
  if (!S_ISREG(s.st_mode))
    return diag_set(d, TN_ERR_IO, "cannot read \"%s\": %s", text_printable(path, shown),
                    S_ISDIR(s.st_mode) ? "a folder, not a file" : "not a regular file");
  f->bytes = (size_t)s.st_size;
  if (!f->bytes) return TN_OK;
  if (map_bytes(f, fd, how)) return TN_OK;
  f->bytes = 0;
  return io_error(d, "map", path);
}

/** Opens the file at a path; messages call it `name`. */
static tn_status map_path(file_map *f, const char *path, const char *name, access_kind how,
                          diag *d) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(d, "open", name);
  tn_status s = map_descriptor(f, fd, name, how, d);
  close(fd);
  return s;
}

tn_status file_map_open(file_map *f, const char *path, diag *d) {
  *f = (file_map){0};
  return map_path(f, path, path, MAPPED, d);
}

/** True if a path is a folder's or one below it; both are absolute and have no links. */
static bool is_within(const char *path, const char *folder) {
  size_t n = strlen(folder);
  if (n && folder[n - 1] == '/') n--; /* the root */
  return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

/** Reads the path that the kernel knows an open file by, which has no links. */
static bool read_descriptor_path(const char *proc_path, char path[PATH_MAX]) {
  ssize_t n = readlink(proc_path, path, PATH_MAX);
  if (n == PATH_MAX) errno = ENAMETOOLONG;
  if (n < 0 || n == PATH_MAX) return false;
  path[n] = 0;
  return true;
}

static tn_status map_within(file_map *f, int fd, const char *path, const char *folder,
                            const char *beside, access_kind how, diag *d) {
  char proc_path[40], at[PATH_MAX], top[PATH_MAX], shown[TEXT_PRINTABLE_BYTES];
  snprintf(proc_path, sizeof proc_path, "/proc/self/fd/%d", fd);
  if (!realpath(*folder ? folder : ".", top)) return io_error(d, "open", folder);
  if (!read_descriptor_path(proc_path, at)) return io_error(d, "locate", path);
  if (is_within(at, top)) return map_path(f, proc_path, at, how, d);
  if (beside && realpath(beside, top)) {
    *strrchr(top, '/') = 0;
    if (is_within(at, top)) return map_path(f, proc_path, at, how, d);
  }
  return diag_set(d, TN_ERR_IO, "cannot read \"%s\": a link leads out of the folder it must be in",
                  text_printable(path, shown));
}

/* The file is located by descriptor, not by path, so that no link can take its place in between;
   O_PATH has no effect on a device or pipe that the path leads to. */
static tn_status open_within(file_map *f, const char *path, const char *folder, const char *beside,
                             access_kind how, diag *d) {
  *f = (file_map){0};
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return io_error(d, "open", path);
  tn_status s = map_within(f, fd, path, folder, beside, how, d);
  close(fd);
  return s;
}

tn_status file_map_open_within(file_map *f, const char *path, const char *folder,
                               const char *beside, diag *d) {
  return open_within(f, path, folder, beside, MAPPED, d);
}

tn_status file_parts_open_within(file_map *f, const char *path, const char *folder,
                                 const char *beside, diag *d) {
  return open_within(f, path, folder, beside, IN_PARTS, d);
}

/* Pipes: read into anonymous mappings, so that file_map_close unmaps them as it does files. */

enum { PIPE_BYTES = 1 << 16 };

/** Doubles a buffer of *room bytes, `bytes` of which are in use; false without memory. */
static bool grow_buffer(unsigned char **at, size_t bytes, size_t *room) {
  size_t larger = *room ? *room * 2 : PIPE_BYTES;
  void *made = mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  if (bytes) memcpy(made, *at, bytes);
  if (*room) munmap(*at, *room);
  *at = made;
  *room = larger;
  return true;
}

/** Reads a descriptor to its end into a growing buffer; false with errno set if that fails. */
static bool read_to_end(int fd, unsigned char **at, size_t *bytes, size_t *room) {
  for (;;) {
    if (*bytes == *room && !grow_buffer(at, *bytes, room)) return false;
    ssize_t n = read(fd, *at + *bytes, *room - *bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return !n;
    *bytes += (size_t)n;
  }
}

/** Unmaps the pages past the bytes in use. */
static void unmap_unused(unsigned char *at, size_t bytes, size_t room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
  if (used < room) munmap(at + used, room - used);
}

static tn_status read_pipe(file_map *f, const char *path, diag *d) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(d, "open", path);
  unsigned char *at = NULL;
  size_t bytes = 0, room = 0;
  bool ok = read_to_end(fd, &at, &bytes, &room);
  tn_status s = ok ? TN_OK : io_error(d, "read", path);
  close(fd);
  if (!ok) bytes = 0;
  if (room) unmap_unused(at, bytes, room);
  *f = (file_map){.data = bytes ? at : NULL, .bytes = bytes, .is_copy = ok};
  return s;
}

static tn_status open_or_pipe(file_map *f, const char *path, access_kind how, diag *d) {
  struct stat s;
  *f = (file_map){0};
  bool is_pipe = !stat(path, &s) && S_ISFIFO(s.st_mode);
  return is_pipe ? read_pipe(f, path, d) : map_path(f, path, path, how, d);
}

tn_status file_map_open_or_pipe(file_map *f, const char *path, diag *d) {
  return open_or_pipe(f, path, MAPPED, d);
}

tn_status file_parts_open_or_pipe(file_map *f, const char *path, diag *d) {
  return open_or_pipe(f, path, IN_PARTS, d);
}

/* Parts. */

/** Reads a part; its file's name is that of its descriptor, which needs no memory. */
static tn_status read_part(const file_map *f, size_t offset, size_t bytes, void *to, diag *d) {
  char proc_path[40], path[PATH_MAX], shown[TEXT_PRINTABLE_BYTES];
  size_t done = 0;
  ssize_t n = 1;
  while (done < bytes && n) {
    n = pread(f->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno != EINTR) break;
    if (n > 0) done += (size_t)n;
  }
  if (done == bytes) return TN_OK;
  int error = errno;
  snprintf(proc_path, sizeof proc_path, "/proc/self/fd/%d", f->fd);
  if (!read_descriptor_path(proc_path, path)) strcpy(path, "the file");
  errno = error;
  if (n < 0) return io_error(d, "read", path);
  struct stat s;
  return diag_set(
      d, TN_ERR_IO, "cannot read \"%s\": it has %lld bytes, and had %zu when it was opened",
      text_printable(path, shown), fstat(f->fd, &s) ? -1LL : (long long)s.st_size, f->bytes);
}

tn_status file_map_read(const file_map *f, const void *at, size_t bytes, diag *d) {
  if (!f->in_parts) return TN_OK;
  return read_part(f, (size_t)((const unsigned char *)at - f->data), bytes, (void *)at, d);
}

tn_status file_map_copy(const file_map *f, const void *from, size_t bytes, void *to, diag *d) {
  if (f->in_parts)
    return read_part(f, (size_t)((const unsigned char *)from - f->data), bytes, to, d);
  if (bytes) memcpy(to, from, bytes);
  return TN_OK;
}

void file_map_close(file_map *f) {
  if (f->data) munmap((void *)f->data, f->bytes);
  if (f->in_parts) close(f->fd);
  *f = (file_map){0};
}

static tn_status detach_parts(file_map *f, diag *d) {
  tn_status s = file_map_read(f, f->data, f->bytes, d);
  if (s != TN_OK) return s;
  close(f->fd);
  f->in_parts = false;
  f->is_copy = true;
  return TN_OK;
}

tn_status file_map_detach(file_map *f, diag *d) {
  if (!f->data || f->is_copy) return TN_OK;
  if (f->in_parts) return detach_parts(f, d);
  int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void *copy = mmap(NULL, f->bytes, protection, flags, -1, 0);
  if (copy == MAP_FAILED) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  memcpy(copy, f->data, f->bytes);
  void *at = mremap(copy, f->bytes, f->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)f->data);
  if (at == MAP_FAILED) {
    munmap(copy, f->bytes);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  f->is_copy = true;
  return TN_OK;
}

/* The pages of a copy would be lost; those of parts may be read by several. */
void file_map_evict(const file_map *f, const void *at, size_t bytes) {
  if (!f->data || !bytes || f->is_copy || f->in_parts) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;
  (void)madvise((void *)from, (uintptr_t)at + bytes - from, MADV_DONTNEED);
}

/* Writing. */

enum { PATH_BYTES = 4096, MAX_LINKS = 40 };

/** Target and mode of a write to a path. */
typedef struct write_target {
  char path[PATH_BYTES]; /* with all links at its end followed */
  struct stat old;       /* of the file there, if it exists */
  bool exists;
  bool overwrite; /* opened and overwritten by the caller's path, instead of replaced */
} write_target;

/** Replaces a path by that of the file its links lead to, which need not exist. */
static bool follow_links(char *path) {
  char to[PATH_BYTES];
  for (int i = 0; i < MAX_LINKS; i++) {
    ssize_t n = readlink(path, to, sizeof to);
    if (n < 0) return errno == EINVAL || errno == ENOENT; /* not a link, or nothing there */
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

static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/** Returns the part of a path after its last slash. */
static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void folder_of(const char *path, char folder[PATH_BYTES]) {
  size_t n = (size_t)(last_name(path) - path);
  memcpy(folder, path, n);
  strcpy(folder + n, ".");
}

/** Finds out how a path is to be written; false with errno set if it cannot be. */
static bool find_target(write_target *t, const char *path) {
  struct stat s;
  char folder[PATH_BYTES];
  size_t n = strlen(path);
  t->exists = !stat(path, &t->old);
  if (!t->exists && errno != ENOENT) return false;
  if (n + 1 >= sizeof t->path) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(t->path, path, n + 1);
  t->overwrite = t->exists && !S_ISREG(t->old.st_mode);
  if (t->exists && S_ISDIR(t->old.st_mode)) errno = EISDIR;
  if (t->exists && (S_ISDIR(t->old.st_mode) || access(path, W_OK))) return false;
  if (t->overwrite) return true;
  if (!follow_links(t->path)) return false;
  folder_of(t->path, folder);
  bool fixed = access(folder, W_OK | X_OK);
  /* a file opened through /proc/self/fd may have been unlinked: no name leads to it */
  t->overwrite = t->exists && (fixed || stat(t->path, &s) || !is_same_file(&s, &t->old));
  return t->overwrite || !fixed;
}

static bool close_and_return(int fd, bool ok) {
  int error = errno;
  if (close(fd) && ok) return false;
  errno = error;
  return ok;
}

static bool overwrite_file(const char *path, const write_part parts[], size_t n) {
  int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  return fd >= 0 && close_and_return(fd, write_replace_contents(fd, parts, n));
}

static bool replace_file(const write_target *t, const write_part parts[], size_t n) {
  char path[PATH_BYTES];
  int mode = t->exists ? (int)(t->old.st_mode & 0777) : WRITE_DEFAULT_MODE;
  folder_of(t->path, path);
  int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return folder >= 0 &&
         close_and_return(folder, write_atomic(folder, last_name(t->path), mode, parts, n));
}

/** True if an error of rename means that the name is bound to its file: a mount point, or another
    user's file in a sticky folder. */
static bool is_name_bound(int error) { return error == EBUSY || error == EXDEV || error == EPERM; }

static bool write_to_target(const write_target *t, const char *path, const write_part parts[],
                            size_t n) {
  if (t->overwrite) return overwrite_file(path, parts, n);
  return replace_file(t, parts, n) ||
         (t->exists && is_name_bound(errno) && overwrite_file(path, parts, n));
}

tn_status file_check_writable(const char *path, diag *d) {
  write_target t;
  return find_target(&t, path) ? TN_OK : io_error(d, "write", path);
}

bool file_exists(const char *path) { return !access(path, F_OK); }

/** True if two paths that lead to nothing would lead to the same new file. */
static bool would_be_same(const char *a, const char *b) {
  write_target s, t;
  struct stat f, g;
  char folder[PATH_BYTES];
  if (!find_target(&s, a) || !find_target(&t, b)) return false;
  folder_of(s.path, folder);
  bool known = !stat(folder, &f);
  folder_of(t.path, folder);
  return known && !stat(folder, &g) && is_same_file(&f, &g) &&
         !strcmp(last_name(s.path), last_name(t.path));
}

bool file_same(const char *a, const char *b) {
  struct stat s, t;
  bool a_exists = !stat(a, &s), b_exists = !stat(b, &t);
  if (a_exists && b_exists) return S_ISREG(s.st_mode) && is_same_file(&s, &t);
  return !a_exists && !b_exists && would_be_same(a, b);
}

tn_status file_write_parts(const char *path, const write_part parts[], size_t n, diag *d) {
  write_target t;
  bool ok = find_target(&t, path) && write_to_target(&t, path, parts, n);
  return ok ? TN_OK : io_error(d, "write", path);
}

tn_status file_write_fd(int fd, const char *name, const write_part parts[], size_t n, diag *d) {
  char why[WRITE_ERROR_TEXT];
  if (write_parts(fd, parts, n)) return TN_OK;
  write_error_text(errno, why);
  return diag_set(d, TN_ERR_IO, "cannot write to %s: %s", name, why);
}

tn_status file_write(const char *path, const void *data, size_t bytes, diag *d) {
  return file_write_parts(path, &(write_part){data, bytes}, 1, d);
}

tn_status file_check_folder_writable(const char *path, diag *d) {
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

tn_status file_create_folders(const char *path, mode_t mode, diag *d) {
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
