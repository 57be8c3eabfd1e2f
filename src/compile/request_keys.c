/* Keys of requests, and their look-up in the memory cache. A key is that of the kernel's graph, of
   the compiler by its identity, and of the schedule: decisions that a tuner kept for the kernel, or
   the name of the device's library, where the kernel is a product of matrices and the library can
   be called. Names, for messages, are of the graph too. */
#include "compile/compilation.h"
#include "compile/compiler_identity_cache.h"
#include "compile/match_product.h"
#include "ir/text/sink_text.h"

#include <string.h>

static compiler_identity_request identity_request(compilation *c) {
  return (compiler_identity_request){c->target, c->disk, c->arena, &c->own.output};
}

void compilation_begin_requests(compilation *c) {
  if (c->options->tuned.used) *c->options->tuned.used = 0;
  c->work.requests = arena_calloc(c->arena, c->work.n, sizeof *c->work.requests);
  for (size_t i = 0; i < c->work.n; i++) c->work.requests[i].diag.stop = c->diag->stop;
  const compiler_identity_request q = identity_request(c);
  c->identity = compiler_identity_get(&q);
}

static void check_kernel(compilation *c, const node *kernel) {
  if (kernel->op == OP_SINK || (kernel->op == OP_PROGRAM && kernel->n_src == 3)) return;
  diag_raise(c->diag, TN_ERR_INTERNAL,
             "a program is compiled from its sink, or from its sink, device and linear form, not "
             "from %s",
             op_name((op)kernel->op));
}

void compilation_begin_kernels(compilation *c) {
  const work *w = &c->work;
  const map *found = c->options->found;
  compilation_begin_requests(c);
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    r->program = w->kernels[i];
    check_kernel(c, r->program);
    if (found) r->found = map_get(found, r->program);
    request_set_key(c, r, kernel_graph_key_make(c->arena, c->codegen.math, r->program));
  }
}

void compilation_open_compiler(compilation *c) {
  bool is_same;
  const compiler_identity_request q = identity_request(c);
  c->compiler = compiler_identity_confirm(&q, c->identity, &is_same);
  if (!is_same) c->disk = NULL;
}

const char *request_tuned_key(compilation *c, const request *r) {
  return tuned_key_make(c->arena, c->target, c->identity, r->graph);
}

const tn_product_library *compilation_open_library(const compilation *c) {
  const tn_device *v = c->target->device;
  const tn_product_library *l = v->backend->products;
  library_use use = c->options->tuned.libraries;
  tn_failure unread = {0};
  if (!l || use == LIBRARIES_OFF || (use == LIBRARIES_USUAL && !l->is_usual)) return NULL;
  return l->open(v->state, &unread) == TN_OK ? l : NULL;
}

const tn_product *compilation_find_product(compilation *c, const node *kernel) {
  tn_product p, *copy;
  if (kernel->op != OP_SINK || !match_product(kernel, c->codegen.math, &p)) return NULL;
  copy = arena_alloc(c->arena, sizeof *copy);
  *copy = p;
  return copy;
}

/** True if a request becomes a call of the library of these decisions. A request by its record was
    one when the record was made. */
static bool takes_library(compilation *c, request *r, const char *decisions) {
  const tn_product_library *l = c->target->device->backend->products;
  if (!l || strcmp(l->name, tuned_library_of(decisions)) != 0) return false;
  if (r->program && !(r->product = compilation_find_product(c, r->program))) return false;
  if (compilation_open_library(c)) return true;
  r->product = NULL;
  return false;
}

/** The decisions for a request's kernel: of a library only if it can be called. */
static const char *find_tuned(compilation *c, request *r) {
  tuned_choice tuned = c->options->tuned;
  if (tuned_choice_is_empty(&tuned)) return NULL;
  const char *key = request_tuned_key(c, r), *found = tuned_choice_find(&tuned, key);
  if (!found || !tuned_library_of(found) || takes_library(c, r, found)) return found;
  tuned.libraries = LIBRARIES_OFF;
  tuned.trial = NULL;
  return tuned_choice_find(&tuned, key);
}

void request_set_key(compilation *c, request *r, kernel_graph_key graph) {
  const tuned_choice *tuned = &c->options->tuned;
  r->graph = graph;
  const char *found = find_tuned(c, r);
  if (found && tuned->used) ++*tuned->used;
  r->tuned = found ? found : "";
  r->key = kernel_key_make(c->arena, c->target, c->identity, r->tuned, graph);
}

const node *request_sink(const request *r) {
  return r->program->op == OP_SINK ? r->program : r->program->src[0];
}

const char *request_name(const compilation *c, const request *r) {
  return r->record ? r->record->name : sink_name(c->arena, request_sink(r));
}

void request_look_up(compilation *c, request *r, unsigned flags) {
  kernel_cache_result result;
  if (c->options->background) flags |= KERNEL_CACHE_BACKGROUND;
  if (c->options->is_trial) flags |= KERNEL_CACHE_TRIAL;
  if (kernel_cache_lookup(c->cache, &r->key, flags, &result, &r->kernel, c->diag))
    diag_rethrow(c->diag);
  r->claimed = result == KERNEL_CACHE_CLAIMED;
}
