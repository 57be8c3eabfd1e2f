#include "schedule/constants.h"

#include "ir/binder.h"
#include "ir/build.h"
#include "ir/copy.h"
#include "ir/element.h"
#include "schedule/passes.h"

enum {
  LEAST_LANES = 8, /* indices of an axis for it to be lanes */
  LEAST_ROWS = 64, /* that a reduction reads, for them to lie in blocks */
  MOST_BELOW = 64  /* nodes below a value that are looked at */
};

typedef struct finding {
  ir *g;
  arena *a;
  const constants_request *request;
  constants out;
  map number;   /* a leaf of ours → its place in the list, + 1 */
  map stand_in; /* a node → what is to be read in its place */
  int64_t uids; /* of BUFFERs: all are below */
} finding;

static const node *new_leaf(finding *f, const node *value) {
  int64_t ints[] = {f->uids++, 0};
  const node *leaf =
      ir_node(f->g, OP_BUFFER, (dtype)value->dtype, value->dims, value->rank, ints, 2);
  vec_push(f->a, &f->out.at, ((constant){leaf, value}));
  map_set(f->a, &f->number, leaf, (void *)(uintptr_t)f->out.at.n);
  return leaf;
}

static const node *replaced(void *user, const node *n, const node *const src[]) {
  (void)src;
  return map_get(&((finding *)user)->stand_in, n);
}

static void replace(finding *f) {
  ir_copy(f->g, f->a, f->out.roots, f->request->n_roots, replaced, f, f->out.roots);
  f->stand_in = (map){0};
}

static double bytes_of(const node *n) {
  double bytes = (double)dtype_bytes((dtype)n->dtype);
  for (size_t i = 0; i < n->rank; i++) bytes *= (double)n->dims[i]->hi;
  return bytes;
}

/* What is computed from constants. */

static bool is_given(finding *f, const node *n) {
  return n->op == OP_BUFFER && f->request->is_constant(f->request->user, n);
}

static bool is_function(const node *n) {
  return op_is_elementwise((op)n->op) || op_is_movement((op)n->op) || n->op == OP_REDUCE ||
         n->op == OP_PAD || n->op == OP_CONST || n->op == OP_IOTA;
}

static bool is_constant(finding *f, const map *known, const node *n) {
  if (n->op == OP_BUFFER) return is_given(f, n);
  for (uint32_t i = 0; i < n->n_src; i++)
    if (!map_has(known, n->src[i])) return false;
  return is_function(n);
}

static bool reads_elements(const node *n) {
  return n->dtype != DT_INDEX && (op_is_elementwise((op)n->op) || n->op == OP_REDUCE);
}

/** Whether a value takes no more than what it is computed from, as far as that is near. */
static bool is_small(finding *f, const node *n) {
  node_list queue = {0};
  map seen = {0};
  double bytes = 0;
  vec_push(f->a, &queue, n);
  for (size_t i = 0; i < queue.n && i < MOST_BELOW && bytes < bytes_of(n); i++) {
    const node *at = queue.at[i];
    if (at->op == OP_BUFFER) bytes += bytes_of(at);
    for (uint32_t k = 0; k < at->n_src; k++) {
      if (map_has(&seen, at->src[k])) continue;
      map_set(f->a, &seen, at->src[k], NULL);
      vec_push(f->a, &queue, at->src[k]);
    }
  }
  return bytes_of(n) <= bytes;
}

/** The last values that are computed from constants on each way to the roots. */
static void find_computed(finding *f) {
  node_list order = topo_sort(f->a, f->out.roots, f->request->n_roots, NULL, NULL);
  map known = {0}, needed = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_BUFFER && n->ints[0] >= f->uids) f->uids = n->ints[0] + 1;
    if (is_constant(f, &known, n)) map_set(f->a, &known, n, NULL);
  }
  for (size_t i = order.n; i-- > 0;) {
    const node *n = order.at[i];
    bool passes = !map_has(&known, n) || (map_has(&needed, n) && !reads_elements(n));
    for (uint32_t k = 0; k < n->n_src && passes; k++)
      if (map_has(&known, n->src[k])) map_set(f->a, &needed, n->src[k], NULL);
    if (!passes && map_has(&needed, n) && is_small(f, n))
      map_set(f->a, &f->stand_in, n, (void *)new_leaf(f, n));
  }
}

/* Constants with another axis last, in blocks of a vector each: what a reduction reads of them is
   then side by side. */

typedef struct turning {
  finding *f;
  normalised n;
  map known;  /* all that is computed */
  map others; /* PARAMs that something else than a contraction reads */
  map axis;   /* BUFFER → the axis that is to be last, + 1 */
  map uncut;  /* BUFFERs that are not read in whole vectors along it alone */
} turning;

