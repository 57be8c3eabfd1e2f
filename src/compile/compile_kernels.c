/* Implements the compile driver. Each kernel is a request, which moves from its key through the
   caches or through code generation, rendering and compiling to a published kernel; then its
   program is loaded. Code generation and compilers run on the thread pool; the caller's graph is
   only read there, and changed on the calling thread alone. */
#include "compile/compile_kernels.h"

#include "base/block_cache.h"
#include "base/stop.h"
#include "compile/code_record.h"
#include "compile/compiler_identity_cache.h"
#include "compile/kernel_cache.h"
#include "compile/match_product.h"
#include "compile/program_node.h"
#include "compile/program_spec.h"
#include "device/core/output.h"
#include "device/program/product.h"
#include "device/threads/thread_pool.h"
#include "ir/core/pass_names.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Kernels in one call of the compiler, which takes some time to start, but must also end. */
enum { LEAST_BATCH = 3, MOST_BATCH = 6 };

/* Kernels a thread between two reports of progress where lent workers make the sources, so that
   they seldom wait for the last one. */
enum { ROUND = 16 };

/** One kernel to be compiled or found. */
typedef struct request {
  const node *program; /* a SINK, or a PROGRAM with the stages so far; NULL: found by `record` */
  const program_record *record;
  kernel_graph_key graph;
  const char *tuned;          /* decisions of its schedule, as text; "": the search's */
  const tn_product *product;  /* its code, by which it is a call of a library; NULL: it is none */
  const decision_list *found; /* by the search, before; or NULL */
  cache_key key;
  kernel *kernel; /* with a reference; NULL: another thread compiles it */
  bool claimed;   /* this compilation compiles it, into: */
  bool is_other;  /* the disk has its kernel, which takes other buffers or values */
  ir *ir;         /* of the program, once code is generated */
  diag diag;      /* of that ir, unless it is the caller's */
  tn_program_spec spec;
  launch_exprs sizes;
  launch_limits limits;
} request;

/** The kernels that are done, and those that were reported. Only the compilation's own thread
    reports. */
typedef struct progress {
  pthread_t thread;
  atomic_size_t done;
  size_t reported;
} progress;

/** The kernels of one compilation. */
typedef struct work {
  const node *const *kernels;
  const program_record *records; /* in place of kernels */
  size_t n;
  request *requests;     /* one for each */
  tn_program **programs; /* NULL: none are made */
  struct batch *batches; /* all that were prepared */
  bool is_found;         /* of records: all of them */
  progress progress;
} work;

/** Resources that outlive a raised failure, to be freed at the end. */
typedef struct resources {
  tn_output output;     /* of the compiler's key */
  disk_cache_file file; /* the file of the disk cache that is being read */
  void *module;         /* loaded from that file, and not published yet; or NULL */
} resources;

/** A compilation: its environment, its work and its resources. Everything raises through `diag`. */
typedef struct compilation {
  const compile_options *options;
  const device_target *target;
  codegen_options codegen;
  kernel_cache *cache;
  disk_cache *disk; /* NULL: nothing is kept on disk, or nothing any more */
  ir *ir;
  arena *arena;
  diag *diag;           /* the ir's */
  const char *identity; /* the compiler's, as keys have it */
  void *compiler;       /* NULL: not opened */
  work work;
  resources own;
} compilation;

static tn_status prefix_name(diag *d, const char *name) {
  return *name ? diag_prefix(d, "%s", name) : d->status;
}

/* Keys. */

static compiler_identity_request identity_request(compilation *c) {
  return (compiler_identity_request){c->target, c->disk, c->arena, &c->own.output};
}

/** Opens the compiler. If its identity is not the one that keys were made with, its code is not
    kept on disk. */
static void open_compiler(compilation *c) {
  bool is_same;
  const compiler_identity_request q = identity_request(c);
  c->compiler = compiler_identity_confirm(&q, c->identity, &is_same);
  if (!is_same) c->disk = NULL;
}

/** The name of a request's kernel in stores of tuned schedules. */
static const char *tuned_key_of(compilation *c, const request *r) {
  return tuned_key_make(c->arena, c->target, c->identity, r->graph);
}

