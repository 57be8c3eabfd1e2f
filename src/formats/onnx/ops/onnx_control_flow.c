/* ONNX If: the branch that its condition takes is imported in its place, or, where the condition is
   known only when the model runs, both are, and each output is a PICK between theirs; a select
   where the steps of a loop compute the condition.

   ONNX Scan and Loop: the body graph is imported once, over a loop range; loop-carried values
   become loop states, scan outputs emitted values. A condition becomes a state that ends the loop.
   Where that fails, as for a state whose shape changes, the host runs the body (onnx_host_loop.h).
 */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_host_loop.h"
#include "formats/onnx/ops/onnx_unrolled_loop.h"
#include "ir/core/binder.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

/** A Loop or Scan node: its outputs are the final states, then the scan outputs. */
typedef struct loop {
  onnx_call *c;
  builder *b;
  const onnx_graph *body;
  size_t n_states, n_scan_outputs;
  size_t first_state; /* index of the first state among the node's inputs */
  const node *range;
  value *inits;    /* initial states */
  value *in, *out; /* of the body */
} loop;

static value *alloc_values(const loop *l, size_t n) {
  return arena_calloc(l->b->arena, n + 1, sizeof(value));
}

/** Reads a node's body and checks its signature. `extra_in`: inputs of the body that are not
   states; `extra_out`: outputs that are neither states nor scan outputs. */
static loop open_loop(onnx_call *c, size_t first_state, size_t states, size_t extra_in,
                      size_t extra_out) {
  loop l = {.c = c, .b = onnx_builder(c), .n_states = states, .first_state = first_state};
  l.body = onnx_graph_attribute(c, "body");
  size_t n_in = states + extra_in, fixed = states + extra_out;
  if (l.body->inputs.n != n_in || l.body->outputs.n < fixed)
    onnx_fail(
        c, TN_ERR_FORMAT,
        "the body has %zu inputs and %zu outputs, expected %zu inputs and at least %zu outputs",
        l.body->inputs.n, l.body->outputs.n, n_in, fixed);
  l.n_scan_outputs = l.body->outputs.n - fixed;
  if (c->n_outputs > states + l.n_scan_outputs)
    onnx_fail(c, TN_ERR_FORMAT, "the node has %zu outputs, but its body computes %zu", c->n_outputs,
              states + l.n_scan_outputs);
  l.inits = alloc_values(&l, states);
  l.in = alloc_values(&l, n_in);
  l.out = alloc_values(&l, l.body->outputs.n);
  return l;
}

/** Creates the range and the states. `first_in`: index of the first state among the body's inputs.
 */
static void open_states(loop *l, const node *trip_count, size_t first_in) {
  l->range = onnx_loop_range(l->c, trip_count);
  for (size_t i = 0; i < l->n_states; i++) {
    l->inits[i] = onnx_input(l->c, l->first_state + i);
    l->in[first_in + i] = build_loop_state(l->b, l->range, i, l->inits[i]);
  }
}

/** Raises if an iteration changes the shape of a state. */
static void check_states(const loop *l, const value next[]) {
  for (size_t i = 0; i < l->n_states; i++) {
    sizes before = sizes_of(l->inits[i].node), after = sizes_of(next[i].node);
    if (!sizes_equal(&before, &after))
      onnx_fail(l->c, TN_ERR_UNSUPPORTED,
                "state '%.100s' has shape %s, but becomes %s; use a scan output (an entry for each "
                "step), "
                "or scatter into a state of the full size",
                l->c->node->inputs.at[l->first_state + i], sizes_text(l->b, &before),
                sizes_text(l->b, &after));
  }
}

static void set_outputs(const loop *l, const value results[]) {
  for (size_t i = 0; i < l->c->n_outputs; i++) l->c->outputs[i] = results[i];
}

/* Scan. */

