/* Simplifies a kernel algebraically by the rewrite rules of src/rules, in the given math mode. */
#include "codegen/codegen.h"
#include "ir/text/sink_text.h"
#include "rules/rule_sets.h"

const node *codegen_simplify(ir *g, const node *sink, const codegen_options *o) {
  size_t bytes;
  if (sink_schedule(sink, &bytes)) return sink; /* its laws name the kernel's ranges as they are */
  rewriter rw = {.ir = g, .math = o->math};
  rewrite(&rw, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, &sink, 1);
  return sink;
}
