#include "tensor/state.h"

#include "base/map.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "tensor/call.h"
#include "tensor/dims.h"
#include "tensor/leaf.h"
#include "tensor/resolver.h"

#include <string.h>

/* Cells. */

cell *cell_hold(cell *k) {
  k->count++;
  return k;
}

static void unlink_lent(cell *k) {
  *k->link_lent = k->next_lent;
  if (k->next_lent) k->next_lent->link_lent = k->link_lent;
  k->is_lent = false;
}

/* Marks. */

static void drop_marks(cell *k, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) ir_release(k->context->ir, k->marks[i].before);
  if (to < k->n_marks)
    memmove(k->marks + from, k->marks + to, (k->n_marks - to) * sizeof *k->marks);
  k->n_marks -= to - from;
}

static void reserve_mark(cell *k) {
  const mem *m = &k->context->mem;
  size_t bytes = k->cap_marks * sizeof *k->marks;
  if (k->n_marks < k->cap_marks) return;
  cell_mark *at = mem_resize(m, k->marks, bytes, 2 * bytes + sizeof *at);
  if (!at) diag_raise(&k->context->diag, TN_ERR_MEMORY, "out of memory");
  k->marks = at;
  k->cap_marks = 2 * k->cap_marks + 1;
}

cell_mark *cell_innermost(const cell *k) {
  cell_mark *last = k->n_marks ? &k->marks[k->n_marks - 1] : NULL;
  return last && last->scope == k->context->scope ? last : NULL;
}

/* Cells that end. */

/** What was its contents is a value like any other. */
static void forget_former(cell *k) {
  leaf_table *t = &k->context->leaves;
  for (size_t i = 0; k->n_former && i < t->n; i++) {
    if (t->at[i].was != k) continue;
    t->at[i].was = NULL;
    k->n_former--;
  }
}

/** What it holds is a value like any other, once the runs that have begun are over. */
static void leave_contents(cell *k) {
  leaf *l = leaf_of(k->context, k->settled);
  l->cell = NULL;
  if (atomic_load(&k->store->count) > 1) l->left = store_retain(k->store);
}

static void cell_free(cell *k) {
  tn_context *c = k->context;
  if (k->is_lent) unlink_lent(k);
  forget_former(k);
  if (k->settled) leave_contents(k);
  const node *const held[] = {k->base, k->settled, k->now, k->init};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) ir_release(c->ir, held[i]);
  drop_marks(k, 0, k->n_marks);
  mem_free(&c->mem, k->marks, k->cap_marks * sizeof *k->marks);
  store_release(k->store);
  mem_free(&c->mem, k, sizeof *k);
}

void cell_drop(cell *k) {
  if (k && !--k->count) cell_free(k);
}

static void replace(tn_context *c, const node **slot, const node *with) {
  const node *old = *slot;
  *slot = with ? ir_retain(with) : NULL;
  ir_release(c->ir, old);
}

static void set_pending(cell *k) {
  tn_context *c = k->context;
  if (!k->is_pending) {
    k->is_pending = true;
    cell_hold(k);
    k->next_pending = NULL;
    k->link_pending = c->pending_end;
    *c->pending_end = k;
    c->pending_end = &k->next_pending;
  }
  atomic_store(&k->store->pending, k->now != k->settled);
}

static bool is_run(const cell *k, const node *version) {
  return version->op != OP_SET || leaf_realised(k->context, version) == k->settled;
}

/** Marks that nothing pending comes before are one, and of the contents. */
static void forget_run(cell *k) {
  const node *n = k->now;
  size_t run = k->n_marks;
  for (; !is_run(k, n); n = n->src[0])
    if (run && k->marks[run - 1].before == n) run--;
  if (n == k->now) {
    cell_revert(k);
  } else if (run) {
    drop_marks(k, 0, run - 1);
    replace(k->context, &k->marks[0].before, k->settled);
  }
}

void cell_check_pending(cell *k) {
  tn_context *c = k->context;
  forget_run(k);
  if (!k->is_pending || k->init || k->now != k->settled) return;
  *k->link_pending = k->next_pending;
  if (k->next_pending)
    k->next_pending->link_pending = k->link_pending;
  else
    c->pending_end = k->link_pending;
  k->is_pending = k->is_called = false;
  atomic_store(&k->store->pending, false);
  cell_drop(k);
}