/** Entry i of an optional list attribute of n entries; 0 if it is absent. */
static int64_t list_entry(const loop *l, const char *name, size_t i, size_t n) {
  const onnx_ints *list = onnx_ints_attribute(l->c, name);
  if (!list) return 0;
  if (list->n != n)
    onnx_fail(l->c, TN_ERR_FORMAT, "attribute '%s' has %zu entries, expected %zu", name, list->n,
              n);
  return list->at[i];
}

static bool is_reversed(const loop *l, const char *name, size_t i, size_t n) {
  int64_t direction = list_entry(l, name, i, n);
  if (direction < 0 || direction > 1)
    onnx_fail(l->c, TN_ERR_FORMAT, "%s is %lld, not 0 or 1", name, (long long)direction);
  return direction;
}

static value move_axis(const loop *l, value x, size_t from, size_t to) {
  tn_axes axes = {.count = (int32_t)x.node->rank};
  if (from == to) return x;
  for (size_t i = 0, next = 0; i < x.node->rank; i++) {
    next += next == from;
    axes.axis[i] = (int32_t)(i == to ? from : next++);
  }
  return build_permute(l->b, x, axes);
}

/** Scan input i of n, with the scanned axis first. */
static value read_scan_input(const loop *l, size_t i, size_t n) {
  value x = onnx_input(l->c, l->c->n_inputs - n + i);
  return move_axis(
      l, x, onnx_normalise_axis(l->c, list_entry(l, "scan_input_axes", i, n), x.node->rank), 0);
}

/** The trip count: the size of the scanned axis, equal for all scan inputs. */
static const node *scan_trip_count(const loop *l, size_t n) {
  const node *trip_count = NULL;
  for (size_t i = 0; i < n; i++) {
    const node *size = read_scan_input(l, i, n).node->dims[0];
    if (trip_count && trip_count != size)
      onnx_fail(l->c, TN_ERR_SHAPE, "scan inputs have different numbers of entries, %s and %s",
                size_text(l->b, trip_count), size_text(l->b, size));
    trip_count = size;
  }
  return trip_count;
}

/** For each scan output the entry that an iteration writes. */
static const node *const *scan_output_indices(const loop *l) {
  const node **indices = arena_alloc(l->b->arena, (l->n_scan_outputs + 1) * sizeof *indices);
  for (size_t i = 0; i < l->n_scan_outputs; i++) {
    bool backward = is_reversed(l, "scan_output_directions", i, l->n_scan_outputs);
    indices[i] = build_loop_index(l->b, l->range, backward);
  }
  return indices;
}

/** The states after a step; those of a sequence that has ended stay. `at`: the entry of the batch.
 */
static void keep_ended(const loop *l, const node *at, const node *step) {
  builder *b = l->b;
  if (!onnx_has_input(l->c, 0)) return;
  value length = build_loop_entry(b, onnx_input(l->c, 0), at);
  value is_running = build_lt(b, value_of(ir_cast(b->ir, step, DT_I64)), length);
  for (size_t i = 0; i < l->n_states; i++)
    l->out[i] = build_where(b, is_running, l->out[i], l->in[i]);
}

/** A scan input or state of version 8, which has at least `least` axes, the batch first. */
static value batched_input(const loop *l, size_t i, size_t least, const node **batch) {
  value x = onnx_input(l->c, i);
  if (x.node->rank < least || (*batch && x.node->dims[0] != *batch))
    onnx_fail(l->c, TN_ERR_SHAPE, "input '%.200s' has no axis 0 for the batch of size %s",
              l->c->node->inputs.at[i], *batch ? size_text(l->b, *batch) : "of others");
  *batch = x.node->dims[0];
  return x;
}

/** The trip count of version 8: axis 1 of all scan inputs. */
static const node *batched_trip_count(const loop *l, size_t n, const node **batch) {
  const node *trips = NULL;
  for (size_t i = 0; i < n; i++) {
    const node *size = batched_input(l, l->c->n_inputs - n + i, 2, batch).node->dims[1];
    if (trips && trips != size)
      onnx_fail(l->c, TN_ERR_SHAPE, "scan inputs have different numbers of entries, %s and %s",
                size_text(l->b, trips), size_text(l->b, size));
    trips = size;
  }
  return trips;
}

