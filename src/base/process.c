#include "base/process.h"

#include "base/str.h"
#include "base/thread.h"
#include "base/write.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { OUTPUT_LIMIT = 64 << 10 };

/* Where programs are looked for if PATH names no place; those that are run do as well. */
#define USUAL_PATH "/usr/bin:/bin"

static const char *path_or_null(void) {
  const char *path = getenv("PATH");
  return path && *path ? path : NULL;
}

static bool is_program(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

process_paths process_find_all(arena *a, const char *name) {
  process_paths found = {0};
  const char *path = path_or_null();
  for (const char *at = path ? path : USUAL_PATH; at;) {
    const char *end = strchr(at, ':');
    int n = end ? (int)(end - at) : (int)strlen(at);
    char *candidate = n ? arena_printf(a, "%.*s/%s", n, at, name) : arena_printf(a, "./%s", name);
    if (is_program(candidate)) vec_push(a, &found, candidate);
    at = end ? end + 1 : NULL;
  }
  return found;
}

char *process_find(arena *a, const char *name) {
  if (strchr(name, '/')) return is_program(name) ? arena_printf(a, "%s", name) : NULL;
  process_paths found = process_find_all(a, name);
  return found.n ? found.at[0] : NULL;
}

typedef struct child {
  pid_t pid;
  int said; /* what it writes comes out here */
  int file; /* −1: none */
  int64_t deadline;
  str output;
  process_result *result;
  int status;
  bool reaped, lost; /* lost: somebody else has its exit status, or nobody */
  bool ended;        /* before the deadline */
} child;

static bool try_reap(child *c, int flags) {
  pid_t p;
  do p = waitpid(c->pid, &c->status, flags);
  while (p < 0 && errno == EINTR);
  c->lost = p < 0;
  return c->reaped = p != 0;
}

/** Reads to the end of the pipe, or to the end of the child: what it started in turn may hold the
    pipe for longer. False when the deadline passes first. */
static bool drain(child *c) {
  for (;;) {
    int64_t left = c->deadline - clock_now();
    if (left <= 0) return false;
    struct pollfd p = {.fd = c->said, .events = POLLIN};
    int ready = poll(&p, 1, left > 100000000 ? 100 : (int)(left / 1000000 + 1));
    if (ready < 0 && errno != EINTR) return true;
    if (ready == 0 && try_reap(c, WNOHANG)) return true;
    if (ready <= 0) continue;
    char buffer[4096];
    ssize_t n = read(c->said, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    size_t room = OUTPUT_LIMIT - c->output.n;
    str_add_bytes(&c->output, buffer, (size_t)n < room ? (size_t)n : room);
  }
}

/** Waits for a child that has closed its output. */
static bool await_exit(child *c) {
  for (long pause = 50000; !c->reaped && !try_reap(c, WNOHANG);) {
    if (clock_now() >= c->deadline) return false;
    nanosleep(&(struct timespec){0, pause}, NULL);
    if (pause < 10000000) pause *= 2;
  }
  return true;
}

/** Copies the child's file into the arena. */
static void take_file(child *c) {
  arena *a = c->output.arena;
  struct stat s;
  if (fstat(c->file, &s))
    diag_raise(a->diag, TN_ERR_IO, "cannot read what a program made: %s", strerror(errno));
  unsigned char *at = arena_alloc(a, (size_t)s.st_size + 1);
  size_t n = 0, all = (size_t)s.st_size;
  for (ssize_t k; n < all && ((k = pread(c->file, at + n, all - n, (off_t)n)) > 0 ||
                              (k < 0 && errno == EINTR));)
    if (k > 0) n += (size_t)k;
  if (n < all) diag_raise(a->diag, TN_ERR_IO, "cannot read what a program made");
  if (n) c->result->file = at;
  c->result->file_bytes = n;
}

static void await_body(void *arg) {
  child *c = arg;
  c->ended = drain(c) && await_exit(c);
  if (c->ended && c->file >= 0) take_file(c);
}

/** The environment with some variables set. */
static char **environment(arena *a, const char *const set[]) {
  size_t n = 0, more = 0;
  while (environ && environ[n]) n++;
  while (set && set[more]) more++;
  char **all = arena_alloc(a, (n + more + 2) * sizeof *all), **at = all;
  bool lacks_path = !path_or_null();
  if (lacks_path) *at++ = (char *)"PATH=" USUAL_PATH;
  for (size_t i = 0; i < more; i++) *at++ = (char *)set[i];
  for (size_t i = 0; i < n; i++) {
    bool is_set = lacks_path && !strncmp(environ[i], "PATH=", 5);
    for (size_t k = 0; k < more; k++)
      is_set = is_set || !strncmp(environ[i], set[k], strcspn(set[k], "=") + 1);
    if (!is_set) *at++ = environ[i];
  }
  *at = NULL;
  return all;
}

static tn_status spawn(pid_t *pid, const char *const argv[], char *const env[], int in, int out,
                       int said, diag *d) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGCHLD);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)argv, env);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (!error) return TN_OK;
  return diag_set(d, TN_ERR_IO, "cannot start %s: %s", argv[0], strerror(error));
}

