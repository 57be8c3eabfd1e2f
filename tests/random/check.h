/* Differential check of one tensor graph against the reference evaluator: runs the graph through
   every pass of the compiler, executes each intermediate form with the interpreter of its level,
   and compares the results with the expected values (expect.h) or, bit by bit, with those of the
   pass before. */
#ifndef TENON_TESTS_RANDOM_CHECK_H
#define TENON_TESTS_RANDOM_CHECK_H

#include "expect.h"
#include "target/target.h"

/** Result of a check. */
typedef struct report {
  bool failed;
  char stage[64];
  char text[3072];
} report;

/** Sets the stage that a failure is reported for. */
void report_stage(report *r, const char *format, ...) BASE_PRINTF(2, 3);
void report_fail(report *r, const char *format, ...) BASE_PRINTF(2, 3);

/** Reports a differing element. */
void report_element(report *r, const char *what, size_t element, dtype t, uint64_t want,
                    uint64_t got);

/** Compares the roots' data with the expected values; false and a report if they differ. */
bool check_roots(report *r, const graph *g, const expected *e, void *const data[]);

/** Runs `g`, which is prepared, through every stage:

        stage                   run by                        compared with
        as generated            interp_tensor                 expected values (expect.h)
        normalise, versions     interp_tensor                 expected values
        kernels                 interp_kernel, step by step   outputs: expected values
        simplify … linearise    each stage's interpreter      bits of the stage before
        decompose … linearise   the same, with `lowered`      bits of the stage before from
                                                              decompose on; outputs: expected values
        grouping …              all values in memory, each    outputs: expected values
                                array with a buffer of its
                                own, and random legal places
        random schedule: …      some random laws              bits, at every stage

    The first simplify … linearise is for a target that lacks nothing; lowered graphs are linearised
    first, and the linear program also runs with 2 and 3 workers. Bits may differ where a rule is
    inexact (powers; fma and sums by the math mode). Every stage is verified, and no kernel has more
    memory of its own than `lowered` allows. Buffers hold garbage outside of their lifetimes;
    read-only inputs must not change. Returns the roots' expected values, in the graph's arena, or
    NULL. */
const expected *check_graph(const graph *g, const target *lowered, report *r);

/** Does the last part of check_graph: runs the linear programs of a real target in order.
    results[i] becomes the contents of root i, in the graph's arena, compared with `e`. */
void check_programs(const graph *g, const target *lowered, const expected *e, void *results[],
                    report *r);

/** Number of laws that random schedules applied so far. */
extern size_t check_laws_applied, check_team_laws_applied;

/** Number of arrays that schedules placed inside of others so far: as costs decide; at random. */
extern size_t check_places_by_cost, check_places_at_random;
/** Of random schedules for teams: arrays in slots of a worker, shared ones, and stores that copy
    ahead. */
extern size_t check_slots_private, check_slots_shared, check_copies_ahead;

/** Steps that guards skipped. */
extern size_t check_skipped_steps;

/** Number of kernels with the op of each row of tensor_rows.def so far. */
extern size_t check_rows_applied[TENSOR_ROWS];

#endif
