#include "formats/onnx/proto.h"

#include "formats/onnx/onnx.pb.h"

#include <pb_decode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- element types --- */

/* The fields of TensorProto that hold its elements. */
#define DATA_FIELD_LIST(X) \
  X(RAW, "raw_data")       \
  X(FLOAT, "float_data")   \
  X(DOUBLE, "double_data") \
  X(INT32, "int32_data")   \
  X(INT64, "int64_data")   \
  X(UINT64, "uint64_data") \
  X(STRING, "string_data")

typedef enum data_field {
  FIELD_NONE,
#define FIELD_ENUM(name, text) FIELD_##name,
  DATA_FIELD_LIST(FIELD_ENUM)
#undef FIELD_ENUM
} data_field;

static const char *const field_name[] = {
#define FIELD_NAME(name, text) [FIELD_##name] = text,
    DATA_FIELD_LIST(FIELD_NAME)
#undef FIELD_NAME
};

typedef struct dtype_row {
  const char *name;
  unsigned char bits;
  data_field field;
} dtype_row;

static const dtype_row dtype_rows[] = {
#define DTYPE_ROW(name, number, text, bits, field) [number] = {text, bits, FIELD_##field},
    ONNX_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

static const dtype_row *dtype_find_row(int dtype) {
  static const dtype_row none;
  bool known = dtype > 0 && (size_t)dtype < sizeof dtype_rows / sizeof *dtype_rows;
  return known ? &dtype_rows[dtype] : &none;
}

const char *onnx_dtype_name(int dtype) { return dtype_find_row(dtype)->name; }
unsigned onnx_dtype_bits(int dtype) { return dtype_find_row(dtype)->bits; }

/* --- frames --- */

typedef struct reader {
  arena *arena;
  diag *diag;
  const unsigned char *from;
  size_t bytes;
  onnx_model *model;
} reader;

typedef struct frame frame;

/* How one kind of message is read. */
typedef struct message {
  const pb_msgdesc_t *fields;
  const char *kind;  /* what errors call it; NULL: they leave it out */
  const char *doubt; /* of a whole file: what errors say before that it is damaged */
  bool nests;        /* one of those through which all nesting goes */
  void (*field)(frame *f, pb_istream_t *in, uint32_t tag);
  void (*done)(frame *f); /* checks and keeps the scalars; may be NULL */
} message;

enum { PLACES_MAX = 8 };
#define NOT_LISTED SIZE_MAX /* the index of a message that is in no list */

/* A message being read. nanopb decodes its scalars into `pb`, and hands all other fields to
   onnx_read_field, which finds the frame around `pb`. */
struct frame {
  reader *reader;
  const message *message;
  const frame *up;
  const char *name; /* once known */
  size_t index;     /* in its list */
  unsigned nesting;
  void *to; /* what the message is read into */
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

/** Whether a file may be anything: of a model, all writers put the IR version first. */
static bool is_doubtful(const frame *file) {
  bool is_model = file->message->fields == onnx_ModelProto_fields;
  return is_model && !file->pb.model.has_ir_version;
}

static _Noreturn void fail(const frame *f, tn_status status, const char *format, ...)
    BASE_PRINTF(3, 4);
static _Noreturn void fail(const frame *f, tn_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  diag_set_list(f->reader->diag, status, format, list);
  va_end(list);
  diag *d = f->reader->diag;
  if (f->up && is_doubtful(outermost(f))) {
    diag_prefix(d, "no ONNX model, or a damaged one");
    diag_rethrow(d);
  }
  for (int places = 0; f->up && places < PLACES_MAX; f = f->up) {
    if (!f->message->kind) continue;
    prefix_place(f);
    places++;
  }
  diag_rethrow(d);
}

/* nanopb hands length-delimited fields over where they are in the file, but numbers as copies. */
static bool in_file(const reader *r, const pb_istream_t *in) {
  uintptr_t from = (uintptr_t)r->from, at = (uintptr_t)in->state;
  return at >= from && at - from <= r->bytes && in->bytes_left <= r->bytes - (at - from);
}

/* What ends beyond what holds it: of the whole file too where that was cut off. */
static bool is_cut(const char *why) {
  return !strcmp(why, "parent stream too short") || !strcmp(why, "end-of-stream") ||
         !strcmp(why, "io error");
}

static _Noreturn void damaged(const frame *f, const pb_istream_t *in) {
  const frame *file = outermost(f);
  if (is_doubtful(file)) f = file; /* whose parts have no meaning */
  const char *why = PB_GET_ERROR(in), *doubt = f->up ? "" : f->message->doubt;
  if (!in_file(f->reader, in)) fail(f, TN_ERR_FORMAT, "damaged: %s", why);
  size_t at = (size_t)((const unsigned char *)in->state - f->reader->from);
  if (!is_cut(why)) fail(f, TN_ERR_FORMAT, "%sdamaged at byte %zu: %s", doubt, at, why);
  size_t end = at + in->bytes_left;
  bool of_file = end == f->reader->bytes;
  fail(f, TN_ERR_FORMAT,
       "%sdamaged at byte %zu%s: what is there goes on beyond the end of %s at %zu", doubt, at,
       of_file ? ", or cut off" : "", of_file ? "the file" : "what holds it", end);
}

static void read_message(const frame *up, pb_istream_t *in, const message *m, void *to,
                         size_t index) {
  frame f = {.reader = up->reader, .message = m, .up = up, .index = index, .to = to};
  f.nesting = up->nesting + m->nests;
  if (f.nesting > ONNX_NESTING_MAX)
    fail(&f, TN_ERR_UNSUPPORTED, "nested deeper than %d levels", ONNX_NESTING_MAX);
  if (!in_file(f.reader, in)) fail(&f, TN_ERR_FORMAT, "damaged: a number in its place");
  if (!pb_decode(in, m->fields, &f.pb)) damaged(&f, in);
  if (m->done) m->done(&f);
}

/* Appends an empty item, given as an initialiser list, to a vector and reads a message into it. */
#define read_item(f, in, message, list, ...)                      \
  do {                                                            \
    vec_push((f)->reader->arena, list, __VA_ARGS__);              \
    read_message(f, in, message, &vec_last(list), (list)->n - 1); \
  } while (0)

/* --- fields --- */

static const void *payload(frame *f, pb_istream_t *in, size_t *bytes) {
  if (!in_file(f->reader, in)) fail(f, TN_ERR_FORMAT, "damaged: a number where bytes belong");
  const void *at = in->state;
  *bytes = in->bytes_left;
  if (!pb_read(in, NULL, *bytes)) damaged(f, in);
  return at;
}

static onnx_bytes bytes_of(frame *f, pb_istream_t *in) {
  onnx_bytes b;
  const void *from = payload(f, in, &b.n);
  char *to = arena_alloc(f->reader->arena, b.n + 1);
  memcpy(to, from, b.n);
  to[b.n] = 0;
  b.at = to;
  return b;
}

static const char *text_of(frame *f, pb_istream_t *in) {
  onnx_bytes b = bytes_of(f, in);
  if (memchr(b.at, 0, b.n)) fail(f, TN_ERR_FORMAT, "damaged: a NUL in a text");
  return b.at;
}

static void add_text(frame *f, pb_istream_t *in, onnx_names *list) {
  const char *text = text_of(f, in);
  vec_push(f->reader->arena, list, text);
}

/* The variable-length numbers that are left, which end at bytes without the high bit. */
static size_t count_numbers(const pb_istream_t *in) {
  const unsigned char *at = in->state;
  size_t n = 0;
  for (size_t i = 0; i < in->bytes_left; i++) n += at[i] < 0x80;
  return n;
}

static void add_ints(frame *f, pb_istream_t *in, onnx_ints *list) {
  vec_reserve(f->reader->arena, list, list->n + count_numbers(in));
  while (in->bytes_left) {
    uint64_t x;
    if (!pb_decode_varint(in, &x)) damaged(f, in);
    vec_push(f->reader->arena, list, (int64_t)x);
  }
}

static void add_floats(frame *f, pb_istream_t *in, onnx_attribute *to) {
  vec_reserve(f->reader->arena, &to->floats, to->floats.n + in->bytes_left / sizeof(float));
  while (in->bytes_left) {
    float x;
    if (!pb_decode_fixed32(in, &x)) damaged(f, in);
    vec_push(f->reader->arena, &to->floats, x);
  }
}

static void pair_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_pair *to = f->to;
  switch (tag) {
  case onnx_StringStringEntryProto_key_tag: to->key = text_of(f, in); break;
  case onnx_StringStringEntryProto_value_tag: to->value = text_of(f, in); break;
  }
}

static const message pair_message = {
    .fields = onnx_StringStringEntryProto_fields, .kind = "entry", .field = pair_field};

#define PAIR_EMPTY \
  (onnx_pair) { .key = "", .value = "" }

/* --- tensors --- */

/* A tensor being read. */
typedef struct tensor_parts {
  onnx_tensor *tensor;
  data_field field; /* the one that held elements */
  const void *raw;
  size_t raw_bytes;
  VEC(unsigned char) fixed; /* float_data and double_data, as they are in the file */
  onnx_ints words;          /* the integer fields */
  onnx_pairs external;
} tensor_parts;

static void set_field(frame *f, data_field field) {
  tensor_parts *p = f->to;
  if (p->field && p->field != field)
    fail(f, TN_ERR_FORMAT, "has elements in %s and in %s", field_name[p->field], field_name[field]);
  p->field = field;
}

static void add_raw(frame *f, pb_istream_t *in) {
  tensor_parts *p = f->to;
  if (!in->bytes_left) return;
  set_field(f, FIELD_RAW);
  p->raw = payload(f, in, &p->raw_bytes);
}

static void add_fixed(frame *f, pb_istream_t *in, data_field field, size_t size) {
  tensor_parts *p = f->to;
  size_t n = in->bytes_left;
  if (!n) return;
  set_field(f, field);
  if (n % size) fail(f, TN_ERR_FORMAT, "damaged: %zu bytes in %s", n, field_name[field]);
  vec_reserve(f->reader->arena, &p->fixed, p->fixed.n + n);
  if (!pb_read(in, p->fixed.at + p->fixed.n, n)) damaged(f, in);
  p->fixed.n += n;
}

static void add_words(frame *f, pb_istream_t *in, data_field field) {
  tensor_parts *p = f->to;
  size_t i = p->words.n;
  if (!in->bytes_left) return;
  set_field(f, field);
  add_ints(f, in, &p->words);
  for (; field == FIELD_INT32 && i < p->words.n; i++) p->words.at[i] = (int32_t)p->words.at[i];
}

static void add_string(frame *f, pb_istream_t *in) {
  tensor_parts *p = f->to;
  set_field(f, FIELD_STRING);
  onnx_bytes b = bytes_of(f, in);
  vec_push(f->reader->arena, &p->tensor->strings, b);
}

static void tensor_field(frame *f, pb_istream_t *in, uint32_t tag) {
  tensor_parts *p = f->to;
  switch (tag) {
  case onnx_TensorProto_dims_tag: add_ints(f, in, &p->tensor->dims); break;
  case onnx_TensorProto_name_tag: f->name = p->tensor->name = text_of(f, in); break;
  case onnx_TensorProto_raw_data_tag: add_raw(f, in); break;
  case onnx_TensorProto_float_data_tag: add_fixed(f, in, FIELD_FLOAT, 4); break;
  case onnx_TensorProto_double_data_tag: add_fixed(f, in, FIELD_DOUBLE, 8); break;
  case onnx_TensorProto_int32_data_tag: add_words(f, in, FIELD_INT32); break;
  case onnx_TensorProto_int64_data_tag: add_words(f, in, FIELD_INT64); break;
  case onnx_TensorProto_uint64_data_tag: add_words(f, in, FIELD_UINT64); break;
  case onnx_TensorProto_string_data_tag: add_string(f, in); break;
  case onnx_TensorProto_external_data_tag:
    read_item(f, in, &pair_message, &p->external, PAIR_EMPTY);
    break;
  case onnx_TensorProto_segment_tag:
    fail(f, TN_ERR_UNSUPPORTED, "is a segment of a larger tensor, which is not supported");
  }
}

/* The shape as text, for errors; cut if it is long. */
typedef struct shape_text {
  char at[200];
} shape_text;

static shape_text write_shape(const onnx_ints *dims) {
  shape_text t = {"["};
  size_t n = 1, i = 0;
  for (; i < dims->n && n < sizeof t.at - 32; i++)
    n += (size_t)sprintf(t.at + n, i ? ", %lld" : "%lld", (long long)dims->at[i]);
  strcpy(t.at + n, i < dims->n ? ", ...]" : "]");
  return t;
}

/* Also of a tensor without elements, the other dimensions have a product that fits: it is what
   places in the tensor are reckoned with. */
static void measure(frame *f, onnx_tensor *t) {
  unsigned bits = onnx_dtype_bits(t->dtype);
  size_t most = (SIZE_MAX - 7) / (bits ? bits : 1), n = 1;
  bool empty = false;
  for (size_t i = 0; i < t->dims.n; i++) {
    int64_t dim = t->dims.at[i];
    if (dim < 0) fail(f, TN_ERR_FORMAT, "has the negative dimension %lld", (long long)dim);
    if (dim && n > most / (uint64_t)dim)
      fail(f, TN_ERR_FORMAT, "has more elements than can be counted: %s", write_shape(&t->dims).at);
    if (dim)
      n *= (size_t)dim;
    else
      empty = true;
  }
  t->elements = empty ? 0 : n;
  t->bytes = (t->elements * bits + 7) / 8;
}

static _Noreturn void wrong_size(frame *f, const char *what, size_t found) {
  const onnx_tensor *t = ((tensor_parts *)f->to)->tensor;
  fail(f, TN_ERR_FORMAT, "has %zu bytes of %sdata, but %s of shape %s has %zu", found, what,
       onnx_dtype_name(t->dtype), write_shape(&t->dims).at, t->bytes);
}

/* Packs integers into bytes, in place: no element grows. */
static void narrow(frame *f, tensor_parts *p, unsigned size) {
  unsigned char *to = (unsigned char *)p->words.at;
  int64_t least = size < 8 ? -((int64_t)1 << (8 * size - 1)) : INT64_MIN;
  int64_t most = size < 8 ? ((int64_t)1 << 8 * size) - 1 : INT64_MAX;
  for (size_t i = 0; i < p->words.n; i++) {
    int64_t x = p->words.at[i];
    if (p->tensor->dtype == ONNX_BOOL) x = x != 0;
    if (x < least || x > most)
      fail(f, TN_ERR_FORMAT, "has the element %lld, which is no %s", (long long)x,
           onnx_dtype_name(p->tensor->dtype));
    for (unsigned b = 0; b < size; b++) *to++ = (unsigned char)((uint64_t)x >> 8 * b);
  }
  p->tensor->data = p->words.at;
}

/* Six-bit elements come one in each integer, and are kept four in three bytes. */
static void pack_sixes(frame *f, tensor_parts *p) {
  unsigned char *to = arena_calloc(f->reader->arena, p->tensor->bytes, 1);
  for (size_t i = 0; i < p->words.n; i++) {
    int64_t x = p->words.at[i];
    if (x < 0 || x > 63)
      fail(f, TN_ERR_FORMAT, "has the element %lld, which is more than 6 bits", (long long)x);
    unsigned wide = (unsigned)x << i * 6 % 8;
    to[i * 6 / 8] |= (unsigned char)wide;
    if (wide >> 8) to[i * 6 / 8 + 1] |= (unsigned char)(wide >> 8);
  }
  p->tensor->data = to;
}

static void take_words(frame *f, tensor_parts *p) {
  unsigned bits = onnx_dtype_bits(p->tensor->dtype);
  if (bits == 6) {
    if (p->words.n != p->tensor->elements) wrong_size(f, "", (p->words.n * 6 + 7) / 8);
    pack_sixes(f, p);
    return;
  }
  unsigned size = bits < 8 ? 1 : bits / 8;
  if (p->words.n != p->tensor->bytes / size) wrong_size(f, "", p->words.n * size);
  narrow(f, p, size);
}

static void take_bytes(frame *f, tensor_parts *p, const void *at, size_t bytes) {
  if (bytes != p->tensor->bytes) wrong_size(f, "", bytes);
  p->tensor->data = at;
}

static void take_strings(frame *f, tensor_parts *p) {
  if (p->tensor->strings.n != p->tensor->elements)
    fail(f, TN_ERR_FORMAT, "has %zu strings, but shape %s has %zu", p->tensor->strings.n,
         write_shape(&p->tensor->dims).at, p->tensor->elements);
}

static void take_data(frame *f, tensor_parts *p) {
  data_field wanted = dtype_find_row(p->tensor->dtype)->field;
  if (p->field && p->field != wanted && (p->field != FIELD_RAW || wanted == FIELD_STRING))
    fail(f, TN_ERR_FORMAT, "has its elements in %s, where no %s can be", field_name[p->field],
         onnx_dtype_name(p->tensor->dtype));
  switch (p->field) {
  case FIELD_RAW: take_bytes(f, p, p->raw, p->raw_bytes); break;
  case FIELD_FLOAT:
  case FIELD_DOUBLE: take_bytes(f, p, p->fixed.at, p->fixed.n); break;
  case FIELD_INT32:
  case FIELD_INT64:
  case FIELD_UINT64: take_words(f, p); break;
  case FIELD_STRING: take_strings(f, p); break;
  case FIELD_NONE:
    if (wanted == FIELD_STRING)
      take_strings(f, p);
    else
      take_bytes(f, p, NULL, 0);
    break;
  }
}

/* A path that stays in its folder. */
static bool is_local(const char *path) {
  if (!*path || *path == '/') return false;
  for (const char *part = path; *part; part += *part == '/') {
    size_t n = strcspn(part, "/");
    if (n == 2 && !memcmp(part, "..", 2)) return false;
    part += n;
  }
  return true;
}

static size_t decimal(const frame *f, const onnx_pair *e) {
  size_t n = 0;
  const char *c = e->value;
  for (; *c >= '0' && *c <= '9'; c++) {
    size_t digit = (size_t)(*c - '0');
    if (n > (SIZE_MAX - digit) / 10) break;
    n = n * 10 + digit;
  }
  if (c == e->value || *c)
    fail(f, TN_ERR_FORMAT, "has external data of %s '%.40s'", e->key, e->value);
  return n;
}

static void take_external(frame *f, tensor_parts *p) {
  onnx_tensor *t = p->tensor;
  if (p->field) fail(f, TN_ERR_FORMAT, "has elements in %s and outside", field_name[p->field]);
  if (t->dtype == ONNX_STRING) fail(f, TN_ERR_FORMAT, "has strings as external data");
  t->external = arena_calloc(f->reader->arena, 1, sizeof *t->external);
  t->external->location = "";
  size_t length = t->bytes;
  for (size_t i = 0; i < p->external.n; i++) {
    const onnx_pair *e = &p->external.at[i];
    if (!strcmp(e->key, "location"))
      t->external->location = e->value;
    else if (!strcmp(e->key, "offset"))
      t->external->offset = decimal(f, e);
    else if (!strcmp(e->key, "length"))
      length = decimal(f, e);
  }
  if (!is_local(t->external->location))
    fail(f, TN_ERR_FORMAT,
         "has external data at '%.200s'; it must be in the model's folder or below, by a relative "
         "path without '..'",
         t->external->location);
  if (length != t->bytes) wrong_size(f, "external ", length);
  vec_push(f->reader->arena, &f->reader->model->external, t);
}

static void tensor_done(frame *f) {
  tensor_parts *p = f->to;
  int32_t dtype = f->pb.tensor.data_type, location = f->pb.tensor.data_location;
  if (!dtype) fail(f, TN_ERR_FORMAT, "has no element type");
  if (!onnx_dtype_name(dtype))
    fail(f, TN_ERR_UNSUPPORTED, "has the unknown element type %d", (int)dtype);
  if (location != 0 && location != 1)
    fail(f, TN_ERR_FORMAT, "has the unknown data location %d", (int)location);
  p->tensor->dtype = (onnx_dtype)dtype;
  measure(f, p->tensor);
  if (location)
    take_external(f, p);
  else
    take_data(f, p);
}

static const message tensor_message = {.fields = onnx_TensorProto_fields,
                                       .kind = "tensor",
                                       .doubt = "no ONNX tensor, or ",
                                       .field = tensor_field,
                                       .done = tensor_done};

static onnx_tensor *read_tensor(frame *f, pb_istream_t *in, size_t index) {
  onnx_tensor *t = arena_calloc(f->reader->arena, 1, sizeof *t);
  t->name = "";
  read_message(f, in, &tensor_message, &(tensor_parts){.tensor = t}, index);
  return t;
}

static void add_tensor(frame *f, pb_istream_t *in, onnx_tensors *list) {
  onnx_tensor *t = read_tensor(f, in, list->n);
  vec_push(f->reader->arena, list, t);
}

/* --- types and values --- */

static void dim_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_dim *to = f->to;
  if (tag == onnx_TensorShapeProto_Dimension_dim_param_tag) to->param = text_of(f, in);
}

