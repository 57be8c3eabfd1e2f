/* Tests the disk cache's folder: concurrent processes and threads, a writer killed half-way,
   damaged files and files of other owners, LRU trimming within a size limit, locks, and folders
   that cannot be written, without which compilation goes on. */
#include "compile/disk_cache.h"
#include "compile/disk_cache_trim.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <tenon/cache.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

typedef struct fixture {
  diag diag;
  arena arena;
  char *folder;
  disk_cache *disk;
  int remarks;
  char remark[1024]; /* the last warning */
} fixture;

static void take_remark(void *user, const char *text) {
  fixture *f = user;
  f->remarks++;
  snprintf(f->remark, sizeof f->remark, "%s", text);
}

static void open_disk(fixture *f, const char *folder) {
  disk_cache_close(f->disk);
  f->remarks = 0;
  f->remark[0] = 0;
  assert_true(disk_cache_open(&f->disk, folder, take_remark, f, &mem_system));
}

static void make_folder(void *arg) {
  fixture *f = arg;
  f->folder = arena_printf(&f->arena, "%s/cache", temporary_folder(&f->arena));
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  arena_init(&f->arena, &mem_system, &f->diag);
  if (diag_catch(&f->diag, make_folder, f)) return -1;
  return !disk_cache_open(&f->disk, f->folder, take_remark, f, &mem_system);
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[256];
  disk_cache_close(f->disk);
  snprintf(command, sizeof command, "rm -rf '%.*s'", (int)(strlen(f->folder) - 6), f->folder);
  int status = system(command);
  arena_free(&f->arena);
  free(f);
  return status;
}

/* Keys and contents. */

static cache_key key_of(const char *text) {
  cache_key k = {.data = text, .bytes = strlen(text)};
  cache_keys_hash(text, k.bytes, k.hash);
  return k;
}

typedef struct writing {
  fixture *f;
  const cache_key *const *keys;
  size_t n;
  const void *content;
  size_t bytes;
} writing;

static void add_content(void *user, str *to) {
  const writing *w = user;
  str_add_bytes(to, w->content, w->bytes);
}

static void write_all(writing *w) { disk_cache_write(w->f->disk, w->keys, w->n, add_content, w); }

static void write_bytes(fixture *f, const char *key, const void *content, size_t bytes) {
  cache_key k = key_of(key);
  write_all(&(writing){f, (const cache_key *const[]){&k}, 1, content, bytes});
}

static void put(fixture *f, const char *key, const char *content) {
  write_bytes(f, key, content, strlen(content));
}

/** Checks the content stored for a key; NULL: none. */
static void expect(fixture *f, const char *key, const char *content) {
  disk_cache_file file;
  cache_key k = key_of(key);
  bool found = disk_cache_read(f->disk, &k, &file);
  if (found != (content != NULL))
    fail_msg("%s is %s: %s", key, found ? "there" : "gone", f->remark);
  if (!found) return;
  assert_int_not_equal(disk_cache_file_find(&file, &k), SIZE_MAX);
  assert_int_equal(file.content_bytes, strlen(content));
  assert_string_equal((const char *)file.content, content); /* a NUL follows it */
  disk_cache_free_file(f->disk, &file);
}

