/* Versions of states: a chain of SET nodes over the committed contents (an SSA form of in-place
   assignment). Assigns are pending until an evaluation commits a version. Concurrent runs of
   plans may replace the contents meanwhile; the context then adopts them and rebuilds the pending
   versions over them. A storage whose contents a node reads later is copy-on-write for such runs.
 */
#include "tensor/state/state.h"

#include "base/map.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "tensor/context/linked_list.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/state/graph_input.h"

#include <string.h>

state_record *state_retain(state_record *k) {
  k->count++;
  return k;
}

static void end_copy_on_write(state_record *k) {
  LIST_REMOVE(k, copy_on_write.next, copy_on_write.link);
  k->copy_on_write.is_listed = false;
}

/* ---- Marks ---- */

static void drop_marks(state_record *k, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) ir_release(k->context->ir, k->marks.at[i].before);
  if (to < k->marks.n)
    memmove(k->marks.at + from, k->marks.at + to, (k->marks.n - to) * sizeof *k->marks.at);
  k->marks.n -= to - from;
}

/** Marks a version as the one before the first assign of the innermost scope. */
static void add_mark(state_record *k, const node *before) {
  tn_context *c = k->context;
  state_scope_marks *m = &k->marks;
  if (m->n == m->cap) {
    size_t bytes = m->cap * sizeof *m->at;
    state_scope_mark *at = mem_resize(&c->mem, m->at, bytes, 2 * bytes + sizeof *at);
    if (!at) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
    m->at = at;
    m->cap = 2 * m->cap + 1;
  }
  m->at[m->n++] = (state_scope_mark){c->scopes.innermost, ir_retain(before)};
}

state_scope_mark *state_innermost_mark(const state_record *k) {
  state_scope_mark *last = k->marks.n ? &k->marks.at[k->marks.n - 1] : NULL;
  return last && last->scope == k->context->scopes.innermost ? last : NULL;
}

/* ---- Lifetime ---- */

/** Makes the graph inputs that were the state's contents ordinary values. */
static void detach_former_inputs(state_record *k) {
  graph_input_table *t = &k->context->graph_inputs;
  for (size_t i = 0; k->n_former_inputs && i < t->n; i++) {
    if (t->at[i].former_state != k) continue;
    t->at[i].former_state = NULL;
    k->n_former_inputs--;
  }
}

static void free_state(state_record *k) {
  tn_context *c = k->context;
  if (k->copy_on_write.is_listed) end_copy_on_write(k);
  detach_former_inputs(k);
  if (k->versions.committed) { /* an ordinary value, once the runs that have begun are over */
    graph_input *l = graph_input_of(c, k->versions.committed);
    l->state = NULL;
    if (atomic_load(&k->storage->count) > 1) l->former_storage = state_storage_retain(k->storage);
  }
  const node *const held[] = {k->versions.view_base, k->versions.committed, k->versions.newest,
                              k->versions.init};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) ir_release(c->ir, held[i]);
  drop_marks(k, 0, k->marks.n);
  mem_free(&c->mem, k->marks.at, k->marks.cap * sizeof *k->marks.at);
  state_storage_release(k->storage);
  mem_free(&c->mem, k, sizeof *k);
}

void state_release(state_record *k) {
  if (k && !--k->count) free_state(k);
}

/** Replaces a node that a slot holds a reference to; `with` may be NULL. */
static void replace(tn_context *c, const node **slot, const node *with) {
  const node *old = *slot;
  *slot = with ? ir_retain(with) : NULL;
  ir_release(c->ir, old);
}

static void set_pending(state_record *k) {
  tn_context *c = k->context;
  if (!k->is_pending) {
    k->is_pending = true;
    state_retain(k);
    k->next_pending = NULL;
    k->link_pending = c->states.pending_end;
    *c->states.pending_end = k;
    c->states.pending_end = &k->next_pending;
  }
  atomic_store(&k->storage->has_pending, k->versions.newest != k->versions.committed);
}

/** True if a version is the committed contents, or no assign made it. */
static bool has_run(const state_record *k, const node *version) {
  return version->op != OP_SET || computed_value_of(k->context, version) == k->versions.committed;
}

/** Drops the marks of versions that have run. Of several marks without a pending version before
    them the innermost stays, and marks the committed contents. */
static void drop_run_marks(state_record *k) {
  const node *n = k->versions.newest;
  size_t run = k->marks.n;
  for (; !has_run(k, n); n = n->src[0])
    if (run && k->marks.at[run - 1].before == n) run--;
  if (n == k->versions.newest) {
    state_revert(k);
  } else if (run) {
    drop_marks(k, 0, run - 1);
    replace(k->context, &k->marks.at[0].before, k->versions.committed);
  }
}

