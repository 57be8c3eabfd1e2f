/* The binders of the kernel model, and what reads them. */
/* clang-format off */
/*
   RANGE(extent) {id, kind, axis, tail}
     An index 0 … extent − 1. A binder binds it; wherever it goes it keeps its id.

   STAGE {values, ranges, pins, cut, rank of each value}
     sources: values …; coordinates of value 0 …, of value 1 …; extents of value 0 …, …;
              ranges …; pins …
     Builds arrays: for all ranges r, A_i[x_i(r)] = v_i. Coordinates are logical, extents are the
     sizes of the arrays. A value is written once for each binding of the ranges up to the last one
     that it or its coordinates depend on, and no element of it twice, unless alike: so the order of
     the ranges is open. An element that is never written is undefined.

   FOLD {states, emits, ranges, pins, op and component of each state, rank of each emit}
     sources: inits …; steps …; emitted values …; coordinates of emit 0 …, of emit 1 …;
              extents of emit 0 …, …; ranges, from outer to inner …; pins …
     Scans: the states start as their inits; for r in order, all states step at once, from their old
     values, and then E_j[x_j(r)] := emit_j.
     op_i ≥ 0         step_i is a term v without a STATE of this fold: the state becomes op(state, v).
                      If all states have an op and no emit has a STATE, the order of r belongs to the
                      compiler.
     op_i = −1        step_i is the new state, an expression over STATE.
     component_i = −1 the state is a scalar.
     component_i ≥ 0  the state is an array: step_i is a STAGE, and the state has the extents of its
                      component component_i, which gives v or the new state, element by element.
                      Several states may share one STAGE.
     init_i           free of the fold's ranges; it need not be the identity of the op. That of an
                      array is a scalar, for every element, or component_i of a STAGE.

   STATE(innermost range of the fold) {component}
     A state at hand: within a step before that step, within an emitted value after it.

   INDEX(STAGE, FOLD, STATE or PARAM; coordinates …) {component}
     One element at logical coordinates, as many as the array has dimensions. Component c of a FOLD
     with n states is the final state c, or, for c ≥ n, the emitted array c − n; of a STATE or PARAM
     it is 0.

   Pins are indices that a binder does not use: it runs inside the ranges that are free in them. */
/* clang-format on */
#ifndef TENON_IR_BINDER_H
#define TENON_IR_BINDER_H

#include "ir/build.h"

typedef enum range_kind {
  KIND_LOOP,
  KIND_UNROLL,
  KIND_VECTOR,
  KIND_THREAD,
  KIND_GLOBAL,
  KIND_LOCAL,
  KIND_WARP,
  KIND_LIMIT
} range_kind;

/** A name of a kind ("loop"). */
const char *range_kind_name(range_kind k);

const node *range_make(ir *g, const node *extent, range_kind kind);
/** The same range identity with another kind or extent. */
const node *range_with(ir *g, const node *range, const node *extent, range_kind kind);
/** A range like this one, of that extent, with an identity of its own. */
const node *range_copy(ir *g, const node *range, const node *extent);
static inline const node *range_extent(const node *r) { return r->src[0]; }
static inline range_kind range_kind_of(const node *r) { return (range_kind)r->ints[1]; }
static inline bool range_is_copies(const node *r) { return range_kind_of(r) == KIND_UNROLL; }

/* What the integers of STAGE and FOLD say is read and written in binder.c alone. */

/** Where the parts of a STAGE's or FOLD's sources begin, and how many of each there are. */
typedef struct binder_parts {
  size_t states;         /* inits from 0 on, then as many steps; a STAGE has none */
  size_t arrays, values; /* a STAGE's values, or a FOLD's emitted ones */
  size_t coords, extents;
  size_t ranges, n_ranges;
  size_t pins, n_pins;
  size_t end; /* the number of sources */
} binder_parts;

/** The parts of a well-formed STAGE or FOLD, by its op and integers. */
binder_parts binder_parts_of(op o, const int64_t ints[]);

/** Whether there can be such a STAGE or FOLD: NULL, or what is wrong with its integers and the
    number of its sources. */
const char *binder_objection(op o, const int64_t ints[], size_t n_int, size_t n_src);

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

/* What a STAGE is made of. */
size_t stage_values(const node *s);
size_t stage_ranges(const node *s);
size_t stage_pins(const node *s);
bool stage_is_cut(const node *s);
size_t stage_rank(const node *s, size_t value);
static inline const node *stage_value(const node *s, size_t i) { return s->src[i]; }
const node *const *stage_coords(const node *s, size_t value);
const node *const *stage_extents(const node *s, size_t value);
const node *const *stage_range(const node *s); /* the first of them */

