/* NumPy's .npy files (NumPy Enhancement Proposal 1): a magic number, a Python dictionary (descr,
   fortran_order, shape), then the elements. Elements are copied only from column-major or
   big-endian files. The parser takes any bytes. */
#include "formats/npy/npy.h"

#include "base/printable.h"

#include <stdio.h>
#include <string.h>

/** Types by NumPy's kind and size: '<f4' is a little-endian float of 4 bytes. */
static const struct {
  char kind, bytes;
  dtype type;
} kinds[] = {{'b', 1, DT_BOOL}, {'i', 1, DT_I8},  {'i', 2, DT_I16}, {'i', 4, DT_I32},
             {'i', 8, DT_I64},  {'u', 1, DT_U8},  {'u', 2, DT_U16}, {'u', 4, DT_U32},
             {'u', 8, DT_U64},  {'f', 2, DT_F16}, {'f', 4, DT_F32}, {'f', 8, DT_F64}};

enum { KINDS = sizeof kinds / sizeof *kinds, PREAMBLE = 10 };

/** The parser of a file's header. */
typedef struct header {
  const unsigned char *file;
  size_t bytes;
  const char *at, *end; /* unread rest of the dictionary */
  char order;           /* '<', '>', '=' or '|' */
  bool is_column_major, is_record;
  const char *type; /* text of 'descr', without quotes */
  size_t type_bytes;
  npy_array *out;
  size_t data; /* offset of the elements */
} header;

static void skip_separators(header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == ',')) h->at++;
}

static bool accept_text(header *h, const char *text) {
  size_t n = strlen(text);
  skip_separators(h);
  if ((size_t)(h->end - h->at) < n || memcmp(h->at, text, n)) return false;
  h->at += n;
  return true;
}

static bool read_number(header *h, int64_t *value) {
  skip_separators(h);
  const char *start = h->at;
  for (*value = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
    if (*value > INT64_MAX / 10 - 1) return false;
    *value = *value * 10 + (*h->at - '0');
  }
  return h->at > start;
}

/** Reads 'descr': '<f4'. Refuses a record, which is a list: 'descr': [('x', '<f4')]. */
static bool read_type(header *h) {
  h->out->dtype = DT_VOID;
  h->is_record = accept_text(h, "[");
  if (h->is_record || !accept_text(h, "'")) return false;
  const char *name = h->at, *quote = memchr(name, '\'', (size_t)(h->end - name));
  if (!quote) return false;
  h->at = quote + 1;
  h->type = name;
  h->type_bytes = (size_t)(quote - name);
  if (quote - name != 3 || !memchr("<>|=", *name, 4)) return true;
  h->order = *name;
  for (size_t i = 0; i < KINDS; i++)
    if (kinds[i].kind == name[1] && kinds[i].bytes == name[2] - '0') h->out->dtype = kinds[i].type;
  return true;
}

/** Reads 'shape': (3, 4, ). */
static bool read_shape(header *h) {
  if (!accept_text(h, "(")) return false;
  for (h->out->rank = 0; !accept_text(h, ")"); h->out->rank++)
    if (h->out->rank == NPY_RANK_MAX || !read_number(h, &h->out->dims[h->out->rank])) return false;
  return true;
}

static bool read_fields(header *h) {
  bool type = false, order = false, shape = false;
  if (!accept_text(h, "{")) return false;
  while (!accept_text(h, "}")) {
    if (accept_text(h, "'descr':")) {
      if (!(type = read_type(h))) return false;
    } else if (accept_text(h, "'fortran_order':")) {
      h->is_column_major = accept_text(h, "True");
      if (!h->is_column_major && !accept_text(h, "False")) return false;
      order = true;
    } else if (accept_text(h, "'shape':")) {
      if (!(shape = read_shape(h))) return false;
    } else {
      return false;
    }
  }
  return type && order && shape;
}

static bool read_header(header *h) {
  const unsigned char *f = h->file;
  size_t bytes = h->bytes, start;
  if (bytes < PREAMBLE || memcmp(f, "\x93NUMPY", 6) || f[6] < 1 || f[6] > 3) return false;
  size_t length = f[8] | (size_t)f[9] << 8;
  if (f[6] > 1) {
    if (bytes < 12) return false;
    length |= (size_t)f[10] << 16 | (size_t)f[11] << 24;
  }
  start = f[6] > 1 ? 12 : PREAMBLE;
  if (length > bytes - start) return false;
  h->at = (const char *)f + start;
  h->end = h->at + length;
  h->data = start + length;
  return read_fields(h);
}

static bool is_empty(const npy_array *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (!n->dims[i]) return true;
  return false;
}

/** Computes elements and bytes from the shape; false if they overflow. */
static bool measure_data(npy_array *n, size_t *elements) {
  *elements = !is_empty(n);
  for (size_t i = 0; i < n->rank && *elements; i++) {
    size_t dim = (size_t)n->dims[i];
    if (*elements > SIZE_MAX / 8 / dim) return false;
    *elements *= dim;
  }
  n->bytes = *elements * dtype_bytes(n->dtype);
  return true;
}

static void reverse_bytes(unsigned char *at, size_t bytes) {
  for (size_t i = 0; i < bytes / 2; i++) {
    unsigned char t = at[i];
    at[i] = at[bytes - 1 - i];
    at[bytes - 1 - i] = t;
  }
}

