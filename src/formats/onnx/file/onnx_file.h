/* ONNX files (ModelProto, IR versions 3 to 14) as plain structs, checked for form but not for
   meaning. Everything lives in the caller's arena, except weights, which stay in the mapped file,
   or are left unread. Strings end in NUL and are never NULL; absent ones are "". */
#ifndef TENON_FORMATS_ONNX_FILE_ONNX_FILE_H
#define TENON_FORMATS_ONNX_FILE_ONNX_FILE_H

#include "base/file.h"
#include "base/vec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ONNX_IR_MIN = 3, ONNX_IR_MAX = 14, ONNX_NESTING_MAX = 64 };

/** X(enum, number, "name", bits, field): every element type with its number in
   TensorProto.DataType, the bits of an element in a tensor's data (0 for strings), and the field
   that holds elements not given as raw_data. */
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

/** X(enum, number, "name"): the types of attributes, by AttributeProto.AttributeType. */
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

/** Bytes of any value, followed by a NUL that `n` does not count. */
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

/** The position of a tensor's data in another file. */
typedef struct onnx_external {
  const char *location; /* relative to the model's folder, without ".." */
  size_t offset;
} onnx_external;

/** Data that lies in a file in parts, where it is only when it was read (onnx_tensor_load). */
typedef struct onnx_unread {
  atomic_bool is_loaded;
} onnx_unread;

/** A constant tensor. Its data is row-major and little-endian, at any alignment; elements of 4
    and 2 bits are unpacked, to a byte each; those of 6 are packed from the lowest bit up; a bool is
   a byte, true unless 0. */
typedef struct onnx_tensor onnx_tensor;
struct onnx_tensor {
  const char *name;
  onnx_dtype dtype;
  onnx_ints dims;  /* each ≥ 0; none: a scalar */
  size_t elements; /* product of the dims */
  size_t bytes;    /* of data, computed from the type and the dims; in the file until it is there */
  const void *data; /* in the file, or in the arena for elements of typed fields and unpacked ones;
                       NULL for strings, empty tensors, and external data not loaded */
  VEC(onnx_bytes) strings; /* the elements of a string tensor */
  onnx_external *external; /* NULL: in the model file */
  onnx_unread *unread;     /* NULL: the data is there */
  bool is_computed;        /* by an importer: the data lives no longer than the import */
  /* Of a sparse tensor, which has no data of its own: n values, and their places, i64, of shape [n]
     in row-major order or [n, rank]; NULL: it is dense. */
  const onnx_tensor *values, *indices;
};

/** A dimension of a value: a number, a parameter's name, or neither. */
typedef struct onnx_dim {
  int64_t value; /* −1: unknown */
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
  int32_t dtype;  /* of a tensor's elements or a map's keys, unchecked */
  bool has_shape; /* a tensor's rank is known: the number of dims */
  VEC(onnx_dim) dims;
  onnx_type *elem; /* of a sequence, an optional, or a map's values; NULL: absent */
};

/** A graph's input, output or intermediate value. */
typedef struct onnx_value {
  const char *name;
  onnx_type type;
} onnx_value;

typedef struct onnx_graph onnx_graph;
typedef VEC(onnx_tensor *) onnx_tensors;

/** An attribute: `type` selects the valid member. */
typedef struct onnx_attribute {
  const char *name;
  const char *ref_name; /* in a function: the function's attribute that has the value; "": none */
  onnx_attribute_type type;
  float f;
  int64_t i;
  onnx_bytes s;
  onnx_tensor *t; /* not NULL for a tensor or sparse tensor without ref_name; likewise g and tp */
  onnx_graph *g;
  onnx_type *tp;
  VEC(float) floats;
  onnx_ints ints;
  VEC(onnx_bytes) strings;
  onnx_tensors tensors;
  VEC(onnx_graph *) graphs;
  VEC(onnx_type) types;
} onnx_attribute;

typedef VEC(onnx_attribute) onnx_attributes;

typedef struct onnx_node {
  const char *name, *op_type, *domain, *overload; /* only op_type is never "" */
  onnx_names inputs, outputs;                     /* "": an absent optional one */
  onnx_attributes attributes;
} onnx_node;

typedef VEC(onnx_node) onnx_nodes;
typedef VEC(onnx_opset) onnx_opsets;
typedef VEC(onnx_value) onnx_values;

/** An input that is a map: its keys and its values are inputs of their own, vectors of one size. */
typedef struct onnx_map_input {
  const char *name, *keys, *values;
} onnx_map_input;

