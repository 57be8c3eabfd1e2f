/* The graph of a model file: imported into an ir of its own, with named ports, the memory of its
   weights and labels. Needs no context, so a run may import the file again, with values for inputs
   that decide shapes. */
#ifndef TENON_FORMATS_MODEL_MODEL_GRAPH_H
#define TENON_FORMATS_MODEL_MODEL_GRAPH_H

#include "base/stop.h"
#include "device/memory/buffer.h"
#include "formats/onnx/importer/importer.h"
#include "ir/core/topo_sort.h"
#include "tensor/plan/plan.h"

#include <tenon/model.h>

/** The parsed contents of a model file. A model holds a reference, and so does each weight's buffer
    that reads the file or lies in its memory. Thread-safe. */
typedef struct model_file {
  atomic_size_t count;
  const mem *mem;
  struct model_file *whole; /* of the body of a loop: the file that it is in; NULL: it is a file */
  diag diag;                /* of the arena */
  arena arena;
  onnx_model *onnx;
  const char *title;     /* in messages: the caller's name or path; if empty, the graph's name */
  string_table *strings; /* of the file's constants, and of runs */
  void *bytes;           /* a copy of a model in memory; NULL: a file */
  size_t n_bytes;
} model_file;

/** Reads a file or, if `path` is NULL, a copy of `data`. Messages call it `name`. `folder` holds
    external data; NULL: the file's own folder. Errors are copied to `d`. */
tn_status model_file_open(model_file **out, const char *path, const char *name, const void *data,
                          size_t bytes, const char *folder, onnx_access access, const mem *m,
                          diag *d);
void model_file_release(model_file *m); /* of NULL: no effect */

/** A part of a file with a graph of its own, of which nothing is set, and the file's strings,
    functions and data. It has a reference to the whole file. */
tn_status model_file_open_body(model_file **out, model_file *of, diag *d);

/** The model whose files hold a file's tensors. */
static inline onnx_model *model_file_of_tensors(const model_file *m) {
  return m->whole ? m->whole->onnx : m->onnx;
}

/** A graph input of a model, by the number in its BUFFER node. */
typedef struct model_buffer {
  const char *input;         /* name of the input; NULL: a weight */
  tn_buffer *memory;         /* of a weight */
  const onnx_tensor *tensor; /* of a weight whose data stays in the file */
} model_buffer;

/** An imported graph. Nodes are only read, so any number of threads uses it. */
typedef struct model_graph {
  arena *arena; /* of the lists */
  ir *ir;       /* owns the nodes; NULL: there is no graph */
  size_t n_inputs, n_outputs;
  const char **names;                   /* of inputs, then outputs */
  const node **nodes;                   /* likewise: BUFFERs, then values */
  const char *(*sizes)[TN_MAX_RANK];    /* likewise: each size as text */
  int32_t (*size_numbers)[TN_MAX_RANK]; /* likewise: equal for equal varying sizes; -1: constant */
  schedule_label *labels; /* names of the file's nodes, by the graph node of their output */
  size_t n_labels;
  node_list order;       /* all nodes in topological order: a walk would mark them */
  model_buffer *buffers; /* by number */
  size_t n_buffers;
  bool *is_string;      /* likewise: elements are numbers of strings */
  host_steps *host;     /* NULL: there are none */
  importer_list *lists; /* outputs that are sequences or absent */
  size_t n_lists;
  bool is_late;       /* elements or sizes of inputs decide on nodes: the graph has no outputs */
  bool *deciding;     /* by input: its elements do */
  bool has_late_body; /* a loop that the host runs, or one in its body, is imported by runs again */
  const char *exact_reason; /* the sizes of all inputs decide: why they cannot be open; else NULL */
  bool fits_open_from_one;  /* they may be open if all are at least 1 */
  const importer_sizes *fitting; /* by input: sizes that were found to fit then; NULL: none were */
  const importer_type *late_types; /* of the outputs of a late graph; NULL: not known */
} model_graph;

/** An import of a model's file. */
typedef struct model_graph_request {
  const mem *mem;
  tn_device *device;
  tn_context *context; /* of plans of loops that the host runs */
  bool is_interpreted; /* likewise */
  bool is_body;        /* the file is the body of such a loop */
  model_file *file;
  const onnx_model *onnx;     /* with another graph than the file's; NULL: the file's */
  bool copies_weights;        /* from the file, rather than importing its memory */
  const tn_model_size *sizes; /* the caller's constraints */
  size_t n_sizes;
  const onnx_tensor *values; /* of inputs, under their names */
  size_t n_values;
  const importer_sizes *input_sizes; /* of a run; NULL: open */
  const char *const *varying;        /* inputs whose values vary (importer.h) */
  size_t n_varying;
  int64_t least_size; /* of sizes that the file leaves open */
  stop_condition stop;
  bool is_open;                      /* no body of a loop in the graph may be late */
  bool may_be_exact;                 /* where nodes fit no open sizes, the graph may be late */
  bool is_late;                      /* the graph is late, whether nodes fit or not; */
  const char *late_reason;           /* with this `exact_reason` */
  bool leaves_out_sequences;         /* among outputs */
  const tn_model_problems *problems; /* told of a failure's problems; NULL: nobody is */
  bool is_told;                      /* the caller says itself how sizes are constrained */
  bool blames_sizes;                 /* set: constraints may avoid the failure */
} model_graph_request;

/** Imports the graph, or its inputs where nodes depend on elements of inputs that have no value, or
    fit together for some sizes alone: it is late then. `d` outlives it. On failure the graph is to
   be freed all the same. */
tn_status model_graph_import(model_graph *g, model_graph_request *request, diag *d);

/** Frees the ir and releases the weights; the arena is the caller's. */
void model_graph_free(model_graph *g);

/** The graph as one to be made a plan, without what is particular to the plan. It has a reference
   to the file. */
plan_graph model_graph_of_plan(const model_graph *g, model_file *file);

#endif
