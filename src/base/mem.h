/* The allocator interface, through which the library allocates all its memory, so that a user can
   bring an allocator and a test can make the N-th allocation fail; and the formatting of byte
   counts. */
#ifndef TENON_BASE_MEM_H
#define TENON_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/** An allocator. `alloc` returns `bytes` bytes at a multiple of `align` (a power of two), or NULL;
    `release` gets the size of the request. Both are called from any thread. */
typedef struct mem {
  void *(*alloc)(void *user, size_t bytes, size_t align);
  void (*release)(void *user, void *at, size_t bytes);
  void *user;
} mem;

/** The C library's allocator. */
extern const mem mem_system;

/** Allocates `bytes` bytes, aligned for any object, not cleared; NULL without memory. */
void *mem_alloc(const mem *m, size_t bytes);

/** Allocates `n` objects of `size` bytes each, all zero; NULL without memory or on overflow. */
void *mem_calloc(const mem *m, size_t n, size_t size);

/** Allocates `bytes` bytes at a multiple of `align`, a power of two; NULL without memory. */
void *mem_alloc_aligned(const mem *m, size_t bytes, size_t align);

/** Moves a block into one of another size; NULL without memory, and the block stays as it was. */
void *mem_resize(const mem *m, void *at, size_t old_bytes, size_t new_bytes);

/** Frees a block; `bytes` is the size of its request. NULL is allowed. */
void mem_free(const mem *m, void *at, size_t bytes);

/** Copies a string; NULL without memory. mem_strfree frees the copy; NULL is allowed. */
char *mem_strdup(const mem *m, const char *text);
void mem_strfree(const mem *m, char *text);

/** Format a number of bytes as "256 GiB", and as the message "out of memory (256 GiB)". Both return
    `text`. */
enum { MEM_TEXT_BYTES = 48 };
const char *mem_format_bytes(uint64_t bytes, char text[MEM_TEXT_BYTES]);
const char *mem_exhausted_text(uint64_t bytes, char text[MEM_TEXT_BYTES]);

#endif
