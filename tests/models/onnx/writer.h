/* Writer of small ONNX files for tests in C, with only the messages and fields that they need. */
#ifndef TENON_TESTS_ONNX_WRITER_H
#define TENON_TESTS_ONNX_WRITER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

typedef struct bytes {
  unsigned char at[8192];
  size_t n;
} bytes;

static inline void put(bytes *b, const void *from, size_t n) {
  assert(b->n + n <= sizeof b->at);
  memcpy(b->at + b->n, from, n);
  b->n += n;
}

static inline void put_number(bytes *b, uint64_t x) {
  for (; x >= 0x80; x >>= 7) put(b, &(unsigned char){(unsigned char)(x | 0x80)}, 1);
  put(b, &(unsigned char){(unsigned char)x}, 1);
}

static inline void put_int(bytes *b, unsigned field, int64_t x) {
  put_number(b, field << 3);
  put_number(b, (uint64_t)x);
}

static inline void put_block(bytes *b, unsigned field, const void *from, size_t n) {
  put_number(b, field << 3 | 2);
  put_number(b, n);
  put(b, from, n);
}

static inline void put_text(bytes *b, unsigned field, const char *text) {
  put_block(b, field, text, strlen(text));
}

static inline void put_message(bytes *b, unsigned field, const bytes *m) {
  put_block(b, field, m->at, m->n);
}

/** Numbers of element types in TensorProto.DataType. */
enum {
  ONNX_TYPE_F32 = 1,
  ONNX_TYPE_U8 = 2,
  ONNX_TYPE_STRING = 8,
  ONNX_TYPE_I32 = 6,
  ONNX_TYPE_I64 = 7,
  ONNX_TYPE_BOOL = 9
};

static inline void put_tensor(bytes *t, const char *name, int type, size_t rank,
                              const int64_t dims[], const void *data, size_t n) {
  for (size_t i = 0; i < rank; i++) put_int(t, 1, dims[i]);
  put_int(t, 2, type);
  put_text(t, 8, name);
  put_block(t, 9, data, n);
}

/** Adds an initializer. */
static inline void put_weight(bytes *graph, const char *name, int type, size_t rank,
                              const int64_t dims[], const void *data, size_t n) {
  bytes t = {.n = 0};
  put_tensor(&t, name, type, rank, dims, data, n);
  put_message(graph, 5, &t);
}

/** Adds an input (field 11) or output (12); sizes are texts, numbers or names, up to a NULL. */
static inline void put_port(bytes *graph, unsigned field, const char *name, int type,
                            const char *const sizes[]) {
  bytes shape = {.n = 0}, tensor = {.n = 0}, kind = {.n = 0}, value = {.n = 0};
  for (size_t i = 0; sizes[i]; i++) {
    bytes dim = {.n = 0};
    if (*sizes[i] >= '0' && *sizes[i] <= '9') {
      int64_t number = 0;
      for (const char *c = sizes[i]; *c; c++) number = number * 10 + (*c - '0');
      put_int(&dim, 1, number);
    } else {
      put_text(&dim, 2, sizes[i]);
    }
    put_message(&shape, 1, &dim);
  }
  put_int(&tensor, 1, type);
  put_message(&tensor, 2, &shape);
  put_message(&kind, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &kind);
  put_message(graph, field, &value);
}

/** Adds an integer attribute to a node. */
static inline void put_attribute(bytes *node, const char *name, int64_t number) {
  bytes a = {.n = 0};
  put_text(&a, 1, name);
  put_int(&a, 3, number);
  put_int(&a, 20, 2);
  put_message(node, 5, &a);
}

static inline void put_attribute_text(bytes *node, const char *name, const char *text) {
  bytes a = {.n = 0};
  put_text(&a, 1, name);
  put_text(&a, 4, text);
  put_int(&a, 20, 3);
  put_message(node, 5, &a);
}

static inline void put_attribute_list(bytes *node, const char *name, size_t n,
                                      const int64_t list[]) {
  bytes a = {.n = 0};
  put_text(&a, 1, name);
  for (size_t i = 0; i < n; i++) put_int(&a, 8, list[i]);
  put_int(&a, 20, 7);
  put_message(node, 5, &a);
}

/** Adds a node named as its output, with the attributes added so far; inputs up to a NULL. */
static inline void put_node_with(bytes *graph, const char *op, const char *const inputs[],
                                 const char *output, const bytes *attributes) {
  bytes n = *attributes;
  for (size_t i = 0; inputs[i]; i++) put_text(&n, 1, inputs[i]);
  put_text(&n, 2, output);
  put_text(&n, 3, output);
  put_text(&n, 4, op);
  put_message(graph, 1, &n);
}

