/* Tensors of strings, as tensors of the strings' numbers in the model's table (string_table.h), and
   steps of the host. Equal strings have one number, so that what moves strings, or tells whether
   they are equal, is done with the numbers. */
#include "formats/onnx/importer/importer.h"
#include "ir/core/tensor_loop.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <string.h>

const node *importer_find_strings(const import *m, value v) { return map_get(&m->strings, v.node); }

value importer_add_strings(import *m, const node *numbers) {
  arena *a = m->b.arena;
  const char *name = arena_printf(a, "strings %zu", m->strings.n);
  const node *handle = ir_make(m->b.ir, &(node_spec){.op = OP_VAR,
                                                     .dtype = DT_INDEX,
                                                     .ints = (int64_t[]){0, 1},
                                                     .n_int = 2,
                                                     .text = name,
                                                     .n_text = strlen(name)});
  map_set(a, &m->strings, handle, (void *)numbers);
  return (value){handle, WEAK_NO};
}

int64_t importer_string_number(import *m, const onnx_bytes *text) {
  int64_t number = string_table_add(m->host->strings, text->at, text->n);
  if (number < 0) diag_raise(m->b.diag, TN_ERR_MEMORY, "out of memory");
  return number;
}

/** The numbers of strings, as a constant of these sizes; without any a vector. */
static value number_constant(import *m, const onnx_bytes strings[], size_t n,
                             const onnx_ints *dims) {
  arena *a = m->b.arena;
  int64_t *numbers = arena_alloc(a, (n + 1) * sizeof *numbers);
  for (size_t i = 0; i < n; i++) numbers[i] = importer_string_number(m, &strings[i]);
  onnx_tensor made = {.name = "",
                      .dtype = ONNX_I64,
                      .elements = n,
                      .bytes = n * sizeof *numbers,
                      .data = numbers,
                      .is_computed = true};
  if (dims)
    made.dims = *dims;
  else
    vec_push(a, &made.dims, (int64_t)n);
  onnx_call c = {.m = m};
  return onnx_constant_tensor(&c, arena_copy(a, &made, sizeof made));
}

value importer_string_constant(import *m, const onnx_tensor *t) {
  return number_constant(m, t->strings.at, t->strings.n, &t->dims);
}

bool onnx_is_string_input(const onnx_call *c, size_t i) {
  return onnx_has_input(c, i) && importer_find_strings(c->m, c->inputs[i]);
}

value onnx_string_input(const onnx_call *c, size_t i) {
  const node *numbers = importer_find_strings(c->m, onnx_any_input(c, i));
  if (!numbers)
    onnx_fail(c, TN_ERR_DTYPE, "input '%.200s' is no tensor of strings", c->node->inputs.at[i]);
  return value_of(numbers);
}

value onnx_strings(onnx_call *c, value numbers) { return importer_add_strings(c->m, numbers.node); }

int64_t *onnx_string_numbers(onnx_call *c, const char *name, size_t *n) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_STRINGS);
  *n = a ? a->strings.n : 0;
  if (!a) return NULL;
  int64_t *numbers = arena_alloc(onnx_builder(c)->arena, (*n + 1) * sizeof *numbers);
  for (size_t i = 0; i < *n; i++) numbers[i] = importer_string_number(c->m, &a->strings.at[i]);
  return numbers;
}

value onnx_string_vector(onnx_call *c, const char *name) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_STRINGS);
  return a && a->strings.n ? number_constant(c->m, a->strings.at, a->strings.n, NULL) : (value){0};
}

/* Operators that move elements. */

/** An operator that takes strings: those of its inputs that are strings then, a bit each, and
   whether its results are. */
typedef struct string_mover {
  const char *op;
  uint32_t inputs;
  bool gives_strings;
} string_mover;

#define ALL_INPUTS UINT32_MAX
static const string_mover movers[] = {
    {"Compress", 1, true},  {"Concat", ALL_INPUTS, true}, {"DepthToSpace", 1, true},
    {"Equal", 3, false},    {"Expand", 1, true},          {"Flatten", 1, true},
    {"Gather", 1, true},    {"GatherElements", 1, true},  {"GatherND", 1, true},
    {"Reshape", 1, true},   {"ReverseSequence", 1, true}, {"ScatterElements", 5, true},
    {"ScatterND", 5, true}, {"Shape", 1, false},          {"Size", 1, false},
    {"Slice", 1, true},     {"Split", 1, true},           {"Squeeze", 1, true},
    {"Tile", 1, true},      {"Transpose", 1, true},       {"Unsqueeze", 1, true},
    {"Where", 6, true},
};

static const string_mover *find_mover(const onnx_op *row) {
  for (size_t i = 0; i < sizeof movers / sizeof *movers && !*row->domain; i++)
    if (!strcmp(movers[i].op, row->name)) return &movers[i];
  return NULL;
}

bool onnx_build_on_strings(onnx_call *c, const onnx_op *row) {
  const string_mover *mover = find_mover(row);
  bool has_strings = false;
  for (size_t i = 0; i < c->n_inputs; i++) has_strings |= onnx_is_string_input(c, i);
  if (!mover || !has_strings) return false;
  if (strcmp(onnx_string_attribute(c, "reduction", "none"), "none") != 0)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "strings are combined, which is not supported");
  value *numbers = arena_calloc(onnx_builder(c)->arena, c->n_inputs + 1, sizeof *numbers);
  for (size_t i = 0; i < c->n_inputs; i++) {
    bool is_string = mover->inputs == ALL_INPUTS || (i < 32 && mover->inputs >> i & 1);
    numbers[i] = is_string && onnx_has_input(c, i) ? onnx_string_input(c, i) : c->inputs[i];
  }
  onnx_call k = *c;
  k.inputs = numbers;
  row->build(&k);
  for (size_t i = 0; i < c->n_outputs && mover->gives_strings; i++)
    if (c->outputs[i].node) c->outputs[i] = onnx_strings(c, c->outputs[i]);
  return true;
}

/* Steps of the host. */

/** Raises if the body of a loop that is being imported computes a value. */
void onnx_refuse_host_in_loop(const onnx_call *c, const node *n) {
  arena *a = c->m->b.arena;
  node_list order = topo_sort(a, &n, 1, NULL, NULL);
  if (loop_find_unbound(a, order.at, order.n)[order.n - 1])
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the host computes it, which it cannot in the body of a loop");
}

value onnx_host_step(onnx_call *c, host_step step, const value in[], size_t n, dtype t,
                     const sizes *s) {
  import *m = c->m;
  const node **src = arena_alloc(m->b.arena, (n + s->rank + 1) * sizeof *src);
  for (size_t i = 0; i < n; i++) {
    src[i] = value_typed(&m->b, in[i]).node;
    onnx_refuse_host_in_loop(c, src[i]);
  }
  for (size_t i = 0; i < s->rank; i++) src[n + i] = s->at[i];
  step.name =
      arena_printf(&m->host->arena, "%s node '%.200s'", c->node->op_type, onnx_node_name(c->node));
  int64_t ints[4] = {(int64_t)m->host->all.n, 0, (int64_t)n, 0};
  vec_push(&m->host->arena, &m->host->all, step);
  const node_spec spec = {OP_CUSTOM, t, 1, src, n + s->rank, ints, 4, NULL, 0};
  return value_of(ir_make(m->b.ir, &spec));
}

const node *onnx_computed_size(onnx_call *c, const node *x, int64_t min, int64_t most) {
  ir *g = c->m->b.ir;
  return ir_item(g, x, NULL, min, ix_const(g, most));
}
