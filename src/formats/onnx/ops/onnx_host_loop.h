/* ONNX loops that no loop of a plan can be, as their steps change shapes or compute sizes: the host
   runs the body, a model of its own, step by step. */
#ifndef TENON_FORMATS_ONNX_OPS_ONNX_HOST_LOOP_H
#define TENON_FORMATS_ONNX_OPS_ONNX_HOST_LOOP_H

#include "formats/onnx/importer/importer.h"

/** A Loop or a Scan. */
typedef struct onnx_loop_form {
  const onnx_graph *body;
  bool is_scan;
  size_t first_state, n_states; /* among the node's inputs */
  const value *scanned;         /* arrays of a Scan, with the axis of their entries first */
  size_t n_scanned;
  size_t n_entries;                             /* scan outputs */
  const bool *reads_backward, *writes_backward; /* of a Scan */
  const char *why;                              /* no plan can run it */
} onnx_loop_form;

/** Builds a loop as one of the plan. NULL: it is one; else the reason why it cannot be, where the
    import lets the host run it. Raises other failures. */
const char *onnx_try_in_plan(onnx_call *c, void (*build)(onnx_call *c));

/** Builds steps of the host that run the loop. `results`: the final states, then the scan outputs,
    entries first; those that the node leaves out stay as they are. */
void onnx_host_loop(onnx_call *c, const onnx_loop_form *f, value results[]);

#endif
