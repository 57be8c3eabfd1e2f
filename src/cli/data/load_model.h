/* Loads the command's model with the bounds that --size gives for its dynamic sizes. */
#ifndef TENON_CLI_DATA_LOAD_MODEL_H
#define TENON_CLI_DATA_LOAD_MODEL_H

#include "base/file.h"
#include "cli/core/command.h"

/** Syntax of --size, for tables of options. */
#define SIZE_OPTION_VALUE "NAME=SPEC"
#define SIZE_OPTION_HELP                                                           \
  "what is known of a size that varies, by name, or by input and axis (x:0): it\n" \
  "is NUMBER, in MIN..MAX, where an end may be left out, or as large as another\n" \
  "one, SPEC being its name; the last = ends NAME"

/** Parses a list of --size values. Raises as command_usage_error for malformed ones. */
tn_model_desc load_model_parse_sizes(command *c, const option_list *list);

/** The path to open for a name on the command line, where "-" is standard input. */
const char *load_model_path(const char *name);

/** Loads the model that is the command's operand; `read`, if not NULL, is the whole file. Raises as
    command_usage_error where --size names none of the model's sizes or contradicts it; other
   failures are returned. */
tn_status load_model(command *c, const tn_model_desc *desc, const file_map *read, tn_model **m);

#endif