/** The device's library, if kernels may be calls of it and it can be opened; NULL: not. */
static const tn_product_library *open_library(const compilation *c) {
  const tn_device *v = c->target->device;
  const tn_product_library *l = v->backend->products;
  library_use use = c->options->tuned.libraries;
  tn_failure unread = {0};
  if (!l || use == LIBRARIES_OFF || (use == LIBRARIES_USUAL && !l->is_usual)) return NULL;
  return l->open(v->state, &unread) == TN_OK ? l : NULL;
}

/** The product that a kernel of the ir is; NULL: it is none. */
static const tn_product *product_of(compilation *c, const node *kernel) {
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
  if (r->program && !(r->product = product_of(c, r->program))) return false;
  if (open_library(c)) return true;
  r->product = NULL;
  return false;
}

/** The decisions for a request's kernel: of a library only if it can be called. */
static const char *find_tuned(compilation *c, request *r) {
  tuned_choice tuned = c->options->tuned;
  if (tuned_choice_is_empty(&tuned)) return NULL;
  const char *key = tuned_key_of(c, r), *found = tuned_choice_find(&tuned, key);
  if (!found || !tuned_library_of(found) || takes_library(c, r, found)) return found;
  tuned.libraries = LIBRARIES_OFF;
  tuned.trial = NULL;
  return tuned_choice_find(&tuned, key);
}

/** Sets the schedule and the key of the i-th request, whose kernel has this graph. */
static void set_key(compilation *c, size_t i, kernel_graph_key graph) {
  const tuned_choice *tuned = &c->options->tuned;
  request *r = &c->work.requests[i];
  r->graph = graph;
  const char *found = find_tuned(c, r);
  if (found && tuned->used) ++*tuned->used;
  r->tuned = found ? found : "";
  r->key = kernel_key_make(c->arena, c->target, c->identity, r->tuned, graph);
}

static void look_up(compilation *c, request *r, unsigned flags) {
  kernel_cache_result result;
  if (c->options->background) flags |= KERNEL_CACHE_BACKGROUND;
  if (c->options->is_trial) flags |= KERNEL_CACHE_TRIAL;
  if (kernel_cache_lookup(c->cache, &r->key, flags, &result, &r->kernel, c->diag))
    diag_rethrow(c->diag);
  r->claimed = result == KERNEL_CACHE_CLAIMED;
}

static bool fits_scratch(const tn_capabilities *caps, const tn_program_spec *s) {
  return !caps->max_scratch || s->scratch <= caps->max_scratch;
}

/* The disk cache. */

static const node *sink_of(const request *r) {
  return r->program->op == OP_SINK ? r->program : r->program->src[0];
}

static const char *name_of(arena *a, const request *r) {
  return r->record ? r->record->name : sink_name(a, sink_of(r));
}

/** True if two programs take the same buffers and values. */
static bool has_same_launch(const program_record *a, const program_record *b) {
  bool same = a->n_globals == b->n_globals && a->n_values == b->n_values;
  for (size_t i = 0; i < a->n_globals && same; i++) same = a->globals[i] == b->globals[i];
  for (size_t i = 0; i < a->n_values && same; i++)
    same = !strcmp(a->value_names[i], b->value_names[i]);
  return same;
}

static bool fits_request(compilation *c, const request *r, const code_record_kernel *k) {
  const tn_program_spec *s = &k->spec;
  if (!r->record) return code_record_fits_kernel(k, c->ir, sink_of(r));
  return has_same_launch(r->record, &(program_record){.n_globals = s->n_globals,
                                                      .n_values = s->n_values,
                                                      .globals = s->globals,
                                                      .value_names = s->value_names});
}

/** Loads a record's code, which is then own.module. False if it cannot be loaded, lacks one of the
    functions of its `n` kernels, or exceeds the target's scratch memory. Want of memory says
   nothing against the record: then the module may be NULL. */