struct onnx_graph {
  const char *name;
  onnx_nodes nodes;
  onnx_tensors initializers; /* with different names */
  onnx_values inputs, outputs, values;
  /* None of these when the file is parsed: */
  VEC(onnx_map_input) maps; /* they are among the inputs then */
  bool is_of_function;      /* a body that was taken out of one, whose call leaves out: */
  onnx_names absent;        /* these inputs, */
  onnx_attributes given;    /* and gives these attributes */
};

typedef struct onnx_function {
  const char *name, *domain, *overload;
  onnx_names inputs, outputs;
  onnx_names attributes;    /* those without a default value */
  onnx_attributes defaults; /* those with one */
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
  onnx_tensors external;            /* all tensors with external data, also of nested graphs */
  file_map file;                    /* set by onnx_load_file */
  VEC(file_map) external_files;     /* set by onnx_load_file and onnx_open_external_data */
  VEC(const char *) external_paths; /* of these files; valid after unmapping, too */
} onnx_model;

/** Calls `add` for each name that a node reads, also in its nested graphs, where names of their own
    are left out. */
void onnx_node_for_names(arena *a, const onnx_node *n, void (*add)(void *user, const char *name),
                         void *user);

/** The name of an element type ("bf16"), NULL for unknown numbers; the bits of an element in a
    tensor's data, 0 for strings and unknown numbers. */
const char *onnx_dtype_name(int dtype);
unsigned onnx_dtype_bits(int dtype);

/** Unpacks the elements of 4 and 2 bits in `data`, if there are any, to the arena. */
void onnx_unpack_elements(onnx_tensor *t, arena *a);

/** Parses a model in memory, which must outlive it. `a` must raise in `d`. External data is checked
    for form, not opened. On failure *out is NULL, and the arena holds garbage. Fails with
    TN_ERR_FORMAT for damaged and other files, naming the graph, node, tensor or byte; with
    TN_ERR_UNSUPPORTED for other IR versions, sparse values, unknown element types and graphs or
   types nested deeper than ONNX_NESTING_MAX. Uses memory proportional to `n`. */
tn_status onnx_parse_model(onnx_model **out, const void *bytes, size_t n, arena *a, diag *d);

/** Parses a model file as onnx_parse_model does, of a file in parts after reading all but the data
    of large tensors. */
tn_status onnx_parse_file(onnx_model **out, const file_map *file, arena *a, diag *d);

/** Parses a TensorProto in memory (a file of test data), which must outlive it. Fails as
    onnx_parse_model, and with TN_ERR_UNSUPPORTED for external data. */
tn_status onnx_parse_tensor(onnx_tensor **out, const void *bytes, size_t n, arena *a, diag *d);

/** Writes the header of a TensorProto file, after which the elements follow, and returns its
   length; writes nothing if `bytes`, the size of `header`, is less. Elements have whole bytes,
   together `data_bytes`. */
size_t onnx_tensor_header(const char *name, onnx_dtype dtype, size_t rank, const int64_t dims[],
                          size_t data_bytes, void *header, size_t bytes);

/** How the files of a model are opened: in parts, so that large tensors are read where they are
    used, or mapped. */
typedef enum onnx_access { ONNX_IN_PARTS, ONNX_MAPPED } onnx_access;

/** Opens and parses a model file and the files of its external data. These must lie in `folder` or
    below, links followed; NULL: the folder of the file, or of the file that its links lead to.
    Fails as onnx_parse_model, and with TN_ERR_IO; messages about contents begin with `name`, unless
    it is "". Unmap the model before freeing the arena. */
tn_status onnx_load_file(onnx_model **out, const char *path, const char *name, const char *folder,
                         onnx_access access, arena *a, diag *d);

/** Opens the external data of a model of onnx_parse_model. Unmap the model also after a failure. */
tn_status onnx_open_external_data(onnx_model *m, const char *folder, onnx_access access, arena *a,
                                  diag *d);

/** Has a tensor's data at its place, reading it from a file in parts, where it stays. TN_ERR_IO if
    the file lacks it by now. Any thread. */
tn_status onnx_tensor_load(const onnx_model *m, const onnx_tensor *t, diag *d);

/** Copies bytes of a tensor's data from an offset on, which that of a file in parts passes by. Any
    thread. */
tn_status onnx_tensor_copy(const onnx_model *m, const onnx_tensor *t, size_t offset, size_t bytes,
                           void *to, diag *d);

/** Evicts the pages of a tensor's data if it lies in a mapped file (file_map_evict). */
void onnx_tensor_drop_pages(const onnx_model *m, const onnx_tensor *t);

/** Replaces the maps of a model's files by copies, or reads all parts, so that the files may
 * change.
 */
tn_status onnx_model_detach(onnx_model *m, diag *d);

/** Unmaps the files of a model, which invalidates tensor data alone. No effect on NULL. */
void onnx_model_unmap(onnx_model *m);

#endif