/** Copies the elements to row-major order and the machine's (little-endian) byte order. */
static const void *reorder_data(const header *h, const npy_array *n, size_t elements, arena *a) {
  size_t size = dtype_bytes(n->dtype), index[NPY_RANK_MAX] = {0};
  unsigned char *to = arena_alloc(a, n->bytes + 1);
  for (size_t i = 0; i < elements; i++) {
    size_t from = i;
    if (h->is_column_major) {
      from = 0;
      for (size_t k = n->rank; k-- > 0;) from = from * (size_t)n->dims[k] + index[k];
      for (size_t k = n->rank; k-- > 0 && ++index[k] == (size_t)n->dims[k];) index[k] = 0;
    }
    memcpy(to + i * size, (const char *)n->data + from * size, size);
    if (h->order == '>') reverse_bytes(to + i * size, size);
  }
  return to;
}

/** Describes an unsupported element type by NumPy's kind. */
static const char *describe_kind(const header *h) {
  static const struct {
    char kind;
    const char *words;
  } unsupported_kinds[] = {
      {'c', "complex numbers"}, {'U', "strings"},        {'S', "strings"},
      {'a', "strings"},         {'O', "Python objects"}, {'M', "dates"},
      {'m', "times"},           {'V', "raw bytes"},      {'f', "floats of this size"}};
  if (h->is_record) return "records";
  for (size_t i = 0; i < sizeof unsupported_kinds / sizeof *unsupported_kinds; i++)
    if (h->type_bytes > 1 && h->type[1] == unsupported_kinds[i].kind)
      return unsupported_kinds[i].words;
  return "elements of an unknown type";
}

static tn_status fail_unsupported_type(const header *h, const char *name, arena *a, diag *d) {
  char shown[TEXT_PRINTABLE_BYTES];
  const char *type =
      h->is_record
          ? ""
          : arena_printf(a, "%.*s", (int)(h->type_bytes < 60 ? h->type_bytes : 60), h->type);
  return diag_set(d, TN_ERR_UNSUPPORTED, "%s contains %s%s%s%s, which are not supported", name,
                  describe_kind(h), h->is_record ? "" : " ('", text_printable(type, shown),
                  h->is_record ? "" : "')");
}

static tn_status fail_malformed_file(const header *h, const char *name, diag *d) {
  if (h->bytes >= 4 && !memcmp(h->file, "PK\3\4", 4))
    return diag_set(d, TN_ERR_FORMAT,
                    "%s is a .npz archive; unpack it (unzip) and use one of its .npy files", name);
  return diag_set(d, TN_ERR_FORMAT, "%s is not a .npy file, or is damaged", name);
}

static tn_status read_array(npy_array *out, const void *file, size_t bytes, const char *path,
                            arena *a, diag *d) {
  header h = {.file = file, .bytes = bytes, .out = out};
  size_t elements;
  char name[TEXT_PRINTABLE_BYTES];
  text_printable(path, name);
  bool is_whole = read_header(&h);
  if (h.is_record || (is_whole && out->dtype == DT_VOID))
    return fail_unsupported_type(&h, name, a, d);
  if (!is_whole) return fail_malformed_file(&h, name, d);
  if (!measure_data(out, &elements) || out->bytes > bytes - h.data)
    return diag_set(d, TN_ERR_FORMAT, "%s is truncated: its shape needs more data", name);
  out->data = h.file + h.data;
  bool needs_reorder =
      (h.is_column_major && out->rank > 1) || (h.order == '>' && dtype_bytes(out->dtype) > 1);
  if (needs_reorder) out->data = reorder_data(&h, out, elements, a);
  return TN_OK;
}

tn_status npy_parse(npy_array *out, const void *bytes, size_t n, const char *name, arena *a,
                    diag *d) {
  *out = (npy_array){0};
  return read_array(out, bytes, n, name, a, d);
}

tn_status npy_open(npy_array *out, const char *path, arena *a, diag *d) {
  *out = (npy_array){0};
  tn_status s = file_map_open_or_pipe(&out->file, path, d);
  if (s == TN_OK) s = read_array(out, out->file.data, out->file.bytes, path, a, d);
  if (s != TN_OK) npy_close(out);
  return s;
}

void npy_close(npy_array *n) { file_map_close(&n->file); }

static char numpy_kind(dtype t) {
  for (size_t i = 0; i < KINDS; i++)
    if (kinds[i].type == t) return kinds[i].kind;
  return 'u';
}

size_t npy_header(dtype t, size_t rank, const int64_t dims[], char header[NPY_HEADER_BYTES]) {
  size_t n = PREAMBLE;
  memcpy(header, "\x93NUMPY\x01\x00..", PREAMBLE);
  n += (size_t)snprintf(header + n, NPY_HEADER_BYTES - n,
                        "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                        dtype_bytes(t) > 1 ? '<' : '|', numpy_kind(t), dtype_bytes(t));
  for (size_t i = 0; i < rank; i++)
    n += (size_t)snprintf(header + n, NPY_HEADER_BYTES - n, "%lld%s", (long long)dims[i],
                          i + 1 < rank ? ", "
                          : rank == 1  ? ","
                                       : "");
  n += (size_t)snprintf(header + n, NPY_HEADER_BYTES - n, "), }");
  while ((n + 1) % 64) header[n++] = ' ';
  header[n++] = '\n';
  header[8] = (char)((n - PREAMBLE) & 255);
  header[9] = (char)((n - PREAMBLE) >> 8);
  return n;
}