static bool load_record(compilation *c, const code_record *p, size_t n) {
  tn_device *v = c->target->device;
  const tn_backend *b = v->backend;
  tn_failure f;
  bool fits = true;
  if (p->code.kind == TN_CODE_PRODUCT && !b->products) return false;
  tn_status status = b->load(v->state, &p->code, &c->own.module, &f);
  if (status) c->own.module = NULL;
  if (status) return status == TN_ERR_MEMORY;
  for (size_t i = 0; i < n && !status; i++) {
    const tn_program_spec *s = &p->kernels[i].spec;
    const tn_program_facts facts = {.entry = s->entry,
                                    .n_globals = s->n_globals,
                                    .n_values = s->n_values,
                                    .scratch = s->scratch,
                                    .core_id = s->core_id,
                                    .value_names = s->value_names,
                                    .globals = s->globals};
    void *program;
    status = b->program(c->own.module, &facts, &program, &f);
    if (!status) b->program_free(program);
    fits = fits && fits_scratch(&c->target->caps, s);
  }
  return fits && (!status || status == TN_ERR_MEMORY);
}

static void unload_record(compilation *c) {
  if (c->own.module) c->target->device->backend->unload(c->own.module);
  c->own.module = NULL;
}

/** Publishes all kernels that are claimed and in the file at hand, with the module that was loaded
    from it. */
static void publish_record(compilation *c, const code_record *p) {
  const work *w = &c->work;
  compiled_kernel *compiled = arena_alloc(c->arena, w->n * sizeof *compiled);
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    size_t at = r->claimed ? disk_cache_file_find(&c->own.file, &r->key) : SIZE_MAX;
    bool fits = at != SIZE_MAX && fits_request(c, r, &p->kernels[at]);
    r->is_other = at != SIZE_MAX && r->record && !fits;
    if (!fits) continue;
    r->spec = p->kernels[at].spec;
    r->spec.name = name_of(c->arena, r);
    r->claimed = false;
    compiled[n++] =
        (compiled_kernel){r->kernel, &r->spec, p->kernels[at].sizes, p->kernels[at].limits};
  }
  if (!n) return;
  const found_code found = {c->target->device, c->own.module};
  if (kernel_cache_publish(c->cache, compiled, n, &p->code, &found, c->diag)) diag_rethrow(c->diag);
  c->own.module = NULL;
}

static void find_on_disk(compilation *c, request *r) {
  code_record p;
  disk_cache_file *f = &c->own.file;
  if (!disk_cache_read(c->disk, &r->key, f)) return;
  if (code_record_read(&p, f->content, f->content_bytes, f->n_keys, c->arena) &&
      load_record(c, &p, f->n_keys))
    publish_record(c, &p);
  unload_record(c);
  if (r->claimed && !r->is_other) disk_cache_reject(c->disk, &r->key, "no loadable kernel");
  disk_cache_free_file(c->disk, f);
}

/** Kernels that one call of the compiler made, as disk_cache_write's content. */
typedef struct compiled_batch {
  const compiled_kernel *kernels;
  size_t n;
  const tn_code *code;
} compiled_batch;

static void write_batch(void *user, str *to) {
  const compiled_batch *b = user;
  code_record_write(to, b->code, b->kernels, b->n);
}

static void keep_on_disk(compilation *c, request *const requests[], const compiled_batch *b) {
  const cache_key *keys[MOST_BATCH];
  for (size_t i = 0; i < b->n; i++) keys[i] = &requests[i]->key;
  disk_cache_write(c->disk, keys, b->n, write_batch, (void *)b);
}

/* Stages. */

static const node *decompose(void *user, ir *g, const node *n) {
  const device_target *t = user;
  return t->renderer->decompose(&t->caps, g, n);
}

/** Memory of a thread that generates code for one kernel after the other. */
typedef struct source_maker {
  compilation *c;
  block_cache blocks; /* of irs */
  tn_output output;   /* of the renderer */
} source_maker;

static void maker_init(source_maker *m, compilation *c) {
  m->c = c;
  block_cache_init(&m->blocks, ir_mem(c->ir));
  m->output = output_new(c->target->device->mem);
}

static void maker_free(source_maker *m) {
  block_cache_free(&m->blocks);
  output_free(&m->output);
}

/** The source of one kernel, which a maker makes. */
typedef struct source_task {
  source_maker *maker;
  request *r;
  ir *passes; /* of code generation */
} source_task;

/** SINK → PROGRAM(SINK, DEVICE, LINEAR), in the ir `to`; `decisions`: NULL, or of the schedule;
    `found`: NULL, or what the search finds. The passes make many times the nodes that remain, so
   they have an ir of their own, which is freed at once; but an observer counts nodes in the
   caller's. */
