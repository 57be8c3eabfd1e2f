/* Explains a failure to map memory: compares the number of the process's mappings (/proc/self/maps)
   with the limit (/proc/sys/vm/max_map_count). */
#include "device/cpu/mapping_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The mappings of a loaded object, of which one exists when another cannot be made. */
enum { NEEDED = 3, READ_BYTES = 4096 };

/** The number of the process's mappings; 0: not known. */
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

/** The limit on that number; 0: not known. */
static size_t read_mapping_limit(void) {
  int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[32];
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  return (size_t)strtoull(text, NULL, 10);
}

void mapping_limit_explain(char *text, size_t bytes) {
  size_t count = count_mappings(), most = read_mapping_limit();
  if (count && most && count + NEEDED >= most)
    snprintf(text, bytes,
             "the process has %zu of at most %zu memory mappings; free plans and models, unmap "
             "files, or raise the limit (sysctl vm.max_map_count=%zu)",
             count, most, most * 4);
  else
    snprintf(
        text, bytes,
        "the system refuses more memory; free tensors, plans and models, or raise the limits of "
        "the process (ulimit -v, memory.max of its cgroup)");
}
