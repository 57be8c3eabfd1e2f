/* Lowers ranges that are digits of the numbers of groups and workers, and FOLDs over them. A digit
   is no loop: every worker takes its index. Where a range is shorter than its digit, a loop of one
   iteration or none leaves the other workers out:

     for l < e (LOCAL)   →   d = "l0" div stride mod extent
                             for gate < min(max(e − d, 0), 1): l = d + gate

   Code outside of a digit's range runs on all its workers, with storage of their own. Where they
   share storage, those of index 0 store. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/row_major_address.h"

#include <string.h>

/* Digits. */

static const node *launch_index(lowering *l, const char *name, const node *size) {
  return ir_make(l->g, &(node_spec){.op = OP_SPECIAL,
                                    .dtype = DT_INDEX,
                                    .src = &size,
                                    .n_src = 1,
                                    .text = name,
                                    .n_text = strlen(name)});
}

static const node *worker_number(lowering *l) {
  return launch_index(l, "l0", ix_const(l->g, l->teams.digits.workers));
}

const node *lower_digit_value(lowering *l, const team_digit *d) {
  const team_digits *t = &l->teams.digits;
  bool is_group = d->kind == KIND_GLOBAL;
  const node *number = is_group ? launch_index(l, "g0", t->groups) : worker_number(l);
  const node *all = is_group ? t->groups : ix_const(l->g, t->workers);
  const node *x = ix_floordiv(l->g, number, d->stride);
  bool is_slowest = ix_mul(l->g, d->stride, d->extent) == all;
  return is_slowest ? x : ix_mod(l->g, x, d->extent);
}

const node *lower_gate(lowering *l, const node *size) {
  const node *zero = ix_const(l->g, 0), *one = ix_const(l->g, 1);
  return range_make(l->g, ix_min(l->g, ix_max(l->g, size, zero), one), KIND_LOOP);
}

const node *lower_digit(lowering *l, const node *range) {
  const node *value = lower_digit_value(l, team_digits_find(&l->teams.digits, range));
  if (team_digits_has_all(&l->teams.digits, range)) return value;
  const node *extent = lower_node(l, range_extent(range));
  if (!extent) extent = range_extent(range); /* of a copy, which is lowered already */
  const node *gate = lower_gate(l, ix_sub(l->g, extent, value));
  map_set(l->a, &l->gates, range, (void *)gate);
  return ix_add(l->g, value, gate);
}

/* Stores. */

static bool is_among(const team_digit *d, const node *const ranges[], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (range_kind_of(ranges[i]) == d->kind && range_axis(ranges[i]) == d->axis) return true;
  return false;
}

/** True for a digit in which the sharers of some storage differ. */
static bool is_shared_along(const team_digit *d, const node *storage) {
  if (storage->op == OP_PARAM) return true;
  if (storage->ints[1] == SPACE_GROUP) return d->kind != KIND_GLOBAL;
  return storage->ints[1] == SPACE_WARP && d->kind == KIND_WARP;
}

static bool parts_coords(const team_digit *d, const node *const *coords, size_t n) {
  for (size_t p = 0; p < n; p++)
    if (is_among(d, coords[p]->free->at, coords[p]->free->n)) return true;
  return false;
}

/** True if a digit is in a coordinate of a STAGE's value, or of the part of an output that it is
    stored to: its workers store different elements. */
static bool parts_value(const team_digit *d, const home *to, const node *stage, size_t value) {
  const output_part *part = to->part;
  return parts_coords(d, stage_coords(stage, value), stage_rank(stage, value)) ||
         (part && parts_coords(d, part->at, part->param->rank));
}

/** True if a STAGE runs inside of a digit's range and computes something else for each index. */
static bool is_open_for(const lowering *l, const team_digit *d, const node *stage,
                        const node_list *open) {
  for (size_t i = 0; i < open->n; i++)
    if (is_among(d, &open->at[i], 1) && team_differs_along(l->g, stage, open->at[i])) return true;
  return false;
}

const node *lower_store_once(lowering *l, const node *store, const home *to, const node *stage,
                             size_t value) {
  const team_digits *t = &l->teams.digits;
  const node *storage = node_storage_root(store->src[0]), *sum = ix_const(l->g, 0);
  const node_list *open = map_get(&l->teams.open, stage);
  for (size_t i = 0; i < t->all.n; i++) {
    const team_digit *d = &t->all.at[i];
    bool is_parted = parts_value(d, to, stage, value) || is_open_for(l, d, stage, open);
    if (!is_parted && is_shared_along(d, storage)) sum = ix_add(l->g, sum, lower_digit_value(l, d));
  }
  if (node_is_bits(sum, 0)) return store;
  const node *gate = lower_gate(l, ix_sub(l->g, ix_const(l->g, 1), sum));
  const node **src = arena_alloc(l->a, (store->n_src + 1) * sizeof *src);
  for (uint32_t i = 0; i < store->n_src; i++) src[i] = store->src[i];
  src[store->n_src] = gate;
  store = ir_node(l->g, OP_STORE, DT_VOID, src, store->n_src + 1, NULL, 0);
  return lower_close_loops(l, &store, NULL, 1, &gate, 1);
}

/* FOLDs over digits. */

/** A state of a FOLD over digits while its terms are combined. */
typedef struct tree {
  lowering *l;
  const node *fold;
  size_t state;
  const node *alloc, *storage; /* of a worker's partial result: a register, after its last store */
  const node *place[2];        /* of a result of each worker; NULL: not used yet */
  int turn;                    /* the one that is next: so nobody overwrites what others read */
  storage_space space;
  const node *number; /* of the worker among the sharers */
} tree;

