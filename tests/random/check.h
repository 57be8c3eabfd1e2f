/* Differential check of one tensor graph against the reference evaluator: runs the graph through
   every pass of the compiler, executes each intermediate form with the interpreter of its level,
   and compares the results with the expected values (expect.h) or, bit by bit, with those of the
   pass before. */
#ifndef TENON_TESTS_RANDOM_CHECK_H
#define TENON_TESTS_RANDOM_CHECK_H

#include "expect.h"
#include "target/target.h"

/** How a check went. */
typedef struct report {
  bool failed;
  char stage[64];
  char text[3072];
} report;

/** Where `stage` of `r` is what is going on. */
void report_stage(report *r, const char *format, ...) BASE_PRINTF(2, 3);
void report_fail(report *r, const char *format, ...) BASE_PRINTF(2, 3);

/** Says that an element differs. */
void report_element(report *r, const char *what, size_t element, dtype t, uint64_t want,
                    uint64_t got);

/** Expected values of the roots against data; false and a report if they differ. */
bool check_roots(report *r, const graph *g, const expected *e, void *const data[]);

/** Runs `g`, which is prepared, through every stage:

    expected      interp_tensor on the graph as it is (expect.h)
    normalise, versions      interp_tensor; as expected
    kernels       each step's kernel by interp_kernel; outputs as expected
    simplify … linearise     with a target that lacks nothing: each by its interpreter (lowered
                  graphs are linearised first), for each step: the same bits as the stage before,
                  but where a rule has a licence (a power; fma and sums by the math mode); the
                  linear program also for 2 and 3 workers
    decompose … linearise    with `lowered`, what a real target lacks: the same bits as the
                  stage before from `decompose` on; outputs as expected

    grouping …    every value in memory, and a random choice of legal places: outputs as expected
    random schedule: …       some random laws on the kernel: the same bits at every stage

    Every stage is verified, and no kernel has more memory of its own than `lowered` allows. Buffers
    are filled with garbage outside their lifetimes; inputs that may not be written must not be.
    Returns what its roots must be, in its arena, or NULL. */
const expected *check_graph(const graph *g, const target *lowered, report *r);

/** Only what check_graph does last: the linear programs of a real target, one after the other.
    results[i] becomes the contents of root i, in the graph's arena, compared with `e`. */
void check_programs(const graph *g, const target *lowered, const expected *e, void *results[],
                    report *r);

/** Laws that random schedules applied so far. */
extern size_t check_laws_applied;

#endif
