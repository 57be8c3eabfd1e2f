/* Evaluation of requests as one transaction. The steps: evaluate the elements that sizes follow
   from (evaluate_items.h); substitute known values in the graphs (substitute_values.h); leave out
   what depends on inputs of plans; count references, to find which buffers may be overwritten
   (reference_counts.h); make the BUFFERs of all values, so that nothing can fail after the run;
   compile; run in the turns of all states involved (state_storage.h); then fill the slots and
   commit the states, or undo everything but the results of host functions. */
#include "tensor/eval/evaluate.h"

#include "device/memory/buffer_resize.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/computation.h"
#include "tensor/eval/evaluate_items.h"
#include "tensor/eval/substitute_values.h"
#include "tensor/state/graph_input.h"

/** A node to be evaluated, for a request or a host function. The slot stays as it was until there
    is a value: an expression that depends on inputs of a plan is the plan's to compile, and no part
    of it may have become a number. */
typedef struct evaluated_node {
  evaluation_request *request;
  const node **slot; /* NULL: a host function's, or an earlier version of a state than the slot's */
  const node *original; /* the requested node */
  const node *root;     /* its substitute, which is run; retained */
  size_t result;        /* index in the computation; SIZE_MAX: the root is a BUFFER already */
  const node *value;    /* the BUFFER that becomes the slot's node, retained */
  tn_buffer *copy;      /* memory of a state's own, if the value's belongs to something else */
  bool has_set_root, has_set_original; /* computed_value_set was called for them */
} evaluated_node;

typedef struct evaluation {
  tn_context *c;
  evaluation_request *requests;
  size_t n_requests;
  VEC(evaluated_node) nodes;
  evaluation_request host_call; /* of all nodes that are host functions' results */
  value_substitution substitution;
  size_t n_host_calls_retained; /* retained, of the substitution's */
  map original_of; /* host function's node in the substituted graph → the node it was made from */
  computation computation;
  VEC(storage_turn) turns;
  node_list slots;       /* what the requests' slots hold at first */
  evaluated_items items; /* that these depend on */
} evaluation;

static state_record *state_of(const evaluated_node *e) { return e->request->state; }

/* Substitution. */

static evaluated_node *add_node(evaluation *v, evaluation_request *w, const node *original) {
  vec_push(&v->c->arena, &v->nodes,
           (evaluated_node){.request = w, .original = original, .result = SIZE_MAX});
  return &vec_last(&v->nodes);
}

/** Retains the nodes of host functions until the end, so that a reader of the original finds its
    value. */
static void retain_host_calls(evaluation *v) {
  for (; v->n_host_calls_retained < v->substitution.host_calls.n; v->n_host_calls_retained++) {
    const host_call_image *i = &v->substitution.host_calls.at[v->n_host_calls_retained];
    if (!map_has(&v->original_of, i->image))
      map_set(&v->c->arena, &v->original_of, i->image, (void *)i->original);
    ir_retain(i->original);
    ir_retain(i->image);
  }
}

/** Substitutes known values in all graphs. Nodes are collected before and after, not in between, as
    images are keyed by address. */
static void substitute_all(evaluation *v) {
  ir_release_unheld(v->c->ir);
  for (size_t i = 0; i < v->nodes.n; i++) {
    evaluated_node *e = &v->nodes.at[i];
    e->root = ir_retain(substitute_values(&v->substitution, e->original));
  }
  retain_host_calls(v);
  ir_release_unheld(v->c->ir); /* left-over nodes hold references */
}

/* Nodes to be run. */

static void list_graph(evaluation *v) {
  node_list roots = {0};
  for (size_t i = 0; i < v->nodes.n; i++) vec_push(&v->c->arena, &roots, v->nodes.at[i].root);
  reference_counts_list(&v->computation.counts, roots.at, roots.n);
}

static void mark_unbound(evaluation *v) {
  const reference_counts *u = &v->computation.counts;
  for (size_t i = 0; i < v->nodes.n; i++) {
    const evaluated_node *e = &v->nodes.at[i];
    e->request->is_unbound = u->unbound[reference_counts_index(u, e->root)];
    if (e->request->is_unbound && e->request->kind == EVALUATE_VALUE && !e->request->optional)
      refuse_unbound_graph(v->c, e->root);
  }
}

/** Replaces an unbound version of a state by the newest version before it that is not unbound;
    false if there is none that is to be run. */
