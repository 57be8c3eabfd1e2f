/* Parser of ONNX models (protobuf, by nanopb): types, attributes, nodes, graphs, functions and the
   model, checked for form. Each message has a function for its fields and one for its checks, which
   also copies its scalars. parse_tensor.c parses tensors, parse_frame.c fields and errors. */
#include "formats/onnx/file/parse_tensor.h"
#include "formats/onnx/file/read_structure.h"

#include <stdlib.h>
#include <string.h>

/* Types and values. */

static void dim_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_dim *to = f->to;
  if (tag == onnx_TensorShapeProto_Dimension_dim_param_tag) to->param = frame_text(f, in);
}

/** Checks a dimension; some writers use −1 for an unknown one. */
static void check_dim(frame *f) {
  onnx_dim *to = f->to;
  if (!f->pb.dim.has_dim_value) return;
  to->value = f->pb.dim.dim_value;
  if (to->value < -1) frame_fail(f, TN_ERR_FORMAT, "is negative: %lld", (long long)to->value);
  if (*to->param)
    frame_fail(f, TN_ERR_FORMAT, "has both the value %lld and the name '%.100s'",
               (long long)to->value, to->param);
}

static const frame_message dim_message = {.fields = onnx_TensorShapeProto_Dimension_fields,
                                          .kind = "dimension",
                                          .field = dim_field,
                                          .check = check_dim};

static void shape_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  frame_read_item(f, in, &dim_message, &to->dims, (onnx_dim){.value = -1, .param = ""});
}

static const frame_message shape_message = {.fields = onnx_TensorShapeProto_fields,
                                            .field = shape_field};

static void tensor_type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  to->has_shape = true;
  frame_read_message(f, in, &shape_message, to, NOT_LISTED);
}

static void check_tensor_type(frame *f) {
  onnx_type *to = f->to;
  to->dtype = f->pb.tensor_type.elem_type;
}

static const frame_message tensor_type_message = {
    .fields = onnx_TypeProto_Tensor_fields, .field = tensor_type_field, .check = check_tensor_type};

static void read_type(frame *f, pb_istream_t *in, onnx_type **to);

static void elem_type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_type *to = f->to;
  (void)tag;
  read_type(f, in, &to->elem);
}

static void check_map(frame *f) {
  onnx_type *to = f->to;
  to->dtype = f->pb.map.key_type;
}

static const frame_message sequence_message = {.fields = onnx_TypeProto_Sequence_fields,
                                               .field = elem_type_field};
static const frame_message optional_message = {.fields = onnx_TypeProto_Optional_fields,
                                               .field = elem_type_field};
static const frame_message map_message = {
    .fields = onnx_TypeProto_Map_fields, .field = elem_type_field, .check = check_map};

static void type_field(frame *f, pb_istream_t *in, uint32_t tag) {
  static const struct {
    onnx_type_kind kind;
    const frame_message *message;
  } kinds[] = {
      [onnx_TypeProto_tensor_type_tag] = {ONNX_TYPE_TENSOR, &tensor_type_message},
      [onnx_TypeProto_sequence_type_tag] = {ONNX_TYPE_SEQUENCE, &sequence_message},
      [onnx_TypeProto_optional_type_tag] = {ONNX_TYPE_OPTIONAL, &optional_message},
      [onnx_TypeProto_map_type_tag] = {ONNX_TYPE_MAP, &map_message},
  };
  onnx_type *to = f->to;
  if (tag == onnx_TypeProto_sparse_tensor_type_tag || tag == onnx_TypeProto_opaque_type_tag)
    frame_fail(f, TN_ERR_UNSUPPORTED, "sparse tensors and opaque values are not supported");
  to->kind = kinds[tag].kind;
  frame_read_message(f, in, kinds[tag].message, to, NOT_LISTED);
}

static const frame_message type_message = {
    .fields = onnx_TypeProto_fields, .kind = "type", .nests = true, .field = type_field};