static const node *generate_program(const compilation *c, ir *passes, ir *to, const node *program,
                                    const decision_list *decisions, const decision_list *found) {
  const char *device = c->target->device->backend->name;
  bool has_own_ir = passes != c->ir;
  codegen_options o = c->codegen;
  o.decisions = decisions;
  o.found = found;
  if (has_own_ir) ir_copy(passes, ir_arena(passes), &program, 1, NULL, NULL, &program);
  if (program->op == OP_SINK) program = codegen_run(passes, program, device, &o);
  if (has_own_ir) ir_copy(to, ir_arena(passes), &program, 1, NULL, NULL, &program);
  return program;
}

static void generate_body(void *arg) {
  source_task *t = arg;
  request *r = t->r;
  decision_list tuned;
  bool is_tuned = *r->tuned && decisions_parse(ir_arena(t->passes), r->tuned, &tuned);
  r->program = generate_program(t->maker->c, t->passes, r->ir, r->program, is_tuned ? &tuned : NULL,
                                r->found);
}

static bool is_watched(const compilation *c) {
  return c->codegen.observer.after || c->codegen.observer.law || c->options->report_source;
}

static diag *diag_of(const compilation *c, request *r) {
  return is_watched(c) ? c->diag : &r->diag;
}

static void generate_code(source_task *t) {
  compilation *c = t->maker->c;
  request *r = t->r;
  diag *d = diag_of(c, r);
  r->ir = t->passes = c->ir;
  if (!is_watched(c)) {
    r->ir = ir_new(ir_mem(c->ir), d, false);
    t->passes = r->ir ? ir_new(&t->maker->blocks.mem, d, false) : NULL;
  }
  if (!t->passes) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(d, generate_body, t);
  if (t->passes != c->ir) ir_free(t->passes);
  if (s != TN_OK) diag_rethrow(d);
}

static void check_scratch(diag *d, const tn_capabilities *caps, tn_program_spec *s) {
  if (!fits_scratch(caps, s))
    diag_raise(d, TN_ERR_UNSUPPORTED,
               "the scratch arrays of the kernel need %llu bytes; this device allows %llu",
               (unsigned long long)s->scratch, (unsigned long long)caps->max_scratch);
  if (!caps->scratch_buffer) s->scratch = 0;
}

/** PROGRAM(SINK, DEVICE, LINEAR) → PROGRAM(SINK, DEVICE, LINEAR, SOURCE) */
static void render_source(source_task *task) {
  request *r = task->r;
  const device_target *t = task->maker->c->target;
  tn_program_spec *s = &r->spec;
  tn_output *output = &task->maker->output;
  arena *a = ir_arena(r->ir);
  diag *d = ir_diag(r->ir);
  program_node_check(r->ir, r->program);
  program_spec_derive(r->ir, r->program, s);
  check_scratch(d, &t->caps, s);
  s->entry = r->kernel ? kernel_entry_name(r->kernel) : "kernel"; /* another thread compiles it */
  r->sizes = launch_grid_compile(a, s->global, s->local, s->value_names, s->n_values);
  r->limits = program_spec_limits(r->ir, a, s);
  diag_clear(d);
  output->n = 0;
  if (diag_complete(d, t->renderer->render(&t->caps, r->ir, s, output, &d->failure)) ||
      output_check(output, d))
    diag_rethrow(d);
  r->program = program_node_source(r->ir, r->program, output_text(output), output->n);
  s->source = r->program->src[3]->text;
  s->source_bytes = r->program->src[3]->n_text;
}

/** Drops the source that was rendered to be reported, while another thread compiled the kernel: its
    function has another name. False if there is none. */
static bool drop_source(request *r) {
  if (r->program->op != OP_PROGRAM || r->program->n_src < 4) return false;
  node_spec s = node_spec_with_sources(r->program, r->program->src, 3);
  r->program = ir_make(r->ir, &s);
  return true;
}

/** Reports a kernel that is a call of a library: it has no code to report but that. */
static void report_call(const compilation *c, const request *r) {
  const compile_options *o = c->options;
  const codegen_observer *w = &o->observer;
  char text[PRODUCT_TEXT_BYTES];
  if (w->after) w->after(w->user, pass_name(PASS_KERNEL), r->program);
  if (w->tuned) w->tuned(w->user);
  if (o->report_source)
    o->report_source(o->user, r->program,
                     product_text(r->product, tuned_library_of(r->tuned), text));
}

