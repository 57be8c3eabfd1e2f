/* Implements the interpreter of tensor graphs: evaluates nodes in topological order on whole
   arrays, one element after the other, and frees an array after its last use, by use counts. */
#include "ir/core/guard.h"
#include "ir/core/scalar_eval.h"
#include "ir/core/shape_inference.h"
#include "ir/core/tensor_loop.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/interp.h"

#include "base/map.h"

#include <string.h>

/* Values: index nodes are numbers in a table; arrays are freed after their last use. */

typedef struct value {
  interp_array a;
  size_t owned; /* bytes allocated with the value; 0: the data is the caller's */
} value;

/** A LOOP in execution. */
typedef struct loop_run {
  const node *loop;
  node_list body;  /* nodes that depend on its range, in order */
  node_list own;   /* nodes of the body that its trips run; inner loops run the others */
  value **results; /* states, then emitted arrays */
  value **next;    /* states after the current trip */
  size_t depth;    /* loops around it */
} loop_run;

/** The nodes of the graph; lists are by position in `order`. */
typedef struct node_table {
  node_list order;      /* sources first */
  map number;           /* node → its position, + 1 */
  value **at;           /* arrays; NULL: not computed yet, or freed */
  int64_t *index;       /* values of index nodes */
  uint32_t *uses;       /* reads that are still to come */
  const guard **guards; /* NULL: there are no PICKs */
} node_table;

typedef struct run {
  const interp_env *e;
  const node *const *roots;
  size_t n;              /* roots */
  interp_array *results; /* of the roots */
  arena *out;            /* of the results' elements */
  arena work;
  diag *d;
  node_table nodes;
  value *positions; /* of the current SET: the position of each old element, shown by its view */
  value *moved;     /* of the current SET: the same after the next movement of the view */
  map loops;        /* LOOP → loop_run */
  map inside;       /* node → the loop_run whose trips run it */
} run;

static size_t position(const run *r, const node *n) {
  return (size_t)(uintptr_t)map_get(&r->nodes.number, n) - 1;
}

static void free_value(run *r, value **slot) {
  if (*slot) mem_free(r->work.mem, *slot, sizeof(value) + (*slot)->owned);
  *slot = NULL;
}

/** Allocates a cleared array in a slot. */
static interp_array *new_array(run *r, value **slot, const node *n, dtype t, size_t rank,
                               const int64_t dims[]) {
  size_t bytes = interp_element_count(rank, dims, dtype_bytes(t), n, r->d) * dtype_bytes(t);
  value *v = mem_calloc(r->work.mem, 1, sizeof *v + bytes);
  char none[MEM_TEXT_BYTES];
  if (!v) diag_raise(r->d, TN_ERR_MEMORY, "%s", mem_exhausted_text(bytes, none));
  v->owned = bytes;
  v->a = (interp_array){.dtype = t, .rank = rank, .data = v + 1, .bytes = bytes};
  if (rank) memcpy(v->a.dims, dims, rank * sizeof *dims);
  *slot = v;
  return &v->a;
}

static int64_t index_of(const run *r, const node *n) { return r->nodes.index[position(r, n)]; }

static const interp_array *array_of(const run *r, const node *n) {
  const value *v = r->nodes.at[position(r, n)];
  if (!v)
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") has no value in a tensor graph",
               op_name(n->op), n->id);
  return &v->a;
}

static void dims_of(const run *r, const node *n, int64_t dims[]) {
  if (n->rank > INTERP_MAX_RANK) interp_element_count(n->rank, NULL, 1, n, r->d);
  for (size_t i = 0; i < n->rank; i++) dims[i] = index_of(r, n->dims[i]);
}

/** Allocates the result array of a node. */
static interp_array *result_of(run *r, const node *n) {
  int64_t dims[INTERP_MAX_RANK];
  dims_of(r, n, dims);
  return new_array(r, &r->nodes.at[position(r, n)], n, n->dtype, n->rank, dims);
}

static size_t array_count(const interp_array *a) { return a->bytes / dtype_bytes(a->dtype); }

static uint64_t read_element(const interp_array *a, size_t i) {
  return scalar_load(a->dtype, (const char *)a->data + i * dtype_bytes(a->dtype));
}

