/* Chooses how many tensors the inputs of a model have that are sequences. */
#ifndef TENON_CLI_DATA_INPUT_LISTS_H
#define TENON_CLI_DATA_INPUT_LISTS_H

#include "cli/core/command.h"

/** Adds `lists` to the descriptor of the command's model: a sequence "s" has as many tensors as the
    entries of --input ("s[0]=2x3") name, at least one. False if no input is a sequence, or the file
    cannot be read again. */
bool input_lists_choose(command *c, const option_list *entries, tn_model_desc *desc);

#endif
