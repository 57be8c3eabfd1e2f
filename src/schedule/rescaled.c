/* RESCALE: the values that m and the sums become. What a block computes are ordinary values with
   one coordinate more, r₀; the scan carries the states. */
#include "schedule/prices.h"
#include "schedule/rescale.h"

#include "ir/binder.h"
#include "ir/subst.h"

#include <math.h>

/** The values that are made. */
typedef struct making {
  const rescaling *of;
  ir *g;
  arena *a;
  value *m;
  dtype type;
  value *s;     /* of a block; NULL: it is read where it is */
  value *most;  /* the largest of a block; */
  value *top;   /* n, after a block */
  value *power; /* e^(s − z) of a block */
} making;

static making making_of(const rescaling *of) {
  return (making){.of = of, .g = of->g, .a = of->a, .m = of->m, .type = of->type};
}

/* Lists of nodes. */

typedef struct list {
  const node **at;
  size_t n;
} list;

static list list_of(const making *r, size_t most) {
  return (list){arena_alloc(r->a, (most + 1) * sizeof(const node *)), 0};
}

static void add_all(list *l, const node *const from[], size_t n) {
  for (size_t i = 0; i < n; i++) l->at[l->n++] = from[i];
}

static void set_all(const making *r, map *with, const node *const from[], const node *const to[],
                    size_t n) {
  for (size_t i = 0; i < n; i++)
    if (from[i]->op == OP_RANGE) map_set(r->a, with, from[i], (void *)to[i]);
}

/* Elements. */

static const node *read(const making *r, const value *v, list at) {
  return index_make(r->g, (dtype)v->tensor->dtype, v->tensor, 0, at.n, at.at);
}

/** Fresh ranges for those that a block reduces over: r₁ for the one that is cut. */
static list inner_ranges(const making *r) {
  list to = list_of(r, r->m->n_reduced);
  for (size_t i = 0; i < r->m->n_reduced; i++) {
    const node *extent = range_extent(r->m->reduced[i]);
    if (i == r->of->cut) extent = ix_const(r->g, r->of->block);
    to.at[to.n++] = range_make(r->g, extent, KIND_LOOP);
  }
  return to;
}

static list inner_sizes(const making *r) {
  list ranges = inner_ranges(r);
  for (size_t i = 0; i < ranges.n; i++) ranges.at[i] = range_extent(ranges.at[i]);
  return ranges;
}

/** r, which may be outside in the last block. */
static const node *index_in(const making *r, const node *block, const node *const inner[]) {
  return ix_add(r->g, ix_scale(r->g, block, r->of->block), inner[r->of->cut]);
}

/** A term of a reduction in a block: for the coordinates `c`, `r₀`, and `inner`. */
static const node *in_block(const making *r, const value *t, map *with, const node *block,
                            const node *const inner[], const node *term) {
  for (size_t i = 0; i < t->n_reduced; i++)
    map_set(r->a, with, t->reduced[i],
            (void *)(i == r->of->cut ? index_in(r, block, inner) : inner[i]));
  return subst_ranges(r->g, term, with);
}

/** A term where r is inside, else what a reduction starts with. */
static const node *inside(const making *r, const node *block, const node *const inner[],
                          const node *term, double outside) {
  const node *extent = range_extent(r->m->reduced[r->of->cut]);
  const node *is = ix_lt(r->g, index_in(r, block, inner), extent);
  if (node_is_const(is)) return term;
  return ir_op3(r->g, OP_WHERE, is, term, ir_const(r->g, r->type, outside));
}

/** s at the coordinates c of m, r₀ and those inside of a block. */
static const node *s_at(const making *r, const node *const c[], const node *block,
                        const node *const inner[]) {
  if (r->s) {
    list at = list_of(r, r->m->rank + 1 + r->m->n_reduced);
    add_all(&at, c, r->m->rank);
    add_all(&at, &block, 1);
    add_all(&at, inner, r->m->n_reduced);
    return read(r, r->s, at);
  }
  map with = {0};
  set_all(r, &with, r->m->coords, c, r->m->rank);
  const node *s = in_block(r, r->m, &with, block, inner, r->m->body);
  return inside(r, block, inner, s, -INFINITY);
}

