#include "ir/verify.h"

#include "ir/loop.h"
#include "ir/print.h"

/** A range, and where it is open. */
typedef struct scope {
  const node *binder, *fold; /* the fold whose innermost range it is */
  const struct scope *outer; /* the range inside which it is opened */
  uint32_t depth;
  bool in_vector;
} scope;

typedef struct verifier {
  arena work;
  const node *const *roots;
  size_t n;
  enum stage stage;
  node_list order;
  map scopes; /* RANGE → scope */
} verifier;

static _Noreturn void fail(verifier *v, const node *n, const node *about, const char *why) {
  arena *a = &v->work;
  print_lines l = print_plan(a, v->roots, v->n);
  str line = str_new(a), other = str_new(a);
  print_node(&line, &l, n);
  if (about) print_node(&other, &l, about);
  diag_raise(a->diag, TN_ERR_INTERNAL, "ill-formed graph: %.400s: %s%s%.200s", str_text(&line), why,
             about ? ": " : "", str_text(&other));
}

/* Every stage. */

/** A LINEAR program's params keep their shapes, and its sink is of another stage. */
static bool enters(const node *n, void *user) {
  const verifier *v = user;
  return v->stage != STAGE_LINEAR || (n->op != OP_PARAM && n->op != OP_SINK);
}

static void check_node(verifier *v, const node *n) {
  node_spec spec = ir_spec(n, n->src, n->n_src);
  const char *why = ir_check(&spec);
  if (why) fail(v, n, NULL, why);
  if (!(op_get((op)n->op)->stages & v->stage)) fail(v, n, NULL, "this stage has no such op");
  if (v->stage == STAGE_TENSOR && n->lanes != 1) fail(v, n, NULL, "a tensor graph has no lanes");
  if (v->stage == STAGE_LINEAR && n->dtype == DT_INDEX) fail(v, n, NULL, "an index is left");
}

/** One node for each number that a range, an alloc or a kernel's param has. */
static void check_number(verifier *v, map *numbers, const node *n) {
  const void *key = (const void *)((uintptr_t)n->ints[0] + 1);
  if (map_has(numbers, key)) fail(v, n, map_get(numbers, key), "its number is another's too");
  map_set(&v->work, numbers, key, (void *)n);
}

static void check_nodes(verifier *v) {
  map ranges = {0}, allocs = {0}, slots = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    check_node(v, n);
    if (n->op == OP_RANGE) check_number(v, &ranges, n);
    if (n->op == OP_ALLOC) check_number(v, &allocs, n);
    if (n->op == OP_PARAM && v->stage != STAGE_TENSOR) check_number(v, &slots, n);
  }
}

/* Tensor graphs. */

static bool moves(const node *n) {
  return n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_SLICE;
}

static void check_set(verifier *v, const node *set) {
  const node *at = set->src[1];
  while (at != set->src[0] && moves(at)) at = at->src[0];
  if (at != set->src[0]) fail(v, set, at, "its view is not of its tensor");
}

/** Of a scratch ir: a counted one does not know what is free. */
static void check_closed(verifier *v, const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (n->dims[i]->free->n) fail(v, n, n->dims[i], "a size depends on a trip");
  if (n->op == OP_RANGE && range_extent(n)->free->n)
    fail(v, n, range_extent(n), "a number of trips depends on a trip");
  if (n->op == OP_CUSTOM && n->free->n) fail(v, n, n->free->at[0], "a host function in a loop");
}

static void check_loop(verifier *v, map *loop_of, const node *loop) {
  const node *range = loop_range(loop);
  if (map_has(loop_of, range)) fail(v, range, loop, "it is bound twice, the second time here");
  map_set(&v->work, loop_of, range, (void *)loop);
  for (size_t i = 0; i < loop_states(loop); i++)
    if (node_is_free_in(range, loop_init(loop, i)))
      fail(v, loop, loop_init(loop, i), "the start of a loop depends on its range");
  for (size_t i = 0; i < loop_emits(loop); i++)
    if (!loop_is_place(range, loop_place(loop, i)))
      fail(v, loop, loop_place(loop, i), "not each place of a loop is emitted to once");
}

