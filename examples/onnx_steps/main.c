/* Steps of an ONNX model that keeps a state: outputs become inputs of the next step, among them a
   cache that grows by a row a step. Pairs name them:

     onnx_steps decoder.onnx 8 present=past

   Carried inputs begin as zeros. Other inputs hold the number of the step. Open sizes are 1 where
   an input has them that is not carried, as a batch, and 0 where carried ones alone have them. Each
   step prints the shapes of the outputs and their last elements. A step without a row is compiled
   for that, then one with a row, then one with any number of rows, which serves all others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { MOST_PORTS = 64, MOST_STEPS = 1000000 };

/** An input's array, which runs read again each time. */
typedef struct step_input {
  double *values; /* NULL: not allocated */
  size_t n;
  bool is_carried;
} step_input;

typedef struct stepper {
  tn_model *model;
  tn_binding *run;
  step_input in[MOST_PORTS];
  size_t n_in;
} stepper;

static int complain(const char *what) {
  fprintf(stderr, "onnx_steps: %s\n", what);
  return 1;
}

/* Inputs. */

/** Carries the output of a pair OUTPUT=INPUT over to the input. The binding keeps a failure for its
    next run. */
static void carry(stepper *k, const char *pair) {
  const char *input = strrchr(pair, '=');
  char output[256];
  size_t length = input ? (size_t)(input - pair) : strlen(pair);
  snprintf(output, sizeof output, "%.*s", (int)length, pair);
  input = input ? input + 1 : "";
  int64_t i = tn_binding_find(k->run, TN_PORT_INPUT, input);
  if (i >= 0 && i < MOST_PORTS) k->in[i].is_carried = true;
  tn_binding_carry(k->run, output, input);
}

/** True if an input that is not carried has a size. */
static bool is_of_step(const stepper *k, int32_t variable) {
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; i < MOST_PORTS; i++) {
    if (tn_model_port(k->model, TN_PORT_INPUT, i, &port) != TN_OK) break;
    for (int32_t d = 0; !k->in[i].is_carried && d < port.type.shape.rank; d++)
      if (port.variable[d] == variable) return true;
  }
  return false;
}

/** Sets an input to zeros. Open sizes are the least that a step may have. */
static bool open_input(stepper *k, size_t i, const tn_port *port) {
  step_input *in = &k->in[i];
  tn_shape shape = port->type.shape;
  in->n = 1;
  for (int32_t d = 0; d < shape.rank; d++) {
    if (shape.size[d] < 0) shape.size[d] = is_of_step(k, port->variable[d]);
    if (shape.size[d] < port->min[d]) shape.size[d] = port->min[d];
    in->n *= (size_t)shape.size[d];
  }
  in->values = calloc(in->n + 1, sizeof *in->values);
  if (!in->values) return false;
  tn_binding_input_at(k->run, i, shape, TN_F64, in->values, in->n * sizeof *in->values);
  return true;
}

static bool open_inputs(stepper *k) {
  tn_port port = TN_PORT_INIT;
  bool is_open = true;
  for (; is_open && tn_model_port(k->model, TN_PORT_INPUT, k->n_in, &port) == TN_OK; k->n_in++)
    is_open = k->n_in < MOST_PORTS && open_input(k, k->n_in, &port);
  return is_open;
}

/* Steps. */

/** Prints an output's shape and last element. */
static tn_status print_output(const stepper *k, size_t i, const char *name) {
  tn_type type = tn_binding_type_at(k->run, i);
  size_t n = 1;
  printf(" %s", name);
  for (int32_t d = 0; d < type.shape.rank; d++) {
    printf("%s%lld", d ? "x" : " ", (long long)type.shape.size[d]);
    n *= (size_t)type.shape.size[d];
  }
  double *values = malloc((n + 1) * sizeof *values);
  tn_status s =
      values ? tn_binding_read_at(k->run, i, TN_F64, values, n * sizeof *values) : TN_ERR_MEMORY;
  if (s == TN_OK && n) printf(" … %.9g", values[n - 1]);
  free(values);
  return s;
}

static tn_status run_step(stepper *k, long step) {
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; i < k->n_in; i++)
    for (size_t e = 0; !k->in[i].is_carried && e < k->in[i].n; e++)
      k->in[i].values[e] = (double)step;
  tn_status s = tn_binding_run(k->run);
  if (s != TN_OK) return s;
  printf("step %ld:", step);
  for (size_t i = 0; s == TN_OK && tn_model_port(k->model, TN_PORT_OUTPUT, i, &port) == TN_OK; i++)
    s = print_output(k, i, port.name);
  putchar('\n');
  return s;
}

static int run_model(tn_context *tn, stepper *k, char **argv, int argc) {
  char *end;
  long steps = strtol(argv[2], &end, 10);
  if (*end || steps < 1 || steps > MOST_STEPS) return complain("the number of steps is none");
  tn_model_load(tn, argv[1], NULL, &k->model); /* on failure NULL, refused below */
  if (tn_model_bind(k->model, &k->run) != TN_OK) return complain(tn_message(tn));
  for (int i = 3; i < argc; i++) carry(k, argv[i]);
  if (!open_inputs(k)) return complain("too many inputs, or out of memory");
  tn_status s = TN_OK;
  for (long i = 1; i <= steps && s == TN_OK; i++) s = run_step(k, i);
  return s == TN_OK ? 0 : complain(tn_binding_message(k->run));
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: onnx_steps MODEL STEPS [OUTPUT=INPUT]…\n");
    return 2;
  }
  stepper k = {0};
  tn_context *tn = tn_open(NULL);
  int status = run_model(tn, &k, argv, argc);
  for (size_t i = 0; i < k.n_in && i < MOST_PORTS; i++) free(k.in[i].values);
  tn_close(tn);
  return status;
}