static bool use_bound_version(evaluation *v, evaluated_node *e) {
  const reference_counts *u = &v->computation.counts;
  const node *n = e->original, *root;
  if (e->request->kind != EVALUATE_VERSION) return false;
  do {
    n = n->src[0];
    if (n->op != OP_SET || computed_value_of(v->c, n)) return false;
    root = map_get(&v->substitution.image, n);
  } while (!map_has(&u->index_of, root) || u->unbound[reference_counts_index(u, root)]);
  ir_retain(root);
  ir_release(v->c->ir, e->root);
  *e = (evaluated_node){.request = e->request, .original = n, .root = root, .result = SIZE_MAX};
  return true;
}

/** Leaves out nodes that have no value outside of the runs of plans and the steps of loops. */
static void drop_unbound(evaluation *v) {
  size_t n = 0;
  if (!reference_counts_find_unbound(&v->computation.counts)) return;
  mark_unbound(v);
  for (size_t i = 0; i < v->nodes.n; i++)
    if (!v->nodes.at[i].request->is_unbound || use_bound_version(v, &v->nodes.at[i]))
      v->nodes.at[n++] = v->nodes.at[i];
    else
      ir_release(v->c->ir, v->nodes.at[i].root);
  v->nodes.n = n;
  list_graph(v);
}

/** The number of a state's marks of versions before the one in a slot; 0, a lower bound, for a
    version that no mark holds. */
static size_t marks_before(const state_record *k, const node *const *slot) {
  size_t n = k->marks.n;
  if (slot == &k->versions.newest) return n;
  return n && slot == &k->marks.at[n - 1].before ? n - 1 : 0;
}

/** Counts the references that a slot and its state drop when there is a value. */
static void drop_references(reference_counts *u, const evaluated_node *e) {
  const state_record *k = state_of(e);
  if (e->slot) reference_counts_release(u, e->original);
  if (e->request->kind != EVALUATE_VERSION) return;
  reference_counts_release(u, k->versions.committed);
  for (size_t i = 0; i < marks_before(k, e->slot); i++)
    reference_counts_release(u, k->marks.at[i].before);
}

/** True if a node's root is memory that holds its value already. Values and state contents are told
    apart by lifetime: a value may outlive the contents of a state, by which plans know the state,
    so a value's memory is never a state's. */
static bool holds_own_value(const evaluation *v, const evaluated_node *e) {
  const graph_input *l = e->root->op == OP_BUFFER ? graph_input_of(v->c, e->root) : NULL;
  return l && l->memory && (state_of(e) || (!l->state && !l->former_state));
}

/** True if the slot holds its root afterwards. */
static bool keeps_root(const evaluation *v, const evaluated_node *e) {
  return e->request->kind == EVALUATE_VALUE && holds_own_value(v, e);
}

static void count_references(evaluation *v) {
  reference_counts *u = &v->computation.counts;
  reference_counts_init(u);
  for (size_t i = 0; i < v->nodes.n; i++) {
    const evaluated_node *e = &v->nodes.at[i];
    drop_references(u, e);
    if (!keeps_root(v, e)) reference_counts_add(u, e->root);
  }
}

/** Adds the results of host functions. Such a function runs once: its result has memory of its own,
    so that it stays for other readers and for another evaluation. */
static void add_host_calls(evaluation *v) {
  reference_counts *u = &v->computation.counts;
  for (size_t i = 0; i < u->order.n; i++) {
    const node *n = u->order.at[i];
    if (n->op != OP_CUSTOM) continue;
    const node *original = map_get(&v->original_of, n); /* NULL: the node is not a substitute */
    if (original) reference_counts_add(u, n);
    add_node(v, &v->host_call, original ? original : n)->root = ir_retain(n);
    reference_counts_add(u, n);
  }
}

/* Values. Their BUFFERs are made before the run, so that nothing can fail after it. */

static const node *new_buffer(evaluation *v, const node *like) {
  const node *made;
  if (graph_input_open(v->c, GRAPH_INPUT_DATA, like->device, (dtype)like->dtype, like->rank,
                       like->dims, &made) != TN_OK)
    diag_rethrow(&v->c->diag);
  return made;
}

/** Makes the BUFFER of a node: its result's, or a new one for a state if the result's belongs to
    something else. `buffers` are those of the results. */
