/* Rounds of a contest of two schedules, of one kernel or of whole networks. */
#ifndef TENON_TUNE_CONTEST_H
#define TENON_TUNE_CONTEST_H

/** One that wins so many of the rounds is faster: by chance, 1 of 18 equal ones would. */
enum { CONTEST_ROUNDS = 10, CONTEST_WINS = 8 };

#endif
