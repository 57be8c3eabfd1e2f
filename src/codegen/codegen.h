/* Declares the passes of code generation, which turn a kernel graph (over binders, the IR's loop
   nodes) into a linear program. pipeline.c calls them in the order of this file; each takes and
   returns a SINK (a kernel's root), the last two return a LINEAR list of instructions. A pass that
   cannot go on raises through the IR's diag. */
#ifndef TENON_CODEGEN_CODEGEN_H
#define TENON_CODEGEN_CODEGEN_H

#include "codegen/decisions.h"
#include "ir/core/ir.h"
#include "ir/transform/rewrite.h"
#include "laws/laws.h"
#include "target/kernel_cost.h"
#include "target/target.h"

/** Callbacks that see the passes' results; each may be NULL, and may raise. */
typedef struct codegen_observer {
  void (*after)(void *user, const char *pass, const node *root);        /* after each pass */
  void (*after_choice)(void *user, const char *pass, const node *root); /* each step of choose */
  void (*tuned)(void *user);                         /* the options' decisions are used */
  void (*law)(void *user, const char *line);         /* each law of the chosen schedule, as text */
  void (*cost)(void *user, const kernel_cost *cost); /* the predicted cost of the kernel */
  void *user;
} codegen_observer;

/** The backend's own decompositions: the replacement of a node, of its type and lanes; NULL: leave
    it. May raise, or set a failure in the ir's diag and return NULL, which is then raised. */
typedef struct codegen_decomposer {
  const node *(*decompose)(void *user, ir *g, const node *n);
  void *user;
} codegen_decomposer;

typedef struct codegen_options {
  target target;
  int math;                       /* math_mode */
  codegen_observer observer;      /* zero: none */
  codegen_decomposer decomposer;  /* runs before the library's decompositions; zero: none */
  const decision_list *decisions; /* of the schedule, if the steps make exactly these; else, and for
                                     NULL, the search finds them */
  const decision_list *found;     /* what the search finds for this kernel; NULL: not known yet */
} codegen_options;

/** All passes: from a kernel (stage K) to PROGRAM(SINK, DEVICE, LINEAR). `device` is the device's
    name without an index. */
const node *codegen_run(ir *g, const node *sink, const char *device, const codegen_options *o);

/** lower/simplify.c: algebraic simplification. A kernel with its own schedule stays as it is. */
const node *codegen_simplify(ir *g, const node *sink, const codegen_options *o);

/** choose/auto_schedule.c: splits, kinds of ranges and staged copies, by laws; or the schedule that
    the kernel brings along. Raises TN_ERR_ARGUMENT where that cannot be applied. */
const node *codegen_choose(ir *g, const node *sink, const codegen_options *o);

/** choose/auto_schedule.c: the decisions that are made where the options ask for some, and the time
    that the search compares, in ns: for one thread and for all cores alike. False: no schedule is
   made with them. */
bool codegen_predict(ir *g, const node *sink, const codegen_options *o, decision_list *made,
                     double *ns);

/** The same in an ir that ends with the call; `m` is for its memory, the decisions are copied to
    `to`. False too: a step failed. Raises where memory runs out, a law is at fault, or
    the diag's condition stops it. */
bool codegen_predict_apart(const mem *m, const node *sink, const codegen_options *o, arena *to,
                           decision_list *made, double *ns);

/** lower/lower_binders.c: STAGE and FOLD become storage, stores and loops; stage K to stage L. */
const node *codegen_lower(ir *g, const node *sink);

/** lower/vector_scans.c: loops that step one register and store it, over vectors of their range. */
const node *codegen_vector_scans(ir *g, const node *sink, const codegen_options *o);

/** lower/expand_unroll_vector.c: UNROLL ranges become copies, VECTOR ranges vector ops. */
const node *codegen_expand(ir *g, const node *sink);

/** lower/register_promotion.c: small arrays with constant addresses become registers. */
const node *codegen_promote_registers(ir *g, const node *sink, const target *t);

/** lower/nontemporal_stores.c: marks stores of more bytes than the caches hold. */
const node *codegen_nontemporal_stores(ir *g, const node *sink, const target *t);

/** lower/prefetch.c: fetches rows and blocks of operands before they are used. */
const node *codegen_prefetch(ir *g, const node *sink, const target *t);

/** lower/parallel_loops.c: THREAD ranges become loops over a worker's share of the indices, which
    over the columns of scattered rows are the innermost ones (lower/interchange_scatter.c). */
const node *codegen_parallel_loops(ir *g, const node *sink, const target *t);

/** lower/split_copy_loops.c: index-set splitting of copy loops at their bounds checks. */
const node *codegen_split_copy_loops(ir *g, const node *sink);

/** lower/short_loops.c: gives innermost loops of few iterations the kind unroll, by which renderers
   ask the target's compiler to repeat their bodies. */
const node *codegen_short_loops(ir *g, const node *sink);

/** lower/decompose.c: replaces ops that the target has no instruction for. */
const node *codegen_decompose(ir *g, const node *sink, const codegen_options *o);

/** lower/index_width.c: index nodes get integer types of 32 or 64 bits. */
const node *codegen_index_width(ir *g, const node *sink, const target *t);

/** lower/copies_ahead.c: stores to arrays in slots that a worker need not wait for. */
const node *codegen_copies_ahead(ir *g, const node *sink, const target *t);

/** lower/linearise.c: the ordered instructions, as a LINEAR node. */
const node *codegen_linearise(ir *g, const node *sink);

/** lower/barriers.c: barriers of teams between accesses to memory that they share, in a LINEAR. */
const node *codegen_barriers(ir *g, const node *linear);

#endif
