/* Rounds of a contest of two schedules, of one kernel or of whole networks. */
#ifndef TENON_TUNE_CONTEST_H
#define TENON_TUNE_CONTEST_H

/** Rounds of a contest, and the wins from which on a schedule counts as faster than the other. Of
    equal schedules 1 in 18 wins as often by chance. */
enum { CONTEST_ROUNDS = 10, CONTEST_WINS = 8 };

#endif