static void make_source_body(void *arg) {
  source_task *t = arg;
  const compile_options *o = t->maker->c->options;
  if (t->r->product) {
    report_call(t->maker->c, t->r);
    return;
  }
  bool is_reported = drop_source(t->r);
  stop_check(diag_of(t->maker->c, t->r));
  generate_code(t);
  if (t->r->claimed || o->report_source) render_source(t);
  if (o->report_source && !is_reported)
    o->report_source(o->user, t->r->program->src[0], t->r->spec.source);
}

/** Generates code for a kernel, and renders it if it is claimed or its source is reported. A
   failure is left in the request. */
static void make_source(source_maker *m, request *r) {
  diag *d = diag_of(m->c, r);
  if (diag_catch(d, make_source_body, &(source_task){.maker = m, .r = r}))
    r->diag.failure = d->failure;
}

/** Reports each kernel that is done and was not reported yet; the last one is reported when all are
    compiled. May raise. */
static void report_done(void *arg) {
  compilation *c = arg;
  const compile_options *o = c->options;
  progress *p = &c->work.progress;
  while (o->report_progress && p->reported < atomic_load(&p->done) && p->reported + 1 < c->work.n)
    o->report_progress(o->user, ++p->reported, c->work.n);
}

/** Kernels of which any thread takes the next one. */
typedef struct source_queue {
  request *const *requests;
  size_t n;
  atomic_size_t next;
  source_maker *makers;
  bool may_report;        /* while sources are made: no lent workers wait for the caller's report */
  atomic_bool is_stopped; /* by a report that raised */
} source_queue;

static void run_maker(void *arg, size_t i) {
  source_queue *q = arg;
  source_maker *m = &q->makers[i];
  progress *p = &m->c->work.progress;
  bool reports = q->may_report && pthread_equal(p->thread, pthread_self());
  for (size_t k; !atomic_load(&q->is_stopped) && (k = atomic_fetch_add(&q->next, 1)) < q->n;) {
    make_source(m, q->requests[k]);
    atomic_fetch_add(&p->done, 1);
    if (reports && diag_catch(m->c->diag, report_done, m->c)) atomic_store(&q->is_stopped, true);
  }
}

/** Makes the sources of kernels, on all threads unless somebody watches or it happens in the
    background; raises the first failure, or that of a report. Each kernel has irs of its own, so
   its code does not depend on the threads. */
static void make_sources(compilation *c, request *const *requests, size_t n) {
  thread_pool *pool = registry_thread_pool(c->target->device->registry);
  bool is_alone = is_watched(c) || c->options->background;
  size_t threads = is_alone ? 1 : (size_t)thread_pool_size(pool);
  if (!n) return;
  if (threads > n) threads = n;
  source_queue q = {.requests = requests, .n = n, .may_report = !thread_pool_is_lent(pool)};
  q.makers = arena_alloc(c->arena, threads * sizeof *q.makers);
  atomic_init(&q.next, 0);
  atomic_init(&q.is_stopped, false);
  for (size_t i = 0; i < threads; i++) maker_init(&q.makers[i], c);
  if (threads == 1)
    run_maker(&q, 0);
  else
    thread_pool_run_long(pool, run_maker, &q, threads);
  for (size_t i = 0; i < threads; i++) maker_free(&q.makers[i]);
  if (atomic_load(&q.is_stopped)) diag_rethrow(c->diag);
  for (size_t i = 0; i < n; i++) {
    if (!requests[i]->diag.status) continue;
    c->diag->failure = requests[i]->diag.failure;
    prefix_name(c->diag, name_of(c->arena, requests[i]));
    diag_rethrow(c->diag);
  }
}

/* Compiling of claimed kernels. */

/** Kernels that one call of the compiler makes. */
typedef struct batch {
  compilation *compilation;
  request **requests;
  size_t n;
  const tn_program_spec **specs;
  tn_output code;
  int64_t ns; /* of the call */
  tn_status status;
  tn_failure failure;
  struct batch *next; /* in work.batches */
} batch;

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
    prefix_name(c->diag, b->n == 1 ? b->specs[0]->name : "kernels");
    diag_rethrow(c->diag);
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
  keep_on_disk(c, b->requests, &(compiled_batch){compiled, b->n, &code});
}

