/* Implements the way of kernels to loaded programs: keys, the memory cache, the disk cache, calls
   of a library, sources, compiled batches, kernels of other threads, programs. */
#include "compile/compile_kernels.h"

#include "compile/compilation.h"

/** Waits for kernels that other threads compile, and compiles those that they failed to. All that
    this compilation claimed is published by now, so no two wait for each other. */
static void await_others(compilation *c) {
  for (size_t i = 0; i < c->work.n; i++) {
    request *r = &c->work.requests[i];
    if (r->kernel) continue;
    request_look_up(c, r, KERNEL_CACHE_WAIT);
    if (!r->claimed) continue;
    if (r->product) {
      request_publish_call(c, r);
    } else {
      compilation_make_sources(c, &r, 1);
      compilation_compile(c, &r, 1);
    }
  }
}

/** Loads the programs of all kernels; those of rejected code are compiled again, once. */
static void load_or_recompile(compilation *c) {
  const work *w = &c->work;
  if (!compilation_load_programs(c)) return;
  await_others(c);
  for (size_t i = 0; i < w->n; i++)
    if (!w->programs[i] && compilation_load_program(c, i)) diag_rethrow(c->diag);
}

static void compile_all(void *arg) {
  compilation *c = arg;
  const work *w = &c->work;
  request **claimed = arena_alloc(c->arena, w->n * sizeof *claimed);
  size_t n_claimed = 0;
  compilation_begin_kernels(c);
  for (size_t i = 0; i < w->n; i++) request_look_up(c, &w->requests[i], 0);
  for (size_t i = 0; i < w->n && c->disk; i++)
    if (w->requests[i].claimed) request_find_on_disk(c, &w->requests[i]);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed && w->requests[i].product) request_publish_call(c, &w->requests[i]);
  compilation_make_all_sources(c);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed) claimed[n_claimed++] = &w->requests[i];
  compilation_compile(c, claimed, n_claimed);
  if (c->options->n_compiled) *c->options->n_compiled = n_claimed;
  await_others(c);
  load_or_recompile(c);
}

tn_status compile_kernels(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                          tn_program *programs[], diag *d) {
  compilation c = {
      .options = o, .ir = g, .work = {.kernels = kernels, .n = n, .programs = programs}};
  return compilation_run_on_kernels(&c, compile_all, d);
}