static void check_carry(verifier *v, const map *loop_of, const node *carry) {
  const node *loop = map_get(loop_of, carry->src[0]);
  if (!loop) fail(v, carry, carry->src[0], "no loop has this as its range");
  if ((uint64_t)carry->ints[0] >= loop_states(loop))
    fail(v, carry, loop, "its loop has no such state");
  const node *init = loop_init(loop, (size_t)carry->ints[0]);
  if (init->dtype != carry->dtype || !ir_same_shape(init, carry))
    fail(v, carry, init, "its loop's state has another type or shape");
}

static void check_tensors(verifier *v) {
  map loop_of = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    check_closed(v, n);
    if (n->op == OP_SET) check_set(v, n);
    if (n->op == OP_LOOP) check_loop(v, &loop_of, n);
  }
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_CARRY) check_carry(v, &loop_of, n);
    if (n->op == OP_RANGE && !map_has(&loop_of, n)) fail(v, n, NULL, "nothing binds this range");
  }
  for (size_t i = 0; i < v->n; i++)
    if (v->roots[i]->free->n)
      fail(v, v->roots[i], v->roots[i]->free->at[0], "it uses a range outside its loop");
}

/* Operands that are not values. */

static bool may_use(const verifier *v, const node *n, uint32_t i) {
  op s = (op)n->src[i]->op;
  if (v->stage == STAGE_KERNEL) {
    if (s == OP_PARAM) return (n->op == OP_INDEX && !i) || n->op == OP_OUT;
    if (n->op == OP_SINK) return s == OP_OUT;
    return s != OP_STATE || n->op == OP_INDEX;
  }
  if (s == OP_PARAM) return !i && (n->op == OP_LOAD || n->op == OP_STORE || n->op == OP_AFTER);
  return n->op != OP_SINK || n->src[i]->dtype == DT_VOID;
}

static void check_uses(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (!enters(n, v)) continue;
    for (uint32_t k = 0; k < n->n_src; k++)
      if (!may_use(v, n, k)) fail(v, n, n->src[k], "it cannot use this");
  }
}

/* Ranges and their places. */

static scope *scope_of(const verifier *v, const node *range) { return map_get(&v->scopes, range); }

static void bind(verifier *v, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  for (size_t i = 0; i < n; i++) {
    scope *s = scope_of(v, ranges[i]);
    if (s->binder) fail(v, ranges[i], binder, "it is bound twice, the second time here");
    s->binder = binder;
    if (binder->op == OP_FOLD && i + 1 == n) s->fold = binder;
  }
}

static void bind_ranges(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++)
    if (v->order.at[i]->op == OP_RANGE)
      map_set(&v->work, &v->scopes, v->order.at[i], arena_calloc(&v->work, 1, sizeof(scope)));
  for (size_t i = 0; i < v->order.n; i++)
    if (node_is_binder(v->order.at[i])) bind(v, v->order.at[i]);
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_RANGE && !scope_of(v, n)->binder) fail(v, n, NULL, "nothing binds this range");
  }
}

/** The innermost of a binder's free ranges. They lie on one path: each has one binder, and no range
    is free in a root, so of two binders that both reach this one, one binds its range outside the
    other. */
static const scope *place_of(const verifier *v, const node *binder) {
  const scope *inner = NULL;
  for (uint32_t i = 0; i < binder->free->n; i++) {
    const scope *s = scope_of(v, binder->free->at[i]);
    if (!inner || s->depth > inner->depth) inner = s;
  }
  return inner;
}

static bool is_open(const scope *range, const scope *inner) {
  while (inner && inner->depth > range->depth) inner = inner->outer;
  return inner == range;
}

static const scope *open_range(verifier *v, const node *binder, const node *range,
                               const scope *outer) {
  const range_set *needs = range_extent(range)->free;
  scope *s = scope_of(v, range);
  for (uint32_t i = 0; i < needs->n; i++)
    if (!outer || !is_open(scope_of(v, needs->at[i]), outer))
      fail(v, binder, range, "the extent of a range depends on one that is not open");
  bool vector = range_kind_of(range) == KIND_VECTOR;
  if (vector && outer && outer->in_vector) fail(v, binder, range, "a vector inside a vector");
  s->outer = outer;
  s->depth = outer ? outer->depth + 1 : 0;
  s->in_vector = vector || (outer && outer->in_vector);
  return s;
}

