/* Rewrites softmax-weighted sums into one pass over blocks: online softmax (Milakov and Gimelshein,
   "Online normalizer calculation for softmax", 2018), the basis of FlashAttention. m = max s and
   sums T_j = Σ e^(s − m)·v_j over the same ranges read s twice, and so need all of it at once. They
   become one scan over blocks of a range, r = r₀·B + r₁:

     n  = max(m, max s)             over the block, r₁; m starts as −∞
     z  = n = −∞ ? 0 : n
     T_j = T_j · e^(m − z) + Σ e^(s − z)·v_j          over the block; T_j starts as 0
     m  = n

   This file finds such m and T_j, checks that the rewrite is legal and that it pays, and chooses
   the blocks; online_softmax_scan.c builds the values, which have one coordinate more, r₀, where
   they are of a block. Where all s are −∞, T_j is NaN at the end, as by the formula for T_j. */
#include "schedule/values/online_softmax.h"

#include "ir/core/binder.h"
#include "schedule/values/online_softmax_scan.h"
#include "target/machine.h"

enum { LEAST_BLOCK = 2, LEAST_BLOCKS = 2 };

/* Legality. */

typedef struct matching {
  ir *g;
  const machine *machine;
  values *values;
  map levels;  /* value → reductions on the longest path from the inputs, itself included */
  map readers; /* value → value_list of its readers */
} matching;

static size_t level_of(const matching *s, const node *tensor) {
  const value *v = map_get(&s->values->of, tensor);
  return v ? (size_t)(uintptr_t)map_get(&s->levels, v) : 0;
}

/** Sets the level of a value; operands come first. */
static void find_levels(matching *s, const value *v) {
  size_t level = 0;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    size_t of = level_of(s, v->inputs.tensors.at[i]);
    if (of > level) level = of;
  }
  level += value_is_reduction(v);
  map_set(ir_scratch(s->g), &s->levels, v, (void *)(uintptr_t)level);
}

static bool is_expression(const node *n, void *values) { return !map_has(values, n); }

static void find_readers(matching *s, value *v) {
  arena *work = ir_scratch(s->g);
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&s->values->of, v->inputs.tensors.at[i]);
    value_list *l = from ? map_get(&s->readers, from) : NULL;
    if (!from) continue;
    if (!l) map_set(work, &s->readers, from, l = arena_calloc(work, 1, sizeof *l));
    vec_push(work, l, v);
  }
}

/** True if all operands of x may be read inside the scan: none is stored over, and, if `before_m`,
   none is of the level of m or higher, as it could depend on m. */
static bool may_read_in_scan(const matching *s, const value *m, const node *x, bool before_m) {
  size_t level = (size_t)(uintptr_t)map_get(&s->levels, m);
  arena_mark here = arena_save(ir_scratch(s->g));
  node_list order = topo_sort(ir_scratch(s->g), &x, 1, is_expression, &s->values->of);
  bool may = true;
  for (size_t i = 0; i < order.n && may; i++) {
    const node *tensor = order.at[i]->op == OP_INDEX ? order.at[i]->src[0] : NULL;
    if (!tensor) continue;
    may = !map_has(&s->values->overwriter, tensor) && !(before_m && level_of(s, tensor) >= level);
  }
  arena_rewind(ir_scratch(s->g), here);
  return may;
}

/** Fills in the factors of a sum weighted by a power; false: v is none, or its operands forbid it.
 */
static bool match_weighted_sum(const matching *s, value *v, online_softmax_sum *t) {
  dtype type = (dtype)v->tensor->dtype;
  bool found = false;
  if (v->reduction.op != OP_ADD || !dtype_is_float(type) || dtype_bytes(type) < 4) return false;
  if (v->rank > ONLINE_SOFTMAX_MOST_AXES || !term_split_factors(s->g, s->values, v->body, &t->term))
    return false;
  t->v = v;
  for (size_t i = 0; i < t->term.n && !found; i++) {
    term_factor f = t->term.at[i];
    found = !f.divides && term_match_power(s->g, s->values, v, f.at, &t->power);
    if (found) t->power_at = t->term.first = i;
  }
  size_t axis[ONLINE_SOFTMAX_MOST_AXES];
  const value *m = t->power.most;
  if (!found || m->tensor->dtype != type || m->rank > ONLINE_SOFTMAX_MOST_AXES ||
      !online_softmax_axes(t, m, axis))
    return false;
  if (!may_read_in_scan(s, m, m->body, false)) return false;
  for (size_t i = 0; i < t->term.n; i++)
    if (i != t->power_at && !may_read_in_scan(s, m, t->term.at[i].at, true)) return false;
  return true;
}

/* Properties of s. */

static bool is_sum(const online_softmax *r, const value *v) {
  for (size_t i = 0; i < r->n; i++)
    if (r->sum[i].v == v) return true;
  return false;
}

/** True if values other than m and the sums are computed from v: all of it is needed then. */
static bool is_used_elsewhere(const matching *s, const online_softmax *r, const value *v) {
  VEC(const value *) open = {0};
  map seen = {0};
  arena *work = ir_scratch(s->g);
  vec_push(work, &open, v);
  for (size_t i = 0; i < open.n; i++) {
    const value_list *l = map_get(&s->readers, open.at[i]);
    if (open.at[i]->memory.stores.n || i == TERM_MOST_OPENED) return true;
    for (size_t k = 0; l && k < l->n; k++) {
      value *reader = l->at[k];
      if (reader == r->m || is_sum(r, reader) || map_has(&seen, reader)) continue;
      if (value_is_reduction(reader) || reader->memory.is_never_inlined) return true;
      map_set(work, &seen, reader, reader);
      vec_push(work, &open, reader);
    }
  }
  return false;
}