void state_update_pending(state_record *k) {
  tn_context *c = k->context;
  drop_run_marks(k);
  if (!k->is_pending || k->versions.init || k->versions.newest != k->versions.committed) return;
  *k->link_pending = k->next_pending;
  if (k->next_pending)
    k->next_pending->link_pending = k->link_pending;
  else
    c->states.pending_end = k->link_pending;
  k->is_pending = k->has_host_call = false;
  atomic_store(&k->storage->has_pending, false);
  state_release(k);
}

/** True if nothing but the state itself holds its contents. */
static bool is_unread(const state_record *k) {
  uint32_t own = 1u + (k->versions.newest == k->versions.committed);
  return k->versions.newest == k->versions.committed && k->versions.committed->refs == own;
}

void state_drop_unobserved(tn_context *c) {
  for (state_record *k = c->states.pending, *next; k; k = next) {
    next = k->next_pending;
    if (k->has_host_call || k->count > 1 || atomic_load(&k->storage->count) > 1) continue;
    if (k->versions.init && !is_unread(k)) continue;
    replace(c, &k->versions.init, NULL);
    state_revert(k);
    state_update_pending(k);
  }
}

void state_release_pending(tn_context *c) {
  for (state_record *k = c->states.pending, *next; k; k = next) {
    next = k->next_pending;
    k->is_pending = false;
    state_release(k);
  }
  c->states.pending = NULL;
  c->states.pending_end = &c->states.pending;
}

/** Fills in a new state. Its first contents have a BUFFER of their own, so that their readers are
    not taken for readers of the expression that the state starts as. */
static tn_status init_state(state_record *k, const node *init) {
  tn_context *c = k->context;
  uint64_t count;
  dims_static_count(init, &count);
  dtype t = (dtype)init->dtype;
  tn_status s = state_storage_open(c, count * dtype_bytes(t), &k->storage);
  if (s == TN_OK)
    s = graph_input_open(c, GRAPH_INPUT_VIEW_BASE, init->device, t, init->rank, init->dims,
                         &k->versions.view_base);
  if (s == TN_OK)
    s = graph_input_open(c, GRAPH_INPUT_DATA, init->device, t, init->rank, init->dims,
                         &k->versions.committed);
  if (s != TN_OK) return s;
  graph_input_of(c, k->versions.committed)->state = k;
  k->versions.newest = ir_retain(k->versions.committed);
  k->versions.init = ir_retain(init);
  return TN_OK;
}

tn_status state_open(tn_context *c, const node *init, state_record **out) {
  state_record *k = mem_calloc(&c->mem, 1, sizeof *k);
  *out = k;
  if (!k) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  k->context = c;
  k->count = 1;
  tn_status s = init_state(k, init);
  if (s == TN_OK) {
    set_pending(k);
    return s;
  }
  state_release(k);
  *out = NULL;
  return s;
}

/* ---- Contents ---- */

static void begin_copy_on_write(state_record *k) {
  if (!k->copy_on_write.is_listed) {
    k->copy_on_write.is_listed = true;
    LIST_PUSH(&k->context->states.copy_on_write, k, copy_on_write.next, copy_on_write.link);
  }
  state_storage_set_copy_on_write(k->storage, true);
}

void state_end_copy_on_write(tn_context *c) {
  for (state_record *k = c->states.copy_on_write, *next; k; k = next) {
    next = k->copy_on_write.next;
    if (!is_unread(k)) continue;
    end_copy_on_write(k);
    state_storage_set_copy_on_write(k->storage, false);
  }
}

void state_commit(state_record *k, const node *buffer) {
  tn_context *c = k->context;
  detach_former_inputs(k);
  graph_input_of(c, k->versions.committed)->state = NULL;
  graph_input_of(c, buffer)->state = k;
  replace(c, &k->versions.committed, buffer);
  tn_buffer *old =
      state_storage_replace(k->storage, buffer_retain(graph_input_of(c, buffer)->memory));
  if (old) buffer_release(old);
  state_storage_set_copy_on_write(k->storage, k->copy_on_write.is_listed);
}

void state_fail(state_record *k) {
  tn_context *c = k->context;
  context_fail(c, "state", NULL, 0);
  graph_input_of(c, k->versions.committed)->failure = context_last_failure(c);
  replace(c, &k->versions.init, NULL);
  state_revert(k);
  state_update_pending(k);
}

/* ---- Versions ---- */

void state_revert(state_record *k) {
  replace(k->context, &k->versions.newest, k->versions.committed);
  drop_marks(k, 0, k->marks.n);
}

