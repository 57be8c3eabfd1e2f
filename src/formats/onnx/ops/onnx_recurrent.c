/* ONNX RNN, GRU and LSTM: a loop over time steps for each direction. The product of inputs and
   input weights is computed for all steps at once, before the loop; the loop adds the recurrent
   product. The hidden size must be constant; steps and batch may vary. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

enum { MAX_FUNCTIONS = 3, MAX_STATES = 2 };

/* Activation functions. */

static value affine(builder *b, value x, double alpha, double beta) {
  return build_add(b, build_mul(b, x, build_num(b, alpha)), build_num(b, beta));
}

static value leaky_relu(builder *b, value x, double alpha, double beta) {
  (void)beta;
  return build_leaky_relu(b, x, alpha);
}

static value thresholded_relu(builder *b, value x, double alpha, double beta) {
  (void)beta;
  return build_where(b, build_ge(b, x, build_num(b, alpha)), x, build_num(b, 0));
}

static value scaled_tanh(builder *b, value x, double alpha, double beta) {
  return build_mul(b, build_tanh(b, build_mul(b, x, build_num(b, beta))), build_num(b, alpha));
}

static value hard_sigmoid(builder *b, value x, double alpha, double beta) {
  return build_clip(b, affine(b, x, alpha, beta), build_num(b, 0), build_num(b, 1));
}

static value elu(builder *b, value x, double alpha, double beta) {
  (void)beta;
  return build_elu(b, x, alpha);
}

typedef struct activation {
  const char *name;
  value (*build)(builder *b, value x); /* NULL: the function has parameters */
  value (*build_with)(builder *b, value x, double alpha, double beta);
  int n_parameters;   /* 1: alpha; 2: alpha and beta */
  double alpha, beta; /* defaults of the operator of that name */
} activation;

static const activation activations[] = {
    {"Tanh", build_tanh, NULL, 0, 0, 0},
    {"Sigmoid", build_sigmoid, NULL, 0, 0, 0},
    {"Relu", build_relu, NULL, 0, 0, 0},
    {"Softsign", build_softsign, NULL, 0, 0, 0},
    {"Softplus", build_softplus, NULL, 0, 0, 0},
    {"Affine", NULL, affine, 2, 1, 0},
    {"LeakyRelu", NULL, leaky_relu, 1, 0.01, 0},
    {"ThresholdedRelu", NULL, thresholded_relu, 1, 1, 0},
    {"ScaledTanh", NULL, scaled_tanh, 2, 1, 1},
    {"HardSigmoid", NULL, hard_sigmoid, 2, 0.2, 0.5},
    {"Elu", NULL, elu, 1, 1, 0},
};

static activation find_activation(const onnx_call *c, const char *name) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
    if (!strcmp(name, activations[i].name)) return activations[i];
  onnx_fail(c, TN_ERR_FORMAT, "unknown activation function '%.50s'", name);
}

/* Operands and attributes of a layer. */

/** A layer of one or two directions. Values have the accumulation type. */
typedef struct layer {
  onnx_call *c;
  builder *b;
  size_t gates, functions; /* of a cell */
  int64_t directions, hidden;
  const node *steps, *batch; /* sizes */
  bool batch_first;
  value x;       /* (steps, batch, inputs) */
  value lengths; /* (batch, 1); no node: all sequences have `steps` steps */
  double clip;   /* 0: none */
  activation function[2 * MAX_FUNCTIONS];
} layer;

/** The weights of a layer in one direction. */
typedef struct cell {
  const layer *l;
  value recurrent;   /* (hidden, gates · hidden) */
  value bias;        /* (gates · hidden) of the recurrence, or no node */
  value peephole[3]; /* (hidden), or no node */
  const activation *function;
} cell;

typedef struct state {
  value h, c; /* (batch, hidden); c of an LSTM only */
} state;

typedef state (*step_fn)(const cell *k, value in, state s);

