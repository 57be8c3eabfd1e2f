/* Writes the explanation of a plan as one self-contained page of HTML. */
#ifndef TENON_CLI_REPORT_HTML_PAGE_H
#define TENON_CLI_REPORT_HTML_PAGE_H

#include "base/str.h"
#include "cli/data/explained_plan.h"
#include "cli/measure/step_profile.h"

/** Makes the page, which loads nothing and escapes all texts of the model. `sizes` lists the values
   of sizes that vary; "": none. In the command's arena. */
str html_page_make(const profile *p, const explained_plan *x, const char *sizes);

#endif