/** Kernels in a batch where `n` are compiled on all of the host's threads. */
static size_t batch_size(const compilation *c, size_t n) {
  size_t threads = (size_t)c->target->device->host.threads, most = c->target->compiler->most;
  size_t size = (n + threads - 1) / threads;
  if (size < LEAST_BATCH) size = LEAST_BATCH;
  if (size > MOST_BATCH) size = MOST_BATCH;
  return most && size > most ? most : size;
}

/** Compiles rendered kernels; publishes all batches that succeed, then raises the first failure. */
static void compile_batches(compilation *c, request **claimed, size_t n) {
  if (n && !c->compiler) open_compiler(c);
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

/** Publishes a claimed kernel that is a call of a library, and keeps it on disk. */
static void publish_call(compilation *c, request *r) {
  tn_program_spec *s = &r->spec;
  program_spec_derive(c->ir, r->program, s);
  s->name = name_of(c->arena, r);
  s->entry = kernel_entry_name(r->kernel);
  r->sizes = launch_grid_compile(c->arena, s->global, s->local, s->value_names, s->n_values);
  r->limits = program_spec_limits(c->ir, c->arena, s);
  const compiled_kernel compiled = {r->kernel, s, r->sizes, r->limits};
  const tn_code code = {TN_CODE_PRODUCT, r->product, sizeof *r->product};
  if (kernel_cache_publish(c->cache, &compiled, 1, &code, NULL, c->diag)) diag_rethrow(c->diag);
  keep_on_disk(c, &r, &(compiled_batch){&compiled, 1, &code});
  r->claimed = false;
}

/** Waits for kernels that other threads compile, and compiles those that they failed to. All that
    this compilation claimed is published by now, so no two wait for each other. */
static void await_others(compilation *c) {
  for (size_t i = 0; i < c->work.n; i++) {
    request *r = &c->work.requests[i];
    if (r->kernel) continue;
    look_up(c, r, KERNEL_CACHE_WAIT);
    if (!r->claimed) continue;
    if (r->product) {
      publish_call(c, r);
      continue;
    }
    make_sources(c, &r, 1);
    compile_batches(c, &r, 1);
  }
}

/** Drops code that was found on disk and that the device rejects, as after a change of its driver;
    false for other code, and for other failures to load it. */
static bool drop_rejected(compilation *c, request *r, tn_status status) {
  if (status != TN_ERR_FORMAT && status != TN_ERR_COMPILE) return false;
  if (!kernel_cache_forget(c->cache, r->kernel)) return false;
  if (c->disk) disk_cache_reject(c->disk, &r->key, "no code that the device loads");
  kernel_cache_release(c->cache, r->kernel);
  r->kernel = NULL;
  diag_clear(c->diag);
  return true;
}

static tn_status load_kernel(compilation *c, size_t i) {
  return kernel_cache_load_program(c->cache, c->work.requests[i].kernel, c->target->device,
                                   &c->work.programs[i], c->diag);
}

/** Loads the programs of all kernels; those of rejected code are compiled again, once. */
static void load_programs(compilation *c) {
  const work *w = &c->work;
  size_t dropped = 0;
  for (size_t i = 0; i < w->n; i++) {
    tn_status status = load_kernel(c, i);
    if (!status) continue;
    if (!drop_rejected(c, &w->requests[i], status)) diag_rethrow(c->diag);
    dropped++;
  }
  if (!dropped) return;
  await_others(c);
  for (size_t i = 0; i < w->n; i++)
    if (!w->programs[i] && load_kernel(c, i)) diag_rethrow(c->diag);
}

/* Compilations. */

static void check_kernel(compilation *c, const node *kernel) {
  if (kernel->op == OP_SINK || (kernel->op == OP_PROGRAM && kernel->n_src == 3)) return;
  diag_raise(c->diag, TN_ERR_INTERNAL,
             "a program is compiled from its sink, or from its sink, device and linear form, not "
             "from %s",
             op_name((op)kernel->op));
}

static void begin_requests(compilation *c) {
  if (c->options->tuned.used) *c->options->tuned.used = 0;
  c->work.requests = arena_calloc(c->arena, c->work.n, sizeof *c->work.requests);
  for (size_t i = 0; i < c->work.n; i++) c->work.requests[i].diag.stop = c->diag->stop;
  const compiler_identity_request q = identity_request(c);
  c->identity = compiler_identity_get(&q);
}

/** Makes the sources of all kernels that need one and reports each kernel that is done: those that
    are in a cache first. Lent workers make a round of them at a time. Reports may raise. */
static void make_with_reports(compilation *c) {
  const compile_options *o = c->options;
  work *w = &c->work;
  bool is_lent = thread_pool_is_lent(registry_thread_pool(c->target->device->registry));
  size_t round = is_lent ? ROUND * (size_t)c->target->device->host.threads : w->n, n = 0;
  request **next = arena_alloc(c->arena, (w->n + 1) * sizeof *next);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed || is_watched(c)) next[n++] = &w->requests[i];
  w->progress.thread = pthread_self();
  atomic_init(&w->progress.done, w->n - n);
  if (w->n && o->report_progress) o->report_progress(o->user, 0, w->n);
  report_done(c);
  for (size_t i = 0; i < n; i += round) {
    make_sources(c, next + i, n - i < round ? n - i : round);
    report_done(c);
  }
}

