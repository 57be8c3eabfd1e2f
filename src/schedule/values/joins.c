/* Implements the choice of joins. A join is a tree of WHEREs whose conditions compare one
   coordinate with numbers: each leaf gives the elements between two of them. A leaf that is a
   padded tensor of just that size is a piece as it is; of another one the piece is a slice.

   A piece has its place in the join, and is written there by the kernel that computes it, if no
   step needs it in an array of its own (outputs of the graph, inputs of host functions, arrays that
   are changed in place) and no other join holds it. Other pieces are copied into the join. Joins
   are visited from large to small, so that one whose pieces lie side by side in a larger one, as
   those of a chain of concats do, is a part of that one and copies nothing. */
#include "schedule/values/joins.h"

#include "ir/core/build.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/liftable_scalars.h"
#include "schedule/core/size_estimate.h"
#include "schedule/values/versions.h"
#include "target/machine.h"

#include <stdlib.h>

enum { MOST_BEHIND = 64 /* nodes behind a piece among which its contraction is sought */ };

/** The elements of a tensor from one index of the join's axis up to another. */
typedef struct part {
  const node *x, *from, *to;
} part;

typedef VEC(part) parts;

/** A join that may be made. */
typedef struct candidate {
  const node *tensor;
  size_t axis, position; /* in the graph */
  parts parts;           /* x: the piece, of this size */
  double bytes;
} candidate;

typedef struct finding {
  ir *g;
  arena *a; /* of the search */
  const joins_policy *policy;
  const normalised *in;
  const node_list *order;
  map *places;
  joins out;
  map in_graph, users;       /* nodes; node → number of nodes that read it */
  map owned, changed;        /* tensors that need an array of their own; that a SET changes */
  map joined;                /* tensor → its candidate */
  VEC(candidate) candidates; /* from large to small */
} finding;

/* Trees of selects. */

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
static bool may_split(finding *f, const part *p, size_t axis, const node **at) {
  size_t along;
  if (p->x->op != OP_WHERE) return false;
  *at = compared_number(f->g, p->x->src[0], &along);
  return *at && along == axis && ix_prove_le(f->g, p->from, *at) && ix_prove_le(f->g, *at, p->to);
}

/** The tensor of a part: the operand of a padding that holds no more, or else a slice. */
static const node *tensor_of_part(finding *f, const part *p, size_t axis) {
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
static parts list_parts(finding *f, const node *n, size_t axis) {
  parts open = {0}, all = {0};
  vec_push(f->a, &open, ((part){n, ix_const(f->g, 0), n->dims[axis]}));
  while (open.n) {
    part p = open.at[--open.n];
    const node *at;
    if (p.from == p.to) continue;
    if (may_split(f, &p, axis, &at)) {
      vec_push(f->a, &open, ((part){p.x->src[2], at, p.to}));
      vec_push(f->a, &open, ((part){p.x->src[1], p.from, at}));
    } else {
      p.x = tensor_of_part(f, &p, axis);
      vec_push(f->a, &all, p);
    }
  }
  return all;
}

static double bytes_of(const node *x) {
  double bytes = (double)dtype_bytes((dtype)x->dtype);
  for (size_t k = 0; k < x->rank; k++) bytes *= size_estimate(x->dims[k]);
  return bytes;
}

static void count_use(finding *f, const node *n) {
  map_set(f->a, &f->users, n, (void *)((uintptr_t)map_get(&f->users, n) + 1));
}

static uintptr_t count_uses(const finding *f, const node *n) {
  return (uintptr_t)map_get(&f->users, n);
}

static int by_size(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->position < y->position) - (x->position > y->position);
}

/** Lists the selects that are not branches of others alone. */
static void find_candidates(finding *f) {
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
    candidate c = {.tensor = f->order->at[i], .position = i};
    if (!is_select(f->g, c.tensor, &c.axis) ||
        count_uses(f, c.tensor) == (uintptr_t)map_get(&inner, c.tensor))
      continue;
    c.parts = list_parts(f, c.tensor, c.axis);
    c.bytes = bytes_of(c.tensor);
    if (c.parts.n > 1) vec_push(f->a, &f->candidates, c);
  }
  if (f->candidates.n) qsort(f->candidates.at, f->candidates.n, sizeof *f->candidates.at, by_size);
  for (size_t i = 0; i < f->candidates.n; i++)
    map_set(f->a, &f->joined, f->candidates.at[i].tensor, &f->candidates.at[i]);
}

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

static bool is_opaque(const node *x) {
  return x->op == OP_CUSTOM || x->op == OP_KERNEL || x->op == OP_RESULT || x->op == OP_SET;
}

static void find_owned(finding *f) {
  for (size_t i = 0; i < f->in->n_roots; i++) map_set(f->a, &f->owned, f->in->roots[i], NULL);
  for (size_t i = 0; i < f->order->n; i++) {
    const node *n = f->order->at[i];
    map_set(f->a, &f->in_graph, n, NULL);
    for (size_t k = 0; k < value_whole_operands(n); k++) map_set(f->a, &f->owned, n->src[k], NULL);
    if (n->op != OP_SET) continue;
    map_set(f->a, &f->changed, n->src[0], NULL);
    map_set(f->a, &f->changed, n->src[2], NULL); /* its array may be the one that is changed */
  }
}

