/* Parser of ONNX TensorProto: element types, the fields that may hold elements (raw, typed or
   external), and their conversion to packed little-endian bytes. raw_data stays in the file;
   elements of typed fields are copied to the arena. A sparse tensor (SparseTensorProto) is a tensor
   of values and one of their indices. */
#include "formats/onnx/file/parse_tensor.h"

#include "formats/onnx/file/read_structure.h"

#include <stdio.h>
#include <string.h>

/* Element types. */

/** The fields of TensorProto that hold elements. */
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

/** A tensor being parsed. */
typedef struct tensor_parts {
  onnx_tensor *tensor;
  data_field field; /* that held elements */
  const void *raw;
  size_t raw_bytes;
  VEC(unsigned char) floats; /* bytes of float_data or double_data */
  onnx_ints ints;            /* of int32_data, int64_data or uint64_data */
  onnx_pairs external;
} tensor_parts;

static void set_field(frame *f, data_field field) {
  tensor_parts *p = f->to;
  if (p->field && p->field != field)
    frame_fail(f, TN_ERR_FORMAT, "has elements in both %s and %s", field_name[p->field],
               field_name[field]);
  p->field = field;
}

static void add_raw(frame *f, pb_istream_t *in) {
  tensor_parts *p = f->to;
  if (!in->bytes_left) return;
  set_field(f, FIELD_RAW);
  p->raw = frame_payload(f, in, &p->raw_bytes);
}

static void add_floats(frame *f, pb_istream_t *in, data_field field, size_t size) {
  tensor_parts *p = f->to;
  size_t n = in->bytes_left;
  if (!n) return;
  set_field(f, field);
  if (n % size)
    frame_fail(f, TN_ERR_FORMAT, "damaged: %s has %zu bytes, not a multiple of %zu",
               field_name[field], n, size);
  vec_reserve(f->reader->arena, &p->floats, p->floats.n + n);
  if (!pb_read(in, p->floats.at + p->floats.n, n)) frame_fail_damaged(f, in, true);
  p->floats.n += n;
}

static void add_ints(frame *f, pb_istream_t *in, data_field field) {
  tensor_parts *p = f->to;
  size_t i = p->ints.n;
  if (!in->bytes_left) return;
  set_field(f, field);
  frame_add_ints(f, in, &p->ints);
  for (; field == FIELD_INT32 && i < p->ints.n; i++) p->ints.at[i] = (int32_t)p->ints.at[i];
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
  case onnx_TensorProto_float_data_tag: add_floats(f, in, FIELD_FLOAT, 4); break;
  case onnx_TensorProto_double_data_tag: add_floats(f, in, FIELD_DOUBLE, 8); break;
  case onnx_TensorProto_int32_data_tag: add_ints(f, in, FIELD_INT32); break;
  case onnx_TensorProto_int64_data_tag: add_ints(f, in, FIELD_INT64); break;
  case onnx_TensorProto_uint64_data_tag: add_ints(f, in, FIELD_UINT64); break;
  case onnx_TensorProto_string_data_tag: add_string(f, in); break;
  case onnx_TensorProto_external_data_tag:
    frame_read_item(f, in, &frame_pair_message, &p->external, PAIR_EMPTY);
    break;
  case onnx_TensorProto_segment_tag:
    frame_fail(f, TN_ERR_UNSUPPORTED,
               "is a segment of a larger tensor; segments are not supported");
  }
}

/** A shape as text for errors, truncated if long. */
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

/** Computes the number of elements and bytes. The product of the nonzero dimensions must fit even
   if another is 0, because strides are computed from it. */
static void compute_size(frame *f, onnx_tensor *t) {
  unsigned bits = onnx_dtype_bits(t->dtype);
  size_t limit = (SIZE_MAX - 7) / (bits ? bits : 1), n = 1;
  bool is_empty = false;
  for (size_t i = 0; i < t->dims.n; i++) {
    int64_t dim = t->dims.at[i];
    if (dim < 0) frame_fail(f, TN_ERR_FORMAT, "has the negative dimension %lld", (long long)dim);
    if (dim && n > limit / (uint64_t)dim)
      frame_fail(f, TN_ERR_FORMAT, "has too many elements: %s", write_shape(&t->dims).at);
    if (dim)
      n *= (size_t)dim;
    else
      is_empty = true;
  }
  t->elements = is_empty ? 0 : n;
  t->bytes = (t->elements * bits + 7) / 8;
}

/** `place`: "" or "external ". */
static _Noreturn void fail_size(frame *f, const char *place, size_t bytes) {
  const onnx_tensor *t = ((tensor_parts *)f->to)->tensor;
  frame_fail(f, TN_ERR_FORMAT, "has %zu bytes of %sdata, but %s of shape %s needs %zu", bytes,
             place, onnx_dtype_name(t->dtype), write_shape(&t->dims).at, t->bytes);
}

