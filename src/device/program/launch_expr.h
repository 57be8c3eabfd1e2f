/* Launch expressions: grid sizes and buffer sizes as functions of a launch's values (dynamic sizes
   and other variables). An expression is compiled once from index nodes to a list of terms, and
   evaluated at each launch without allocating. */
#ifndef TENON_DEVICE_PROGRAM_LAUNCH_EXPR_H
#define TENON_DEVICE_PROGRAM_LAUNCH_EXPR_H

#include "base/serialise.h"
#include "base/vec.h"
#include "ir/core/ir.h"

typedef struct launch_term launch_term;

/** Compiled expressions: a list of terms, of which some are the results. */
typedef struct launch_exprs {
  const launch_term *terms; /* in evaluation order */
  size_t n_terms;
  size_t n_results;
  const uint32_t *results; /* the index of each result's term */
} launch_exprs;

/** A buffer of a kernel. */
typedef struct launch_operand {
  bool is_stored;         /* the kernel writes it */
  uint32_t element, rank; /* bytes of an element, and number of sizes; 0: not known */
} launch_operand;

/** Limits of a kernel's launches, against which launches from a plan on disk are checked. */
typedef struct launch_limits {
  const launch_operand *arrays; /* each buffer */
  const int64_t *bounds;        /* of each value: the least and the most, inclusive */
  launch_exprs dims;            /* the sizes of all buffers, computed from the values */
} launch_limits;

/** Compiles expressions over CONST, VAR, ADD, SUB, MUL, AFFINE, FLOORDIV, CDIV, MOD, CMOD, MAX,
   MIN, NEG, ABS, NOT, AND, OR, XOR, LT, LE, EQ, NE, WHERE, CAST and BITCAST of index, integer and
   bool types. `names` are the sorted names of the
   values that launch_exprs_eval gets; a VAR of another name, a float constant, and any other op
   raise TN_ERR_ARGUMENT through the arena's diag. NULL in `exprs` is 1. */
launch_exprs launch_exprs_compile(arena *a, const node *const exprs[], size_t n,
                                  const char *const names[], size_t n_names);

/** Compiles the grid sizes of a launch, as launch_exprs_compile, global ones first; local[0] ==
   NULL: there are no groups. More than LAUNCH_MOST_TERMS terms raise TN_ERR_UNSUPPORTED. */
enum { LAUNCH_MOST_TERMS = 256 };
launch_exprs launch_grid_compile(arena *a, const node *const global[3], const node *const local[3],
                                 const char *const names[], size_t n_names);

/** A copy in a block of launch_exprs_bytes bytes, a multiple of 8; `names` are equal to those it
   was compiled with, and outlive the copy. */
size_t launch_exprs_bytes(const launch_exprs *c);
launch_exprs launch_exprs_copy(const launch_exprs *c, void *block, const char *const names[]);

/** Serialises compiled expressions, and reads them back into an arena; `names` are those they were
    compiled with. Reading fails unless launch_exprs_compile, or for grid sizes launch_grid_compile,
    can have made them. */
void launch_exprs_write(const launch_exprs *c, str *to);
launch_exprs launch_exprs_read(deserialiser *r, arena *a, const char *const names[],
                               size_t n_names);
launch_exprs launch_grid_read(deserialiser *r, arena *a, const char *const names[], size_t n_names);

/** Computes the results; `term_results` has room for n_terms numbers. A value outside its VAR's
    bounds, overflow, division by zero and a value that does not fit its type are TN_ERR_ARGUMENT,
    each with its message. */
tn_status launch_exprs_eval(const launch_exprs *c, const int64_t values[], int64_t term_results[],
                            int64_t results[], diag *d);

/** Results of terms of which some have no value, because they or what they are computed from cannot
    be computed. A product has the value 0 if a factor is 0, whatever the other one is. */
typedef struct launch_terms {
  int64_t *results;
  bool *fails; /* there is no value */
} launch_terms;

/** Allocates room for n terms. */
launch_terms launch_terms_open(arena *a, size_t n);

/** Evaluates n terms, listed each after those that it is computed from; NULL lists the first n. */
void launch_terms_eval(launch_terms *t, const launch_exprs *c, const size_t terms[], size_t n,
                       const int64_t values[]);

/** The value of a result; LAUNCH_NO_VALUE if there is none. */
#define LAUNCH_NO_VALUE INT64_MIN
static inline int64_t launch_terms_result(const launch_terms *t, const launch_exprs *c, size_t i) {
  return t->fails[c->results[i]] ? LAUNCH_NO_VALUE : t->results[c->results[i]];
}

/** Says why a result has no value, as launch_exprs_eval does. */
tn_status launch_terms_refuse(const launch_terms *t, const launch_exprs *c, size_t result,
                              const int64_t values[], diag *d);

/** A term, in a list of those that are computed from one thing. */
typedef struct launch_reader {
  uint32_t term, before; /* before: 1 + the index of the reader before it; 0: none */
} launch_reader;

/** The order in which terms become known, while values become known one by one. */
typedef struct launch_order {
  const launch_exprs *exprs;
  size_t *terms; /* those that are known */
  size_t n;
  bool *is_known;        /* of each term */
  uint32_t *n_unknown;   /* of each term: how often it mentions what is not known */
  uint32_t *last_reader; /* of each term, then of each value; as launch_reader.before */
  VEC(launch_reader) readers;
} launch_order;

/** Lists the terms that are known while the values with `is_late` are not. */
launch_order launch_order_open(arena *a, const launch_exprs *c, const bool is_late[],
                               size_t n_values);

/** Adds the terms that become known with a value; takes time for these alone. */
void launch_order_know(launch_order *o, size_t value);

/** Computes grid sizes, without allocating; local sizes are 0 if there are no groups. A size that
   is not positive is TN_ERR_ARGUMENT too. */
tn_status launch_grid_eval(const launch_exprs *c, const int64_t values[], int64_t global[3],
                           int64_t local[3], diag *d);

#endif
