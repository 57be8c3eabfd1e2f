/* ONNX files as plain structs, checked for form but not for meaning.

   Follows the ONNX format, IR versions 3 to 14. Everything lives in the caller's arena; strings end
   in NUL and are never NULL, absent ones are ""; weights stay where they are in the file. */
#ifndef TENON_FORMATS_ONNX_FILE_ONNX_FILE_H
#define TENON_FORMATS_ONNX_FILE_ONNX_FILE_H

#include "base/file.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { ONNX_IR_MIN = 3, ONNX_IR_MAX = 14, ONNX_NESTING_MAX = 64 };

/** X(enum, number, "name", bits, field): every element type, by its number in
    TensorProto.DataType; bits of one element in a tensor's data, 0 where that is not bytes; the
    field that carries it when it is not raw bytes. */
#define ONNX_DTYPE_LIST(X)                       \
  X(ONNX_F32, 1, "f32", 32, FLOAT)               \
  X(ONNX_U8, 2, "u8", 8, INT32)                  \
  X(ONNX_I8, 3, "i8", 8, INT32)                  \
  X(ONNX_U16, 4, "u16", 16, INT32)               \
  X(ONNX_I16, 5, "i16", 16, INT32)               \
  X(ONNX_I32, 6, "i32", 32, INT32)               \
  X(ONNX_I64, 7, "i64", 64, INT64)               \
  X(ONNX_STRING, 8, "string", 0, STRING)         \
  X(ONNX_BOOL, 9, "bool", 8, INT32)              \
  X(ONNX_F16, 10, "f16", 16, INT32)              \
  X(ONNX_F64, 11, "f64", 64, DOUBLE)             \
  X(ONNX_U32, 12, "u32", 32, UINT64)             \
  X(ONNX_U64, 13, "u64", 64, UINT64)             \
  X(ONNX_C64, 14, "c64", 64, FLOAT)              \
  X(ONNX_C128, 15, "c128", 128, DOUBLE)          \
  X(ONNX_BF16, 16, "bf16", 16, INT32)            \
  X(ONNX_F8E4M3FN, 17, "f8e4m3fn", 8, INT32)     \
  X(ONNX_F8E4M3FNUZ, 18, "f8e4m3fnuz", 8, INT32) \
  X(ONNX_F8E5M2, 19, "f8e5m2", 8, INT32)         \
  X(ONNX_F8E5M2FNUZ, 20, "f8e5m2fnuz", 8, INT32) \
  X(ONNX_U4, 21, "u4", 4, INT32)                 \
  X(ONNX_I4, 22, "i4", 4, INT32)                 \
  X(ONNX_F4E2M1, 23, "f4e2m1", 4, INT32)         \
  X(ONNX_F8E8M0, 24, "f8e8m0", 8, INT32)         \
  X(ONNX_U2, 25, "u2", 2, INT32)                 \
  X(ONNX_I2, 26, "i2", 2, INT32)                 \
  X(ONNX_F6E2M3, 27, "f6e2m3", 6, INT32)         \
  X(ONNX_F6E3M2, 28, "f6e3m2", 6, INT32)

typedef enum onnx_dtype {
  ONNX_UNDEFINED = 0,
#define ONNX_DTYPE_ENUM(name, number, text, bits, field) name = number,
  ONNX_DTYPE_LIST(ONNX_DTYPE_ENUM)
#undef ONNX_DTYPE_ENUM
} onnx_dtype;

/** X(enum, number, "name"): the kinds of attributes, by AttributeProto.AttributeType. */
#define ONNX_ATTRIBUTE_LIST(X)                           \
  X(ONNX_ATTRIBUTE_FLOAT, 1, "float")                    \
  X(ONNX_ATTRIBUTE_INT, 2, "int")                        \
  X(ONNX_ATTRIBUTE_STRING, 3, "string")                  \
  X(ONNX_ATTRIBUTE_TENSOR, 4, "tensor")                  \
  X(ONNX_ATTRIBUTE_GRAPH, 5, "graph")                    \
  X(ONNX_ATTRIBUTE_FLOATS, 6, "floats")                  \
  X(ONNX_ATTRIBUTE_INTS, 7, "ints")                      \
  X(ONNX_ATTRIBUTE_STRINGS, 8, "strings")                \
  X(ONNX_ATTRIBUTE_TENSORS, 9, "tensors")                \
  X(ONNX_ATTRIBUTE_GRAPHS, 10, "graphs")                 \
  X(ONNX_ATTRIBUTE_SPARSE_TENSOR, 11, "sparse tensor")   \
  X(ONNX_ATTRIBUTE_SPARSE_TENSORS, 12, "sparse tensors") \
  X(ONNX_ATTRIBUTE_TYPE, 13, "type")                     \
  X(ONNX_ATTRIBUTE_TYPES, 14, "types")

