/* Tests the ONNX importer on malformed or extreme models: impossible shapes, bounds, ranks, names
   and attributes are refused with a message that names what is wrong, or are read as the nearest
   valid meaning. Operators are tested in tests/models/onnx. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include "formats/model/model.h"
#include "ir/core/tensor_loop.h"

static void check_status(tn_context *c, tn_status s, tn_status expected, const char *word) {
  if (s != expected) fail_msg("status %d, not %d: %s", (int)s, (int)expected, tn_message(c));
  if (s != TN_OK) check_text(tn_message(c), word);
}

/** Loads a graph with the given ports and expects a status; binds it if it loads. */
static void check_graph(tn_context *c, const bytes *graph, tn_status expected, const char *word) {
  bytes all = *graph, file = {.n = 0};
  tn_model *m;
  tn_binding *b;
  put_model(&file, "sample", &all, 13);
  tn_status s = tn_model_load_bytes(c, file.at, file.n, NULL, &m);
  check_status(c, s, expected, word);
  if (s == TN_OK) check_ok(c, tn_model_bind(m, &b));
  tn_model_free(m);
}

static void put_output(bytes *graph, const char *name) {
  put_port(graph, 12, name, ONNX_TYPE_F32, (const char *[]){NULL});
}

static void put_exp(bytes *graph, const char *from, const char *to) {
  put_node(graph, "Exp", (const char *[]){from, NULL}, to, NULL, 0);
}

static void put_numbers(bytes *graph, const char *name, size_t n, const int64_t numbers[]) {
  put_weight(graph, name, ONNX_TYPE_I64, 1, (int64_t[]){(int64_t)n}, numbers, n * sizeof *numbers);
}

static const char *const x_and_w[] = {"x", "w", NULL};

/** Items that do not fit into a message are counted at its end; no line is cut. */
static void long_reports_end_with_a_count(void **state) {
  enum { OPS = 60 };
  tn_context *c = *state;
  bytes graph = {.n = 0}, file = {.n = 0};
  char name[40], label[500];
  tn_model *m;
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", NULL});
  put_output(&graph, "y0");
  for (int i = 0; i < OPS; i++) {
    snprintf(name, sizeof name, "NotAnOperatorWithALongName%d", i);
    put_node(&graph, name, (const char *[]){"x", NULL}, i ? "v" : "y0", NULL, 0);
  }
  put_model(&file, "sample", &graph, 17);
  memset(label, 'l', sizeof label - 1);
  label[sizeof label - 1] = 0;
  tn_label(c, label);
  check_status(c, tn_model_load_bytes(c, file.at, file.n, NULL, &m), TN_ERR_UNSUPPORTED, "");
  tn_label(c, NULL);
  int told = 0, left = 0;
  const char *line = strchr(tn_message(c), '\n');
  for (; line && !strncmp(line, "\nNotAn", 6); line = strchr(line + 1, '\n'), told++)
    if (!strstr(line, ": the operator is not supported: node '")) fail_msg("%s", line);
  if (!line || sscanf(line, "\nand %d more", &left) != 1) fail_msg("%s", tn_message(c));
  assert_int_equal(told + left, OPS);
  assert_true(told > 5);
}

/** A line with names so long that it does not fit is cut. */
static void long_lines_are_cut(void **state) {
  enum { OPS = 4 };
  bytes graph = {.n = 0}, domain = {.n = 0};
  char name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  put_text(&domain, 7, name);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", NULL});
  put_output(&graph, "y");
  for (int i = 0; i < OPS; i++)
    put_node_with(&graph, name, (const char *[]){"x", NULL}, name, &domain);
  for (int more = 0; more < 2; more++) {
    check_graph(*state, &graph, TN_ERR_UNSUPPORTED, "(nnn");
    assert_true((strstr(tn_message(*state), "and 1 more") != NULL) == more);
    put_node(&graph, "NotAnOperator", (const char *[]){"x", NULL}, "v", NULL, 0);
  }
}

static void outputs_that_no_node_makes(void **state) {
  bytes graph = {.n = 0};
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", NULL});
  put_output(&graph, "y");
  put_exp(&graph, "x", "z");
  check_graph(*state, &graph, TN_ERR_FORMAT, "no node makes output 'y'");
}

