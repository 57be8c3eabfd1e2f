/* Estimates dynamic sizes, those known only when a plan runs, for cost models. */
#ifndef TENON_SCHEDULE_CORE_SIZE_ESTIMATE_H
#define TENON_SCHEDULE_CORE_SIZE_ESTIMATE_H

#include "ir/core/node.h"

/** A typical value of a size expression: the size itself if it is constant, else 64 brought between
    its bounds. */
double size_estimate(const node *size);

#endif
