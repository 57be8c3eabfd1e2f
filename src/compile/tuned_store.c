/* Implements the store of tuned schedules. A line is

       tenon-tuned-2 KEY BUILD VERDICT DECISIONS PREDICTED MEASURED DECISIONS PREDICTED MEASURED
   CHECK

   with a hash of the library's sources, the schedule before the one that it was compared with, and
   a hash of what precedes it. A file of which more than half is superseded is replaced by the rest
   when a process begins to append. Writers hold a shared lock of the file, and write only if it is
   still the one at the path, so that no line goes to the file that was replaced. */
#include "compile/tuned_store.h"

#include "base/atomic_write.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/thread.h"
#include "codegen/decisions.h"
#include "compile/cache_keys.h"
#include "compile/tuned_compaction.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char form[] = "tenon-tuned-2";

static const char *const words[] = {
#define VERDICT(name, text) text,
    TUNED_VERDICTS(VERDICT)
#undef VERDICT
};

/** Fields of a line; its key is KEY_FIELDS of them. */
enum { FIELDS = 13, KEY_FIELDS = 3, BUILD_BYTES = 17 };

/** The file's name in the folder of the cache. */
static const char default_name[] = "tuned";

static const char other_content[] = "it begins with something else";

static const uint64_t most_file_bytes = (uint64_t)1 << 28;

struct tuned_store {
  const mem *mem;
  tuned_store_log *log;
  bool is_named; /* by the caller, not found in the folder of the cache */
  void *user;
  diag no_path; /* why there is no path, if there is none */
  char path[FILE_PATH_BYTES];
  mutex lock; /* of all below */
  bool is_read, is_compacted;
  int out;   /* open for appending; -1: not yet */
  diag diag; /* of the arena */
  arena arena;
  string_map kept; /* key → tuned_kept */
};

/** Finds the absolute path: of `file`, or of the one in `folder`. */
static void find_path(tuned_store *s, const char *file, const char *folder) {
  char in_folder[FILE_PATH_BYTES + 1 + sizeof default_name];
  snprintf(in_folder, sizeof in_folder, "%s/%s", folder ? folder : "", default_name);
  if (file_absolute_path(file ? file : in_folder, s->path, &s->no_path))
    diag_prefix(&s->no_path, "the file of tuned schedules");
}

bool tuned_store_open(tuned_store **out, const char *file, const disk_cache *cache,
                      tuned_store_log *log, void *user, const mem *m) {
  diag d = {0};
  *out = NULL;
  const char *folder = file || !cache ? NULL : disk_cache_path(cache, &d);
  if (file ? !strcmp(file, "off") : !folder) return true;
  tuned_store *s = mem_calloc(m, 1, sizeof *s);
  if (!s) return false;
  find_path(s, file, folder);
  s->mem = m;
  s->log = log;
  s->is_named = file != NULL;
  s->user = user;
  s->out = -1;
  arena_init(&s->arena, m, &s->diag);
  mutex_init(&s->lock);
  *out = s;
  return true;
}

void tuned_store_close(tuned_store *s) {
  if (!s) return;
  if (s->out >= 0) close(s->out);
  arena_free(&s->arena);
  mutex_free(&s->lock);
  mem_free(s->mem, s, sizeof *s);
}

const char *tuned_store_path(const tuned_store *s) { return s->path; }

static tn_status fail(const tuned_store *s, const char *what, const char *why, diag *d) {
  char shown[TEXT_PRINTABLE_BYTES];
  return diag_set(d, TN_ERR_IO, "the file of tuned schedules \"%s\" %s: %s",
                  text_printable(s->path, shown), what, why);
}

static tn_status refuse_path(const tuned_store *s, diag *d) {
  d->failure = s->no_path.failure;
  return d->status;
}

/* Opening. */