static bool is_view(const node *n) {
  return n->op == OP_PERMUTE || n->op == OP_SLICE || n->op == OP_EXPAND || n->op == OP_RESHAPE;
}

/** The product that a REDUCE adds up, seen through views; NULL: it is none. */
static const node *product_of(const node *reduce) {
  const node *x = reduce->op == OP_REDUCE && reduce->ints[0] == OP_ADD ? reduce->src[0] : NULL;
  while (x && is_view(x)) x = x->src[0];
  return x && x->op == OP_MUL ? x : NULL;
}

/** The elements that one term of a contraction reads; `own` are its result's ranges. */
static node_list reads_of_term(turning *t, const node *reduce, const node *product, map *own) {
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
  element_through(g, x, product, at, in);
  const node *term = element_of(g, &t->known, product, product->rank, in);
  node_list order = topo_sort(a, &term, 1, NULL, NULL), reads = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX) vec_push(a, &reads, order.at[i]);
  return reads;
}

/** Whether elements along a range are read by one of the reads alone. */
static bool is_only_in(const node_list *reads, const node *read, const node *range) {
  for (size_t i = 0; i < reads->n; i++)
    if (reads->at[i] != read && node_is_free_in(range, reads->at[i])) return false;
  return true;
}

/** The range of the result along which an axis is read one by one, and nothing else is; NULL: there
    is none of a size for lanes. */
static const node *lanes_along(const node_list *reads, const node *read, size_t axis,
                               const map *own) {
  const node *x = read->src[1 + axis];
  for (size_t i = 0; i < ix_terms(x); i++) {
    const node *r = ix_atom(x, i);
    if (ix_factor(x, i) == 1 && map_has(own, r) && range_extent(r)->lo >= LEAST_LANES &&
        is_only_in(reads, read, r))
      return r;
  }
  return NULL;
}

static bool is_sized(const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (!node_is_const(n->dims[i])) return false;
  return true;
}

/** Whether what is read along a range of an axis is whole blocks of `lanes` indices. */
static bool is_whole(const node *x, const node *range, int64_t lanes) {
  const node *extent = range_extent(range);
  if (ix_offset(x) % lanes || !node_is_const(extent) || node_int(extent) % lanes) return false;
  for (size_t i = 0; i < ix_terms(x); i++)
    if (ix_atom(x, i) != range && ix_factor(x, i) % lanes) return false;
  return true;
}

/** Elements of a vector. */
static int64_t lanes_of(const finding *f, const node *buffer) {
  return (int64_t)(f->request->vector / dtype_bytes((dtype)buffer->dtype));
}

/** Notes how a term of a contraction would have a constant lie. */
static void see_read(turning *t, const node_list *reads, const node *read, const map *own) {
  arena *a = t->f->a;
  const node *param = read->src[0], *buffer, *range = NULL;
  if (param->op != OP_PARAM || param->rank < 2 || map_has(&t->others, param)) return;
  buffer = t->n.origins.at[param->ints[0]];
  bool is_ours = map_has(&t->f->number, buffer);
  if ((!is_ours && !is_given(t->f, buffer)) || !is_sized(buffer)) return;
  size_t k = param->rank;
  while (!range && k-- > 0) range = lanes_along(reads, read, k, own);
  if (!range) return;
  int64_t lanes = lanes_of(t->f, buffer);
  uintptr_t axis = (uintptr_t)map_get(&t->axis, buffer);
  if (!axis || k + 1 == param->rank) map_set(a, &t->axis, buffer, (void *)(uintptr_t)(k + 1));
  if ((axis && axis != k + 1) || lanes < 2 || !is_whole(read->src[1 + k], range, lanes))
    map_set(a, &t->uncut, buffer, NULL);
}

/** The leaf of a value in the place of a buffer's: one of ours is made like that. */
static const node *leaf_for(finding *f, const node *buffer, const node *value) {
  uintptr_t number = (uintptr_t)map_get(&f->number, buffer);
  if (!number) return new_leaf(f, value);
  constant *c = &f->out.at.at[number - 1];
  int64_t ints[] = {buffer->ints[0], 1};
  c->value = value;
  c->leaf = ir_node(f->g, OP_BUFFER, (dtype)value->dtype, value->dims, value->rank, ints, 2);
  return c->leaf;
}

static const node *value_of(finding *f, const node *buffer) {
  uintptr_t number = (uintptr_t)map_get(&f->number, buffer);
  return number ? f->out.at.at[number - 1].value : buffer;
}

/** How many indices of an axis lie side by side, for all of the others: as many as a vector has
    lanes, where a reduction reads more of these than lie near each other; else all. */
