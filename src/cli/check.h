/* Recorded results, and how a model's compare with them. */
#ifndef TENON_CLI_CHECK_H
#define TENON_CLI_CHECK_H

#include "cli/command.h"

/** Elements a and e, the expected one, agree where |a - e| ≤ absolute + relative · |e|, or both are
    NaN; integers and bools where they are equal. */
typedef struct check_tolerance {
  double relative, absolute;
} check_tolerance;

/** A tolerance as an option gives it (NULL: `otherwise`). Raises as command_misuse. */
double check_number(command *c, const char *option, const char *text, double otherwise);

/** Runs every test set of a folder and prints a line for each; the folder may be one itself. The
    exit status: EXIT_FAILED after the first that differs. */
int check_sets(command *c, tn_model *m, const char *folder, check_tolerance t);

#endif
