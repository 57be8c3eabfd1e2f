#include "device/disk.h"

#include "base/thread.h"
#include "base/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** One store in so many looks whether the cache has become too large. */
enum { TRIM_EVERY = 32 };

/** A file is marked as used if it was not in the last minute. */
enum { TOUCH_SECONDS = 60 };

static const uint64_t most_file_bytes = (uint64_t)1 << 28;

struct disk {
  const mem *mem;
  disk_remark *remark;
  void *user;
  diag lost; /* why there is no path */
  char path[DISK_PATH];
  atomic_bool full; /* nothing is written any more */
  mutex lock;       /* of what follows */
  bool tried;
  int folder; /* -1: not there */
};

bool disk_open(disk **out, const char *folder, disk_remark *remark, void *user, const mem *m) {
  *out = NULL;
  if (folder && !strcmp(folder, "off")) return true;
  disk *k = mem_calloc(m, 1, sizeof *k);
  if (!k) return false;
  k->mem = m;
  k->remark = remark;
  k->user = user;
  k->folder = -1;
  disk_folder_find(folder, k->path, &k->lost);
  mutex_init(&k->lock);
  *out = k;
  return true;
}

void disk_close(disk *k) {
  if (!k) return;
  if (k->folder >= 0) close(k->folder);
  mutex_free(&k->lock);
  mem_free(k->mem, k, sizeof *k);
}

const char *disk_path(const disk *k, diag *d) { return diag_copy(d, &k->lost) ? NULL : k->path; }

/* Remarks. */

static void say(const disk *k, const char *what, const char *why) {
  char text[1024];
  snprintf(text, sizeof text, "kernel cache: %.256s%.700s", what, why);
  k->remark(k->user, text);
}

/** Nothing is written any more. */
static void say_full(disk *k, int error) {
  char why[700], reason[WRITE_REASON];
  snprintf(why, sizeof why, "%.500s: %s", k->path, write_reason(error, reason));
  if (!atomic_exchange(&k->full, true)) say(k, "cannot write to ", why);
}

static void say_wrong(const disk *k, const char *name, const char *why) {
  char text[256];
  snprintf(text, sizeof text, "file %.48s is not used: %.160s", name, why);
  say(k, text, "");
}

/* The folder. */

/** The folder, opened by the first who needs it; -1: there is none. */
static int folder_of(disk *k) {
  if (!k) return -1;
  diag d = {0};
  mutex_lock(&k->lock);
  if (!k->tried && !k->lost.status) disk_folder_open(k->path, true, &k->folder, &d);
  if (!k->tried && k->lost.status) diag_copy(&d, &k->lost);
  k->tried = true;
  int fd = k->folder;
  mutex_unlock(&k->lock);
  if (d.status) say(k, "kernels are not kept on disk: ", d.text);
  return fd;
}

/* Reading. */

/** Whether a file's content may be used, which is ours and nobody else's; else why not. */
static const char *check_file(const struct stat *s) {
  if (S_ISDIR(s->st_mode)) return "it is a folder: delete it, or run tenon cache --clear";
  if (!S_ISREG(s->st_mode)) return "it is no regular file";
  if (s->st_uid != geteuid()) return "it belongs to another user";
  if (s->st_mode & (S_IWGRP | S_IWOTH)) return "other users can write to it";
  return (uint64_t)s->st_size > most_file_bytes ? "it is too large" : NULL;
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

/** Reads what is open; NULL, or why it cannot be used. Without memory, nothing is read. */
static const char *read_open(disk *k, int fd, disk_file *f) {
  struct stat s;
  const char *why = fstat(fd, &s) ? strerror(errno) : check_file(&s);
  if (why) return why;
  size_t bytes = (size_t)s.st_size;
  unsigned char *data = mem_alloc(k->mem, bytes + 1);
  *f = (disk_file){.data = data, .bytes = bytes};
  if (!data) return NULL;
  data[bytes] = 0;
  why = read_all(fd, data, bytes) ? disk_file_read(f, data, bytes) : "it cannot be read";
  if (!why && s.st_mtim.tv_sec < time(NULL) - TOUCH_SECONDS) futimens(fd, NULL);
  return why;
}

void disk_free(disk *k, disk_file *f) {
  if (f->data) mem_free(k->mem, (void *)f->data, f->bytes + 1);
  *f = (disk_file){0};
}

/** Removes what is wrong, unless it is a folder, and says why. */
static void refuse(disk *k, int folder, const char *name, const char *why) {
  unlinkat(folder, name, 0);
  say_wrong(k, name, why);
}

/** Opens a file; -1 if there is none. What only cannot be opened now is left alone. */
static int open_file(disk *k, int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && errno == ELOOP)
    refuse(k, folder, name, "it is a link");
  else if (fd < 0 && errno != ENOENT)
    say_wrong(k, name, strerror(errno));
  return fd;
}

