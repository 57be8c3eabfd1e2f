/* Tests atomic file replacement: a file is written whole or not at all, also on file systems
   without unnamed temporary files, at size limits, in folders that allow no new file, and when the
   process is killed meanwhile. */
#include "base/file.h"
#include "base/process.h"
#include "base/str.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77, LARGE = 64 << 20 };

static char large[LARGE];

typedef struct place {
  arena arena;
  diag diag;
  char *folder, *path;
} place;

static int make_place(void **state) {
  place *p = calloc(1, sizeof *p);
  arena_init(&p->arena, &mem_system, &p->diag);
  *state = p;
  p->folder = temporary_folder(&p->arena);
  p->path = arena_printf(&p->arena, "%s/f", p->folder);
  return p->folder ? 0 : -1;
}

static int remove_place(void **state) {
  place *p = *state;
  unlink(p->path);
  int left = rmdir(p->folder); /* fails if files are left */
  arena_free(&p->arena);
  free(p);
  return left;
}

/** Counts the files of the folder whose names are not "f". */
static int others(const place *p) {
  int n = 0;
  DIR *d = opendir(p->folder);
  for (const struct dirent *e; (e = readdir(d));)
    n += e->d_name[0] != '.' && strcmp(e->d_name, "f");
  closedir(d);
  return n;
}

static bool filter_calls(struct sock_filter steps[], unsigned short n) {
  struct sock_fprog program = {n, steps};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
         !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/** Makes unnamed files fail in this process, as on file systems without them. */
static bool give_up_unnamed(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return filter_calls(steps, sizeof steps / sizeof *steps);
}

#ifdef SYS_renameat
enum { RENAME = SYS_renameat };
#else
enum { RENAME = SYS_renameat2 };
#endif

/** Makes renames fail in this process, as for mount points. */
static bool give_up_renaming(int error) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RENAME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return filter_calls(steps, sizeof steps / sizeof *steps);
}

/** Runs a function in a child and returns its exit status; -1: ended by a signal. */
static int apart(place *p, int (*body)(place *p)) {
  int status;
  pid_t child = fork();
  if (!child) _exit(body(p));
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool holds(const place *p, const char *text, mode_t mode) {
  char got[16] = {0};
  struct stat s;
  int fd = open(p->path, O_RDONLY);
  bool same = fd >= 0 && read(fd, got, sizeof got - 1) >= 0 && !strcmp(got, text) &&
              !fstat(fd, &s) && (s.st_mode & 07777) == mode;
  close(fd);
  return same;
}

/* File systems. */

static int write_twice(place *p) {
  umask(027);
  if (file_write(p->path, "one", 3, &p->diag) || !holds(p, "one", 0640)) return 1;
  if (chmod(p->path, 0604)) return 2;
  if (file_write(p->path, "other", 5, &p->diag) || !holds(p, "other", 0604)) return 3;
  return others(p);
}

static int write_twice_named(place *p) { return give_up_unnamed() ? write_twice(p) : SKIP; }

static void files_are_written_on_any_file_system(void **state) {
  place *p = *state;
  assert_int_equal(apart(p, write_twice), 0);
  unlink(p->path);
  int named = apart(p, write_twice_named);
  assert_true(named == 0 || named == SKIP);
}

static int write_long_name(place *p) {
  char *path = arena_printf(&p->arena, "%s/%0*d", p->folder, 255, 0);
  bool ok = !file_write(path, "x", 1, &p->diag) && others(p) == 1 && !unlink(path);
  return ok ? 0 : 1;
}

static int write_long_name_named(place *p) { return give_up_unnamed() ? write_long_name(p) : SKIP; }

static void names_may_be_as_long_as_can_be(void **state) {
  assert_int_equal(apart(*state, write_long_name), 0);
  int named = apart(*state, write_long_name_named);
  assert_true(named == 0 || named == SKIP);
}

static void names_for_a_while_are_known(void **state) {
  (void)state;
  assert_int_equal(write_temporary_stem("a.b.12-0.part"), 3);
  assert_int_equal(write_temporary_stem("a.1-2.part.3-4.part"), 10);
  static const char *const others_names[] = {"a",         "a.part",      "a.1.part", "a.1-.part",
                                             "a.-1.part", "a.1-2.part~", "1-2.part", ".1-2.part"};
  for (size_t i = 0; i < sizeof others_names / sizeof *others_names; i++)
    assert_int_equal(write_temporary_stem(others_names[i]), 0);
}

/* Limits. */

static bool limit(rlim_t bytes) { return !setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, bytes}); }

static int write_too_much(place *p) {
  sigset_t pending;
  if (!limit(100000)) return SKIP;
  if (file_write(p->path, large, 100000, &p->diag)) return 1;
  if (file_write(p->path, large, 100001, &p->diag) != TN_ERR_IO) return 2;
  if (!strstr(p->diag.text, p->path) || !strstr(p->diag.text, "limit is 100000 bytes")) return 3;
  if (sigpending(&pending) || sigismember(&pending, SIGXFSZ)) return 4;
  struct stat s;
  return stat(p->path, &s) || s.st_size != 100000 || others(p) ? 5 : 0;
}

static int write_too_much_named(place *p) { return give_up_unnamed() ? write_too_much(p) : SKIP; }

/** The signal handler set before is restored. */
static int write_too_much_once_more(place *p) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  raise(SIGXFSZ);
  return write_too_much(p) == 4 ? 0 : 1;
}

static int write_too_much_in_place(place *p) {
  int fd = open(p->path, O_RDWR | O_CREAT, 0600);
  char *number = arena_printf(&p->arena, "/proc/self/fd/%d", fd);
  if (fd < 0 || unlink(p->path) || !limit(100000)) return SKIP;
  return file_write(number, large, 100001, &p->diag) == TN_ERR_IO ? 0 : 1;
}