static void read_type(frame *f, pb_istream_t *in, onnx_type **to) {
  if (!*to) *to = arena_calloc(f->reader->arena, 1, sizeof **to);
  frame_read_message(f, in, &type_message, *to, NOT_LISTED);
}

static void value_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_value *to = f->to;
  switch (tag) {
  case onnx_ValueInfoProto_name_tag: f->name = to->name = frame_text(f, in); break;
  case onnx_ValueInfoProto_type_tag:
    frame_read_message(f, in, &type_message, &to->type, NOT_LISTED);
    break;
  }
}

static const frame_message value_message = {
    .fields = onnx_ValueInfoProto_fields, .kind = "value", .field = value_field};

static void add_value(frame *f, pb_istream_t *in, onnx_values *list) {
  frame_read_item(f, in, &value_message, list, (onnx_value){.name = ""});
}

/* Attributes and nodes. */

static void read_graph(frame *f, pb_istream_t *in, onnx_graph **to, size_t index);

static void add_graph(frame *f, pb_istream_t *in, onnx_attribute *to) {
  onnx_graph *g = NULL;
  read_graph(f, in, &g, to->graphs.n);
  vec_push(f->reader->arena, &to->graphs, g);
}

static void add_floats(frame *f, pb_istream_t *in, onnx_attribute *to) {
  vec_reserve(f->reader->arena, &to->floats, to->floats.n + in->bytes_left / sizeof(float));
  while (in->bytes_left) {
    float x;
    if (!pb_decode_fixed32(in, &x)) frame_fail_damaged(f, in, true);
    vec_push(f->reader->arena, &to->floats, x);
  }
}

static void add_string(frame *f, pb_istream_t *in, onnx_attribute *to) {
  onnx_bytes b = frame_bytes(f, in);
  vec_push(f->reader->arena, &to->strings, b);
}

/** Parses the tensor of an attribute; refuses a second one, which protobuf would merge. */
static void read_single_tensor(frame *f, pb_istream_t *in, onnx_tensor **to) {
  if (*to) frame_fail(f, TN_ERR_FORMAT, "has two tensors");
  *to = frame_read_tensor(f, in, NOT_LISTED);
}