static int64_t block_of(const turning *t, const node *buffer, size_t axis) {
  int64_t rows = 1, size = node_int(buffer->dims[axis]), lanes = lanes_of(t->f, buffer);
  for (size_t i = 0; i < buffer->rank; i++) rows *= i == axis ? 1 : node_int(buffer->dims[i]);
  bool cut = rows >= LEAST_ROWS && !map_has(&t->uncut, buffer) && size % lanes == 0;
  return cut ? lanes : size;
}

/** The sizes of a buffer with an axis as blocks and what is in one. */
static const node *const *sizes_in_blocks(finding *f, const node *buffer, size_t axis,
                                          int64_t block) {
  const node **sizes = arena_alloc(f->a, (buffer->rank + 1u) * sizeof *sizes);
  for (size_t i = 0; i <= buffer->rank; i++) sizes[i] = buffer->dims[i > axis ? i - 1 : i];
  sizes[axis] = ix_const(f->g, node_int(buffer->dims[axis]) / block);
  sizes[axis + 1] = ix_const(f->g, block);
  return sizes;
}

/** Reads a buffer that is kept in blocks of an axis, or as one, with that last, as it was before.
 */
static const node *turned(finding *f, const node *buffer, size_t axis, int64_t block) {
  ir *g = f->g;
  bool cut = block < node_int(buffer->dims[axis]);
  size_t rank = buffer->rank + cut, last = axis + cut, n = 0;
  int64_t *to = arena_alloc(f->a, rank * sizeof *to);
  int64_t *back = arena_alloc(f->a, rank * sizeof *back);
  const node *value = value_of(f, buffer);
  if (cut) value = ir_reshape(g, value, rank, sizes_in_blocks(f, buffer, axis, block));
  if (cut) to[n++] = (int64_t)axis;
  for (size_t i = 0; i < rank; i++)
    if (i < axis || i > last) to[n++] = (int64_t)i;
  to[n] = (int64_t)last;
  for (size_t i = 0; i < rank; i++) back[to[i]] = (int64_t)i;
  const node *leaf = leaf_for(f, buffer, ir_permute(g, value, to));
  return ir_reshape(g, ir_permute(g, leaf, back), buffer->rank, buffer->dims);
}

static const node *below_movements(const node *x) {
  while (op_is_movement((op)x->op)) x = x->src[0];
  return x;
}

static void find_others(turning *t, const node_list *order) {
  map products = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *product = product_of(order->at[i]);
    if (product) map_set(t->f->a, &products, product, NULL);
  }
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool reads = reads_elements(n) ? !map_has(&products, n) : n->op == OP_GATHER;
    for (uint32_t k = 0; k < n->n_src && reads; k++)
      if (n->src[k]->dtype != DT_INDEX)
        map_set(t->f->a, &t->others, below_movements(n->src[k]), NULL);
  }
}

/** What is no expression over other tensors' elements. */
static bool is_array(const node *n) {
  return n->op == OP_CARRY || n->op == OP_RESULT || n->op == OP_SET || n->op == OP_CUSTOM ||
         n->op == OP_KERNEL;
}

static void find_turned(finding *f) {
  turning t = {.f = f};
  schedule_request r = {
      .roots = f->out.roots, .n_roots = f->request->n_roots, .math = f->request->math};
  schedule_normalise(f->g, &r, &t.n);
  node_list order = topo_sort(f->a, t.n.roots, t.n.n_roots, NULL, NULL);
  find_others(&t, &order);
  for (size_t i = 0; i < order.n; i++)
    if (reads_elements(order.at[i]) || is_array(order.at[i]))
      map_set(f->a, &t.known, order.at[i], (void *)order.at[i]);
  for (size_t i = 0; i < order.n; i++) {
    const node *product = product_of(order.at[i]);
    map own = {0};
    if (!product) continue;
    node_list reads = reads_of_term(&t, order.at[i], product, &own);
    for (size_t k = 0; k < reads.n; k++) see_read(&t, &reads, reads.at[k], &own);
  }
  node_list leaves = topo_sort(f->a, f->out.roots, f->request->n_roots, NULL, NULL);
  for (size_t i = 0; i < leaves.n; i++) {
    const node *leaf = leaves.at[i];
    size_t axis = (uintptr_t)map_get(&t.axis, leaf);
    if (!axis) continue;
    int64_t block = block_of(&t, leaf, axis - 1);
    if (axis < leaf->rank || block < node_int(leaf->dims[axis - 1]))
      map_set(f->a, &f->stand_in, leaf, (void *)turned(f, leaf, axis - 1, block));
  }
}

constants schedule_constants(ir *g, const constants_request *r) {
  finding f = {.g = g, .a = ir_arena(g), .request = r};
  f.out.roots = arena_copy(f.a, r->roots, r->n_roots * sizeof *r->roots);
  find_computed(&f);
  replace(&f);
  find_turned(&f);
  replace(&f);
  return f.out;
}
