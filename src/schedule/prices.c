#include "schedule/prices.h"

#include "ir/binder.h"

enum {
  TYPICAL_SIZE = 64,
  LANE_LOAD = 5,    /* instructions that load one lane: gate, branch, address, load, insertion */
  LEAST_BLOCK = 16, /* indices that vectors are made along */
  FREE_CODE = 16,   /* instructions that are computed again rather than an element loaded */
  TILE_CODE = 256   /* of a contraction's loop: registers bound it, whatever is added up there */
};

double price_private(const machine *m, double bytes) {
  return bytes <= m->cache[0] ? 0.005 : bytes <= m->cache[1] ? 0.015 : 0.1;
}

double price_shared(const machine *m, double bytes) {
  double alone = bytes <= m->cache[1] / 4 ? 0.04 : bytes <= m->shared ? 0.08 : 0.24;
  return alone / m->cores;
}

double price_size(const node *size) {
  if (size->lo == size->hi) return (double)size->hi;
  int64_t least = size->lo > 1 ? size->lo : 1;
  if (least >= TYPICAL_SIZE) return (double)least;
  return size->hi < TYPICAL_SIZE ? (double)size->hi : TYPICAL_SIZE;
}

double price_load(const machine *m, const value *v) {
  return v->facts->bytes * price_shared(m, v->facts->bytes);
}

double price_computed_in(const value *v, size_t groups) {
  return groups > 1 ? (double)(groups - 1) * v->facts->again + v->facts->reload : 0;
}

double price_lanes(const machine *m, dtype t) {
  double bytes = (double)dtype_bytes(t);
  if (dtype_is_float(t) && bytes < 4) bytes = 4;
  return m->vector > bytes ? m->vector / bytes : 1;
}

/** Whether an index is a sum of ranges and sizes, and certainly inside. */
static bool is_plain(ir *g, const node *index, const node *size) {
  for (size_t i = 0; i < ix_terms(index); i++)
    if (ix_atom(index, i)->op != OP_RANGE && ix_atom(index, i)->op != OP_VAR) return false;
  return ix_prove(g, index) && ix_prove_lt(g, index, size);
}

static bool is_free(const value *v) { return v && v->facts->free.once > 0; }

code price_read(ir *g, const values *v, const node *index) {
  const value *from = map_get(&v->of, index->src[0]);
  const node *tensor = index->src[0];
  if (is_free(from)) return from->facts->free;
  for (size_t i = 0; i < tensor->rank && i + 1 < index->n_src; i++) /* of a SET: its view's rank */
    if (!is_plain(g, index->src[1 + i], tensor->dims[i])) return (code){.each = LANE_LOAD};
  return (code){.once = 1};
}

typedef struct pricing {
  ir *g;
  arena *a;
  const machine *m;
  const values *values;
} pricing;

static bool is_scalar(const node *n, void *tensors) { return !map_has(tensors, n); }

/** What is computed from indices is done lane by lane, but for their sums. */
static code code_at(const node *n) {
  if (n->op == OP_AFFINE) return (code){.once = 1};
  for (uint32_t i = 0; i < n->n_src && op_is_elementwise((op)n->op); i++)
    if (n->src[i]->dtype == DT_INDEX) return (code){.each = 1};
  return (code){.once = op_cost((op)n->op)};
}

/** Operations for one term or element, and the code for them; a read's tensor is not part of it. */
static double body_weight(pricing *p, const value *v, code *own) {
  double sum = value_is_reduction(v) ? 1 : 0;
  map tensors = {0};
  *own = (code){.once = 1 + sum};
  if (!v->body) return 1;
  for (size_t i = 0; i < v->sources.n; i++) map_set(p->a, &tensors, v->sources.at[i], NULL);
  node_list order = topo_sort(p->a, &v->body, 1, is_scalar, &tensors);
  for (size_t i = 0; i < order.n; i++) {
    if (!is_scalar(order.at[i], &tensors)) continue;
    sum += op_cost((op)order.at[i]->op);
    *own = code_sum(*own, code_at(order.at[i]));
  }
  return sum;
}

/** Whether what an element of a reduction reads is read again for others: these become a tile. */
static bool has_tile(const value *v) {
  const operands *o = &v->facts->factors;
  uint64_t own = v->rank < 64 ? (UINT64_C(1) << v->rank) - 1 : UINT64_MAX, all = 0, common = own;
  for (size_t i = 0; i < o->n; i++) {
    all |= o->at[i].coords & own;
    common &= o->at[i].coords;
  }
  return value_is_reduction(v) && all != common;
}

/** Siblings share a loop, or may: only what follows each other adds up. */
static void find_tiles_behind(value_facts *f, const value_facts *from) {
  double next = from->tile > 0 ? from->tile : from->next;
  if (next > f->next) f->next = next;
  if (from->tiles > f->tiles) f->tiles = from->tiles;
}

