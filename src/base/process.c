/* Runs child processes by posix_spawn and collects their output. Each is the leader of a process
   group, which is killed as a whole at the time limit, and by the kernel when the host ends. Output
   comes through a pipe that is polled together with the child's state, as grandchildren may hold it
   open for longer. */
#include "base/process.h"

#include "base/atomic_write.h"
#include "base/environment.h"
#include "base/str.h"
#include "base/thread.h"

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

enum { OUTPUT_LIMIT = 64 << 10 };

/* Stands for an empty PATH, here and in the environment of programs. */
#define USUAL_PATH "/usr/bin:/bin"

static bool is_program(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

process_paths process_find_all(arena *a, const char *name) {
  process_paths found = {0};
  const char *path = environment_get("PATH");
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
  int pipe; /* the end to read of its standard error */
  int file; /* its standard output; −1: no file */
  int64_t deadline;
  const atomic_bool *cancel; /* or NULL */
  str output;
  process_result *result;
  int status;        /* as waitpid gives it */
  bool reaped, lost; /* lost: waitpid had no status to give */
  bool ended;        /* before the deadline */
} child;

static bool try_reap(child *c, int flags) {
  pid_t p;
  do p = waitpid(c->pid, &c->status, flags);
  while (p < 0 && errno == EINTR);
  c->lost = p < 0;
  return c->reaped = p != 0;
}

static bool is_over(const child *c) {
  return clock_now_ns() >= c->deadline || (c->cancel && atomic_load(c->cancel));
}

/** Reads until the pipe is closed or the child has ended, whichever is first. False if the deadline
    is. */
static bool read_output(child *c) {
  for (;;) {
    if (is_over(c)) return false;
    int64_t left = c->deadline - clock_now_ns();
    struct pollfd p = {.fd = c->pipe, .events = POLLIN};
    int ready = poll(&p, 1, left > 100000000 ? 100 : left < 0 ? 0 : (int)(left / 1000000 + 1));
    if (ready < 0 && errno != EINTR) return true;
    if (ready == 0 && try_reap(c, WNOHANG)) return true;
    if (ready <= 0) continue;
    char buffer[4096];
    ssize_t n = read(c->pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    size_t room = OUTPUT_LIMIT - c->output.n;
    str_add_bytes(&c->output, buffer, (size_t)n < room ? (size_t)n : room);
  }
}

/** Waits for a child that has closed its output; false if the deadline passes. */
static bool await_exit(child *c) {
  for (long pause = 50000; !c->reaped && !try_reap(c, WNOHANG);) {
    if (is_over(c)) return false;
    nanosleep(&(struct timespec){0, pause}, NULL);
    if (pause < 10000000) pause *= 2;
  }
  return true;
}

/** Copies the child's file into the arena. */
static void read_file_result(child *c) {
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

static void await_within_limit(void *arg) {
  child *c = arg;
  c->ended = read_output(c) && await_exit(c);
  if (c->ended && c->file >= 0) read_file_result(c);
}

/** Makes a program's environment: the inherited variables, some set anew, and always a PATH. */
static char **make_environment(arena *a, const char *const set[]) {
  char *const *inherited = environment_inherited();
  size_t n = 0, more = 0;
  while (inherited[n]) n++;
  while (set && set[more]) more++;
  char **all = arena_alloc(a, (n + more + 2) * sizeof *all), **at = all;
  bool lacks_path = !environment_get("PATH");
  if (lacks_path) *at++ = (char *)"PATH=" USUAL_PATH;
  for (size_t i = 0; i < more; i++) *at++ = (char *)set[i];
  for (size_t i = 0; i < n; i++) {
    bool is_set = lacks_path && !strncmp(inherited[i], "PATH=", 5);
    for (size_t k = 0; k < more; k++)
      is_set = is_set || !strncmp(inherited[i], set[k], strcspn(set[k], "=") + 1);
    if (!is_set) *at++ = inherited[i];
  }
  *at = NULL;
  return all;
}

/** Starts a program as the leader of a process group, which also inherits `lifeline`. */
static tn_status spawn(pid_t *pid, const char *const argv[], char *const env[], int in, int out,
                       int err, int lifeline, diag *d) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, lifeline, lifeline); /* no longer close-on-exec */
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGCHLD);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)argv, env);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (!error) return TN_OK;
  return diag_set(d, TN_ERR_IO, "cannot start %s: %s", argv[0], strerror(error));
}

