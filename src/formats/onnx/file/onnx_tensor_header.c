/* Writes the header of a TensorProto in protobuf's wire format (nanopb). The elements are the last
   field (raw_data), so a file is this header followed by the elements as they are in memory. */
#include "formats/onnx/file/onnx_file.h"

#include "formats/onnx/onnx.pb.h"

#include <pb_encode.h>
#include <string.h>

typedef struct tensor_fields {
  const char *name;
  onnx_dtype dtype;
  size_t rank;
  const int64_t *dims;
  size_t data_bytes;
} tensor_fields;

static bool encode_fields(const tensor_fields *f, pb_ostream_t *out) {
  for (size_t i = 0; i < f->rank; i++)
    if (!pb_encode_tag(out, PB_WT_VARINT, onnx_TensorProto_dims_tag) ||
        !pb_encode_varint(out, (uint64_t)f->dims[i]))
      return false;
  return pb_encode_tag(out, PB_WT_VARINT, onnx_TensorProto_data_type_tag) &&
         pb_encode_varint(out, (uint64_t)f->dtype) &&
         pb_encode_tag(out, PB_WT_STRING, onnx_TensorProto_name_tag) &&
         pb_encode_string(out, (const pb_byte_t *)f->name, strlen(f->name)) &&
         pb_encode_tag(out, PB_WT_STRING, onnx_TensorProto_raw_data_tag) &&
         pb_encode_varint(out, f->data_bytes);
}

size_t onnx_tensor_header(const char *name, onnx_dtype dtype, size_t rank, const int64_t dims[],
                          size_t data_bytes, void *header, size_t bytes) {
  const tensor_fields f = {name, dtype, rank, dims, data_bytes};
  pb_ostream_t sizing = PB_OSTREAM_SIZING, out = pb_ostream_from_buffer(header, bytes);
  encode_fields(&f, &sizing);
  if (sizing.bytes_written <= bytes) encode_fields(&f, &out);
  return sizing.bytes_written;
}
