#include "device/cpu/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A kernel that is loaded is up to three mappings, of which one is there when another fails. */
enum { NEEDED = 3, READ_BYTES = 4096 };

/** How many mappings the process has; 0: not known. */
static size_t count_mappings(void) {
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[READ_BYTES];
  size_t lines = 0;
  for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < n; i++) lines += text[i] == '\n';
  close(fd);
  return lines;
}

/** How many it may have; 0: not known. */
static size_t most_mappings(void) {
  int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[32];
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  return (size_t)strtoull(text, NULL, 10);
}

void mapping_explain(char *text, size_t bytes) {
  size_t there = count_mappings(), most = most_mappings();
  if (there && most && there + NEEDED >= most)
    snprintf(text, bytes,
             "the process has %zu memory mappings of the %zu that it may have; free plans and "
             "models, unmap files, or raise the limit (sysctl vm.max_map_count=%zu)",
             there, most, most * 4);
  else
    snprintf(text, bytes,
             "the system gives the process no more memory; free tensors, plans and models, or "
             "raise its limits (ulimit -v, memory.max of its cgroup)");
}