/** Opens the file in an open folder, unless it is a link or not the user's own. */
static tn_status open_own(const tuned_store *s, int folder, int flags, int *fd, diag *d) {
  struct stat stat;
  *fd = openat(folder, default_name, flags | O_NOFOLLOW, 0600);
  if (*fd < 0) return errno == ELOOP ? fail(s, "is not used", "a link", d) : TN_OK;
  const char *why = fstat(*fd, &stat) ? strerror(errno) : disk_cache_folder_file_fault(&stat);
  if (!why) return TN_OK;
  close(*fd);
  *fd = -1;
  if (stat.st_mode & (S_IWGRP | S_IWOTH)) why = "writable by other users; chmod go-w mends that";
  return fail(s, "is not used", why, d);
}

/** Opens the file in the cache's folder; only this user may write to both: lines decide which code
    is made. */
static tn_status open_in_folder(const tuned_store *s, int flags, int *fd, diag *d) {
  char path[FILE_PATH_BYTES];
  int folder;
  snprintf(path, sizeof path, "%s", s->path);
  *strrchr(path, '/') = 0;
  if (disk_cache_folder_open(path, flags & O_CREAT, &folder, d))
    return diag_prefix(d, "the file of tuned schedules is not used");
  tn_status status = open_own(s, folder, flags, fd, d);
  int error = errno;
  if (folder >= 0) close(folder);
  errno = error;
  return status;
}

/** Opens the file; *fd is -1, with errno, where that fails. A failure is a folder or file in it
    that is not the user's own. */
static tn_status open_file(const tuned_store *s, int flags, int *fd, diag *d) {
  if (!s->is_named) return open_in_folder(s, flags, fd, d);
  *fd = open(s->path, flags, 0666);
  return TN_OK;
}

/* Lines. */

static uint32_t check_of(const char *line, size_t bytes) {
  uint64_t hash[2];
  cache_keys_hash(line, bytes, hash);
  return (uint32_t)hash[1];
}

/** The hash of this build. */
static const char *build_text(char text[BUILD_BYTES]) {
  uint64_t hash[2];
  cache_keys_hash(build_id, strlen(build_id), hash);
  snprintf(text, BUILD_BYTES, "%016" PRIx64, hash[0]);
  return text;
}

static void add_schedule(str *line, const tuned_schedule *s) {
  str_addf(line, " %s %.0f %.0f", s->decisions, s->predicted, s->measured);
}

static const char *print_line(arena *a, const tuned_record *r, size_t *bytes) {
  str line = str_new(a);
  char build[BUILD_BYTES];
  str_addf(&line, "%s %s %s %s", form, r->key, build_text(build), words[r->verdict]);
  add_schedule(&line, &r->schedule);
  add_schedule(&line, &r->other);
  str_addf(&line, " %08" PRIx32 "\n", check_of(line.at, line.n));
  *bytes = line.n;
  return str_text(&line);
}

/** Cuts a line at its blanks; false unless it has all fields. */
static bool cut_fields(char *line, char *field[FIELDS]) {
  size_t n = 0;
  for (char *at = line; at; at = strchr(at, ' ')) {
    if (n) *at++ = 0;
    if (n == FIELDS) return false;
    field[n++] = at;
  }
  return n == FIELDS;
}

static bool parse_schedule(arena *a, char *const field[3], tuned_schedule *s) {
  decision_list unused;
  char *end[2];
  *s = (tuned_schedule){field[0], strtod(field[1], &end[0]), strtod(field[2], &end[1])};
  return !*end[0] && !*end[1] &&
         (tuned_library_of(field[0]) || decisions_parse(a, field[0], &unused));
}

