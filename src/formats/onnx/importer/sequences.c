/* Sequences and optional values, which the importer takes apart: how many tensors they have is
   known before the model runs. Maps, which are a tensor of keys and one of values. */
#include "formats/onnx/importer/importer.h"

#include <string.h>

const importer_sequence *importer_find_sequence(const import *m, value v) {
  return map_get(&m->sequences, v.node);
}

const importer_sequence *onnx_sequence_input(const onnx_call *c, size_t i) {
  const importer_sequence *s = importer_find_sequence(c->m, onnx_any_input(c, i));
  if (!s || s->is_absent || s->is_map)
    onnx_fail(c, TN_ERR_FORMAT, "input '%.200s' is no sequence", c->node->inputs.at[i]);
  return s;
}

/** Makes the handle of a sequence: a variable of its own, which nothing computes with. */
static value add_sequence(import *m, const importer_sequence *s) {
  arena *a = m->b.arena;
  const char *name = arena_printf(a, "sequence %zu", m->sequences.n);
  const node *handle = ir_make(m->b.ir, &(node_spec){.op = OP_VAR,
                                                     .dtype = DT_INDEX,
                                                     .ints = (int64_t[]){0, 1},
                                                     .n_int = 2,
                                                     .text = name,
                                                     .n_text = strlen(name)});
  map_set(a, &m->sequences, handle, arena_copy(a, s, sizeof *s));
  return (value){handle, WEAK_NO};
}

value onnx_sequence(onnx_call *c, const value at[], size_t n) {
  arena *a = c->m->b.arena;
  const value *copy = n ? arena_copy(a, at, n * sizeof *at) : NULL;
  return add_sequence(c->m, &(importer_sequence){.n = n, .at = copy});
}

value onnx_absent_optional(onnx_call *c) {
  return add_sequence(c->m, &(importer_sequence){.is_absent = true});
}

value importer_add_map(import *m, const value keys_and_values[2]) {
  const value *copy = arena_copy(m->b.arena, keys_and_values, 2 * sizeof *copy);
  return add_sequence(m, &(importer_sequence){.is_map = true, .n = 2, .at = copy});
}

const value *onnx_map_input_parts(const onnx_call *c, size_t i) {
  const importer_sequence *s = importer_find_sequence(c->m, onnx_any_input(c, i));
  if (!s || !s->is_map)
    onnx_fail(c, TN_ERR_FORMAT, "input '%.200s' is no map", c->node->inputs.at[i]);
  return s->at;
}
