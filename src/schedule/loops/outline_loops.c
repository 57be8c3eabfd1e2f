/* Implements loop outlining. The body of a LOOP (the tensor graph's loop node) becomes a graph over
   PARAMs (array arguments) for its states, for the arrays that it emits to and for the outer arrays
   that it reads, and over a variable for the trip's index. Invariant expressions are computed
   before the loop, but for movements and those that read no array.

   A state whose step is a chain of SETs (partial writes) on the state is changed in place; which
   copies that needs is found as for any state of a plan. Others step from one array to another: the
   new value is SET as a whole, so that one value can become several states. */
#include "schedule/loops/outline_loops.h"

#include "ir/core/node_device.h"
#include "ir/core/tensor_loop.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "schedule/values/value.h"

#include <string.h>

/* States that no trip changes equal their inits. */

static bool is_invariant(const node *loop, size_t state) {
  return loop_step(loop, state) == loop_init(loop, state) && state != loop_until(loop);
}

bool loops_is_invariant(const extracted_loop *p, size_t component) {
  return component < loop_n_states(p->loop) && is_invariant(p->loop, component);
}

/** The CARRY of a state in the loop's body. */
static const node *carry_of(ir *g, const node *loop, size_t state) {
  return loop_carry_make(g, loop_range(loop), (int64_t)state, loop_init(loop, state));
}

/** Maps the CARRYs of invariant states to their inits, and those of states that become such a state
   and have the same init. */
static void find_invariant(ir *g, const node *loop, map *with) {
  for (size_t known = SIZE_MAX; known != with->n;) {
    known = with->n;
    for (size_t i = 0; i < loop_n_states(loop); i++) {
      const node *carry = carry_of(g, loop, i), *step = loop_step(loop, i);
      if (is_invariant(loop, i) || step == carry || map_get(with, step) == loop_init(loop, i))
        map_set(ir_scratch(g), with, carry, (void *)loop_init(loop, i));
    }
  }
}

/** Substitutes in several roots at once, so that shared nodes are visited once. */
static const node *const *subst_roots(ir *g, const node *const roots[], size_t n, const map *with) {
  return n ? subst(g, ir_node(g, OP_GROUP, DT_VOID, roots, n, NULL, 0), with)->src : roots;
}

/** Replaces invariant states by their inits, until nothing changes, as an init may be an invariant
   state of the loop around. Returns whether there are loops. */
static bool replace_invariant(ir *g, normalised *n) {
  arena *work = ir_scratch(g);
  for (bool changed, any = false;;) {
    arena_mark here = arena_save(work);
    node_list order = topo_sort(work, n->roots, n->n_roots, NULL, NULL);
    map with = {0};
    for (size_t i = 0; i < order.n; i++) {
      if (order.at[i]->op != OP_LOOP) continue;
      any = true;
      find_invariant(g, order.at[i], &with);
    }
    const node *const *made = subst_roots(g, n->roots, n->n_roots, &with);
    changed = memcmp(made, n->roots, n->n_roots * sizeof *made);
    memcpy(n->roots, made, n->n_roots * sizeof *made);
    arena_rewind(work, here);
    if (!changed) return any;
  }
}

typedef struct extracting {
  ir *g;
  arena *a;
  normalised *n;
  size_t depth;
  map image;  /* a node outside of loops → the same in the graph around */
  map plans;  /* LOOP → extracted_loop */
  map arrays; /* visited node → itself if it reads an array, else NULL */
} extracting;

/* Nodes of the graph around that a loop reads. */

/** True for what a loop reads as an array from outside. A TO is one, as it may be all by which the
    loop's results are on a device. */
static bool is_array(const node *n) {
  switch (n->op) {
  case OP_TO:
  case OP_PARAM:
  case OP_RESULT:
  case OP_CUSTOM:
  case OP_KERNEL:
  case OP_SET:
  case OP_SCATTER: return true;
  default: return false;
  }
}

