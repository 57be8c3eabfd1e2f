#include "device/program.h"

#include "device/cache.h"
#include "device/failure.h"
#include "device/identity.h"
#include "device/output.h"
#include "device/piece.h"
#include "device/pool.h"
#include "device/spec.h"
#include "ir/copy.h"
#include "ir/sink.h"

#include <string.h>

/* A compiler takes some time to start; and what one call may take is limited. */
enum { LEAST_BATCH = 3, MOST_BATCH = 6 };

/** A kernel that is asked for. */
typedef struct request {
  const node *program; /* as far as it has got; or a SINK; NULL: it is looked for by `record` */
  const program_record *record;
  kernel_key key;
  kernel *kernel; /* held */
  bool claimed;   /* to be compiled by us; then: */
  tn_program_spec spec;
  launch_code sizes;
  launch_terms terms;
} request;

/** The compilation of several kernels. What is not in the arena is freed by its owner. */
typedef struct compilation {
  const program_options *options;
  const device_target *target;
  codegen_options codegen;
  kernel_cache *cache;
  ir *ir;
  arena *arena;
  diag *diag;           /* the ir's: all below raises through it */
  disk *disk;           /* NULL: nothing is kept there, or nothing any more */
  const char *identity; /* the compiler's, of the keys */
  void *compiler;       /* once something is to be compiled */
  tn_output output;     /* what a renderer or compiler writes */
  disk_file file;       /* what is read of the disk */
  const node *const *kernels;
  const program_record *records; /* in place of kernels */
  bool found;                    /* of records: all of them */
  request *requests;
  size_t n;
  request *at;           /* the one whose source is made */
  struct batch *batches; /* all that were begun */
  tn_program **programs;
} compilation;

/** Puts what failed before the message; many kernels have no name. */
static tn_status prefix(diag *d, const char *what) {
  return *what ? diag_prefix(d, "%s", what) : d->status;
}

/** Raises a failure of the backend's, or of the output it wrote. */
static void require(compilation *c, tn_status status, const tn_failure *f) {
  if (failure_tell(c->diag, status, f) || output_check(&c->output, c->diag)) diag_rethrow(c->diag);
}

/* Keys. */

static identity_ask asking(compilation *c) {
  return (identity_ask){c->target, c->disk, c->arena, &c->output};
}

/** Opens the compiler. If it is not the one that keys were made for, what it makes is not kept. */
static void open_compiler(compilation *c) {
  bool is_same;
  const identity_ask q = asking(c);
  c->compiler = identity_confirm(&q, c->identity, &is_same);
  if (!is_same) c->disk = NULL;
}

static void ask(compilation *c, request *r, bool wait) {
  cache_answer answer;
  if (cache_ask(c->cache, &r->key, wait, &answer, &r->kernel, c->diag)) diag_rethrow(c->diag);
  r->claimed = answer == CACHE_CLAIMED;
}

static bool has_room(const tn_capabilities *caps, const tn_program_spec *s) {
  return !caps->max_scratch || s->scratch <= caps->max_scratch;
}

/* What the disk has. */

static const node *sink_of(const request *r) {
  return r->program->op == OP_SINK ? r->program : r->program->src[0];
}

static const char *name_of(arena *a, const request *r) {
  return r->record ? r->record->name : sink_name(a, sink_of(r));
}

/** Whether code is launched alike. */
static bool is_alike(const program_record *a, const program_record *b) {
  bool same = a->n_globals == b->n_globals && a->n_values == b->n_values;
  for (size_t i = 0; i < a->n_globals && same; i++) same = a->globals[i] == b->globals[i];
  for (size_t i = 0; i < a->n_values && same; i++)
    same = !strcmp(a->value_names[i], b->value_names[i]);
  return same;
}

static bool fits(compilation *c, const request *r, const piece_kernel *k) {
  const tn_program_spec *s = &k->spec;
  if (!r->record) return piece_fits(k, c->ir, sink_of(r));
  return is_alike(r->record, &(program_record){.n_globals = s->n_globals,
                                               .n_values = s->n_values,
                                               .globals = s->globals,
                                               .value_names = s->value_names});
}

/** Whether a piece can be loaded, with a function for each of its `n` kernels. What only lacks
   memory may be right. */
