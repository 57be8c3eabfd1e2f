/* Writes the seed corpora of the fuzzers: `seeds FOLDER SOURCES`. FOLDER gets a folder for each
   fuzzer; SOURCES is the folder of this project.

     disk         files of the disk cache
     elf          objects of the system's compiler
     ir_parse     the graphs of tests/ir and tests/random/found
     npy          arrays with each kind of header
     onnx_proto   tests/data/onnx, the files of onnx_import, and a tensor by itself
     onnx_import  a model for each operator, and one of several
     plan         plan records */
#include "../models/onnx/writer.h"
#include "base/file.h"
#include "compile/code_record.h"
#include "compile/disk_cache_file.h"
#include "device/cpu/c_compiler.h"
#include "device/registry/device_registry.h"
#include "formats/npy/npy.h"
#include "formats/onnx/importer/importer.h"
#include "plan.h"
#include "runtime/build_executable.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

typedef struct job {
  diag d;
  arena a;
  const char *folder, *sources;
  size_t written;
} job;

static void put_file(job *j, const char *subject, const char *name, const void *data, size_t n) {
  const char *folder = arena_printf(&j->a, "%s/%s", j->folder, subject);
  const char *path = arena_printf(&j->a, "%s/%s", folder, name);
  if (file_create_folders(folder, 0700, &j->d) || file_write(path, data, n, &j->d))
    diag_rethrow(&j->d);
  j->written++;
}

/* Existing files. */

typedef void (*take_file)(job *j, const char *name, const file_map *f);

static void take_folder(job *j, const char *folder, const char *suffix, take_file take) {
  const char *path = arena_printf(&j->a, "%s/%s", j->sources, folder);
  size_t before = j->written, n = strlen(suffix);
  DIR *d = opendir(path);
  for (const struct dirent *e; d && (e = readdir(d));) {
    size_t length = strlen(e->d_name);
    file_map f;
    if (length < n || strcmp(e->d_name + length - n, suffix)) continue;
    if (file_map_open(&f, arena_printf(&j->a, "%s/%s", path, e->d_name), &j->d)) break;
    take(j, e->d_name, &f);
    file_map_close(&f);
  }
  if (d) closedir(d);
  if (j->d.status) diag_rethrow(&j->d);
  if (j->written == before) diag_raise(&j->d, TN_ERR_IO, "%s has no file *%s", path, suffix);
}

/** Writes the two graphs of an IR test, before and after the line "---", without the line "passes:
    …". */
static void take_irt(job *j, const char *name, const file_map *f) {
  const char *text = arena_printf(&j->a, "%.*s", (int)f->bytes, (const char *)f->data);
  const char *passes = strstr(text, "passes:"), *graph = passes ? strchr(passes, '\n') : NULL;
  const char *line = graph ? strstr(graph, "\n---\n") : NULL;
  if (!line) diag_raise(&j->d, TN_ERR_FORMAT, "%s is no test of the IR", name);
  put_file(j, "ir_parse", name, graph + 1, (size_t)(line - graph));
  const char *after = line + strlen("\n---\n");
  if (strncmp(after, "error:", strlen("error:")))
    put_file(j, "ir_parse", arena_printf(&j->a, "%s.after", name), after, strlen(after));
}

static void take_ir(job *j, const char *name, const file_map *f) {
  put_file(j, "ir_parse", name, f->data, f->bytes);
}

static void take_onnx(job *j, const char *name, const file_map *f) {
  put_file(j, "onnx_proto", name, f->data, f->bytes);
  put_file(j, "onnx_import", name, f->data, f->bytes);
}

/* Objects. */

static const char *const kernels[] = {
    "void k(void *const *b, const long *v) {\n"
    "  const float *x = b[0]; float *y = b[1];\n"
    "  for (long i = 0; i < v[0]; i++) y[i] = x[i] * 2.5f;\n"
    "}\n",
    /* a table, a local function, and one of the C library */
    "float floorf(float);\n"
    "static const float table[4] = {1, 2, 4, 8};\n"
    "static __attribute__((noinline)) float f(float x, long i) {\n"
    "  return floorf(x) + table[i & 3];\n"
    "}\n"
    "void k(void *const *b, const long *v) {\n"
    "  for (long i = 0; i < v[0]; i++) ((float *)b[1])[i] = f(((const float *)b[0])[i], i);\n"
    "}\n",
    /* data, and pointers to it */
    "static int count, first = 7;\n"
    "static int *const all[] = {&count, &first};\n"
    "void k(void *const *b, const long *v) { *(int *)b[0] = ++*all[v[0] & 1]; }\n"};

static void add_objects(job *j) {
  cc c;
  cc_object o;
  if (cc_find(&c, NULL, &j->a, &j->d)) diag_rethrow(&j->d);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    if (cc_compile(&c, kernels[i], strlen(kernels[i]), NULL, &j->a, &o, &j->d)) diag_rethrow(&j->d);
    put_file(j, "elf", arena_printf(&j->a, "%zu.o", i), o.data, o.bytes);
  }
}

/* Files of the disk cache: with one kernel, and with two. */

