#include "tensor/realize.h"

#include "device/span.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "runtime/binding.h"
#include "tensor/dims.h"
#include "tensor/leaf.h"
#include "tensor/plan_cache.h"

#include <string.h>

typedef enum want_kind { WANT_ASK, WANT_INIT, WANT_ASSIGN, WANT_CUSTOM } want_kind;

/** A slot whose node is to be computed. */
typedef struct want {
  want_kind kind;
  const node **slot;
  cell *cell;    /* INIT, ASSIGN */
  bool optional; /* ASK */
  bool dropped;  /* it depends on what only a plan's run brings: it stays as it is, */
  bool refused;  /* or fails */
  bool told_root, told_original; /* leaf_realise was told of them */
  const node *held;              /* CUSTOM: what `slot` points to */
  const node *original;          /* what the slot held before, if not the node that is run */
  size_t result;                 /* of the run; SIZE_MAX: the slot's node is a BUFFER already */
  const node *value;             /* the BUFFER that becomes the slot's node, held */
  tn_buffer *copy;               /* a cell's own memory, where the value's is somebody else's */
} want;

/** A root of the plan. */
typedef struct result {
  const node *root, *buffer; /* the BUFFER is held */
  size_t at;                 /* of the plan's buffers */
  tn_buffer *memory;
  const cell *owner; /* the state whose storage it is to be */
} result;

typedef struct job {
  tn_context *c;
  realize_mode mode;
  const ask *asks;
  size_t n_asks;
  VEC(want) wants;
  VEC(result) results;
  map result_of; /* root → its number + 1 */
  resolver resolver;
  size_t customs_held; /* of the resolver's */
  node_list order;
  map place;      /* node → its place in `order` + 1 */
  bool *unbound;  /* of each node: it depends on inputs or variables */
  uint32_t *held; /* references that are known: of the graph's nodes, slots and cells */
  bool *needed;   /* something else reads the node after the run */
  bool has_custom;
  bool started;   /* what fails from now on, fails the assigns */
  bool in_turn;   /* turns were taken */
  bool overtaken; /* a run beside the context has changed a state: nothing was done */
  diag refusal;   /* why a want was refused */
  plan *plan;
  size_t *inputs;
  binding *binding;
  VEC(turn) turns;
} job;

/* What is wanted. */

static void add_want(job *j, want w) {
  w.result = SIZE_MAX;
  vec_push(&j->c->arena, &j->wants, w);
}

static void add_cell(job *j, builder *b, cell *k) {
  cell_refresh(b, k);
  if (k->init) add_want(j, (want){.kind = WANT_INIT, .slot = &k->init, .cell = k});
  bool split = j->mode == REALIZE_BEFORE && k->scope == j->c->scope && k->before;
  const node **slot = split ? &k->before : &k->now;
  if (*slot != k->settled) add_want(j, (want){.kind = WANT_ASSIGN, .slot = slot, .cell = k});
}

/** First contents come first: later ones are read through them. */
static void collect(job *j) {
  builder b = context_builder(j->c);
  for (cell *k = j->c->pending; k; k = k->next_pending) add_cell(j, &b, k);
  for (size_t i = 0; i < j->n_asks; i++)
    add_want(j, (want){.kind = WANT_ASK, .slot = j->asks[i].slot, .optional = j->asks[i].optional});
}

/* The graph with values in place of what was computed before. */

static bool is_new(const resolver *r, const node *n) { return !map_has(&r->image, n); }

