/* What RESCALE is about to change (rescale.c says what the law is): found in rescale.c, done in
   rescaled.c. */
#ifndef TENON_SCHEDULE_RESCALE_H
#define TENON_SCHEDULE_RESCALE_H

#include "schedule/term.h"

enum { RESCALE_MOST_SUMS = 4, RESCALE_MOST_AXES = 32 };

/** A T_j. */
typedef struct rescaled_sum {
  value *v;
  term_power power;
  term_product rest; /* v_j */
} rescaled_sum;

/** An m with its T_j, and the blocks of r. */
typedef struct rescaling {
  ir *g;
  arena *a;
  values *values;
  value *m;
  dtype type;
  size_t n;
  rescaled_sum sum[RESCALE_MOST_SUMS];
  bool is_contracted; /* s is; else it is read, or computed of little, again */
  size_t cut;         /* the reduced range that is cut */
  int64_t block, blocks;
} rescaling;

/** The axes of a sum that are m's, for each of m's; SIZE_MAX for one of one index. False: they are
    not distinct coordinates of the sum. */
bool rescaled_axes(const rescaled_sum *t, const value *m, size_t axis[]);

/** Elements of the arrays of a block that there are for each row: of all states, twice, and of what
    a block adds to them. */
double rescaled_elements(const rescaling *r);

/** Makes the values of the scan, of which m and the sums are read from then on. */
void rescaled_make(const rescaling *r);

#endif
