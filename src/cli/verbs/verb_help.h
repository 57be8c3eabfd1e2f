/* Prints the help of the command and its verbs, from the tables of verbs and options. */
#ifndef TENON_CLI_VERBS_VERB_HELP_H
#define TENON_CLI_VERBS_VERB_HELP_H

#include "cli/core/command.h"

/** Prints the help of a verb, or of the whole command if it is NULL. */
void help_print(command *c, const verb *v);

#endif
