/* What laws did: each step from a kernel to the next, whether the next one was kept or not. */
#include "ir/topo.h"
#include "laws/laws.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct law_step {
  const node *from, *made;
  const char *text;
} law_step;

struct law_log {
  arena *arena;
  VEC(law_step) steps;
};

law_log *law_log_new(ir *g) {
  law_log *log = arena_calloc(ir_arena(g), 1, sizeof *log);
  log->arena = ir_arena(g);
  return log;
}

const node *law_made(laws *l, const node *from, const node *made, const char *format, ...) {
  enum { LONGEST = 200 };
  char text[LONGEST];
  if (!l->log || !made || made == from) return made;
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  arena *a = l->log->arena;
  vec_push(a, &l->log->steps, (law_step){from, made, arena_printf(a, "%s", text)});
  return made;
}

/** Found from the end: the last step that made a kernel is the one that was kept. */
void law_log_tell(const law_log *log, const node *from, const node *to,
                  void (*tell)(void *user, const char *line), void *user) {
  VEC(const char *) lines = {0};
  for (size_t i = log->steps.n; i-- > 0 && to != from;) {
    if (log->steps.at[i].made != to) continue;
    vec_push(log->arena, &lines, log->steps.at[i].text);
    to = log->steps.at[i].from;
  }
  while (lines.n) tell(user, vec_pop(&lines));
}
