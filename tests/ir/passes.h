/* Table of the passes that IR tests may name, as functions that change the roots of a graph or
   raise. Arguments stand in brackets and without blanks: `choose(v256)`; laws (schedule
   transformations) are passes too: `SPLIT(r0,by,8)`. */
#ifndef TENON_TESTS_IR_PASSES_H
#define TENON_TESTS_IR_PASSES_H

#include "alike.h"
#include "codegen/choose/choice.h"
#include "codegen/codegen.h"
#include "ir/transform/substitute.h"
#include "ir/verify/verify_graph.h"
#include "laws/laws.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "replay.h"
#include "schedule/devices/resolve_devices.h"
#include "schedule/loops/outline_loops.h"
#include "schedule/schedule.h"
#include "schedule/values/versions.h"

#include <stdlib.h>

enum { MOST_PASS_ARGUMENTS = 12, REGISTERS = 16 };

typedef struct pass_call {
  ir *g;
  const char *name;
  node_list *roots;
  size_t n;
  const char *args[MOST_PASS_ARGUMENTS];
} pass_call;

typedef struct ir_pass {
  const char *name;
  void (*run)(const pass_call *c);
  int verified_as; /* stage of each root afterwards; −1: not verified */
} ir_pass;

static const char *argument(const pass_call *c, size_t i) { return i < c->n ? c->args[i] : ""; }

static _Noreturn void bad_argument(const pass_call *c, const char *what) {
  diag_raise(ir_diag(c->g), TN_ERR_ARGUMENT, "the arguments of the pass: expected %s", what);
}

static void verify_stage(ir *g, const node *root, enum stage stage) {
  if (verify_graph(&root, 1, stage, ir_mem(g), ir_diag(g)) != TN_OK) diag_rethrow(ir_diag(g));
}

static void pass_print(const pass_call *c) { (void)c; }

/* Tensors to kernels. */

static bool any(void *user, const node *buffer) {
  (void)user, (void)buffer;
  return true;
}

/** `keep`: no BUFFER may be overwritten; `exact`, `fast`: the arithmetic; `small`: a machine whose
    caches hold next to nothing; `v256`: one with vectors; a number: the most buffers of a
    kernel. */
static schedule_request request_of(const pass_call *c) {
  schedule_request r = {
      .roots = arena_copy(ir_arena(c->g), c->roots->at, c->roots->n * sizeof *c->roots->at),
      .n_roots = c->roots->n,
      .may_overwrite = any,
      .math = MATH_DEFAULT};
  for (size_t i = 0; i < c->n; i++) {
    if (!strcmp(c->args[i], "keep"))
      r.may_overwrite = NULL;
    else if (!strcmp(c->args[i], "exact"))
      r.math = MATH_EXACT;
    else if (!strcmp(c->args[i], "fast"))
      r.math = MATH_FAST;
    else if (!strcmp(c->args[i], "small"))
      r.target.hardware = (tn_hardware){.l1_bytes = 4096, .l2_bytes = 4096};
    else if (!strcmp(c->args[i], "v256"))
      r.target.vector = 32;
    else
      r.target.arguments = (size_t)strtoul(c->args[i], NULL, 10);
  }
  return r;
}

static void take_roots(const pass_call *c, const node *const roots[], size_t n) {
  *c->roots = (node_list){0};
  for (size_t i = 0; i < n; i++) vec_push(ir_arena(c->g), c->roots, roots[i]);
}

static void pass_normalise(const pass_call *c) {
  schedule_request r = request_of(c);
  normalised n;
  normalise_graph(c->g, &r, &n);
  take_roots(c, n.roots, n.n_roots);
}

/** Emits the graph around the loops, then each loop's body. */
static void pass_loops(const pass_call *c) {
  schedule_request r = request_of(c);
  normalised n;
  normalise_graph(c->g, &r, &n);
  loops_extract(c->g, &r, &n, 0);
  take_roots(c, n.roots, n.n_roots);
  for (size_t i = 0; i < n.loops.n; i++)
    for (size_t k = 0; k < n.loops.at[i]->body.n_roots; k++)
      vec_push(ir_arena(c->g), c->roots, n.loops.at[i]->body.roots[k]);
}

