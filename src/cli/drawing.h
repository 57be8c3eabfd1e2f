/* A drawing of a plan's steps and of what they read of each other. */
#ifndef TENON_CLI_DRAWING_H
#define TENON_CLI_DRAWING_H

#include "base/str.h"
#include "cli/profile.h"
#include "runtime/explanation.h"

/** Appends it as SVG: a step below all that it reads, the darker, the longer it takes, and linked
    to the part of the page that tells of it (#step-1). Both have the same steps. */
void drawing_add(str *s, const profile *p, const explanation *x);

#endif
