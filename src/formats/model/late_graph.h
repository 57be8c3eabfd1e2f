/* Graphs of models, and of bodies of loops that the host runs, which depend on elements of inputs,
   or fit no open sizes or no single ranks: their plan is late (tensor/plan/late_plan.h), and each
   run's values, sizes or ranks import the file again. */
#ifndef TENON_FORMATS_MODEL_LATE_GRAPH_H
#define TENON_FORMATS_MODEL_LATE_GRAPH_H

#include "formats/model/model_graph.h"

/** A late graph, with what later imports of it need. */
typedef struct late_graph {
  tn_context *context;
  model_file *file;         /* has the graph as the file states it */
  const model_graph *graph; /* not kept */
  const char *name;
  const tn_model_size *sizes; /* the caller's constraints */
  size_t n_sizes;
  tn_variants variants;
  bool is_tunable, is_interpreted;
  bool is_body;        /* of a loop that the host runs */
  const bool *is_free; /* by input: it takes any shape; NULL: none; not kept */
} late_graph;

/** Makes the plan of a late graph, which keeps the file. */
tn_status late_graph_make_plan(const late_graph *of, diag *d, tn_plan **out);

#endif
