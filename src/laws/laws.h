/* The laws of the kernel model: rewrites of one kernel (a SINK at stage K) that change how it runs
   and never what it computes. Each checks its own conditions; where they do not hold it returns
   NULL and says why. */
#ifndef TENON_LAWS_LAWS_H
#define TENON_LAWS_LAWS_H

#include "base/map.h"
#include "ir/binder.h"
#include "ir/topo.h"

enum {
  LISTED = -1,
  LAW_MOST_NODES = 1 << 14 /* of a kernel, as laws copy nests: some seconds of a C compiler */
};

typedef enum law {
#define LAW(name, function, arguments, made, file, about) LAW_##name,
#include "laws/laws.def"
  LAWS
} law;

/** A row of the table. */
typedef struct law_facts {
  const char *name, *arguments;
  int made; /* ranges that are named by what they are, or LISTED */
  const char *file, *about;
} law_facts;
const law_facts *law_get(law which);

/** What a law is applied with: what its arguments in the table name. */
typedef struct law_args {
  const node *subject;     /* RANGE, BINDER, EXPRESSION */
  int64_t number;          /* NUMBER, POINT, KIND, SIDE */
  bool is_multiple;        /* POINT: "by" */
  const node *other;       /* OUTER, LANES */
  const node *const *list; /* RANGES */
  size_t n;
} law_args;

/** How many ranges a law names by what they are. */
size_t law_principals(law which, const law_args *a);

/** What laws did, also what was not kept. */
typedef struct law_log law_log;

typedef struct laws {
  ir *g;
  const char *refusal; /* why the last law that returned NULL did; static */
  law_log *log;        /* NULL: nobody wants to know */
} laws;

/** A log in the ir's scratch memory. */
law_log *law_log_new(ir *g);

/** One law of those that lead from one kernel to another. */
typedef struct law_step {
  const node *from, *made;
  law which;
  law_args args;
  const node *const *principals;
} law_step;
typedef VEC(law_step) law_steps;

/** The laws that lead from one kernel to another, in order, in the ir's scratch memory. Raises
    TN_ERR_INTERNAL where these do not. */
law_steps law_log_steps(const law_log *log, const node *from, const node *to);

/** SPLIT: r = r₀·factor + r₁ in the STAGE or FOLD that binds it; r₀ and r₁ take its place, in this
    order. The inner extent is `factor` where that is shown to divide the extent, else
    min(factor, extent − r₀·factor). A single block needs no outer range: *outer is NULL then. Only
    a LOOP range is split: kinds come last. */
const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner);

/** OVERLAP: the same with blocks that are all whole: the last one begins where it ends with the
    range, r = min(r₀·factor, extent − factor) + r₁. What it has in common with the one before is
    computed, and written, twice alike: so the range is a STAGE's, which is no part of a FOLD and is
    not written to a buffer that the kernel reads; and factor ≤ extent must be provable. */
const node *law_overlap(laws *l, const node *sink, const node *range, int64_t factor,
                        const node **outer, const node **inner);

/** Whether it would apply. */
bool law_may_overlap(laws *l, const node *sink, const node *range, int64_t factor);

/** NEST: a FOLD over ranges … r, s … becomes one over … r of FOLDs over s …: where all its states
   are scalars with an op, and it emits nothing. `range` is r. */
const node *law_nest(laws *l, const node *sink, const node *range);

/** FLATTEN: a range of a STAGE or FOLD and the one just inside of it, whose extent X is a number,
    become one range p: the outer index is p div X, the inner p mod X. What a STAGE changes in place
    inside of the two must not be read where other indices of them write it. */
const node *law_flatten(laws *l, const node *sink, const node *range, const node **both);

/** UNIT: gives a STAGE a range of one index, outermost, which nothing depends on. */
const node *law_unit(laws *l, const node *sink, const node *stage, const node **unit);

/** ORDER: moves a range to a position in the STAGE or FOLD that binds it, 0 for the outermost. A
    FOLD's ranges are moved where all its states have an op and it emits nothing, a STAGE's where
    what it changes in place is not read where other indices of them write it. */
const node *law_order(laws *l, const node *sink, const node *range, size_t position);

/** DATA: what an expression over elements of PARAMs reads along the ranges `inner` is copied
   before, into an array of the box that they lead through from a base, with an axis more for each
   of them in which its indices are not affine. Factors are ≥ 0, extents are numbers, and conditions
   on indices lead along the others as the indices do. The dimension along `lanes` (NULL: any) is
   the array's last. `element` is the INDEX of the array that stands for it. Refused for a buffer
   that the kernel writes to. */
