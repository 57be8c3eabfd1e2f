/* Finds the programs of a plan from disk by their records, in the caches alone: nothing is
   compiled, as the plan is built anew if one of them is missing. */
#include "compile/compilation.h"

/** The search for all programs of a plan. */
typedef struct program_search {
  compilation c; /* begins it: what compilation_run passes on */
  const program_record *records;
  bool is_found; /* all of them */
} program_search;

/** Kernels that other threads are compiling count as not found. */
static void find_all(void *arg) {
  program_search *s = arg;
  compilation *c = &s->c;
  const work *w = &c->work;
  compilation_begin_requests(c);
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    r->record = &s->records[i];
    request_set_key(c, r, r->record->key);
    request_look_up(c, r, 0);
  }
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    if (r->claimed && c->disk) request_find_on_disk(c, r);
    if (r->claimed || !r->kernel) return;
  }
  s->is_found = !compilation_load_programs(c);
  for (size_t i = 0; i < w->n && s->is_found; i++) {
    const program_record loaded = program_record_of(w->programs[i]);
    s->is_found = program_record_launches_alike(&s->records[i], &loaded);
  }
}

tn_status compile_find_programs(const compile_options *o, const program_record records[], size_t n,
                                tn_program *programs[], bool *found, diag *d) {
  program_search s = {.c = {.options = o, .work = {.n = n, .programs = programs}},
                      .records = records};
  tn_status status = compilation_run(&s.c, find_all, d);
  *found = !status && s.is_found;
  if (!*found) compilation_drop_programs(&s.c);
  return status;
}
