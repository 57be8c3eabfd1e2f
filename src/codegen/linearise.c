/* A lowered graph becomes a list of instructions. Ranges form a tree: the parent of a range is the
   innermost range in which its END is free. Every node belongs to the block of its innermost free
   range, so what does not change in a loop is computed outside it. Blocks are filled in the order
   of dependence; a loop stands where its END does. Effects stay inside the loop that lists them,
   also if they do not depend on it: it may have no iteration. What is only loaded, and used beside
   a loop further in, waits until it is used: that loop needs the registers. */
#include "codegen/codegen.h"
#include "ir/binder.h"
#include "ir/topo.h"

#include "base/map.h"

typedef VEC(const node *) block; /* instructions; an END stands for its whole loop */

typedef struct place {
  size_t depth;         /* 1 for the outermost loops */
  struct place *around; /* NULL: this is the top */
  bool has_loops;
  block items;
} place;

typedef VEC(const place *) place_list;

/** Where a node is used. */
typedef struct uses {
  place *place;   /* of all of them; NULL: none is known */
  bool elsewhere; /* than in one place */
} uses;

typedef struct lineariser {
  arena *a;
  map places; /* RANGE → place */
  map within; /* effect → the RANGE of the END that lists it */
  map uses;   /* node → uses */
  map late;   /* nodes that wait → the place that they wait for */
  map stored; /* PARAM, ALLOC → the places where it is stored to */
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
static place *home(lineariser *l, const node *n) {
  const node *loop = map_get(&l->within, n);
  place *deepest = loop ? place_of(l, loop) : &l->top;
  for (uint32_t i = 0; i < n->free->n; i++) {
    place *p = place_of(l, n->free->at[i]);
    if (p->depth > deepest->depth) deepest = p;
  }
  return deepest;
}

/** An outer END comes after the inner ones that it needs, so outer loops are met first from the
 * end. */
static void find_depths(lineariser *l, const node_list *order) {
  for (size_t i = order->n; i-- > 0;) {
    const node *end = order->at[i];
    if (end->op != OP_END) continue;
    place *around = home(l, end);
    around->has_loops = true;
    place *own = place_of(l, end->src[0]);
    own->depth = around->depth + 1;
    own->around = around;
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

/** What is in memory that a load or store is of. */
static const node *storage_of(const node *access) {
  const node *n = access->src[0];
  while (n->op == OP_AFTER) n = n->src[0];
  return n;
}

static void note_store(lineariser *l, const node *store) {
  place_list *places = map_get(&l->stored, storage_of(store));
  if (!places)
    map_set(l->a, &l->stored, storage_of(store), places = arena_calloc(l->a, 1, sizeof *places));
  place *at = home(l, store);
  if (!places->n || vec_last(places) != at) vec_push(l->a, places, at);
}

/** Whether something is stored to in a loop, or in those inside of it. */
static bool is_stored_in(lineariser *l, const node *storage, const place *loop) {
  const place_list *places = map_get(&l->stored, storage);
  for (size_t i = 0; places && i < places->n; i++)
    for (const place *p = places->at[i]; p; p = p->around)
      if (p == loop) return true;
  return false;
}

static bool is_in_memory(const node *storage) {
  return storage->op == OP_PARAM || (storage->op == OP_ALLOC && storage->ints[1]);
}

/** A load of what stays as it is in a loop, or a copy of it in lanes: it can be made anywhere in
    that. */
static bool may_wait(lineariser *l, const node *n, const place *loop) {
  if (n->op != OP_LOAD) return n->op == OP_SPLAT;
  return is_in_memory(storage_of(n)) && !is_stored_in(l, storage_of(n), loop);
}

static void use(lineariser *l, const node *n, place *p) {
  uses *u = map_get(&l->uses, n);
  if (!u) map_set(l->a, &l->uses, n, u = arena_calloc(l->a, 1, sizeof *u));
  u->elsewhere |= !p || (u->place && u->place != p);
  u->place = p;
}

/** Users come before what they use. */
static void find_late(lineariser *l, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_STORE) note_store(l, order->at[i]);
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    place *p = is_listed(n) ? home(l, n) : NULL;
    uses *u = map_get(&l->uses, n);
    bool further = p && u && !u->elsewhere && u->place->depth > p->depth;
    if (further && u->place->has_loops && may_wait(l, n, p))
      map_set(l->a, &l->late, n, p = u->place);
    for (uint32_t k = 0; k < n->n_src; k++) use(l, n->src[k], p);
  }
}

/** Lists a node, after what waited for it; what waits is a load, or a copy of one. */
static void list(lineariser *l, const node *n, place *p) {
  VEC(const node *) stack = {0};
  vec_push(l->a, &stack, n);
  while (stack.n) {
    const node *last = vec_last(&stack), *needed = NULL;
    for (uint32_t k = 0; k < last->n_src && !needed; k++)
      if (map_get(&l->late, last->src[k]) == p) needed = last->src[k];
    if (needed) {
      map_set(l->a, &l->late, needed, NULL); /* it waits no more */
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

static void emit(lineariser *l) {
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
  find_late(&l, &order);
  for (size_t i = 0; i < order.n; i++)
    if (is_listed(order.at[i]) && !map_has(&l.late, order.at[i]))
      list(&l, order.at[i], home(&l, order.at[i]));
  emit(&l);
  return ir_node(g, OP_LINEAR, DT_VOID, l.out.at, l.out.n, NULL, 0);
}
