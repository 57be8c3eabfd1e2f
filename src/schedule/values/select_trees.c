/* Finds the candidates of joins: trees of WHEREs whose conditions compare one coordinate with
   numbers. Each leaf gives the elements between two of them. A leaf that is a padded tensor of just
   that size is a piece as it is; of another one the piece is a slice. */
#include "ir/core/build.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/liftable_scalars.h"
#include "schedule/values/join_search.h"

#include <stdlib.h>

/** True if an index changes in no loop and is no number that a run gives. */
static bool is_size(ir *g, const node *x) {
  arena_mark here = arena_save(ir_scratch(g));
  node_list all = topo_sort(ir_scratch(g), &x, 1, NULL, NULL);
  bool is = !x->free->n;
  for (size_t i = 0; i < all.n && is; i++) {
    const node *n = all.at[i];
    is = n->op != OP_VAR ||
         !(var_is_trip(n->text) || lifted_var_number(n->text, LIFTED_VAR_OF_GRAPH) != SIZE_MAX);
  }
  arena_rewind(ir_scratch(g), here);
  return is;
}

/** The number that a condition compares a coordinate with, below which it is true; NULL: the
    condition is another one. */
static const node *compared_number(ir *g, const node *condition, size_t *axis) {
  if (condition->op != OP_LT || condition->src[0]->op != OP_IOTA) return NULL;
  const node *x = condition->src[1];
  *axis = (size_t)condition->src[0]->ints[0];
  while (x->op == OP_RESHAPE || x->op == OP_EXPAND || x->op == OP_PERMUTE) x = x->src[0];
  if (x->op == OP_CAST && x->src[0]->dtype == DT_INDEX)
    return is_size(g, x->src[0]) ? x->src[0] : NULL;
  return x->op == OP_CONST && x->dtype == DT_I64 ? ix_const(g, node_int(x)) : NULL;
}

/** True if a node selects by a coordinate. */
static bool is_select(ir *g, const node *n, size_t *axis) {
  return n->op == OP_WHERE && n->rank && n->dtype != DT_INDEX &&
         compared_number(g, n->src[0], axis);
}

/** True if a part of a select may be split at the number that it compares with. */
static bool may_split(join_search *f, const join_part *p, size_t axis, const node **at) {
  size_t along;
  if (p->x->op != OP_WHERE) return false;
  *at = compared_number(f->g, p->x->src[0], &along);
  return *at && along == axis && ix_prove_le(f->g, p->from, *at) && ix_prove_le(f->g, *at, p->to);
}

/** The tensor of a part: the operand of a padding that holds no more, or else a slice. */
static const node *tensor_of_part(join_search *f, const join_part *p, size_t axis) {
  const node *x = p->x, *inner = x->op == OP_PAD ? x->src[0] : NULL;
  bool fits =
      inner && x->src[2 + axis] == p->from && ix_add(f->g, p->from, inner->dims[axis]) == p->to;
  for (size_t k = 0; fits && k < x->rank; k++) fits = k == axis || inner->dims[k] == x->dims[k];
  if (fits) return inner;
  const node **starts = arena_alloc(f->a, x->rank * sizeof *starts);
  const node **sizes = arena_copy(f->a, x->dims, x->rank * sizeof *sizes);
  int64_t *steps = arena_alloc(f->a, x->rank * sizeof *steps);
  for (size_t k = 0; k < x->rank; k++) {
    starts[k] = k == axis ? p->from : ix_const(f->g, 0);
    steps[k] = 1;
  }
  sizes[axis] = ix_sub(f->g, p->to, p->from);
  return ir_slice(f->g, x, starts, sizes, steps);
}

/** Lists the pieces of a select, in order of their coordinates. */
static join_parts list_parts(join_search *f, const node *n, size_t axis) {
  join_parts open = {0}, all = {0};
  vec_push(f->a, &open, ((join_part){n, ix_const(f->g, 0), n->dims[axis]}));
  while (open.n) {
    join_part p = open.at[--open.n];
    const node *at;
    if (p.from == p.to) continue;
    if (may_split(f, &p, axis, &at)) {
      vec_push(f->a, &open, ((join_part){p.x->src[2], at, p.to}));
      vec_push(f->a, &open, ((join_part){p.x->src[1], p.from, at}));
    } else {
      p.x = tensor_of_part(f, &p, axis);
      vec_push(f->a, &all, p);
    }
  }
  return all;
}

static void count_use(join_search *f, const node *n) {
  map_set(f->a, &f->users, n, (void *)((uintptr_t)map_get(&f->users, n) + 1));
}

uintptr_t join_count_uses(const join_search *f, const node *n) {
  return (uintptr_t)map_get(&f->users, n);
}

static int by_size(const void *a, const void *b) {
  const join_candidate *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->position < y->position) - (x->position > y->position);
}

void join_find_candidates(join_search *f) {
  map inner = {0}; /* node → how many times it is a branch of a select along its axis */
  for (size_t i = 0; i < f->order->n; i++) {
    const node *n = f->order->at[i];
    size_t axis, of;
    bool selects = is_select(f->g, n, &axis);
    for (uint32_t k = 0; k < n->n_src; k++) {
      count_use(f, n->src[k]);
      if (!selects || !k || !is_select(f->g, n->src[k], &of) || of != axis) continue;
      map_set(f->a, &inner, n->src[k], (void *)((uintptr_t)map_get(&inner, n->src[k]) + 1));
    }
  }
  for (size_t i = 0; i < f->in->n_roots; i++) count_use(f, f->in->roots[i]);
  for (size_t i = 0; i < f->order->n; i++) {
    join_candidate c = {.tensor = f->order->at[i], .position = i};
    if (!is_select(f->g, c.tensor, &c.axis) ||
        join_count_uses(f, c.tensor) == (uintptr_t)map_get(&inner, c.tensor))
      continue;
    c.parts = list_parts(f, c.tensor, c.axis);
    c.bytes = join_bytes_of(c.tensor);
    if (c.parts.n > 1) vec_push(f->a, &f->candidates, c);
  }
  if (f->candidates.n) qsort(f->candidates.at, f->candidates.n, sizeof *f->candidates.at, by_size);
  for (size_t i = 0; i < f->candidates.n; i++)
    map_set(f->a, &f->joined, f->candidates.at[i].tensor, &f->candidates.at[i]);
}
