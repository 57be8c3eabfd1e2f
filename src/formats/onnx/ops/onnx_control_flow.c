/* ONNX Scan and Loop: the body graph is imported once, over a loop range, with its states as loop
   states. A Loop with a condition runs to its trip limit and keeps its states once the condition is
   false, so only loops with a known limit are supported. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

/** Most trips of a Loop with a condition, since all trips run even after it is false. */
enum { MOST_BLIND_STEPS = 1 << 16 };

/** A node with a body: its outputs are the states, then the outputs that trips stack. */
typedef struct loop {
  onnx_call *c;
  builder *b;
  const onnx_graph *body;
  size_t n_states, n_emits;
  size_t first; /* input that is a state */
  const node *range;
  value *inits, *in, *out; /* of the states; the body's */
} loop;

static value *values(const loop *l, size_t n) {
  return arena_calloc(l->b->arena, n + 1, sizeof(value));
}

/** Opens a loop; `extra_in`, `extra_out`: inputs and outputs of the body that are no states. */
static loop open_loop(onnx_call *c, size_t first, size_t states, size_t extra_in,
                      size_t extra_out) {
  loop l = {.c = c, .b = onnx_builder(c), .n_states = states, .first = first};
  l.body = onnx_graph_attribute(c, "body");
  size_t n_in = states + extra_in, fixed = states + extra_out;
  if (l.body->inputs.n != n_in || l.body->outputs.n < fixed)
    onnx_fail(c, TN_ERR_FORMAT, "its body has %zu inputs and %zu outputs, where %zu and %zu belong",
              l.body->inputs.n, l.body->outputs.n, n_in, fixed);
  l.n_emits = l.body->outputs.n - fixed;
  if (c->n_outputs > states + l.n_emits)
    onnx_fail(c, TN_ERR_FORMAT, "it has %zu outputs, where its body gives %zu", c->n_outputs,
              states + l.n_emits);
  l.inits = values(&l, states);
  l.in = values(&l, n_in);
  l.out = values(&l, l.body->outputs.n);
  return l;
}

/** `first_in`: index of the first state among the inputs of the body. */
static void open_states(loop *l, const node *steps, size_t first_in) {
  l->range = onnx_loop_range(l->c, steps);
  for (size_t i = 0; i < l->n_states; i++) {
    l->inits[i] = onnx_input(l->c, l->first + i);
    l->in[first_in + i] = build_loop_state(l->b, l->range, i, l->inits[i]);
  }
}

/** Fails if a state changes its shape or type between trips. */
static void check_states(const loop *l, const value steps[]) {
  for (size_t i = 0; i < l->n_states; i++) {
    sizes before = sizes_of(l->inits[i].node), after = sizes_of(steps[i].node);
    if (!sizes_equal(&before, &after))
      onnx_fail(
          l->c, TN_ERR_UNSUPPORTED,
          "its state '%.100s' has shape %s, and becomes %s, which has to be the same: take an "
          "output with an entry for each step, or a state of the full size that is scattered into",
          l->c->node->inputs.at[l->first + i], sizes_text(l->b, &before), sizes_text(l->b, &after));
  }
}

/** Sets the outputs that the node names. */
static void set_outputs(const loop *l, const value results[]) {
  for (size_t i = 0; i < l->c->n_outputs; i++) l->c->outputs[i] = results[i];
}

/* ---- Scan ---- */

/** Entry i of an optional list attribute; default 0. */
static int64_t list_entry(const loop *l, const char *name, size_t i, size_t n) {
  const onnx_ints *list = onnx_ints_attribute(l->c, name);
  if (!list) return 0;
  if (list->n != n)
    onnx_fail(l->c, TN_ERR_FORMAT, "%s has %zu entries, where %zu belong", name, list->n, n);
  return list->at[i];
}

static bool is_reversed(const loop *l, const char *name, size_t i, size_t n) {
  int64_t way = list_entry(l, name, i, n);
  if (way < 0 || way > 1)
    onnx_fail(l->c, TN_ERR_FORMAT, "%s is %lld, neither 0 nor 1", name, (long long)way);
  return way;
}

/** Moves an axis. */
static value move_axis(const loop *l, value x, size_t from, size_t to) {
  tn_axes axes = {.count = (int32_t)x.node->rank};
  if (from == to) return x;
  for (size_t i = 0, next = 0; i < x.node->rank; i++) {
    next += next == from;
    axes.axis[i] = (int32_t)(i == to ? from : next++);
  }
  return build_permute(l->b, x, axes);
}

static value read_scan_input(const loop *l, size_t i, size_t n) {
  value x = onnx_input(l->c, l->c->n_inputs - n + i);
  return move_axis(
      l, x, onnx_normalise_axis(l->c, list_entry(l, "scan_input_axes", i, n), x.node->rank), 0);
}

/** The trip count: the size of the scanned axis, equal for all scan inputs. */
static const node *scan_steps(const loop *l, size_t n) {
  const node *steps = NULL;
  for (size_t i = 0; i < n; i++) {
    const node *size = read_scan_input(l, i, n).node->dims[0];
    if (steps && steps != size)
      onnx_fail(l->c, TN_ERR_SHAPE, "inputs of %s and of %s entries cannot be scanned together",
                size_text(l->b, steps), size_text(l->b, size));
    steps = size;
  }
  return steps;
}

