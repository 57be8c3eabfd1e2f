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
bool executable_computes_sizes(const executable *p) { return p->n_items; }
size_t executable_steps(const executable *p) { return p->n_steps; }
size_t executable_kernels(const executable *p) { return p->n_programs; }

size_t executable_compiled_kernels(const executable *p) { return p->n_compiled; }
size_t executable_vars(const executable *p) { return p->n_vars; }
const tn_program_var *executable_var_at(const executable *p, size_t i) { return &p->vars[i]; }

size_t executable_input(const executable *p, int64_t uid, int64_t version) {
  return uid_index_find(p->inputs, p->n_inputs, uid, version);
}

bool executable_step_writes(const executable *p, const executable_step *s, size_t k) {
  switch (s->kind) {
  case STEP_KERNEL: return p->programs[s->program]->limits.arrays[k].is_stored;
  case STEP_COPY: return !k;
  case STEP_CUSTOM: return k + 1 == s->n_buffers;
  default: return true;
  }
}

int executable_compare_vars(const void *a, const void *b) {
  return strcmp(((const tn_program_var *)a)->name, ((const tn_program_var *)b)->name);
}

size_t executable_var(const executable *p, const char *name) {
  const tn_program_var key = {.name = name};
  const tn_program_var *v =
      p->n_vars ? bsearch(&key, p->vars, p->n_vars, sizeof key, executable_compare_vars) : NULL;
  return v ? (size_t)(v - p->vars) : SIZE_MAX;
}

bool executable_resolve_value(const executable *p, const char *name, size_t *var) {
  *var = executable_var(p, name);
  return *var != SIZE_MAX || !strcmp(name, "core_id") || !strcmp(name, "core_count");
}

void executable_set_targets(executable *p, const executable_request *r, size_t n_devices) {
  if (n_devices > 1 + r->n_more)
    diag_raise(p->arena.diag, TN_ERR_DEVICE, "%s: there is no device %zu", p->name, n_devices - 1);
  p->n_targets = n_devices;
  p->targets = arena_alloc(&p->arena, n_devices * sizeof *p->targets);
  p->targets[0] = r->target;
  for (size_t i = 1; i < n_devices; i++) p->targets[i] = r->more[i - 1];
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

void executable_set_root_sizes(executable *p, const node *const roots[], size_t n, size_t first) {
  p->root_sizes = arena_alloc(&p->arena, (n + 1) * sizeof *p->root_sizes);
  for (size_t i = 0; i < n; i++) {
    p->root_sizes[i] = first;
    first += roots[i]->rank;
  }
  p->root_sizes[n] = first;
}

bool executable_skips(const executable *p, size_t step, size_t segment, const int64_t sizes[]) {
  for (; p->has_guards && step != SIZE_MAX; step = p->steps[step].parent) {
    const executable_step *s = &p->steps[step];
    if (s->guard != SIZE_MAX && s->guard_segment <= segment && !sizes[s->guard]) return true;
  }
  return false;
}
