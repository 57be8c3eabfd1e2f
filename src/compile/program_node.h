/* Builds and checks PROGRAM(SINK, DEVICE, LINEAR, SOURCE, BINARY) nodes: a kernel on its way
   through the compiler, one source a stage. Each function appends the next stage, or checks those
   there are. */
#ifndef TENON_COMPILE_PROGRAM_NODE_H
#define TENON_COMPILE_PROGRAM_NODE_H

#include "ir/core/ir.h"

/** Raises TN_ERR_INTERNAL if a PROGRAM's stages are not in order, each well-formed, and of one
    kernel. */
void program_node_check(ir *g, const node *program);

/** The PROGRAM with the next stage. Raises TN_ERR_INTERNAL if that is another stage, or empty. */
const node *program_node_source(ir *g, const node *program, const char *source, size_t bytes);
const node *program_node_binary(ir *g, const node *program, const void *code, size_t bytes);

#endif
