/* Tests the protobuf reader of ONNX files: samples against what Python found in them, files made by
   hand, hostile and truncated bytes, external data, bounded memory and failing allocations.

   Run as `test_onnx_proto SAMPLES`, the folder that tests/tools/make_onnx_samples.py wrote, or as
   `test_onnx_proto --dump MODEL`. TENON_TEST_ONNX names a real model to read too. */
#include "base/str.h"
#include "formats/onnx/file/onnx_file.h"
#include "support/counting_mem.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *samples;

/** State of one reading and its memory. */
typedef struct reading {
  counting_mem count;
  mem mem;
  diag diag;
  arena arena;
  onnx_model *model;
} reading;

static void reading_start(reading *r) {
  *r = (reading){.mem = counting_mem_of(&r->count)};
  arena_init(&r->arena, &r->mem, &r->diag);
}

static void reading_end(reading *r) {
  onnx_model_unmap(r->model);
  arena_free(&r->arena);
  assert_int_equal(r->count.bytes, 0);
}

static tn_status reading_parse(reading *r, const void *bytes, size_t n) {
  tn_status s = onnx_parse_model(&r->model, bytes, n, &r->arena, &r->diag);
  assert_true((s == TN_OK) == (r->model != NULL));
  assert_true(s == TN_OK || r->diag.text[0]);
  return s;
}

/* --- a model as text, in the form of make_onnx_samples.py --- */

static void put_quoted(str *s, const char *text, size_t n) {
  str_add(s, "\"");
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    str_addf(s, c >= 32 && c < 127 && c != '"' && c != '\\' ? "%c" : "\\x%02x", c);
  }
  str_add(s, "\"");
}

static void put_text(str *s, const char *text) {
  put_quoted(s, text, strlen(text));
  str_add(s, " ");
}

static void put_names(str *s, const onnx_names *names) {
  str_add(s, "(");
  for (size_t i = 0; i < names->n; i++) {
    str_add(s, i ? " " : "");
    put_quoted(s, names->at[i], strlen(names->at[i]));
  }
  str_add(s, ")");
}

static void put_digest(str *s, const unsigned char *data, size_t n) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n; i++) h = (h ^ data[i]) * UINT64_C(0x100000001b3);
  if (n > 64) str_addf(s, "fnv:%016" PRIx64, h);
  for (size_t i = 0; n <= 64 && i < n; i++) str_addf(s, "%02x", data[i]);
  if (!n) str_add(s, "-");
}

static void put_tensor(str *s, const onnx_tensor *t) {
  str_add(s, "tensor ");
  put_text(s, t->name);
  str_addf(s, "%s [", onnx_dtype_name(t->dtype));
  for (size_t i = 0; i < t->dims.n; i++) str_addf(s, i ? ",%" PRId64 : "%" PRId64, t->dims.at[i]);
  str_add(s, "]");
  for (size_t i = 0; i < t->strings.n; i++) {
    assert_int_equal(t->strings.at[i].at[t->strings.at[i].n], 0);
    str_add(s, " ");
    put_quoted(s, t->strings.at[i].at, t->strings.at[i].n);
  }
  if (t->external) {
    str_add(s, " at ");
    put_text(s, t->external->location);
    str_addf(s, "%zu", t->external->offset);
  }
  if (t->dtype != ONNX_STRING) {
    str_addf(s, " %zu ", t->bytes);
    put_digest(s, t->data, t->bytes);
  }
  str_add(s, "\n");
}

static void put_shape(str *s, const onnx_type *t) {
  str_add(s, "[");
  for (size_t i = 0; i < t->dims.n; i++) {
    const onnx_dim *dim = &t->dims.at[i];
    str_add(s, i ? "," : "");
    if (*dim->param)
      put_quoted(s, dim->param, strlen(dim->param));
    else if (dim->value >= 0)
      str_addf(s, "%" PRId64, dim->value);
    else
      str_add(s, "?");
  }
  str_add(s, "]");
}

static void put_type(str *s, const onnx_type *t) {
  if (!t || t->kind == ONNX_TYPE_NONE) {
    str_add(s, "none");
    return;
  }
  static const char *const names[] = {"none", "tensor", "sequence", "optional", "map"};
  str_addf(s, "%s(", names[t->kind]);
  if (t->kind == ONNX_TYPE_TENSOR || t->kind == ONNX_TYPE_MAP) str_addf(s, "%d", (int)t->dtype);
  if (t->kind == ONNX_TYPE_MAP) str_add(s, ",");
  if (t->kind == ONNX_TYPE_TENSOR && t->has_shape) put_shape(s, t);
  if (t->kind != ONNX_TYPE_TENSOR) put_type(s, t->elem);
  str_add(s, ")");
}

static void put_float(str *s, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  str_addf(s, " %08" PRIx32, bits);
}

static void put_bytes(str *s, const onnx_bytes *b) {
  assert_int_equal(b->at[b->n], 0);
  str_add(s, " ");
  put_quoted(s, b->at, b->n);
}

static void put_attribute_values(str *s, const onnx_attribute *a) {
  switch (a->type) {
  case ONNX_ATTRIBUTE_FLOAT: put_float(s, a->f); break;
  case ONNX_ATTRIBUTE_INT: str_addf(s, " %" PRId64, a->i); break;
  case ONNX_ATTRIBUTE_STRING: put_bytes(s, &a->s); break;
  case ONNX_ATTRIBUTE_FLOATS:
    for (size_t i = 0; i < a->floats.n; i++) put_float(s, a->floats.at[i]);
    break;
  case ONNX_ATTRIBUTE_INTS:
    for (size_t i = 0; i < a->ints.n; i++) str_addf(s, " %" PRId64, a->ints.at[i]);
    break;
  case ONNX_ATTRIBUTE_STRINGS:
    for (size_t i = 0; i < a->strings.n; i++) put_bytes(s, &a->strings.at[i]);
    break;
  case ONNX_ATTRIBUTE_TYPE:
    if (a->tp) {
      str_add(s, " ");
      put_type(s, a->tp);
    }
    break;
  case ONNX_ATTRIBUTE_TYPES:
    for (size_t i = 0; i < a->types.n; i++) {
      str_add(s, " ");
      put_type(s, &a->types.at[i]);
    }
    break;
  default: break;
  }
  str_add(s, "\n");
}

