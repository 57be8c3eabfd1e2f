/* The passes after which a graph can be looked at, in the order in which they run. */
#ifndef TENON_IR_PASS_H
#define TENON_IR_PASS_H

#include "ir/ir.h"

/** X(enum, "name"). The first four see a whole graph, the others a kernel each. */
#define PASS_LIST(X)                 \
  X(PASS_NORMALISE, "normalise")     \
  X(PASS_PARTS, "parts")             \
  X(PASS_VERSIONS, "versions")       \
  X(PASS_KERNELS, "kernels")         \
  X(PASS_KERNEL, "kernel")           \
  X(PASS_SIMPLIFY, "simplify")       \
  X(PASS_CHOOSE, "choose")           \
  X(PASS_LOWER, "lower")             \
  X(PASS_EXPAND, "expand")           \
  X(PASS_REGISTERS, "registers")     \
  X(PASS_STREAMS, "streams")         \
  X(PASS_PREFETCH, "prefetch")       \
  X(PASS_THREADS, "threads")         \
  X(PASS_EDGES, "edges")             \
  X(PASS_DECOMPOSE, "decompose")     \
  X(PASS_INDEX_WIDTH, "index_width") \
  X(PASS_LINEARISE, "linearise")

typedef enum pass {
#define PASS_ENUM(name, text) name,
  PASS_LIST(PASS_ENUM)
#undef PASS_ENUM
      PASSES
} pass;

const char *pass_name(pass p);

/** In development builds, checks what a pass made by the laws of a stage (verify.h); raises
    TN_ERR_INTERNAL with the pass's name. */
void pass_verify(ir *g, pass after, enum stage stage, const node *const roots[], size_t n);

#endif