static bool can_be_loaded(compilation *c, const piece *p, size_t n) {
  tn_device *v = c->target->device;
  const tn_backend *b = v->backend;
  void *module, *program;
  tn_failure f;
  failure_clear(&f);
  bool fits = true;
  tn_status status = b->load(v->state, &p->code, &module, &f);
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
    status = b->program(module, &facts, &program, &f);
    if (!status) b->program_free(program);
    fits = fits && has_room(&c->target->caps, s);
  }
  b->unload(module);
  return fits && (!status || status == TN_ERR_MEMORY);
}

/** Publishes all that is claimed and in the file that is read. */
static void take_file(compilation *c, const piece *p) {
  made_kernel *made = arena_alloc(c->arena, c->n * sizeof *made);
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    size_t at = r->claimed ? disk_file_find(&c->file, &r->key) : SIZE_MAX;
    if (at == SIZE_MAX || !fits(c, r, &p->kernels[at])) continue;
    r->spec = p->kernels[at].spec;
    r->spec.name = name_of(c->arena, r);
    r->claimed = false;
    made[n++] = (made_kernel){r->kernel, &r->spec, p->kernels[at].sizes, p->kernels[at].terms};
  }
  if (n && cache_publish(c->cache, made, n, &p->code, true, c->diag)) diag_rethrow(c->diag);
}

static void find_on_disk(compilation *c, request *r) {
  piece p;
  if (!disk_read(c->disk, &r->key, &c->file)) return;
  if (piece_read(&p, c->file.content, c->file.content_bytes, c->file.n_keys, c->arena) &&
      can_be_loaded(c, &p, c->file.n_keys))
    take_file(c, &p);
  if (r->claimed) disk_refuse(c->disk, &r->key, "it holds no kernel that could be loaded");
  disk_free(c->disk, &c->file);
}

typedef struct made_piece {
  const made_kernel *made;
  size_t n;
  const tn_code *code;
} made_piece;

static void add_piece(void *user, str *to) {
  const made_piece *p = user;
  piece_write(to, p->code, p->made, p->n);
}

/** Keeps what a call of the compiler made. */
static void keep_on_disk(compilation *c, const made_kernel made[], request *const requests[],
                         size_t n, const tn_code *code) {
  const kernel_key *keys[MOST_BATCH];
  made_piece p = {made, n, code};
  for (size_t i = 0; i < n; i++) keys[i] = &requests[i]->key;
  disk_write(c->disk, keys, n, add_piece, &p);
}

/* Stages. */

static const node *decompose(void *user, ir *g, const node *n) {
  const device_target *t = user;
  return t->renderer->decompose(&t->caps, g, n);
}

/** What passes make of a kernel on their way is many times what is left of it: it goes with an ir
   of its own. Who watches a kernel counts nodes in one ir. */
typedef struct generating {
  compilation *c;
  ir *ir;
  const node *program;
} generating;

static void generate_body(void *arg) {
  generating *k = arg;
  compilation *c = k->c;
  bool is_apart = k->ir != c->ir;
  const char *device = c->target->device->backend->name;
  if (is_apart) ir_copy(k->ir, ir_arena(k->ir), &k->program, 1, NULL, NULL, &k->program);
  k->program = codegen_run(k->ir, k->program, device, &c->codegen);
  if (is_apart) ir_copy(c->ir, ir_arena(k->ir), &k->program, 1, NULL, NULL, &k->program);
}