/* A value of −1 is how some writers say that they don't know. */
static void dim_done(frame *f) {
  onnx_dim *to = f->to;
  if (!f->pb.dim.has_dim_value) return;
  to->value = f->pb.dim.dim_value;
  if (to->value < -1) fail(f, TN_ERR_FORMAT, "is negative: %lld", (long long)to->value);
  if (*to->param)
    fail(f, TN_ERR_FORMAT, "is both %lld and '%.100s'", (long long)to->value, to->param);
}

static const message dim_message = {.fields = onnx_TensorShapeProto_Dimension_fields,
                                    .kind = "dimension",
                                    .field = dim_field,
                                    .done = dim_done};

static void shape_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  read_item(f, in, &dim_message, &to->dims, (onnx_dim){.value = -1, .param = ""});
}

static const message shape_message = {.fields = onnx_TensorShapeProto_fields, .field = shape_field};

static void tensor_type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  to->has_shape = true;
  read_message(f, in, &shape_message, to, NOT_LISTED);
}

static void tensor_type_done(frame *f) {
  onnx_type *to = f->to;
  to->dtype = f->pb.tensor_type.elem_type;
}

static const message tensor_type_message = {
    .fields = onnx_TypeProto_Tensor_fields, .field = tensor_type_field, .done = tensor_type_done};