static void inputs_that_nothing_gives(void **state) {
  bytes graph = {.n = 0};
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", NULL});
  put_output(&graph, "y");
  put_exp(&graph, "none", "y");
  check_graph(*state, &graph, TN_ERR_FORMAT, "no input, initializer or earlier node gives 'none'");
}

/** An overload is a function of the model, whatever operator has the same name; here there is none.
 */
static void overloads_that_are_no_function(void **state) {
  bytes graph = {.n = 0}, overload = {.n = 0};
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", NULL});
  put_output(&graph, "y");
  put_text(&overload, 8, "of_halves");
  put_node_with(&graph, "Exp", (const char *[]){"x", NULL}, "y", &overload);
  check_graph(*state, &graph, TN_ERR_UNSUPPORTED, "Exp:of_halves (ai.onnx, opset ");
}

/* Windows. */

static const int64_t no_steps[] = {0, -1, INT64_MIN, (int64_t)INT32_MAX + 1, INT64_MAX};
static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
enum { NO_STEPS = sizeof no_steps / sizeof *no_steps, MODES = sizeof modes / sizeof *modes };

static void put_conv(bytes *graph, const char *height, const int64_t kernel[4],
                     const bytes *attributes) {
  static const float ones[9];
  size_t n = (size_t)(kernel[2] * kernel[3]) * sizeof *ones;
  put_port(graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"1", "1", height, "8", NULL});
  put_weight(graph, "w", ONNX_TYPE_F32, 4, kernel, ones, n);
  put_output(graph, "y");
  put_node_with(graph, "Conv", x_and_w, "y", attributes);
}

static void steps_that_are_none(void **state) {
  static const char *const names[] = {"strides", "dilations"};
  for (size_t i = 0; i < 2 * MODES * NO_STEPS; i++) {
    bytes graph = {.n = 0}, attributes = {.n = 0};
    const char *name = names[i % 2];
    put_attribute_text(&attributes, "auto_pad", modes[i / 2 % MODES]);
    put_attribute_list(&attributes, name, 2, (int64_t[]){1, no_steps[i / 2 / MODES]});
    put_conv(&graph, "8", (int64_t[]){1, 1, 3, 3}, &attributes);
    check_graph(*state, &graph, TN_ERR_FORMAT, "Conv node 'y'");
    check_text(tn_message(*state), name);
  }
}

/** The largest allowed strides and dilations on axes of any size: refused or not, nothing
    overflows. */
static void steps_that_are_large(void **state) {
  static const char *const heights[] = {"0", "1", "8", "1152921504606846975"};
  for (size_t i = 0; i < 4 * MODES; i++) {
    bytes graph = {.n = 0}, attributes = {.n = 0}, file = {.n = 0};
    tn_model *m;
    put_attribute_text(&attributes, "auto_pad", modes[i % MODES]);
    put_attribute_list(&attributes, "strides", 2, (int64_t[]){INT32_MAX, 1});
    put_attribute_list(&attributes, "dilations", 2, (int64_t[]){INT32_MAX, 1});
    put_conv(&graph, heights[i / MODES], (int64_t[]){1, 1, 3, 3}, &attributes);
    put_model(&file, "sample", &graph, 13);
    tn_status s = tn_model_load_bytes(*state, file.at, file.n, NULL, &m);
    if (s != TN_OK) check_text(tn_message(*state), "Conv node 'y'");
    tn_model_free(m);
  }
}

static void kernels_that_are_none(void **state) {
  for (size_t i = 0; i < MODES; i++) {
    bytes graph = {.n = 0}, attributes = {.n = 0};
    put_attribute_text(&attributes, "auto_pad", modes[i]);
    put_conv(&graph, "8", (int64_t[]){1, 1, 0, 3}, &attributes);
    check_graph(*state, &graph, TN_ERR_SHAPE, "Conv node 'y'");
  }
}

static void groups_that_are_none(void **state) {
  for (size_t i = 0; i < NO_STEPS; i++) {
    bytes graph = {.n = 0}, attributes = {.n = 0}, file = {.n = 0};
    tn_model *m;
    put_attribute(&attributes, "group", no_steps[i]);
    put_conv(&graph, "8", (int64_t[]){1, 1, 3, 3}, &attributes);
    put_model(&file, "sample", &graph, 13);
    assert_int_not_equal(tn_model_load_bytes(*state, file.at, file.n, NULL, &m), TN_OK);
    check_text(tn_message(*state), "Conv node 'y'");
  }
}