/** The states and entries that a step of one entry of the batch gets. */
static void open_batched_steps(loop *l, size_t n, const node *at, const node **batch) {
  builder *b = l->b;
  bool has_lengths = onnx_has_input(l->c, 0);
  for (size_t i = 0; i < l->n_states; i++) {
    l->inits[i] = build_loop_entry(b, batched_input(l, 1 + i, 1, batch), at);
    l->in[i] = build_loop_state(b, l->range, i, l->inits[i]);
  }
  for (size_t i = 0; i < n; i++) {
    bool backward = is_reversed(l, "directions", i, n);
    if (backward && has_lengths)
      onnx_fail(l->c, TN_ERR_UNSUPPORTED, "a Scan with sequence lengths cannot run backward");
    value x = build_loop_entry(b, batched_input(l, l->c->n_inputs - n + i, 2, batch), at);
    l->in[l->n_states + i] = build_loop_entry(b, x, build_loop_index(b, l->range, backward));
  }
}

/** Scan of version 8: for each entry of a batch, axis 0 of all inputs, a scan of axis 1. Its first
    input is the lengths of the sequences; what it writes behind their ends is not defined. */
static void scan_batch(onnx_call *c, size_t n) {
  const node *batch = NULL;
  if (n >= c->n_inputs)
    onnx_fail(c, TN_ERR_FORMAT, "num_scan_inputs is %zu, of %zu inputs behind the first", n,
              c->n_inputs - 1);
  loop l = open_loop(c, 1, c->n_inputs - 1 - n, n, 0);
  const node *trips = batched_trip_count(&l, n, &batch);
  if (onnx_has_input(c, 0)) batched_input(&l, 0, 1, &batch);
  const node *outer = onnx_loop_range(c, batch), *at = build_loop_index(l.b, outer, false);
  l.range = onnx_loop_range(c, trips);
  const node *step = build_loop_index(l.b, l.range, false);
  open_batched_steps(&l, n, at, &batch);
  onnx_import_body(c, l.body, l.in, l.out);
  check_states(&l, l.out);
  keep_ended(&l, at, step);
  size_t all = l.n_states + l.n_scan_outputs;
  value *of_entry = alloc_values(&l, all), *results = alloc_values(&l, all);
  const node **steps = arena_alloc(l.b->arena, (all + 1) * sizeof *steps);
  const node **entries = arena_alloc(l.b->arena, (all + 1) * sizeof *entries);
  for (size_t i = 0; i < all; i++) steps[i] = step, entries[i] = at;
  build_loop(l.b, l.range, l.inits, l.out, l.n_states, l.out + l.n_states, steps, l.n_scan_outputs,
             of_entry);
  build_loop(l.b, outer, NULL, NULL, 0, of_entry, entries, all, results);
  set_outputs(&l, results);
}

/** The results of a Scan, whose scan outputs have the axis of their entries first. */
static void set_scan_outputs(const loop *l, value results[]) {
  for (size_t i = 0; i < l->n_scan_outputs; i++) {
    value *x = &results[l->n_states + i];
    int64_t axis = list_entry(l, "scan_output_axes", i, l->n_scan_outputs);
    if (x->node) *x = move_axis(l, *x, 0, onnx_normalise_axis(l->c, axis, x->node->rank));
  }
  set_outputs(l, results);
}

static size_t count_scan_inputs(onnx_call *c) {
  int64_t n = onnx_int_attribute(c, "num_scan_inputs", 0);
  if (n < 1 || (uint64_t)n > c->n_inputs)
    onnx_fail(c, TN_ERR_FORMAT, "num_scan_inputs is %lld, not in 1 … %zu, the number of inputs",
              (long long)n, c->n_inputs);
  return (size_t)n;
}

