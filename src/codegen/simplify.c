/* Rewriting by rules: algebra, and the decomposition of what the target lacks. */
#include "codegen/codegen.h"
#include "rules/rules.h"

static const node *rewritten(ir *g, const node *sink, const codegen_options *o,
                             const rule_set sets[], size_t n, const rule_target *t) {
  rewriter rw = {.ir = g, .math = o->math, .target = t};
  rewrite(&rw, sets, n, &sink, 1);
  return sink;
}

const node *codegen_simplify(ir *g, const node *sink, const codegen_options *o) {
  return rewritten(g, sink, o, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, NULL);
}

const node *codegen_decompose(ir *g, const node *sink, const codegen_options *o) {
  sink = rewritten(g, sink, o, rules_fuse, RULES_FUSE, &o->target.rules);
  return rewritten(g, sink, o, rules_lower, RULES_LOWER, &o->target.rules);
}
