/* Implements the disk cache of compiled kernels and plans: names files by the hash of their keys,
   checks them when they are read (disk_cache_file.h) and writes them atomically. One write in
   TRIM_EVERY trims the folder to seven eighths of its limit; a full disk trims it to a half, once.
 */
#include "compile/disk_cache.h"

#include "base/atomic_write.h"
#include "base/thread.h"
#include "compile/disk_cache_trim.h"

#include <tenon/cache.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** One write in so many checks whether the cache exceeds its limit. */
enum { TRIM_EVERY = 32 };

/** A file that is read is marked as used if its last mark is older. */
enum { TOUCH_SECONDS = 60 };

static const uint64_t most_file_bytes = (uint64_t)1 << 28;

struct disk_cache {
  const mem *mem;
  disk_cache_warning *warn;
  void *user;
  diag no_path; /* why there is no path, if there is none */
  char path[DISK_CACHE_PATH_BYTES];
  atomic_bool full;        /* nothing is written any more */
  atomic_size_t n_ignored; /* files that cannot be used */
  mutex lock;              /* of the fields below */
  bool tried;              /* to open the folder */
  bool tried_room;         /* to make it on a full disk, whatever came of it */
  int folder;              /* -1: not open */
};

bool disk_cache_open(disk_cache **out, const char *folder, disk_cache_warning *warn, void *user,
                     const mem *m) {
  *out = NULL;
  if (folder && !strcmp(folder, "off")) return true;
  disk_cache *k = mem_calloc(m, 1, sizeof *k);
  if (!k) return false;
  k->mem = m;
  k->warn = warn;
  k->user = user;
  k->folder = -1;
  disk_cache_folder_path(folder, k->path, &k->no_path);
  mutex_init(&k->lock);
  *out = k;
  return true;
}

const char *disk_cache_path(const disk_cache *k, diag *d) {
  d->failure = k->no_path.failure;
  return d->status ? NULL : k->path;
}

/* Warnings. */

static void warn(const disk_cache *k, const char *what, const char *why) {
  char text[1024];
  snprintf(text, sizeof text, "kernel cache: %.256s%.700s", what, why);
  k->warn(k->user, text);
}

/** Stops all writing. */
static void stop_writing(disk_cache *k, int error) {
  char why[700], reason[WRITE_ERROR_TEXT];
  snprintf(why, sizeof why, "%.500s: %s", k->path, write_error_text(error, reason));
  if (!atomic_exchange(&k->full, true)) warn(k, "cannot write to ", why);
}

/** Warns of the first file that cannot be used; disk_cache_close tells how many more there were. */
static void warn_of_file(disk_cache *k, const char *name, const char *why) {
  char text[256];
  if (atomic_fetch_add(&k->n_ignored, 1)) return;
  snprintf(text, sizeof text, "ignoring file %.48s: %.160s", name, why);
  warn(k, text, "");
}

void disk_cache_close(disk_cache *k) {
  if (!k) return;
  size_t n = atomic_load(&k->n_ignored);
  char text[64];
  snprintf(text, sizeof text, "ignored %zu more file%s", n - 1, n == 2 ? "" : "s");
  if (n > 1) warn(k, text, "");
  if (k->folder >= 0) close(k->folder);
  mutex_free(&k->lock);
  mem_free(k->mem, k, sizeof *k);
}

/* The folder. */

/** The folder, opened by the first call; -1: it cannot be. */
static int open_folder(disk_cache *k) {
  if (!k) return -1;
  diag d = {0};
  mutex_lock(&k->lock);
  if (!k->tried && !k->no_path.status) disk_cache_folder_open(k->path, true, &k->folder, &d);
  if (!k->tried && k->no_path.status) d.failure = k->no_path.failure;
  k->tried = true;
  int fd = k->folder;
  mutex_unlock(&k->lock);
  if (d.status) warn(k, "the disk cache is disabled: ", d.text);
  return fd;
}

/* Reading. */

