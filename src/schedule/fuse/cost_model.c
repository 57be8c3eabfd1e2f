/* Computes the facts of values on which fusion's cost model is based, in topological order:
   operation counts, code sizes, the cost of recomputing a value with all that is not kept in
   memory, the operands that contractions read, and reduction levels. A value whose repeated
   computation costs more than a kernel of its own counts as kept. */
#include "schedule/fuse/cost_model.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "target/machine.h"

double cost_per_private_byte(const machine *m, double bytes) {
  return bytes <= m->cache[0]   ? MACHINE_PRIVATE_L1_NS
         : bytes <= m->cache[1] ? MACHINE_PRIVATE_L2_NS
                                : MACHINE_PRIVATE_FAR_NS;
}

double cost_per_shared_byte(const machine *m, double bytes) {
  if (bytes <= MACHINE_L2_SHARED_ARRAY_SHARE * m->cache[1]) return MACHINE_SHARED_L2_NS / m->cores;
  if (bytes <= m->shared) return MACHINE_SHARED_L3_NS / m->cores;
  double all = MACHINE_SHARED_MEMORY_NS / m->cores;
  return all > MACHINE_ALL_MEMORY_NS ? all : MACHINE_ALL_MEMORY_NS;
}

double cost_load(const machine *m, const value *v) {
  return v->facts->size.bytes * cost_per_shared_byte(m, v->facts->size.bytes);
}

double cost_recompute(const value *v, size_t groups) {
  return groups > 1 ? (double)(groups - 1) * v->facts->cost.again + v->facts->cost.reload : 0;
}

double cost_vector_lanes(const machine *m, dtype t) {
  double bytes = (double)dtype_bytes(t);
  if (dtype_is_float(t) && bytes < MACHINE_COMPUTED_FLOAT_BYTES)
    bytes = MACHINE_COMPUTED_FLOAT_BYTES;
  return m->vector > bytes ? m->vector / bytes : 1;
}

/** True if an index is a sum of ranges and sizes, and proved in bounds. */
static bool is_affine_in_bounds(ir *g, const node *index, const node *size) {
  for (size_t i = 0; i < ix_terms(index); i++)
    if (ix_atom(index, i)->op != OP_RANGE && ix_atom(index, i)->op != OP_VAR) return false;
  return ix_prove_nonnegative(g, index) && ix_prove_lt(g, index, size);
}

static bool is_recomputed(const value *v) { return v && v->facts->code.free.once > 0; }

code cost_read_code(ir *g, const values *v, const node *index) {
  const value *from = map_get(&v->of, index->src[0]);
  const node *tensor = index->src[0];
  if (is_recomputed(from)) return from->facts->code.free;
  for (size_t i = 0; i < tensor->rank && i + 1 < index->n_src;
       i++) /* a SET has the rank of its view */
    if (!is_affine_in_bounds(g, index->src[1 + i], tensor->dims[i]))
      return (code){.each = MACHINE_LANE_LOAD_CODE};
  return (code){.once = 1};
}

typedef struct measuring {
  ir *g;
  arena *a; /* of the walk of one value */
  const machine *m;
  const values *values;
} measuring;

static bool is_scalar(const node *n, void *tensors) { return !map_has(tensors, n); }

/** Instructions of a node: operations on indices run lane by lane, but for their sums. */
static code code_at(const node *n) {
  if (n->op == OP_AFFINE) return (code){.once = 1};
  for (uint32_t i = 0; i < n->n_src && op_is_elementwise((op)n->op); i++)
    if (n->src[i]->dtype == DT_INDEX) return (code){.each = 1};
  return (code){.once = op_cost((op)n->op)};
}

/** Operations of one term or element, and their instructions; tensors that are read do not count.
 */