static void write_element(interp_array *a, size_t i, uint64_t bits) {
  scalar_store(a->dtype, (char *)a->data + i * dtype_bytes(a->dtype), bits);
}

static bool same_dims(const interp_array *a, const interp_array *b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static _Noreturn void raise_bad_shape(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): shapes do not fit", op_name(n->op), n->id);
}

/* Coordinates, the last one fastest. */

static void step_coords(size_t rank, const int64_t dims[], int64_t at[]) {
  for (size_t i = rank; i-- > 0;) {
    if (++at[i] < dims[i]) return;
    at[i] = 0;
  }
}

static bool inside(const interp_array *a, const int64_t at[]) {
  for (size_t i = 0; i < a->rank; i++)
    if (at[i] < 0 || at[i] >= a->dims[i]) return false;
  return true;
}

static size_t offset(const interp_array *a, const int64_t at[]) {
  size_t k = 0;
  for (size_t i = 0; i < a->rank; i++) k = k * (size_t)a->dims[i] + (size_t)at[i];
  return k;
}

/* Elementwise. */

/** An operand: an array, or an index as an array of rank 0. */
static interp_array operand(const run *r, const node *n) {
  if (n->dtype != DT_INDEX) return *array_of(r, n);
  return (interp_array){.dtype = DT_INDEX, .data = &r->nodes.index[position(r, n)], .bytes = 8};
}

static _Noreturn void raise_overflow(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): an index beyond 64 bits", op_name(n->op),
             n->id);
}

static void run_elementwise(run *r, const node *n, interp_array *to) {
  interp_array from[3];
  if (!n->n_src || n->n_src > 3)
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is no op of a tensor graph",
               op_name(n->op), n->id);
  for (uint32_t i = 0; i < n->n_src; i++) {
    from[i] = operand(r, n->src[i]);
    if (!same_dims(to, &from[i])) raise_bad_shape(r, n);
  }
  dtype t = from[scalar_typed_operand(n->op)].dtype;
  bool overflow = false;
  for (size_t k = 0; k < array_count(to); k++) {
    uint64_t args[3];
    for (uint32_t i = 0; i < n->n_src; i++) args[i] = read_element(&from[i], k);
    write_element(to, k, scalar_eval(n->op, t, n->dtype, args, &overflow));
  }
  if (overflow) raise_overflow(r, n);
}

static int64_t eval_affine(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  uint64_t *args = arena_alloc(&r->work, n->n_src * sizeof *args);
  bool overflow = false;
  for (uint32_t i = 0; i < n->n_src; i++) args[i] = (uint64_t)index_of(r, n->src[i]);
  uint64_t sum = scalar_eval_affine(n->ints, n->n_src, args, &overflow);
  arena_rewind(&r->work, here);
  if (overflow) raise_overflow(r, n);
  return (int64_t)sum;
}

/** An element of an array, 0 outside of it. */
static int64_t eval_item(run *r, const node *n) {
  const interp_array *x = array_of(r, n->src[0]);
  int64_t at[INTERP_MAX_RANK], most = index_of(r, n->src[n->n_src - 1]);
  for (size_t i = 0; i < x->rank; i++) at[i] = index_of(r, n->src[1 + i]);
  uint64_t bits = inside(x, at) ? read_element(x, offset(x, at)) : 0;
  int64_t value = (int64_t)scalar_cast(DT_I64, x->dtype, bits);
  if (value < n->ints[0] || value > most)
    diag_raise(r->d, TN_ERR_SHAPE, "item (node %" PRIu64 ") is %lld, not from %lld to %lld", n->id,
               (long long)value, (long long)n->ints[0], (long long)most);
  return value;
}

static int64_t index_value(run *r, const node *n) {
  int64_t result = 0;
  interp_array to = {.dtype = DT_INDEX, .data = &result, .bytes = 8};
  switch (n->op) {
  case OP_CONST: return node_int(n);
  case OP_VAR: return (int64_t)interp_var_value(r->e, n, r->d);
  case OP_AFFINE: return eval_affine(r, n);
  case OP_ITEM: return eval_item(r, n);
  default: run_elementwise(r, n, &to); return result;
  }
}

/* Movement: result[at] = source[from]. */

typedef struct movement {
  const node *n;
  const interp_array *x;
  int64_t first[INTERP_MAX_RANK]; /* SLICE: starts; PAD: lows */
} movement;

