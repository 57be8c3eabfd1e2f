/* The bounds of ITEMs: how a value that is no size is refused. */
#ifndef TENON_IR_INDEX_ITEM_BOUNDS_H
#define TENON_IR_INDEX_ITEM_BOUNDS_H

#include "base/diag.h"

#include <stdint.h>

/** The value of an ITEM that checks whether sizes fit together, where they do not: no size, nor any
    element that a caller may bound. */
#define ITEM_UNFIT (INT64_MIN / 2)

/** Refuses a value that is not from `least` to `most`. `title`: of the plan, NULL for none; `name`:
    of the tensor whose element it is, "" where that is not known. */
tn_status item_refuse(const char *title, const char *name, int64_t value, int64_t least,
                      int64_t most, diag *d);

#endif