static void find_code(pricing *p, value *v) {
  value_facts *f = v->facts;
  bool free = !value_is_reduction(v) && !v->only_loaded && !value_is_bound(v);
  if (!v->body) return;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    code load = price_read(p->g, p->values, read);
    bool open = from && from->body && !from->facts->is_kept;
    if (from && value_is_reduction(v)) from->facts->is_term |= from->facts->points > f->points;
    f->reads[0] = code_sum(f->reads[0], load);
    f->whole = code_sum(f->whole, open ? from->facts->whole : load);
    if (open) find_tiles_behind(f, from->facts);
    f->reads[1] = code_sum(f->reads[1], is_free(from) ? load : (code){.each = LANE_LOAD});
    free &= is_free(from);
  }
  if (has_tile(v)) f->tile = TILE_CODE;
  f->tiles += f->tile;
  f->whole = code_sum(f->whole, f->own);
  code all = code_sum(f->own, f->reads[0]);
  if (free && all.once <= FREE_CODE && all.each <= LANE_LOAD) f->free = all;
}

static uint64_t coords_of(const value *v, const node *expression) {
  uint64_t coords = 0;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (v->coords[i]->op == OP_RANGE && node_is_free_in(v->coords[i], expression))
      coords |= UINT64_C(1) << i;
  for (size_t i = 0; i < v->n_reduced && v->rank + i < 64; i++)
    if (node_is_free_in(v->reduced[i], expression)) coords |= UINT64_C(1) << (v->rank + i);
  return coords;
}

/** The elements that an operand has which depends on these coordinates. */
static double size_over(const value *v, uint64_t coords) {
  double size = 1;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (coords >> i & 1) size *= price_size(v->dims[i]);
  for (size_t i = 0; i < v->n_reduced && v->rank + i < 64; i++)
    if (coords >> (v->rank + i) & 1) size *= price_size(range_extent(v->reduced[i]));
  return size;
}

static void add_operand(operands *o, operand x) {
  for (size_t i = 0; i < o->n; i++)
    if (o->at[i].coords == x.coords && o->at[i].bytes == x.bytes) return;
  size_t at = o->n < MOST_OPERANDS ? o->n++ : MOST_OPERANDS;
  for (; at > 0 && o->at[at - 1].bytes < x.bytes; at--)
    if (at < MOST_OPERANDS) o->at[at] = o->at[at - 1];
  if (at < MOST_OPERANDS) o->at[at] = x;
}

/** What coordinates of a read value are, over the reader's. */
static uint64_t through(const value *v, const node *read, const value *from, uint64_t coords) {
  uint64_t all = 0;
  for (size_t i = 0; i < from->rank && i < 64; i++)
    if (coords >> i & 1) all |= coords_of(v, read->src[1 + i]);
  return all;
}

static void add_mapped(operands *to, const value *v, const node *read, const value *from,
                       const operands *list) {
  for (size_t i = 0; i < list->n; i++)
    add_operand(to, (operand){list->at[i].bytes, through(v, read, from, list->at[i].coords)});
}

static bool passes_factors(const value *from) {
  return from && from->body && !value_is_reduction(from) && !from->facts->is_kept;
}

static void find_operands(pricing *p, value *v) {
  value_facts *f = v->facts;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    uint64_t coords = coords_of(v, read);
    double bytes = (double)dtype_bytes((dtype)read->dtype) * size_over(v, coords);
    if (passes_factors(from))
      add_mapped(&f->factors, v, read, from, &from->facts->factors);
    else
      add_operand(&f->factors, (operand){bytes, coords});
    if (from && !from->facts->is_kept && !value_is_reduction(v))
      add_mapped(&f->reduced, v, read, from, &from->facts->reduced);
  }
  if (value_is_reduction(v)) f->reduced = f->factors;
}

static double least(double a, double b) { return a < b ? a : b; }

/** What a value that is not kept adds to each of its readers. */
static void add_source(pricing *p, value_facts *f, const value *from) {
  double load = price_load(p->m, from), stored = p->m->launch + 2 * load;
  if (from->facts->is_kept) return;
  f->again += least(from->facts->again, stored);
  f->reload += stored < from->facts->again ? load : from->facts->reload;
  f->work += least(from->facts->work, stored);
}

static size_t level_of(const pricing *p, const node *read) {
  const value *from = map_get(&p->values->of, read->src[0]);
  return from ? from->facts->level : 0;
}

/** The level of what the indices of a read are computed from. */
static size_t level_under(pricing *p, const value *v, const node *read) {
  size_t level = 0;
  map reads = {0};
  if (v->reads.n < 2) return 0;
  for (size_t i = 0; i < v->reads.n; i++)
    if (v->reads.at[i] != read) map_set(p->a, &reads, v->reads.at[i], NULL);
  node_list order = topo_sort(p->a, read->src + 1, read->n_src - 1, is_scalar, &reads);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&reads, order.at[i]) && level_of(p, order.at[i]) > level)
      level = level_of(p, order.at[i]);
  return level;
}

