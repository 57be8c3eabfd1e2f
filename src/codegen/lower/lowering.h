/* Internal header of the lowering of kernels, in which binders (loop nodes) become storage (ALLOC),
   LOADs, STOREs and loops: the state and functions that lower_binders.c, lower_arrays.c,
   lower_folds.c, lower_teams.c and output_arrays.c share. */
#ifndef TENON_CODEGEN_LOWER_LOWERING_H
#define TENON_CODEGEN_LOWER_LOWERING_H

#include "base/map.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "laws/team_arrays.h"
#include "laws/warp_tile.h"

/** A part of an output in which an array lies: its element at some coordinates is that of the
    output's param at `at`, where these take the place of the array's own. */
typedef struct output_part {
  const node *param;
  const node *const *at;    /* a coordinate for each axis of the param */
  const node *const *own;   /* RANGEs, or 0 for a size of 1: one for each axis of the array */
  size_t axis[IR_MAX_RANK]; /* the array's axis along each of the param; its rank: none */
} output_part;

/** The array of one component of a lowered binder. */
typedef struct home {
  const node *storage; /* as readers access it: AFTER(ALLOC, effects …) */
  size_t rank;
  const node *const *extents;
  uint32_t dropped;        /* coordinates of which each worker holds its part: bit p for p */
  bool is_partial;         /* some workers have no part */
  node_list outer;         /* the slot, and digits for each of which a shared array has a part */
  node_list extended;      /* their extents */
  const output_part *part; /* NULL: an array of its own */
} home;

typedef struct lowering {
  ir *g;
  arena *a;
  map image;    /* node → lowered node */
  map homes;    /* STAGE or FOLD → home[components] */
  map scans;    /* innermost RANGE of a FOLD → its state of lowering (lower_folds.c) */
  map direct;   /* STAGE that one OUT writes and nothing reads → OUT */
  map in_place; /* STAGEs whose loops write the states of their FOLD */
  map outputs;  /* INDEX of a FOLD that an OUT's STAGE copies → output_part */
  map starts;   /* STAGE that starts as a state of its FOLD → FOLD */
  map turns;    /* STAGE that is built ahead → the loop whose iterations use its slots by turns */
  map ahead;    /* ALLOC of such a STAGE → this loop, lowered */
  map places;   /* STAGE or FOLD → range_set that its storage depends on */
  map lanes;    /* ranges that are vectors, or inside of vectors */
  team_arrays teams;
  bool has_warp_tiles; /* some FOLD's */
  map gates; /* digit RANGE → the loop of at most one iteration that leaves workers out; none where
                the range has all of its digit */
} lowering;

/* lower_arrays.c */

/** The lowered form of a node, or of several. A range that is a digit becomes an expression. */
const node *lower_node(lowering *l, const node *n);
const node **lower_nodes(lowering *l, const node *const *from, size_t n);

/** AFTER(storage, effects …, ranges …): the storage as seen after effects, inside of ranges. */
const node *lower_after(lowering *l, const node *storage, const node *const *effects, size_t n,
                        const node *const *ranges, size_t n_ranges);

const node *lower_load(lowering *l, dtype t, const node *storage, const node *address);
const node *lower_store(lowering *l, const node *storage, const node *address, const node *value);
const node *lower_group(lowering *l, const node_list *effects);

/** The loops of ranges: a lowered range, the gate of a digit, or NULL for a digit without one. */
const node **lower_loops(lowering *l, const node *const *ranges, size_t n);

/** Closes loops, the outermost first, around effects: the i-th effect is inside of the first
   levels[i] of them (NULL: of all). A loop may be NULL. */
const node *lower_close_loops(lowering *l, const node *const *effects, const size_t *levels,
                              size_t n, const node *const *loops, size_t n_loops);

/** An ALLOC of a size and space at the place of a binder. */
const node *lower_alloc(lowering *l, dtype t, const node *binder, const node *size, int64_t space);

/** The home of a component of a STAGE or FOLD, with an ALLOC as its storage: registers for one
    element, scratch memory, or memory that a team shares. */
home lower_home(lowering *l, const node *binder, size_t component);

/** The address of an element in a home, from lowered coordinates. */
const node *lower_address(lowering *l, const home *h, const node *const *coords);

/** The LOAD of an element of a home, at lowered coordinates. */
const node *lower_home_load(lowering *l, dtype t, const home *h, const node *const *coords);

/** The LOAD of an INDEX from its value's array. */
const node *lower_element_load(lowering *l, const node *n, const home *h);

/** The home of the i-th value of a STAGE that stores to a param: without storage. */
home lower_param_home(lowering *l, const node *stage, size_t i);

/** The address at which a STAGE stores the i-th of its values in a home. */
const node *lower_stage_address(lowering *l, const home *h, const node *s, size_t i);

/** Loops that copy a lowered stage's array to the storage `to` of a home (o < 0), or combine both
   by an op, and that run where `reader` does. */
const node *lower_copy_array(lowering *l, const node *stage, size_t value, const node *reader,
                             const home *to, int64_t o);

/** Loops that fill an array with one value: for a state of the FOLD `reader`, those by which its
   step, a stage's value, writes all elements of it, or loops over the whole array (also for stage
   NULL). */
