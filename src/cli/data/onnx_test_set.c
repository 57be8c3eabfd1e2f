/* Reads and writes recorded test data in ONNX's layout: one TensorProto a file, named by its index
   among the model's inputs or outputs. */
#include "cli/data/onnx_test_set.h"

#include "base/file.h"
#include "cli/core/text_format.h"

const char *onnx_test_set_path(command *c, const char *folder, tn_port_kind kind, size_t i) {
  return arena_printf(&c->arena, "%s/%s_%zu.pb", folder, kind == TN_PORT_INPUT ? "input" : "output",
                      i);
}

bool onnx_test_set_exists(command *c, const char *folder) {
  return file_exists(onnx_test_set_path(c, folder, TN_PORT_INPUT, 0)) ||
         file_exists(onnx_test_set_path(c, folder, TN_PORT_OUTPUT, 0));
}

model_inputs onnx_test_set_read(command *c, const char *folder, const tn_model *m,
                                tn_port_kind kind) {
  model_inputs all = {0};
  tn_port port = TN_PORT_INIT;
  const char *what = kind == TN_PORT_INPUT ? "input" : "output";
  for (size_t i = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++) {
    const char *path = onnx_test_set_path(c, folder, kind, i);
    model_input f = {.name = port.name,
                     .from = path,
                     .file = path,
                     .value = host_array_load(c, path, TN_FILE_ONNX, port.type.dtype)};
    if (kind == TN_PORT_INPUT && f.value.dtype != port.type.dtype)
      diag_raise(&c->diag, TN_ERR_DTYPE, "%s contains %s, but %s \"%s\" is %s", path,
                 tn_dtype_name(f.value.dtype), what, port.name, tn_dtype_name(port.type.dtype));
    vec_push(&c->arena, &all, f);
  }
  const char *extra = onnx_test_set_path(c, folder, kind, all.n);
  if (file_exists(extra))
    diag_raise(&c->diag, TN_ERR_ARGUMENT, "%s exists, but the model has only %s", extra,
               text_count(&c->arena, all.n, what));
  if (kind == TN_PORT_INPUT) model_inputs_check_shapes(c, &all, m);
  return all;
}

void onnx_test_set_write(command *c, const char *folder, size_t i, const char *name,
                         const host_array *a) {
  host_array_save(c, a, onnx_test_set_path(c, folder, TN_PORT_OUTPUT, i), TN_FILE_ONNX, name);
}