static void read_type(frame *f, pb_istream_t *in, onnx_type **to);

static void elem_type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  read_type(f, in, &to->elem);
}

static void map_done(frame *f) {
  onnx_type *to = f->to;
  to->dtype = f->pb.map.key_type;
}

static const message sequence_message = {.fields = onnx_TypeProto_Sequence_fields,
                                         .field = elem_type_field};
static const message optional_message = {.fields = onnx_TypeProto_Optional_fields,
                                         .field = elem_type_field};
static const message map_message = {
    .fields = onnx_TypeProto_Map_fields, .field = elem_type_field, .done = map_done};

static void type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  static const struct {
    onnx_type_kind kind;
    const message *message;
  } kinds[] = {
      [onnx_TypeProto_tensor_type_tag] = {ONNX_TYPE_TENSOR, &tensor_type_message},
      [onnx_TypeProto_sequence_type_tag] = {ONNX_TYPE_SEQUENCE, &sequence_message},
      [onnx_TypeProto_optional_type_tag] = {ONNX_TYPE_OPTIONAL, &optional_message},
      [onnx_TypeProto_map_type_tag] = {ONNX_TYPE_MAP, &map_message},
  };
  onnx_type *to = f->to;
  if (tag == onnx_TypeProto_sparse_tensor_type_tag || tag == onnx_TypeProto_opaque_type_tag)
    fail(f, TN_ERR_UNSUPPORTED, "sparse tensors and opaque values are not supported");
  to->kind = kinds[tag].kind;
  read_message(f, in, kinds[tag].message, to, NOT_LISTED);
}

