/* Records of programs: what a plan on disk keeps of each, to find it again. */
#ifndef TENON_COMPILE_PROGRAM_RECORD_H
#define TENON_COMPILE_PROGRAM_RECORD_H

#include "compile/cache_keys.h"
#include "device/program/program.h"

#include <stdbool.h>

/** The part of a program that a plan on disk keeps: the key that finds its kernel again, in another
    process too, and the buffers and values that the plan's steps pass it. */
typedef struct program_record {
  const char *name;
  kernel_graph_key key;
  size_t n_globals, n_values;
  const int64_t *globals;
  const char *const *value_names;
} program_record;

/** The record of a program. Valid while the program is referred to. */
program_record program_record_of(const tn_program *p);

/** True if two programs take the same buffers and values. */
bool program_record_launches_alike(const program_record *a, const program_record *b);

#endif
