/* Public interface of array files: NumPy's .npy and ONNX's TensorProto, one array each. An open
   file stays mapped, so its elements need no copy; it is attached to its context and closed with
   it. */
#include "formats/npy/npy.h"
#include "formats/onnx/file/onnx_file.h"
#include "tensor/context/context.h"

#include <string.h>
#include <tenon/array_file.h>

struct tn_array_file {
  attachment attachment; /* to its context */
  tn_context *context;
  arena arena; /* of a parsed tensor, or of elements in another order than the file's */
  npy_array npy;
  file_map onnx;
  tn_array array;
};

static void destroy_array_file(attachment *base) {
  tn_array_file *f = (tn_array_file *)base;
  npy_close(&f->npy);
  file_map_close(&f->onnx);
  arena_free(&f->arena);
  mem_free(&f->context->mem, f, sizeof *f);
}

typedef struct opening {
  tn_array_file *file;
  const char *path;
  tn_file_format format;
} opening;

static void set_array(tn_array_file *f, dtype t, size_t rank, const int64_t dims[],
                      const void *data) {
  f->array = (tn_array){.data = (void *)data, .type.dtype = (tn_dtype)t};
  f->array.type.shape.rank = (int32_t)rank;
  for (size_t i = 0; i < rank; i++) f->array.type.shape.size[i] = dims[i];
}

static void open_npy(const opening *o) {
  tn_array_file *f = o->file;
  diag *d = f->arena.diag;
  const npy_array *n = &f->npy;
  if (npy_open(&f->npy, o->path, &f->arena, d)) diag_rethrow(d);
  if (n->rank > TN_MAX_RANK)
    diag_raise(d, TN_ERR_SHAPE, "%.400s has %zu dimensions; at most %d are supported", o->path,
               n->rank, TN_MAX_RANK);
  set_array(f, n->dtype, n->rank, n->dims, n->data);
}

static void parse_tensor(tn_array_file *f) {
  diag *d = f->arena.diag;
  onnx_tensor *t;
  if (onnx_parse_tensor(&t, f->onnx.data, f->onnx.bytes, &f->arena, d)) diag_rethrow(d);
  if (!dtype_is_data((dtype)t->dtype))
    diag_raise(d, TN_ERR_UNSUPPORTED, "elements of type %s are not supported",
               onnx_dtype_name((int)t->dtype));
  if (t->dims.n > TN_MAX_RANK)
    diag_raise(d, TN_ERR_SHAPE, "the tensor has %zu dimensions; at most %d are supported",
               t->dims.n, TN_MAX_RANK);
  set_array(f, (dtype)t->dtype, t->dims.n, t->dims.at, t->data);
}

static void parse_tensor_body(void *arg) { parse_tensor(arg); }

static void open_onnx(const opening *o) {
  tn_array_file *f = o->file;
  diag *d = f->arena.diag;
  if (file_map_open_or_pipe(&f->onnx, o->path, d)) diag_rethrow(d);
  tn_status s = diag_catch(d, parse_tensor_body, f);
  if (s == TN_OK) return;
  if (s != TN_ERR_MEMORY) diag_prefix(d, "%.400s", o->path);
  diag_rethrow(d);
}

static void open_body(void *arg) {
  const opening *o = arg;
  if (!o->path) diag_raise(o->file->arena.diag, TN_ERR_ARGUMENT, "the path is NULL");
  if (o->format == TN_FILE_NPY)
    open_npy(o);
  else if (o->format == TN_FILE_ONNX)
    open_onnx(o);
  else
    diag_raise(o->file->arena.diag, TN_ERR_ARGUMENT, "unknown file format %d", (int)o->format);
}

static tn_status open_array(tn_context *c, const char *path, tn_file_format format,
                            tn_array_file **out) {
  if (!out) return diag_set(&c->diag, TN_ERR_ARGUMENT, "the output pointer for the array is NULL");
  tn_array_file *f = mem_calloc(&c->mem, 1, sizeof *f);
  if (!f) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  f->attachment.destroy = destroy_array_file;
  f->context = c;
  arena_init(&f->arena, &c->mem, &c->diag);
  tn_status s = diag_catch(&c->diag, open_body, &(opening){f, path, format});
  if (s != TN_OK) {
    destroy_array_file(&f->attachment);
    return s;
  }
  context_attach(c, &f->attachment);
  *out = f;
  return s;
}

tn_status tn_array_file_open(tn_context *c, const char *path, tn_file_format format,
                             tn_array_file **file) {
  if (file) *file = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  s = open_array(c, path, format, file);
  if (s != TN_OK) context_fail_call(c, NULL);
  context_release(c);
  return s;
}

tn_array tn_array_file_get(const tn_array_file *f) {
  return f ? f->array : (tn_array){NULL, {TN_UNDEFINED, {0, {0}}}};
}

void tn_array_file_close(tn_array_file *f) {
  tn_context *c = f ? f->context : NULL;
  if (!f || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  context_detach(c, &f->attachment);
  destroy_array_file(&f->attachment);
  context_end_concurrent(c);
}

/** Computes the bytes of all elements; false if a size varies or they overflow. */
static bool count_bytes(const tn_type *type, size_t *bytes) {
  *bytes = tn_dtype_size(type->dtype);
  if (!*bytes || type->shape.rank < 0 || type->shape.rank > TN_MAX_RANK) return false;
  for (int32_t i = 0; i < type->shape.rank; i++) {
    int64_t size = type->shape.size[i];
    if (size < 0 || size >= INT64_C(1) << 44 || __builtin_mul_overflow(*bytes, (size_t)size, bytes))
      return false;
  }
  return true;
}

size_t tn_array_header(tn_type type, tn_file_format format, const char *name, void *header,
                       size_t bytes) {
  size_t data_bytes, rank = (size_t)type.shape.rank;
  if (!count_bytes(&type, &data_bytes)) return 0;
  unsigned bits = onnx_dtype_bits((int)type.dtype);
  if (bits < 8) data_bytes = (data_bytes * bits + 7) / 8; /* packed; each has a byte in memory */
  if (format == TN_FILE_ONNX)
    return onnx_tensor_header(name ? name : "", (onnx_dtype)type.dtype, rank, type.shape.size,
                              data_bytes, header, bytes);
  if (format != TN_FILE_NPY) return 0;
  char text[NPY_HEADER_BYTES];
  size_t n = npy_header((dtype)type.dtype, rank, type.shape.size, text);
  if (n <= bytes) memcpy(header, text, n);
  return n;
}
