/* Builds the values of the scan over blocks that online softmax puts in the place of a maximum m
   and its weighted sums. Values of a block are ordinary values over m's coordinates and r₀, the
   block; the scan carries m and the sums as states. */
#include "schedule/values/online_softmax_scan.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

#include <math.h>

/** The values built so far. */
typedef struct scan_builder {
  const online_softmax *of;
  ir *g;
  arena *a;
  value *m;
  dtype type;
  value *s;     /* s of a block; NULL: it is read where it is */
  value *most;  /* the maximum of a block */
  value *top;   /* n, after a block */
  value *power; /* e^(s − z) of a block */
} scan_builder;

static scan_builder builder_of(const online_softmax *of) {
  return (scan_builder){.of = of, .g = of->g, .a = of->a, .m = of->m, .type = of->type};
}

/* Lists of nodes. */

typedef struct nodes {
  const node **at;
  size_t n;
} nodes;

static nodes nodes_new(const scan_builder *r, size_t most) {
  return (nodes){arena_alloc(r->a, (most + 1) * sizeof(const node *)), 0};
}

static void nodes_add(nodes *l, const node *const from[], size_t n) {
  for (size_t i = 0; i < n; i++) l->at[l->n++] = from[i];
}

static void map_ranges(const scan_builder *r, map *with, const node *const from[],
                       const node *const to[], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (from[i]->op == OP_RANGE) map_set(r->a, with, from[i], (void *)to[i]);
}

/* Elements. */

static const node *read_value(const scan_builder *r, const value *v, nodes at) {
  return index_make(r->g, (dtype)v->tensor->dtype, v->tensor, 0, at.n, at.at);
}

/** New ranges for a reduction within a block: r₁ in the place of the one that is split. */
static nodes block_ranges(const scan_builder *r) {
  nodes to = nodes_new(r, r->m->reduction.n);
  for (size_t i = 0; i < r->m->reduction.n; i++) {
    const node *extent = range_extent(r->m->reduction.ranges[i]);
    if (i == r->of->cut) extent = ix_const(r->g, r->of->block);
    to.at[to.n++] = range_make(r->g, extent, KIND_LOOP);
  }
  return to;
}

static nodes block_sizes(const scan_builder *r) {
  nodes ranges = block_ranges(r);
  for (size_t i = 0; i < ranges.n; i++) ranges.at[i] = range_extent(ranges.at[i]);
  return ranges;
}

/** r = r₀·B + r₁, which may be outside in the last block. */
static const node *index_in_block(const scan_builder *r, const node *block,
                                  const node *const inner[]) {
  return ix_add(r->g, ix_scale(r->g, block, r->of->block), inner[r->of->cut]);
}

/** A term of the reduction t, with its reduced ranges replaced by those of a block, and `with`. */
static const node *substitute_block(const scan_builder *r, const value *t, map *with,
                                    const node *block, const node *const inner[],
                                    const node *term) {
  for (size_t i = 0; i < t->reduction.n; i++)
    map_set(r->a, with, t->reduction.ranges[i],
            (void *)(i == r->of->cut ? index_in_block(r, block, inner) : inner[i]));
  return subst_ranges(r->g, term, with);
}

/** A term where r is inside, else the neutral element `outside`. */
static const node *mask_outside(const scan_builder *r, const node *block, const node *const inner[],
                                const node *term, double outside) {
  const node *extent = range_extent(r->m->reduction.ranges[r->of->cut]);
  const node *is = ix_lt(r->g, index_in_block(r, block, inner), extent);
  if (node_is_const(is)) return term;
  return ir_op3(r->g, OP_WHERE, is, term, ir_const(r->g, r->type, outside));
}

/** s at the coordinates c of m, the block r₀ and the ranges inside of it. */
static const node *s_at(const scan_builder *r, const node *const c[], const node *block,
                        const node *const inner[]) {
  if (r->s) {
    nodes at = nodes_new(r, r->m->rank + 1 + r->m->reduction.n);
    nodes_add(&at, c, r->m->rank);
    nodes_add(&at, &block, 1);
    nodes_add(&at, inner, r->m->reduction.n);
    return read_value(r, r->s, at);
  }
  map with = {0};
  map_ranges(r, &with, r->m->coords, c, r->m->rank);
  const node *s = substitute_block(r, r->m, &with, block, inner, r->m->body);
  return mask_outside(r, block, inner, s, -INFINITY);
}

