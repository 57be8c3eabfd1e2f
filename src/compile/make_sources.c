/* Makes the sources of kernels: code generation, then rendering. Any thread of the pool takes the
   next kernel, in irs of its own, so that neither code nor messages depend on the threads; a
   failure is left in its request, and the first one is raised at the end. Reports the progress. */
#include "compile/compilation.h"

#include "base/block_cache.h"
#include "base/stop.h"
#include "compile/program_node.h"
#include "compile/program_spec.h"
#include "device/threads/thread_pool.h"
#include "ir/core/pass_names.h"
#include "ir/transform/copy_graph.h"

/* Kernels a thread between two reports of progress where lent workers make the sources, so that
   they seldom wait for the last one. */
enum { ROUND = 16 };

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

const node *compilation_generate(const compilation *c, ir *passes, ir *to, const node *program,
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
  r->program = compilation_generate(t->maker->c, t->passes, r->ir, r->program,
                                    is_tuned ? &tuned : NULL, r->found);
}

static diag *diag_of(const compilation *c, request *r) {
  return compilation_is_watched(c) ? c->diag : &r->diag;
}

static void generate_code(source_task *t) {
  compilation *c = t->maker->c;
  request *r = t->r;
  diag *d = diag_of(c, r);
  r->ir = t->passes = c->ir;
  if (!compilation_is_watched(c)) {
    r->ir = ir_new(ir_mem(c->ir), d, false);
    t->passes = r->ir ? ir_new(&t->maker->blocks.mem, d, false) : NULL;
  }
  if (!t->passes) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(d, generate_body, t);
  if (t->passes != c->ir) ir_free(t->passes);
  if (s != TN_OK) diag_rethrow(d);
}

static void check_scratch(const compilation *c, diag *d, tn_program_spec *s) {
  const tn_capabilities *caps = &c->target->caps;
  if (!compilation_fits_scratch(c, s))
    diag_raise(d, TN_ERR_UNSUPPORTED,
               "the scratch arrays of the kernel need %llu bytes; this device allows %llu",
               (unsigned long long)s->scratch, (unsigned long long)caps->max_scratch);
  if (!caps->scratch_buffer) s->scratch = 0;
}

/** Refuses a value or an array of a type that the target lacks. Without f16 and bf16 there are
    arrays of these still, whose elements are bit patterns. */
static void check_types(const device_target *t, const tn_program_spec *s, diag *d) {
  uint64_t types = t->caps.dtypes | UINT64_C(1) << DT_F16 | UINT64_C(1) << DT_BF16;
  const node *linear = s->ast->src[2];
  for (uint32_t i = 0; i < linear->n_src; i++) {
    dtype type = (dtype)linear->src[i]->dtype;
    if (type < 64 && !(types >> type & 1))
      diag_raise(d, TN_ERR_UNSUPPORTED, "the kernel computes with %s, which target %s of %s lacks",
                 dtype_name(type), t->caps.target, s->device);
  }
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
  check_scratch(task->maker->c, d, s);
  check_types(t, s, d);
  s->entry = r->kernel ? kernel_entry_name(r->kernel) : "kernel"; /* another thread compiles it */
  r->sizes = launch_grid_compile(a, s->global, s->local, s->value_names, s->n_values);
  r->limits = program_spec_limits(r->ir, a, s);
  diag_clear(d);
  output->n = 0;
  if (diag_complete(d, t->renderer->render(&t->caps, r->ir, s, output, &d->failure)) ||
      output_check(output, d))
    diag_rethrow(d);
  if (!output->n)
    diag_raise(d, TN_ERR_DEVICE, "renderer %s of backend %s wrote no source of function %s",
               t->renderer->name, s->device, s->entry);
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

void compilation_make_sources(compilation *c, request *const *requests, size_t n) {
  thread_pool *pool = registry_thread_pool(c->target->device->registry);
  bool is_alone = compilation_is_watched(c) || c->options->background;
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
    compilation_fail(c, request_name(c, requests[i]));
  }
}

void compilation_make_all_sources(compilation *c) {
  const compile_options *o = c->options;
  work *w = &c->work;
  bool is_lent = thread_pool_is_lent(registry_thread_pool(c->target->device->registry));
  size_t round = is_lent ? ROUND * (size_t)c->target->device->host.threads : w->n, n = 0;
  request **next = arena_alloc(c->arena, (w->n + 1) * sizeof *next);
  for (size_t i = 0; i < w->n; i++)
    if (w->requests[i].claimed || compilation_is_watched(c)) next[n++] = &w->requests[i];
  w->progress.thread = pthread_self();
  atomic_init(&w->progress.done, w->n - n);
  if (w->n && o->report_progress) o->report_progress(o->user, 0, w->n);
  report_done(c);
  for (size_t i = 0; i < n; i += round) {
    compilation_make_sources(c, next + i, n - i < round ? n - i : round);
    report_done(c);
  }
}
