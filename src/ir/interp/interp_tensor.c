/* Implements the interpreter of tensor graphs: evaluates nodes in topological order on whole
   arrays, and frees an array after its last use, by use counts. */
#include "ir/core/shape_inference.h"
#include "ir/core/tensor_loop.h"
#include "ir/interp/tensor_run.h"

#include <string.h>

/** A LOOP in execution. */
typedef struct loop_run {
  const node *loop;
  node_list body;  /* nodes that depend on its range, in order */
  node_list own;   /* nodes of the body that its trips run; inner loops run the others */
  value **results; /* states, then emitted arrays */
  value **next;    /* states after the current trip */
  size_t depth;    /* loops around it */
} loop_run;

/* Sources and host functions. */

/** Uses an array of the caller as the value of a node, without a copy. */
static void borrow_array(run *r, const node *n, const interp_array *a) {
  int64_t dims[INTERP_MAX_RANK];
  tensor_dims(r, n, dims);
  size_t bytes =
      interp_element_count(n->rank, dims, dtype_bytes(n->dtype), n, r->d) * dtype_bytes(n->dtype);
  if (a->rank != n->rank || memcmp(a->dims, dims, n->rank * sizeof *dims) || a->bytes < bytes)
    diag_raise(r->d, TN_ERR_SHAPE, "%s %lld was given an array of another shape", op_name(n->op),
               (long long)n->ints[0]);
  strided borrowed = strided_dense(a->dtype, n->rank, dims, a->data);
  new_view(r, tensor_slot(r, n), &borrowed, NULL);
}

static void run_buffer(run *r, const node *n) {
  const interp_array *a = r->e->buffer ? r->e->buffer(r->e->user, n->ints[0], n->ints[1]) : NULL;
  if (!a || a->dtype != n->dtype)
    diag_raise(r->d, TN_ERR_ARGUMENT, "buffer %lld, version %lld, has no contents of type %s",
               (long long)n->ints[0], (long long)n->ints[1], dtype_name(n->dtype));
  borrow_array(r, n, a);
}

/** One line of numbers, which the other axes repeat. */
static void run_iota(run *r, const node *n) {
  int64_t dims[INTERP_MAX_RANK], axis = n->ints[0];
  tensor_dims(r, n, dims);
  interp_element_count(n->rank, dims, dtype_bytes(n->dtype), n, r->d);
  strided *line = new_array(r, tensor_slot(r, n), n, n->dtype, 1, &dims[axis]);
  for (int64_t i = 0; i < dims[axis]; i++) strided_write(line, i, (uint64_t)i);
  *line = strided_dense(n->dtype, n->rank, dims, line->data);
  for (int64_t i = 0; i < n->rank; i++) line->strides[i] = i == axis;
}

/** A tensor on another device has the same elements. */
static void run_to(run *r, const node *n) {
  share_value(r, tensor_slot(r, n), tensor_value(r, n->src[0]));
}

/** The first sources of a node, as the arrays that functions of the caller read. */
static interp_array *inputs_of(run *r, const node *n, size_t n_inputs) {
  interp_array *inputs = arena_alloc(&r->work, n_inputs * sizeof *inputs);
  for (size_t i = 0; i < n_inputs; i++) inputs[i] = tensor_dense_array(r, n->src[i]);
  return inputs;
}

static void run_custom(run *r, const node *n) {
  size_t n_inputs = (size_t)n->ints[2];
  if (!r->e->custom)
    diag_raise(r->d, TN_ERR_ARGUMENT, "there is no host function for custom %lld",
               (long long)n->ints[0]);
  arena_mark here = arena_save(&r->work);
  const interp_array *inputs = inputs_of(r, n, n_inputs);
  result_of(r, n);
  interp_array y = tensor_dense_array(r, n);
  if (r->e->custom(r->e->user, n, inputs, n_inputs, &y, r->d) != TN_OK) diag_rethrow(r->d);
  arena_rewind(&r->work, here);
}

static void run_kernel(run *r, const node *n) {
  size_t n_inputs = (size_t)n->ints[1];
  if (!r->e->kernel)
    diag_raise(r->d, TN_ERR_ARGUMENT,
               "there is no interpreter of kernels for a kernel of slot %lld",
               (long long)n->ints[0]);
  arena_mark here = arena_save(&r->work);
  const interp_array *inputs = inputs_of(r, n, n_inputs);
  result_of(r, n);
  interp_array y = tensor_dense_array(r, n);
  if (r->e->kernel(r->e, n, inputs, &y, r->work.mem, r->d) != TN_OK) diag_rethrow(r->d);
  arena_rewind(&r->work, here);
}

