/* Parses a command line: the arguments after the verb, by the verb's table of options. */
#ifndef TENON_CLI_CORE_PARSE_ARGUMENTS_H
#define TENON_CLI_CORE_PARSE_ARGUMENTS_H

#include "cli/core/command.h"

/** Sets c->options, c->operand and c->log_level. Options are --name VALUE, --name=VALUE and the
   letters of the verb; after "--" all arguments are operands. Returns false if help is requested.
   Raises as command_usage_error for an option that is unknown, repeated, without a value or out of
   range. */
bool arguments_parse(command *c, int argc, char *const argv[]);

#endif