/** Reads a line, whose bytes it changes; false if it is not a whole line of this form. */
static bool parse_line(arena *a, char *line, size_t bytes, tuned_record *r) {
  enum { BUILD = 1 + KEY_FIELDS, VERDICT, SCHEDULE, OTHER = SCHEDULE + 3 };
  char *field[FIELDS], *end, build[BUILD_BYTES];
  char *last = memrchr(line, ' ', bytes);
  if (!last || memchr(line, 0, bytes)) return false;
  uint32_t check = check_of(line, (size_t)(last - line));
  if (!cut_fields(line, field) || strcmp(field[0], form)) return false;
  if (strtoul(field[FIELDS - 1], &end, 16) != check || *end) return false;
  for (size_t i = 1; i < KEY_FIELDS; i++) field[1][strlen(field[1])] = ' '; /* joins them again */
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(field[VERDICT], words[i])) continue;
    *r = (tuned_record){.key = field[1],
                        .verdict = (tuned_verdict)i,
                        .is_foreign = strcmp(field[BUILD], build_text(build)) != 0};
    return parse_schedule(a, &field[SCHEDULE], &r->schedule) &&
           parse_schedule(a, &field[OTHER], &r->other);
  }
  return false;
}

/* Reading. */

typedef struct reading {
  arena arena; /* scratch */
  char *data;
  size_t bytes;
  void (*visit)(void *user, const tuned_record *r);
  void *user;
  bool is_missing; /* the file */
  bool is_other;   /* it is not empty, and begins with something else than a line of any version */
} reading;

enum { FORM_NAME_BYTES = sizeof form - 2 /* without the version */ };

static void visit_lines(void *arg) {
  reading *r = arg;
  char *end = r->data + r->bytes;
  for (char *at = r->data, *next; at < end; at = next) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    tuned_record record;
    if (!newline) return; /* torn */
    next = newline + 1;
    *newline = 0;
    arena_mark here = arena_save(&r->arena);
    if (parse_line(&r->arena, at, (size_t)(newline - at), &record)) r->visit(r->user, &record);
    arena_rewind(&r->arena, here);
  }
}

/** Reads what an open file holds by now; errno where that fails. */
static int read_bytes(int fd, char *at, size_t bytes, size_t *n) {
  for (*n = 0; *n < bytes;) {
    ssize_t got = read(fd, at + *n, bytes - *n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (!got) break;
    *n += (size_t)got;
  }
  return 0;
}

static tn_status read_file(tuned_store *s, int fd, reading *r, diag *d) {
  struct stat stat;
  if (fstat(fd, &stat)) return fail(s, "cannot be read", strerror(errno), d);
  if (!S_ISREG(stat.st_mode)) return fail(s, "cannot be read", "not a regular file", d);
  if ((uint64_t)stat.st_size > most_file_bytes) return fail(s, "cannot be read", "too large", d);
  size_t size = (size_t)stat.st_size;
  r->data = mem_alloc(s->mem, size + 1);
  if (!r->data) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  int error = read_bytes(fd, r->data, size, &r->bytes);
  r->is_other = !error && r->bytes &&
                (r->bytes < FORM_NAME_BYTES || memcmp(r->data, form, FORM_NAME_BYTES) != 0);
  tn_status status =
      error ? fail(s, "cannot be read", strerror(error), d) : diag_catch(d, visit_lines, r);
  mem_free(s->mem, r->data, size + 1);
  return status;
}

static bool is_missing_error(int error) { return error == ENOENT || error == ENOTDIR; }

static tn_status read_lines(tuned_store *s, reading *r, diag *d) {
  int fd;
  if (s->no_path.status) return refuse_path(s, d);
  r->is_missing = access(s->path, F_OK) && is_missing_error(errno);
  if (r->is_missing) return TN_OK;
  if (open_file(s, O_RDONLY | O_CLOEXEC | O_NONBLOCK, &fd, d)) return d->status;
  r->is_missing = fd < 0 && is_missing_error(errno);
  if (r->is_missing) return TN_OK;
  if (fd < 0) return fail(s, "cannot be opened", strerror(errno), d);
  arena_init(&r->arena, s->mem, d);
  tn_status status = read_file(s, fd, r, d);
  arena_free(&r->arena);
  close(fd);
  return status;
}

tn_status tuned_store_read(tuned_store *s, void (*visit)(void *user, const tuned_record *r),
                           void *user, diag *d) {
  reading r = {.visit = visit, .user = user};
  return read_lines(s, &r, d);
}

/* Lookups. */

static void set_kept(tuned_store *s, const tuned_record *r) {
  const char *decisions = arena_printf(&s->arena, "%s", r->schedule.decisions);
  tuned_kept *k = string_map_get(&s->kept, r->key);
  if (!k) {
    k = arena_calloc(&s->arena, 1, sizeof *k);
    string_map_set(&s->arena, &s->kept, arena_printf(&s->arena, "%s", r->key), k);
  }
  tuned_kept_add(k, decisions, r->other.decisions);
}

/** The decisions of the store for a kernel; NULL: none. */
static const char *find_kept(const tuned_choice *t, const char *key) {
  const tuned_kept *k = string_map_get(&t->store->kept, key);
  return k ? tuned_kept_find(k, t->libraries != LIBRARIES_OFF) : NULL;
}

/** True if the store has no decisions for any kernel. */
static bool is_empty_store(const tuned_choice *t) {
  const string_map *kept = &t->store->kept;
  for (size_t i = 0; i < kept->entries.n; i++)
    if (tuned_kept_find(kept->entries.at[i].value, t->libraries != LIBRARIES_OFF)) return false;
  return true;
}

/** Kernels that are compiled as a line says, or may be. */
static size_t count_kept(const tuned_store *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->kept.entries.n; i++) {
    const tuned_kept *k = s->kept.entries.at[i].value;
    n += k->library || strcmp(k->schedule, "-") != 0;
  }
  return n;
}