static const node *image_of(resolver *r, const node *n) {
  const node *buffer = leaf_realised(r->c, n);
  if (buffer) return buffer;
  if (n->op == OP_BUFFER) {
    const leaf *l = leaf_of(r->c, n);
    if (l->kind != LEAF_DATA || l->memory || !l->cell || !l->cell->init) return n;
    const node *init = map_get(&r->image, l->cell->init);
    return init ? init : l->cell->init;
  }
  arena_mark here = arena_here(&r->c->arena);
  const node **src = arena_alloc(&r->c->arena, n->n_src * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = map_get(&r->image, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  size_t count = ir_count(r->c->ir);
  const node *image = changed ? subst_rebuild(r->c->ir, n, src) : n;
  arena_reset(&r->c->arena, here);
  if (n->op == OP_CUSTOM && image != n) {
    if (ir_count(r->c->ir) > count) leaf_of(r->c, n)->nodes++;
    vec_push(&r->c->arena, &r->customs, (custom_image){n, image});
  }
  return image;
}

static bool enters(const node *n, void *user) {
  const resolver *r = user;
  return is_new(r, n) && !leaf_realised(r->c, n);
}

const node *resolver_image(resolver *r, const node *root) {
  node_list order = topo_sort(&r->c->arena, &root, 1, enters, r);
  for (size_t i = 0; i < order.n; i++)
    if (is_new(r, order.at[i]))
      map_set(&r->c->arena, &r->image, order.at[i], (void *)image_of(r, order.at[i]));
  return map_get(&r->image, root);
}

/** Swaps a slot's node for what is run for it. The old one is kept, if others hold it, to be told
    its value. Nothing is freed before all is done: the image is known by addresses. */
static void resolve(job *j, want *w) {
  const node *old = *w->slot, *now = resolver_image(&j->resolver, old);
  if (old == now) return;
  *w->slot = ir_retain(now);
  w->original = old;
}

/** Held until the end, so that what reads the original is told its value. */
static void hold_customs(job *j) {
  for (; j->customs_held < j->resolver.customs.n; j->customs_held++) {
    ir_retain(j->resolver.customs.at[j->customs_held].original);
    ir_retain(j->resolver.customs.at[j->customs_held].image);
  }
}

static void resolve_all(job *j) {
  ir_collect(j->c->ir);
  for (size_t i = 0; i < j->wants.n; i++) resolve(j, &j->wants.at[i]);
  hold_customs(j);
  ir_collect(j->c->ir); /* what resolving left behind holds references */
  for (size_t i = 0; i < j->wants.n; i++) {
    want *w = &j->wants.at[i];
    if (!w->original || (w->original->refs > 1 && w->kind != WANT_INIT)) continue;
    ir_release(j->c->ir, w->original);
    w->original = NULL;
  }
}

/* What the graph holds. */

static size_t place_of(const job *j, const node *n) {
  return (size_t)(uintptr_t)map_get(&j->place, n) - 1;
}

static void list_graph(job *j) {
  arena *a = &j->c->arena;
  node_list roots = {0};
  for (size_t i = 0; i < j->wants.n; i++)
    if (!j->wants.at[i].dropped) vec_push(a, &roots, *j->wants.at[i].slot);
  j->order = topo_sort(a, roots.at, roots.n, NULL, NULL);
  j->place = (map){0};
  for (size_t i = 0; i < j->order.n; i++)
    map_set(a, &j->place, j->order.at[i], (void *)(uintptr_t)(i + 1));
}

static bool is_unbound(job *j, const node *n) {
  if (n->op == OP_VAR) return true;
  if (n->op == OP_BUFFER && leaf_of(j->c, n)->kind != LEAF_DATA) return true;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (j->unbound[place_of(j, n->src[i])]) return true;
  return false;
}

/** Sets in the job what is missing for a run. */
static void explain(job *j) {
  static const char text[] = "it depends on the %s %s, which has a value in a plan's runs only";
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i];
    const leaf *l = n->op == OP_BUFFER ? leaf_of(j->c, n) : NULL;
    if (n->op == OP_VAR) diag_set(&j->refusal, TN_ERR_ARGUMENT, text, "size", n->text);
    if (l && l->kind == LEAF_INPUT) diag_set(&j->refusal, TN_ERR_ARGUMENT, text, "input", l->name);
  }
}

/** Whether a want that cannot be run now may stay as it is. */
static bool may_wait(const job *j, const want *w) {
  if (w->kind == WANT_ASK) return w->optional;
  return w->kind == WANT_ASSIGN && (j->mode != REALIZE_LAST || w->cell->scope != j->c->scope);
}

static void drop_unbound(job *j) {
  bool any = false;
  j->unbound = arena_calloc(&j->c->arena, j->order.n + 1, sizeof *j->unbound);
  for (size_t i = 0; i < j->order.n; i++) any |= j->unbound[i] = is_unbound(j, j->order.at[i]);
  if (!any) return;
  for (size_t i = 0; i < j->wants.n; i++) {
    want *w = &j->wants.at[i];
    if (!j->unbound[place_of(j, *w->slot)]) continue;
    w->dropped = true;
    if (may_wait(j, w)) continue;
    w->refused = true;
    explain(j);
    if (j->mode != REALIZE_LAST) diag_raise(&j->c->diag, j->refusal.status, "%s", j->refusal.text);
  }
  list_graph(j);
}

