/* Lists the buffers that a kernel reads and writes, each once: outputs in their order, then PARAMs
   (array arguments) as they are found. */
#include "schedule/kernels/kernel_buffers.h"

#include "ir/core/ir.h"

size_t kernel_buffer_position(const size_t buffers[], size_t n, size_t buffer) {
  for (size_t i = 0; i < n; i++)
    if (buffers[i] == buffer) return i;
  return n;
}

const size_t *kernel_buffers(ir *g, const node *sink, size_t *n) {
  VEC(size_t) buffers = {0};
  const node *out = sink->src[0];
  arena_mark here = arena_save(ir_scratch(g));
  node_list order = topo_sort(ir_scratch(g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i + 1 < out->n_src; i++)
    vec_push(ir_arena(g), &buffers, (size_t)out->src[i]->ints[0]);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_PARAM) continue;
    size_t buffer = (size_t)order.at[i]->ints[0];
    if (kernel_buffer_position(buffers.at, buffers.n, buffer) == buffers.n)
      vec_push(ir_arena(g), &buffers, buffer);
  }
  arena_rewind(ir_scratch(g), here);
  *n = buffers.n;
  return buffers.at;
}
