/* Constant tensors of a file: scalars become CONSTs, tensors of strings their numbers, sparse
   tensors are scattered into zeros, and all others are weights, one for each place in the file's
   bytes. Also the checks of types, ranks and numbers of elements that inputs and results share. */
#include "formats/onnx/graph_import.h"

#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <string.h>

dtype importer_check_dtype(import *m, int number, const char *kind, const char *name) {
  if (!dtype_is_data((dtype)number))
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s '%.200s' has type %s, which is not supported",
               kind, name, onnx_dtype_name(number) ? onnx_dtype_name(number) : "(unknown)");
  return (dtype)number;
}

void importer_check_rank(import *m, const char *kind, const char *name, size_t rank, size_t most) {
  if (rank > most)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "%s '%.200s' has %zu dimensions; at most %zu are supported", kind, name, rank, most);
}

void importer_check_element_count(import *m, const node *n) {
  const node *count = ix_const(m->b.ir, 1);
  for (size_t i = 0; i < n->rank; i++)
    if (!node_is_bits(n->dims[i], 0)) count = ix_mul(m->b.ir, count, n->dims[i]);
}

/** Operators add up to two axes to those of their operands. */
enum { WEIGHT_RANK_MAX = SIZES_MAX_RANK - 2 };

/** Finds the BUFFER of an earlier weight over the same bytes of the file (tied weights); NULL:
 * none.
 */
static const node *find_tied_weight(const import *m, const onnx_tensor *t, dtype type,
                                    const node *const dims[]) {
  const node *n = t->bytes ? map_get(&m->weights_by_data, t->data) : NULL;
  bool is_same = n && n->dtype == type && n->rank == t->dims.n;
  for (size_t i = 0; i < t->dims.n && is_same; i++) is_same = n->dims[i] == dims[i];
  return is_same ? n : NULL;
}

void importer_load_tensor(const import *m, const onnx_tensor *t) {
  if (onnx_tensor_load(m->tensors, t, m->b.diag) != TN_OK) diag_rethrow(m->b.diag);
}

/** Raises unless the indices of a sparse tensor are inside of it. */
static void check_indices(import *m, const onnx_tensor *t) {
  size_t columns = t->indices->dims.n == 2 ? t->dims.n : 1;
  importer_load_tensor(m, t->indices);
  for (size_t i = 0; i < t->indices->elements; i++) {
    int64_t at = (int64_t)scalar_load(DT_I64, (const char *)t->indices->data + 8 * i);
    int64_t size = columns > 1 || t->dims.n == 1 ? t->dims.at[i % columns] : (int64_t)t->elements;
    if (at < 0 || at >= size)
      diag_raise(m->b.diag, TN_ERR_FORMAT,
                 "sparse tensor '%.200s': index %zu is %lld; it must be from 0 to %lld", t->name, i,
                 (long long)at, (long long)size - 1);
  }
}

/** Zeros with the values of a sparse tensor written at their places: dense once, as constants are.
 */
static value import_sparse(import *m, const onnx_tensor *t) {
  builder *b = &m->b;
  dtype type = importer_check_dtype(m, (int)t->dtype, "constant", t->name);
  importer_check_rank(m, "constant", t->name, t->dims.n, TN_MAX_RANK);
  sizes dense = {.rank = t->dims.n}, flat = {1, {ix_const(b->ir, (int64_t)t->elements)}};
  for (size_t i = 0; i < t->dims.n; i++) dense.at[i] = ix_const(b->ir, t->dims.at[i]);
  check_indices(m, t);
  value at = importer_constant(m, t->indices), values = importer_constant(m, t->values);
  bool is_linear = t->indices->dims.n == 1;
  if (is_linear) {
    sizes column = {2, {at.node->dims[0], ix_const(b->ir, 1)}};
    at = build_reshape(b, at, &column);
  }
  value zeros =
      build_expand(b, value_of(ir_const_bits(b->ir, type, 0)), is_linear ? &flat : &dense);
  value y = build_scatter_nd(b, zeros, at, values, OP_SET);
  return is_linear ? build_reshape(b, y, &dense) : y;
}

value importer_constant(import *m, const onnx_tensor *t) {
  if (t->values) return import_sparse(m, t);
  arena *a = m->b.arena;
  if (t->dtype == ONNX_STRING) return importer_add_strings(m, importer_string_constant(m, t).node);
  dtype type = importer_check_dtype(m, (int)t->dtype, "constant", t->name);
  importer_check_rank(m, "constant", t->name, t->dims.n, WEIGHT_RANK_MAX);
  if (!t->dims.n) importer_load_tensor(m, t);
  if (!t->dims.n) return (value){ir_const_bits(m->b.ir, type, scalar_load(type, t->data)), WEAK_NO};
  const node **dims = arena_alloc(a, t->dims.n * sizeof *dims);
  for (size_t i = 0; i < t->dims.n; i++) dims[i] = ix_const(m->b.ir, t->dims.at[i]);
  const node *n = find_tied_weight(m, t, type, dims);
  if (n) return (value){n, WEAK_NO};
  n = m->callbacks.weight(m->callbacks.user, t, type, t->dims.n, dims);
  map_set(a, &m->weights, n, (void *)t);
  if (t->bytes) map_set(a, &m->weights_by_data, t->data, (void *)n);
  return (value){n, WEAK_NO};
}

value onnx_constant_tensor(onnx_call *c, const onnx_tensor *t) {
  return importer_constant(c->m, t);
}

value onnx_computed_tensor(onnx_call *c, dtype t, const void *data, size_t rows, size_t columns) {
  arena *a = c->m->b.arena;
  size_t n = columns ? rows * columns : rows;
  onnx_tensor made = {.name = "",
                      .dtype = (onnx_dtype)t,
                      .elements = n,
                      .bytes = n * dtype_bytes(t),
                      .data = data,
                      .is_computed = true};
  vec_push(a, &made.dims, (int64_t)rows);
  if (columns) vec_push(a, &made.dims, (int64_t)columns);
  return importer_constant(c->m, arena_copy(a, &made, sizeof made));
}
