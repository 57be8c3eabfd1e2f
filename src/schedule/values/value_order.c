/* Orders values topologically, depth first with an explicit stack. A value comes after those that
   it reads, and one that is stored over an array after all other readers of the array. A cycle is
   resolved by giving the other readers of such an array a copy. */
#include "schedule/values/value_order.h"

/** A value on the path of the walk, and the values that come before it. */
typedef struct visit {
  value *v;
  value_list makers;               /* values that v reads, */
  VEC(const value_list *) readers; /* then those that read each array it overwrites */
  size_t next_maker;               /* the next one to visit */
  size_t next_array, next_reader;
} visit;

typedef VEC(visit) visits;

/** The SETs of an array that needs a copy. */
typedef struct conflict {
  const node *keeper;   /* it changes the array itself */
  const node *follower; /* it changes the other readers' copy, after them; NULL: one that waits for
                           them does, or none */
} conflict;

typedef struct ordering {
  arena *a; /* of the walk */
  values *values;
  map readers;  /* array → value_list */
  map state;    /* value → BEING_PLACED or PLACED */
  map changed;  /* array → the SET of it that a root's storage comes from */
  map of_array; /* array whose other readers get a copy → conflict */
  node_list *conflicts;
  arena *kept; /* of the conflicts */
  value_list order;
} ordering;

static const char being_placed, placed;

static void add_reader(ordering *o, const node *array, value *v) {
  value_list *l = map_get(&o->readers, array);
  if (!l) map_set(o->a, &o->readers, array, l = arena_calloc(o->a, 1, sizeof *l));
  vec_push(o->a, l, v);
}

static void add_maker(ordering *o, visit *at, const node *array) {
  value *maker = map_get(&o->values->of, array);
  if (maker && maker != at->v) vec_push(o->a, &at->makers, maker);
}

static void add_readers(ordering *o, visit *at, const node *array) {
  const value_list *l = map_get(&o->readers, array);
  if (l) vec_push(o->a, &at->readers, l);
}

static visit visit_value(ordering *o, value *v) {
  visit at = {.v = v};
  for (size_t i = 0; i < v->inputs.tensors.n; i++) add_maker(o, &at, v->inputs.tensors.at[i]);
  for (size_t i = 0; i < v->inputs.arrays.n; i++) add_maker(o, &at, v->inputs.arrays.at[i]);
  for (size_t i = 0; i < v->inputs.items.n; i++) add_maker(o, &at, v->inputs.items.at[i].element);
  for (size_t i = 0; i < v->inputs.arrays.n; i++)
    if (value_store_over(v, v->inputs.arrays.at[i])) add_readers(o, &at, v->inputs.arrays.at[i]);
  map_set(o->a, &o->state, v, (void *)&being_placed);
  return at;
}

/** The next value that comes before the one of a visit; NULL: none. */
static value *next_before(visit *at) {
  if (at->next_maker < at->makers.n) return at->makers.at[at->next_maker++];
  for (; at->next_array < at->readers.n; at->next_array++, at->next_reader = 0) {
    const value_list *l = at->readers.at[at->next_array];
    while (at->next_reader < l->n)
      if (l->at[at->next_reader++] != at->v) return l->at[at->next_reader - 1];
  }
  return NULL;
}

/** True if a value on the path waits for a reader of an array that it overwrites. */
static bool waits_for_reader(const visit *at) { return at->next_array || at->next_reader; }

/** Notes the chains of SETs that end in roots: a state that a loop changes in place stays where it
    is, whatever other SETs its trips make of it. */
static void note_changes(ordering *o, const node *const roots[], size_t n) {
  for (size_t i = 0; i < n; i++)
    for (const node *set = roots[i];
         op_overwrites((op)set->op) && map_get(&o->changed, set->src[0]) != set; set = set->src[0])
      map_set(o->a, &o->changed, set->src[0], (void *)set);
}

/** Adds a SET that does not wait for other readers of its array. One SET of an array keeps it, that
    of a root's storage if there is one, and other readers get a copy. Each further SET changes a
    copy of its own, but for one, which may follow the readers of theirs. */
static void add_conflict(ordering *o, const node *set) {
  if (!op_overwrites((op)set->op)) return;
  conflict *c = map_get(&o->of_array, set->src[0]);
  if (!c) {
    const node *of_root = map_get(&o->changed, set->src[0]);
    c = arena_calloc(o->a, 1, sizeof *c);
    *c = (conflict){of_root ? of_root : set, of_root && of_root != set ? set : NULL};
    map_set(o->a, &o->of_array, set->src[0], c);
    set = c->keeper;
  } else if (set == c->keeper) {
    set = c->follower;
    c->follower = NULL;
  }
  if (set) vec_push(o->kept, o->conflicts, set);
}

/** Leaves the values of a path from the n-th on, which are visited again where they are needed. */
static void shorten_path(ordering *o, visits *path, size_t n) {
  while (path->n > n) map_set(o->a, &o->state, path->at[--path->n].v, NULL);
}

/** Breaks the cycle that the end of the path forms with `met`: finds on it a value that waits for a
    reader of an array it overwrites, which exists as reads alone have no cycles, and stops it
    waiting. Values behind it are on the path for its sake alone: kept there, they would seem to be
    parts of other cycles through it. */
static void break_cycle(ordering *o, visits *path, const value *met) {
  for (size_t i = path->n; i-- > 0;) {
    visit *at = &path->at[i];
    if (waits_for_reader(at)) {
      for (size_t k = 0; k < at->v->memory.stores.n; k++)
        add_conflict(o, at->v->memory.stores.at[k].array);
      at->next_array = at->readers.n;
      shorten_path(o, path, i + 1);
      return;
    }
    if (at->v == met) break;
  }
  diag_raise(o->a->diag, TN_ERR_INTERNAL, "cyclic dependence between values");
}

static void place_value(ordering *o, value *root) {
  visits path = {0};
  if (map_has(&o->state, root)) return;
  vec_push(o->a, &path, visit_value(o, root));
  while (path.n) {
    visit *at = &vec_last(&path);
    value *b = next_before(at);
    if (!b) {
      map_set(o->a, &o->state, at->v, (void *)&placed);
      vec_push(o->a, &o->order, at->v);
      path.n--;
      continue;
    }
    void *state = map_get(&o->state, b);
    if (state == &being_placed)
      break_cycle(o, &path, b);
    else if (!state)
      vec_push(o->a, &path, visit_value(o, b));
  }
}

void values_order(ir *g, const normalised *n, values *v, node_list *conflicts) {
  ordering o = {.a = ir_scratch(g), .values = v, .conflicts = conflicts, .kept = ir_arena(g)};
  arena_mark here = arena_save(o.a);
  note_changes(&o, n->roots, n->n_roots);
  for (size_t i = 0; i < v->at.n; i++) {
    value *reader = v->at.at[i];
    const value_inputs *in = &reader->inputs;
    for (size_t k = 0; k < in->tensors.n; k++) add_reader(&o, in->tensors.at[k], reader);
    for (size_t k = 0; k < in->arrays.n; k++) add_reader(&o, in->arrays.at[k], reader);
  }
  for (size_t i = 0; i < v->at.n; i++) place_value(&o, v->at.at[i]);
  for (size_t i = 0; i < o.order.n; i++) {
    v->at.at[i] = o.order.at[i];
    v->at.at[i]->position = i;
  }
  arena_rewind(o.a, here);
}