/* What may be overwritten: contents that nothing reads after the run. */

static void count_held(job *j, const node *n) {
  if (n && map_has(&j->place, n)) j->held[place_of(j, n)]++;
}

static void count_references(job *j) {
  j->held = arena_calloc(&j->c->arena, j->order.n + 1, sizeof *j->held);
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i];
    j->has_custom |= n->op == OP_CUSTOM;
    for (uint32_t k = 0; k < n->n_src; k++) j->held[place_of(j, n->src[k])]++;
  }
  for (size_t i = 0; i < j->wants.n; i++)
    if (!j->wants.at[i].dropped) count_held(j, *j->wants.at[i].slot);
  for (size_t i = 0; i < j->wants.n; i++) {
    const want *w = &j->wants.at[i];
    if (w->kind != WANT_ASSIGN || w->dropped) continue;
    count_held(j, w->cell->settled);
    if (w->slot != &w->cell->before) count_held(j, w->cell->before);
  }
}

static bool is_held_outside(const job *j, size_t place) {
  return j->order.at[place]->refs > j->held[place];
}

/** The node that one of the graph was made from; NULL if it is as it was. */
static const node *original_of(const job *j, const node *image) {
  for (size_t i = 0; i < j->customs_held; i++)
    if (j->resolver.customs.at[i].image == image) return j->resolver.customs.at[i].original;
  return NULL;
}

/** An operation of the host's runs once, so its value stays for who else reads it. */
static void want_customs(job *j) {
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i], *original = n->op == OP_CUSTOM ? original_of(j, n) : NULL;
    if (n->op != OP_CUSTOM) continue;
    if (original) j->held[i]++;
    if (!is_held_outside(j, i) && !(original && original->refs > 1)) continue;
    add_want(j, (want){.kind = WANT_CUSTOM, .held = ir_retain(n)});
    if (original) vec_last(&j->wants).original = ir_retain(original);
    j->held[i]++;
  }
  for (size_t i = 0; i < j->wants.n; i++)
    if (j->wants.at[i].kind == WANT_CUSTOM) j->wants.at[i].slot = &j->wants.at[i].held;
}

/** From users to sources: what a node that is needed again reads, is needed. Roots have values. */
static void find_needed(job *j) {
  j->needed = arena_calloc(&j->c->arena, j->order.n + 1, sizeof *j->needed);
  for (size_t i = j->order.n; i-- > 0;) {
    const node *n = j->order.at[i];
    bool is_root = map_has(&j->result_of, n);
    j->needed[i] |= is_held_outside(j, i);
    if (is_root || !j->needed[i]) continue;
    for (uint32_t k = 0; k < n->n_src; k++) j->needed[place_of(j, n->src[k])] = true;
  }
}

/** In place a failure in the middle could not be undone; without host functions there is none. */
static bool may_overwrite(void *user, const node *buffer) {
  job *j = user;
  const leaf *l = leaf_of(j->c, buffer);
  return l->cell && l->cell->settled == buffer && !j->has_custom && !j->needed[place_of(j, buffer)];
}

/* Results: their BUFFERs are made before the run, so that nothing can fail after it. */

static bool is_value(job *j, const node *n) {
  return n->op == OP_BUFFER && leaf_of(j->c, n)->memory;
}

static size_t add_result(job *j, want *w, const node *root) {
  size_t i = (size_t)(uintptr_t)map_get(&j->result_of, root);
  if (!i) {
    uint64_t count;
    if (!dims_count(root, &count) || count > (uint64_t)PTRDIFF_MAX / dtype_bytes(root->dtype))
      diag_raise(&j->c->diag, TN_ERR_SHAPE, "more elements than memory can hold");
    vec_push(&j->c->arena, &j->results, (result){.root = root});
    i = j->results.n;
    map_set(&j->c->arena, &j->result_of, root, (void *)(uintptr_t)i);
  }
  w->result = i - 1;
  return i - 1;
}

