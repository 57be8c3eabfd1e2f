/* Loading a model with what the command line says of its sizes. */
#ifndef TENON_CLI_LOAD_H
#define TENON_CLI_LOAD_H

#include "base/file.h"
#include "cli/command.h"

/** How --size is written, for tables of options. */
#define LOAD_SIZE_VALUE "NAME=SPEC"
#define LOAD_SIZE_ABOUT                                                            \
  "what is known of a size that varies, by name, or by input and axis (x:0): it\n" \
  "is NUMBER, in MIN..MAX, where an end may be left out, or as large as another\n" \
  "one, SPEC being its name; the last = ends NAME"

/** What such a list says. Raises as command_misuse for what is written otherwise. */
tn_model_desc load_sizes(command *c, const option_list *list);

/** A file's name on the command line, where "-" is standard input: what to open. */
const char *load_path(const char *name);

/** Loads the model that is the command's operand, or from `read`, which is all of it, where that is
    not NULL. Raises as command_misuse where the sizes are not the model's or contradict it; other
    failures are returned. */
tn_status load_model(command *c, const tn_model_desc *desc, const file_map *read, tn_model **m);

#endif
