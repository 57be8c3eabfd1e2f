/* Compares the outputs of a model with recorded ones (tenon run --check). */
#ifndef TENON_CLI_DATA_COMPARE_OUTPUTS_H
#define TENON_CLI_DATA_COMPARE_OUTPUTS_H

#include "cli/core/command.h"

/** Elements a and e, the expected one, agree where |a - e| ≤ absolute + relative · |e|, or both are
    NaN; integers and bools where they are equal. */
typedef struct comparison_tolerance {
  double relative, absolute;
} comparison_tolerance;

/** Parses the value of a tolerance option; NULL gives `default_value`. Raises as
 * command_usage_error.
 */
double tolerance_parse(command *c, const char *option, const char *text, double default_value);

/** Runs every test set of a folder and prints a line for each; the folder may be one itself. The
    exit status: EXIT_FAILED after the first that differs. */
int compare_test_sets(command *c, tn_model *m, const char *folder, comparison_tolerance t);

#endif
