/* Parser of ONNX TensorProto: element types, the data fields that may hold elements (raw, typed or
   external), and their normal form: packed little-endian bytes. */
#include "formats/onnx/file/parse_tensor.h"

#include <stdio.h>
#include <string.h>

/* Element types. */

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

/* Tensors. */

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
    frame_fail(f, TN_ERR_FORMAT, "has elements in %s and in %s", field_name[p->field],
               field_name[field]);
  p->field = field;
}

static void add_raw(frame *f, pb_istream_t *in) {
  tensor_parts *p = f->to;
  if (!in->bytes_left) return;
  set_field(f, FIELD_RAW);
  p->raw = frame_payload(f, in, &p->raw_bytes);
}

static void add_fixed(frame *f, pb_istream_t *in, data_field field, size_t size) {
  tensor_parts *p = f->to;
  size_t n = in->bytes_left;
  if (!n) return;
  set_field(f, field);
  if (n % size) frame_fail(f, TN_ERR_FORMAT, "damaged: %zu bytes in %s", n, field_name[field]);
  vec_reserve(f->reader->arena, &p->fixed, p->fixed.n + n);
  if (!pb_read(in, p->fixed.at + p->fixed.n, n)) frame_fail_damaged(f, in, true);
  p->fixed.n += n;
}

static void add_words(frame *f, pb_istream_t *in, data_field field) {
  tensor_parts *p = f->to;
  size_t i = p->words.n;
  if (!in->bytes_left) return;
  set_field(f, field);
  frame_add_ints(f, in, &p->words);
  for (; field == FIELD_INT32 && i < p->words.n; i++) p->words.at[i] = (int32_t)p->words.at[i];
}

static void add_string(frame *f, pb_istream_t *in) {
  tensor_parts *p = f->to;
  set_field(f, FIELD_STRING);
  onnx_bytes b = frame_bytes(f, in);
  vec_push(f->reader->arena, &p->tensor->strings, b);
}