static void put_graph(str *s, const onnx_graph *g);

static void put_attribute(str *s, const onnx_attribute *a) {
  str_add(s, "attribute ");
  put_text(s, a->name);
  put_text(s, a->ref_name);
  str_addf(s, "%d", (int)a->type);
  put_attribute_values(s, a);
  if (a->type == ONNX_ATTRIBUTE_TENSOR && a->t) put_tensor(s, a->t);
  if (a->type == ONNX_ATTRIBUTE_GRAPH && a->g) put_graph(s, a->g);
  if (a->type == ONNX_ATTRIBUTE_TENSORS)
    for (size_t i = 0; i < a->tensors.n; i++) put_tensor(s, a->tensors.at[i]);
  if (a->type == ONNX_ATTRIBUTE_GRAPHS)
    for (size_t i = 0; i < a->graphs.n; i++) put_graph(s, a->graphs.at[i]);
}

static void put_nodes(str *s, const onnx_nodes *nodes) {
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    str_add(s, "node ");
    put_text(s, n->name);
    put_text(s, n->op_type);
    put_text(s, n->domain);
    put_text(s, n->overload);
    put_names(s, &n->inputs);
    str_add(s, " ");
    put_names(s, &n->outputs);
    str_add(s, "\n");
    for (size_t k = 0; k < n->attributes.n; k++) put_attribute(s, &n->attributes.at[k]);
  }
}

static void put_values(str *s, const char *what, const onnx_values *values) {
  for (size_t i = 0; i < values->n; i++) {
    str_addf(s, "%s ", what);
    put_text(s, values->at[i].name);
    put_type(s, &values->at[i].type);
    str_add(s, "\n");
  }
}

static void put_graph(str *s, const onnx_graph *g) {
  str_add(s, "graph ");
  put_quoted(s, g->name, strlen(g->name));
  str_add(s, "\n");
  put_values(s, "input", &g->inputs);
  put_values(s, "output", &g->outputs);
  put_values(s, "value", &g->values);
  for (size_t i = 0; i < g->initializers.n; i++) put_tensor(s, g->initializers.at[i]);
  put_nodes(s, &g->nodes);
  str_add(s, "end\n");
}

static void put_opsets(str *s, const onnx_opsets *opsets) {
  for (size_t i = 0; i < opsets->n; i++) {
    str_add(s, "opset ");
    put_text(s, opsets->at[i].domain);
    str_addf(s, "%" PRId64 "\n", opsets->at[i].version);
  }
}

static void put_function(str *s, const onnx_function *f) {
  str_add(s, "function ");
  put_text(s, f->name);
  put_text(s, f->domain);
  put_text(s, f->overload);
  put_names(s, &f->inputs);
  str_add(s, " ");
  put_names(s, &f->outputs);
  str_add(s, " ");
  put_names(s, &f->attributes);
  str_add(s, "\n");
  put_opsets(s, &f->opsets);
  put_values(s, "value", &f->values);
  for (size_t i = 0; i < f->defaults.n; i++) put_attribute(s, &f->defaults.at[i]);
  put_nodes(s, &f->nodes);
  str_add(s, "end\n");
}

static void put_model(str *s, const onnx_model *m) {
  str_addf(s, "model %" PRId64 " %" PRId64 " ", m->ir_version, m->model_version);
  put_text(s, m->producer_name);
  put_text(s, m->producer_version);
  put_quoted(s, m->domain, strlen(m->domain));
  str_add(s, "\n");
  put_opsets(s, &m->opsets);
  for (size_t i = 0; i < m->metadata.n; i++) {
    str_add(s, "metadata ");
    put_text(s, m->metadata.at[i].key);
    put_quoted(s, m->metadata.at[i].value, strlen(m->metadata.at[i].value));
    str_add(s, "\n");
  }
  put_graph(s, m->graph);
  for (size_t i = 0; i < m->functions.n; i++) put_function(s, &m->functions.at[i]);
}

typedef struct dumping {
  reading *reading;
  str text;
} dumping;

static void dump_body(void *arg) {
  dumping *d = arg;
  const onnx_model *m = d->reading->model;
  d->text = str_new(&d->reading->arena);
  for (size_t i = 0; i < m->external.n; i++)
    if (onnx_tensor_load(m, m->external.at[i], &d->reading->diag)) diag_rethrow(&d->reading->diag);
  put_model(&d->text, d->reading->model);
}

/* Returns the model's text, in the reading's arena. */
static const char *dump(reading *r) {
  dumping d = {.reading = r};
  assert_int_equal(diag_catch(&r->diag, dump_body, &d), TN_OK);
  return str_text(&d.text);
}

/* --- files --- */

typedef struct file_text {
  char *at;
  size_t n;
} file_text;

static file_text read_file(const char *folder, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f) fail_msg("cannot open %s", path);
  fseek(f, 0, SEEK_END);
  file_text t = {.n = (size_t)ftell(f)};
  rewind(f);
  t.at = malloc(t.n + 1);
  assert_non_null(t.at);
  assert_int_equal(fread(t.at, 1, t.n, f), t.n);
  t.at[t.n] = 0;
  fclose(f);
  return t;
}

/* Checks that a reading failed with `status` and a message that contains `part`. */
static void expect_error(const reading *r, tn_status s, tn_status status, const char *part) {
  if (s != status || !strstr(r->diag.text, part))
    fail_msg("status %d (%s), wanted %d with '%s'", (int)s, r->diag.text, (int)status, part);
}

/* --- samples --- */

static const char *const sample_names[] = {"full",   "types",     "dtypes",
                                           "nested", "functions", "external"};
enum { SAMPLES = sizeof sample_names / sizeof *sample_names };

static void test_samples(void **state) {
  (void)state;
  for (int i = 0; i < SAMPLES; i++) {
    char path[1024], name[64];
    snprintf(path, sizeof path, "%s/%s.onnx", samples, sample_names[i]);
    snprintf(name, sizeof name, "%s.txt", sample_names[i]);
    file_text expected = read_file(samples, name);
    reading r;
    reading_start(&r);
    tn_status s = onnx_load_file(&r.model, path, path, NULL, ONNX_IN_PARTS, &r.arena, &r.diag);
    if (s != TN_OK) fail_msg("%s", r.diag.text);
    assert_string_equal(dump(&r), expected.at);
    reading_end(&r);
    free(expected.at);
  }
}

