/* Implements the list of steps of a model that the host computes. */
#include "formats/host/host_steps.h"

#include <stdio.h>

host_steps *host_steps_open(const mem *m, string_table *strings, diag *d) {
  host_steps *s = mem_calloc(m, 1, sizeof *s);
  if (!s) return NULL;
  atomic_init(&s->count, 1);
  s->mem = m;
  s->strings = strings;
  arena_init(&s->arena, m, d);
  return s;
}

host_steps *host_steps_retain(host_steps *s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  return s;
}

void host_steps_clear(host_steps *s) {
  for (size_t i = 0; s && i < s->all.n; i++)
    if (s->all.at[i].destroy) s->all.at[i].destroy(s->all.at[i].options);
  if (s) s->all.n = 0;
}

void host_steps_release(host_steps *s) {
  if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) > 1) return;
  host_steps_clear(s);
  arena_free(&s->arena);
  mem_free(s->mem, s, sizeof *s);
}

tn_status host_steps_run(const host_steps *s, int64_t number, const host_arrays *a,
                         tn_failure *failure) {
  if (number < 0 || (uint64_t)number >= s->all.n)
    return tn_fail(failure, TN_ERR_INTERNAL, "the model has no step %lld of the host",
                   (long long)number);
  const host_step *step = &s->all.at[number];
  tn_status status = step->run(step->options, s->strings, a, failure);
  if (status == TN_OK) return status;
  char text[sizeof failure->text];
  snprintf(text, sizeof text, "%s", failure->text);
  return tn_fail(failure, status, "%s: %.1800s", step->name, text);
}

const char *host_steps_what(const host_steps *s, int64_t number) {
  return number >= 0 && (uint64_t)number < s->all.n ? s->all.at[number].what : NULL;
}
