/* Builds the binders of the kernel model, the nodes that bind loop indices: RANGE (a loop index),
   STAGE (an array builder), FOLD (reduction and scan), and the STATEs and INDEXes that read them.
   binder_layout.h has their semantics and the layout of their sources and integers. */
#ifndef TENON_IR_CORE_BINDER_H
#define TENON_IR_CORE_BINDER_H

#include "ir/core/binder_layout.h"
#include "ir/core/build.h"

/** A range with a new id. */
const node *range_make(ir *g, const node *extent, range_kind kind);

/** The loop of an axis, by the axis's number, for expressions that are read and dropped: it takes
   no number from the ranges of kernels. */
const node *range_of_axis(ir *g, const node *extent, size_t axis);

/** A range of the same id with another kind or extent. */
const node *range_with(ir *g, const node *range, const node *extent, range_kind kind);
/** A range of the same id and extent as a digit: of another kind, on an axis. */
const node *range_on_axis(ir *g, const node *range, range_kind kind, int64_t axis);
/** A range of the same kind with another extent and a new id. */
const node *range_clone(ir *g, const node *range, const node *extent);

typedef struct stage_spec {
  size_t n_values, n_ranges, n_pins;
  const node *const *values;
  const size_t *ranks;        /* of each value */
  const node *const *coords;  /* all, value after value */
  const node *const *extents; /* all, value after value */
  const node *const *ranges;
  const node *const *pins;
  bool cut;
} stage_spec;
const node *stage_make(ir *g, const stage_spec *s);

typedef struct fold_spec {
  size_t n_states, n_emits, n_ranges, n_pins;
  const node *const *inits;
  const node *const *steps;
  const int64_t *ops; /* an op, or −1 */
  const int64_t
      *components; /* component of the STAGE that is the step, or −1; NULL: all are scalars */
  const node *const *emits;   /* the emitted values */
  const size_t *ranks;        /* of each emit */
  const node *const *coords;  /* all, emit after emit */
  const node *const *extents; /* all, emit after emit */
  const node *const *ranges;  /* from outer to inner */
  const node *const *pins;
} fold_spec;
const node *fold_make(ir *g, const fold_spec *s);

/** The STATE of a FOLD's component; the FOLD is known by its innermost range. */
const node *fold_state_make(ir *g, dtype t, const node *innermost, int64_t component);

/** Reads one element of a binder, a state or a param at logical coordinates. */
const node *index_make(ir *g, dtype t, const node *of, int64_t component, size_t rank,
                       const node *const coords[]);

/** Remakes a STAGE or FOLD with the sources `src`, one for each of `b`, except that its ranges are
    replaced by the n `ranges`. */
const node *binder_with_ranges(ir *g, const node *b, const node *const src[], size_t n,
                               const node *const ranges[]);

/** Remakes a STAGE with a number of slots, 1 or more. */
const node *binder_with_slots(ir *g, const node *stage, int64_t slots);

/** Remakes a STAGE or FOLD with one more pin. */
const node *binder_with_pin(ir *g, const node *b, const node *pin);

#endif
