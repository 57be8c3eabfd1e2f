/* Model: an imported ONNX file as a tensor graph with named ports, its weights as buffers, and the
   plan that its bindings share. Immutable after loading except for the plan, so that any number of
   threads use it. */
#ifndef TENON_FORMATS_MODEL_MODEL_H
#define TENON_FORMATS_MODEL_MODEL_H

#include "device/memory/buffer.h"
#include "formats/onnx/file/onnx_file.h"
#include "ir/core/topo_sort.h"
#include "tensor/context/context.h"
#include "tensor/plan/plan.h"

#include <tenon/model.h>

/** Parsed contents of a model file. References: the model, and every weight's memory that points
   into the file. Any thread. */
typedef struct model_file {
  atomic_size_t count;
  const mem *mem;
  diag diag; /* of the arena */
  arena arena;
  onnx_model *onnx;
  void *bytes; /* a copy of a model given in memory */
  size_t n_bytes;
} model_file;

/** Reads a file or, if `path` is NULL, copies and reads `bytes` bytes. Messages call the
    file `name`. `folder` holds external data; NULL: the file's own folder. Errors are copied to
   `d`. */
tn_status model_file_open(model_file **out, const char *path, const char *name, const void *data,
                          size_t bytes, const char *folder, const mem *m, diag *d);
void model_file_release(model_file *m); /* NULL is allowed */

/** A BUFFER of a model's graph, indexed by the uid of the node. */
typedef struct model_buffer {
  const char *input; /* name of the graph input; NULL: a weight */
  tn_buffer *memory; /* of a weight */
  const onnx_tensor *tensor;
} model_buffer;

/** After loading only `plan` and `diag` change, under `lock`. Nodes are not in the context's graph,
   and not even their marks change: threads use a model without acquiring the context. */
struct tn_model {
  attachment attachment; /* to its context */
  tn_context *context;
  model_file *data;
  const char *name;
  size_t n_inputs, n_outputs;
  const char **names;                   /* of inputs, then outputs */
  const node **nodes;                   /* likewise: BUFFERs, then values */
  const char *(*sizes)[TN_MAX_RANK];    /* likewise: each size as text */
  int32_t (*size_numbers)[TN_MAX_RANK]; /* likewise: equal for equal varying sizes; -1: number */
  schedule_label *labels; /* names of the file's nodes, by the graph node of their output */
  size_t n_labels;
  ir *ir;               /* owns the graph */
  node_list order;      /* all nodes sorted: walking the graph would mark them */
  model_buffer *leaves; /* of each BUFFER; in the data's arena */
  size_t n_leaves;
  mutex lock;    /* protects the two below */
  diag diag;     /* of the ir and of compiling */
  tn_plan *plan; /* NULL until the first binding */
};

#endif
