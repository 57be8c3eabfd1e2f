/* Defines the semantics, operand layout and accessors of the kernel IR's loop nodes: RANGE (a
   loop index), STAGE (a loop nest that builds arrays) and FOLD (a reduction or scan), with STATE
   and INDEX, which read them. Of END and LOOP it reads the ranges that they bind. */
/* clang-format off */
/*
   RANGE(extent) {id, kind, axis, tail}
     An index 0 … extent − 1, bound by one binder. Its id stays the same in all rewrites.

   STAGE {values, ranges, pins, cut, rank of each value, slots if there are several}
     sources: values …; coordinates of value 0 …, of value 1 …; extents of value 0 …, …;
              ranges …; pins …
     Builds arrays: for all ranges r, A_i[x_i(r)] = v_i. Coordinates are logical, extents are the
     sizes of the arrays. A value is written once for each binding of the ranges up to the last one
     that it or its coordinates depend on. No element is written twice with different values, so the
     order of the ranges is free. An element that is never written is undefined. Slots change no
     value: an array of n slots is built n − 1 iterations before the one that reads it.

   FOLD {states, emits, ranges, pins, op and component of each state, rank of each emit}
     sources: inits …; steps …; emitted values …; coordinates of emit 0 …, of emit 1 …;
              extents of emit 0 …, …; ranges, from outer to inner …; pins …
     Scans: the states start as their inits; for r in order, all states step at once, from their old
     values, and then E_j[x_j(r)] := emit_j.
     op_i ≥ 0         step_i is a term v without a STATE of this FOLD: the state becomes op(state, v).
                      If all states have an op and no emit has a STATE, the compiler may choose the
                      order of r.
     op_i = −1        step_i is the new state, an expression over STATE.
     component_i = −1 the state is a scalar.
     component_i ≥ 0  the state is an array: step_i is a STAGE, and the state has the extents of its
                      component component_i, which gives v or the new state, element by element.
                      Several states may share one STAGE. An element of an array state that a step
                      does not write stays as it was; so does the state where a step writes outside
                      of it. Coordinates of a step may read memory along the FOLD's ranges; those
                      along the step's own ranges tell its elements apart.
     init_i           free of the FOLD's ranges; need not be the identity of the op. The init of an
                      array is a scalar for every element, or component_i of a STAGE.

   STATE(innermost range of the FOLD) {component}
     The current state: in a step before that step, in an emitted value after it.

   INDEX(STAGE, FOLD, STATE or PARAM; coordinates …) {component}
     One element at logical coordinates, as many as the array has dimensions. Component c of a FOLD
     with n states is the final state c, or, for c ≥ n, the emitted array c − n; c is 0 for a STATE
     or PARAM.

   Pins are indices without a use; a binder runs inside the ranges that are free in its pins. */
/* clang-format on */
#ifndef TENON_IR_CORE_BINDER_LAYOUT_H
#define TENON_IR_CORE_BINDER_LAYOUT_H

#include "ir/core/likely_value.h"

typedef enum range_kind {
  KIND_LOOP,
  KIND_UNROLL,
  KIND_VECTOR,
  KIND_THREAD,
  KIND_GLOBAL,
  KIND_LOCAL,
  KIND_WARP,
  KIND_TILE, /* axis: the side of a tile of tensor_rows.def; a loop where no tile is made of it */
  KIND_LIMIT
} range_kind;

/** The name of a kind ("loop"). */
const char *range_kind_name(range_kind k);

static inline const node *range_extent(const node *r) { return r->src[0]; }
static inline int64_t range_axis(const node *r) { return r->ints[2]; }
static inline range_kind range_kind_of(const node *r) { return (range_kind)r->ints[1]; }
/** Likely iterations of a range. */
static inline double range_likely_trips(const node *r) { return ix_likely(range_extent(r)); }
static inline bool range_is_unrolled(const node *r) { return range_kind_of(r) == KIND_UNROLL; }

/** True for a digit of the number of a group (GLOBAL) or of a worker in its group (LOCAL, WARP). */
static inline bool range_is_digit(const node *r) {
  range_kind k = range_kind_of(r);
  return k == KIND_GLOBAL || k == KIND_LOCAL || k == KIND_WARP;
}
/** The side of a tile that a range of kind tile is. */
typedef enum tile_side { TILE_M, TILE_N, TILE_K, TILE_SIDES } tile_side;

