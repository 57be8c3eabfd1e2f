/* Solves partitioned Boolean quadratic problems (PBQP) by reduction: vertices of degree 0, 1 and 2
   are eliminated exactly (their best cost goes to their neighbours), one of higher degree is
   decided greedily, and the choices of eliminated vertices follow in reverse order. */
#include "schedule/layout/pbqp.h"

size_t pbqp_add(pbqp *p, size_t n, const double cost[]) {
  vec_push(p->a, &p->vertices,
           (pbqp_vertex){.n = n, .cost = arena_copy(p->a, cost, n * sizeof *cost)});
  return p->vertices.n - 1;
}

/* Edges. */

_Static_assert(sizeof(uintptr_t) >= sizeof(uint64_t), "a pair of vertices is a key");

static pbqp_edge *edge_between(pbqp *p, size_t u, size_t v) {
  size_t least = u < v ? u : v, most = u < v ? v : u;
  const void *key = (const void *)(uintptr_t)((uint64_t)(most + 1) << 32 | least);
  pbqp_edge *e = map_get(&p->edge_of, key);
  if (e) return e;
  e = arena_alloc(p->a, sizeof *e);
  pbqp_vertex *ends[] = {&p->vertices.at[least], &p->vertices.at[most]};
  *e = (pbqp_edge){.end = {least, most},
                   .cost = arena_calloc(p->a, ends[0]->n * ends[1]->n, sizeof *e->cost)};
  map_set(p->a, &p->edge_of, key, e);
  for (size_t i = 0; i < 2; i++) {
    vec_push(p->a, &ends[i]->edges, e);
    ends[i]->degree++;
  }
  return e;
}

static double *cost_at(const pbqp *p, const pbqp_edge *e, size_t u, size_t choice_u,
                       size_t choice_v) {
  size_t n = p->vertices.at[e->end[1]].n;
  return &e->cost[e->end[0] == u ? choice_u * n + choice_v : choice_v * n + choice_u];
}

double *pbqp_cost(pbqp *p, size_t u, size_t choice_u, size_t v, size_t choice_v) {
  return cost_at(p, edge_between(p, u, v), u, choice_u, choice_v);
}

static size_t other_end(const pbqp_edge *e, size_t u) { return e->end[e->end[0] == u]; }

/* Elimination. */

/** An eliminated vertex, and the edges that it had then. */
typedef struct removal {
  size_t vertex;
  VEC(pbqp_edge *) edges;
} removal;

typedef struct solving {
  pbqp *p;
  size_t *choice;
  VEC(removal) removed;
  VEC(size_t) light; /* vertices that had at most two edges when they were added */
} solving;

static removal remove_vertex(solving *s, size_t u) {
  pbqp_vertex *x = &s->p->vertices.at[u];
  removal r = {.vertex = u};
  x->is_gone = true;
  for (size_t i = 0; i < x->edges.n; i++) {
    pbqp_edge *e = x->edges.at[i];
    if (e->is_gone) continue;
    e->is_gone = true;
    vec_push(s->p->a, &r.edges, e);
    s->p->vertices.at[other_end(e, u)].degree--;
  }
  return r;
}

static void add_light_neighbours(solving *s, const removal *r) {
  for (size_t i = 0; i < r->edges.n; i++) {
    size_t v = other_end(r->edges.at[i], r->vertex);
    if (s->p->vertices.at[v].degree <= 2) vec_push(s->p->a, &s->light, v);
  }
}

/** The best choice of a vertex whose neighbours are decided; `least` becomes its cost. */
static size_t best_choice(const solving *s, const removal *r, double *least) {
  const pbqp_vertex *x = &s->p->vertices.at[r->vertex];
  size_t best = 0;
  for (size_t i = 0; i < x->n; i++) {
    double cost = x->cost[i];
    for (size_t k = 0; k < r->edges.n; k++) {
      const pbqp_edge *e = r->edges.at[k];
      cost += *cost_at(s->p, e, r->vertex, i, s->choice[other_end(e, r->vertex)]);
    }
    if (i == 0 || cost < *least) *least = cost, best = i;
  }
  return best;
}

/** Adds the best cost of a vertex, for each choice of its neighbours, to the one neighbour or to
   the edge between the two. */
static void reduce_vertex(solving *s, const removal *r) {
  size_t n = r->edges.n, u = n > 0 ? other_end(r->edges.at[0], r->vertex) : 0;
  size_t v = n > 1 ? other_end(r->edges.at[1], r->vertex) : 0;
  size_t n_u = n > 0 ? s->p->vertices.at[u].n : 0, n_v = n > 1 ? s->p->vertices.at[v].n : 1;
  for (size_t i = 0; i < n_u; i++)
    for (size_t k = 0; k < n_v; k++) {
      double least = 0;
      s->choice[u] = i;
      if (n > 1) s->choice[v] = k;
      best_choice(s, r, &least);
      *(n > 1 ? pbqp_cost(s->p, u, i, v, k) : &s->p->vertices.at[u].cost[i]) += least;
    }
  vec_push(s->p->a, &s->removed, *r);
  add_light_neighbours(s, r);
}

/** The least cost of an edge and the vertex at its other end. */
static double least_beyond(const pbqp *p, const pbqp_edge *e, size_t u, size_t choice) {
  size_t v = other_end(e, u);
  const pbqp_vertex *x = &p->vertices.at[v];
  double least = 0;
  for (size_t k = 0; k < x->n; k++) {
    double cost = x->cost[k] + *cost_at(p, e, u, choice, k);
    if (k == 0 || cost < least) least = cost;
  }
  return least;
}

/** Decides a vertex as if its neighbours had no other edges. */
static void decide_vertex(solving *s, size_t u) {
  removal r = remove_vertex(s, u);
  pbqp_vertex *x = &s->p->vertices.at[u];
  double least = 0;
  for (size_t i = 0; i < x->n; i++) {
    double cost = x->cost[i];
    for (size_t k = 0; k < r.edges.n; k++) cost += least_beyond(s->p, r.edges.at[k], u, i);
    if (i == 0 || cost < least) least = cost, s->choice[u] = i;
  }
  for (size_t k = 0; k < r.edges.n; k++) {
    const pbqp_edge *e = r.edges.at[k];
    pbqp_vertex *v = &s->p->vertices.at[other_end(e, u)];
    for (size_t i = 0; i < v->n; i++) v->cost[i] += *cost_at(s->p, e, u, s->choice[u], i);
  }
  add_light_neighbours(s, &r);
}

static void reduce_light_vertices(solving *s) {
  while (s->light.n) {
    size_t u = vec_pop(&s->light);
    if (s->p->vertices.at[u].is_gone) continue;
    removal r = remove_vertex(s, u);
    reduce_vertex(s, &r);
  }
}

const size_t *pbqp_solve(pbqp *p) {
  size_t n = p->vertices.n;
  solving s = {.p = p, .choice = arena_calloc(p->a, n + 1, sizeof *s.choice)};
  for (size_t i = n; i-- > 0;)
    if (p->vertices.at[i].degree <= 2) vec_push(p->a, &s.light, i);
  reduce_light_vertices(&s);
  for (size_t i = 0; i < n; i++) {
    if (p->vertices.at[i].is_gone) continue;
    decide_vertex(&s, i);
    reduce_light_vertices(&s);
  }
  for (size_t i = s.removed.n; i-- > 0;) {
    double least;
    s.choice[s.removed.at[i].vertex] = best_choice(&s, &s.removed.at[i], &least);
  }
  return s.choice;
}
