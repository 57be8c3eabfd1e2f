/* The bounds of ITEMs: how a value that is no size is refused. */
#ifndef TENON_IR_INDEX_ITEM_BOUNDS_H
#define TENON_IR_INDEX_ITEM_BOUNDS_H

#include "base/diag.h"

#include <stdint.h>

/** The values of an ITEM that checks whether two sizes are equal, where they are not: no sizes, nor
    elements that a caller would bound. ITEM_UNFIT − (x · (ITEM_UNFIT_MOST + 1) + y) tells both
    sizes; one of ITEM_UNFIT_MOST stands for any above. */
#define ITEM_UNFIT      (INT64_MIN / 2)
#define ITEM_UNFIT_MOST ((INT64_C(1) << 30) - 1)

/** Refuses a value that is not from `least` to `most`. `title`: of the plan, NULL for none; `name`:
    of the tensor whose element it is, "" where that is not known. */
tn_status item_refuse(const char *title, const char *name, int64_t value, int64_t least,
                      int64_t most, diag *d);

#endif
