/* Finds the first node of a model whose compiled value differs from the interpreted one, and why.
 */
#ifndef TENON_CLI_DATA_FIND_DIFFERENCE_H
#define TENON_CLI_DATA_FIND_DIFFERENCE_H

#include "cli/data/compare_values.h"
#include "cli/data/model_values.h"

/** A model that is computed in both ways. */
typedef struct checked_model {
  command *c;
  tn_model_desc desc; /* for loading it to be compiled */
  const char *device; /* and threads: of contexts, as for command_open_context */
  int64_t threads;
  double tolerance; /* of floats; negative: that of their type */
  value_map inputs;
  value_map interpreted; /* values of nodes */
  model_nodes nodes;
} checked_model;

/** The comparison of a computed array with an interpreted one. */
typedef struct checked_value {
  const char *name;
  const host_array *computed, *interpreted;
  bool has_same_type;
  value_difference difference; /* of arrays of the same type and shape */
} checked_value;

checked_value check_value(const checked_model *m, const char *name, const host_array *computed,
                          const host_array *interpreted);

/** True if a value differs beyond the tolerance. */
bool checked_value_differs(const checked_value *v);

/** The cause of a difference. */
typedef enum difference_cause {
  CAUSE_UNKNOWN, /* the node could not be computed alone */
  CAUSE_WRONG,   /* from equal inputs the node computes something else, in every mode of floats */
  CAUSE_SUMS,    /* from equal inputs it differs by freedoms of float arithmetic (TN_MATH_EXACT) */
  CAUSE_INPUTS,  /* from equal inputs it is equal: small differences of its inputs have grown */
  CAUSE_FUSION /* it is equal where the values that it reads are outputs, so not computed with it */
} difference_cause;

typedef struct found_difference {
  bool is_found;
  size_t value; /* of the model's nodes */
  checked_value check;
  difference_cause cause;
  size_t runs; /* of the compiled model */
} found_difference;

typedef VEC(checked_value) checked_values;

/** Compiles the model with the values of all nodes as outputs, and compares them in order; `all`,
    if not NULL, gets the comparisons. */
found_difference find_difference(const checked_model *m, checked_values *all);

/** Searches among the sources of value `v`, which differs as `check` tells, with a few values as
    outputs of a run: the number of runs is about the logarithm of the number of nodes to base 8. */
found_difference bisect_difference(const checked_model *m, size_t v, const checked_value *check);

/** Computes the node of a difference alone from the interpreted values of its inputs. */
difference_cause find_cause(const checked_model *m, const found_difference *found);

#endif
