/* Long sums in blocks: a sum of n terms one after the other loses up to n times the type's
   precision; one of √n blocks loses √n times. The blocks depend on the sizes alone. */
#include "codegen/codegen.h"
#include "ir/topo.h"
#include "laws/laws.h"

enum { LONG_SUM = 1024, BLOCK = 128 };

static int64_t most(const node *range) { return range_extent(range)->hi; }

static bool is_long(double terms) { return terms > LONG_SUM; }

/** Whether a FOLD rounds, and has more terms one after the other than it should. */
static bool is_inexact(const node *f) {
  const node *const *ranges;
  double terms = 1;
  bool rounds = false;
  for (size_t i = 0; i < fold_states(f); i++) {
    op o = (op)fold_op(f, i);
    rounds |= dtype_is_float((dtype)fold_init(f, i)->dtype) && (o == OP_ADD || o == OP_MUL);
  }
  for (size_t i = 0, n = binder_ranges(f, &ranges); i < n; i++) terms *= (double)most(ranges[i]);
  return rounds && is_long(terms);
}

/** The last of the outer ranges, if the inner ones shall be a block; NULL: there is one range. */
static const node *last_outer(const node *f) {
  const node *const *ranges;
  size_t n = binder_ranges(f, &ranges), i = n - 1;
  double block = (double)most(ranges[i]);
  while (i > 1 && block * (double)most(ranges[i - 1]) <= BLOCK) block *= (double)most(ranges[--i]);
  return i ? ranges[i - 1] : NULL;
}

/** The kernel with one FOLD in two; NULL if that cannot be. */
static const node *blocked(laws *l, const node *sink, const node *f) {
  const node *const *ranges, *outer, *inner, *made = sink;
  size_t n = binder_ranges(f, &ranges);
  if (most(ranges[n - 1]) <= BLOCK) {
    outer = last_outer(f);
    return outer ? law_nest(l, sink, outer) : NULL;
  }
  made = law_split(l, sink, ranges[n - 1], BLOCK, &outer, &inner);
  return made && outer ? law_nest(l, made, outer) : NULL;
}

const node *codegen_sums(ir *g, const node *sink) {
  laws l = {.g = g};
  for (bool again = true; again;) {
    again = false;
    node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
    for (size_t i = 0; i < order.n && !again; i++) {
      const node *f = order.at[i];
      const node *made = f->op == OP_FOLD && is_inexact(f) ? blocked(&l, sink, f) : NULL;
      if (made) sink = made;
      again = made;
    }
  }
  return sink;
}
