#include "codegen/codegen.h"

#include "ir/build.h"
#include "ir/verify.h"

#include <string.h>

typedef struct progress {
  ir *g;
  const codegen_options *options;
} progress;

/** What follows every pass: the verifier in development builds, and whoever watches. */
static const node *done(const progress *p, const char *pass, enum stage stage, const node *root) {
#ifdef TENON_VERIFY
  if (verify(&root, 1, stage, ir_mem(p->g), ir_diag(p->g)) != TN_OK) {
    diag_prefix(ir_diag(p->g), "after %s", pass);
    diag_rethrow(ir_diag(p->g));
  }
#else
  (void)stage;
#endif
  if (p->options->watch.after) p->options->watch.after(p->options->watch.user, pass, root);
  return root;
}

static const node *program(ir *g, const node *sink, const char *device, const node *linear) {
  const node *on = ir_make(
      g, &(node_spec){.op = OP_DEVICE, .dtype = DT_VOID, .text = device, .n_text = strlen(device)});
  return ir_node(g, OP_PROGRAM, DT_VOID, (const node *[]){sink, on, linear}, 3, NULL, 0);
}

const node *codegen_run(ir *g, const node *kernel, const char *device, const codegen_options *o) {
  progress p = {g, o};
  const node *n = done(&p, "kernel", STAGE_KERNEL, kernel);
  n = done(&p, "simplify", STAGE_KERNEL, codegen_simplify(g, n, o));
  n = done(&p, "choose", STAGE_KERNEL, codegen_choose(g, n, &o->target));
  n = done(&p, "lower", STAGE_LOWERED, codegen_lower(g, n));
  n = done(&p, "expand", STAGE_LOWERED, codegen_expand(g, n));
  n = done(&p, "threads", STAGE_LOWERED, codegen_threads(g, n));
  n = done(&p, "decompose", STAGE_LOWERED, codegen_decompose(g, n, o));
  n = done(&p, "index_width", STAGE_LOWERED, codegen_index_width(g, n, &o->target));
  n = done(&p, "linearise", STAGE_LINEAR, codegen_linearise(g, n));
  return program(g, kernel, device, n);
}
