/* Sequences and optional values, which the importer takes apart: how many tensors they have is
   known before the model runs. */
#include "formats/onnx/importer/importer.h"

#include <string.h>

const importer_sequence *importer_find_sequence(const import *m, value v) {
  return map_get(&m->sequences, v.node);
}

const importer_sequence *onnx_sequence_input(const onnx_call *c, size_t i) {
  const importer_sequence *s = importer_find_sequence(c->m, onnx_any_input(c, i));
  if (!s || s->is_absent)
    onnx_fail(c, TN_ERR_FORMAT, "input '%.200s' is no sequence", c->node->inputs.at[i]);
  return s;
}

/** Makes the handle of a sequence: a variable of its own, which nothing computes with. */
static value add_sequence(onnx_call *c, const importer_sequence *s) {
  import *m = c->m;
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
  return add_sequence(c, &(importer_sequence){.n = n, .at = copy});
}

value onnx_absent_optional(onnx_call *c) {
  return add_sequence(c, &(importer_sequence){.is_absent = true});
}