static const node *at_block(const making *r, const value *v, const node *const c[],
                            const node *block) {
  list at = list_of(r, r->m->rank + 1);
  add_all(&at, c, r->m->rank);
  add_all(&at, &block, 1);
  return read(r, v, at);
}

/** z, after a block. */
static const node *guarded(const making *r, const node *const c[], const node *block) {
  const node *top = at_block(r, r->top, c, block);
  const node *least = ir_const(r->g, r->type, -INFINITY);
  return ir_op3(r->g, OP_WHERE, ir_op2(r->g, OP_EQ, top, least), ir_const(r->g, r->type, 0), top);
}

static const node *state(const making *r, const node *block, size_t i, size_t rank,
                         const node *const at[]) {
  const node *s = state_make(r->g, r->type, block, (int64_t)i);
  return index_make(r->g, r->type, s, 0, rank, at);
}

/* Values for a block. */

/** A value over m's coordinates, r₀ and others. */
static value *over_blocks(making *r, op named, const node *const dims[], size_t n) {
  list all = list_of(r, r->m->rank + 1 + n);
  const node *blocks = ix_const(r->g, r->of->blocks);
  add_all(&all, r->m->dims, r->m->rank);
  add_all(&all, &blocks, 1);
  add_all(&all, dims, n);
  return value_make(r->g, r->of->values, named, r->type, all.n, all.at);
}

static void reduce_over(value *v, op o, list ranges) {
  v->reduce = o;
  v->reduced = ranges.at;
  v->n_reduced = ranges.n;
}

static double bytes_of(const making *r, list sizes) {
  double bytes = (double)dtype_bytes(r->type);
  for (size_t i = 0; i < sizes.n; i++) bytes *= price_size(sizes.at[i]);
  return bytes;
}

/** s is read where it is if that is memory; else it is an array of a block. */
static void make_s(making *r) {
  const node *s = term_original(r->g, r->of->values, r->m->body);
  const value *from = s->op == OP_INDEX ? map_get(&r->of->values->of, s->src[0]) : NULL;
  if (s->op == OP_INDEX && (!from || from->stores.n)) return;
  size_t rank = r->m->rank;
  list sizes = inner_sizes(r);
  value *v = over_blocks(r, OP_CAST, sizes.at, sizes.n);
  value_set_body(r->g, r->of->values, v, s_at(r, v->coords, v->coords[rank], v->coords + rank + 1));
  r->s = v;
}

static void make_most(making *r) {
  size_t rank = r->m->rank;
  list inner = inner_ranges(r);
  r->most = over_blocks(r, OP_MAX, NULL, 0);
  reduce_over(r->most, OP_MAX, inner);
  const node *const *c = r->most->coords;
  value_set_body(r->g, r->of->values, r->most, s_at(r, c, c[rank], inner.at));
  r->top = over_blocks(r, OP_MAX, NULL, 0);
  r->top->is_inside = r->top->is_array = true;
  r->top->room = (value_room){.nests = 1};
  c = r->top->coords;
  const node *block = c[rank], *most = at_block(r, r->most, c, block);
  value_set_body(r->g, r->of->values, r->top,
                 ir_op2(r->g, OP_MAX, state(r, block, 0, 0, NULL), most));
}

/* Sums. */

bool rescaled_axes(const rescaled_sum *t, const value *m, size_t axis[]) {
  uint64_t seen = 0;
  for (size_t i = 0; i < m->rank; i++) {
    const node *x = t->power.m->src[1 + i];
    axis[i] = SIZE_MAX;
    if (node_is_bits(m->dims[i], 1)) continue;
    for (size_t k = 0; k < t->v->rank; k++)
      if (t->v->coords[k] == x) axis[i] = k;
    if (x->op != OP_RANGE || axis[i] == SIZE_MAX || seen >> axis[i] & 1) return false;
    if (t->v->dims[axis[i]] != m->dims[i]) return false;
    seen |= UINT64_C(1) << axis[i];
  }
  return true;
}

