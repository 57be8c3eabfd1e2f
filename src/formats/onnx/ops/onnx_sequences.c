/* ONNX operators on sequences and optional values. Sequences have a known number of tensors, so all
   of them are resolved by the importer: places are constants. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

enum { SEQUENCE_MAX = 1 << 16 };

/** The place that an input names in a sequence of n tensors, −n … most. */
static size_t read_place(onnx_call *c, size_t input, size_t n, size_t most) {
  size_t count;
  const int64_t *given = onnx_static_ints(c, input, &count);
  if (count != 1) onnx_fail(c, TN_ERR_SHAPE, "the place has %zu elements, expected 1", count);
  if (*given < -(int64_t)n || *given > (int64_t)most)
    onnx_fail(c, TN_ERR_SHAPE, "place %lld is not in a sequence of %zu", (long long)*given, n);
  return (size_t)(*given < 0 ? *given + (int64_t)n : *given);
}

void onnx_SequenceEmpty(onnx_call *c) { c->outputs[0] = onnx_sequence(c, NULL, 0); }

void onnx_SequenceConstruct(onnx_call *c) {
  value *all = arena_alloc(onnx_builder(c)->arena, c->n_inputs * sizeof *all);
  for (size_t i = 0; i < c->n_inputs; i++) all[i] = onnx_input(c, i);
  onnx_require_same_types(c);
  c->outputs[0] = onnx_sequence(c, all, c->n_inputs);
}

void onnx_SequenceInsert(onnx_call *c) {
  const importer_sequence *s = onnx_sequence_input(c, 0);
  value *all = arena_alloc(onnx_builder(c)->arena, (s->n + 1) * sizeof *all);
  size_t place = onnx_has_input(c, 2) ? read_place(c, 2, s->n, s->n) : s->n;
  for (size_t i = 0; i < s->n; i++) all[i < place ? i : i + 1] = s->at[i];
  all[place] = onnx_input(c, 1);
  for (size_t i = 0; i < s->n; i++)
    if (s->at[i].node->dtype != all[place].node->dtype)
      onnx_fail(c, TN_ERR_DTYPE, "the tensors of a sequence have different types");
  c->outputs[0] = onnx_sequence(c, all, s->n + 1);
}

/** Raises if there is no tensor in a sequence. */
static const importer_sequence *filled_sequence(const onnx_call *c) {
  const importer_sequence *s = onnx_sequence_input(c, 0);
  if (!s->n) onnx_fail(c, TN_ERR_SHAPE, "the sequence is empty");
  return s;
}

void onnx_SequenceErase(onnx_call *c) {
  const importer_sequence *s = filled_sequence(c);
  value *all = arena_alloc(onnx_builder(c)->arena, s->n * sizeof *all);
  size_t place = onnx_has_input(c, 1) ? read_place(c, 1, s->n, s->n - 1) : s->n - 1;
  for (size_t i = 0; i + 1 < s->n; i++) all[i] = s->at[i < place ? i : i + 1];
  c->outputs[0] = onnx_sequence(c, all, s->n - 1);
}

void onnx_SequenceAt(onnx_call *c) {
  const importer_sequence *s = filled_sequence(c);
  c->outputs[0] = s->at[read_place(c, 1, s->n, s->n - 1)];
}

void onnx_SequenceLength(onnx_call *c) {
  size_t n = onnx_sequence_input(c, 0)->n;
  c->outputs[0] = value_of(ir_const_int(onnx_builder(c)->ir, DT_I64, (int64_t)n));
}

void onnx_ConcatFromSequence(onnx_call *c) {
  const importer_sequence *s = filled_sequence(c);
  int64_t axis = onnx_int_attribute(c, "axis", 0);
  bool is_new = onnx_int_attribute(c, "new_axis", 0) != 0;
  c->outputs[0] = (is_new ? build_stack : build_concat)(onnx_builder(c), s->at, s->n, axis);
}

/** The sizes of the parts: equal ones of a scalar's size, the last of what is left; those of a
   list; or 1 each. */
