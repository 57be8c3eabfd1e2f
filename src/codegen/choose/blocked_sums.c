/* Splits long float sums into sums of block sums, for accuracy: a sum of n terms added one after
   the other loses up to n units of the type's precision; a sum of sums of blocks loses as many as a
   block has terms, plus the levels of blocks (Higham 1993). Blocks depend on sizes alone, not on
   the machine, so results do not change with it. */
#include "codegen/choose/choice.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"

/* Accuracy, not speed: changing these changes results. */
enum {
  LONG_SUM = 1024, /* terms above which a sum is blocked: loses at most 10 of f32's 24 bits */
  BLOCK = 128      /* terms of a block */
};

static int64_t most_trips(const node *range) { return range_extent(range)->hi; }

static bool is_long(double terms) { return terms > LONG_SUM; }

/** True if a FOLD rounds and has too many terms one after the other. */
static bool is_inexact(const node *f) {
  const node *const *ranges;
  double terms = 1;
  bool rounds = false;
  for (size_t i = 0; i < fold_n_states(f); i++)
    rounds |= op_rounds_reduction((op)fold_op(f, i), (dtype)fold_init(f, i)->dtype);
  for (size_t i = 0, n = binder_ranges(f, &ranges); i < n; i++)
    terms *= (double)most_trips(ranges[i]);
  return rounds && is_long(terms);
}

/** The kernel with a FOLD as two nested ones, the inner of some BLOCK terms; NULL: refused. */
static const node *split_sum(laws *l, const node *sink, const node *f) {
  const node *const *ranges, *outer, *inner;
  size_t i = binder_ranges(f, &ranges) - 1;
  int64_t terms = 1; /* of the ranges inside of the i-th */
  while (i > 0 && most_trips(ranges[i]) <= BLOCK / terms) terms *= most_trips(ranges[i--]);
  if (terms > BLOCK / 2) return law_nest(l, sink, ranges[i]); /* not two indices more fit */
  int64_t factor = ix_block_size(range_extent(ranges[i]), BLOCK / terms);
  const node *made = law_split(l, sink, ranges[i], factor, &outer, &inner);
  return made && outer ? law_nest(l, made, outer) : NULL;
}

void choose_blocked_sums(choice *c) {
  for (bool changed = c->math & MATH_REORDER; changed;) {
    changed = false;
    node_list order = law_index_of(&c->laws, c->sink).nodes;
    for (size_t i = 0; i < order.n && !changed; i++) {
      const node *f = order.at[i];
      const node *made = f->op == OP_FOLD && is_inexact(f) ? split_sum(&c->laws, c->sink, f) : NULL;
      changed = choice_take(c, made);
    }
  }
}
