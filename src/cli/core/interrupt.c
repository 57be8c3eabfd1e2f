/* Handles the signals that end the command by ending also the compilers that it has started. They
   run in process groups of their own, so a terminal's Ctrl-C does not reach them. A thread waits
   for the signals, as a signal handler may not read the lists of children in /proc. */
#include "cli/core/interrupt.h"

#include "base/thread.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_bool is_pending, is_deferred, is_noticed;

/** Kills the process groups of the children of one thread. */
static void kill_children_of_thread(const char *thread_id) {
  char path[64];
  long child;
  snprintf(path, sizeof path, "/proc/self/task/%.20s/children", thread_id);
  FILE *list = fopen(path, "re");
  while (list && fscanf(list, "%ld", &child) == 1) kill(-(pid_t)child, SIGKILL);
  if (list) fclose(list);
}

static void kill_children(void) {
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *e; threads && (e = readdir(threads));)
    if (e->d_name[0] != '.') kill_children_of_thread(e->d_name);
  if (threads) closedir(threads);
}

/** The signals to wait for: those that are not ignored, as they are in background jobs of a shell.
 */
static sigset_t awaited_signals(void) {
  static const int all[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction now;
    if (!sigaction(all[i], NULL, &now) && now.sa_handler == SIG_DFL) sigaddset(&set, all[i]);
  }
  return set;
}

/** Waits for a signal that is not deferred, kills the children, and raises the signal again. */
static void *wait_for_signal(void *arg) {
  sigset_t *set = arg;
  int number;
  for (;;) {
    if (sigwait(set, &number)) continue;
    if (!atomic_exchange(&is_deferred, false)) break;
    atomic_store(&is_noticed, true);
  }
  atomic_store(&is_pending, true);
  kill_children();
  pthread_sigmask(SIG_UNBLOCK, set, NULL);
  raise(number);
  return NULL;
}

void interrupt_start(void) {
  static sigset_t set;
  diag d = {0};
  thread t;
  set = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (thread_start(&t, wait_for_signal, &set, &d)) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void interrupt_defer(void) { atomic_store(&is_deferred, true); }

bool interrupt_is_noticed(void) { return atomic_load(&is_noticed); }

void interrupt_wait_if_pending(void) {
  while (atomic_load(&is_pending)) pause();
}
