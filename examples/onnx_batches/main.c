/* An ONNX model at three batch sizes, compiled for the first and once more for the others. It has
   one input, whose first size is the batch and varies, and is fed zeros:

     scripts/get-magika.sh magika
     onnx_batches magika/model.onnx */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { MOST = 8 };
static const tn_dim batches[] = {1, 3, MOST};

static int complain(const char *what) {
  fprintf(stderr, "onnx_batches: %s\n", what);
  return 1;
}

/** The number of elements, but for the first axis. */
static size_t elements_each(tn_type t) {
  size_t n = 1;
  for (int32_t i = 1; i < t.shape.rank; i++) n *= (size_t)t.shape.size[i];
  return n;
}

static bool has_batches(tn_type t) {
  for (int32_t i = 1; i < t.shape.rank; i++)
    if (t.shape.size[i] < 0) return false;
  return t.shape.rank > 0 && t.shape.size[0] < 0;
}

/** Prints the first element of each of the batch's results. */
static tn_status print_result(tn_binding *run, const char *name, tn_dim batch) {
  tn_type type = tn_binding_type(run, name);
  size_t each = elements_each(type), n = (type.shape.rank ? (size_t)type.shape.size[0] : 1) * each;
  double *values = malloc((n + !n) * sizeof *values);
  tn_status s =
      values ? tn_binding_read(run, name, TN_F64, values, n * sizeof *values) : TN_ERR_MEMORY;
  if (s == TN_OK) printf("batch %d:", (int)batch);
  for (size_t i = 0; s == TN_OK && i < n; i += each) printf(" %.9g", values[i]);
  if (s == TN_OK) putchar('\n');
  free(values);
  return s;
}

static int run_batches(tn_binding *run, tn_port in, const char *out) {
  size_t each = elements_each(in.type) * tn_dtype_size(in.type.dtype);
  void *zeros = calloc(MOST, each + !each);
  tn_status s = zeros ? TN_OK : TN_ERR_MEMORY;
  for (size_t i = 0; i < sizeof batches / sizeof *batches && s == TN_OK; i++) {
    in.type.shape.size[0] = batches[i];
    tn_binding_input(run, in.name, in.type.shape, in.type.dtype, zeros, (size_t)batches[i] * each);
    s = tn_binding_run(run);
    if (s == TN_OK) s = print_result(run, out, batches[i]);
  }
  free(zeros);
  if (s == TN_OK) return 0;
  return complain(s == TN_ERR_MEMORY ? "out of memory" : tn_binding_message(run));
}

static int run_model(tn_context *tn, const char *path) {
  tn_model *model;
  tn_binding *run;
  tn_port in = TN_PORT_INIT, out = TN_PORT_INIT;
  tn_model_load(tn, path, NULL, &model); /* on failure NULL, refused below */
  if (tn_model_bind(model, &run) != TN_OK) return complain(tn_message(tn));
  if (tn_model_port(model, TN_PORT_INPUT, 1, &in) == TN_OK ||
      tn_model_port(model, TN_PORT_INPUT, 0, &in) != TN_OK || !has_batches(in.type) ||
      tn_model_port(model, TN_PORT_OUTPUT, 0, &out) != TN_OK)
    return complain("the model needs one input, of which the first size varies and no other");
  return run_batches(run, in, out.name);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: onnx_batches MODEL\n");
    return 2;
  }
  tn_context *tn = tn_open(NULL);
  int status = run_model(tn, argv[1]);
  tn_close(tn);
  return status;
}