/** Packs integers to `size` bytes each, in place. */
static void pack_ints(frame *f, tensor_parts *p, unsigned size) {
  unsigned char *to = (unsigned char *)p->ints.at;
  int64_t min = size < 8 ? -((int64_t)1 << (8 * size - 1)) : INT64_MIN;
  int64_t max = size < 8 ? ((int64_t)1 << 8 * size) - 1 : INT64_MAX;
  for (size_t i = 0; i < p->ints.n; i++) {
    int64_t x = p->ints.at[i];
    if (p->tensor->dtype == ONNX_BOOL) x = x != 0;
    if (x < min || x > max)
      frame_fail(f, TN_ERR_FORMAT, "has the element %lld, which does not fit in %s", (long long)x,
                 onnx_dtype_name(p->tensor->dtype));
    for (unsigned b = 0; b < size; b++) *to++ = (unsigned char)((uint64_t)x >> 8 * b);
  }
  p->tensor->data = p->ints.at;
}

/** Packs six-bit elements, given as one integer each, four into three bytes. */
static void pack_six_bit_ints(frame *f, tensor_parts *p) {
  unsigned char *to = arena_calloc(f->reader->arena, p->tensor->bytes, 1);
  for (size_t i = 0; i < p->ints.n; i++) {
    int64_t x = p->ints.at[i];
    if (x < 0 || x > 63)
      frame_fail(f, TN_ERR_FORMAT, "has the element %lld, which does not fit in 6 bits",
                 (long long)x);
    unsigned wide = (unsigned)x << i * 6 % 8;
    to[i * 6 / 8] |= (unsigned char)wide;
    if (wide >> 8) to[i * 6 / 8 + 1] |= (unsigned char)(wide >> 8);
  }
  p->tensor->data = to;
}

static void pack_elements(frame *f, tensor_parts *p) {
  unsigned bits = onnx_dtype_bits(p->tensor->dtype);
  if (bits == 6) {
    if (p->ints.n != p->tensor->elements) fail_size(f, "", (p->ints.n * 6 + 7) / 8);
    pack_six_bit_ints(f, p);
    return;
  }
  unsigned size = bits < 8 ? 1 : bits / 8;
  if (p->ints.n != p->tensor->bytes / size) fail_size(f, "", p->ints.n * size);
  pack_ints(f, p, size);
}

static void set_data(frame *f, tensor_parts *p, const void *data, size_t bytes) {
  if (bytes != p->tensor->bytes) fail_size(f, "", bytes);
  p->tensor->data = data;
}

/** Points to raw_data, which a file in parts does not have in memory yet if it is large. Small
    elements, which the parser unpacks, are read at once. */
static void set_raw_data(frame *f, tensor_parts *p) {
  const onnx_reader *r = f->reader;
  onnx_tensor *t = p->tensor;
  set_data(f, p, p->raw, p->raw_bytes);
  if (!r->parts || t->bytes < LARGE_TENSOR_BYTES) return;
  if (onnx_dtype_bits(t->dtype) >= 8)
    t->unread = arena_calloc(r->arena, 1, sizeof *t->unread);
  else if (file_map_read(r->parts, t->data, t->bytes, r->diag) != TN_OK)
    diag_rethrow(r->diag);
}

static void check_strings(frame *f, tensor_parts *p) {
  if (p->tensor->strings.n != p->tensor->elements)
    frame_fail(f, TN_ERR_FORMAT, "has %zu strings, but shape %s needs %zu", p->tensor->strings.n,
               write_shape(&p->tensor->dims).at, p->tensor->elements);
}

static void read_data(frame *f, tensor_parts *p) {
  data_field expected = dtype_find_row(p->tensor->dtype)->field;
  if (p->field && p->field != expected && (p->field != FIELD_RAW || expected == FIELD_STRING))
    frame_fail(f, TN_ERR_FORMAT, "has elements in %s, which cannot hold %s", field_name[p->field],
               onnx_dtype_name(p->tensor->dtype));
  switch (p->field) {
  case FIELD_RAW: set_raw_data(f, p); break;
  case FIELD_FLOAT:
  case FIELD_DOUBLE: set_data(f, p, p->floats.at, p->floats.n); break;
  case FIELD_INT32:
  case FIELD_INT64:
  case FIELD_UINT64: pack_elements(f, p); break;
  case FIELD_STRING: check_strings(f, p); break;
  case FIELD_NONE:
    if (expected == FIELD_STRING)
      check_strings(f, p);
    else
      set_data(f, p, NULL, 0);
    break;
  }
}

void onnx_unpack_elements(onnx_tensor *t, arena *a) {
  unsigned bits = onnx_dtype_bits(t->dtype);
  const unsigned char *from = t->data;
  if ((bits != 4 && bits != 2) || !from) return;
  unsigned char *to = arena_alloc(a, t->elements);
  for (size_t i = 0; i < t->elements; i++)
    to[i] = (unsigned char)(from[i * bits / 8] >> i * bits % 8 & ((1u << bits) - 1));
  t->data = to;
  t->bytes = t->elements;
}

