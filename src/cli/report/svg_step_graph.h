/* Draws the dataflow graph of a plan's steps as SVG. */
#ifndef TENON_CLI_REPORT_SVG_STEP_GRAPH_H
#define TENON_CLI_REPORT_SVG_STEP_GRAPH_H

#include "base/str.h"
#include "cli/data/explained_plan.h"
#include "cli/measure/step_profile.h"

/** Appends the drawing as SVG: a step lies below all steps that it reads, is darker the longer it
   runs, and links to its section of the page (#step-1). `p` and `x` have the same steps. */
void svg_step_graph_add(str *s, const profile *p, const explained_plan *x);

#endif