/** Maps coordinates of the result to the source; false: outside of the source. */
static bool map_coordinates(const movement *m, const int64_t at[], int64_t from[]) {
  for (size_t i = 0; i < m->x->rank; i++) {
    switch (m->n->op) {
    case OP_EXPAND: from[i] = m->x->dims[i] == 1 ? 0 : at[i]; break;
    case OP_PERMUTE: from[m->n->ints[i]] = at[i]; break;
    case OP_SLICE: from[i] = m->first[i] + m->n->ints[i] * at[i]; break;
    default: from[i] = at[i] - m->first[i]; break;
    }
  }
  return inside(m->x, from);
}

/** Applies movement n to an array x, into a slot; `fill` is the value of PAD outside of x. */
static interp_array *move_array(run *r, const node *n, const interp_array *x, uint64_t fill,
                                value **slot) {
  movement m = {.n = n, .x = x};
  int64_t dims[INTERP_MAX_RANK], at[INTERP_MAX_RANK] = {0}, from[INTERP_MAX_RANK];
  dims_of(r, n, dims);
  interp_array *y = new_array(r, slot, n, x->dtype, n->rank, dims);
  if (n->op == OP_RESHAPE) {
    if (x->bytes != y->bytes) raise_bad_shape(r, n);
    memcpy(y->data, x->data, x->bytes);
    return y;
  }
  if (x->rank != n->rank) raise_bad_shape(r, n);
  for (size_t i = 0; i < n->rank; i++)
    if (n->op == OP_SLICE || n->op == OP_PAD)
      m.first[i] = index_of(r, n->src[(n->op == OP_PAD ? 2 : 1) + i]);
  for (size_t k = 0; k < array_count(y); k++, step_coords(n->rank, dims, at)) {
    bool in = map_coordinates(&m, at, from);
    if (!in && n->op != OP_PAD) raise_bad_shape(r, n);
    write_element(y, k, in ? read_element(x, offset(x, from)) : fill);
  }
  return y;
}

static void run_movement(run *r, const node *n) {
  const interp_array *x = array_of(r, n->src[0]);
  uint64_t fill = n->op == OP_PAD ? read_element(array_of(r, n->src[1]), 0) : 0;
  move_array(r, n, x, fill, &r->nodes.at[position(r, n)]);
}

/** A tensor on another device has the same elements. */
static void run_to(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  if (y->bytes) memcpy(y->data, x->data, y->bytes);
}

static void run_gather(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  const interp_array *index[INTERP_MAX_RANK];
  int64_t from[INTERP_MAX_RANK];
  if (n->n_src != x->rank + 1) raise_bad_shape(r, n);
  for (size_t i = 0; i < x->rank; i++) {
    index[i] = array_of(r, n->src[i + 1]);
    if (!same_dims(index[i], y)) raise_bad_shape(r, n);
  }
  for (size_t k = 0; k < array_count(y); k++) {
    for (size_t i = 0; i < x->rank; i++) from[i] = (int64_t)read_element(index[i], k);
    write_element(y, k, inside(x, from) ? read_element(x, offset(x, from)) : 0);
  }
}

/* Reduction. */

/** The elements of x that are reduced to one: those at coordinates `at` along the remaining
    axes. */
typedef struct reduced {
  const interp_array *x;
  op o;
  size_t n_axes;
  int64_t axes[INTERP_MAX_RANK], dims[INTERP_MAX_RANK]; /* reduced axes and their sizes */
  size_t count;
} reduced;

/** Sums or multiplies floats in long double. */
static uint64_t reduce_in_long_double(const reduced *f, int64_t at[]) {
  int64_t inner[INTERP_MAX_RANK] = {0};
  long double sum = f->o == OP_MUL;
  for (size_t k = 0; k < f->count; k++, step_coords(f->n_axes, f->dims, inner)) {
    for (size_t i = 0; i < f->n_axes; i++) at[f->axes[i]] = inner[i];
    double v = scalar_to_double(f->x->dtype, read_element(f->x, offset(f->x, at)));
    sum = f->o == OP_MUL ? sum * v : sum + v;
  }
  return scalar_from_double(f->x->dtype, (double)sum);
}

