/* Runs the passes of code generation in order: scheduling, lowering, target decompositions,
   linearisation, barriers of teams. Each is verified in development builds and reported to the
   observer under its name. The steps of `choose` are listed in choose/auto_schedule.c and are
   verified and reported likewise. If the scratch memory does not fit, all passes run again without
   copies for speed; likewise without tiles if their registers are too few. */
#include "codegen/codegen.h"
#include "codegen/scratch_plan.h"
#include "codegen/tile_plan.h"

#include "ir/core/build.h"
#include "ir/core/pass_names.h"
#include "ir/core/tensor_rows.h"
#include "ir/verify/verify_graph.h"
#include "target/machine.h"

#include <inttypes.h>
#include <string.h>

typedef struct pipeline {
  ir *g;
  const codegen_options *options;
} pipeline;

static const node *finish_pass(const pipeline *p, pass name, enum stage stage, const node *root) {
  const codegen_observer *o = &p->options->observer;
  verify_after_pass(p->g, name, stage, &root, 1);
  if (o->after) o->after(o->user, pass_name(name), root);
  return root;
}

static const node *run_passes(ir *g, const node *kernel, const codegen_options *o) {
  const target *t = &o->target;
  pipeline p = {g, o};
  const node *n = finish_pass(&p, PASS_KERNEL, LEVEL_KERNEL, kernel);
  n = finish_pass(&p, PASS_SIMPLIFY, LEVEL_KERNEL, codegen_simplify(g, n, o));
  n = finish_pass(&p, PASS_CHOOSE, LEVEL_KERNEL, codegen_choose(g, n, o));
  n = finish_pass(&p, PASS_LOWER, LEVEL_LOWERED, codegen_lower(g, n));
  n = finish_pass(&p, PASS_SCANS, LEVEL_LOWERED, codegen_vector_scans(g, n, o));
  n = finish_pass(&p, PASS_EXPAND, LEVEL_LOWERED, codegen_expand(g, n));
  n = finish_pass(&p, PASS_REGISTERS, LEVEL_LOWERED, codegen_promote_registers(g, n, t));
  n = finish_pass(&p, PASS_STREAMS, LEVEL_LOWERED, codegen_nontemporal_stores(g, n, t));
  n = finish_pass(&p, PASS_PREFETCH, LEVEL_LOWERED, codegen_prefetch(g, n, t));
  n = finish_pass(&p, PASS_THREADS, LEVEL_LOWERED, codegen_parallel_loops(g, n, t));
  n = finish_pass(&p, PASS_EDGES, LEVEL_LOWERED, codegen_split_copy_loops(g, n));
  n = finish_pass(&p, PASS_SHORT_LOOPS, LEVEL_LOWERED, codegen_short_loops(g, n));
  n = finish_pass(&p, PASS_DECOMPOSE, LEVEL_LOWERED, codegen_decompose(g, n, o));
  n = finish_pass(&p, PASS_INDEX_WIDTH, LEVEL_LOWERED, codegen_index_width(g, n, t));
  n = finish_pass(&p, PASS_COPIES, LEVEL_LOWERED, codegen_copies_ahead(g, n, t));
  n = finish_pass(&p, PASS_LINEARISE, LEVEL_LINEAR, codegen_linearise(g, n));
  return finish_pass(&p, PASS_BARRIERS, LEVEL_LINEAR, codegen_barriers(g, n));
}

/** Raises if the arrays that a group shares exceed its memory. */
static void check_group_bytes(ir *g, const node *linear, const target *t) {
  scratch_plan plan = scratch_plan_make(ir_arena(g), linear);
  uint64_t warps = t->warp ? (t->team_workers + t->warp - 1) / t->warp : 0;
  uint64_t bytes = plan.group_bytes + plan.warp_bytes * warps;
  if (bytes > t->group_bytes)
    diag_raise(ir_diag(g), TN_ERR_UNSUPPORTED,
               "the arrays that a group shares need %" PRIu64 " bytes; this device has %" PRIu64,
               bytes, t->group_bytes);
}

const node *codegen_run(ir *g, const node *kernel, const char *device, const codegen_options *o) {
  const node *linear = run_passes(g, kernel, o);
  uint64_t scratch = o->target.scratch;
  if (scratch && scratch_plan_make(ir_arena(g), linear).bytes > scratch) {
    codegen_options tight = *o;
    tight.target.scratch = 1; /* no copies for speed: the arrays that the kernel needs may fit */
    tight.found = NULL;
    linear = run_passes(g, kernel, &tight);
  }
  if (tile_plan_make(ir_arena(g), linear).n > MACHINE_TILE_REGISTERS) {
    codegen_options without = *o;
    for (size_t i = 0; i < TENSOR_TILES; i++)
      rule_target_add_missing_op(&without.target.rules, tensor_tiles[i].op);
    without.found = NULL;
    return codegen_run(g, kernel, device, &without);
  }
  if (o->target.team_workers) check_group_bytes(g, linear, &o->target);
  const node *on = ir_make(
      g, &(node_spec){.op = OP_DEVICE, .dtype = DT_VOID, .text = device, .n_text = strlen(device)});
  return ir_node(g, OP_PROGRAM, DT_VOID, (const node *[]){kernel, on, linear}, 3, NULL, 0);
}