/** How many of its ranges must be bound before a value and its coordinates are known: that many
    loops are around its write. */
size_t stage_level(const node *s, size_t value);

/** Whether the coordinates of a value are the ranges of its stage, each once, alone or as blocks
   and places in them, and as long as the array: it writes each element once. */
bool stage_is_whole(const node *s, size_t value);

/* writes.c: what follows from where an element is. Coordinates are sums of ranges in any mixed
   radix, or what div and mod by constants make of such sums; of several coordinates one may hold
   what follows from others. */

/** Whether a range of a STAGE follows from such coordinates. */
bool stage_range_follows(const node *s, const node *range, size_t n, const node *const coords[]);

/** Whether a value of a STAGE is shown to write no element twice: all ranges around its write
    follow from its coordinates. */
bool stage_writes_once(const node *s, size_t value);

/** Whether a value of a STAGE is shown to write no element twice but alike: the ranges that it
    depends on follow from its coordinates. NULL, or one that does not. */
const node *stage_overwritten_along(ir *g, const node *s, size_t value);

typedef struct fold_spec {
  size_t n_states, n_emits, n_ranges, n_pins;
  const node *const *inits;
  const node *const *steps;
  const int64_t *ops;        /* an op, or −1 */
  const int64_t *components; /* of the STAGEs that steps are, or −1; NULL: all states are scalars */
  const node *const *emits;   /* the emitted values */
  const size_t *ranks;        /* of each emit */
  const node *const *coords;  /* all, emit after emit */
  const node *const *extents; /* all, emit after emit */
  const node *const *ranges;  /* from outer to inner */
  const node *const *pins;
} fold_spec;
const node *fold_make(ir *g, const fold_spec *s);

/* What a FOLD is made of. */
size_t fold_states(const node *f);
size_t fold_emits(const node *f);
size_t fold_ranges(const node *f);
size_t fold_pins(const node *f);
/** Of a FOLD by its integers: the op and the component of a state. */
int64_t fold_op_of(const int64_t ints[], size_t state);
int64_t fold_component_of(const int64_t ints[], size_t state);
int64_t fold_op(const node *f, size_t state);
int64_t fold_component(const node *f, size_t state);
/** Whether it emits nothing, and all its states are scalars. */
bool fold_is_of_scalars(const node *f);
static inline const node *fold_init(const node *f, size_t state) { return f->src[state]; }
static inline const node *fold_step(const node *f, size_t i) { return f->src[fold_states(f) + i]; }
const node *const *fold_range(const node *f); /* the first of them */
const node *fold_innermost(const node *f);
/** The type, rank and extents of a component as INDEX counts them: a state, or an emitted array. */
dtype fold_dtype(const node *f, size_t component);
size_t fold_rank(const node *f, size_t component);
const node *const *fold_extents(const node *f, size_t component);
/* Of the emitted arrays. */
const node *fold_emit(const node *f, size_t emit);
const node *const *fold_coords(const node *f, size_t emit);

/** The state of a fold's component, by the fold's innermost range. */
const node *state_make(ir *g, dtype t, const node *innermost, int64_t component);

/** REDUCE(op, v, ranges): the fold of one state that starts at the op's identity; read as a scalar.
 */
const node *fold_reduce(ir *g, op o, const node *v, size_t n, const node *const ranges[]);

/** One element of a binder, a state or a param, at logical coordinates. */
const node *index_make(ir *g, dtype t, const node *of, int64_t component, size_t rank,
                       const node *const coords[]);

/** The ranges that a STAGE, FOLD, END or LOOP binds, outermost first. */
size_t binder_ranges(const node *b, const node *const **first);
/** The same for a binder that is being made. */
size_t binder_ranges_of(op o, const int64_t ints[], const node *const *src,
                        const node *const **first);
bool node_is_binder(const node *n);

/** Where a range is among those of its binder, from the outermost on. */
size_t range_place(const node *const ranges[], const node *range);

/** A STAGE or FOLD with other sources: those of `src`, which has one for each source of `b`, but
    `ranges` in the place of its ranges. */
const node *binder_with_ranges(ir *g, const node *b, const node *const src[], size_t n,
                               const node *const ranges[]);

/** A STAGE or FOLD with one pin more. */
const node *binder_with_pin(ir *g, const node *b, const node *pin);

#endif
