/* How a kernel runs on a target: as the schedule says that it brings along; else by
   the choices that `chosen` makes, each in a file of its own, in that order. */
#include "codegen/choice.h"
#include "codegen/codegen.h"
#include "ir/sink.h"
#include "laws/list.h"

static void tell(const law_list *list, const codegen_watch *w, arena *a) {
  for (size_t i = 0; i < list->n; i++) {
    str line = str_new(a);
    law_line_print(&line, &list->at[i]);
    w->law(w->user, str_text(&line));
  }
}

static const node *chosen(ir *g, const node *sink, const codegen_options *o) {
  choice c = {.laws = {.g = g}, .target = &o->target, .math = o->math, .sink = sink};
  if (o->watch.law) c.laws.log = law_log_new(g);
  choose_pieces(&c);
  choose_flat(&c);
  choose_blocks(&c);
  choose_squares(&c);
  choose_pages(&c);
  choose_vectors(&c);
  if (o->math & MATH_SUM) c.sink = codegen_sums(&c.laws, c.sink);
  choose_tiles(&c);
  choose_boxes(&c);
  choose_panels(&c);
  choose_copies(&c);
  choose_epilogues(&c);
  choose_shares(&c);
  if (!o->watch.law) return c.sink;
  law_steps steps = law_log_steps(c.laws.log, sink, c.sink);
  law_list list = law_list_of(&c.laws, sink, &steps);
  tell(&list, &o->watch, ir_arena(g));
  return c.sink;
}

const node *codegen_choose(ir *g, const node *sink, const codegen_options *o) {
  size_t bytes;
  laws l = {.g = g};
  const char *lines = sink_schedule(sink, &bytes);
  if (!lines) return chosen(g, sink, o);
  law_list list = law_list_parse(ir_arena(g), lines, bytes);
  if (o->watch.law) tell(&list, &o->watch, ir_arena(g));
  sink = law_list_apply(&l, sink_with_schedule(g, sink, NULL, 0), &list);
  law_check_threads(ir_diag(g), sink);
  return sink;
}