const node *law_data(laws *l, const node *sink, const node *what, const node *const inner[],
                     size_t n, const node *lanes, const node **element);

/** INTERCHANGE: the FOLD that binds `range`, of scalars and inside of the ranges `outer`, becomes
    one FOLD outside of them whose states are arrays over them: FOLD for each index = FOLD of all
    indices. The extents of `outer` are numbers, the FOLD depends on each of them, and nothing that
    it is inside of is inside of them. `own[i]` is what the FOLD's arrays are made over in the place
    of `outer[i]`, of the same kind where that is copies or lanes. */
const node *law_interchange(laws *l, const node *sink, const node *range, const node *const outer[],
                            size_t n, const node *own[]);

/** BATCH: INTERCHANGE of a FOLD that is no reduction of scalars: its states, scalars or arrays,
   become arrays with a dimension more, for all indices of `outer`, a LOOP. What its steps read and
   is built for one index is built for all of them at once in each of its iterations, as by HOIST;
   so steps share what they shared before. Its states start from scalars. */
const node *law_batch(laws *l, const node *sink, const node *range, const node *outer);

/** HOIST: a STAGE is built for all indices of a range that it is inside of at once, outside of it:
    `own` takes the place of `outer` in it, and is a first dimension of its arrays. The STAGE is
   read by its elements alone, the range is a LOOP whose extent is a number, and no range that the
   STAGE depends on is inside of it. */
const node *law_hoist(laws *l, const node *sink, const node *stage, const node *outer,
                      const node **own);

/** A point of a range: an index, or the largest multiple of `number` that is not beyond it. */
typedef struct law_point {
  int64_t number;
  bool is_multiple;
} law_point;

/** PARTITION: the indices of a range that are below a point in one nest, the others in a second
   one: two OUTs of an OUT's STAGE; two arrays of a STAGE that is read, which the range is a
   coordinate of; or two FOLDs, the second of which starts from what the first one made. 0 ≤ point ≤
   extent must be provable, and neither part known to be empty. `low` and `high` are the two ranges,
   of the same kind; that of lanes or copies is not parted, nor one of a buffer changed in place of
   which an index reads what others write. */
const node *law_partition(laws *l, const node *sink, const node *range, law_point point,
                          const node **low, const node **high);

/** PEEL: one step of a FOLD by itself, the first or the last. First: the FOLD of the others starts
    from what it makes, so that an array is not written only to be read back. Last: it is computed
    where the FOLD is read, or as an array. The FOLD has one range, at least one index, provably,
   and emits nothing. `rest`: the range of the others; NULL: there are none. */
const node *law_peel(laws *l, const node *sink, const node *range, bool last, const node **rest);

/** SINK: a STAGE or FOLD runs inside of a LOOP on which it does not depend, and in which all that
    reads it is. Refused where it reads a buffer that the kernel writes to. */
const node *law_sink(laws *l, const node *sink, const node *binder, const node *range);

/** UNGATE: an array that is read under the condition that the element is one of it, and else is a
    constant c, as where(0 ≤ e < n, S[e], c), gets the elements around it that these reads reach,
    with the value c, and is read without conditions. Its ranges are its coordinates, its extents
    numbers, and all that is read outside of it is read so, with one c. */
const node *law_ungate(laws *l, const node *sink, const node *stage);

/** KIND: gives a range its kind. UNROLL and VECTOR need a constant extent, a VECTOR a power of two,
    or what SPLIT made of a size that one does not divide: the last vector is cut short. It must be
    its STAGE's only one and neither inside nor around another, and no extent of a range or array
    inside may depend on it. A THREAD range must belong to an OUT's STAGE that nothing else reads,
    be the only one of its nest, and have elements of every value to each of its indices, but for
    such as blocks of OVERLAP write alike. Where the kernel changes a buffer in place, an index of
    a THREAD range, or of a VECTOR that is not the innermost, reads none that others write. */
const node *law_kind(laws *l, const node *sink, const node *range, range_kind kind,
                     const node **changed);

/** Raises TN_ERR_ARGUMENT for a kernel of which some nests go over threads and some do not: each
    worker would do those whole. */
void law_check_threads(diag *d, const node *sink);

/* What the laws share (common.c). */

