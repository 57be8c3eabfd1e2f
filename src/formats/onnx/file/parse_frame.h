/* Frames of the ONNX parser: a stack with one frame for each protobuf message being parsed, so that
   errors name the graph, node or tensor, and the byte of damage. nanopb decodes scalars and passes
   strings, lists and messages as slices of the file, without a copy. */
#ifndef TENON_FORMATS_ONNX_FILE_PARSE_FRAME_H
#define TENON_FORMATS_ONNX_FILE_PARSE_FRAME_H

#include "formats/onnx/file/onnx_file.h"
#include "formats/onnx/onnx.pb.h"

#include <pb_decode.h>

typedef struct onnx_reader {
  arena *arena;
  diag *diag;
  const unsigned char *from;
  size_t bytes;
  onnx_model *model;
  const file_map *parts; /* the file, in parts, of which `from` is the memory; NULL: all is there */
} onnx_reader;

typedef struct frame frame;

/** The parser of one type of message. */
typedef struct frame_message {
  const pb_msgdesc_t *fields;
  const char *kind;        /* name in errors; NULL: not named */
  const char *file_prefix; /* of a whole file: prefix of errors about damage */
  bool nests;              /* counts towards the nesting limit */
  void (*field)(frame *f, pb_istream_t *in, uint32_t tag);
  void (*check)(frame *f); /* checks and copies the scalars; or NULL */
} frame_message;

/** The index of a message that is not in a list. */
#define NOT_LISTED SIZE_MAX

/** A message being parsed. nanopb decodes its scalars into `pb`, and passes all other fields to
    onnx_read_field, which finds the frame that contains `pb`. */
struct frame {
  onnx_reader *reader;
  const frame_message *message;
  const frame *up;
  const char *name; /* NULL until read */
  size_t index;     /* in its list */
  unsigned nesting;
  void *to; /* the struct that receives the fields */
  union {
    onnx_AttributeProto attribute;
    onnx_FunctionProto function;
    onnx_GraphProto graph;
    onnx_ModelProto model;
    onnx_NodeProto node;
    onnx_OperatorSetIdProto opset;
    onnx_StringStringEntryProto pair;
    onnx_SparseTensorProto sparse;
    onnx_TensorProto tensor;
    onnx_TensorShapeProto shape;
    onnx_TensorShapeProto_Dimension dim;
    onnx_TypeProto type;
    onnx_TypeProto_Map map;
    onnx_TypeProto_Optional optional;
    onnx_TypeProto_Sequence sequence;
    onnx_TypeProto_Tensor tensor_type;
    onnx_ValueInfoProto value;
  } pb;
};

/** Raises an error, prefixed with the names of the enclosing messages. */
_Noreturn void frame_fail(const frame *f, tn_status status, const char *format, ...)
    BASE_PRINTF(3, 4);

/** Raises TN_ERR_FORMAT at the byte where nanopb stopped; `is_cut` as frame_is_cut says. */
_Noreturn void frame_fail_damaged(const frame *f, const pb_istream_t *in, bool is_cut);

/** True if the field at which parsing stopped extends beyond the end of its message. */
bool frame_is_cut(const unsigned char *from, size_t bytes, const pb_istream_t *stopped);

/** Parses a message into `to`, in a new frame below `up`. */
void frame_read_message(const frame *up, pb_istream_t *in, const frame_message *m, void *to,
                        size_t index);

/** Appends an item, given as an initialiser list, to a vector and parses a message into it. */
#define frame_read_item(f, in, frame_message, list, ...)                      \
  do {                                                                        \
    vec_push((f)->reader->arena, list, __VA_ARGS__);                          \
    frame_read_message(f, in, frame_message, &vec_last(list), (list)->n - 1); \
  } while (0)

/** The value of a field: a slice of the file; a copy that ends in NUL; a string without other NULs.
 */
const void *frame_payload(frame *f, pb_istream_t *in, size_t *bytes);
onnx_bytes frame_bytes(frame *f, pb_istream_t *in);
const char *frame_text(frame *f, pb_istream_t *in);

/** Appends a string, or packed integers, to a list. */
void frame_add_text(frame *f, pb_istream_t *in, onnx_names *list);
void frame_add_ints(frame *f, pb_istream_t *in, onnx_ints *list);

/** The parser of a key-value pair, into an onnx_pair. */
extern const frame_message frame_pair_message;

#define PAIR_EMPTY \
  (onnx_pair) { .key = "", .value = "" }

#endif
