/* Internal header of the interpreter of tensor graphs: a run with the values of its nodes, and the
   functions that compute the values of each kind of op. All raise. */
#ifndef TENON_IR_INTERP_TENSOR_RUN_H
#define TENON_IR_INTERP_TENSOR_RUN_H

#include "base/map.h"
#include "ir/core/guard.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/element_rows.h"
#include "ir/interp/strided.h"

/** The memory of a computed array, which the values that movements make of it share. */
typedef struct elements {
  size_t bytes, users;
  _Alignas(16) char at[];
} elements;

/** The array of a node. No array changes after the node that computes it has run. */
typedef struct value {
  strided a;
  elements *memory; /* NULL: the caller's */
} value;

/** The nodes of the graph; lists are by position in `order`. */
typedef struct node_table {
  node_list order;      /* sources first */
  map number;           /* node → its position, + 1 */
  value **at;           /* arrays; NULL: not computed yet, or freed */
  int64_t *index;       /* values of index nodes */
  uint32_t *uses;       /* reads that are still to come */
  bool *is_joined;      /* elementwise nodes that their only reader, a REDUCE, computes */
  const guard **guards; /* NULL: each node is needed */
} node_table;

typedef struct run {
  const interp_env *e;
  const node *const *roots;
  size_t n;              /* roots */
  interp_array *results; /* of the roots */
  arena *out;            /* of the results' elements */
  arena work;
  diag *d;
  node_table nodes;
  value *positions; /* of the current SET: the position of each old element, shown by its view */
  value *moved;     /* of the current SET: the same after the next movement of the view */
  map loops;        /* LOOP → loop_run */
  map inside;       /* node → the loop_run whose trips run it */
} run;

_Noreturn void raise_bad_shape(const run *r, const node *n);
_Noreturn void raise_overflow(const run *r, const node *n);

/* Values (tensor_values.c). */

size_t tensor_position(const run *r, const node *n);
value **tensor_slot(const run *r, const node *n);

/** The number of an index node; the array of another one; either of both, an index as an array of
    rank 0. */
int64_t tensor_index(const run *r, const node *n);
const strided *tensor_array(const run *r, const node *n);
const value *tensor_value(const run *r, const node *n);
strided tensor_operand(const run *r, const node *n);

/** The array of a node as one in row-major order. */
interp_array tensor_dense_array(run *r, const node *n);

/** The sizes of a node's result. */
void tensor_dims(const run *r, const node *n, int64_t dims[]);

/** Allocates a cleared array in row-major order in a slot; that of a node's result. */
strided *new_array(run *r, value **slot, const node *n, dtype t, size_t rank, const int64_t dims[]);
strided *result_of(run *r, const node *n);

/** Makes a value of an array in the memory of another value, or of the caller (NULL). */
void new_view(run *r, value **slot, const strided *a, elements *memory);

/** Makes a value of the same array, in place of that of a slot. */
void share_value(run *r, value **slot, const value *from);

void free_value(run *r, value **slot);

/* Elementwise ops (tensor_elementwise.c). */

/** Elements that are read by rows: those of an array, or those that an elementwise op computes. */
typedef struct element_source {
  bool is_array;
  row_op op; /* an array is its only operand */
  strided from[3];
} element_source;

element_source array_source(const strided *a);

/** The elements of an elementwise node. Raises if the sizes of its operands differ. */
element_source elementwise_source(const run *r, const node *n);

/** A row of elements from rows of the operands: computed into `to`, or those of an array. */
const char *element_source_row(const element_source *s, const char *const rows[], char *to,
                               size_t n, bool *overflow);

void run_elementwise(run *r, const node *n);

/** The value of an index node. */
int64_t index_value(run *r, const node *n);

/* Movements, and updates at indices (tensor_movement.c, tensor_indexed.c). */

/** Applies movement n to a value, into a slot; `fill` is the value of PAD outside of it. */
void move_value(run *r, const node *n, const value *x, uint64_t fill, value **slot);
void run_movement(run *r, const node *n);
void run_gather(run *r, const node *n);
void run_set(run *r, const node *n);
void run_scatter(run *r, const node *n);
void run_scan(run *r, const node *n);

/* Reductions (tensor_reduce.c). */

void run_reduce(run *r, const node *n);

#endif