/** Whether nothing but the cell itself holds its contents. */
static bool is_unread(const cell *k) {
  uint32_t own = 1u + (k->now == k->settled);
  return k->now == k->settled && k->settled->refs == own;
}

void cell_drop_unseen(tn_context *c) {
  for (cell *k = c->pending, *next; k; k = next) {
    next = k->next_pending;
    if (k->is_called || k->count > 1 || atomic_load(&k->store->count) > 1) continue;
    if (k->init && !is_unread(k)) continue;
    replace(c, &k->init, NULL);
    cell_revert(k);
    cell_check_pending(k);
  }
}

void cell_forget_pending(tn_context *c) {
  for (cell *k = c->pending, *next; k; k = next) {
    next = k->next_pending;
    k->is_pending = false;
    cell_drop(k);
  }
  c->pending = NULL;
  c->pending_end = &c->pending;
}

/** A state's first contents have a BUFFER of their own, so that what reads them is not taken for
    what reads the expression that they start as. */
static tn_status fill_cell(cell *k, const node *init) {
  tn_context *c = k->context;
  uint64_t count;
  dims_count(init, &count);
  dtype t = (dtype)init->dtype;
  tn_status s = store_open(c, count * dtype_bytes(t), &k->store);
  if (s == TN_OK) s = leaf_open(c, LEAF_BASE, t, init->rank, init->dims, &k->base);
  if (s == TN_OK) s = leaf_open(c, LEAF_DATA, t, init->rank, init->dims, &k->settled);
  if (s != TN_OK) return s;
  leaf_of(c, k->settled)->cell = k;
  k->now = ir_retain(k->settled);
  k->init = ir_retain(init);
  return TN_OK;
}

tn_status cell_open(tn_context *c, const node *init, cell **out) {
  cell *k = mem_calloc(&c->mem, 1, sizeof *k);
  *out = k;
  if (!k) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  k->context = c;
  k->count = 1;
  tn_status s = fill_cell(k, init);
  if (s == TN_OK) {
    set_pending(k);
    return s;
  }
  cell_drop(k);
  *out = NULL;
  return s;
}

static void lend(cell *k) {
  tn_context *c = k->context;
  if (!k->is_lent) {
    k->is_lent = true;
    k->next_lent = c->lent;
    k->link_lent = &c->lent;
    if (k->next_lent) k->next_lent->link_lent = &k->next_lent;
    c->lent = k;
  }
  store_lend(k->store, true);
}

void cell_end_loans(tn_context *c) {
  for (cell *k = c->lent, *next; k; k = next) {
    next = k->next_lent;
    if (!is_unread(k)) continue;
    unlink_lent(k);
    store_lend(k->store, false);
  }
}

void cell_settle(cell *k, const node *buffer) {
  tn_context *c = k->context;
  forget_former(k);
  leaf_of(c, k->settled)->cell = NULL;
  leaf_of(c, buffer)->cell = k;
  replace(c, &k->settled, buffer);
  tn_buffer *old = store_replace(k->store, buffer_retain(leaf_of(c, buffer)->memory));
  if (old) buffer_release(old);
  store_lend(k->store, k->is_lent);
}

void cell_fail(cell *k) {
  tn_context *c = k->context;
  context_fail(c, "state", NULL, 0);
  leaf_of(c, k->settled)->failure = context_failure(c);
  replace(c, &k->init, NULL);
  cell_revert(k);
  cell_check_pending(k);
}

void cell_revert(cell *k) {
  replace(k->context, &k->now, k->settled);
  drop_marks(k, 0, k->n_marks);
}

void cell_revert_innermost(cell *k) {
  replace(k->context, &k->now, cell_innermost(k)->before);
  drop_marks(k, k->n_marks - 1, k->n_marks);
}

static const node *rebased(builder *b, const node *over, const node *base, const node *to) {
  map with = {0};
  if (over == base) return to;
  map_set(b->arena, &with, base, (void *)to);
  return subst(b->ir, over, &with);
}