static void keep_record(void *user, const tuned_record *r) {
  if (r->verdict == TUNED_KEPT) set_kept(user, r);
}

/** Tells what was read, for users who expect schedules of a file. */
static void tell_contents(const tuned_store *s, bool lacks_file) {
  char text[TEXT_PRINTABLE_BYTES + 160], shown[TEXT_PRINTABLE_BYTES];
  const char *path = text_printable(s->path, shown);
  const size_t n = count_kept(s);
  if (lacks_file)
    snprintf(
        text, sizeof text,
        "there is no file of tuned schedules \"%s\": kernels have the schedules that the search "
        "finds, until tenon tune makes it",
        path);
  else
    snprintf(text, sizeof text, "tuned schedules of %zu kernel%s in \"%s\"", n, n == 1 ? "" : "s",
             path);
  s->log(s->user, lacks_file ? TN_LOG_WARNING : TN_LOG_INFO, text);
}

/** Reads the file at the first call; the caller holds the lock. A file that cannot be read gives no
    schedules, and a warning. */
static void read_once(const tuned_choice *t) {
  tuned_store *s = t->store;
  if (s->is_read) return;
  s->is_read = true;
  diag_clear(&s->diag);
  reading r = {.visit = keep_record, .user = s};
  tn_status status = read_lines(s, &r, &s->diag);
  if (!s->log) return;
  if (status == TN_OK && r.is_other && !s->kept.entries.n)
    status = fail(s, "is not used", other_content, &s->diag);
  if (status != TN_OK)
    s->log(s->user, TN_LOG_WARNING, s->diag.text);
  else
    tell_contents(s, r.is_missing && s->is_named && !t->is_tunable);
}

bool tuned_choice_is_empty(const tuned_choice *t) {
  bool is_empty = !t->trial || !t->trial->entries.n;
  if (!t->store || !is_empty) return is_empty;
  mutex_lock(&t->store->lock);
  read_once(t);
  is_empty = is_empty_store(t);
  mutex_unlock(&t->store->lock);
  return is_empty;
}

const char *tuned_choice_find(const tuned_choice *t, const char *key) {
  const char *found = t->trial ? string_map_get(t->trial, key) : NULL;
  if (!found && t->store) {
    mutex_lock(&t->store->lock);
    read_once(t);
    found = find_kept(t, key);
    mutex_unlock(&t->store->lock);
  }
  return found && strcmp(found, "-") ? found : NULL;
}