static const message type_message = {
    .fields = onnx_TypeProto_fields, .kind = "type", .nests = true, .field = type_field};

static void read_type(frame *f, pb_istream_t *in, onnx_type **to) {
  if (!*to) *to = arena_calloc(f->reader->arena, 1, sizeof **to);
  read_message(f, in, &type_message, *to, NOT_LISTED);
}

static void value_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_value *to = f->to;
  switch (tag) {
  case onnx_ValueInfoProto_name_tag: f->name = to->name = text_of(f, in); break;
  case onnx_ValueInfoProto_type_tag:
    read_message(f, in, &type_message, &to->type, NOT_LISTED);
    break;
  }
}

static const message value_message = {
    .fields = onnx_ValueInfoProto_fields, .kind = "value", .field = value_field};

static void add_value(frame *f, pb_istream_t *in, onnx_values *list) {
  read_item(f, in, &value_message, list, (onnx_value){.name = ""});
}

/* --- attributes and nodes --- */

static void read_graph(frame *f, pb_istream_t *in, onnx_graph **to, size_t index);

static void add_graph(frame *f, pb_istream_t *in, onnx_attribute *to) {
  onnx_graph *g = NULL;
  read_graph(f, in, &g, to->graphs.n);
  vec_push(f->reader->arena, &to->graphs, g);
}