static void check_shape(const layer *l, size_t input, size_t rank, const node *const dims[]) {
  sizes s = sizes_of(onnx_input(l->c, input).node), expected = {.rank = rank};
  for (size_t i = 0; i < rank; i++) expected.at[i] = dims[i];
  if (!sizes_equal(&s, &expected))
    onnx_fail(l->c, TN_ERR_SHAPE, "input '%.100s' has shape %s, expected %s",
              l->c->node->inputs.at[input], sizes_text(l->b, &s), sizes_text(l->b, &expected));
}

/** Reads an input, cast to the accumulation type. */
static value wide_input(const layer *l, size_t input) {
  value v = onnx_input(l->c, input);
  return build_cast(l->b, v, accumulation_type((dtype)v.node->dtype));
}

static value slice_axis(const layer *l, value x, int64_t axis, int64_t start, int64_t size) {
  builder *b = l->b;
  return build_slice(b, x, axis, ix_const(b->ir, start), ix_const(b->ir, start + size), 1);
}

/** Selects entry i of the first axis and removes the axis. */
static value select_entry(const layer *l, value x, int64_t i) {
  return build_squeeze(l->b, slice_axis(l, x, 0, i, 1), (tn_axes){.count = 1, .axis = {0}});
}

/** Swaps the first two axes if attribute layout puts the batch first. */
static value swap_layout(const layer *l, value x) {
  return l->batch_first ? build_swapaxes(l->b, x, 0, 1) : x;
}

static void read_directions(layer *l) {
  const char *direction = onnx_string_attribute(l->c, "direction", "forward");
  bool is_bidirectional = !strcmp(direction, "bidirectional");
  if (!is_bidirectional && strcmp(direction, "forward") && strcmp(direction, "reverse"))
    onnx_fail(l->c, TN_ERR_FORMAT, "direction is '%.50s', not forward, reverse or bidirectional",
              direction);
  l->directions = is_bidirectional ? 2 : 1;
}

static bool is_reversed(const layer *l, int64_t direction) {
  return direction == 1 || !strcmp(onnx_string_attribute(l->c, "direction", "forward"), "reverse");
}

/** Reads the activation functions; each consumes the next alpha, and beta, if it has the parameter.
 */
static void read_functions(layer *l, const char *const defaults[]) {
  const onnx_attribute *names = onnx_find_attribute(l->c, "activations", ONNX_ATTRIBUTE_STRINGS);
  const onnx_attribute *alphas =
      onnx_find_attribute(l->c, "activation_alpha", ONNX_ATTRIBUTE_FLOATS);
  const onnx_attribute *betas = onnx_find_attribute(l->c, "activation_beta", ONNX_ATTRIBUTE_FLOATS);
  size_t n = l->functions * (size_t)l->directions, alpha = 0, beta = 0;
  if (names && names->strings.n != n)
    onnx_fail(l->c, TN_ERR_FORMAT, "attribute 'activations' has %zu elements, expected %zu",
              names->strings.n, n);
  for (size_t i = 0; i < n; i++) {
    activation f =
        find_activation(l->c, names ? names->strings.at[i].at : defaults[i % l->functions]);
    if (f.n_parameters > 0 && alphas && alpha < alphas->floats.n)
      f.alpha = (double)alphas->floats.at[alpha++];
    if (f.n_parameters > 1 && betas && beta < betas->floats.n)
      f.beta = (double)betas->floats.at[beta++];
    l->function[i] = f;
  }
}