static double measure_body(measuring *p, const value *v, code *own) {
  double sum = value_is_reduction(v) ? 1 : 0;
  map tensors = {0};
  *own = (code){.once = 1 + sum};
  if (!v->body) return 1;
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    map_set(p->a, &tensors, v->inputs.tensors.at[i], NULL);
  node_list order = topo_sort(p->a, &v->body, 1, is_scalar, &tensors);
  for (size_t i = 0; i < order.n; i++) {
    if (!is_scalar(order.at[i], &tensors)) continue;
    sum += op_cost((op)order.at[i]->op);
    *own = code_add(*own, code_at(order.at[i]));
  }
  return sum;
}

/** True if elements of a reduction share operands, which register tiles then reuse. */
static bool has_tile(const value *v) {
  const operands *o = &v->facts->operands.own;
  uint64_t own = v->rank < 64 ? (UINT64_C(1) << v->rank) - 1 : UINT64_MAX, all = 0, common = own;
  for (size_t i = 0; i < o->n; i++) {
    all |= o->at[i].coords & own;
    common &= o->at[i].coords;
  }
  return value_is_reduction(v) && all != common;
}

/** Accounts for the tiles of an operand. Siblings may share a loop: only chains add up. */
static void add_operand_tiles(value_facts *f, const value_facts *from) {
  double next = from->tiles.own > 0 ? from->tiles.own : from->tiles.next;
  if (next > f->tiles.next) f->tiles.next = next;
  if (from->tiles.path > f->tiles.path) f->tiles.path = from->tiles.path;
}

static void find_code(measuring *p, value *v) {
  value_facts *f = v->facts;
  bool free = !value_is_reduction(v) && !v->memory.is_never_inlined && !value_is_never_stored(v);
  if (!v->body) return;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    code load = cost_read_code(p->g, p->values, read);
    bool open = from && from->body && !from->facts->is_kept;
    if (from && value_is_reduction(v))
      from->facts->is_term |= from->facts->size.points > f->size.points;
    f->code.reads[0] = code_add(f->code.reads[0], load);
    f->code.whole = code_add(f->code.whole, open ? from->facts->code.whole : load);
    if (open) add_operand_tiles(f, from->facts);
    f->code.reads[1] = code_add(
        f->code.reads[1], is_recomputed(from) ? load : (code){.each = MACHINE_LANE_LOAD_CODE});
    free &= is_recomputed(from);
  }
  if (has_tile(v)) f->tiles.own = MACHINE_FORESEEN_TILE_CODE;
  f->tiles.path += f->tiles.own;
  f->code.whole = code_add(f->code.whole, f->code.own);
  code all = code_add(f->code.own, f->code.reads[0]);
  if (free && all.once <= MACHINE_FREE_CODE && all.each <= MACHINE_LANE_LOAD_CODE)
    f->code.free = all;
}

static uint64_t coords_in(const value *v, const node *expression) {
  uint64_t coords = 0;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (v->coords[i]->op == OP_RANGE && node_is_free_in(v->coords[i], expression))
      coords |= UINT64_C(1) << i;
  for (size_t i = 0; i < v->reduction.n && v->rank + i < 64; i++)
    if (node_is_free_in(v->reduction.ranges[i], expression)) coords |= UINT64_C(1) << (v->rank + i);
  return coords;
}

