#include "tensor/attempt.h"

#include "runtime/buffers.h"
#include "tensor/computation.h"
#include "tensor/leaf.h"
#include "tensor/resolver.h"

/** A want, and what becomes of it. Its slot is as it was until there is a value: an expression that
    waits for a plan is the plan's to compile, and no part of it may have become a number. */
typedef struct goal {
  want *want;
  const node **slot;             /* NULL: a host function's, or a version that others wait for */
  const node *original;          /* what is wanted */
  const node *root;              /* what is run for it, held */
  size_t result;                 /* SIZE_MAX: the root is a BUFFER already */
  const node *value;             /* the BUFFER that becomes the slot's node, held */
  tn_buffer *copy;               /* a cell's own memory, where the value's is somebody else's */
  bool told_root, told_original; /* leaf_realise was told of them */
} goal;

typedef struct job {
  tn_context *c;
  want *wants;
  size_t n_wants;
  VEC(goal) goals;
  want custom; /* of all goals that are host functions' */
  resolver resolver;
  size_t customs_held; /* of the resolver's */
  map original_of;     /* image of a host function's node → the node it was made from */
  computation computation;
  VEC(turn) turns;
  bool in_turn, is_overtaken, is_cancelled;
} job;

static cell *cell_of(const goal *g) { return g->want->cell; }

/* The graph with values in place of what was computed before. */

static goal *add_goal(job *j, want *w, const node *original) {
  vec_push(&j->c->arena, &j->goals, (goal){.want = w, .original = original, .result = SIZE_MAX});
  return &vec_last(&j->goals);
}

/** Held until the end, so that what reads the original is told its value. */
static void hold_customs(job *j) {
  for (; j->customs_held < j->resolver.customs.n; j->customs_held++) {
    const custom_image *i = &j->resolver.customs.at[j->customs_held];
    if (!map_has(&j->original_of, i->image))
      map_set(&j->c->arena, &j->original_of, i->image, (void *)i->original);
    ir_retain(i->original);
    ir_retain(i->image);
  }
}

/** Nothing is freed before all is done: images are known by addresses. */
static void resolve_all(job *j) {
  ir_collect(j->c->ir);
  for (size_t i = 0; i < j->goals.n; i++) {
    goal *g = &j->goals.at[i];
    g->root = ir_retain(resolver_image(&j->resolver, g->original));
  }
  hold_customs(j);
  ir_collect(j->c->ir); /* what resolving left behind holds references */
}

/* What is run. */

static void list_graph(job *j) {
  node_list roots = {0};
  for (size_t i = 0; i < j->goals.n; i++) vec_push(&j->c->arena, &roots, j->goals.at[i].root);
  usage_list(&j->computation.usage, roots.at, roots.n);
}

static void mark_open(job *j) {
  const usage *u = &j->computation.usage;
  for (size_t i = 0; i < j->goals.n; i++) {
    const goal *g = &j->goals.at[i];
    g->want->is_open = u->open[usage_place(u, g->root)];
    if (g->want->is_open && g->want->kind == WANT_VALUE && !g->want->optional)
      resolver_refuse_open(j->c, g->root);
  }
}

/** The newest version below one that waits which does not wait itself, where that is to be run. */
static bool go_below(job *j, goal *g) {
  const usage *u = &j->computation.usage;
  const node *n = g->original, *root;
  if (g->want->kind != WANT_VERSION) return false;
  do {
    n = n->src[0];
    if (n->op != OP_SET || leaf_realised(j->c, n)) return false;
    root = map_get(&j->resolver.image, n);
  } while (!map_has(&u->place, root) || u->open[usage_place(u, root)]);
  ir_retain(root);
  ir_release(j->c->ir, g->root);
  *g = (goal){.want = g->want, .original = n, .root = root, .result = SIZE_MAX};
  return true;
}

/** What has no value outside of runs and loops is no goal any more. */
static void drop_open(job *j) {
  size_t kept = 0;
  if (!usage_find_open(&j->computation.usage)) return;
  mark_open(j);
  for (size_t i = 0; i < j->goals.n; i++)
    if (!j->goals.at[i].want->is_open || go_below(j, &j->goals.at[i]))
      j->goals.at[kept++] = j->goals.at[i];
    else
      ir_release(j->c->ir, j->goals.at[i].root);
  j->goals.n = kept;
  list_graph(j);
}

/** The marks of a cell that are of versions before the one in a slot; those of a version that is no
    mark's may be. */
static size_t marks_below(const cell *k, const node *const *slot) {
  size_t n = k->n_marks;
  if (slot == &k->now) return n;
  return n && slot == &k->marks[n - 1].before ? n - 1 : 0;
}

/** What a goal's slot and its cell let go of when there is a value. */
static void let_go(usage *u, const goal *g) {
  const cell *k = cell_of(g);
  if (g->slot) usage_let_go(u, g->original);
  if (g->want->kind != WANT_VERSION) return;
  usage_let_go(u, k->settled);
  for (size_t i = 0; i < marks_below(k, g->slot); i++) usage_let_go(u, k->marks[i].before);
}

