/* Computes elementwise nodes of a tensor graph by rows, and index nodes, which are numbers. */
#include "ir/core/scalar_eval.h"
#include "ir/index/item_bounds.h"
#include "ir/interp/tensor_run.h"

static _Noreturn void raise_no_tensor_op(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is no op of a tensor graph",
             op_name(n->op), n->id);
}

element_source elementwise_source(const run *r, const node *n) {
  element_source s = {.op = {.o = n->op, .n = n->n_src, .result = n->dtype}};
  if (!op_is_elementwise(n->op) || !n->n_src || n->n_src > 3) raise_no_tensor_op(r, n);
  for (uint32_t i = 0; i < n->n_src; i++) {
    s.from[i] = tensor_operand(r, n->src[i]);
    s.op.operands[i] = s.from[i].dtype;
    if (!strided_same_dims(&s.from[0], &s.from[i])) raise_bad_shape(r, n);
  }
  return s;
}

element_source array_source(const strided *a) {
  return (element_source){true, {.n = 1, .operands = {a->dtype}, .result = a->dtype}, {*a}};
}

const char *element_source_row(const element_source *s, const char *const rows[], char *to,
                               size_t n, bool *overflow) {
  if (s->is_array) return rows[0];
  row_eval(&s->op, rows, to, n, overflow);
  return to;
}

void run_elementwise(run *r, const node *n) {
  element_source s = elementwise_source(r, n);
  strided *y = result_of(r, n);
  row_reader readers[3];
  const char *rows[3];
  bool overflow = false;
  size_t count = strided_count(y), bytes = dtype_bytes(y->dtype);
  arena_mark here = arena_save(&r->work);
  if (!strided_same_dims(y, &s.from[0])) raise_bad_shape(r, n);
  for (size_t i = 0; i < s.op.n; i++) readers[i] = row_reader_of(&r->work, &s.from[i]);
  for (size_t k = 0, length; k < count; k += length) {
    length = strided_row_length(count, k);
    for (size_t i = 0; i < s.op.n; i++) rows[i] = row_reader_next(&readers[i], length);
    row_eval(&s.op, rows, y->data + k * bytes, length, &overflow);
  }
  arena_rewind(&r->work, here);
  if (overflow) raise_overflow(r, n);
}

/* Index nodes. */

static int64_t eval_affine(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  uint64_t *args = arena_alloc(&r->work, n->n_src * sizeof *args);
  bool overflow = false;
  for (uint32_t i = 0; i < n->n_src; i++) args[i] = (uint64_t)tensor_index(r, n->src[i]);
  uint64_t sum = scalar_eval_affine(n->ints, n->n_src, args, &overflow);
  arena_rewind(&r->work, here);
  if (overflow) raise_overflow(r, n);
  return (int64_t)sum;
}

/** An element of an array, 0 outside of it. */
static int64_t eval_item(run *r, const node *n) {
  const strided *x = tensor_array(r, n->src[0]);
  int64_t at[INTERP_MAX_RANK], most = tensor_index(r, n->src[n->n_src - 1]);
  for (size_t i = 0; i < x->rank; i++) at[i] = tensor_index(r, n->src[1 + i]);
  uint64_t bits = strided_is_inside(x, at) ? strided_read(x, strided_place(x, at)) : 0;
  int64_t value = (int64_t)scalar_cast(DT_I64, x->dtype, bits);
  if (value < n->ints[0] || value > most) {
    item_refuse(NULL, "", value, n->ints[0], most, r->d);
    diag_rethrow(r->d);
  }
  return value;
}

/** An elementwise op on numbers. */
static int64_t eval_numbers(const run *r, const node *n) {
  element_source s = elementwise_source(r, n);
  uint64_t args[3];
  bool overflow = false;
  if (s.from[0].rank) raise_bad_shape(r, n);
  for (size_t i = 0; i < s.op.n; i++) args[i] = strided_read(&s.from[i], 0);
  dtype t = s.op.operands[scalar_typed_operand(n->op)];
  uint64_t result = scalar_eval(n->op, t, n->dtype, args, &overflow);
  if (overflow) raise_overflow(r, n);
  return (int64_t)result;
}

int64_t index_value(run *r, const node *n) {
  switch (n->op) {
  case OP_CONST: return node_int(n);
  case OP_VAR: return (int64_t)interp_var_value(r->e, n, r->d);
  case OP_AFFINE: return eval_affine(r, n);
  case OP_ITEM: return eval_item(r, n);
  default: return eval_numbers(r, n);
  }
}