/* Ranks. */

enum { MOST_WEIGHT_RANK = 29, TRIED_RANK = 40 };

static void put_high(bytes *graph, size_t rank) {
  int64_t dims[TRIED_RANK];
  for (size_t i = 0; i < rank; i++) dims[i] = 1;
  put_weight(graph, "w", ONNX_TYPE_F32, rank, dims, &(float){1}, sizeof(float));
}

static void weights_of_high_rank(void **state) {
  for (size_t rank = 0; rank < TRIED_RANK; rank++) {
    bytes graph = {.n = 0};
    bool fits = rank <= MOST_WEIGHT_RANK;
    put_high(&graph, rank);
    put_output(&graph, "y");
    put_node(&graph, "ReduceMax", (const char *[]){"w", NULL}, "y", "keepdims", 0);
    check_graph(*state, &graph, fits ? TN_OK : TN_ERR_UNSUPPORTED, "'w'");
  }
}

static void operations_on_weights_of_high_rank(void **state) {
  static const char *const w[] = {"w", "w", NULL};
  for (size_t rank = 1; rank < TRIED_RANK; rank++) {
    bytes graph = {.n = 0};
    bool fits = rank <= TN_MAX_RANK, is_weight = rank <= MOST_WEIGHT_RANK;
    put_high(&graph, rank);
    put_output(&graph, "y");
    put_node(&graph, "MatMul", w, "y", NULL, 0);
    if (rank > 1)
      check_graph(*state, &graph,
                  fits        ? TN_OK
                  : is_weight ? TN_ERR_SHAPE
                              : TN_ERR_UNSUPPORTED,
                  is_weight ? "MatMul node 'y'" : "'w'");
  }
}

static void ports_of_high_rank(void **state) {
  static const char *const one = "1";
  for (size_t rank = 0; rank < TRIED_RANK; rank++) {
    bytes as_input = {.n = 0}, as_output = {.n = 0};
    const char *sizes[TRIED_RANK] = {NULL};
    for (size_t i = 0; i < rank; i++) sizes[i] = one;
    tn_status expected = rank <= TN_MAX_RANK ? TN_OK : TN_ERR_UNSUPPORTED;
    put_port(&as_input, 11, "x", ONNX_TYPE_F32, sizes);
    put_output(&as_input, "y");
    put_node(&as_input, "ReduceMax", (const char *[]){"x", NULL}, "y", "keepdims", 0);
    check_graph(*state, &as_input, expected, "input 'x'");
    put_high(&as_output, rank);
    put_output(&as_output, "y");
    put_node(&as_output, "Exp", (const char *[]){"w", NULL}, "y", NULL, 0);
    check_graph(*state, &as_output, expected, rank <= MOST_WEIGHT_RANK ? "output 'y'" : "'w'");
  }
}

/* Sizes. */

static void sizes_below_zero(void **state) {
  static const int64_t wrong[][2] = {{-2, -2}, {4, -2}, {-3, 4}, {INT64_MIN, 1}, {INT64_MIN, -1}};
  static const char *const ops[] = {"Reshape", "Expand"};
  for (size_t i = 0; i < 2 * sizeof wrong / sizeof *wrong; i++) {
    bytes graph = {.n = 0};
    put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", "2", NULL});
    put_numbers(&graph, "w", 2, wrong[i / 2]);
    put_output(&graph, "y");
    put_node(&graph, ops[i % 2], x_and_w, "y", NULL, 0);
    check_graph(*state, &graph, TN_ERR_SHAPE, "node 'y': size ");
    check_text(tn_message(*state), ops[i % 2]);
    check_text(tn_message(*state), "is negative");
  }
}

