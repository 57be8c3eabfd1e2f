/* What things cost, in nanoseconds on a machine whose cores all work: arithmetic, memory by how far
   away it is, and the start of a kernel. Facts of a value that its price depends on. */
#ifndef TENON_SCHEDULE_PRICES_H
#define TENON_SCHEDULE_PRICES_H

#include "schedule/values.h"

/** What prices depend on of a machine. */
typedef struct machine {
  double cores;     /* that work on one kernel */
  double operation; /* ns of one core for an elementwise operation, in vectors */
  double tile;      /* how many times as long a contraction takes without register tiles */
  double launch;    /* ns to start a kernel on all cores */
  double scratch;   /* bytes that a kernel may have of its own */
  double cache[2];  /* bytes of a core's own caches */
  double shared;    /* bytes of the last cache */
  double vector;    /* bytes of a vector; 0: there are none */
} machine;

/** ns a byte: of a core's own scratch of so many bytes; of an array that all cores read. */
double price_private(const machine *m, double bytes);
double price_shared(const machine *m, double bytes);

/** An operand that a value reads again for each index that it does not depend on. */
typedef struct operand {
  double bytes;
  uint64_t coords; /* those of the reader it depends on: its own, then those it reduces over */
} operand;

/** Instructions of a kernel: those for all lanes of a vector at once, and those for each lane. */
typedef struct code {
  double once, each;
} code;

static inline code code_sum(code a, code b) { return (code){a.once + b.once, a.each + b.each}; }
static inline code code_less(code a, code b) { return (code){a.once - b.once, a.each - b.each}; }
static inline double code_in(code c, double lanes) { return c.once + c.each * lanes; }

enum { MOST_OPERANDS = 4 };

typedef struct operands {
  operand at[MOST_OPERANDS]; /* the largest ones */
  size_t n;
} operands;

typedef struct value_facts {
  double points; /* elements */
  double bytes;
  double work;         /* ns on one core: its own and what follows it into a serial place */
  double again;        /* ns for having all of it once more; */
  double reload;       /* and for what its first reader loads then, as it is kept for the others */
  double reach;        /* how many parts of it can be computed at once */
  size_t level;        /* reductions on the longest way from the inputs to it, itself included */
  const size_t *under; /* of each read: the level of what its indices are computed from */
  const node *lead;    /* the PARAM that it reads first, through its first operands */
  size_t readers;      /* values that read it */
  bool is_term;        /* a reduction makes fewer elements of it: it is computed there */
  bool is_kept;        /* in memory whoever asks, as far as prices know: a leaf to its readers */
  operands factors;    /* what an element reads: of a product its factors */
  operands reduced;    /* what the reductions behind an element read */
  const int64_t *blocks; /* of each axis: of so many indices for which something is the same that
                            is computed for it; 1: there is no such thing */
  code own;              /* for an element or a term, without what it reads; */
  code reads[2];         /* that: where its own element is certainly there, and elsewhere */
  code whole;            /* that, with all that is behind it and not kept, as a tree */
  double tile;  /* instructions of a contraction's loop, whatever else is added up there; */
  double next;  /* of that of the first contractions behind it; */
  double tiles; /* and of all of them, one behind another: none that is kept */
  code free;    /* of a value that little code computes from no array: all of it; else 0 */
} value_facts;

/** The facts of all values, from inputs to outputs. */
void schedule_facts(ir *g, const machine *m, const values *v);

/** About how much an index expression is; a size that varies counts as a typical one. */
double price_size(const node *size);

/** Elements of a type in a vector; floats are computed in 32 bits at least. */
double price_lanes(const machine *m, dtype t);

/** What reading an element of a tensor takes. One that may be outside, or whose place is computed
    from more than sums of ranges, is loaded lane by lane; what is free is computed. */
code price_read(ir *g, const values *v, const node *index);

/** What it takes that so many groups compute a value, beyond computing it once. */
double price_computed_in(const value *v, size_t groups);

/** Loading all of a value from memory, by all cores together. */
double price_load(const machine *m, const value *v);

/** parts.c: reductions of much to less than there are cores, in parts, where `math` (a math_mode)
    allows that. */
void schedule_parts(ir *g, const machine *m, int math, normalised *n, size_t n_labels);

#endif
