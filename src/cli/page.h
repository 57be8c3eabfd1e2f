/* What explain tells of a plan, as one self-contained page of HTML. */
#ifndef TENON_CLI_PAGE_H
#define TENON_CLI_PAGE_H

#include "base/str.h"
#include "cli/profile.h"
#include "runtime/explanation.h"

/** The page; `sizes` that vary are told as they were, "" being none. Nothing of it comes from
    elsewhere, and nothing of the model's is markup. */
str page_make(const profile *p, const explanation *x, const char *sizes);

/** Appends a text that may hold anything, so that it is shown as it is. */
void page_text(str *s, const char *text);

#endif