static uint64_t reduce_in_type(const reduced *f, int64_t at[]) {
  int64_t inner[INTERP_MAX_RANK] = {0};
  uint64_t args[2] = {0};
  bool overflow = false;
  op_identity(f->o, f->x->dtype, args);
  for (size_t k = 0; k < f->count; k++, step_coords(f->n_axes, f->dims, inner)) {
    for (size_t i = 0; i < f->n_axes; i++) at[f->axes[i]] = inner[i];
    args[1] = read_element(f->x, offset(f->x, at));
    args[0] = scalar_eval(f->o, f->x->dtype, f->x->dtype, args, &overflow);
  }
  return args[0];
}

static void run_reduce(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  reduced f = {.x = x, .o = (op)n->ints[0], .n_axes = n->n_int - 1, .count = 1};
  bool goes[INTERP_MAX_RANK] = {false};
  int64_t outer[INTERP_MAX_RANK] = {0}, at[INTERP_MAX_RANK];
  for (size_t i = 0; i < f.n_axes; i++) {
    f.axes[i] = n->ints[i + 1];
    f.dims[i] = x->dims[f.axes[i]];
    f.count *= (size_t)f.dims[i];
    goes[f.axes[i]] = true;
  }
  bool exactly = op_rounds_reduction(f.o, (dtype)n->dtype);
  for (size_t k = 0; k < array_count(y); k++, step_coords(y->rank, y->dims, outer)) {
    for (size_t i = 0, j = 0; i < x->rank; i++) at[i] = goes[i] ? 0 : outer[j++];
    write_element(y, k, exactly ? reduce_in_long_double(&f, at) : reduce_in_type(&f, at));
  }
}

/* SET: the movements of the view are applied to an array of element positions, which shows the
   elements to overwrite. */

/** Applies the movements of the view of a SET to the positions. */
static void view_positions(run *r, const node *n) {
  node_list chain = {0};
  for (const node *v = n->src[1]; v != n->src[0]; v = v->src[0]) {
    if (v->op != OP_RESHAPE && v->op != OP_PERMUTE && v->op != OP_SLICE)
      diag_raise(r->d, TN_ERR_INTERNAL, "set (node %" PRIu64 "): %s is no view of what is set",
                 n->id, op_name(v->op));
    vec_push(&r->work, &chain, v);
  }
  while (chain.n) {
    move_array(r, vec_pop(&chain), &r->positions->a, 0, &r->moved);
    free_value(r, &r->positions);
    r->positions = r->moved;
    r->moved = NULL;
  }
}

static void run_set(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *old = array_of(r, n->src[0]), *with = array_of(r, n->src[2]);
  memcpy(y->data, old->data, old->bytes);
  interp_array *p = new_array(r, &r->positions, n, DT_I64, old->rank, old->dims);
  for (size_t k = 0; k < array_count(p); k++) write_element(p, k, k);
  arena_mark here = arena_save(&r->work);
  view_positions(r, n);
  arena_rewind(&r->work, here);
  p = &r->positions->a;
  if (!same_dims(p, with)) raise_bad_shape(r, n);
  for (size_t k = 0; k < array_count(p); k++)
    write_element(y, (size_t)read_element(p, k), read_element(with, k));
  free_value(r, &r->positions);
}

/* Writes at indices, and scans: in order, each rounded in the type. */

static uint64_t combine(dtype t, int64_t o, uint64_t x, uint64_t y) {
  bool overflow = false;
  return o < 0 ? y : scalar_eval((op)o, t, t, (uint64_t[]){x, y}, &overflow);
}

_Noreturn static void raise_written_twice(run *r, const node *n, size_t to) {
  diag_raise(r->d, TN_ERR_ARGUMENT,
             "%s (node %" PRIu64 ") writes element %zu twice, but its places are to be distinct",
             op_name(n->op), n->id, to);
}

