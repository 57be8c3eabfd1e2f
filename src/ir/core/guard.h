/* Guards: the conditions under which a value is needed. PICK(c, a, b) needs a only where the index
   c is 1, and b only where it is 0, and an index WHERE of the same condition likewise. A guard is a
   set of such literals, all of which must hold; equal guards of a table are one pointer. */
#ifndef TENON_IR_CORE_GUARD_H
#define TENON_IR_CORE_GUARD_H

#include "base/map.h"
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

/** All guards made so far; in arena `a`. */
typedef struct guard_table {
  arena *a;
  VEC(const guard *) at;
  map condition_of; /* condition of a WHERE → the index that it tests */
} guard_table;

/** A table for the PICKs among these nodes. */
guard_table guard_table_of(arena *a, const node *const nodes[], size_t n);

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
