/* Implements the IR's node store: interns nodes in a hash table by their specification (hash
   consing), each in one allocation with its sources, integers and text, and counts references to
   them. Sets of free ranges are interned too, so that equal sets are one pointer. */
#include "ir/core/ir.h"

#include "base/hash_table.h"
#include "base/stop.h"
#include "ir/core/binder_layout.h"
#include "ir/core/likely_value.h"
#include "ir/core/node_device.h"
#include "ir/core/shape_inference.h"

#include <string.h>

enum { NODES_BETWEEN_CHECKS = 256 }; /* of the condition to stop, some 20 µs */

/* Storage of a node: the struct, sources, own dimensions, integers, text if there is any. */

typedef struct node_layout {
  size_t dims, ints, text, bytes;
} node_layout;

static node_layout layout_of(size_t n_src, size_t own_dims, size_t n_int, bool has_likely,
                             size_t n_text) {
  node_layout l;
  l.dims = sizeof(node) + n_src * sizeof(node *);
  l.ints = l.dims + own_dims * sizeof(node *);
  l.text = l.ints + (n_int + has_likely) * sizeof(int64_t);
  l.bytes = l.text + (n_text ? n_text + 1 : 0);
  return l;
}

struct ir {
  const mem *mem;
  diag *diag;
  bool counted;
  bool has_items;   /* an ITEM was made */
  bool has_devices; /* a node on a named device was made */
  arena arena;      /* scratch irs: nodes, range sets, and what lives as long */
  arena scratch;    /* scratch irs: memory of a scope */
  hash_table nodes, sets;
  const node **young; /* counted irs: nodes since ir_release_unheld, each held once here */
  size_t n_young, cap_young;
  ir_observer observer;
  uint64_t next_id; /* also the number of nodes made */
  int64_t next_fresh;
  uint64_t rules_fired;
};

static const range_set empty_set;

ir *ir_new(const mem *m, diag *d, bool counted) {
  ir *g = mem_calloc(m, 1, sizeof *g);
  if (!g) return NULL;
  g->mem = m;
  g->diag = d;
  g->counted = counted;
  arena_init(&g->arena, m, d);
  arena_init(&g->scratch, m, d);
  return g;
}

static size_t node_bytes(const node *n) {
  bool own = n->op == OP_PERMUTE || n->op == OP_REDUCE;
  bool has_likely = node_has_likely((dtype)n->dtype, n->lo, n->hi);
  return layout_of(n->n_src, own ? n->rank : 0, n->n_int, has_likely, n->n_text).bytes;
}

void ir_free(ir *g) {
  if (!g) return;
  node *n;
  if (g->counted)
    for (size_t at = 0; (n = hash_table_next(&g->nodes, &at));) mem_free(g->mem, n, node_bytes(n));
  hash_table_free(&g->nodes, g->mem);
  hash_table_free(&g->sets, g->mem);
  mem_free(g->mem, g->young, g->cap_young * sizeof *g->young);
  arena_free(&g->arena);
  arena_free(&g->scratch);
  mem_free(g->mem, g, sizeof *g);
}

arena *ir_arena(ir *g) { return &g->arena; }
arena *ir_scratch(ir *g) { return &g->scratch; }
diag *ir_diag(const ir *g) { return g->diag; }
const mem *ir_mem(const ir *g) { return g->mem; }
bool ir_has_items(const ir *g) { return g->has_items; }

bool ir_has_devices(const ir *g) { return g->has_devices; }
size_t ir_node_count(const ir *g) { return g->nodes.n; }
uint64_t ir_rules_fired(const ir *g) { return g->rules_fired; }
void ir_add_rules_fired(ir *g, uint64_t n) { g->rules_fired += n; }
int64_t ir_fresh_id(ir *g) { return g->next_fresh++; }

/* Sets of ranges. */

bool range_set_is_subset(const range_set *a, const range_set *b) {
  if (a == b) return true;
  uint32_t i = 0;
  for (uint32_t k = 0; i < a->n && k < b->n; k++)
    if (a->at[i] == b->at[k]) i++;
  return i == a->n;
}

bool range_set_intersects(const range_set *a, const range_set *b) {
  for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
    if (a->at[i] == b->at[k]) return true;
    if (a->at[i]->id < b->at[k]->id)
      i++;
    else
      k++;
  }
  return false;
}

static bool range_set_has(const range_set *s, const node *r) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->at[i] == r) return true;
  return false;
}

bool node_is_free_in(const node *r, const node *n) { return range_set_has(n->free, r); }

const node *node_storage_root(const node *s) {
  while (s->op == OP_AFTER) s = s->src[0];
  return s;
}

size_t node_n_operands(const node *n) {
  switch (n->op) {
  case OP_WAIT: return 0;
  case OP_ALLOC:
  case OP_AFTER: return 1;
  case OP_PREFETCH: return 2;
  case OP_STORE: return 3;
  default: return n->n_src;
  }
}