/* Loops: nodes that depend on the range of a loop run in each trip. Arrays from outside of a loop
   live until the outermost loop has ended. */

static void evaluate(run *r, const node *n);

/** True unless all that reads a node is in sides that are not taken. */
static bool is_needed(const run *r, const node *n) {
  const guard *g = r->nodes.guards ? r->nodes.guards[tensor_position(r, n)] : NULL;
  for (size_t i = 0; g && i < g->n; i++)
    if ((tensor_index(r, g->at[i].condition) != 0) != g->at[i].is_one) return false;
  return true;
}

static void run_node(run *r, const node *n) {
  if (n->op == OP_RANGE || r->nodes.is_joined[tensor_position(r, n)] || !is_needed(r, n)) return;
  if (n->dtype == DT_INDEX)
    r->nodes.index[tensor_position(r, n)] = index_value(r, n);
  else
    evaluate(r, n);
}

static void start_loop(run *r, loop_run *k) {
  for (size_t i = 0; i < loop_n_results(k->loop); i++) {
    const node *sizes[INTERP_MAX_RANK + 1];
    int64_t dims[INTERP_MAX_RANK + 1];
    size_t rank = loop_result_sizes(k->loop, i, sizes);
    free_value(r, &k->results[i]);
    if (i < loop_n_states(k->loop)) {
      share_value(r, &k->results[i], tensor_value(r, loop_init(k->loop, i)));
      continue;
    }
    for (size_t d = 0; d < rank; d++) dims[d] = tensor_index(r, sizes[d]);
    new_array(r, &k->results[i], k->loop, loop_result_dtype(k->loop, i), rank, dims);
  }
}

/** Steps all states at once from their old values, then stores the emitted tensors. */
static void end_trip(run *r, loop_run *k) {
  size_t n = loop_n_states(k->loop);
  for (size_t i = 0; i < n; i++)
    share_value(r, &k->next[i], tensor_value(r, loop_step(k->loop, i)));
  for (size_t i = 0; i < loop_n_emits(k->loop); i++) {
    const strided *from = tensor_array(r, loop_emit(k->loop, i)), *to = &k->results[n + i]->a;
    int64_t place = tensor_index(r, loop_emit_index(k->loop, i));
    if (place < 0 || place >= to->dims[0]) raise_bad_shape(r, k->loop);
    strided_copy(from, to->data + (size_t)place * strided_bytes(from));
  }
  for (size_t i = 0; i < n; i++) {
    free_value(r, &k->results[i]);
    k->results[i] = k->next[i];
    k->next[i] = NULL;
  }
  for (size_t i = 0; i < k->own.n; i++)
    free_value(r, &r->nodes.at[tensor_position(r, k->own.at[i])]);
}

/** True if the state that ends a loop is true. */
static bool ends(const loop_run *k) {
  size_t until = loop_until(k->loop);
  return until != SIZE_MAX && strided_read(&k->results[until]->a, 0);
}

/** Recursion is as deep as the nesting of loops, which is bounded. */
static void run_loop(run *r, loop_run *k) {
  int64_t trips = tensor_index(r, range_extent(loop_range(k->loop)));
  start_loop(r, k);
  for (int64_t t = 0; t < trips && !ends(k); t++) {
    r->nodes.index[tensor_position(r, loop_range(k->loop))] = t;
    for (size_t i = 0; i < k->own.n; i++) run_node(r, k->own.at[i]);
    end_trip(r, k);
  }
}

static void run_carry(run *r, const node *n) {
  const loop_run *k = map_get(&r->inside, n);
  share_value(r, tensor_slot(r, n), k->results[n->ints[0]]);
}

static void run_result(run *r, const node *n) {
  const loop_run *k = map_get(&r->loops, n->src[0]);
  if (!k) diag_raise(r->d, TN_ERR_INTERNAL, "a loop that has become a plan of its own");
  share_value(r, tensor_slot(r, n), k->results[n->ints[0]]);
}