static bool is_unseen(const node *n, void *user) {
  return !map_has(&((extracting *)user)->arrays, n);
}

static void find_arrays(extracting *l, const node_list *roots) {
  node_list order = topo_sort(l->a, roots->at, roots->n, is_unseen, l);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    bool reads = is_array(n);
    if (!is_unseen(n, l)) continue;
    for (uint32_t k = 0; k < n->n_src; k++) reads |= map_get(&l->arrays, n->src[k]) != NULL;
    map_set(l->a, &l->arrays, n, (void *)(reads ? n : NULL));
  }
}

static bool is_captured(const extracting *l, const node *n) {
  if (n->free->n || n->dtype == DT_INDEX || n->dtype == DT_VOID) return false;
  if (op_is_movement((op)n->op) && n->op != OP_GATHER) return false;
  return map_get(&l->arrays, n) != NULL;
}

static bool enters(const node *n, void *user) { return !is_captured(user, n); }

/* The graph of a loop. */

typedef struct extraction {
  extracting *l;
  extracted_loop *p;
  node_list roots;      /* steps, emits and their places, before substitution */
  node_list sources;    /* operands of the RESULTs: inits, and captured nodes */
  map with;             /* a node → the same in the body */
  VEC(bool) is_written; /* of each slot so far */
} extraction;

static const node *add_param(extraction *x, dtype t, size_t rank, const node *const dims[],
                             bool is_written) {
  int64_t ints[2] = {(int64_t)x->is_written.n};
  size_t n = 1 + node_device_argument_in(x->l->g, x->p->loop->device, ints + 1);
  const node *param = ir_node(x->l->g, OP_PARAM, t, dims, rank, ints, n);
  vec_push(x->l->a, &x->is_written, is_written);
  vec_push(x->l->a, &x->p->body.origins, param);
  return param;
}

/** True if a step is a chain of SETs and SCATTERs on its state. */
static bool changes_parts(const node *loop, size_t state) {
  const node *step = loop_step(loop, state);
  bool changes = op_overwrites((op)step->op);
  while (op_overwrites((op)step->op)) step = step->src[0];
  return changes && step->op == OP_CARRY && step->src[0] == loop_range(loop) &&
         (size_t)step->ints[0] == state;
}

static void add_states(extraction *x) {
  extracting *l = x->l;
  extracted_loop *p = x->p;
  size_t n = loop_n_states(p->loop), most = loop_n_results(p->loop);
  p->now = arena_alloc(l->a, (n + 1) * sizeof *p->now);
  p->next = arena_alloc(l->a, (n + 1) * sizeof *p->next);
  p->emits = arena_alloc(l->a, (most + 1) * sizeof *p->emits);
  for (size_t i = 0; i < n; i++) {
    const node *init = loop_init(p->loop, i);
    bool in_place = changes_parts(p->loop, i);
    p->now[i] = x->is_written.n;
    const node *param = add_param(x, (dtype)init->dtype, init->rank, init->dims, in_place);
    map_set(l->a, &x->with, carry_of(l->g, p->loop, i), (void *)param);
    p->next[i] = in_place ? p->now[i] : x->is_written.n;
    if (!in_place) add_param(x, (dtype)init->dtype, init->rank, init->dims, true);
    vec_push(l->a, &x->sources, init);
  }
}

static void add_captured(extraction *x) {
  extracting *l = x->l;
  find_arrays(l, &x->roots);
  node_list order = topo_sort(l->a, x->roots.at, x->roots.n, enters, l);
  x->p->captured = arena_alloc(l->a, (order.n + 1) * sizeof *x->p->captured);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!is_captured(l, n)) continue;
    x->p->captured[x->p->n_captured++] = x->is_written.n;
    const node *param = add_param(x, (dtype)n->dtype, n->rank, n->dims, false);
    map_set(l->a, &x->with, n, (void *)param);
    vec_push(l->a, &x->sources, n);
  }
}

