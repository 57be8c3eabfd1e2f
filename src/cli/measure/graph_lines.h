/* Tells in lines of text which kernels of a plan devices take over as graphs, and why others run
   one by one. */
#ifndef TENON_CLI_MEASURE_GRAPH_LINES_H
#define TENON_CLI_MEASURE_GRAPH_LINES_H

#include "cli/core/command.h"

typedef struct graph_lines {
  VEC(const char *) lines;
} graph_lines;

/** Runs a binding as often as graphs take to be made, without times, and lists what became of its
    kernels; in the command's arena. */
graph_lines graph_lines_find(command *c, tn_binding *b);

#endif