/** Whether a goal's root is memory that holds it already. A value outlives what a state holds, by
    which plans know the state's own. */
static bool is_value(const job *j, const goal *g) {
  const leaf *l = g->root->op == OP_BUFFER ? leaf_of(j->c, g->root) : NULL;
  return l && l->memory && (cell_of(g) || (!l->cell && !l->was));
}

/** Whether the slot holds its root afterwards. */
static bool stays(const job *j, const goal *g) {
  return g->want->kind == WANT_VALUE && is_value(j, g);
}

static void count_references(job *j) {
  usage *u = &j->computation.usage;
  usage_count(u);
  for (size_t i = 0; i < j->goals.n; i++) {
    const goal *g = &j->goals.at[i];
    let_go(u, g);
    if (!stays(j, g)) usage_hold(u, g->root);
  }
}

/** An operation of the host's runs once: its value has memory of its own, so that it stays for who
    else reads it, and for another attempt. */
static void add_customs(job *j) {
  usage *u = &j->computation.usage;
  for (size_t i = 0; i < u->order.n; i++) {
    const node *n = u->order.at[i];
    if (n->op != OP_CUSTOM) continue;
    const node *original = map_get(&j->original_of, n); /* NULL: it is as it was */
    if (original) usage_hold(u, n);
    add_goal(j, &j->custom, original ? original : n)->root = ir_retain(n);
    usage_hold(u, n);
  }
}

/* Values: their BUFFERs are made before the run, so that nothing can fail after it. */

static const node *new_buffer(job *j, const node *like) {
  const node *made;
  if (leaf_open(j->c, LEAF_DATA, (dtype)like->dtype, like->rank, like->dims, &made) != TN_OK)
    diag_rethrow(&j->c->diag);
  return made;
}

/** The BUFFER of a goal: the result's, or a cell's own if that is somebody else's. `buffers` are
    those of the results. */
static void make_buffer(job *j, goal *g, const node **buffers) {
  cell *k = cell_of(g);
  result *r = g->result == SIZE_MAX ? NULL : &j->computation.results.at[g->result];
  bool own = k && (!r || buffers[g->result]);
  const node *shared = own ? NULL : r ? buffers[g->result] : g->root;
  g->value = g->want->kind == WANT_INIT ? ir_retain(k->settled)
             : shared                   ? ir_retain(shared)
                                        : new_buffer(j, g->root);
  if (own && buffers_ensure(j->c->device, &g->copy, k->store->bytes, &j->c->diag) != TN_OK)
    diag_rethrow(&j->c->diag);
  if (own || !r) return;
  if (k) r->owner = k;
  if (!shared) buffers[g->result] = g->value;
}

static bool tell_value(job *j, const node *n, const node *value) {
  if (leaf_realised(j->c, n)) return false;
  leaf_realise(j->c, n, value);
  return true;
}

static void tell_values(job *j, goal *g) {
  if (g->want->kind == WANT_INIT) return;
  if (g->root->op != OP_BUFFER) g->told_root = tell_value(j, g->root, g->value);
  if (g->original->op != OP_BUFFER) g->told_original = tell_value(j, g->original, g->value);
}

/** Cells last, so that no value is in a state's storage. */
static void make_values(job *j) {
  for (size_t i = 0; i < j->goals.n; i++)
    if (!is_value(j, &j->goals.at[i]))
      j->goals.at[i].result = computation_add(&j->computation, j->goals.at[i].root);
  usage_find_needed(&j->computation.usage);
  const node **buffers = arena_calloc(&j->c->arena, j->computation.results.n + 1, sizeof *buffers);
  for (int cells = 0; cells <= 1; cells++)
    for (size_t i = 0; i < j->goals.n; i++)
      if ((cell_of(&j->goals.at[i]) != NULL) == cells) make_buffer(j, &j->goals.at[i], buffers);
  for (int cells = 1; cells >= 0; cells--) /* plans know a version by what its state holds */
    for (size_t i = j->goals.n; i-- > 0;)  /* host functions are kept by themselves */
      if ((cell_of(&j->goals.at[i]) != NULL) == cells) tell_values(j, &j->goals.at[i]);
}

static void list_turns(job *j) {
  arena *a = &j->c->arena;
  const node_list *order = &j->computation.usage.order;
  map seen = {0};
  for (size_t i = 0; i < order->n + j->goals.n; i++) {
    const node *n = i < order->n ? order->at[i] : NULL;
    cell *k = n ? NULL : cell_of(&j->goals.at[i - order->n]);
    store *s = k ? k->store : NULL;
    if (n && n->op == OP_BUFFER) s = leaf_store(leaf_of(j->c, n));
    if (!s || map_has(&seen, s)) continue;
    map_set(a, &seen, s, s);
    vec_push(a, &j->turns, (turn){.store = s});
  }
}

