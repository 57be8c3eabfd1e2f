/* Implements arenas as linked lists of blocks, each twice as large as the one before it, from 4 KiB
   to 1 MiB; a larger allocation gets a block of its own size. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = _Alignof(max_align_t) };

struct arena_block {
  arena_block *previous;
  size_t bytes; /* with this header */
  max_align_t data[];
};

void arena_init(arena *a, const mem *mem, diag *diag) { *a = (arena){.mem = mem, .diag = diag}; }

/** Frees a block, or makes it the spare one if that is smaller. */
static void release_block(arena *a, arena_block *b) {
  bool fits = b->bytes <= LARGEST_BLOCK;
  if (fits && (!a->spare || b->bytes > a->spare->bytes)) {
    arena_block *other = a->spare;
    a->spare = b;
    b = other;
  }
  if (b) mem_free(a->mem, b, b->bytes);
}

void arena_rewind(arena *a, arena_mark to) {
  while (a->block != to.block) {
    arena_block *previous = a->block->previous;
    release_block(a, a->block);
    a->block = previous;
  }
  a->next = to.next;
  a->end = to.end;
}

void arena_free(arena *a) {
  arena_rewind(a, (arena_mark){0});
  if (a->spare) mem_free(a->mem, a->spare, a->spare->bytes);
  a->spare = NULL;
}

arena_mark arena_save(const arena *a) { return (arena_mark){a->block, a->next, a->end}; }

static arena_block *new_block(arena *a, size_t bytes) {
  size_t wanted = a->block ? a->block->bytes * 2 : FIRST_BLOCK;
  if (wanted > LARGEST_BLOCK) wanted = LARGEST_BLOCK;
  if (bytes > SIZE_MAX - sizeof(arena_block)) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  if (wanted < bytes + sizeof(arena_block)) wanted = bytes + sizeof(arena_block);
  arena_block *b = mem_alloc(a->mem, wanted);
  char none[MEM_TEXT_BYTES];
  if (!b) diag_raise(a->diag, TN_ERR_MEMORY, "%s", mem_exhausted_text(wanted, none));
  b->bytes = wanted;
  return b;
}

static void add_block(arena *a, size_t bytes) {
  bool spare = a->spare && a->spare->bytes - sizeof(arena_block) >= bytes;
  arena_block *b = spare ? a->spare : new_block(a, bytes);
  if (spare) a->spare = NULL;
  b->previous = a->block;
  a->block = b;
  a->next = (char *)b->data;
  a->end = (char *)b + b->bytes;
}

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

void *arena_alloc(arena *a, size_t bytes) {
  if (bytes > SIZE_MAX - ALIGN) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  bytes = aligned(bytes);
  if ((size_t)(a->end - a->next) < bytes || !a->next) add_block(a, bytes);
  void *at = a->next;
  a->next += bytes;
  return at;
}

bool arena_extend(arena *a, void *at, size_t old_bytes, size_t new_bytes) {
  bool is_last = at && (char *)at + aligned(old_bytes) == a->next;
  if (!is_last || new_bytes > (size_t)(a->end - (char *)at)) return false;
  size_t bytes = aligned(new_bytes);
  if (bytes > (size_t)(a->end - (char *)at)) return false;
  a->next = (char *)at + bytes;
  return true;
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
