/* Compiles rendered kernels in batches, one call of the target's compiler each, on all threads, and
   publishes the batches that succeed in both caches. Kernels that are calls of a library have no
   code to compile: they are published as they are. */
#include "compile/compilation.h"

#include "base/stop.h"
#include "compile/program_node.h"
#include "compile/program_spec.h"
#include "device/threads/thread_pool.h"

/* Kernels in one call of the compiler, which takes some time to start, but must also end: from this
   number to BATCH_MOST. */
enum { BATCH_LEAST = 3 };

/** Kernels that one call of the compiler makes. */
struct batch {
  compilation *compilation;
  request **requests;
  size_t n;
  const tn_program_spec **specs;
  tn_output code;
  int64_t ns; /* of the call */
  tn_status status;
  tn_failure failure;
  batch *next; /* in work.batches */
};

static void prepare_batch(compilation *c, batch *b, request **requests, size_t n) {
  b->compilation = c;
  b->requests = requests;
  b->n = n;
  b->specs = arena_alloc(c->arena, n * sizeof *b->specs);
  for (size_t i = 0; i < n; i++) b->specs[i] = &requests[i]->spec;
  b->code = output_new(c->target->device->mem);
  b->code.cancel = c->options->background;
  b->next = c->work.batches;
  c->work.batches = b;
}

/** On any thread: touches no graph, and does not raise. */
static void run_compiler(void *arg, size_t i) {
  batch *b = &((batch *)arg)[i];
  const device_target *t = b->compilation->target;
  diag d = {0};
  int64_t start = clock_now_ns();
  b->status = stop_reason(b->compilation->diag->stop, &d);
  b->failure = d.failure;
  if (b->status != TN_OK) return;
  b->status = t->compiler->compile(b->compilation->compiler, &t->caps, b->specs, b->n, &b->code,
                                   &b->failure);
  if (!b->status && !b->code.n && !b->code.failed)
    b->status = tn_fail(&b->failure, TN_ERR_DEVICE,
                        "compiler %s of backend %s wrote no code of function %s", t->compiler->name,
                        b->specs[0]->device, b->specs[0]->entry);
  b->ns = clock_now_ns() - start;
}

typedef struct binary_task {
  request *r;
  const tn_output *code;
} binary_task;

static void add_binary_body(void *arg) {
  const binary_task *t = arg;
  request *r = t->r;
  r->program = program_node_binary(r->ir, r->program, output_text(t->code), t->code->n);
}

/** PROGRAM(…, SOURCE) → PROGRAM(…, SOURCE, BINARY) */
static void add_binary(compilation *c, request *r, const tn_output *code) {
  diag *d = ir_diag(r->ir);
  if (!diag_catch(d, add_binary_body, &(binary_task){r, code})) return;
  c->diag->failure = d->failure;
  diag_rethrow(c->diag);
}

/** Publishes the kernels of a batch and keeps them on disk. */
static void publish_batch(void *arg) {
  batch *b = arg;
  compilation *c = b->compilation;
  if (b->status) {
    c->diag->failure = b->failure;
    diag_complete(c->diag, b->status);
    compilation_fail(c, b->n == 1 ? b->specs[0]->name : "kernels");
  }
  if (output_check(&b->code, c->diag)) diag_rethrow(c->diag);
  compiled_kernel *compiled = arena_alloc(c->arena, b->n * sizeof *compiled);
  for (size_t i = 0; i < b->n; i++) {
    request *r = b->requests[i];
    add_binary(c, r, &b->code);
    compiled[i] = (compiled_kernel){r->kernel, &r->spec, r->sizes, r->limits};
  }
  const node *binary = b->requests[0]->program->src[4];
  const tn_code code = {c->target->compiler->kind, binary->text, binary->n_text};
  if (kernel_cache_publish(c->cache, compiled, b->n, &code, NULL, c->diag)) diag_rethrow(c->diag);
  const compile_options *o = c->options;
  for (size_t i = 0; i < b->n && o->report_compiled; i++)
    o->report_compiled(o->user, b->specs[i]->entry, b->n, b->ns);
  requests_keep_on_disk(c, b->requests, compiled, b->n, &code);
}

/** Kernels in a batch where `n` are compiled on all of the host's threads. */
static size_t batch_size(const compilation *c, size_t n) {
  size_t threads = (size_t)c->target->device->host.threads, most = c->target->compiler->most;
  size_t size = (n + threads - 1) / threads;
  if (size < BATCH_LEAST) size = BATCH_LEAST;
  if (size > BATCH_MOST) size = BATCH_MOST;
  return most && size > most ? most : size;
}

void compilation_compile(compilation *c, request **claimed, size_t n) {
  if (n && !c->compiler) compilation_open_compiler(c);
  size_t size = batch_size(c, n), count = (n + size - 1) / size;
  batch *b = arena_calloc(c->arena, count, sizeof *b);
  for (size_t i = 0; i < count; i++)
    prepare_batch(c, &b[i], claimed + i * size, i + 1 < count ? size : n - i * size);
  for (size_t i = 0; i < count && c->options->background; i++) run_compiler(b, i);
  if (!c->options->background)
    thread_pool_run_long(registry_thread_pool(c->target->device->registry), run_compiler, b, count);
  bool failed = false;
  for (size_t i = 0; i < count; i++)
    if (!b[i].status) failed = diag_catch(c->diag, publish_batch, &b[i]) || failed;
  for (size_t i = 0; i < count && !failed; i++)
    if (b[i].status) failed = diag_catch(c->diag, publish_batch, &b[i]);
  if (failed) diag_rethrow(c->diag);
}

void request_publish_call(compilation *c, request *r) {
  tn_program_spec *s = &r->spec;
  program_spec_derive(c->ir, r->program, s);
  s->name = request_name(c, r);
  s->entry = kernel_entry_name(r->kernel);
  r->sizes = launch_grid_compile(c->arena, s->global, s->local, s->value_names, s->n_values);
  r->limits = program_spec_limits(c->ir, c->arena, s);
  const compiled_kernel compiled = {r->kernel, s, r->sizes, r->limits};
  const tn_code code = {TN_CODE_PRODUCT, r->product, sizeof *r->product};
  if (kernel_cache_publish(c->cache, &compiled, 1, &code, NULL, c->diag)) diag_rethrow(c->diag);
  requests_keep_on_disk(c, &r, &compiled, 1, &code);
  r->claimed = false;
}

void compilation_free_batches(const compilation *c) {
  for (batch *b = c->work.batches; b; b = b->next) output_free(&b->code);
}