/** Sizes computed from a variable size that may be negative, such as −n: known at each run. */
static void sizes_that_may_be_below_zero(void **state) {
  static const char *const ops[] = {"Reshape", "Expand"};
  for (size_t i = 0; i < 2; i++) {
    bytes graph = {.n = 0};
    put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "m", NULL});
    put_numbers(&graph, "minus", 1, (int64_t[]){-1});
    put_output(&graph, "y");
    put_node(&graph, "Shape", (const char *[]){"x", NULL}, "s", NULL, 0);
    put_node(&graph, "Mul", (const char *[]){"s", "minus", NULL}, "w", NULL, 0);
    put_node(&graph, ops[i], x_and_w, "y", NULL, 0);
    bytes file = {.n = 0};
    tn_model *m;
    put_model(&file, "g", &graph, 18);
    check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, NULL, &m));
    check_text(tn_model_exact_sizes(m), "negative");
    check_text(tn_model_exact_sizes(m), ops[i]);
    tn_model_free(m);
  }
}

/** Sizes whose product alone exceeds 64 bits are refused too. */
static void sizes_beyond_64_bits(void **state) {
  static const char *const huge[] = {"4611686018427387904", "4", NULL};
  bytes graph = {.n = 0}, input = {.n = 0}, output = {.n = 0};
  put_port(&input, 11, "x", ONNX_TYPE_F32, huge);
  put_output(&input, "y");
  put_exp(&input, "x", "y");
  check_graph(*state, &input, TN_ERR_SHAPE, "input 'x'");
  put_port(&output, 11, "x", ONNX_TYPE_F32, (const char *[]){"1", "1", NULL});
  put_numbers(&output, "w", 2, (int64_t[]){INT64_MAX, 2});
  put_output(&output, "y");
  put_node(&output, "Expand", x_and_w, "y", NULL, 0);
  check_graph(*state, &output, TN_ERR_SHAPE, "Expand node 'y'");
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"2", "2", NULL});
  put_numbers(&graph, "w", 2, (int64_t[]){INT64_MAX, 4});
  put_output(&graph, "y");
  put_node(&graph, "Reshape", x_and_w, "y", NULL, 0);
  check_graph(*state, &graph, TN_ERR_SHAPE, "Reshape node 'y'");
}

/* Slices. */

static const int64_t bounds[] = {INT64_MIN, INT64_MIN + 1, -6, -5, -1, 0, 2, 5, INT64_MAX};
static const int64_t steps[] = {INT64_MIN, INT64_MIN + 1, -7, -2, -1, 1, 3, INT64_MAX};
enum { BOUNDS = sizeof bounds / sizeof *bounds, STEPS = sizeof steps / sizeof *steps, AXIS = 5 };

static int64_t between(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/** Returns the number of elements of AXIS in a slice; starts before the axis are clamped. */
static int64_t taken(int64_t start, int64_t end, int64_t step) {
  int64_t low = step < 0 ? -1 : 0, high = step < 0 ? AXIS - 1 : AXIS, n = 0;
  start = between(start < 0 && start >= -AXIS ? start + AXIS : start, 0, high);
  end = between(end < 0 && end >= -AXIS ? end + AXIS : end, low, high);
  step = between(step, -AXIS, AXIS);
  for (int64_t i = start; step < 0 ? i > end : i < end; i += step) n++;
  return n;
}

static void put_slice(bytes *graph, const char *size, const int64_t numbers[3]) {
  put_port(graph, 11, "x", ONNX_TYPE_F32, (const char *[]){size, NULL});
  put_numbers(graph, "start", 1, &numbers[0]);
  put_numbers(graph, "end", 1, &numbers[1]);
  put_numbers(graph, "axis", 1, (int64_t[]){0});
  put_numbers(graph, "step", 1, &numbers[2]);
  put_output(graph, "y");
  put_node(graph, "Slice", (const char *[]){"x", "start", "end", "axis", "step", NULL}, "y", NULL,
           0);
}

static void slices_of_any_bounds(void **state) {
  for (size_t i = 0; i < BOUNDS * BOUNDS * STEPS; i++) {
    int64_t numbers[] = {bounds[i % BOUNDS], bounds[i / BOUNDS % BOUNDS],
                         steps[i / BOUNDS / BOUNDS]};
    bytes known = {.n = 0}, varies = {.n = 0}, file = {.n = 0};
    tn_model *m;
    tn_port p = TN_PORT_INIT;
    put_slice(&known, "5", numbers);
    put_model(&file, "sample", &known, 13);
    check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, NULL, &m));
    check_ok(*state, tn_model_port(m, TN_PORT_OUTPUT, 0, &p));
    int64_t expected = taken(numbers[0], numbers[1], numbers[2]);
    if (p.type.shape.size[0] != expected)
      fail_msg("%lld : %lld : %lld has %lld elements, not %lld", (long long)numbers[0],
               (long long)numbers[1], (long long)numbers[2], (long long)p.type.shape.size[0],
               (long long)expected);
    tn_model_free(m);
    put_slice(&varies, "n", numbers);
    check_graph(*state, &varies, TN_OK, "");
  }
}

