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

static atomic_bool is_pending;

/** Ends the process groups of the programs that a thread has started. */
static void end_children_of(const char *thread_id) {
  char path[64];
  long child;
  snprintf(path, sizeof path, "/proc/self/task/%.20s/children", thread_id);
  FILE *list = fopen(path, "re");
  while (list && fscanf(list, "%ld", &child) == 1) kill(-(pid_t)child, SIGKILL);
  if (list) fclose(list);
}

static void end_children(void) {
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *e; threads && (e = readdir(threads));)
    if (e->d_name[0] != '.') end_children_of(e->d_name);
  if (threads) closedir(threads);
}

/** The signals to wait for: those that are not ignored, as in a shell's background jobs. */
static sigset_t signals_to_wait_for(void) {
  static const int all[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction now;
    if (!sigaction(all[i], NULL, &now) && now.sa_handler == SIG_DFL) sigaddset(&set, all[i]);
  }
  return set;
}

/** Waits for one of the signals, ends the children, and lets the signal end the command. */
static void *wait_for_signal(void *arg) {
  sigset_t *set = arg;
  int number;
  while (sigwait(set, &number)) {}
  atomic_store(&is_pending, true);
  end_children();
  pthread_sigmask(SIG_UNBLOCK, set, NULL);
  raise(number);
  return NULL;
}

void interrupt_start(void) {
  static sigset_t set;
  diag d = {0};
  thread t;
  set = signals_to_wait_for();
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (thread_start(&t, wait_for_signal, &set, &d)) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void interrupt_wait_if_pending(void) {
  while (atomic_load(&is_pending)) pause();
}
