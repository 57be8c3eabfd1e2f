/* Internal header of the automatic scheduler: the state, steps and helpers that its source files
   share. Each step (choice) applies laws, loop transformations of a kernel, where they are legal
   and gain by an estimate; auto_schedule.c lists the steps in order. */
#ifndef TENON_CODEGEN_CHOOSE_CHOICE_H
#define TENON_CODEGEN_CHOOSE_CHOICE_H

#include "base/map.h"
#include "codegen/decisions.h"
#include "ir/core/pass_names.h"
#include "ir/core/topo_sort.h"
#include "laws/laws.h"
#include "target/kernel_cost.h"
#include "target/target.h"

/** A kernel while its schedule is chosen. */
typedef struct choice {
  laws laws;
  const target *target;
  int math;              /* math_mode */
  const node *sink;      /* the kernel after the laws applied so far */
  map vector_remainders; /* ranges of open size that vectors leave over: not vectorised again */
  decision_list made;    /* by the steps so far, in their order */
  decision_list wanted;  /* that the search asks for; others are the steps' own */
} choice;

/** schedule_search.c: the decisions for a kernel that the cost model prefers. */
decision_list choice_search(const choice *c);

/** schedule_search.c: the decisions that the steps make where others are asked for, and the time
    that they are predicted to give, in ns. Nothing else remains of the attempt. False: the steps
    failed. */
bool choice_try(const choice *c, const decision_list *wanted, decision_list *made, double *ns);

/* The steps. */

enum { CHOICE_STEPS = 17 }; /* as many as auto_schedule.c lists */

typedef struct choice_step {
  pass name;
  void (*apply)(choice *c);
} choice_step;

/** auto_schedule.c: the steps in order. */
extern const choice_step choice_steps[];

/** index_set_split.c: a nest for each part of a concatenation. */
void choose_index_set_split(choice *c);

/** sink_folds.c: FOLDs inside of the loops that store their arrays, where these are large. */
void choose_sink_folds(choice *c);

/** flatten_loops.c: one range for two that are contiguous in memory. */
void choose_flatten_loops(choice *c);

/** array_expansion.c: arrays for a block of indices at once, whose reductions share operands. */
void choose_array_expansion(choice *c);

/** transpose_tiles.c: cache-blocked transposes. */
void choose_transpose_tiles(choice *c);

/** interleaved_streams.c: memory-bound nests alternate between two streams of pages. */
void choose_interleaved_streams(choice *c);

/** vectorise.c: a range of each nest in vector lanes, where the cost estimate gains. */
void choose_vectorise(choice *c);

/** blocked_sums.c: long floating-point sums as sums of blocks, where the math mode allows it. */
void choose_blocked_sums(choice *c);

/** tensor_tiles.c: blocks of products of small types, as tiles of tensor_rows.def. */
void choose_tensor_tiles(choice *c);

/** register_tiles.c: blocks of results that share operands, one register each. */
void choose_register_tiles(choice *c);

/** loop_order.c: which operand of a register tile stays in a near cache. */
void choose_loop_order(choice *c);

/** padded_tiles.c: windows copied with their padding, read without bounds checks. */
void choose_padded_tiles(choice *c);

/** packing.c: operands that are scattered or far away, copied contiguously. */
void choose_packing(choice *c);

/** row_pitch.c: arrays whose rows would compete for few sets of the first cache. */
void choose_row_pitch(choice *c);

/** unroll_and_jam.c: copies and lanes around a reduction, moved inside of its loop. */
void choose_unroll_and_jam(choice *c);

/** epilogue_loops.c: large epilogues of tiles as loops instead of copies. */
void choose_epilogue_loops(choice *c);

/** parallelise.c: a range of each nest divided among threads, where there is enough work. */
void choose_parallelise(choice *c);

/** teams.c: the schedule for a target with teams of workers, in place of all steps. */
void choose_teams(choice *c);

/* Vectors of one range. */

