/* Keeps names of VARs (scalar variables, such as dynamic sizes) that users choose apart from names
   that passes make, which begin with "core_": in graphs, a user's name that begins with "core_" or
   with a quote gets a quote before it. Further variables of one name are "core_size1_NAME" and so
   on. */
#ifndef TENON_IR_CORE_VAR_NAMES_H
#define TENON_IR_CORE_VAR_NAMES_H

#include "base/arena.h"

#include <stdbool.h>

/** Prefix of VARs that hold the number of a loop's trip. */
#define VAR_TRIP_PREFIX "core_trip"

/** True if a VAR of this name holds the number of a loop's trip. */
bool var_is_trip(const char *text);

/** Prefix of VARs that stand for an ITEM: a size that a run computes. */
#define VAR_LATE_PREFIX "core_late"

/** True if a VAR of this name stands for an ITEM. */
bool var_is_late(const char *text);

/** The name in graphs of a user's VAR: `name` itself, or a copy with a quote in `a`. */
const char *var_name_in_graph(arena *a, const char *name);

/** The name in graphs of the `number`-th variable of a user's name, from 0: sizes of one name that
    may differ. */
const char *var_name_numbered(arena *a, const char *name, size_t number);

/** The user's name of a VAR: its name in graphs without quote and number. */
const char *var_user_name(const char *text);

#endif
