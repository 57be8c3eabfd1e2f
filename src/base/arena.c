/* Implements arenas as linked lists of blocks, each twice as large as the one before it, from 4 KiB
   to 1 MiB; a larger allocation gets a block of its own size. */
#include "base/arena.h"

#include "base/memory_limit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Under AddressSanitizer the free part of a block may not be accessed. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(from, to)   ASAN_POISON_MEMORY_REGION(from, (size_t)((to) - (from)))
#define UNPOISON(from, to) ASAN_UNPOISON_MEMORY_REGION(from, (size_t)((to) - (from)))
#else
#define POISON(from, to)   ((void)0)
#define UNPOISON(from, to) ((void)0)
#endif

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = _Alignof(max_align_t) };

struct arena_block {
  arena_block *previous;
  size_t bytes; /* with this header */
  max_align_t data[];
};

void arena_init(arena *a, const mem *mem, diag *diag) { *a = (arena){.mem = mem, .diag = diag}; }

static void free_block(arena *a, arena_block *b) {
  UNPOISON((char *)b, (char *)b + b->bytes);
  mem_free(a->mem, b, b->bytes);
}

/** Frees a block, or makes it the spare one if that is smaller. */
static void release_block(arena *a, arena_block *b) {
  bool fits = b->bytes <= LARGEST_BLOCK;
  if (fits && (!a->spare || b->bytes > a->spare->bytes)) {
    arena_block *other = a->spare;
    a->spare = b;
    POISON((char *)b->data, (char *)b + b->bytes);
    b = other;
  }
  if (b) free_block(a, b);
}

void arena_rewind(arena *a, arena_mark to) {
  while (a->block != to.block) {
    arena_block *previous = a->block->previous;
    release_block(a, a->block);
    a->block = previous;
  }
  a->next = to.next;
  a->end = to.end;
  if (a->next) POISON(a->next, a->end);
}

void arena_free(arena *a) {
  arena_rewind(a, (arena_mark){0});
  if (a->spare) free_block(a, a->spare);
  a->spare = NULL;
}

arena_mark arena_save(const arena *a) { return (arena_mark){a->block, a->next, a->end}; }

static arena_block *new_block(arena *a, size_t bytes) {
  size_t wanted = a->block ? a->block->bytes * 2 : FIRST_BLOCK;
  if (wanted > LARGEST_BLOCK) wanted = LARGEST_BLOCK;
  if (bytes > SIZE_MAX - sizeof(arena_block)) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  if (wanted < bytes + sizeof(arena_block)) wanted = bytes + sizeof(arena_block);
  arena_block *b = mem_alloc(a->mem, wanted);
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (!b)
    diag_raise(a->diag, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(a->mem, wanted, none));
  b->bytes = wanted;
  return b;
}

/** Makes a block the present one. */
static void link_block(arena *a, arena_block *b) {
  b->previous = a->block;
  a->block = b;
  a->next = (char *)b->data;
  a->end = (char *)b + b->bytes;
  POISON(a->next, a->end);
}

static void add_block(arena *a, size_t bytes) {
  bool spare = a->spare && a->spare->bytes - sizeof(arena_block) >= bytes;
  arena_block *b = spare ? a->spare : new_block(a, bytes);
  if (spare) a->spare = NULL;
  link_block(a, b);
}

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

void *arena_alloc(arena *a, size_t bytes) {
  if (bytes > SIZE_MAX - ALIGN) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  bytes = aligned(bytes);
  if ((size_t)(a->end - a->next) < bytes || !a->next) add_block(a, bytes);
  char *at = a->next;
  a->next += bytes;
  UNPOISON(at, a->next);
  return at;
}

bool arena_extend(arena *a, void *at, size_t old_bytes, size_t new_bytes) {
  bool is_last = at && (char *)at + aligned(old_bytes) == a->next;
  if (!is_last || new_bytes > (size_t)(a->end - (char *)at)) return false;
  size_t bytes = aligned(new_bytes);
  if (bytes > (size_t)(a->end - (char *)at)) return false;
  UNPOISON(a->next, (char *)at + bytes);
  a->next = (char *)at + bytes;
  return true;
}

void *arena_rewind_keeping(arena *a, arena_mark to, const void *at, size_t bytes) {
  size_t wanted = aligned(bytes);
  bool has_room = to.next && (size_t)(to.end - to.next) >= wanted;
  arena_block *own = has_room ? NULL : new_block(a, wanted);
  char *kept = has_room ? to.next : (char *)own->data;
  if (has_room) UNPOISON(kept, kept + wanted);
  if (bytes) memmove(kept, at, bytes);
  arena_rewind(a, to);
  if (own) link_block(a, own);
  UNPOISON(kept, kept + wanted);
  a->next = kept + wanted;
  return kept;
}

void *arena_calloc(arena *a, size_t n, size_t size) {
  if (size && n > SIZE_MAX / size) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  return memset(arena_alloc(a, n * size), 0, n * size);
}

void *arena_copy(arena *a, const void *from, size_t bytes) {
  void *to = arena_alloc(a, bytes);
  return bytes ? memcpy(to, from, bytes) : to;
}

char *arena_printf(arena *a, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  va_end(list);
  char *text = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
  if (n < 0)
    text[0] = 0;
  else
    vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  return text;
}
