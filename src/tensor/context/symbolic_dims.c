/* Symbolic sizes: tagged numbers that name entries of the context's table of index nodes; and the
   conversion of public shapes to index nodes and back.

   A tagged size, from the top: a 1 after the sign bit, 38 check bits, 24 bits of index. Results of
   C's operators on tagged sizes, differences included, are a number or a valid tag only by a rare
   chance. */
#include "tensor/context/symbolic_dims.h"

#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/shape.h"

#include <string.h>

/* ---- Tags ---- */

enum { INDEX_BITS = 24 };
#define MAX_ENTRIES (UINT64_C(1) << INDEX_BITS)

/** Check bits, which differ from entry to entry and from context to context. */
static uint64_t check_of(const tn_context *c, const dim_entry *e) {
  uint64_t x = (e->serial + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(uintptr_t)c;
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x >> 26;
}

static tn_dim tagged(const tn_context *c, const dim_entry *e) {
  return (tn_dim)(UINT64_C(1) << 62 | check_of(c, e) << INDEX_BITS | e->index);
}

static bool is_number(tn_dim d) { return d > -DIM_NUMBER_LIMIT && d < DIM_NUMBER_LIMIT; }

/** The entry of a tagged size; NULL if this context has none such. */
static const dim_entry *entry_of(const tn_context *c, tn_dim d) {
  uint64_t index = (uint64_t)d % MAX_ENTRIES;
  if (!c || index >= c->dims.n) return NULL;
  const dim_entry *e = c->dims.at[index];
  return (e->node || e->failure) && d == tagged(c, e) ? e : NULL;
}

const node *dim_to_node(builder *b, tn_dim d) {
  if (is_number(d)) return ix_const(b->ir, d);
  if (d == DIM_BUSY)
    diag_raise(b->diag, TN_ERR_BUSY, "the context was in another call when a size was made");
  if (d == DIM_MEMORY) diag_raise(b->diag, TN_ERR_MEMORY, "out of memory when a size was made");
  if (d == DIM_INVALID)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "a size was made of a NULL tensor or context");
  const dim_entry *e = entry_of(b->context, d);
  if (!e)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "%lld is no size: numbers are below 2^44 in magnitude, and sizes that vary are "
               "computed by tn_dim_add and its like, in the context that made them",
               (long long)d);
  if (e->failure) context_raise_again(b->context, b->diag, e->failure);
  return e->node;
}

const node *dim_to_bound(builder *b, tn_dim d) {
  const int64_t beyond = INT64_C(1) << 60;
  uint64_t n = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
  bool is_round = !(n & (n - 1)) || !(n & (n + 1));
  if (is_number(d) || !is_round) return dim_to_node(b, d);
  return ix_const(b->ir, n < (uint64_t)beyond ? d : d < 0 ? -beyond : beyond);
}

/* ---- The table ----

   Entries are found by the name of a variable, the node of any other size, or the call that failed
   and its status.
 */

static uint64_t hash_of(const node *n) {
  return n->op == OP_VAR ? hash_text(n->text) : node_hash(n);
}

static uint64_t hash_of_call(const size_call *call) {
  uint64_t name = call->name ? hash_text(call->name) : 0;
  return hash_bytes(call->of, sizeof call->of) ^ name ^ (uint64_t)call->op;
}

static bool has_node(const void *entry, const void *n) {
  return ((const dim_entry *)entry)->node == n;
}

static bool has_name(const void *entry, const void *var) {
  const node *n = ((const dim_entry *)entry)->node, *other = var;
  return n && n != other && n->op == OP_VAR && !strcmp(n->text, other->text);
}

const node *dim_find_same_name(const tn_context *c, const node *var) {
  const dim_entry *e = hash_table_get(&c->dims.known, hash_of(var), var, has_name);
  return e ? e->node : NULL;
}

static bool has_failed_call(const void *entry, const void *other) {
  const dim_entry *e = entry, *f = other;
  const size_call *a = &e->call, *b = &f->call;
  if (!e->failure || e->failure->status != f->failure->status || a->op != b->op) return false;
  if (a->of[0] != b->of[0] || a->of[1] != b->of[1]) return false;
  return a->name && b->name ? !strcmp(a->name, b->name) : a->name == b->name;
}