static const node *set_entry(ir *g, const node *array, const node *place, const node *value) {
  const node *starts[IR_MAX_RANK], *sizes[IR_MAX_RANK];
  int64_t steps[IR_MAX_RANK];
  for (size_t i = 0; i < array->rank; i++) {
    starts[i] = i ? ix_const(g, 0) : place;
    sizes[i] = i ? array->dims[i] : ix_const(g, 1);
    steps[i] = 1;
  }
  const node *entry = ir_slice(g, array, starts, sizes, steps);
  const node *src[] = {array, entry, ir_reshape(g, value, array->rank, sizes)};
  return ir_node(g, OP_SET, (dtype)array->dtype, src, 3, NULL, 0);
}

static const node *trip_var(extracting *l, const node *range) {
  int64_t most = range_extent(range)->hi, bounds[] = {0, most > 0 ? most - 1 : 0};
  const char *text = arena_printf(l->a, VAR_TRIP_PREFIX "%zu_%lld", l->depth, (long long)bounds[1]);
  return ir_make(l->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = text,
                                    .n_text = strlen(text)});
}

static void make_roots(extraction *x) {
  ir *g = x->l->g;
  extracted_loop *p = x->p;
  const node *loop = p->loop, *const *inside = subst_roots(g, x->roots.at, x->roots.n, &x->with);
  size_t n = loop_n_states(loop), m = loop_n_emits(loop), at = 0;
  p->body.roots = arena_alloc(x->l->a, (n + m + 1) * sizeof *p->body.roots);
  for (size_t i = 0; i < n; i++) {
    if (is_invariant(loop, i)) continue;
    const node *step = inside[i];
    const node *old = p->body.origins.at[p->next[i]];
    if (p->now[i] != p->next[i])
      step = ir_node(g, OP_SET, (dtype)old->dtype, (const node *[]){old, old, step}, 3, NULL, 0);
    p->body.roots[at++] = step;
  }
  for (size_t i = 0; i < m; i++) {
    const node *sizes[IR_MAX_RANK + 1];
    size_t rank = loop_result_sizes(loop, n + i, sizes);
    p->emits[i] = x->is_written.n;
    const node *array = add_param(x, loop_result_dtype(loop, n + i), rank, sizes, true);
    p->body.roots[at++] = set_entry(g, array, inside[n + m + i], inside[n + i]);
  }
  p->body.n_roots = at;
}

bool loops_may_write(void *user, const node *param) {
  return ((const extracted_loop *)user)->is_written[param->ints[0]];
}

/** Extracts a loop, and returns the operands of its RESULTs in the graph around it. */
static node_list extract_loop(extracting *l, const node *loop) {
  extracted_loop *p = arena_calloc(l->a, 1, sizeof *p);
  extraction x = {.l = l, .p = p};
  *p = (extracted_loop){.loop = loop, .trip = trip_var(l, loop_range(loop)), .depth = l->depth};
  p->body.device = node_device_number(loop, l->n->device);
  vec_push(l->a, &l->n->loops, p);
  map_set(l->a, &x.with, loop_range(loop), (void *)p->trip);
  for (size_t i = 1 + loop_n_states(loop); i < loop->n_src; i++)
    vec_push(l->a, &x.roots, loop->src[i]);
  add_states(&x);
  add_captured(&x);
  make_roots(&x);
  p->is_written = x.is_written.at;
  return x.sources;
}

/** Lists the index expressions of a loop, in which it may mention variables of ITEMs: whole ones,
   as the sizes of sides that a run does not take are not needed. */
