/* Declares the table of the command's verbs and the lookup by name. */
#ifndef TENON_CLI_VERBS_VERB_TABLE_H
#define TENON_CLI_VERBS_VERB_TABLE_H

#include "cli/core/command.h"

extern const verb verb_run, verb_check, verb_bench, verb_tune, verb_explain, verb_inspect,
    verb_devices, verb_cache, verb_version, verb_help;

enum { VERBS = 10 };

/** All verbs, in the order of the help. */
extern const verb *const verb_table[VERBS];

/** Finds a verb by its name. Raises as command_usage_error if there is none. */
const verb *verb_find(command *c, const char *name);

#endif
