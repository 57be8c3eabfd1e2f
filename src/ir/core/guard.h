/* Guards: the conditions under which a value is needed. PICK(c, a, b) needs a only where the index
   c is 1, and b only where it is 0; a size WHERE(0 < c, a, b) likewise, where c is an ITEM or a
   variable, whether or not the graph has the PICK whose size it is. A guard is a set of such
   literals, all of which must hold; equal guards of a table are one pointer. */
#ifndef TENON_IR_CORE_GUARD_H
#define TENON_IR_CORE_GUARD_H

#include "ir/core/topo_sort.h"

/** An index from 0 to 1, and the value that it must have. */
typedef struct guard_literal {
  const node *condition;
  bool is_one;
} guard_literal;

typedef struct guard {
  size_t n; /* literals, in an order that is the table's; 0: needed always */
  const guard_literal *at;
} guard;

/** All guards made so far; in arena `a`, all else zero at first. */
typedef struct guard_table {
  arena *a;
  VEC(const guard *) at;
} guard_table;

/** The index that decides which of its sources 1 and 2 a node needs; NULL: it needs both. */
const node *guard_condition(const node *n);

/** The guard without literals. */
const guard *guard_always(guard_table *t);

/** A guard and one literal more. */
const guard *guard_with(guard_table *t, const guard *of, const node *condition, bool is_one);

/** The literals of both guards: for a value that is needed under either of them. NULL is the guard
    of what nothing needs. */
const guard *guard_common(guard_table *t, const guard *a, const guard *b);

/** All literals of two guards. */
const guard *guard_both(guard_table *t, const guard *a, const guard *b);

/** The guard under which a node that is needed under `of` needs its source i. */
const guard *guard_of_source(guard_table *t, const guard *of, const node *n, size_t i);

#endif