static void add_disk_files(job *j) {
  static const char *const names[] = {"core_count", "core_id", "n"};
  static const int64_t slots[] = {0, 1, 5};
  const node *none[3] = {NULL};
  const cache_key keys[] = {{.data = "key", .bytes = 3}, {.data = "another", .bytes = 7}};
  const cache_key *all[] = {&keys[0], &keys[1]};
  const tn_code code = {TN_CODE_BYTES, "code", 4};
  launch_exprs sizes = launch_grid_compile(&j->a, none, none, names, 3);
  const tn_program_spec spec = {.entry = "tn_0",
                                .globals = slots,
                                .n_globals = 3,
                                .value_names = names,
                                .n_values = 3,
                                .core_id = 1};
  static const launch_operand arrays[] = {{true, 4, 1}, {false, 8, 0}, {false, 1, 1}};
  static const int64_t bounds[] = {INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, 1, 9};
  const launch_limits limits = {arrays, bounds, launch_exprs_compile(&j->a, none, 2, names, 3)};
  const compiled_kernel made[] = {{NULL, &spec, sizes, limits}, {NULL, &spec, sizes, limits}};
  for (size_t n = 1; n <= 2; n++) {
    str content = str_new(&j->a), file = str_new(&j->a);
    code_record_write(&content, &code, made, n);
    disk_cache_file_write(&file, all, n, content.at, content.n);
    put_file(j, "disk", arena_printf(&j->a, "%zu.tenon", n), file.at, file.n);
  }
}

/* Plan records; the null device compiles their kernels. */

static void add_plan(job *j) {
  registry *t;
  tn_device *device;
  executable *p;
  const tn_logger silent = {NULL, NULL, NULL};
  executable_request r = {.logger = &silent};
  ir *g = ir_new(&mem_system, &j->d, false);
  if (registry_open(&t, &(registry_desc){.mem = &mem_system, .threads = 2}, &j->d) ||
      registry_open_device(t, "NULL", &device, &j->d) ||
      device_target_find(device, NULL, &r.target, &j->d))
    diag_rethrow(&j->d);
  plan_request(&r, g, plan_text);
  plan_cache_graph leaves = plan_leaves(&j->a, &r);
  if (executable_build(&p, &r, &mem_system, &j->d)) diag_rethrow(&j->d);
  str kept = str_new(&j->a);
  plan_record_write(&kept, p, &r, &leaves);
  put_file(j, "plan", "plan", kept.at, kept.n);
  executable_release(p);
  ir_free(g);
  registry_close(t);
}

/* Arrays. */

static const struct {
  int version;
  const char *header;
  size_t bytes; /* size of the data */
} arrays[] = {{1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24},
              {2, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", 12},
              {3, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1},
              {1, "{'descr': '<u8', 'fortran_order': True, 'shape': (0, 7), }", 0},
              {1, "{'descr': '=f2', 'fortran_order': True, 'shape': (2, 2, 2), }", 16},
              {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4},
              {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8}};

static void add_arrays(job *j) {
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    size_t n = strlen(arrays[i].header), at = arrays[i].version > 1 ? 12 : 10;
    bytes b = {.n = 0};
    put(&b, "\x93NUMPY", 6);
    put(&b, (char[]){(char)arrays[i].version, 0}, 2);
    for (size_t k = 8; k < at; k++) put(&b, &(char){(char)(n >> 8 * (k - 8))}, 1);
    put(&b, arrays[i].header, n);
    for (size_t k = 0; k < arrays[i].bytes; k++) put(&b, &(char){(char)k}, 1);
    put_file(j, "npy", arena_printf(&j->a, "%zu.npy", i), b.at, b.n);
  }
}

/* Models of one node: y = operator(x, the weights), or of the weights alone if x has no shape. */

enum { MOST_SIZES = 4, MOST_NUMBERS = 4, MOST_PARTS = 8 };

/** A weight: elements with a shape, or integers; neither: no weight. */
typedef struct weight {
  bool is_left_out;
  int type;                 /* of elements; 0: x's */
  int64_t dims[MOST_SIZES]; /* up to a 0 */
  bool is_scalar;           /* a scalar instead of a list */
  size_t n;                 /* number of integers */
  int64_t numbers[MOST_NUMBERS];
} weight;

typedef struct attribute {
  const char *name, *text; /* text NULL: numbers */
  size_t n;                /* length of a list; 0: a single number */
  int64_t numbers[MOST_NUMBERS];
} attribute;

/** A graph in attributes: t = read[0] + read[1]. */
typedef struct loop_body {
  const char *in[MOST_PARTS + 1], *read[3], *out[MOST_PARTS + 1];
  const char *attributes[3]; /* none: "body" */
} loop_body;

typedef struct seed {
  const char *op;
  int64_t opset;
  int type; /* of x; 0: f32 */
  const char *x[MOST_SIZES + 1];
  weight weights[MOST_PARTS];
  attribute attributes[MOST_PARTS + 1];
  loop_body body;      /* no outputs: no body */
  bool leaves_x;       /* x is no input of the node */
  bool takes_sequence; /* of x, twice, instead of x */
  bool gives_sequence; /* y is its length */
  bool takes_x_twice;
  bool takes_map;     /* x is one of i64 to its type */
  const char *domain; /* of the operator, version 1 of which is used; NULL: ONNX's own */
} seed;