static void find_level_and_lead(pricing *p, value *v) {
  value_facts *f = v->facts;
  size_t *under = arena_calloc(p->a, v->reads.n, sizeof *under);
  f->lead = v->tensor;
  f->under = under;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *tensor = v->reads.at[i]->src[0];
    const value *from = map_get(&p->values->of, tensor);
    under[i] = level_under(p, v, v->reads.at[i]);
    size_t level = level_of(p, v->reads.at[i]) + under[i];
    if (level > f->level) f->level = level;
    if (!i) f->lead = from ? from->facts->lead : tensor;
  }
  if (value_is_reduction(v)) f->level++;
}

/* Blocks of an axis: what is computed for an index divided by a number is the same for so many. */

/** The axis of v that an index is; its rank: none. */
static size_t axis_of(const value *v, const node *index) {
  size_t k = 0;
  while (k < v->rank && (v->coords[k]->op != OP_RANGE || v->coords[k] != index)) k++;
  return k;
}

/** Whether an axis may be two, the inner one of `block` indices; one of vectors has some of them.
 */
static bool may_be_blocks(const value *v, size_t axis, int64_t block) {
  const node *size = v->dims[axis];
  if (!node_is_const(size) || block < 2 || node_int(size) % block || node_int(size) == block)
    return false;
  return axis + 1 < v->rank || block % LEAST_BLOCK == 0;
}

static void find_block(const value *v, const node *index, int64_t behind, int64_t blocks[]) {
  bool divides = index->op == OP_FLOORDIV && node_is_const(index->src[1]);
  size_t axis = axis_of(v, divides ? index->src[0] : index);
  int64_t block = divides ? node_int(index->src[1]) : behind;
  if (axis < v->rank && may_be_blocks(v, axis, block)) blocks[axis] = block;
}

static void find_blocks(pricing *p, value *v) {
  int64_t *blocks = arena_alloc(p->a, (v->rank + 1) * sizeof *blocks);
  for (size_t k = 0; k < v->rank; k++) blocks[k] = 1;
  for (size_t i = 0; i < v->reads.n; i++) {
    const node *read = v->reads.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    if (!from || !from->body || from->facts->is_kept) continue;
    for (size_t k = 0; k < from->rank; k++)
      find_block(v, read->src[1 + k], from->facts->blocks[k], blocks);
  }
  v->facts->blocks = blocks;
}

static void find_costs(pricing *p, value *v) {
  value_facts *f = v->facts;
  double own = body_weight(p, v, &f->own) * f->points;
  f->reach = f->points > 1 ? f->points : 1;
  for (size_t i = 0; i < v->n_reduced; i++) {
    double n = price_size(range_extent(v->reduced[i]));
    own *= n;
    f->reach *= n > 1 ? n : 1;
  }
  f->work = own * p->m->operation;
  f->again = f->work / p->m->cores;
  for (size_t i = 0; i < v->sources.n; i++) {
    const value *from = map_get(&p->values->of, v->sources.at[i]);
    if (from) add_source(p, f, from);
  }
  bool is_dear = f->readers > 1 && f->again > p->m->launch + 2 * price_load(p->m, v);
  f->is_kept = v->stores.n || v->is_cut || v->was_written || (is_dear && !value_is_bound(v));
}

static void count_readers(pricing *p) {
  for (size_t i = 0; i < p->values->at.n; i++) {
    const value *v = p->values->at.at[i];
    for (size_t k = 0; k < v->sources.n; k++) {
      const value *from = map_get(&p->values->of, v->sources.at[k]);
      if (from) from->facts->readers++;
    }
  }
}

static void measure(pricing *p, value *v) {
  v->facts = arena_calloc(p->a, 1, sizeof *v->facts);
  v->facts->points = 1;
  for (size_t i = 0; i < v->rank; i++) v->facts->points *= price_size(v->dims[i]);
  v->facts->bytes = v->facts->points * (double)dtype_bytes((dtype)v->tensor->dtype);
}

void schedule_facts(ir *g, const machine *m, const values *v) {
  pricing p = {.g = g, .a = ir_arena(g), .m = m, .values = v};
  for (size_t i = 0; i < v->at.n; i++) measure(&p, v->at.at[i]);
  count_readers(&p);
  for (size_t i = 0; i < v->at.n; i++) {
    find_level_and_lead(&p, v->at.at[i]);
    find_costs(&p, v->at.at[i]);
    find_operands(&p, v->at.at[i]);
    find_blocks(&p, v->at.at[i]);
    find_code(&p, v->at.at[i]);
  }
}