const node *lower_fill(lowering *l, const home *h, const node *to, const node *x, const node *stage,
                       size_t value, const node *reader);

/** Loops that copy all elements of an array to another one of its shape. */
const node *lower_copy_home(lowering *l, const home *from, const home *to, const node *storage);

/** True if copies of its own loops may run over the elements that a stage's value writes. */
bool lower_may_repeat(lowering *l, const node *stage, size_t value);

/* lower_slots.c */

/** Finds the STAGEs that are built ahead, whose storage is that of all turns of their loop. */
void lower_find_turns(lowering *l, const node *sink, const node_list *order);

/** The slot that an iteration of a STAGE's loop uses. */
const node *lower_slot(lowering *l, const node *stage);

/** The ALLOC of a STAGE that is built ahead, after what builds its arrays: copies of `end`, which
    builds the one that an iteration reads. */
const node *lower_build_ahead(lowering *l, const node *stage, const node *alloc, const node *end);

/** The lowered kernel in which storage of STAGEs that are built ahead depends on all loops around
    that of their turns, which begin anew in each of their iterations. */
const node *lower_enclose_slots(lowering *l, const node *sink);

/* fuse_emits.c */

/** The kernel in which FOLDs store to outputs what STAGEs would compute of their emitted values:
    these lie in outputs from then on. `order`: all nodes, sources first. */
const node *lower_fuse_emits(lowering *l, const node *sink, const node_list *order);

/* lower_binders.c */

/** The LOAD of an INDEX of a STAGE, FOLD or PARAM, at other coordinates, which are lowered. */
const node *lower_index_at(lowering *l, const node *n, const node *const *coords);

/* output_arrays.c */

/** Finds the arrays of FOLDs that an OUT's STAGE merely copies to its params: they lie there. */
void lower_find_outputs(lowering *l, const node_list *order);

/** The part of an output in which a component of a FOLD lies; NULL: none. */
const output_part *lower_output_of(const lowering *l, const node *fold, size_t component);

/** True if each digit of the kernel is one of a STAGE's ranges: no two workers run one part of it.
 */
bool lower_parts_workers(const lowering *l, const node *stage);

/** True if an array of a FOLD lies in an output of this STAGE. */
bool lower_has_outputs(const lowering *l, const node *stage);

/** True for a range along which such a STAGE copies an array that lies in its output. */
bool lower_is_own_range(const lowering *l, const node *stage, const node *range);

/** True if a FOLD's state starts as what its output holds. */
bool lower_starts_as_output(const node *fold, size_t state, const output_part *part);

/* lower_teams.c */

/** A range that is a digit, as an expression of the number of the group or of the worker. */
const node *lower_digit(lowering *l, const node *range);

/** A digit as such an expression. */
const node *lower_digit_value(lowering *l, const team_digit *d);

/** A loop of one iteration where a size is above 0, else of none. */
const node *lower_gate(lowering *l, const node *size);

/** A store that one of several workers makes which would store the same: those with the index 0 of
    each digit of the space's team that is neither in the coordinates of the STAGE's value, or of
    the output's part that `to` is, nor around the STAGE. Storage of a param is everybody's. */
const node *lower_store_once(lowering *l, const node *store, const home *to, const node *stage,
                             size_t value);

/** True for a FOLD over digits. */
bool lower_is_team_fold(const node *f);

/** Sets the homes of a FOLD over digits: each worker computes its term, then pairs of workers, of
    pairs, and so on are combined through memory that the team shares. */
void lower_team_fold(lowering *l, const node *f);

/* lower_warp_tiles.c */

/** The effect that adds a tile of a warp to its sums, of which the STAGE `step` has the parts of
    each worker; `to` is the home of these. */
const node *lower_warp_tile(lowering *l, const warp_tile *m, const node *step, const home *to);

/* lower_folds.c */

/** Registers a FOLD; has to be called for every FOLD before any node is lowered. */
void lower_fold_register(lowering *l, const node *fold);

/** The kernel with steps inside of their FOLDs' loops that do not depend on these and start as a
    state: outside, two FOLDs might share one. */
const node *lower_pin_steps(lowering *l, const node *sink);

/** Finds the STAGEs that start as a state of their FOLD: steps that are arrays of their own, of
    which copies could not tell the elements that are written. */
void lower_find_starts(lowering *l, const node_list *order);

/** Nodes to be lowered before a STAGE that starts as a state of `fold`. */
node_list lower_start_dependences(lowering *l, const node *stage, const node *fold);

/** Loops that fill the array of a step with what leaves the state as it is; NULL: none are needed.
 */
const node *lower_start(lowering *l, const node *stage, size_t value, const home *to);

/** Nodes to be lowered before a STATE: its FOLD's initial values, and for a state after the step
    the steps too. */
node_list lower_state_dependences(lowering *l, const node *n);

/** Lowers a STATE: initialises its FOLD's states, and steps them for a state after the step. */
void lower_state(lowering *l, const node *n);

/** The LOAD of an INDEX of a STATE. */
const node *lower_state_load(lowering *l, const node *n);

/** Closes a FOLD's loop and sets the arrays of its results. */
void lower_fold(lowering *l, const node *f);

#endif