static const node *read_at_block(const scan_builder *r, const value *v, const node *const c[],
                                 const node *block) {
  nodes at = nodes_new(r, r->m->rank + 1);
  nodes_add(&at, c, r->m->rank);
  nodes_add(&at, &block, 1);
  return read_value(r, v, at);
}

/** z of a block: n, or 0 where that is −∞. */
static const node *finite_maximum(const scan_builder *r, const node *const c[], const node *block) {
  const node *top = read_at_block(r, r->top, c, block);
  const node *least = ir_const(r->g, r->type, -INFINITY);
  return ir_op3(r->g, OP_WHERE, ir_op2(r->g, OP_EQ, top, least), ir_const(r->g, r->type, 0), top);
}

static const node *read_state(const scan_builder *r, const node *block, size_t i, size_t rank,
                              const node *const at[]) {
  const node *s = fold_state_make(r->g, r->type, block, (int64_t)i);
  return index_make(r->g, r->type, s, 0, rank, at);
}

/* Values for a block. */

/** Adds a value over m's coordinates, r₀ and `n` other axes. */
static value *add_block_value(scan_builder *r, op named, const node *const dims[], size_t n) {
  nodes all = nodes_new(r, r->m->rank + 1 + n);
  const node *blocks = ix_const(r->g, r->of->blocks);
  nodes_add(&all, r->m->dims, r->m->rank);
  nodes_add(&all, &blocks, 1);
  nodes_add(&all, dims, n);
  return value_make(r->g, r->of->values, named, r->type, all.n, all.at);
}

static void set_reduction(value *v, op o, nodes ranges) {
  v->reduction.op = o;
  v->reduction.ranges = ranges.at;
  v->reduction.n = ranges.n;
}

static double bytes_of(const scan_builder *r, nodes sizes) {
  double bytes = (double)dtype_bytes(r->type);
  for (size_t i = 0; i < sizes.n; i++) bytes *= ix_likely(sizes.at[i]);
  return bytes;
}

/** Makes s of a block an array, unless it is in memory: then it is read there. */
static void add_scores(scan_builder *r) {
  const node *s = term_skip_copies(r->g, r->of->values, r->m->body);
  const value *from = s->op == OP_INDEX ? map_get(&r->of->values->of, s->src[0]) : NULL;
  if (s->op == OP_INDEX && (!from || from->memory.stores.n)) return;
  size_t rank = r->m->rank;
  nodes sizes = block_sizes(r);
  value *v = add_block_value(r, OP_CAST, sizes.at, sizes.n);
  value_set_body(r->g, r->of->values, v, s_at(r, v->coords, v->coords[rank], v->coords + rank + 1));
  r->s = v;
}

static void add_maximum(scan_builder *r) {
  size_t rank = r->m->rank;
  nodes inner = block_ranges(r);
  r->most = add_block_value(r, OP_MAX, NULL, 0);
  set_reduction(r->most, OP_MAX, inner);
  const node *const *c = r->most->coords;
  value_set_body(r->g, r->of->values, r->most, s_at(r, c, c[rank], inner.at));
  r->top = add_block_value(r, OP_MAX, NULL, 0);
  r->top->is_in_scan = r->top->local.is_array = true;
  r->top->local.reserve = (value_reserve){.nests = 1};
  c = r->top->coords;
  const node *block = c[rank], *most = read_at_block(r, r->most, c, block);
  value_set_body(r->g, r->of->values, r->top,
                 ir_op2(r->g, OP_MAX, read_state(r, block, 0, 0, NULL), most));
}

/* Sums. */