static bool in_map(const file_map *map, const onnx_tensor *t) {
  uintptr_t from = (uintptr_t)map->data, at = (uintptr_t)t->data;
  return at >= from && at - from <= map->bytes && t->bytes <= map->bytes - (at - from);
}

static void test_raw_data_is_not_copied(void **state) {
  (void)state;
  char path[1024];
  size_t raw = 0, copied = 0;
  snprintf(path, sizeof path, "%s/dtypes.onnx", samples);
  reading r;
  reading_start(&r);
  assert_int_equal(onnx_load_file(&r.model, path, path, NULL, ONNX_IN_PARTS, &r.arena, &r.diag),
                   TN_OK);
  const onnx_tensors *list = &r.model->graph->initializers;
  for (size_t i = 0; i < list->n; i++) {
    const onnx_tensor *t = list->at[i];
    if (!t->bytes) assert_null(t->data);
    if (!t->bytes) continue;
    unsigned bits = onnx_dtype_bits(t->dtype);
    if (bits == 4 || bits == 2) continue; /* unpacked */
    bool is_raw = !strncmp(t->name, "raw_", 4);
    assert_int_equal(in_map(&r.model->file, t), is_raw);
    *(is_raw ? &raw : &copied) += 1;
  }
  assert_true(raw > 50 && copied > 20);
  reading_end(&r);
}

/* --- protobuf by hand --- */

typedef struct proto {
  unsigned char at[4096];
  size_t n;
} proto;

static void put_varint(proto *p, uint64_t x) {
  for (; x >= 0x80; x >>= 7) p->at[p->n++] = (unsigned char)(x | 0x80);
  p->at[p->n++] = (unsigned char)x;
}

static void put_data(proto *p, unsigned field, const void *data, size_t n) {
  put_varint(p, field << 3 | 2);
  put_varint(p, n);
  assert_true(p->n + n <= sizeof p->at);
  memcpy(p->at + p->n, data, n);
  p->n += n;
}

static void put_int(proto *p, unsigned field, int64_t x) {
  put_varint(p, field << 3);
  put_varint(p, (uint64_t)x);
}

static void put_string(proto *p, unsigned field, const char *s) {
  put_data(p, field, s, strlen(s));
}
static void put_message(proto *p, unsigned field, const proto *m) {
  put_data(p, field, m->at, m->n);
}

/* Encodes a model with only a graph. */
static proto model_of(const proto *graph) {
  proto m = {.n = 0}, opset = {.n = 0};
  put_int(&m, 1, 8);
  put_int(&opset, 2, 17);
  put_message(&m, 8, &opset);
  put_message(&m, 7, graph);
  return m;
}

static proto in_graph(unsigned field, const proto *m) {
  proto graph = {.n = 0};
  put_string(&graph, 2, "g");
  put_message(&graph, field, m);
  return model_of(&graph);
}

static proto in_attribute(unsigned field, const proto *m, int type) {
  proto attribute = {.n = 0}, node = {.n = 0};
  put_string(&attribute, 1, "a");
  put_message(&attribute, field, m);
  if (type) put_int(&attribute, 20, type);
  put_string(&node, 4, "Op");
  put_message(&node, 5, &attribute);
  return in_graph(1, &node);
}

static proto tensor_of(int dtype, int64_t dim) {
  proto t = {.n = 0};
  put_string(&t, 8, "w");
  put_int(&t, 2, dtype);
  put_int(&t, 1, dim);
  return t;
}

/* Parses a copy of the exact size, so that sanitizers see overruns. */
static void parse_bytes(const void *bytes, size_t n, tn_status status, const char *part) {
  unsigned char *copy = malloc(n ? n : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, n);
  reading r;
  reading_start(&r);
  expect_error(&r, reading_parse(&r, copy, n), status, part);
  reading_end(&r);
  free(copy);
}

static void expect(const proto *p, tn_status status, const char *part) {
  parse_bytes(p->at, p->n, status, part);
}

static void expect_tensor(const proto *t, tn_status status, const char *part) {
  proto m = in_graph(5, t);
  expect(&m, status, part);
}

static void test_models_by_hand(void **state) {
  (void)state;
  proto none = {.n = 0}, opset = {.n = 0}, m = model_of(&none);
  expect(&m, TN_OK, "");
  expect(&none, TN_ERR_FORMAT, "empty");
  static const char png[] = "\x89PNG\r\n\x1a\n and more of it";
  parse_bytes(png, sizeof png, TN_ERR_FORMAT, "not an ONNX model, or damaged at byte");
  parse_bytes("hello, world\n", 13, TN_ERR_FORMAT, "not an ONNX model");
  parse_bytes("root:x:0:0:root", 15, TN_ERR_FORMAT, "not an ONNX model, or damaged at byte");
  parse_bytes("r\3ab\0", 5, TN_ERR_FORMAT, "not an ONNX model");
  put_int(&none, 5, 3);
  expect(&none, TN_ERR_FORMAT, "IR version is missing");
  m = (proto){.n = 0};
  put_int(&m, 1, 8);
  expect(&m, TN_ERR_FORMAT, "no graph");
  put_data(&m, 7, "", 0);
  expect(&m, TN_ERR_FORMAT, "no operator set");
  put_message(&m, 8, &opset);
  expect(&m, TN_ERR_FORMAT, "operator set 0: has version 0");
  for (int version = 0; version < 20; version++) {
    m = model_of(&opset);
    put_int(&m, 1, version);
    bool known = version >= 3 && version <= 14;
    expect(&m, known ? TN_OK : TN_ERR_UNSUPPORTED, known ? "" : "IR version");
  }
}

