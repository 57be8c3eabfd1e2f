/* RESCALE: m = max s and sums T_j = Σ e^(s − m)·v_j over the same ranges read s twice, and so need
   all of it at once. They become one scan over blocks of a range, r = r₀·B + r₁:

     n  = max(m, max s)             over the block, r₁; m starts as −∞
     z  = n = −∞ ? 0 : n
     T_j = T_j · e^(m − z) + Σ e^(s − z)·v_j          over the block; T_j starts as 0
     m  = n

   (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). What a block
   computes are ordinary values with one coordinate more, r₀. Where all s are −∞, T_j is NaN at the
   end, as it is by the formula for T_j. */
#include "schedule/rescale.h"

#include "schedule/law_groups.h"

#include "ir/binder.h"

enum {
  SHARED_ROWS = 32, /* rows that are computed at once, where they share operands */
  LEAST_BLOCK = 2,
  LEAST_BLOCKS = 2,
  FEW = 32 /* indices of a block that are too few to share operands for */
};

/* Where it may be done. */

typedef struct search {
  ir *g;
  const machine *machine;
  values *values;
  map levels;  /* value → how many reductions are behind it, itself included */
  map readers; /* value → values_read: those that read it */
} search;

typedef VEC(value *) values_read;

static size_t level_of(const search *s, const node *tensor) {
  const value *v = map_get(&s->values->of, tensor);
  return v ? (size_t)(uintptr_t)map_get(&s->levels, v) : 0;
}

/** Of values in their order, sources first. */
static void find_levels(search *s, const value *v) {
  size_t level = 0;
  for (size_t i = 0; i < v->sources.n; i++) {
    size_t of = level_of(s, v->sources.at[i]);
    if (of > level) level = of;
  }
  level += value_is_reduction(v);
  map_set(ir_arena(s->g), &s->levels, v, (void *)(uintptr_t)level);
}

static bool enters(const node *n, void *values) { return !map_has(values, n); }

static void find_readers(search *s, value *v) {
  for (size_t i = 0; i < v->sources.n; i++) {
    const value *from = map_get(&s->values->of, v->sources.at[i]);
    values_read *l = from ? map_get(&s->readers, from) : NULL;
    if (!from) continue;
    if (!l)
      map_set(ir_arena(s->g), &s->readers, from, l = arena_calloc(ir_arena(s->g), 1, sizeof *l));
    vec_push(ir_arena(s->g), l, v);
  }
}

/** Whether what is read may be computed later than m, and is not stored over meanwhile. */
static bool may_be_inside(const search *s, const value *m, const node *x, bool before_m) {
  size_t level = (size_t)(uintptr_t)map_get(&s->levels, m);
  node_list order = topo_sort(ir_arena(s->g), &x, 1, enters, &s->values->of);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_INDEX) continue;
    const node *tensor = order.at[i]->src[0];
    if (map_has(&s->values->overwriter, tensor)) return false;
    if (before_m && level_of(s, tensor) >= level) return false;
  }
  return true;
}

/** Fills in a sum's factors; false: it is no sum of such powers. */
static bool is_rescaled(const search *s, value *v, rescaled_sum *t) {
  dtype type = (dtype)v->tensor->dtype;
  bool found = false;
  if (v->reduce != OP_ADD || !dtype_is_float(type) || dtype_bytes(type) < 4) return false;
  if (v->rank > RESCALE_MOST_AXES || !term_factors(s->g, s->values, v->body, &t->rest))
    return false;
  t->v = v;
  for (size_t i = 0; i < t->rest.n && !found; i++) {
    term_factor f = t->rest.at[i];
    found = !f.divides && term_is_power(s->g, s->values, v, f.at, &t->power);
    if (found) t->rest.at[i] = t->rest.at[--t->rest.n];
  }
  size_t axis[RESCALE_MOST_AXES];
  const value *m = t->power.most;
  if (!found || m->tensor->dtype != type || m->rank > RESCALE_MOST_AXES ||
      !rescaled_axes(t, m, axis))
    return false;
  if (!may_be_inside(s, m, m->body, false)) return false;
  for (size_t i = 0; i < t->rest.n; i++)
    if (!may_be_inside(s, m, t->rest.at[i].at, true)) return false;
  return true;
}

/* What s is. */

static bool is_sum(const rescaling *r, const value *v) {
  for (size_t i = 0; i < r->n; i++)
    if (r->sum[i].v == v) return true;
  return false;
}

/** Whether something else than m and the sums is computed from a value: all of it is needed then.
 */
static bool is_used_elsewhere(const search *s, const rescaling *r, const value *v) {
  VEC(const value *) open = {0};
  map seen = {0};
  vec_push(r->a, &open, v);
  for (size_t i = 0; i < open.n; i++) {
    const values_read *l = map_get(&s->readers, open.at[i]);
    if (open.at[i]->stores.n || i == TERM_MOST_OPENED) return true;
    for (size_t k = 0; l && k < l->n; k++) {
      value *reader = l->at[k];
      if (reader == r->m || is_sum(r, reader) || map_has(&seen, reader)) continue;
      if (value_is_reduction(reader) || reader->only_loaded) return true;
      map_set(r->a, &seen, reader, reader);
      vec_push(r->a, &open, reader);
    }
  }
  return false;
}

