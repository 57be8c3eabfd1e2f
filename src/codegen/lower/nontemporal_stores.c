/* Marks stores as non-temporal. A usual store first loads the line that it overwrites, and evicts
   another. Where a kernel writes more than the last-level caches hold until the end, in consecutive
   vectors and to buffers that it does not read, its stores bypass the caches. */
#include "codegen/codegen.h"
#include "codegen/lower/memory_access.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/address_stride.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/hardware.h"
#include "target/machine.h"

#include "base/map.h"

typedef struct streaming {
  ir *g;
  arena *a;
  tn_hardware hardware;
  map read;         /* PARAMs that the kernel loads */
  node_list stores; /* candidates */
  double bytes;     /* written by `stores` */
} streaming;

/** The range of several indices along which a store's stride is `elements`; NULL: none. */
static const node *range_of_stride(const node *store, int64_t elements) {
  for (uint32_t i = 0; i < store->free->n; i++) {
    const node *r = store->free->at[i];
    if (range_extent(r)->lo > 1 && address_stride(memory_access_address(store), r) == elements)
      return r;
  }
  return NULL;
}

/** Elements in a row that a store writes along a range, and then along ranges that continue it. */
static int64_t contiguous_elements(const node *store, const node *range) {
  int64_t run = store->src[2]->lanes;
  for (const node *r = range; r; r = range_of_stride(store, run)) {
    if (__builtin_mul_overflow(run, range_extent(r)->lo, &run)) return INT64_MAX;
    if (!run || !node_is_const(range_extent(r))) break;
  }
  return run;
}

/** True if a loop stores consecutive vectors, of long enough rows, to a buffer that is not read. */
static bool is_streaming_store(const streaming *s, const node *store, const node *loop) {
  const node *root = node_storage_root(store->src[0]), *value = store->src[2];
  double bytes = (double)dtype_bytes((dtype)value->dtype);
  if (root->op != OP_PARAM || map_has(&s->read, root) || value->lanes < 2) return false;
  if (address_stride(memory_access_address(store), loop) != value->lanes) return false;
  return (double)contiguous_elements(store, loop) * bytes >=
         MACHINE_NONTEMPORAL_LINES * (double)s->hardware.line_bytes;
}

/** Likely bytes that a store writes in all of its loops. */
static double stored_bytes(const node *store) {
  double bytes = (double)dtype_bytes((dtype)store->src[2]->dtype) * store->src[2]->lanes;
  for (uint32_t i = 0; i < store->free->n; i++) bytes *= range_likely_trips(store->free->at[i]);
  return bytes;
}

static void find_streaming_stores(streaming *s, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *end = order->at[i];
    for (uint32_t k = 1; end->op == OP_END && k < end->n_src; k++) {
      if (end->src[k]->op != OP_STORE || !is_streaming_store(s, end->src[k], end->src[0])) continue;
      vec_push(s->a, &s->stores, end->src[k]);
      s->bytes += stored_bytes(end->src[k]);
    }
  }
}

static const node *mark_nontemporal(ir *g, const node *store) {
  node_spec s = node_spec_with_sources(store, store->src, store->n_src);
  s.ints = &(int64_t){STORE_NONTEMPORAL};
  s.n_int = 1;
  return ir_make(g, &s);
}

const node *codegen_nontemporal_stores(ir *g, const node *sink, const target *t) {
  streaming s = {.g = g, .a = ir_arena(g), .hardware = hardware_with_defaults(&t->hardware)};
  node_list order = topo_sort(s.a, &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *root = n->op == OP_LOAD ? node_storage_root(n->src[0]) : NULL;
    if (root && root->op == OP_PARAM) map_set(s.a, &s.read, root, (void *)root);
  }
  find_streaming_stores(&s, &order);
  if (s.bytes <= MACHINE_NONTEMPORAL_LLC_SHARE * hardware_llc_bytes(&s.hardware)) return sink;
  for (size_t i = 0; i < s.stores.n; i++)
    map_set(s.a, &with, s.stores.at[i], (void *)mark_nontemporal(g, s.stores.at[i]));
  return subst(g, sink, &with);
}
