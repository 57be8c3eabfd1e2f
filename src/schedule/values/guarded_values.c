/* Implements guards of values: from the roots back, a value has the literals that all its readers
   have, where the readers of an element are the values that mention its variable. An ITEM has the
   literals of these values alone: its element may have other readers, too. Values that one
   step computes (the results of a loop, or of a user kernel) have one guard. A copy of an array
   is needed where a SET changes the array, too: the SET comes after, and may decide the literals of
   the copy's readers. */
#include "schedule/values/guarded_values.h"

#include "ir/core/build.h"
#include "ir/core/ir.h"
#include "ir/index/index_arithmetic.h"
#include "schedule/values/late_values.h"

#include <string.h>

typedef VEC(value_list *) value_lists;

typedef struct guarding {
  guard_table t;
  const normalised *in;
  values *v;
  value_lists steps; /* the values of each step that computes several */
  bool changed;
} guarding;

/** Notes in the guard of a value or an ITEM that it is needed under another one too. */
static void need(guarding *r, const guard **of, const guard *under) {
  const guard *all = guard_common(&r->t, *of, under);
  r->changed |= all != *of;
  *of = all;
}

static void need_tensor(guarding *r, const node *tensor, const guard *under) {
  value *v = map_get(&r->v->of, tensor);
  if (v) need(r, &v->guard, under);
}

/** True if a value comes from a step that may compute others. */
static bool may_share_step(const node *n) { return n->op == OP_RESULT || n->op == OP_KERNEL; }

static uint64_t hash_of_step(const node *n) {
  hasher h = hash_begin();
  hash_add_word(&h, n->op);
  hash_add_word(&h, (uint64_t)n->ints[1]);
  if (n->op == OP_RESULT) {
    hash_add_word(&h, (uint64_t)n->ints[2]);
  } else {
    hash_add_bytes(&h, n->text, n->n_text);
    hash_add_bytes(&h, n->src, (size_t)n->ints[1] * sizeof *n->src);
  }
  return hash_end(&h);
}

/** True if the values of a list come from the step of a tensor's node. */
static bool have_one_step(const void *list, const void *tensor) {
  const node *a = ((const value_list *)list)->at[0]->tensor, *b = tensor;
  if (a->op != b->op || a->ints[1] != b->ints[1]) return false;
  if (a->op == OP_RESULT) return a->ints[2] == b->ints[2];
  return a->n_text == b->n_text && !memcmp(a->text, b->text, a->n_text) &&
         !memcmp(a->src, b->src, (size_t)a->ints[1] * sizeof *a->src);
}

/** Lists the values of each step that computes several. */
static value_lists find_steps(arena *a, const values *v) {
  value_lists steps = {0};
  hash_table table = {0}; /* of value_lists */
  for (size_t i = 0; i < v->at.n; i++) {
    const node *tensor = v->at.at[i]->tensor;
    if (!may_share_step(tensor)) continue;
    uint64_t hash = hash_of_step(tensor);
    hash_table_reserve_in_arena(&table, a);
    hash_slot *slot = hash_table_find(&table, hash, tensor, have_one_step);
    if (!slot->entry) hash_table_insert(&table, slot, hash, arena_calloc(a, 1, sizeof(value_list)));
    value_list *of_step = slot->entry;
    vec_push(a, of_step, v->at.at[i]);
    if (of_step->n == 2) vec_push(a, &steps, of_step);
  }
  return steps;
}

/** Gives the values of one step one guard. */
static void join_steps(guarding *r) {
  for (size_t i = 0; i < r->steps.n; i++) {
    const value_list *step = r->steps.at[i];
    const guard *all = NULL;
    for (size_t k = 0; k < step->n; k++) all = guard_common(&r->t, all, step->at[k]->guard);
    for (size_t k = 0; all && k < step->n; k++) need(r, &step->at[k]->guard, all);
  }
}

