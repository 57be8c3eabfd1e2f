#include "formats/npy/npy.h"

#include "base/str.h"

#include <string.h>

/** Types by NumPy's kind and size: '<f4' is a little-endian float of 4 bytes. */
static const struct {
  char kind, bytes;
  dtype type;
} kinds[] = {{'b', 1, DT_BOOL}, {'i', 1, DT_I8},  {'i', 2, DT_I16}, {'i', 4, DT_I32},
             {'i', 8, DT_I64},  {'u', 1, DT_U8},  {'u', 2, DT_U16}, {'u', 4, DT_U32},
             {'u', 8, DT_U64},  {'f', 2, DT_F16}, {'f', 4, DT_F32}, {'f', 8, DT_F64}};

enum { KINDS = sizeof kinds / sizeof *kinds, PREAMBLE = 10 };

/** A file whose header is being read. */
typedef struct header {
  const unsigned char *file;
  size_t bytes;
  const char *at, *end; /* of the dictionary */
  char order;           /* '<', '>', '=' or '|' */
  bool columns, record;
  const char *type; /* as written, up to its quote or bracket */
  size_t type_bytes;
  npy_array *out;
  size_t data; /* where the data begins */
} header;

static void skip(header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == ',')) h->at++;
}

static bool take(header *h, const char *text) {
  size_t n = strlen(text);
  skip(h);
  if ((size_t)(h->end - h->at) < n || memcmp(h->at, text, n)) return false;
  h->at += n;
  return true;
}

static bool number(header *h, int64_t *value) {
  skip(h);
  const char *start = h->at;
  for (*value = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
    if (*value > INT64_MAX / 10 - 1) return false;
    *value = *value * 10 + (*h->at - '0');
  }
  return h->at > start;
}

