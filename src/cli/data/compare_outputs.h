/* Compares the outputs of a model with recorded ones (tenon run --check). */
#ifndef TENON_CLI_DATA_COMPARE_OUTPUTS_H
#define TENON_CLI_DATA_COMPARE_OUTPUTS_H

#include "cli/core/command.h"

/** Element a matches the expected e if |a - e| ≤ absolute + relative · |e|, or if both are NaN;
    integers and bools match if equal. */
typedef struct comparison_tolerance {
  double relative, absolute;
} comparison_tolerance;

/** Parses the value of a tolerance option; NULL: the default. Raises as command_usage_error. */
double tolerance_parse(command *c, const char *option, const char *text, double default_value);

/** Runs every test set of a folder, or the folder itself if it is one, and prints a line for each.
    Returns the exit status: EXIT_FAILED after the first set that differs. */
int compare_test_sets(command *c, tn_model *m, const char *folder, comparison_tolerance t);

#endif
