/* Provides built-in benchmark workloads, which need no file: "matmul:512x512x512",
   "softmax:1024x1000:bf16". */
#ifndef TENON_CLI_MEASURE_WORKLOAD_H
#define TENON_CLI_MEASURE_WORKLOAD_H

#include "cli/data/host_array.h"

enum { WORKLOAD_SIZES = 8, WORKLOAD_INPUTS = 3 };

typedef struct workload_kind workload_kind;

typedef struct workload {
  const workload_kind *kind;
  int64_t size[WORKLOAD_SIZES]; /* in the order of the text */
  int axis;
  tn_dtype dtype;
} workload;

/** Parses a workload; false if the text does not begin with a workload's name and a colon. Raises
   as command_usage_error if the rest is malformed. */
bool workload_parse(command *c, const char *text, workload *w);

/** Raises as command_usage_error for a text that looks like a workload: a workload's name without
    sizes, or any text with a colon. */
void workload_reject(command *c, const char *text);

/** Sets the shapes of the inputs; returns their number. */
size_t workload_inputs(const workload *w, tn_shape shapes[WORKLOAD_INPUTS]);

/** Builds the graph over inputs of these shapes and the workload's type. */
tn_tensor *workload_build(const workload *w, tn_context *tn, tn_tensor *const in[WORKLOAD_INPUTS]);

/** The operations of its contractions, a multiply-add counting as two; 0: none. */
double workload_operations(const workload *w);

#endif
