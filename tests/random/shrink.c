/* Shrinks a failing tensor graph to a small test case by greedy delta debugging: drops roots,
   replaces nodes by their operands or by inputs, reduces sizes and simplifies input contents, as
   long as the graph stays valid and fails at the same stage. Stops at a fixed point or when time is
   over. */
#include "shrink.h"

#include "ir/core/check_node.h"
#include "ir/core/tensor_loop.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "ir/verify/verify_graph.h"

#include <string.h>
#include <time.h>

typedef struct shrinking {
  graph *g;
  shrink_check check;
  void *user;
  report *report;
  double until;
  uint64_t leaves; /* BUFFERs made so far */
} shrinking;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_over(const shrinking *s) { return now() > s->until; }

/* Trial of a candidate: it must be well-formed, have values, and fail. */

typedef struct attempt {
  shrinking *s;
  graph g;
  report r;
} attempt;

static bool has_computed_size(const graph *g, const node *n) {
  node_list order = topo_sort(g->a, n->dims, n->rank, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ITEM || order.at[i]->op == OP_BUFFER) return true;
  return false;
}

/** Rejects sizes divided by an expression that may be 0, and inputs of computed sizes. */
static void check_sizes(const graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_BUFFER && has_computed_size(g, n))
      diag_raise(g->a->diag, TN_ERR_SHAPE, "an input of a computed size");
    bool divides = n->dtype == DT_INDEX && (n->op == OP_FLOORDIV || n->op == OP_MOD);
    if (divides && n->src[1]->lo <= 0) diag_raise(g->a->diag, TN_ERR_SHAPE, "a division by 0");
  }
}

/** A tensor as it was before it was copied from device to device. */
static const node *before_copies(const node *n) {
  while (n->op == OP_TO) n = n->src[0];
  return n;
}

/** The loop whose emitted array a node is, if a state ends that loop; NULL: none. */
static const node *ended_loop(const node *n) {
  bool is_result = n->op == OP_RESULT && n->src[0]->op == OP_LOOP;
  const node *loop = is_result ? n->src[0] : NULL;
  bool is_emitted = loop && n->ints[0] >= (int64_t)loop_n_states(loop);
  return is_emitted && loop_until(loop) != SIZE_MAX ? loop : NULL;
}

/** True for the number of trips that a loop took before a state ended it, as generate.c has it. */
static bool counts_trips(graph *g, const node *n, const node *loop) {
  size_t last = loop_n_states(loop) - 1;
  if (n->op != OP_ITEM || before_copies(n->src[0]) != loop_result(g->ir, loop, last)) return false;
  const node *next = ir_cast(g->ir, ix_add_const(g->ir, loop_range(loop), 1), DT_I64);
  return node_is_bits(before_copies(loop_init(loop, last)), 0) &&
         before_copies(loop_step(loop, last)) == next;
}

/** True for the slice of the entries that such a loop emitted, and for copies of all of them. */
static bool takes_emitted(graph *g, const node *n, const node *array, const node *loop) {
  if (n->op == OP_TO) return true;
  if (n->op != OP_SLICE || !counts_trips(g, n->dims[0], loop)) return false;
  const node *place = loop_emit_index(loop, (size_t)array->ints[0] - loop_n_states(loop));
  const node *rest = ix_sub(g->ir, array->dims[0], n->dims[0]);
  return place == loop_range(loop) ? node_is_bits(n->src[1], 0) : n->src[1] == rest;
}

/** Rejects reads of entries that a loop which a state ends may leave undefined. */
static void check_entries(graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  bool is_read = false;
  for (size_t i = 0; i < g->n_roots; i++) is_read |= ended_loop(before_copies(g->roots[i])) != NULL;
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; k < order.at[i]->n_src; k++) {
      const node *array = before_copies(order.at[i]->src[k]), *loop = ended_loop(array);
      is_read |= loop && !takes_emitted(g, order.at[i], array, loop);
    }
  if (is_read) diag_raise(g->a->diag, TN_ERR_SHAPE, "reads what a loop did not emit");
}