/** The other axes, which the state of a sum has. */
static list state_axes(const making *r, const rescaled_sum *t, const node *const from[]) {
  size_t axis[RESCALE_MOST_AXES];
  list rest = list_of(r, t->v->rank);
  rescaled_axes(t, r->m, axis);
  for (size_t k = 0; k < t->v->rank; k++) {
    bool is_own = node_is_bits(t->v->dims[k], 1);
    for (size_t i = 0; i < r->m->rank; i++) is_own |= axis[i] == k;
    if (!is_own) rest.at[rest.n++] = from[k];
  }
  return rest;
}

/** What stands for a sum's coordinates, over those of m and those of its state. */
static map sum_coords(const making *r, const rescaled_sum *t, const node *const c[],
                      const node *const e[]) {
  map with = {0};
  size_t axis[RESCALE_MOST_AXES];
  rescaled_axes(t, r->m, axis);
  for (size_t i = 0; i < r->m->rank; i++)
    if (axis[i] != SIZE_MAX) map_set(r->a, &with, t->v->coords[axis[i]], (void *)c[i]);
  list rest = state_axes(r, t, t->v->coords);
  set_all(r, &with, rest.at, e, rest.n);
  return with;
}

static void make_power(making *r) {
  size_t rank = r->m->rank;
  list sizes = inner_sizes(r);
  const term_power *p = &r->of->sum[0].power;
  value *v = r->power = over_blocks(r, p->base, sizes.at, sizes.n);
  const node *const *c = v->coords;
  const node *s = s_at(r, c, c[rank], c + rank + 1);
  const node *d = ir_op2(r->g, OP_SUB, s, guarded(r, c, c[rank]));
  v->is_inside = true;
  v->room = (value_room){.nests = 1, .ranges = sizes.n, .arguments = 1};
  v->room.scratch = bytes_of(r, sizes);
  v->is_array = r->of->n > 1 || state_axes(r, &r->of->sum[0], r->of->sum[0].v->coords).n;
  for (size_t i = 0; i < sizes.n; i++) v->array |= UINT64_C(1) << (rank + 1 + i);
  value_set_body(r->g, r->of->values, v, term_raised(r->g, p, d));
}

/** The sum over a block. */
static value *sum_of_block(making *r, const rescaled_sum *t) {
  size_t rank = r->m->rank;
  list sizes = state_axes(r, t, t->v->dims), inner = inner_ranges(r);
  value *v = over_blocks(r, OP_ADD, sizes.at, sizes.n);
  const node *const *c = v->coords;
  reduce_over(v, OP_ADD, inner);
  v->is_inside = true;
  v->room = (value_room){1 + (sizes.n > 0), inner.n + sizes.n, t->rest.n, 0};
  if (sizes.n) v->room.scratch = bytes_of(r, sizes);
  v->is_array = sizes.n > 0;
  for (size_t i = 0; i < sizes.n; i++) v->array |= UINT64_C(1) << (rank + 1 + i);
  list at = list_of(r, rank + 1 + inner.n);
  add_all(&at, c, rank + 1);
  add_all(&at, inner.at, inner.n);
  const node *term = read(r, r->power, at);
  if (t->rest.n) {
    map with = sum_coords(r, t, c, c + rank + 1);
    const node *rest = term_of(r->g, r->type, &t->rest);
    rest = in_block(r, t->v, &with, c[rank], inner.at, rest);
    term = inside(r, c[rank], inner.at, ir_op2(r->g, OP_MUL, term, rest), 0);
  }
  value_set_body(r->g, r->of->values, v, term);
  return v;
}

static struct scan_state sum_state(making *r, const value *scan, size_t i) {
  const rescaled_sum *t = &r->of->sum[i];
  const node *block = scan->reduced[0], *const *c = scan->coords;
  value *of_block = sum_of_block(r, t);
  size_t rank = r->m->rank, n = of_block->rank - rank - 1;
  struct scan_state s = {.init = ir_const(r->g, r->type, 0), .rank = n};
  s.dims = of_block->dims + rank + 1;
  list coords = list_of(r, n), at = list_of(r, of_block->rank);
  for (size_t k = 0; k < n; k++) coords.at[coords.n++] = range_make(r->g, s.dims[k], KIND_LOOP);
  s.coords = coords.at;
  add_all(&at, c, rank);
  add_all(&at, &block, 1);
  add_all(&at, coords.at, n);
  const node *grown = ir_op2(r->g, OP_SUB, state(r, block, 0, 0, NULL), guarded(r, c, block));
  const node *kept = ir_op2(r->g, OP_MUL, state(r, block, i + 1, n, s.coords),
                            term_raised(r->g, &t->power, grown));
  s.step = ir_op2(r->g, OP_ADD, kept, read(r, of_block, at));
  return s;
}

