/* Schedule primitives in the sense of Halide and TVM, called "laws" here: loop transformations of
   one kernel, a SINK (kernel root node) at stage K. Each is a function that rewrites the kernel's
   STAGEs (array builders) and FOLDs (reductions and scans) so that it runs otherwise and computes
   the same. A law checks its own legality: if it is illegal, it returns NULL and leaves the reason
   in `refusal`. kernel_schedule.h has lists of laws as text; the head of each law's file shows its
   rewrite. */
#ifndef TENON_LAWS_LAWS_H
#define TENON_LAWS_LAWS_H

#include "base/map.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"

enum {
  LAW_ONE_PER_RANGE = -1,
  LAW_MOST_NODES = 1 << 14 /* of a kernel, as laws copy nests: some seconds of a C compiler */
};

typedef enum law {
#define LAW(name, function, arguments, new_ranges, file, about) LAW_##name,
#include "laws/laws.def"
  LAWS
} law;

/** A row of laws.def. */
typedef struct law_facts {
  const char *name, *arguments;
  int new_ranges; /* number of those that a schedule's line names first; LAW_ONE_PER_RANGE: one for
                     each of RANGES */
  const char *file, *about;
} law_facts;
const law_facts *law_facts_of(law which);

/** Arguments of a law; the table says which of them it takes. */
typedef struct law_args {
  const node *subject;     /* RANGE, BINDER, EXPRESSION */
  int64_t number;          /* NUMBER, POINT, KIND, SIDE, ROW */
  bool is_multiple;        /* POINT: "by" */
  const node *other;       /* OUTER, LANES */
  const node *const *list; /* RANGES */
  size_t n;                /* ranges in `list` */
} law_args;

/** Number of new ranges that a line of this law names first (its principals). */
size_t law_named_ranges(law which, const law_args *a);

/** Log of all laws that were applied, also of those whose kernels were dropped. */
typedef struct law_trace law_trace;

/** The nodes of a kernel in topological order, and those of them that are binders, in that order.
 */
typedef struct kernel_index {
  const node *sink;
  node_list nodes, binders;
} kernel_index;

/** Indices of the kernels that were looked at last. */
typedef struct kernel_indices kernel_indices;

/** State of a run of laws. */
typedef struct laws {
  ir *g;
  const char *refusal;     /* reason of the last law that returned NULL; static */
  law_trace *log;          /* NULL: nothing is logged */
  kernel_indices *indices; /* NULL: none is remembered */
  uint32_t workers;        /* most of a team on the target; 0: it has no teams */
  uint32_t warp;           /* workers of a warp on it; 0: there are none */
} laws;

/** No indices yet, in the ir's scratch memory. */
kernel_indices *law_indices_new(ir *g);

/** The index of a kernel, in the ir's scratch memory. */
kernel_index law_index_of(const laws *l, const node *sink);

/** An empty log in the ir's scratch memory. */
law_trace *law_trace_new(ir *g);

/** One applied law. */
typedef struct law_step {
  const node *from, *to; /* kernels */
  law which;
  law_args args;
  const node *const *principals; /* new ranges that the schedule's line names first */
} law_step;
typedef VEC(law_step) law_steps;

/** The logged laws that lead from one kernel to another, in order, in the ir's scratch memory.
    Raises TN_ERR_INTERNAL if the log has no such path. */
law_steps law_trace_path(const law_trace *log, const node *from, const node *to);

/* The laws. Ranges that a law makes are returned through pointers. */

/** SPLIT: strip-mines a LOOP range r of a STAGE or FOLD: r = r₀·factor + r₁; r₀ and r₁ replace it,
   in this order. The extent of r₁ is `factor` if that provably divides the extent of r, else
    min(factor, extent − r₀·factor). For a single block *outer is NULL. Kinds are given last: a
   range that is no LOOP is refused. */
const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner);

/** OVERLAP: SPLIT into full blocks only: the last block ends with the range and overlaps the one
    before, r = min(r₀·factor, extent − factor) + r₁. Elements of the overlap are computed and
    stored twice, with equal values. Requires a range of a STAGE that no FOLD starts from or steps
    to, and that is not stored to a buffer which the kernel reads, unless the factor divides the
    extent; and factor ≤ extent, provably. */
const node *law_overlap(laws *l, const node *sink, const node *range, int64_t factor,
                        const node **outer, const node **inner);

/** True if law_overlap would apply. Creates no nodes that outlive the query. */
bool law_may_overlap(laws *l, const node *sink, const node *range, int64_t factor);