static bool uses_own_range(const node *binder, const node *n) {
  const node *const *ranges;
  size_t count = binder_ranges(binder, &ranges);
  for (size_t i = 0; i < count; i++)
    if (node_is_free_in(ranges[i], n)) return true;
  return false;
}

/** Sizes do not depend on states: a range is free in all that varies along it, a state is not. */
static void check_size(verifier *v, const node *n, const node *size) {
  if (!size->free->n) return;
  arena_mark here = arena_here(&v->work);
  node_list order = topo_sort(&v->work, &size, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STATE && node_is_free_in(order.at[i]->src[0], size))
      fail(v, n, order.at[i], "a size depends on a state");
  arena_reset(&v->work, here);
}

/** Fails if one of `n` nodes depends on what the binder binds. */
static void check_outside(verifier *v, const node *binder, const node *const *at, size_t n,
                          const char *why) {
  for (size_t i = 0; i < n; i++)
    if (uses_own_range(binder, at[i])) fail(v, binder, NULL, why);
}

/** Of a STAGE or FOLD: the sizes of its arrays and its pins. */
static void check_parts(verifier *v, const node *b) {
  binder_parts p = binder_parts_of((op)b->op, b->ints);
  check_outside(v, b, b->src + p.extents, p.ranges - p.extents,
                "an array's extent depends on a range of its binder");
  check_outside(v, b, b->src + p.pins, p.n_pins, "a pin depends on a range of its binder");
  for (size_t i = p.extents; i < p.ranges; i++) check_size(v, b, b->src[i]);
  for (size_t i = p.ranges; i < p.pins; i++) check_size(v, b, range_extent(b->src[i]));
}

static void check_stage(verifier *v, const node *stage) {
  if (stage_is_cut(stage) && stage->free->n)
    fail(v, stage, stage->free->at[0], "a cut stage uses a range of its reader");
}

static bool is_inside(const node *n, void *innermost) { return node_is_free_in(innermost, n); }

/** Fails if nodes read a state of the fold. */
static void check_stateless(verifier *v, const node *fold, const node *const *at, size_t n,
                            const char *why) {
  const node *innermost = fold_innermost(fold);
  arena_mark here = arena_here(&v->work);
  node_list order = topo_sort(&v->work, at, n, is_inside, (void *)innermost);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STATE && order.at[i]->src[0] == innermost)
      fail(v, fold, order.at[i], why);
  arena_reset(&v->work, here);
}

/** The step of an array is written where it is told to be, whatever the states are. */
static void check_array_step(verifier *v, const node *fold, size_t state) {
  const node *step = fold_step(fold, state);
  size_t which = (size_t)fold_component(fold, state);
  check_outside(v, fold, stage_extents(step, which), stage_rank(step, which),
                "the extent of a state depends on a range of its fold");
  check_stateless(v, fold, stage_coords(step, which), stage_rank(step, which),
                  "a coordinate depends on a state");
}

static void check_fold(verifier *v, const node *fold) {
  size_t n = fold_states(fold);
  check_outside(v, fold, fold->src, n, "the start of a fold depends on its range");
  for (size_t i = 0; i < n; i++) {
    const node *term = fold_step(fold, i);
    if (fold_component(fold, i) >= 0) {
      check_array_step(v, fold, i);
      term = stage_value(term, (size_t)fold_component(fold, i));
    }
    if (fold_op(fold, i) >= 0)
      check_stateless(v, fold, &term, 1, "a term of an op contains a state of its fold");
  }
  for (size_t i = 0; i < fold_emits(fold); i++)
    check_stateless(v, fold, fold_coords(fold, i), fold_rank(fold, n + i),
                    "a coordinate depends on a state");
}

static void place_binder(verifier *v, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  const scope *outer = place_of(v, binder);
  for (size_t i = 0; i < n; i++) outer = open_range(v, binder, ranges[i], outer);
  if (binder->op == OP_STAGE || binder->op == OP_FOLD) check_parts(v, binder);
  if (binder->op == OP_STAGE) check_stage(v, binder);
  if (binder->op == OP_FOLD) check_fold(v, binder);
}