/** Begins the requests of kernels, with their keys. */
static void begin_kernels(compilation *c) {
  const work *w = &c->work;
  const map *found = c->options->found;
  begin_requests(c);
  for (size_t i = 0; i < w->n; i++) {
    check_kernel(c, w->kernels[i]);
    w->requests[i].program = w->kernels[i];
    if (found) w->requests[i].found = map_get(found, w->kernels[i]);
    set_key(c, i, kernel_graph_key_make(c->arena, c->codegen.math, w->kernels[i]));
  }
}

static void compile_all(void *arg) {
  compilation *c = arg;
  const work *w = &c->work;
  request **claimed = arena_alloc(c->arena, w->n * sizeof *claimed);
  size_t n_claimed = 0;
  begin_kernels(c);
  for (size_t i = 0; i < w->n; i++) look_up(c, &w->requests[i], 0);
  for (size_t i = 0; i < w->n && c->disk; i++)
    if (w->requests[i].claimed) find_on_disk(c, &w->requests[i]);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed && w->requests[i].product) publish_call(c, &w->requests[i]);
  make_with_reports(c);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed) claimed[n_claimed++] = &w->requests[i];
  compile_batches(c, claimed, n_claimed);
  if (c->options->n_compiled) *c->options->n_compiled = n_claimed;
  await_others(c);
  load_programs(c);
}

/** Kernels that other threads are compiling count as not found. */
static void find_all(void *arg) {
  compilation *c = arg;
  work *w = &c->work;
  begin_requests(c);
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    r->record = &w->records[i];
    set_key(c, i, r->record->key);
    look_up(c, r, 0);
  }
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    if (r->claimed && c->disk) find_on_disk(c, r);
    if (r->claimed || !r->kernel) return;
  }
  w->is_found = true;
  for (size_t i = 0; i < w->n; i++) {
    tn_status status = load_kernel(c, i);
    if (!status) continue;
    if (!drop_rejected(c, &w->requests[i], status)) diag_rethrow(c->diag);
    w->is_found = false;
  }
  if (!w->is_found) return;
  for (size_t i = 0; i < w->n; i++) {
    const program_record record = program_record_of(w->programs[i]);
    w->is_found = w->is_found && has_same_launch(w->requests[i].record, &record);
  }
}

/** Runs a compilation of which options, ir and work are set, and frees its resources; also the
    programs, unless it succeeds. */
static tn_status run_compilation(compilation *c, void (*body)(void *c), diag *d) {
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
  bool drops = w->programs && (status || (w->records && !w->is_found));
  for (size_t i = 0; i < w->n && drops; i++) {
    program_release(w->programs[i]);
    w->programs[i] = NULL;
  }
  for (batch *b = w->batches; b; b = b->next) output_free(&b->code);
  output_free(&c->own.output);
  unload_record(c);
  if (o->disk) disk_cache_free_file(o->disk, &c->own.file);
  arena_free(&a);
  return status;
}

