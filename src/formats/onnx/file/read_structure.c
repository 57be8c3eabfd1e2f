/* Walks over the messages in which tensors are, to find what need not be read. In protobuf's
   encoding a message is a list of fields, each a key (number << 3 | wire type) and a payload: a
   varint (0), 8 bytes (1), a length and as many bytes (2), or 4 bytes (5). */
#include "formats/onnx/file/read_structure.h"

#include <stdint.h>

enum { WINDOW_BYTES = 1 << 12, KEY_BYTES = 20, DEPTH_MAX = 256 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/** Messages in which tensors may be. */
typedef enum message_kind {
  OTHER,
  MODEL,
  FUNCTION,
  GRAPH,
  NODE,
  ATTRIBUTE,
  SPARSE,
  TENSOR
} message_kind;

/** The message that a field of a message is, by the numbers of onnx.proto. */
static message_kind kind_of(message_kind in, uint64_t field) {
  static const struct {
    message_kind in;
    uint64_t field;
    message_kind is;
  } fields[] = {{MODEL, 7, GRAPH},       {MODEL, 25, FUNCTION},  {FUNCTION, 7, NODE},
                {GRAPH, 1, NODE},        {GRAPH, 5, TENSOR},     {GRAPH, 15, SPARSE},
                {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 5, TENSOR}, {ATTRIBUTE, 6, GRAPH},
                {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 11, GRAPH}, {ATTRIBUTE, 22, SPARSE},
                {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].in == in && fields[i].field == field) return fields[i].is;
  return OTHER;
}

static bool is_large_data(message_kind in, uint64_t field, uint64_t bytes) {
  return in == TENSOR && field == 9 && bytes >= LARGE_TENSOR_BYTES;
}

typedef struct walk {
  const file_map *file;
  diag *diag;
  size_t read; /* all before it is read, or left out */
} walk;

/** Reads what is before `end`, and some more. */
static tn_status read_to(walk *w, size_t end) {
  size_t all = w->file->bytes;
  if (end > all) end = all;
  if (end <= w->read) return TN_OK;
  size_t from = w->read, to = all - end > WINDOW_BYTES ? end + WINDOW_BYTES : all;
  w->read = to;
  return file_map_read(w->file, w->file->data + from, to - from, w->diag);
}

/** Takes a varint at *at, which is before `end`; false if it is none. */
static bool take_varint(const walk *w, size_t *at, size_t end, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
    unsigned char byte = w->file->data[(*at)++];
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

/** Takes a field's key and the bytes of its payload; false for a damaged one. */
static bool take_key(const walk *w, size_t *at, size_t end, uint64_t *field, uint64_t *bytes) {
  uint64_t key, ignored;
  if (!take_varint(w, at, end, &key)) return false;
  *field = key >> 3;
  *bytes = 0;
  switch (key & 7) {
  case WIRE_VARINT: return take_varint(w, at, end, &ignored);
  case WIRE_64: *bytes = 8; break;
  case WIRE_32: *bytes = 4; break;
  case WIRE_BYTES:
    if (!take_varint(w, at, end, bytes)) return false;
    break;
  default: return false;
  }
  return *bytes <= end - *at;
}

/** Reads a message; the rest of the file where it is damaged or nests deep. */
static tn_status walk_message(walk *w, message_kind kind, size_t at, size_t end, int depth) {
  tn_status s = TN_OK;
  while (s == TN_OK && at < end) {
    uint64_t field, bytes;
    s = read_to(w, at + KEY_BYTES);
    if (s != TN_OK) return s;
    if (!take_key(w, &at, end, &field, &bytes) || depth == DEPTH_MAX)
      return read_to(w, w->file->bytes);
    message_kind inner = kind_of(kind, field);
    if (is_large_data(kind, field, bytes))
      w->read = w->read > at + bytes ? w->read : at + bytes;
    else if (inner != OTHER)
      s = walk_message(w, inner, at, at + bytes, depth + 1);
    else
      s = read_to(w, at + bytes);
    at += bytes;
  }
  return s;
}

tn_status onnx_read_structure(const file_map *f, diag *d) {
  walk w = {.file = f, .diag = d};
  return f->in_parts ? walk_message(&w, MODEL, 0, f->bytes, 0) : TN_OK;
}