static void add_bytes(frame *f, pb_istream_t *in, onnx_attribute *to) {
  onnx_bytes b = bytes_of(f, in);
  vec_push(f->reader->arena, &to->strings, b);
}

/* A tensor cannot be merged with one before it, as protobuf would do with other messages. */
static void read_only_tensor(frame *f, pb_istream_t *in, onnx_tensor **to) {
  if (*to) fail(f, TN_ERR_FORMAT, "has two tensors");
  *to = read_tensor(f, in, NOT_LISTED);
}

static void attribute_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_attribute *to = f->to;
  switch (tag) {
  case onnx_AttributeProto_name_tag: f->name = to->name = text_of(f, in); break;
  case onnx_AttributeProto_ref_attr_name_tag: to->ref_name = text_of(f, in); break;
  case onnx_AttributeProto_s_tag: to->s = bytes_of(f, in); break;
  case onnx_AttributeProto_t_tag: read_only_tensor(f, in, &to->t); break;
  case onnx_AttributeProto_g_tag: read_graph(f, in, &to->g, NOT_LISTED); break;
  case onnx_AttributeProto_tp_tag: read_type(f, in, &to->tp); break;
  case onnx_AttributeProto_floats_tag: add_floats(f, in, to); break;
  case onnx_AttributeProto_ints_tag: add_ints(f, in, &to->ints); break;
  case onnx_AttributeProto_strings_tag: add_bytes(f, in, to); break;
  case onnx_AttributeProto_tensors_tag: add_tensor(f, in, &to->tensors); break;
  case onnx_AttributeProto_graphs_tag: add_graph(f, in, to); break;
  case onnx_AttributeProto_type_protos_tag:
    read_item(f, in, &type_message, &to->types, (onnx_type){.kind = ONNX_TYPE_NONE});
    break;
  case onnx_AttributeProto_sparse_tensor_tag:
  case onnx_AttributeProto_sparse_tensors_tag:
    fail(f, TN_ERR_UNSUPPORTED, "sparse tensors are not supported");
  }
}