static void test_tensors_by_hand(void **state) {
  (void)state;
  static const unsigned char zeros[64] = {0};
  proto t = tensor_of(1, 4);
  expect_tensor(&t, TN_ERR_FORMAT,
                "graph 'g': tensor 'w': has 0 bytes of data, but f32 of shape [4] needs 16");
  put_data(&t, 9, zeros, 15);
  expect_tensor(&t, TN_ERR_FORMAT, "has 15 bytes of data, but f32 of shape [4] needs 16");
  put_data(&t, 9, zeros, 17);
  expect_tensor(&t, TN_ERR_FORMAT, "has 17 bytes of data, but f32 of shape [4] needs 16");
  put_data(&t, 9, zeros, 16);
  expect_tensor(&t, TN_OK, "");
  put_data(&t, 4, zeros, 16);
  expect_tensor(&t, TN_ERR_FORMAT, "elements in both raw_data and float_data");

  t = tensor_of(1, 4);
  put_data(&t, 4, zeros, 15);
  expect_tensor(&t, TN_ERR_FORMAT, "float_data has 15 bytes");
  t = tensor_of(1, 4);
  put_data(&t, 7, zeros, 4);
  expect_tensor(&t, TN_ERR_FORMAT, "in int64_data, which cannot hold f32");
  t = tensor_of(7, 4);
  put_data(&t, 7, zeros, 3);
  expect_tensor(&t, TN_ERR_FORMAT, "has 24 bytes of data, but i64 of shape [4] needs 32");
  t = tensor_of(27, 4);
  put_data(&t, 5, zeros, 5);
  expect_tensor(&t, TN_ERR_FORMAT, "has 4 bytes of data, but f6e2m3 of shape [4] needs 3");
  t = tensor_of(27, 1);
  put_int(&t, 5, 64);
  expect_tensor(&t, TN_ERR_FORMAT, "does not fit in 6 bits");
  t = tensor_of(2, 1);
  put_int(&t, 5, 256);
  expect_tensor(&t, TN_ERR_FORMAT, "has the element 256, which does not fit in u8");
  t = tensor_of(8, 2);
  put_string(&t, 6, "one");
  expect_tensor(&t, TN_ERR_FORMAT, "has 1 strings, but shape [2] needs 2");
  t = tensor_of(8, 2);
  put_data(&t, 9, zeros, 2);
  expect_tensor(&t, TN_ERR_FORMAT, "in raw_data, which cannot hold string");

  t = tensor_of(1, -1);
  expect_tensor(&t, TN_ERR_FORMAT, "negative dimension -1");
  t = tensor_of(1, INT64_MAX);
  expect_tensor(&t, TN_ERR_FORMAT, "too many elements");
  t = tensor_of(2, INT64_C(1) << 40);
  put_int(&t, 1, INT64_C(1) << 40);
  expect_tensor(&t, TN_ERR_FORMAT, "too many elements: [1099511627776, 109");
  t = tensor_of(2, INT64_C(1) << 40);
  put_int(&t, 1, 0);
  expect_tensor(&t, TN_OK, "");
  put_int(&t, 1, INT64_C(1) << 40);
  expect_tensor(&t, TN_ERR_FORMAT, "too many elements: [1099511627776, 0, 109");
  t = tensor_of(1, 1);
  for (int i = 0; i < 200; i++) put_int(&t, 1, 1);
  expect_tensor(&t, TN_ERR_FORMAT, "1, 1, ...] needs 4");
  t = tensor_of(0, 1);
  expect_tensor(&t, TN_ERR_FORMAT, "no element type");
  for (int dtype = -1; dtype < 40; dtype++) {
    t = tensor_of(dtype, 0);
    bool known = onnx_dtype_name(dtype) != NULL;
    assert_int_equal(known, dtype >= 1 && dtype <= 28);
    if (dtype) expect_tensor(&t, known ? TN_OK : TN_ERR_UNSUPPORTED, known ? "" : "element type");
  }
  t = tensor_of(1, 0);
  put_data(&t, 3, "", 0);
  expect_tensor(&t, TN_ERR_UNSUPPORTED, "segment");
}

static void test_initializer_names(void **state) {
  (void)state;
  proto t = tensor_of(1, 0), graph = {.n = 0};
  put_message(&graph, 5, &t);
  put_string(&t, 8, "v");
  put_message(&graph, 5, &t);
  proto m = model_of(&graph);
  expect(&m, TN_OK, "");
  put_string(&t, 8, "w");
  put_message(&graph, 5, &t);
  m = model_of(&graph);
  expect(&m, TN_ERR_FORMAT, "graph: has two initializers named 'w'");
  t = tensor_of(1, 0);
  put_string(&t, 8, "");
  expect_tensor(&t, TN_ERR_FORMAT, "an initializer without a name");
}

static void expect_external(const char *key, const char *value, tn_status status,
                            const char *part) {
  proto t = tensor_of(1, 4), entry = {.n = 0}, location = {.n = 0};
  put_int(&t, 14, 1);
  put_string(&location, 1, "location");
  put_string(&location, 2, "w.bin");
  put_message(&t, 13, &location);
  put_string(&entry, 1, key);
  put_string(&entry, 2, value);
  put_message(&t, 13, &entry);
  expect_tensor(&t, status, part);
}