typedef enum onnx_attribute_type {
#define ONNX_ATTRIBUTE_ENUM(name, number, text) name = number,
  ONNX_ATTRIBUTE_LIST(ONNX_ATTRIBUTE_ENUM)
#undef ONNX_ATTRIBUTE_ENUM
} onnx_attribute_type;

typedef VEC(const char *) onnx_names;
typedef VEC(int64_t) onnx_ints;

/** Bytes of any value, followed by a NUL that does not count. */
typedef struct onnx_bytes {
  const char *at;
  size_t n;
} onnx_bytes;

typedef struct onnx_pair {
  const char *key, *value;
} onnx_pair;

typedef VEC(onnx_pair) onnx_pairs;

typedef struct onnx_opset {
  const char *domain; /* as written: "" and "ai.onnx" are the same */
  int64_t version;    /* ≥ 1 */
} onnx_opset;

/** Position of a tensor's data outside the model file. */
typedef struct onnx_external {
  const char *location; /* relative to the model's folder, without ".." */
  size_t offset;
} onnx_external;

/** A constant tensor. Its data is row-major and little-endian, at any alignment; elements under 8
    bits are packed from the lowest bit up; a bool is a byte, true unless 0. */
typedef struct onnx_tensor {
  const char *name;
  onnx_dtype dtype;
  onnx_ints dims;   /* each ≥ 0; none: a scalar */
  size_t elements;  /* product of the dims */
  size_t bytes;     /* of data: what the type and the dims call for */
  const void *data; /* into the file, or into the arena for data written as single values; NULL for
                       strings, for no bytes, and for external data not loaded */
  VEC(onnx_bytes) strings; /* the elements of a string tensor */
  onnx_external *external; /* NULL: in the model file */
} onnx_tensor;

/** A dimension of a value: a number, a parameter's name, or neither. */
typedef struct onnx_dim {
  int64_t value; /* −1: no number */
  const char *param;
} onnx_dim;

typedef enum onnx_type_kind {
  ONNX_TYPE_NONE, /* absent */
  ONNX_TYPE_TENSOR,
  ONNX_TYPE_SEQUENCE,
  ONNX_TYPE_OPTIONAL,
  ONNX_TYPE_MAP
} onnx_type_kind;

typedef struct onnx_type onnx_type;
struct onnx_type {
  onnx_type_kind kind;
  int32_t dtype;  /* a tensor's elements or a map's keys, as written: may be no onnx_dtype */
  bool has_shape; /* a tensor's rank is known: the number of dims */
  VEC(onnx_dim) dims;
  onnx_type *elem; /* of a sequence, an optional, or a map's values; NULL: not given */
};

/** A graph's input, output or intermediate value. */
typedef struct onnx_value {
  const char *name;
  onnx_type type;
} onnx_value;

typedef struct onnx_graph onnx_graph;
typedef VEC(onnx_tensor *) onnx_tensors;

/** An attribute: `type` says which member counts; others may be filled too. */
typedef struct onnx_attribute {
  const char *name;
  const char *ref_name; /* in a function: the function's attribute whose value it takes, or "" */
  onnx_attribute_type type;
  float f;
  int64_t i;
  onnx_bytes s;
  onnx_tensor *t; /* not NULL for a tensor without ref_name; likewise g and tp */
  onnx_graph *g;
  onnx_type *tp;
  VEC(float) floats;
  onnx_ints ints;
  VEC(onnx_bytes) strings;
  onnx_tensors tensors;
  VEC(onnx_graph *) graphs;
  VEC(onnx_type) types;
} onnx_attribute;

