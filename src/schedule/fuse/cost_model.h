/* Cost model of fusion: estimates nanoseconds, on a machine whose cores all work, for arithmetic,
   for memory traffic by cache level, and for starting a kernel; and declares the facts of each
   value that these estimates depend on. */
#ifndef TENON_SCHEDULE_FUSE_COST_MODEL_H
#define TENON_SCHEDULE_FUSE_COST_MODEL_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/value.h"

/** ns for a byte of a core's own scratch array of so many bytes, and of an array that all cores
 * read.
 */
double cost_per_private_byte(const machine *m, double bytes);
double cost_per_shared_byte(const machine *m, double bytes);

/** An operand, read again for each index of the reader that it does not depend on. */
typedef struct operand {
  double bytes;
  uint64_t
      coords; /* mask of the reader's coordinates that it depends on; then of its reduced ranges */
} operand;

/** Instructions of a kernel: once for all lanes of a vector, and for each lane. */
typedef struct code {
  double once, each;
} code;

static inline code code_add(code a, code b) { return (code){a.once + b.once, a.each + b.each}; }
static inline code code_subtract(code a, code b) {
  return (code){a.once - b.once, a.each - b.each};
}
static inline double code_for_lanes(code c, double lanes) { return c.once + c.each * lanes; }

enum { MOST_OPERANDS = 4 };

typedef struct operands {
  operand at[MOST_OPERANDS]; /* the largest ones, in falling order of bytes */
  size_t n;
} operands;

/** Cost of computing a value, its inlined operands included. */
typedef struct value_cost {
  double work;   /* ns on one core */
  double again;  /* ns for all of it once more, on all cores */
  double reload; /* ns for operands loaded the first time it is recomputed */
} value_cost;

typedef struct value_operands {
  operands own;    /* of an element, through elementwise values */
  operands behind; /* of the reductions behind an element */
} value_operands;

/** Instructions of an element or term. */
typedef struct value_code {
  code own;      /* without its reads */
  code reads[2]; /* of its reads: inside all bounds; where it may be outside */
  code whole;    /* with all operands that are not kept, as a tree */
  code distinct; /* the same with each element once; group_reads.c counts it where that decides */
  code free;     /* all its instructions, if they are few and read no array; else 0 */
} value_code;

/** Instructions of register tiles, which are bounded by registers, not by what is added up. */
typedef struct value_tiles {
  double own;  /* of its loop, if it is a contraction; else 0 */
  double next; /* of the first contractions behind it */
  double path; /* of all on the longest path behind it and itself, up to kept values */
} value_tiles;

/** Estimated sizes. */
typedef struct value_size {
  double points; /* elements */
  double bytes;
  double reach; /* number of parts that can be computed in parallel */
} value_size;

/** Reduction levels: reductions on the longest path from the inputs. */
typedef struct value_levels {
  size_t own;    /* of the value, itself included */
  size_t *under; /* of each read: that of the values that its indices are computed from */
} value_levels;

typedef struct value_facts {
  value_size size;
  value_cost cost;
  value_levels level;
  const node *lead; /* its leading input: the PARAM reached through first operands */
  size_t readers;   /* values that read it */
  bool is_term;     /* a reduction reads it, to fewer elements: computed there */
  bool is_kept;     /* in memory, as far as costs know: an input to its readers */
  value_operands operands;
  int64_t *blocks; /* of each axis: number of consecutive indices that share a computed operand; 1:
                      none do */
  value_code code;
  value_tiles tiles;
} value_facts;

/** True for a contraction, a reduction of several operands; its facts are measured. */
static inline bool value_is_contraction(const value *v) {
  return value_is_reduction(v) && v->facts->operands.own.n > 1;
}

/** The facts of all values, from inputs to outputs, in the ir's scratch arena. */
void cost_model_measure(ir *g, const machine *m, const values *v);

/** Elements of a type in a vector; floats are computed in 32 bits at least. */
double cost_vector_lanes(const machine *m, dtype t);

/** Instructions of reading an element of a tensor. An element that may be outside, or whose index
   is more than a sum of ranges, is loaded lane by lane; a free value is computed. */
code cost_read_code(ir *g, const values *v, const node *index);

/** ns if so many groups compute a value, beyond computing it once. */
double cost_recompute(const value *v, size_t groups);

/** ns of loading all of a value from memory, by all cores together. */
double cost_load(const machine *m, const value *v);

#endif