/** The BUFFER of a want: the result's, or a cell's own if that is another's. */
static void make_buffer(job *j, want *w) {
  const node *like = *w->slot;
  result *r = w->result == SIZE_MAX ? NULL : &j->results.at[w->result];
  bool own = w->cell && (!r || r->owner);
  if (!r && !own) {
    w->value = ir_retain(like);
    return;
  }
  if (w->kind == WANT_INIT)
    w->value = ir_retain(w->cell->settled);
  else if (r && r->buffer && !own)
    w->value = ir_retain(r->buffer);
  else if (leaf_open(j->c, LEAF_DATA, (dtype)like->dtype, like->rank, like->dims, &w->value) !=
           TN_OK)
    diag_rethrow(&j->c->diag);
  if (own) {
    tn_span span;
    uint64_t bytes = w->cell->store->bytes;
    if (buffer_open(j->c->device, bytes, &w->copy, &j->c->diag) != TN_OK ||
        buffer_span(w->copy, &span, &j->c->diag) != TN_OK)
      diag_rethrow(&j->c->diag);
    return;
  }
  if (w->cell) r->owner = w->cell;
  if (!r->buffer) r->buffer = ir_retain(w->value);
}

static bool tell_value(job *j, const node *n, const node *value) {
  if (leaf_realised(j->c, n)) return false;
  leaf_realise(j->c, n, value);
  return true;
}

/** Cells first, so that a result that is a state's storage is known as such. */
static void make_results(job *j) {
  for (size_t i = 0; i < j->wants.n; i++) {
    want *w = &j->wants.at[i];
    if (!w->dropped && !is_value(j, *w->slot)) add_result(j, w, *w->slot);
  }
  find_needed(j);
  for (int cells = 1; cells >= 0; cells--)
    for (size_t i = 0; i < j->wants.n; i++) {
      want *w = &j->wants.at[i];
      if (!w->dropped && (w->cell != NULL) == cells) make_buffer(j, w);
    }
  for (size_t i = 0; i < j->wants.n; i++) {
    want *w = &j->wants.at[i];
    if (w->dropped || w->kind == WANT_INIT) continue;
    if ((*w->slot)->op != OP_BUFFER) w->told_root = tell_value(j, *w->slot, w->value);
    if (w->original) w->told_original = tell_value(j, w->original, w->value);
  }
}

static void list_turns(job *j) {
  arena *a = &j->c->arena;
  map seen = {0};
  for (size_t i = 0; i < j->order.n + j->wants.n; i++) {
    const node *n = i < j->order.n ? j->order.at[i] : NULL;
    cell *k = n ? NULL : j->wants.at[i - j->order.n].cell;
    if (n && n->op == OP_BUFFER) k = leaf_of(j->c, n)->cell;
    if (!k || map_has(&seen, k->store)) continue;
    map_set(a, &seen, k->store, k);
    vec_push(a, &j->turns, (turn){.store = k->store});
  }
}

static void prepare(void *arg) {
  job *j = arg;
  collect(j);
  resolve_all(j);
  list_graph(j);
  drop_unbound(j);
  count_references(j);
  want_customs(j);
  make_results(j);
  list_turns(j);
}

/* The run. */

static bool is_shared(const job *j, size_t i) {
  const result *r = &j->results.at[i];
  for (size_t k = 0; k < i; k++)
    if (j->results.at[k].at == r->at) return true;
  return false;
}

/** Whether a buffer of the plan is what a cell's contents are in. */
static bool is_contents(const job *j, size_t at, const cell *k) {
  for (size_t i = 0, b = 0; i < j->order.n; i++)
    if (j->order.at[i]->op == OP_BUFFER && j->inputs[b++] == at)
      return leaf_of(j->c, j->order.at[i])->cell == k;
  return false;
}

/** The memory of a result: that of the state which the plan overwrites, or its own. */
static tn_status place_result(job *j, size_t i) {
  tn_context *c = j->c;
  result *r = &j->results.at[i];
  uint64_t bytes;
  tn_span span;
  r->at = plan_output(j->plan, i);
  bool is_input = plan_buffer_at(j->plan, r->at)->role == ROLE_INPUT;
  if (is_input && r->owner && is_contents(j, r->at, r->owner)) {
    r->memory = buffer_retain(leaf_of(c, r->owner->settled)->memory);
    return TN_OK;
  }
  tn_status s = binding_bytes(j->binding, r->at, &bytes, &c->diag);
  if (s == TN_OK) s = buffer_open(c->device, bytes, &r->memory, &c->diag);
  if (s == TN_OK) s = buffer_span(r->memory, &span, &c->diag);
  if (s != TN_OK || is_input || is_shared(j, i)) return s;
  return binding_set_buffer(j->binding, r->at, r->memory, &c->diag);
}

