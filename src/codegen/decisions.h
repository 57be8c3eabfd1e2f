/* Decisions of the automatic scheduler among numbered alternatives, and their form as text, in
   which tuned schedules are stored and become part of a kernel's key. A list names the alternatives
   that there were, so that one made by another version of the steps is noticed. */
#ifndef TENON_CODEGEN_DECISIONS_H
#define TENON_CODEGEN_DECISIONS_H

#include "base/str.h"
#include "base/vec.h"

#include <stdbool.h>

/** Kinds of decisions: name and word in texts. */
#define DECISION_KINDS(KIND)                                                                      \
  KIND(OUTERMOST, "outermost") /* outermost of the loops that arrays or copies are built in */    \
  KIND(EXPANSION, "expansion") /* block of indices that arrays are built for at once */           \
  KIND(LANES, "lanes")         /* range of a reducing nest's vectors */                           \
  KIND(TILE, "tile")           /* register tile of a nest */                                      \
  KIND(ORDER, "order")         /* whether loops of a tile's other operand are innermost */        \
  KIND(PACKING, "packing")     /* whether an operand read from afar in long runs is packed */     \
  KIND(PADDED_BLOCK, "padded") /* whether a padded tile is for one index of a loop, or a block */ \
  KIND(CACHE_BLOCK, "block")   /* number of loops of a tile's nest inside the blocks of its sums */

typedef enum decision_kind {
#define KIND(name, text) DECISION_##name,
  DECISION_KINDS(KIND)
#undef KIND
} decision_kind;

/** A decision: alternative `taken` of `n`; 0 is the one that the step's own estimate prefers. */
typedef struct decision {
  decision_kind kind;
  size_t n, taken;
} decision;

typedef VEC(decision) decision_list;

/** A copy in an arena. */
decision_list decisions_copy(arena *a, const decision_list *list);

bool decisions_equal(const decision_list *a, const decision_list *b);

/** The list as text without spaces, in the arena: "lanes:0/2,tile:3/12"; "-" for an empty one. */
const char *decisions_text(arena *a, const decision_list *list);

/** Reads such a text; false for any other, and for an alternative that is not one of `n`. */
bool decisions_parse(arena *a, const char *text, decision_list *list);

#endif
