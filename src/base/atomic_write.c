/* Implements writes to open descriptors and atomic file replacement: the contents go to an unnamed
   file (O_TMPFILE), which linkat names temporarily and renameat then puts in place of the old file;
   where O_TMPFILE is not supported, the file has a temporary name from the start. SIGXFSZ is
   blocked while a thread writes. */
#include "base/atomic_write.h"

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

/* The limit on the size of files. */

/** A thread's signal mask while it writes. */
typedef struct signal_hold {
  sigset_t signal, before; /* SIGXFSZ alone; the mask to restore */
  bool was_pending;
} signal_hold;

static void block_size_signal(signal_hold *h) {
  sigset_t pending;
  sigemptyset(&h->signal);
  sigaddset(&h->signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &h->signal, &h->before);
  sigpending(&pending);
  h->was_pending = sigismember(&pending, SIGXFSZ);
}

/** Discards the signal that a write raised, and restores the mask; a signal that was pending before
    belongs to the program. */
static void restore_signals(const signal_hold *h, bool raised) {
  int error = errno;
  while (raised && !h->was_pending && sigtimedwait(&h->signal, NULL, &(struct timespec){0}) < 0 &&
         errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &h->before, NULL);
  errno = error;
}

const char *write_error_text(int error, char text[WRITE_ERROR_TEXT]) {
  struct rlimit most;
  bool limited = error == EFBIG && !getrlimit(RLIMIT_FSIZE, &most);
  snprintf(text, WRITE_ERROR_TEXT, "%.90s", strerror(error));
  if (limited && most.rlim_cur != RLIM_INFINITY)
    snprintf(text + strlen(text), WRITE_ERROR_TEXT - strlen(text),
             ": the limit is %llu bytes (ulimit -f)", (unsigned long long)most.rlim_cur);
  return text;
}

/* Open descriptors. */

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

bool write_parts(int fd, const write_part parts[], size_t n) {
  signal_hold h;
  bool ok = true;
  block_size_signal(&h);
  for (size_t i = 0; i < n && ok; i++) ok = write_all(fd, parts[i].data, parts[i].bytes);
  restore_signals(&h, !ok && errno == EFBIG);
  return ok;
}

/** Reserves room for so many bytes, before the file's contents are overwritten; false with errno
   set where there is none. */
static bool reserve_room(int fd, size_t bytes) {
  struct rlimit most;
  if (!getrlimit(RLIMIT_FSIZE, &most) && bytes > most.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  if (!bytes || !fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes)) return true;
  return errno != ENOSPC && errno != EDQUOT &&
         errno != EFBIG; /* otherwise the file system cannot reserve */
}

bool write_replace_contents(int fd, const write_part parts[], size_t n) {
  struct stat s;
  size_t bytes = 0;
  if (fstat(fd, &s)) return false;
  if (!S_ISREG(s.st_mode)) return write_parts(fd, parts, n);
  for (size_t i = 0; i < n; i++) bytes += parts[i].bytes;
  return reserve_room(fd, bytes) && write_parts(fd, parts, n) && !ftruncate(fd, (off_t)bytes);
}

/* Temporary names: NAME.PROCESS-NUMBER.part, NAME being cut at 200 bytes. */

enum { MAX_NAMES = 1000, NAME_BYTES = NAME_MAX + 1, NAME_SHOWN = 200 };

static const char suffix[] = ".part", digits[] = "0123456789";

static void temporary_name(char temporary[NAME_BYTES], const char *name, int i) {
  snprintf(temporary, NAME_BYTES, "%.*s.%ld-%d%s", NAME_SHOWN, name, (long)getpid(), i, suffix);
}

/** True if a text is PROCESS-NUMBER.part. */
static bool is_temporary_suffix(const char *at) {
  size_t process = strspn(at, digits);
  if (!process || at[process] != '-') return false;
  at += process + 1;
  return strspn(at, digits) && !strcmp(at + strspn(at, digits), suffix);
}

size_t write_temporary_stem(const char *name) {
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
    if (is_temporary_suffix(dot + 1)) return (size_t)(dot - name);
  return 0;
}

static void unlink_keeping_errno(int folder, const char *name) {
  int error = errno;
  unlinkat(folder, name, 0);
  errno = error;
}

static bool is_same_file(int folder, const char *a, const char *b) {
  struct stat s, t;
  return !fstatat(folder, a, &s, AT_SYMLINK_NOFOLLOW) &&
         !fstatat(folder, b, &t, AT_SYMLINK_NOFOLLOW) && s.st_dev == t.st_dev &&
         s.st_ino == t.st_ino;
}

/** Renames a temporary file, in place of any file that has the name. */
static bool rename_temporary(int folder, const char *temporary, const char *name) {
  bool ok = !renameat(folder, temporary, folder, name);
  /* renameat does nothing where both names are links of one file */
  if (!ok || is_same_file(folder, temporary, name)) unlink_keeping_errno(folder, temporary);
  return ok;
}

/** Links the file at a path under a name; by a temporary name, as linkat replaces no file. */
static bool link_as(const char *path, int flags, int folder, const char *name) {
  char temporary[NAME_BYTES];
  for (int i = 0; i < MAX_NAMES; i++) {
    temporary_name(temporary, name, i);
    if (!linkat(folder, path, folder, temporary, flags))
      return rename_temporary(folder, temporary, name);
    if (errno != EEXIST) return false;
  }
  return false;
}

bool write_hard_link(int folder, const char *there, const char *name) {
  return is_same_file(folder, there, name) || link_as(there, 0, folder, name);
}

/* Whole files. */

static mode_t mode_of_new_file(int mode) {
  return mode == WRITE_DEFAULT_MODE ? 0666 : (mode_t)mode;
}

/** Writes all and reports the errors that close(2) would (NFS, quotas), by closing a duplicate. */
static bool write_and_flush(int fd, int mode, const write_part parts[], size_t n) {
  if (mode != WRITE_DEFAULT_MODE && fchmod(fd, mode_of_new_file(mode))) return false;
  if (!write_parts(fd, parts, n)) return false;
  int copy = dup(fd);
  return copy >= 0 && !close(copy);
}

static void close_keeping_errno(int fd) {
  int error = errno;
  close(fd);
  errno = error;
}

/** Creates a file under a temporary name; returns its descriptor, or -1. */
static int create_temporary(int folder, char temporary[NAME_BYTES], const char *name, int mode) {
  static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  errno = EEXIST;
  for (int i = 0; i < MAX_NAMES && fd < 0 && errno == EEXIST; i++) {
    temporary_name(temporary, name, i);
    fd = openat(folder, temporary, flags, mode_of_new_file(mode));
  }
  return fd;
}

static bool write_through_temporary(int folder, const char *name, int mode,
                                    const write_part parts[], size_t n) {
  char temporary[NAME_BYTES];
  int fd = create_temporary(folder, temporary, name, mode);
  if (fd < 0) return false;
  bool ok = write_and_flush(fd, mode, parts, n);
  close_keeping_errno(fd);
  if (ok) return rename_temporary(folder, temporary, name);
  unlink_keeping_errno(folder, temporary);
  return false;
}

bool write_atomic(int folder, const char *name, int mode, const write_part parts[], size_t n) {
  char path[64];
  int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode_of_new_file(mode));
  if (fd < 0) return write_through_temporary(folder, name, mode, parts, n);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  bool full = write_and_flush(fd, mode, parts, n);
  bool named = full && link_as(path, AT_SYMLINK_FOLLOW, folder, name);
  close_keeping_errno(fd);
  return named || (full && write_through_temporary(folder, name, mode, parts, n));
}