/** Users before sources, so that a binder's free ranges are placed before it. */
static void place_binders(verifier *v) {
  for (size_t i = 0; i < v->n; i++)
    if (v->roots[i]->free->n)
      fail(v, v->roots[i], v->roots[i]->free->at[0], "it uses a range outside its binder");
  for (size_t i = v->order.n; i-- > 0;)
    if (node_is_binder(v->order.at[i])) place_binder(v, v->order.at[i]);
}

static void check_state(verifier *v, const node *state) {
  const node *fold = scope_of(v, state->src[0])->fold;
  if (!fold) fail(v, state, state->src[0], "no fold has this as its innermost range");
  if ((uint64_t)state->ints[0] >= fold_states(fold))
    fail(v, state, fold, "its fold has no such state");
  if (state->dtype != fold_dtype(fold, (size_t)state->ints[0]))
    fail(v, state, fold, "its fold's state has another type");
}

static void check_states(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_STATE) check_state(v, n);
    if (n->op != OP_INDEX || n->src[0]->op != OP_STATE) continue;
    const node *state = n->src[0], *fold = scope_of(v, state->src[0])->fold;
    if (n->n_src - 1 != fold_rank(fold, (size_t)state->ints[0]))
      fail(v, n, fold, "its fold's state has another number of coordinates");
  }
}

/* Linear programs. */

/** Where an instruction stands: the innermost loop around it, and for a loop whether it is open. */
typedef struct place {
  const node *loop;
  bool open;
} place;

typedef struct program {
  verifier *v;
  map listed;      /* instruction → place */
  map ordered;     /* AFTER nodes that were looked at */
  node_list loops; /* those that are open */
} program;

static bool is_listed_op(const node *n) {
  switch (n->op) {
  case OP_RANGE:
  case OP_END:
  case OP_ALLOC:
  case OP_LOAD:
  case OP_STORE:
  case OP_SPECIAL: return true;
  default: return op_is_elementwise((op)n->op);
  }
}

static bool in_scope(const program *p, const node *n) {
  const place *at = map_get(&p->listed, n);
  const place *loop = at && at->loop ? map_get(&p->listed, at->loop) : NULL;
  return at && (!at->loop || loop->open);
}

static void check_effects(program *p, const node *user, const node *n) {
  for (uint32_t i = 1; i < n->n_src; i++) {
    bool fine = n->src[i]->op == OP_RANGE ? in_scope(p, n->src[i]) : map_has(&p->listed, n->src[i]);
    if (!fine && n->src[i]->op != OP_AFTER)
      fail(p->v, user, n->src[i], "it is to follow what is not listed above it");
  }
}

/** The storage below AFTER nodes, whose effects must be listed already. */
static const node *ordered_storage(program *p, const node *user, const node *n) {
  for (; n->op == OP_AFTER; n = n->src[0]) {
    if (map_has(&p->ordered, n)) continue;
    map_set(&p->v->work, &p->ordered, n, NULL);
    check_effects(p, user, n);
  }
  return n;
}

static void check_operand(program *p, const node *n, const node *s) {
  s = ordered_storage(p, n, s);
  if (s->op == OP_CONST || s->op == OP_PARAM || s->op == OP_VAR || s->op == OP_INVALID) return;
  if (!map_has(&p->listed, s)) fail(p->v, n, s, "it uses what is not listed above it");
  if (!in_scope(p, s)) fail(p->v, n, s, "it uses what belongs to a loop that has ended");
}

static void end_loop(program *p, const node *end) {
  if (!p->loops.n || vec_last(&p->loops) != end->src[0])
    fail(p->v, end, end->src[0], "it ends what is not the innermost open loop");
  check_effects(p, end, end);
  place *loop = map_get(&p->listed, vec_pop(&p->loops));
  loop->open = false;
}

static void list_instruction(program *p, const node *n) {
  arena *a = &p->v->work;
  if (!is_listed_op(n)) fail(p->v, n, NULL, "a linear program does not list this op");
  if (map_has(&p->listed, n)) fail(p->v, n, NULL, "it is listed twice");
  if (n->op == OP_END)
    end_loop(p, n);
  else
    for (uint32_t i = 0; i < n->n_src; i++) check_operand(p, n, n->src[i]);
  if (n->op == OP_RANGE) vec_push(a, &p->loops, n);
  place *at = arena_alloc(a, sizeof *at);
  *at = (place){.loop = p->loops.n ? vec_last(&p->loops) : NULL, .open = n->op == OP_RANGE};
  map_set(a, &p->listed, n, at);
}

