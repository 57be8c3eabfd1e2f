/* Names of VARs. Those that passes make begin with "core_"; users name sizes as they like. So that
   none of these is taken for one of those, a user's name that begins so has a quote before it in
   graphs, as has one that begins with a quote. */
#ifndef TENON_IR_VAR_H
#define TENON_IR_VAR_H

#include "base/arena.h"

#include <stdbool.h>

/** How names of the numbers of loops' trips begin. */
#define VAR_TRIP "core_trip"

/** Whether a VAR of this text is the number of a loop's trip. */
bool var_is_trip(const char *text);

/** The text of the VAR that a user calls `name`: that itself or made in `a`. */
const char *var_text(arena *a, const char *name);

/** What the user calls a VAR of this text. */
const char *var_name(const char *text);

#endif
