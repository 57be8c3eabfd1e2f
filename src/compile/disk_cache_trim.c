/* Implements the names of the disk cache's files, and their count and removal: the least recently
   used files go first, under a lock file. Kernels that were compiled together are one file with
   several names (hard links). */
#include "compile/disk_cache_trim.h"

#include "base/atomic_write.h"
#include "base/vec.h"
#include "compile/disk_cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Names. */

static const char suffix[] = ".tenon", plan_suffix[] = ".plan.tenon",
                  compiler_suffix[] = ".compiler.tenon";
enum { DIGITS = 32 };

void disk_cache_file_name(const cache_key *key, char name[DISK_CACHE_NAME_BYTES]) {
  snprintf(name, DISK_CACHE_NAME_BYTES, "%016" PRIx64 "%016" PRIx64 "%s", key->hash[0],
           key->hash[1],
           plan_key_is(key)                ? plan_suffix
           : compiler_identity_key_is(key) ? compiler_suffix
                                           : suffix);
}

static bool is_named(const char *name, const char *end) {
  return strspn(name, "0123456789abcdef") == DIGITS && !strcmp(name + DIGITS, end);
}

static bool names_plan(const char *name) { return is_named(name, plan_suffix); }
static bool names_compiler(const char *name) { return is_named(name, compiler_suffix); }

static bool is_entry(const char *name) {
  return is_named(name, suffix) || names_plan(name) || names_compiler(name);
}

static bool is_temporary(const char *name) {
  char of[DISK_CACHE_NAME_BYTES];
  size_t n = write_temporary_stem(name);
  if (n >= sizeof of) return false;
  memcpy(of, name, n);
  of[n] = 0;
  return is_entry(of);
}

/* Listing. */

/** A name of a file. */
typedef struct entry {
  char name[DISK_CACHE_NAME_BYTES];
  bool is_temporary;
  ino_t inode;
  uint64_t bytes;
  struct timespec used;
} entry;

typedef struct listing {
  int fd;
  DIR *stream;
  arena arena;
  VEC(entry) all;     /* least recently used first; the names of one file are adjacent */
  VEC(entry) folders; /* with names of files */
} listing;

static int compare_use(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
  if (x->inode != y->inode) return x->inode < y->inode ? -1 : 1;
  return x->is_temporary - y->is_temporary;
}

static void list_files(void *arg) {
  listing *l = arg;
  for (const struct dirent *e; (e = readdir(l->stream));) {
    struct stat s;
    entry found = {.is_temporary = is_temporary(e->d_name)};
    if (strlen(e->d_name) >= sizeof found.name || (!found.is_temporary && !is_entry(e->d_name)) ||
        fstatat(l->fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW))
      continue;
    strcpy(found.name, e->d_name);
    found.inode = s.st_ino;
    found.bytes = (uint64_t)s.st_size;
    found.used = s.st_mtim;
    if (S_ISREG(s.st_mode)) vec_push(&l->arena, &l->all, found);
    if (S_ISDIR(s.st_mode)) vec_push(&l->arena, &l->folders, found);
  }
  if (l->all.n) qsort(l->all.at, l->all.n, sizeof *l->all.at, compare_use);
}

/** Lists the cache's own files; also after a failure, end_listing frees the listing. */
static tn_status begin_listing(listing *l, int fd, const mem *m, diag *d) {
  *l = (listing){.fd = fd};
  arena_init(&l->arena, m, d);
  int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  l->stream = copy < 0 ? NULL : fdopendir(copy);
  if (l->stream) return diag_catch(d, list_files, l);
  diag_set(d, TN_ERR_IO, "cannot read the cache folder: %s", strerror(errno));
  if (copy >= 0) close(copy);
  return d->status;
}

static void end_listing(listing *l) {
  if (l->stream) closedir(l->stream);
  arena_free(&l->arena);
}

/** True if a name is of the same file as the one before it. */
static bool is_same_file(const listing *l, size_t i) {
  return i && l->all.at[i].inode == l->all.at[i - 1].inode;
}

static disk_cache_usage count_usage(const listing *l) {
  disk_cache_usage u = {0};
  for (size_t i = 0; i < l->all.n; i++) {
    u.entries += !l->all.at[i].is_temporary;
    u.plans += names_plan(l->all.at[i].name);
    if (!is_same_file(l, i)) u.bytes += l->all.at[i].bytes;
  }
  return u;
}

