#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/loop.h"
#include "ir/scalar.h"
#include "ir/topo.h"

#include "base/map.h"

#include <string.h>

/* What all interpreters need. */

uint64_t interp_var_value(const interp_env *e, const node *var, diag *d) {
  for (size_t i = 0; i < e->n_vars; i++) {
    if (strcmp(e->vars[i].name, var->text)) continue;
    int64_t value = e->vars[i].value;
    if (value < var->ints[0] || value > var->ints[1])
      diag_raise(d, TN_ERR_ARGUMENT, "variable '%s' is %lld, beyond its bounds %lld … %lld",
                 var->text, (long long)value, (long long)var->ints[0], (long long)var->ints[1]);
    return scalar_cast(var->dtype, DT_I64, (uint64_t)value);
  }
  diag_raise(d, TN_ERR_ARGUMENT, "variable '%s' was given no value", var->text);
}

const interp_array *interp_param(const interp_env *e, const node *param, diag *d) {
  int64_t slot = param->ints[0];
  if (slot < 0 || (uint64_t)slot >= e->n_params)
    diag_raise(d, TN_ERR_ARGUMENT, "param %lld was given no array", (long long)slot);
  const interp_array *a = &e->params[slot];
  if (a->dtype != param->dtype)
    diag_raise(d, TN_ERR_ARGUMENT, "param %lld is of type %s, its array of type %s",
               (long long)slot, dtype_name(param->dtype), dtype_name(a->dtype));
  return a;
}

size_t interp_count(size_t rank, const int64_t dims[], size_t element_bytes, const node *n,
                    diag *d) {
  size_t count = 1;
  bool empty = false;
  if (rank > INTERP_RANK)
    diag_raise(d, TN_ERR_SHAPE, "%s (node %" PRIu64 ") has %zu dimensions (at most %d)",
               op_name(n->op), n->id, rank, INTERP_RANK);
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0)
      diag_raise(d, TN_ERR_SHAPE, "%s (node %" PRIu64 ") has the size %lld", op_name(n->op), n->id,
                 (long long)dims[i]);
    empty |= !dims[i];
  }
  if (empty) return 0;
  for (size_t i = 0; i < rank; i++)
    if (__builtin_mul_overflow(count, (size_t)dims[i], &count)) count = SIZE_MAX;
  if (count > PTRDIFF_MAX / (element_bytes ? element_bytes : 1))
    diag_raise(d, TN_ERR_MEMORY, "%s (node %" PRIu64 ") is too large", op_name(n->op), n->id);
  return count;
}

/* Values. Indices are numbers in a table of their own, which are kept; arrays are counted. */

typedef struct value {
  interp_array a;
  size_t owned; /* bytes allocated with it; 0: the data is the caller's */
} value;

/** A LOOP: what its trips run, and what it has given. */
typedef struct loop_run {
  const node *loop;
  node_list body;  /* what depends on its range, in order; of these its own are run in each trip, */
  node_list own;   /* the others by loops inside of it */
  value **results; /* states, then emitted arrays */
  value **next;    /* states after the trip at hand */
  size_t depth;    /* loops around it */
} loop_run;

typedef struct run {
  const interp_env *e;
  const node *const *roots;
  size_t n;
  interp_array *results;
  arena *out;
  arena work;
  diag *d;
  node_list order;
  map number;               /* node → position in `order`, + 1 */
  value **at;               /* by position; NULL: none yet, or gone */
  value *positions, *moved; /* of the SET at hand */
  int64_t *index;
  uint32_t *uses;
  map loops;  /* LOOP → loop_run */
  map inside; /* what depends on a trip → the loop_run of which it is an own */
} run;

static size_t position(const run *r, const node *n) {
  return (size_t)(uintptr_t)map_get(&r->number, n) - 1;
}

static void drop(run *r, value **slot) {
  if (*slot) mem_free(r->work.mem, *slot, sizeof(value) + (*slot)->owned);
  *slot = NULL;
}

