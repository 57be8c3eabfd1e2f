#include "ir/ir.h"

#include "base/intern.h"
#include "ir/binder.h"
#include "ir/infer.h"

#include <string.h>

/* Storage of a node: the struct, sources, own dimensions, integers, text. */

typedef struct node_layout {
  size_t dims, ints, text, bytes;
} node_layout;

static node_layout layout_of(size_t n_src, size_t own_dims, size_t n_int, size_t n_text) {
  node_layout l;
  l.dims = sizeof(node) + n_src * sizeof(node *);
  l.ints = l.dims + own_dims * sizeof(node *);
  l.text = l.ints + n_int * sizeof(int64_t);
  l.bytes = l.text + n_text + 1;
  return l;
}

struct ir {
  const mem *mem;
  diag *diag;
  bool counted;
  arena arena; /* scratch: nodes and range sets */
  intern_table nodes, sets;
  const node **young; /* counted: nodes made since the last ir_collect, each held once here */
  size_t n_young, cap_young;
  ir_watcher watcher;
  uint64_t next_id;
  int64_t next_fresh;
  uint64_t fires;
};

static const range_set empty_set;

ir *ir_new(const mem *m, diag *d, bool counted) {
  ir *g = mem_calloc(m, 1, sizeof *g);
  if (!g) return NULL;
  g->mem = m;
  g->diag = d;
  g->counted = counted;
  arena_init(&g->arena, m, d);
  return g;
}

static size_t node_bytes(const node *n) {
  bool own = n->op == OP_PERMUTE || n->op == OP_REDUCE;
  return layout_of(n->n_src, own ? n->rank : 0, n->n_int, n->n_text).bytes;
}

void ir_free(ir *g) {
  if (!g) return;
  if (g->counted)
    for (size_t i = 0; i < g->nodes.cap; i++)
      if (g->nodes.slot[i]) mem_free(g->mem, g->nodes.slot[i], node_bytes(g->nodes.slot[i]));
  intern_free(&g->nodes, g->mem);
  intern_free(&g->sets, g->mem);
  mem_free(g->mem, g->young, g->cap_young * sizeof *g->young);
  arena_free(&g->arena);
  mem_free(g->mem, g, sizeof *g);
}

arena *ir_arena(ir *g) { return &g->arena; }
diag *ir_diag(const ir *g) { return g->diag; }
const mem *ir_mem(const ir *g) { return g->mem; }
size_t ir_count(const ir *g) { return g->nodes.n; }
uint64_t ir_fires(const ir *g) { return g->fires; }
void ir_add_fires(ir *g, uint64_t n) { g->fires += n; }
int64_t ir_fresh(ir *g) { return g->next_fresh++; }

/* Sets of ranges. */

bool range_set_within(const range_set *a, const range_set *b) {
  if (a == b) return true;
  uint32_t i = 0;
  for (uint32_t k = 0; i < a->n && k < b->n; k++)
    if (a->at[i] == b->at[k]) i++;
  return i == a->n;
}

bool range_set_meets(const range_set *a, const range_set *b) {
  for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
    if (a->at[i] == b->at[k]) return true;
    if (a->at[i]->id < b->at[k]->id)
      i++;
    else
      k++;
  }
  return false;
}

bool node_is_free_in(const node *r, const node *n) {
  for (uint32_t i = 0; i < n->free->n; i++)
    if (n->free->at[i] == r) return true;
  return false;
}

const node *node_storage_root(const node *s) {
  while (s->op == OP_AFTER) s = s->src[0];
  return s;
}

size_t node_values(const node *n) {
  switch (n->op) {
  case OP_ALLOC:
  case OP_AFTER: return 1;
  case OP_STORE: return 3;
  default: return n->n_src;
  }
}

bool node_is_place(const node *n, size_t k) {
  if (k < node_values(n)) return false;
  return n->src[k]->op == OP_RANGE || n->src[k]->op == OP_CONST;
}

static bool same_set(const void *entry, const void *wanted) {
  const range_set *a = entry, *b = wanted;
  return a->n == b->n && !memcmp(a->at, b->at, a->n * sizeof *a->at);
}

static const range_set *intern_set(ir *g, range_set *s) {
  if (!s->n) return &empty_set;
  s->hash = intern_hash(s->at, s->n * sizeof *s->at, s->n);
  intern_reserve(&g->sets, g->mem, g->diag);
  void **slot = intern_find(&g->sets, s->hash, s, same_set);
  if (!*slot) intern_put(&g->sets, slot, s, s->hash);
  return *slot;
}

