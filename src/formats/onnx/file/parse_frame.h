/* Frames of the ONNX parser: one for each protobuf message being read, so that errors name the
   place (graph, node, tensor) and damage its byte. nanopb decodes scalars; strings, lists and
   messages come here as they lie in the file, without a copy. */
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
} onnx_reader;

typedef struct frame frame;

/* Reader of one kind of message. */
typedef struct frame_message {
  const pb_msgdesc_t *fields;
  const char *kind;  /* its name in errors; NULL: left out */
  const char *doubt; /* of a whole file: prefix of errors about damage */
  bool nests;        /* counts towards the nesting limit */
  void (*field)(frame *f, pb_istream_t *in, uint32_t tag);
  void (*check)(frame *f); /* checks and copies the scalars; or NULL */
} frame_message;

#define NOT_LISTED SIZE_MAX /* index of a message that is in no list */

/* A message being read. nanopb decodes its scalars into `pb`, and passes all other fields to
   onnx_read_field, which finds the frame that contains `pb`. */
struct frame {
  onnx_reader *reader;
  const frame_message *message;
  const frame *up;
  const char *name; /* once read */
  size_t index;     /* in its list */
  unsigned nesting;
  void *to; /* struct that receives the fields */
  union {
    onnx_AttributeProto attribute;
    onnx_FunctionProto function;
    onnx_GraphProto graph;
    onnx_ModelProto model;
    onnx_NodeProto node;
    onnx_OperatorSetIdProto opset;
    onnx_StringStringEntryProto pair;
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

/** Raises an error, prefixed with the names of the messages around it. */
_Noreturn void frame_fail(const frame *f, tn_status status, const char *format, ...)
    BASE_PRINTF(3, 4);

/** Raises TN_ERR_FORMAT at the byte where nanopb stopped; `is_cut` as frame_is_cut says. */
_Noreturn void frame_fail_damaged(const frame *f, const pb_istream_t *in, bool is_cut);

/** True if the field in which the reading of a message stopped goes on beyond the message's end. */
bool frame_is_cut(const unsigned char *from, size_t bytes, const pb_istream_t *stopped);

/** Reads a message into `to`, in a frame below `up`. */
void frame_read_message(const frame *up, pb_istream_t *in, const frame_message *m, void *to,
                        size_t index);

/* Appends an empty item, given as an initialiser list, to a vector and reads a message into it. */
#define frame_read_item(f, in, frame_message, list, ...)                      \
  do {                                                                        \
    vec_push((f)->reader->arena, list, __VA_ARGS__);                          \
    frame_read_message(f, in, frame_message, &vec_last(list), (list)->n - 1); \
  } while (0)

/** Fields: bytes where they lie in the file; a copy that ends in NUL; text, without NULs in it. */
const void *frame_payload(frame *f, pb_istream_t *in, size_t *bytes);
onnx_bytes frame_bytes(frame *f, pb_istream_t *in);
const char *frame_text(frame *f, pb_istream_t *in);

/** Appends a text, or packed numbers, to a list. */
void frame_add_text(frame *f, pb_istream_t *in, onnx_names *list);
void frame_add_ints(frame *f, pb_istream_t *in, onnx_ints *list);

/** Entry of a map from text to text, read into an onnx_pair. */
extern const frame_message frame_pair_message;

#define PAIR_EMPTY \
  (onnx_pair) { .key = "", .value = "" }

#endif