/** 'descr': '<f4'; records are lists: 'descr': [('x', '<f4')]. */
static bool read_type(header *h) {
  h->out->dtype = DT_VOID;
  h->record = take(h, "[");
  if (h->record || !take(h, "'")) return false;
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

/** 'shape': (3, 4, ) */
static bool read_shape(header *h) {
  if (!take(h, "(")) return false;
  for (h->out->rank = 0; !take(h, ")"); h->out->rank++)
    if (h->out->rank == NPY_RANK || !number(h, &h->out->dims[h->out->rank])) return false;
  return true;
}

static bool read_fields(header *h) {
  bool type = false, order = false, shape = false;
  if (!take(h, "{")) return false;
  while (!take(h, "}")) {
    if (take(h, "'descr':")) {
      if (!(type = read_type(h))) return false;
    } else if (take(h, "'fortran_order':")) {
      h->columns = take(h, "True");
      if (!h->columns && !take(h, "False")) return false;
      order = true;
    } else if (take(h, "'shape':")) {
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

/** The bytes the shape calls for; false if they are more than a file can hold. */
static bool count(npy_array *n, size_t *elements) {
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

/** A copy in row-major order and the machine's (little-endian) byte order. */
static const void *turned(const header *h, const npy_array *n, size_t elements, arena *a) {
  size_t size = dtype_bytes(n->dtype), index[NPY_RANK] = {0};
  unsigned char *to = arena_alloc(a, n->bytes + 1);
  for (size_t i = 0; i < elements; i++) {
    size_t from = i;
    if (h->columns) {
      from = 0;
      for (size_t k = n->rank; k-- > 0;) from = from * (size_t)n->dims[k] + index[k];
      for (size_t k = n->rank; k-- > 0 && ++index[k] == (size_t)n->dims[k];) index[k] = 0;
    }
    memcpy(to + i * size, (const char *)n->data + from * size, size);
    if (h->order == '>') reverse_bytes(to + i * size, size);
  }
  return to;
}

/** Elements that tensors do not have, by NumPy's kind. */
static const char *kind_in_words(const header *h) {
  static const struct {
    char kind;
    const char *words;
  } kinds_not_had[] = {
      {'c', "complex numbers"}, {'U', "texts"},          {'S', "texts"},
      {'a', "texts"},           {'O', "Python objects"}, {'M', "dates"},
      {'m', "times"},           {'V', "raw bytes"},      {'f', "floats of this size"}};
  if (h->record) return "records";
  for (size_t i = 0; i < sizeof kinds_not_had / sizeof *kinds_not_had; i++)
    if (h->type_bytes > 1 && h->type[1] == kinds_not_had[i].kind) return kinds_not_had[i].words;
  return "elements of an unknown type";
}

static tn_status refuse_type(const header *h, const char *name, arena *a, diag *d) {
  char shown[FILE_SHOWN];
  const char *type =
      h->record ? ""
                : arena_printf(a, "%.*s", (int)(h->type_bytes < 60 ? h->type_bytes : 60), h->type);
  return diag_set(d, TN_ERR_UNSUPPORTED, "%s holds %s%s%s%s, which tensors do not have", name,
                  kind_in_words(h), h->record ? "" : " ('", file_shown(type, shown),
                  h->record ? "" : "')");
}

static tn_status refuse_file(const header *h, const char *name, diag *d) {
  if (h->bytes >= 4 && !memcmp(h->file, "PK\3\4", 4))
    return diag_set(d, TN_ERR_FORMAT,
                    "%s is an archive, as .npz files are: unpack it (unzip) and name one of the "
                    ".npy files in it",
                    name);
  return diag_set(d, TN_ERR_FORMAT, "%s is no .npy file, or damaged", name);
}

static tn_status read_array(npy_array *out, const void *file, size_t bytes, const char *path,
                            arena *a, diag *d) {
  header h = {.file = file, .bytes = bytes, .out = out};
  size_t elements;
  char name[FILE_SHOWN];
  file_shown(path, name);
  bool whole = read_header(&h);
  if (h.record || (whole && out->dtype == DT_VOID)) return refuse_type(&h, name, a, d);
  if (!whole) return refuse_file(&h, name, d);
  if (!count(out, &elements) || out->bytes > bytes - h.data)
    return diag_set(d, TN_ERR_FORMAT, "%s is cut off: its shape calls for more data", name);
  out->data = h.file + h.data;
  bool turn = (h.columns && out->rank > 1) || (h.order == '>' && dtype_bytes(out->dtype) > 1);
  if (turn) out->data = turned(&h, out, elements, a);
  return TN_OK;
}

tn_status npy_read(npy_array *out, const void *bytes, size_t n, const char *name, arena *a,
                   diag *d) {
  *out = (npy_array){0};
  return read_array(out, bytes, n, name, a, d);
}

tn_status npy_open(npy_array *out, const char *path, arena *a, diag *d) {
  *out = (npy_array){0};
  tn_status s = file_map_read(&out->file, path, d);
  if (s == TN_OK) s = read_array(out, out->file.data, out->file.bytes, path, a, d);
  if (s != TN_OK) npy_close(out);
  return s;
}

void npy_close(npy_array *n) { file_map_close(&n->file); }

static char kind_of(dtype t) {
  for (size_t i = 0; i < KINDS; i++)
    if (kinds[i].type == t) return kinds[i].kind;
  return 'u';
}

/** All before the data as version 1.0 has it, padded so that the data begins at a multiple of 64.
 */
static str header_text(dtype t, size_t rank, const int64_t dims[], arena *a) {
  str text = str_new(a);
  str_add_bytes(&text, "\x93NUMPY\x01\x00..", PREAMBLE);
  str_addf(&text, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
           dtype_bytes(t) > 1 ? '<' : '|', kind_of(t), dtype_bytes(t));
  for (size_t i = 0; i < rank; i++)
    str_addf(&text, "%lld%s", (long long)dims[i], i + 1 < rank ? ", " : rank == 1 ? "," : "");
  str_add(&text, "), }");
  while ((text.n + 1) % 64) str_add(&text, " ");
  str_add(&text, "\n");
  text.at[8] = (char)((text.n - PREAMBLE) & 255);
  text.at[9] = (char)((text.n - PREAMBLE) >> 8);
  return text;
}

static file_part data_part(dtype t, size_t rank, const int64_t dims[], const void *data) {
  size_t bytes = dtype_bytes(t);
  for (size_t i = 0; i < rank; i++) bytes *= (size_t)dims[i];
  return (file_part){data, bytes};
}

tn_status npy_write(const char *path, dtype t, size_t rank, const int64_t dims[], const void *data,
                    arena *a, diag *d) {
  str header = header_text(t, rank, dims, a);
  const file_part parts[] = {{header.at, header.n}, data_part(t, rank, dims, data)};
  return file_write_parts(path, parts, 2, d);
}

tn_status npy_write_open(int fd, const char *name, dtype t, size_t rank, const int64_t dims[],
                         const void *data, arena *a, diag *d) {
  str header = header_text(t, rank, dims, a);
  const file_part parts[] = {{header.at, header.n}, data_part(t, rank, dims, data)};
  return file_write_open(fd, name, parts, 2, d);
}
