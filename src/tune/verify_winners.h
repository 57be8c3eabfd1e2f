/* Measures whole runs with the new schedules of kernels beside those before, and keeps what gains.
 */
#ifndef TENON_TUNE_VERIFY_WINNERS_H
#define TENON_TUNE_VERIFY_WINNERS_H

#include "tune/tuner_state.h"

/** Keeps the kernels' new schedules that make whole runs faster, with the same results, in the
   store and in the plan; all others are recorded as dropped. Raises. */
void verify_winners(tuner *t);

#endif