static void add_loop_sizes(extracting *l, const extracted_loop *p) {
  node_list all = {0}, sizes = {0};
  map found = {0};
  vec_push(l->a, &all, range_extent(loop_range(p->loop)));
  if (l->n->items) vec_push(l->a, &sizes, all.at[0]);
  for (size_t i = 0; i < p->body.n_roots; i++) vec_push(l->a, &all, p->body.roots[i]);
  node_list order = topo_sort(l->a, all.at, all.n, NULL, NULL);
  for (size_t i = 0; l->n->items && i < order.n; i++) {
    const node *n = order.at[i];
    for (size_t k = 0; n->dtype != DT_INDEX && k < n->n_src; k++) {
      if (n->src[k]->dtype != DT_INDEX || map_has(&found, n->src[k])) continue;
      map_set(l->a, &found, n->src[k], (void *)n);
      vec_push(l->a, &sizes, n->src[k]);
    }
  }
  vec_push(l->a, &l->n->loop_sizes, sizes);
}

/* The graph around the loops. */

typedef struct extracted {
  size_t number; /* from 1 on */
  node_list sources;
} extracted;

static const node *image_of(const extracting *l, const node *n) {
  const node *image = map_get(&l->image, n);
  return image ? image : n;
}

/** The init of a state that no trip changes, on the device of the loop's results, where their
   readers expect it. */
static const node *init_on_device(const extracting *l, const node *result, const node *init) {
  int64_t device[] = {(int64_t)result->device - 1};
  if (!ir_has_devices(l->g) || init->device || !result->device) return init;
  return ir_node(l->g, OP_TO, (dtype)init->dtype, &init, 1, device, 1);
}

static const node *result_around(extracting *l, const node *result) {
  const node *loop = result->src[0];
  const extracted *e = map_get(&l->plans, loop);
  size_t component = (size_t)result->ints[0], n = e->sources.n, rank = result->rank;
  if (component < loop_n_states(loop) && is_invariant(loop, component))
    return init_on_device(l, result, image_of(l, loop_init(loop, component)));
  const node **src = arena_alloc(l->a, (n + rank + 1) * sizeof *src);
  int64_t ints[] = {result->ints[0], (int64_t)n, (int64_t)e->number};
  for (size_t i = 0; i < n; i++) src[i] = image_of(l, e->sources.at[i]);
  for (size_t i = 0; i < rank; i++) src[n + i] = result->dims[i];
  return ir_node(l->g, OP_RESULT, (dtype)result->dtype, src, n + rank, ints, 3);
}

static const node *rebuild_around(extracting *l, const node *n) {
  if (n->op == OP_RESULT && !n->ints[2]) return result_around(l, n);
  const node **src = arena_alloc(l->a, (n->n_src + 1) * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(l, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  return changed ? subst_rebuild(l->g, n, src) : n;
}

void loops_extract(ir *g, const schedule_request *r, normalised *n, size_t depth) {
  extracting l = {.g = g, .a = ir_arena(g), .n = n, .depth = depth};
  if (!replace_invariant(g, n)) return;
  node_list order = topo_sort(l.a, n->roots, n->n_roots, NULL, NULL);
  if (depth >= LOOP_MAX_DEPTH)
    diag_raise(l.a->diag, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_MAX_DEPTH);
  for (size_t i = 0; i < order.n; i++) {
    const node *at = order.at[i];
    if (at->free->n && value_is_copied_between_devices(at))
      diag_raise(l.a->diag, TN_ERR_UNSUPPORTED, "the steps of a loop run on one device");
    if (at->free->n) continue;
    if (at->op != OP_LOOP) {
      map_set(l.a, &l.image, at, (void *)rebuild_around(&l, at));
      continue;
    }
    extracted *e = arena_alloc(l.a, sizeof *e);
    e->sources = extract_loop(&l, at);
    e->number = n->loops.n;
    add_loop_sizes(&l, n->loops.at[e->number - 1]);
    map_set(l.a, &l.plans, at, e);
  }
  for (size_t i = 0; i < n->n_roots; i++) n->roots[i] = image_of(&l, n->roots[i]);
  for (size_t i = 0; i < r->n_labels; i++) n->labelled[i] = image_of(&l, n->labelled[i]);
}