static int run_with_too_much(place *p) {
  const char *argv[] = {"/bin/cat", NULL};
  process_request q = {
      .argv = argv, .input = large, .input_bytes = 100001, .limit_ns = 20000000000};
  process_result r;
  if (!limit(100000)) return SKIP;
  if (process_run(&q, &p->arena, &r, &p->diag) != TN_ERR_IO) return 1;
  return strstr(p->diag.text, "limit is 100000 bytes") ? 0 : 2;
}

/* Files that cannot be replaced. */

static bool make_file(const place *p) {
  int fd = open(p->path, O_WRONLY | O_CREAT, 0600);
  bool made = fd >= 0 && write(fd, "longer", 6) == 6 && !fchmod(fd, 0666);
  close(fd);
  return made;
}

/** Writes to a file that cannot be replaced: its inode and mode stay, its contents change. */
static int write_over_file(place *p) {
  struct stat before, after;
  if (file_check_writable(p->path, &p->diag) || stat(p->path, &before)) return 1;
  if (file_write(p->path, "abc", 3, &p->diag) || !holds(p, "abc", 0666)) return 2;
  return stat(p->path, &after) || before.st_ino != after.st_ino || others(p) ? 3 : 0;
}

static int write_where_names_stay(place *p, int error) {
  if (!make_file(p) || !give_up_renaming(error)) return SKIP;
  int wrong = write_over_file(p);
  unlink(p->path);
  if (wrong) return wrong;
  return file_write(p->path, "x", 1, &p->diag) == TN_ERR_IO && !others(p) ? 0 : 4;
}

static int write_mount_point(place *p) { return write_where_names_stay(p, EBUSY); }
static int write_across(place *p) { return write_where_names_stay(p, EXDEV); }
static int write_for_another(place *p) { return write_where_names_stay(p, EPERM); }

/** Makes a folder read-only, for a user to whom modes apply. */
static bool fix_folder(const place *p) {
  enum { NOBODY = 65534 };
  if (chmod(p->folder, 0555)) return false;
  if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY))) return false;
  return !access(p->path, W_OK) && access(p->folder, W_OK);
}

static int write_in_fixed_folder(place *p) {
  if (!make_file(p) || !fix_folder(p)) return SKIP;
  int wrong = write_over_file(p);
  if (wrong) return wrong;
  char *none = arena_printf(&p->arena, "%s/none", p->folder);
  if (file_check_writable(none, &p->diag) != TN_ERR_IO) return 4;
  if (!limit(100000)) return SKIP;
  bool refused = file_write(p->path, large, 100001, &p->diag) == TN_ERR_IO;
  return refused && holds(p, "abc", 0666) ? 0 : 5;
}

static void files_that_stay_are_written_in_place(void **state) {
  place *p = *state;
  int (*const bodies[])(place *) = {write_mount_point, write_across, write_for_another,
                                    write_in_fixed_folder};
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    int status = apart(p, bodies[i]);
    chmod(p->folder, 0700);
    unlink(p->path);
    assert_true(status == 0 || status == SKIP);
  }
}

/** Names of all kinds, also the file's own. */
static void files_have_names(void **state) {
  place *p = *state;
  int folder = open(p->folder, O_PATH | O_DIRECTORY);
  const write_part all = {"abc", 3};
  struct stat s;
  assert_true(write_atomic(folder, "f", 0600, &all, 1));
  for (int i = 0; i < 2; i++) {
    assert_true(write_hard_link(folder, "f", "g"));
    assert_int_equal(others(p), 1);
    assert_int_equal(fstatat(folder, "g", &s, 0), 0);
    assert_int_equal(s.st_nlink, 2);
  }
  assert_false(write_hard_link(folder, "h", "i"));
  assert_int_equal(errno, ENOENT);
  assert_int_equal(unlinkat(folder, "g", 0), 0);
  close(folder);
}

static void limits_are_told(void **state) {
  int (*const bodies[])(place *) = {write_too_much, write_too_much_named, write_too_much_once_more,
                                    write_too_much_in_place, run_with_too_much};
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    int status = apart(*state, bodies[i]);
    assert_true(status == 0 || status == SKIP);
  }
}

/* Killed processes. */

static int write_large(place *p) {
  for (;;)
    if (file_write(p->path, large, sizeof large, &p->diag)) return 1;
}

static int remove_others(const place *p) {
  int n = 0;
  DIR *d = opendir(p->folder);
  for (const struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.' && strcmp(e->d_name, "f")) n += !unlinkat(dirfd(d), e->d_name, 0);
  closedir(d);
  return n;
}

/** A killed process leaves no file, except between linking the temporary name and renaming it. */
static void who_is_killed_leaves_nothing(void **state) {
  place *p = *state;
  int left = 0;
  for (int i = 0; i < 10; i++) {
    pid_t child = fork();
    if (!child) _exit(write_large(p));
    usleep((useconds_t)(1000 + 1500 * i));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct stat s;
    assert_true(stat(p->path, &s) || s.st_size == LARGE);
    left += remove_others(p);
    unlink(p->path);
  }
  assert_true(left <= 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
  const struct CMUnitTest tests[] = {
      TEST(files_are_written_on_any_file_system),
      TEST(names_may_be_as_long_as_can_be),
      TEST(names_for_a_while_are_known),
      TEST(files_have_names),
      TEST(limits_are_told),
      TEST(files_that_stay_are_written_in_place),
      TEST(who_is_killed_leaves_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