/** Lists the nodes below a loop that depend on its range. */
static void list_body(run *r, loop_run *k) {
  map dependent = {0};
  node_list order = topo_sort(&r->work, &k->loop, 1, NULL, NULL);
  for (size_t i = 0; i + 1 < order.n; i++) {
    const node *n = order.at[i];
    bool depends = n == loop_range(k->loop);
    for (uint32_t s = 0; s < n->n_src; s++) depends |= map_has(&dependent, n->src[s]);
    if (!depends) continue;
    map_set(&r->work, &dependent, n, NULL);
    vec_push(&r->work, &k->body, n);
    if (map_has(&r->inside, n)) continue;
    map_set(&r->work, &r->inside, n, k);
    vec_push(&r->work, &k->own, n);
  }
}

/** Lists the loops; inner ones come before those around them. */
static void find_loops(run *r) {
  for (size_t i = 0; i < r->nodes.order.n; i++) {
    const node *n = r->nodes.order.at[i];
    if (n->op != OP_LOOP) continue;
    loop_run *k = arena_calloc(&r->work, 1, sizeof *k);
    k->loop = n;
    k->results = arena_calloc(&r->work, loop_n_results(n) + 1, sizeof *k->results);
    k->next = arena_calloc(&r->work, loop_n_states(n) + 1, sizeof *k->next);
    map_set(&r->work, &r->loops, n, k);
    list_body(r, k);
    for (size_t b = 0; b < k->body.n; b++) {
      const loop_run *inner = map_get(&r->loops, k->body.at[b]);
      if (inner && inner->depth >= k->depth) k->depth = inner->depth + 1;
    }
    if (k->depth >= LOOP_MAX_DEPTH)
      diag_raise(r->d, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_MAX_DEPTH);
  }
}

static void run_pick(run *r, const node *n) {
  const value *from = tensor_value(r, n->src[tensor_index(r, n->src[0]) ? 1 : 2]);
  int64_t dims[INTERP_MAX_RANK];
  tensor_dims(r, n, dims);
  if (memcmp(dims, from->a.dims, n->rank * sizeof *dims)) raise_bad_shape(r, n);
  share_value(r, tensor_slot(r, n), from);
}

static void evaluate(run *r, const node *n) {
  switch (n->op) {
  case OP_PICK: run_pick(r, n); return;
  case OP_LOOP: run_loop(r, map_get(&r->loops, n)); return;
  case OP_CARRY: run_carry(r, n); return;
  case OP_RESULT: run_result(r, n); return;
  case OP_CONST: strided_write(result_of(r, n), 0, (uint64_t)node_int(n)); return;
  case OP_VAR: strided_write(result_of(r, n), 0, interp_var_value(r->e, n, r->d)); return;
  case OP_PARAM: borrow_array(r, n, interp_param(r->e, n, r->d)); return;
  case OP_BUFFER: run_buffer(r, n); return;
  case OP_IOTA: run_iota(r, n); return;
  case OP_RESHAPE:
  case OP_EXPAND:
  case OP_PERMUTE:
  case OP_SLICE:
  case OP_PAD: run_movement(r, n); return;
  case OP_GATHER: run_gather(r, n); return;
  case OP_TO: run_to(r, n); return;
  case OP_REDUCE: run_reduce(r, n); return;
  case OP_SET: run_set(r, n); return;
  case OP_SCATTER: run_scatter(r, n); return;
  case OP_SCAN: run_scan(r, n); return;
  case OP_CUSTOM: run_custom(r, n); return;
  case OP_KERNEL: run_kernel(r, n); return;
  default: run_elementwise(r, n); return;
  }
}

/* Graphs. */

static void number_nodes(run *r) {
  r->nodes.order = topo_sort(&r->work, r->roots, r->n, NULL, NULL);
  r->nodes.index = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.index);
  r->nodes.uses = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.uses);
  for (size_t i = 0; i < r->nodes.order.n; i++)
    map_set(&r->work, &r->nodes.number, r->nodes.order.at[i], (void *)(uintptr_t)(i + 1));
  for (size_t i = 0; i < r->nodes.order.n; i++)
    for (uint32_t k = 0; k < r->nodes.order.at[i]->n_src; k++)
      r->nodes.uses[tensor_position(r, r->nodes.order.at[i]->src[k])]++;
  for (size_t i = 0; i < r->n; i++) r->nodes.uses[tensor_position(r, r->roots[i])]++;
  r->nodes.at = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.at);
}

