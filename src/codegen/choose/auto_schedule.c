/* Schedules a kernel: applies the loop transformations (laws) that the choices below make, in this
   order, or replays those of the schedule that the kernel brings along. Each choice looks at the
   kernel and the target alone, applies laws where they are legal and its cost estimate gains by
   them, and leaves the rest. Some of them have alternatives, among which a search decides first. */
#include "base/stop.h"
#include "codegen/choose/choice.h"
#include "codegen/codegen.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "ir/verify/verify_graph.h"
#include "laws/kernel_schedule.h"

const choice_step choice_steps[] = {
    /* A nest for each part of a concatenation or window, so that no element is selected. */
    {PASS_INDEX_SET_SPLIT, choose_index_set_split},
    /* Scans whose elements would not fit in scratch memory run anew for each row that they store.
     */
    {PASS_SINK_FOLDS, choose_sink_folds},
    /* One loop in place of two whose accesses are contiguous across both. */
    {PASS_FLATTEN_LOOPS, choose_flatten_loops},
    /* Strip-mining: arrays are built for a block of indices whose reductions share operands. */
    {PASS_ARRAY_EXPANSION, choose_array_expansion},
    /* A cache-blocked transpose where reads and writes are contiguous along different ranges. */
    {PASS_TRANSPOSE_TILES, choose_transpose_tiles},
    /* Memory-bound nests walk through two streams of pages alternately. */
    {PASS_INTERLEAVED_STREAMS, choose_interleaved_streams},
    /* A range of each nest goes in vector lanes, and its remainder in narrower ones. */
    {PASS_VECTORISE, choose_vectorise},
    /* Long floating-point sums become sums of blocks, for accuracy. */
    {PASS_BLOCKED_SUMS, choose_blocked_sums},
    /* Blocks of products of small types become tiles, which have instructions of their own. */
    {PASS_TENSOR_TILES, choose_tensor_tiles},
    /* Blocks of results that share operands become copies, one register each. */
    {PASS_REGISTER_TILES, choose_register_tiles},
    /* Loops around a tile are exchanged, so that its other operand is the one that is reused. */
    {PASS_LOOP_ORDER, choose_loop_order},
    /* Windows are copied with their padding, so that reductions read without bounds checks. */
    {PASS_PADDED_TILES, choose_padded_tiles},
    /* Operands that tiles read scattered, or from far, are copied contiguously. */
    {PASS_PACKING, choose_packing},
    /* Rows of arrays are spread over all sets of the first cache. */
    {PASS_ROW_PITCH, choose_row_pitch},
    /* Copies and lanes around a reduction move inside of its loop. */
    {PASS_UNROLL_AND_JAM, choose_unroll_and_jam},
    /* The epilogue of a large tile becomes a loop over its results. */
    {PASS_EPILOGUE_LOOPS, choose_epilogue_loops},
    /* One range of each nest is divided among threads. */
    {PASS_PARALLELISE, choose_parallelise},
};

_Static_assert(sizeof choice_steps / sizeof *choice_steps == CHOICE_STEPS,
               "CHOICE_STEPS is not the number of steps");

static void report_laws(const law_schedule *list, const codegen_observer *o, arena *a) {
  for (size_t i = 0; i < list->n; i++) {
    str line = str_new(a);
    law_schedule_print_line(&line, &list->at[i]);
    o->law(o->user, str_text(&line));
  }
}

static void report_cost(const choice *c, const codegen_observer *o) {
  kernel_cost cost = choice_cost(c);
  o->cost(o->user, &cost);
}

static void apply_step(choice *c, const choice_step *step, const codegen_observer *o) {
  const node *before = c->sink;
  step->apply(c);
  if (c->sink != before) verify_after_pass(c->laws.g, step->name, LEVEL_KERNEL, &c->sink, 1);
  if (o->after_choice) o->after_choice(o->user, pass_name(step->name), c->sink);
}