/** True for a relative path without "..". */
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
    frame_fail(f, TN_ERR_FORMAT, "has external data with %s '%.40s', which is not a number", e->key,
               e->value);
  return n;
}

static void read_external(frame *f, tensor_parts *p) {
  onnx_tensor *t = p->tensor;
  if (p->field)
    frame_fail(f, TN_ERR_FORMAT, "has both elements in %s and external data", field_name[p->field]);
  if (t->dtype == ONNX_STRING)
    frame_fail(f, TN_ERR_FORMAT, "has external data of strings, which is not allowed");
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
        "has external data at '%.200s', which must be a relative path without '..', in the model's "
        "folder or below",
        t->external->location);
  if (length != t->bytes) fail_size(f, "external ", length);
  vec_push(f->reader->arena, &f->reader->model->external, t);
}

static void check_tensor(frame *f) {
  tensor_parts *p = f->to;
  int32_t dtype = f->pb.tensor.data_type, location = f->pb.tensor.data_location;
  if (!dtype) frame_fail(f, TN_ERR_FORMAT, "has no element type");
  if (!onnx_dtype_name(dtype))
    frame_fail(f, TN_ERR_UNSUPPORTED, "has unknown element type %d", (int)dtype);
  if (location != 0 && location != 1)
    frame_fail(f, TN_ERR_FORMAT, "has unknown data location %d", (int)location);
  p->tensor->dtype = (onnx_dtype)dtype;
  compute_size(f, p->tensor);
  if (location)
    read_external(f, p);
  else
    read_data(f, p);
  onnx_unpack_elements(p->tensor, f->reader->arena);
}

static const frame_message tensor_message = {.fields = onnx_TensorProto_fields,
                                             .kind = "tensor",
                                             .file_prefix = "not an ONNX tensor, or ",
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

/* Sparse tensors. */

static void sparse_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_tensor *to = f->to;
  switch (tag) {
  case onnx_SparseTensorProto_values_tag:
    to->values = frame_read_tensor(f, in, NOT_LISTED);
    f->name = to->name = to->values->name;
    break;
  case onnx_SparseTensorProto_indices_tag:
    to->indices = frame_read_tensor(f, in, NOT_LISTED);
    break;
  case onnx_SparseTensorProto_dims_tag: frame_add_ints(f, in, &to->dims); break;
  }
}

static void check_sparse_tensor(frame *f) {
  onnx_tensor *to = f->to;
  if (!to->values || !to->indices)
    frame_fail(f, TN_ERR_FORMAT, "has no %s", to->values ? "indices" : "values");
  to->dtype = to->values->dtype;
  compute_size(f, to);
  if (to->dtype == ONNX_STRING)
    frame_fail(f, TN_ERR_UNSUPPORTED, "sparse tensors of strings are not supported");
  const onnx_ints *n = &to->values->dims, *at = &to->indices->dims;
  bool fits = to->dims.n && n->n == 1 && (at->n == 1 || at->n == 2) && at->at[0] == n->at[0];
  if (fits && at->n == 2) fits = at->at[1] == (int64_t)to->dims.n;
  if (!fits || to->indices->dtype != ONNX_I64)
    frame_fail(f, TN_ERR_FORMAT,
               "has values of shape %s and %s indices of shape %s for shape %s, expected values of "
               "shape [n] and i64 indices of shape [n] or [n, %zu]",
               write_shape(n).at, onnx_dtype_name(to->indices->dtype), write_shape(at).at,
               write_shape(&to->dims).at, to->dims.n);
}

static const frame_message sparse_message = {.fields = onnx_SparseTensorProto_fields,
                                             .kind = "sparse tensor",
                                             .field = sparse_field,
                                             .check = check_sparse_tensor};

onnx_tensor *frame_read_sparse_tensor(frame *f, pb_istream_t *in, size_t index) {
  onnx_tensor *t = arena_calloc(f->reader->arena, 1, sizeof *t);
  t->name = "";
  frame_read_message(f, in, &sparse_message, t, index);
  return t;
}

void frame_add_sparse_tensor(frame *f, pb_istream_t *in, onnx_tensors *list) {
  onnx_tensor *t = frame_read_sparse_tensor(f, in, list->n);
  vec_push(f->reader->arena, list, t);
}

typedef struct tensor_reader {
  onnx_reader reader;
  onnx_tensor *tensor;
} tensor_reader;

static void parse_body(void *arg) {
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
    frame_fail(&f, TN_ERR_UNSUPPORTED, "has external data, which is supported only in models");
}

tn_status onnx_parse_tensor(onnx_tensor **out, const void *bytes, size_t n, arena *a, diag *d) {
  tensor_reader r = {.reader = {.arena = a, .diag = d, .from = bytes, .bytes = n}};
  *out = NULL;
  tn_status s = diag_catch(d, parse_body, &r);
  if (s == TN_OK) *out = r.tensor;
  return s;
}