/** The binder of a range below `sink`; NULL if there is none. */
const node *law_binder(laws *l, const node *sink, const node *range);

/** The OUT that writes a STAGE; NULL if none does. */
const node *law_out(const node *sink, const node *stage);

/** Why a law cannot put other arrays in the place of a STAGE's or FOLD's, in a kernel's nodes: the
    kernel writes them, or they are made where the FOLD is that starts from them or steps to them.
    NULL: their elements are all that is read. */
const char *law_reader_objection(const node_list *order, const node *binder);

/** Whether a node reads a buffer that the kernel writes to. */
bool law_reads_written(laws *l, const node *sink, const node *what);

/** Why n of a STAGE's ranges, from the first on, cannot be gone through in another order, or in
    parts: the STAGE is written to a buffer that it reads, and not in elements that each of their
    indices has to itself. NULL: they can. */
const char *law_in_place_objection(laws *l, const node *sink, const node *stage, size_t first,
                                   size_t n, bool parted);

/** The sink with one node replaced. */
const node *law_replace(laws *l, const node *sink, const node *what, const node *with);

/** A coordinate in which elements may be read that others stand for. Most have none: they are not
    paid for by how many stand for others. */
const node *law_coordinate(ir *g, const node *x, const map *with);

/** An expression whose elements of an array, or of the states of the FOLD with this innermost
   range, have n coordinates more, the first; they are those of `made`, NULL: of what they were of.
 */
const node *law_with_axes(ir *g, const node *root, const node *of, const node *made, size_t n,
                          const node *const first[]);

/** A STAGE below `root` built over all indices of a range that it depends on, `own`; and why that
    cannot be, as far as the STAGE itself says; NULL: it can. */
const node *hoist_over(ir *g, const node *root, const node *stage, const node *outer,
                       const node **own);
const char *hoist_objection(const node *stage, const node *outer);

/** Why what is computed cannot be for other indices of ranges than those it stands inside of: it
    reads a state that steps along one. NULL: it can. */
const char *law_state_objection(laws *l, const node *sink, const node *what,
                                const node *const along[], size_t n);

/** Whether what is computed is inside of a range whose extent depends on one of these. */
bool law_length_depends(const node *const ranges[], size_t n, const node *what);

/** Why a binder cannot come to stand outside of ranges that it is inside of: what it finds in the
    states of a fold around it, or inside of the ranges, is there for one index at a time. NULL: it
    can. */
const char *law_place_objection(laws *l, const node *sink, const node *binder,
                                const node *const outer[], size_t n);

/** A fold's source with STATE(from) named STATE(to). */
const node *state_renamed(ir *g, const node *n, const node *from, const node *to);

/** Whether one vector range runs inside another, or would if `range` (NULL: none) were one. Inside
   of a range are the ranges after it in its binder, and the binders in which one of these is free.
 */
bool law_nests_vectors(laws *l, const node *sink, const node *range);

/** The same; adds the ranges that are vectors or run inside of one, and the arrays
    of FOLDs there, as keys. */
bool law_inside_vectors(ir *g, const node *sink, const node *range, map *inside);

/** Adds, as keys, what a FOLD starts from and steps to: where these are arrays, they are made where
   it is, whatever they depend on. */
void law_fold_arrays(arena *a, const node *fold, map *inside);

/** What a law made of a kernel, noted in the log with its arguments and the ranges that it names.
 */
const node *law_made(laws *l, const node *from, const node *made, law which, const law_args *args,
                     const node *const principals[]);

/** expanded.c: how many nodes a kernel has once its UNROLL and VECTOR ranges are copies and lanes;
    with `all` ranges, about how many it computes in a run: sizes that vary are taken as small. */
double law_expanded_nodes(arena *a, const node *sink, bool all);

/** STAGEs without ranges, users before what they use: what s0, s1 … are. */
node_list law_scalars(laws *l, const node *sink);

/** data.c: expressions that DATA may copy, users before what they use: what e0, e1 … are. */
node_list law_expressions(laws *l, const node *sink);

/** Whether a node is one of a list. */
bool law_is_one_of(const node *const nodes[], size_t n, const node *what);

/** Whether a node depends on one of some ranges. */
bool law_depends(const node *const ranges[], size_t n, const node *what);

static inline int64_t law_id(const node *range) { return range->ints[0]; }

/** Refuses: keeps the reason, returns NULL. */
const node *law_refuse(laws *l, const char *why);

#endif