static void make_buffer(evaluation *v, evaluated_node *e, const node **buffers) {
  state_record *k = state_of(e);
  computation_result *r = e->result == SIZE_MAX ? NULL : &v->computation.results.at[e->result];
  bool is_own = k && (!r || buffers[e->result]);
  const node *shared = is_own ? NULL : r ? buffers[e->result] : e->root;
  e->value = e->request->kind == EVALUATE_INIT ? ir_retain(k->versions.committed)
             : shared                          ? ir_retain(shared)
                                               : new_buffer(v, e->root);
  if (is_own && buffer_reserve(context_device_of(v->c, e->root), &e->copy, k->storage->bytes,
                               &v->c->diag) != TN_OK)
    diag_rethrow(&v->c->diag);
  if (is_own || !r) return;
  if (k) r->owner = k;
  if (!shared) buffers[e->result] = e->value;
}

static bool set_computed_value(evaluation *v, const node *n, const node *value) {
  if (computed_value_of(v->c, n)) return false;
  computed_value_set(v->c, n, value);
  return true;
}

static void set_computed_values(evaluation *v, evaluated_node *e) {
  if (e->request->kind == EVALUATE_INIT) return;
  if (e->root->op != OP_BUFFER) e->has_set_root = set_computed_value(v, e->root, e->value);
  if (e->original->op != OP_BUFFER)
    e->has_set_original = set_computed_value(v, e->original, e->value);
}

/** Makes the BUFFERs of all values. States come last, so that no value lies in a state's storage.
 */
static void make_values(evaluation *v) {
  uint64_t count;
  for (size_t i = 0; i < v->nodes.n; i++) {
    if (holds_own_value(v, &v->nodes.at[i])) continue;
    if (!dims_static_count(v->nodes.at[i].root, &count))
      refuse_evaluated_items(v->c, v->nodes.at[i].original);
    v->nodes.at[i].result = computation_add(&v->computation, v->nodes.at[i].root);
  }
  reference_counts_find_needed(&v->computation.counts);
  const node **buffers = arena_calloc(&v->c->arena, v->computation.results.n + 1, sizeof *buffers);
  for (int is_state = 0; is_state <= 1; is_state++)
    for (size_t i = 0; i < v->nodes.n; i++)
      if ((state_of(&v->nodes.at[i]) != NULL) == is_state) make_buffer(v, &v->nodes.at[i], buffers);
  /* The first to set a value keeps it. States come first, as plans know a version by the contents
     of its state; results of host functions, at the end of the list, before other values. */
  for (int is_state = 1; is_state >= 0; is_state--)
    for (size_t i = v->nodes.n; i-- > 0;)
      if ((state_of(&v->nodes.at[i]) != NULL) == is_state) set_computed_values(v, &v->nodes.at[i]);
}

static void list_turns(evaluation *v) {
  arena *a = &v->c->arena;
  const node_list *order = &v->computation.counts.order;
  map seen = {0};
  for (size_t i = 0; i < order->n + v->nodes.n; i++) {
    const node *n = i < order->n ? order->at[i] : NULL;
    state_record *k = n ? NULL : state_of(&v->nodes.at[i - order->n]);
    state_storage *s = k ? k->storage : NULL;
    if (n && n->op == OP_BUFFER) s = graph_input_storage(graph_input_of(v->c, n));
    if (!s || map_has(&seen, s)) continue;
    map_set(a, &seen, s, s);
    vec_push(a, &v->turns, (storage_turn){.storage = s});
  }
}

/** Adds a node for each slot. Several requests may share a slot, which drops its node once. */
static void add_requests(evaluation *v) {
  map seen = {0};
  for (size_t i = 0; i < v->n_requests; i++) {
    const node **slot = v->requests[i].slot;
    if (map_has(&seen, slot)) continue;
    map_set(&v->c->arena, &seen, slot, slot);
    add_node(v, &v->requests[i], *slot)->slot = slot;
  }
}

static void list_slots(void *arg) {
  evaluation *v = arg;
  for (size_t i = 0; i < v->n_requests; i++)
    vec_push(&v->c->arena, &v->slots, *v->requests[i].slot);
}

static void prepare_evaluation(void *arg) {
  evaluation *v = arg;
  add_requests(v);
  substitute_all(v);
  list_graph(v);
  drop_unbound(v);
  count_references(v);
  add_host_calls(v);
  make_values(v);
  list_turns(v);
}

/* The run. */

/** True if the states still hold the contents that the versions were built over. */
static bool is_up_to_date(const evaluation *v) {
  for (size_t i = 0; i < v->nodes.n; i++) {
    const state_record *k = state_of(&v->nodes.at[i]);
    if (v->nodes.at[i].request->kind == EVALUATE_VERSION &&
        !state_storage_is_in(k->storage, graph_input_of(v->c, k->versions.committed)->memory))
      return false;
  }
  return true;
}

