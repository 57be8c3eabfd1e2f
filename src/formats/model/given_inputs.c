/* Rewrites the inputs of a file's graph for what a caller gives when it loads a model. A value
   becomes an initializer. A sequence of n tensors becomes n inputs "x[0]" … and a node that makes
   the sequence of them, an absent optional value the node that makes such a one; the importer then
   resolves both as it does within a graph. A map "x" becomes two inputs, "x.keys" and "x.values".
 */
#include "formats/model/given_inputs.h"

#include "base/map.h"

#include <string.h>

typedef struct settling {
  onnx_graph *g;
  const tn_model_desc *desc;
  arena *a;
  string_map values, lists; /* name → the caller's entry, until it is used */
  onnx_values inputs;       /* those that remain */
  onnx_nodes nodes;         /* that make sequences */
} settling;

static _Noreturn void refuse_argument(const settling *k, const char *what, const char *name) {
  diag_raise(k->a->diag, TN_ERR_ARGUMENT, "%s '%.200s'", what, name ? name : "(NULL)");
}

static void note_entries(settling *k) {
  const tn_model_desc *desc = k->desc;
  for (size_t i = 0; i < desc->n_values; i++) {
    const tn_input_value *v = &desc->values[i];
    if (!v->name || string_map_get(&k->values, v->name))
      refuse_argument(k, "a value is given for no input, or twice for", v->name);
    string_map_set(k->a, &k->values, v->name, (void *)v);
  }
  for (size_t i = 0; i < desc->n_lists; i++) {
    const tn_input_list *l = &desc->lists[i];
    if (!l->name || string_map_get(&k->lists, l->name))
      refuse_argument(k, "a list is given for no input, or twice for", l->name);
    string_map_set(k->a, &k->lists, l->name, (void *)l);
  }
}

/* Values. */

static void check_value(const settling *k, const onnx_value *input, const tn_input_value *v) {
  const tn_shape *shape = &v->type.shape;
  bool is_tensor = input->type.kind == ONNX_TYPE_TENSOR;
  if (!is_tensor) refuse_argument(k, "a value is given for what is no tensor: input", v->name);
  if (input->type.dtype != (int32_t)v->type.dtype || !tn_dtype_size(v->type.dtype))
    diag_raise(k->a->diag, TN_ERR_DTYPE, "the value of input '%.200s' is %s, not %s", v->name,
               tn_dtype_name(v->type.dtype), tn_dtype_name((tn_dtype)input->type.dtype));
  bool fits = shape->rank >= 0 && shape->rank <= TN_MAX_RANK &&
              (!input->type.has_shape || (size_t)shape->rank == input->type.dims.n);
  for (int32_t i = 0; fits && i < shape->rank; i++) {
    int64_t size = input->type.has_shape ? input->type.dims.at[i].value : -1;
    fits = shape->size[i] >= 0 && (size < 0 || size == shape->size[i]);
  }
  if (!fits)
    diag_raise(k->a->diag, TN_ERR_SHAPE,
               "the value of input '%.200s' does not have the shape that the file declares",
               v->name);
}

static onnx_tensor *tensor_of(const settling *k, const tn_input_value *v) {
  onnx_tensor t = {
      .name = arena_printf(k->a, "%s", v->name), .dtype = (onnx_dtype)v->type.dtype, .elements = 1};
  for (int32_t i = 0; i < v->type.shape.rank; i++) {
    vec_push(k->a, &t.dims, v->type.shape.size[i]);
    if (__builtin_mul_overflow(t.elements, (size_t)v->type.shape.size[i], &t.elements))
      refuse_argument(k, "too many elements are given for input", v->name);
  }
  t.bytes = t.elements * tn_dtype_size(v->type.dtype);
  if (t.bytes / tn_dtype_size(v->type.dtype) != t.elements || (t.elements && !v->data))
    refuse_argument(k, "no elements, or too many, are given for input", v->name);
  if (t.bytes) t.data = arena_copy(k->a, v->data, t.bytes);
  return arena_copy(k->a, &t, sizeof t);
}

/** Adds an initializer, in the place of the one that is an input's default. */
static void add_initializer(settling *k, onnx_tensor *t) {
  for (size_t i = 0; i < k->g->initializers.n; i++)
    if (!strcmp(k->g->initializers.at[i]->name, t->name)) {
      k->g->initializers.at[i] = t;
      return;
    }
  vec_push(k->a, &k->g->initializers, t);
}

/* Lists. */

/** The type of the elements of a sequence, in an optional value or not; NULL: it is none. */
static const onnx_type *element_type(const onnx_type *t) {
  if (t->kind == ONNX_TYPE_OPTIONAL && t->elem) t = t->elem;
  return t->kind == ONNX_TYPE_SEQUENCE ? t->elem : NULL;
}

/** An input of the caller's type, or without one of the declared one. */
static onnx_value element_of(const settling *k, const tn_input_list *l, const onnx_type *t,
                             size_t i) {
  onnx_value v = {.name = arena_printf(k->a, "%s[%zu]", l->name, i), .type = *t};
  const tn_type *given = l->types ? &l->types[i] : NULL;
  if (!given) return v;
  if (given->shape.rank < 0 || given->shape.rank > TN_MAX_RANK)
    refuse_argument(k, "a rank is out of range in the list for input", l->name);
  if ((int32_t)given->dtype != t->dtype)
    diag_raise(k->a->diag, TN_ERR_DTYPE, "the elements of input '%.200s' are %s, not %s", l->name,
               tn_dtype_name((tn_dtype)t->dtype), tn_dtype_name(given->dtype));
  v.type.has_shape = true;
  memset(&v.type.dims, 0, sizeof v.type.dims);
  for (int32_t i = 0; i < given->shape.rank; i++) {
    int64_t size = given->shape.size[i];
    vec_push(k->a, &v.type.dims, (onnx_dim){.value = size < 0 ? -1 : size, .param = ""});
  }
  return v;
}