/** SINK → PROGRAM(SINK, DEVICE, LINEAR) */
static void generate(compilation *c, request *r) {
  if (r->program->op != OP_SINK) return;
  bool is_watched = c->codegen.watch.after || c->codegen.watch.law;
  generating k = {c, is_watched ? c->ir : ir_new(ir_mem(c->ir), c->diag, false), r->program};
  if (!k.ir) diag_raise(c->diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(c->diag, generate_body, &k);
  if (!is_watched) ir_free(k.ir);
  if (s != TN_OK) diag_rethrow(c->diag);
  r->program = k.program;
#ifdef TENON_VERIFY
  program_node_check(c->ir, r->program);
#endif
}

static void check_scratch(compilation *c, tn_program_spec *s) {
  const tn_capabilities *caps = &c->target->caps;
  if (!has_room(caps, s))
    diag_raise(c->diag, TN_ERR_UNSUPPORTED,
               "the kernel's own arrays take %llu bytes, and may take %llu on this device",
               (unsigned long long)s->scratch, (unsigned long long)caps->max_scratch);
  if (!caps->scratch_buffer) s->scratch = 0;
}

/** PROGRAM(SINK, DEVICE, LINEAR) → PROGRAM(SINK, DEVICE, LINEAR, SOURCE) */
static void render(compilation *c, request *r) {
  const device_target *t = c->target;
  tn_program_spec *s = &r->spec;
  spec_derive(c->ir, r->program, s);
  check_scratch(c, s);
  s->entry = r->kernel ? cache_entry(r->kernel) : "kernel"; /* it is being compiled elsewhere */
  r->sizes = launch_compile_sizes(c->arena, s->global, s->local, s->value_names, s->n_values);
  r->terms = spec_terms(c->ir, c->arena, s);
  tn_failure f;
  failure_clear(&f);
  require(c, t->renderer->render(&t->caps, c->ir, s, &c->output, &f), &f);
  r->program = program_node_source(c->ir, r->program, output_text(&c->output), c->output.n);
  s->source = r->program->src[3]->text;
  s->source_bytes = r->program->src[3]->n_text;
  c->output.n = 0;
}

static void source_body(void *arg) {
  compilation *c = arg;
  const program_options *o = c->options;
  generate(c, c->at);
  if (c->at->claimed || o->rendered) render(c, c->at);
  if (o->rendered) o->rendered(o->user, c->at->program->src[0], c->at->spec.source);
}

/** A kernel's source, if it is ours to compile. */
static void make_source(compilation *c, request *r) {
  const node *sink = sink_of(r);
  c->at = r;
  if (!diag_catch(c->diag, source_body, c)) return;
  prefix(c->diag, sink_name(c->arena, sink));
  diag_rethrow(c->diag);
}

/* Compiling what is not in the cache. */

/** Kernels that one call of the compiler makes. */
typedef struct batch {
  compilation *compilation;
  request **requests;
  size_t n;
  const tn_program_spec **specs;
  tn_output code;
  int64_t ns;
  tn_status status;
  tn_failure failure;
  struct batch *next;
} batch;

static void prepare(compilation *c, batch *b, request **requests, size_t n) {
  failure_clear(&b->failure);
  b->compilation = c;
  b->requests = requests;
  b->n = n;
  b->specs = arena_alloc(c->arena, n * sizeof *b->specs);
  for (size_t i = 0; i < n; i++) b->specs[i] = &requests[i]->spec;
  b->code = output_new(c->target->device->mem);
  b->next = c->batches;
  c->batches = b;
}

/** On any thread: touches no graph, and does not raise. */
static void run_batch(void *arg, size_t i) {
  batch *b = &((batch *)arg)[i];
  const device_target *t = b->compilation->target;
  int64_t start = clock_now();
  b->status = t->compiler->compile(b->compilation->compiler, &t->caps, b->specs, b->n, &b->code,
                                   &b->failure);
  b->ns = clock_now() - start;
}

/** PROGRAM(…, SOURCE) → PROGRAM(…, SOURCE, BINARY), which is published. */
static void publish(void *arg) {
  batch *b = arg;
  compilation *c = b->compilation;
  if (failure_tell(c->diag, b->status, &b->failure)) {
    prefix(c->diag, b->n == 1 ? b->specs[0]->name : "kernels");
    diag_rethrow(c->diag);
  }
  if (output_check(&b->code, c->diag)) diag_rethrow(c->diag);
  made_kernel *made = arena_alloc(c->arena, b->n * sizeof *made);
  for (size_t i = 0; i < b->n; i++) {
    request *r = b->requests[i];
    r->program = program_node_binary(c->ir, r->program, output_text(&b->code), b->code.n);
    made[i] = (made_kernel){r->kernel, &r->spec, r->sizes, r->terms};
  }
  const node *binary = b->requests[0]->program->src[4];
  tn_code code = {c->target->compiler->kind, binary->text, binary->n_text};
  if (cache_publish(c->cache, made, b->n, &code, false, c->diag)) diag_rethrow(c->diag);
  const program_options *o = c->options;
  for (size_t i = 0; i < b->n && o->made; i++) o->made(o->user, b->specs[i]->name, b->n, b->ns);
  keep_on_disk(c, made, b->requests, b->n, &code);
}

/** How many of `n` kernels go into a batch: the host's threads call the compiler side by side. */
static size_t batch_size(const compilation *c, size_t n) {
  size_t threads = (size_t)c->target->device->host.threads, most = c->target->compiler->most;
  size_t size = (n + threads - 1) / threads;
  if (size < LEAST_BATCH) size = LEAST_BATCH;
  if (size > MOST_BATCH) size = MOST_BATCH;
  return most && size > most ? most : size;
}

/** Compiles kernels that are rendered; what succeeds is published even if something fails. */
static void compile(compilation *c, request **claimed, size_t n) {
  if (n && !c->compiler) open_compiler(c);
  size_t size = batch_size(c, n), count = (n + size - 1) / size;
  batch *b = arena_calloc(c->arena, count, sizeof *b);
  for (size_t i = 0; i < count; i++)
    prepare(c, &b[i], claimed + i * size, i + 1 < count ? size : n - i * size);
  pool_run_long(table_pool(c->target->device->table), run_batch, b, count);
  bool failed = false;
  for (size_t i = 0; i < count; i++)
    if (!b[i].status) failed = diag_catch(c->diag, publish, &b[i]) || failed;
  for (size_t i = 0; i < count && !failed; i++)
    if (b[i].status) failed = diag_catch(c->diag, publish, &b[i]);
  if (failed) diag_rethrow(c->diag);
}

static void compile_claimed(compilation *c) {
  request **claimed = arena_alloc(c->arena, c->n * sizeof *claimed);
  size_t n = 0;
  for (size_t i = 0; i < c->n && c->disk; i++)
    if (c->requests[i].claimed) find_on_disk(c, &c->requests[i]);
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    if (c->options->tell) c->options->tell(c->options->user, i, c->n);
    if (r->claimed || c->codegen.watch.after || c->options->rendered) make_source(c, r);
    if (r->claimed) claimed[n++] = r;
  }
  compile(c, claimed, n);
}