static void pass_devices(const pass_call *c) {
  schedule_request r = request_of(c);
  normalised n;
  normalise_graph(c->g, &r, &n);
  resolve_devices(c->g, &r, &n);
  take_roots(c, n.roots, n.n_roots);
}

static void pass_versions(const pass_call *c) {
  schedule_request r = request_of(c);
  normalised n;
  normalise_graph(c->g, &r, &n);
  versions_insert_copies(c->g, &r, &n);
  take_roots(c, n.roots, n.n_roots);
}

/** Converts a step of a schedule to a node for printing: PARAMs get the numbers of the plan's
    buffers. */
static const node *step_as_node(ir *g, const schedule *s, const schedule_step *step) {
  map with = {0};
  const node *root = step->kernel              ? step->kernel
                     : step->kind == STEP_COPY ? step->values.at[0]
                                               : step->custom;
  size_t first = step->kind == STEP_COPY; /* of the buffers that it reads */
  node_list order = topo_sort(ir_arena(g), &root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM || !step->kernel) continue;
    int64_t slot = (int64_t)step->buffers[p->ints[0]];
    map_set(ir_arena(g), &with, p,
            (void *)ir_node(g, OP_PARAM, (dtype)p->dtype, p->src, p->n_src, &slot, 1));
  }
  for (size_t i = 0; i + 1 < step->n_buffers && !step->kernel; i++) {
    const node *x = root->src[i];
    int64_t slot = (int64_t)step->buffers[first + i];
    map_set(ir_arena(g), &with, x,
            (void *)ir_node(g, OP_PARAM, (dtype)x->dtype, x->dims, x->rank, &slot, 1));
  }
  (void)s;
  return subst(g, root, &with);
}

/** Emits the steps of the schedule in order and compares its values with the interpreter's. */
static void pass_kernels(const pass_call *c) {
  schedule_request r = request_of(c);
  schedule *s = schedule_make(c->g, &r);
  replay values = {.a = ir_arena(c->g), .seed = 1};
  replay_compare(&values, &r, s, 1e-5);
  *c->roots = (node_list){0};
  for (size_t i = 0; i < s->steps.n; i++)
    vec_push(ir_arena(c->g), c->roots, step_as_node(c->g, s, &s->steps.at[i]));
}

/* Laws, applied to the kernel that is the first root. */

static void apply_law(const pass_call *c, laws *l, const char *name) {
  str line = str_new(ir_arena(c->g));
  str_add(&line, name);
  for (size_t i = 0; i < c->n; i++) str_addf(&line, " %s", c->args[i]);
  law_schedule list = law_schedule_parse(ir_arena(c->g), str_text(&line), line.n);
  c->roots->at[0] = law_schedule_apply(l, c->roots->at[0], &list);
}

/** Applies a line of a schedule: the name of a law and its arguments. */
static void pass_law(const pass_call *c) {
  laws l = {.g = c->g};
  apply_law(c, &l, c->name);
}

/** The same for a target with teams of up to 64 workers, in warps of 4: the arguments are the whole
    line. */
static void pass_teams(const pass_call *c) {
  laws l = {.g = c->g, .workers = 64, .warp = REPLAY_WARP};
  apply_law(c, &l, "");
}

/* Kernels to programs, for one of these targets. All lack the ops that C lacks. */

static const struct {
  const char *name;
  uint16_t vector_bytes;
  bool threads, index32, fma;
  tn_hardware hardware;
} targets[] = {
    {"scalar", 0, false, false, false, {0}},
    {"scalar32", 0, false, true, false, {0}},
    {"v128", 16, false, false, true, {0}},
    {"v256", 32, false, false, true, {0}},
    {"scalar-threads", 0, true, false, false, {0}},
    {"v256-threads", 32, true, false, true, {0}},
    {"v256-small", 32, false, false, true, {.l1_bytes = 4096, .l3_bytes = 4096, .line_bytes = 64}},
    {"v512-small", 64, false, false, true, {.l1_bytes = 4096, .l3_bytes = 4096, .line_bytes = 64}},
    {"v256-near", 32, false, false, true, {.l1_bytes = 4096, .l2_bytes = 32768, .line_bytes = 64}},
    {"v512", 64, false, false, true, {.l1_bytes = 49152, .l2_bytes = 1 << 20, .line_bytes = 64}},
    {"v256-cores",
     32,
     false,
     false,
     true,
     {.l1_bytes = 4096, .l3_bytes = 4096, .l3_cores = 1, .cores = 8}},
    {"teams", 0, false, false, true, {0}},  /* of eight workers */
    {"warps", 0, false, false, true, {0}},  /* of 32, two a group, with what CUDA C has */
    {"copies", 0, false, false, true, {0}}, /* the same, and copies as workers go on */
};