static void check_weights(const layer *l) {
  ir *g = l->b->ir;
  const node *d = ix_const(g, l->directions), *h = ix_const(g, l->hidden);
  const node *rows = ix_scale(g, h, (int64_t)l->gates);
  check_shape(l, 1, 3, (const node *[]){d, rows, l->x.node->dims[2]});
  check_shape(l, 2, 3, (const node *[]){d, rows, h});
  if (onnx_has_input(l->c, 3)) check_shape(l, 3, 2, (const node *[]){d, ix_scale(g, rows, 2)});
  if (onnx_has_input(l->c, 4)) check_shape(l, 4, 1, (const node *[]){l->batch});
  for (size_t i = 5; i < 7; i++)
    if (onnx_has_input(l->c, i))
      check_shape(l, i, 3,
                  l->batch_first ? (const node *[]){l->batch, d, h}
                                 : (const node *[]){d, l->batch, h});
  if (onnx_has_input(l->c, 7)) check_shape(l, 7, 2, (const node *[]){d, ix_scale(g, h, 3)});
}

/** Raises unless all inputs but sequence_lens have the same floating-point type. */
static void check_types(const layer *l) {
  dtype t = (dtype)onnx_input(l->c, 0).node->dtype;
  if (!dtype_is_float(t))
    onnx_fail(l->c, TN_ERR_DTYPE, "X is %s, expected a floating-point type", dtype_name(t));
  for (size_t i = 1; i < l->c->n_inputs; i++)
    if (i != 4 && onnx_has_input(l->c, i) && l->c->inputs[i].node->dtype != t)
      onnx_fail(l->c, TN_ERR_DTYPE, "input '%.100s' is %s, but X is %s", l->c->node->inputs.at[i],
                dtype_name((dtype)l->c->inputs[i].node->dtype), dtype_name(t));
}

static void read_lengths(layer *l) {
  if (!onnx_has_input(l->c, 4)) return;
  value v = onnx_input(l->c, 4);
  l->lengths = build_unsqueeze(l->b, v, (tn_axes){.count = 1, .axis = {1}});
}

static layer read_layer(onnx_call *c, size_t gates, size_t functions,
                        const char *const defaults[]) {
  layer l = {.c = c, .b = onnx_builder(c), .gates = gates, .functions = functions};
  const node *x = onnx_input(c, 0).node, *r = onnx_input(c, 2).node;
  if (x->rank != 3 || r->rank != 3)
    onnx_fail(c, TN_ERR_SHAPE, "X and R have %u and %u dimensions, expected 3", x->rank, r->rank);
  l.batch_first = onnx_int_attribute(c, "layout", 0) != 0;
  l.x = swap_layout(&l, wide_input(&l, 0));
  l.batch = l.x.node->dims[1];
  l.steps = l.x.node->dims[0];
  if (!node_is_const(r->dims[2]))
    onnx_fail_varying_size(c, r->dims[2], "the hidden size, axis 2 of R, must be constant");
  l.hidden = node_int(r->dims[2]);
  l.clip = (double)onnx_float_attribute(c, "clip", 0);
  if (onnx_int_attribute(c, "hidden_size", l.hidden) != l.hidden)
    onnx_fail(c, TN_ERR_SHAPE, "hidden_size is %lld, but axis 2 of R has size %lld",
              (long long)onnx_int_attribute(c, "hidden_size", 0), (long long)l.hidden);
  read_directions(&l);
  read_functions(&l, defaults);
  check_types(&l);
  check_weights(&l);
  read_lengths(&l);
  return l;
}

/* One direction. */

static cell read_cell(const layer *l, int64_t direction) {
  cell k = {.l = l, .function = l->function + (size_t)direction * l->functions};
  int64_t rows = (int64_t)l->gates * l->hidden;
  k.recurrent = build_transpose(l->b, select_entry(l, wide_input(l, 2), direction));
  if (onnx_has_input(l->c, 3))
    k.bias = slice_axis(l, select_entry(l, wide_input(l, 3), direction), 0, rows, rows);
  for (int64_t i = 0; i < 3 && onnx_has_input(l->c, 7); i++)
    k.peephole[i] =
        slice_axis(l, select_entry(l, wide_input(l, 7), direction), 0, i * l->hidden, l->hidden);
  return k;
}

