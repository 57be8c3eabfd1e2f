/* Code as it is kept on disk: what one call of a compiler made, with the facts of its kernels. */
#ifndef TENON_DEVICE_PIECE_H
#define TENON_DEVICE_PIECE_H

#include "device/cache.h"

typedef struct piece_kernel {
  tn_program_spec spec; /* entry, globals, value_names and core_id; the rest is absent */
  launch_code sizes;
  launch_terms terms;
} piece_kernel;

typedef struct piece {
  tn_code code;
  const piece_kernel *kernels;
} piece;

/** Appends code and its kernels. */
void piece_write(str *to, const tn_code *code, const made_kernel made[], size_t n);

/** Reads a piece of `n` kernels, its numbers and texts into the arena, its code, which comes last,
   as it lies there. False for what is none. */
bool piece_read(piece *p, const void *data, size_t bytes, size_t n, arena *a);

/** Whether the facts may be those of a kernel's code: it uses no buffer or variable that the kernel
    (its SINK) does not have. */
bool piece_fits(const piece_kernel *k, ir *g, const node *sink);

#endif
