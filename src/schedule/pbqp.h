/* Partitioned Boolean quadratic problems: one of a few choices for each vertex, at a cost for each
   choice and for each pair of choices at the ends of an edge, as little in all as can be found.
   Vertices of up to two edges are taken out exactly; where all have more, one is decided by itself
   (Scholz and Eckstein, Register Allocation for Irregular Architectures, 2002). */
#ifndef TENON_SCHEDULE_PBQP_H
#define TENON_SCHEDULE_PBQP_H

#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/** More than any sum of costs, which are finite: a choice that cannot be. */
#define PBQP_NEVER 1e30

typedef struct pbqp_edge {
  size_t end[2];
  double *cost; /* for each choice of end[0], one for each of end[1] */
  bool is_gone;
} pbqp_edge;

typedef struct pbqp_vertex {
  size_t n; /* choices */
  double *cost;
  VEC(pbqp_edge *) edges; /* those that are gone, too */
  size_t degree;
  bool is_gone;
} pbqp_vertex;

typedef struct pbqp {
  arena *a;
  VEC(pbqp_vertex) vertices;
  map edge_of; /* a pair of vertices → its edge */
} pbqp;

/** A vertex of n > 0 choices, whose costs are copied; they may be changed until pbqp_solve. Returns
    its number. */
size_t pbqp_add(pbqp *p, size_t n, const double cost[]);

/** Where the cost of a pair of choices of two different vertices is kept: 0 until it is changed. */
double *pbqp_cost(pbqp *p, size_t u, size_t choice_u, size_t v, size_t choice_v);

/** The choice of each vertex; of equal ones the first. Uses the problem up. */
const size_t *pbqp_solve(pbqp *p);

#endif