/** Why a file of the cache may not be used; NULL: it may be. */
static const char *check_file(const struct stat *s) {
  if (S_ISDIR(s->st_mode)) return "a folder; delete it, or run tenon cache --clear";
  const char *why = disk_cache_folder_file_fault(s);
  return why || (uint64_t)s->st_size <= most_file_bytes ? why : "too large";
}

static bool read_all(int fd, unsigned char *at, size_t bytes) {
  for (size_t n = 0; n < bytes;) {
    ssize_t got = read(fd, at + n, bytes - n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    n += (size_t)got;
  }
  return true;
}

/** Reads an open file; NULL, or why it cannot be used. Without memory, nothing is read. */
static const char *read_file(disk_cache *k, int fd, disk_cache_file *f) {
  struct stat s;
  const char *why = fstat(fd, &s) ? strerror(errno) : check_file(&s);
  if (why) return why;
  size_t bytes = (size_t)s.st_size;
  unsigned char *data = mem_alloc(k->mem, bytes + 1);
  *f = (disk_cache_file){.data = data, .bytes = bytes};
  if (!data) return NULL;
  data[bytes] = 0;
  why = read_all(fd, data, bytes) ? disk_cache_file_read(f, data, bytes) : "unreadable";
  if (!why && s.st_mtim.tv_sec < time(NULL) - TOUCH_SECONDS) futimens(fd, NULL);
  return why;
}

void disk_cache_free_file(disk_cache *k, disk_cache_file *f) {
  if (f->data) mem_free(k->mem, (void *)f->data, f->bytes + 1);
  *f = (disk_cache_file){0};
}

/** Removes a file, unless it is a folder. */
static void reject_file(disk_cache *k, int folder, const char *name, const char *why) {
  unlinkat(folder, name, 0);
  warn_of_file(k, name, why);
}

/** Opens a file; -1 if there is none. A link is removed; another failure leaves the file alone. */
static int open_file(disk_cache *k, int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && errno == ELOOP)
    reject_file(k, folder, name, "a link");
  else if (fd < 0 && errno != ENOENT)
    warn_of_file(k, name, strerror(errno));
  return fd;
}

void disk_cache_reject(disk_cache *k, const cache_key *key, const char *why) {
  char name[DISK_CACHE_NAME_BYTES];
  int folder = open_folder(k);
  disk_cache_file_name(key, name);
  if (folder >= 0) reject_file(k, folder, name, why);
}

bool disk_cache_read(disk_cache *k, const cache_key *key, disk_cache_file *f) {
  char name[DISK_CACHE_NAME_BYTES];
  *f = (disk_cache_file){0};
  int folder = open_folder(k);
  if (folder < 0) return false;
  disk_cache_file_name(key, name);
  int fd = open_file(k, folder, name);
  if (fd < 0) return false;
  const char *why = read_file(k, fd, f);
  close(fd);
  if (why) reject_file(k, folder, name, why);
  if (!why && f->data && disk_cache_file_find(f, key) != SIZE_MAX) return true;
  disk_cache_free_file(k, f);
  return false;
}

bool disk_cache_read_name(disk_cache *k, int folder, const char *name, disk_cache_file *f) {
  *f = (disk_cache_file){0};
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const char *why = read_file(k, fd, f);
  close(fd);
  if (!why && f->data) return true;
  disk_cache_free_file(k, f);
  return false;
}

/* Writing. */

/** Writes the data under each name: one file with hard links, where the system has them. */
static bool write_names(int folder, const cache_key *const keys[], size_t n, const str *data) {
  char first[DISK_CACHE_NAME_BYTES], name[DISK_CACHE_NAME_BYTES];
  const write_part all = {data->at, data->n};
  disk_cache_file_name(keys[0], first);
  for (size_t i = 0; i < n; i++) {
    disk_cache_file_name(keys[i], name);
    if ((i && write_hard_link(folder, first, name)) || write_atomic(folder, name, 0600, &all, 1))
      continue;
    if (errno != ENOENT && /* another process cleared the cache meanwhile */
        errno != EISDIR)   /* reading warns of it */
      return false;
  }
  return true;
}