static void attribute_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_attribute *to = f->to;
  switch (tag) {
  case onnx_AttributeProto_name_tag: f->name = to->name = frame_text(f, in); break;
  case onnx_AttributeProto_ref_attr_name_tag: to->ref_name = frame_text(f, in); break;
  case onnx_AttributeProto_s_tag: to->s = frame_bytes(f, in); break;
  case onnx_AttributeProto_t_tag: read_single_tensor(f, in, &to->t); break;
  case onnx_AttributeProto_g_tag: read_graph(f, in, &to->g, NOT_LISTED); break;
  case onnx_AttributeProto_tp_tag: read_type(f, in, &to->tp); break;
  case onnx_AttributeProto_floats_tag: add_floats(f, in, to); break;
  case onnx_AttributeProto_ints_tag: frame_add_ints(f, in, &to->ints); break;
  case onnx_AttributeProto_strings_tag: add_string(f, in, to); break;
  case onnx_AttributeProto_tensors_tag: frame_add_tensor(f, in, &to->tensors); break;
  case onnx_AttributeProto_graphs_tag: add_graph(f, in, to); break;
  case onnx_AttributeProto_type_protos_tag:
    frame_read_item(f, in, &type_message, &to->types, (onnx_type){.kind = ONNX_TYPE_NONE});
    break;
  case onnx_AttributeProto_sparse_tensor_tag:
    if (to->t) frame_fail(f, TN_ERR_FORMAT, "has two tensors");
    to->t = frame_read_sparse_tensor(f, in, NOT_LISTED);
    break;
  case onnx_AttributeProto_sparse_tensors_tag:
    frame_fail(f, TN_ERR_UNSUPPORTED, "lists of sparse tensors are not supported");
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

/** True if a required value is missing; zeros and empty lists may be omitted. */
static bool lacks_value(const onnx_attribute *a) {
  switch (a->type) {
  case ONNX_ATTRIBUTE_TENSOR: return !a->t || a->t->values;
  case ONNX_ATTRIBUTE_SPARSE_TENSOR: return !a->t || !a->t->values;
  case ONNX_ATTRIBUTE_GRAPH: return !a->g;
  case ONNX_ATTRIBUTE_TYPE: return !a->tp;
  default: return false;
  }
}

static void check_attribute(frame *f) {
  onnx_attribute *to = f->to;
  int32_t type = f->pb.attribute.type;
  if (!*to->name) frame_fail(f, TN_ERR_FORMAT, "has no name");
  if (!type) frame_fail(f, TN_ERR_FORMAT, "has no type");
  if (!attribute_type_name(type))
    frame_fail(f, TN_ERR_UNSUPPORTED, "has the unknown type %d", (int)type);
  to->type = (onnx_attribute_type)type;
  to->f = f->pb.attribute.f;
  to->i = f->pb.attribute.i;
  if (type == ONNX_ATTRIBUTE_SPARSE_TENSORS)
    frame_fail(f, TN_ERR_UNSUPPORTED, "lists of sparse tensors are not supported");
  if (!*to->ref_name && lacks_value(to))
    frame_fail(f, TN_ERR_FORMAT, "has no %s", attribute_type_name(type));
}

static const frame_message attribute_message = {.fields = onnx_AttributeProto_fields,
                                                .kind = "attribute",
                                                .field = attribute_field,
                                                .check = check_attribute};

#define ATTRIBUTE_EMPTY                        \
  (onnx_attribute) {                           \
    .name = "", .ref_name = "", .s = { "", 0 } \
  }

static void node_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_node *to = f->to;
  switch (tag) {
  case onnx_NodeProto_name_tag: f->name = to->name = frame_text(f, in); break;
  case onnx_NodeProto_op_type_tag: to->op_type = frame_text(f, in); break;
  case onnx_NodeProto_domain_tag: to->domain = frame_text(f, in); break;
  case onnx_NodeProto_overload_tag: to->overload = frame_text(f, in); break;
  case onnx_NodeProto_input_tag: frame_add_text(f, in, &to->inputs); break;
  case onnx_NodeProto_output_tag: frame_add_text(f, in, &to->outputs); break;
  case onnx_NodeProto_attribute_tag:
    frame_read_item(f, in, &attribute_message, &to->attributes, ATTRIBUTE_EMPTY);
    break;
  }
}

static void check_node(frame *f) {
  const onnx_node *to = f->to;
  if (!*to->op_type) frame_fail(f, TN_ERR_FORMAT, "has no op_type");
}

static const frame_message node_message = {
    .fields = onnx_NodeProto_fields, .kind = "node", .field = node_field, .check = check_node};

static void add_node(frame *f, pb_istream_t *in, onnx_nodes *list) {
  frame_read_item(f, in, &node_message, list,
                  (onnx_node){.name = "", .op_type = "", .domain = "", .overload = ""});
}

/* Graphs, functions and the model. */

static void graph_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_graph *to = f->to;
  switch (tag) {
  case onnx_GraphProto_name_tag: f->name = to->name = frame_text(f, in); break;
  case onnx_GraphProto_node_tag: add_node(f, in, &to->nodes); break;
  case onnx_GraphProto_initializer_tag: frame_add_tensor(f, in, &to->initializers); break;
  case onnx_GraphProto_input_tag: add_value(f, in, &to->inputs); break;
  case onnx_GraphProto_output_tag: add_value(f, in, &to->outputs); break;
  case onnx_GraphProto_value_info_tag: add_value(f, in, &to->values); break;
  case onnx_GraphProto_sparse_initializer_tag:
    frame_add_sparse_tensor(f, in, &to->initializers);
    break;
  }
}

