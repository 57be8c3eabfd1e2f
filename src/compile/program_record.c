/* Records of programs: made of a loaded program, and compared with another one's launch. */
#include "compile/program_record.h"
#include "compile/kernel_cache.h"

#include <string.h>

program_record program_record_of(const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  program_record r = {.name = p->name,
                      .n_globals = f->n_globals,
                      .n_values = f->n_values,
                      .globals = f->globals,
                      .value_names = f->value_names};
  size_t bytes;
  const void *key = kernel_key_bytes(kernel_of_program(p), &bytes);
  r.key = kernel_key_graph(key, bytes);
  return r;
}

bool program_record_launches_alike(const program_record *a, const program_record *b) {
  bool same = a->n_globals == b->n_globals && a->n_values == b->n_values;
  for (size_t i = 0; i < a->n_globals && same; i++) same = a->globals[i] == b->globals[i];
  for (size_t i = 0; i < a->n_values && same; i++)
    same = !strcmp(a->value_names[i], b->value_names[i]);
  return same;
}