static void scan_in_plan(onnx_call *c) {
  size_t n_scan_inputs = count_scan_inputs(c);
  loop l = open_loop(c, 0, c->n_inputs - n_scan_inputs, n_scan_inputs, 0);
  open_states(&l, scan_trip_count(&l, n_scan_inputs), 0);
  for (size_t i = 0; i < n_scan_inputs; i++) {
    bool backward = is_reversed(&l, "scan_input_directions", i, n_scan_inputs);
    const node *index = build_loop_index(l.b, l.range, backward);
    l.in[l.n_states + i] = build_loop_entry(l.b, read_scan_input(&l, i, n_scan_inputs), index);
  }
  onnx_import_body(c, l.body, l.in, l.out);
  check_states(&l, l.out);
  value *results = alloc_values(&l, l.n_states + l.n_scan_outputs);
  build_loop(l.b, l.range, l.inits, l.out, l.n_states, l.out + l.n_states, scan_output_indices(&l),
             l.n_scan_outputs, results);
  set_scan_outputs(&l, results);
}

static bool *directions(const loop *l, const char *name, size_t n) {
  bool *backward = arena_calloc(l->b->arena, n + 1, sizeof *backward);
  for (size_t i = 0; i < n; i++) backward[i] = is_reversed(l, name, i, n);
  return backward;
}

static void scan_on_host(onnx_call *c, const char *why) {
  size_t n = count_scan_inputs(c);
  loop l = open_loop(c, 0, c->n_inputs - n, n, 0);
  value *scanned = alloc_values(&l, n), *results = alloc_values(&l, l.n_states + l.n_scan_outputs);
  scan_trip_count(&l, n);
  for (size_t i = 0; i < n; i++) scanned[i] = read_scan_input(&l, i, n);
  const onnx_loop_form form = {.body = l.body,
                               .is_scan = true,
                               .n_states = l.n_states,
                               .scanned = scanned,
                               .n_scanned = n,
                               .n_entries = l.n_scan_outputs,
                               .reads_backward = directions(&l, "scan_input_directions", n),
                               .writes_backward =
                                   directions(&l, "scan_output_directions", l.n_scan_outputs),
                               .why = why};
  onnx_host_loop(c, &form, results);
  set_scan_outputs(&l, results);
}

void onnx_Scan(onnx_call *c) {
  if (c->version == 8) {
    scan_batch(c, count_scan_inputs(c));
    return;
  }
  const char *why = onnx_try_in_plan(c, scan_in_plan);
  if (why) scan_on_host(c, why);
}

/* Loop. */

static value bool_constant(const loop *l, bool is_true) {
  return value_of(ir_const_bits(l->b->ir, DT_BOOL, is_true));
}

/** Reshapes a condition of one element to a scalar. */
static value scalar_condition(const loop *l, value v) {
  if (v.node->dtype != DT_BOOL)
    onnx_fail(l->c, TN_ERR_DTYPE, "the condition is %s, expected bool",
              dtype_name((dtype)v.node->dtype));
  return v.node->rank ? build_reshape(l->b, v, &(sizes){0}) : v;
}

/** The maximal trip count; without one, any number, where the condition ends the loop and no scan
    output needs one. */
static const node *max_trip_count(const loop *l, value initial_condition) {
  ir *g = l->b->ir;
  size_t n;
  bool is_assumed = l->c->m->assumes_trips;
  l->c->m->assumes_trips = false; /* loops in the body have their own */
  if (is_assumed) return ix_const(g, 2);
  if (node_is_bits(initial_condition.node, 0)) return ix_const(g, 0);
  if (!onnx_has_input(l->c, 0)) {
    if (l->n_scan_outputs)
      onnx_fail(l->c, TN_ERR_UNSUPPORTED, "scan outputs grow without a maximal trip count");
    return ix_const(g, LOOP_MAX_STEPS);
  }
  const node *const *count = onnx_shape_elements(l->c, 0, &n);
  if (n != 1) onnx_fail(l->c, TN_ERR_SHAPE, "the trip count must be a scalar");
  if (l->n_scan_outputs && count[0]->lo > ONNX_SIZE_MAX)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED, "a plan has no memory for scan outputs of %lld steps",
              (long long)count[0]->lo);
  return ix_max(g, count[0], ix_const(g, 0));
}

