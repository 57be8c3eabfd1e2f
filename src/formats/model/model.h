/* Model: an imported ONNX file as a tensor graph with named ports, its weights as buffers, and the
   plan that its bindings share. Only the plan changes after loading, so any number of threads may
   use a model. */
#ifndef TENON_FORMATS_MODEL_MODEL_H
#define TENON_FORMATS_MODEL_MODEL_H

#include "device/memory/buffer.h"
#include "formats/onnx/file/onnx_file.h"
#include "ir/core/topo_sort.h"
#include "tensor/context/context.h"
#include "tensor/plan/plan.h"

#include <tenon/model.h>

/** The parsed contents of a model file. The model holds a reference, and so does each weight's
   buffer over the file's memory. Thread-safe. */
typedef struct model_file {
  atomic_size_t count;
  const mem *mem;
  diag diag; /* of the arena */
  arena arena;
  onnx_model *onnx;
  void *bytes; /* a copy of a model in memory; NULL: a file */
  size_t n_bytes;
} model_file;

/** Reads a file or, if `path` is NULL, a copy of `data`. Messages call it `name`. `folder` holds
    external data; NULL: the file's own folder. Errors are copied to `d`. */
tn_status model_file_open(model_file **out, const char *path, const char *name, const void *data,
                          size_t bytes, const char *folder, const mem *m, diag *d);
void model_file_release(model_file *m); /* of NULL: no effect */

/** A graph input of a model, by the number in its BUFFER node. */
typedef struct model_buffer {
  const char *input;         /* name of the input; NULL: a weight */
  tn_buffer *memory;         /* of a weight */
  const onnx_tensor *tensor; /* of a weight */
} model_buffer;

/** After loading only `plan` and `diag` change, under `lock`. The model owns its graph and never
   marks its nodes, so threads use it without acquiring the context. */
struct tn_model {
  attachment attachment; /* to its context */
  tn_context *context;
  model_file *data;
  const char *name, *title; /* `title`: in messages */
  size_t n_inputs, n_outputs;
  const char **names;                   /* of inputs, then outputs */
  const node **nodes;                   /* likewise: BUFFERs, then values */
  const char *(*sizes)[TN_MAX_RANK];    /* likewise: each size as text */
  int32_t (*size_numbers)[TN_MAX_RANK]; /* likewise: equal for equal varying sizes; -1: constant */
  schedule_label *labels; /* names of the file's nodes, by the graph node of their output */
  size_t n_labels;
  ir *ir;                /* owns the graph */
  node_list order;       /* all nodes in topological order: a walk would mark them */
  model_buffer *buffers; /* by number; in the data's arena */
  size_t n_buffers;
  tn_variants variants;
  bool is_tunable;
  mutex lock;    /* protects the two below */
  diag diag;     /* of the ir and of compiling */
  tn_plan *plan; /* NULL until the first binding */
};

#endif
