/* Values: what a schedule decides about. A value is a node of the normalised graph that is no mere
   movement of another. Its element at its own coordinates is one scalar expression, the body, over
   elements INDEX(tensor; e …) of PARAMs and of other values: movements are in the indices. A
   reduction's body is the term that is reduced, over its coordinates and its own ranges. */
#ifndef TENON_SCHEDULE_VALUES_H
#define TENON_SCHEDULE_VALUES_H

#include "schedule/passes.h"

struct machine; /* prices.h */

/** An array that must hold a value: that of its own tensor, or the one that a SET changes. */
typedef struct value_store {
  const node *array;         /* the tensor, or the SET */
  const node *const *coords; /* where in the array, over the value's coordinates */
  size_t rank;
} value_store;

/** What a value is that is carried through a loop over blocks: several states, which all step once
   a block, from the states and from values for that block. Its elements are read as INDEX(tensor;
   coordinates of the value …, coordinates of the state …) {state}. */
typedef struct value_scan {
  size_t n; /* states */
  struct scan_state {
    const node *init, *step; /* step: over STATE(the value's only reduced range) {state} */
    size_t rank;             /* of its array; 0: a scalar */
    const node *const *dims;
    const node *const *coords;
  } * state;
} value_scan;

/** What a group must keep room for, for a value that it computes later. */
typedef struct value_room {
  size_t nests, ranges, arguments;
  double scratch; /* bytes */
} value_room;

typedef struct value {
  const node *tensor;
  size_t rank;
  const node *const *dims;
  const node *const *coords; /* a RANGE each; 0 where the size is 1 */
  const node *body;          /* NULL: a CUSTOM, KERNEL or RESULT, which read whole arrays */
  op reduce;                 /* by what the body is reduced; OP_LIMIT: it is not */
  size_t n_reduced;
  const node *const *reduced;  /* the RANGEs it is reduced over; never none */
  node_list reads;             /* the INDEX nodes in the body, each once */
  node_list sources;           /* the tensors of which these are elements, each once */
  node_list arrays;            /* what must be in memory before it as a whole */
  VEC(value_store) stores;     /* where it must be written, whatever is decided */
  bool only_loaded;            /* its readers load it, never compute it again */
  bool has_places;             /* it depends on where an element is: schedule_has_places */
  const value_scan *scan;      /* it is carried through a loop; NULL: it is not */
  bool is_inside;              /* it depends on states of a scan: only computed in its loop; */
  bool is_array;               /* in a kernel best an array of the axes `array`: of none, for one */
  uint64_t array;              /* element at a time, which then is built for blocks of them */
  value_room room;             /* of what is computed wherever it is read */
  bool is_cut;                 /* it is written instead of what it is computed from (cuts.c) */
  bool was_written;            /* the search before wrote it, and nothing instead */
  size_t position;             /* in `values` */
  struct value_facts *facts;   /* prices.c */
  struct value_places *places; /* grouping.c */
} value;

typedef struct values {
  VEC(value *) at; /* each after what it reads, and after all readers of what it stores over */
  map of;          /* tensor → value; a SET that is a store of another value is that value's */
  map overwriter;  /* array (PARAM or tensor) → the value that is stored over it */
} values;

/** Finds the values of a graph and their order. A SET whose old contents are needed after it gets
    a copy of them made first: `in` is changed then. `math`: a math_mode; `m`: the machine for which
    law_groups.h is applied, or NULL: it is not. */
void schedule_values(ir *g, int math, const struct machine *m, normalised *in, values *out);

/** value_order.c: puts values into an order that respects every dependence, and gives them their
    positions. SETs for which there is none, because their old contents are needed after them, are
    added to `conflicts`. */
void values_order(ir *g, values *v, node_list *conflicts);

/** A new value of a type and size, named by an op; what it is is still to be set. */
value *value_make(ir *g, values *v, op named, dtype t, size_t rank, const node *const dims[]);

/** Sets or changes what an element of a value is, or a term of it: over elements of PARAMs and of
    values that are known. */
void value_set_body(ir *g, const values *v, value *x, const node *body);

/** Whether a value is computed wherever it is read, and never in memory. */
static inline bool value_is_bound(const value *v) { return v->scan || v->is_inside; }

/** Whether a value is reduced from a body. */
static inline bool value_is_reduction(const value *v) { return v->reduce != OP_LIMIT; }

/** The store of a value over an array, or NULL. */
const value_store *value_store_over(const value *v, const node *array);

/** labels.c: the names of a schedule's steps. */
void schedule_name_steps(arena *a, const schedule_request *r, const normalised *n, const values *v,
                         schedule *s);

#endif