/** A new array in a slot, its data cleared. */
static interp_array *new_array(run *r, value **slot, const node *n, dtype t, size_t rank,
                               const int64_t dims[]) {
  size_t bytes = interp_count(rank, dims, dtype_bytes(t), n, r->d) * dtype_bytes(t);
  value *v = mem_calloc(r->work.mem, 1, sizeof *v + bytes);
  char none[MEM_TEXT];
  if (!v) diag_raise(r->d, TN_ERR_MEMORY, "%s", mem_none(bytes, none));
  v->owned = bytes;
  v->a = (interp_array){.dtype = t, .rank = rank, .data = v + 1, .bytes = bytes};
  if (rank) memcpy(v->a.dims, dims, rank * sizeof *dims);
  *slot = v;
  return &v->a;
}

static int64_t index_of(const run *r, const node *n) { return r->index[position(r, n)]; }

static const interp_array *array_of(const run *r, const node *n) {
  const value *v = r->at[position(r, n)];
  if (!v)
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") has no value in a tensor graph",
               op_name(n->op), n->id);
  return &v->a;
}

static void dims_of(const run *r, const node *n, int64_t dims[]) {
  if (n->rank > INTERP_RANK) interp_count(n->rank, NULL, 1, n, r->d);
  for (size_t i = 0; i < n->rank; i++) dims[i] = index_of(r, n->dims[i]);
}

/** The result array of a node, in its slot. */
static interp_array *result_of(run *r, const node *n) {
  int64_t dims[INTERP_RANK];
  dims_of(r, n, dims);
  return new_array(r, &r->at[position(r, n)], n, n->dtype, n->rank, dims);
}

static size_t array_count(const interp_array *a) { return a->bytes / dtype_bytes(a->dtype); }

static uint64_t get(const interp_array *a, size_t i) {
  return scalar_load(a->dtype, (const char *)a->data + i * dtype_bytes(a->dtype));
}

static void put(interp_array *a, size_t i, uint64_t bits) {
  scalar_store(a->dtype, (char *)a->data + i * dtype_bytes(a->dtype), bits);
}

static bool same_dims(const interp_array *a, const interp_array *b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static _Noreturn void bad_shape(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): shapes do not fit", op_name(n->op), n->id);
}

/* Walking over coordinates, the last one fastest. */

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
  return (interp_array){.dtype = DT_INDEX, .data = &r->index[position(r, n)], .bytes = 8};
}

static _Noreturn void overflowed(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): an index beyond 64 bits", op_name(n->op),
             n->id);
}

static void elementwise(run *r, const node *n, interp_array *to) {
  interp_array from[3];
  if (!n->n_src || n->n_src > 3)
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is no op of a tensor graph",
               op_name(n->op), n->id);
  for (uint32_t i = 0; i < n->n_src; i++) {
    from[i] = operand(r, n->src[i]);
    if (!same_dims(to, &from[i])) bad_shape(r, n);
  }
  dtype t = from[scalar_typed_operand(n->op)].dtype;
  bool overflow = false;
  for (size_t k = 0; k < array_count(to); k++) {
    uint64_t args[3];
    for (uint32_t i = 0; i < n->n_src; i++) args[i] = get(&from[i], k);
    put(to, k, scalar_eval(n->op, t, n->dtype, args, &overflow));
  }
  if (overflow) overflowed(r, n);
}

static int64_t affine(run *r, const node *n) {
  arena_mark here = arena_here(&r->work);
  uint64_t *args = arena_alloc(&r->work, n->n_src * sizeof *args);
  bool overflow = false;
  for (uint32_t i = 0; i < n->n_src; i++) args[i] = (uint64_t)index_of(r, n->src[i]);
  uint64_t sum = scalar_affine(n->ints, n->n_src, args, &overflow);
  arena_reset(&r->work, here);
  if (overflow) overflowed(r, n);
  return (int64_t)sum;
}

static int64_t index_value(run *r, const node *n) {
  int64_t result = 0;
  interp_array to = {.dtype = DT_INDEX, .data = &result, .bytes = 8};
  switch (n->op) {
  case OP_CONST: return node_int(n);
  case OP_VAR: return (int64_t)interp_var_value(r->e, n, r->d);
  case OP_AFFINE: return affine(r, n);
  default: elementwise(r, n, &to); return result;
  }
}

/* Movement: result[at] = source[from]. */

typedef struct movement {
  const node *n;
  const interp_array *x;
  int64_t first[INTERP_RANK]; /* SLICE: starts; PAD: lows */
} movement;