/* Names. */

static void put_vector(bytes *graph, unsigned field, const char *name) {
  put_port(graph, field, name, ONNX_TYPE_F32, (const char *[]){"3", NULL});
}

static void put_three(bytes *graph, const char *name) {
  put_weight(graph, name, ONNX_TYPE_F32, 1, (int64_t[]){3}, (float[]){1, 2, 3}, 12);
}

static void ports_of_one_name(void **state) {
  for (unsigned field = 11; field <= 12; field++) {
    bytes graph = {.n = 0};
    if (field == 12) put_vector(&graph, 11, "x");
    put_vector(&graph, field, field == 11 ? "x" : "y");
    put_vector(&graph, field, "z");
    put_vector(&graph, field, field == 11 ? "x" : "y");
    if (field == 11) put_vector(&graph, 12, "y");
    put_exp(&graph, "x", "z");
    put_exp(&graph, "x", "y");
    check_graph(*state, &graph, TN_ERR_FORMAT, "0 and 2");
    check_text(tn_message(*state), field == 11 ? "inputs" : "outputs");
    check_text(tn_message(*state), field == 11 ? "'x'" : "'y'");
  }
}

static void outputs_that_are_there(void **state) {
  static const struct {
    const char *output, *words;
  } all[] = {{"w", "an initializer"}, {"x", "an input"}, {"a", "Tanh node 'a'"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    bytes graph = {.n = 0};
    put_vector(&graph, 11, "x");
    put_vector(&graph, 12, "y");
    put_three(&graph, "w");
    put_node(&graph, "Tanh", (const char *[]){"w", NULL}, "a", NULL, 0);
    put_exp(&graph, "x", all[i].output);
    put_exp(&graph, all[i].output, "y");
    check_graph(*state, &graph, TN_ERR_FORMAT, all[i].words);
    check_text(tn_message(*state), "Exp node");
    check_text(tn_message(*state), all[i].output);
  }
}

/** An input with an initializer is not a port. */
static void inputs_with_a_value(void **state) {
  bytes graph = {.n = 0}, file = {.n = 0};
  tn_model *m;
  tn_port p = TN_PORT_INIT;
  put_vector(&graph, 11, "w");
  put_vector(&graph, 11, "x");
  put_vector(&graph, 12, "y");
  put_three(&graph, "w");
  put_node(&graph, "Add", x_and_w, "y", NULL, 0);
  put_model(&file, "sample", &graph, 13);
  check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, NULL, &m));
  check_ok(*state, tn_model_port(m, TN_PORT_INPUT, 0, &p));
  assert_string_equal(p.name, "x");
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 1, &p), TN_ERR_ARGUMENT);
}

/** Attributes that refer to a function's attributes. */
static void attributes_that_refer(void **state) {
  bytes graph = {.n = 0}, attributes = {.n = 0}, a = {.n = 0};
  put_text(&a, 1, "keepdims");
  put_text(&a, 21, "outer");
  put_int(&a, 20, 2);
  put_message(&attributes, 5, &a);
  put_vector(&graph, 11, "x");
  put_output(&graph, "y");
  put_node_with(&graph, "ReduceMax", (const char *[]){"x", NULL}, "y", &attributes);
  check_graph(*state, &graph, TN_ERR_FORMAT, "'outer'");
  check_text(tn_message(*state), "ReduceMax node 'y'");
}

/* Shapes that are computed by ops of which an element depends on several of another tensor. */

static void put_computed_shape(bytes *graph, const char *op, const char *const inputs[]) {
  put_port(graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "3", NULL});
  put_output(graph, "y");
  put_node(graph, "Shape", (const char *[]){"x", NULL}, "s", NULL, 0);
  put_node(graph, op, inputs, "to", NULL, 0);
  put_node(graph, "ConstantOfShape", (const char *[]){"to", NULL}, "y", NULL, 0);
}

