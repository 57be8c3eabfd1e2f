/* Implements NEST: turns a reduction over several ranges into a reduction of reductions:

     FOLD(init; op; …, r, s, …)   →   FOLD(init; op; …, r) of FOLD(identity of op; op; s, …)

   Partial results over the inner ranges then have a place of their own (lanes, unrolled copies).
   Every state is a scalar with an op that has an identity, and nothing is emitted. */
#include "laws/law_support.h"

static const char *fold_objection(const node *f) {
  if (fold_n_emits(f)) return "the FOLD emits values in its order";
  for (size_t i = 0; i < fold_n_states(f); i++) {
    uint64_t start;
    if (fold_op(f, i) < 0) return "a state of the FOLD has no op";
    if (fold_component(f, i) >= 0) return "a state of the FOLD is an array";
    if (!op_identity((op)fold_op(f, i), (dtype)fold_init(f, i)->dtype, &start))
      return "an op of the FOLD has no identity";
  }
  return NULL;
}

/** A FOLD of the same terms over the last `n` ranges, starting from the identities of the ops. */
static const node *inner_fold(ir *g, const node *f, const int64_t *ops, const node *const *ranges,
                              size_t n) {
  size_t states = fold_n_states(f);
  const node **inits = arena_alloc(ir_arena(g), states * sizeof *inits);
  for (size_t i = 0; i < states; i++) {
    uint64_t start = 0;
    dtype t = (dtype)fold_init(f, i)->dtype;
    op_identity((op)ops[i], t, &start);
    inits[i] = ir_const_bits(g, t, start);
  }
  return fold_make(g, &(fold_spec){.n_states = states,
                                   .n_ranges = n,
                                   .inits = inits,
                                   .steps = f->src + states,
                                   .ops = ops,
                                   .ranges = ranges});
}

const node *law_nest(laws *l, const node *sink, const node *range) {
  ir *g = l->g;
  const node *f = law_find_binder(l, sink, range), *const * ranges;
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  const char *why = fold_objection(f);
  if (why) return law_refuse(l, why);
  size_t n = binder_ranges(f, &ranges), states = fold_n_states(f);
  size_t outer = range_position(ranges, range) + 1;
  if (outer == n) return law_refuse(l, "the range is the FOLD's innermost");
  int64_t *ops = arena_alloc(ir_arena(g), states * sizeof *ops);
  const node **terms = arena_alloc(ir_arena(g), states * sizeof *terms);
  for (size_t i = 0; i < states; i++) ops[i] = fold_op(f, i);
  const node *inner = inner_fold(g, f, ops, ranges + outer, n - outer);
  for (size_t i = 0; i < states; i++)
    terms[i] = index_make(g, (dtype)fold_init(f, i)->dtype, inner, (int64_t)i, 0, NULL);
  const node *made = fold_make(g, &(fold_spec){.n_states = states,
                                               .n_ranges = outer,
                                               .n_pins = fold_n_pins(f),
                                               .inits = f->src,
                                               .steps = terms,
                                               .ops = ops,
                                               .ranges = ranges,
                                               .pins = ranges + n});
  made = law_replace(l, sink, f, made);
  return law_record(l, sink, made, LAW_NEST, &(law_args){.subject = range}, NULL);
}