static tn_buffer *memory_of(const evaluation *v, const evaluated_node *e) {
  return e->result == SIZE_MAX ? graph_input_of(v->c, e->root)->memory
                               : v->computation.results.at[e->result].memory;
}

/** Copies values into the memory of states whose results belong to something else. */
static tn_status copy_to_states(evaluation *v) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < v->nodes.n && s == TN_OK; i++) {
    const evaluated_node *e = &v->nodes.at[i];
    if (!e->copy) continue;
    s = buffer_copy_prefix(e->copy, memory_of(v, e), state_of(e)->storage->bytes, &v->c->diag);
  }
  return s;
}

/* The end. */

static void fill_slot(evaluation *v, const evaluated_node *e) {
  const node **slot = e->slot, *old = *slot;
  *slot = e->request->kind == EVALUATE_INIT ? NULL : ir_retain(e->value);
  ir_release(v->c->ir, old);
}

static void commit_value(evaluation *v, evaluated_node *e) {
  tn_buffer *memory = e->copy ? e->copy : e->result == SIZE_MAX ? NULL : memory_of(v, e);
  if (memory) graph_input_set_memory(v->c, e->value, memory);
  if (e->slot) fill_slot(v, e);
  if (state_of(e)) state_commit(state_of(e), e->value);
}

/** Forgets values that were not computed. */
static void forget_computed_values(evaluation *v, const evaluated_node *e) {
  if (e->has_set_root) computed_value_forget(v->c, e->root);
  if (e->has_set_original) computed_value_forget(v->c, e->original);
}

static void finish_node(evaluation *v, evaluated_node *e, bool is_done) {
  bool is_kept = e->request == &v->host_call && e->result != SIZE_MAX &&
                 computation_was_written(&v->computation, e->result);
  if (is_done || is_kept)
    commit_value(v, e);
  else
    forget_computed_values(v, e);
}

static void release_evaluation(evaluation *v) {
  ir *ir = v->c->ir;
  for (size_t i = 0; i < v->nodes.n; i++) {
    evaluated_node *e = &v->nodes.at[i];
    ir_release(ir, e->root);
    ir_release(ir, e->value);
    if (e->copy) buffer_release(e->copy);
  }
  for (size_t i = 0; i < v->n_host_calls_retained; i++) {
    ir_release(ir, v->substitution.host_calls.at[i].original);
    ir_release(ir, v->substitution.host_calls.at[i].image);
  }
  evaluated_items_close(&v->items);
  computation_close(&v->computation);
}

static evaluation_outcome evaluate_requests(tn_context *c, evaluation_request requests[], size_t n,
                                            bool has_items) {
  evaluation v = {.c = c, .requests = requests, .n_requests = n, .substitution = {.c = c}};
  v.host_call = (evaluation_request){.kind = EVALUATE_HOST_CALL};
  v.computation.c = v.computation.counts.c = c;
  v.items.c = c;
  tn_status s = has_items ? diag_catch(&c->diag, list_slots, &v) : TN_OK;
  if (s == TN_OK && has_items) s = evaluated_items_open(&v.items, v.slots.at, v.slots.n);
  if (s == TN_OK) s = diag_catch(&c->diag, prepare_evaluation, &v);
  if (s == TN_OK) s = computation_open(&v.computation);
  bool holds_turns = s == TN_OK, is_overtaken = false;
  if (holds_turns) {
    storage_turns_take(c, v.turns.at, v.turns.n);
    s = storage_turns_wait(v.turns.at, v.turns.n, &c->diag);
    is_overtaken = s == TN_OK && !is_up_to_date(&v);
  }
  if (s == TN_OK && !is_overtaken) s = computation_run(&v.computation);
  if (s == TN_OK && !is_overtaken) s = copy_to_states(&v);
  bool is_done = s == TN_OK && !is_overtaken, is_cancelled = s == TN_ERR_CANCELLED;
  for (size_t i = 0; i < v.nodes.n; i++) finish_node(&v, &v.nodes.at[i], is_done);
  if (holds_turns) storage_turns_end(v.turns.at, v.turns.n);
  release_evaluation(&v);
  return is_done        ? EVALUATION_DONE
         : is_overtaken ? EVALUATION_OVERTAKEN
         : is_cancelled ? EVALUATION_CANCELLED
                        : EVALUATION_FAILED;
}

evaluation_outcome evaluate(tn_context *c, evaluation_request requests[], size_t n) {
  return evaluate_requests(c, requests, n, ir_has_items(c->ir));
}

evaluation_outcome evaluate_of_items(tn_context *c, evaluation_request requests[], size_t n) {
  return evaluate_requests(c, requests, n, false);
}
