/* Makes stores asynchronous. Where an array in slots takes elements of a buffer as they are, the
   worker need not wait for the load: a target with instructions for it copies the element from
   memory to memory, and the WAIT of a later turn tells when it is there. */
#include "codegen/codegen.h"
#include "codegen/lower/memory_access.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"

#include "base/map.h"

/** True for a store of an element, or a vector of them, that a target can copy ahead. */
static bool is_copy(const node *store, const target *t) {
  const node *to = node_storage_root(store->src[0]), *value = store->src[2], *mask;
  bool has_slots = to->op == OP_ALLOC && to->n_int > 2 && space_is_shared(to->ints[1]);
  bool is_element = value->op == OP_LOAD && value->n_src == 2 && value->src[0]->op == OP_PARAM;
  if (!has_slots || !is_element || store->n_int) return false;
  if (memory_access_unmask(value->src[1], &mask)->op == OP_INVALID) return false;
  return t->copy_bytes & (value->lanes * dtype_bytes((dtype)value->dtype));
}

const node *codegen_copies_ahead(ir *g, const node *sink, const target *t) {
  arena *a = ir_arena(g);
  const int64_t mark = STORE_AHEAD;
  map image = {0};
  if (!t->copy_bytes) return sink;
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], **src = arena_alloc(a, (n->n_src + 1) * sizeof *src);
    for (uint32_t k = 0; k < n->n_src; k++) src[k] = map_get(&image, n->src[k]);
    node_spec s = node_spec_with_sources(n, src, n->n_src);
    bool is_ahead = n->op == OP_STORE && is_copy(n, t);
    if (is_ahead) s.ints = &mark;
    if (is_ahead) s.n_int = 1;
    map_set(a, &image, n, (void *)ir_make(g, &s));
  }
  return map_get(&image, sink);
}