double rescaled_elements(const rescaling *of) {
  making all = making_of(of), *r = &all;
  double elements = 0;
  for (size_t i = 0; i < r->of->n; i++) {
    double each = 1;
    list sizes = state_axes(r, &r->of->sum[i], r->of->sum[i].v->dims);
    for (size_t k = 0; k < sizes.n; k++) each *= price_size(sizes.at[k]);
    elements += sizes.n ? 3 * each : 0;
  }
  return elements;
}

/* The scan. */

static value *make_scan(making *r) {
  value *v = value_make(r->g, r->of->values, OP_MAX, r->type, r->m->rank, r->m->dims);
  value_scan *scan = arena_calloc(r->a, 1, sizeof *scan);
  const node **block = arena_alloc(r->a, sizeof *block);
  const node **steps = arena_alloc(r->a, (r->of->n + 1) * sizeof *steps);
  *block = range_make(r->g, ix_const(r->g, r->of->blocks), KIND_LOOP);
  reduce_over(v, OP_MAX, (list){block, 1});
  scan->n = r->of->n + 1;
  scan->state = arena_alloc(r->a, scan->n * sizeof *scan->state);
  scan->state[0] = (struct scan_state){.init = ir_const(r->g, r->type, -INFINITY),
                                       .step = at_block(r, r->top, v->coords, *block)};
  for (size_t i = 0; i < r->of->n; i++) scan->state[i + 1] = sum_state(r, v, i);
  for (size_t i = 0; i < scan->n; i++) steps[i] = scan->state[i].step;
  v->scan = scan;
  v->room = (value_room){.nests = 3, .ranges = 1 + 2 * r->m->n_reduced, .arguments = 2};
  for (size_t i = 0; i < scan->n; i++) {
    v->room.nests += 3;
    v->room.ranges += r->m->n_reduced + 2 * scan->state[i].rank;
    if (i) v->room.arguments += r->of->sum[i - 1].rest.n;
  }
  v->room.scratch = bytes_of(r, inner_sizes(r)) * (r->s ? 2 : 1);
  v->room.scratch += rescaled_elements(r->of) * (double)dtype_bytes(r->type);
  value_set_body(r->g, r->of->values, v, ir_node(r->g, OP_GROUP, DT_VOID, steps, scan->n, NULL, 0));
  return v;
}

static const node *result(const making *r, const value *scan, size_t i, const node *const c[],
                          list e) {
  list at = list_of(r, r->m->rank + e.n);
  add_all(&at, c, r->m->rank);
  add_all(&at, e.at, e.n);
  return index_make(r->g, r->type, scan->tensor, (int64_t)i, at.n, at.at);
}

static void set_result(making *r, value *v, const node *body) {
  v->reduce = OP_LIMIT;
  v->n_reduced = 0;
  value_set_body(r->g, r->of->values, v, body);
}

void rescaled_make(const rescaling *of) {
  making all = making_of(of), *r = &all;
  make_s(r);
  make_most(r);
  make_power(r);
  value *scan = make_scan(r);
  for (size_t i = 0; i < r->of->n; i++) {
    const rescaled_sum *t = &r->of->sum[i];
    const node *const *c = t->power.m->src + 1;
    const node *m = result(r, scan, 0, c, (list){0});
    const node *none = ir_op2(r->g, OP_EQ, m, ir_const(r->g, r->type, -INFINITY));
    const node *sum = result(r, scan, i + 1, c, state_axes(r, t, t->v->coords));
    set_result(r, t->v, ir_op3(r->g, OP_WHERE, none, ir_const(r->g, r->type, NAN), sum));
  }
  set_result(r, r->m, result(r, scan, 0, r->m->coords, (list){0}));
}