static void run_scatter(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *old = array_of(r, n->src[0]), *values = array_of(r, n->src[1]);
  const interp_array *index[INTERP_MAX_RANK];
  int64_t at[INTERP_MAX_RANK];
  arena_mark here = arena_save(&r->work);
  bool *written = n->n_int > 1 ? arena_calloc(&r->work, array_count(y) + 1, sizeof *written) : NULL;
  memcpy(y->data, old->data, old->bytes);
  for (size_t i = 0; i < old->rank; i++) {
    index[i] = array_of(r, n->src[i + 2]);
    if (!same_dims(index[i], values)) raise_bad_shape(r, n);
  }
  for (size_t k = 0; k < array_count(values); k++) {
    for (size_t i = 0; i < old->rank; i++) at[i] = (int64_t)read_element(index[i], k);
    if (!inside(y, at)) continue;
    size_t to = offset(y, at);
    if (written && written[to]) raise_written_twice(r, n, to);
    if (written) written[to] = true;
    write_element(y, to,
                  combine(y->dtype, n->ints[0], read_element(y, to), read_element(values, k)));
  }
  arena_rewind(&r->work, here);
}

/** Combines elements with a running result for each line along the axis and each class. */
static void run_scan(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  const interp_array *classes = n->n_src > 1 ? array_of(r, n->src[1]) : NULL;
  size_t many = classes ? (size_t)n->ints[2] : 1, inner = 1, length = (size_t)y->dims[n->ints[1]];
  size_t count = array_count(y), states;
  if (classes && !same_dims(classes, x)) raise_bad_shape(r, n);
  if (!count) return;
  if (__builtin_mul_overflow(count / length, many, &states) ||
      states > PTRDIFF_MAX / sizeof(uint64_t))
    diag_raise(r->d, TN_ERR_MEMORY, "%s (node %" PRIu64 ") has too many classes", op_name(n->op),
               n->id);
  for (size_t i = (size_t)n->ints[1] + 1; i < y->rank; i++) inner *= (size_t)y->dims[i];
  uint64_t start = 0;
  op_identity((op)n->ints[0], y->dtype, &start);
  arena_mark here = arena_save(&r->work);
  uint64_t *state = arena_alloc(&r->work, states * sizeof *state);
  for (size_t i = 0; i < states; i++) state[i] = start;
  for (size_t k = 0; k < count; k++) {
    uint64_t at = classes ? read_element(classes, k) : 0, alone = start;
    size_t line = k / (length * inner) * inner + k % inner;
    uint64_t *before = at < many ? &state[line * many + at] : &alone;
    *before = combine(y->dtype, n->ints[0], *before, read_element(x, k));
    write_element(y, k, *before);
  }
  arena_rewind(&r->work, here);
}

/* Sources and host functions. */

/** Uses an array of the caller as the value of a node, without a copy. */
static void borrow_array(run *r, const node *n, const interp_array *a) {
  int64_t dims[INTERP_MAX_RANK];
  dims_of(r, n, dims);
  size_t bytes =
      interp_element_count(n->rank, dims, dtype_bytes(n->dtype), n, r->d) * dtype_bytes(n->dtype);
  if (a->rank != n->rank || memcmp(a->dims, dims, n->rank * sizeof *dims) || a->bytes < bytes)
    diag_raise(r->d, TN_ERR_SHAPE, "%s %lld was given an array of another shape", op_name(n->op),
               (long long)n->ints[0]);
  value *v = mem_calloc(r->work.mem, 1, sizeof *v);
  if (!v) diag_raise(r->d, TN_ERR_MEMORY, "out of memory");
  v->a = *a;
  v->a.bytes = bytes;
  r->nodes.at[position(r, n)] = v;
}

static void run_buffer(run *r, const node *n) {
  const interp_array *a = r->e->buffer ? r->e->buffer(r->e->user, n->ints[0], n->ints[1]) : NULL;
  if (!a || a->dtype != n->dtype)
    diag_raise(r->d, TN_ERR_ARGUMENT, "buffer %lld, version %lld, has no contents of type %s",
               (long long)n->ints[0], (long long)n->ints[1], dtype_name(n->dtype));
  borrow_array(r, n, a);
}

static void run_iota(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  int64_t at[INTERP_MAX_RANK] = {0};
  for (size_t k = 0; k < array_count(y); k++, step_coords(y->rank, y->dims, at))
    write_element(y, k, (uint64_t)at[n->ints[0]]);
}

