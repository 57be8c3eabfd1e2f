/* Lists the verbs of the command, in the order of the help, and finds one by name. */
#include "cli/verbs/verb_table.h"

#include "cli/core/text_format.h"

#include <string.h>

const verb *const verb_table[VERBS] = {&verb_run,     &verb_check,   &verb_bench,   &verb_tune,
                                       &verb_explain, &verb_inspect, &verb_devices, &verb_cache,
                                       &verb_version, &verb_help};

const verb *verb_find(command *c, const char *name) {
  const char *names[VERBS];
  for (size_t i = 0; i < VERBS; i++) {
    names[i] = verb_table[i]->name;
    if (!strcmp(name, names[i])) return verb_table[i];
  }
  command_usage_error(c, "unknown command \"%s\"%s", name,
                      text_suggestion(&c->arena, text_nearest_word(name, names, VERBS)));
}
