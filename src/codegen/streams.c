/* Stores that go past the caches. A line of memory that is written comes into a cache first, only
   to be written over, and something else goes from there. Where a kernel writes so much that the
   beginning is gone from the last cache before the end is written, in vectors one after the other
   and to buffers that it does not read, its stores are marked as not to be kept there. */
#include "codegen/codegen.h"
#include "codegen/strides.h"
#include "ir/binder.h"
#include "ir/index.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum { LEAST_LINES = 16 }; /* side by side: of the first and the last only parts may be written */

typedef struct streaming {
  ir *g;
  arena *a;
  tn_hardware hardware;
  map read; /* PARAMs */
  node_list stores;
  double bytes; /* that they write */
} streaming;

static void find_reads(streaming *s, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i], *root = n->op == OP_LOAD ? node_storage_root(n->src[0]) : NULL;
    if (root && root->op == OP_PARAM) map_set(s->a, &s->read, root, (void *)root);
  }
}

/** The range along which what a store writes goes on after so many elements; NULL: there is none
    that has several indices. */
static const node *range_after(const node *store, int64_t elements) {
  for (uint32_t i = 0; i < store->free->n; i++) {
    const node *r = store->free->at[i];
    if (range_extent(r)->lo > 1 && stride_along(access_address(store), r) == elements) return r;
  }
  return NULL;
}

/** Elements that lie side by side of what is stored along a range, vector by vector, and then along
    others. */
static int64_t run_along(const node *store, const node *range) {
  int64_t run = store->src[2]->lanes;
  for (const node *r = range; r; r = range_after(store, run)) {
    if (__builtin_mul_overflow(run, range_extent(r)->lo, &run)) return INT64_MAX;
    if (!run || !node_is_const(range_extent(r))) break;
  }
  return run;
}

/** Whether what a loop stores are vectors one after the other, of a buffer that is not read. */
static bool is_stream(const streaming *s, const node *store, const node *loop) {
  const node *root = node_storage_root(store->src[0]), *value = store->src[2];
  double bytes = (double)dtype_bytes((dtype)value->dtype);
  if (root->op != OP_PARAM || map_has(&s->read, root) || value->lanes < 2) return false;
  if (stride_along(access_address(store), loop) != value->lanes) return false;
  return (double)run_along(store, loop) * bytes >= LEAST_LINES * (double)s->hardware.line_bytes;
}

/** Bytes that a store writes at least, in all of its loops. */
static double bytes_of(const node *store) {
  double bytes = (double)dtype_bytes((dtype)store->src[2]->dtype) * store->src[2]->lanes;
  for (uint32_t i = 0; i < store->free->n; i++)
    bytes *= (double)range_extent(store->free->at[i])->lo;
  return bytes;
}

static void find_streams(streaming *s, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *end = order->at[i];
    for (uint32_t k = 1; end->op == OP_END && k < end->n_src; k++) {
      if (end->src[k]->op != OP_STORE || !is_stream(s, end->src[k], end->src[0])) continue;
      vec_push(s->a, &s->stores, end->src[k]);
      s->bytes += bytes_of(end->src[k]);
    }
  }
}

const node *codegen_streams(ir *g, const node *sink, const target *t) {
  streaming s = {.g = g, .a = ir_arena(g), .hardware = hardware_known(&t->hardware)};
  node_list order = topo_sort(s.a, &sink, 1, NULL, NULL);
  map with = {0};
  find_reads(&s, &order);
  find_streams(&s, &order);
  if (s.bytes <= hardware_last_caches(&s.hardware) / 2) return sink;
  for (size_t i = 0; i < s.stores.n; i++)
    map_set(s.a, &with, s.stores.at[i], (void *)access_marked(g, s.stores.at[i], 1));
  return subst(g, sink, &with);
}