static const char *attribute_type_name(int type) {
  static const char *const names[] = {
#define ATTRIBUTE_NAME(name, number, text) [number] = text,
      ONNX_ATTRIBUTE_LIST(ATTRIBUTE_NAME)
#undef ATTRIBUTE_NAME
  };
  return type > 0 && (size_t)type < sizeof names / sizeof *names ? names[type] : NULL;
}

/* Writers may leave zeros and empty lists out, but not these. */
static bool lacks_value(const onnx_attribute *a) {
  switch (a->type) {
  case ONNX_ATTRIBUTE_TENSOR: return !a->t;
  case ONNX_ATTRIBUTE_GRAPH: return !a->g;
  case ONNX_ATTRIBUTE_TYPE: return !a->tp;
  default: return false;
  }
}

static void attribute_done(frame *f) {
  onnx_attribute *to = f->to;
  int32_t type = f->pb.attribute.type;
  if (!*to->name) fail(f, TN_ERR_FORMAT, "has no name");
  if (!type) fail(f, TN_ERR_FORMAT, "has no type");
  if (!attribute_type_name(type)) fail(f, TN_ERR_UNSUPPORTED, "has the unknown type %d", (int)type);
  to->type = (onnx_attribute_type)type;
  to->f = f->pb.attribute.f;
  to->i = f->pb.attribute.i;
  if (type == ONNX_ATTRIBUTE_SPARSE_TENSOR || type == ONNX_ATTRIBUTE_SPARSE_TENSORS)
    fail(f, TN_ERR_UNSUPPORTED, "sparse tensors are not supported");
  if (!*to->ref_name && lacks_value(to))
    fail(f, TN_ERR_FORMAT, "has no %s", attribute_type_name(type));
}

static const message attribute_message = {.fields = onnx_AttributeProto_fields,
                                          .kind = "attribute",
                                          .field = attribute_field,
                                          .done = attribute_done};

#define ATTRIBUTE_EMPTY                        \
  (onnx_attribute) {                           \
    .name = "", .ref_name = "", .s = { "", 0 } \
  }

