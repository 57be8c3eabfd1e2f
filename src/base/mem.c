/* Implements the default allocator, over malloc, and the helpers over any allocator (zeroed,
   resized and copied blocks). An allocator never sees a request of 0 bytes: such a request is one
   of 1 byte. */
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  if (align <= _Alignof(max_align_t)) return malloc(bytes);
  size_t rounded = (bytes + align - 1) / align * align;
  return rounded < bytes ? NULL : aligned_alloc(align, rounded);
}

static void system_release(void *user, void *at, size_t bytes) {
  (void)user, (void)bytes;
  free(at);
}

const mem mem_system = {system_alloc, system_release, NULL};

void *mem_alloc_aligned(const mem *m, size_t bytes, size_t align) {
  return m->alloc(m->user, bytes ? bytes : 1, align);
}

void *mem_alloc(const mem *m, size_t bytes) {
  return mem_alloc_aligned(m, bytes, _Alignof(max_align_t));
}

void *mem_calloc(const mem *m, size_t n, size_t size) {
  if (size && n > SIZE_MAX / size) return NULL;
  void *at = mem_alloc(m, n * size);
  return at ? memset(at, 0, n * size) : NULL;
}

void *mem_resize(const mem *m, void *at, size_t old_bytes, size_t new_bytes) {
  void *to = mem_alloc(m, new_bytes);
  if (!to) return NULL;
  if (at) memcpy(to, at, old_bytes < new_bytes ? old_bytes : new_bytes);
  mem_free(m, at, old_bytes);
  return to;
}

void mem_free(const mem *m, void *at, size_t bytes) {
  if (at) m->release(m->user, at, bytes ? bytes : 1);
}

char *mem_strdup(const mem *m, const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = mem_alloc(m, bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

void mem_strfree(const mem *m, char *text) {
  if (text) mem_free(m, text, strlen(text) + 1);
}

const char *mem_format_bytes(uint64_t bytes, char text[MEM_TEXT_BYTES]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024; unit++) value /= 1024;
  snprintf(text, MEM_TEXT_BYTES, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

const char *mem_exhausted_text(uint64_t bytes, char text[MEM_TEXT_BYTES]) {
  char amount[MEM_TEXT_BYTES];
  mem_format_bytes(bytes, amount);
  snprintf(text, MEM_TEXT_BYTES, "out of memory (%.20s)", amount);
  return text;
}
