/* Makes the inputs of a model run: an array for each of them, read from a file or filled, as
   --input says. */
#ifndef TENON_CLI_DATA_MODEL_INPUTS_H
#define TENON_CLI_DATA_MODEL_INPUTS_H

#include "cli/data/host_array.h"

/** Syntax of --input, for tables of options. */
#define INPUT_OPTION_VALUE "NAME=VALUE"
#define INPUT_OPTION_HELP                                                         \
  "an input, by name: a .npy file (- is standard input), or what to fill it\n"    \
  "with, random, ones or zeros, or its shape, as 4x3x224x224, or both, as\n"      \
  "ones:4x3x224; an input that is not given is random, and a size that varies\n"  \
  "is then what the others tell, or the least that it can be, from 1 on; a\n"     \
  "model that cannot be loaded for all of its sizes is loaded for those of the\n" \
  "inputs that are given"

typedef struct model_input {
  const char *name; /* of the input */
  const char *from; /* "random", "ones", "zeros" or the path of its file */
  const char *file; /* this path; NULL: it is filled */
  host_array value;
} model_input;

typedef VEC(model_input) model_inputs;

/** Raises as command_usage_error for an entry that is not written as `form`, NAME=…, says, without
    looking at a model. */
void model_inputs_check_option(command *c, const char *option, const char *form,
                               const option_list *list);

/** The value that such a list gives each input or output of a model, in the model's order; NULL:
    none. Of several names that an entry begins with, the longest is meant. Raises as
    command_usage_error where an entry is for no port, or two are for one. */
const char *const *model_inputs_match_ports(command *c, const char *option, const option_list *list,
                                            const tn_model *m, tn_port_kind kind);

/** Loads the model that is the command's operand. One that cannot be loaded for all of its sizes is
    loaded for those of the inputs in `given`, with a note on standard error. */
tn_status model_inputs_load_model(command *c, const tn_model_desc *desc, const option_list *given,
                                  tn_model **m);

/** Makes an array for every input of a model, in its order, and notes chosen sizes on standard
    error. The arrays fit the model. */
model_inputs model_inputs_make(command *c, const tn_model *m, const option_list *given,
                               uint64_t seed);

/** Raises TN_ERR_SHAPE where the inputs of a model have other shapes than it takes, before it is
    compiled. */
void model_inputs_check_shapes(command *c, const model_inputs *in, const tn_model *m);

/** "batch = 8, x:1 = 3": the sizes of inputs that vary, with their values. In the arena. */
const char *model_inputs_sizes_text(command *c, const model_inputs *in, const tn_model *m);

/** Gives the inputs to a binding of their model. */
void model_inputs_bind(command *c, const model_inputs *in, tn_binding *b);

#endif
