/* Reading and writing NumPy's .npy files, one array each (NumPy Enhancement Proposal 1, format
   versions 1 to 3). */
#ifndef TENON_FORMATS_NPY_NPY_H
#define TENON_FORMATS_NPY_NPY_H

#include "base/arena.h"
#include "base/file.h"
#include "ir/core/dtype.h"

enum { NPY_RANK_MAX = 32 };

/** An array of a file, in row-major order and the machine's byte order. */
typedef struct npy_array {
  dtype dtype;
  size_t rank;
  int64_t dims[NPY_RANK_MAX];
  const void *data; /* in the file, or in the arena if it was reordered */
  size_t bytes;
  file_map file; /* set by npy_open */
} npy_array;

/** Maps a file, or reads a pipe. TN_ERR_FORMAT if it is no .npy file or is damaged,
   TN_ERR_UNSUPPORTED for types that tensors do not have; the message names the file. Arrays in
   column-major or big-endian order are copied to `a`, which raises: call it under diag_catch, and
   npy_close in any case. */
tn_status npy_open(npy_array *out, const char *path, arena *a, diag *d);
void npy_close(npy_array *n);

/** As npy_open, from a file's bytes, which must outlive the array; messages call it `name`. Nothing
    is to be closed. */
tn_status npy_parse(npy_array *out, const void *bytes, size_t n, const char *name, arena *a,
                    diag *d);

/** The most bytes of a header that npy_header makes. */
enum { NPY_HEADER_BYTES = 1024 };

/** Writes the header of a file of format version 1.0, padded so that the elements, which follow it,
    begin at a multiple of 64 bytes, and returns its length. bf16 has no type in NumPy and is u16
    there. `rank` is at most NPY_RANK_MAX. */
size_t npy_header(dtype t, size_t rank, const int64_t dims[], char header[NPY_HEADER_BYTES]);

#endif