static const char *path_of(fixture *f, const char *key) {
  char name[DISK_CACHE_NAME_BYTES];
  cache_key k = key_of(key);
  disk_cache_file_name(&k, name);
  return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static bool is_there(fixture *f, const char *key) {
  struct stat s;
  return !lstat(path_of(f, key), &s);
}

static bool is_temporary(const char *name) {
  size_t n = strlen(name);
  return n > 5 && !strcmp(name + n - 5, ".part");
}

/** Counts the names in the folder that begin with a text. */
static int count(const fixture *f, const char *beginning) {
  int n = 0;
  DIR *d = opendir(f->folder);
  for (const struct dirent *e; d && (e = readdir(d));)
    n += !strncmp(e->d_name, beginning, strlen(beginning));
  if (d) closedir(d);
  return n;
}

/** Counts temporary files. */
static int parts(const fixture *f) {
  int n = 0;
  DIR *d = opendir(f->folder);
  for (const struct dirent *e; d && (e = readdir(d));) n += is_temporary(e->d_name);
  if (d) closedir(d);
  return n;
}

static void save(const char *path, const void *data, size_t bytes) {
  assert_true(temporary_write(path, 0600, data, bytes));
}

static size_t load(const char *path, unsigned char *data, size_t most) {
  int fd = open(path, O_RDONLY);
  assert_true(fd >= 0);
  ssize_t n = read(fd, data, most);
  close(fd);
  assert_true(n > 0 && (size_t)n < most);
  return (size_t)n;
}

/* Writing. */

static void what_is_written_is_read(void **state) {
  fixture *f = *state;
  struct stat s;
  expect(f, "a", NULL);
  put(f, "a", "one");
  put(f, "b", "");
  expect(f, "a", "one");
  expect(f, "b", "");
  put(f, "a", "another");
  expect(f, "a", "another");
  open_disk(f, f->folder);
  expect(f, "a", "another");
  assert_int_equal(stat(f->folder, &s), 0);
  assert_int_equal(s.st_mode & 07777, 0700);
  assert_int_equal(stat(path_of(f, "a"), &s), 0);
  assert_int_equal(s.st_mode & 07777, 0600);
  assert_int_equal(f->remarks + parts(f), 0);
}

static void several_keys_are_one_file(void **state) {
  fixture *f = *state;
  enum { N = 5 };
  static const char *const names[N] = {"k0", "k1", "k2", "k3", "k4"};
  cache_key k[N];
  const cache_key *keys[N];
  for (int i = 0; i < N; i++) k[i] = key_of(names[i]), keys[i] = &k[i];
  writing w = {f, keys, N, "together", 8};
  write_all(&w);
  struct stat first, s;
  assert_int_equal(stat(path_of(f, "k0"), &first), 0);
  for (int i = 0; i < N; i++) {
    disk_cache_file file;
    assert_true(disk_cache_read(f->disk, &k[i], &file));
    for (int j = 0; j < N; j++) assert_int_equal(disk_cache_file_find(&file, &k[j]), j);
    disk_cache_free_file(f->disk, &file);
    assert_int_equal(stat(path_of(f, names[i]), &s), 0);
    assert_int_equal(s.st_ino, first.st_ino);
  }
  int fd;
  disk_cache_usage u;
  assert_int_equal(disk_cache_folder_open(f->folder, false, &fd, &f->diag), TN_OK);
  assert_int_equal(disk_cache_count(fd, &mem_system, &u, &f->diag), TN_OK);
  close(fd);
  assert_int_equal(u.entries, N);
  assert_int_equal(u.bytes, s.st_size);
  assert_int_equal(parts(f), 0);
}

static void a_name_is_not_trusted(void **state) {
  fixture *f = *state;
  put(f, "a", "of a");
  assert_int_equal(rename(path_of(f, "a"), path_of(f, "b")), 0);
  expect(f, "b", NULL); /* as if both keys had the same hash */
  assert_int_equal(f->remarks, 0);
  put(f, "b", "of b");
  expect(f, "b", "of b");
}

static void it_may_be_off_or_nowhere(void **state) {
  fixture *f = *state;
  open_disk(f, "off");
  assert_null(f->disk);
  put(f, "a", "one");
  expect(f, "a", NULL);
  char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME"), path[DISK_CACHE_PATH_BYTES];
  const char *here = arena_printf(&f->arena, "%.*s", (int)(strlen(f->folder) - 6), f->folder);
  const char *below = arena_printf(&f->arena, "%s/.cache/tenon", here);
  home = home ? strdup(home) : NULL;
  xdg = xdg ? strdup(xdg) : NULL;
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", here, 1);
  assert_int_equal(disk_cache_folder_path(NULL, path, &f->diag), TN_OK);
  assert_string_equal(path, below);
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  assert_int_equal(disk_cache_folder_path(NULL, path, &f->diag), TN_OK);
  assert_string_equal(path, below);
  setenv("XDG_CACHE_HOME", "/there", 1);
  assert_int_equal(disk_cache_folder_path(NULL, path, &f->diag), TN_OK);
  assert_string_equal(path, "/there/tenon");
  assert_int_equal(disk_cache_folder_path("/a/b//", path, &f->diag), TN_OK);
  assert_string_equal(path, "/a/b");
  assert_int_equal(disk_cache_folder_path("rel", path, &f->diag), TN_OK);
  assert_true(path[0] == '/' && !strcmp(strrchr(path, '/'), "/rel"));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  open_disk(f, NULL);
  put(f, "a", "one");
  expect(f, "a", NULL);
  assert_int_equal(f->remarks, 1);
  check_text(f->remark, "HOME");
  setenv("HOME", f->folder, 1); /* absent, and not created */
  open_disk(f, NULL);
  put(f, "a", "one");
  expect(f, "a", NULL);
  assert_int_equal(f->remarks, 1);
  check_text(f->remark, f->folder);
  assert_int_equal(access(f->folder, F_OK), -1);
  if (home) setenv("HOME", home, 1);
  if (xdg) setenv("XDG_CACHE_HOME", xdg, 1);
  free(home);
  free(xdg);
}

/* Hostile files and folders. */

static void every_cut_and_every_change_is_seen(void **state) {
  fixture *f = *state;
  unsigned char data[512];
  put(f, "key", "content");
  const char *path = path_of(f, "key");
  size_t n = load(path, data, sizeof data);
  for (size_t i = 0; i < n; i++) {
    save(path, data, i);
    expect(f, "key", NULL);
    check_text(f->remark, strrchr(path, '/') + 1);
    assert_false(is_there(f, "key"));
    open_disk(f, f->folder);
  }
  for (size_t i = 0; i < 8 * n; i++) {
    data[i / 8] ^= (unsigned char)(1 << i % 8);
    save(path, data, n);
    expect(f, "key", NULL);
    assert_false(is_there(f, "key"));
    data[i / 8] ^= (unsigned char)(1 << i % 8);
  }
  data[n] = 0;
  save(path, data, n + 1);
  expect(f, "key", NULL);
  assert_int_equal(f->remarks, 1);
  save(path, data, n);
  expect(f, "key", "content");
}

/** The first damaged file is told when it is read, the number of the others on closing. */
static void damaged_files_are_counted(void **state) {
  fixture *f = *state;
  static const char *const keys[] = {"a", "b", "c", "d"};
  for (size_t n = 1; n <= 4; n++) {
    for (size_t i = 0; i < n; i++) {
      put(f, keys[i], "content");
      save(path_of(f, keys[i]), "no", 2);
    }
    open_disk(f, f->folder);
    for (size_t i = 0; i < n; i++) {
      expect(f, keys[i], NULL);
      assert_int_equal(f->remarks, 1);
    }
    check_text(f->remark, strrchr(path_of(f, "a"), '/') + 1);
    disk_cache_close(f->disk);
    f->disk = NULL;
    assert_int_equal(f->remarks, 1 + (n > 1));
    if (n > 1) check_text(f->remark, n == 2 ? "ignored 1 more file" : n == 3 ? "2 more" : "3 more");
    open_disk(f, f->folder);
  }
}

/** Files with a valid hash and wrong lengths. */
static void lengths_are_checked(void **state) {
  fixture *f = *state;
  unsigned char data[512];
  put(f, "key", "content");
  size_t n = load(path_of(f, "key"), data, sizeof data), head = 24;
  static const uint64_t lies[] = {0, 2, 3, 4, 100, UINT64_MAX, UINT64_MAX / 8 + 1, INT64_MAX};
  for (size_t at = head; at + 8 <= n; at++)
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
      unsigned char *copy = malloc(n); /* of its exact size, so that sanitizers see overruns */
      disk_cache_file file;
      cache_key k = key_of("key");
      uint64_t hash[2];
      memcpy(copy, data, n);
      memcpy(copy + at, &lies[i], sizeof lies[i]);
      cache_keys_hash(copy + head, n - head, hash);
      memcpy(copy + 8, hash, sizeof hash);
      if (!disk_cache_file_read(&file, copy, n) && disk_cache_file_find(&file, &k) == 0)
        assert_true(file.content_bytes <= n && file.content + file.content_bytes == copy + n);
      free(copy);
    }
}

