/* Which scalars differ between graphs of one form (ir/scalars.h): those become variables of one
   plan. Scalars that were equal in all graphs so far are one variable. */
#ifndef TENON_TENSOR_FORM_H
#define TENON_TENSOR_FORM_H

#include "ir/scalars.h"

/** What a plan holds for. */
typedef struct form {
  const int64_t *values; /* of each scalar, in the graph that it was made of */
  const uint32_t *which; /* the variable of each, counted from 1; 0: it is that value */
  size_t n;
  const size_t *first; /* of each variable, the first scalar that it is */
  size_t n_vars;
} form;

/** Whether a graph of these scalars is one that the plan of `f` computes. */
bool form_holds(const form *f, const scalar_list *s);

/** What holds for a graph, with all scalars as they are; and what holds for all graphs of `f` too.
    In `a`. */
form form_of(arena *a, const scalar_list *s);
form form_widened(arena *a, const form *f, const scalar_list *s);

form form_copy(arena *a, const form *f);

/** The type and the bounds of each variable, in `a`. */
const scalar *form_vars(arena *a, const form *f, const scalar_list *s);

#endif