static void node_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_node *to = f->to;
  switch (tag) {
  case onnx_NodeProto_name_tag: f->name = to->name = text_of(f, in); break;
  case onnx_NodeProto_op_type_tag: to->op_type = text_of(f, in); break;
  case onnx_NodeProto_domain_tag: to->domain = text_of(f, in); break;
  case onnx_NodeProto_overload_tag: to->overload = text_of(f, in); break;
  case onnx_NodeProto_input_tag: add_text(f, in, &to->inputs); break;
  case onnx_NodeProto_output_tag: add_text(f, in, &to->outputs); break;
  case onnx_NodeProto_attribute_tag:
    read_item(f, in, &attribute_message, &to->attributes, ATTRIBUTE_EMPTY);
    break;
  }
}

static void node_done(frame *f) {
  const onnx_node *to = f->to;
  if (!*to->op_type) fail(f, TN_ERR_FORMAT, "has no op_type");
}

static const message node_message = {
    .fields = onnx_NodeProto_fields, .kind = "node", .field = node_field, .done = node_done};

static void add_node(frame *f, pb_istream_t *in, onnx_nodes *list) {
  read_item(f, in, &node_message, list,
            (onnx_node){.name = "", .op_type = "", .domain = "", .overload = ""});
}

/* --- graphs, functions, the model --- */

static void graph_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_graph *to = f->to;
  switch (tag) {
  case onnx_GraphProto_name_tag: f->name = to->name = text_of(f, in); break;
  case onnx_GraphProto_node_tag: add_node(f, in, &to->nodes); break;
  case onnx_GraphProto_initializer_tag: add_tensor(f, in, &to->initializers); break;
  case onnx_GraphProto_input_tag: add_value(f, in, &to->inputs); break;
  case onnx_GraphProto_output_tag: add_value(f, in, &to->outputs); break;
  case onnx_GraphProto_value_info_tag: add_value(f, in, &to->values); break;
  case onnx_GraphProto_sparse_initializer_tag:
    fail(f, TN_ERR_UNSUPPORTED, "sparse initializers are not supported; make them dense");
  }
}

static int by_name(const void *a, const void *b) {
  const onnx_tensor *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static void check_initializers(frame *f, const onnx_tensors *list) {
  arena_mark here = arena_here(f->reader->arena);
  onnx_tensor **sorted = arena_copy(f->reader->arena, list->at, list->n * sizeof *list->at);
  if (list->n) qsort(sorted, list->n, sizeof *sorted, by_name);
  if (list->n && !*sorted[0]->name) fail(f, TN_ERR_FORMAT, "has an initializer without a name");
  for (size_t i = 1; i < list->n; i++)
    if (!by_name(&sorted[i - 1], &sorted[i]))
      fail(f, TN_ERR_FORMAT, "has two initializers named '%.200s'", sorted[i]->name);
  arena_reset(f->reader->arena, here);
}

static void check_names(frame *f, const onnx_values *list, const char *what) {
  for (size_t i = 0; i < list->n; i++)
    if (!*list->at[i].name) fail(f, TN_ERR_FORMAT, "%s %zu has no name", what, i);
}

static void graph_done(frame *f) {
  const onnx_graph *to = f->to;
  check_initializers(f, &to->initializers);
  check_names(f, &to->inputs, "input");
  check_names(f, &to->outputs, "output");
}

static const message graph_message = {.fields = onnx_GraphProto_fields,
                                      .kind = "graph",
                                      .nests = true,
                                      .field = graph_field,
                                      .done = graph_done};

static void read_graph(frame *f, pb_istream_t *in, onnx_graph **to, size_t index) {
  if (!*to) {
    *to = arena_calloc(f->reader->arena, 1, sizeof **to);
    (*to)->name = "";
  }
  read_message(f, in, &graph_message, *to, index);
}

static void opset_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_opset *to = f->to;
  if (tag == onnx_OperatorSetIdProto_domain_tag) f->name = to->domain = text_of(f, in);
}

static void opset_done(frame *f) {
  onnx_opset *to = f->to;
  to->version = f->pb.opset.version;
  if (to->version < 1) fail(f, TN_ERR_FORMAT, "has the version %lld", (long long)to->version);
}

static const message opset_message = {.fields = onnx_OperatorSetIdProto_fields,
                                      .kind = "operator set",
                                      .field = opset_field,
                                      .done = opset_done};

static void add_opset(frame *f, pb_istream_t *in, onnx_opsets *list) {
  read_item(f, in, &opset_message, list, (onnx_opset){.domain = ""});
}

