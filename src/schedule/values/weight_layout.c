/* Prepacks weights at the graph level: constants that contractions read get the axis along which
   vectors run last, so that a vector's elements are consecutive. Where the reduction reads many
   rows, the axis is blocked and the block goes last: by the vector width, or, where that does not
   divide a long row, by a divisor of the row of a few vectors. */
#include "schedule/values/weight_layout.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/element_expression.h"
#include "schedule/values/contraction.h"
#include "schedule/values/normalise.h"
#include "target/machine.h"

typedef struct layout_search {
  constant_folding *f;
  normalised n;
  map known;  /* computed nodes: element expressions end there */
  map others; /* PARAMs with other readers than contractions */
  map axis;   /* BUFFER → the axis that shall be last, + 1 */
  map uncut;  /* BUFFERs not always read in whole vectors along one axis: not blocked */
} layout_search;

/** True for nodes of an expression: it ends at computed nodes. */
static bool is_expression(const node *n, void *known) { return !map_has(known, n); }

/** The elements that one term of a contraction reads; its result's ranges go into `own`. */
static node_list reads_of_term(layout_search *t, const node *reduce, const node *product,
                               map *own) {
  ir *g = t->f->g;
  arena *a = t->f->a;
  const node *x = reduce->src[0];
  const node **at = arena_alloc(a, (x->rank + 1u) * sizeof *at);
  const node **in = arena_alloc(a, (product->rank + 1u) * sizeof *in);
  for (size_t i = 0; i < x->rank; i++) {
    bool is_one = node_is_bits(x->dims[i], 1);
    at[i] = is_one ? ix_const(g, 0) : range_make(g, x->dims[i], KIND_LOOP);
    if (!is_one && !reduce_has_axis(reduce, i)) map_set(a, own, at[i], NULL);
  }
  element_source_coordinates(g, x, product, at, in);
  const node *term = element_expression(g, &t->known, product, product->rank, in);
  node_list order = topo_sort(a, &term, 1, is_expression, &t->known), reads = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX) vec_push(a, &reads, order.at[i]);
  return reads;
}

/** True if only one of the reads depends on a range. */
static bool is_read_by_only(const node_list *reads, const node *read, const node *range) {
  for (size_t i = 0; i < reads->n; i++)
    if (reads->at[i] != read && node_is_free_in(range, reads->at[i])) return false;
  return true;
}

/** The range of the result along which an axis is read with stride 1 and no other operand is read;
   NULL: none is long enough for vectors. */
static const node *vector_range(const node_list *reads, const node *read, size_t axis,
                                const map *own) {
  const node *x = read->src[1 + axis];
  for (size_t i = 0; i < ix_terms(x); i++) {
    const node *r = ix_atom(x, i);
    if (ix_coefficient_at(x, i) == 1 && map_has(own, r) &&
        range_extent(r)->lo >= MACHINE_CONSTANT_LANES_LEAST && is_read_by_only(reads, read, r))
      return r;
  }
  return NULL;
}

static bool has_constant_sizes(const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (!node_is_const(n->dims[i])) return false;
  return true;
}

/** True if a range of an index covers whole blocks of that many indices. */
static bool covers_whole_blocks(const node *x, const node *range, int64_t block) {
  const node *extent = range_extent(range);
  if (ix_offset(x) % block || !node_is_const(extent) || node_int(extent) % block) return false;
  for (size_t i = 0; i < ix_terms(x); i++)
    if (ix_atom(x, i) != range && ix_coefficient_at(x, i) % block) return false;
  return true;
}

/** Elements of a buffer in a vector. */
static int64_t lanes_of(const constant_folding *f, const node *buffer) {
  return (int64_t)(f->request->vector / dtype_bytes((dtype)buffer->dtype));
}

/** The indices of a block of an axis: a vector's where they divide the size, else those of a few
    vectors that divide a long row, with the fewest lanes left over; 0: none. */
static int64_t block_of_size(int64_t size, int64_t lanes) {
  int64_t best = 0, filled = 1; /* vectors of `best` */
  if (lanes < 2) return 0;
  if (size % lanes == 0) return lanes;
  if (size < MACHINE_CONSTANT_UNEVEN_ROW_LEAST * lanes) return 0;
  for (int64_t block = lanes + 1; block <= MACHINE_CONSTANT_BLOCK_VECTORS * lanes; block++) {
    int64_t vectors = (block + lanes - 1) / lanes;
    if (size % block || block * filled <= best * vectors) continue;
    best = block;
    filled = vectors;
  }
  return best;
}

/** Records the axis that a term of a contraction wants last in a constant. */
static void record_read(layout_search *t, const node_list *reads, const node *read,
                        const map *own) {
  arena *a = t->f->a;
  const node *param = read->src[0], *buffer, *range = NULL;
  if (param->op != OP_PARAM || param->rank < 2 || map_has(&t->others, param)) return;
  buffer = t->n.origins.at[param->ints[0]];
  bool is_ours = map_has(&t->f->number, buffer);
  if ((!is_ours && !constant_folding_is_given(t->f, buffer)) || !has_constant_sizes(buffer)) return;
  size_t k = param->rank;
  while (!range && k-- > 0) range = vector_range(reads, read, k, own);
  if (!range) return;
  int64_t block = block_of_size(node_int(buffer->dims[k]), lanes_of(t->f, buffer));
  uintptr_t axis = (uintptr_t)map_get(&t->axis, buffer);
  if (!axis || k + 1 == param->rank) map_set(a, &t->axis, buffer, (void *)(uintptr_t)(k + 1));
  if ((axis && axis != k + 1) || !block || !covers_whole_blocks(read->src[1 + k], range, block))
    map_set(a, &t->uncut, buffer, NULL);
}

