/* Orders values topologically, depth first with an explicit stack. A value comes after those that
   it reads, and one that is stored over an array after all other readers of the array. A cycle is
   resolved by giving the other readers of such an array a copy. */
#include "schedule/values/value_order.h"

/** A value on the path of the walk, and the values that come before it. */
typedef struct visit {
  value *v;
  value_list before; /* values that v reads, then those that read arrays it overwrites */
  size_t makers;     /* number of the former */
  size_t next;       /* the next one to visit */
} visit;

typedef VEC(visit) visits;

typedef struct ordering {
  arena *a; /* of the walk */
  values *values;
  map readers; /* array → value_list */
  map state;   /* value → BEING_PLACED or PLACED */
  map changed; /* array → the SET of it that a root's storage comes from */
  map copied;  /* arrays whose other readers get a copy */
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
  if (maker && maker != at->v) vec_push(o->a, &at->before, maker);
}

static void add_readers(ordering *o, visit *at, const node *array) {
  const value_list *l = map_get(&o->readers, array);
  for (size_t i = 0; l && i < l->n; i++)
    if (l->at[i] != at->v) vec_push(o->a, &at->before, l->at[i]);
}

static visit visit_value(ordering *o, value *v) {
  visit at = {.v = v};
  for (size_t i = 0; i < v->inputs.tensors.n; i++) add_maker(o, &at, v->inputs.tensors.at[i]);
  for (size_t i = 0; i < v->inputs.arrays.n; i++) add_maker(o, &at, v->inputs.arrays.at[i]);
  for (size_t i = 0; i < v->inputs.items.n; i++) add_maker(o, &at, v->inputs.items.at[i]);
  at.makers = at.before.n;
  for (size_t i = 0; i < v->inputs.arrays.n; i++)
    if (value_store_over(v, v->inputs.arrays.at[i])) add_readers(o, &at, v->inputs.arrays.at[i]);
  map_set(o->a, &o->state, v, (void *)&being_placed);
  return at;
}

/** Notes the chains of SETs that end in roots: a state that a loop changes in place stays where it
    is, whatever other SETs its trips make of it. */
static void note_changes(ordering *o, const node *const roots[], size_t n) {
  for (size_t i = 0; i < n; i++)
    for (const node *set = roots[i];
         op_overwrites((op)set->op) && map_get(&o->changed, set->src[0]) != set; set = set->src[0])
      map_set(o->a, &o->changed, set->src[0], (void *)set);
}

/** Adds a SET whose array the other readers get a copy of; of several SETs of an array, one keeps
    it: that of a root's storage, if there is one. */
static void add_conflict(ordering *o, const node *set) {
  if (!op_overwrites((op)set->op) || map_has(&o->copied, set->src[0])) return;
  const node *of_root = map_get(&o->changed, set->src[0]);
  map_set(o->a, &o->copied, set->src[0], (void *)set);
  vec_push(o->kept, o->conflicts, of_root ? of_root : set);
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
    if (at->next > at->makers) {
      for (size_t k = 0; k < at->v->memory.stores.n; k++)
        add_conflict(o, at->v->memory.stores.at[k].array);
      at->next = at->before.n;
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
    if (at->next == at->before.n) {
      map_set(o->a, &o->state, at->v, (void *)&placed);
      vec_push(o->a, &o->order, at->v);
      path.n--;
      continue;
    }
    value *b = at->before.at[at->next++];
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