static void test_external_by_hand(void **state) {
  (void)state;
  static const char *const bad[] = {"", "/etc/passwd", "..", "../w", "a/../../w", "a/..", "./.."};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_external("location", bad[i], TN_ERR_FORMAT, "model's folder");
  static const char *const good[] = {"w", "./w", "a/b", "..w", "a..", "a/...", "w.."};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    expect_external("location", good[i], TN_OK, "");
  static const char *const numbers[] = {"",   "-1", " 1", "1x", "0x10", "18446744073709551616",
                                        "1.5"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    expect_external("offset", numbers[i], TN_ERR_FORMAT, "external data with offset");
  expect_external("offset", "18446744073709551615", TN_OK, "");
  expect_external("length", "16", TN_OK, "");
  expect_external("length", "15", TN_ERR_FORMAT,
                  "tensor 'w': has 15 bytes of external data, but f32 of shape [4] needs 16");
  proto t = tensor_of(1, 1);
  put_int(&t, 14, 2);
  expect_tensor(&t, TN_ERR_FORMAT, "data location 2");
  t = tensor_of(8, 1);
  put_int(&t, 14, 1);
  expect_tensor(&t, TN_ERR_FORMAT, "external data of strings");
  t = tensor_of(1, 1);
  put_data(&t, 9, "abcd", 4);
  put_int(&t, 14, 1);
  expect_tensor(&t, TN_ERR_FORMAT, "both elements in raw_data and external data");
}

static void test_nodes_by_hand(void **state) {
  (void)state;
  proto none = {.n = 0}, m = in_graph(1, &none);
  expect(&m, TN_ERR_FORMAT, "graph 'g': node 0: has no op_type");
  m = in_graph(11, &none);
  expect(&m, TN_ERR_FORMAT, "input 0 has no name");
  m = in_graph(12, &none);
  expect(&m, TN_ERR_FORMAT, "output 0 has no name");
  m = in_graph(15, &none);
  expect(&m, TN_ERR_FORMAT, "sparse tensor 0: has no values");
  m = in_attribute(22, &none, 11);
  expect(&m, TN_ERR_FORMAT, "node 0: attribute 'a': sparse tensor: has no values");
  m = in_attribute(9, &none, 11);
  expect(&m, TN_ERR_FORMAT, "node 0: attribute 'a': has no sparse tensor");
  m = in_attribute(23, &none, 12);
  expect(&m, TN_ERR_UNSUPPORTED, "lists of sparse tensors");
  m = in_attribute(9, &none, 12);
  expect(&m, TN_ERR_UNSUPPORTED, "lists of sparse tensors");
  m = in_attribute(9, &none, 0);
  expect(&m, TN_ERR_FORMAT, "node 0: attribute 'a': has no type");
  m = in_attribute(9, &none, 15);
  expect(&m, TN_ERR_UNSUPPORTED, "unknown type 15");
  static const struct {
    int type;
    const char *what;
  } needed[] = {{4, "has no tensor"}, {5, "has no graph"}, {13, "has no type"}};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    m = in_attribute(9, &none, needed[i].type);
    expect(&m, TN_ERR_FORMAT, needed[i].what);
  }
  proto t = tensor_of(1, 0), attribute = {.n = 0}, node = {.n = 0};
  put_string(&attribute, 1, "a");
  put_message(&attribute, 5, &t);
  put_message(&attribute, 5, &t);
  put_message(&node, 5, &attribute);
  m = in_graph(1, &node);
  expect(&m, TN_ERR_FORMAT, "has two tensors");
  node = (proto){.n = 0};
  put_message(&node, 5, &none);
  m = in_graph(1, &node);
  expect(&m, TN_ERR_FORMAT, "attribute 0: has no name");
  node = (proto){.n = 0};
  put_data(&node, 4, "A\0B", 3);
  m = in_graph(1, &node);
  expect(&m, TN_ERR_FORMAT, "NUL");
}

static proto value_of_dim(const proto *dim) {
  proto shape = {.n = 0}, tensor = {.n = 0}, type = {.n = 0}, value = {.n = 0};
  put_message(&shape, 1, dim);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_string(&value, 1, "v");
  put_message(&value, 2, &type);
  return in_graph(13, &value);
}

static void test_types_by_hand(void **state) {
  (void)state;
  proto dim = {.n = 0}, m;
  put_int(&dim, 1, -1);
  m = value_of_dim(&dim);
  expect(&m, TN_OK, "");
  put_int(&dim, 1, -2);
  m = value_of_dim(&dim);
  expect(&m, TN_ERR_FORMAT, "value 'v': type: dimension 0: is negative: -2");
  put_int(&dim, 1, 2);
  put_string(&dim, 2, "N");
  m = value_of_dim(&dim);
  expect(&m, TN_ERR_FORMAT, "has both the value 2 and the name 'N'");
  for (unsigned field = 7; field <= 8; field++) {
    proto type = {.n = 0}, value = {.n = 0};
    put_data(&type, field, "", 0);
    put_message(&value, 2, &type);
    m = in_graph(13, &value);
    expect(&m, TN_ERR_UNSUPPORTED, "sparse tensors and opaque values");
  }
}

/* Unknown fields of every number and wire type. */
static void test_unknown_fields_are_skipped(void **state) {
  (void)state;
  proto graph = {.n = 0};
  put_int(&graph, 100, -1);
  put_data(&graph, 4, "skipped", 7);
  put_varint(&graph, (uint64_t)0x1fffffff << 3 | 1);
  graph.n += 8;
  put_varint(&graph, 3000u << 3 | 5);
  graph.n += 4;
  put_string(&graph, 2, "g");
  proto m = model_of(&graph);
  reading r;
  reading_start(&r);
  assert_int_equal(reading_parse(&r, m.at, m.n), TN_OK);
  assert_string_equal(r.model->graph->name, "g");
  reading_end(&r);
}

/* Varints in place of length-delimited fields, and the other way round. */
static void test_wrong_wire_types(void **state) {
  (void)state;
  static const unsigned fields[] = {1, 2, 5, 11, 12, 13, 15};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    proto graph = {.n = 0};
    put_int(&graph, fields[i], 5);
    proto m = model_of(&graph);
    expect(&m, TN_ERR_FORMAT, "");
  }
  proto t = tensor_of(2, 1);
  put_int(&t, 9, 5);
  expect_tensor(&t, TN_ERR_FORMAT, "expected bytes, found a number");
  t = tensor_of(2, 1);
  put_data(&t, 2, "\1", 1);
  expect_tensor(&t, TN_ERR_FORMAT, "wrong wire type");
}

