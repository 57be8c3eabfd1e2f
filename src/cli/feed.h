/* What a model is fed: an array for each input, from what the command line says of it. */
#ifndef TENON_CLI_FEED_H
#define TENON_CLI_FEED_H

#include "cli/array.h"

/** How --input is written, for tables of options. */
#define FEED_VALUE "NAME=VALUE"
#define FEED_ABOUT                                                                \
  "an input, by name: a .npy file (- is standard input), or what to fill it\n"    \
  "with, random, ones or zeros, or its shape, as 4x3x224x224, or both, as\n"      \
  "ones:4x3x224; an input that is not given is random, and a size that varies\n"  \
  "is then what the others tell, or the least that it can be, from 1 on; a\n"     \
  "model that cannot be loaded for all of its sizes is loaded for those of the\n" \
  "inputs that are given"

typedef struct feed {
  const char *name; /* of the input */
  const char *from; /* "random", "ones", "zeros" or a file's name */
  const char *file; /* this name; NULL: there is none */
  array value;
} feed;

typedef VEC(feed) feeds;

/** Raises as command_misuse for an entry that is not written as `form`, NAME=…, says, without
    looking at a model. */
void feed_check_list(command *c, const char *option, const char *form, const option_list *list);

/** What such a list gives each input or output of a model, in the model's order; NULL: nothing. Of
    several names that an entry begins with, the longest is meant. Raises as command_misuse where an
    entry is for none, or two are for one. */
const char *const *feed_match(command *c, const char *option, const option_list *list,
                              const tn_model *m, tn_port_kind kind);

/** Loads the model that is the command's operand; where that cannot be for all of its sizes, for
    those that the inputs have which are given, and says so on standard error. */
tn_status feed_load(command *c, const tn_model_desc *desc, const option_list *given, tn_model **m);

/** An array for every input of a model, in its order; says on standard error which sizes it chose.
    They fit. */
feeds feed_make(command *c, const tn_model *m, const option_list *given, uint64_t seed);

/** Raises where the inputs of a model have other shapes than it takes, before it is compiled. */
void feed_check(command *c, const feeds *f, const tn_model *m);

/** "batch = 8, x:1 = 3": the sizes of the inputs that vary, and what they are. In the arena. */
const char *feed_sizes(command *c, const feeds *f, const tn_model *m);

/** Hands them to a binding. */
void feed_bind(command *c, const feeds *f, tn_binding *b);

#endif