/** Finds the elementwise nodes that a REDUCE alone reads, and computes. Such a node and its reader
    are in the same loops and on the same sides of choices. */
static void find_joined(run *r) {
  node_table *t = &r->nodes;
  t->is_joined = arena_calloc(&r->work, t->order.n, sizeof *t->is_joined);
  for (size_t i = 0; i < t->order.n; i++) {
    const node *n = t->order.at[i];
    if (n->op != OP_REDUCE || !op_is_elementwise(n->src[0]->op)) continue;
    if (n->src[0]->dtype == DT_INDEX) continue;
    size_t x = tensor_position(r, n->src[0]);
    t->is_joined[x] = t->uses[x] == 1;
  }
}

/** Finds under which conditions each node is needed, from the roots back. */
static void find_guards(run *r) {
  const node_list *order = &r->nodes.order;
  guard_table t = {.a = &r->work};
  bool has_choices = false;
  for (size_t i = 0; i < order->n; i++) has_choices |= guard_condition(order->at[i]) != NULL;
  if (!has_choices) return;
  const guard **guards = arena_calloc(&r->work, order->n, sizeof *guards);
  for (size_t i = 0; i < r->n; i++) guards[tensor_position(r, r->roots[i])] = guard_always(&t);
  for (size_t i = order->n; i-- > 0;)
    for (size_t k = 0; k < order->at[i]->n_src; k++) {
      const guard **of = &guards[tensor_position(r, order->at[i]->src[k])];
      *of = guard_common(&t, *of, guard_of_source(&t, guards[i], order->at[i], k));
    }
  r->nodes.guards = guards;
}

/** Frees arrays that no other node reads any more. What a joined node reads is freed with it. */
static void release_sources(run *r, const node *n) {
  if (r->nodes.is_joined[tensor_position(r, n)] && r->nodes.uses[tensor_position(r, n)]) return;
  for (uint32_t k = 0; k < n->n_src; k++) {
    size_t s = tensor_position(r, n->src[k]);
    if (--r->nodes.uses[s]) continue;
    free_value(r, &r->nodes.at[s]);
    if (r->nodes.is_joined[s]) release_sources(r, n->src[k]);
  }
}

static void run_graph(void *arg) {
  run *r = arg;
  number_nodes(r);
  find_joined(r);
  find_guards(r);
  find_loops(r);
  for (size_t i = 0; i < r->nodes.order.n; i++) {
    const node *n = r->nodes.order.at[i];
    if (map_has(&r->inside, n)) continue;
    run_node(r, n);
    const loop_run *loop = map_get(&r->loops, n);
    for (size_t k = 0; loop && k < loop->body.n; k++) release_sources(r, loop->body.at[k]);
    release_sources(r, n);
  }
  for (size_t i = 0; i < r->n; i++) {
    strided a = tensor_operand(r, r->roots[i]);
    r->results[i] = (interp_array){.dtype = a.dtype, .rank = a.rank, .bytes = strided_bytes(&a)};
    if (a.rank) memcpy(r->results[i].dims, a.dims, a.rank * sizeof *a.dims);
    r->results[i].data = arena_alloc(r->out, r->results[i].bytes);
    strided_copy(&a, r->results[i].data);
  }
}

tn_status interp_tensor(const interp_env *e, const node *const roots[], size_t n,
                        interp_array results[], arena *a) {
  run r = {.e = e, .roots = roots, .n = n, .results = results, .out = a, .d = a->diag};
  arena_init(&r.work, a->mem, a->diag);
  tn_status status = diag_catch(a->diag, run_graph, &r);
  for (size_t i = 0; r.nodes.at && i < r.nodes.order.n; i++) free_value(&r, &r.nodes.at[i]);
  for (size_t i = 0; i < r.loops.n; i++) {
    loop_run *k = r.loops.at[i].value;
    for (size_t c = 0; c < loop_n_results(k->loop); c++) free_value(&r, &k->results[c]);
    for (size_t c = 0; c < loop_n_states(k->loop); c++) free_value(&r, &k->next[c]);
  }
  free_value(&r, &r.positions);
  free_value(&r, &r.moved);
  arena_free(&r.work);
  return status;
}
