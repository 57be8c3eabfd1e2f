/* Scalar lifting: replaces constants of a tensor graph (values, slice starts, paddings) by
   variables, so that graphs that differ in these alone share one compiled form. */
#ifndef TENON_IR_TRANSFORM_LIFTABLE_SCALARS_H
#define TENON_IR_TRANSFORM_LIFTABLE_SCALARS_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

typedef struct liftable_scalar {
  dtype dtype;      /* DT_INDEX: a position along an axis */
  int64_t value;    /* the bits, or the position */
  int64_t min, max; /* bounds of the variable; positions beyond them would read outside */
} liftable_scalar;

typedef VEC(liftable_scalar) liftable_scalar_list;

/** The constant that a node is or repeats in each element by a few movements; NULL if there is
    none. Constants belong to their readers, because equal ones are one node. */
const node *liftable_fill_constant(const node *n);

/** True if source k of a node is liftable: a constant or a fill of one; an index that is cast to a
    value; the start of a slice or the low padding of an axis, within bounds that keep reads inside.
    Writes it to *s. */
bool liftable_scalar_at(const node *n, uint32_t k, liftable_scalar *s);

/** True if a root is a constant or a fill of one. */
bool liftable_scalar_of_root(const node *root, liftable_scalar *s);

/** Assignment of variables to the scalars of a graph; scalars that may differ together share
    one. */
typedef struct lifted_var_map {
  const uint32_t *which;       /* by scalar: its variable counted from 1; 0: the scalar stays */
  const liftable_scalar *vars; /* type and bounds of each variable */
  size_t n_vars;
} lifted_var_map;

/** Copies a graph, in the `order` of topo_sort, with scalars replaced by variables. Scalars are
    numbered by the sources of nodes in that order, without the nodes of liftable_fill_constant,
    then by `roots`. Maps each BUFFER of the copy to its original in *originals. Works in `a`. */
void lift_scalars(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                  const lifted_var_map *v, map *originals, const node *copies[]);

/* Variables are named by numbers from 0, in a graph and again in each of its kernels, so that
   kernels that differ in the variables of their graph alone are equal. */

typedef enum lifted_var_scope { LIFTED_VAR_OF_GRAPH, LIFTED_VAR_OF_KERNEL } lifted_var_scope;

/** Size of a name, with its end. */
enum { LIFTED_VAR_NAME_BYTES = 40 };
void lifted_var_name(char name[LIFTED_VAR_NAME_BYTES], lifted_var_scope scope, size_t number);

/** The number in a name; SIZE_MAX for any other name. */
size_t lifted_var_number(const char *name, lifted_var_scope scope);

/** Remakes a VAR under the name of a number. */
const node *lifted_var_rename(ir *g, const node *var, lifted_var_scope scope, size_t number);

#endif
