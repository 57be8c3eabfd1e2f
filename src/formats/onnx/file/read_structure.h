/* Reads an ONNX file's structure: all of it but the data of large tensors. */
#ifndef TENON_FORMATS_ONNX_FILE_READ_STRUCTURE_H
#define TENON_FORMATS_ONNX_FILE_READ_STRUCTURE_H

#include "base/file.h"

/** The least bytes of raw_data that are left unread. */
enum { LARGE_TENSOR_BYTES = 1 << 16 };

/** Reads a file in parts, except for raw_data of at least LARGE_TENSOR_BYTES; of a damaged file
    reads the rest too, for the parser to find the damage. */
tn_status onnx_read_structure(const file_map *f, diag *d);

#endif
