/* The option --math of verbs that open a context: the freedoms of float arithmetic. */
#ifndef TENON_CLI_CORE_MATH_OPTION_H
#define TENON_CLI_CORE_MATH_OPTION_H

#include "cli/core/command.h"

/** Row of --math for tables of options. */
#define MATH_OPTION(type)                                                                \
  {                                                                                      \
    "math", OPTION_STRING, offsetof(type, math), "MODE",                                 \
        "freedoms of float arithmetic: exact, contract, sum, flush, default or fast;\n"  \
        "fast reassociates, assumes no NaN, and may use Winograd's algorithm for 3×3\n" \
        "convolutions of constant weights; default: TENON_MATH, else default",           \
        0, 0, 0                                                                          \
  }

/** Sets the mode of the command's context to that of a name; NULL: that of the environment. Raises
    as command_usage_error for any other name. */
void math_option_parse(command *c, const char *name);

#endif