bool lower_is_team_fold(const node *f) { return range_is_digit(fold_innermost_range(f)); }

static dtype tree_type(const tree *t) { return fold_dtype(t->fold, t->state); }

static const node *combine(const tree *t, const node *a, const node *b) {
  return ir_op2(t->l->g, (op)fold_op(t->fold, t->state), a, b);
}

static const node *partial(const tree *t) {
  return lower_load(t->l, tree_type(t), t->storage, ix_const(t->l->g, 0));
}

static void set_partial(tree *t, const node *effect) {
  t->storage = lower_after(t->l, t->alloc, &effect, 1, NULL, 0);
}

/** Stores a worker's own term of each state, or the identity where its digits are none of the
    FOLD's. One nest stores all, as the FOLD's ranges are bound once. */
static void store_terms(lowering *l, const node *f, tree trees[]) {
  size_t n = fold_n_states(f);
  const node *zero = ix_const(l->g, 0), **loops = lower_loops(l, fold_range(f), fold_n_ranges(f));
  const node **stores = arena_alloc(l->a, n * sizeof *stores);
  bool has_gate = false;
  for (size_t i = 0; i < fold_n_ranges(f); i++) has_gate |= loops[i] != NULL;
  for (size_t i = 0; i < n; i++) {
    tree *t = &trees[i];
    uint64_t start = 0;
    op_identity((op)fold_op(f, i), tree_type(t), &start);
    t->alloc = t->storage = lower_alloc(l, tree_type(t), f, ix_const(l->g, 1), SPACE_REGISTER);
    if (has_gate)
      set_partial(t, lower_store(l, t->alloc, zero, ir_const_bits(l->g, tree_type(t), start)));
    stores[i] = lower_store(l, t->storage, zero, lower_node(l, fold_step(f, i)));
  }
  const node *all = lower_close_loops(l, stores, NULL, n, loops, fold_n_ranges(f));
  for (size_t i = 0; i < n; i++) set_partial(&trees[i], all);
}

/** Memory in which each worker's partial result stands, at the worker's number. */
static const node *publish(tree *t) {
  lowering *l = t->l;
  const team_digits *d = &l->teams.digits;
  const node **place = &t->place[t->turn];
  int64_t sharers = t->space == SPACE_WARP ? d->warp : d->workers;
  t->turn = !t->turn;
  if (!*place) *place = lower_alloc(l, tree_type(t), t->fold, ix_const(l->g, sharers), t->space);
  const node *x = lower_store(l, lower_after(l, *place, &t->storage->src[1], 1, NULL, 0), t->number,
                              partial(t));
  return lower_after(l, *place, &x, 1, NULL, 0);
}

/** Combines the partial results along a digit: the worker at index i takes that at i + ⌈n/2⌉. */
static void combine_along(tree *t, const team_digit *d) {
  lowering *l = t->l;
  const node *value = lower_digit_value(l, d);
  for (int64_t n = node_int(d->extent), half; n > 1; n = half) {
    half = (n + 1) / 2;
    const node *all = publish(t),
               *gate = lower_gate(l, ix_add_const(l->g, ix_scale(l->g, value, -1), n - half));
    const node *other = ix_add(l->g, t->number, ix_scale(l->g, d->stride, half));
    const node *x = lower_load(l, tree_type(t), all, ix_add(l->g, other, gate));
    const node *src[] = {t->storage, ix_const(l->g, 0), combine(t, partial(t), x), gate};
    x = ir_node(l->g, OP_STORE, DT_VOID, src, 4, NULL, 0);
    set_partial(t, lower_close_loops(l, &x, NULL, 1, &gate, 1));
  }
}

static tree tree_make(lowering *l, const node *f, size_t state) {
  tree t = {.l = l, .fold = f, .state = state, .space = SPACE_WARP, .number = worker_number(l)};
  for (size_t i = 0; i < fold_n_ranges(f); i++)
    if (range_kind_of(fold_range(f)[i]) == KIND_LOCAL) t.space = SPACE_GROUP;
  if (t.space == SPACE_WARP)
    t.number = ix_mod(l->g, t.number, ix_const(l->g, l->teams.digits.warp));
  return t;
}

/** Combines the terms that the workers have stored, and the initial value. */
static home combine_state(lowering *l, tree *t) {
  const node *f = t->fold;
  const team_digits *all = &l->teams.digits;
  const node *first = t->number; /* of those that are combined: at index 0 of each digit */
  for (size_t i = 0; i < all->all.n; i++) {
    const team_digit *d = &all->all.at[i];
    if (!is_among(d, fold_range(f), fold_n_ranges(f))) continue;
    combine_along(t, d);
    const node *value = lower_digit_value(l, d);
    first = ix_sub(l->g, first, ix_mul(l->g, value, d->stride));
  }
  const node *x = lower_load(l, tree_type(t), publish(t), first);
  const node *alloc = lower_alloc(l, tree_type(t), f, ix_const(l->g, 1), SPACE_REGISTER);
  x = combine(t, lower_node(l, fold_init(f, t->state)), x);
  x = lower_store(l, alloc, ix_const(l->g, 0), x);
  return (home){.storage = lower_after(l, alloc, &x, 1, NULL, 0)};
}

void lower_team_fold(lowering *l, const node *f) {
  size_t n = fold_n_states(f);
  tree *trees = arena_alloc(l->a, n * sizeof *trees);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  for (size_t i = 0; i < n; i++) trees[i] = tree_make(l, f, i);
  store_terms(l, f, trees);
  for (size_t i = 0; i < n; i++) homes[i] = combine_state(l, &trees[i]);
  map_set(l->a, &l->homes, f, homes);
}
