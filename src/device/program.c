#include "device/program.h"

#include "device/cache.h"
#include "device/failure.h"
#include "device/output.h"
#include "device/spec.h"

#include <string.h>

/* The name of a kernel's function while it is looked up, and alone in its code. */
#define ENTRY "tn_kernel"

/* A compiler takes some time to start. */
enum { LEAST_BATCH = 3 };

/** A kernel that is asked for. */
typedef struct request {
  const node *program;
  tn_program_spec spec; /* its source has the entry ENTRY */
  const char *key;
  size_t key_bytes;
  kernel *kernel; /* held */
  bool claimed;   /* to be compiled by us */
} request;

/** The compilation of several kernels. What is not in the arena is freed by its owner. */
typedef struct compilation {
  const device_target *target;
  kernel_cache *cache;
  ir *ir;
  arena *arena;
  diag *diag; /* the ir's: all below raises through it */
  void *compiler;
  tn_output output; /* what a renderer or compiler writes */
  const node *const *nodes;
  request *requests;
  size_t n;
  struct batch *batches; /* all that were begun */
  tn_program **programs;
} compilation;

/** Puts what failed before the message; many kernels have no name. */
static tn_status prefix(diag *d, const char *what) {
  return *what ? diag_prefix(d, "%s", what) : d->status;
}

/** Raises a failure of the backend's, or of the output it wrote. */
static void require(compilation *c, tn_status status, const tn_failure *f, const char *what) {
  if (status) {
    failure_tell(c->diag, status, f);
    prefix(c->diag, what);
    diag_rethrow(c->diag);
  }
  if (output_check(&c->output, c->diag)) diag_rethrow(c->diag);
}

/** Takes what was written into the arena; the output is empty then. */
static const char *take_output(compilation *c, size_t *bytes) {
  char *copy = arena_alloc(c->arena, c->output.n + 1);
  if (c->output.n) memcpy(copy, c->output.at, c->output.n);
  copy[c->output.n] = 0;
  *bytes = c->output.n;
  c->output.n = 0;
  return copy;
}

static const char *render(compilation *c, const node *program, const char *entry, size_t *bytes) {
  tn_failure f;
  failure_clear(&f);
  const device_target *t = c->target;
  tn_status status = t->renderer->render(&t->caps, c->ir, program, entry, &c->output, &f);
  require(c, status, &f, program->src[0]->text);
  return take_output(c, bytes);
}

/* Keys. */

static void add_text(compilation *c, const char *text) {
  tn_output_add(&c->output, text, strlen(text) + 1);
}

/** All that decides what code a kernel becomes and how that is called. */
static void make_key(compilation *c, request *r, const char *compiler_key) {
  const device_target *t = c->target;
  const tn_program_spec *s = &r->spec;
  add_text(c, t->device->backend->name);
  add_text(c, t->caps.target);
  add_text(c, t->renderer->name);
  add_text(c, t->compiler->name);
  add_text(c, compiler_key);
  uint64_t counts[] = {s->n_globals, s->n_values, (uint64_t)s->core_id};
  tn_output_add(&c->output, counts, sizeof counts);
  tn_output_add(&c->output, s->globals, s->n_globals * sizeof *s->globals);
  for (size_t i = 0; i < s->n_values; i++) add_text(c, s->value_names[i]);
  tn_output_add(&c->output, s->source, s->source_bytes);
  require(c, TN_OK, NULL, NULL);
  r->key = take_output(c, &r->key_bytes);
}

static const char *compiler_key(compilation *c) {
  tn_failure f;
  failure_clear(&f);
  size_t bytes;
  tn_status status = c->target->compiler->key(c->compiler, &c->target->caps, &c->output, &f);
  require(c, status, &f, c->target->compiler->name);
  return take_output(c, &bytes);
}

/** Renders a kernel and derives what is known of it. */
static void make_spec(compilation *c, request *r, const node *program) {
  program_node_check(c->ir, program);
  if (program->n_src != 3)
    diag_raise(c->diag, TN_ERR_INTERNAL,
               "a program is compiled from its sink, device and linear form");
  size_t bytes;
  const char *source = render(c, program, ENTRY, &bytes);
  spec_derive(c->ir, program_node_source(c->ir, program, source, bytes), &r->spec);
  r->spec.entry = ENTRY;
  r->spec.ast = r->program = program;
}

/* Compiling what is not in the cache. */