/** vectorise_range.c: vectorises a range of a STAGE, by an overlapping last vector where that is
   legal, else by ever narrower vectors for the remainder. */
void choice_vectorise_range(choice *c, const node *range, int64_t lanes);

/** vectorise_range.c: the widest vectors, of at most these lanes, that a range of open size likely
    fills. */
int64_t choice_fit_lanes(const node *range, int64_t lanes);

/* Estimates of one step that an earlier one needs. */

/** choice.c: the range of a STAGE along which it stores a scan whose axis the lowering puts in
    lanes; NULL: none. Lanes along other ranges, which would read and store scattered elements, and
    copies with padding, which it does not need, stay away from it; threads cannot divide it. */
const node *choice_scanned_range(const choice *c, const node *stage);

/** packing.c: true if an INDEX in a stage's nest will be packed once `cut` indices of the stage's
    loops form a tile. */
bool choice_is_packed(const choice *c, const node *stage, const node *index, double cut);

/** padded_tiles.c: adds, as keys of `gone`, the bounds checks and selects of a stage's nest that
    disappear once its windows are padded. */
void choice_padded_conditions(const choice *c, const node *stage, map *gone);

/** packing.c: reads of each element of an operand's copy, if it is packed for vectors of some lanes
   along a range that it depends on; 0: it would be too large, or read too seldom. */
double choice_reuse_if_packed(const choice *c, const node *stage, const node *index, int64_t lanes);

/** tensor_tiles.c: true for a FOLD of the terms of a tile, which stays inside of the tile's sums.
 */
bool choice_is_tile_terms(const node *fold);

/** tensor_tiles.c: the copies that are the rows of a tile whose sums are inside of a FOLD; NULL:
    there is none. */
const node *choice_tile_rows(const choice *c, const node *fold);

/** tensor_tiles.c: moves copies and lanes inside of a FOLD of a tile's sums, as unroll_and_jam.c
    does, and makes the rows and lanes sides of the tile. */
bool choice_jam_tile(choice *c, const node *fold, const node *rows);

/** tensor_tiles.c: the kernel with loops in place of tiles that a target has no instruction for. */
const node *choice_loops_for_tiles(ir *g, const node *sink, const rule_target *t);

/* choice.c: helpers. */

/** The alternative that a step takes, of `n` > 0. */
size_t choice_decide(choice *c, decision_kind kind, size_t n);

/** Takes a kernel that a law made; false: it refused (NULL), and the kernel stays. */
bool choice_take(choice *c, const node *made);

/** The predicted cost of a kernel. */
kernel_cost choice_cost(const choice *c);

/** True if the kernel has so many nodes (LAW_MOST_NODES) that nothing more is split. */
bool choice_at_node_limit(const choice *c);

/** True if a STAGE is an output of the kernel, not an array that it reads. */
bool choice_is_out(const choice *c, const node *stage);

/** The STAGEs and FOLDs of the kernel, outer ones first. */
node_list choice_binders(const choice *c);

/** Upper bound of the bytes of the kernel's own arrays. */
double choice_array_bytes(const choice *c);

/** True if a nest in vectors along a range is bound by memory bandwidth: the last-level caches do
   not hold its operands, and its arithmetic intensity is low. */
bool choice_is_memory_bound(const choice *c, const node_list *nest, const node *range);

/** Moves the loops of a stage that `what` depends on outside of the others, but not outside of the
    first `fixed` ranges. */
void choice_interchange_outward(choice *c, const node *stage, const node *what, size_t fixed);

/** Partitions a range so that `factor` divides the extent of `*whole`; `*rest` is the remainder,
    NULL if there is none. False: the partition is not legal, or one part would be empty. */
bool choice_split_remainder(choice *c, const node *range, int64_t factor, const node **whole,
                            const node **rest);

/** A kernel with a range in blocks of `size`, of which the last overlaps the one before where that
   is legal; `inner` is the range within a block. NULL: a law refused. */
const node *choice_tile_range(choice *c, const node *sink, const node *range, int64_t size,
                              const node **inner);

#endif
