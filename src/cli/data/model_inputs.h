/* Makes the inputs of a model run: an array for each of them, read from a file or filled, as
   --input says. */
#ifndef TENON_CLI_DATA_MODEL_INPUTS_H
#define TENON_CLI_DATA_MODEL_INPUTS_H

#include "cli/data/host_array.h"

/** Syntax of --input, for tables of options. */
#define INPUT_OPTION_VALUE "NAME=VALUE"
#define INPUT_OPTION_HELP                                                            \
  "set input NAME to a .npy file (- is standard input), its elements ([2, 3] or\n"   \
  "[[1], [2]]; [5] is a scalar too; strings in double quotes: [\"a\", \"b\"]), a\n"  \
  "fill (random, ones, zeros), a shape (4x3x224x224; 4 is a list of four) or\n"      \
  "both (ones:4x3x224); a sequence s has inputs s[0], s[1], …; other inputs are\n" \
  "random; their varying sizes follow from the other inputs, or else are the\n"      \
  "smallest allowed, at least 1, or some that fit where not all do; a model\n"       \
  "that cannot be loaded for all sizes is loaded for those of the given inputs;\n"   \
  "repeatable"

typedef struct model_input {
  const char *name; /* of the input */
  const char *from; /* "random", "ones", "zeros", its elements or the path of its file */
  const char *file; /* the path of its file; NULL: filled */
  bool is_drawn;    /* its elements are random, and no VALUE says so */
  host_array value;
} model_input;

typedef VEC(model_input) model_inputs;

/** Raises as command_usage_error for an entry without the form NAME=…; needs no model. */
void model_inputs_check_option(command *c, const char *option, const char *form,
                               const option_list *list);

/** The value of each input or output of a model in such a list, in the model's order; NULL: none.
   An entry belongs to the port with the longest name that it begins with. Raises as
   command_usage_error for an entry without a port, and for two of one port. */
const char *const *model_inputs_match_ports(command *c, const char *option, const option_list *list,
                                            const tn_model *m, tn_port_kind kind);

/** Loads the model that is the command's operand. If loading fails for all sizes, loads it for
   those of the inputs in `entries`, with a note on standard error. */
tn_status model_inputs_load_model(command *c, const tn_model_desc *desc, const option_list *entries,
                                  tn_model **m);

/** The same; `desc` becomes the one that the model was loaded with. */
tn_status model_inputs_load_sized(command *c, tn_model_desc *desc, const option_list *entries,
                                  tn_model **m);

/** Creates an array for every input of a model, in its order, of a shape that fits the model;
   prints chosen sizes as a note on standard error. */
model_inputs model_inputs_make(command *c, tn_model *m, const option_list *entries, uint64_t seed);

/** Raises TN_ERR_SHAPE if the shapes of inputs do not fit the model, before it is compiled. */
void model_inputs_check_shapes(command *c, const model_inputs *in, const tn_model *m);

/** The varying sizes of inputs with their values: "batch = 8, x:1 = 3". In the arena. */
const char *model_inputs_sizes_text(command *c, const model_inputs *in, const tn_model *m);

/** Tells which integers were drawn where no VALUE says "random", except for inputs that decide on
    shapes or branches, of which model_inputs_make tells. */
void model_inputs_note_integers(command *c, const model_inputs *in, const tn_model *m);

/** Binds the inputs. */
void model_inputs_bind(command *c, const model_inputs *in, tn_binding *b);

#endif
