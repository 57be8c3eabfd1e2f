/* Logs applied laws (schedule primitives): every step from one kernel to the next, whether the next
   one was kept or dropped. The path that led to a kernel is found backwards, from the step that
   made it. */
#include "laws/law_support.h"
#include "laws/team_arrays.h"

struct law_trace {
  arena *arena;
  law_steps steps;
};

law_trace *law_trace_new(ir *g) {
  law_trace *log = arena_calloc(ir_arena(g), 1, sizeof *log);
  log->arena = ir_arena(g);
  return log;
}

const node *law_record(laws *l, const node *from, const node *to, law which, const law_args *args,
                       const node *const principals[]) {
  const char *why = to && l->workers ? team_objection(l->g, to) : NULL;
  if (why) return law_refuse(l, why);
  if (!l->log || !to || to == from) return to;
  arena *a = l->log->arena;
  law_step s = {.from = from, .to = to, .which = which, .args = *args};
  s.args.list = arena_copy(a, args->list, args->n * sizeof *args->list);
  s.principals = arena_copy(a, principals, law_named_ranges(which, args) * sizeof *principals);
  vec_push(a, &l->log->steps, s);
  return to;
}

/* The last step that made a kernel is the one that was kept. A change that is no law breaks the
   path: the laws after it would be another schedule. */
law_steps law_trace_path(const law_trace *log, const node *from, const node *to) {
  law_steps back = {0}, steps = {0};
  for (size_t i = log->steps.n; i-- > 0 && to != from;) {
    if (log->steps.at[i].to != to) continue;
    vec_push(log->arena, &back, log->steps.at[i]);
    to = log->steps.at[i].from;
  }
  if (to != from)
    diag_raise(log->arena->diag, TN_ERR_INTERNAL,
               "no sequence of laws leads from one kernel to the other");
  while (back.n) vec_push(log->arena, &steps, vec_pop(&back));
  return steps;
}
