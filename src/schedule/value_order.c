/* The order of values: each after those it reads, and one that is stored over an array after all
   other readers of the array. */
#include "schedule/values.h"

typedef VEC(value *) value_list;

/** A value on the path of the walk, and those that come before it. */
typedef struct visit {
  value *v;
  value_list before;
  size_t makers; /* how many of `before` make what v reads; the others read what it overwrites */
  size_t next;
} visit;

typedef VEC(visit) visits;

typedef struct ordering {
  arena *a;
  values *values;
  map readers; /* array → value_list */
  map state;   /* value → BEING_PLACED or PLACED */
  map copied;  /* arrays of which others shall read a copy */
  node_list *conflicts;
  value_list order;
} ordering;

static const char being_placed, placed;

static void add_reader(ordering *o, const node *array, value *v) {
  value_list *l = map_get(&o->readers, array);
  if (!l) map_set(o->a, &o->readers, array, l = arena_calloc(o->a, 1, sizeof *l));
  vec_push(o->a, l, v);
}

static void index_readers(ordering *o) {
  for (size_t i = 0; i < o->values->at.n; i++) {
    value *v = o->values->at.at[i];
    for (size_t k = 0; k < v->sources.n; k++) add_reader(o, v->sources.at[k], v);
    for (size_t k = 0; k < v->arrays.n; k++) add_reader(o, v->arrays.at[k], v);
  }
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

static visit visit_of(ordering *o, value *v) {
  visit at = {.v = v};
  for (size_t i = 0; i < v->sources.n; i++) add_maker(o, &at, v->sources.at[i]);
  for (size_t i = 0; i < v->arrays.n; i++) add_maker(o, &at, v->arrays.at[i]);
  at.makers = at.before.n;
  for (size_t i = 0; i < v->arrays.n; i++)
    if (value_store_over(v, v->arrays.at[i])) add_readers(o, &at, v->arrays.at[i]);
  map_set(o->a, &o->state, v, (void *)&being_placed);
  return at;
}

/** Of several SETs of one array, one keeps it; the others are among those that get a copy. */
static void add_conflict(ordering *o, const node *set) {
  if (set->op != OP_SET || map_has(&o->copied, set->src[0])) return;
  map_set(o->a, &o->copied, set->src[0], (void *)set);
  vec_push(o->a, o->conflicts, set);
}

/** On a cycle, which ends the path and goes on at `met`, the value that waits for a reader of what
    it overwrites: there is one, for making and reading alone have no cycles. It waits no more. */
static void resolve(ordering *o, visits *path, const value *met) {
  for (size_t i = path->n; i-- > 0;) {
    visit *at = &path->at[i];
    if (at->next > at->makers) {
      for (size_t k = 0; k < at->v->stores.n; k++) add_conflict(o, at->v->stores.at[k].array);
      at->next = at->before.n;
      return;
    }
    if (at->v == met) break;
  }
  diag_raise(o->a->diag, TN_ERR_INTERNAL, "values that wait for each other");
}

static void place(ordering *o, value *root) {
  visits path = {0};
  if (map_has(&o->state, root)) return;
  vec_push(o->a, &path, visit_of(o, root));
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
      resolve(o, &path, b);
    else if (!state)
      vec_push(o->a, &path, visit_of(o, b));
  }
}

void values_order(ir *g, values *v, node_list *conflicts) {
  ordering o = {.a = ir_arena(g), .values = v, .conflicts = conflicts};
  index_readers(&o);
  for (size_t i = 0; i < v->at.n; i++) place(&o, v->at.at[i]);
  for (size_t i = 0; i < o.order.n; i++) {
    v->at.at[i] = o.order.at[i];
    v->at.at[i]->position = i;
  }
}