/** Kernels that one call of the compiler makes. */
typedef struct batch {
  compilation *compilation;
  request **requests;
  size_t n;
  tn_program_spec *specs;
  const tn_program_spec **given;
  tn_output code;
  tn_status status;
  tn_failure failure;
  struct batch *next;
} batch;

/** Several kernels have entries of their own. */
static void set_entry(compilation *c, request *r, tn_program_spec *s, size_t number) {
  s->entry = arena_printf(c->arena, ENTRY "_%zu", number);
  s->source = render(c, r->program, s->entry, &s->source_bytes);
}

static void prepare(compilation *c, batch *b, request **requests, size_t n) {
  failure_clear(&b->failure);
  b->compilation = c;
  b->requests = requests;
  b->n = n;
  b->specs = arena_alloc(c->arena, n * sizeof *b->specs);
  b->given = arena_alloc(c->arena, n * sizeof *b->given);
  for (size_t i = 0; i < n; i++) {
    b->specs[i] = requests[i]->spec;
    b->given[i] = &b->specs[i];
    if (n > 1) set_entry(c, requests[i], &b->specs[i], i);
  }
  b->code = output_new(c->target->device->mem);
  b->next = c->batches;
  c->batches = b;
}

/** On any thread: touches no graph, and does not raise. */
static void run_batch(void *arg, size_t i) {
  batch *b = &((batch *)arg)[i];
  const device_target *t = b->compilation->target;
  b->status = t->compiler->compile(b->compilation->compiler, &t->caps, b->given, b->n, &b->code,
                                   &b->failure);
}

/** Publishes what was made. */
static tn_status finish(batch *b) {
  compilation *c = b->compilation;
  tn_status status = failure_tell(c->diag, b->status, &b->failure);
  if (status) return prefix(c->diag, b->n == 1 ? b->specs[0].name : "kernels");
  if (output_check(&b->code, c->diag)) return c->diag->status;
  kernel **kernels = arena_alloc(c->arena, b->n * sizeof *kernels);
  for (size_t i = 0; i < b->n; i++) kernels[i] = b->requests[i]->kernel;
  return cache_publish(c->cache, kernels, b->specs, b->n, c->target->compiler->kind,
                       output_text(&b->code), b->code.n, c->diag);
}

/** How many of `n` kernels go into a batch: the host's threads call the compiler side by side. */
static size_t batch_size(const compilation *c, size_t n) {
  size_t threads = (size_t)c->target->device->host.threads, most = c->target->compiler->most;
  size_t size = (n + threads - 1) / threads;
  if (size < LEAST_BATCH) size = LEAST_BATCH;
  return most && size > most ? most : size;
}

/** Compiles kernels that are claimed; what succeeds is published even if something fails. */
static void compile(compilation *c, request **claimed, size_t n) {
  size_t size = batch_size(c, n), count = (n + size - 1) / size;
  batch *b = arena_calloc(c->arena, count, sizeof *b);
  for (size_t i = 0; i < count; i++)
    prepare(c, &b[i], claimed + i * size, i + 1 < count ? size : n - i * size);
  const tn_workers *w = &c->target->device->host.workers;
  if (count) w->run(w->user, run_batch, b, count);
  bool failed = false;
  for (size_t i = 0; i < count; i++)
    if (!b[i].status) failed = finish(&b[i]) || failed;
  for (size_t i = 0; i < count && !failed; i++)
    if (b[i].status) failed = finish(&b[i]);
  if (failed) diag_rethrow(c->diag);
}

static void ask(compilation *c, request *r, bool wait) {
  cache_answer answer;
  if (cache_ask(c->cache, r->key, r->key_bytes, wait, &answer, &r->kernel, c->diag))
    diag_rethrow(c->diag);
  r->claimed = answer == CACHE_CLAIMED;
}

static void compile_claimed(compilation *c) {
  request **claimed = arena_alloc(c->arena, c->n * sizeof *claimed);
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++)
    if (c->requests[i].claimed) claimed[n++] = &c->requests[i];
  compile(c, claimed, n);
}

/** Waits for kernels that others compile. Nothing of ours is left undone, so no two wait for each
    other; what others failed to compile, we do. */
static void await_others(compilation *c) {
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    if (r->kernel) continue;
    ask(c, r, true);
    if (r->claimed) compile(c, &r, 1);
  }
}

