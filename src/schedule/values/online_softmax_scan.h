/* Internal header of online softmax: the data that its pattern matcher (online_softmax.c, which has
   the formulas) hands to the construction of the scan (online_softmax_scan.c). */
#ifndef TENON_SCHEDULE_VALUES_ONLINE_SOFTMAX_SCAN_H
#define TENON_SCHEDULE_VALUES_ONLINE_SOFTMAX_SCAN_H

#include "schedule/values/reduction_term.h"

enum { ONLINE_SOFTMAX_MOST_SUMS = 4, ONLINE_SOFTMAX_MOST_AXES = 32 };

/** A sum T_j = Σ e^(s − m)·v_j. */
typedef struct online_softmax_sum {
  value *v;
  term_power power;
  term_product term; /* e^(s − m)·v_j, grouped as in the source */
  size_t power_at;   /* the factor of it that is the power */
} online_softmax_sum;

/** A maximum m with its sums T_j, and the blocks of the range r that is split. */
typedef struct online_softmax {
  ir *g;
  arena *a;
  values *values;
  value *m;
  dtype type;
  size_t n;
  online_softmax_sum sum[ONLINE_SOFTMAX_MOST_SUMS];
  bool is_contracted;    /* s is computed from a contraction; else s is cheap to read twice */
  size_t cut;            /* which reduced range of m is split */
  int64_t block, blocks; /* its indices in a block; the number of blocks */
} online_softmax;

/** For each axis of m, the axis of a sum that has the same coordinate; SIZE_MAX where the size
   is 1. False: they are not distinct coordinates of the sum. */
bool online_softmax_axes(const online_softmax_sum *t, const value *m, size_t axis[]);

/** Elements of the arrays of a block for each row: all states twice, and the sums of the block that
    are added to them. */
double online_softmax_row_elements(const online_softmax *r);

/** Adds the values of the scan, and redefines m and the sums as its results. */
void online_softmax_build(const online_softmax *r);

#endif