/* Repeated numbers unpacked, packed, and both in one field. */
static void test_packed_or_not(void **state) {
  (void)state;
  proto a = {.n = 0}, node = {.n = 0};
  static const unsigned char one[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
  put_string(&a, 1, "a");
  put_int(&a, 20, 7);
  put_int(&a, 8, -5);
  put_data(&a, 8, "\x01\x80\x01\x03", 4);
  put_int(&a, 8, 300);
  put_data(&a, 7, one, 8);
  put_varint(&a, 7 << 3 | 5);
  memcpy(a.at + a.n, one, 4);
  a.n += 4;
  put_string(&node, 4, "Op");
  put_message(&node, 5, &a);
  proto m = in_graph(1, &node);
  reading r;
  reading_start(&r);
  assert_int_equal(reading_parse(&r, m.at, m.n), TN_OK);
  const onnx_attribute *found = &r.model->graph->nodes.at[0].attributes.at[0];
  static const int64_t ints[] = {-5, 1, 128, 3, 300};
  static const float floats[] = {1, 2, 1};
  assert_int_equal(found->ints.n, 5);
  assert_memory_equal(found->ints.at, ints, sizeof ints);
  assert_int_equal(found->floats.n, 3);
  assert_memory_equal(found->floats.at, floats, sizeof floats);
  reading_end(&r);

  proto t = tensor_of(3, 4);
  put_int(&t, 5, -1);
  put_data(&t, 5, "\x01\x02", 2);
  put_int(&t, 5, 200);
  m = in_graph(5, &t);
  reading_start(&r);
  assert_int_equal(reading_parse(&r, m.at, m.n), TN_OK);
  assert_memory_equal(r.model->graph->initializers.at[0]->data, "\xff\x01\x02\xc8", 4);
  reading_end(&r);
}

static void expect_element(int dtype, int64_t value, const char *bytes, size_t n) {
  proto t = tensor_of(dtype, 1);
  put_int(&t, 5, value);
  proto m = in_graph(5, &t);
  reading r;
  reading_start(&r);
  assert_int_equal(reading_parse(&r, m.at, m.n), TN_OK);
  assert_int_equal(r.model->graph->initializers.at[0]->bytes, n);
  assert_memory_equal(r.model->graph->initializers.at[0]->data, bytes, n);
  reading_end(&r);
}

static void test_elements_of_int32_data(void **state) {
  (void)state;
  expect_element(ONNX_BOOL, 2, "\1", 1);
  expect_element(ONNX_BOOL, 256, "\1", 1);
  expect_element(ONNX_I8, -128, "\x80", 1);
  expect_element(ONNX_I32, UINT32_MAX, "\xff\xff\xff\xff", 4);
  expect_element(ONNX_I16, UINT32_MAX, "\xff\xff", 2);
  expect_element(ONNX_F16, 0x3c00, "\x00\x3c", 2);
}

/* A message field given twice is merged, as protobuf requires. */
static void test_graphs_merge(void **state) {
  (void)state;
  proto first = {.n = 0}, second = {.n = 0}, node = {.n = 0};
  put_string(&node, 4, "Op");
  put_message(&first, 1, &node);
  put_string(&first, 2, "first");
  put_message(&second, 1, &node);
  put_message(&second, 1, &node);
  proto m = model_of(&first);
  put_message(&m, 7, &second);
  reading r;
  reading_start(&r);
  assert_int_equal(reading_parse(&r, m.at, m.n), TN_OK);
  assert_int_equal(r.model->graph->nodes.n, 3);
  assert_string_equal(r.model->graph->name, "first");
  reading_end(&r);
}

/* --- hostile files --- */

/* Nested messages, built from the inside out at the end of a buffer. */
typedef struct nest {
  unsigned char *buffer, *at;
  size_t bytes, n;
} nest;

static nest nest_new(size_t bytes) {
  nest t = {.buffer = malloc(bytes), .bytes = bytes};
  assert_non_null(t.buffer);
  t.at = t.buffer + bytes;
  return t;
}

static void nest_before(nest *t, const proto *p) {
  assert_true((size_t)(t->at - t->buffer) >= p->n);
  t->at -= p->n;
  t->n += p->n;
  memcpy(t->at, p->at, p->n);
}

static void nest_in(nest *t, unsigned field) {
  proto head = {.n = 0};
  put_varint(&head, field << 3 | 2);
  put_varint(&head, t->n);
  nest_before(t, &head);
}

static void nest_model(nest *t) {
  proto head = {.n = 0};
  nest_in(t, 7);
  put_int(&head, 1, 8);
  put_data(&head, 8, "\x10\x11", 2);
  nest_before(t, &head);
}

static void expect_graphs(size_t depth, tn_status status, const char *part) {
  nest t = nest_new(depth * 64 + 64);
  proto kind = {.n = 0}, op = {.n = 0};
  put_string(&kind, 1, "g");
  put_int(&kind, 20, ONNX_ATTRIBUTE_GRAPH);
  put_string(&op, 4, "If");
  for (size_t i = 1; i < depth; i++) {
    nest_in(&t, 6);
    nest_before(&t, &kind);
    nest_in(&t, 5);
    nest_before(&t, &op);
    nest_in(&t, 1);
  }
  nest_model(&t);
  parse_bytes(t.at, t.n, status, part);
  free(t.buffer);
}

static void expect_types(size_t depth, tn_status status, const char *part) {
  nest t = nest_new(depth * 32 + 64);
  for (size_t i = 0; i < depth; i++) {
    nest_in(&t, 1);
    nest_in(&t, i % 2 ? 4 : 9);
  }
  nest_in(&t, 2);
  nest_in(&t, 13);
  nest_model(&t);
  parse_bytes(t.at, t.n, status, part);
  free(t.buffer);
}

static void test_nesting(void **state) {
  (void)state;
  expect_graphs(ONNX_NESTING_MAX, TN_OK, "");
  expect_graphs(ONNX_NESTING_MAX + 1, TN_ERR_UNSUPPORTED, "nested deeper than 64 levels");
  expect_graphs(100000, TN_ERR_UNSUPPORTED, "nested deeper than 64 levels");
  expect_types(ONNX_NESTING_MAX - 2, TN_OK,
               ""); /* the graph and the innermost type count as levels too */
  expect_types(ONNX_NESTING_MAX - 1, TN_ERR_UNSUPPORTED, "nested deeper than 64 levels");
  expect_types(100000, TN_ERR_UNSUPPORTED, "nested deeper than 64 levels");
}

static void parse_quietly(const unsigned char *bytes, size_t n) {
  reading r;
  reading_start(&r);
  if (reading_parse(&r, bytes, n) == TN_OK && !r.model->external.n) dump(&r);
  reading_end(&r);
}

static void test_truncated_anywhere(void **state) {
  (void)state;
  for (int i = 0; i < SAMPLES; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.onnx", sample_names[i]);
    file_text file = read_file(samples, name);
    for (size_t n = 0; n < file.n; n++) {
      unsigned char *copy = malloc(n ? n : 1);
      assert_non_null(copy);
      memcpy(copy, file.at, n);
      parse_quietly(copy, n);
      free(copy);
    }
    free(file.at);
  }
}

static void test_changed_anywhere(void **state) {
  (void)state;
  static const unsigned char flips[] = {0x01, 0x02, 0x08, 0x7f, 0x80, 0xff};
  for (int i = 0; i < SAMPLES; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.onnx", sample_names[i]);
    file_text file = read_file(samples, name);
    for (size_t at = 0; at < file.n && at < 1500; at++)
      for (size_t k = 0; k < sizeof flips; k++) {
        file.at[at] = (char)(file.at[at] ^ flips[k]);
        parse_quietly((unsigned char *)file.at, file.n);
        file.at[at] = (char)(file.at[at] ^ flips[k]);
      }
    free(file.at);
  }
}

static void test_every_allocation_fails(void **state) {
  (void)state;
  for (int i = 0; i < SAMPLES; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.onnx", samples, sample_names[i]);
    tn_status s = TN_ERR_MEMORY;
    for (size_t n = 1; s == TN_ERR_MEMORY; n++) {
      reading r;
      reading_start(&r);
      r.count.fail_at = n;
      s = onnx_load_file(&r.model, path, path, NULL, ONNX_IN_PARTS, &r.arena, &r.diag);
      assert_true(n > 1 || s == TN_ERR_MEMORY);
      reading_end(&r);
    }
    assert_int_equal(s, TN_OK);
  }
}

/* A megabyte of the smallest messages that a list can hold: the path of fields from the graph
   inwards, and the message. Invalid outer messages may be refused, but only at their end. */
typedef struct flood {
  const char *path;
  const char *item;
  size_t n;
} flood;

static void expect_bounded(const flood *f) {
  enum { BYTES = 1 << 20 };
  nest t = nest_new(BYTES + 128);
  while (t.n + f->n <= BYTES) {
    t.n += f->n;
    memcpy(t.at -= f->n, f->item, f->n);
  }
  for (const char *field = f->path; *field; field++) nest_in(&t, (unsigned)*field);
  nest_model(&t);
  reading r;
  reading_start(&r);
  reading_parse(&r, t.at, t.n);
  assert_true(r.count.peak >= t.n);
  if (r.count.peak > 192 * t.n)
    fail_msg("%zu bytes for a file of %zu", atomic_load(&r.count.peak), t.n);
  reading_end(&r);
  free(t.buffer);
}

#define FLOOD(path, item) \
  { path, item, sizeof item - 1 }

static void test_memory_is_bounded(void **state) {
  (void)state;
  static const flood floods[] = {
      FLOOD("", "\x0a\x03\x22\x01X"),                 /* nodes */
      FLOOD("", "\x6a\x00"),                          /* values */
      FLOOD("", "\x2a\x04\x08\x00\x10\x01"),          /* initializers */
      FLOOD("\x01", "\x0a\x00"),                      /* names */
      FLOOD("\x01", "\x2a\x06\x0a\x01X\xa0\x01\x01"), /* attributes */
      FLOOD("\x05\x01", "\x40\x01"),                  /* integers one by one */
      FLOOD("\x08\x05\x01", "\x01"),                  /* integers packed */
      FLOOD("\x07\x05\x01", "1234"),                  /* floats */
      FLOOD("\x05\x01", "\x4a\x00"),                  /* strings */
      FLOOD("\x05\x01", "\x52\x04\x08\x00\x10\x01"),  /* tensors */
      FLOOD("\x05\x01", "\x5a\x00"),                  /* graphs */
      FLOOD("\x05\x01", "\x7a\x00"),                  /* types */
      FLOOD("\x05", "\x08\x01"),                      /* dimensions of a tensor */
      FLOOD("\x05", "\x28\x01"),                      /* elements of a tensor */
      FLOOD("\x05\x05", "\x01"),
      FLOOD("\x07\x05", "\x01"),
      FLOOD("\x04\x05", "1234"),
      FLOOD("\x05", "\x32\x00"),
      FLOOD("\x05", "\x6a\x00"),             /* external data */
      FLOOD("\x02\x01\x02\x0d", "\x0a\x00"), /* dimensions of a value */
  };
  for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) expect_bounded(&floods[i]);
}