static void compile_all(void *arg) {
  compilation *c = arg;
  c->requests = arena_calloc(c->arena, c->n, sizeof *c->requests);
  if (device_compiler(c->target, &c->compiler, c->diag)) diag_rethrow(c->diag);
  const char *identity = compiler_key(c);
  for (size_t i = 0; i < c->n; i++) {
    make_spec(c, &c->requests[i], c->nodes[i]);
    make_key(c, &c->requests[i], identity);
  }
  for (size_t i = 0; i < c->n; i++) ask(c, &c->requests[i], false);
  compile_claimed(c);
  await_others(c);
  for (size_t i = 0; i < c->n; i++)
    if (cache_program(c->cache, c->requests[i].kernel, c->target->device, &c->programs[i], c->diag))
      diag_rethrow(c->diag);
}

tn_status program_compile(const device_target *t, ir *g, const node *const nodes[], size_t n,
                          tn_program *programs[], diag *d) {
  arena a;
  arena_init(&a, t->device->mem, ir_diag(g));
  compilation c = {.target = t,
                   .cache = table_kernels(t->device->table),
                   .ir = g,
                   .arena = &a,
                   .diag = ir_diag(g),
                   .output = output_new(t->device->mem),
                   .nodes = nodes,
                   .n = n,
                   .programs = programs};
  for (size_t i = 0; i < n; i++) programs[i] = NULL;
  tn_status status = diag_catch(c.diag, compile_all, &c);
  for (size_t i = 0; i < n && c.requests; i++)
    if (c.requests[i].kernel) cache_drop(c.cache, c.requests[i].kernel);
  for (size_t i = 0; i < n && status; i++) {
    program_release(programs[i]);
    programs[i] = NULL;
  }
  for (batch *b = c.batches; b; b = b->next) output_free(&b->code);
  output_free(&c.output);
  arena_free(&a);
  if (status && d != c.diag) diag_copy(d, c.diag);
  return status;
}

/* Rendering alone. */

typedef struct rendering {
  compilation c;
  const node *program;
  const char *entry, *source;
  size_t bytes;
} rendering;

static void render_one(void *arg) {
  rendering *r = arg;
  program_node_check(r->c.ir, r->program);
  r->source = render(&r->c, r->program, r->entry, &r->bytes);
}

const char *program_render(const device_target *t, ir *g, const node *program, const char *entry,
                           size_t *bytes) {
  rendering r = {.c = {.target = t,
                       .ir = g,
                       .arena = ir_arena(g),
                       .diag = ir_diag(g),
                       .output = output_new(t->device->mem)},
                 .program = program,
                 .entry = entry};
  tn_status status = diag_catch(r.c.diag, render_one, &r);
  output_free(&r.c.output);
  if (status) diag_rethrow(r.c.diag);
  *bytes = r.bytes;
  return r.source;
}

/* Running. */

static tn_status check_sizes(const tn_program *p, const tn_launch *l, tn_failure *f) {
  for (int i = 0; i < 3; i++) {
    bool local = l->local[0] != 0;
    if (l->global[i] > 0 && (!local || l->local[i] > 0)) continue;
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s: launch size %d is %lld, which is not positive",
                   p->name, i, (long long)(l->global[i] > 0 ? l->local[i] : l->global[i]));
  }
  return TN_OK;
}

static tn_status check_buffers(const tn_program *p, const tn_launch *l, tn_failure *f) {
  for (size_t i = 0; i < l->n_buffers; i++) {
    const tn_span *b = &l->buffers[i];
    if (!b->device || !b->memory)
      return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s: buffer %zu is nowhere", p->name, i);
    if (b->device->backend != p->device->backend)
      return tn_fail(f, TN_ERR_DEVICE, "kernel %s runs on %s, but buffer %zu is on %s", p->name,
                     p->device->name, i, b->device->name);
  }
  return TN_OK;
}

tn_status program_check_launch(const tn_program *p, const tn_launch *l, tn_failure *f) {
  if (l->n_buffers != p->facts.n_buffers)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s takes %zu buffers, not %zu", p->name,
                   p->facts.n_buffers, l->n_buffers);
  if (l->n_values != p->facts.n_values)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s takes %zu values, not %zu", p->name,
                   p->facts.n_values, l->n_values);
  tn_status status = check_sizes(p, l, f);
  return status ? status : check_buffers(p, l, f);
}

tn_status program_execute(tn_program *p, const tn_launch *l, tn_failure *f) {
  tn_status status = program_check_launch(p, l, f);
  return status ? status : p->device->backend->execute(p->handle, l, f);
}