/** A new or a free entry, with its index set. */
static dim_entry *alloc_entry(tn_context *c) {
  dim_table *t = &c->dims;
  dim_entry *e = t->free;
  if (e) {
    t->free = e->next;
    return e;
  }
  if (t->n == t->cap) {
    size_t cap = t->cap ? 2 * t->cap : 16;
    dim_entry **at = cap <= MAX_ENTRIES
                         ? mem_resize(&c->mem, t->at, t->cap * sizeof *at, cap * sizeof *at)
                         : NULL;
    if (!at) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
    t->at = at;
    t->cap = cap;
  }
  if (!(e = mem_calloc(&c->mem, 1, sizeof *e)))
    diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  e->index = t->n;
  return t->at[t->n++] = e;
}

/** Makes an entry, with its node or failure, one of the innermost scope. */
static tn_dim insert_entry(tn_context *c, hash_slot *slot, const dim_entry *made) {
  dim_table *t = &c->dims;
  dim_entry *e = alloc_entry(c);
  uint64_t index = e->index;
  *e = *made;
  e->index = index;
  e->serial = t->n_made++;
  e->next = c->scopes.innermost->sizes;
  c->scopes.innermost->sizes = e;
  hash_table_insert(&t->known, slot, e->hash, e);
  return tagged(c, e);
}

/** The tagged size of a node: its entry, or a new one. */
static tn_dim add_entry(tn_context *c, const node *n) {
  uint64_t hash = hash_of(n);
  hash_table_reserve(&c->dims.known, &c->mem, &c->diag);
  hash_slot *slot = hash_table_find(&c->dims.known, hash, n, has_node);
  if (slot->entry) return tagged(c, slot->entry);
  tn_dim d = insert_entry(c, slot, &(dim_entry){.node = n, .hash = hash});
  ir_retain(n);
  return d;
}

tn_dim dim_from_node(builder *b, const node *n) {
  if (!node_is_const(n)) return add_entry(b->context, n);
  if (!is_number(node_int(n)))
    diag_raise(b->diag, TN_ERR_SHAPE,
               "the size %lld is too large: numbers are below 2^44 in magnitude",
               (long long)node_int(n));
  return node_int(n);
}

/** Arguments and result of add_failed_entry. */
typedef struct failed_entry_job {
  tn_context *c;
  const size_call *call;
  failure *failure;
  char *name; /* a copy that no entry has yet */
  tn_dim result;
} failed_entry_job;

static void add_failed_entry(void *arg) {
  failed_entry_job *j = arg;
  tn_context *c = j->c;
  dim_entry made = {.failure = j->failure, .call = *j->call, .hash = hash_of_call(j->call)};
  hash_table_reserve(&c->dims.known, &c->mem, &c->diag);
  hash_slot *slot = hash_table_find(&c->dims.known, made.hash, &made, has_failed_call);
  if (slot->entry) {
    j->result = tagged(c, slot->entry);
    return;
  }
  const char *name = made.call.name;
  if (name && !(made.call.name = j->name = mem_strdup(&c->mem, name)))
    diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  j->result = insert_entry(c, slot, &made);
  j->name = NULL; /* the entry's */
  failure_retain(j->failure);
}

tn_dim dim_from_last_failure(tn_context *c, const size_call *call) {
  failed_entry_job j = {.c = c, .call = call, .failure = context_last_failure(c)};
  if (diag_catch(&c->diag, add_failed_entry, &j) != TN_OK) j.result = DIM_MEMORY;
  mem_strfree(&c->mem, j.name);
  failure_release(c, j.failure);
  return j.result;
}

void dims_free_scope(tn_context *c, scope *s) {
  dim_table *t = &c->dims;
  for (dim_entry *e = s->sizes, *next; e; e = next) {
    next = e->next;
    hash_table_remove(&t->known, e->hash, e);
    ir_release(c->ir, e->node);
    failure_release(c, e->failure);
    mem_strfree(&c->mem, (char *)e->call.name);
    *e = (dim_entry){.index = e->index, .next = t->free};
    t->free = e;
  }
  s->sizes = NULL;
}

