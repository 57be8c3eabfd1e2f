/* Divides scans along long axes into blocks that are scanned apart. */
#ifndef TENON_SCHEDULE_VALUES_SPLIT_SCANS_H
#define TENON_SCHEDULE_VALUES_SPLIT_SCANS_H

#include "schedule/values/normalise.h"

/** Scans the blocks of a long axis of few rows apart where `math` (a math_mode) allows another
   order. The roots and the labelled nodes change. */
void split_scans(ir *g, int math, normalised *n, size_t n_labels);

#endif
