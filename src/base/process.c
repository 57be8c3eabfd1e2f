#include "base/process.h"

#include "base/str.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { OUTPUT_LIMIT = 64 << 10 };

static bool is_program(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

char *process_find(arena *a, const char *name) {
  if (strchr(name, '/')) return is_program(name) ? arena_printf(a, "%s", name) : NULL;
  const char *path = getenv("PATH");
  for (const char *at = path && *path ? path : "/usr/bin:/bin"; at;) {
    const char *end = strchr(at, ':');
    int n = end ? (int)(end - at) : (int)strlen(at);
    char *candidate = n ? arena_printf(a, "%.*s/%s", n, at, name) : arena_printf(a, "./%s", name);
    if (is_program(candidate)) return candidate;
    at = end ? end + 1 : NULL;
  }
  return NULL;
}

typedef struct child {
  pid_t pid;
  int fd; /* what it writes */
  int64_t deadline;
  str output;
  int status;
  bool reaped, lost; /* lost: the system keeps no exit status, because SIGCHLD is ignored */
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
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int ready = poll(&p, 1, left > 100000000 ? 100 : (int)(left / 1000000 + 1));
    if (ready < 0 && errno != EINTR) return true;
    if (ready == 0 && try_reap(c, WNOHANG)) return true;
    if (ready <= 0) continue;
    char buffer[4096];
    ssize_t n = read(c->fd, buffer, sizeof buffer);
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

static void await_body(void *arg) {
  child *c = arg;
  c->ended = drain(c) && await_exit(c);
}

static tn_status spawn(pid_t *pid, const char *const argv[], int out, diag *d) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGCHLD);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (!error) return TN_OK;
  return diag_set(d, TN_ERR_IO, "cannot start %s: %s", argv[0], strerror(error));
}

static int64_t deadline_after(int64_t limit_ns) {
  int64_t now = clock_now();
  return limit_ns > INT64_MAX - now ? INT64_MAX : now + limit_ns;
}

tn_status process_run(const char *const argv[], int64_t limit_ns, arena *a, process_result *result,
                      diag *d) {
  int ends[2];
  *result = (process_result){.exit_code = -1};
  if (pipe2(ends, O_CLOEXEC))
    return diag_set(d, TN_ERR_IO, "cannot start %s: %s", argv[0], strerror(errno));
  child c = {.fd = ends[0], .deadline = deadline_after(limit_ns), .output = str_new(a)};
  tn_status s = spawn(&c.pid, argv, ends[1], d);
  close(ends[1]);
  if (s == TN_OK) {
    s = diag_catch(a->diag, await_body, &c); /* memory may run out while the child runs */
    if (!c.reaped) {
      kill(-c.pid, SIGKILL);
      try_reap(&c, 0);
    }
    result->timed_out = s == TN_OK && !c.ended;
    if (c.ended && !c.lost && WIFEXITED(c.status)) result->exit_code = WEXITSTATUS(c.status);
    result->output = (char *)str_text(&c.output);
    if (s == TN_OK && c.ended && c.lost)
      s = diag_set(d, TN_ERR_IO, "cannot learn how %s ended: SIGCHLD is ignored", argv[0]);
  }
  close(ends[0]);
  if (s == TN_ERR_MEMORY) diag_set(d, s, "out of memory");
  return s;
}
