/* Tensors as files. */
#include "formats/onnx/proto.h"

#include "formats/onnx/onnx.pb.h"

#include <pb_encode.h>
#include <string.h>

typedef struct writing {
  const char *name;
  onnx_dtype dtype;
  size_t rank;
  const int64_t *dims;
  size_t bytes;
  arena *arena;
  file_part head; /* all but the elements */
} writing;

enum { NUMBER_MOST = 2 * 10 }; /* a tag and a number, bytes */

static bool put(const writing *w, pb_ostream_t *out) {
  size_t n = strlen(w->name);
  for (size_t i = 0; i < w->rank; i++)
    if (!pb_encode_tag(out, PB_WT_VARINT, onnx_TensorProto_dims_tag) ||
        !pb_encode_varint(out, (uint64_t)w->dims[i]))
      return false;
  return pb_encode_tag(out, PB_WT_VARINT, onnx_TensorProto_data_type_tag) &&
         pb_encode_varint(out, (uint64_t)w->dtype) &&
         pb_encode_tag(out, PB_WT_STRING, onnx_TensorProto_name_tag) &&
         pb_encode_string(out, (const pb_byte_t *)w->name, n) &&
         pb_encode_tag(out, PB_WT_STRING, onnx_TensorProto_raw_data_tag) &&
         pb_encode_varint(out, w->bytes);
}

static void put_head(void *arg) {
  writing *w = arg;
  size_t most = (w->rank + 3) * NUMBER_MOST + strlen(w->name);
  pb_byte_t *head = arena_alloc(w->arena, most);
  pb_ostream_t out = pb_ostream_from_buffer(head, most);
  if (!put(w, &out)) diag_raise(w->arena->diag, TN_ERR_INTERNAL, "%s", PB_GET_ERROR(&out));
  w->head = (file_part){head, out.bytes_written};
}

tn_status onnx_write_tensor(const char *path, const char *name, onnx_dtype dtype, size_t rank,
                            const int64_t dims[], const void *data, size_t bytes, arena *a,
                            diag *d) {
  writing w = {
      .name = name, .dtype = dtype, .rank = rank, .dims = dims, .bytes = bytes, .arena = a};
  tn_status s = diag_catch(d, put_head, &w);
  if (s != TN_OK) return s;
  return file_write_parts(path, (file_part[]){w.head, {data, bytes}}, 2, d);
}
