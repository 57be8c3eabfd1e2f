#include "cli/testset.h"

#include "base/file.h"
#include "cli/text.h"
#include "formats/onnx/proto.h"
#include "ir/dtype.h"

#include <string.h>

const char *testset_path(command *c, const char *folder, tn_port_kind kind, size_t i) {
  return arena_printf(&c->arena, "%s/%s_%zu.pb", folder, kind == TN_PORT_INPUT ? "input" : "output",
                      i);
}

bool testset_is(command *c, const char *folder) {
  return file_is_there(testset_path(c, folder, TN_PORT_INPUT, 0)) ||
         file_is_there(testset_path(c, folder, TN_PORT_OUTPUT, 0));
}

typedef struct opening {
  command *c;
  const char *path;
  file_map file;
  array *out;
} opening;

static void open_file(void *arg) {
  opening *o = arg;
  command *c = o->c;
  onnx_tensor *t;
  if (file_map_open(&o->file, o->path, &c->diag) ||
      onnx_parse_tensor(&t, o->file.data, o->file.bytes, &c->arena, &c->diag))
    diag_rethrow(&c->diag);
  if (!dtype_is_data((dtype)t->dtype))
    diag_raise(&c->diag, TN_ERR_UNSUPPORTED, "it holds %s, which is not supported",
               onnx_dtype_name((int)t->dtype));
  if (t->dims.n > TN_MAX_RANK)
    diag_raise(&c->diag, TN_ERR_SHAPE, "it has %zu axes; a tensor has at most %d", t->dims.n,
               TN_MAX_RANK);
  tn_shape shape = {.rank = (int32_t)t->dims.n};
  for (size_t i = 0; i < t->dims.n; i++) shape.size[i] = t->dims.at[i];
  *o->out = array_make(c, o->path, (tn_dtype)t->dtype, shape);
  if (t->bytes) memcpy(o->out->data, t->data, t->bytes);
  for (size_t i = 0; t->dtype == ONNX_BOOL && i < t->bytes; i++)
    ((unsigned char *)o->out->data)[i] = ((unsigned char *)o->out->data)[i] != 0;
}

static array read_file(command *c, const char *path) {
  array out;
  opening o = {.c = c, .path = path, .out = &out};
  tn_status s = diag_catch(&c->diag, open_file, &o);
  file_map_close(&o.file);
  if (s == TN_OK) return out;
  if (s != TN_ERR_IO && s != TN_ERR_MEMORY) diag_prefix(&c->diag, "%.400s", path);
  diag_rethrow(&c->diag);
}

feeds testset_read(command *c, const char *folder, const tn_model *m, tn_port_kind kind) {
  feeds all = {0};
  tn_port port = TN_PORT_INIT;
  const char *what = kind == TN_PORT_INPUT ? "input" : "output";
  for (size_t i = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++) {
    const char *path = testset_path(c, folder, kind, i);
    feed f = {.name = port.name, .from = path, .file = path, .value = read_file(c, path)};
    if (kind == TN_PORT_INPUT && f.value.dtype != port.type.dtype)
      diag_raise(&c->diag, TN_ERR_DTYPE, "%s holds %s, and %s \"%s\" is %s", path,
                 tn_dtype_name(f.value.dtype), what, port.name, tn_dtype_name(port.type.dtype));
    vec_push(&c->arena, &all, f);
  }
  const char *beyond = testset_path(c, folder, kind, all.n);
  if (file_is_there(beyond))
    diag_raise(&c->diag, TN_ERR_ARGUMENT, "%s is there, and the model has %s", beyond,
               text_count(&c->arena, all.n, what));
  if (kind == TN_PORT_INPUT) feed_check(c, &all, m);
  return all;
}

void testset_write(command *c, const char *folder, size_t i, const char *name, const array *a) {
  const char *path = testset_path(c, folder, TN_PORT_OUTPUT, i);
  if (onnx_write_tensor(path, name, (onnx_dtype)a->dtype, (size_t)a->shape.rank, a->shape.size,
                        a->data, a->bytes, &c->arena, &c->diag))
    diag_rethrow(&c->diag);
}