/** NEST: FOLD over …, r, s, … becomes FOLD over …, r of FOLDs over s, …. `range` is r. Requires
    scalar states with ops that have an identity, and no emitted arrays. */
const node *law_nest(laws *l, const node *sink, const node *range);

/** FLATTEN: fuses a range of a STAGE or FOLD with the next inner one, of constant extent X, into
   one range p: the outer index is p div X, the inner one p mod X. */
const node *law_flatten(laws *l, const node *sink, const node *range, const node **fused);

/** UNIT: adds an outermost range of extent 1 to a STAGE; nothing depends on it. */
const node *law_unit(laws *l, const node *sink, const node *stage, const node **unit);

/** ORDER: moves a range to a position in its STAGE or FOLD, 0 for the outermost. Ranges of a FOLD
    need states that all have an op, and no emitted arrays. */
const node *law_order(laws *l, const node *sink, const node *range, size_t position);

/** DATA: packs the elements that an expression reads along the ranges `inner` into an array before
    they are used. The array covers the box of offsets from a base, with an axis of its own for each
    range in which the indices are not affine. Coefficients must be ≥ 0 and extents constant;
    conditions on indices must use the ranges as the indices do. The dimension along `lanes` (NULL:
    any) becomes the last. `*element` is the INDEX that replaces the expression. Refused for a
    buffer that the kernel stores to. */
const node *law_data(laws *l, const node *sink, const node *expression, const node *const inner[],
                     size_t n, const node *lanes, const node **element);

/** INTERCHANGE: moves the FOLD that binds `range`, of scalar states, out of the loops `outer`
   around it: a FOLD for each index becomes one FOLD of arrays over all indices. The extents of
   `outer` are constants and the FOLD depends on each of them. own[i] is the range that replaces
   outer[i] in the arrays, of the same kind, but a LOOP for THREAD. */
const node *law_interchange(laws *l, const node *sink, const node *range, const node *const outer[],
                            size_t n, const node *own[]);

/** BATCH: INTERCHANGE with one LOOP for a FOLD whose states depend on each other or are arrays:
   each state gets a dimension for all indices of `outer`. Arrays that a step builds for one index
   are hoisted (HOIST) and built for all indices in each iteration; steps keep sharing them. States
   start from scalars. */
const node *law_batch(laws *l, const node *sink, const node *range, const node *outer);

/** HOIST: array expansion. A STAGE inside the LOOP `outer`, of constant extent, is built outside
   the loop for all of its indices: `*own` replaces `outer` in it and is the first dimension of its
    arrays. Requires that only INDEX reads the STAGE, and that it depends on no range inside
   `outer`. */
const node *law_hoist(laws *l, const node *sink, const node *stage, const node *outer,
                      const node **own);

/** A point of a range: the index `number`, or the largest multiple of `number` that is at most the
    extent. */
typedef struct law_point {
  int64_t number;
  bool is_multiple;
} law_point;

/** PARTITION: index-set splitting: indices below a point and the rest run in separate nests. Makes
    two OUTs of an OUT's STAGE; two arrays of another STAGE, of which the range is a coordinate; or
    two FOLDs, the second starting from the results of the first. Requires 0 ≤ point ≤ extent,
    provably, and parts that may be non-empty. `low` and `high` are the two ranges, of the old kind,
    which is neither VECTOR nor UNROLL. */
const node *law_partition(laws *l, const node *sink, const node *range, law_point point,
                          const node **low, const node **high);

/** PEEL: takes the first or last step out of a FOLD of one range. First: the remaining FOLD starts
    from the results of that step. Last: the step is computed where the FOLD is read, or as an
   array. Requires at least one step, provably, and no emitted arrays. `*rest` is the range of the
    remaining steps; NULL: none remain. */
const node *law_peel(laws *l, const node *sink, const node *range, bool last, const node **rest);

/** SINK: compute_at: a STAGE or FOLD that does not depend on a LOOP, all readers of which are
   inside the loop, runs inside it too. Refused if it reads a buffer that the kernel stores to. */
const node *law_sink(laws *l, const node *sink, const node *binder, const node *range);

/** INLINE: compute_inline: an element of a STAGE's one array is computed where it is read, again
   for each read, and is 0 outside of the array. Requires coordinates that are the ranges, of no
   kind, elements that are computed from those of buffers alone, which the kernel does not store to,
   and that only INDEX reads the array. */