static void body(void *arg) {
  attempt *t = arg;
  graph *g = &t->g;
  diag *d = g->a->diag;
  if (verify_graph(g->roots, g->n_roots, LEVEL_TENSOR, g->a->mem, d) != TN_OK) diag_rethrow(d);
  check_sizes(g);
  check_entries(g);
  graph_prepare(g);
  interp_env e = graph_env(g);
  interp_array *results = arena_alloc(g->a, g->n_roots * sizeof *results);
  if (interp_tensor(&e, g->roots, g->n_roots, results, g->a) != TN_OK) diag_rethrow(d);
  t->s->check(t->s->user, g, &t->r);
}

/** True if two failures are of the same kind, judged by their stages: a smaller graph may fail at
    another step. */
static bool is_alike(const report *a, const report *b) {
  size_t n = strcspn(a->stage, ",");
  return b->failed && strcspn(b->stage, ",") == n && !memcmp(a->stage, b->stage, n);
}

static bool fails(shrinking *s, const node **roots, size_t n) {
  attempt *t = arena_calloc(s->g->a, 1, sizeof *t);
  t->s = s;
  t->g = *s->g;
  t->g.roots = roots;
  t->g.n_roots = n;
  memset(&t->g.buffers, 0, sizeof t->g.buffers);
  memset(&t->g.vars, 0, sizeof t->g.vars);
  memset(&t->g.customs, 0, sizeof t->g.customs);
  memset(&t->g.items, 0, sizeof t->g.items);
  if (!n || diag_catch(s->g->a->diag, body, t) != TN_OK) return false;
  if (!is_alike(s->report, &t->r)) return false;
  *s->g = t->g;
  *s->report = t->r;
  return true;
}

/* Roots. */

static bool drop_roots(shrinking *s) {
  bool gained = false;
  for (size_t i = s->g->n_roots; i-- > 0 && s->g->n_roots > 1 && !is_over(s);) {
    const node **roots = arena_alloc(s->g->a, s->g->n_roots * sizeof *roots);
    size_t n = 0;
    for (size_t k = 0; k < s->g->n_roots; k++)
      if (k != i) roots[n++] = s->g->roots[k];
    gained |= fails(s, roots, n);
  }
  return gained;
}

/* Nodes. */

/** Returns the roots with `from` replaced; NULL if the result is ill-formed. */
static const node **replaced(shrinking *s, const node *from, const node *to) {
  arena *a = s->g->a;
  map image = {0};
  node_list order = topo_sort(a, s->g->roots, s->g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], **src = arena_alloc(a, (n->n_src + 1) * sizeof *src);
    bool changed = false;
    for (uint32_t k = 0; k < n->n_src; k++) {
      src[k] = map_get(&image, n->src[k]);
      changed |= src[k] != n->src[k];
    }
    node_spec spec = {.op = (op)n->op,
                      .dtype = (dtype)n->dtype,
                      .lanes = n->lanes,
                      .src = src,
                      .n_src = n->n_src,
                      .ints = n->ints,
                      .n_int = n->n_int,
                      .text = n->text,
                      .n_text = n->n_text};
    const node *made = n;
    if (n == from)
      made = to;
    else if (changed && n->dtype == DT_INDEX)
      made = ix_rebuild(s->g->ir, n, src);
    else if (changed && ir_check_spec(&spec))
      return NULL;
    else if (changed)
      made = ir_make(s->g->ir, &spec);
    map_set(a, &image, n, (void *)made);
  }
  const node **roots = arena_alloc(a, s->g->n_roots * sizeof *roots);
  for (size_t i = 0; i < s->g->n_roots; i++) roots[i] = map_get(&image, s->g->roots[i]);
  return roots;
}

