/* Implements executables (compiled plans): reference counts, look-up of buffers and variables, and
   the links from steps to the loops that contain them. build_executable.c and plan_record.c make
   them. */
#include "runtime/executable.h"

#include <stdlib.h>
#include <string.h>

executable *executable_retain(executable *p) {
  atomic_fetch_add(&p->count, 1);
  return p;
}

void executable_release(executable *p) {
  if (!p || atomic_fetch_sub(&p->count, 1) > 1) return;
  for (size_t i = 0; i < p->n_programs; i++) program_release(p->programs[i]);
  if (p->host.release) p->host.release(p->host.user);
  arena_free(&p->arena);
  mem_free(p->mem, p, sizeof *p);
}

size_t executable_buffers(const executable *p) { return p->n_buffers; }
const executable_buffer *executable_buffer_at(const executable *p, size_t i) {
  return &p->buffers[i];
}
size_t executable_output(const executable *p, size_t root) { return p->outputs[root]; }
size_t executable_steps(const executable *p) { return p->n_steps; }
size_t executable_kernels(const executable *p) { return p->n_programs; }

size_t executable_compiled_kernels(const executable *p) { return p->n_compiled; }
size_t executable_vars(const executable *p) { return p->n_vars; }
const tn_program_var *executable_var_at(const executable *p, size_t i) { return &p->vars[i]; }

size_t executable_input(const executable *p, int64_t uid, int64_t version) {
  return uid_index_find(p->inputs, p->n_inputs, uid, version);
}

static int compare_var_names(const void *a, const void *b) {
  return strcmp(((const tn_program_var *)a)->name, ((const tn_program_var *)b)->name);
}

size_t executable_var(const executable *p, const char *name) {
  const tn_program_var key = {.name = name};
  const tn_program_var *v =
      p->n_vars ? bsearch(&key, p->vars, p->n_vars, sizeof key, compare_var_names) : NULL;
  return v ? (size_t)(v - p->vars) : SIZE_MAX;
}

bool executable_resolve_value(const executable *p, const char *name, size_t *var) {
  *var = executable_var(p, name);
  return *var != SIZE_MAX || !strcmp(name, "core_id") || !strcmp(name, "core_count");
}

void executable_index_inputs(executable *p) {
  p->inputs = arena_alloc(&p->arena, (p->n_buffers + 1) * sizeof *p->inputs);
  p->n_inputs = 0;
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    if (b->role == BUFFER_ROLE_INPUT)
      p->inputs[p->n_inputs++] = (uid_index_entry){b->uid, b->version, i};
  }
  uid_index_sort(p->inputs, p->n_inputs);
}

void executable_link_loops(executable *p) {
  size_t open = SIZE_MAX;
  for (size_t i = 0; i < p->n_steps; i++) {
    while (open != SIZE_MAX && i > open + p->steps[open].n_steps) open = p->steps[open].parent;
    p->steps[i].parent = open;
    if (p->steps[i].kind == STEP_LOOP) open = i;
  }
}