static void what_is_no_file_of_ours_is_not_read(void **state) {
  fixture *f = *state;
  put(f, "key", "content");
  const char *path = path_of(f, "key"), *aside = arena_printf(&f->arena, "%s/aside", f->folder);
  assert_int_equal(chmod(path, 0622), 0);
  expect(f, "key", NULL);
  check_text(f->remark, "writable by other users");
  open_disk(f, f->folder);
  assert_false(is_there(f, "key"));
  put(f, "key", "content");
  assert_int_equal(rename(path, aside), 0);
  assert_int_equal(symlink(aside, path), 0);
  expect(f, "key", NULL);
  check_text(f->remark, "a link");
  open_disk(f, f->folder);
  assert_int_equal(access(aside, F_OK), 0);
  assert_int_equal(symlink("aside", path), 0);
  put(f, "key", "in place of a link");
  expect(f, "key", "in place of a link");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  expect(f, "key", NULL);
  check_text(f->remark, "not a regular file");
  open_disk(f, f->folder);
  assert_int_equal(mkdir(path, 0700), 0);
  expect(f, "key", NULL);
  check_text(f->remark, strrchr(path, '/') + 1);
  check_text(f->remark, "a folder; delete it, or run tenon cache --clear");
  f->remarks = 0;
  put(f, "key", "nowhere to put it");
  put(f, "other", "as ever");
  assert_int_equal(f->remarks, 0);
  expect(f, "other", "as ever");
  assert_int_equal(parts(f), 0);
}