static void check_linear(verifier *v, const node *linear) {
  program p = {.v = v};
  for (uint32_t i = 0; i < linear->n_src; i++) list_instruction(&p, linear->src[i]);
  if (p.loops.n) fail(v, linear, vec_last(&p.loops), "a loop that does not end");
}

/** The registers that a storage operand is, or NULL: remembered for AFTER, whose source came
    first. */
static const node *registers(verifier *v, map *known, const node *n) {
  const node *base = n->op == OP_AFTER ? map_get(known, n->src[0]) : n;
  map_set(&v->work, known, n, (void *)base);
  return base->op == OP_ALLOC && base->ints[1] == 0 ? base : NULL;
}

static void check_register_access(verifier *v, const node *n, const node *alloc) {
  const node *address = n->src[1];
  unsigned lanes = n->op == OP_LOAD ? n->lanes : n->src[2]->lanes;
  if (address->op != OP_CONST) fail(v, n, alloc, "registers are addressed by constants");
  if (alloc->src[0]->op != OP_CONST) fail(v, alloc, NULL, "the number of registers is a constant");
  if (node_int(address) < 0 || node_int(address) >= node_int(alloc->src[0]))
    fail(v, n, alloc, "there is no such register");
  if (lanes != alloc->lanes) fail(v, n, alloc, "a register has other lanes");
}

static void check_registers(verifier *v) {
  map known = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_ALLOC && n->ints[1] == 1 && n->lanes != 1)
      fail(v, n, NULL, "scratch memory holds scalars");
    if (n->op == OP_PARAM || n->op == OP_ALLOC || n->op == OP_AFTER) registers(v, &known, n);
    if (n->op != OP_LOAD && n->op != OP_STORE) continue;
    const node *alloc = registers(v, &known, n->src[0]);
    if (alloc) check_register_access(v, n, alloc);
  }
}

/** A store to an array without elements, or loops of such. */
static bool does_nothing(const node *effect) {
  if (effect->op == OP_STORE) return effect->src[1]->op == OP_INVALID;
  bool nothing = effect->op == OP_END;
  for (uint32_t i = 1; nothing && i < effect->n_src; i++) nothing = does_nothing(effect->src[i]);
  return nothing;
}

/** What is done in a loop is done in that one alone: else it would be in one of several only. */
static void check_owners(verifier *v) {
  map owner = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op != OP_END && n->op != OP_GROUP && n->op != OP_SINK) continue;
    for (uint32_t k = n->op == OP_END; k < n->n_src; k++) {
      const node *other = map_get(&owner, n->src[k]);
      bool in_loops = other && other != n && (other->op == OP_END || n->op == OP_END);
      if (in_loops && !does_nothing(n->src[k]))
        fail(v, n->src[k], n, "it is an effect of this and of another");
      map_set(&v->work, &owner, n->src[k], (void *)n);
    }
  }
}

/* Stages. */

static void check_binders(verifier *v) {
  bind_ranges(v);
  place_binders(v);
  check_uses(v);
}

static void check_program(verifier *v) {
  check_uses(v);
  check_registers(v);
  for (size_t i = 0; i < v->order.n; i++)
    if (v->order.at[i]->op == OP_LINEAR) check_linear(v, v->order.at[i]);
}

static void check_all(void *arg) {
  verifier *v = arg;
  v->order = topo_sort(&v->work, v->roots, v->n, enters, v);
  check_nodes(v);
  switch (v->stage) {
  case STAGE_TENSOR: check_tensors(v); break;
  case STAGE_KERNEL: check_binders(v), check_states(v); break;
  case STAGE_LOWERED: check_binders(v), check_owners(v); break;
  case STAGE_LINEAR: check_program(v); break;
  }
}

tn_status verify(const node *const roots[], size_t n, enum stage stage, const mem *m, diag *d) {
  verifier v = {.roots = roots, .n = n, .stage = stage};
  arena_init(&v.work, m, d);
  tn_status s = diag_catch(d, check_all, &v);
  arena_free(&v.work);
  return s;
}
