#include "cli/interrupt.h"

#include "base/thread.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_bool one_came;

/** Ends the programs that a thread has started, each with all that it has started. */
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

/** Those that end a process and are not ignored, as a shell has it for what runs beside it. */
static sigset_t watched(void) {
  static const int all[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction now;
    if (!sigaction(all[i], NULL, &now) && now.sa_handler == SIG_DFL) sigaddset(&set, all[i]);
  }
  return set;
}

/** A thread of its own, as a handler may not read lists. */
static void *wait_for_one(void *arg) {
  sigset_t *set = arg;
  int one;
  while (sigwait(set, &one)) {}
  atomic_store(&one_came, true);
  end_children();
  pthread_sigmask(SIG_UNBLOCK, set, NULL);
  raise(one);
  return NULL;
}

void interrupt_watch(void) {
  static sigset_t set;
  diag d = {0};
  thread t;
  set = watched();
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (thread_start(&t, wait_for_one, &set, &d)) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void interrupt_before_end(void) {
  while (atomic_load(&one_came)) pause();
}
