/* Helpers of the random test programs: reads numbers from environment variables, and prints what
   was running when a signal ends the process. */
#ifndef TENON_TESTS_SUITE_H
#define TENON_TESTS_SUITE_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Returns a number from the environment; `otherwise` if it is not set. */
static inline uint64_t suite_number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/** Text that a crash prints: the test being run. */
static char suite_running[160];

static inline void suite_crashed(int number) {
  ssize_t ignored = write(2, suite_running, strlen(suite_running));
  (void)ignored;
  signal(number, SIG_DFL);
  raise(number);
}

static inline void suite_catch_crashes(void) {
  static const int all[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) signal(all[i], suite_crashed);
}

#endif
