/* Inserts software prefetching into a lowered kernel: PREFETCH effects, which fetch a line that a
   later iteration reads. The rows and blocks to fetch are found in prefetch_rows.c and
   prefetch_blocks.c. */
#include "codegen/lower/prefetch.h"

#include "codegen/codegen.h"
#include "ir/transform/substitute.h"

/** The END of a loop with the prefetches found for it, first in its body; NULL: there are none. */
static const node *end_with_prefetches(prefetching *p, const node *end) {
  node_list src = {0};
  vec_push(p->a, &src, end->src[0]);
  for (size_t i = 0; i < p->found.n; i++) {
    const prefetch *f = &p->found.at[i];
    if (f->in->end != end) continue;
    const node *of[] = {f->param, f->address, end->src[0]};
    vec_push(p->a, &src, ir_node(p->g, OP_PREFETCH, DT_VOID, of, 3, NULL, 0));
  }
  if (src.n == 1) return NULL;
  for (uint32_t i = 1; i < end->n_src; i++) vec_push(p->a, &src, end->src[i]);
  node_spec spec = node_spec_with_sources(end, src.at, src.n);
  return ir_make(p->g, &spec);
}

const node *codegen_prefetch(ir *g, const node *sink, const target *t) {
  prefetching p = {.g = g, .a = ir_arena(g), .hardware = hardware_with_defaults(&t->hardware)};
  p.order = topo_sort(p.a, &sink, 1, NULL, NULL);
  loop_tree_make(&p.tree, p.a, &p.order);
  prefetch_find_rows(&p);
  prefetch_find_blocks(&p);
  for (size_t i = p.found.n ? p.order.n : 0; i-- > 0;) { /* users first: earlier nodes stay */
    const node *end = p.order.at[i], *with = NULL;
    if (end->op == OP_END) with = end_with_prefetches(&p, end);
    if (!with) continue;
    map to = {0};
    map_set(p.a, &to, end, (void *)with);
    sink = subst(g, sink, &to);
  }
  return sink;
}