static void tensor_field(frame *f, pb_istream_t *in, uint32_t tag) {
  tensor_parts *p = f->to;
  switch (tag) {
  case onnx_TensorProto_dims_tag: frame_add_ints(f, in, &p->tensor->dims); break;
  case onnx_TensorProto_name_tag: f->name = p->tensor->name = frame_text(f, in); break;
  case onnx_TensorProto_raw_data_tag: add_raw(f, in); break;
  case onnx_TensorProto_float_data_tag: add_fixed(f, in, FIELD_FLOAT, 4); break;
  case onnx_TensorProto_double_data_tag: add_fixed(f, in, FIELD_DOUBLE, 8); break;
  case onnx_TensorProto_int32_data_tag: add_words(f, in, FIELD_INT32); break;
  case onnx_TensorProto_int64_data_tag: add_words(f, in, FIELD_INT64); break;
  case onnx_TensorProto_uint64_data_tag: add_words(f, in, FIELD_UINT64); break;
  case onnx_TensorProto_string_data_tag: add_string(f, in); break;
  case onnx_TensorProto_external_data_tag:
    frame_read_item(f, in, &frame_pair_message, &p->external, PAIR_EMPTY);
    break;
  case onnx_TensorProto_segment_tag:
    frame_fail(f, TN_ERR_UNSUPPORTED, "is a segment of a larger tensor, which is not supported");
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

/** Computes elements and bytes. The product of non-zero dimensions must fit even if another is 0,
   for offsets into the tensor are computed from it. */
static void compute_size(frame *f, onnx_tensor *t) {
  unsigned bits = onnx_dtype_bits(t->dtype);
  size_t most = (SIZE_MAX - 7) / (bits ? bits : 1), n = 1;
  bool empty = false;
  for (size_t i = 0; i < t->dims.n; i++) {
    int64_t dim = t->dims.at[i];
    if (dim < 0) frame_fail(f, TN_ERR_FORMAT, "has the negative dimension %lld", (long long)dim);
    if (dim && n > most / (uint64_t)dim)
      frame_fail(f, TN_ERR_FORMAT, "has more elements than can be counted: %s",
                 write_shape(&t->dims).at);
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
  frame_fail(f, TN_ERR_FORMAT, "has %zu bytes of %sdata, but %s of shape %s has %zu", found, what,
             onnx_dtype_name(t->dtype), write_shape(&t->dims).at, t->bytes);
}

/** Packs integers into bytes in place: no element grows. */
static void narrow_integers(frame *f, tensor_parts *p, unsigned size) {
  unsigned char *to = (unsigned char *)p->words.at;
  int64_t least = size < 8 ? -((int64_t)1 << (8 * size - 1)) : INT64_MIN;
  int64_t most = size < 8 ? ((int64_t)1 << 8 * size) - 1 : INT64_MAX;
  for (size_t i = 0; i < p->words.n; i++) {
    int64_t x = p->words.at[i];
    if (p->tensor->dtype == ONNX_BOOL) x = x != 0;
    if (x < least || x > most)
      frame_fail(f, TN_ERR_FORMAT, "has the element %lld, which is no %s", (long long)x,
                 onnx_dtype_name(p->tensor->dtype));
    for (unsigned b = 0; b < size; b++) *to++ = (unsigned char)((uint64_t)x >> 8 * b);
  }
  p->tensor->data = p->words.at;
}

/** Packs six-bit elements, one an integer in the file, four into three bytes. */
static void pack_sixes(frame *f, tensor_parts *p) {
  unsigned char *to = arena_calloc(f->reader->arena, p->tensor->bytes, 1);
  for (size_t i = 0; i < p->words.n; i++) {
    int64_t x = p->words.at[i];
    if (x < 0 || x > 63)
      frame_fail(f, TN_ERR_FORMAT, "has the element %lld, which is more than 6 bits", (long long)x);
    unsigned wide = (unsigned)x << i * 6 % 8;
    to[i * 6 / 8] |= (unsigned char)wide;
    if (wide >> 8) to[i * 6 / 8 + 1] |= (unsigned char)(wide >> 8);
  }
  p->tensor->data = to;
}

static void read_integers(frame *f, tensor_parts *p) {
  unsigned bits = onnx_dtype_bits(p->tensor->dtype);
  if (bits == 6) {
    if (p->words.n != p->tensor->elements) wrong_size(f, "", (p->words.n * 6 + 7) / 8);
    pack_sixes(f, p);
    return;
  }
  unsigned size = bits < 8 ? 1 : bits / 8;
  if (p->words.n != p->tensor->bytes / size) wrong_size(f, "", p->words.n * size);
  narrow_integers(f, p, size);
}

static void set_bytes(frame *f, tensor_parts *p, const void *at, size_t bytes) {
  if (bytes != p->tensor->bytes) wrong_size(f, "", bytes);
  p->tensor->data = at;
}

static void check_strings(frame *f, tensor_parts *p) {
  if (p->tensor->strings.n != p->tensor->elements)
    frame_fail(f, TN_ERR_FORMAT, "has %zu strings, but shape %s has %zu", p->tensor->strings.n,
               write_shape(&p->tensor->dims).at, p->tensor->elements);
}

static void read_data(frame *f, tensor_parts *p) {
  data_field wanted = dtype_find_row(p->tensor->dtype)->field;
  if (p->field && p->field != wanted && (p->field != FIELD_RAW || wanted == FIELD_STRING))
    frame_fail(f, TN_ERR_FORMAT, "has its elements in %s, where no %s can be", field_name[p->field],
               onnx_dtype_name(p->tensor->dtype));
  switch (p->field) {
  case FIELD_RAW: set_bytes(f, p, p->raw, p->raw_bytes); break;
  case FIELD_FLOAT:
  case FIELD_DOUBLE: set_bytes(f, p, p->fixed.at, p->fixed.n); break;
  case FIELD_INT32:
  case FIELD_INT64:
  case FIELD_UINT64: read_integers(f, p); break;
  case FIELD_STRING: check_strings(f, p); break;
  case FIELD_NONE:
    if (wanted == FIELD_STRING)
      check_strings(f, p);
    else
      set_bytes(f, p, NULL, 0);
    break;
  }
}

/** True for a relative path that stays in its folder. */
static bool is_local(const char *path) {
  if (!*path || *path == '/') return false;
  for (const char *part = path; *part; part += *part == '/') {
    size_t n = strcspn(part, "/");
    if (n == 2 && !memcmp(part, "..", 2)) return false;
    part += n;
  }
  return true;
}

static size_t parse_decimal(const frame *f, const onnx_pair *e) {
  size_t n = 0;
  const char *c = e->value;
  for (; *c >= '0' && *c <= '9'; c++) {
    size_t digit = (size_t)(*c - '0');
    if (n > (SIZE_MAX - digit) / 10) break;
    n = n * 10 + digit;
  }
  if (c == e->value || *c)
    frame_fail(f, TN_ERR_FORMAT, "has external data of %s '%.40s'", e->key, e->value);
  return n;
}

static void read_external(frame *f, tensor_parts *p) {
  onnx_tensor *t = p->tensor;
  if (p->field)
    frame_fail(f, TN_ERR_FORMAT, "has elements in %s and outside", field_name[p->field]);
  if (t->dtype == ONNX_STRING) frame_fail(f, TN_ERR_FORMAT, "has strings as external data");
  t->external = arena_calloc(f->reader->arena, 1, sizeof *t->external);
  t->external->location = "";
  size_t length = t->bytes;
  for (size_t i = 0; i < p->external.n; i++) {
    const onnx_pair *e = &p->external.at[i];
    if (!strcmp(e->key, "location"))
      t->external->location = e->value;
    else if (!strcmp(e->key, "offset"))
      t->external->offset = parse_decimal(f, e);
    else if (!strcmp(e->key, "length"))
      length = parse_decimal(f, e);
  }
  if (!is_local(t->external->location))
    frame_fail(
        f, TN_ERR_FORMAT,
        "has external data at '%.200s'; it must be in the model's folder or below, by a relative "
        "path without '..'",
        t->external->location);
  if (length != t->bytes) wrong_size(f, "external ", length);
  vec_push(f->reader->arena, &f->reader->model->external, t);
}

static void check_tensor(frame *f) {
  tensor_parts *p = f->to;
  int32_t dtype = f->pb.tensor.data_type, location = f->pb.tensor.data_location;
  if (!dtype) frame_fail(f, TN_ERR_FORMAT, "has no element type");
  if (!onnx_dtype_name(dtype))
    frame_fail(f, TN_ERR_UNSUPPORTED, "has the unknown element type %d", (int)dtype);
  if (location != 0 && location != 1)
    frame_fail(f, TN_ERR_FORMAT, "has the unknown data location %d", (int)location);
  p->tensor->dtype = (onnx_dtype)dtype;
  compute_size(f, p->tensor);
  if (location)
    read_external(f, p);
  else
    read_data(f, p);
}

static const frame_message tensor_message = {.fields = onnx_TensorProto_fields,
                                             .kind = "tensor",
                                             .doubt = "no ONNX tensor, or ",
                                             .field = tensor_field,
                                             .check = check_tensor};

onnx_tensor *frame_read_tensor(frame *f, pb_istream_t *in, size_t index) {
  onnx_tensor *t = arena_calloc(f->reader->arena, 1, sizeof *t);
  t->name = "";
  frame_read_message(f, in, &tensor_message, &(tensor_parts){.tensor = t}, index);
  return t;
}

void frame_add_tensor(frame *f, pb_istream_t *in, onnx_tensors *list) {
  onnx_tensor *t = frame_read_tensor(f, in, list->n);
  vec_push(f->reader->arena, list, t);
}

typedef struct tensor_reader {
  onnx_reader reader;
  onnx_tensor *tensor;
} tensor_reader;

static void read_single_tensor(void *arg) {
  tensor_reader *r = arg;
  r->reader.model = arena_calloc(r->reader.arena, 1, sizeof *r->reader.model);
  r->tensor = arena_calloc(r->reader.arena, 1, sizeof *r->tensor);
  r->tensor->name = "";
  tensor_parts parts = {.tensor = r->tensor};
  frame f = {.reader = &r->reader, .message = &tensor_message, .index = NOT_LISTED, .to = &parts};
  pb_istream_t in = pb_istream_from_buffer(r->reader.from, r->reader.bytes);
  if (!pb_decode(&in, tensor_message.fields, &f.pb))
    frame_fail_damaged(&f, &in, frame_is_cut(r->reader.from, r->reader.bytes, &in));
  check_tensor(&f);
  if (r->tensor->external)
    frame_fail(&f, TN_ERR_UNSUPPORTED, "has its elements in a file of their own");
}

tn_status onnx_parse_tensor(onnx_tensor **out, const void *bytes, size_t n, arena *a, diag *d) {
  tensor_reader r = {.reader = {.arena = a, .diag = d, .from = bytes, .bytes = n}};
  *out = NULL;
  tn_status s = diag_catch(d, read_single_tensor, &r);
  if (s == TN_OK) *out = r.tensor;
  return s;
}