/** Builds a loop that a condition ends: one more state holds its opposite. */
static void build_conditional_loop(loop *l, value initial_condition, value next_condition,
                                   const value next_states[], const node *const indices[],
                                   value results[]) {
  builder *b = l->b;
  size_t n = l->n_states, m = l->n_scan_outputs;
  value *inits = alloc_values(l, n + 1), *next = alloc_values(l, n + m + 1);
  value *all = alloc_values(l, n + m + 1);
  for (size_t i = 0; i < n; i++) inits[i] = l->inits[i], next[i] = next_states[i];
  inits[n] = build_logical_not(b, initial_condition);
  next[n] = build_logical_not(b, scalar_condition(l, next_condition));
  build_loop_until(b, l->range, inits, next, n + 1, n, next_states + n, indices, m, all);
  for (size_t i = 0; i < n + m; i++) results[i] = all[i < n ? i : i + 1];
}

static void loop_in_plan(onnx_call *c) {
  loop l = open_loop(c, 2, c->n_inputs - 2, 2, 1);
  value initial_condition =
      onnx_has_input(c, 1) ? scalar_condition(&l, onnx_input(c, 1)) : bool_constant(&l, true);
  open_states(&l, max_trip_count(&l, initial_condition), 2);
  const node *index = build_loop_index(l.b, l.range, false);
  l.in[0] = value_of(ir_cast(l.b->ir, index, DT_I64));
  l.in[1] = bool_constant(&l, true); /* the condition holds in every iteration that counts */
  onnx_import_body(c, l.body, l.in, l.out);
  const value *next_states = l.out + 1;
  check_states(&l, next_states);
  value *results = alloc_values(&l, l.n_states + l.n_scan_outputs + 1);
  const node **indices = arena_alloc(l.b->arena, (l.n_scan_outputs + 1) * sizeof *indices);
  for (size_t i = 0; i < l.n_scan_outputs; i++) indices[i] = index;
  bool ends_early = !node_is_bits(initial_condition.node, 1) || !node_is_bits(l.out[0].node, 1);
  if (!ends_early && !onnx_has_input(c, 0))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "neither a trip count nor a condition ends the loop");
  if (ends_early && !node_is_bits(range_extent(l.range), 0))
    build_conditional_loop(&l, initial_condition, l.out[0], next_states, indices, results);
  else
    build_loop(l.b, l.range, l.inits, next_states, l.n_states, next_states + l.n_states, indices,
               l.n_scan_outputs, results);
  set_outputs(&l, results);
}

static void loop_on_host(onnx_call *c, const char *why) {
  loop l = open_loop(c, 2, c->n_inputs - 2, 2, 1);
  value *results = alloc_values(&l, l.n_states + l.n_scan_outputs);
  const onnx_loop_form form = {.body = l.body,
                               .first_state = 2,
                               .n_states = l.n_states,
                               .n_entries = l.n_scan_outputs,
                               .why = why};
  onnx_host_loop(c, &form, results);
  set_outputs(&l, results);
}

void onnx_Loop(onnx_call *c) {
  if (onnx_has_sequence_state(c)) {
    onnx_unroll_loop(c);
    return;
  }
  const char *why = onnx_try_in_plan(c, loop_in_plan);
  if (why) loop_on_host(c, why);
}

/* If. */

