/* What laws did: each step from a kernel to the next, whether the next one was kept or not. */
#include "laws/laws.h"

struct law_log {
  arena *arena;
  law_steps steps;
};

law_log *law_log_new(ir *g) {
  law_log *log = arena_calloc(ir_arena(g), 1, sizeof *log);
  log->arena = ir_arena(g);
  return log;
}

const node *law_made(laws *l, const node *from, const node *made, law which, const law_args *args,
                     const node *const principals[]) {
  if (!l->log || !made || made == from) return made;
  arena *a = l->log->arena;
  law_step s = {.from = from, .made = made, .which = which, .args = *args};
  s.args.list = arena_copy(a, args->list, args->n * sizeof *args->list);
  s.principals = arena_copy(a, principals, law_principals(which, args) * sizeof *principals);
  vec_push(a, &l->log->steps, s);
  return made;
}

/** Found from the end: the last step that made a kernel is the one that was kept. Some laws would
   be another schedule than all of them: none are given, if what changed the kernel was no law. */
law_steps law_log_steps(const law_log *log, const node *from, const node *to) {
  law_steps back = {0}, steps = {0};
  for (size_t i = log->steps.n; i-- > 0 && to != from;) {
    if (log->steps.at[i].made != to) continue;
    vec_push(log->arena, &back, log->steps.at[i]);
    to = log->steps.at[i].from;
  }
  if (to != from)
    diag_raise(log->arena->diag, TN_ERR_INTERNAL, "no laws lead from one kernel to the other");
  while (back.n) vec_push(log->arena, &steps, vec_pop(&back));
  return steps;
}
