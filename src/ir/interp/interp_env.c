/* Looks up the inputs of an interpreted run (variables, params), and checks them and the sizes of
   arrays; the interpreters share it. */
#include "ir/interp/interp.h"

#include "ir/core/dtype.h"

#include <string.h>

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

size_t interp_element_count(size_t rank, const int64_t dims[], size_t element_bytes, const node *n,
                            diag *d) {
  size_t count = 1;
  bool empty = false;
  if (rank > INTERP_MAX_RANK)
    diag_raise(d, TN_ERR_SHAPE, "%s (node %" PRIu64 ") has %zu dimensions (at most %d)",
               op_name(n->op), n->id, rank, INTERP_MAX_RANK);
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