static int compare_names(const void *a, const void *b) {
  const onnx_tensor *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static void check_initializers(frame *f, const onnx_tensors *list) {
  arena_mark here = arena_save(f->reader->arena);
  onnx_tensor **sorted = arena_copy(f->reader->arena, list->at, list->n * sizeof *list->at);
  if (list->n) qsort(sorted, list->n, sizeof *sorted, compare_names);
  if (list->n && !*sorted[0]->name)
    frame_fail(f, TN_ERR_FORMAT, "has an initializer without a name");
  for (size_t i = 1; i < list->n; i++)
    if (!compare_names(&sorted[i - 1], &sorted[i]))
      frame_fail(f, TN_ERR_FORMAT, "has two initializers named '%.200s'", sorted[i]->name);
  arena_rewind(f->reader->arena, here);
}

static void check_names(frame *f, const onnx_values *list, const char *kind) {
  for (size_t i = 0; i < list->n; i++)
    if (!*list->at[i].name) frame_fail(f, TN_ERR_FORMAT, "%s %zu has no name", kind, i);
}

static void check_graph(frame *f) {
  const onnx_graph *to = f->to;
  check_initializers(f, &to->initializers);
  check_names(f, &to->inputs, "input");
  check_names(f, &to->outputs, "output");
}

static const frame_message graph_message = {.fields = onnx_GraphProto_fields,
                                            .kind = "graph",
                                            .nests = true,
                                            .field = graph_field,
                                            .check = check_graph};

static void read_graph(frame *f, pb_istream_t *in, onnx_graph **to, size_t index) {
  if (!*to) {
    *to = arena_calloc(f->reader->arena, 1, sizeof **to);
    (*to)->name = "";
  }
  frame_read_message(f, in, &graph_message, *to, index);
}

static void opset_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_opset *to = f->to;
  if (tag == onnx_OperatorSetIdProto_domain_tag) f->name = to->domain = frame_text(f, in);
}

static void check_opset(frame *f) {
  onnx_opset *to = f->to;
  to->version = f->pb.opset.version;
  if (to->version < 1)
    frame_fail(f, TN_ERR_FORMAT, "has version %lld, expected at least 1", (long long)to->version);
}

static const frame_message opset_message = {.fields = onnx_OperatorSetIdProto_fields,
                                            .kind = "operator set",
                                            .field = opset_field,
                                            .check = check_opset};

static void add_opset(frame *f, pb_istream_t *in, onnx_opsets *list) {
  frame_read_item(f, in, &opset_message, list, (onnx_opset){.domain = ""});
}

static void function_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_function *to = f->to;
  switch (tag) {
  case onnx_FunctionProto_name_tag: f->name = to->name = frame_text(f, in); break;
  case onnx_FunctionProto_domain_tag: to->domain = frame_text(f, in); break;
  case onnx_FunctionProto_overload_tag: to->overload = frame_text(f, in); break;
  case onnx_FunctionProto_input_tag: frame_add_text(f, in, &to->inputs); break;
  case onnx_FunctionProto_output_tag: frame_add_text(f, in, &to->outputs); break;
  case onnx_FunctionProto_attribute_tag: frame_add_text(f, in, &to->attributes); break;
  case onnx_FunctionProto_node_tag: add_node(f, in, &to->nodes); break;
  case onnx_FunctionProto_opset_import_tag: add_opset(f, in, &to->opsets); break;
  case onnx_FunctionProto_value_info_tag: add_value(f, in, &to->values); break;
  case onnx_FunctionProto_attribute_proto_tag:
    frame_read_item(f, in, &attribute_message, &to->defaults, ATTRIBUTE_EMPTY);
    break;
  }
}

