/* Implements constant folding at load time: finds the last values on each path to the roots that
   are computed from constants alone, and either are no larger than the constants that they read, or
   are read at a lower cost than they are computed at in each run and fit in a budget; and replaces
   each by a new constant. Weight prepacking follows (weight_layout.c). */
#include "schedule/values/constant_folding.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/core/likely_value.h"
#include "ir/core/math_mode.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/element_expression.h"
#include "schedule/values/constant_folding_state.h"
#include "schedule/values/normalise.h"
#include "schedule/values/tensor_products.h"
#include "schedule/values/weight_layout.h"
#include "schedule/values/winograd.h"
#include "target/machine.h"

enum { MOST_BELOW = 64 /* nodes below a value that are visited to measure its operands */ };

static double bytes_of(const node *n) {
  double bytes = (double)dtype_bytes((dtype)n->dtype);
  for (size_t i = 0; i < n->rank; i++) bytes *= (double)n->dims[i]->hi;
  return bytes;
}

/** Computing a value from BUFFERs. */
typedef struct computation {
  double bytes;      /* of these BUFFERs */
  double operations; /* weighed by op_cost */
  bool has_updates;  /* of a SCATTER or SCAN: kernels of their own, which nothing inlines */
} computation;

static double points_of(const node *n) {
  const node *all = n->op == OP_REDUCE ? n->src[0] : n;
  return bytes_of(all) / (double)dtype_bytes((dtype)all->dtype);
}

/** Measures the computation of a value, among nodes close below. */
static computation measure(constant_folding *f, const node *n) {
  computation c = {0};
  node_list queue = {0};
  map seen = {0};
  vec_push(f->a, &queue, n);
  for (size_t i = 0; i < queue.n && i < MOST_BELOW; i++) {
    const node *at = queue.at[i];
    if (at->op == OP_BUFFER) c.bytes += bytes_of(at);
    c.has_updates |= at->op == OP_SCATTER || at->op == OP_SCAN;
    if (constant_folding_reads_elements(at))
      c.operations += points_of(at) * (at->op == OP_REDUCE ? 1 : op_cost((op)at->op));
    for (uint32_t k = 0; k < at->n_src; k++) {
      if (map_has(&seen, at->src[k])) continue;
      map_set(f->a, &seen, at->src[k], NULL);
      vec_push(f->a, &queue, at->src[k]);
    }
  }
  return c;
}

/** Elements of a value that a run computes where the value is not stored. */
typedef struct reads {
  double points;  /* of all readers */
  double readers; /* that compute it, each of which would read it from memory if it were stored */
} reads;

static double likely_elements(const node *n) {
  double elements = 1;
  for (size_t i = 0; i < n->rank; i++) elements *= ix_likely(n->dims[i]);
  return elements;
}

static double likely_points(const node *n) {
  return likely_elements(n->op == OP_REDUCE ? n->src[0] : n);
}

/** Reads of a value: once, if no other value reads it. */
static reads reads_of(const constant_folding *f, const node *n) {
  const reads *r = map_get(&f->reads, n);
  return r ? *r : (reads){likely_elements(n), 1};
}

static void add_reads(constant_folding *f, const node *n, double points, double readers) {
  reads *r = map_get(&f->reads, n);
  if (!r) map_set(f->a, &f->reads, n, r = arena_calloc(f->a, 1, sizeof *r));
  r->points += points;
  r->readers += readers;
}

/** Counts how often elements of each constant value are computed: once for each point of a value
    that changes. Movements read nothing of their own. */
static void count_reads(constant_folding *f, const node_list *order, const map *known) {
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    if (n->dtype == DT_INDEX) continue;
    bool passes = map_has(known, n) || op_is_movement((op)n->op);
    reads own = passes ? reads_of(f, n) : (reads){likely_elements(n), 1};
    own.points *= likely_points(n) / likely_elements(n);
    for (uint32_t k = 0; k < n->n_src; k++)
      if (n->src[k]->dtype != DT_INDEX) add_reads(f, n->src[k], own.points, own.readers);
  }
}

