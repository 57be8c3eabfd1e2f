/* Tests the listing of a model file's contents (tenon/unstable/model_file.h): versions, operators,
   sizes and ports as declared, and damaged files. `tenon inspect` is tested in tests/cli. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include <tenon/unstable/model_file.h>

static tn_model_file *parsed(const bytes *from) {
  tn_model_file *f;
  tn_failure why = {0};
  if (tn_model_file_parse(from->at, from->n, &f, &why) != TN_OK) fail_msg("%s", why.text);
  return f;
}

static void contents_are_listed(void **state) {
  (void)state;
  bytes layer;
  layer_model(&layer);
  tn_model_file *f = parsed(&layer);
  tn_model_file_info info = TN_MODEL_FILE_INFO_INIT;
  assert_int_equal(tn_model_file_get(f, &info), TN_OK);
  assert_true(info.ir_version > 0 && info.producer && info.producer_version);
  assert_true(info.tensors > 0 && info.elements >= LAYER_IN * LAYER_OUT);
  assert_true(info.bytes >= info.elements && !info.external);
  const char *name = NULL, *domain = NULL;
  uint64_t count = 0, last = UINT64_MAX, sum = 0, kinds = 0;
  int64_t version = 0;
  for (; tn_model_file_operator(f, kinds, &name, &count) == TN_OK; kinds++) {
    assert_true(*name && count && count <= last);
    last = count;
    sum += count;
  }
  assert_true(kinds == info.kinds && sum == info.nodes);
  assert_int_equal(tn_model_file_opset(f, 0, &domain, &version), TN_OK);
  assert_string_equal(domain, "ai.onnx");
  assert_true(version > 0);
  assert_int_equal(tn_model_file_opset(f, 99, &domain, &version), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_file_unsupported(f, 0, &name), TN_ERR_ARGUMENT);
  tn_model_file_free(f);
}

static void nodes_are_listed(void **state) {
  (void)state;
  bytes layer;
  layer_model(&layer);
  tn_model_file *f = parsed(&layer);
  tn_model_node n = TN_MODEL_NODE_INIT;
  assert_int_equal(tn_model_file_node(f, 5, &n), TN_OK);
  assert_string_equal(n.name, "y");
  assert_string_equal(n.op, "Reshape");
  assert_true(n.n_inputs == 2 && n.n_outputs == 1);
  assert_string_equal(n.inputs[1], "to");
  assert_string_equal(n.outputs[0], "y");
  assert_int_equal(tn_model_file_node(f, 7, &n), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_file_node(NULL, 0, &n), TN_ERR_ARGUMENT);
  assert_string_equal(n.op, "Reshape");
  tn_model_file_free(f);
}

static void ports_are_as_declared(void **state) {
  (void)state;
  bytes layer;
  layer_model(&layer);
  tn_model_file *f = parsed(&layer);
  tn_declared_port p = TN_DECLARED_PORT_INIT;
  assert_int_equal(tn_model_file_port(f, TN_PORT_INPUT, 0, &p), TN_OK);
  assert_string_equal(p.name, "x");
  assert_string_equal(p.type, "f32 [batch, 4]");
  assert_string_equal(p.dtype_name, "f32");
  assert_true(p.is_tensor && p.dtype == TN_F32 && p.rank == 2 && !p.is_weight);
  assert_true(p.sizes[0] == -1 && p.sizes[1] == LAYER_IN);
  assert_string_equal(p.names[0], "batch");
  assert_int_equal(tn_model_file_port(f, TN_PORT_OUTPUT, 1, &p), TN_OK);
  assert_string_equal(p.name, "highest");
  assert_int_equal(tn_model_file_port(f, TN_PORT_OUTPUT, 2, &p), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_file_port(f, (tn_port_kind)5, 0, &p), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_file_port(f, TN_PORT_OUTPUT, 0, NULL), TN_ERR_ARGUMENT);
  assert_string_equal(p.name, "highest");
  tn_model_file_free(f);
}

static void damaged_files_are_refused(void **state) {
  (void)state;
  bytes layer;
  layer_model(&layer);
  tn_failure why = {0};
  tn_model_file *f = (tn_model_file *)&layer;
  assert_int_equal(tn_model_file_parse(layer.at, layer.n - 3, &f, &why), TN_ERR_FORMAT);
  check_text(why.text, "damaged");
  assert_null(f);
  assert_int_equal(tn_model_file_parse("no model", 8, &f, NULL), TN_ERR_FORMAT);
  assert_int_equal(tn_model_file_parse(NULL, 8, &f, &why), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_file_parse(layer.at, layer.n, NULL, &why), TN_ERR_ARGUMENT);
  tn_model_file_free(NULL);
  assert_int_equal(tn_model_file_get(NULL, &(tn_model_file_info)TN_MODEL_FILE_INFO_INIT),
                   TN_ERR_ARGUMENT);
}

/** Messages about a model begin with its given name. */
static void models_are_named_in_messages(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  tn_model *m;
  assert_int_equal(tn_model_load_bytes(c, "no model", 8, &desc, &m), TN_ERR_FORMAT);
  const size_t n = strlen(tn_message(c));
  desc.name = "sample";
  desc.sizes = &(tn_model_size){sizeof(tn_model_size), "none such", NULL, 1, 2, 0};
  desc.n_sizes = 1;
  bytes layer;
  layer_model(&layer);
  assert_int_equal(tn_model_load_bytes(c, layer.at, layer.n, &desc, &m), TN_ERR_ARGUMENT);
  assert_true(n > 0 && !strncmp(tn_message(c), "sample: ", 8));
  desc.name = "";
  assert_int_equal(tn_model_load_bytes(c, layer.at, layer.n, &desc, &m), TN_ERR_ARGUMENT);
  assert_true(!strncmp(tn_message(c), "no input has a size", 19));
  tn_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contents_are_listed),          cmocka_unit_test(nodes_are_listed),
      cmocka_unit_test(ports_are_as_declared),        cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(models_are_named_in_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