static void import_branch(onnx_call *c, const char *name, value out[]) {
  const onnx_graph *g = onnx_graph_attribute(c, name);
  if (g->inputs.n || g->outputs.n != c->n_outputs)
    onnx_fail(c, TN_ERR_FORMAT,
              "%s has %zu inputs and %zu outputs, expected none and %zu, those of the node", name,
              g->inputs.n, g->outputs.n, c->n_outputs);
  onnx_import_branch(c, g, NULL, out);
}

static value *alloc_outputs(onnx_call *c) {
  return arena_calloc(onnx_builder(c)->arena, c->n_outputs + 1, sizeof(value));
}

/** The tensor of a branch's output, which a run may not take. */
static const node *branch_tensor(onnx_call *c, value v, size_t i) {
  if (!v.node || importer_find_sequence(c->m, v))
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "output %zu is a sequence or an optional, and the condition is known only when the "
              "model runs; " ONNX_STATIC_HINT,
              i);
  return v.node;
}

/** Chooses between the results of both branches in each step of a loop. */
static const node *selected(onnx_call *c, const node *x, const node *y) {
  builder *b = onnx_builder(c);
  sizes of_x = sizes_of(x), of_y = sizes_of(y);
  if (!sizes_equal(&of_x, &of_y))
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "a result has shape %s in one branch and %s in the other, and the condition changes "
              "from step to step of a loop: sizes must be equal then",
              sizes_text(b, &of_x), sizes_text(b, &of_y));
  return build_where(b, onnx_scalar_input(c, 0), value_of(x), value_of(y)).node;
}

/** Imports both branches, of which a run computes one; in a loop whose steps compute the condition
    (NULL), it computes both. */
static void import_both(onnx_call *c, const node *condition) {
  builder *b = onnx_builder(c);
  value *yes = alloc_outputs(c), *no = alloc_outputs(c);
  import_branch(c, "then_branch", yes);
  import_branch(c, "else_branch", no);
  for (size_t i = 0; i < c->n_outputs; i++) {
    const node *x = branch_tensor(c, yes[i], i), *y = branch_tensor(c, no[i], i);
    sizes of_x = sizes_of(x), of_y = sizes_of(y);
    if (x->dtype != y->dtype)
      onnx_fail(c, TN_ERR_DTYPE,
                "output '%.200s' is %s in the then_branch and %s in the else_branch",
                c->node->outputs.at[i], dtype_name((dtype)x->dtype), dtype_name((dtype)y->dtype));
    if (x->rank != y->rank)
      onnx_fail(
          c, TN_ERR_SHAPE,
          "output '%.200s' has shape %s in the then_branch and %s in the else_branch, and the "
          "condition is known only when the model runs",
          c->node->outputs.at[i], sizes_text(b, &of_x), sizes_text(b, &of_y));
    c->outputs[i] = value_of(condition ? ir_pick(b->ir, condition, x, y) : selected(c, x, y));
  }
}

/** An If of which both branches are imported. */
typedef struct open_branches {
  onnx_call *c;
  const node *condition;
} open_branches;

static void import_open(void *arg) {
  const open_branches *j = arg;
  import_both(j->c, j->condition);
}

/** Imports both branches; of a failure the sizes are to blame if they alone decide on the branch.
    A branch that a run does not take bounds no sizes of inputs, where operators can do without. */
static void import_either(onnx_call *c, const node *condition) {
  builder *b = onnx_builder(c);
  open_branches j = {c, condition};
  bool was_in_branch = b->is_in_branch;
  b->is_in_branch |= condition != NULL;
  tn_status s = diag_catch(b->diag, import_open, &j);
  b->is_in_branch = was_in_branch;
  if (s == TN_OK) return;
  onnx_blame_sizes_of_input(c, 0);
  diag_rethrow(b->diag);
}

void onnx_If(onnx_call *c) {
  const node *condition = onnx_condition(c, 0);
  if (condition && node_is_const(condition))
    import_branch(c, node_int(condition) ? "then_branch" : "else_branch", c->outputs);
  else
    import_either(c, condition);
}
