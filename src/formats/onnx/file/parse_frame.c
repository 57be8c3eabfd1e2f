/* Frames of the ONNX parser: the callback that nanopb calls for fields, errors that name their
   place, detection of truncated messages, and readers of bytes, texts and packed integers. */
#include "formats/onnx/file/parse_frame.h"

#include <string.h>

enum { PREFIXES_MAX = 8 };

bool onnx_read_field(pb_istream_t *in, pb_ostream_t *out, const pb_field_t *field) {
  (void)out;
  frame *f = (frame *)((char *)field->message - offsetof(frame, pb));
  f->message->field(f, in, field->tag);
  return true;
}

static void prefix_place(const frame *f) {
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

/** True if a file may be no model at all: all writers put the IR version first. */
static bool is_doubtful(const frame *file) {
  bool is_model = file->message->fields == onnx_ModelProto_fields;
  return is_model && !file->pb.model.has_ir_version;
}

void frame_fail(const frame *f, tn_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  failure_set_va(&f->reader->diag->failure, status, format, list);
  va_end(list);
  diag *d = f->reader->diag;
  if (f->up && is_doubtful(outermost(f))) {
    diag_prefix(d, "no ONNX model, or a damaged one");
    diag_rethrow(d);
  }
  for (int places = 0; f->up && places < PREFIXES_MAX; f = f->up) {
    if (!f->message->kind) continue;
    prefix_place(f);
    places++;
  }
  diag_rethrow(d);
}

/** True for length-delimited fields, which nanopb passes where they lie in the file; numbers are
    copies. */
static bool in_file(const onnx_reader *r, const pb_istream_t *in) {
  uintptr_t from = (uintptr_t)r->from, at = (uintptr_t)in->state;
  return at >= from && at - from <= r->bytes && in->bytes_left <= r->bytes - (at - from);
}

/* nanopb gives its reason only as text. frame_is_cut finds truncation by skipping fields in
   protobuf's wire format. */

typedef enum wire_result {
  WIRE_OK,
  WIRE_CUT, /* continues beyond the end */
  WIRE_WRONG
} wire_result;

static wire_result skip_varint(const unsigned char **at, const unsigned char *end,
                               uint64_t *value) {
  enum { MOST_BYTES = 10 };
  *value = 0;
  for (unsigned i = 0; i < MOST_BYTES; i++) {
    if (*at == end) return WIRE_CUT;
    unsigned char byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << 7 * i;
    if (byte < 0x80) return WIRE_OK;
  }
  return WIRE_WRONG;
}

static wire_result skip_field(const unsigned char **at, const unsigned char *end) {
  uint64_t tag, bytes;
  wire_result r = skip_varint(at, end, &tag);
  if (r != WIRE_OK) return r;
  if (!(tag >> 3)) return WIRE_WRONG;
  switch (tag & 7) {
  case PB_WT_VARINT: return skip_varint(at, end, &bytes);
  case PB_WT_64BIT: bytes = 8; break;
  case PB_WT_32BIT: bytes = 4; break;
  case PB_WT_STRING:
    r = skip_varint(at, end, &bytes);
    if (r != WIRE_OK) return r;
    break;
  default: return WIRE_WRONG;
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
  if (is_doubtful(file)) f = file; /* whose parts have no meaning */
  const char *why = PB_GET_ERROR(in), *doubt = f->up ? "" : f->message->doubt;
  if (!in_file(f->reader, in)) frame_fail(f, TN_ERR_FORMAT, "damaged: %s", why);
  size_t at = (size_t)((const unsigned char *)in->state - f->reader->from);
  if (!is_cut) frame_fail(f, TN_ERR_FORMAT, "%sdamaged at byte %zu: %s", doubt, at, why);
  size_t end = at + in->bytes_left;
  bool of_file = end == f->reader->bytes;
  frame_fail(f, TN_ERR_FORMAT,
             "%sdamaged at byte %zu%s: what is there goes on beyond the end of %s at %zu", doubt,
             at, of_file ? ", or cut off" : "", of_file ? "the file" : "what holds it", end);
}

void frame_read_message(const frame *up, pb_istream_t *in, const frame_message *m, void *to,
                        size_t index) {
  frame f = {.reader = up->reader, .message = m, .up = up, .index = index, .to = to};
  f.nesting = up->nesting + m->nests;
  if (f.nesting > ONNX_NESTING_MAX)
    frame_fail(&f, TN_ERR_UNSUPPORTED, "nested deeper than %d levels", ONNX_NESTING_MAX);
  if (!in_file(f.reader, in)) frame_fail(&f, TN_ERR_FORMAT, "damaged: a number in its place");
  const unsigned char *from = in->state;
  size_t bytes = in->bytes_left;
  if (!pb_decode(in, m->fields, &f.pb)) frame_fail_damaged(&f, in, frame_is_cut(from, bytes, in));
  if (m->check) m->check(&f);
}

/* Fields. */

const void *frame_payload(frame *f, pb_istream_t *in, size_t *bytes) {
  if (!in_file(f->reader, in)) frame_fail(f, TN_ERR_FORMAT, "damaged: a number where bytes belong");
  const void *at = in->state;
  *bytes = in->bytes_left;
  if (!pb_read(in, NULL, *bytes)) frame_fail_damaged(f, in, true);
  return at;
}

onnx_bytes frame_bytes(frame *f, pb_istream_t *in) {
  onnx_bytes b;
  const void *from = frame_payload(f, in, &b.n);
  char *to = arena_alloc(f->reader->arena, b.n + 1);
  memcpy(to, from, b.n);
  to[b.n] = 0;
  b.at = to;
  return b;
}

const char *frame_text(frame *f, pb_istream_t *in) {
  onnx_bytes b = frame_bytes(f, in);
  if (memchr(b.at, 0, b.n)) frame_fail(f, TN_ERR_FORMAT, "damaged: a NUL in a text");
  return b.at;
}

void frame_add_text(frame *f, pb_istream_t *in, onnx_names *list) {
  const char *text = frame_text(f, in);
  vec_push(f->reader->arena, list, text);
}

/** Counts the remaining varints, which end at bytes without the high bit. */
static size_t count_numbers(const pb_istream_t *in) {
  const unsigned char *at = in->state;
  size_t n = 0;
  for (size_t i = 0; i < in->bytes_left; i++) n += at[i] < 0x80;
  return n;
}

void frame_add_ints(frame *f, pb_istream_t *in, onnx_ints *list) {
  vec_reserve(f->reader->arena, list, list->n + count_numbers(in));
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
