/* Declares the command-line options of a verb as rows of a table, from which command lines are
   parsed and help is written. */
#ifndef TENON_CLI_CORE_OPTION_H
#define TENON_CLI_CORE_OPTION_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/** The type of an option, and of its member in the struct of its verb's options. */
typedef enum option_kind {
  OPTION_FLAG,   /* bool */
  OPTION_STRING, /* const char * */
  OPTION_NUMBER, /* int64_t */
  OPTION_BYTES,  /* int64_t, optionally with a suffix: 64M */
  OPTION_UINT64, /* uint64_t, in decimal */
  OPTION_LIST    /* option_list */
} option_kind;

/** The values of a repeatable option, in order. */
typedef VEC(const char *) option_list;

typedef struct option {
  const char *name; /* "threads" for --threads */
  option_kind kind;
  size_t offset;         /* of its member */
  const char *value;     /* placeholder of the value in help: "N" */
  const char *about;     /* lines of its help */
  int64_t min, max;      /* of a number, inclusive */
  int64_t default_value; /* of a number */
} option;

#endif
