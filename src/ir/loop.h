/* Loops in tensor graphs. What a FOLD is to elements, a LOOP is to whole tensors. */
/* clang-format off */
/*
   LOOP {states, emits}, without a value
     sources: range; inits …; steps …; emitted tensors …; places …
     The states start as their inits; for each trip, in the order of the range, all states step at
     once from what they were, and E_j[place_j] := emit_j, along the first axis of E_j. A step and
     an emitted tensor are expressions over the range (a RANGE of kind loop, the number of the trip)
     and over CARRYs; an init is free of the range. A step has its init's type and shape. No size
     depends on the range, and no host function. A place is the range, or its extent − 1 less the
     range, so that each is emitted to once.

   CARRY(range of the loop, sizes …) {component}
     A state of the loop before its step.

   RESULT(LOOP, sizes …) {component, 1, 0}
     The last state component; or, from the number of states on, an emitted array: as many of the
     emitted tensor as there are trips.

   RESULT(arrays …, sizes …) {component, inputs, number}, of a schedule alone
     The same of a loop that has become a plan of its own, which has the number and reads the
     arrays: first the inits, then whatever else its trips read. */
/* clang-format on */
#ifndef TENON_IR_LOOP_H
#define TENON_IR_LOOP_H

#include "base/map.h"
#include "ir/binder.h"

/** How deep loops are nested at most. */
enum { LOOP_DEPTH = 8 };

typedef struct loop_spec {
  const node *range;
  size_t n_states, n_emits;
  const node *const *inits;
  const node *const *steps;
  const node *const *emits;
  const node *const *places;
} loop_spec;

/** Lists live in `a`. */
const node *loop_make(ir *g, arena *a, const loop_spec *s);

/** A state of the loop of a range, of the type and shape of its init. */
const node *carry_make(ir *g, const node *range, int64_t component, const node *init);

/** What a loop gives: a state, or an emitted array. Its sizes: at most IR_MOST_RANK + 1. */
const node *loop_result(ir *g, const node *loop, size_t component);
size_t loop_result_sizes(const node *loop, size_t component, const node *sizes[]);
dtype loop_result_dtype(const node *loop, size_t component);

/* What a LOOP is made of. */
static inline const node *loop_range(const node *l) { return l->src[0]; }
static inline size_t loop_states(const node *l) { return (size_t)l->ints[0]; }
static inline size_t loop_emits(const node *l) { return (size_t)l->ints[1]; }
static inline size_t loop_results(const node *l) { return loop_states(l) + loop_emits(l); }
const node *loop_init(const node *l, size_t state);
const node *loop_step(const node *l, size_t state);
const node *loop_emit(const node *l, size_t emit);
const node *loop_place(const node *l, size_t emit);

/** The ranges that LOOPs among these nodes bind, as keys. */
map loop_bound(arena *a, const node *const nodes[], size_t n);

/** Of each node of a graph, sources first: whether it depends on the range of a loop that it is
    outside of. Nodes of a counted ir do not know. In `a`. */
const bool *loop_find_open(arena *a, const node *const nodes[], size_t n);

/** Raises TN_ERR_ARGUMENT for such a tensor, which is a loop's body's and used elsewhere. */
_Noreturn void loop_refuse_open(diag *d);

/** Whether a place is the range of its loop, or counts down from its last. */
bool loop_is_place(const node *range, const node *place);

#endif