void cell_revert_outer(builder *b, cell *k) {
  const node *before = cell_innermost(k)->before;
  replace(b->context, &k->now, rebased(b, k->now, before, k->settled));
  drop_marks(k, 0, k->n_marks - 1);
  replace(b->context, &k->marks[0].before, k->settled);
}

/** The versions that are not the contents yet, newest first. */
static node_list list_versions(arena *a, const cell *k) {
  node_list sets = {0};
  for (const node *n = k->now; !is_run(k, n); n = n->src[0]) vec_push(a, &sets, n);
  return sets;
}

/** The pending versions over another that is the contents. What is assigned stays as it is: a value
    is of what the states held when it was built, also for who else reads it. */
static const node *now_over(builder *b, const cell *k, const node *contents, map *image) {
  node_list sets = list_versions(b->arena, k);
  while (sets.n) {
    const node *set = vec_pop(&sets);
    const node *src[] = {contents, subst_view(b->ir, b->arena, set->src[1], set->src[0], contents),
                         set->src[2]};
    contents = ir_node(b->ir, OP_SET, (dtype)set->dtype, src, 3, NULL, 0);
    map_set(b->arena, image, set, (void *)contents);
  }
  return contents;
}

/** A fresh version over memory that a run beside the context left; the assigns that are pending
    come after that run. */
static void adopt(builder *b, cell *k, tn_buffer *memory) {
  tn_context *c = k->context;
  map image = {0};
  const node *fresh, *old = k->settled;
  if (leaf_open(c, LEAF_DATA, (dtype)old->dtype, old->rank, old->dims, &fresh) != TN_OK)
    diag_rethrow(b->diag);
  ir_release(c->ir, fresh); /* it is new, and so held until the call ends */
  leaf_set_memory(c, fresh, memory);
  const node *now = now_over(b, k, fresh, &image);
  leaf_of(c, old)->cell = NULL;
  leaf_of(c, old)->was = k;
  k->n_former++;
  leaf_of(c, fresh)->cell = k;
  replace(c, &k->now, now);
  for (size_t i = 0; i < k->n_marks; i++) {
    const node *before = map_get(&image, k->marks[i].before);
    replace(c, &k->marks[i].before, before ? before : fresh);
  }
  replace(c, &k->settled, fresh);
}

typedef struct adoption {
  builder *b;
  cell *k;
  tn_buffer *memory;
} adoption;

static void adopt_body(void *arg) {
  adoption *a = arg;
  adopt(a->b, a->k, a->memory);
}

void cell_refresh(builder *b, cell *k) {
  const leaf *l = leaf_of(k->context, k->settled);
  if (l->failure) diag_raise(b->diag, l->failure->status, "%s", l->failure->text);
  adoption a = {b, k, store_changed(k->store, l->memory)};
  if (!a.memory) return;
  tn_status s = diag_catch(b->diag, adopt_body, &a);
  buffer_release(a.memory);
  if (s != TN_OK) diag_rethrow(b->diag);
}

const node *cell_now(builder *b, cell *k, const node *over_base) {
  do {
    cell_refresh(b, k);
    lend(k);
  } while (
      !store_is_in(k->store, leaf_of(k->context, k->settled)->memory)); /* a run came between */
  return rebased(b, over_base, k->base, k->now);
}

void cell_assign(builder *b, cell *k, const node *over_base, const node *value) {
  tn_context *c = k->context;
  const node *view = cell_now(b, k, over_base), *old = k->now;
  const node *src[] = {old, view, value};
  const node *set = ir_node(b->ir, OP_SET, (dtype)old->dtype, src, 3, NULL, 0);
  if (!cell_innermost(k)) {
    reserve_mark(k);
    k->marks[k->n_marks++] = (cell_mark){c->scope, ir_retain(old)};
  }
  replace(c, &k->now, set);
  set_pending(k);
}

/* tn_state. */

typedef struct state_job {
  tn_tensor *init, *made;
} state_job;