/** Notes the need of copies where the arrays are changed that they are of. */
static void need_copies(guarding *r) {
  const map *copies = &r->in->copies;
  for (size_t i = 0; i < copies->n; i++) {
    const node *copy = copies->at[i].key;
    value *v = map_get(&r->v->of, copy);
    const value *over = map_get(&r->v->overwriter, copy->src[0]);
    if (v && v->guard && over && over->guard) need(r, &v->guard, over->guard);
  }
}

static void pass_on(guarding *r, const value *v) {
  const value_inputs *in = &v->inputs;
  const node *pick = v->tensor->op == OP_PICK ? v->tensor : NULL;
  for (size_t i = 0; i < in->tensors.n; i++) need_tensor(r, in->tensors.at[i], v->guard);
  for (size_t i = 0; i < in->arrays.n; i++)
    need_tensor(r, in->arrays.at[i],
                pick ? guard_of_source(&r->t, v->guard, pick, i + 1) : v->guard);
  for (size_t i = 0; i < in->items.n; i++) {
    const value_item *item = &in->items.at[i];
    const guard *under = guard_both(&r->t, v->guard, item->under);
    need(r, &r->v->item_guards[item->number], under);
    need_tensor(r, item->element, under);
  }
}

static bool is_element(const normalised *in, size_t root) {
  return in->items && root >= in->items->first && root < in->items->first + in->items->at.n;
}

static void find_guards(guarding *r) {
  for (size_t i = 0; i < r->in->n_roots; i++)
    if (!is_element(r->in, i)) need_tensor(r, r->in->roots[i], guard_always(&r->t));
  do {
    r->changed = false;
    for (size_t i = r->v->at.n; i-- > 0;)
      if (r->v->at.at[i]->guard) pass_on(r, r->v->at.at[i]);
    need_copies(r);
    join_steps(r);
  } while (r->changed);
}

/** Has a run skip the values and the ITEMs that no root needs: elements whose readers were
    simplified away, and what they alone were for. All at once, as none of them may read what
    another one did not compute. Without a guard, both sides of a PICK would be stored. */
static void skip_unneeded(ir *g, guarding *r) {
  const guard *never = guard_with(&r->t, guard_always(&r->t), ix_const(g, 0), true);
  for (size_t i = 0; i < r->v->at.n; i++)
    if (!r->v->at.at[i]->guard) r->v->at.at[i]->guard = never;
  for (size_t i = 0; r->in->items && i < r->in->items->at.n; i++)
    if (!r->v->item_guards[i]) r->v->item_guards[i] = never;
}

/** Adds the elements that a guard follows from. */
static void add_condition_items(ir *g, guarding *r, value *v) {
  for (size_t i = 0; v->guard && i < v->guard->n; i++)
    late_values_add(g, r->in, &r->t, r->v, v, v->guard->at[i].condition);
}

void guarded_values_find(ir *g, const normalised *in, values *v) {
  bool has_choices = in->items != NULL; /* sizes too */
  for (size_t i = 0; i < v->at.n; i++) {
    v->at.at[i]->guard = NULL;
    has_choices |= v->at.at[i]->tensor->op == OP_PICK;
  }
  guarding r = {.t = {.a = ir_arena(g)}, .in = in, .v = v};
  late_values_find(g, in, &r.t, v);
  if (in->items)
    v->item_guards = arena_calloc(ir_arena(g), in->items->at.n + 1, sizeof *v->item_guards);
  if (!has_choices) return;
  r.steps = find_steps(ir_arena(g), v);
  find_guards(&r);
  skip_unneeded(g, &r);
  for (size_t i = 0; i < v->at.n; i++) {
    if (v->at.at[i]->guard && !v->at.at[i]->guard->n) v->at.at[i]->guard = NULL;
    add_condition_items(g, &r, v->at.at[i]);
  }
}

const node *guarded_values_condition(ir *g, const guard *guard) {
  const node *all = NULL;
  for (size_t i = 0; guard && i < guard->n; i++) {
    const node *c = guard->at[i].condition;
    const node *holds = guard->at[i].is_one ? c : ix_sub(g, ix_const(g, 1), c);
    all = all ? ir_op2(g, OP_MIN, all, holds) : holds; /* products would be multiplied out */
  }
  return all;
}