/** Bytes by which constants may exceed what they are computed from. */
static double budget_of(constant_folding *f, const node_list *order) {
  double given = 0;
  for (size_t i = 0; i < order->n; i++)
    if (constant_folding_is_given(f, order->at[i])) given += bytes_of(order->at[i]);
  double most = MACHINE_FOLDED_CONSTANTS_SHARE * given;
  return most > MACHINE_FOLDED_CONSTANTS_BYTES ? most : MACHINE_FOLDED_CONSTANTS_BYTES;
}

/** Times that a reader computes an element: once where nothing is loaded for it, as such values are
    computed in a loop over their own axes alone. */
static double times_computed(const constant_folding *f, const node *n, const computation *c) {
  const reads r = reads_of(f, n);
  return c->bytes > 0 ? r.points / r.readers / likely_elements(n) : 1;
}

/** True if a value takes no more bytes than the BUFFERs that it is computed from, if a reader takes
    longer to compute it than to read the bytes that it has more and these fit in the budget, or if
   a rewrite counts on it. */
static bool is_worth_storing(constant_folding *f, const node *n) {
  if (map_has(&f->kept, n)) return true;
  computation c = measure(f, n);
  double bytes = bytes_of(n), elements = bytes / (double)dtype_bytes((dtype)n->dtype);
  if (bytes <= c.bytes) return true;
  double more = bytes - c.bytes;
  double worth = MACHINE_FOLDED_CONSTANT_OPERATIONS * elements * (more / bytes);
  if (!c.has_updates && c.operations * times_computed(f, n, &c) < worth) return false;
  bool fits = more <= f->budget;
  if (fits) f->budget -= more;
  return fits;
}

/** Finds the last values on each path to the roots that are computed from constants, and are worth
    storing; operands of others are in their place. */
static void find_computed(constant_folding *f) {
  node_list order = topo_sort(f->a, f->out.roots, f->request->n_roots, NULL, NULL);
  map known = constant_folding_known(f, &order), needed = {0};
  count_reads(f, &order, &known);
  f->budget = budget_of(f, &order);
  for (size_t i = order.n; i-- > 0;) {
    const node *n = order.at[i];
    bool is_known = map_has(&known, n);
    if (is_known && !map_has(&needed, n)) continue;
    if (is_known && constant_folding_reads_elements(n) && is_worth_storing(f, n)) {
      map_set(f->a, &f->stand_in, n, (void *)constant_folding_add_constant(f, n));
      continue;
    }
    for (uint32_t k = 0; k < n->n_src; k++)
      if (map_has(&known, n->src[k])) map_set(f->a, &needed, n->src[k], NULL);
  }
}

static bool is_constant(void *user, const node *n) { return constant_folding_is_known(user, n); }

/** Rewrites convolutions where arithmetic may be reordered freely. */
static void rewrite_convolutions(constant_folding *f) {
  const constant_folding_request *r = f->request;
  if ((r->math & MATH_FAST) != MATH_FAST) return;
  node_list kept = winograd_rewrite(
      f->g, &(winograd_request){f->out.roots, r->n_roots, is_constant, f, r->cache});
  for (size_t i = 0; i < kept.n; i++) map_set(f->a, &f->kept, kept.at[i], NULL);
}

constants constant_folding_find(ir *g, const constant_folding_request *r) {
  constant_folding f = {.g = g, .a = ir_arena(g), .request = r, .uids = r->first_uid};
  f.out.roots = arena_copy(f.a, r->roots, r->n_roots * sizeof *r->roots);
  rewrite_convolutions(&f);
  tensor_products_rewrite(g, &(tensor_products_request){.roots = f.out.roots,
                                                        .n_roots = r->n_roots,
                                                        .rows = r->rows,
                                                        .math = r->math,
                                                        .is_constant = is_constant,
                                                        .user = &f});
  find_computed(&f);
  constant_folding_apply(&f);
  weight_layouts_find(&f);
  constant_folding_apply(&f);
  return f.out;
}