/** The product of all inputs and the input weights, plus bias: (steps, batch, gates · hidden). */
static value multiply_inputs(const layer *l, int64_t direction) {
  value w = build_transpose(l->b, select_entry(l, wide_input(l, 1), direction));
  value product = build_matmul(l->b, l->x, w);
  if (!onnx_has_input(l->c, 3)) return product;
  value bias = select_entry(l, wide_input(l, 3), direction);
  return build_add(l->b, product, slice_axis(l, bias, 0, 0, (int64_t)l->gates * l->hidden));
}

static value initial_state(const layer *l, size_t input, int64_t direction) {
  if (onnx_has_input(l->c, input))
    return select_entry(l, swap_layout(l, wide_input(l, input)), direction);
  sizes s = {.rank = 2, .at = {l->batch, ix_const(l->b->ir, l->hidden)}};
  return build_full(l->b, &s, (dtype)l->x.node->dtype, 0);
}

/** Replaces a value of sequences that have ended. */
static value replace_ended(const layer *l, value is_running, value next, value ended) {
  return next.node && l->lengths.node ? build_where(l->b, is_running, next, ended) : next;
}

/** Builds the loop of one direction and returns the last state. `y` (steps, batch, hidden): h after
    each step, 0 where the sequence has ended. */
static state run_direction(const layer *l, step_fn step, int64_t direction, value *y) {
  builder *b = l->b;
  cell k = read_cell(l, direction);
  size_t n = l->gates == 4 ? 2 : 1;
  value inits[MAX_STATES] = {initial_state(l, 5, direction)}, next_states[MAX_STATES],
        out[MAX_STATES + 1];
  if (n > 1) inits[1] = initial_state(l, 6, direction);
  const node *range = onnx_loop_range(l->c, l->steps);
  const node *index = build_loop_index(b, range, is_reversed(l, direction));
  state s = {.h = build_loop_state(b, range, 0, inits[0])};
  if (n > 1) s.c = build_loop_state(b, range, 1, inits[1]);
  state next = step(&k, build_loop_entry(b, multiply_inputs(l, direction), index), s);
  value is_running = {0};
  if (l->lengths.node)
    is_running = build_lt(b, value_of(ir_cast(b->ir, index, DT_I64)), l->lengths);
  value emitted = replace_ended(l, is_running, next.h, build_num(b, 0));
  next_states[0] = replace_ended(l, is_running, next.h, s.h);
  if (n > 1) next_states[1] = replace_ended(l, is_running, next.c, s.c);
  build_loop(b, range, inits, next_states, n, &emitted, &index, 1, out);
  *y = out[n];
  return (state){.h = out[0], .c = n > 1 ? out[1] : (value){0}};
}

/** Casts a result to the type of the inputs. */
static value cast_result(const layer *l, value v) {
  return build_cast(l->b, v, (dtype)onnx_input(l->c, 0).node->dtype);
}

/** Output Y: (steps, directions, batch, hidden), or (batch, steps, directions, hidden). */
static value stack_directions(const layer *l, const value y[]) {
  value v = build_stack(l->b, y, (size_t)l->directions, 1);
  if (l->batch_first) v = build_permute(l->b, v, (tn_axes){.count = 4, .axis = {2, 0, 1, 3}});
  return cast_result(l, v);
}

static void run_layer(const layer *l, step_fn step) {
  value y[2], h[2], c[2];
  for (int64_t d = 0; d < l->directions; d++) {
    state last = run_direction(l, step, d, &y[d]);
    h[d] = last.h;
    c[d] = last.c;
  }
  l->c->outputs[0] = stack_directions(l, y);
  size_t n = (size_t)l->directions;
  if (l->c->n_outputs > 1)
    l->c->outputs[1] = cast_result(l, swap_layout(l, build_stack(l->b, h, n, 0)));
  if (l->c->n_outputs > 2)
    l->c->outputs[2] = cast_result(l, swap_layout(l, build_stack(l->b, c, n, 0)));
}

/* Cells. */

/** x + y; x if y is absent. */
static value add_optional(builder *b, value x, value y) { return y.node ? build_add(b, x, y) : x; }

