/* NumPy's .npy files: one array each (NumPy Enhancement Proposal 1, format versions 1 to 3). */
#ifndef TENON_FORMATS_NPY_NPY_H
#define TENON_FORMATS_NPY_NPY_H

#include "base/arena.h"
#include "base/file.h"
#include "ir/dtype.h"

enum { NPY_RANK = 32 };

/** An array of a file, in row-major order and the machine's byte order. */
typedef struct npy_array {
  dtype dtype;
  size_t rank;
  int64_t dims[NPY_RANK];
  const void *data; /* in the file or, where it had to be turned round, in the arena */
  size_t bytes;
  file_map file; /* npy_open's */
} npy_array;

/** Maps a file, or reads a pipe. TN_ERR_FORMAT where it is no .npy file or is damaged,
   TN_ERR_UNSUPPORTED for types that tensors do not have; the message names the file. Arrays in
   column-major or the other byte order are rewritten in `a`, which raises; so call it under
   diag_catch. To be closed, also where it raised. */
tn_status npy_open(npy_array *out, const char *path, arena *a, diag *d);
void npy_close(npy_array *n);

/** The same of a file's bytes, which must outlive the array; `name` is what messages call it. There
    is nothing to close. */
tn_status npy_read(npy_array *out, const void *bytes, size_t n, const char *name, arena *a,
                   diag *d);

/** Writes a file as file_write does. bf16 has no type in NumPy and is written as u16. */
tn_status npy_write(const char *path, dtype t, size_t rank, const int64_t dims[], const void *data,
                    arena *a, diag *d);

/** The same to what is open, and stays so; `name` is what messages call it. */
tn_status npy_write_open(int fd, const char *name, dtype t, size_t rank, const int64_t dims[],
                         const void *data, arena *a, diag *d);

#endif