static void function_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_function *to = f->to;
  switch (tag) {
  case onnx_FunctionProto_name_tag: f->name = to->name = text_of(f, in); break;
  case onnx_FunctionProto_domain_tag: to->domain = text_of(f, in); break;
  case onnx_FunctionProto_overload_tag: to->overload = text_of(f, in); break;
  case onnx_FunctionProto_input_tag: add_text(f, in, &to->inputs); break;
  case onnx_FunctionProto_output_tag: add_text(f, in, &to->outputs); break;
  case onnx_FunctionProto_attribute_tag: add_text(f, in, &to->attributes); break;
  case onnx_FunctionProto_node_tag: add_node(f, in, &to->nodes); break;
  case onnx_FunctionProto_opset_import_tag: add_opset(f, in, &to->opsets); break;
  case onnx_FunctionProto_value_info_tag: add_value(f, in, &to->values); break;
  case onnx_FunctionProto_attribute_proto_tag:
    read_item(f, in, &attribute_message, &to->defaults, ATTRIBUTE_EMPTY);
    break;
  }
}

static void function_done(frame *f) {
  const onnx_function *to = f->to;
  if (!*to->name) fail(f, TN_ERR_FORMAT, "has no name");
}

static const message function_message = {.fields = onnx_FunctionProto_fields,
                                         .kind = "function",
                                         .field = function_field,
                                         .done = function_done};

static void model_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_model *to = f->to;
  switch (tag) {
  case onnx_ModelProto_producer_name_tag: to->producer_name = text_of(f, in); break;
  case onnx_ModelProto_producer_version_tag: to->producer_version = text_of(f, in); break;
  case onnx_ModelProto_domain_tag: to->domain = text_of(f, in); break;
  case onnx_ModelProto_graph_tag: read_graph(f, in, &to->graph, NOT_LISTED); break;
  case onnx_ModelProto_opset_import_tag: add_opset(f, in, &to->opsets); break;
  case onnx_ModelProto_metadata_props_tag:
    read_item(f, in, &pair_message, &to->metadata, PAIR_EMPTY);
    break;
  case onnx_ModelProto_functions_tag:
    read_item(f, in, &function_message, &to->functions,
              (onnx_function){.name = "", .domain = "", .overload = ""});
    break;
  }
}

static void model_done(frame *f) {
  onnx_model *to = f->to;
  to->ir_version = f->pb.model.ir_version;
  to->model_version = f->pb.model.model_version;
  if (!f->pb.model.has_ir_version) fail(f, TN_ERR_FORMAT, "no ONNX model: it has no IR version");
  if (to->ir_version < ONNX_IR_MIN || to->ir_version > ONNX_IR_MAX)
    fail(f, TN_ERR_UNSUPPORTED,
         "IR version %lld is not supported; convert the model to one from %d to %d",
         (long long)to->ir_version, ONNX_IR_MIN, ONNX_IR_MAX);
  if (!to->graph) fail(f, TN_ERR_FORMAT, "the model has no graph");
  if (!to->opsets.n) fail(f, TN_ERR_FORMAT, "the model imports no operator set");
}

static const message model_message = {.fields = onnx_ModelProto_fields,
                                      .doubt = "no ONNX model, or ",
                                      .field = model_field,
                                      .done = model_done};

static void read_model(void *arg) {
  reader *r = arg;
  r->model = arena_calloc(r->arena, 1, sizeof *r->model);
  r->model->producer_name = r->model->producer_version = r->model->domain = "";
  frame f = {.reader = r, .message = &model_message, .index = NOT_LISTED, .to = r->model};
  pb_istream_t in = pb_istream_from_buffer(r->from, r->bytes);
  if (!pb_decode(&in, model_message.fields, &f.pb)) damaged(&f, &in);
  model_done(&f);
}

tn_status onnx_parse(onnx_model **out, const void *bytes, size_t n, arena *a, diag *d) {
  *out = NULL;
  if (!n) return diag_set(d, TN_ERR_FORMAT, "no ONNX model: the file is empty");
  reader r = {.arena = a, .diag = d, .from = bytes, .bytes = n};
  tn_status s = diag_catch(d, read_model, &r);
  if (s == TN_OK) *out = r.model;
  return s;
}

typedef struct tensor_reader {
  reader reader;
  onnx_tensor *tensor;
} tensor_reader;

static void read_only(void *arg) {
  tensor_reader *r = arg;
  r->reader.model = arena_calloc(r->reader.arena, 1, sizeof *r->reader.model);
  r->tensor = arena_calloc(r->reader.arena, 1, sizeof *r->tensor);
  r->tensor->name = "";
  tensor_parts parts = {.tensor = r->tensor};
  frame f = {.reader = &r->reader, .message = &tensor_message, .index = NOT_LISTED, .to = &parts};
  pb_istream_t in = pb_istream_from_buffer(r->reader.from, r->reader.bytes);
  if (!pb_decode(&in, tensor_message.fields, &f.pb)) damaged(&f, &in);
  tensor_done(&f);
  if (r->tensor->external) fail(&f, TN_ERR_UNSUPPORTED, "has its elements in a file of their own");
}

tn_status onnx_parse_tensor(onnx_tensor **out, const void *bytes, size_t n, arena *a, diag *d) {
  tensor_reader r = {.reader = {.arena = a, .diag = d, .from = bytes, .bytes = n}};
  *out = NULL;
  tn_status s = diag_catch(d, read_only, &r);
  if (s == TN_OK) *out = r.tensor;
  return s;
}