bool node_is_scope_source(const node *n, size_t k) {
  if (k < node_n_operands(n)) return false;
  return n->src[k]->op == OP_RANGE || n->src[k]->op == OP_CONST;
}

static bool same_set(const void *entry, const void *wanted) {
  const range_set *a = entry, *b = wanted;
  return a->n == b->n && !memcmp(a->at, b->at, a->n * sizeof *a->at);
}

static size_t set_bytes(size_t n) { return sizeof(range_set) + n * sizeof(node *); }

/** The interned set equal to `s`. */
static const range_set *intern_set(ir *g, const range_set *s) {
  if (!s->n) return &empty_set;
  hasher h = hash_begin();
  for (uint32_t i = 0; i < s->n; i++) hash_add_word(&h, (uintptr_t)s->at[i]);
  uint64_t hash = hash_end(&h);
  hash_table_reserve(&g->sets, g->mem, g->diag);
  hash_slot *slot = hash_table_find(&g->sets, hash, s, same_set);
  if (!slot->entry)
    hash_table_insert(&g->sets, slot, hash, arena_copy(&g->arena, s, set_bytes(s->n)));
  return slot->entry;
}

const range_set *range_set_union(ir *g, const range_set *a, const range_set *b) {
  if (range_set_is_subset(b, a)) return a;
  if (range_set_is_subset(a, b)) return b;
  arena_mark here = arena_save(&g->scratch);
  range_set *s = arena_alloc(&g->scratch, set_bytes(a->n + b->n));
  s->n = 0;
  for (uint32_t i = 0, k = 0; i < a->n || k < b->n;) {
    bool first = k == b->n || (i < a->n && a->at[i]->id <= b->at[k]->id);
    const node *r = first ? a->at[i++] : b->at[k++];
    if (!s->n || s->at[s->n - 1] != r) s->at[s->n++] = r;
  }
  const range_set *both = intern_set(g, s);
  arena_rewind(&g->scratch, here);
  return both;
}

const range_set *range_set_without(ir *g, const range_set *a, const node *range) {
  if (!range_set_has(a, range)) return a;
  arena_mark here = arena_save(&g->scratch);
  range_set *s = arena_alloc(&g->scratch, set_bytes(a->n));
  s->n = 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->at[i] != range) s->at[s->n++] = a->at[i];
  const range_set *others = intern_set(g, s);
  arena_rewind(&g->scratch, here);
  return others;
}

static const range_set *infer_free(ir *g, const node_spec *s) {
  const range_set *f = &empty_set;
  if (s->op == OP_LINEAR) return f; /* a LINEAR opens and closes its loops itself */
  for (size_t i = 0; i < s->n_src; i++) f = range_set_union(g, f, s->src[i]->free);
  if (s->op == OP_STAGE || s->op == OP_FOLD || s->op == OP_END || s->op == OP_LOOP) {
    const node *const *ranges;
    size_t n = binder_ranges_of(s->op, s->ints, s->src, &ranges);
    for (size_t i = 0; i < n; i++) f = range_set_without(g, f, ranges[i]);
  }
  return f;
}

/** Adds a RANGE to its own free ranges, once the node has an address. */
static const range_set *add_self(ir *g, const range_set *f, const node *range) {
  arena_mark here = arena_save(&g->scratch);
  range_set *self = arena_alloc(&g->scratch, set_bytes(1));
  self->n = 1;
  self->at[0] = range;
  const range_set *all = range_set_union(g, f, intern_set(g, self));
  arena_rewind(&g->scratch, here);
  return all;
}

/* Interning. */

static uint64_t hash_spec(const node_spec *s) {
  hasher h = hash_begin();
  hash_add_word(&h, (uint64_t)s->op | (uint64_t)s->dtype << 16 | (uint64_t)s->lanes << 24 |
                        (uint64_t)s->n_src << 40);
  for (size_t i = 0; i < s->n_src; i++) hash_add_word(&h, (uintptr_t)s->src[i]);
  for (size_t i = 0; i < s->n_int; i++) hash_add_word(&h, (uint64_t)s->ints[i]);
  if (s->n_text) hash_add_bytes(&h, s->text, s->n_text);
  return hash_end(&h);
}

