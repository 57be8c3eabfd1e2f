/* Reads arrays from files, and writes the headers of such files: NumPy's .npy, and ONNX's
   TensorProto as in recorded test data (input_0.pb). */
#ifndef TENON_ARRAY_FILE_H
#define TENON_ARRAY_FILE_H

#include <stddef.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Format of an array file. */
typedef enum tn_file_format {
  TN_FILE_NPY = 1, /**< format versions 1 to 3; bf16, which NumPy lacks, is written as u16, and
                      storage types as u8 */
  TN_FILE_ONNX = 2,
  TN_FILE_FORMAT_MAX_ENUM = 0x7fffffff
} tn_file_format;

/** An open array file. */
typedef struct tn_array_file tn_array_file;

/** Opens a file that holds one array. The file is mapped, so it must not be shortened or
    overwritten in place until it is closed; a pipe is read to its end. It belongs to the context
    until it is closed. On failure *file is NULL and the message names the file: TN_ERR_IO where it
    cannot be read; TN_ERR_FORMAT where it is damaged or of another format; TN_ERR_UNSUPPORTED for
    element types that tensors do not have; TN_ERR_SHAPE for more axes than TN_MAX_RANK. */
TN_API tn_status tn_array_file_open(tn_context *context, const char *path, tn_file_format format,
                                    tn_array_file **file);

/** Returns the array of a file, in this machine's byte order, read-only, not necessarily aligned,
    valid until the file is closed. Bytes of a TN_BOOL may be other than 0 and 1. All zero for
    NULL. */
TN_API tn_array tn_array_file_get(const tn_array_file *file);

/** Closes a file. NULL is allowed. */
TN_API void tn_array_file_close(tn_array_file *file);

/** Writes the part of a file that precedes the elements (which follow as they are in memory, but
   for those of 4 and 2 bits in ONNX's format, which are packed from a byte's lowest bits up) to
   `header` and returns its length; writes nothing if `bytes` is less than that. `name` is the name
    of an ONNX tensor; NULL: "". Returns 0 for a type that is not in TN_DTYPE_LIST, a size that
    varies, and an unknown format. Any thread. */
TN_API size_t tn_array_header(tn_type type, tn_file_format format, const char *name, void *header,
                              size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