/** The elements of an operand that depends on these coordinates. */
static double size_over(const value *v, uint64_t coords) {
  double size = 1;
  for (size_t i = 0; i < v->rank && i < 64; i++)
    if (coords >> i & 1) size *= ix_likely(v->dims[i]);
  for (size_t i = 0; i < v->reduction.n && v->rank + i < 64; i++)
    if (coords >> (v->rank + i) & 1) size *= ix_likely(range_extent(v->reduction.ranges[i]));
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

/** The coordinates of a reader that coordinates of a read value depend on. */
static uint64_t map_coords(const value *v, const node *read, const value *from, uint64_t coords) {
  uint64_t all = 0;
  for (size_t i = 0; i < from->rank && i < 64; i++)
    if (coords >> i & 1) all |= coords_in(v, read->src[1 + i]);
  return all;
}

static void add_mapped_operands(operands *to, const value *v, const node *read, const value *from,
                                const operands *list) {
  for (size_t i = 0; i < list->n; i++)
    add_operand(to, (operand){list->at[i].bytes, map_coords(v, read, from, list->at[i].coords)});
}

/** Finds the operands of an element; through elementwise values that are computed where they are
    read. */
static void find_operands(measuring *p, value *v) {
  value_facts *f = v->facts;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    uint64_t coords = coords_in(v, read);
    double bytes = (double)dtype_bytes((dtype)read->dtype) * size_over(v, coords);
    bool is_transparent = from && from->body && !value_is_reduction(from) && !from->facts->is_kept;
    if (is_transparent)
      add_mapped_operands(&f->operands.own, v, read, from, &from->facts->operands.own);
    else
      add_operand(&f->operands.own, (operand){bytes, coords});
    if (from && !from->facts->is_kept && !value_is_reduction(v))
      add_mapped_operands(&f->operands.behind, v, read, from, &from->facts->operands.behind);
  }
  if (value_is_reduction(v)) f->operands.behind = f->operands.own;
}

static double least(double a, double b) { return a < b ? a : b; }

/** Adds to a reader the costs of an operand that is not kept. */
static void add_operand_cost(measuring *p, value_facts *f, const value *from) {
  double load = cost_load(p->m, from), stored = p->m->launch + MACHINE_MATERIALISE_LOADS * load;
  if (from->facts->is_kept) return;
  f->cost.again += least(from->facts->cost.again, stored);
  f->cost.reload += stored < from->facts->cost.again ? load : from->facts->cost.reload;
  f->cost.work += least(from->facts->cost.work, stored);
}

static size_t level_of(const measuring *p, const node *read) {
  const value *from = map_get(&p->values->of, read->src[0]);
  return from ? from->facts->level.own : 0;
}

/** The highest level of values that the indices of a read are computed from. */
static size_t index_level(measuring *p, const value *v, const node *read) {
  size_t level = 0;
  map reads = {0};
  if (v->inputs.elements.n < 2) return 0;
  for (size_t i = 0; i < v->inputs.elements.n; i++)
    if (v->inputs.elements.at[i] != read) map_set(p->a, &reads, v->inputs.elements.at[i], NULL);
  node_list order = topo_sort(p->a, read->src + 1, read->n_src - 1, is_scalar, &reads);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&reads, order.at[i]) && level_of(p, order.at[i]) > level)
      level = level_of(p, order.at[i]);
  return level;
}

static void find_level_and_lead(measuring *p, value *v) {
  value_facts *f = v->facts;
  size_t *under = f->level.under;
  f->lead = v->tensor;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *tensor = v->inputs.elements.at[i]->src[0];
    const value *from = map_get(&p->values->of, tensor);
    under[i] = index_level(p, v, v->inputs.elements.at[i]);
    size_t level = level_of(p, v->inputs.elements.at[i]) + under[i];
    if (level > f->level.own) f->level.own = level;
    if (!i) f->lead = from ? from->facts->lead : tensor;
  }
  if (value_is_reduction(v)) f->level.own++;
}

/* Blocks of an axis: an operand at an index divided by a number is the same for that many indices.
 */

/** The axis of v that has an index as its coordinate; v's rank: none. */
static size_t axis_of(const value *v, const node *index) {
  size_t k = 0;
  while (k < v->rank && (v->coords[k]->op != OP_RANGE || v->coords[k] != index)) k++;
  return k;
}

/** True if an axis may be split in blocks; the last axis must leave whole vectors in one. */
static bool may_split_axis(const value *v, size_t axis, int64_t block) {
  const node *size = v->dims[axis];
  if (!node_is_const(size) || block < 2 || node_int(size) % block || node_int(size) == block)
    return false;
  return axis + 1 < v->rank || block % MACHINE_VECTOR_ROW_LEAST == 0;
}