static void make_state(void *arg) {
  state_job *j = arg;
  builder b = context_builder(j->init->context);
  const node *init = handle_typed(&b, j->init);
  for (size_t i = 0; i < init->rank; i++)
    if (!node_is_const(init->dims[i]))
      diag_raise(b.diag, TN_ERR_SHAPE, "a state's sizes are numbers; axis %zu varies", i);
  resolver_refuse_open(b.context, init);
  uint64_t count;
  dims_count(init, &count);
  if (count > (uint64_t)PTRDIFF_MAX / dtype_bytes((dtype)init->dtype))
    diag_raise(b.diag, TN_ERR_SHAPE, "more elements than memory can hold");
  cell *k;
  if (cell_open(b.context, init, &k) != TN_OK) diag_rethrow(b.diag);
  if (j->made != b.context->nobody) handle_set_cell(j->made, k, k->base);
  cell_drop(k);
}

tn_tensor *tn_state(tn_tensor *init) {
  tn_context *c = call_context(&init, 1);
  if (context_take(c) != TN_OK) return call_refused(c);
  state_job j = {.init = init};
  failure *f = call_check(c, "state", &init, 1, 0);
  if (!f) {
    j.made = handle_new(c);
    f = call_try(c, "state", &init, 1, make_state, &j);
    if (f && j.made != c->nobody) handle_set_failure(j.made, f);
    failure_drop(c, f);
  } else {
    j.made = call_invalid(c, f);
  }
  context_leave(c);
  return j.made;
}

/* tn_assign. */

/** Whether no element of a view is there twice and none is added. */
static bool is_assignable(const node *view, const node *base) {
  while (view != base) {
    if (view->op != OP_RESHAPE && view->op != OP_PERMUTE && view->op != OP_SLICE) return false;
    view = view->src[0];
  }
  return true;
}

static bool stretches(const node *from, const node *to) {
  return from == to || node_is_bits(from, 1);
}

/** A value repeated to the shape of a view. */
static const node *broadcast(builder *b, const node *value, const node *view) {
  size_t missing = view->rank - value->rank;
  bool fits = value->rank <= view->rank;
  for (size_t i = 0; fits && i < value->rank; i++)
    fits = stretches(value->dims[i], view->dims[missing + i]);
  if (!fits) diag_raise(b->diag, TN_ERR_SHAPE, "the value does not broadcast to the shape");
  if (ir_same_shape(value, view)) return value;
  const node **dims = arena_alloc(b->arena, (view->rank + 1u) * sizeof *dims);
  for (size_t i = 0; i < view->rank; i++)
    dims[i] = i < missing ? ix_const(b->ir, 1) : value->dims[i - missing];
  if (missing) value = ir_reshape(b->ir, value, view->rank, dims);
  return ir_same_shape(value, view) ? value : ir_expand(b->ir, value, view->dims);
}

void state_check_assignable(builder *b, const tn_tensor *dst) {
  if (b->context->bodies)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "an assign in the body of a loop: what changes from step to step is a state of it");
  if (!dst->cell)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "only a state, or a movement of one, can be assigned to");
  if (!is_assignable(dst->node, dst->cell->base))
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "this movement of a state cannot be assigned to: it repeats or adds elements, or is "
               "in pieces");
}

void state_assign(builder *b, const tn_tensor *dst, const node *value) {
  state_check_assignable(b, dst);
  value = broadcast(b, value, dst->node);
  cell_assign(b, dst->cell, dst->node, ir_cast(b->ir, value, (dtype)dst->node->dtype));
}

typedef struct assign_job {
  tn_tensor *dst, *value;
} assign_job;

static void make_assign(void *arg) {
  assign_job *j = arg;
  builder b = context_builder(j->dst->context);
  state_assign(&b, j->dst, handle_node(&b, j->value));
}

tn_tensor *tn_assign(tn_tensor *dst, tn_tensor *value) {
  tn_tensor *const in[] = {dst, value};
  tn_context *c = call_context(in, 2);
  if (context_take(c) != TN_OK) return call_refused(c);
  failure *f = call_check(c, "assign", in, 2, 0);
  if (!f) f = call_try(c, "assign", in, 2, make_assign, &(assign_job){dst, value});
  if (f) {
    context_keep_refused(c, f);
    dst = call_invalid(c, f);
  }
  context_leave(c);
  return dst;
}