bool online_softmax_axes(const online_softmax_sum *t, const value *m, size_t axis[]) {
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

/** The entries of `from` for a sum's axes that m lacks: those of its state. */
static nodes state_axes(const scan_builder *r, const online_softmax_sum *t,
                        const node *const from[]) {
  size_t axis[ONLINE_SOFTMAX_MOST_AXES];
  nodes rest = nodes_new(r, t->v->rank);
  online_softmax_axes(t, r->m, axis);
  for (size_t k = 0; k < t->v->rank; k++) {
    bool is_own = node_is_bits(t->v->dims[k], 1);
    for (size_t i = 0; i < r->m->rank; i++) is_own |= axis[i] == k;
    if (!is_own) rest.at[rest.n++] = from[k];
  }
  return rest;
}

/** Maps a sum's coordinates to those of m (`c`) and of its state (`e`). */
static map sum_coords(const scan_builder *r, const online_softmax_sum *t, const node *const c[],
                      const node *const e[]) {
  map with = {0};
  size_t axis[ONLINE_SOFTMAX_MOST_AXES];
  online_softmax_axes(t, r->m, axis);
  for (size_t i = 0; i < r->m->rank; i++)
    if (axis[i] != SIZE_MAX) map_set(r->a, &with, t->v->coords[axis[i]], (void *)c[i]);
  nodes rest = state_axes(r, t, t->v->coords);
  map_ranges(r, &with, rest.at, e, rest.n);
  return with;
}

static void add_power(scan_builder *r) {
  size_t rank = r->m->rank;
  nodes sizes = block_sizes(r);
  const term_power *p = &r->of->sum[0].power;
  value *v = r->power = add_block_value(r, p->base, sizes.at, sizes.n);
  const node *const *c = v->coords;
  const node *s = s_at(r, c, c[rank], c + rank + 1);
  const node *d = ir_op2(r->g, OP_SUB, s, finite_maximum(r, c, c[rank]));
  v->is_in_scan = true;
  v->local.reserve = (value_reserve){.nests = 1, .ranges = sizes.n, .arguments = 1};
  v->local.reserve.scratch = bytes_of(r, sizes);
  v->local.is_array = r->of->n > 1 || state_axes(r, &r->of->sum[0], r->of->sum[0].v->coords).n;
  for (size_t i = 0; i < sizes.n; i++) v->local.axes |= UINT64_C(1) << (rank + 1 + i);
  value_set_body(r->g, r->of->values, v, term_make_power(r->g, p, d));
}

/** Adds the sum over a block. */
static value *add_block_sum(scan_builder *r, const online_softmax_sum *t) {
  size_t rank = r->m->rank;
  nodes sizes = state_axes(r, t, t->v->dims), inner = block_ranges(r);
  value *v = add_block_value(r, OP_ADD, sizes.at, sizes.n);
  const node *const *c = v->coords;
  set_reduction(v, OP_ADD, inner);
  v->is_in_scan = true;
  v->local.reserve = (value_reserve){1 + (sizes.n > 0), inner.n + sizes.n, t->term.n - 1, 0};
  if (sizes.n) v->local.reserve.scratch = bytes_of(r, sizes);
  v->local.is_array = sizes.n > 0;
  for (size_t i = 0; i < sizes.n; i++) v->local.axes |= UINT64_C(1) << (rank + 1 + i);
  nodes at = nodes_new(r, rank + 1 + inner.n);
  nodes_add(&at, c, rank + 1);
  nodes_add(&at, inner.at, inner.n);
  term_product product = t->term;
  product.at[t->power_at].at = read_value(r, r->power, at);
  map with = sum_coords(r, t, c, c + rank + 1);
  const node *term = term_build(r->g, r->type, &product);
  term = substitute_block(r, t->v, &with, c[rank], inner.at, term);
  if (product.n > 1) term = mask_outside(r, c[rank], inner.at, term, 0);
  value_set_body(r->g, r->of->values, v, term);
  return v;
}

static struct scan_state add_sum_state(scan_builder *r, const value *scan, size_t i) {
  const online_softmax_sum *t = &r->of->sum[i];
  const node *block = scan->reduction.ranges[0], *const *c = scan->coords;
  value *of_block = add_block_sum(r, t);
  size_t rank = r->m->rank, n = of_block->rank - rank - 1;
  struct scan_state s = {.init = ir_const(r->g, r->type, 0), .rank = n};
  s.dims = of_block->dims + rank + 1;
  nodes coords = nodes_new(r, n), at = nodes_new(r, of_block->rank);
  for (size_t k = 0; k < n; k++) coords.at[coords.n++] = range_make(r->g, s.dims[k], KIND_LOOP);
  s.coords = coords.at;
  nodes_add(&at, c, rank);
  nodes_add(&at, &block, 1);
  nodes_add(&at, coords.at, n);
  const node *grown =
      ir_op2(r->g, OP_SUB, read_state(r, block, 0, 0, NULL), finite_maximum(r, c, block));
  const node *kept = ir_op2(r->g, OP_MUL, read_state(r, block, i + 1, n, s.coords),
                            term_make_power(r->g, &t->power, grown));
  s.step = ir_op2(r->g, OP_ADD, kept, read_value(r, of_block, at));
  return s;
}

double online_softmax_row_elements(const online_softmax *of) {
  scan_builder all = builder_of(of), *r = &all;
  double elements = 0;
  for (size_t i = 0; i < r->of->n; i++) {
    double each = 1;
    nodes sizes = state_axes(r, &r->of->sum[i], r->of->sum[i].v->dims);
    for (size_t k = 0; k < sizes.n; k++) each *= ix_likely(sizes.at[k]);
    elements += sizes.n ? 3 * each : 0;
  }
  return elements;
}

/* The scan. */

static value *add_scan(scan_builder *r) {
  value *v = value_make(r->g, r->of->values, OP_MAX, r->type, r->m->rank, r->m->dims);
  value_scan *scan = arena_calloc(r->a, 1, sizeof *scan);
  const node **block = arena_alloc(r->a, sizeof *block);
  const node **steps = arena_alloc(r->a, (r->of->n + 1) * sizeof *steps);
  *block = range_make(r->g, ix_const(r->g, r->of->blocks), KIND_LOOP);
  set_reduction(v, OP_MAX, (nodes){block, 1});
  scan->n = r->of->n + 1;
  scan->state = arena_alloc(r->a, scan->n * sizeof *scan->state);
  scan->state[0] = (struct scan_state){.init = ir_const(r->g, r->type, -INFINITY),
                                       .step = read_at_block(r, r->top, v->coords, *block)};
  for (size_t i = 0; i < r->of->n; i++) scan->state[i + 1] = add_sum_state(r, v, i);
  for (size_t i = 0; i < scan->n; i++) steps[i] = scan->state[i].step;
  v->scan = scan;
  v->local.reserve =
      (value_reserve){.nests = 3, .ranges = 1 + 2 * r->m->reduction.n, .arguments = 2};
  for (size_t i = 0; i < scan->n; i++) {
    v->local.reserve.nests += 3;
    v->local.reserve.ranges += r->m->reduction.n + 2 * scan->state[i].rank;
    if (i) v->local.reserve.arguments += r->of->sum[i - 1].term.n - 1;
  }
  v->local.reserve.scratch = bytes_of(r, block_sizes(r)) * (r->s ? 2 : 1);
  v->local.reserve.scratch += online_softmax_row_elements(r->of) * (double)dtype_bytes(r->type);
  value_set_body(r->g, r->of->values, v, ir_node(r->g, OP_GROUP, DT_VOID, steps, scan->n, NULL, 0));
  return v;
}

static const node *read_result(const scan_builder *r, const value *scan, size_t i,
                               const node *const c[], nodes e) {
  nodes at = nodes_new(r, r->m->rank + e.n);
  nodes_add(&at, c, r->m->rank);
  nodes_add(&at, e.at, e.n);
  return index_make(r->g, r->type, scan->tensor, (int64_t)i, at.n, at.at);
}

static void redefine_value(scan_builder *r, value *v, const node *body) {
  v->reduction.op = OP_LIMIT;
  v->reduction.n = 0;
  value_set_body(r->g, r->of->values, v, body);
}

void online_softmax_build(const online_softmax *of) {
  scan_builder all = builder_of(of), *r = &all;
  add_scores(r);
  add_maximum(r);
  add_power(r);
  value *scan = add_scan(r);
  for (size_t i = 0; i < r->of->n; i++) {
    const online_softmax_sum *t = &r->of->sum[i];
    const node *const *c = t->power.m->src + 1;
    const node *m = read_result(r, scan, 0, c, (nodes){0});
    const node *none = ir_op2(r->g, OP_EQ, m, ir_const(r->g, r->type, -INFINITY));
    const node *sum = read_result(r, scan, i + 1, c, state_axes(r, t, t->v->coords));
    redefine_value(r, t->v, ir_op3(r->g, OP_WHERE, none, ir_const(r->g, r->type, NAN), sum));
  }
  redefine_value(r, r->m, read_result(r, scan, 0, r->m->coords, (nodes){0}));
}