uint64_t node_hash(const node *n) {
  node_spec s = node_spec_with_sources(n, n->src, n->n_src);
  return hash_spec(&s);
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

static void fill_shape(node *n, const node_spec *s, inferred_shape shape, const node **own) {
  n->rank = (uint16_t)shape.rank;
  if (shape.own) {
    infer_computed_dims(s, own);
    n->dims = own;
  } else {
    n->dims = shape.like ? shape.like->dims : &n->src[shape.first_source];
  }
}

void ir_check_rank(ir *g, size_t rank) {
  if (rank > IR_MAX_RANK)
    diag_raise(g->diag, TN_ERR_SHAPE, "a tensor of %zu dimensions (at most %d)", rank, IR_MAX_RANK);
}

static node *build_node(ir *g, const node_spec *s, const range_set *free_ranges) {
  inferred_shape shape = infer_shape(s);
  ir_check_rank(g, shape.rank);
  interval bounds = infer_bounds(s);
  uint8_t device = node_device_infer(g, s);
  bool has_likely = node_has_likely(s->dtype, bounds.lo, bounds.hi);
  node_layout l = layout_of(s->n_src, shape.own ? shape.rank : 0, s->n_int, has_likely, s->n_text);
  char *at = g->counted ? mem_alloc(g->mem, l.bytes) : arena_alloc(&g->arena, l.bytes);
  if (!at) diag_raise(g->diag, TN_ERR_MEMORY, "out of memory");
  node *n = (node *)at;
  int64_t *ints = (int64_t *)(at + l.ints);
  char *text = s->n_text ? at + l.text : NULL;
  *n = (node){.op = (uint16_t)s->op,
              .dtype = (uint8_t)s->dtype,
              .device = device,
              .lanes = s->lanes,
              .n_src = (uint32_t)s->n_src,
              .n_int = (uint32_t)s->n_int,
              .n_text = (uint32_t)s->n_text,
              .id = g->next_id++,
              .ints = ints,
              .text = text ? text : "",
              .free = free_ranges,
              .lo = bounds.lo,
              .hi = bounds.hi};
  if (s->n_src) memcpy(n->src, s->src, s->n_src * sizeof *s->src);
  if (s->n_int) memcpy(ints, s->ints, s->n_int * sizeof *s->ints);
  if (has_likely) ints[s->n_int] = infer_likely(s, bounds);
  if (text) {
    memcpy(text, s->text, s->n_text);
    text[s->n_text] = 0;
  }
  fill_shape(n, s, shape, (const node **)(at + l.dims));
  return n;
}

const node *ir_make(ir *g, const node_spec *spec) {
  node_spec s = *spec;
  if (!s.lanes) s.lanes = 1;
  uint64_t hash = hash_spec(&s);
  hash_table_reserve(&g->nodes, g->mem, g->diag);
  hash_slot *slot = hash_table_find(&g->nodes, hash, &s, same_node);
  if (slot->entry) return slot->entry;
  if (g->counted) reserve_young(g);
  g->has_items |= s.op == OP_ITEM;
  if (!(g->next_id % NODES_BETWEEN_CHECKS)) stop_check(g->diag);
  g->has_devices |= node_device_is_named(&s);
  const range_set *free_ranges = g->counted ? &empty_set : infer_free(g, &s);
  node *n = build_node(g, &s, free_ranges);
  if (s.op == OP_RANGE && !g->counted) n->free = add_self(g, free_ranges, n);
  if (g->counted) {
    for (uint32_t i = 0; i < n->n_src; i++) ir_retain(n->src[i]);
    n->refs = 1;
    g->young[g->n_young++] = n;
  }
  if ((s.op == OP_RANGE || s.op == OP_ALLOC) && s.ints[0] >= g->next_fresh)
    g->next_fresh = s.ints[0] + 1; /* parsed graphs bring their numbers along */
  hash_table_insert(&g->nodes, slot, hash, n);
  if (g->observer.made) g->observer.made(g->observer.user, n);
  return n;
}

node_spec node_spec_with_sources(const node *n, const node *const src[], size_t n_src) {
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
  node_spec s = node_spec_with_sources(n, src, n->n_src);
  return ir_make(g, &s);
}

/* Reference counts. */

const node *ir_retain(const node *n) {
  ((node *)n)->refs++;
  return n;
}

/** Drops one reference. The last one removes the node from the table and pushes it on the list of
    dying nodes, which are linked through their `dims`. */
static node *drop_reference(ir *g, const node *shared, node *dying) {
  node *n = (node *)shared;
  if (--n->refs) return dying;
  hash_table_remove(&g->nodes, node_hash(n), n);
  n->dims = (const node *const *)dying;
  return n;
}

void ir_release(ir *g, const node *n) {
  if (!n) return;
  node *dying = drop_reference(g, n, NULL);
  while (dying) {
    node *dead = dying;
    dying = (node *)dead->dims;
    if (g->observer.released) g->observer.released(g->observer.user, dead);
    for (uint32_t i = 0; i < dead->n_src; i++) dying = drop_reference(g, dead->src[i], dying);
    mem_free(g->mem, dead, node_bytes(dead));
  }
}

void ir_observe(ir *g, const ir_observer *w) { g->observer = w ? *w : (ir_observer){0}; }

void ir_release_unheld(ir *g) {
  while (g->n_young) ir_release(g, g->young[--g->n_young]);
  arena_rewind(&g->scratch, (arena_mark){0}); /* what a failed operation left */
}
