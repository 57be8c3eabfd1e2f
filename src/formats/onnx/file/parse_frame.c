/* Frames of the ONNX parser: the callback of nanopb for fields, errors that name the enclosing
   messages, detection of truncated messages, and parsers of bytes, strings and packed integers. The
   input is untrusted: every length is checked against its message. */
#include "formats/onnx/file/parse_frame.h"

#include <string.h>

enum { PREFIXES_MAX = 8 };

bool onnx_read_field(pb_istream_t *in, pb_ostream_t *out, const pb_field_t *field) {
  (void)out;
  frame *f = (frame *)((char *)field->message - offsetof(frame, pb));
  f->message->field(f, in, field->tag);
  return true;
}

static void prefix_message(const frame *f) {
  diag *d = f->reader->diag;
  if (f->name && *f->name)
    diag_prefix(d, "%s '%.100s'", f->message->kind, f->name);
  else if (f->index != NOT_LISTED)
    diag_prefix(d, "%s %zu", f->message->kind, f->index);
  else
    diag_prefix(d, "%s", f->message->kind);
}

static const frame *outermost(const frame *f) {
  while (f->up) f = f->up;
  return f;
}

/** True if a file may not be a model at all: exporters write the IR version first. */
static bool may_be_no_model(const frame *file) {
  bool is_model = file->message->fields == onnx_ModelProto_fields;
  return is_model && !file->pb.model.has_ir_version;
}

void frame_fail(const frame *f, tn_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  failure_set_va(&f->reader->diag->failure, status, format, list);
  va_end(list);
  diag *d = f->reader->diag;
  if (f->up && may_be_no_model(outermost(f))) {
    diag_prefix(d, "not an ONNX model, or a damaged one");
    diag_rethrow(d);
  }
  for (int places = 0; f->up && places < PREFIXES_MAX; f = f->up) {
    if (!f->message->kind) continue;
    prefix_message(f);
    places++;
  }
  diag_rethrow(d);
}

/** True for length-delimited fields, which nanopb passes as slices of the file; numbers are copies.
 */
static bool is_in_file(const onnx_reader *r, const pb_istream_t *in) {
  uintptr_t file = (uintptr_t)r->from, field = (uintptr_t)in->state;
  return field >= file && field - file <= r->bytes && in->bytes_left <= r->bytes - (field - file);
}

/* nanopb reports errors only as text, so frame_is_cut detects truncation itself, by skipping fields
   in protobuf's wire format. */

typedef enum wire_result {
  WIRE_OK,
  WIRE_CUT, /* extends beyond the end */
  WIRE_MALFORMED
} wire_result;

static wire_result skip_varint(const unsigned char **at, const unsigned char *end,
                               uint64_t *value) {
  enum { MAX_BYTES = 10 };
  *value = 0;
  for (unsigned i = 0; i < MAX_BYTES; i++) {
    if (*at == end) return WIRE_CUT;
    unsigned char byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << 7 * i;
    if (byte < 0x80) return WIRE_OK;
  }
  return WIRE_MALFORMED;
}

static wire_result skip_field(const unsigned char **at, const unsigned char *end) {
  uint64_t tag, bytes;
  wire_result r = skip_varint(at, end, &tag);
  if (r != WIRE_OK) return r;
  if (!(tag >> 3)) return WIRE_MALFORMED;
  switch (tag & 7) {
  case PB_WT_VARINT: return skip_varint(at, end, &bytes);
  case PB_WT_64BIT: bytes = 8; break;
  case PB_WT_32BIT: bytes = 4; break;
  case PB_WT_STRING:
    r = skip_varint(at, end, &bytes);
    if (r != WIRE_OK) return r;
    break;
  default: return WIRE_MALFORMED;
  }
  if (bytes > (size_t)(end - *at)) return WIRE_CUT;
  *at += bytes;
  return WIRE_OK;
}

bool frame_is_cut(const unsigned char *from, size_t bytes, const pb_istream_t *stopped) {
  const unsigned char *stop = stopped->state;
  wire_result r = WIRE_OK;
  for (const unsigned char *at = from; at < stop && r == WIRE_OK;)
    r = skip_field(&at, from + bytes);
  return r == WIRE_CUT;
}

