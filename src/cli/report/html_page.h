/* Writes the explanation of a plan as one self-contained page of HTML. */
#ifndef TENON_CLI_REPORT_HTML_PAGE_H
#define TENON_CLI_REPORT_HTML_PAGE_H

#include "base/str.h"
#include "cli/data/explained_plan.h"
#include "cli/measure/graph_lines.h"
#include "cli/measure/step_profile.h"

/** Creates the page. `sizes` lists the values of varying sizes; "": none. `exact`: why these cannot
   be open, or NULL. In the command's arena. */
str html_page_make(const profile *p, const explained_plan *x, const graph_lines *graphs,
                   const char *sizes, const char *exact);

#endif
