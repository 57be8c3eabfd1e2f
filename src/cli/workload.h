/* Workloads that need no file: "matmul:512x512x512", "softmax:1024x1000:bf16". */
#ifndef TENON_CLI_WORKLOAD_H
#define TENON_CLI_WORKLOAD_H

#include "cli/array.h"

enum { WORKLOAD_SIZES = 8, WORKLOAD_INPUTS = 3 };

typedef struct workload_kind workload_kind;

typedef struct workload {
  const workload_kind *kind;
  int64_t size[WORKLOAD_SIZES]; /* in the order they are written */
  int axis;
  tn_dtype dtype;
} workload;

/** Reads a workload. False if the text is none: no name of one and a colon come first. Raises as
    command_misuse where they do and it goes on badly. */
bool workload_read(command *c, const char *text, workload *w);

/** Raises as command_misuse where what is the name of no file is meant as a workload: it is the
   name of one, or has a colon. */
void workload_refuse(command *c, const char *text);

/** The shapes of its inputs; their number. */
size_t workload_inputs(const workload *w, tn_shape shapes[WORKLOAD_INPUTS]);

/** Its result of these inputs, of the shapes asked for and its type. */
tn_tensor *workload_build(const workload *w, tn_context *tn, tn_tensor *const in[WORKLOAD_INPUTS]);

/** Floating or integer operations of its contractions, a multiply-add being two; 0: none. */
double workload_operations(const workload *w);

#endif