void state_revert_innermost(state_record *k) {
  replace(k->context, &k->versions.newest, state_innermost_mark(k)->before);
  drop_marks(k, k->marks.n - 1, k->marks.n);
}

/** The node `over`, with `to` in place of `base`. */
static const node *substitute_base(builder *b, const node *over, const node *base, const node *to) {
  map with = {0};
  if (over == base) return to;
  map_set(b->arena, &with, base, (void *)to);
  return subst(b->ir, over, &with);
}

void state_revert_outer(builder *b, state_record *k) {
  const node *before = state_innermost_mark(k)->before;
  replace(b->context, &k->versions.newest,
          substitute_base(b, k->versions.newest, before, k->versions.committed));
  drop_marks(k, 0, k->marks.n - 1);
  replace(b->context, &k->marks.at[0].before, k->versions.committed);
}

/** Rebuilds the pending versions over new contents, and maps old versions to new ones in `image`.
    Assigned values stay as they are: a value holds the contents that states had when it was built,
    for all its readers. */
static const node *rebuild_pending(builder *b, const state_record *k, const node *contents,
                                   map *image) {
  node_list sets = {0}; /* newest first */
  for (const node *n = k->versions.newest; !has_run(k, n); n = n->src[0])
    vec_push(b->arena, &sets, n);
  while (sets.n) {
    const node *set = vec_pop(&sets);
    const node *src[] = {contents,
                         subst_view_base(b->ir, b->arena, set->src[1], set->src[0], contents),
                         set->src[2]};
    contents = ir_node(b->ir, OP_SET, (dtype)set->dtype, src, 3, NULL, 0);
    map_set(b->arena, image, set, (void *)contents);
  }
  return contents;
}

/** Commits memory that a concurrent run left as a version. Pending assigns come after that run. */
static void adopt_memory(builder *b, state_record *k, tn_buffer *memory) {
  tn_context *c = k->context;
  map image = {0};
  const node *fresh, *old = k->versions.committed;
  if (graph_input_open(c, GRAPH_INPUT_DATA, old->device, (dtype)old->dtype, old->rank, old->dims,
                       &fresh) != TN_OK)
    diag_rethrow(b->diag);
  ir_release(c->ir, fresh); /* new nodes are kept until the call ends */
  graph_input_set_memory(c, fresh, memory);
  const node *now = rebuild_pending(b, k, fresh, &image);
  graph_input_of(c, old)->state = NULL;
  graph_input_of(c, old)->former_state = k;
  k->n_former_inputs++;
  graph_input_of(c, fresh)->state = k;
  replace(c, &k->versions.newest, now);
  for (size_t i = 0; i < k->marks.n; i++) {
    const node *before = map_get(&image, k->marks.at[i].before);
    replace(c, &k->marks.at[i].before, before ? before : fresh);
  }
  replace(c, &k->versions.committed, fresh);
}

typedef struct adoption {
  builder *b;
  state_record *k;
  tn_buffer *memory;
} adoption;

static void adopt_in_catch(void *arg) {
  adoption *a = arg;
  adopt_memory(a->b, a->k, a->memory);
}

void state_refresh(builder *b, state_record *k) {
  const graph_input *l = graph_input_of(k->context, k->versions.committed);
  if (l->failure) context_raise_again(k->context, b->diag, l->failure);
  adoption a = {b, k, state_storage_changed_memory(k->storage, l->memory)};
  if (!a.memory) return;
  tn_status s = diag_catch(b->diag, adopt_in_catch, &a);
  buffer_release(a.memory);
  if (s != TN_OK) diag_rethrow(b->diag);
}

const node *state_current_node(builder *b, state_record *k, const node *over_base) {
  do {
    state_refresh(b, k);
    begin_copy_on_write(k);
  } while (!state_storage_is_in(
      k->storage, graph_input_of(k->context, k->versions.committed)
                      ->memory)); /* a concurrent run replaced the contents meanwhile */
  return substitute_base(b, over_base, k->versions.view_base, k->versions.newest);
}

void state_append_version(builder *b, state_record *k, const node *over_base, const node *value) {
  tn_context *c = k->context;
  const node *view = state_current_node(b, k, over_base), *old = k->versions.newest;
  const node *src[] = {old, view, value};
  const node *set = ir_node(b->ir, OP_SET, (dtype)old->dtype, src, 3, NULL, 0);
  if (!state_innermost_mark(k)) add_mark(k, old);
  replace(c, &k->versions.newest, set);
  set_pending(k);
}

state_storage *graph_input_storage(const graph_input *l) {
  return l->state ? l->state->storage : l->former_storage;
}