size_t tuned_store_count(tuned_store *s) {
  mutex_lock(&s->lock);
  read_once(&(tuned_choice){.store = s});
  size_t n = count_kept(s);
  mutex_unlock(&s->lock);
  return n;
}

/* Appending. */

/** Why nothing is appended to an open file: it is of another kind, and may be somebody's data.
   NULL: it is a store, of any version, or empty. */
static const char *check_file(int fd) {
  struct stat stat;
  char begin[FORM_NAME_BYTES];
  if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) return "not a regular file";
  ssize_t n = pread(fd, begin, sizeof begin, 0);
  if (!n || (n == (ssize_t)sizeof begin && !memcmp(begin, form, sizeof begin))) return NULL;
  return other_content;
}

static void lock_file(int fd, int how) {
  while (flock(fd, how) && errno == EINTR) continue;
}

/** True if an open file is the one at the path. */
static bool is_current(const tuned_store *s, int fd) {
  struct stat open, there;
  return !fstat(fd, &open) && !stat(s->path, &there) && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

/* Compaction. */

/** Files of fewer bytes are left alone. */
enum { LEAST_COMPACTED_BYTES = 1 << 16 };

typedef struct compaction {
  const tuned_store *store;
  int fd;
  struct stat stat;
  arena arena;
  diag diag;
} compaction;

/** Writes lines in place of the file that the path leads to. */
static void replace_file(const compaction *c, const char *data, size_t bytes) {
  char *path = realpath(c->store->path, NULL), *name = path ? strrchr(path, '/') : NULL;
  if (name) *name++ = 0;
  int folder = name ? open(*path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder >= 0)
    write_atomic(folder, name, (int)(c->stat.st_mode & 0777), &(write_part){data, bytes}, 1);
  if (folder >= 0) close(folder);
  free(path);
}

/** Moves the lines that stay to the front; returns their bytes. What is no whole line stays. */
static size_t drop_superseded(arena *a, char *data, size_t bytes) {
  VEC(tuned_line) lines = {0};
  char *end = data + bytes, *to = data;
  for (char *at = data, *next; at < end; at = next) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((newline ? newline : end) - at);
    tuned_record r;
    tuned_line l = {0};
    char *copy = arena_alloc(a, n + 1);
    memcpy(copy, at, n);
    copy[n] = 0;
    if (newline && parse_line(a, copy, n, &r))
      l = (tuned_line){r.key,     r.schedule.decisions, r.other.decisions,
                       r.verdict, r.is_foreign,         false};
    vec_push(a, &lines, l);
    next = newline ? newline + 1 : end;
  }
  tuned_lines_find_superseded(a, lines.at, lines.n);
  char *at = data;
  for (size_t i = 0; i < lines.n; i++) {
    char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;
    if (!lines.at[i].is_superseded) {
      memmove(to, at, (size_t)(next - at));
      to += next - at;
    }
    at = next;
  }
  return (size_t)(to - data);
}

static void compact_body(void *arg) {
  compaction *c = arg;
  size_t size = (size_t)c->stat.st_size, n;
  char *data = arena_alloc(&c->arena, size + 1);
  if (lseek(c->fd, 0, SEEK_SET) || read_bytes(c->fd, data, size, &n) || n != size) return;
  size_t stays = drop_superseded(&c->arena, data, size);
  if (stays < size / 2) replace_file(c, data, stays);
}

/** Replaces the file by the lines that are not superseded, if these are less than half of it.
    Nothing happens while others write, where the file has other names or owners, and where it
    cannot be replaced. */
