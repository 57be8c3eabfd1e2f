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

/** Maps a file, or reads a pipe. Fails with TN_ERR_FORMAT for damaged and other files, and with
    TN_ERR_UNSUPPORTED for types that tensors do not have; the message names the file. Column-major
   and big-endian arrays are copied to `a`, which raises: call under diag_catch, and npy_close in
   any case. */
tn_status npy_open(npy_array *out, const char *path, arena *a, diag *d);
void npy_close(npy_array *n);

/** As npy_open, for a file in memory, which must outlive the array; messages call it `name`. There
   is nothing to close. */
tn_status npy_parse(npy_array *out, const void *bytes, size_t n, const char *name, arena *a,
                    diag *d);

/** The largest header that npy_header writes. */
enum { NPY_HEADER_BYTES = 1024 };

/** Writes the header of format version 1.0 and returns its length, a multiple of 64, after which
   the elements follow. NumPy has no bf16: such arrays are u16; those of storage types are u8.
   `rank` is at most NPY_RANK_MAX. */
size_t npy_header(dtype t, size_t rank, const int64_t dims[], char header[NPY_HEADER_BYTES]);

#endif