const node *law_inline(laws *l, const node *sink, const node *stage);

/** UNGATE: halo padding: an array read as where(0 ≤ e < n, S[e], c) is widened by the elements that
    these reads reach outside, filled with the constant c, and read without conditions. Requires
    coordinates that are the ranges, constant extents, and one c for all reads outside. */
const node *law_ungate(laws *l, const node *sink, const node *stage);

/** PITCH: the rows of an array of rank 2 or more, of one value, that only INDEX reads, begin `more`
    elements farther apart. Rows are of a constant length. */
const node *law_pitch(laws *l, const node *sink, const node *stage, int64_t more);

/** DEPTH: double buffering: an array gets `slots` slots, which iterations of the innermost loop
    around it use by turns, and is built slots − 1 iterations ahead. Its elements are computed from
    those of buffers alone, which the kernel does not store to. */
const node *law_depth(laws *l, const node *sink, const node *stage, int64_t slots);

/** TENSOR: applies row number `row` of tensor_rows.def to a sum of products of converted small
    elements of buffers: they are packed in words, groups along the range, over which the sum runs.
    `*groups` is the range of the groups, of which there are two or more. Rows that are not exact
    round sums in another order. */
const node *law_tensor(laws *l, const node *sink, const node *range, int64_t row,
                       const node **groups);

/** Axes of a kind of digits. */
enum { LAW_AXES = 4 };

/** A kind and an axis as NUMBER of KIND. */
static inline int64_t law_kind_number(range_kind kind, int64_t axis) {
  return kind + KIND_LIMIT * axis;
}

/** KIND: gives a range its kind; *changed is the range after that. UNROLL and VECTOR need a
   constant extent, a VECTOR a power of two or the inner extent of a SPLIT with a remainder (its
   last vector is narrower). VECTORs do not nest, and no extent inside may depend on one. A THREAD
   range is the only one of an OUT's STAGE that nothing else reads; no two of its indices store one
   element, except the last two of overlapping blocks, which run on one worker. Where the kernel
   updates a buffer in place, no index of a THREAD range, or of a VECTOR that is not innermost,
   reads elements that others store. GLOBAL, LOCAL and WARP ranges, on targets with teams, are
   digits of the numbers of groups and workers (team_arrays.h). They are a STAGE's, no two of whose
   indices store one element, or, but for GLOBAL, a FOLD's, and keep their kinds. */
const node *law_kind(laws *l, const node *sink, const node *range, range_kind kind,
                     const node **changed);

/** KIND for a digit on an axis. */
const node *law_kind_on_axis(laws *l, const node *sink, const node *range, range_kind kind,
                             int64_t axis, const node **changed);

/** Raises TN_ERR_ARGUMENT for a kernel with WARP digits that make up another number of workers than
    the target's warp. */
void law_check_warps(const laws *l, const node *sink);

/** Raises TN_ERR_ARGUMENT for a kernel with THREAD ranges in some nests only: each worker would run
    the other nests whole. */
void law_check_threads(diag *d, const node *sink);

/** True if a FOLD is a reduction whose terms may be combined in any order in this arithmetic (a
    math_mode): all states are scalars with an op, and it emits nothing. */
bool law_fold_is_reorderable(const node *fold, int math);

/* Queries. */

/** The binder of a range below `sink`; NULL if there is none. */
const node *law_find_binder(const laws *l, const node *sink, const node *range);

/** The OUT that stores a STAGE's values; NULL if there is none. */
const node *law_find_out(const node *sink, const node *stage);

/** Collects, as keys of `inside`, the ranges that are VECTORs or run inside one, and the arrays of
    FOLDs there. `range` (NULL: none) counts as a VECTOR. True if a VECTOR runs inside another. */
bool law_collect_vectorised(const laws *l, const node *sink, const node *range, map *inside);

/** Adds to `inside`, as keys, the nodes that a FOLD starts from and steps to: STAGEs among them are
    built where the FOLD is, whatever they depend on. */
void law_add_fold_arrays(arena *a, const node *fold, map *inside);

/** Number of nodes of a kernel once UNROLL and VECTOR ranges are expanded (expanded_size.c). With
    `all` ranges: the approximate number of nodes evaluated in a run, symbolic sizes taken as small.
 */
double law_expanded_nodes(arena *a, const node *sink, bool all);

/** Expressions that DATA may pack, users before operands: number i is written e<i> in a schedule.
 */
node_list law_data_expressions(laws *l, const node *sink);

#endif