/** Whether elements of s are computed from sums or the like, for several rows at once. Such as are
    needed elsewhere too are in memory: s is read then, as any other is. */
static bool is_contracted(const search *s, const rescaling *r) {
  node_list open = {0};
  arena *a = ir_arena(s->g);
  vec_push(a, &open, r->m->body);
  for (size_t i = 0; i < open.n && i < TERM_MOST_OPENED; i++) {
    node_list order = topo_sort(a, &open.at[i], 1, enters, &s->values->of);
    for (size_t k = 0; k < order.n; k++) {
      const node *x = order.at[k], *inside = term_opened(s->g, s->values, x);
      const value *from = x->op == OP_INDEX ? map_get(&s->values->of, x->src[0]) : NULL;
      bool is_computed = from && value_is_reduction(from) && term_varies(r->m, x);
      if (is_computed && !is_used_elsewhere(s, r, from)) return true;
      if (inside) vec_push(a, &open, inside);
    }
  }
  return false;
}

/* Where it pays, and blocks. */

/** The most indices of a block for which there is room; 0: it does not pay. An s that is
   contracted, and what is computed from it, are arrays, for several rows at once if there is room;
   another s is read again, from where it is. */
static double room_for(const search *s, const rescaling *r, double row) {
  double bytes = (double)dtype_bytes(r->type), all = s->machine->scratch / bytes;
  double own = rescaled_elements(r), each = all / SHARED_ROWS;
  if (own > all / 2) return 0;
  if (!r->is_contracted)
    return row * bytes <= s->machine->cache[1] ? 0 : s->machine->cache[0] / bytes / 2;
  if (2 * row <= each) return 0;
  return (each - own) / 2 >= FEW ? (each - own) / 2 : (all - own) / 2;
}

/** The largest block from `least` to `most` that divides n; 0: there is none. */
static int64_t divisor(int64_t n, int64_t least, int64_t most) {
  for (int64_t b = most; b >= least && b >= LEAST_BLOCK; b--)
    if (n % b == 0) return b;
  return 0;
}

/** Finds the blocks of the longest range that is reduced over: such as divide it, if there are, and
    if s is worth conditions, such that the last one is as full as can be. */
static bool find_blocks(const search *s, rescaling *r) {
  double row = 1, longest = 0;
  for (size_t i = 0; i < r->m->n_reduced; i++) {
    const node *extent = range_extent(r->m->reduced[i]);
    double size = price_size(extent);
    row *= size;
    if (extent->lo < 1) return false;
    if (size > longest) longest = size, r->cut = i;
  }
  const node *extent = range_extent(r->m->reduced[r->cut]);
  if (!node_is_const(extent)) return false;
  double room = room_for(s, r, row) / (row / longest), half = longest / LEAST_BLOCKS;
  int64_t n = node_int(extent), b = (int64_t)(room < half ? room : half);
  if (b < LEAST_BLOCK) return false;
  r->block = divisor(n, r->is_contracted ? b / 2 + 1 : b / 16, b);
  if (!r->block && !r->is_contracted) return false;
  if (!r->block) {
    r->blocks = (n + b - 1) / b;
    r->block = (n + r->blocks - 1) / r->blocks;
  }
  r->blocks = (n + r->block - 1) / r->block;
  return true;
}

/* All. */

typedef VEC(rescaled_sum) sums;

static void rescale(search *s, const sums *all, size_t first, map *done) {
  rescaling r = {.g = s->g, .a = ir_arena(s->g), .values = s->values};
  const rescaled_sum *like = &all->at[first];
  r.m = like->power.most;
  r.type = (dtype)r.m->tensor->dtype;
  if (map_has(done, r.m)) return;
  map_set(r.a, done, r.m, r.m);
  for (size_t i = first; i < all->n && r.n < RESCALE_MOST_SUMS; i++) {
    const term_power *p = &all->at[i].power;
    if (p->most == r.m && p->base == like->power.base && p->scale == like->power.scale)
      r.sum[r.n++] = all->at[i];
  }
  r.is_contracted = is_contracted(s, &r);
  if (find_blocks(s, &r)) rescaled_make(&r);
}

void schedule_rescale(ir *g, const machine *m, values *v) {
  search s = {.g = g, .machine = m, .values = v};
  sums all = {0};
  map done = {0};
  for (size_t i = 0; i < v->at.n; i++) {
    find_levels(&s, v->at.at[i]);
    find_readers(&s, v->at.at[i]);
  }
  for (size_t i = 0; i < v->at.n; i++) {
    rescaled_sum t = {0};
    if (is_rescaled(&s, v->at.at[i], &t)) vec_push(ir_arena(g), &all, t);
  }
  for (size_t i = 0; i < all.n; i++) rescale(&s, &all, i, &done);
}