static void run_custom(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  size_t n_inputs = (size_t)n->ints[2];
  if (!r->e->custom)
    diag_raise(r->d, TN_ERR_ARGUMENT, "there is no host function for custom %lld",
               (long long)n->ints[0]);
  arena_mark here = arena_save(&r->work);
  interp_array *inputs = arena_alloc(&r->work, n_inputs * sizeof *inputs);
  for (size_t i = 0; i < n_inputs; i++) inputs[i] = *array_of(r, n->src[i]);
  if (r->e->custom(r->e->user, n, inputs, n_inputs, y, r->d) != TN_OK) diag_rethrow(r->d);
  arena_rewind(&r->work, here);
}

static void run_kernel(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  size_t n_inputs = (size_t)n->ints[1];
  if (!r->e->kernel)
    diag_raise(r->d, TN_ERR_ARGUMENT,
               "there is no interpreter of kernels for a kernel of slot %lld",
               (long long)n->ints[0]);
  arena_mark here = arena_save(&r->work);
  interp_array *inputs = arena_alloc(&r->work, n_inputs * sizeof *inputs);
  for (size_t i = 0; i < n_inputs; i++) inputs[i] = *array_of(r, n->src[i]);
  if (r->e->kernel(r->e, n, inputs, y, r->work.mem, r->d) != TN_OK) diag_rethrow(r->d);
  arena_rewind(&r->work, here);
}

/* Loops: nodes that depend on the range of a loop run in each trip. Arrays from outside of a loop
   live until the outermost loop has ended. */

static void evaluate(run *r, const node *n);

/** True unless all that reads a node is in sides that PICKs do not take. */
static bool is_needed(const run *r, const node *n) {
  const guard *g = r->nodes.guards ? r->nodes.guards[position(r, n)] : NULL;
  for (size_t i = 0; g && i < g->n; i++)
    if ((index_of(r, g->at[i].condition) != 0) != g->at[i].is_one) return false;
  return true;
}

static void run_node(run *r, const node *n) {
  if (n->op == OP_RANGE || !is_needed(r, n)) return;
  if (n->dtype == DT_INDEX)
    r->nodes.index[position(r, n)] = index_value(r, n);
  else
    evaluate(r, n);
}

/** Copies an array into a slot. */
static void copy_value(run *r, value **slot, const node *n, const interp_array *a) {
  free_value(r, slot);
  memcpy(new_array(r, slot, n, a->dtype, a->rank, a->dims)->data, a->data, a->bytes);
}

static void start_loop(run *r, loop_run *k) {
  for (size_t i = 0; i < loop_n_results(k->loop); i++) {
    const node *sizes[INTERP_MAX_RANK + 1];
    int64_t dims[INTERP_MAX_RANK + 1];
    size_t rank = loop_result_sizes(k->loop, i, sizes);
    free_value(r, &k->results[i]);
    if (i < loop_n_states(k->loop)) {
      copy_value(r, &k->results[i], k->loop, array_of(r, loop_init(k->loop, i)));
      continue;
    }
    for (size_t d = 0; d < rank; d++) dims[d] = index_of(r, sizes[d]);
    new_array(r, &k->results[i], k->loop, loop_result_dtype(k->loop, i), rank, dims);
  }
}

/** Steps all states at once from their old values, then stores the emitted tensors. */
static void end_trip(run *r, loop_run *k) {
  size_t n = loop_n_states(k->loop);
  for (size_t i = 0; i < n; i++)
    copy_value(r, &k->next[i], k->loop, array_of(r, loop_step(k->loop, i)));
  for (size_t i = 0; i < loop_n_emits(k->loop); i++) {
    const interp_array *from = array_of(r, loop_emit(k->loop, i));
    interp_array *to = &k->results[n + i]->a;
    int64_t place = index_of(r, loop_emit_index(k->loop, i));
    if (place < 0 || place >= to->dims[0]) raise_bad_shape(r, k->loop);
    if (from->bytes)
      memcpy((char *)to->data + (size_t)place * from->bytes, from->data, from->bytes);
  }
  for (size_t i = 0; i < n; i++) {
    free_value(r, &k->results[i]);
    k->results[i] = k->next[i];
    k->next[i] = NULL;
  }
  for (size_t i = 0; i < k->own.n; i++) free_value(r, &r->nodes.at[position(r, k->own.at[i])]);
}

/** True if the state that ends a loop is true. */
static bool ends(const loop_run *k) {
  size_t until = loop_until(k->loop);
  return until != SIZE_MAX && read_element(&k->results[until]->a, 0);
}

