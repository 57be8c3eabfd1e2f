/* Implements the values of nodes of a tensor graph: their memory is freed with the last value that
   shows it. */
#include "ir/interp/tensor_run.h"

#include <string.h>

_Noreturn void raise_bad_shape(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): shapes do not fit", op_name(n->op), n->id);
}

_Noreturn void raise_overflow(const run *r, const node *n) {
  diag_raise(r->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): an index beyond 64 bits", op_name(n->op),
             n->id);
}

size_t tensor_position(const run *r, const node *n) {
  return (size_t)(uintptr_t)map_get(&r->nodes.number, n) - 1;
}

value **tensor_slot(const run *r, const node *n) { return &r->nodes.at[tensor_position(r, n)]; }

int64_t tensor_index(const run *r, const node *n) { return r->nodes.index[tensor_position(r, n)]; }

const value *tensor_value(const run *r, const node *n) {
  const value *v = *tensor_slot(r, n);
  if (!v)
    diag_raise(r->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") has no value in a tensor graph",
               op_name(n->op), n->id);
  return v;
}

const strided *tensor_array(const run *r, const node *n) { return &tensor_value(r, n)->a; }

strided tensor_operand(const run *r, const node *n) {
  if (n->dtype != DT_INDEX) return *tensor_array(r, n);
  return strided_dense(DT_INDEX, 0, NULL, &r->nodes.index[tensor_position(r, n)]);
}

void tensor_dims(const run *r, const node *n, int64_t dims[]) {
  if (n->rank > INTERP_MAX_RANK) interp_element_count(n->rank, NULL, 1, n, r->d);
  for (size_t i = 0; i < n->rank; i++) dims[i] = tensor_index(r, n->dims[i]);
}

static void release_elements(run *r, elements *m) {
  if (m && !--m->users) mem_free(r->work.mem, m, sizeof *m + m->bytes);
}

void free_value(run *r, value **slot) {
  value *v = *slot;
  *slot = NULL;
  if (!v) return;
  release_elements(r, v->memory);
  mem_free(r->work.mem, v, sizeof *v);
}

void new_view(run *r, value **slot, const strided *a, elements *memory) {
  value *v = mem_alloc(r->work.mem, sizeof *v);
  if (!v) diag_raise(r->d, TN_ERR_MEMORY, "out of memory");
  *v = (value){*a, memory};
  if (memory) memory->users++;
  *slot = v;
}

strided *new_array(run *r, value **slot, const node *n, dtype t, size_t rank,
                   const int64_t dims[]) {
  size_t bytes = interp_element_count(rank, dims, dtype_bytes(t), n, r->d) * dtype_bytes(t);
  elements *m = mem_calloc(r->work.mem, 1, sizeof *m + bytes);
  value *v = m ? mem_alloc(r->work.mem, sizeof *v) : NULL;
  char text[MEM_TEXT_BYTES];
  if (!v) {
    mem_free(r->work.mem, m, sizeof *m + bytes);
    diag_raise(r->d, TN_ERR_MEMORY, "%s", mem_exhausted_text(bytes, text));
  }
  m->bytes = bytes;
  m->users = 1;
  *v = (value){strided_dense(t, rank, dims, m->at), m};
  *slot = v;
  return &v->a;
}

strided *result_of(run *r, const node *n) {
  int64_t dims[INTERP_MAX_RANK];
  tensor_dims(r, n, dims);
  return new_array(r, tensor_slot(r, n), n, n->dtype, n->rank, dims);
}

void share_value(run *r, value **slot, const value *from) {
  value *shared;
  new_view(r, &shared, &from->a, from->memory);
  free_value(r, slot);
  *slot = shared;
}

interp_array tensor_dense_array(run *r, const node *n) {
  const strided *a = tensor_array(r, n);
  if (!strided_is_dense(a)) {
    value *dense;
    strided_copy(a, new_array(r, &dense, n, a->dtype, a->rank, a->dims)->data);
    free_value(r, tensor_slot(r, n));
    *tensor_slot(r, n) = dense;
    a = &dense->a;
  }
  interp_array x = {.dtype = a->dtype, .rank = a->rank, .data = a->data, .bytes = strided_bytes(a)};
  memcpy(x.dims, a->dims, a->rank * sizeof *x.dims);
  return x;
}