tn_status disk_cache_count(int fd, const mem *m, disk_cache_usage *u, diag *d) {
  listing l;
  tn_status status = begin_listing(&l, fd, m, d);
  *u = count_usage(&l);
  end_listing(&l);
  return status;
}

typedef struct naming {
  const listing *l;
  bool compilers;
  arena *arena;
  disk_cache_names *names;
} naming;

static void add_names(void *arg) {
  naming *w = arg;
  const listing *l = w->l;
  w->names->at = arena_alloc(w->arena, (l->all.n + 1) * sizeof *w->names->at);
  for (size_t i = 0; i < l->all.n; i++) {
    const char *name = l->all.at[i].name;
    if (l->all.at[i].is_temporary || is_same_file(l, i)) continue;
    if (w->compilers && !names_compiler(name)) continue;
    w->names->at[w->names->n++] = arena_printf(w->arena, "%s", name);
  }
}

tn_status disk_cache_list(int fd, bool compilers, arena *a, disk_cache_names *names, diag *d) {
  listing l;
  *names = (disk_cache_names){0};
  tn_status status = begin_listing(&l, fd, a->mem, d);
  if (!status) status = diag_catch(d, add_names, &(naming){&l, compilers, a, names});
  end_listing(&l);
  return status;
}

/* Trimming. */

static tn_status fail_to_lock(diag *d) {
  return diag_set(d, TN_ERR_IO, "cannot lock the file \"%s\" of the cache: %s",
                  disk_cache_lock_name, strerror(errno));
}

static void remove_entry(const listing *l, const entry *e) { unlinkat(l->fd, e->name, 0); }

/** Removes temporary files that no process goes on writing. */
static void remove_temporaries(const listing *l, bool all) {
  enum { SECONDS = 3600 };
  time_t now = time(NULL);
  for (size_t i = 0; i < l->all.n; i++) {
    const entry *e = &l->all.at[i];
    if (e->is_temporary && (all || e->used.tv_sec < now - SECONDS)) remove_entry(l, e);
  }
}

static void remove_least_used(const listing *l, const disk_cache_trim_limits *b) {
  uint64_t bytes = count_usage(l).bytes;
  if (bytes <= b->above && !b->all) return;
  for (size_t i = 0; i < l->all.n; i++) {
    const entry *e = &l->all.at[i];
    if (e->is_temporary) continue; /* comes after the other names of its file */
    if (!is_same_file(l, i)) {
      if (bytes <= b->down_to && !b->all) return;
      bytes -= e->bytes;
    }
    remove_entry(l, e);
  }
}

/** Removes the empty folders; the first that is not empty is reported when they are gone. */
static tn_status remove_folders(const listing *l, diag *d) {
  tn_status status = TN_OK;
  for (size_t i = 0; i < l->folders.n; i++) {
    const char *name = l->folders.at[i].name;
    if (unlinkat(l->fd, name, AT_REMOVEDIR) && errno != ENOENT && !status)
      status = diag_set(d, TN_ERR_IO, "cannot remove \"%s\" from the cache, a folder: %s", name,
                        strerror(errno));
  }
  return status;
}

static tn_status trim_locked(int fd, const mem *m, const disk_cache_trim_limits *b,
                             disk_cache_usage *left, diag *d) {
  listing l;
  tn_status status = begin_listing(&l, fd, m, d);
  if (!status) {
    remove_temporaries(&l, b->all);
    remove_least_used(&l, b);
    if (b->all) status = remove_folders(&l, d);
  }
  end_listing(&l);
  return status || !left ? status : disk_cache_count(fd, m, left, d);
}

tn_status disk_cache_trim(int fd, const mem *m, const disk_cache_trim_limits *b,
                          disk_cache_usage *left, diag *d) {
  int lock = openat(fd, disk_cache_lock_name,
                    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (lock < 0) return fail_to_lock(d);
  tn_status status = TN_OK;
  if (!flock(lock, LOCK_EX | LOCK_NB))
    status = trim_locked(fd, m, b, left, d);
  else if (errno == EWOULDBLOCK)
    status =
        diag_set(d, TN_ERR_BUSY, "another process is removing files from the cache; try again");
  else
    status = fail_to_lock(d);
  close(lock);
  return status;
}