static codegen_options options_of(const pass_call *c) {
  codegen_options o = {.math = MATH_DEFAULT};
  size_t i = 0, n = sizeof targets / sizeof *targets;
  while (i < n && strcmp(targets[i].name, argument(c, 0)) != 0) i++;
  if (i == n) bad_argument(c, "a target of tests/ir/passes.h");
  o.target = (target){.vector_bytes = targets[i].vector_bytes,
                      .registers = REGISTERS << (targets[i].vector_bytes == 64),
                      .threads = targets[i].threads,
                      .index32 = targets[i].index32,
                      .hardware = targets[i].hardware};
  if (!strcmp(targets[i].name, "teams"))
    o.target.team_workers = 8, o.target.group_bytes = 1 << 14, o.target.registers = 64;
  bool copies = !strcmp(targets[i].name, "copies");
  bool has_warps = copies || !strcmp(targets[i].name, "warps");
  if (copies) o.target.copy_bytes = 4;
  if (has_warps) {
    o.target.team_workers = 64, o.target.warp = 32;
    o.target.group_bytes = 1 << 14, o.target.registers = 64;
  }
  render_c_unsupported_ops(has_warps ? &c_cuda : &c_gnu, &o.target.rules);
  if (!targets[i].fma) rule_target_add_missing_op(&o.target.rules, OP_FMA);
  return o;
}

#define EACH_ROOT(c, changed) \
  for (size_t i = 0; i < (c)->roots->n; i++) (c)->roots->at[i] = changed

static void pass_simplify(const pass_call *c) {
  codegen_options o = {.math = MATH_DEFAULT};
  EACH_ROOT(c, codegen_simplify(c->g, c->roots->at[i], &o));
}

static void pass_sums(const pass_call *c) {
  for (size_t i = 0; i < c->roots->n; i++) {
    choice made = {.laws = {.g = c->g}, .math = MATH_REORDER, .sink = c->roots->at[i]};
    choose_blocked_sums(&made);
    c->roots->at[i] = made.sink;
  }
}

/** Chooses laws for a kernel and checks that their text replays to the same kernel. */
static const node *chosen(ir *g, const node *sink, codegen_options o) {
  str lines = str_new(ir_arena(g));
  o.observer = (codegen_observer){.law = alike_note, .user = &lines};
  const node *made = codegen_choose(g, sink, &o);
  alike_replay_in_teams(g, sink, &lines, made, o.target.team_workers, o.target.warp);
  return made;
}

static void pass_choose(const pass_call *c) {
  EACH_ROOT(c, chosen(c->g, c->roots->at[i], options_of(c)));
}

static void pass_lower(const pass_call *c) { EACH_ROOT(c, codegen_lower(c->g, c->roots->at[i])); }
static void pass_streams(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_nontemporal_stores(c->g, c->roots->at[i], &o.target));
}

static void pass_prefetch(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_prefetch(c->g, c->roots->at[i], &o.target));
}

static void pass_registers(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_promote_registers(c->g, c->roots->at[i], &o.target));
}

static void pass_scans(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_vector_scans(c->g, c->roots->at[i], &o));
}

static void pass_expand(const pass_call *c) { EACH_ROOT(c, codegen_expand(c->g, c->roots->at[i])); }

static void pass_threads(const pass_call *c) {
  EACH_ROOT(c, codegen_parallel_loops(c->g, c->roots->at[i], &(target){0}));
}

static void pass_edges(const pass_call *c) {
  EACH_ROOT(c, codegen_split_copy_loops(c->g, c->roots->at[i]));
}

static void pass_short_loops(const pass_call *c) {
  EACH_ROOT(c, codegen_short_loops(c->g, c->roots->at[i]));
}

static void pass_decompose(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_decompose(c->g, c->roots->at[i], &o));
}

static void pass_index_width(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_index_width(c->g, c->roots->at[i], &o.target));
}

static void pass_copies(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_copies_ahead(c->g, c->roots->at[i], &o.target));
}