/** The source's coordinates for the result's; false: outside the source. */
static bool locate(const movement *m, const int64_t at[], int64_t from[]) {
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

/** The array y = n(x), of x's type, in a slot; `fill` is what PAD puts outside. */
static interp_array *move(run *r, const node *n, const interp_array *x, uint64_t fill,
                          value **slot) {
  movement m = {.n = n, .x = x};
  int64_t dims[INTERP_RANK], at[INTERP_RANK] = {0}, from[INTERP_RANK];
  dims_of(r, n, dims);
  interp_array *y = new_array(r, slot, n, x->dtype, n->rank, dims);
  if (n->op == OP_RESHAPE) {
    if (x->bytes != y->bytes) bad_shape(r, n);
    memcpy(y->data, x->data, x->bytes);
    return y;
  }
  if (x->rank != n->rank) bad_shape(r, n);
  for (size_t i = 0; i < n->rank; i++)
    if (n->op == OP_SLICE || n->op == OP_PAD)
      m.first[i] = index_of(r, n->src[(n->op == OP_PAD ? 2 : 1) + i]);
  for (size_t k = 0; k < array_count(y); k++, step_coords(n->rank, dims, at)) {
    bool in = locate(&m, at, from);
    if (!in && n->op != OP_PAD) bad_shape(r, n);
    put(y, k, in ? get(x, offset(x, from)) : fill);
  }
  return y;
}

static void movement_op(run *r, const node *n) {
  const interp_array *x = array_of(r, n->src[0]);
  uint64_t fill = n->op == OP_PAD ? get(array_of(r, n->src[1]), 0) : 0;
  move(r, n, x, fill, &r->at[position(r, n)]);
}

static void gather(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  const interp_array *index[INTERP_RANK];
  int64_t from[INTERP_RANK];
  if (n->n_src != x->rank + 1) bad_shape(r, n);
  for (size_t i = 0; i < x->rank; i++) {
    index[i] = array_of(r, n->src[i + 1]);
    if (!same_dims(index[i], y)) bad_shape(r, n);
  }
  for (size_t k = 0; k < array_count(y); k++) {
    for (size_t i = 0; i < x->rank; i++) from[i] = (int64_t)get(index[i], k);
    put(y, k, inside(x, from) ? get(x, offset(x, from)) : 0);
  }
}

/* Reduction. */

/** The elements of x at the coordinates `at` on the axes kept and all on the axes that go. */
typedef struct reduced {
  const interp_array *x;
  op o;
  size_t n_axes;
  int64_t axes[INTERP_RANK], dims[INTERP_RANK]; /* that go */
  size_t count;
} reduced;

/** Sum or product of floats: more exact than the type, rounded once. */
static uint64_t reduce_exactly(const reduced *f, int64_t at[]) {
  int64_t inner[INTERP_RANK] = {0};
  long double sum = f->o == OP_MUL;
  for (size_t k = 0; k < f->count; k++, step_coords(f->n_axes, f->dims, inner)) {
    for (size_t i = 0; i < f->n_axes; i++) at[f->axes[i]] = inner[i];
    double v = scalar_to_double(f->x->dtype, get(f->x, offset(f->x, at)));
    sum = f->o == OP_MUL ? sum * v : sum + v;
  }
  return scalar_from_double(f->x->dtype, (double)sum);
}

static uint64_t reduce_in_type(const reduced *f, int64_t at[]) {
  int64_t inner[INTERP_RANK] = {0};
  uint64_t args[2] = {0};
  bool overflow = false;
  op_identity(f->o, f->x->dtype, args);
  for (size_t k = 0; k < f->count; k++, step_coords(f->n_axes, f->dims, inner)) {
    for (size_t i = 0; i < f->n_axes; i++) at[f->axes[i]] = inner[i];
    args[1] = get(f->x, offset(f->x, at));
    args[0] = scalar_eval(f->o, f->x->dtype, f->x->dtype, args, &overflow);
  }
  return args[0];
}

static void reduce(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *x = array_of(r, n->src[0]);
  reduced f = {.x = x, .o = (op)n->ints[0], .n_axes = n->n_int - 1, .count = 1};
  bool goes[INTERP_RANK] = {false};
  int64_t outer[INTERP_RANK] = {0}, at[INTERP_RANK];
  for (size_t i = 0; i < f.n_axes; i++) {
    f.axes[i] = n->ints[i + 1];
    f.dims[i] = x->dims[f.axes[i]];
    f.count *= (size_t)f.dims[i];
    goes[f.axes[i]] = true;
  }
  bool exactly = op_is_rounded(f.o, (dtype)n->dtype);
  for (size_t k = 0; k < array_count(y); k++, step_coords(y->rank, y->dims, outer)) {
    for (size_t i = 0, j = 0; i < x->rank; i++) at[i] = goes[i] ? 0 : outer[j++];
    put(y, k, exactly ? reduce_exactly(&f, at) : reduce_in_type(&f, at));
  }
}

/* SET: the view is carried out on the positions of the elements of the old contents. */

static void all_positions(run *r, const node *n, const interp_array *old) {
  interp_array *p = new_array(r, &r->positions, n, DT_I64, old->rank, old->dims);
  for (size_t k = 0; k < array_count(p); k++) put(p, k, k);
}

static void view_positions(run *r, const node *n) {
  node_list chain = {0};
  for (const node *v = n->src[1]; v != n->src[0]; v = v->src[0]) {
    if (v->op != OP_RESHAPE && v->op != OP_PERMUTE && v->op != OP_SLICE)
      diag_raise(r->d, TN_ERR_INTERNAL, "set (node %" PRIu64 "): %s is no view of what is set",
                 n->id, op_name(v->op));
    vec_push(&r->work, &chain, v);
  }
  while (chain.n) {
    move(r, vec_pop(&chain), &r->positions->a, 0, &r->moved);
    drop(r, &r->positions);
    r->positions = r->moved;
    r->moved = NULL;
  }
}

static void set(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  const interp_array *old = array_of(r, n->src[0]), *with = array_of(r, n->src[2]);
  memcpy(y->data, old->data, old->bytes);
  arena_mark here = arena_here(&r->work);
  all_positions(r, n, old);
  view_positions(r, n);
  arena_reset(&r->work, here);
  const interp_array *p = &r->positions->a;
  if (!same_dims(p, with)) bad_shape(r, n);
  for (size_t k = 0; k < array_count(p); k++) put(y, (size_t)get(p, k), get(with, k));
  drop(r, &r->positions);
}

/* Sources and host functions. */

/** A node whose data is the caller's. */
static void lend(run *r, const node *n, const interp_array *a) {
  int64_t dims[INTERP_RANK];
  dims_of(r, n, dims);
  size_t bytes =
      interp_count(n->rank, dims, dtype_bytes(n->dtype), n, r->d) * dtype_bytes(n->dtype);
  if (a->rank != n->rank || memcmp(a->dims, dims, n->rank * sizeof *dims) || a->bytes < bytes)
    diag_raise(r->d, TN_ERR_SHAPE, "%s %lld was given an array of another shape", op_name(n->op),
               (long long)n->ints[0]);
  value *v = mem_calloc(r->work.mem, 1, sizeof *v);
  if (!v) diag_raise(r->d, TN_ERR_MEMORY, "out of memory");
  v->a = *a;
  v->a.bytes = bytes;
  r->at[position(r, n)] = v;
}

static void buffer(run *r, const node *n) {
  const interp_array *a = r->e->buffer ? r->e->buffer(r->e->user, n->ints[0], n->ints[1]) : NULL;
  if (!a || a->dtype != n->dtype)
    diag_raise(r->d, TN_ERR_ARGUMENT, "buffer %lld, version %lld, has no contents of type %s",
               (long long)n->ints[0], (long long)n->ints[1], dtype_name(n->dtype));
  lend(r, n, a);
}

static void iota(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  int64_t at[INTERP_RANK] = {0};
  for (size_t k = 0; k < array_count(y); k++, step_coords(y->rank, y->dims, at))
    put(y, k, (uint64_t)at[n->ints[0]]);
}

static void custom(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  size_t n_inputs = (size_t)n->ints[2];
  if (!r->e->custom)
    diag_raise(r->d, TN_ERR_ARGUMENT, "there is no host function for custom %lld",
               (long long)n->ints[0]);
  arena_mark here = arena_here(&r->work);
  interp_array *inputs = arena_alloc(&r->work, n_inputs * sizeof *inputs);
  for (size_t i = 0; i < n_inputs; i++) inputs[i] = *array_of(r, n->src[i]);
  if (r->e->custom(r->e->user, n, inputs, n_inputs, y, r->d) != TN_OK) diag_rethrow(r->d);
  arena_reset(&r->work, here);
}

static void kernel(run *r, const node *n) {
  interp_array *y = result_of(r, n);
  size_t n_inputs = (size_t)n->ints[1];
  arena_mark here = arena_here(&r->work);
  interp_array *inputs = arena_alloc(&r->work, n_inputs * sizeof *inputs);
  for (size_t i = 0; i < n_inputs; i++) inputs[i] = *array_of(r, n->src[i]);
  if (interp_kernel_node(r->e, n, inputs, y, r->work.mem, r->d) != TN_OK) diag_rethrow(r->d);
  arena_reset(&r->work, here);
}

/* Loops. What depends on a loop's range is run in its trips; arrays from outside stay until the
   outermost loop has ended. */

static void evaluate(run *r, const node *n);

static void run_node(run *r, const node *n) {
  if (n->op == OP_RANGE) return;
  if (n->dtype == DT_INDEX)
    r->index[position(r, n)] = index_value(r, n);
  else
    evaluate(r, n);
}

/** A copy of an array in a slot. */
static void copy_value(run *r, value **slot, const node *n, const interp_array *a) {
  drop(r, slot);
  memcpy(new_array(r, slot, n, a->dtype, a->rank, a->dims)->data, a->data, a->bytes);
}

static void start_loop(run *r, loop_run *k) {
  for (size_t i = 0; i < loop_results(k->loop); i++) {
    const node *sizes[INTERP_RANK + 1];
    int64_t dims[INTERP_RANK + 1];
    size_t rank = loop_result_sizes(k->loop, i, sizes);
    drop(r, &k->results[i]);
    if (i < loop_states(k->loop)) {
      copy_value(r, &k->results[i], k->loop, array_of(r, loop_init(k->loop, i)));
      continue;
    }
    for (size_t d = 0; d < rank; d++) dims[d] = index_of(r, sizes[d]);
    new_array(r, &k->results[i], k->loop, loop_result_dtype(k->loop, i), rank, dims);
  }
}

/** All states from their old values; then what is emitted. */
static void end_trip(run *r, loop_run *k) {
  size_t n = loop_states(k->loop);
  for (size_t i = 0; i < n; i++)
    copy_value(r, &k->next[i], k->loop, array_of(r, loop_step(k->loop, i)));
  for (size_t i = 0; i < loop_emits(k->loop); i++) {
    const interp_array *from = array_of(r, loop_emit(k->loop, i));
    interp_array *to = &k->results[n + i]->a;
    int64_t place = index_of(r, loop_place(k->loop, i));
    if (place < 0 || place >= to->dims[0]) bad_shape(r, k->loop);
    if (from->bytes)
      memcpy((char *)to->data + (size_t)place * from->bytes, from->data, from->bytes);
  }
  for (size_t i = 0; i < n; i++) {
    drop(r, &k->results[i]);
    k->results[i] = k->next[i];
    k->next[i] = NULL;
  }
  for (size_t i = 0; i < k->own.n; i++) drop(r, &r->at[position(r, k->own.at[i])]);
}

/** As deep as loops are nested, which is bounded. */
static void run_loop(run *r, loop_run *k) {
  int64_t trips = index_of(r, range_extent(loop_range(k->loop)));
  start_loop(r, k);
  for (int64_t t = 0; t < trips; t++) {
    r->index[position(r, loop_range(k->loop))] = t;
    for (size_t i = 0; i < k->own.n; i++) run_node(r, k->own.at[i]);
    end_trip(r, k);
  }
}

static void carry(run *r, const node *n) {
  const loop_run *k = map_get(&r->inside, n);
  copy_value(r, &r->at[position(r, n)], n, &k->results[n->ints[0]]->a);
}

static void result(run *r, const node *n) {
  const loop_run *k = map_get(&r->loops, n->src[0]);
  if (!k) diag_raise(r->d, TN_ERR_INTERNAL, "a loop that has become a plan of its own");
  copy_value(r, &r->at[position(r, n)], n, &k->results[n->ints[0]]->a);
}

/** What depends on a loop's range, of what the loop reads. */
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

/** Inner loops come before those around them. */
static void find_loops(run *r) {
  for (size_t i = 0; i < r->order.n; i++) {
    const node *n = r->order.at[i];
    if (n->op != OP_LOOP) continue;
    loop_run *k = arena_calloc(&r->work, 1, sizeof *k);
    k->loop = n;
    k->results = arena_calloc(&r->work, loop_results(n) + 1, sizeof *k->results);
    k->next = arena_calloc(&r->work, loop_states(n) + 1, sizeof *k->next);
    map_set(&r->work, &r->loops, n, k);
    list_body(r, k);
    for (size_t b = 0; b < k->body.n; b++) {
      const loop_run *inner = map_get(&r->loops, k->body.at[b]);
      if (inner && inner->depth >= k->depth) k->depth = inner->depth + 1;
    }
    if (k->depth >= LOOP_DEPTH)
      diag_raise(r->d, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_DEPTH);
  }
}

static void drop_loops(run *r) {
  for (size_t i = 0; i < r->loops.cap; i++) {
    loop_run *k = r->loops.slot[i].key ? r->loops.slot[i].value : NULL;
    for (size_t c = 0; k && c < loop_results(k->loop); c++) drop(r, &k->results[c]);
    for (size_t c = 0; k && c < loop_states(k->loop); c++) drop(r, &k->next[c]);
  }
}

static void evaluate(run *r, const node *n) {
  switch (n->op) {
  case OP_LOOP: run_loop(r, map_get(&r->loops, n)); return;
  case OP_CARRY: carry(r, n); return;
  case OP_RESULT: result(r, n); return;
  case OP_CONST: put(result_of(r, n), 0, (uint64_t)node_int(n)); return;
  case OP_VAR: put(result_of(r, n), 0, interp_var_value(r->e, n, r->d)); return;
  case OP_PARAM: lend(r, n, interp_param(r->e, n, r->d)); return;
  case OP_BUFFER: buffer(r, n); return;
  case OP_IOTA: iota(r, n); return;
  case OP_RESHAPE:
  case OP_EXPAND:
  case OP_PERMUTE:
  case OP_SLICE:
  case OP_PAD: movement_op(r, n); return;
  case OP_GATHER: gather(r, n); return;
  case OP_REDUCE: reduce(r, n); return;
  case OP_SET: set(r, n); return;
  case OP_CUSTOM: custom(r, n); return;
  case OP_KERNEL: kernel(r, n); return;
  default: break;
  }
  if (!op_is_elementwise(n->op))
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is no op of a tensor graph",
               op_name(n->op), n->id);
  elementwise(r, n, result_of(r, n));
}