/** Applies all steps, or the one for teams, and reports each. */
static void apply_steps(choice *c, const codegen_observer *o) {
  static const choice_step teams = {PASS_TEAMS, choose_teams};
  if (c->target->team_workers) apply_step(c, &teams, o);
  for (size_t i = 0; i < CHOICE_STEPS && !c->target->team_workers; i++)
    apply_step(c, &choice_steps[i], o);
}

static choice begin_choice(ir *g, const node *sink, const codegen_options *o) {
  return (choice){.laws = {.g = g,
                           .indices = law_indices_new(g),
                           .workers = o->target.team_workers,
                           .warp = o->target.warp},
                  .target = &o->target,
                  .math = o->math,
                  .sink = sink};
}

/** The decisions of the options where the steps make exactly these; else what the search finds, or
    found before. */
static decision_list find_decisions(const choice *c, const codegen_options *o) {
  decision_list made;
  double ns;
  bool fits = o->decisions && choice_try(c, o->decisions, &made, &ns) &&
              decisions_equal(&made, o->decisions);
  if (fits && o->observer.tuned) o->observer.tuned(o->observer.user);
  if (fits) return *o->decisions;
  return o->found ? *o->found : choice_search(c);
}

bool codegen_predict(ir *g, const node *sink, const codegen_options *o, decision_list *made,
                     double *ns) {
  choice c = begin_choice(g, codegen_simplify(g, sink, o), o);
  decision_list wanted = o->decisions ? *o->decisions : choice_search(&c);
  return choice_try(&c, &wanted, made, ns);
}

typedef struct prediction {
  ir *g;
  const node *sink;
  const codegen_options *options;
  arena *to;
  decision_list *made;
  double *ns;
  bool is_made;
} prediction;

static void predict_body(void *arg) {
  prediction *p = arg;
  decision_list made;
  ir_copy(p->g, ir_arena(p->g), &p->sink, 1, NULL, NULL, &p->sink);
  p->is_made = codegen_predict(p->g, p->sink, p->options, &made, p->ns);
  if (p->is_made) *p->made = decisions_copy(p->to, &made);
}

bool codegen_predict_apart(const mem *m, const node *sink, const codegen_options *o, arena *to,
                           decision_list *made, double *ns) {
  diag *d = to->diag;
  prediction p = {
      .g = ir_new(m, d, false), .sink = sink, .options = o, .to = to, .made = made, .ns = ns};
  if (!p.g) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = diag_catch(d, predict_body, &p);
  ir_free(p.g);
  if (stops_work(status) || status == TN_ERR_INTERNAL) diag_rethrow(d);
  if (status) diag_clear(d);
  return !status && p.is_made;
}

static const node *schedule_kernel(ir *g, const node *sink, const codegen_options *o) {
  choice c = begin_choice(g, sink, o);
  if (!o->target.team_workers)
    c.wanted = find_decisions(&c, o);
  else if (o->decisions)
    c.wanted = *o->decisions;
  if (o->observer.law) c.laws.log = law_trace_new(g);
  apply_steps(&c, &o->observer);
  if (o->observer.cost) report_cost(&c, &o->observer);
  if (!o->observer.law) return c.sink;
  law_steps path = law_trace_path(c.laws.log, sink, c.sink);
  law_schedule list = law_schedule_of_trace(&c.laws, sink, &path);
  report_laws(&list, &o->observer, ir_arena(g));
  return c.sink;
}

const node *codegen_choose(ir *g, const node *sink, const codegen_options *o) {
  size_t bytes;
  laws l = {.g = g, .workers = o->target.team_workers, .warp = o->target.warp};
  const char *lines = sink_schedule(sink, &bytes);
  if (!lines) return schedule_kernel(g, sink, o);
  law_schedule list = law_schedule_parse(ir_arena(g), lines, bytes);
  if (o->observer.law) report_laws(&list, &o->observer, ir_arena(g));
  sink = law_schedule_apply(&l, sink_with_schedule(g, sink, NULL, 0), &list);
  law_check_threads(ir_diag(g), sink);
  law_check_warps(&l, sink);
  return choice_loops_for_tiles(g, sink, &o->target.rules);
}
