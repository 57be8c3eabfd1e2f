/* Scalars of tensor graphs: constants that are values, and places along axes. A graph with other
   ones in their place is of the same form, and the same once they are variables. */
#ifndef TENON_IR_SCALARS_H
#define TENON_IR_SCALARS_H

#include "base/map.h"
#include "ir/topo.h"

typedef struct scalar {
  dtype dtype;      /* DT_INDEX: a place */
  int64_t value;    /* its bits, if it is none */
  int64_t min, max; /* the values that it can have in a graph of its form */
} scalar;

typedef VEC(scalar) scalar_list;

/** The constant that a node is, or has in each element: few movements of one. Such a node belongs
   to those that read it, as equal numbers are one node by chance. NULL: it is none. */
const node *scalar_filling(const node *n);

/** Whether source k of a node is a scalar: a constant that is a value, or in each element of one;
   an index that becomes a value; the start of a slice, or the low padding of one axis. Starts and
    paddings have such bounds that nothing outside of the node's source is read. */
bool scalar_at(const node *n, uint32_t k, scalar *s);

/** Whether a root is one. */
bool scalar_of_root(const node *root, scalar *s);

/** Variables in the place of scalars. */
typedef struct scalar_vars {
  const uint32_t *which; /* of each scalar, its variable counted from 1; 0: it stays as it is */
  const scalar *vars;    /* the type and the bounds of each variable */
  size_t n_vars;
} scalar_vars;

/** Copies a graph, whose `order` topo_sort gave, with variables in the place of scalars: those of
    the sources of nodes in that order, but for scalar_filling's, then those of `roots`. *originals
   becomes what each BUFFER of the copy is one of. Lists live in `a`. */
void scalars_lift(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                  const scalar_vars *v, map *originals, const node *copies[]);

/* Names of variables: those of a graph are counted from 0, and so are those of each of its kernels,
   so that kernels are equal whose variables are others. */

typedef enum scalar_scope { SCALAR_OF_GRAPH, SCALAR_OF_KERNEL } scalar_scope;

/** A name is of this length at most. */
enum { SCALAR_NAME = 40 };
void scalar_name(char name[SCALAR_NAME], scalar_scope scope, size_t number);

/** The number in a name; SIZE_MAX if it is none. */
size_t scalar_number(const char *name, scalar_scope scope);

/** A VAR like another under such a name. */
const node *scalar_renamed(ir *g, const node *var, scalar_scope scope, size_t number);

#endif