/** Waits for kernels that others compile. Nothing of ours is left undone, so no two wait for each
    other; what others failed to compile, we do. */
static void await_others(compilation *c) {
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    if (r->kernel) continue;
    ask(c, r, true);
    if (!r->claimed) continue;
    make_source(c, r);
    compile(c, &r, 1);
  }
}

static void check_kernel(compilation *c, const node *kernel) {
  if (kernel->op == OP_SINK || (kernel->op == OP_PROGRAM && kernel->n_src == 3)) return;
  diag_raise(c->diag, TN_ERR_INTERNAL,
             "a program is compiled from its sink, or from its sink, device and linear form, not "
             "from %s",
             op_name((op)kernel->op));
}

static void begin(compilation *c) {
  c->requests = arena_calloc(c->arena, c->n, sizeof *c->requests);
  const identity_ask q = asking(c);
  c->identity = identity_get(&q);
}

static void load_all(compilation *c) {
  for (size_t i = 0; i < c->n; i++)
    if (cache_program(c->cache, c->requests[i].kernel, c->target->device, &c->programs[i], c->diag))
      diag_rethrow(c->diag);
}

static void compile_all(void *arg) {
  compilation *c = arg;
  begin(c);
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    check_kernel(c, c->kernels[i]);
    r->program = c->kernels[i];
    r->key = key_make(c->arena, c->target, c->identity, c->codegen.math, r->program);
  }
  for (size_t i = 0; i < c->n; i++) ask(c, &c->requests[i], false);
  compile_claimed(c);
  await_others(c);
  load_all(c);
}

/** What others are compiling at the moment is not there. */
static void find_all(void *arg) {
  compilation *c = arg;
  begin(c);
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    r->record = &c->records[i];
    r->key = key_make_again(c->arena, c->target, c->identity, r->record->key, r->record->key_bytes);
    ask(c, r, false);
  }
  for (size_t i = 0; i < c->n; i++) {
    request *r = &c->requests[i];
    if (r->claimed && c->disk) find_on_disk(c, r);
    if (r->claimed || !r->kernel) return;
  }
  load_all(c);
  c->found = true;
  for (size_t i = 0; i < c->n; i++) {
    program_record is = program_tell(c->programs[i]);
    c->found = c->found && is_alike(c->requests[i].record, &is);
  }
}