/** Adds a node with one integer attribute, or none. */
static inline void put_node(bytes *graph, const char *op, const char *const inputs[],
                            const char *output, const char *attribute, int64_t number) {
  bytes attributes = {.n = 0};
  if (attribute) put_attribute(&attributes, attribute, number);
  put_node_with(graph, op, inputs, output, &attributes);
}

/** Writes a whole file of IR version 8. */
static inline void put_model(bytes *file, const char *name, bytes *graph, int64_t opset) {
  bytes set = {.n = 0};
  put_text(graph, 2, name);
  put_int(&set, 2, opset);
  put_int(file, 1, 8);
  put_message(file, 7, graph);
  put_message(file, 8, &set);
}

enum { LAYER_IN = 4, LAYER_OUT = 3 };

/** Computes an output of layer_model: weight[i][k] = i − k, bias[k] = k. */
static inline float layer_expected(const float *row, size_t k) {
  float sum = (float)k;
  for (size_t i = 0; i < LAYER_IN; i++) sum += row[i] * ((float)i - (float)k);
  return sum;
}

/** Writes a model of y[n, 3] = x[n, 4] · weight + bias, through a reshape to sizes that the model
    computes, and highest[n] = max of each row of y. */
static inline void layer_model(bytes *file) {
  bytes graph = {.n = 0};
  float weight[LAYER_IN][LAYER_OUT], bias[LAYER_OUT];
  for (int i = 0; i < LAYER_IN; i++)
    for (int k = 0; k < LAYER_OUT; k++) weight[i][k] = (float)(i - k);
  for (int k = 0; k < LAYER_OUT; k++) bias[k] = (float)k;
  put_weight(&graph, "weight", ONNX_TYPE_F32, 2, (int64_t[]){LAYER_IN, LAYER_OUT}, weight,
             sizeof weight);
  put_weight(&graph, "bias", ONNX_TYPE_F32, 1, (int64_t[]){LAYER_OUT}, bias, sizeof bias);
  put_weight(&graph, "zero", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){0}, 8);
  put_weight(&graph, "one", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){1}, 8);
  put_weight(&graph, "rest", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){-1}, 8);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"batch", "4", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"batch", "3", NULL});
  put_port(&graph, 12, "highest", ONNX_TYPE_F32, (const char *[]){"batch", NULL});
  put_node(&graph, "MatMul", (const char *[]){"x", "weight", NULL}, "product", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"product", "bias", NULL}, "sum", NULL, 0);
  put_node(&graph, "Shape", (const char *[]){"x", NULL}, "shape", NULL, 0);
  put_node(&graph, "Slice", (const char *[]){"shape", "zero", "one", NULL}, "rows", NULL, 0);
  put_node(&graph, "Concat", (const char *[]){"rows", "rest", NULL}, "to", "axis", 0);
  put_node(&graph, "Reshape", (const char *[]){"sum", "to", NULL}, "y", NULL, 0);
  put_node(&graph, "ReduceMax", (const char *[]){"y", "one", NULL}, "highest", "keepdims", 0);
  file->n = 0;
  put_model(file, "layer", &graph, 18);
}

/** y = |x| in the shape that an input gives. */
static inline void reshape_model(bytes *file) {
  bytes graph = {.n = 0};
  put_node(&graph, "Abs", (const char *[]){"x", NULL}, "a", NULL, 0);
  put_node(&graph, "Reshape", (const char *[]){"a", "shape", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "4", NULL});
  put_port(&graph, 11, "shape", ONNX_TYPE_I64, (const char *[]){"2", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"a", "b", NULL});
  put_model(file, "reshape", &graph, 13);
}

/** y = the rows of |x| before the one that an input gives. */
static inline void first_rows_model(bytes *file) {
  bytes graph = {.n = 0};
  put_weight(&graph, "zero", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){0}, 8);
  put_node(&graph, "Abs", (const char *[]){"x", NULL}, "a", NULL, 0);
  put_node(&graph, "Slice", (const char *[]){"a", "zero", "end", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "4", NULL});
  put_port(&graph, 11, "end", ONNX_TYPE_I64, (const char *[]){"1", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"a", "4", NULL});
  put_model(file, "first_rows", &graph, 13);
}

/** Makes the model y = x in rows of two, whose number is half of x's elements: sizes are known
   exactly at each run. */
static inline void halves_model(bytes *file) {
  bytes graph = {.n = 0};
  put_weight(&graph, "two", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){2}, 8);
  put_node(&graph, "Shape", (const char *[]){"x", NULL}, "shape", NULL, 0);
  put_node(&graph, "Div", (const char *[]){"shape", "two", NULL}, "half", NULL, 0);
  put_node(&graph, "Concat", (const char *[]){"half", "two", NULL}, "to", "axis", 0);
  put_node(&graph, "Reshape", (const char *[]){"x", "to", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"half", "2", NULL});
  put_model(file, "halves", &graph, 18);
}

#endif