/* A program ends with its host, however that ends: once the last write end of the lifeline is
   closed, the kernel sends SIGKILL to the program's process group (signal-driven I/O, fcntl(2)), as
   long as a process of the group has the read end open. A supervising process would do the same;
   the signal of PR_SET_PDEATHSIG would reach the program alone and not what it has started in turn.
 */

static void tie_lifeline(int lifeline, pid_t group) {
  fcntl(lifeline, F_SETSIG, SIGKILL);
  fcntl(lifeline, F_SETOWN, -group);
  fcntl(lifeline, F_SETFL, O_ASYNC);
}

/** Lets what a program has left running go on when the lifeline is closed. */
static void untie_lifeline(int lifeline) { fcntl(lifeline, F_SETFL, 0); }

static int64_t deadline_after(int64_t limit_ns) {
  int64_t now = clock_now_ns();
  return limit_ns > INT64_MAX - now ? INT64_MAX : now + limit_ns;
}

/** Descriptors of a run; −1: not open. All are above 2, as posix_spawn puts the child's own there.
 */
typedef struct run_files {
  int in, out;        /* memfds: the child's standard input, and output if that is a file */
  int read, write;    /* the pipe of the child's standard error */
  int lifeline, host; /* ends of a pipe that carries nothing: the child's to read, ours to write */
} run_files;

static int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return higher;
}

static int make_memfd(const char *data, size_t bytes) {
  int fd = above_standard(memfd_create("tenon", MFD_CLOEXEC));
  const write_part all = {data, bytes};
  if (fd < 0 || (write_parts(fd, &all, 1) && !lseek(fd, 0, SEEK_SET))) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool open_pipe(int *read, int *write) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return false;
  *read = above_standard(ends[0]);
  *write = above_standard(ends[1]);
  return *read >= 0 && *write >= 0;
}

static bool open_files(run_files *f, const process_request *q) {
  *f = (run_files){-1, -1, -1, -1, -1, -1};
  if (!open_pipe(&f->read, &f->write) || !open_pipe(&f->lifeline, &f->host)) return false;
  f->in = make_memfd(q->input, q->input_bytes);
  if (f->in >= 0 && q->stdout_is_file) f->out = make_memfd(NULL, 0);
  return f->in >= 0 && (f->out >= 0 || !q->stdout_is_file);
}

static void close_file(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/** Waits for a child and fills its result; kills its process group at the deadline, and if memory
    runs out. */
static tn_status await_child(child *c) {
  process_result *r = c->result;
  diag *d = c->output.arena->diag;
  tn_status s = diag_catch(d, await_within_limit, c);
  if (!c->reaped) {
    kill(-c->pid, SIGKILL);
    try_reap(c, 0);
  }
  r->timed_out = s == TN_OK && !c->ended;
  r->exit_code_lost = c->ended && c->lost;
  if (c->ended && !c->lost && WIFEXITED(c->status)) r->exit_code = WEXITSTATUS(c->status);
  r->output = (char *)str_text(&c->output);
  return s;
}

tn_status process_run(const process_request *q, arena *a, process_result *r, diag *d) {
  run_files f;
  *r = (process_result){.exit_code = -1, .output = ""};
  char **env = make_environment(a, q->set);
  tn_status s = TN_OK;
  char why[WRITE_ERROR_TEXT];
  if (!open_files(&f, q))
    s = diag_set(d, TN_ERR_IO, "cannot start %s: %s", q->argv[0], write_error_text(errno, why));
  child c = {.pipe = f.read,
             .file = f.out,
             .deadline = deadline_after(q->limit_ns),
             .cancel = q->cancel,
             .output = str_new(a),
             .result = r};
  if (s == TN_OK)
    s = spawn(&c.pid, q->argv, env, f.in, f.out >= 0 ? f.out : f.write, f.write, f.lifeline, d);
  close_file(&f.write);
  if (s == TN_OK) {
    tie_lifeline(f.lifeline, c.pid);
    if ((s = await_child(&c)) != TN_OK && a->diag != d) d->failure = a->diag->failure;
    untie_lifeline(f.lifeline);
  }
  close_file(&f.read);
  close_file(&f.lifeline);
  close_file(&f.host);
  close_file(&f.in);
  close_file(&f.out);
  return s;
}