/** The BUFFER of a new value of a constant: added, or, for one added before, changed to that value.
 */
static const node *replace_constant(constant_folding *f, const node *buffer, const node *value) {
  uintptr_t number = (uintptr_t)map_get(&f->number, buffer);
  if (!number) return constant_folding_add_constant(f, value);
  constant *c = &f->out.at.at[number - 1];
  int64_t ints[] = {buffer->ints[0], 1};
  c->value = value;
  c->leaf = ir_node(f->g, OP_BUFFER, (dtype)value->dtype, value->dims, value->rank, ints, 2);
  return c->leaf;
}

/** The indices of an axis that are consecutive: those of a few vectors, where a reduction reads
   many rows; else all. */
static int64_t choose_block(const layout_search *t, const node *buffer, size_t axis) {
  int64_t rows = 1, size = node_int(buffer->dims[axis]);
  for (size_t i = 0; i < buffer->rank; i++) rows *= i == axis ? 1 : node_int(buffer->dims[i]);
  bool cut = rows >= MACHINE_CONSTANT_ROWS_LEAST && !map_has(&t->uncut, buffer);
  return cut ? block_of_size(size, lanes_of(t->f, buffer)) : size;
}

/** The sizes of a buffer with an axis split into blocks and indices within one. */
static const node *const *blocked_sizes(constant_folding *f, const node *buffer, size_t axis,
                                        int64_t block) {
  const node **sizes = arena_alloc(f->a, (buffer->rank + 1u) * sizeof *sizes);
  for (size_t i = 0; i <= buffer->rank; i++) sizes[i] = buffer->dims[i > axis ? i - 1 : i];
  sizes[axis] = ix_const(f->g, node_int(buffer->dims[axis]) / block);
  sizes[axis + 1] = ix_const(f->g, block);
  return sizes;
}

/** Stores a buffer with an axis last, in blocks or whole, and returns a view of it in its old
 * shape. */
static const node *relayout(constant_folding *f, const node *buffer, size_t axis, int64_t block) {
  ir *g = f->g;
  bool cut = block < node_int(buffer->dims[axis]);
  size_t rank = buffer->rank + cut, last = axis + cut, n = 0;
  int64_t *to = arena_alloc(f->a, rank * sizeof *to);
  int64_t *back = arena_alloc(f->a, rank * sizeof *back);
  uintptr_t number = (uintptr_t)map_get(&f->number, buffer);
  const node *value = number ? f->out.at.at[number - 1].value : buffer;
  if (cut) value = ir_reshape(g, value, rank, blocked_sizes(f, buffer, axis, block));
  if (cut) to[n++] = (int64_t)axis;
  for (size_t i = 0; i < rank; i++)
    if (i < axis || i > last) to[n++] = (int64_t)i;
  to[n] = (int64_t)last;
  for (size_t i = 0; i < rank; i++) back[to[i]] = (int64_t)i;
  const node *leaf = replace_constant(f, buffer, ir_permute(g, value, to));
  return ir_reshape(g, ir_permute(g, leaf, back), buffer->rank, buffer->dims);
}

/** Finds the tensors whose elements anything but a contraction reads. */
static void find_other_readers(layout_search *t, const node_list *order) {
  map products = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *product = contraction_product(order->at[i]);
    if (product) map_set(t->f->a, &products, product, NULL);
  }
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool reads = constant_folding_reads_elements(n) ? !map_has(&products, n) : n->op == OP_GATHER;
    for (uint32_t k = 0; k < n->n_src && reads; k++) {
      const node *x = n->src[k];
      if (x->dtype == DT_INDEX) continue;
      while (op_is_movement((op)x->op)) x = x->src[0];
      map_set(t->f->a, &t->others, x, NULL);
    }
  }
}

/** True if a node is no expression over elements of other tensors. */
static bool is_array(const node *n) {
  return n->op == OP_CARRY || n->op == OP_RESULT || op_overwrites((op)n->op) ||
         n->op == OP_CUSTOM || n->op == OP_KERNEL || n->op == OP_TO;
}

void weight_layouts_find(constant_folding *f) {
  layout_search t = {.f = f};
  schedule_request r = {
      .roots = f->out.roots, .n_roots = f->request->n_roots, .math = f->request->math};
  normalise_graph(f->g, &r, &t.n);
  node_list order = topo_sort(f->a, t.n.roots, t.n.n_roots, NULL, NULL);
  find_other_readers(&t, &order);
  for (size_t i = 0; i < order.n; i++)
    if (constant_folding_reads_elements(order.at[i]) || is_array(order.at[i]))
      map_set(f->a, &t.known, order.at[i], (void *)order.at[i]);
  for (size_t i = 0; i < order.n; i++) {
    const node *product = contraction_product(order.at[i]);
    map own = {0};
    if (!product) continue;
    node_list reads = reads_of_term(&t, order.at[i], product, &own);
    for (size_t k = 0; k < reads.n; k++) record_read(&t, &reads, reads.at[k], &own);
  }
  node_list leaves = topo_sort(f->a, f->out.roots, f->request->n_roots, NULL, NULL);
  for (size_t i = 0; i < leaves.n; i++) {
    const node *leaf = leaves.at[i];
    size_t axis = (uintptr_t)map_get(&t.axis, leaf);
    if (!axis) continue;
    int64_t block = choose_block(&t, leaf, axis - 1);
    if (axis < leaf->rank || block < node_int(leaf->dims[axis - 1]))
      map_set(f->a, &f->stand_in, leaf, (void *)relayout(f, leaf, axis - 1, block));
  }
}
