/* Defines the graph whose plan record is fuzzed: kernels, a host function and a loop over two
   inputs, of dynamic size. */
#ifndef TENON_TESTS_FUZZ_PLAN_H
#define TENON_TESTS_FUZZ_PLAN_H

#include "ir/text/parse.h"
#include "runtime/plan_cache.h"

#include <string.h>

/** A graph of kernels, a CUSTOM and a loop over the BUFFERs %a [n, 4] and %b [4]. */
#define PLAN_OVER(buffers)                                                         \
  "%n = var index [min=1 max=9] \"n\"\n" buffers "%s = reduce f32 %a [op=add 0]\n" \
  "%c = custom f32 %s %b 4 [uid=9 output=1 inputs=2 writes=0]\n"                   \
  "%d = mul f32 %b %c\n"                                                           \
  "%e = add f32 %d %s\n"                                                           \
  "%f = exp f32 %a\n"                                                              \
  "%r = range index %n [id=0 kind=loop axis=0 tail=0]\n"                           \
  "%q = carry f32 %r 4 [component=0]\n%p = carry f32 %r 9 4 [component=1]\n"       \
  "%row = slice f32 %a %r 0 1 4 [1 1]\n%flat = reshape f32 %row 4\n"               \
  "%next = sub f32 %q %flat\n%at = slice f32 %p %r 0 1 4 [1 1]\n"                  \
  "%part = set f32 %p %at %row\n%zero = const f32 0.0\n"                           \
  "%zeros = reshape f32 %zero 1 1\n%many = expand f32 %zeros 9 4\n"                \
  "%l = loop void %r %b %many %next %part %q %r [states=2 emits=1]\n"              \
  "%last = result f32 %l 4 [component=0 inputs=1 number=0]\n"                      \
  "%parts = result f32 %l 9 4 [component=1 inputs=1 number=0]\n"                   \
  "%all = result f32 %l %n 4 [component=2 inputs=1 number=0]\n"                    \
  "%sum = reduce f32 %parts [op=add 0]\n%e2 = add f32 %e %last\n"                  \
  "%e3 = add f32 %e2 %sum\n%f2 = add f32 %f %all\n"                                \
  "return %e3 %f2\n"

static const char plan_text[] = PLAN_OVER("%a = buffer f32 %n 4 [uid=1 version=0]\n"
                                          "%b = buffer f32 4 [uid=2 version=3]\n");

/** Fills the graph's part of a request. Raises. */
static inline void plan_request(executable_request *r, ir *g, const char *text) {
  node_list roots = parse_graph(g, ir_arena(g), text, strlen(text));
  r->name = "plan";
  r->roots = roots.at;
  r->n_roots = roots.n;
}

/** Lists its BUFFERs and CUSTOMs, without the key, which needs a target. */
static inline plan_cache_graph plan_leaves(arena *a, const executable_request *r) {
  plan_cache_graph k = {0};
  node_list order = topo_sort(a, r->roots, r->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op == OP_BUFFER) vec_push(a, &k.buffers, order.at[i]);
    if (order.at[i]->op == OP_CUSTOM) vec_push(a, &k.customs, order.at[i]);
  }
  return k;
}

#endif
