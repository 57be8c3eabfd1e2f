#include "base/write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Limits. */

/** What keeps SIGXFSZ from a thread. */
typedef struct hold {
  sigset_t signal, before;
  bool was_pending;
} hold;

static void begin_hold(hold *h) {
  sigset_t pending;
  sigemptyset(&h->signal);
  sigaddset(&h->signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &h->signal, &h->before);
  sigpending(&pending);
  h->was_pending = sigismember(&pending, SIGXFSZ);
}

/** Takes the signal that a write has raised; one that was there before is somebody else's. */
static void end_hold(const hold *h, bool raised) {
  int error = errno;
  while (raised && !h->was_pending && sigtimedwait(&h->signal, NULL, &(struct timespec){0}) < 0 &&
         errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &h->before, NULL);
  errno = error;
}

const char *write_reason(int error, char text[WRITE_REASON]) {
  struct rlimit most;
  bool limited = error == EFBIG && !getrlimit(RLIMIT_FSIZE, &most);
  snprintf(text, WRITE_REASON, "%.90s", strerror(error));
  if (limited && most.rlim_cur != RLIM_INFINITY)
    snprintf(text + strlen(text), WRITE_REASON - strlen(text),
             ": the limit is %llu bytes (ulimit -f)", (unsigned long long)most.rlim_cur);
  return text;
}

/* What is open. */

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

bool write_parts(int fd, const file_part parts[], size_t n) {
  hold h;
  bool ok = true;
  begin_hold(&h);
  for (size_t i = 0; i < n && ok; i++) ok = write_all(fd, parts[i].data, parts[i].bytes);
  end_hold(&h, !ok && errno == EFBIG);
  return ok;
}

/* Over what is there. */

/** Whether a file may hold so many bytes, told before any of its own is lost. */
static bool has_room(int fd, size_t bytes) {
  struct rlimit most;
  if (!getrlimit(RLIMIT_FSIZE, &most) && bytes > most.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  if (!bytes || !fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes)) return true;
  return errno != ENOSPC && errno != EDQUOT && errno != EFBIG; /* else none can be reserved */
}

bool write_over(int fd, const file_part parts[], size_t n) {
  struct stat s;
  size_t bytes = 0;
  if (fstat(fd, &s)) return false;
  if (!S_ISREG(s.st_mode)) return write_parts(fd, parts, n);
  for (size_t i = 0; i < n; i++) bytes += parts[i].bytes;
  return has_room(fd, bytes) && write_parts(fd, parts, n) && !ftruncate(fd, (off_t)bytes);
}

/* Temporary names: NAME.PROCESS-NUMBER.part, where a very long NAME is cut. */

enum { MOST_NAMES = 1000, NAME_BYTES = NAME_MAX + 1, NAME_SHOWN = 200 };

static const char suffix[] = ".part", digits[] = "0123456789";

static void temporary_name(char made[NAME_BYTES], const char *name, int i) {
  snprintf(made, NAME_BYTES, "%.*s.%ld-%d%s", NAME_SHOWN, name, (long)getpid(), i, suffix);
}

/** Whether a text is PROCESS-NUMBER.part. */
static bool ends_temporary(const char *at) {
  size_t process = strspn(at, digits);
  if (!process || at[process] != '-') return false;
  at += process + 1;
  return strspn(at, digits) && !strcmp(at + strspn(at, digits), suffix);
}

size_t write_temporary_of(const char *name) {
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
    if (ends_temporary(dot + 1)) return (size_t)(dot - name);
  return 0;
}

static void remove_quietly(int folder, const char *name) {
  int error = errno;
  unlinkat(folder, name, 0);
  errno = error;
}

static bool is_one(int folder, const char *a, const char *b) {
  struct stat s, t;
  return !fstatat(folder, a, &s, AT_SYMLINK_NOFOLLOW) &&
         !fstatat(folder, b, &t, AT_SYMLINK_NOFOLLOW) && s.st_dev == t.st_dev &&
         s.st_ino == t.st_ino;
}

/** Puts what has a temporary name in the place of what has the name that is meant. */
static bool move(int folder, const char *temporary, const char *name) {
  bool ok = !renameat(folder, temporary, folder, name);
  /* Where both names were one file's already, it is there yet. */
  if (!ok || is_one(folder, temporary, name)) remove_quietly(folder, temporary);
  return ok;
}

/** Names what a path leads to; by way of a temporary name, as a link takes nothing's place. */
static bool give_name(const char *path, int flags, int folder, const char *name) {
  char made[NAME_BYTES];
  for (int i = 0; i < MOST_NAMES; i++) {
    temporary_name(made, name, i);
    if (!linkat(folder, path, folder, made, flags)) return move(folder, made, name);
    if (errno != EEXIST) return false;
  }
  return false;
}

bool write_alias(int folder, const char *there, const char *name) {
  return is_one(folder, there, name) || give_name(there, 0, folder, name);
}

/* Whole files. */

static mode_t usual(int mode) { return mode == WRITE_USUAL ? 0666 : (mode_t)mode; }

/** Writes all; what would be told when the file is closed is told as well. */
static bool fill(int fd, int mode, const file_part parts[], size_t n) {
  if (mode != WRITE_USUAL && fchmod(fd, usual(mode))) return false;
  if (!write_parts(fd, parts, n)) return false;
  int copy = dup(fd);
  return copy >= 0 && !close(copy);
}

static void close_quietly(int fd) {
  int error = errno;
  close(fd);
  errno = error;
}

/** Opens a new file under a temporary name. */
static int open_part(int folder, char made[NAME_BYTES], const char *name, int mode) {
  static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  errno = EEXIST;
  for (int i = 0; i < MOST_NAMES && fd < 0 && errno == EEXIST; i++) {
    temporary_name(made, name, i);
    fd = openat(folder, made, flags, usual(mode));
  }
  return fd;
}

static bool write_named(int folder, const char *name, int mode, const file_part parts[], size_t n) {
  char made[NAME_BYTES];
  int fd = open_part(folder, made, name, mode);
  if (fd < 0) return false;
  bool ok = fill(fd, mode, parts, n);
  close_quietly(fd);
  if (ok) return move(folder, made, name);
  remove_quietly(folder, made);
  return false;
}

bool write_whole(int folder, const char *name, int mode, const file_part parts[], size_t n) {
  char path[64];
  int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, usual(mode));
  if (fd < 0) return write_named(folder, name, mode, parts, n);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  bool full = fill(fd, mode, parts, n);
  bool named = full && give_name(path, AT_SYMLINK_FOLLOW, folder, name);
  close_quietly(fd);
  return named || (full && write_named(folder, name, mode, parts, n));
}