static void shapes_of_updates_and_running_sums(void **state) {
  static const char *const updates[] = {"s", "at", "by", NULL}, *const sums[] = {"s", "axis", NULL};
  bytes graph = {.n = 0};
  put_weight(&graph, "at", ONNX_TYPE_I64, 2, (int64_t[]){1, 1}, (int64_t[]){-1}, 8);
  put_numbers(&graph, "by", 1, (int64_t[]){7});
  put_computed_shape(&graph, "ScatterND", updates);
  check_graph(*state, &graph, TN_OK, "");
  graph.n = 0;
  put_numbers(&graph, "at", 2, (int64_t[]){0, -1});
  put_numbers(&graph, "by", 2, (int64_t[]){4, 5});
  put_computed_shape(&graph, "ScatterElements", updates);
  check_graph(*state, &graph, TN_OK, "");
  graph.n = 0;
  put_weight(&graph, "axis", ONNX_TYPE_I64, 0, NULL, (int64_t[]){0}, 8);
  put_computed_shape(&graph, "CumSum", sums);
  check_graph(*state, &graph, TN_OK, "");
}

/** A condition alone ends a loop without a trip count. */
static void loops_have_no_limit_in_sight(void **state) {
  static const char *const none[] = {NULL};
  bytes graph = {.n = 0}, body = {.n = 0}, attribute = {.n = 0}, loop = {.n = 0}, file = {.n = 0};
  tn_model *m;
  put_node(&body, "Add", (const char *const[]){"s", "s", NULL}, "t", NULL, 0);
  put_node(&body, "Less", (const char *const[]){"t", "most", NULL}, "goes", NULL, 0);
  put_text(&body, 2, "body");
  put_port(&body, 11, "i", ONNX_TYPE_I64, none);
  put_port(&body, 11, "on", ONNX_TYPE_BOOL, none);
  put_port(&body, 11, "s", ONNX_TYPE_F32, none);
  put_port(&body, 12, "goes", ONNX_TYPE_BOOL, none);
  put_port(&body, 12, "t", ONNX_TYPE_F32, none);
  put_text(&attribute, 1, "body");
  put_message(&attribute, 6, &body);
  put_int(&attribute, 20, 5);
  put_message(&loop, 5, &attribute);
  put_weight(&graph, "most", ONNX_TYPE_F32, 0, NULL, (float[]){9}, 4);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, none);
  put_output(&graph, "y");
  put_node_with(&graph, "Loop", (const char *const[]){"", "", "x", NULL}, "y", &loop);
  put_model(&file, "sample", &graph, 13);
  check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, NULL, &m));
  const node *y = m->graph.nodes[m->graph.n_inputs];
  assert_int_equal(y->op, OP_RESULT);
  assert_int_equal(range_extent(loop_range(y->src[0]))->hi, INT64_C(1) << 40);
  tn_model_free(m);
}

/* Bounds of sizes given by the caller. */

static tn_status load_known(tn_context *c, size_t n, const tn_model_size sizes[], tn_model **m) {
  bytes graph = {.n = 0}, file = {.n = 0};
  tn_model_desc d = TN_MODEL_DESC_INIT;
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_output(&graph, "y");
  put_exp(&graph, "x", "y");
  put_model(&file, "sample", &graph, 13);
  d.sizes = sizes;
  d.n_sizes = n;
  return tn_model_load_bytes(c, file.at, file.n, &d, m);
}

static void sizes_are_the_callers(void **state) {
  tn_context *c = *state;
  tn_model *m;
  tn_port p = TN_PORT_INIT;
  char name[] = "n";
  tn_model_size known = {sizeof known, name, NULL, 2, 3, 0};
  check_ok(c, load_known(c, 1, &known, &m));
  memset(name, '-', sizeof name - 1); /* the caller's memory is not kept */
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 0, &p));
  assert_string_equal(p.sizes[0], "n");
  check_status(c, load_known(c, 1, &known, &m), TN_ERR_ARGUMENT, "no input has a size '-'");
  assert_null(m);
  check_status(c, load_known(c, 1, NULL, &m), TN_ERR_ARGUMENT, "sizes is NULL");
  check_status(c,
               load_known(c, 1, &(tn_model_size){sizeof(tn_model_size), NULL, NULL, 2, 2, 0}, &m),
               TN_ERR_ARGUMENT, "(NULL)");
}

