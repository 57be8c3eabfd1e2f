/* Computes reads and writes of elements at indices, and scans: in order, each result rounded in the
   type. */
#include "ir/core/scalar_eval.h"
#include "ir/interp/tensor_run.h"

/** Arrays of equal sizes that are read side by side, by rows. */
typedef struct parallel {
  size_t n, count;
  row_reader readers[INTERP_MAX_RANK + 1];
  const char *rows[INTERP_MAX_RANK + 1];
} parallel;

static void add_array(run *r, parallel *p, const node *n, const strided *a) {
  if (p->n && !strided_same_dims(p->readers[0].a, a)) raise_bad_shape(r, n);
  p->count = strided_count(a);
  p->readers[p->n++] = row_reader_of(&r->work, a);
}

/** Reads the rows from element k on; returns the length. */
static size_t next_rows(parallel *p, size_t k) {
  size_t length = strided_row_length(p->count, k);
  for (size_t i = 0; i < p->n; i++) p->rows[i] = row_reader_next(&p->readers[i], length);
  return length;
}

static uint64_t element(const parallel *p, size_t array, size_t i) {
  dtype t = p->readers[array].a->dtype;
  return scalar_load(t, p->rows[array] + i * dtype_bytes(t));
}

/** The coordinates that the arrays from `first` on tell. */
static void read_indices(const parallel *p, size_t first, size_t i, int64_t at[]) {
  for (size_t axis = first; axis < p->n; axis++) at[axis - first] = (int64_t)element(p, axis, i);
}

void run_gather(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  strided *y = result_of(r, n);
  const strided *x = tensor_array(r, n->src[0]);
  parallel *p = arena_calloc(&r->work, 1, sizeof *p);
  int64_t at[INTERP_MAX_RANK];
  if (n->n_src != x->rank + 1) raise_bad_shape(r, n);
  p->count = strided_count(y);
  for (size_t i = 0; i < x->rank; i++) {
    const strided *index = tensor_array(r, n->src[i + 1]);
    if (!strided_same_dims(index, y)) raise_bad_shape(r, n);
    add_array(r, p, n, index);
  }
  for (size_t k = 0, length; k < p->count; k += length) {
    length = next_rows(p, k);
    for (size_t i = 0; i < length; i++) {
      read_indices(p, 0, i, at);
      bool is_inside = strided_is_inside(x, at);
      strided_write(y, (int64_t)(k + i), is_inside ? strided_read(x, strided_place(x, at)) : 0);
    }
  }
  arena_rewind(&r->work, here);
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
    move_value(r, vec_pop(&chain), r->positions, 0, &r->moved);
    free_value(r, &r->positions);
    r->positions = r->moved;
    r->moved = NULL;
  }
}

void run_set(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  strided *y = result_of(r, n);
  const strided *old = tensor_array(r, n->src[0]);
  parallel *p = arena_calloc(&r->work, 1, sizeof *p);
  strided_store(y, old);
  strided *numbers = new_array(r, &r->positions, n, DT_I64, old->rank, old->dims);
  size_t count = strided_count(numbers);
  for (size_t k = 0; k < count; k++) strided_write(numbers, (int64_t)k, k);
  view_positions(r, n);
  add_array(r, p, n, &r->positions->a);
  add_array(r, p, n, tensor_array(r, n->src[2]));
  for (size_t k = 0, length; k < p->count; k += length) {
    length = next_rows(p, k);
    for (size_t i = 0; i < length; i++)
      strided_write(y, (int64_t)element(p, 0, i), element(p, 1, i));
  }
  free_value(r, &r->positions);
  arena_rewind(&r->work, here);
}

/* Writes at indices, and scans. */

static uint64_t combine(dtype t, int64_t o, uint64_t x, uint64_t y) {
  bool overflow = false;
  return o < 0 ? y : scalar_eval((op)o, t, t, (uint64_t[]){x, y}, &overflow);
}

_Noreturn static void raise_written_twice(run *r, const node *n, int64_t to) {
  diag_raise(r->d, TN_ERR_ARGUMENT,
             "%s (node %" PRIu64 ") writes element %lld twice, but its places are to be distinct",
             op_name(n->op), n->id, (long long)to);
}

/** Combines the i-th value of the rows with the element of y at its indices; `written`: where
    places are to be distinct, whether each element was written. */
static void scatter_element(run *r, const node *n, strided *y, const parallel *p, size_t i,
                            bool written[]) {
  int64_t at[INTERP_MAX_RANK];
  read_indices(p, 1, i, at);
  if (!strided_is_inside(y, at)) return;
  int64_t to = strided_place(y, at);
  if (written && written[to]) raise_written_twice(r, n, to);
  if (written) written[to] = true;
  strided_write(y, to, combine(y->dtype, n->ints[0], strided_read(y, to), element(p, 0, i)));
}

void run_scatter(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  strided *y = result_of(r, n);
  const strided *old = tensor_array(r, n->src[0]);
  parallel *p = arena_calloc(&r->work, 1, sizeof *p);
  bool *written =
      n->n_int > 1 ? arena_calloc(&r->work, strided_count(y) + 1, sizeof *written) : NULL;
  strided_store(y, old);
  for (size_t i = 0; i <= old->rank; i++) add_array(r, p, n, tensor_array(r, n->src[i + 1]));
  for (size_t k = 0, length; k < p->count; k += length) {
    length = next_rows(p, k);
    for (size_t i = 0; i < length; i++) scatter_element(r, n, y, p, i, written);
  }
  arena_rewind(&r->work, here);
}

/** Combines elements with a running result for each line along the axis and each class. */
void run_scan(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  strided *y = result_of(r, n);
  parallel *p = arena_calloc(&r->work, 1, sizeof *p);
  size_t axis = (size_t)n->ints[1], inner = 1, length = (size_t)y->dims[axis];
  size_t many = n->n_src > 1 ? (size_t)n->ints[2] : 1, states;
  uint64_t start = 0;
  for (size_t i = 0; i < n->n_src; i++) add_array(r, p, n, tensor_array(r, n->src[i]));
  if (!strided_count(y)) {
    arena_rewind(&r->work, here);
    return;
  }
  if (__builtin_mul_overflow(strided_count(y) / length, many, &states) ||
      states > PTRDIFF_MAX / sizeof(uint64_t))
    diag_raise(r->d, TN_ERR_MEMORY, "%s (node %" PRIu64 ") has too many classes", op_name(n->op),
               n->id);
  for (size_t i = axis + 1; i < y->rank; i++) inner *= (size_t)y->dims[i];
  op_identity((op)n->ints[0], y->dtype, &start);
  uint64_t *state = arena_alloc(&r->work, states * sizeof *state);
  for (size_t i = 0; i < states; i++) state[i] = start;
  for (size_t k = 0, rows; k < p->count; k += rows) {
    rows = next_rows(p, k);
    for (size_t i = 0; i < rows; i++) {
      uint64_t class = p->n > 1 ? element(p, 1, i) : 0, alone = start;
      size_t line = (k + i) / (length * inner) * inner + (k + i) % inner;
      uint64_t *before = class < many ? &state[line * many + class] : &alone;
      *before = combine(y->dtype, n->ints[0], *before, element(p, 0, i));
      strided_write(y, (int64_t)(k + i), *before);
    }
  }
  arena_rewind(&r->work, here);
}