static const node *const *scan_places(const loop *l) {
  const node **places = arena_alloc(l->b->arena, (l->n_emits + 1) * sizeof *places);
  for (size_t i = 0; i < l->n_emits; i++)
    places[i] =
        build_loop_index(l->b, l->range, is_reversed(l, "scan_output_directions", i, l->n_emits));
  return places;
}

void onnx_Scan(onnx_call *c) {
  int64_t n = onnx_int_attribute(c, "num_scan_inputs", 0);
  if (n < 1 || (uint64_t)n > c->n_inputs)
    onnx_fail(c, TN_ERR_FORMAT, "num_scan_inputs is %lld, where there are %zu inputs", (long long)n,
              c->n_inputs);
  size_t n_scanned = (size_t)n;
  loop l = open_loop(c, 0, c->n_inputs - n_scanned, n_scanned, 0);
  open_states(&l, scan_steps(&l, n_scanned), 0);
  for (size_t i = 0; i < n_scanned; i++) {
    bool back = is_reversed(&l, "scan_input_directions", i, n_scanned);
    const node *index = build_loop_index(l.b, l.range, back);
    l.in[l.n_states + i] = build_loop_entry(l.b, read_scan_input(&l, i, n_scanned), index);
  }
  onnx_import_loop_body(c, l.body, l.in, l.out);
  check_states(&l, l.out);
  value *results = values(&l, l.n_states + l.n_emits);
  build_loop(l.b, l.range, l.inits, l.out, l.n_states, l.out + l.n_states, scan_places(&l),
             l.n_emits, results);
  for (size_t i = 0; i < l.n_emits; i++) {
    value *x = &results[l.n_states + i];
    int64_t axis = list_entry(&l, "scan_output_axes", i, l.n_emits);
    *x = move_axis(&l, *x, 0, onnx_normalise_axis(c, axis, x->node->rank));
  }
  set_outputs(&l, results);
}

/* ---- Loop ---- */

static value bool_constant(const loop *l, bool is_true) {
  return value_of(ir_const_bits(l->b->ir, DT_BOOL, is_true));
}

/** Reshapes a condition of one element to a scalar. */
static value condition(const loop *l, value v) {
  if (v.node->dtype != DT_BOOL)
    onnx_fail(l->c, TN_ERR_DTYPE, "a condition is %s, not bool", dtype_name((dtype)v.node->dtype));
  return v.node->rank ? build_reshape(l->b, v, &(sizes){0}) : v;
}

/** The most trips; raises if it is unknown before the model runs. */
static const node *loop_steps(const loop *l, value begins) {
  ir *g = l->b->ir;
  size_t n;
  if (node_is_bits(begins.node, 0)) return ix_const(g, 0);
  if (!onnx_has_input(l->c, 0))
    onnx_fail(l->c, TN_ERR_UNSUPPORTED,
              "nothing says how often it runs at most: give it a trip count that is an initializer "
              "or a size");
  const node *const *most = onnx_shape_elements(l->c, 0, &n);
  if (n != 1) onnx_fail(l->c, TN_ERR_SHAPE, "its number of steps is no scalar");
  return ix_max(g, most[0], ix_const(g, 0));
}

/** Builds a loop with a condition: an extra state holds it, and trips after its end keep all
 * states. */
static void build_while(loop *l, value begins, value goes_on, const value steps[],
                        value results[]) {
  builder *b = l->b;
  size_t n = l->n_states;
  if (l->n_emits)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED,
              "a condition ends it, so how many entries its outputs have depends on data: keep a "
              "state of the largest size in their place");
  if (range_extent(l->range)->hi > MOST_BLIND_STEPS)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED,
              "a condition ends it, and it may run more than %d times; give a smaller bound",
              MOST_BLIND_STEPS);
  value *inits = values(l, n + 1), *next = values(l, n + 1);
  inits[n] = begins;
  value runs = build_loop_state(b, l->range, n, begins);
  for (size_t i = 0; i < n; i++) {
    inits[i] = l->inits[i];
    next[i] = build_where(b, runs, steps[i], build_loop_state(b, l->range, i, inits[i]));
  }
  next[n] = build_logical_and(b, runs, condition(l, goes_on));
  build_loop(b, l->range, inits, next, n + 1, NULL, NULL, 0, results);
}

void onnx_Loop(onnx_call *c) {
  loop l = open_loop(c, 2, c->n_inputs - 2, 2, 1);
  value begins = onnx_has_input(c, 1) ? condition(&l, onnx_input(c, 1)) : bool_constant(&l, true);
  open_states(&l, loop_steps(&l, begins), 2);
  const node *index = build_loop_index(l.b, l.range, false);
  l.in[0] = value_of(ir_cast(l.b->ir, index, DT_I64));
  l.in[1] = bool_constant(&l, true); /* in every step that is run */
  onnx_import_loop_body(c, l.body, l.in, l.out);
  const value *steps = l.out + 1;
  check_states(&l, steps);
  value *results = values(&l, l.n_states + l.n_emits + 1);
  const node **places = arena_alloc(l.b->arena, (l.n_emits + 1) * sizeof *places);
  for (size_t i = 0; i < l.n_emits; i++) places[i] = index;
  bool ends_early = !node_is_bits(begins.node, 1) || !node_is_bits(l.out[0].node, 1);
  if (ends_early && !node_is_bits(range_extent(l.range), 0))
    build_while(&l, begins, l.out[0], steps, results);
  else
    build_loop(l.b, l.range, l.inits, steps, l.n_states, steps + l.n_states, places, l.n_emits,
               results);
  set_outputs(&l, results);
}