static tn_status place_inputs(job *j) {
  tn_status s = TN_OK;
  for (size_t i = 0, k = 0; i < j->order.n && s == TN_OK; i++) {
    const node *n = j->order.at[i];
    if (n->op != OP_BUFFER) continue;
    size_t at = j->inputs[k++];
    if (at != SIZE_MAX)
      s = binding_set_buffer(j->binding, at, leaf_of(j->c, n)->memory, &j->c->diag);
  }
  return s;
}

static const node **roots_of(job *j) {
  const node **roots = arena_alloc(&j->c->arena, j->results.n * sizeof *roots);
  for (size_t i = 0; i < j->results.n; i++) roots[i] = j->results.at[i].root;
  return roots;
}

static void list_roots(void *arg) {
  job *j = ((void **)arg)[0];
  ((void **)arg)[1] = (void *)roots_of(j);
}

static tn_status make_plan(job *j) {
  void *arg[] = {j, NULL};
  tn_status s = diag_catch(&j->c->diag, list_roots, arg);
  plan_ask a = {.roots = arg[1],
                .n_roots = j->results.n,
                .order = &j->order,
                .may_overwrite = may_overwrite,
                .user = j};
  return s == TN_OK ? plan_cache_get(j->c, &a, &j->plan, &j->inputs) : s;
}

static tn_status copy_memory(tn_buffer *to, tn_buffer *from, uint64_t bytes, diag *d) {
  tn_span a, b;
  tn_status s = buffer_span(to, &a, d);
  if (s == TN_OK) s = buffer_span(from, &b, d);
  a.bytes = b.bytes = bytes;
  return s == TN_OK ? span_copy(&a, &b, d) : s;
}

/** Results that the plan found to be the same, and cells that start as another's contents. */
static tn_status make_copies(job *j) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < j->results.n && s == TN_OK; i++) {
    tn_buffer *at = binding_buffer(j->binding, j->results.at[i].at);
    if (at == j->results.at[i].memory) continue;
    uint64_t bytes;
    s = binding_bytes(j->binding, j->results.at[i].at, &bytes, &j->c->diag);
    if (s == TN_OK) s = copy_memory(j->results.at[i].memory, at, bytes, &j->c->diag);
  }
  for (size_t i = 0; i < j->wants.n && s == TN_OK; i++) {
    const want *w = &j->wants.at[i];
    if (!w->copy) continue;
    tn_buffer *from =
        w->result == SIZE_MAX ? leaf_of(j->c, *w->slot)->memory : j->results.at[w->result].memory;
    s = copy_memory(w->copy, from, w->cell->store->bytes, &j->c->diag);
  }
  return s;
}

static tn_status run_plan(job *j) {
  tn_queue *queue;
  tn_status s = make_plan(j);
  if (s == TN_OK) s = context_queue(j->c, &queue, &j->c->diag);
  if (s == TN_OK) s = binding_open(&j->binding, j->plan, queue, &j->c->diag);
  if (s == TN_OK) s = place_inputs(j);
  for (size_t i = 0; i < j->results.n && s == TN_OK; i++) s = place_result(j, i);
  return s;
}

/** Whether assigns are made to the contents that they were built over. */
static bool is_current(const job *j) {
  for (size_t i = 0; i < j->wants.n; i++)
    if (j->wants.at[i].kind == WANT_ASSIGN && !cell_is_current(j->wants.at[i].cell)) return false;
  return true;
}

static tn_status run(job *j) {
  tn_context *c = j->c;
  tn_status s = j->results.n ? run_plan(j) : TN_OK;
  if (s != TN_OK) return s;
  turns_take(c, j->turns.at, j->turns.n);
  j->in_turn = true;
  s = turns_wait(j->turns.at, j->turns.n, &c->diag);
  j->overtaken = s == TN_OK && !is_current(j);
  if (j->overtaken) return s;
  if (s == TN_OK && j->binding) s = binding_run(j->binding, &c->diag);
  if (s == TN_OK) s = make_copies(j);
  return s;
}

