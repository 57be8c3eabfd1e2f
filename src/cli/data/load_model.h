/* Loads the command's model with the bounds that --size gives for its dynamic sizes. */
#ifndef TENON_CLI_DATA_LOAD_MODEL_H
#define TENON_CLI_DATA_LOAD_MODEL_H

#include "base/file.h"
#include "cli/core/command.h"

/** Syntax of --size, for tables of options. */
#define SIZE_OPTION_VALUE "NAME=SPEC"
#define SIZE_OPTION_HELP                                                          \
  "constrain a varying size, named as in the model or by input and axis (x:0);\n" \
  "SPEC is a number, a range MIN..MAX (either end may be omitted), @LIKELY, a\n"  \
  "value that kernels for all sizes are made fast for, both (1..64@8), or the\n"  \
  "name of a size that is equal; the last = ends NAME; repeatable"

/** Row of --variants for tables of options. */
#define VARIANTS_OPTION(type)                                                            \
  {                                                                                      \
    "variants", OPTION_STRING, offsetof(type, variants), "POLICY",                       \
        "what is compiled where sizes vary: auto (default), steady, exact, or one for\n" \
        "all sizes",                                                                     \
        0, 0, 0                                                                          \
  }

/** Sets the variants to those that --variants names; NULL: the default. Raises as
    command_usage_error for any other name. */
void load_model_parse_variants(command *c, const char *name, tn_model_desc *desc);

/** Parses the values of --size. Raises as command_usage_error for malformed ones. */
tn_model_desc load_model_parse_sizes(command *c, const option_list *list);

/** The path to open for a name on the command line, where "-" is standard input. */
const char *load_model_path(const char *name);

/** Loads the model that is the command's operand; `read`, unless NULL, is the whole file. Raises as
    command_usage_error if --size names no size of the model or contradicts it; returns other
    failures. */
tn_status load_model(command *c, const tn_model_desc *desc, const file_map *read, tn_model **m);

/** Hints at --size if the model was not loaded and that may help. */
void load_model_advise(command *c, const tn_model_desc *desc);

/** Tells, as a sentence without its stop, which sizes of a model are known exactly at each run, and
    why; NULL: none. */
const char *load_model_exact_text(command *c, const tn_model *m);

#endif