/** True if a tensor may be written into an array that holds more. */
static bool may_have_place(const finding *f, const node *x) {
  return !is_given(x) && !is_opaque(x) && !map_has(&f->owned, x) && !map_has(&f->changed, x) &&
         !map_has(f->places, x);
}

/* The choice. */

/** True for a sum of products of two tensors. */
static bool is_contraction(const node *n) {
  const node *x = n->op == OP_REDUCE ? n->src[0] : n;
  return x != n && x->op == OP_MUL && x->src[0] != x->src[1];
}

/** True if a contraction is behind a tensor, through elementwise values and movements: no other
    shares its kernel, as sums over one tensor do. */
static bool has_contraction(const finding *f, const node *x) {
  node_list open = {0};
  map seen = {0};
  vec_push(f->a, &open, x);
  for (size_t i = 0; i < open.n && i < MOST_BEHIND; i++) {
    const node *n = open.at[i];
    if (is_contraction(n)) return true;
    if (i && (map_has(&f->joined, n) || is_opaque(n))) continue;
    for (uint32_t k = 0; k < n->n_src; k++) {
      const node *s = n->src[k];
      if (!s->rank || s->dtype == DT_INDEX || map_has(&seen, s)) continue;
      map_set(f->a, &seen, s, NULL);
      vec_push(f->a, &open, s);
    }
  }
  return false;
}

/** True if a tensor is moved, and something else reads it in another place too. */
static bool is_shared(const finding *f, const node *x) {
  while (op_is_movement((op)x->op) && x->op != OP_GATHER) {
    x = x->src[0];
    if (count_uses(f, x) > 1) return true;
  }
  return false;
}

/** True if a kernel of its own computes a piece in any case, and nothing else keeps it. */
static bool is_computed_apart(const finding *f, const node *x) {
  return may_have_place(f, x) && !is_shared(f, x) && has_contraction(f, x);
}

/** True if writing the pieces into the join costs less than copying all of them there, or than
    selecting between them in readers, which reads as many bytes. */
static bool is_gain(const finding *f, const candidate *c) {
  const machine *m = f->policy->machine;
  double placed = 0, copied = 0, launches = 1;
  for (size_t i = 0; i < c->parts.n; i++) {
    double bytes = bytes_of(c->parts.at[i].x);
    bool apart = is_computed_apart(f, c->parts.at[i].x);
    if (apart) placed += bytes;
    if (!apart) copied += bytes;
    launches -= !apart;
  }
  return placed && placed >= copied &&
         placed * MACHINE_SHARED_L3_NS / m->cores + launches * m->launch > 0;
}

static bool is_chosen(const finding *f, const candidate *c) {
  if (f->policy->machine) return is_gain(f, c);
  uint64_t z = (f->policy->seed + c->position) * UINT64_C(0x9e3779b97f4a7c15);
  return z >> 61; /* 7 of 8 */
}

static void set_place(finding *f, const node *x, const node *in, size_t axis, const node *start) {
  arena *a = ir_arena(f->g);
  array_place *p = arena_alloc(a, sizeof *p);
  *p = (array_place){in, axis, start};
  map_set(a, f->places, x, p);
}

/** Places a join in the larger one that holds all its pieces side by side; false: there is none. */
static bool place_in_larger(finding *f, const candidate *c) {
  const array_place *first = map_get(f->places, c->parts.at[0].x);
  if (!first || first->axis != c->axis || !may_have_place(f, c->tensor)) return false;
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
static const node *copy_of(finding *f, const node *x) {
  do x = versions_identity_slice(f->g, x);
  while (map_has(&f->in_graph, x) || map_has(f->places, x));
  return x;
}

static void add_join(finding *f, const candidate *c, bool is_part) {
  arena *a = ir_arena(f->g);
  join *j = arena_calloc(a, 1, sizeof *j);
  j->tensor = c->tensor;
  for (size_t i = 0; i < c->parts.n; i++) {
    const part *p = &c->parts.at[i];
    const node *x = is_part || may_have_place(f, p->x) ? p->x : copy_of(f, p->x);
    if (!is_part) set_place(f, x, c->tensor, c->axis, p->from);
    if (!map_has(&f->in_graph, x)) vec_push(a, &f->out.fresh, x);
    vec_push(a, &j->pieces, x);
  }
  map_set(a, &f->out.of, c->tensor, j);
}

joins joins_choose(ir *g, const joins_policy *p, const normalised *in, const node_list *order,
                   map *places) {
  finding f = {.g = g, .a = ir_scratch(g), .policy = p, .in = in, .order = order, .places = places};
  arena_mark here = arena_save(f.a);
  find_owned(&f);
  find_candidates(&f);
  for (size_t i = 0; i < f.candidates.n; i++) {
    const candidate *c = &f.candidates.at[i];
    if (map_has(&f.changed, c->tensor)) continue;
    bool is_part = place_in_larger(&f, c);
    if (is_part || is_chosen(&f, c)) add_join(&f, c, is_part);
  }
  arena_rewind(f.a, here);
  return f.out;
}
