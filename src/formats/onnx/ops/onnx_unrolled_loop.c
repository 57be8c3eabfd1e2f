/* ONNX Loop whose states are sequences or optional values: these have a known number of tensors in
   each step, which may differ, so the body is imported once for each step. */
#include "formats/onnx/ops/onnx_unrolled_loop.h"

#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

/** The most steps that are imported. */
enum { UNROLLED_MOST = 1 << 12 };

bool onnx_has_sequence_state(const onnx_call *c) {
  for (size_t i = 2; i < c->n_inputs; i++)
    if (onnx_has_input(c, i) && importer_find_sequence(c->m, c->inputs[i])) return true;
  return false;
}

/** A condition, which no value of a run decides. */
static bool condition_holds(onnx_call *c, const char *name, value v) {
  onnx_node reader = {.op_type = c->node->op_type};
  vec_push(onnx_builder(c)->arena, &reader.inputs, name);
  onnx_call k = {.m = c->m, .node = &reader, .n_inputs = 1, .inputs = &v};
  return onnx_static_bool(&k, 0, true);
}

static int64_t trip_count(onnx_call *c) {
  size_t n;
  if (!onnx_has_input(c, 0)) return INT64_MAX;
  const int64_t *count = onnx_static_ints(c, 0, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "the trip count must be a scalar");
  return *count;
}

/** The entries of a scan output, one of each step. */
static value stack_entries(onnx_call *c, const value entries[], size_t steps, const char *name) {
  if (!steps)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "the loop takes no step, which leaves the shape of output '%.200s' open", name);
  for (size_t i = 0; i < steps; i++)
    if (importer_find_sequence(c->m, entries[i]) || importer_find_strings(c->m, entries[i]))
      onnx_fail(c, TN_ERR_UNSUPPORTED, "an entry of output '%.200s' is a sequence, or of strings",
                name);
  return build_stack(onnx_builder(c), entries, steps, 0);
}

static void check_body(const onnx_call *c, const onnx_graph *body, size_t states) {
  if (body->inputs.n != states + 2 || body->outputs.n < states + 1)
    onnx_fail(c, TN_ERR_FORMAT,
              "the body has %zu inputs and %zu outputs, expected %zu inputs and at least %zu "
              "outputs",
              body->inputs.n, body->outputs.n, states + 2, states + 1);
  if (c->n_outputs > body->outputs.n - 1)
    onnx_fail(c, TN_ERR_FORMAT, "the node has %zu outputs, but its body computes %zu", c->n_outputs,
              body->outputs.n - 1);
}

void onnx_unroll_loop(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_graph *body = onnx_graph_attribute(c, "body");
  size_t states = c->n_inputs - 2, outs = body->outputs.n, steps = 0;
  check_body(c, body, states);
  int64_t most = trip_count(c);
  value *in = arena_calloc(b->arena, states + 3, sizeof *in);
  VEC(value) results = {0}; /* of the steps, `outs` each */
  for (size_t i = 0; i < states; i++) in[2 + i] = onnx_any_input(c, 2 + i);
  in[1] = value_of(ir_const_bits(b->ir, DT_BOOL, 1));
  bool holds = onnx_static_bool(c, 1, true);
  for (; holds && (int64_t)steps < most; steps++) {
    if (steps == UNROLLED_MOST)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "a loop with a sequence takes more than %d steps",
                UNROLLED_MOST);
    value *out = arena_calloc(b->arena, outs + 1, sizeof *out);
    in[0] = value_of(ir_const_int(b->ir, DT_I64, (int64_t)steps));
    onnx_import_branch(c, body, in, out);
    for (size_t i = 0; i < outs; i++) vec_push(b->arena, &results, out[i]);
    for (size_t i = 0; i < states; i++) in[2 + i] = out[1 + i];
    holds = condition_holds(c, body->outputs.at[0].name, out[0]);
  }
  value *entries = arena_alloc(b->arena, (steps + 1) * sizeof *entries);
  for (size_t i = 0; i < c->n_outputs; i++) {
    for (size_t k = 0; k < steps; k++) entries[k] = results.at[k * outs + 1 + i];
    const char *name = c->node->outputs.at[i];
    c->outputs[i] = i < states ? in[2 + i] : stack_entries(c, entries, steps, name);
  }
}