void disk_refuse(disk *k, const kernel_key *key, const char *why) {
  char name[DISK_NAME];
  int folder = folder_of(k);
  disk_name(key->hash, key_is_plan(key), name);
  if (folder >= 0) refuse(k, folder, name, why);
}

bool disk_read(disk *k, const kernel_key *key, disk_file *f) {
  char name[DISK_NAME];
  *f = (disk_file){0};
  int folder = folder_of(k);
  if (folder < 0) return false;
  disk_name(key->hash, key_is_plan(key), name);
  int fd = open_file(k, folder, name);
  if (fd < 0) return false;
  const char *why = read_open(k, fd, f);
  close(fd);
  if (why) refuse(k, folder, name, why);
  if (!why && f->data && disk_file_find(f, key) != SIZE_MAX) return true;
  disk_free(k, f);
  return false;
}

/* Writing. */

/** Puts the data in the place of each name; once that is done the files are one. */
static bool place(int folder, const kernel_key *const keys[], size_t n, const str *data) {
  char first[DISK_NAME], name[DISK_NAME];
  const file_part all = {data->at, data->n};
  disk_name(keys[0]->hash, key_is_plan(keys[0]), first);
  for (size_t i = 0; i < n; i++) {
    disk_name(keys[i]->hash, key_is_plan(keys[i]), name);
    if ((i && write_alias(folder, first, name)) || write_whole(folder, name, 0600, &all, 1))
      continue;
    if (errno != ENOENT && /* somebody cleared the cache meanwhile */
        errno != EISDIR)   /* who reads tells of it */
      return false;
  }
  return true;
}

/** Leaves room for what comes next. */
static void trim_by_chance(disk *k, int folder, const kernel_key *key, size_t bytes) {
  const disk_bounds b = {DISK_LIMIT, DISK_LIMIT - DISK_LIMIT / 8, false};
  diag d = {0};
  if (key->hash[1] % TRIM_EVERY == 0 || bytes > DISK_LIMIT / TRIM_EVERY)
    disk_folder_trim(folder, k->mem, &b, NULL, &d);
}

typedef struct writing {
  disk *k;
  int folder;
  const kernel_key *const *keys;
  size_t n;
  disk_content *content;
  void *user;
  arena arena;
} writing;

static void write_file(void *arg) {
  writing *w = arg;
  str content = str_new(&w->arena), s = str_new(&w->arena);
  w->content(w->user, &content);
  disk_file_write(&s, w->keys, w->n, content.at, content.n);
  if (s.n > most_file_bytes) return;
  if (place(w->folder, w->keys, w->n, &s))
    trim_by_chance(w->k, w->folder, w->keys[0], s.n);
  else
    say_full(w->k, errno);
}

void disk_write(disk *k, const kernel_key *const keys[], size_t n, disk_content *content,
                void *user) {
  diag d = {0};
  writing w = {.k = k, .keys = keys, .n = n, .content = content, .user = user};
  if (!k || atomic_load(&k->full)) return;
  w.folder = folder_of(k);
  if (w.folder < 0) return;
  arena_init(&w.arena, k->mem, &d);
  if (diag_catch(&d, write_file, &w) != TN_OK) say(k, "a file is not written: ", d.text);
  arena_free(&w.arena);
}
