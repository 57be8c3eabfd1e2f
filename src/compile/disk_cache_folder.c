/* Implements the folder of the disk cache: finds its path, opens it and checks who may write to it
   and to its files. */
#include "compile/disk_cache_folder.h"

#include "base/environment.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path. */

/** With a slash at the end, a link would be followed. */
static void cut_slashes(char *path) {
  for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';) path[--n] = 0;
}

static tn_status join_path(char path[DISK_CACHE_PATH_BYTES], const char *under, const char *rest,
                           diag *d) {
  int n = snprintf(path, DISK_CACHE_PATH_BYTES, "%s/%s", under, rest);
  if (n < 0 || n >= DISK_CACHE_PATH_BYTES)
    return diag_set(d, TN_ERR_IO, "the path of the cache folder is too long");
  return TN_OK;
}

/** Never creates $HOME. */
static tn_status join_home(char path[DISK_CACHE_PATH_BYTES], const char *home, diag *d) {
  char shown[TEXT_PRINTABLE_BYTES];
  struct stat s;
  if (!stat(home, &s) && S_ISDIR(s.st_mode)) return join_path(path, home, ".cache/tenon", d);
  return diag_set(d, TN_ERR_IO,
                  "no cache folder: HOME is \"%.256s\", which does not exist; set TENON_CACHE or "
                  "XDG_CACHE_HOME",
                  text_printable(home, shown));
}

tn_status disk_cache_folder_path(const char *given, char path[DISK_CACHE_PATH_BYTES], diag *d) {
  const char *xdg = environment_get("XDG_CACHE_HOME"), *home = environment_get("HOME");
  if (given) {
    tn_status s = file_absolute_path(given, path, d);
    cut_slashes(path);
    return s;
  }
  if (xdg && xdg[0] == '/')
    return join_path(path, xdg, "tenon", d); /* its specification: no others */
  if (home && home[0] == '/') return join_home(path, home, d);
  return diag_set(d, TN_ERR_IO, "no cache folder: set TENON_CACHE, XDG_CACHE_HOME or HOME");
}

/* Opening. */

const char disk_cache_lock_name[] = "lock";

static tn_status refuse_folder(const char *path, const char *why, diag *d) {
  char shown[TEXT_PRINTABLE_BYTES];
  return diag_set(d, TN_ERR_IO, "the cache folder \"%s\" %s", text_printable(path, shown), why);
}

const char *disk_cache_folder_file_fault(const struct stat *s) {
  if (S_ISDIR(s->st_mode)) return "a folder";
  if (!S_ISREG(s->st_mode)) return "not a regular file";
  if (s->st_uid != geteuid()) return "owned by another user";
  return s->st_mode & (S_IWGRP | S_IWOTH) ? "writable by other users" : NULL;
}

/** Refuses a lock that is no regular file: it would lock nobody out, or could not be opened. */
static tn_status check_lock(int folder, diag *d) {
  struct stat s;
  if (fstatat(folder, disk_cache_lock_name, &s, AT_SYMLINK_NOFOLLOW) || S_ISREG(s.st_mode))
    return TN_OK;
  return diag_set(d, TN_ERR_IO, "the file \"%s\" of the cache is %s; remove it",
                  disk_cache_lock_name,
                  S_ISLNK(s.st_mode)   ? "a link"
                  : S_ISDIR(s.st_mode) ? "a folder"
                                       : "not a regular file");
}

static tn_status check_folder(const char *path, int fd, diag *d) {
  struct stat s;
  if (fstat(fd, &s)) return refuse_folder(path, strerror(errno), d);
  if (s.st_uid != geteuid()) return refuse_folder(path, "is owned by another user", d);
  if (s.st_mode & (S_IWGRP | S_IWOTH)) return refuse_folder(path, "is writable by other users", d);
  return check_lock(fd, d);
}

static tn_status fail_to_open(const char *path, diag *d) {
  int error = errno;
  char why[128];
  struct stat s;
  if (!lstat(path, &s) && S_ISLNK(s.st_mode))
    return refuse_folder(path, "is a link; use the path of the folder itself", d);
  snprintf(why, sizeof why, "cannot be opened: %s", strerror(error));
  return refuse_folder(path, why, d);
}

tn_status disk_cache_folder_open(const char *path, bool make, int *out, diag *d) {
  static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  *out = -1;
  int fd = open(path, flags);
  if (fd < 0 && errno == ENOENT) {
    tn_status made =
        make ? file_create_folders(path, 0700, d) : file_check_folder_writable(path, d);
    if (made || !make) return made;
    fd = open(path, flags);
  }
  if (fd < 0) return fail_to_open(path, d);
  tn_status status = check_folder(path, fd, d);
  if (status)
    close(fd);
  else
    *out = fd;
  return status;
}
