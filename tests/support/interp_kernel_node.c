/* Interprets KERNEL nodes of tensor graphs (custom operations that are kernels in IR text): parses
   the kernel into an IR of its own and runs it on copies of the inputs that it writes. */
#include "support/interp_kernel.h"

#include "ir/core/build.h"
#include "ir/verify/kernel_signature.h"

#include <string.h>

typedef struct launch {
  const interp_env *e;
  const node *n;
  const interp_array *inputs;
  interp_array *result;
  const mem *mem;
  diag *d;
  ir *g;
} launch;

/** Makes a scratch array for an output of the kernel other than the node's. */
static interp_array other_array(launch *l, const node *param) {
  arena *a = ir_arena(l->g);
  interp_array y = {.dtype = (dtype)param->dtype, .rank = param->rank};
  for (size_t i = 0; i < param->rank; i++) {
    const node *size = ir_cast(l->g, param->dims[i], DT_I64);
    interp_array at;
    if (interp_tensor(l->e, &size, 1, &at, a) != TN_OK) diag_rethrow(l->d);
    memcpy(&y.dims[i], at.data, sizeof y.dims[i]);
  }
  y.bytes = interp_element_count(y.rank, y.dims, dtype_bytes(y.dtype), param, l->d) *
            dtype_bytes(y.dtype);
  y.data = arena_calloc(a, y.bytes + 1, 1);
  return y;
}

/** Copies an input that the kernel writes. */
static interp_array copy_of(launch *l, const interp_array *of) {
  interp_array y = *of;
  y.data = arena_copy(ir_arena(l->g), of->data, of->bytes);
  return y;
}

static void run_launch(void *arg) {
  launch *l = arg;
  arena *a = ir_arena(l->g);
  kernel_signature f = kernel_signature_of_node(l->g, a, l->n);
  size_t slot = (size_t)l->n->ints[0], n_inputs = (size_t)l->n->ints[1];
  interp_array *params = arena_calloc(a, f.n + 1, sizeof *params);
  for (size_t i = 0; i < f.n; i++) {
    if (i == slot)
      params[i] = *l->result;
    else if (i >= n_inputs)
      params[i] = other_array(l, f.params[i].param);
    else
      params[i] = f.params[i].is_written ? copy_of(l, &l->inputs[i]) : l->inputs[i];
  }
  if (slot < n_inputs) memcpy(l->result->data, l->inputs[slot].data, l->result->bytes);
  interp_env e = *l->e;
  e.params = params;
  e.n_params = f.n;
  if (interp_kernel(&e, f.sink, l->mem, l->d) != TN_OK) diag_rethrow(l->d);
}

tn_status interp_kernel_node(const interp_env *e, const node *n, const interp_array inputs[],
                             interp_array *result, const mem *m, diag *d) {
  launch l = {e, n, inputs, result, m, d, ir_new(m, d, false)};
  if (!l.g) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(d, run_launch, &l);
  ir_free(l.g);
  return s;
}