void dims_free(tn_context *c) {
  dims_free_scope(c, &c->scopes.root);
  for (size_t i = 0; i < c->dims.n; i++) mem_free(&c->mem, c->dims.at[i], sizeof(dim_entry));
  mem_free(&c->mem, c->dims.at, c->dims.cap * sizeof *c->dims.at);
  hash_table_free(&c->dims.known, &c->mem);
}

/* ---- Shapes ---- */

void dims_to_nodes(builder *b, tn_shape shape, const node *sizes[]) {
  if (shape.rank < 0 || shape.rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "the shape has rank %d; ranks are 0 to %d", (int)shape.rank,
               TN_MAX_RANK);
  for (int32_t i = 0; i < shape.rank; i++) {
    sizes[i] = dim_to_node(b, shape.size[i]);
    if (!ix_prove_nonnegative(b->ir, sizes[i]))
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %d has size %lld%s, which is negative", (int)i,
                 (long long)sizes[i]->lo, node_is_const(sizes[i]) ? "" : " at least");
  }
}

static _Noreturn void refuse_large(builder *b, size_t rank, const node *const dims[]) {
  sizes s = {.rank = rank};
  for (size_t i = 0; i < rank; i++) s.at[i] = dims[i];
  diag_raise(b->diag, TN_ERR_SHAPE, "shape %s is too large: more elements than memory can hold",
             sizes_text(b, &s));
}

void dims_check_count(builder *b, const node *n) {
  uint64_t count = dtype_bytes((dtype)n->dtype);
  bool is_large = false;
  for (size_t i = 0; i < n->rank; i++) {
    if (n->dims[i]->lo <= 0) return;
    is_large |= __builtin_mul_overflow(count, (uint64_t)n->dims[i]->lo, &count);
    is_large |= count > (uint64_t)PTRDIFF_MAX;
  }
  if (is_large) refuse_large(b, n->rank, n->dims);
}

size_t dims_to_static_nodes(builder *b, tn_shape shape, size_t bytes, const node *sizes[]) {
  uint64_t count = 1;
  bool is_empty = false, is_large = false;
  dims_to_nodes(b, shape, sizes);
  for (int32_t i = 0; i < shape.rank; i++) {
    if (!node_is_const(sizes[i]))
      diag_raise(b->diag, TN_ERR_SHAPE, "the size of axis %d varies; it must be a number", (int)i);
    uint64_t n = (uint64_t)node_int(sizes[i]);
    is_empty |= !n;
    if (n && count > (uint64_t)PTRDIFF_MAX / bytes / n)
      is_large = true;
    else if (n)
      count *= n;
  }
  if (is_empty) return 0;
  if (is_large) refuse_large(b, (size_t)shape.rank, sizes);
  return (size_t)count;
}

tn_shape dims_from_node(builder *b, const node *n) {
  tn_shape s = {n->rank, {0}};
  if (n->rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "the tensor has rank %d; ranks are 0 to %d", (int)n->rank,
               TN_MAX_RANK);
  for (size_t i = 0; i < n->rank; i++) s.size[i] = dim_from_node(b, n->dims[i]);
  return s;
}

bool dims_static_count(const node *n, uint64_t *count) {
  *count = 1;
  for (size_t i = 0; i < n->rank; i++) {
    if (!node_is_const(n->dims[i])) return false;
    if (__builtin_mul_overflow(*count, (uint64_t)node_int(n->dims[i]), count)) *count = UINT64_MAX;
  }
  for (size_t i = 0; i < n->rank; i++)
    if (!node_int(n->dims[i])) *count = 0;
  return true;
}

dtype dims_check_dtype(builder *b, tn_dtype t) {
  if (!tn_dtype_size(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s (%d) holds no data", tn_dtype_name(t), (int)t);
  return (dtype)t;
}