/** Recursion is as deep as the nesting of loops, which is bounded. */
static void run_loop(run *r, loop_run *k) {
  int64_t trips = index_of(r, range_extent(loop_range(k->loop)));
  start_loop(r, k);
  for (int64_t t = 0; t < trips && !ends(k); t++) {
    r->nodes.index[position(r, loop_range(k->loop))] = t;
    for (size_t i = 0; i < k->own.n; i++) run_node(r, k->own.at[i]);
    end_trip(r, k);
  }
}

static void run_carry(run *r, const node *n) {
  const loop_run *k = map_get(&r->inside, n);
  copy_value(r, &r->nodes.at[position(r, n)], n, &k->results[n->ints[0]]->a);
}

static void run_result(run *r, const node *n) {
  const loop_run *k = map_get(&r->loops, n->src[0]);
  if (!k) diag_raise(r->d, TN_ERR_INTERNAL, "a loop that has become a plan of its own");
  copy_value(r, &r->nodes.at[position(r, n)], n, &k->results[n->ints[0]]->a);
}

/** Lists the nodes below a loop that depend on its range. */
static void list_body(run *r, loop_run *k) {
  map dependent = {0};
  node_list order = topo_sort(&r->work, &k->loop, 1, NULL, NULL);
  for (size_t i = 0; i + 1 < order.n; i++) {
    const node *n = order.at[i];
    bool depends = n == loop_range(k->loop);
    for (uint32_t s = 0; s < n->n_src; s++) depends |= map_has(&dependent, n->src[s]);
    if (!depends) continue;
    map_set(&r->work, &dependent, n, NULL);
    vec_push(&r->work, &k->body, n);
    if (map_has(&r->inside, n)) continue;
    map_set(&r->work, &r->inside, n, k);
    vec_push(&r->work, &k->own, n);
  }
}

/** Lists the loops; inner ones come before those around them. */
static void find_loops(run *r) {
  for (size_t i = 0; i < r->nodes.order.n; i++) {
    const node *n = r->nodes.order.at[i];
    if (n->op != OP_LOOP) continue;
    loop_run *k = arena_calloc(&r->work, 1, sizeof *k);
    k->loop = n;
    k->results = arena_calloc(&r->work, loop_n_results(n) + 1, sizeof *k->results);
    k->next = arena_calloc(&r->work, loop_n_states(n) + 1, sizeof *k->next);
    map_set(&r->work, &r->loops, n, k);
    list_body(r, k);
    for (size_t b = 0; b < k->body.n; b++) {
      const loop_run *inner = map_get(&r->loops, k->body.at[b]);
      if (inner && inner->depth >= k->depth) k->depth = inner->depth + 1;
    }
    if (k->depth >= LOOP_MAX_DEPTH)
      diag_raise(r->d, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_MAX_DEPTH);
  }
}

static void run_pick(run *r, const node *n) {
  const interp_array *from = array_of(r, n->src[index_of(r, n->src[0]) ? 1 : 2]);
  int64_t dims[INTERP_MAX_RANK];
  dims_of(r, n, dims);
  if (memcmp(dims, from->dims, n->rank * sizeof *dims)) raise_bad_shape(r, n);
  copy_value(r, &r->nodes.at[position(r, n)], n, from);
}

static void evaluate(run *r, const node *n) {
  switch (n->op) {
  case OP_PICK: run_pick(r, n); return;
  case OP_LOOP: run_loop(r, map_get(&r->loops, n)); return;
  case OP_CARRY: run_carry(r, n); return;
  case OP_RESULT: run_result(r, n); return;
  case OP_CONST: write_element(result_of(r, n), 0, (uint64_t)node_int(n)); return;
  case OP_VAR: write_element(result_of(r, n), 0, interp_var_value(r->e, n, r->d)); return;
  case OP_PARAM: borrow_array(r, n, interp_param(r->e, n, r->d)); return;
  case OP_BUFFER: run_buffer(r, n); return;
  case OP_IOTA: run_iota(r, n); return;
  case OP_RESHAPE:
  case OP_EXPAND:
  case OP_PERMUTE:
  case OP_SLICE:
  case OP_PAD: run_movement(r, n); return;
  case OP_GATHER: run_gather(r, n); return;
  case OP_TO: run_to(r, n); return;
  case OP_REDUCE: run_reduce(r, n); return;
  case OP_SET: run_set(r, n); return;
  case OP_SCATTER: run_scatter(r, n); return;
  case OP_SCAN: run_scan(r, n); return;
  case OP_CUSTOM: run_custom(r, n); return;
  case OP_KERNEL: run_kernel(r, n); return;
  default: break;
  }
  if (!op_is_elementwise(n->op))
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is no op of a tensor graph",
               op_name(n->op), n->id);
  run_elementwise(r, n, result_of(r, n));
}