static void compact(const tuned_store *s, int fd) {
  compaction c = {.store = s, .fd = fd};
  if (fstat(fd, &c.stat) || c.stat.st_size < LEAST_COMPACTED_BYTES || c.stat.st_nlink != 1 ||
      c.stat.st_uid != geteuid() || (uint64_t)c.stat.st_size > most_file_bytes)
    return;
  if (flock(fd, LOCK_EX | LOCK_NB)) return;
  arena_init(&c.arena, s->mem, &c.diag);
  if (!fstat(fd, &c.stat) && is_current(s, fd)) diag_catch(&c.diag, compact_body, &c);
  arena_free(&c.arena);
  lock_file(fd, LOCK_UN);
}

/* Writing. */

static tn_status open_for_appending(tuned_store *s, diag *d) {
  if (s->out >= 0) return TN_OK;
  if (s->no_path.status) return refuse_path(s, d);
  int fd;
  if (open_file(s, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, &fd, d)) return d->status;
  if (fd < 0) return fail(s, "cannot be opened", strerror(errno), d);
  const char *why = check_file(fd);
  if (!why) s->out = fd;
  if (why) close(fd);
  if (!why && !s->is_compacted) compact(s, fd);
  s->is_compacted = true;
  return why ? fail(s, "cannot be appended to", why, d) : TN_OK;
}

/** Opens the file that is at the path now, with a shared lock. */
static tn_status open_and_lock(tuned_store *s, diag *d) {
  enum { MOST_TRIES = 10 };
  for (int i = 0; i < MOST_TRIES; i++) {
    if (open_for_appending(s, d)) return d->status;
    lock_file(s->out, LOCK_SH);
    if (is_current(s, s->out)) break;
    close(s->out); /* another process compacted or removed it */
    s->out = -1;
  }
  return s->out >= 0 ? TN_OK : fail(s, "cannot be appended to", "it is replaced all the time", d);
}

/** True if the file ends in the middle of a line, which the next one must not continue. */
static bool ends_torn(int fd) {
  char last = '\n';
  off_t end = lseek(fd, 0, SEEK_END);
  return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

/** True if the file can be read with so many bytes more. */
static bool has_room(int fd, size_t bytes) {
  off_t end = lseek(fd, 0, SEEK_END);
  return end >= 0 && (uint64_t)end + bytes <= most_file_bytes;
}

typedef struct appending {
  tuned_store *store;
  const tuned_record *record;
  arena *arena; /* scratch */
  diag *diag;
} appending;

static void append_body(void *arg) {
  const appending *p = arg;
  tuned_store *s = p->store;
  size_t bytes;
  char why[WRITE_ERROR_TEXT];
  const char *line = print_line(p->arena, p->record, &bytes);
  if (open_and_lock(s, p->diag)) diag_rethrow(p->diag);
  if (ends_torn(s->out)) line = arena_printf(p->arena, "\n%s", line), bytes++;
  if (!has_room(s->out, bytes))
    fail(s, "cannot be appended to", "it is full: delete it", p->diag);
  else if (!write_parts(s->out, &(write_part){line, bytes}, 1))
    fail(s, "cannot be written", write_error_text(errno, why), p->diag);
  else
    return;
  diag_rethrow(p->diag);
}

static void keep_body(void *arg) {
  const appending *p = arg;
  set_kept(p->store, p->record);
}

tn_status tuned_store_append(tuned_store *s, const tuned_record *r, diag *d) {
  arena scratch;
  arena_init(&scratch, s->mem, d);
  appending p = {s, r, &scratch, d};
  mutex_lock(&s->lock);
  tn_status status = diag_catch(d, append_body, &p);
  if (s->out >= 0) lock_file(s->out, LOCK_UN);
  if (!status && r->verdict == TUNED_KEPT) {
    read_once(&(tuned_choice){.store = s, .is_tunable = true});
    status = diag_catch(&s->diag, keep_body, &p);
    if (status) d->failure = s->diag.failure;
  }
  mutex_unlock(&s->lock);
  arena_free(&scratch);
  return status;
}

tn_status tuned_store_check_writable(tuned_store *s, diag *d) {
  mutex_lock(&s->lock);
  tn_status status = open_for_appending(s, d);
  mutex_unlock(&s->lock);
  return status;
}
