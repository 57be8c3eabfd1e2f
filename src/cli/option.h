/* Options of a verb: one table, from which command lines are read and help is written. */
#ifndef TENON_CLI_OPTION_H
#define TENON_CLI_OPTION_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/** What an option's member of the verb's options is: bool, const char *, int64_t, int64_t (which
   may be given as 64M), uint64_t (any, in decimal) or option_list. */
typedef enum option_kind {
  OPTION_FLAG,
  OPTION_TEXT,
  OPTION_NUMBER,
  OPTION_BYTES,
  OPTION_BITS,
  OPTION_LIST
} option_kind;

/** The values of an option that may come several times, in their order. */
typedef VEC(const char *) option_list;

typedef struct option {
  const char *name; /* "threads" for --threads */
  option_kind kind;
  size_t offset;     /* of its member */
  const char *value; /* what stands for the value in help: "N" */
  const char *about; /* one or more lines */
  int64_t min, max;  /* of a number, inclusive */
  int64_t otherwise; /* what a number is that is not given */
} option;

struct command;

/** Reads the arguments after the verb into c->options and c->operand, which `options` describe.
    Raises as command_misuse for what is unknown, repeated, without its value, or out of range.
    False if help is asked for. */
bool option_read(struct command *c, int argc, char *const argv[]);

#endif
