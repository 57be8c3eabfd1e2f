/* Lists the digits of a kernel for teams of workers: a launch numbers its groups, and a group its
   workers; ranges of the kinds GLOBAL, LOCAL and WARP are digits of these numbers. Ranges of equal
   (kind, axis) are one digit, as long as the longest of them. WARP digits are the fastest of a
   worker's number, then LOCAL ones; of one kind, axis 0 is the fastest. */
#ifndef TENON_LAWS_TEAM_DIGITS_H
#define TENON_LAWS_TEAM_DIGITS_H

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"

typedef struct team_digit {
  range_kind kind;
  int64_t axis;
  const node *extent; /* of WARP and LOCAL a constant */
  const node *stride; /* product of the extents of the faster digits of the same number */
} team_digit;

typedef struct team_digits {
  VEC(team_digit) all; /* WARP, LOCAL, GLOBAL; of one kind by axis */
  const node *groups;  /* product of the extents of GLOBAL digits */
  int64_t workers;     /* the same of LOCAL and WARP digits */
  int64_t warp;        /* the same of WARP digits; 1: there are none */
} team_digits;

/** The digits of a kernel, from its nodes. In the ir's scratch memory. */
team_digits team_digits_of(ir *g, const node_list *nodes);

/** The digit that a range of the kernel is. */
const team_digit *team_digits_find(const team_digits *t, const node *range);

/** True if all indices of a range are those of its digit: no worker is left out. */
bool team_digits_has_all(const team_digits *t, const node *range);

#endif
