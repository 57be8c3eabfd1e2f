/* Parser of ONNX tensors (TensorProto) inside models. */
#ifndef TENON_FORMATS_ONNX_FILE_PARSE_TENSOR_H
#define TENON_FORMATS_ONNX_FILE_PARSE_TENSOR_H

#include "formats/onnx/file/parse_frame.h"

/** Parses a tensor; `index` is its position in a list, or NOT_LISTED. */
onnx_tensor *frame_read_tensor(frame *f, pb_istream_t *in, size_t index);

/** Parses a sparse tensor, whose name is that of its values. */
onnx_tensor *frame_read_sparse_tensor(frame *f, pb_istream_t *in, size_t index);

/** Parse a tensor and append it to a list. */
void frame_add_tensor(frame *f, pb_istream_t *in, onnx_tensors *list);
void frame_add_sparse_tensor(frame *f, pb_istream_t *in, onnx_tensors *list);

#endif