static inline bool range_is_tile(const node *r, tile_side side) {
  return range_kind_of(r) == KIND_TILE && range_axis(r) == (int64_t)side;
}
/** True for ranges of one digit: of equal kind and axis. */
static inline bool range_is_same_digit(const node *a, const node *b) {
  return range_kind_of(a) == range_kind_of(b) && range_axis(a) == range_axis(b);
}

/** The VECTOR range that a node depends on; NULL: none. */
const node *node_vector_range(const node *n);

/** Positions and lengths of the parts of a STAGE's or FOLD's sources. */
typedef struct binder_layout {
  size_t states;           /* number of states: inits from 0 on, then steps; 0 for a STAGE */
  size_t arrays, values;   /* number of arrays; first value (STAGE) or emitted value (FOLD) */
  size_t coords, extents;  /* first coordinate and first extent of all arrays */
  size_t ranges, n_ranges; /* first range, outermost; number of ranges */
  size_t pins, n_pins;
  size_t end; /* number of sources */
} binder_layout;

/** The layout of a well-formed STAGE or FOLD, from its op and integers. */
binder_layout binder_layout_of(op o, const int64_t ints[]);

/** NULL if the integers and the number of sources of a STAGE or FOLD fit together, else the rule
    that they break. */
const char *binder_check_layout(op o, const int64_t ints[], size_t n_int, size_t n_src);

/* The first integers of a STAGE and of a FOLD. A FOLD's continue with op and component of each
   state; then both have the rank of each array, and a STAGE its slots. */
enum { STAGE_VALUES, STAGE_RANGES, STAGE_PINS, STAGE_CUT, STAGE_HEAD };
enum { FOLD_STATES, FOLD_EMITS, FOLD_RANGES, FOLD_PINS, FOLD_HEAD };

/* Parts of a STAGE. */
size_t stage_n_values(const node *s);
size_t stage_n_ranges(const node *s);
size_t stage_n_pins(const node *s);
bool stage_is_cut(const node *s);
int64_t stage_slots(const node *s); /* 1: the array is built where it is read */
size_t stage_rank(const node *s, size_t value);
static inline const node *stage_value(const node *s, size_t i) { return s->src[i]; }
const node *const *stage_coords(const node *s, size_t value);
const node *const *stage_extents(const node *s, size_t value);
const node *const *stage_range(const node *s); /* all ranges, outermost first */

/** True if all ranges of a STAGE are copies and lanes: its elements can be registers. */
bool stage_is_in_registers(const node *s);

/** Number of loops around the write of a value: the ranges up to the last one that the value or its
    coordinates depend on, or that is of kind thread. */
size_t stage_loop_depth(const node *s, size_t value);

/* Parts of a FOLD. */
size_t fold_n_states(const node *f);
size_t fold_n_emits(const node *f);
size_t fold_n_ranges(const node *f);
size_t fold_n_pins(const node *f);
/** The op and the component of a state, from the integers of a FOLD or from the node. */
int64_t fold_op_of(const int64_t ints[], size_t state);
int64_t fold_component_of(const int64_t ints[], size_t state);
int64_t fold_op(const node *f, size_t state);
int64_t fold_component(const node *f, size_t state);
/** True if the FOLD emits nothing and all its states are scalars. */
bool fold_has_scalar_states(const node *f);
static inline const node *fold_init(const node *f, size_t state) { return f->src[state]; }
static inline const node *fold_step(const node *f, size_t i) {
  return f->src[fold_n_states(f) + i];
}
const node *const *fold_range(const node *f); /* all ranges, outermost first */
const node *fold_innermost_range(const node *f);
/** Type, rank and extents of a component, numbered as by INDEX: states, then emitted arrays. */
dtype fold_dtype(const node *f, size_t component);
size_t fold_rank(const node *f, size_t component);
const node *const *fold_extents(const node *f, size_t component);
const node *fold_emit(const node *f, size_t emit);
const node *const *fold_coords(const node *f, size_t emit);

/** Number and first of the ranges that a STAGE, FOLD, END or LOOP binds, outermost first. */
size_t binder_ranges(const node *b, const node *const **first);
/** The same from the specification of a binder. */
size_t binder_ranges_of(op o, const int64_t ints[], const node *const *src,
                        const node *const **first);
bool node_is_binder(const node *n);

/** Position of a range in the list of its binder; it must be there. */
size_t range_position(const node *const ranges[], const node *range);

#endif
