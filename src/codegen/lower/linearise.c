/* Linearises a lowered graph into a list of instructions, with loop-invariant code motion. Ranges
   form a tree, in which the parent of a range is the innermost range that its END (its loop)
   depends on. A node belongs to the block of its innermost free range, which hoists loop-invariant
   code; a loop stands where its END does. Effects stay inside the loop that lists them even if they
   do not depend on it, since it may have no iteration. A load that is used only beside a loop
   further in is sunk to its use: that loop needs the registers. */
#include "codegen/codegen.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"

#include "base/map.h"

typedef VEC(const node *) block; /* instructions; an END stands for its whole loop */

typedef struct place {
  size_t depth;         /* of the loop: 1 for the outermost ones, 0 for the top */
  struct place *parent; /* NULL: the top */
  bool has_loops;       /* directly inside */
  block items;
} place;

typedef VEC(const place *) place_list;

/** The blocks that use a node. */
typedef struct uses {
  place *place;   /* of all uses; NULL: none is known */
  bool is_spread; /* several blocks use it */
} uses;

typedef struct lineariser {
  arena *a;
  map places; /* RANGE → place */
  map within; /* effect → the RANGE of the END that lists it */
  map uses;   /* node → uses */
  map sunk;   /* node that is sunk → the block of its use */
  map stored; /* PARAM or ALLOC → place_list of the blocks that store to it */
  place top;
  node_list out;
} lineariser;

static place *place_of(lineariser *l, const node *range) {
  place *p = map_get(&l->places, range);
  if (p) return p;
  p = arena_calloc(l->a, 1, sizeof *p);
  map_set(l->a, &l->places, range, p);
  return p;
}

/** The block of a node: that of its deepest free range, or of the loop that it is an effect of. */
static place *block_of(lineariser *l, const node *n) {
  const node *loop = map_get(&l->within, n);
  place *deepest = loop ? place_of(l, loop) : &l->top;
  for (uint32_t i = 0; i < n->free->n; i++) {
    place *p = place_of(l, n->free->at[i]);
    if (p->depth > deepest->depth) deepest = p;
  }
  return deepest;
}

/** Sets parents and depths. An outer END follows the inner ones, so outer loops are met first from
   the end. */
static void find_depths(lineariser *l, const node_list *order) {
  for (size_t i = order->n; i-- > 0;) {
    const node *end = order->at[i];
    if (end->op != OP_END) continue;
    place *parent = block_of(l, end);
    parent->has_loops = true;
    place *own = place_of(l, end->src[0]);
    own->depth = parent->depth + 1;
    own->parent = parent;
    for (uint32_t k = 1; k < end->n_src; k++)
      map_set(l->a, &l->within, end->src[k], (void *)end->src[0]);
  }
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
  place_list *places = map_get(&l->stored, node_storage_root(store->src[0]));
  if (!places)
    map_set(l->a, &l->stored, node_storage_root(store->src[0]),
            places = arena_calloc(l->a, 1, sizeof *places));
  place *at = block_of(l, store);
  if (!places->n || vec_last(places) != at) vec_push(l->a, places, at);
}

/** True if storage is stored to in a loop, or in loops inside of it. */
static bool is_stored_in(lineariser *l, const node *storage, const place *loop) {
  const place_list *places = map_get(&l->stored, storage);
  for (size_t i = 0; places && i < places->n; i++)
    for (const place *p = places->at[i]; p; p = p->parent)
      if (p == loop) return true;
  return false;
}

/** True for a load of memory that does not change in a loop, and for a splat: either may move
   anywhere inside of the loop. */
static bool may_sink(lineariser *l, const node *n, const place *loop) {
  if (n->op != OP_LOAD) return n->op == OP_SPLAT;
  const node *storage = node_storage_root(n->src[0]);
  bool is_in_memory = storage->op == OP_PARAM || (storage->op == OP_ALLOC && storage->ints[1]);
  return is_in_memory && !is_stored_in(l, storage, loop);
}

/** Finds nodes to sink, users before the nodes that they use. */
static void find_sunk(lineariser *l, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_STORE) note_store(l, order->at[i]);
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    place *p = is_listed(n) ? block_of(l, n) : NULL;
    uses *u = map_get(&l->uses, n);
    bool is_used_deeper = p && u && !u->is_spread && u->place->depth > p->depth;
    if (is_used_deeper && u->place->has_loops && may_sink(l, n, p))
      map_set(l->a, &l->sunk, n, p = u->place);
    for (uint32_t k = 0; k < n->n_src; k++) {
      uses *of = map_get(&l->uses, n->src[k]);
      if (!of) map_set(l->a, &l->uses, n->src[k], of = arena_calloc(l->a, 1, sizeof *of));
      of->is_spread |= !p || (of->place && of->place != p);
      of->place = p;
    }
  }
}

/** Appends a node to a block after the loads and splats that were sunk to it. */
static void append_node(lineariser *l, const node *n, place *p) {
  VEC(const node *) stack = {0};
  vec_push(l->a, &stack, n);
  while (stack.n) {
    const node *last = vec_last(&stack), *needed = NULL;
    for (uint32_t k = 0; k < last->n_src && !needed; k++)
      if (map_get(&l->sunk, last->src[k]) == p) needed = last->src[k];
    if (needed) {
      map_set(l->a, &l->sunk, needed, NULL); /* appended once */
      vec_push(l->a, &stack, needed);
    } else {
      vec_push(l->a, &p->items, last);
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
  vec_push(l->a, &stack, (cursor){&l->top.items, 0, NULL});
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
    vec_push(l->a, &stack, (cursor){&place_of(l, n->src[0])->items, 0, n});
  }
}

const node *codegen_linearise(ir *g, const node *sink) {
  lineariser l = {.a = ir_arena(g)};
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  find_depths(&l, &order);
  find_sunk(&l, &order);
  for (size_t i = 0; i < order.n; i++)
    if (is_listed(order.at[i]) && !map_has(&l.sunk, order.at[i]))
      append_node(&l, order.at[i], block_of(&l, order.at[i]));
  emit_blocks(&l);
  return ir_node(g, OP_LINEAR, DT_VOID, l.out.at, l.out.n, NULL, 0);
}