static void check_refused(fixture *f, const char *folder, const char *why) {
  open_disk(f, folder);
  put(f, "a", "one");
  expect(f, "a", NULL);
  assert_int_equal(f->remarks, 1);
  check_text(f->remark, why);
}

static void folders_of_others_are_refused(void **state) {
  fixture *f = *state;
  put(f, "a", "one");
  assert_int_equal(chmod(f->folder, 0720), 0);
  check_refused(f, f->folder, "is writable by other users");
  assert_int_equal(chmod(f->folder, 0702), 0);
  check_refused(f, f->folder, "is writable by other users");
  assert_int_equal(chmod(f->folder, 0755), 0);
  open_disk(f, f->folder);
  expect(f, "a", "one");
  const char *link = arena_printf(&f->arena, "%s.link", f->folder);
  assert_int_equal(symlink(f->folder, link), 0);
  check_refused(f, link, "is a link");
  check_refused(f, arena_printf(&f->arena, "%s/", link), "is a link");
  unlink(link);
  assert_int_equal(symlink("/nowhere", link), 0);
  check_refused(f, link, "is a link");
  check_refused(f, path_of(f, "a"), "cannot be opened");
  check_refused(f, arena_printf(&f->arena, "%s/below", path_of(f, "a")), "cannot");
  check_refused(f, "/proc/none", "cannot");
  unlink(link);
  if (geteuid()) return;
  assert_int_equal(chown(f->folder, NOBODY, NOBODY), 0);
  check_refused(f, f->folder, "is owned by another user");
}

/* Missing write access. */