/** True if elements of s are computed from reductions, for several rows at once. Reductions that
   are needed elsewhere too are in memory, and s is read as any other then. */
static bool is_contracted(const matching *s, const online_softmax *r) {
  node_list open = {0};
  arena *a = ir_scratch(s->g);
  vec_push(a, &open, r->m->body);
  for (size_t i = 0; i < open.n && i < TERM_MOST_OPENED; i++) {
    node_list order = topo_sort(a, &open.at[i], 1, is_expression, &s->values->of);
    for (size_t k = 0; k < order.n; k++) {
      const node *x = order.at[k], *inside = term_inline_read(s->g, s->values, x);
      const value *from = x->op == OP_INDEX ? map_get(&s->values->of, x->src[0]) : NULL;
      bool is_computed = from && value_is_reduction(from) && term_varies_in_reduction(r->m, x);
      if (is_computed && !is_used_elsewhere(s, r, from)) return true;
      if (inside) vec_push(a, &open, inside);
    }
  }
  return false;
}

/* Profit, and the size of blocks. */

/** The most indices of a block whose arrays fit; 0: the scan does not pay. `row`: the elements of a
   row. An s that is contracted, and its powers, are arrays, for several rows at once if these fit;
   another s is read again from where it is. */
static double most_block_indices(const matching *s, const online_softmax *r, double row) {
  const machine *m = machine_of_device(s->machine, r->m->tensor->device);
  double bytes = (double)dtype_bytes(r->type), all = m->scratch / bytes;
  double own = online_softmax_row_elements(r), each = all / MACHINE_SOFTMAX_SHARED_ROWS;
  if (own > MACHINE_SOFTMAX_STATE_SCRATCH_SHARE * all) return 0;
  if (!r->is_contracted)
    return row * bytes <= m->cache[1] ? 0 : m->cache[0] / bytes * MACHINE_SOFTMAX_BLOCK_L1_SHARE;
  if (2 * row <= each) return 0;
  return (each - own) / 2 >= MACHINE_SOFTMAX_BLOCK_FEW ? (each - own) / 2 : (all - own) / 2;
}

/** The largest block from `least` to `most` that divides n; 0: none. */
static int64_t largest_divisor(int64_t n, int64_t least, int64_t most) {
  for (int64_t b = most; b >= least && b >= LEAST_BLOCK; b--)
    if (n % b == 0) return b;
  return 0;
}

/** Chooses blocks of the longest range: a divisor of it, if there is one; else, if s is contracted
   and so worth bounds checks, blocks such that the last one is as full as possible. */
static bool choose_blocks(const matching *s, online_softmax *r) {
  double row = 1, longest = 0;
  for (size_t i = 0; i < r->m->reduction.n; i++) {
    const node *extent = range_extent(r->m->reduction.ranges[i]);
    double size = ix_likely(extent);
    row *= size;
    if (extent->lo < 1) return false;
    if (size > longest) longest = size, r->cut = i;
  }
  const node *extent = range_extent(r->m->reduction.ranges[r->cut]);
  if (!node_is_const(extent)) return false;
  double room = most_block_indices(s, r, row) / (row / longest), half = longest / LEAST_BLOCKS;
  int64_t n = node_int(extent), b = (int64_t)(room < half ? room : half);
  if (b < LEAST_BLOCK) return false;
  r->block = largest_divisor(n, r->is_contracted ? b / 2 + 1 : b / 16, b);
  if (!r->block && !r->is_contracted) return false;
  if (!r->block) {
    r->blocks = (n + b - 1) / b;
    r->block = (n + r->blocks - 1) / r->blocks;
  }
  r->blocks = (n + r->block - 1) / r->block;
  return true;
}

typedef VEC(online_softmax_sum) sum_list;

static void make_online(matching *s, const sum_list *all, size_t first, map *done) {
  online_softmax r = {.g = s->g, .a = ir_arena(s->g), .values = s->values};
  const online_softmax_sum *like = &all->at[first];
  r.m = like->power.most;
  r.type = (dtype)r.m->tensor->dtype;
  if (map_has(done, r.m)) return;
  map_set(ir_scratch(s->g), done, r.m, r.m);
  for (size_t i = first; i < all->n && r.n < ONLINE_SOFTMAX_MOST_SUMS; i++) {
    const term_power *p = &all->at[i].power;
    if (p->most == r.m && p->base == like->power.base && p->scale == like->power.scale)
      r.sum[r.n++] = all->at[i];
  }
  arena_mark here = arena_save(ir_scratch(s->g));
  r.is_contracted = is_contracted(s, &r);
  arena_rewind(ir_scratch(s->g), here);
  if (choose_blocks(s, &r)) online_softmax_build(&r);
}

void online_softmax_apply(ir *g, const machine *m, values *v) {
  matching s = {.g = g, .machine = m, .values = v};
  sum_list all = {0};
  map done = {0};
  arena *work = ir_scratch(g);
  arena_mark here = arena_save(work);
  for (size_t i = 0; i < v->at.n; i++) {
    find_levels(&s, v->at.at[i]);
    find_readers(&s, v->at.at[i]);
  }
  for (size_t i = 0; i < v->at.n; i++) {
    online_softmax_sum t = {0};
    if (match_weighted_sum(&s, v->at.at[i], &t)) vec_push(work, &all, t);
  }
  for (size_t i = 0; i < all.n; i++) make_online(&s, &all, i, &done);
  arena_rewind(work, here);
}