typedef struct onnx_node {
  const char *name, *op_type, *domain, *overload; /* only op_type is never "" */
  onnx_names inputs, outputs;                     /* "" for an optional one left out */
  VEC(onnx_attribute) attributes;
} onnx_node;

typedef VEC(onnx_node) onnx_nodes;
typedef VEC(onnx_opset) onnx_opsets;
typedef VEC(onnx_value) onnx_values;

struct onnx_graph {
  const char *name;
  onnx_nodes nodes;
  onnx_tensors initializers; /* no two of one name */
  onnx_values inputs, outputs, values;
};

typedef struct onnx_function {
  const char *name, *domain, *overload;
  onnx_names inputs, outputs;
  onnx_names attributes;        /* those without a default value */
  VEC(onnx_attribute) defaults; /* those with one */
  onnx_nodes nodes;
  onnx_opsets opsets;
  onnx_values values;
} onnx_function;

typedef struct onnx_model {
  int64_t ir_version, model_version;
  const char *producer_name, *producer_version, *domain;
  onnx_opsets opsets; /* at least one */
  onnx_graph *graph;
  VEC(onnx_function) functions;
  onnx_pairs metadata;
  onnx_tensors external; /* all tensors with external data, wherever they are in the model */
  file_map file;         /* these two only after onnx_load_file */
  VEC(file_map) external_files;
  VEC(const char *) external_paths; /* of these files, as they were opened; stays after unmapping */
} onnx_model;

/** Name of an element type ("bf16"), NULL for a number that is none; bits of one element in a
    tensor's data, 0 for strings and unknown numbers. */
const char *onnx_dtype_name(int dtype);
unsigned onnx_dtype_bits(int dtype);

/** Reads a model from memory, which must outlive it. `a` must raise in `d`. External data is
    checked for form and not opened. On failure *out is NULL, and the arena holds scraps:
    TN_ERR_FORMAT for what is no ONNX model or is damaged, with its place (graph, node, tensor or
    byte); TN_ERR_UNSUPPORTED for other IR versions, sparse tensors, unknown element types and
    graphs or types nested deeper than ONNX_NESTING_MAX. Takes memory in proportion to `n`. */
tn_status onnx_parse_model(onnx_model **out, const void *bytes, size_t n, arena *a, diag *d);

/** Reads one tensor from memory, as in a file of test data, which must outlive it. Fails as
    onnx_parse_model, and with TN_ERR_UNSUPPORTED for external data. */
tn_status onnx_parse_tensor(onnx_tensor **out, const void *bytes, size_t n, arena *a, diag *d);

/** Writes the part of a tensor's file that comes before its elements, which follow as they are in
    memory, to `header` of `bytes` bytes, and returns its length; nothing is written where `bytes`
   is less. The element type is one of whole bytes; `data_bytes` is the size of all elements. */
size_t onnx_tensor_header(const char *name, onnx_dtype dtype, size_t rank, const int64_t dims[],
                          size_t data_bytes, void *header, size_t bytes);

/** Maps and reads a model file and the files of its external data, which lie in `folder` or below,
    all links followed; NULL: in the file's own, or in that of the file that the path leads to.
   Fails as onnx_parse_model, and with TN_ERR_IO; messages about contents begin with `name`, unless
   it is
    "". To be unmapped before its arena goes. */
tn_status onnx_load_file(onnx_model **out, const char *path, const char *name, const char *folder,
                         arena *a, diag *d);

/** Maps the external data of a model that onnx_parse_model read. Also on failure the model is to be
    closed. */
tn_status onnx_map_external_data(onnx_model *m, const char *folder, arena *a, diag *d);

/** Releases the pages of a tensor's data where that is in a map of onnx_load_file's
 * (file_map_evict).
 */
void onnx_tensor_drop_pages(const onnx_model *m, const onnx_tensor *t);

/** Unmaps the files of onnx_load_file: tensor data becomes invalid, everything else stays. NULL is
    allowed. */
void onnx_model_unmap(onnx_model *m);

#endif