static bool try_replacing(shrinking *s, const node *from, const node *to) {
  const node **roots = from == to ? NULL : replaced(s, from, to);
  return roots && fails(s, roots, s->g->n_roots);
}

/** True for a bool computed of sizes alone, by which sizes may be chosen: no tensor stands there.
 */
static bool is_size_condition(const node *n) {
  if (n->dtype != DT_BOOL || n->rank || !n->n_src) return false;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (n->src[i]->dtype != DT_INDEX && !is_size_condition(n->src[i])) return false;
  return true;
}

static bool is_data(const node *n) {
  return n->dtype != DT_INDEX && n->dtype != DT_VOID && !is_size_condition(n);
}

static bool is_root(const shrinking *s, const node *n) {
  for (size_t i = 0; i < s->g->n_roots; i++)
    if (s->g->roots[i] == n) return true;
  return false;
}

/** Replaces a root by one of its operands, another value by an operand of its shape or a BUFFER. */
static bool replace_node(shrinking *s, const node *n) {
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *x = n->src[i];
    if (!is_data(x)) continue;
    bool fits = x->dtype == n->dtype && ir_same_shape(x, n);
    if ((fits || is_root(s, n)) && try_replacing(s, n, x)) return true;
  }
  if (!n->n_src || n->op == OP_BUFFER || n->op == OP_IOTA) return false;
  int64_t ints[] = {graph_uid(s->leaves, CONTENTS_SMALL, false), 0};
  if (!try_replacing(s, n,
                     ir_node(s->g->ir, OP_BUFFER, (dtype)n->dtype, n->dims, n->rank, ints, 2)))
    return false;
  s->leaves++;
  return true;
}

static bool replace_nodes(shrinking *s) {
  node_list order = topo_sort(s->g->a, s->g->roots, s->g->n_roots, NULL, NULL);
  for (size_t i = order.n; i-- > 0 && !is_over(s);)
    if (is_data(order.at[i]) && replace_node(s, order.at[i])) return true;
  return false;
}

/* Sizes. */

static bool smaller_sizes(shrinking *s) {
  node_list order = topo_sort(s->g->a, s->g->roots, s->g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n && !is_over(s); i++) {
    const node *n = order.at[i];
    if (n->dtype != DT_INDEX) continue;
    int64_t v = n->op == OP_CONST ? node_int(n) : n->op == OP_VAR ? graph_size(s->g, n) + 1 : 0;
    int64_t tries[] = {0, 1, 2, 3, v / 2, v - 1};
    for (size_t k = 0; k < sizeof tries / sizeof *tries; k++)
      if (tries[k] >= 0 && tries[k] < v && try_replacing(s, n, ix_const(s->g->ir, tries[k])))
        return true;
  }
  return false;
}

/** Simplifies the contents of BUFFERs; steps, axes and the like stay. */
static bool simpler_contents(shrinking *s) {
  for (size_t i = 0; i < s->g->buffers.n && !is_over(s); i++) {
    const node *n = s->g->buffers.at[i].n;
    int64_t ints[] = {n->ints[0] & ~(int64_t)7, 0}; /* small numbers that must not be overwritten */
    for (int64_t keep = 0; keep < 2; keep++) {
      ints[0] |= keep ? n->ints[0] & 1 : 0;
      if (ints[0] == n->ints[0] && ints[1] == n->ints[1]) continue;
      if (try_replacing(s, n,
                        ir_node(s->g->ir, OP_BUFFER, (dtype)n->dtype, n->src, n->n_src, ints, 2)))
        return true;
    }
  }
  return false;
}

void shrink(graph *g, shrink_check check, void *user, double seconds, report *r) {
  shrinking s = {g, check, user, r, now() + seconds, 1};
  for (bool gained = true; gained && !is_over(&s);) {
    gained = drop_roots(&s);
    while (replace_nodes(&s)) gained = true;
    while (smaller_sizes(&s)) gained = true;
    gained |= simpler_contents(&s);
  }
}