/** Trims the cache below its limit, on a fraction of the writes, by the key's hash. */
static void trim_sometimes(disk_cache *k, int folder, const cache_key *key, size_t bytes) {
  const disk_cache_trim_limits b = {TN_CACHE_LIMIT, TN_CACHE_LIMIT - TN_CACHE_LIMIT / 8, false};
  diag d = {0};
  if (key->hash[1] % TRIM_EVERY == 0 || bytes > TN_CACHE_LIMIT / TRIM_EVERY)
    disk_cache_trim(folder, k->mem, &b, NULL, &d);
}

/** True if the disk was full before, and the cache was to make room. */
static bool has_tried_room(disk_cache *k) {
  mutex_lock(&k->lock);
  bool has = k->tried_room;
  mutex_unlock(&k->lock);
  return has;
}

/** Trims a cache to half of what it has; fails where that makes no room for a file. TN_ERR_BUSY:
    another process trims it. */
static tn_status trim_by_half(disk_cache *k, int folder, size_t bytes) {
  disk_cache_usage u;
  diag d = {0};
  if (disk_cache_count(folder, k->mem, &u, &d)) return d.status;
  if (u.bytes / 2 < bytes) return TN_ERR_IO;
  const disk_cache_trim_limits b = {u.bytes / 2, u.bytes / 2, false};
  return disk_cache_trim(folder, k->mem, &b, NULL, &d);
}

/** Makes room for a file on a full disk; TN_ERR_IO if that was tried before the file was written.
    While another process makes room, this one has not tried. */
static tn_status make_room(disk_cache *k, int folder, size_t bytes, bool was_tried) {
  tn_status status = was_tried ? TN_ERR_IO : TN_OK;
  mutex_lock(&k->lock);
  if (!k->tried_room) {
    status = trim_by_half(k, folder, bytes);
    k->tried_room = status != TN_ERR_BUSY;
  }
  mutex_unlock(&k->lock);
  return status;
}

typedef struct writing {
  disk_cache *k;
  int folder;
  const cache_key *const *keys;
  size_t n;
  disk_cache_serialiser *content;
  void *user;
  arena arena;
} writing;

/** Writes the data under each name; where the disk is full, once more after room was made. While
    another process makes room, the file is left out. */
static bool write_data(const writing *w, const str *data) {
  bool was_tried = has_tried_room(w->k);
  if (write_names(w->folder, w->keys, w->n, data)) return true;
  int error = errno;
  bool is_full = error == ENOSPC || error == EDQUOT;
  tn_status status = is_full ? make_room(w->k, w->folder, data->n, was_tried) : TN_ERR_IO;
  if (status == TN_ERR_BUSY) return true;
  if (!status) return write_names(w->folder, w->keys, w->n, data);
  errno = error;
  return false;
}

static void write_file(void *arg) {
  writing *w = arg;
  str content = str_new(&w->arena), s = str_new(&w->arena);
  w->content(w->user, &content);
  disk_cache_file_write(&s, w->keys, w->n, content.at, content.n);
  if (s.n > most_file_bytes) return;
  if (write_data(w, &s))
    trim_sometimes(w->k, w->folder, w->keys[0], s.n);
  else
    stop_writing(w->k, errno);
}

void disk_cache_write(disk_cache *k, const cache_key *const keys[], size_t n,
                      disk_cache_serialiser *content, void *user) {
  diag d = {0};
  writing w = {.k = k, .keys = keys, .n = n, .content = content, .user = user};
  if (!k || atomic_load(&k->full)) return;
  w.folder = open_folder(k);
  if (w.folder < 0) return;
  arena_init(&w.arena, k->mem, &d);
  if (diag_catch(&d, write_file, &w) != TN_OK) warn(k, "cannot write a file: ", d.text);
  arena_free(&w.arena);
}