/* Graphs. */

static void number_nodes(run *r) {
  r->nodes.order = topo_sort(&r->work, r->roots, r->n, NULL, NULL);
  r->nodes.index = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.index);
  r->nodes.uses = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.uses);
  for (size_t i = 0; i < r->nodes.order.n; i++)
    map_set(&r->work, &r->nodes.number, r->nodes.order.at[i], (void *)(uintptr_t)(i + 1));
  for (size_t i = 0; i < r->nodes.order.n; i++)
    for (uint32_t k = 0; k < r->nodes.order.at[i]->n_src; k++)
      r->nodes.uses[position(r, r->nodes.order.at[i]->src[k])]++;
  for (size_t i = 0; i < r->n; i++) r->nodes.uses[position(r, r->roots[i])]++;
  r->nodes.at = arena_calloc(&r->work, r->nodes.order.n, sizeof *r->nodes.at);
}

/** Finds under which conditions each node is needed, from the roots back. */
static void find_guards(run *r) {
  const node_list *order = &r->nodes.order;
  guard_table t = guard_table_of(&r->work, order->at, order->n);
  bool has_picks = false;
  for (size_t i = 0; i < order->n; i++) has_picks |= order->at[i]->op == OP_PICK;
  if (!has_picks) return;
  const guard **guards = arena_calloc(&r->work, order->n, sizeof *guards);
  for (size_t i = 0; i < r->n; i++) guards[position(r, r->roots[i])] = guard_always(&t);
  for (size_t i = order->n; i-- > 0;)
    for (size_t k = 0; k < order->at[i]->n_src; k++) {
      const guard **of = &guards[position(r, order->at[i]->src[k])];
      *of = guard_common(&t, *of, guard_of_source(&t, guards[i], order->at[i], k));
    }
  r->nodes.guards = guards;
}

static void release_sources(run *r, const node *n) {
  for (uint32_t k = 0; k < n->n_src; k++) {
    size_t s = position(r, n->src[k]);
    if (!--r->nodes.uses[s]) free_value(r, &r->nodes.at[s]);
  }
}

static void run_graph(void *arg) {
  run *r = arg;
  number_nodes(r);
  find_guards(r);
  find_loops(r);
  for (size_t i = 0; i < r->nodes.order.n; i++) {
    const node *n = r->nodes.order.at[i];
    if (map_has(&r->inside, n)) continue;
    run_node(r, n);
    const loop_run *loop = map_get(&r->loops, n);
    for (size_t k = 0; loop && k < loop->body.n; k++) release_sources(r, loop->body.at[k]);
    release_sources(r, n);
  }
  for (size_t i = 0; i < r->n; i++) {
    r->results[i] = operand(r, r->roots[i]);
    r->results[i].data = arena_copy(r->out, r->results[i].data, r->results[i].bytes);
  }
}

tn_status interp_tensor(const interp_env *e, const node *const roots[], size_t n,
                        interp_array results[], arena *a) {
  run r = {.e = e, .roots = roots, .n = n, .results = results, .out = a, .d = a->diag};
  arena_init(&r.work, a->mem, a->diag);
  tn_status status = diag_catch(a->diag, run_graph, &r);
  for (size_t i = 0; r.nodes.at && i < r.nodes.order.n; i++) free_value(&r, &r.nodes.at[i]);
  for (size_t i = 0; i < r.loops.n; i++) {
    loop_run *k = r.loops.at[i].value;
    for (size_t c = 0; c < loop_n_results(k->loop); c++) free_value(&r, &k->results[c]);
    for (size_t c = 0; c < loop_n_states(k->loop); c++) free_value(&r, &k->next[c]);
  }
  free_value(&r, &r.positions);
  free_value(&r, &r.moved);
  arena_free(&r.work);
  return status;
}
