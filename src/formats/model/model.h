/* Model: an imported ONNX file as a tensor graph with named ports, its weights as buffers, and the
   plan that its bindings share. Only the plan changes after loading, so any number of threads may
   use a model. */
#ifndef TENON_FORMATS_MODEL_MODEL_H
#define TENON_FORMATS_MODEL_MODEL_H

#include "formats/model/model_graph.h"
#include "tensor/context/context.h"

/** After loading only `plan` and `diag` change, under `lock`. The model owns its graph and never
   marks its nodes, so threads use it without acquiring the context. */
struct tn_model {
  attachment attachment; /* to its context */
  tn_context *context;
  model_file *data;
  const char *name; /* of the file's graph */
  model_graph graph;
  /* If the graph is late, in the file's arena: */
  tn_model_size *sizes; /* the caller's constraints */
  size_t n_sizes;
  const tn_port *late_outputs; /* as the file declares them */
  size_t n_late_outputs;
  tn_variants variants;
  bool is_tunable, is_interpreted;
  mutex lock;    /* protects the two below */
  diag diag;     /* of the ir and of compiling */
  tn_plan *plan; /* NULL until the first binding */
};

#endif
