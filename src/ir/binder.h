/* The binders of the kernel model: RANGE, STAGE, FOLD and what reads them.

   RANGE(extent) {id, kind, axis, tail}        an index 0 … extent − 1
   STAGE {values, ranges, pins, cut, rank₀ …}  builds arrays: for all ranges, A_i[x_i(r)] = v_i
     sources: v₀ … ; x of value 0 … ; … ; extents of value 0 … ; … ; ranges … ; pins …
   FOLD {states, ranges, pins, op₀ …}          scans: S := init; for r in order, S := step[STATE :=
   S] sources: init₀ … ; step₀ … ; ranges … ; pins … op_i is the op of state i when step_i is
   op(STATE, v): the order then belongs to the compiler; else −1 STATE(innermost range) {component}
   the state at hand, in a step INDEX(binder or STATE or PARAM; e …) {component}   one element A
   STAGE's coordinates are logical; the extents are their sizes. */
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
static inline const node *range_extent(const node *r) { return r->src[0]; }
static inline range_kind range_kind_of(const node *r) { return (range_kind)r->ints[1]; }

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
static inline size_t stage_values(const node *s) { return (size_t)s->ints[0]; }
static inline size_t stage_ranges(const node *s) { return (size_t)s->ints[1]; }
static inline size_t stage_pins(const node *s) { return (size_t)s->ints[2]; }
static inline bool stage_is_cut(const node *s) { return s->ints[3] != 0; }
static inline size_t stage_rank(const node *s, size_t i) { return (size_t)s->ints[4 + i]; }
static inline const node *stage_value(const node *s, size_t i) { return s->src[i]; }
const node *const *stage_coords(const node *s, size_t value);
const node *const *stage_extents(const node *s, size_t value);
const node *const *stage_range(const node *s); /* the first of them */

typedef struct fold_spec {
  size_t n_states, n_ranges, n_pins;
  const node *const *inits;
  const node *const *steps;
  const int64_t *ops;        /* an op, or −1 */
  const node *const *ranges; /* from outer to inner */
  const node *const *pins;
} fold_spec;
const node *fold_make(ir *g, const fold_spec *s);

static inline size_t fold_states(const node *f) { return (size_t)f->ints[0]; }
static inline size_t fold_ranges(const node *f) { return (size_t)f->ints[1]; }
static inline int64_t fold_op(const node *f, size_t i) { return f->ints[3 + i]; }
static inline const node *fold_init(const node *f, size_t i) { return f->src[i]; }
static inline const node *fold_step(const node *f, size_t i) { return f->src[fold_states(f) + i]; }
static inline const node *const *fold_range(const node *f) { return &f->src[2 * fold_states(f)]; }

/** The state of a fold's component, by the fold's innermost range. */
const node *state_make(ir *g, dtype t, const node *innermost, int64_t component);

/** REDUCE(op, v, ranges): the fold of one state that starts at the op's identity; read as a scalar.
 */
const node *fold_reduce(ir *g, op o, const node *v, size_t n, const node *const ranges[]);

/** One element of a binder, a state or a param, at logical coordinates. */
const node *index_make(ir *g, dtype t, const node *of, int64_t component, size_t rank,
                       const node *const coords[]);

/** The ranges that a STAGE, FOLD or END binds, outermost first. */
size_t binder_ranges(const node *b, const node *const **first);
/** The same for a binder that is being made: its op and integers are in `b`. */
size_t binder_ranges_of(const node *b, const node *const *src, const node *const **first);
bool node_is_binder(const node *n);

#endif
