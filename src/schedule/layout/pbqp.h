/* Solves partitioned Boolean quadratic problems (PBQP): chooses one of a few alternatives for each
   vertex such that the costs of vertices and of edges (pairs of choices) are least in sum. Vertices
   of up to two edges are eliminated exactly; where all have more, one is decided by itself (Scholz
   and Eckstein, Register Allocation for Irregular Architectures, 2002), so that the sum may not be
   least. */
#ifndef TENON_SCHEDULE_LAYOUT_PBQP_H
#define TENON_SCHEDULE_LAYOUT_PBQP_H

#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/** The cost of an impossible choice: more than any sum of other costs. */
#define PBQP_FORBIDDEN 1e30

typedef struct pbqp_edge {
  size_t end[2];
  double *cost; /* for each choice of end[0], one for each of end[1] */
  bool is_gone;
} pbqp_edge;

typedef struct pbqp_vertex {
  size_t n; /* choices */
  double *cost;
  VEC(pbqp_edge *) edges; /* including eliminated ones */
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

/** The cost of a pair of choices of two different vertices, to be changed: 0 at first. */
double *pbqp_cost(pbqp *p, size_t u, size_t choice_u, size_t v, size_t choice_v);

/** The choice of each vertex; of equal ones the first. Consumes the problem. */
const size_t *pbqp_solve(pbqp *p);

#endif
