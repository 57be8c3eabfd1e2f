#include "laws/laws.h"

static const char *objection(const node *f) {
  if (fold_emits(f)) return "the FOLD emits values in its order";
  for (size_t i = 0; i < fold_states(f); i++) {
    uint64_t start;
    if (fold_op(f, i) < 0) return "a state of the FOLD has no op";
    if (fold_component(f, i) >= 0) return "a state of the FOLD is an array";
    if (!op_identity((op)fold_op(f, i), (dtype)fold_init(f, i)->dtype, &start))
      return "an op of the FOLD has no identity";
  }
  return NULL;
}

/** The FOLD of the same terms over the last `n` ranges, from the identities of its ops. */
static const node *inner_fold(ir *g, const node *f, const int64_t *ops, const node *const *ranges,
                              size_t n) {
  size_t states = fold_states(f);
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
  const node *f = law_binder(l, sink, range), *const * ranges;
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  const char *why = objection(f);
  if (why) return law_refuse(l, why);
  size_t n = binder_ranges(f, &ranges), states = fold_states(f);
  size_t outer = range_place(ranges, range) + 1;
  if (outer == n) return law_refuse(l, "the range is the FOLD's innermost");
  int64_t *ops = arena_alloc(ir_arena(g), states * sizeof *ops);
  const node **terms = arena_alloc(ir_arena(g), states * sizeof *terms);
  for (size_t i = 0; i < states; i++) ops[i] = fold_op(f, i);
  const node *inner = inner_fold(g, f, ops, ranges + outer, n - outer);
  for (size_t i = 0; i < states; i++)
    terms[i] = index_make(g, (dtype)fold_init(f, i)->dtype, inner, (int64_t)i, 0, NULL);
  const node *made = fold_make(g, &(fold_spec){.n_states = states,
                                               .n_ranges = outer,
                                               .n_pins = fold_pins(f),
                                               .inits = f->src,
                                               .steps = terms,
                                               .ops = ops,
                                               .ranges = ranges,
                                               .pins = ranges + n});
  made = law_replace(l, sink, f, made);
  return law_made(l, sink, made, LAW_NEST, &(law_args){.subject = range}, NULL);
}