static void likely_sizes_are_within_bounds(void **state) {
  tn_context *c = *state;
  tn_model *m;
  tn_model_size known = TN_MODEL_SIZE_INIT;
  known.name = "n";
  known.likely = 8;
  check_ok(c, load_known(c, 1, &known, &m));
  assert_int_equal(m->graph.nodes[0]->dims[0]->n_int, 3);
  assert_int_equal(node_likely(m->graph.nodes[0]->dims[0]), 8);
  assert_int_equal(m->graph.nodes[0]->dims[0]->hi, TN_MODEL_SIZE_MAX);
  known.max = 7;
  check_status(c, load_known(c, 1, &known, &m), TN_ERR_ARGUMENT,
               "the likely value 8 of size 'n' is not within its range 0 … 7");
  known.likely = -1;
  check_status(c, load_known(c, 1, &known, &m), TN_ERR_ARGUMENT, "the likely value -1");
  known.min = known.max = known.likely = 5;
  check_ok(c, load_known(c, 1, &known, &m));
  assert_true(node_is_bits(m->graph.nodes[0]->dims[0], 5));
}

static void entries_of_sizes_have_one_size(void **state) {
  tn_context *c = *state;
  tn_model *m;
  tn_model_size known[] = {TN_MODEL_SIZE_INIT, TN_MODEL_SIZE_INIT};
  known[0].name = known[1].name = "n";
  known[1].size--;
  check_status(c, load_known(c, 2, known, &m), TN_ERR_ARGUMENT, "differ in their");
  known[0].size = known[1].size = 8;
  check_status(c, load_known(c, 1, known, &m), TN_ERR_ARGUMENT, "tn_model_size");
}

/** Operands of tn_model_apply are within the bounds too. */
static void bounds_hold_of_operands(void **state) {
  static const tn_dim n[] = {1, 2, 3, 4};
  tn_context *c = *state;
  tn_model *m;
  check_ok(c, load_known(c, 1, &(tn_model_size){sizeof(tn_model_size), "n", NULL, 2, 3, 0}, &m));
  for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
    tn_tensor *x = tn_input(c, "x", tn_shape(n[i]), TN_F32), *y;
    tn_model_apply(m, &x, 1, &y, 1);
    assert_int_equal(tn_type_of(y).shape.rank, n[i] == 2 || n[i] == 3);
  }
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "k", 2, 4)), TN_F32), *y;
  tn_model_apply(m, &x, 1, &y, 1);
  check_text(tn_message(c), "axis 0 has size k, not within 2 … 3");
}

static int open_null(void **state) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  *state = tn_open(&d);
  return *state ? 0 : -1;
}

static int close_null(void **state) { return (int)tn_close(*state); }

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_null, close_null)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(steps_that_are_none),
      TEST(steps_that_are_large),
      TEST(kernels_that_are_none),
      TEST(groups_that_are_none),
      TEST(weights_of_high_rank),
      TEST(operations_on_weights_of_high_rank),
      TEST(ports_of_high_rank),
      TEST(sizes_below_zero),
      TEST(sizes_that_may_be_below_zero),
      TEST(sizes_beyond_64_bits),
      TEST(slices_of_any_bounds),
      TEST(ports_of_one_name),
      TEST(outputs_that_are_there),
      TEST(inputs_with_a_value),
      TEST(attributes_that_refer),
      TEST(shapes_of_updates_and_running_sums),
      TEST(loops_have_no_limit_in_sight),
      TEST(sizes_are_the_callers),
      TEST(likely_sizes_are_within_bounds),
      TEST(entries_of_sizes_have_one_size),
      TEST(bounds_hold_of_operands),
      TEST(long_reports_end_with_a_count),
      TEST(long_lines_are_cut),
      TEST(outputs_that_no_node_makes),
      TEST(inputs_that_nothing_gives),
      TEST(overloads_that_are_no_function),
  };
  return cmocka_run_group_tests_name("onnx import", tests, NULL, NULL);
}
