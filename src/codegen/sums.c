/* Long sums in blocks: a sum of n terms one after the other loses up to n times the type's
   precision; sums of sums of blocks lose as many times as there are terms in a block and levels of
   blocks. The blocks depend on the sizes alone. */
#include "codegen/codegen.h"
#include "ir/topo.h"
#include "laws/laws.h"

enum {
  LONG_SUM = 1024, /* terms of which a sum is blocked: what 10 bits of 24 may be lost of */
  BLOCK = 128      /* terms of a block: few sums of blocks, and few terms */
};

static int64_t most(const node *range) { return range_extent(range)->hi; }

static bool is_long(double terms) { return terms > LONG_SUM; }

/** Whether a FOLD rounds, and has more terms one after the other than it should. */
static bool is_inexact(const node *f) {
  const node *const *ranges;
  double terms = 1;
  bool rounds = false;
  for (size_t i = 0; i < fold_states(f); i++)
    rounds |= op_is_rounded((op)fold_op(f, i), (dtype)fold_init(f, i)->dtype);
  for (size_t i = 0, n = binder_ranges(f, &ranges); i < n; i++) terms *= (double)most(ranges[i]);
  return rounds && is_long(terms);
}

/** The kernel with one FOLD in two, the inner one of about BLOCK terms; NULL if that cannot be. */
static const node *blocked(laws *l, const node *sink, const node *f) {
  const node *const *ranges, *outer, *inner;
  size_t i = binder_ranges(f, &ranges) - 1;
  int64_t terms = 1; /* of the ranges inside of the i-th */
  while (i > 0 && most(ranges[i]) <= BLOCK / terms) terms *= most(ranges[i--]);
  if (terms > BLOCK / 2) return law_nest(l, sink, ranges[i]); /* no room for two indices more */
  int64_t factor = ix_block(range_extent(ranges[i]), BLOCK / terms);
  const node *made = law_split(l, sink, ranges[i], factor, &outer, &inner);
  return made && outer ? law_nest(l, made, outer) : NULL;
}

const node *codegen_sums(laws *l, const node *sink) {
  for (bool again = true; again;) {
    again = false;
    node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
    for (size_t i = 0; i < order.n && !again; i++) {
      const node *f = order.at[i];
      const node *made = f->op == OP_FOLD && is_inexact(f) ? blocked(l, sink, f) : NULL;
      if (made) sink = made;
      again = made;
    }
  }
  return sink;
}