/** Runs a compilation of which the rest is set; what it does not give is given back. */
static tn_status run(compilation *c, void (*body)(void *c), diag *d) {
  const program_options *o = c->options;
  const device_target *t = o->target;
  arena a;
  arena_init(&a, t->device->mem, d);
  c->target = t;
  c->codegen = (codegen_options){.target = t->target, .math = o->math, .watch = o->watch};
  c->cache = table_kernels(t->device->table);
  c->disk = t->compiler->lasting ? o->disk : NULL;
  c->arena = &a;
  c->diag = d;
  c->output = output_new(t->device->mem);
  if (t->renderer->decompose) c->codegen.first = (codegen_decomposer){decompose, (void *)t};
  for (size_t i = 0; i < c->n; i++) c->programs[i] = NULL;
  tn_status status = diag_catch(d, body, c);
  for (size_t i = 0; i < c->n && c->requests; i++)
    if (c->requests[i].kernel) cache_drop(c->cache, c->requests[i].kernel);
  for (size_t i = 0; i < c->n && (status || (c->records && !c->found)); i++) {
    program_release(c->programs[i]);
    c->programs[i] = NULL;
  }
  for (batch *b = c->batches; b; b = b->next) output_free(&b->code);
  output_free(&c->output);
  if (o->disk) disk_free(o->disk, &c->file);
  arena_free(&a);
  return status;
}

tn_status program_compile(const program_options *o, ir *g, const node *const kernels[], size_t n,
                          tn_program *programs[], diag *d) {
  compilation c = {.options = o, .ir = g, .kernels = kernels, .n = n, .programs = programs};
  tn_status status = run(&c, compile_all, ir_diag(g));
  if (status && d != ir_diag(g)) diag_copy(d, ir_diag(g));
  return status;
}

tn_status program_find(const program_options *o, const program_record records[], size_t n,
                       tn_program *programs[], bool *found, diag *d) {
  compilation c = {.options = o, .records = records, .n = n, .programs = programs};
  tn_status status = run(&c, find_all, d);
  *found = !status && c.found;
  return status;
}

program_record program_tell(const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  program_record r = {.name = p->name,
                      .n_globals = f->n_globals,
                      .n_values = f->n_values,
                      .globals = f->globals,
                      .value_names = f->value_names};
  size_t bytes;
  const void *key = cache_key(p->kernel, &bytes);
  r.key = key_own(key, bytes, &r.key_bytes);
  return r;
}

/** The last hold is given back under the cache's lock, as the cache gives holds: nobody finds a
    program that is going. */
void program_release(tn_program *p) {
  if (!p) return;
  size_t uses = atomic_load_explicit(&p->uses, memory_order_relaxed);
  while (uses > 1)
    if (atomic_compare_exchange_weak_explicit(&p->uses, &uses, uses - 1, memory_order_release,
                                              memory_order_relaxed))
      return;
  cache_release(p);
}

/* Running. */

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

static tn_status check_launch(const tn_program *p, const tn_launch *l, tn_failure *f) {
  size_t wanted = p->facts.n_globals + (p->facts.scratch > 0);
  if (l->n_buffers != wanted)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s takes %zu buffers, not %zu", p->name, wanted,
                   l->n_buffers);
  if (l->n_values != p->facts.n_values)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s takes %zu values, not %zu", p->name,
                   p->facts.n_values, l->n_values);
  return check_buffers(p, l, f);
}

/** Each worker has arrays of its own: the last buffer is large enough. */
static tn_status check_scratch_buffer(const tn_program *p, const tn_launch *l,
                                      const int64_t global[3], tn_failure *f) {
  uint64_t workers = p->facts.core_id < 0 ? 1 : (uint64_t)global[0];
  if (!p->facts.scratch || l->buffers[l->n_buffers - 1].bytes / p->facts.scratch >= workers)
    return TN_OK;
  return tn_fail(f, TN_ERR_ARGUMENT,
                 "kernel %s: its last buffer has %llu bytes, and %llu workers take %llu each",
                 p->name, (unsigned long long)l->buffers[l->n_buffers - 1].bytes,
                 (unsigned long long)workers, (unsigned long long)p->facts.scratch);
}

tn_status program_execute(tn_program *p, const tn_launch *l, tn_failure *f) {
  diag d;
  diag_clear(&d);
  int64_t global[3], local[3];
  tn_status status = check_launch(p, l, f);
  if (status) return status;
  if (launch_sizes(&p->sizes, l->values, global, local, &d))
    return tn_fail(f, d.status, "kernel %s: %s", p->name, d.text);
  status = check_scratch_buffer(p, l, global, f);
  if (status) return status;
  return p->device->backend->execute(p->handle, l, global, local[0] ? local : NULL, f);
}