static range_set *new_set(ir *g, uint32_t most) {
  return arena_alloc(&g->arena, sizeof(range_set) + most * sizeof(node *));
}

const range_set *ir_range_union(ir *g, const range_set *a, const range_set *b) {
  if (range_set_within(b, a)) return a;
  if (range_set_within(a, b)) return b;
  range_set *s = new_set(g, a->n + b->n);
  s->n = 0;
  for (uint32_t i = 0, k = 0; i < a->n || k < b->n;) {
    bool first = k == b->n || (i < a->n && a->at[i]->id <= b->at[k]->id);
    const node *r = first ? a->at[i++] : b->at[k++];
    if (!s->n || s->at[s->n - 1] != r) s->at[s->n++] = r;
  }
  return intern_set(g, s);
}

const range_set *ir_range_without(ir *g, const range_set *a, const node *range) {
  range_set *s = new_set(g, a->n);
  s->n = 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->at[i] != range) s->at[s->n++] = a->at[i];
  return s->n == a->n ? a : intern_set(g, s);
}

static const range_set *infer_free(ir *g, const node_spec *s) {
  const range_set *f = &empty_set;
  if (s->op == OP_LINEAR) return f; /* it opens and closes its loops itself */
  for (size_t i = 0; i < s->n_src; i++) f = ir_range_union(g, f, s->src[i]->free);
  if (s->op == OP_STAGE || s->op == OP_FOLD || s->op == OP_END || s->op == OP_LOOP) {
    const node *const *ranges;
    size_t n = binder_ranges_of(s->op, s->ints, s->src, &ranges);
    for (size_t i = 0; i < n; i++) f = ir_range_without(g, f, ranges[i]);
  }
  return f;
}

/** A RANGE is free in itself; its set is made once it has an address. */
static const range_set *with_self(ir *g, const range_set *f, const node *range) {
  range_set *one = new_set(g, 1);
  one->n = 1;
  one->at[0] = range;
  return ir_range_union(g, f, intern_set(g, one));
}

/* Interning. */

static uint32_t hash_spec(const node_spec *s) {
  uint64_t head = (uint64_t)s->op | (uint64_t)s->dtype << 16 | (uint64_t)s->lanes << 24 |
                  (uint64_t)s->n_src << 40;
  uint64_t h = intern_hash(s->src, s->n_src * sizeof *s->src, head);
  if (s->n_int) h = intern_hash(s->ints, s->n_int * sizeof *s->ints, h);
  if (s->n_text) h = intern_hash(s->text, s->n_text, h);
  return (uint32_t)(h ^ h >> 32);
}

static bool same_bytes(const void *a, const void *b, size_t bytes) {
  return !bytes || !memcmp(a, b, bytes);
}

static bool same_node(const void *entry, const void *wanted) {
  const node *n = entry;
  const node_spec *s = wanted;
  return n->op == s->op && n->dtype == s->dtype && n->lanes == s->lanes && n->n_src == s->n_src &&
         n->n_int == s->n_int && n->n_text == s->n_text &&
         same_bytes(n->src, s->src, s->n_src * sizeof *s->src) &&
         same_bytes(n->ints, s->ints, s->n_int * sizeof *s->ints) &&
         same_bytes(n->text, s->text, s->n_text);
}

static void reserve_young(ir *g) {
  if (g->n_young < g->cap_young) return;
  size_t cap = g->cap_young ? g->cap_young * 2 : 64;
  const node **young =
      mem_resize(g->mem, g->young, g->cap_young * sizeof *young, cap * sizeof *young);
  if (!young) diag_raise(g->diag, TN_ERR_MEMORY, "out of memory");
  g->young = young;
  g->cap_young = cap;
}

static void *node_storage(ir *g, size_t bytes) {
  if (!g->counted) return arena_alloc(&g->arena, bytes);
  void *at = mem_alloc(g->mem, bytes);
  if (!at) diag_raise(g->diag, TN_ERR_MEMORY, "out of memory");
  return at;
}

static void fill_shape(node *n, const node_spec *s, shape_rule shape, const node **own) {
  n->rank = (uint16_t)shape.rank;
  if (shape.own) {
    infer_own_dims(s, own);
    n->dims = own;
  } else {
    n->dims = shape.like ? shape.like->dims : &n->src[shape.first_source];
  }
}

void ir_check_rank(ir *g, size_t rank) {
  if (rank > IR_MOST_RANK)
    diag_raise(g->diag, TN_ERR_SHAPE, "a tensor of %zu dimensions (at most %d)", rank,
               IR_MOST_RANK);
}

