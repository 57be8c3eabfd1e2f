#include "runtime/inside.h"

#include <stdlib.h>

static int by_uid(const void *a, const void *b) {
  const executable_place *x = a, *y = b;
  if (x->uid != y->uid) return x->uid < y->uid ? -1 : 1;
  return (x->version > y->version) - (x->version < y->version);
}

void executable_sort_places(executable_place places[], size_t n) {
  qsort(places, n, sizeof *places, by_uid);
}

size_t executable_find_place(const executable_place places[], size_t n, int64_t uid,
                             int64_t version) {
  const executable_place key = {uid, version, 0};
  const executable_place *found = bsearch(&key, places, n, sizeof key, by_uid);
  return found ? found->at : SIZE_MAX;
}

void executable_list_inputs(executable *p) {
  p->inputs = arena_alloc(&p->arena, (p->n_buffers + 1) * sizeof *p->inputs);
  p->n_inputs = 0;
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    if (b->role == ROLE_INPUT) p->inputs[p->n_inputs++] = (executable_place){b->uid, b->version, i};
  }
  executable_sort_places(p->inputs, p->n_inputs);
}
