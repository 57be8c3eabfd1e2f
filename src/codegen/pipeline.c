#include "codegen/codegen.h"
#include "codegen/scratch.h"

#include "ir/build.h"
#include "ir/pass.h"

#include <string.h>

typedef struct progress {
  ir *g;
  const codegen_options *options;
} progress;

/** What follows every pass: the verifier in development builds, and whoever watches. */
static const node *done(const progress *p, pass after, enum stage stage, const node *root) {
  pass_verify(p->g, after, stage, &root, 1);
  if (p->options->watch.after)
    p->options->watch.after(p->options->watch.user, pass_name(after), root);
  return root;
}

static const node *program(ir *g, const node *sink, const char *device, const node *linear) {
  const node *on = ir_make(
      g, &(node_spec){.op = OP_DEVICE, .dtype = DT_VOID, .text = device, .n_text = strlen(device)});
  return ir_node(g, OP_PROGRAM, DT_VOID, (const node *[]){sink, on, linear}, 3, NULL, 0);
}

static const node *linear_of(ir *g, const node *kernel, const codegen_options *o) {
  progress p = {g, o};
  const node *n = done(&p, PASS_KERNEL, STAGE_KERNEL, kernel);
  n = done(&p, PASS_SIMPLIFY, STAGE_KERNEL, codegen_simplify(g, n, o));
  n = done(&p, PASS_CHOOSE, STAGE_KERNEL, codegen_choose(g, n, o));
  n = done(&p, PASS_LOWER, STAGE_LOWERED, codegen_lower(g, n));
  n = done(&p, PASS_EXPAND, STAGE_LOWERED, codegen_expand(g, n));
  n = done(&p, PASS_REGISTERS, STAGE_LOWERED, codegen_registers(g, n, &o->target));
  n = done(&p, PASS_STREAMS, STAGE_LOWERED, codegen_streams(g, n, &o->target));
  n = done(&p, PASS_PREFETCH, STAGE_LOWERED, codegen_prefetch(g, n, &o->target));
  n = done(&p, PASS_THREADS, STAGE_LOWERED, codegen_threads(g, n, &o->target));
  n = done(&p, PASS_EDGES, STAGE_LOWERED, codegen_edges(g, n));
  n = done(&p, PASS_DECOMPOSE, STAGE_LOWERED, codegen_decompose(g, n, o));
  n = done(&p, PASS_INDEX_WIDTH, STAGE_LOWERED, codegen_index_width(g, n, &o->target));
  return done(&p, PASS_LINEARISE, STAGE_LINEAR, codegen_linearise(g, n));
}

static bool has_room(ir *g, const node *linear, const target *t) {
  return !t->scratch || scratch_place(ir_arena(g), linear).bytes <= t->scratch;
}

const node *codegen_run(ir *g, const node *kernel, const char *device, const codegen_options *o) {
  const node *linear = linear_of(g, kernel, o);
  codegen_options tight = *o; /* no copies for speed: the arrays that it needs may fit alone */
  tight.target.scratch = 1;
  if (!has_room(g, linear, &o->target)) linear = linear_of(g, kernel, &tight);
  return program(g, kernel, device, linear);
}