/** Slices gate i of the concatenated gates; no node if these are absent. */
static value gate(const cell *k, value gates, int64_t i) {
  return gates.node ? slice_axis(k->l, gates, -1, i * k->l->hidden, k->l->hidden) : gates;
}

static value activate(const cell *k, size_t function, value x) {
  const activation *f = &k->function[function];
  double clip = function < 2 ? k->l->clip : 0; /* of gates only, as in ONNX Runtime */
  builder *b = k->l->b;
  if (clip > 0) x = build_clip(b, x, build_num(b, -clip), build_num(b, clip));
  return f->build ? f->build(b, x) : f->build_with(b, x, f->alpha, f->beta);
}

/** The recurrent part of the gates: the product of the state and the recurrent weights, plus bias.
 */
static value recurrent_gates(const cell *k, value h) {
  return add_optional(k->l->b, build_matmul(k->l->b, h, k->recurrent), k->bias);
}

static state step_rnn(const cell *k, value in, state s) {
  return (state){.h = activate(k, 0, build_add(k->l->b, in, recurrent_gates(k, s.h)))};
}

/** GRU, with gates z, r, h. */
static state step_gru(const cell *k, value in, state s) {
  builder *b = k->l->b;
  enum { Z, R, H };
  value recurrent_h;
  bool linear_first = onnx_int_attribute(k->l->c, "linear_before_reset", 0) != 0;
  value gates = recurrent_gates(k, s.h);
  value z = activate(k, 0, build_add(b, gate(k, in, Z), gate(k, gates, Z)));
  value r = activate(k, 0, build_add(b, gate(k, in, R), gate(k, gates, R)));
  if (linear_first)
    recurrent_h = build_mul(b, r, gate(k, gates, H));
  else
    recurrent_h = add_optional(b, build_matmul(b, build_mul(b, r, s.h), gate(k, k->recurrent, H)),
                               gate(k, k->bias, H));
  value h = activate(k, 1, build_add(b, gate(k, in, H), recurrent_h));
  value one = build_num(b, 1);
  return (state){.h = build_add(b, build_mul(b, build_sub(b, one, z), h), build_mul(b, z, s.h))};
}

static value add_peephole(const cell *k, value x, size_t i, value c) {
  return k->peephole[i].node ? build_add(k->l->b, x, build_mul(k->l->b, k->peephole[i], c)) : x;
}

/** LSTM, with gates i, o, f, c and peepholes i, o, f. */
static state step_lstm(const cell *k, value in, state s) {
  builder *b = k->l->b;
  enum { I, O, F, C };
  value gates = build_add(b, in, recurrent_gates(k, s.h));
  value i = activate(k, 0, add_peephole(k, gate(k, gates, I), I, s.c));
  value f = onnx_int_attribute(k->l->c, "input_forget", 0)
                ? build_sub(b, build_num(b, 1), i)
                : activate(k, 0, add_peephole(k, gate(k, gates, F), F, s.c));
  value c = activate(k, 1, gate(k, gates, C));
  c = build_add(b, build_mul(b, f, s.c), build_mul(b, i, c));
  value o = activate(k, 0, add_peephole(k, gate(k, gates, O), O, c));
  return (state){.h = build_mul(b, o, activate(k, 2, c)), .c = c};
}

void onnx_RNN(onnx_call *c) {
  layer l = read_layer(c, 1, 1, (const char *const[]){"Tanh"});
  run_layer(&l, step_rnn);
}

void onnx_GRU(onnx_call *c) {
  layer l = read_layer(c, 3, 2, (const char *const[]){"Sigmoid", "Tanh"});
  run_layer(&l, step_gru);
}

void onnx_LSTM(onnx_call *c) {
  layer l = read_layer(c, 4, 3, (const char *const[]){"Sigmoid", "Tanh", "Tanh"});
  run_layer(&l, step_lstm);
}