static void check_function(frame *f) {
  const onnx_function *to = f->to;
  if (!*to->name) frame_fail(f, TN_ERR_FORMAT, "has no name");
}

static const frame_message function_message = {.fields = onnx_FunctionProto_fields,
                                               .kind = "function",
                                               .field = function_field,
                                               .check = check_function};

static void model_field(frame *f, pb_istream_t *in, uint32_t tag) {
  onnx_model *to = f->to;
  switch (tag) {
  case onnx_ModelProto_producer_name_tag: to->producer_name = frame_text(f, in); break;
  case onnx_ModelProto_producer_version_tag: to->producer_version = frame_text(f, in); break;
  case onnx_ModelProto_domain_tag: to->domain = frame_text(f, in); break;
  case onnx_ModelProto_graph_tag: read_graph(f, in, &to->graph, NOT_LISTED); break;
  case onnx_ModelProto_opset_import_tag: add_opset(f, in, &to->opsets); break;
  case onnx_ModelProto_metadata_props_tag:
    frame_read_item(f, in, &frame_pair_message, &to->metadata, PAIR_EMPTY);
    break;
  case onnx_ModelProto_functions_tag:
    frame_read_item(f, in, &function_message, &to->functions,
                    (onnx_function){.name = "", .domain = "", .overload = ""});
    break;
  }
}

static void check_model(frame *f) {
  onnx_model *to = f->to;
  to->ir_version = f->pb.model.ir_version;
  to->model_version = f->pb.model.model_version;
  if (!f->pb.model.has_ir_version)
    frame_fail(f, TN_ERR_FORMAT, "not an ONNX model: IR version is missing");
  if (to->ir_version < ONNX_IR_MIN || to->ir_version > ONNX_IR_MAX)
    frame_fail(f, TN_ERR_UNSUPPORTED,
               "IR version %lld is not supported; convert the model to IR version %d to %d",
               (long long)to->ir_version, ONNX_IR_MIN, ONNX_IR_MAX);
  if (!to->graph) frame_fail(f, TN_ERR_FORMAT, "the model has no graph");
  if (!to->opsets.n) frame_fail(f, TN_ERR_FORMAT, "the model imports no operator set");
}

static const frame_message model_message = {.fields = onnx_ModelProto_fields,
                                            .file_prefix = "not an ONNX model, or ",
                                            .field = model_field,
                                            .check = check_model};

static void read_model(void *arg) {
  onnx_reader *r = arg;
  r->model = arena_calloc(r->arena, 1, sizeof *r->model);
  r->model->producer_name = r->model->producer_version = r->model->domain = "";
  frame f = {.reader = r, .message = &model_message, .index = NOT_LISTED, .to = r->model};
  pb_istream_t in = pb_istream_from_buffer(r->from, r->bytes);
  if (!pb_decode(&in, model_message.fields, &f.pb))
    frame_fail_damaged(&f, &in, frame_is_cut(r->from, r->bytes, &in));
  check_model(&f);
}

static tn_status parse(onnx_model **out, onnx_reader *r) {
  *out = NULL;
  if (!r->bytes) return diag_set(r->diag, TN_ERR_FORMAT, "not an ONNX model: the file is empty");
  tn_status s = diag_catch(r->diag, read_model, r);
  if (s == TN_OK) *out = r->model;
  return s;
}

tn_status onnx_parse_model(onnx_model **out, const void *bytes, size_t n, arena *a, diag *d) {
  return parse(out, &(onnx_reader){.arena = a, .diag = d, .from = bytes, .bytes = n});
}

tn_status onnx_parse_file(onnx_model **out, const file_map *file, arena *a, diag *d) {
  onnx_reader r = {.arena = a, .diag = d, .from = file->data, .bytes = file->bytes};
  r.parts = file->in_parts ? file : NULL;
  *out = NULL;
  tn_status s = onnx_read_structure(file, d);
  return s == TN_OK ? parse(out, &r) : s;
}