/* Lengths far beyond the file are checked before memory is allocated. */
static void test_lying_lengths(void **state) {
  (void)state;
  static const uint64_t lengths[] = {100, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
  for (unsigned field = 1; field < 26; field++)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      proto p = {.n = 0};
      put_varint(&p, field << 3 | 2);
      put_varint(&p, lengths[i]);
      expect(&p, TN_ERR_FORMAT, "damaged at byte");
      proto m = in_graph(5, &p);
      expect(&m, TN_ERR_FORMAT, "tensor 0: damaged at byte");
    }
}

/* --- loading --- */

typedef struct folder {
  char path[256], model[300];
} folder;

static folder folder_new(void) {
  folder f = {.path = "/tmp/tenon-onnx-XXXXXX"};
  assert_non_null(mkdtemp(f.path));
  snprintf(f.model, sizeof f.model, "%s/m.onnx", f.path);
  return f;
}

static void folder_put(const folder *f, const char *name, const void *data, size_t n) {
  char path[512];
  diag d = {.status = TN_OK};
  snprintf(path, sizeof path, "%s/%s", f->path, name);
  assert_int_equal(file_write(path, data, n, &d), TN_OK);
}

static void folder_free(const folder *f) {
  char path[512];
  snprintf(path, sizeof path, "%s/w.bin", f->path);
  unlink(path);
  unlink(f->model);
  assert_int_equal(rmdir(f->path), 0);
}

static bool is_mapped(const char *path) {
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, path) != NULL;
  if (maps) fclose(maps);
  return found;
}

static void expect_load(const char *path, tn_status status, const char *part) {
  for (int access = ONNX_IN_PARTS; access <= ONNX_MAPPED; access++) {
    reading r;
    reading_start(&r);
    tn_status s =
        onnx_load_file(&r.model, path, path, NULL, (onnx_access)access, &r.arena, &r.diag);
    expect_error(&r, s, status, part);
    assert_true((s == TN_OK) == (r.model != NULL));
    assert_int_equal(is_mapped("/tenon-onnx-"), s == TN_OK && access == ONNX_MAPPED);
    reading_end(&r);
    assert_false(is_mapped("/tenon-onnx-"));
  }
}

static void put_external(proto *graph, const char *name, const char *offset) {
  proto t = tensor_of(1, 4), entry = {.n = 0};
  put_string(&t, 8, name);
  put_int(&t, 14, 1);
  put_string(&entry, 1, "location");
  put_string(&entry, 2, "w.bin");
  put_message(&t, 13, &entry);
  entry.n = 0;
  put_string(&entry, 1, "offset");
  put_string(&entry, 2, offset);
  put_message(&t, 13, &entry);
  put_message(graph, 5, &t);
}