static node *build(ir *g, const node_spec *s, uint32_t hash, const range_set *free_ranges) {
  shape_rule shape = infer_shape(s);
  ir_check_rank(g, shape.rank);
  node_layout l = layout_of(s->n_src, shape.own ? shape.rank : 0, s->n_int, s->n_text);
  char *at = node_storage(g, l.bytes);
  node *n = (node *)at;
  int64_t *ints = (int64_t *)(at + l.ints);
  char *text = at + l.text;
  *n = (node){.op = (uint16_t)s->op,
              .dtype = (uint8_t)s->dtype,
              .lanes = s->lanes,
              .n_src = (uint32_t)s->n_src,
              .n_int = (uint32_t)s->n_int,
              .n_text = (uint32_t)s->n_text,
              .id = g->next_id++,
              .hash = hash,
              .ints = ints,
              .text = text,
              .free = free_ranges};
  if (s->n_src) memcpy(n->src, s->src, s->n_src * sizeof *s->src);
  if (s->n_int) memcpy(ints, s->ints, s->n_int * sizeof *s->ints);
  if (s->n_text) memcpy(text, s->text, s->n_text);
  text[s->n_text] = 0;
  fill_shape(n, s, shape, (const node **)(at + l.dims));
  interval bounds = infer_bounds(s);
  n->lo = bounds.lo;
  n->hi = bounds.hi;
  return n;
}

static void hold_sources(ir *g, node *n) {
  for (uint32_t i = 0; i < n->n_src; i++) ir_retain(n->src[i]);
  n->refs = 1;
  g->young[g->n_young++] = n;
}

const node *ir_make(ir *g, const node_spec *spec) {
  node_spec s = *spec;
  if (!s.lanes) s.lanes = 1;
  uint32_t hash = hash_spec(&s);
  intern_reserve(&g->nodes, g->mem, g->diag);
  void **slot = intern_find(&g->nodes, hash, &s, same_node);
  if (*slot) return *slot;
  if (g->counted) reserve_young(g);
  const range_set *free_ranges = g->counted ? &empty_set : infer_free(g, &s);
  node *n = build(g, &s, hash, free_ranges);
  if (s.op == OP_RANGE && !g->counted) n->free = with_self(g, free_ranges, n);
  if (g->counted) hold_sources(g, n);
  if ((s.op == OP_RANGE || s.op == OP_ALLOC) && s.ints[0] >= g->next_fresh)
    g->next_fresh = s.ints[0] + 1; /* numbers may come from a text */
  intern_put(&g->nodes, slot, n, hash);
  if (g->watcher.made) g->watcher.made(g->watcher.user, n);
  return n;
}

node_spec ir_spec(const node *n, const node *const src[], size_t n_src) {
  return (node_spec){.op = (op)n->op,
                     .dtype = (dtype)n->dtype,
                     .lanes = n->lanes,
                     .src = src,
                     .n_src = n_src,
                     .ints = n->ints,
                     .n_int = n->n_int,
                     .text = n->text,
                     .n_text = n->n_text};
}

const node *ir_with_sources(ir *g, const node *n, const node *const src[]) {
  node_spec s = ir_spec(n, src, n->n_src);
  return ir_make(g, &s);
}

/* Counting. */

const node *ir_retain(const node *n) {
  ((node *)n)->refs++;
  return n;
}

/** Drops one reference; a node without any is unlinked and pushed on the list, whose links are
    kept in the dying nodes themselves. */
static node *drop(ir *g, const node *shared, node *dying) {
  node *n = (node *)shared;
  if (--n->refs) return dying;
  intern_remove(&g->nodes, n->hash, n);
  n->dims = (const node *const *)dying;
  return n;
}

void ir_release(ir *g, const node *n) {
  if (!n) return;
  node *dying = drop(g, n, NULL);
  while (dying) {
    node *dead = dying;
    dying = (node *)dead->dims;
    if (g->watcher.released) g->watcher.released(g->watcher.user, dead);
    for (uint32_t i = 0; i < dead->n_src; i++) dying = drop(g, dead->src[i], dying);
    mem_free(g->mem, dead, node_bytes(dead));
  }
}

void ir_watch(ir *g, const ir_watcher *w) { g->watcher = w ? *w : (ir_watcher){0}; }

void ir_collect(ir *g) {
  while (g->n_young) ir_release(g, g->young[--g->n_young]);
}
