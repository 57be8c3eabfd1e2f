/* Fuzzes the protobuf reader of ONNX: arbitrary bytes are parsed as a model and as one tensor. All
   that is found must be readable, and memory in proportion to the input. */
#include "../support/counting_mem.h"
#include "formats/onnx/file/onnx_file.h"

#include <string.h>

static volatile unsigned seen;

static void see(const void *data, size_t n) {
  const unsigned char *at = data;
  for (size_t i = 0; at && i < n; i++) seen += at[i];
}

static void see_tensor(const onnx_tensor *t) {
  see(t->name, strlen(t->name));
  see(t->data, t->bytes);
  if (t->bytes && !t->data && !t->external) __builtin_trap();
  for (size_t i = 0; i < t->strings.n; i++) see(t->strings.at[i].at, t->strings.at[i].n + 1);
}

static void see_graph(const onnx_graph *g);

static void see_attribute(const onnx_attribute *a) {
  see(a->s.at, a->s.n + 1);
  if (a->t) see_tensor(a->t);
  if (a->g) see_graph(a->g);
  for (size_t i = 0; i < a->tensors.n; i++) see_tensor(a->tensors.at[i]);
  for (size_t i = 0; i < a->graphs.n; i++) see_graph(a->graphs.at[i]);
  see(a->ints.at, a->ints.n * sizeof *a->ints.at);
  see(a->floats.at, a->floats.n * sizeof *a->floats.at);
}

static void see_graph(const onnx_graph *g) {
  for (size_t i = 0; i < g->initializers.n; i++) see_tensor(g->initializers.at[i]);
  for (size_t i = 0; i < g->nodes.n; i++)
    for (size_t k = 0; k < g->nodes.at[i].attributes.n; k++)
      see_attribute(&g->nodes.at[i].attributes.at[k]);
}

typedef struct parsed {
  onnx_model *model;
  onnx_tensor *tensor;
} parsed;

static tn_status parse_model(parsed *p, const void *bytes, size_t n, arena *a, diag *d) {
  return onnx_parse_model(&p->model, bytes, n, a, d);
}

static tn_status parse_tensor(parsed *p, const void *bytes, size_t n, arena *a, diag *d) {
  return onnx_parse_tensor(&p->tensor, bytes, n, a, d);
}

static void parse(tn_status (*by)(parsed *, const void *, size_t, arena *, diag *),
                  const unsigned char *bytes, size_t n) {
  counting_mem count = {0};
  mem m = counting_mem_of(&count);
  diag d = {.status = TN_OK};
  arena a;
  parsed p = {NULL, NULL};
  arena_init(&a, &m, &d);
  tn_status s = by(&p, bytes, n, &a, &d);
  if ((s == TN_OK) != (p.model || p.tensor)) __builtin_trap();
  if (s == TN_ERR_MEMORY || s == TN_ERR_INTERNAL || (s != TN_OK && !d.text[0])) __builtin_trap();
  if (p.model) see_graph(p.model->graph);
  if (p.tensor) see_tensor(p.tensor);
  if (count.peak > 256 * n + 65536) __builtin_trap();
  arena_free(&a);
  if (count.bytes) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n) {
  parse(parse_model, bytes, n);
  parse(parse_tensor, bytes, n);
  return 0;
}