/* clang-format off */
#define SEED(name, version, ...)      {.op = name, .opset = version, __VA_ARGS__}
#define X(...)                        .x = {__VA_ARGS__}
#define WITH(...)                     .weights = {__VA_ARGS__}
#define FLOATS(...)                   {.dims = {__VA_ARGS__}}
#define TYPED(type_of_it, ...)        {.type = type_of_it, .dims = {__VA_ARGS__}}
#define NUMBERS(...)                  {NUMBERS_OF(__VA_ARGS__)}
#define LEFT_OUT                      {.is_left_out = true}
#define SCALAR(value)                 {.is_scalar = true, NUMBERS_OF(value)}
#define OF(type_of_x)                 .type = type_of_x
#define ATTRIBUTES(...)               .attributes = {__VA_ARGS__}
#define BODY(...)                     .body = {__VA_ARGS__}
#define TAKES_SEQUENCE                .takes_sequence = true
#define GIVES_SEQUENCE                .gives_sequence = true
#define TAKES_X_TWICE                 .takes_x_twice = true
#define TAKES_MAP                     .takes_map = true
#define IN(operators)                 .domain = operators
#define NUMBER(called, value)         {.name = called, .numbers = {value}}
#define LIST(called, ...)             {.name = called, NUMBERS_OF(__VA_ARGS__)}
#define TEXT(called, value)           {.name = called, .text = value}
#define NUMBERS_OF(...)               .n = COUNT(__VA_ARGS__), .numbers = {__VA_ARGS__}
#define COUNT(...)                    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static const seed seeds[] = {
  SEED("HannWindow", 17, WITH(SCALAR(9))),
  SEED("HammingWindow", 17, WITH(SCALAR(9)), ATTRIBUTES(NUMBER("periodic", 0))),
  SEED("BlackmanWindow", 17, WITH(SCALAR(9))),
  SEED("ReverseSequence", 10, X("4", "2", "3"), WITH(NUMBERS(3, 1))),
  SEED("Swish", 24, X("n", "3")),
  SEED("SwiGLU", 28, X("n", "3"), WITH(FLOATS(3))),
  SEED("Shrink", 9, X("n", "3")),
  SEED("LpNormalization", 1, X("n", "3"), ATTRIBUTES(NUMBER("p", 1))),
  SEED("MeanVarianceNormalization", 13, X("2", "3", "4"), ATTRIBUTES(LIST("axes", 0, 2))),
  SEED("NegativeLogLikelihoodLoss", 13, X("2", "3"), WITH(NUMBERS(0, 2))),
  SEED("SoftmaxCrossEntropyLoss", 13, X("2", "3"), WITH(NUMBERS(0, 2))),
  SEED("TopK", 11, X("n", "5"), WITH(NUMBERS(2)), ATTRIBUTES(NUMBER("largest", 0))),
  SEED("CausalConvWithState", 27, X("1", "2", "5"), WITH(FLOATS(2, 1, 3))),
  SEED("CenterCropPad", 18, X("4", "3"), WITH(NUMBERS(2, 5))),
  SEED("QuantizeLinear", 13, X("n", "3"), WITH(FLOATS(1))),
  SEED("DynamicQuantizeLinear", 11, X("n", "3")),
  SEED("GridSample", 16, X("1", "2", "3", "4"), WITH(FLOATS(1, 2, 2, 2)),
       ATTRIBUTES(TEXT("padding_mode", "reflection"), TEXT("mode", "bicubic"))),
  SEED("AffineGrid", 20, X("1", "2", "3"), WITH(NUMBERS(1, 1, 3, 4))),
  SEED("Col2Im", 18, X("n", "4", "4"), WITH(NUMBERS(5, 3), NUMBERS(2, 2)),
       ATTRIBUTES(LIST("strides", 2, 1), LIST("pads", 0, 0, 0, 0))),
  SEED("RoiAlign", 16, X("1", "2", "5", "4"), WITH(FLOATS(2, 4), NUMBERS(0, 0)),
       ATTRIBUTES(NUMBER("sampling_ratio", 2), NUMBER("output_height", 2))),
  SEED("MaxRoiPool", 1, X("1", "2", "5", "4"), WITH(FLOATS(2, 5)),
       ATTRIBUTES(LIST("pooled_shape", 2, 1))),
  SEED("DFT", 17, X("n", "12", "1"), ATTRIBUTES(NUMBER("onesided", 1), NUMBER("axis", 1))),
  SEED("STFT", 17, X("n", "40", "1"), WITH(SCALAR(5), FLOATS(12))),
  SEED("Det", 11, X("n", "3", "3")),
  SEED("TensorScatter", 24, X("2", "5", "3"), WITH(FLOATS(2, 2, 3), NUMBERS(1, 2)),
       ATTRIBUTES(TEXT("mode", "circular"))),
  SEED("RandomUniform", 1, ATTRIBUTES(LIST("shape", 2, 3))),
  SEED("RandomNormal", 1, ATTRIBUTES(LIST("shape", 2, 3))),
  SEED("RandomUniformLike", 1, X("n", "3")),
  SEED("RandomNormalLike", 1, X("n", "3")),
  SEED("Bernoulli", 15, X("n", "3")),
  SEED("Multinomial", 7, X("n", "3"), ATTRIBUTES(NUMBER("sample_size", 4))),
  SEED("Optional", 15, X("n", "3")),
  SEED("OptionalHasElement", 15, X("n", "3")),
  SEED("OptionalGetElement", 15, X("n", "3")),
  SEED("Add", 14, X("n", "3"), WITH(FLOATS(3))),
  SEED("Sub", 14, X("n", "3"), WITH(FLOATS(2, 1, 3))),
  SEED("Mul", 14, X("n", "3"), WITH(FLOATS(1))),
  SEED("Div", 14, X("n", "3"), WITH(FLOATS(3))),
  SEED("Max", 13, X("n", "3"), WITH(FLOATS(3), FLOATS(1))),
  SEED("Equal", 19, X("n", "3"), WITH(FLOATS(3))),
  SEED("Exp", 13, X("n", "3")),
  SEED("Tanh", 13, X("n", "3")),
  SEED("Sqrt", 13, X("n", "3")),
  SEED("Reciprocal", 13, X("n", "3")),
  SEED("Cast", 13, X("n", "3"), ATTRIBUTES(NUMBER("to", ONNX_TYPE_I64))),
  SEED("Shape", 15, X("n", "3"), ATTRIBUTES(NUMBER("start", -1), NUMBER("end", 2))),
  SEED("Reshape", 14, X("n", "6"), WITH(NUMBERS(0, -1, 2)), ATTRIBUTES(NUMBER("allowzero", 0))),
  SEED("Expand", 13, X("n", "1"), WITH(NUMBERS(2, 1, 3))),
  SEED("Slice", 9, X("n", "8"),
       ATTRIBUTES(LIST("starts", 1), LIST("ends", -1), LIST("axes", 1))),
  SEED("Slice", 13, X("n", "8"),
       WITH(NUMBERS(-1), NUMBERS(INT64_MIN), NUMBERS(1), NUMBERS(-2))),
  SEED("Concat", 13, X("2", "3"), WITH(FLOATS(4, 3)), ATTRIBUTES(NUMBER("axis", 0))),
  SEED("Squeeze", 11, X("n", "1"), ATTRIBUTES(LIST("axes", 1))),
  SEED("Squeeze", 13, X("1", "n"), WITH(NUMBERS(-2))),
  SEED("Unsqueeze", 13, X("n", "3"), WITH(NUMBERS(0, -1))),
  SEED("Transpose", 13, X("n", "3", "4"), ATTRIBUTES(LIST("perm", 2, 0, 1))),
  SEED("ReduceSum", 13, X("n", "3"), WITH(NUMBERS(-1)),
       ATTRIBUTES(NUMBER("keepdims", 0), NUMBER("noop_with_empty_axes", 1))),
  SEED("ReduceMax", 12, X("n", "3"), ATTRIBUTES(LIST("axes", 0, 1))),
  SEED("Sum", 13, X("n", "3"), WITH(FLOATS(3), FLOATS(1))),
  SEED("Mean", 13, X("n", "3"), WITH(FLOATS(2, 1, 3))),
  SEED("Relu", 14, X("n", "3")),
  SEED("LeakyRelu", 16, X("n", "3")),
  SEED("PRelu", 6, X("n", "3", "2"), WITH(FLOATS(3))),
  SEED("PRelu", 16, X("n", "3"), WITH(FLOATS(3))),
  SEED("Elu", 6, X("n", "3")),
  SEED("Selu", 6, X("n", "3")),
  SEED("Celu", 12, X("n", "3")),
  SEED("ThresholdedRelu", 10, X("n", "3")),
  SEED("HardSigmoid", 6, X("n", "3")),
  SEED("HardSwish", 14, X("n", "3")),
  SEED("Clip", 13, X("n", "3"), WITH(FLOATS(1), FLOATS(1))),
  SEED("Sigmoid", 13, X("n", "3")),
  SEED("Softplus", 1, X("n", "3")),
  SEED("Softsign", 1, X("n", "3")),
  SEED("Mish", 18, X("n", "3")),
  SEED("Dropout", 13, X("n", "3"), WITH(FLOATS(1))),
  SEED("BatchNormalization", 8, X("n", "3", "2"),
       WITH(FLOATS(3, 2), FLOATS(3, 2), FLOATS(3, 2), FLOATS(3, 2)), ATTRIBUTES(NUMBER("spatial", 0))),
  SEED("BatchNormalization", 15, X("n", "3", "2"), WITH(FLOATS(3), FLOATS(3), FLOATS(3), FLOATS(3))),
  SEED("InstanceNormalization", 6, X("n", "3", "4"), WITH(FLOATS(3), FLOATS(3))),
  SEED("GroupNormalization", 18, X("n", "4", "3"), WITH(FLOATS(2), FLOATS(2)),
       ATTRIBUTES(NUMBER("num_groups", 2))),
  SEED("LayerNormalization", 17, X("n", "2", "3"), WITH(FLOATS(2, 3), FLOATS(2, 3)),
       ATTRIBUTES(NUMBER("axis", 1), NUMBER("stash_type", 1))),
  SEED("RMSNormalization", 23, X("n", "3"), WITH(FLOATS(3))),
  SEED("LRN", 13, X("n", "4", "3"), ATTRIBUTES(NUMBER("size", 3))),
  SEED("Softmax", 11, X("n", "3", "4"), ATTRIBUTES(NUMBER("axis", 1))),
  SEED("LogSoftmax", 13, X("n", "3"), ATTRIBUTES(NUMBER("axis", -1))),
  SEED("Hardmax", 13, X("n", "3")),
  SEED("Identity", 13, X("n", "3")),
  SEED("Constant", 12, ATTRIBUTES(LIST("value_ints", 3, 1, 2))),
  SEED("ConstantOfShape", 9, WITH(NUMBERS(2, 3))),
  SEED("Flatten", 13, X("n", "3", "4"), ATTRIBUTES(NUMBER("axis", -1))),
  SEED("Gemm", 9, X("3", "2"), WITH(FLOATS(3, 4), FLOATS(4)), ATTRIBUTES(NUMBER("transA", 1))),
  SEED("MatMul", 13, X("n", "2", "3"), WITH(FLOATS(3, 4))),
  SEED("Conv", 11, X("1", "2", "5", "5"), WITH(FLOATS(4, 1, 3, 3), FLOATS(4)),
       ATTRIBUTES(TEXT("auto_pad", "SAME_UPPER"), LIST("strides", 2, 1), LIST("dilations", 1, 2),
                  NUMBER("group", 2))),
  SEED("Conv", 11, X("n", "2", "5", "5"), WITH(FLOATS(3, 2, 3, 1)),
       ATTRIBUTES(LIST("pads", 1, 0, 2, 1), LIST("kernel_shape", 3, 1))),
  SEED("ConvTranspose", 11, X("n", "2", "5", "4"), WITH(FLOATS(2, 3, 3, 2), FLOATS(3)),
       ATTRIBUTES(LIST("strides", 2, 1), LIST("output_shape", 10, 4), NUMBER("group", 1))),
  SEED("MaxPool", 12, X("n", "2", "5", "4"),
       ATTRIBUTES(LIST("kernel_shape", 3, 2), LIST("strides", 2, 1), LIST("pads", 1, 0, 2, 1),
                  NUMBER("ceil_mode", 1))),
  SEED("AveragePool", 19, X("n", "2", "5", "4"),
       ATTRIBUTES(LIST("kernel_shape", 3, 2), TEXT("auto_pad", "SAME_LOWER"),
                  NUMBER("count_include_pad", 1), LIST("dilations", 1, 2))),
  SEED("LpPool", 18, X("n", "2", "5"), ATTRIBUTES(LIST("kernel_shape", 3), NUMBER("p", 3))),
  SEED("GlobalAveragePool", 1, X("n", "2", "5", "5")),
  SEED("GlobalLpPool", 2, X("n", "2", "5"), ATTRIBUTES(NUMBER("p", 1))),
  SEED("Pad", 13, X("n", "3"), WITH(NUMBERS(0, 2, 0, -1), FLOATS(1)), ATTRIBUTES(TEXT("mode", "edge"))),
  SEED("Pad", 19, X("n", "3"), WITH(NUMBERS(0, 2, 0, 4)), ATTRIBUTES(TEXT("mode", "wrap"))),
  SEED("DepthToSpace", 11, X("n", "8", "2", "3"),
       ATTRIBUTES(NUMBER("blocksize", 2), TEXT("mode", "CRD"))),
  SEED("SpaceToDepth", 13, X("n", "1", "4", "6"), ATTRIBUTES(NUMBER("blocksize", 2))),
  SEED("Upsample", 9, X("3"), WITH(FLOATS(1))),
  SEED("Resize", 10, X("3"), WITH(FLOATS(1)), ATTRIBUTES(TEXT("mode", "linear"))),
  SEED("GlobalMaxPool", 1, X("n", "2", "5", "5")),
  SEED("Abs", 18, X("n", "3")),
  SEED("Neg", 18, X("n", "3")),
  SEED("Sign", 18, X("n", "3")),
  SEED("Floor", 18, X("n", "3")),
  SEED("Ceil", 18, X("n", "3")),
  SEED("Round", 18, X("n", "3")),
  SEED("Log", 18, X("n", "3")),
  SEED("Sin", 18, X("n", "3")),
  SEED("Cos", 18, X("n", "3")),
  SEED("Tan", 18, X("n", "3")),
  SEED("Asin", 18, X("n", "3")),
  SEED("Acos", 18, X("n", "3")),
  SEED("Atan", 18, X("n", "3")),
  SEED("Sinh", 18, X("n", "3")),
  SEED("Cosh", 18, X("n", "3")),
  SEED("Asinh", 18, X("n", "3")),
  SEED("Acosh", 18, X("n", "3")),
  SEED("Atanh", 18, X("n", "3")),
  SEED("Erf", 18, X("n", "3")),
  SEED("IsNaN", 18, X("n", "3")),
  SEED("IsInf", 18, X("n", "3")),
  SEED("Gelu", 20, X("n", "3"), ATTRIBUTES(TEXT("approximate", "tanh"))),
  SEED("Pow", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("Min", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("Greater", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("GreaterOrEqual", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("Less", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("LessOrEqual", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("CastLike", 18, X("n", "3"), WITH(FLOATS(3))),
  SEED("Mod", 18, X("n", "3"), WITH(FLOATS(3)), ATTRIBUTES(NUMBER("fmod", 1))),
  SEED("Where", 16, OF(ONNX_TYPE_BOOL), X("n", "3"), WITH(FLOATS(3), FLOATS(1))),
  SEED("And", 7, OF(ONNX_TYPE_BOOL), X("n", "3"), WITH(FLOATS(3))),
  SEED("Or", 7, OF(ONNX_TYPE_BOOL), X("n", "3"), WITH(FLOATS(3))),
  SEED("Xor", 7, OF(ONNX_TYPE_BOOL), X("n", "3"), WITH(FLOATS(3))),
  SEED("Not", 1, OF(ONNX_TYPE_BOOL), X("n", "3")),
  SEED("BitwiseAnd", 18, OF(ONNX_TYPE_U8), X("n", "3"), WITH(FLOATS(3))),
  SEED("BitwiseOr", 18, OF(ONNX_TYPE_U8), X("n", "3"), WITH(FLOATS(3))),
  SEED("BitwiseXor", 18, OF(ONNX_TYPE_U8), X("n", "3"), WITH(FLOATS(3))),
  SEED("BitwiseNot", 18, OF(ONNX_TYPE_I32), X("n", "3")),
  SEED("BitShift", 11, OF(ONNX_TYPE_U8), X("n", "3"), WITH(FLOATS(1)), 
       ATTRIBUTES(TEXT("direction", "LEFT"))),
  SEED("BitCast", 26, X("n", "3"), ATTRIBUTES(NUMBER("to", ONNX_TYPE_I32))),
  SEED("Size", 13, X("n", "3")),
  SEED("Range", 11, WITH(SCALAR(0), SCALAR(5), SCALAR(2))),
  SEED("EyeLike", 9, X("n", "3"), ATTRIBUTES(NUMBER("k", -1))),
  SEED("Split", 13, X("n", "3"), WITH(NUMBERS(3)), ATTRIBUTES(NUMBER("axis", 1))),
  SEED("Tile", 13, X("n", "3"), WITH(NUMBERS(2, 3))),
  SEED("Trilu", 14, X("n", "3"), WITH(SCALAR(-1)), ATTRIBUTES(NUMBER("upper", 0))),
  SEED("Gather", 13, X("n", "3"), WITH(NUMBERS(0, -1)), ATTRIBUTES(NUMBER("axis", 1))),
  SEED("GatherElements", 13, X("3"), WITH(NUMBERS(0, -1))),
  SEED("GatherND", 13, X("3", "2"), WITH(NUMBERS(1))),
  SEED("ScatterElements", 18, X("3"), WITH(NUMBERS(0, 2), FLOATS(2)), 
       ATTRIBUTES(TEXT("reduction", "add"))),
  SEED("ScatterND", 18, X("3", "2"), WITH(NUMBERS(1), FLOATS(2))),
  SEED("OneHot", 11, X("n"), WITH(SCALAR(3), FLOATS(2))),
  SEED("NonZero", 13, X("n", "3")),
  SEED("Compress", 11, X("n", "3"), WITH(TYPED(ONNX_TYPE_BOOL, 3)), ATTRIBUTES(NUMBER("axis", 1))),
  SEED("Unique", 11, X("n", "3"), ATTRIBUTES(NUMBER("axis", 1))),
  SEED("NonMaxSuppression", 11, X("1", "3", "4"), WITH(TYPED(ONNX_TYPE_F32, 1, 1, 3), SCALAR(2))),
  SEED("ReduceMin", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceMean", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceProd", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceL1", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceL2", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceSumSquare", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceLogSum", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ReduceLogSumExp", 18, X("n", "3"), WITH(NUMBERS(-1))),
  SEED("ArgMax", 13, X("n", "3"), ATTRIBUTES(NUMBER("axis", 1), NUMBER("select_last_index", 1))),
  SEED("ArgMin", 13, X("n", "3"), ATTRIBUTES(NUMBER("axis", 1), NUMBER("select_last_index", 1))),
  SEED("CumSum", 14, X("n", "3"), WITH(SCALAR(1)), ATTRIBUTES(NUMBER("reverse", 1))),
  SEED("CumProd", 26, X("n", "3"), WITH(SCALAR(1)), ATTRIBUTES(NUMBER("exclusive", 1))),
  SEED("RNN", 14, X("2", "1", "3"), WITH(FLOATS(1, 2, 3), FLOATS(1, 2, 2)), ATTRIBUTES(NUMBER("hidden_size", 2))),
  SEED("GRU", 14, X("2", "1", "3"), WITH(FLOATS(1, 6, 3), FLOATS(1, 6, 2)),
       ATTRIBUTES(NUMBER("hidden_size", 2), NUMBER("linear_before_reset", 1))),
  SEED("LSTM", 14, X("2", "1", "3"), WITH(FLOATS(1, 8, 3), FLOATS(1, 8, 2)),
       ATTRIBUTES(NUMBER("hidden_size", 2), TEXT("direction", "reverse"))),
  SEED("Attention", 23, X("1", "2", "3", "4"), WITH(FLOATS(1, 2, 3, 4), FLOATS(1, 2, 3, 4)),
       ATTRIBUTES(NUMBER("is_causal", 1))),
  SEED("RotaryEmbedding", 23, X("1", "2", "3", "4"), WITH(FLOATS(1, 3, 2), FLOATS(1, 3, 2))),
  SEED("Einsum", 12, X("2", "3"), WITH(FLOATS(3, 4)), ATTRIBUTES(TEXT("equation", "ij,jk->ik"))),
  SEED("MatMulInteger", 10, OF(ONNX_TYPE_U8), X("n", "3"), WITH(FLOATS(3, 4))),
  SEED("Scan", 11, X("3"), WITH(FLOATS(2, 3)), ATTRIBUTES(NUMBER("num_scan_inputs", 1)),
       BODY(.in = {"s", "row"}, .read = {"s", "row"}, .out = {"t", "t"})),
  SEED("Loop", 13, WITH(SCALAR(3), LEFT_OUT, FLOATS(3)),
       BODY(.in = {"i", "goes_on", "s"}, .read = {"s", "s"}, .out = {"goes_on", "t"})),
  SEED("If", 13, X("n", "3"), WITH(TYPED(ONNX_TYPE_BOOL, 1)), .leaves_x = true,
       BODY(.read = {"x", "x"}, .out = {"t"}, .attributes = {"then_branch", "else_branch"})),
  SEED("Scatter", 9, X("3"), WITH(NUMBERS(0, 2), FLOATS(2))),
  SEED("LinearAttention", 27, X("1", "3", "4"), WITH(FLOATS(1, 3, 4), FLOATS(1, 3, 4)),
       ATTRIBUTES(NUMBER("q_num_heads", 2), NUMBER("kv_num_heads", 2),
                  TEXT("update_rule", "linear"))),
  SEED("DequantizeLinear", 13, OF(ONNX_TYPE_U8), X("n", "3"), WITH(TYPED(ONNX_TYPE_F32, 1))),
  SEED("QLinearMatMul", 10, OF(ONNX_TYPE_U8), X("n", "3"),
       WITH(TYPED(ONNX_TYPE_F32, 1), FLOATS(1), FLOATS(3, 4), TYPED(ONNX_TYPE_F32, 1), FLOATS(1),
            TYPED(ONNX_TYPE_F32, 1), FLOATS(1))),
  SEED("QLinearConv", 10, OF(ONNX_TYPE_U8), X("n", "2", "5", "5"),
       WITH(TYPED(ONNX_TYPE_F32, 1), FLOATS(1), FLOATS(3, 2, 3, 3), TYPED(ONNX_TYPE_F32, 1),
            FLOATS(1), TYPED(ONNX_TYPE_F32, 1), FLOATS(1))),
  SEED("ConvInteger", 10, OF(ONNX_TYPE_U8), X("n", "2", "5", "5"), WITH(FLOATS(3, 2, 3, 3))),
  SEED("MaxUnpool", 11, X("1", "1", "2", "2"), WITH(TYPED(ONNX_TYPE_I64, 1, 1, 2, 2)),
       ATTRIBUTES(LIST("kernel_shape", 2, 2), LIST("strides", 2, 2))),
  SEED("DeformConv", 19, X("1", "1", "4", "4"), WITH(FLOATS(1, 1, 2, 2), FLOATS(1, 8, 3, 3))),
  SEED("MelWeightMatrix", 17,
       WITH(SCALAR(3), SCALAR(8), SCALAR(8192), FLOATS(1), FLOATS(1))),
  SEED("TfIdfVectorizer", 9, OF(ONNX_TYPE_I32), X("n", "5"),
       ATTRIBUTES(NUMBER("min_gram_length", 1), NUMBER("max_gram_length", 2),
                  NUMBER("max_skip_count", 0), TEXT("mode", "TF"), LIST("ngram_counts", 0, 2),
                  LIST("ngram_indexes", 0, 1, 2), LIST("pool_int64s", 1, 2, 1, 2))),
  SEED("SequenceConstruct", 11, X("n", "3"), WITH(FLOATS(2, 3)), GIVES_SEQUENCE),
  SEED("SequenceEmpty", 11, ATTRIBUTES(NUMBER("dtype", ONNX_TYPE_I32)), GIVES_SEQUENCE),
  SEED("SequenceInsert", 11, X("n", "3"), WITH(FLOATS(2, 3), SCALAR(-1)), TAKES_SEQUENCE,
       GIVES_SEQUENCE),
  SEED("SequenceErase", 11, X("n", "3"), WITH(SCALAR(0)), TAKES_SEQUENCE, GIVES_SEQUENCE),
  SEED("SequenceAt", 11, X("n", "3"), WITH(SCALAR(1)), TAKES_SEQUENCE),
  SEED("SequenceLength", 11, X("n", "3"), TAKES_SEQUENCE),
  SEED("SplitToSequence", 11, X("4", "3"), WITH(SCALAR(3)), GIVES_SEQUENCE),
  SEED("ConcatFromSequence", 11, X("n", "3"), ATTRIBUTES(NUMBER("axis", 1)), TAKES_SEQUENCE),
  SEED("SequenceMap", 17, X("n", "3"), TAKES_SEQUENCE, GIVES_SEQUENCE,
       BODY(.in = {"e"}, .read = {"e", "e"}, .out = {"t"})),
  SEED("StringConcat", 20, OF(ONNX_TYPE_STRING), X("n"), TAKES_X_TWICE),
  SEED("StringSplit", 20, OF(ONNX_TYPE_STRING), X("n"), ATTRIBUTES(TEXT("delimiter", ","))),
  SEED("StringNormalizer", 10, OF(ONNX_TYPE_STRING), X("n"),
       ATTRIBUTES(TEXT("case_change_action", "LOWER"))),
  SEED("RegexFullMatch", 20, OF(ONNX_TYPE_STRING), X("n"), ATTRIBUTES(TEXT("pattern", "a|b*"))),
  SEED("ImageDecoder", 20, OF(ONNX_TYPE_U8), X("n")),
  SEED("CastMap", 20, X("n"), TAKES_MAP, IN("ai.onnx.ml"),
       ATTRIBUTES(TEXT("map_form", "SPARSE"), NUMBER("max_map", 5), TEXT("cast_to", "TO_STRING"))),
  SEED("DictVectorizer", 20, X("n"), TAKES_MAP, IN("ai.onnx.ml"),
       ATTRIBUTES(LIST("int64_vocabulary", 3, 1, 2))),
  SEED("Tokenizer", 20, OF(ONNX_TYPE_STRING), X("n"), IN("com.microsoft"),
       ATTRIBUTES(NUMBER("mark", 1), NUMBER("mincharnum", 1), TEXT("pad_value", "#"),
                  TEXT("tokenexp", "[a-z]+|(?:,)"))),
};
/* clang-format on */

/** Adds a weight and returns its name; NULL if there is none. */
static const char *put_seed_weight(bytes *graph, const char *name, int type, const weight *w) {
  static const float floats[128] = {1, -2, 0.5f};
  if (w->type) type = w->type;
  size_t rank = 0, bytes = onnx_dtype_bits(type) / 8;
  for (; rank < MOST_SIZES && w->dims[rank]; rank++) bytes *= (size_t)w->dims[rank];
  if (w->n)
    put_weight(graph, name, ONNX_TYPE_I64, !w->is_scalar, (int64_t[]){(int64_t)w->n}, w->numbers,
               w->n * 8);
  else if (w->is_left_out)
    return "";
  else if (rank && bytes <= sizeof floats)
    put_weight(graph, name, type, rank, w->dims, floats, bytes);
  return w->n || rank ? name : NULL;
}

static void put_seed_attribute(bytes *to, const attribute *a) {
  if (a->text)
    put_attribute_text(to, a->name, a->text);
  else if (a->n)
    put_attribute_list(to, a->name, a->n, a->numbers);
  else
    put_attribute(to, a->name, a->numbers[0]);
}

static void put_body(bytes *to, const loop_body *b) {
  static const char *const usual[] = {"body", NULL};
  const char *const shape[] = {NULL};
  for (const char *const *name = *b->attributes ? b->attributes : usual; *name; name++) {
    bytes graph = {.n = 0}, attribute = {.n = 0};
    for (size_t i = 0; b->in[i]; i++) put_port(&graph, 11, b->in[i], ONNX_TYPE_F32, shape);
    for (size_t i = 0; b->out[i]; i++) put_port(&graph, 12, b->out[i], ONNX_TYPE_F32, shape);
    put_node(&graph, "Add", b->read, "t", NULL, 0);
    put_text(&graph, 2, *name);
    put_text(&attribute, 1, *name);
    put_message(&attribute, 6, &graph);
    put_int(&attribute, 20, 5);
    put_message(to, 5, &attribute);
  }
}

/** Checks that a seed is accepted: a refused one would lead a fuzzer nowhere. */
static void check_model(job *j, const char *name, const bytes *file) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  tn_context *c = tn_open(&d);
  tn_model *m;
  tn_status s = tn_model_load_bytes(c, file->at, file->n, NULL, &m);
  if (s != TN_OK) diag_set(&j->d, s, "%s: %s", name, tn_message(c));
  tn_close(c);
  if (s != TN_OK) diag_rethrow(&j->d);
}

static void put_both(job *j, const char *name, const bytes *file) {
  check_model(j, name, file);
  put_file(j, "onnx_import", name, file->at, file->n);
  put_file(j, "onnx_proto", name, file->at, file->n);
}

/** Says of a node, and of its file, that it is of a domain. */
static void put_domain(bytes *file, bytes *node, const char *domain) {
  bytes set = {.n = 0};
  put_text(&set, 1, domain);
  put_int(&set, 2, 1);
  put_message(file, 8, &set);
  put_text(node, 7, domain);
}

/** Adds an input that is a map. */
static void put_map(bytes *graph, const char *name, int keys, int values) {
  bytes tensor = {.n = 0}, element = {.n = 0}, map = {.n = 0}, kind = {.n = 0}, value = {.n = 0};
  put_int(&tensor, 1, values);
  put_message(&element, 1, &tensor);
  put_int(&map, 1, keys);
  put_message(&map, 2, &element);
  put_message(&kind, 5, &map);
  put_text(&value, 1, name);
  put_message(&value, 2, &kind);
  put_message(graph, 11, &value);
}

static void add_model(job *j, const seed *s) {
  static const char *const names[MOST_PARTS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const char *inputs[MOST_PARTS + 2] = {NULL}, **input = inputs;
  bytes graph = {.n = 0}, attributes = {.n = 0}, file = {.n = 0};
  if (s->takes_sequence)
    put_node(&graph, "SequenceConstruct", (const char *[]){"x", "x", NULL}, "all", NULL, 0);
  if (*s->x && !s->leaves_x) *input++ = s->takes_sequence ? "all" : "x";
  if (s->takes_x_twice) *input++ = "x";
  int type = s->type ? s->type : ONNX_TYPE_F32;
  for (size_t i = 0; i < MOST_PARTS; i++)
    if ((*input = put_seed_weight(&graph, names[i], type, &s->weights[i]))) input++;
  for (const attribute *a = s->attributes; a->name; a++) put_seed_attribute(&attributes, a);
  if (*s->body.out) put_body(&attributes, &s->body);
  if (s->domain) put_domain(&file, &attributes, s->domain);
  if (s->takes_map)
    put_map(&graph, "x", ONNX_TYPE_I64, type);
  else
    put_port(&graph, 11, "x", type, s->x);
  put_port(&graph, 12, "y", type, s->x);
  put_node_with(&graph, s->op, inputs, s->gives_sequence ? "made" : "y", &attributes);
  if (s->gives_sequence)
    put_node(&graph, "SequenceLength", (const char *[]){"made", NULL}, "y", NULL, 0);
  put_model(&file, "seed", &graph, s->opset);
  const char *name =
      arena_printf(&j->a, "%s_%lld_%s.onnx", s->op, (long long)s->opset, *s->x ? *s->x : "-");
  put_both(j, name, &file);
}

static bool has_seed(const char *op) {
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
    if (!strcmp(seeds[i].op, op)) return true;
  return false;
}

static void add_models(job *j) {
  bytes layer, tensor = {.n = 0};
  put_tensor(&tensor, "t", ONNX_TYPE_I64, 2, (int64_t[]){1, 2}, (int64_t[]){3, -4}, 16);
  put_file(j, "onnx_proto", "tensor.pb", tensor.at, tensor.n);
  size_t n;
  const onnx_op *rows = op_table_rows(&n);
  for (size_t i = 0; i < n; i++)
    if (!*rows[i].domain && !has_seed(rows[i].name))
      diag_raise(&j->d, TN_ERR_INTERNAL, "no seed has the operator %s", rows[i].name);
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) add_model(j, &seeds[i]);
  layer_model(&layer);
  put_both(j, "layer.onnx", &layer);
}

static void write_all(void *arg) {
  job *j = arg;
  add_objects(j);
  add_disk_files(j);
  add_plan(j);
  take_folder(j, "tests/ir", ".irt", take_irt);
  take_folder(j, "tests/random/found", ".ir", take_ir);
  take_folder(j, "tests/data/onnx", ".onnx", take_onnx);
  add_arrays(j);
  add_models(j);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: seeds FOLDER SOURCES\n");
    return 2;
  }
  job j = {.folder = argv[1], .sources = argv[2]};
  arena_init(&j.a, &mem_system, &j.d);
  tn_status s = diag_catch(&j.d, write_all, &j);
  if (s != TN_OK) fprintf(stderr, "seeds: %s\n", j.d.text);
  arena_free(&j.a);
  return s != TN_OK;
}
