/* Linearises a lowered graph into a list of instructions, with loop-invariant code motion. Ranges
   form a tree, in which the parent of a range is the innermost range that its END (its loop)
   depends on. A node belongs to the block of its innermost free range, which hoists loop-invariant
   code; a loop stands where its END does. Effects stay inside the loop that lists them even if they
   do not depend on it, since it may have no iteration. A load that is used only beside a loop
   further in is sunk to its use: that loop needs the registers. */
#include "codegen/codegen.h"
#include "codegen/lower/loop_tree.h"
#include "ir/core/binder.h"

typedef VEC(const node *) block; /* instructions; an END stands for its whole loop */

typedef VEC(const loop *) loop_list;

/** The loops whose bodies use a node. */
typedef struct uses {
  const loop *loop; /* of all uses; NULL: none is known */
  bool is_spread;   /* several bodies use it */
} uses;

typedef struct lineariser {
  arena *a;
  loop_tree tree;
  map blocks; /* loop → the block of its body */
  map uses;   /* node → uses */
  map sunk;   /* node that is sunk → the loop of its use */
  map stored; /* PARAM or ALLOC → loop_list of the loops that store to it */
  node_list out;
} lineariser;

static block *block_of(lineariser *l, const loop *of) {
  block *b = map_get(&l->blocks, of);
  if (!b) map_set(l->a, &l->blocks, of, b = arena_calloc(l->a, 1, sizeof *b));
  return b;
}

static bool is_listed(const node *n) {
  switch (n->op) {
  case OP_CONST:
  case OP_PARAM:
  case OP_VAR:
  case OP_AFTER:
  case OP_INVALID:
  case OP_GROUP:
  case OP_RANGE:
  case OP_SINK: return false;
  default: return true;
  }
}

static void note_store(lineariser *l, const node *store) {
  const node *storage = node_storage_root(store->src[0]);
  loop_list *loops = map_get(&l->stored, storage);
  if (!loops) map_set(l->a, &l->stored, storage, loops = arena_calloc(l->a, 1, sizeof *loops));
  const loop *at = loop_tree_around(&l->tree, store);
  if (!loops->n || vec_last(loops) != at) vec_push(l->a, loops, at);
}

/** True if storage is stored to in a loop, or in loops inside of it. */
static bool is_stored_in(lineariser *l, const node *storage, const loop *around) {
  const loop_list *loops = map_get(&l->stored, storage);
  for (size_t i = 0; loops && i < loops->n; i++)
    for (const loop *p = loops->at[i]; p; p = p->parent)
      if (p == around) return true;
  return false;
}

/** True for a load of memory that does not change in a loop, and for a splat: either may move
   anywhere inside of the loop. */
static bool may_sink(lineariser *l, const node *n, const loop *around) {
  if (n->op != OP_LOAD) return n->op == OP_SPLAT;
  const node *storage = node_storage_root(n->src[0]);
  bool is_in_memory = storage->op == OP_PARAM || (storage->op == OP_ALLOC && storage->ints[1]);
  return is_in_memory && !is_stored_in(l, storage, around);
}

/** Finds nodes to sink, users before the nodes that they use. */
static void find_sunk(lineariser *l, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_STORE) note_store(l, order->at[i]);
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    const loop *p = is_listed(n) ? loop_tree_around(&l->tree, n) : NULL;
    uses *u = map_get(&l->uses, n);
    bool is_used_deeper = p && u && !u->is_spread && u->loop->depth > p->depth;
    if (is_used_deeper && u->loop->has_loops && may_sink(l, n, p))
      map_set(l->a, &l->sunk, n, (void *)(p = u->loop));
    for (uint32_t k = 0; k < n->n_src; k++) {
      uses *of = map_get(&l->uses, n->src[k]);
      if (!of) map_set(l->a, &l->uses, n->src[k], of = arena_calloc(l->a, 1, sizeof *of));
      of->is_spread |= !p || (of->loop && of->loop != p);
      of->loop = p;
    }
  }
}

/** Appends a node to a loop's block after the loads and splats that were sunk to it. */
static void append_node(lineariser *l, const node *n, const loop *to) {
  block *b = block_of(l, to);
  VEC(const node *) stack = {0};
  vec_push(l->a, &stack, n);
  while (stack.n) {
    const node *last = vec_last(&stack), *needed = NULL;
    for (uint32_t k = 0; k < last->n_src && !needed; k++)
      if (map_get(&l->sunk, last->src[k]) == to) needed = last->src[k];
    if (needed) {
      map_set(l->a, &l->sunk, needed, NULL); /* appended once */
      vec_push(l->a, &stack, needed);
    } else {
      vec_push(l->a, b, last);
      stack.n--;
    }
  }
}

typedef struct cursor {
  const block *items;
  size_t next;
  const node *end; /* of the loop this is the body of; NULL at the top */
} cursor;

static void emit_blocks(lineariser *l) {
  VEC(cursor) stack = {0};
  vec_push(l->a, &stack, (cursor){block_of(l, &l->tree.outside), 0, NULL});
  while (stack.n) {
    cursor *c = &vec_last(&stack);
    if (c->next == c->items->n) {
      if (c->end) vec_push(l->a, &l->out, c->end);
      stack.n--;
      continue;
    }
    const node *n = c->items->at[c->next++];
    if (n->op != OP_END) {
      vec_push(l->a, &l->out, n);
      continue;
    }
    vec_push(l->a, &l->out, n->src[0]);
    vec_push(l->a, &stack, (cursor){block_of(l, map_get(&l->tree.loops, n->src[0])), 0, n});
  }
}

const node *codegen_linearise(ir *g, const node *sink) {
  lineariser l = {.a = ir_arena(g)};
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  loop_tree_make(&l.tree, l.a, &order);
  find_sunk(&l, &order);
  for (size_t i = 0; i < order.n; i++)
    if (is_listed(order.at[i]) && !map_has(&l.sunk, order.at[i]))
      append_node(&l, order.at[i], loop_tree_around(&l.tree, order.at[i]));
  emit_blocks(&l);
  return ir_node(g, OP_LINEAR, DT_VOID, l.out.at, l.out.n, NULL, 0);
}