static void add_node(settling *k, const char *op, const char *output, const onnx_names *inputs) {
  onnx_node n = {.name = "", .op_type = op, .domain = "", .overload = "", .inputs = *inputs};
  vec_push(k->a, &n.outputs, output);
  vec_push(k->a, &k->nodes, n);
}

static void add_list(settling *k, const onnx_value *input, const tn_input_list *l) {
  enum { LENGTH_MAX = 1 << 16 };
  const onnx_type *t = element_type(&input->type);
  bool is_optional = input->type.kind == ONNX_TYPE_OPTIONAL, is_absent = l->count == -1;
  onnx_names names = {0};
  if (is_absent ? !is_optional : !t || t->kind != ONNX_TYPE_TENSOR)
    refuse_argument(k, "a list is given for what is none: input", l->name);
  if (l->count < -1 || l->count > LENGTH_MAX)
    refuse_argument(k, "the length is out of range of the list for input", l->name);
  for (int64_t i = 0; i < l->count; i++) {
    onnx_value v = element_of(k, l, t, (size_t)i);
    vec_push(k->a, &k->inputs, v);
    vec_push(k->a, &names, v.name);
  }
  add_node(k,
           is_absent  ? "Optional"
           : l->count ? "SequenceConstruct"
                      : "SequenceEmpty",
           input->name, &names);
}

/* Maps. */

/** Adds a vector of the elements of a map as an input. */
static const char *add_map_part(settling *k, const onnx_value *map, const char *part,
                                int32_t elements) {
  const char *name = arena_printf(k->a, "%s.%s", map->name, part);
  onnx_value v = {.name = name,
                  .type = {.kind = ONNX_TYPE_TENSOR, .dtype = elements, .has_shape = true}};
  const char *size = arena_printf(k->a, "%s.size", map->name);
  vec_push(k->a, &v.type.dims, ((onnx_dim){.value = -1, .param = size}));
  vec_push(k->a, &k->inputs, v);
  return name;
}

static void add_map(settling *k, const onnx_value *input) {
  onnx_map_input m = {.name = input->name};
  m.keys = add_map_part(k, input, "keys", input->type.dtype);
  m.values = add_map_part(k, input, "values", input->type.elem->dtype);
  vec_push(k->a, &k->g->maps, m);
}

/* Inputs. */

static bool is_map_of_tensors(const onnx_type *t) {
  return t->kind == ONNX_TYPE_MAP && t->elem && t->elem->kind == ONNX_TYPE_TENSOR;
}

static void settle_input(settling *k, const onnx_value *input) {
  const tn_input_value *v = string_map_get(&k->values, input->name);
  const tn_input_list *l = string_map_get(&k->lists, input->name);
  const onnx_type *t = &input->type;
  if (v) {
    check_value(k, input, v);
    add_initializer(k, tensor_of(k, v));
  } else if (l) {
    add_list(k, input, l);
  } else if (is_map_of_tensors(t)) {
    add_map(k, input);
  } else if (t->kind == ONNX_TYPE_OPTIONAL && t->elem && t->elem->kind == ONNX_TYPE_TENSOR) {
    vec_push(k->a, &k->inputs, ((onnx_value){.name = input->name, .type = *t->elem}));
  } else {
    vec_push(k->a, &k->inputs, *input);
  }
}

static void check_names(const settling *k) {
  string_map names = {0};
  for (size_t i = 0; i < k->g->inputs.n; i++)
    string_map_set(k->a, &names, k->g->inputs.at[i].name, (void *)k);
  for (size_t i = 0; i < k->desc->n_values + k->desc->n_lists; i++) {
    bool is_value = i < k->desc->n_values;
    const char *name =
        is_value ? k->desc->values[i].name : k->desc->lists[i - k->desc->n_values].name;
    if (!string_map_get(&names, name)) refuse_argument(k, "the graph has no input", name);
  }
}

static void settle(void *arg) {
  settling *k = arg;
  note_entries(k);
  check_names(k);
  for (size_t i = 0; i < k->g->inputs.n; i++) settle_input(k, &k->g->inputs.at[i]);
  k->g->inputs = k->inputs;
  if (!k->nodes.n) return;
  for (size_t i = 0; i < k->g->nodes.n; i++) vec_push(k->a, &k->nodes, k->g->nodes.at[i]);
  k->g->nodes = k->nodes;
}

tn_status given_inputs_settle(onnx_model *m, const tn_model_desc *desc, arena *a, diag *d) {
  settling k = {.g = m->graph, .desc = desc, .a = a};
  bool has_values = !desc->n_values || desc->values, has_lists = !desc->n_lists || desc->lists;
  if (!has_values || !has_lists)
    return diag_set(d, TN_ERR_ARGUMENT, "the list of %s is NULL", has_values ? "lists" : "values");
  diag *before = a->diag;
  a->diag = d;
  tn_status s = diag_catch(d, settle, &k);
  a->diag = before;
  return s;
}
