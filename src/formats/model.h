/* The inside of models. */
#ifndef TENON_FORMATS_MODEL_H
#define TENON_FORMATS_MODEL_H

#include "device/buffer.h"
#include "formats/onnx/proto.h"
#include "ir/topo.h"
#include "tensor/context.h"
#include "tensor/plan.h"

#include <tenon/model.h>

/** A model file's contents, counted: by its model and by every weight's memory. Any thread. */
typedef struct model_data {
  atomic_size_t count;
  const mem *mem;
  diag diag; /* where its arena raises while it is read */
  arena arena;
  onnx_model *onnx;
  void *bytes; /* a copy of a model given in memory */
  size_t n_bytes;
} model_data;

/** Reads a file or, if `path` is NULL, copies and reads `bytes` bytes. `folder` is that of external
    data; NULL: the file's own. The failure goes to `d`. */
tn_status model_data_open(model_data **out, const char *path, const void *data, size_t bytes,
                          const char *folder, const mem *m, diag *d);
void model_data_release(model_data *m); /* NULL is allowed */

/** What a BUFFER of a model's graph is, by its number. */
typedef struct model_leaf {
  const char *input; /* its name; NULL: a weight */
  tn_buffer *memory; /* of a weight */
  const onnx_tensor *tensor;
} model_leaf;

/** Nothing but the plan changes after loading, not even a mark on a node, and nothing of it is in
    the context's graph: a model is used by any number of threads beside the context. */
struct tn_model {
  attachment attachment; /* to its context */
  tn_context *context;
  model_data *data;
  const char *name;
  size_t n_inputs, n_outputs;
  const char **names;                /* of inputs, then outputs */
  const node **nodes;                /* the same: leaves, then values */
  const char *(*sizes)[TN_MAX_RANK]; /* the same: sizes in words */
  schedule_label *labels;            /* what nodes of the file are called that gave nodes of this */
  size_t n_labels;
  ir *ir;             /* the home of the graph */
  node_list order;    /* of all nodes, so that nobody walks the graph, which marks them */
  model_leaf *leaves; /* in the data's arena */
  size_t n_leaves;
  mutex lock;    /* of what follows */
  diag diag;     /* the ir's, and of compiling */
  tn_plan *plan; /* NULL until the first binding */
};

#endif