static void find_block(const value *v, const node *index, int64_t behind, int64_t blocks[]) {
  bool divides = index->op == OP_FLOORDIV && node_is_const(index->src[1]);
  size_t axis = axis_of(v, divides ? index->src[0] : index);
  int64_t block = divides ? node_int(index->src[1]) : behind;
  if (axis < v->rank && may_split_axis(v, axis, block)) blocks[axis] = block;
}

static void find_blocks(measuring *p, value *v) {
  int64_t *blocks = v->facts->blocks;
  for (size_t k = 0; k < v->rank; k++) blocks[k] = 1;
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *from = map_get(&p->values->of, read->src[0]);
    if (!from || !from->body || from->facts->is_kept) continue;
    for (size_t k = 0; k < from->rank; k++)
      find_block(v, read->src[1 + k], from->facts->blocks[k], blocks);
  }
}

static void find_costs(measuring *p, value *v) {
  value_facts *f = v->facts;
  double own = measure_body(p, v, &f->code.own) * f->size.points;
  f->size.reach = f->size.points > 1 ? f->size.points : 1;
  for (size_t i = 0; i < v->reduction.n; i++) {
    double n = ix_likely(range_extent(v->reduction.ranges[i]));
    own *= n;
    f->size.reach *= n > 1 ? n : 1;
  }
  f->cost.work = own * p->m->operation;
  f->cost.again = f->cost.work / p->m->cores;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = map_get(&p->values->of, v->inputs.tensors.at[i]);
    if (from) add_operand_cost(p, f, from);
  }
  bool is_dear = f->readers > 1 &&
                 f->cost.again > p->m->launch + MACHINE_MATERIALISE_LOADS * cost_load(p->m, v);
  f->is_kept = v->memory.stores.n || v->memory.is_cut || v->memory.was_stored ||
               (is_dear && !value_is_never_stored(v) && v->memory.wish != WISH_INLINED);
}

static void count_readers(measuring *p) {
  for (size_t i = 0; i < p->values->at.n; i++) {
    const value *v = p->values->at.at[i];
    for (size_t k = 0; k < v->inputs.tensors.n; k++) {
      const value *from = map_get(&p->values->of, v->inputs.tensors.at[k]);
      if (from) from->facts->readers++;
    }
  }
}

/** Sets the facts of a value that follow from its size alone; those of an earlier time go. */
static void start_facts(arena *a, value *v) {
  if (!v->facts) {
    v->facts = arena_calloc(a, 1, sizeof *v->facts);
    v->facts->level.under = arena_alloc(a, (v->inputs.elements.n + 1) * sizeof(size_t));
    v->facts->blocks = arena_alloc(a, (v->rank + 1) * sizeof(int64_t));
  }
  double points = 1;
  for (size_t k = 0; k < v->rank; k++) points *= ix_likely(v->dims[k]);
  *v->facts = (value_facts){.size.points = points,
                            .size.bytes = points * (double)dtype_bytes((dtype)v->tensor->dtype),
                            .level.under = v->facts->level.under,
                            .blocks = v->facts->blocks};
}

void cost_model_measure(ir *g, const machine *m, const values *v) {
  measuring p = {.g = g, .a = ir_scratch(g), .values = v};
  for (size_t i = 0; i < v->at.n; i++) start_facts(p.a, v->at.at[i]);
  arena_mark here = arena_save(p.a);
  count_readers(&p);
  for (size_t i = 0; i < v->at.n; i++) {
    p.m = machine_of_device(m, v->at.at[i]->device);
    find_level_and_lead(&p, v->at.at[i]);
    find_costs(&p, v->at.at[i]);
    find_operands(&p, v->at.at[i]);
    find_blocks(&p, v->at.at[i]);
    find_code(&p, v->at.at[i]);
    arena_rewind(p.a, here);
  }
}