/* The run. */

static void number_nodes(run *r) {
  r->order = topo_sort(&r->work, r->roots, r->n, NULL, NULL);
  r->index = arena_calloc(&r->work, r->order.n, sizeof *r->index);
  r->uses = arena_calloc(&r->work, r->order.n, sizeof *r->uses);
  for (size_t i = 0; i < r->order.n; i++)
    map_set(&r->work, &r->number, r->order.at[i], (void *)(uintptr_t)(i + 1));
  for (size_t i = 0; i < r->order.n; i++)
    for (uint32_t k = 0; k < r->order.at[i]->n_src; k++)
      r->uses[position(r, r->order.at[i]->src[k])]++;
  for (size_t i = 0; i < r->n; i++) r->uses[position(r, r->roots[i])]++;
  r->at = arena_calloc(&r->work, r->order.n, sizeof *r->at);
}

static void end_uses(run *r, const node *n) {
  for (uint32_t k = 0; k < n->n_src; k++) {
    size_t s = position(r, n->src[k]);
    if (!--r->uses[s]) drop(r, &r->at[s]);
  }
}

static void body(void *arg) {
  run *r = arg;
  number_nodes(r);
  find_loops(r);
  for (size_t i = 0; i < r->order.n; i++) {
    const node *n = r->order.at[i];
    if (map_has(&r->inside, n)) continue;
    run_node(r, n);
    const loop_run *loop = map_get(&r->loops, n);
    for (size_t k = 0; loop && k < loop->body.n; k++) end_uses(r, loop->body.at[k]);
    end_uses(r, n);
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
  tn_status status = diag_catch(a->diag, body, &r);
  for (size_t i = 0; r.at && i < r.order.n; i++) drop(&r, &r.at[i]);
  drop_loops(&r);
  drop(&r, &r.positions);
  drop(&r, &r.moved);
  arena_free(&r.work);
  return status;
}