/** A goal for each slot, of which several wants may be: it lets go of its node once. */
static void add_wanted(job *j) {
  map seen = {0};
  for (size_t i = 0; i < j->n_wants; i++) {
    const node **slot = j->wants[i].slot;
    if (map_has(&seen, slot)) continue;
    map_set(&j->c->arena, &seen, slot, slot);
    add_goal(j, &j->wants[i], *slot)->slot = slot;
  }
}

static void prepare(void *arg) {
  job *j = arg;
  add_wanted(j);
  resolve_all(j);
  list_graph(j);
  drop_open(j);
  count_references(j);
  add_customs(j);
  make_values(j);
  list_turns(j);
}

/* The run. */

/** Whether assigns are made to the contents that they were built over. */
static bool is_current(const job *j) {
  for (size_t i = 0; i < j->goals.n; i++) {
    const cell *k = cell_of(&j->goals.at[i]);
    if (j->goals.at[i].want->kind == WANT_VERSION &&
        !store_is_in(k->store, leaf_of(j->c, k->settled)->memory))
      return false;
  }
  return true;
}

static tn_buffer *memory_of(const job *j, const goal *g) {
  return g->result == SIZE_MAX ? leaf_of(j->c, g->root)->memory
                               : j->computation.results.at[g->result].memory;
}

/** Cells that start as another's contents. */
static tn_status make_copies(job *j) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < j->goals.n && s == TN_OK; i++) {
    const goal *g = &j->goals.at[i];
    if (!g->copy) continue;
    s = buffers_copy(g->copy, memory_of(j, g), cell_of(g)->store->bytes, &j->c->diag);
  }
  return s;
}

static tn_status run(job *j) {
  tn_context *c = j->c;
  tn_status s = computation_open(&j->computation);
  j->is_cancelled = s == TN_ERR_CANCELLED;
  if (s != TN_OK) return s;
  turns_take(c, j->turns.at, j->turns.n);
  j->in_turn = true;
  s = turns_wait(j->turns.at, j->turns.n, &c->diag);
  j->is_overtaken = s == TN_OK && !is_current(j);
  if (s != TN_OK || j->is_overtaken) return s;
  s = computation_run(&j->computation);
  return s == TN_OK ? make_copies(j) : s;
}

/* The end. */

static void fill_slot(job *j, const goal *g) {
  const node **slot = g->slot, *old = *slot;
  *slot = g->want->kind == WANT_INIT ? NULL : ir_retain(g->value);
  ir_release(j->c->ir, old);
}

static void take_value(job *j, goal *g) {
  tn_buffer *memory = g->copy ? g->copy : g->result == SIZE_MAX ? NULL : memory_of(j, g);
  if (memory) leaf_set_memory(j->c, g->value, memory);
  if (g->slot) fill_slot(j, g);
  if (cell_of(g)) cell_settle(cell_of(g), g->value);
}

/** A value that did not come to be is forgotten. */
static void untell(job *j, const goal *g) {
  if (g->told_root) leaf_unrealise(j->c, g->root);
  if (g->told_original) leaf_unrealise(j->c, g->original);
}

static void end_goal(job *j, goal *g, bool is_done) {
  bool is_kept = g->want == &j->custom && g->result != SIZE_MAX &&
                 computation_was_filled(&j->computation, g->result);
  if (is_done || is_kept)
    take_value(j, g);
  else
    untell(j, g);
}

static void release(job *j) {
  ir *ir = j->c->ir;
  for (size_t i = 0; i < j->goals.n; i++) {
    goal *g = &j->goals.at[i];
    ir_release(ir, g->root);
    ir_release(ir, g->value);
    if (g->copy) buffer_release(g->copy);
  }
  for (size_t i = 0; i < j->customs_held; i++) {
    ir_release(ir, j->resolver.customs.at[i].original);
    ir_release(ir, j->resolver.customs.at[i].image);
  }
  computation_close(&j->computation);
}

attempt_outcome attempt(tn_context *c, want wants[], size_t n) {
  job j = {.c = c, .wants = wants, .n_wants = n, .resolver = {.c = c}};
  j.custom = (want){.kind = WANT_CUSTOM};
  j.computation.c = j.computation.usage.c = c;
  tn_status s = diag_catch(&c->diag, prepare, &j);
  if (s == TN_OK) s = run(&j);
  bool is_done = s == TN_OK && !j.is_overtaken;
  for (size_t i = 0; i < j.goals.n; i++) end_goal(&j, &j.goals.at[i], is_done);
  if (j.in_turn) turns_end(j.turns.at, j.turns.n);
  release(&j);
  return is_done          ? ATTEMPT_DONE
         : j.is_overtaken ? ATTEMPT_OVERTAKEN
         : j.is_cancelled ? ATTEMPT_CANCELLED
                          : ATTEMPT_FAILED;
}
