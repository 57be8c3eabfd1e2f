/* Begin and end of a compilation: sets its environment up, runs its body below a catch, and frees
   what must outlive a raised failure. */
#include "compile/compilation.h"

void compilation_drop_programs(const compilation *c) {
  const work *w = &c->work;
  for (size_t i = 0; i < w->n && w->programs; i++) {
    program_release(w->programs[i]);
    w->programs[i] = NULL;
  }
}

static const node *decompose(void *user, ir *g, const node *n) {
  const device_target *t = user;
  return t->renderer->decompose(&t->caps, g, n);
}

tn_status compilation_run(compilation *c, void (*body)(void *c), diag *d) {
  const compile_options *o = c->options;
  const device_target *t = o->target;
  work *w = &c->work;
  for (size_t i = 0; i < w->n && w->programs; i++) w->programs[i] = NULL;
  c->cache = kernel_cache_of(t->device->registry);
  if (!c->cache) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  arena a;
  arena_init(&a, t->device->mem, d);
  c->target = t;
  c->codegen = (codegen_options){.target = t->target, .math = o->math, .observer = o->observer};
  if (t->renderer->decompose) c->codegen.decomposer = (codegen_decomposer){decompose, (void *)t};
  c->disk = t->compiler->lasting && !o->is_trial ? o->disk : NULL;
  c->arena = &a;
  c->diag = d;
  c->own.output = output_new(t->device->mem);
  tn_status status = diag_catch(d, body, c);
  for (size_t i = 0; i < w->n && w->requests; i++) {
    request *r = &w->requests[i];
    if (r->kernel) kernel_cache_release(c->cache, r->kernel);
    if (r->ir != c->ir) ir_free(r->ir);
  }
  if (status) compilation_drop_programs(c);
  compilation_free_batches(c);
  output_free(&c->own.output);
  compilation_free_file(c);
  arena_free(&a);
  return status;
}

tn_status compilation_run_on_kernels(compilation *c, void (*body)(void *c), diag *d) {
  tn_status status = compilation_run(c, body, ir_diag(c->ir));
  if (status && d != ir_diag(c->ir)) d->failure = ir_diag(c->ir)->failure;
  return status;
}