/** Runs a test in a child process, which ends with 0 or a line number. */
static int apart(fixture *f, int (*body)(fixture *f)) {
  int status = 0;
  pid_t child = fork();
  if (!child) _exit(body(f));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

enum { SKIP = 77, LARGE = 100000 };

/** In a child: writes nothing and warns once; existing files are read. */
static int write_in_vain(fixture *f, int error) {
  static char large[LARGE];
  write_bytes(f, "large", large, sizeof large);
  write_bytes(f, "larger", large, sizeof large);
  if (f->remarks != 1 || !strstr(f->remark, strerror(error))) return 3;
  if (!strstr(f->remark, f->folder)) return 6;
  if (parts(f) || is_there(f, "large") || is_there(f, "larger")) return 4;
  return 0;
}

static int with_a_limit(fixture *f) {
  const struct rlimit most = {LARGE / 2, LARGE / 2};
  if (setrlimit(RLIMIT_FSIZE, &most)) return SKIP;
  expect(f, "small", "one");
  put(f, "another", "two");
  return write_in_vain(f, EFBIG);
}

static int in_a_full_place(fixture *f) {
  if (mkdir(f->folder, 0700) && errno != EEXIST) return 5;
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", f->folder, "tmpfs", 0, "size=64k,mode=0700"))
    return SKIP;
  open_disk(f, f->folder);
  put(f, "small", "one");
  int status = write_in_vain(f, ENOSPC);
  expect(f, "small", "one");
  if (status || mount("none", f->folder, NULL, MS_REMOUNT | MS_RDONLY, NULL)) return status;
  open_disk(f, f->folder);
  expect(f, "small", "one");
  return write_in_vain(f, EROFS);
}

enum { PAGES = 16, FILES = 3 * PAGES };

/** In a child: files of a page each, more than fit. The first that does not fit finds room, as half
    of the others go; the next one is told, and nothing is written any more. */
static int in_a_place_that_fills(fixture *f) {
  static char page[3000];
  char key[16];
  int n = 0;
  if (mkdir(f->folder, 0700) && errno != EEXIST) return 5;
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", f->folder, "tmpfs", 0, "size=64k,mode=0700"))
    return SKIP;
  open_disk(f, f->folder);
  for (; n < FILES && !f->remarks; n++) {
    snprintf(key, sizeof key, "p%d", n);
    write_bytes(f, key, page, sizeof page);
    if (!f->remarks && !is_there(f, key)) return 7;
  }
  if (n <= PAGES + PAGES / 4 || n >= FILES || is_there(f, "p0")) return 8;
  if (f->remarks != 1 || !strstr(f->remark, strerror(ENOSPC)) || parts(f)) return 9;
  write_bytes(f, "later", "x", 1);
  return is_there(f, "later") || f->remarks != 1 ? 10 : 0;
}

static void a_full_disk_is_trimmed_once(void **state) {
  fixture *f = *state;
  int status = apart(f, in_a_place_that_fills);
  if (status == SKIP) print_message("no file system could be mounted\n");
  assert_true(status == 0 || status == SKIP);
}

/** In a child: files of a page each, more than fit, while another process trims the folder. Those
    that do not fit are left out without a warning, until that process is done. */
static int in_a_place_that_another_trims(fixture *f) {
  static char page[3000];
  char key[16];
  int n = 0;
  if (mkdir(f->folder, 0700) && errno != EEXIST) return 5;
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", f->folder, "tmpfs", 0, "size=64k,mode=0700"))
    return SKIP;
  int lock = open(arena_printf(&f->arena, "%s/lock", f->folder), O_RDWR | O_CREAT, 0600);
  if (lock < 0 || flock(lock, LOCK_EX)) return 6;
  open_disk(f, f->folder);
  for (; n < FILES; n++) {
    snprintf(key, sizeof key, "p%d", n);
    write_bytes(f, key, page, sizeof page);
  }
  if (f->remarks || !is_there(f, "p0") || is_there(f, key)) return 7;
  close(lock);
  write_bytes(f, "later", page, sizeof page);
  return !f->remarks && is_there(f, "later") && !is_there(f, "p0") ? 0 : 8;
}

static void a_busy_trim_leaves_files_out(void **state) {
  fixture *f = *state;
  int status = apart(f, in_a_place_that_another_trims);
  if (status == SKIP) print_message("no file system could be mounted\n");
  assert_true(status == 0 || status == SKIP);
}

static int without_permission(fixture *f) {
  if (chmod(f->folder, 0500)) return 5;
  if (!geteuid() &&
      (chown(f->folder, NOBODY, NOBODY) || chown(path_of(f, "small"), NOBODY, NOBODY) ||
       setegid(NOBODY) || seteuid(NOBODY)))
    return SKIP;
  open_disk(f, f->folder);
  expect(f, "small", "one");
  return write_in_vain(f, EACCES);
}

static void what_cannot_be_written_is_told_once(void **state) {
  fixture *f = *state;
  put(f, "small", "one");
  char *above = arena_printf(&f->arena, "%.*s", (int)(strlen(f->folder) - 6), f->folder);
  assert_int_equal(chmod(above, 0711), 0);
  int limited = apart(f, with_a_limit), full = apart(f, in_a_full_place);
  int closed = apart(f, without_permission);
  if (full == SKIP) print_message("no file system could be mounted\n");
  assert_true(limited == 0 && (full == 0 || full == SKIP) && (closed == 0 || closed == SKIP));
}

/* Several processes. */

enum { WRITERS = 6, ROUNDS = 60, SHARED = 5 };

static const char *const shared[SHARED] = {"s0", "s1", "s2", "s3", "s4"};

/** Writes and reads the same keys as the other processes; everything found is complete. */
static int work_at_once(fixture *f, int first) {
  char content[20000];
  for (int i = first; i < first + ROUNDS; i++) {
    int k = i % SHARED;
    disk_cache_file file;
    cache_key key = key_of(shared[k]);
    memset(content, 'a' + k, sizeof content);
    write_bytes(f, shared[k], content, sizeof content);
    if (!disk_cache_read(f->disk, &key, &file)) return 2;
    bool same =
        file.content_bytes == sizeof content && !memcmp(file.content, content, sizeof content);
    disk_cache_free_file(f->disk, &file);
    if (!same) return 3;
  }
  return f->remarks ? 4 : 0;
}

static _Noreturn void work_apart(fixture *f, int number) {
  open_disk(f, f->folder);
  _exit(work_at_once(f, number));
}

static void processes_share_it(void **state) {
  fixture *f = *state;
  pid_t child[WRITERS];
  for (int i = 0; i < WRITERS; i++)
    if (!(child[i] = fork())) work_apart(f, i);
  for (int i = 0; i < WRITERS; i++) {
    int status;
    assert_int_equal(waitpid(child[i], &status, 0), child[i]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
  assert_int_equal(parts(f), 0);
  for (int i = 0; i < SHARED; i++) assert_true(is_there(f, shared[i]));
}

typedef struct worker {
  fixture f; /* a fixture on the shared folder */
  int number, status;
  pthread_t thread;
} worker;

static void *work_beside(void *arg) {
  worker *w = arg;
  arena_init(&w->f.arena, &mem_system, &w->f.diag);
  w->status = work_at_once(&w->f, w->number);
  arena_free(&w->f.arena);
  return NULL;
}

static void threads_share_it(void **state) {
  fixture *f = *state;
  static worker w[WRITERS];
  for (int i = 0; i < WRITERS; i++) {
    w[i] = (worker){.f = {.disk = f->disk}, .number = i};
    assert_int_equal(pthread_create(&w[i].thread, NULL, work_beside, &w[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++) pthread_join(w[i].thread, NULL);
  for (int i = 0; i < WRITERS; i++) assert_int_equal(w[i].status, 0);
  assert_int_equal(parts(f), 0);
  for (int i = 0; i < SHARED; i++) assert_true(is_there(f, shared[i]));
  assert_int_equal(f->remarks, 0);
}

static _Noreturn void write_for_ever(fixture *f) {
  static char content[200000];
  open_disk(f, f->folder);
  for (unsigned i = 0;; i++) {
    memset(content, (int)('a' + i % 26), sizeof content);
    write_bytes(f, shared[i % SHARED], content, sizeof content);
    arena_free(&f->arena);
  }
}

static void age(const char *path, time_t seconds) {
  const struct timespec then[] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path, then, AT_SYMLINK_NOFOLLOW), 0);
}

static void age_parts(fixture *f, time_t seconds) {
  DIR *d = opendir(f->folder);
  for (const struct dirent *e; (e = readdir(d));)
    if (is_temporary(e->d_name))
      age(arena_printf(&f->arena, "%s/%s", f->folder, e->d_name), seconds);
  closedir(d);
}

static disk_cache_usage trim(fixture *f, uint64_t above, uint64_t down_to, bool all) {
  int fd;
  disk_cache_usage left = {0};
  assert_int_equal(disk_cache_folder_open(f->folder, false, &fd, &f->diag), TN_OK);
  tn_status s = disk_cache_trim(fd, &mem_system, &(disk_cache_trim_limits){above, down_to, all},
                                &left, &f->diag);
  close(fd);
  if (s) fail_msg("%s", f->diag.text);
  return left;
}

static void who_is_killed_leaves_nothing_half_written(void **state) {
  fixture *f = *state;
  enum { KILLS = 25 };
  for (int i = 0; i < KILLS; i++) {
    pid_t child = fork();
    if (!child) write_for_ever(f);
    usleep((useconds_t)(8000 + 700 * i));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int k = 0; k < SHARED; k++) {
      disk_cache_file file;
      cache_key key = key_of(shared[k]);
      if (disk_cache_read(f->disk, &key, &file)) {
        assert_int_equal(file.content_bytes, 200000);
        assert_int_equal(file.content[0], file.content[199999]);
        disk_cache_free_file(f->disk, &file);
      }
    }
    assert_int_equal(f->remarks, 0);
  }
  assert_true(is_there(f, shared[0]));
  save(arena_printf(&f->arena, "%s.1-0.part", path_of(f, "half")), "half", 4);
  int before = parts(f);
  trim(f, UINT64_MAX, 0, false); /* too young: possibly being written */
  assert_int_equal(parts(f), before);
  age_parts(f, 4000);
  trim(f, UINT64_MAX, 0, false);
  assert_int_equal(parts(f), 0);
  assert_true(is_there(f, shared[0]));
}

/* Bounds. */

static void the_least_recently_used_goes_first(void **state) {
  fixture *f = *state;
  struct stat s;
  cache_key k[2] = {key_of("b0"), key_of("b1")};
  writing w = {f, (const cache_key *const[]){&k[0], &k[1]}, 2, "abc", 3};
  put(f, "a", "abc");
  write_all(&w);
  put(f, "c", "abc");
  put(f, "d", "abc");
  assert_int_equal(stat(path_of(f, "a"), &s), 0);
  uint64_t one = (uint64_t)s.st_size;
  assert_int_equal(stat(path_of(f, "b0"), &s), 0);
  uint64_t two = (uint64_t)s.st_size;
  age(path_of(f, "d"), 500);
  age(path_of(f, "b0"), 400);
  age(path_of(f, "a"), 300);
  age(path_of(f, "c"), 200);
  expect(f, "d", "abc"); /* marks it as used */
  disk_cache_usage left = trim(f, 3 * one + two, 0, false);
  assert_int_equal(left.bytes, 3 * one + two);
  left = trim(f, 3 * one + two - 1, 3 * one + two - 1, false);
  assert_int_equal(left.bytes, 3 * one);
  assert_int_equal(left.entries, 3);
  assert_false(is_there(f, "b0") || is_there(f, "b1"));
  trim(f, 0, 2 * one, false);
  assert_false(is_there(f, "a"));
  trim(f, 0, one, false);
  expect(f, "c", NULL);
  expect(f, "d", "abc");
}

static void what_is_not_the_caches_stays(void **state) {
  fixture *f = *state;
  static const char *const foreign[] = {"notes.tenon",
                                        "0123.tenon",
                                        "notes.tenon.1-0.part",
                                        "0123456789abcdef0123456789abcdef.tenon.part",
                                        "0123456789abcdef0123456789abcdef.tenon.1-.part",
                                        "0123456789abcdef0123456789abcdef.tenon.1-0.part~",
                                        "0123456789ABCDEF0123456789abcdef.tenon",
                                        "0123456789abcdef0123456789abcdef.tenon~"};
  enum { FOREIGN = sizeof foreign / sizeof *foreign };
  put(f, "a", "one");
  put(f, "b", "two");
  const char *link = path_of(f, "link"), *folder = path_of(f, "folder");
  const char *outside = arena_printf(&f->arena, "%s.outside", f->folder);
  save(outside, "x", 1);
  assert_int_equal(symlink(outside, link), 0);
  assert_int_equal(mkdir(folder, 0700), 0);
  for (size_t i = 0; i < FOREIGN; i++)
    save(arena_printf(&f->arena, "%s/%s", f->folder, foreign[i]), "x", 1);
  const char *part = arena_printf(&f->arena, "%s.77-1.part", path_of(f, "a"));
  save(part, "x", 1);
  save(path_of(f, "empty"), "", 0);
  disk_cache_usage left = trim(f, 0, 0, true);
  assert_int_equal(left.entries + left.bytes, 0);
  for (size_t i = 0; i < FOREIGN; i++) assert_true(count(f, foreign[i]) > 0);
  assert_true(is_there(f, "link") && !is_there(f, "folder"));
  assert_int_equal(access(outside, F_OK), 0);
  assert_false(is_there(f, "a") || is_there(f, "b") || is_there(f, "empty"));
  assert_int_equal(access(part, F_OK), -1);
  expect(f, "a", NULL);
}

static void check_not_cleared(fixture *f, const char *why) {
  int fd;
  disk_cache_usage left;
  assert_int_equal(disk_cache_folder_open(f->folder, false, &fd, &f->diag), TN_OK);
  assert_int_equal(
      disk_cache_trim(fd, &mem_system, &(disk_cache_trim_limits){.all = true}, &left, &f->diag),
      TN_ERR_IO);
  check_text(f->diag.text, why);
  f->diag = (diag){0};
  close(fd);
}

static void folders_in_the_place_of_files_are_told(void **state) {
  fixture *f = *state;
  put(f, "a", "one");
  const char *full = path_of(f, "full");
  assert_int_equal(mkdir(full, 0700), 0);
  assert_int_equal(mkdir(path_of(f, "empty"), 0700), 0);
  save(arena_printf(&f->arena, "%s/mine", full), "x", 1);
  check_not_cleared(f, strrchr(full, '/') + 1);
  assert_true(is_there(f, "full"));
  assert_false(is_there(f, "empty") || is_there(f, "a"));
}

/** Checks that a folder with a bad lock file is not used, with one warning that says what to do. */
static void check_lock(fixture *f, const char *why) {
  int fd;
  open_disk(f, f->folder);
  put(f, "a", "one");
  put(f, "b", "two");
  assert_int_equal(f->remarks, 1);
  check_text(f->remark, why);
  assert_false(is_there(f, "a"));
  assert_int_equal(disk_cache_folder_open(f->folder, false, &fd, &f->diag), TN_ERR_IO);
  check_text(f->diag.text, why);
  f->diag = (diag){0};
}

static void locks_are_files(void **state) {
  fixture *f = *state;
  const char *lock = arena_printf(&f->arena, "%s/lock", f->folder);
  assert_int_equal(mkdir(f->folder, 0700), 0);
  assert_int_equal(mkdir(lock, 0700), 0);
  check_lock(f, "\"lock\" of the cache is a folder; remove it");
  rmdir(lock);
  assert_int_equal(symlink("nowhere", lock), 0);
  check_lock(f, "\"lock\" of the cache is a link; remove it");
  unlink(lock);
  assert_int_equal(mkfifo(lock, 0600), 0);
  check_lock(f, "\"lock\" of the cache is not a regular file; remove it");
  unlink(lock);
  open_disk(f, f->folder);
  put(f, "a", "one");
  expect(f, "a", "one");
}

static void one_process_trims_at_a_time(void **state) {
  fixture *f = *state;
  put(f, "a", "one");
  int fd, lock;
  disk_cache_usage left;
  assert_int_equal(disk_cache_folder_open(f->folder, false, &fd, &f->diag), TN_OK);
  trim(f, UINT64_MAX, 0, false);
  lock = openat(fd, "lock", O_RDWR);
  assert_true(lock >= 0);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  assert_int_equal(
      disk_cache_trim(fd, &mem_system, &(disk_cache_trim_limits){0, 0, true}, &left, &f->diag),
      TN_ERR_BUSY);
  expect(f, "a", "one");
  close(lock);
  trim(f, 0, 0, true);
  expect(f, "a", NULL);
  close(fd);
}

/** Every so many stores the cache is trimmed: here of a sparse file with a large size. */
static void it_trims_itself(void **state) {
  fixture *f = *state;
  put(f, "old", "old");
  assert_int_equal(truncate(path_of(f, "old"), (off_t)TN_CACHE_LIMIT), 0);
  age(path_of(f, "old"), 1000);
  for (int i = 0; is_there(f, "old"); i++) {
    assert_true(i < 1000);
    put(f, arena_printf(&f->arena, "new %d", i), "new");
  }
  expect(f, "new 0", "new");
}

/* Memory. */

static void use_all(fixture *f, const mem *m) {
  disk_cache *was = f->disk;
  cache_key k[2] = {key_of("m0"), key_of("m1")};
  writing w = {f, (const cache_key *const[]){&k[0], &k[1]}, 2, "content", 7};
  disk_cache_file file;
  if (!disk_cache_open(&f->disk, f->folder, take_remark, f, m)) {
    f->disk = was;
    return;
  }
  write_all(&w);
  if (disk_cache_read(f->disk, &k[1], &file)) {
    assert_int_equal(file.content_bytes, 7);
    disk_cache_free_file(f->disk, &file);
  }
  disk_cache_close(f->disk);
  f->disk = was;
  int fd;
  disk_cache_usage u;
  if (disk_cache_folder_open(f->folder, true, &fd, &f->diag)) fail_msg("%s", f->diag.text);
  disk_cache_count(fd, m, &u, &f->diag);
  disk_cache_trim(fd, m, &(disk_cache_trim_limits){0}, &u, &f->diag);
  close(fd);
}

static void memory_may_run_out(void **state) {
  fixture *f = *state;
  counting c = {0};
  const mem m = {counting_alloc, counting_release, &c};
  size_t n = 0;
  do {
    c = (counting){.fail_at = ++n};
    use_all(f, &m);
    assert_int_equal(c.out, 0);
  } while (c.calls >= n);
  assert_int_equal(parts(f), 0);
  assert_true(n > 5);
  assert_true(f->remarks > 0);
  assert_non_null(strstr(f->remark, "kernel cache: cannot write a file: out of memory"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(what_is_written_is_read),
                                     TEST(several_keys_are_one_file),
                                     TEST(a_name_is_not_trusted),
                                     TEST(it_may_be_off_or_nowhere),
                                     TEST(every_cut_and_every_change_is_seen),
                                     TEST(damaged_files_are_counted),
                                     TEST(lengths_are_checked),
                                     TEST(what_is_no_file_of_ours_is_not_read),
                                     TEST(folders_of_others_are_refused),
                                     TEST(what_cannot_be_written_is_told_once),
                                     TEST(a_full_disk_is_trimmed_once),
                                     TEST(a_busy_trim_leaves_files_out),
                                     TEST(processes_share_it),
                                     TEST(threads_share_it),
                                     TEST(who_is_killed_leaves_nothing_half_written),
                                     TEST(the_least_recently_used_goes_first),
                                     TEST(what_is_not_the_caches_stays),
                                     TEST(locks_are_files),
                                     TEST(folders_in_the_place_of_files_are_told),
                                     TEST(one_process_trims_at_a_time),
                                     TEST(it_trims_itself),
                                     TEST(memory_may_run_out)};
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
