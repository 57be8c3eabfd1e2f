/* How much arithmetic a model's contractions are. */
#ifndef TENON_CLI_FLOPS_H
#define TENON_CLI_FLOPS_H

#include "cli/feed.h"

typedef struct flops {
  double operations; /* of a run, a multiply-add being two; 0: none, or not known */
  bool is_float;     /* all of them */
} flops;

/** Counts sums of products of two different tensors, neither a constant (matrix products,
    convolutions, and the like), for inputs of these shapes. */
flops flops_of_model(command *c, const tn_model *m, const feeds *in);

#endif