void frame_fail_damaged(const frame *f, const pb_istream_t *in, bool is_cut) {
  const frame *file = outermost(f);
  if (may_be_no_model(file)) f = file; /* messages inside are meaningless */
  const char *reason = PB_GET_ERROR(in), *prefix = f->up ? "" : f->message->file_prefix;
  if (!is_in_file(f->reader, in)) frame_fail(f, TN_ERR_FORMAT, "damaged: %s", reason);
  size_t offset = (size_t)((const unsigned char *)in->state - f->reader->from);
  if (!is_cut) frame_fail(f, TN_ERR_FORMAT, "%sdamaged at byte %zu: %s", prefix, offset, reason);
  size_t end = offset + in->bytes_left;
  bool ends_file = end == f->reader->bytes;
  frame_fail(f, TN_ERR_FORMAT,
             "%sdamaged at byte %zu%s: the field extends beyond the end of %s at byte %zu", prefix,
             offset, ends_file ? ", or truncated" : "", ends_file ? "the file" : "its message",
             end);
}

void frame_read_message(const frame *up, pb_istream_t *in, const frame_message *m, void *to,
                        size_t index) {
  frame f = {.reader = up->reader, .message = m, .up = up, .index = index, .to = to};
  f.nesting = up->nesting + m->nests;
  if (f.nesting > ONNX_NESTING_MAX)
    frame_fail(&f, TN_ERR_UNSUPPORTED, "nested deeper than %d levels", ONNX_NESTING_MAX);
  if (!is_in_file(f.reader, in))
    frame_fail(&f, TN_ERR_FORMAT, "damaged: expected a message, found a number");
  const unsigned char *from = in->state;
  size_t bytes = in->bytes_left;
  if (!pb_decode(in, m->fields, &f.pb)) frame_fail_damaged(&f, in, frame_is_cut(from, bytes, in));
  if (m->check) m->check(&f);
}

/* Fields. */

const void *frame_payload(frame *f, pb_istream_t *in, size_t *bytes) {
  if (!is_in_file(f->reader, in))
    frame_fail(f, TN_ERR_FORMAT, "damaged: expected bytes, found a number");
  const void *payload = in->state;
  *bytes = in->bytes_left;
  if (!pb_read(in, NULL, *bytes)) frame_fail_damaged(f, in, true);
  return payload;
}

onnx_bytes frame_bytes(frame *f, pb_istream_t *in) {
  onnx_bytes b;
  const void *payload = frame_payload(f, in, &b.n);
  char *copy = arena_alloc(f->reader->arena, b.n + 1);
  memcpy(copy, payload, b.n);
  copy[b.n] = 0;
  b.at = copy;
  return b;
}

const char *frame_text(frame *f, pb_istream_t *in) {
  onnx_bytes b = frame_bytes(f, in);
  if (memchr(b.at, 0, b.n)) frame_fail(f, TN_ERR_FORMAT, "damaged: a string contains a NUL");
  return b.at;
}

void frame_add_text(frame *f, pb_istream_t *in, onnx_names *list) {
  const char *text = frame_text(f, in);
  vec_push(f->reader->arena, list, text);
}

/** Counts the remaining varints: each ends at a byte without the high bit. */
static size_t count_varints(const pb_istream_t *in) {
  const unsigned char *bytes = in->state;
  size_t n = 0;
  for (size_t i = 0; i < in->bytes_left; i++) n += bytes[i] < 0x80;
  return n;
}

void frame_add_ints(frame *f, pb_istream_t *in, onnx_ints *list) {
  vec_reserve(f->reader->arena, list, list->n + count_varints(in));
  while (in->bytes_left) {
    uint64_t x;
    const unsigned char *at = in->state, *end = at + in->bytes_left;
    if (!pb_decode_varint(in, &x)) frame_fail_damaged(f, in, skip_varint(&at, end, &x) == WIRE_CUT);
    vec_push(f->reader->arena, list, (int64_t)x);
  }
}

static void pair_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_pair *to = f->to;
  switch (tag) {
  case onnx_StringStringEntryProto_key_tag: to->key = frame_text(f, in); break;
  case onnx_StringStringEntryProto_value_tag: to->value = frame_text(f, in); break;
  }
}

const frame_message frame_pair_message = {
    .fields = onnx_StringStringEntryProto_fields, .kind = "entry", .field = pair_field};