static const node *const *read_parts(onnx_call *c, const node *size, size_t *n) {
  builder *b = onnx_builder(c);
  int64_t each = 1;
  if (onnx_has_input(c, 1)) {
    const node *const *parts = onnx_shape_elements(c, 1, n);
    if (onnx_input(c, 1).node->rank) return parts;
    if (!node_is_const(*parts) || node_int(*parts) < 1)
      onnx_fail(c, TN_ERR_SHAPE, "the size of the parts is not a positive number");
    each = node_int(*parts);
  }
  if (!node_is_const(size))
    onnx_fail_varying_size(c, size, "an axis of varying size %s cannot be made a sequence",
                           size_text(b, size));
  int64_t whole = node_int(size);
  *n = (size_t)(whole / each + (whole % each != 0));
  if (*n > SEQUENCE_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "a sequence of %zu tensors is not supported", *n);
  const node **parts = arena_alloc(b->arena, (*n + 1) * sizeof *parts);
  for (size_t i = 0; i < *n; i++)
    parts[i] = ix_const(b->ir, i + 1 < *n ? each : whole - each * (int64_t)(*n - 1));
  return parts;
}

void onnx_SplitToSequence(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t n, axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 0), x.node->rank);
  const node *const *parts = read_parts(c, x.node->dims[axis], &n);
  value *all = arena_alloc(b->arena, (n + 1) * sizeof *all);
  bool drops_axis = !onnx_has_input(c, 1) && !onnx_int_attribute(c, "keepdims", 1);
  build_split(b, x, (int64_t)axis, parts, all, n);
  for (size_t i = 0; drops_axis && i < n; i++)
    all[i] = build_squeeze(b, all[i], (tn_axes){.count = 1, .axis = {(int32_t)axis}});
  c->outputs[0] = onnx_sequence(c, all, n);
}

/** Imports the body for each entry of the first sequence. Further sequences give an entry each,
    tensors themselves. */
void onnx_SequenceMap(onnx_call *c) {
  arena *a = onnx_builder(c)->arena;
  const onnx_graph *body = onnx_graph_attribute(c, "body");
  size_t n = onnx_sequence_input(c, 0)->n, outs = body->outputs.n;
  if (body->inputs.n != c->n_inputs || outs < c->n_outputs)
    onnx_fail(c, TN_ERR_FORMAT, "the body has %zu inputs and %zu outputs, but the node %zu and %zu",
              body->inputs.n, outs, c->n_inputs, c->n_outputs);
  value *in = arena_alloc(a, c->n_inputs * sizeof *in),
        *out = arena_alloc(a, (outs + 1) * sizeof *out),
        *all = arena_alloc(a, (n * outs + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < c->n_inputs; k++) {
      const importer_sequence *s = importer_find_sequence(c->m, in[k] = onnx_any_input(c, k));
      if (s && (s->is_absent || s->n != n))
        onnx_fail(c, TN_ERR_SHAPE, "sequences have different lengths, %zu and %zu", n, s->n);
      if (s) in[k] = s->at[i];
    }
    onnx_import_body(c, body, in, out);
    for (size_t k = 0; k < outs; k++) all[k * n + i] = out[k];
  }
  for (size_t k = 0; k < c->n_outputs; k++) c->outputs[k] = onnx_sequence(c, all + k * n, n);
}

/* Optional values: present ones are what they have. */

void onnx_Optional(onnx_call *c) {
  c->outputs[0] = onnx_has_input(c, 0) ? onnx_any_input(c, 0) : onnx_absent_optional(c);
}

static bool is_present(const onnx_call *c) {
  const importer_sequence *s =
      onnx_has_input(c, 0) ? importer_find_sequence(c->m, onnx_any_input(c, 0)) : NULL;
  return onnx_has_input(c, 0) && !(s && s->is_absent);
}

void onnx_OptionalHasElement(onnx_call *c) {
  c->outputs[0] = value_of(ir_const_bits(onnx_builder(c)->ir, DT_BOOL, is_present(c)));
}

void onnx_OptionalGetElement(onnx_call *c) {
  if (!is_present(c)) onnx_fail(c, TN_ERR_FORMAT, "the optional value is absent");
  c->outputs[0] = onnx_any_input(c, 0);
}
