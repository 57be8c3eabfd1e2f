/* Loops in tensor graphs: LOOP scans over whole tensors as FOLD (reduction and scan) does over
   elements. Builds and reads them, and checks that nothing inside a loop is used outside. */
/* clang-format off */
/*
   LOOP {states, emits, until}, without a value
     sources: range; inits …; steps …; emitted tensors …; places …
     The states start as their inits; for each trip, in the order of the range, all states step at
     once from their old values, and E_j[place_j] := emit_j, along the first axis of E_j. A step and
     an emitted tensor are expressions over the range (a RANGE of kind loop, the number of the trip)
     and over CARRYs; an init is free of the range. A step has the type and shape of its init. No
     size and no host function depends on the range. A place is the range, or its extent − 1 − the
     range, so that each place is emitted to once.
     `until`, if it is there, is the number of a bool state of rank 0: before a trip in which it is
     true the loop ends. The entries of the trips that are left are not emitted, and undefined.

   CARRY(range of the loop, sizes …) {component}
     A state of the loop before its step.

   RESULT(LOOP, sizes …) {component, 1, 0}
     The last value of state `component`; or, from the number of states on, an emitted array: one
     emitted tensor for each trip.

   RESULT(arrays …, sizes …) {component, inputs, number}, in schedules only
     The same for a loop that was extracted into plan `number`, which reads the arrays: first the
     inits, then all else that its trips read. */
/* clang-format on */
#ifndef TENON_IR_CORE_TENSOR_LOOP_H
#define TENON_IR_CORE_TENSOR_LOOP_H

#include "base/map.h"
#include "ir/core/binder.h"

/** The deepest nesting of loops. */
enum { LOOP_MAX_DEPTH = 8 };

typedef struct loop_spec {
  const node *range;
  size_t n_states, n_emits;
  const node *const *inits;
  const node *const *steps;
  const node *const *emits;
  const node *const *places;
  size_t until; /* number of the state that ends the loop, + 1; 0: none */
} loop_spec;

/** Works in `a`. */
const node *loop_make(ir *g, arena *a, const loop_spec *s);

/** The CARRY of a state, of the type and shape of its init, for the loop of `range`. */
const node *loop_carry_make(ir *g, const node *range, int64_t component, const node *init);

/** The RESULT of a state or an emitted array; its sizes, at most IR_MAX_RANK + 1; its type. */
const node *loop_result(ir *g, const node *loop, size_t component);
size_t loop_result_sizes(const node *loop, size_t component, const node *sizes[]);
dtype loop_result_dtype(const node *loop, size_t component);

/* Parts of a LOOP. */
static inline const node *loop_range(const node *l) { return l->src[0]; }
static inline size_t loop_n_states(const node *l) { return (size_t)l->ints[0]; }
static inline size_t loop_n_emits(const node *l) { return (size_t)l->ints[1]; }
static inline size_t loop_n_results(const node *l) { return loop_n_states(l) + loop_n_emits(l); }
/** The state that ends the loop where it is true; SIZE_MAX: none. */
static inline size_t loop_until(const node *l) {
  return l->n_int > 2 ? (size_t)l->ints[2] : SIZE_MAX;
}
const node *loop_init(const node *l, size_t state);
const node *loop_step(const node *l, size_t state);
const node *loop_emit(const node *l, size_t emit);
const node *loop_emit_index(const node *l, size_t emit);

/** The ranges bound by LOOPs among these nodes, as keys of a map in `a`. */
map loop_bound_ranges(arena *a, const node *const nodes[], size_t n);

/** For each of n nodes, sources first: true if it depends on the range of a loop that it is outside
    of. For counted irs, whose nodes have no free ranges. The result lives in `a`. */
const bool *loop_find_unbound(arena *a, const node *const nodes[], size_t n);

/** Raises TN_ERR_ARGUMENT for a tensor of a loop's body that is used outside of the loop. */
_Noreturn void loop_refuse_unbound(diag *d);

/** True if a place is the range of its loop or counts down from its last value. */
bool loop_is_emit_index(const node *range, const node *place);

#endif