static int64_t deadline_after(int64_t limit_ns) {
  int64_t now = clock_now();
  return limit_ns > INT64_MAX - now ? INT64_MAX : now + limit_ns;
}

/** The files of a run; −1: not there. None is among the first three, which are the child's. */
typedef struct files {
  int in, out, read, write;
} files;

static int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return higher;
}

static int file_of(const char *data, size_t bytes) {
  int fd = above_standard(memfd_create("tenon", MFD_CLOEXEC));
  const file_part all = {data, bytes};
  if (fd < 0 || (write_parts(fd, &all, 1) && !lseek(fd, 0, SEEK_SET))) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool open_files(files *f, const process_request *q) {
  int ends[2];
  *f = (files){-1, -1, -1, -1};
  if (pipe2(ends, O_CLOEXEC)) return false;
  f->read = above_standard(ends[0]);
  f->write = above_standard(ends[1]);
  if (f->read < 0 || f->write < 0) return false;
  f->in = file_of(q->input, q->input_bytes);
  if (f->in >= 0 && q->makes_file) f->out = file_of(NULL, 0);
  return f->in >= 0 && (f->out >= 0 || !q->makes_file);
}

static void close_file(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/** Waits for a child, and reads what it writes. Memory may run out meanwhile. */
static tn_status await(child *c) {
  process_result *r = c->result;
  diag *d = c->output.arena->diag;
  tn_status s = diag_catch(d, await_body, c);
  if (!c->reaped) {
    kill(-c->pid, SIGKILL); /* with all that it has started */
    try_reap(c, 0);
  }
  r->timed_out = s == TN_OK && !c->ended;
  r->is_lost = c->ended && c->lost;
  if (c->ended && !c->lost && WIFEXITED(c->status)) r->exit_code = WEXITSTATUS(c->status);
  r->output = (char *)str_text(&c->output);
  return s;
}

tn_status process_run(const process_request *q, arena *a, process_result *r, diag *d) {
  files f;
  *r = (process_result){.exit_code = -1, .output = ""};
  char **env = environment(a, q->set);
  tn_status s = TN_OK;
  char why[WRITE_REASON];
  if (!open_files(&f, q))
    s = diag_set(d, TN_ERR_IO, "cannot start %s: %s", q->argv[0], write_reason(errno, why));
  child c = {.said = f.read,
             .file = f.out,
             .deadline = deadline_after(q->limit_ns),
             .output = str_new(a),
             .result = r};
  if (s == TN_OK) s = spawn(&c.pid, q->argv, env, f.in, f.out >= 0 ? f.out : f.write, f.write, d);
  close_file(&f.write);
  if (s == TN_OK && (s = await(&c)) != TN_OK && a->diag != d) diag_copy(d, a->diag);
  close_file(&f.read);
  close_file(&f.in);
  close_file(&f.out);
  return s;
}
