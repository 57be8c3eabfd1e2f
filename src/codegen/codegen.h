/* From a kernel graph to a linear program. The passes, in the order in which codegen_run calls
   them; each takes and returns a SINK, the last returns a PROGRAM. */
#ifndef TENON_CODEGEN_CODEGEN_H
#define TENON_CODEGEN_CODEGEN_H

#include "codegen/target.h"
#include "ir/ir.h"
#include "ir/rewrite.h"
#include "laws/laws.h"

/** Called after each pass with its name and result, and for each law that choose applies; may
    raise. Either may be NULL. */
typedef struct codegen_watch {
  void (*after)(void *user, const char *pass, const node *root);
  void (*law)(void *user, const char *line);
  void *user;
} codegen_watch;

/** The target's own decompositions: what stands for a node, of its type and lanes; NULL: leave it.
    May raise, or leave a failure in the ir's diag when it returns NULL, which is then raised. */
typedef struct codegen_decomposer {
  const node *(*decompose)(void *user, ir *g, const node *n);
  void *user;
} codegen_decomposer;

typedef struct codegen_options {
  target target;
  int math;                 /* math_mode */
  codegen_watch watch;      /* NULL members: nobody watches */
  codegen_decomposer first; /* before the library's decompositions; decompose == NULL: none */
} codegen_options;

/** All passes: a kernel (stage K) to PROGRAM(SINK, DEVICE, LINEAR). `device` is the base key. */
const node *codegen_run(ir *g, const node *sink, const char *device, const codegen_options *o);

/** choose.c: kinds of ranges and splits, from the target and the kernel alone, or by the schedule
    that the kernel brings along, which may be refused. */
const node *codegen_choose(ir *g, const node *sink, const codegen_options *o);

/** sums.c: what choose does where a reduction has no order: long sums become sums of blocks. */
const node *codegen_sums(laws *l, const node *sink);

/** simplify.c: algebra, and the target's lack of instructions. */
const node *codegen_simplify(ir *g, const node *sink, const codegen_options *o);
const node *codegen_decompose(ir *g, const node *sink, const codegen_options *o);

/** lower.c: binders become storage, stores and loops; K → L. */
const node *codegen_lower(ir *g, const node *sink);

/** expand.c: UNROLL ranges become copies, VECTOR ranges lanes. */
const node *codegen_expand(ir *g, const node *sink);

/** registers.c: small arrays whose addresses are constant become registers. */
const node *codegen_registers(ir *g, const node *sink, const target *t);

/** streams.c: stores of more than the caches keep are marked to go past them. */
const node *codegen_streams(ir *g, const node *sink, const target *t);

/** prefetch.c: loads of rows that are read again are marked to fetch the next row. */
const node *codegen_prefetch(ir *g, const node *sink, const target *t);

/** threads.c: THREAD ranges become loops over a worker's share, from core_id and core_count. */
const node *codegen_threads(ir *g, const node *sink, const target *t);

/** edges.c: loops that copy and compare their index with bounds are parted there. */
const node *codegen_edges(ir *g, const node *sink);

/** index_width.c: every index node gets an integer type of 32 or 64 bits. */
const node *codegen_index_width(ir *g, const node *sink, const target *t);

/** linearise.c: the LINEAR list of a lowered graph. */
const node *codegen_linearise(ir *g, const node *sink);

#endif
