/* Scalar lifting: scalars that differ between graphs of one structure
   (ir/transform/liftable_scalars.h) become variables of one executable. Scalars that were equal to
   one another in all graphs so far share a variable. */
#ifndef TENON_TENSOR_EVAL_LIFTED_SCALARS_H
#define TENON_TENSOR_EVAL_LIFTED_SCALARS_H

#include "ir/transform/liftable_scalars.h"

/** The scalars of a graph, each a fixed value or a variable. */
typedef struct lifted_scalars {
  const int64_t *values;  /* of each scalar, in the graph that was compiled */
  const uint32_t *var_of; /* the variable of each scalar, counted from 1; 0: it is fixed */
  size_t n;
  const size_t *first_of_var; /* the first scalar of each variable */
  size_t n_vars;
} lifted_scalars;

/** True if a graph with the scalars `s` is an instance of `f`. */
bool lifted_scalars_match(const lifted_scalars *f, const liftable_scalar_list *s);

/** All scalars of a graph as fixed values; and the least general description that both the
   instances of `f` and the graph `s` match. In `a`. */
lifted_scalars lifted_scalars_fixed(arena *a, const liftable_scalar_list *s);
lifted_scalars lifted_scalars_widen(arena *a, const lifted_scalars *f,
                                    const liftable_scalar_list *s);

lifted_scalars lifted_scalars_copy(arena *a, const lifted_scalars *f);

/** The type and the bounds of each variable, in `a`. */
const liftable_scalar *lifted_scalars_vars(arena *a, const lifted_scalars *f,
                                           const liftable_scalar_list *s);

#endif