static void pass_linearise(const pass_call *c) {
  EACH_ROOT(c, codegen_linearise(c->g, c->roots->at[i]));
}

static void pass_barriers(const pass_call *c) {
  EACH_ROOT(c, codegen_barriers(c->g, c->roots->at[i]));
}

/** Runs all of code generation; the result is the PROGRAM's LINEAR. */
static void pass_codegen(const pass_call *c) {
  codegen_options o = options_of(c);
  EACH_ROOT(c, codegen_run(c->g, c->roots->at[i], "CPU", &o)->src[2]);
}

/* Comparison of a test's result with its input, by running both. */

static bool has_op(ir *g, const node *root, op o) {
  node_list order = topo_sort(ir_arena(g), &root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == o) return true;
  return false;
}

/** Returns a kernel or program in runnable form (lowered ones are linearised); NULL if it is
    neither. */
static const node *runnable(ir *g, const node *n) {
  target t = {0};
  if (n->op == OP_LINEAR) return n;
  if (n->op != OP_SINK) return NULL;
  if (has_op(g, n, OP_OUT)) return n;
  n = codegen_parallel_loops(g, codegen_expand(g, n), &t);
  return codegen_barriers(g, codegen_linearise(g, codegen_index_width(g, n, &t)));
}

/** Raises if two kernels or programs write different results. */
static void compare_values(ir *g, const node *before, const node *after) {
  before = runnable(g, before);
  after = runnable(g, after);
  if (!before || !after) return;
  replay r = {.a = ir_arena(g), .seed = 1};
  replay_prepare(&r, &before, 1);
  replay_prepare(&r, &after, 1);
  const interp_array *x = replay_kernel(&r, before, 1);
  if (after->op == OP_LINEAR) replay_check_stores(&r, after, 16);
  for (int64_t workers = 1; workers < 4; workers += 2) {
    const interp_array *y = replay_kernel(&r, after, workers);
    for (size_t i = 0; i < r.params.n; i++)
      if (!replay_same(&x[i], &y[i], 1e-5))
        diag_raise(ir_diag(g), TN_ERR_INTERNAL, "the passes change the contents of slot %zu", i);
  }
}

static const ir_pass ir_passes[] = {
    {"print", pass_print, -1},
    {"verify-tensor", pass_print, LEVEL_TENSOR},
    {"verify-kernel", pass_print, LEVEL_KERNEL},
    {"verify-lowered", pass_print, LEVEL_LOWERED},
    {"verify-linear", pass_print, LEVEL_LINEAR},
    {"normalise", pass_normalise, LEVEL_TENSOR},
    {"loops", pass_loops, LEVEL_TENSOR},
    {"versions", pass_versions, LEVEL_TENSOR},
    {"devices", pass_devices, LEVEL_TENSOR},
    {"kernels", pass_kernels, LEVEL_KERNEL},
#define LAW(name, function, arguments, new_ranges, file, about) {#name, pass_law, LEVEL_KERNEL},
#include "laws/laws.def"
    {"teams", pass_teams, LEVEL_KERNEL},
    {"sums", pass_sums, LEVEL_KERNEL},
    {"simplify", pass_simplify, LEVEL_KERNEL},
    {"choose", pass_choose, LEVEL_KERNEL},
    {"lower", pass_lower, LEVEL_LOWERED},
    {"scans", pass_scans, LEVEL_LOWERED},
    {"expand", pass_expand, LEVEL_LOWERED},
    {"registers", pass_registers, LEVEL_LOWERED},
    {"streams", pass_streams, LEVEL_LOWERED},
    {"prefetch", pass_prefetch, LEVEL_LOWERED},
    {"threads", pass_threads, LEVEL_LOWERED},
    {"edges", pass_edges, LEVEL_LOWERED},
    {"short_loops", pass_short_loops, LEVEL_LOWERED},
    {"decompose", pass_decompose, LEVEL_LOWERED},
    {"index_width", pass_index_width, LEVEL_LOWERED},
    {"copies", pass_copies, LEVEL_LOWERED},
    {"linearise", pass_linearise, LEVEL_LINEAR},
    {"barriers", pass_barriers, LEVEL_LINEAR},
    {"codegen", pass_codegen, LEVEL_LINEAR},
};

#endif
