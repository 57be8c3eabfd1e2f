/* Proves from the coordinates of a STAGE (array builder) that it writes each element of an array at
   most once, so that its loops may run in any order and in parallel. */
#ifndef TENON_IR_INDEX_WRITE_ONCE_H
#define TENON_IR_INDEX_WRITE_ONCE_H

#include "ir/core/ir.h"

/** True if the coordinates of a value use each range of its stage once, alone or as block and
    offset, and span the array: each element is written exactly once. */
bool stage_is_bijection(const node *s, size_t value);

/** True if the coordinates of a value take each element of the array, as a bijection does, or where
    coordinates are the digits of a range or a sum of ranges: r div 2, r mod 2. */
bool stage_spans_array(const node *s, size_t value);

/** True if a node is computed from elements of memory, and not from ranges and sizes alone. */
bool node_reads_memory(ir *g, const node *x);

/* Determined ranges: ranges whose value follows from the coordinates of an element. Coordinates may
   be mixed-radix sums of ranges, and div and mod by constants of such sums. */

/** True if n coordinates are proved to determine a range of a STAGE. */
bool stage_range_is_determined(const node *s, const node *range, size_t n,
                               const node *const coords[]);

/** True if a value of a STAGE is proved to write no element twice: its coordinates determine all
    ranges around its write. */
bool stage_writes_once(const node *s, size_t value);

/** True if values of two STAGEs provably write no element of one array both: one of its coordinates
    is always smaller in one of them. */
bool stages_write_apart(ir *g, const node *a, size_t value, const node *b, size_t other);

/** A range that a value of a STAGE depends on and its coordinates do not determine, so that an
    element may be written twice with different values; NULL if there is none. */
const node *stage_overwriting_range(ir *g, const node *s, size_t value);

/** True for arrays of a FOLD that are no accumulators: emitted ones, and states of which a step
   writes some elements. A copy of them to an output is not needed: they may lie there. */
bool fold_array_is_placed(const node *fold, size_t component);

/** The FOLD of which a STAGE's value copies such an array; NULL: none. */
const node *stage_placed_fold(const node *stage, size_t value);

#endif