/* The end. */

static void take_value(job *j, want *w) {
  tn_buffer *memory = w->copy                 ? w->copy
                      : w->result != SIZE_MAX ? j->results.at[w->result].memory
                                              : NULL;
  if (memory) leaf_set_memory(j->c, w->value, memory);
  cell *k = w->cell;
  const node *old = *w->slot;
  if (w->kind == WANT_INIT) {
    k->init = NULL;
  } else {
    *w->slot = ir_retain(w->value);
  }
  if (k) cell_settle(k, w->value);
  ir_release(j->c->ir, old);
}

/** Values that did not come to be are forgotten. */
static void untell(job *j) {
  for (size_t i = 0; i < j->wants.n; i++) {
    const want *w = &j->wants.at[i];
    if (w->told_root) leaf_unrealise(j->c, *w->slot);
    if (w->told_original) leaf_unrealise(j->c, w->original);
  }
}

/** So are the assigns that were part of what failed. */
static void give_up(job *j) {
  tn_context *c = j->c;
  untell(j);
  for (size_t i = 0; i < j->wants.n; i++) {
    const want *w = &j->wants.at[i];
    if (w->kind == WANT_ASSIGN && !w->dropped && j->started && j->mode != REALIZE_BEFORE)
      cell_revert(w->cell);
  }
  for (cell *k = c->pending; k && j->mode == REALIZE_LAST; k = k->next_pending)
    if (k->scope == c->scope) cell_revert_scope(k);
}

/** Assigns of the scope that ends which nothing can run any more. */
static tn_status give_up_refused(job *j) {
  for (size_t i = 0; i < j->wants.n; i++)
    if (j->wants.at[i].refused) cell_revert_scope(j->wants.at[i].cell);
  return diag_set(&j->c->diag, j->refusal.status, "%s", j->refusal.text);
}

static void release(job *j) {
  tn_context *c = j->c;
  for (size_t i = 0; i < j->wants.n; i++) {
    want *w = &j->wants.at[i];
    ir_release(c->ir, w->original);
    ir_release(c->ir, w->value);
    if (w->kind == WANT_CUSTOM) ir_release(c->ir, w->held);
    if (w->copy) buffer_release(w->copy);
  }
  for (size_t i = 0; i < j->customs_held; i++) {
    ir_release(c->ir, j->resolver.customs.at[i].original);
    ir_release(c->ir, j->resolver.customs.at[i].image);
  }
  binding_close(j->binding);
  plan_release(j->plan);
  for (size_t i = 0; i < j->results.n; i++) {
    ir_release(c->ir, j->results.at[i].buffer);
    if (j->results.at[i].memory) buffer_release(j->results.at[i].memory);
  }
  for (cell *k = c->pending, *next; k; k = next) {
    next = k->next_pending;
    cell_check_pending(k);
  }
}

/** Once; *overtaken: it is to be done again. */
static tn_status attempt(tn_context *c, const ask asks[], size_t n, realize_mode mode,
                         bool *overtaken) {
  job j = {.c = c, .resolver = {.c = c}, .mode = mode, .asks = asks, .n_asks = n};
  tn_status s = diag_catch(&c->diag, prepare, &j);
  j.started = s == TN_OK;
  if (s == TN_OK) s = run(&j);
  *overtaken = j.overtaken;
  if (s != TN_OK)
    give_up(&j);
  else if (j.overtaken)
    untell(&j);
  for (size_t i = 0; s == TN_OK && !j.overtaken && i < j.wants.n; i++)
    if (!j.wants.at[i].dropped) take_value(&j, &j.wants.at[i]);
  if (j.in_turn) turns_end(j.turns.at, j.turns.n);
  if (s == TN_OK && !j.overtaken && j.refusal.status != TN_OK) s = give_up_refused(&j);
  release(&j);
  return s;
}

tn_status realize(tn_context *c, const ask asks[], size_t n, realize_mode mode) {
  bool again = n || c->pending;
  tn_status s = TN_OK;
  while (again) s = attempt(c, asks, n, mode, &again);
  cell_end_loans(c);
  return s;
}
