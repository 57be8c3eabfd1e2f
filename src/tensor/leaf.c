#include "tensor/leaf.h"

#include "tensor/custom_host.h"
#include "tensor/state.h"

#include <string.h>

static leaf *leaf_at(tn_context *c, int64_t uid) { return &c->leaves.at[uid]; }

leaf *leaf_of(tn_context *c, const node *n) { return leaf_at(c, n->ints[0]); }

static bool grow(tn_context *c) {
  leaf_table *t = &c->leaves;
  size_t cap = t->cap ? 2 * t->cap : 64;
  leaf *at = mem_resize(&c->mem, t->at, t->cap * sizeof *at, cap * sizeof *at);
  if (!at) return false;
  t->at = at;
  t->cap = cap;
  return true;
}

static tn_status take(tn_context *c, leaf_kind kind, int64_t *uid) {
  leaf_table *t = &c->leaves;
  if (!t->free && t->n == t->cap && !grow(c))
    return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  size_t i = t->free ? t->free - 1 : t->n++;
  int64_t version = t->free ? t->at[i].version + 1 : 0;
  if (t->free) t->free = t->at[i].next_free;
  t->at[i] = (leaf){.kind = kind, .version = version};
  *uid = (int64_t)i;
  return TN_OK;
}

static void give_back(tn_context *c, int64_t uid) {
  leaf l = *leaf_at(c, uid);
  *leaf_at(c, uid) = (leaf){.kind = LEAF_FREE, .version = l.version, .next_free = c->leaves.free};
  c->leaves.free = (size_t)uid + 1;
  if (l.was) l.was->n_former--;
  if (l.memory) buffer_release(l.memory);
  store_release(l.left);
  failure_drop(c, l.failure);
  mem_strfree(&c->mem, l.name);
  custom_drop(l.custom);
}

/** A BUFFER in the making. */
typedef struct buffer_job {
  tn_context *c;
  dtype dtype;
  size_t rank;
  const node *const *dims;
  int64_t ints[2];
  const node *made;
} buffer_job;

static void make_buffer(void *arg) {
  buffer_job *j = arg;
  j->made = ir_retain(ir_node(j->c->ir, OP_BUFFER, j->dtype, j->dims, j->rank, j->ints, 2));
}

tn_status leaf_open(tn_context *c, leaf_kind kind, dtype t, size_t rank, const node *const dims[],
                    const node **out) {
  buffer_job j = {.c = c, .dtype = t, .rank = rank, .dims = dims};
  *out = NULL;
  tn_status s = take(c, kind, &j.ints[0]);
  if (s != TN_OK) return s;
  j.ints[1] = leaf_at(c, j.ints[0])->version;
  s = diag_catch(&c->diag, make_buffer, &j);
  if (s != TN_OK) give_back(c, j.ints[0]);
  *out = j.made;
  return s;
}

tn_status leaf_open_custom(tn_context *c, struct custom_host *host, int64_t *uid) {
  tn_status s = take(c, LEAF_CUSTOM, uid);
  if (s == TN_OK) leaf_at(c, *uid)->custom = custom_hold(host);
  return s;
}

void leaf_close_custom(tn_context *c, int64_t uid) {
  if (!leaf_at(c, uid)->nodes) give_back(c, uid);
}

void leaf_set_memory(tn_context *c, const node *n, tn_buffer *memory) {
  leaf *l = leaf_of(c, n);
  tn_buffer *old = l->memory;
  l->memory = buffer_retain(memory);
  if (old) buffer_release(old);
}

struct store *leaf_store(const leaf *l) {
  return l->cell ? l->cell->store : l->left;
}

/* Values of nodes. An entry holds its BUFFER, not its node. */

typedef struct realised {
  const node *key, *buffer;
} realised;

static bool same_key(const void *entry, const void *wanted) {
  return ((const realised *)entry)->key == wanted;
}

static realised **find(tn_context *c, const node *n) {
  if (!c->realised.n) return NULL;
  realised **slot = (realised **)intern_find(&c->realised, n->hash, n, same_key);
  return *slot ? slot : NULL;
}

const node *leaf_realised(tn_context *c, const node *n) {
  realised **slot = find(c, n);
  return slot ? (*slot)->buffer : NULL;
}

void leaf_realise(tn_context *c, const node *n, const node *buffer) {
  if (find(c, n)) return;
  intern_reserve(&c->realised, &c->mem, &c->diag);
  realised *r = mem_alloc(&c->mem, sizeof *r);
  if (!r) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  *r = (realised){n, ir_retain(buffer)};
  intern_put(&c->realised, intern_find(&c->realised, n->hash, n, same_key), r, n->hash);
}

void leaf_unrealise(tn_context *c, const node *n) {
  realised **slot = find(c, n);
  if (!slot) return;
  realised *r = *slot;
  intern_remove(&c->realised, n->hash, r);
  ir_release(c->ir, r->buffer);
  mem_free(&c->mem, r, sizeof *r);
}

/* Nodes that come and go. */

static void made(void *context, const node *n) {
  if (n->op == OP_CUSTOM) leaf_of(context, n)->nodes++;
}

static void released(void *context, const node *n) {
  tn_context *c = context;
  if (c->realised.n) leaf_unrealise(c, n);
  if (n->op == OP_BUFFER) give_back(c, n->ints[0]);
  if (n->op == OP_CUSTOM && !--leaf_of(c, n)->nodes) give_back(c, n->ints[0]);
}

ir_watcher leaf_watcher(tn_context *c) { return (ir_watcher){made, released, c}; }

void leaf_free_all(tn_context *c) {
  for (size_t i = 0; i < c->realised.cap; i++)
    if (c->realised.slot[i]) mem_free(&c->mem, c->realised.slot[i], sizeof(realised));
  intern_free(&c->realised, &c->mem);
  for (size_t i = 0; i < c->leaves.n; i++)
    if (c->leaves.at[i].kind != LEAF_FREE) give_back(c, (int64_t)i);
  mem_free(&c->mem, c->leaves.at, c->leaves.cap * sizeof *c->leaves.at);
}