/** Runs a compilation of kernels of an ir. */
static tn_status run_on_kernels(compilation *c, void (*body)(void *c), diag *d) {
  tn_status status = run_compilation(c, body, ir_diag(c->ir));
  if (status && d != ir_diag(c->ir)) d->failure = ir_diag(c->ir)->failure;
  return status;
}

tn_status compile_kernels(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                          tn_program *programs[], diag *d) {
  compilation c = {
      .options = o, .ir = g, .work = {.kernels = kernels, .n = n, .programs = programs}};
  return run_on_kernels(&c, compile_all, d);
}

typedef struct generation {
  compilation c; /* begins it: what run_compilation passes on */
  ir *passes;
  const node *sink;
  const char *decisions;
  const node *program;
} generation;

static void generate_with_decisions(void *arg) {
  generation *n = arg;
  decision_list decisions;
  if (!decisions_parse(ir_arena(n->passes), n->decisions, &decisions))
    diag_raise(n->c.diag, TN_ERR_ARGUMENT, "\"%.100s\" are no decisions", n->decisions);
  n->program = generate_program(&n->c, n->passes, n->c.ir, n->sink, &decisions, NULL);
}

tn_status compile_generate(const compile_options *o, ir *g, const node *sink, const char *decisions,
                           const node **program, diag *d) {
  generation n = {.c = {.options = o, .ir = g},
                  .passes = ir_new(ir_mem(g), ir_diag(g), false),
                  .sink = sink,
                  .decisions = decisions};
  tn_status status = n.passes ? run_on_kernels(&n.c, generate_with_decisions, d)
                              : diag_set(d, TN_ERR_MEMORY, "out of memory");
  ir_free(n.passes);
  *program = status ? NULL : n.program;
  return status;
}

typedef struct key_list {
  compilation c; /* begins it: what run_compilation passes on */
  arena *to;
  const char **keys;
} key_list;

static void list_tuned_keys(void *arg) {
  key_list *l = arg;
  begin_kernels(&l->c);
  for (size_t i = 0; i < l->c.work.n; i++)
    l->keys[i] = arena_printf(l->to, "%s", tuned_key_of(&l->c, &l->c.work.requests[i]));
}

tn_status compile_tuned_keys(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                             arena *a, const char *keys[], diag *d) {
  key_list l = {
      .c = {.options = o, .ir = g, .work = {.kernels = kernels, .n = n}}, .to = a, .keys = keys};
  return run_on_kernels(&l.c, list_tuned_keys, d);
}

typedef struct library_search {
  compilation c; /* begins it: what run_compilation passes on */
  const node *sink;
  const char **names; /* of the work's kernels; or of the sink alone */
} library_search;

static void find_library(void *arg) {
  library_search *l = arg;
  if (!product_of(&l->c, l->sink)) return;
  const tn_product_library *found = open_library(&l->c);
  if (found) *l->names = found->name;
}

const char *compile_library_for(const compile_options *o, ir *g, const node *sink) {
  const char *name = NULL;
  library_search l = {.c = {.options = o, .ir = g}, .sink = sink, .names = &name};
  if (run_on_kernels(&l.c, find_library, ir_diag(g)) == TN_ERR_MEMORY) diag_rethrow(ir_diag(g));
  return name;
}

static void list_libraries(void *arg) {
  library_search *l = arg;
  begin_kernels(&l->c);
  for (size_t i = 0; i < l->c.work.n; i++)
    l->names[i] =
        l->c.work.requests[i].product ? l->c.target->device->backend->products->name : NULL;
}

tn_status compile_list_libraries(const compile_options *o, ir *g, const node *const kernels[],
                                 size_t n, const char *names[], diag *d) {
  library_search l = {.c = {.options = o, .ir = g, .work = {.kernels = kernels, .n = n}},
                      .names = names};
  return run_on_kernels(&l.c, list_libraries, d);
}

tn_status compile_find_programs(const compile_options *o, const program_record records[], size_t n,
                                tn_program *programs[], bool *found, diag *d) {
  compilation c = {.options = o, .work = {.records = records, .n = n, .programs = programs}};
  tn_status status = run_compilation(&c, find_all, d);
  *found = !status && c.work.is_found;
  return status;
}

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
