/* Serialises compiled code for the disk cache: a code record is the content of one file, the code
   that one call of a compiler made and the facts of its kernels. Files may be damaged or hostile,
   so reading checks every value. */
#ifndef TENON_COMPILE_CODE_RECORD_H
#define TENON_COMPILE_CODE_RECORD_H

#include "compile/kernel_cache.h"

/** The facts of one kernel in a record. */
typedef struct code_record_kernel {
  tn_program_spec spec; /* entry, globals, value_names, scratch and core_id; the rest is absent */
  launch_exprs sizes;
  launch_limits limits;
} code_record_kernel;

/** Code with the facts of its kernels. */
typedef struct code_record {
  tn_code code;
  const code_record_kernel *kernels;
} code_record;

/** Appends code and its `n` kernels. */
void code_record_write(str *to, const tn_code *code, const compiled_kernel compiled[], size_t n);

/** Reads a record of `n` kernels: numbers and texts into the arena; the code, which comes last,
    stays in `data`. False if it is malformed. */
bool code_record_read(code_record *p, const void *data, size_t bytes, size_t n, arena *a);

/** True if the facts can be those of a kernel's code: all its buffers and variables are in the
    kernel (its SINK). */
bool code_record_fits_kernel(const code_record_kernel *k, ir *g, const node *sink);

#endif