static void test_load(void **state) {
  (void)state;
  folder f = folder_new();
  expect_load(f.model, TN_ERR_IO, "m.onnx");
  expect_load(f.path, TN_ERR_IO, f.path);
  folder_put(&f, "m.onnx", "", 0);
  expect_load(f.model, TN_ERR_FORMAT, "m.onnx: not an ONNX model: the file is empty");
  folder_put(&f, "m.onnx", "\7", 1);
  expect_load(f.model, TN_ERR_FORMAT, "not an ONNX model, or damaged");
  proto graph = {.n = 0};
  put_external(&graph, "v", "0");
  put_external(&graph, "w", "16");
  proto m = model_of(&graph);
  folder_put(&f, "m.onnx", m.at, m.n);
  expect_load(f.model, TN_ERR_IO, "w.bin");
  folder_put(&f, "w.bin", "0123456789abcdef0123456789abcdef", 31);
  expect_load(f.model, TN_ERR_FORMAT,
              "m.onnx: tensor 'w': 16 bytes of external data at offset 16 extend beyond the end of "
              "'w.bin' (31 bytes)");
  folder_put(&f, "w.bin", "", 0);
  expect_load(f.model, TN_ERR_FORMAT, "beyond the end");
  folder_put(&f, "w.bin", "0123456789abcdef0123456789abcdef", 32);
  expect_load(f.model, TN_OK, "");

  put_external(&graph, "x", "18446744073709551615");
  m = model_of(&graph);
  folder_put(&f, "m.onnx", m.at, m.n);
  expect_load(f.model, TN_ERR_FORMAT, "tensor 'x'");
  folder_free(&f);
}

/** Links of external data may point to files in its folder, or in that of the model's own file. */
static void test_external_links(void **state) {
  (void)state;
  static const char data[] = "0123456789abcdef";
  folder f = folder_new(), other = folder_new();
  char link[300], out[300], model[300], below[300];
  snprintf(link, sizeof link, "%s/w.bin", f.path);
  snprintf(out, sizeof out, "%s/blob", other.path);
  snprintf(below, sizeof below, "%s/blob", f.path);
  snprintf(model, sizeof model, "%s/m.onnx", other.path);
  proto graph = {.n = 0};
  put_external(&graph, "v", "0");
  proto m = model_of(&graph);
  folder_put(&f, "m.onnx", m.at, m.n);
  folder_put(&other, "blob", data, 16);
  assert_int_equal(symlink(out, link), 0);
  expect_load(f.model, TN_ERR_IO, "w.bin\": a link leads out of the folder");
  assert_int_equal(unlink(link) | symlink("/etc/passwd", link), 0);
  expect_load(f.model, TN_ERR_IO, "a link leads out of the folder");
  folder_put(&f, "blob", data, 16);
  assert_int_equal(unlink(link) | symlink("blob", link), 0);
  expect_load(f.model, TN_OK, "");
  assert_int_equal(unlink(link) | symlink("nowhere", link), 0);
  expect_load(f.model, TN_ERR_IO, "w.bin");
  assert_int_equal(unlink(link) | symlink(out, link), 0);
  folder_put(&other, "m.onnx", m.at, m.n);
  assert_int_equal(unlink(f.model) | symlink(model, f.model), 0);
  expect_load(f.model, TN_OK, "");
  reading r;
  reading_start(&r);
  assert_int_equal(
      onnx_load_file(&r.model, f.model, f.model, f.path, ONNX_IN_PARTS, &r.arena, &r.diag),
      TN_ERR_IO);
  assert_non_null(strstr(r.diag.text, "a link leads out of the folder"));
  reading_end(&r);
  assert_int_equal(unlink(out) | unlink(below), 0);
  folder_free(&f);
  folder_free(&other);
}

static void test_external_files_are_shared(void **state) {
  (void)state;
  char path[1024];
  snprintf(path, sizeof path, "%s/external.onnx", samples);
  reading r;
  reading_start(&r);
  assert_int_equal(onnx_load_file(&r.model, path, path, NULL, ONNX_IN_PARTS, &r.arena, &r.diag),
                   TN_OK);
  assert_int_equal(r.model->external.n, 4);
  assert_int_equal(r.model->external_files.n, 3);
  onnx_model_unmap(r.model);
  assert_int_equal(r.model->external_files.n, 0);
  assert_null(r.model->file.data);
  reading_end(&r);
}

static int dump_to_output(const char *path) {
  reading r;
  reading_start(&r);
  tn_status s = onnx_load_file(&r.model, path, path, NULL, ONNX_IN_PARTS, &r.arena, &r.diag);
  if (s == TN_OK)
    fputs(dump(&r), stdout);
  else
    fprintf(stderr, "%s\n", r.diag.text);
  onnx_model_unmap(r.model);
  arena_free(&r.arena);
  return s != TN_OK;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--dump")) return dump_to_output(argv[2]);
  if (argc > 2) return fprintf(stderr, "usage: test_onnx_proto [SAMPLES] | --dump MODEL\n"), 2;
  samples = argc == 2 ? argv[1] : "tests/data/onnx";
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_samples),
      cmocka_unit_test(test_raw_data_is_not_copied),
      cmocka_unit_test(test_models_by_hand),
      cmocka_unit_test(test_tensors_by_hand),
      cmocka_unit_test(test_initializer_names),
      cmocka_unit_test(test_external_by_hand),
      cmocka_unit_test(test_nodes_by_hand),
      cmocka_unit_test(test_types_by_hand),
      cmocka_unit_test(test_unknown_fields_are_skipped),
      cmocka_unit_test(test_wrong_wire_types),
      cmocka_unit_test(test_packed_or_not),
      cmocka_unit_test(test_elements_of_int32_data),
      cmocka_unit_test(test_graphs_merge),
      cmocka_unit_test(test_nesting),
      cmocka_unit_test(test_truncated_anywhere),
      cmocka_unit_test(test_changed_anywhere),
      cmocka_unit_test(test_every_allocation_fails),
      cmocka_unit_test(test_memory_is_bounded),
      cmocka_unit_test(test_lying_lengths),
      cmocka_unit_test(test_load),
      cmocka_unit_test(test_external_links),
      cmocka_unit_test(test_external_files_are_shared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
