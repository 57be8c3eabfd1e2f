/* Implements the choice of joins. A piece has its place in the join, and is written there by the
   kernel that computes it, if no step needs it in an array of its own (outputs of the graph, inputs
   of host functions, arrays that are changed in place) and no other join holds it. Other pieces are
   copied into the join. Joins are visited from large to small, so that one whose pieces lie side by
   side in a larger one, as those of a chain of concats do, is a part of that one and copies
   nothing. */
#include "schedule/values/joins.h"

#include "ir/index/index_arithmetic.h"
#include "schedule/values/join_search.h"
#include "schedule/values/late_values.h"
#include "schedule/values/versions.h"

/* Legality. */

/** True if no kernel of the plan computes a tensor from values. */
static bool is_given(const node *x) {
  while (op_is_movement((op)x->op) && x->op != OP_GATHER) x = x->src[0];
  switch (x->op) {
  case OP_PARAM:
  case OP_CONST:
  case OP_IOTA:
  case OP_VAR: return true;
  default: return false;
  }
}

bool join_is_opaque(const node *x) {
  return x->op == OP_CUSTOM || x->op == OP_KERNEL || x->op == OP_RESULT || x->op == OP_SCAN ||
         x->op == OP_PICK || value_is_copied_between_devices(x) || op_overwrites((op)x->op);
}

static void find_owned(join_search *f) {
  for (size_t i = 0; i < f->in->n_roots; i++) map_set(f->a, &f->owned, f->in->roots[i], NULL);
  for (size_t i = 0; i < f->order->n; i++) {
    const node *n = f->order->at[i];
    map_set(f->a, &f->in_graph, n, NULL);
    for (size_t k = 0; k < value_whole_operands(n); k++) map_set(f->a, &f->owned, n->src[k], NULL);
    if (!op_overwrites((op)n->op)) continue;
    map_set(f->a, &f->changed, n->src[0], NULL);
    map_set(f->a, &f->changed, n->src[n->op == OP_SET ? 2 : 1],
            NULL); /* its array may be the one that is changed */
  }
}

bool join_may_have_place(const join_search *f, const node *x) {
  return !is_given(x) && !join_is_opaque(x) && !map_has(&f->owned, x) && !map_has(&f->changed, x) &&
         !map_has(f->places, x);
}

/* The choice. */

static bool is_chosen(const join_search *f, const join_candidate *c) {
  if (f->policy->machine) return join_is_gain(f, c);
  uint64_t z = (f->policy->seed + c->position) * UINT64_C(0x9e3779b97f4a7c15);
  return z >> 61; /* 7 of 8 */
}

static void set_place(join_search *f, const node *x, const node *in, size_t axis,
                      const node *start) {
  arena *a = ir_arena(f->g);
  array_place *p = arena_alloc(a, sizeof *p);
  *p = (array_place){in, axis, start};
  map_set(a, f->places, x, p);
}

/** Places a join in the larger one that holds all its pieces side by side; false: there is none. */
static bool place_in_larger(join_search *f, const join_candidate *c) {
  const array_place *first = map_get(f->places, c->parts.at[0].x);
  if (!first || first->axis != c->axis || !join_may_have_place(f, c->tensor)) return false;
  for (size_t k = 0; k < c->tensor->rank; k++)
    if (k != c->axis && first->array->dims[k] != c->tensor->dims[k]) return false;
  for (size_t i = 0; i < c->parts.n; i++) {
    const array_place *p = map_get(f->places, c->parts.at[i].x);
    if (!p || p->array != first->array || p->axis != c->axis ||
        p->start != ix_add(f->g, first->start, c->parts.at[i].from))
      return false;
  }
  set_place(f, c->tensor, first->array, c->axis, first->start);
  return true;
}

/** A tensor that is copied to, which nothing else reads. */
static const node *copy_of(join_search *f, const node *x) {
  do x = versions_identity_slice(f->g, x);
  while (map_has(&f->in_graph, x) || map_has(f->places, x));
  return x;
}

static void add_join(join_search *f, const join_candidate *c, bool is_part) {
  arena *a = ir_arena(f->g);
  join *j = arena_calloc(a, 1, sizeof *j);
  j->tensor = c->tensor;
  for (size_t i = 0; i < c->parts.n; i++) {
    const join_part *p = &c->parts.at[i];
    const node *x = is_part || join_may_have_place(f, p->x) ? p->x : copy_of(f, p->x);
    if (!is_part) set_place(f, x, c->tensor, c->axis, p->from);
    if (!map_has(&f->in_graph, x)) vec_push(a, &f->out.fresh, x);
    vec_push(a, &j->pieces, x);
  }
  map_set(a, &f->out.of, c->tensor, j);
}

joins joins_choose(ir *g, const joins_policy *p, const normalised *in, const node_list *order,
                   map *places) {
  join_search f = {
      .g = g, .a = ir_scratch(g), .policy = p, .in = in, .order = order, .places = places};
  arena_mark here = arena_save(f.a);
  find_owned(&f);
  join_find_candidates(&f);
  for (size_t i = 0; i < f.candidates.n; i++) {
    const join_candidate *c = &f.candidates.at[i];
    if (map_has(&f.changed, c->tensor) || late_values_has_late_size(g, in, c->tensor)) continue;
    bool is_part = place_in_larger(&f, c);
    if (is_part || is_chosen(&f, c)) add_join(&f, c, is_part);
  }
  arena_rewind(f.a, here);
  return f.out;
}
