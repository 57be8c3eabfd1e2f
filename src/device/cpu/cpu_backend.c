/* Implements the CPU backend's table of functions: renders kernels to GNU C (render/c), compiles
   them at an instruction set level (c_compiler), which is one of its pairs beside llvm_pair.c, and
   loads the objects (elf_loader). A launch calls
   the kernel once, or once for each worker on the host's threads, with the worker's index among its
   values; or it is a product that OpenBLAS computes (openblas.c). */
#include "device/cpu/cpu_backend.h"

#include "base/arena.h"
#include "base/memory_limit.h"
#include "device/core/output.h"
#include "device/core/render_source.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/detect_caches.h"
#include "device/cpu/elf_loader.h"
#include "device/cpu/isa_level.h"
#include "device/cpu/openblas.h"
#include "device/program/product.h"
#include "ir/core/ir.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "render/llvm/render_llvm.h"
#include "target/machine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  MOST_INDEX = 15,
  ALIGN_BYTES = MACHINE_BUFFER_ALIGN_BYTES,
  HUGE_BYTES = MACHINE_HUGE_PAGE_BYTES,
  FEW = 64 /* buffers or values of a launch for which no memory is allocated */
};

/** Bytes of a kernel's scratch arrays, for each worker: a part of the L2 cache. */
enum { MOST_SCRATCH = MACHINE_CPU_SCRATCH_BYTES };

/* ---- Devices ---- */

static tn_status check_index(int32_t index, tn_failure *f) {
  if (index <= MOST_INDEX) return TN_OK;
  return tn_fail(f, TN_ERR_DEVICE, "the last CPU device is CPU:%d; all are the same processor",
                 MOST_INDEX);
}

static tn_status cpu_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  char text[256];
  isa_level_describe(text, sizeof text);
  tn_output_add(about, text, strlen(text));
  if (!index) {
    int n = snprintf(text, sizeof text, "; CPU:1 to CPU:%d are the same processor", MOST_INDEX);
    tn_output_add(about, text, (size_t)n);
  }
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) *bytes = (uint64_t)pages * (uint64_t)page;
  return check_index(index, f);
}

/** Lists the names of the ops that a target with these rows and tiles of tensor_rows.def lacks, of
   which fma is the first: other rows, and ops that a renderer has no form of. */
static void list_lacking(const rule_target *forms, uint32_t rows, const char *names[]) {
  size_t n = 0;
  names[n++] = op_name(OP_FMA);
  for (size_t i = 0; i < TENSOR_OPS; i++)
    if (!(rows >> i & 1)) names[n++] = op_name(tensor_op(i));
  rule_target_list_missing_ops(forms, names + n);
}

static tn_status cpu_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  mem m = {host->allocator.alloc, host->allocator.release, host->allocator.user};
  tn_status status = check_index(index, f);
  if (status) return status;
  cpu *c = mem_calloc(&m, 1, sizeof *c);
  if (!c) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  c->mem = m;
  c->host = *host;
  rule_target lacks = {0};
  render_c_unsupported_ops(&c_gnu, &lacks);
  render_llvm_unsupported_ops(&lacks);
  for (uint32_t rows = 0; rows < 1 << TENSOR_LONE_OPS; rows++)
    list_lacking(&lacks, rows, c->lacks[rows]);
  *device = c;
  return TN_OK;
}

static void cpu_close(void *device) {
  mem m = ((cpu *)device)->mem;
  mem_free(&m, device, sizeof(cpu));
}

/* ---- Memory ---- */

/** Requests huge pages, so that a few hundred entries of the TLB cover the memory. Memory of the
    caller's allocator is left as it is. */
static void request_huge_pages(const cpu *c, void *memory, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  if (c->mem.alloc == mem_system.alloc && bytes >= HUGE_BYTES)
    (void)madvise(memory, bytes - bytes % HUGE_BYTES, MADV_HUGEPAGE);
#else
  (void)c, (void)memory, (void)bytes;
#endif
}

static tn_status cpu_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                           tn_failure *f) {
  (void)use; /* all memory is the host's */
  cpu *c = device;
  size_t align = bytes >= HUGE_BYTES ? HUGE_BYTES : ALIGN_BYTES;
  *memory = bytes <= SIZE_MAX ? mem_alloc_aligned(&c->mem, (size_t)bytes, align) : NULL;
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (!*memory)
    return tn_fail(f, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(&c->mem, bytes, none));
  request_huge_pages(c, *memory, bytes);
  return TN_OK;
}

static void cpu_free(void *device, void *memory, uint64_t bytes) {
  mem_free(&((cpu *)device)->mem, memory, (size_t)bytes);
}

static void *cpu_host(void *device, void *memory) {
  (void)device;
  return memory;
}

static tn_status cpu_import(void *device, void *data, uint64_t bytes, void **memory,
                            tn_failure *f) {
  (void)device, (void)bytes, (void)f;
  *memory = data;
  return TN_OK;
}

/* ---- Rendering ---- */

tn_status cpu_describe(void *device, const char *limit, tn_capabilities *caps, tn_failure *f) {
  isa_target target;
  tn_status status = isa_target_find(limit, &target, f);
  if (status) return status;
  const isa_level *level = target.level;
  isa_target_text(&target, caps->target, sizeof caps->target);
  caps->vector_bytes = level->vector_bytes;
  caps->registers = level->registers;
  caps->threads = true;
  caps->max_scratch = MOST_SCRATCH;
  caps->scratch_buffer = true;
  caps->dtypes = render_dtypes();
  caps->f16_casts = level->f16c;
  caps->lacks = &((cpu *)device)->lacks[isa_target_rows(&target)][level->fma];
  caps->hardware = cpu_hardware();
  return TN_OK;
}

static void render_program(const tn_capabilities *caps, const tn_program_spec *spec, str *out) {
  (void)caps;
  render_c(spec->ast->src[2], spec, &c_gnu, out);
}

static tn_status c_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                          tn_output *source, tn_failure *f) {
  return render_source(render_program, caps, ir, spec, source, f);
}

static void write_c_prelude(str *out) { render_c_prelude(&c_gnu, out); }

static tn_status c_prelude(const tn_capabilities *caps, tn_output *text, tn_failure *f) {
  (void)caps;
  return render_prelude(write_c_prelude, text, f);
}

/* ---- Compiling ---- */

/** A C compiler, in an arena of its own. */
typedef struct compiler {
  const char *name; /* as the context has it; NULL: the first that is found */
  mem mem;
  arena arena;
  diag diag;
  cc cc;
  atomic_bool is_proven; /* an object of it was loaded */
} compiler;

static void find_compiler(void *arg) {
  compiler *c = arg;
  if (cc_find(&c->cc, c->name, &c->arena, &c->diag)) diag_rethrow(&c->diag);
  c->cc.instrument = CPU_INSTRUMENT;
}

/** Fingerprinting of a compiler, which may raise. */
typedef struct fingerprinting {
  const char *name, *fingerprint;
  arena arena;
} fingerprinting;

static void take_fingerprint(void *arg) {
  fingerprinting *s = arg;
  s->fingerprint =
      arena_printf(&s->arena, "%d%s", CPU_INSTRUMENT, cc_fingerprint(s->name, &s->arena));
}

static tn_status compiler_stamp(void *device, const char *name, tn_output *stamp, tn_failure *f) {
  diag d = {0};
  fingerprinting s = {.name = name};
  arena_init(&s.arena, &((cpu *)device)->mem, &d);
  tn_status status = diag_catch(&d, take_fingerprint, &s);
  if (status) *f = d.failure;
  if (!status) tn_output_add(stamp, s.fingerprint, strlen(s.fingerprint));
  arena_free(&s.arena);
  return status;
}

/** A search for a compiler, which may raise. */
typedef struct presence {
  const char *name;
  arena arena;
  diag *diag;
} presence;

static void check_presence(void *arg) {
  presence *s = arg;
  if (cc_check_present(s->name, &s->arena, s->diag)) diag_rethrow(s->diag);
}

static tn_status compiler_present(void *device, const char *name, tn_failure *f) {
  diag d = {0};
  presence s = {.name = name, .diag = &d};
  arena_init(&s.arena, &((cpu *)device)->mem, &d);
  tn_status status = diag_catch(&d, check_presence, &s);
  if (status) *f = d.failure;
  arena_free(&s.arena);
  return status;
}

static void compiler_close(void *arg) {
  compiler *c = arg;
  arena_free(&c->arena);
  mem m = c->mem;
  mem_free(&m, c, sizeof *c);
}

static tn_status compiler_open(void *device, const tn_host *host, const char *name, void **out,
                               tn_failure *f) {
  (void)host;
  const mem *m = &((cpu *)device)->mem;
  compiler *c = mem_calloc(m, 1, sizeof *c);
  if (!c) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  c->name = name;
  c->mem = *m;
  arena_init(&c->arena, &c->mem, &c->diag);
  if (diag_catch(&c->diag, find_compiler, c)) {
    *f = c->diag.failure;
    compiler_close(c);
    return f->status;
  }
  *out = c;
  return TN_OK;
}

/** A call of a compiler, in an arena of its own, as several threads share the compiler. */
typedef struct compiling {
  compiler *compiler;
  const tn_capabilities *caps;
  const tn_program_spec *const *specs;
  size_t n;
  const atomic_bool *cancel; /* or NULL */
  arena arena;
  diag diag;
  const char *identity;
  cc_object object;
} compiling;

static void take_identity(void *arg) {
  compiling *w = arg;
  w->identity = cc_identity(&w->compiler->cc, &w->arena);
}

enum { MOST_FLAGS = ISA_MOST_FEATURES + 2 };

/** The flags of a target for a kind of compilers, and NULL behind them. */
static void list_flags(const char *text, cc_kind kind, const char *flags[MOST_FLAGS]) {
  isa_target t = isa_target_parse(text);
  size_t n = 0;
  if (t.level->flag) flags[n++] = t.level->flag;
  for (size_t i = 0; i < t.n_features; i++)
    if (kind != CC_GCC || !t.features[i]->is_assembly) flags[n++] = t.features[i]->flag;
  flags[n] = NULL;
}

static tn_status compiler_key(void *c, const tn_capabilities *caps, tn_output *key, tn_failure *f) {
  compiling w = {.compiler = c, .caps = caps};
  arena_init(&w.arena, &w.compiler->mem, &w.diag);
  tn_status status = diag_catch(&w.diag, take_identity, &w);
  if (status) *f = w.diag.failure;
  const char *flags[MOST_FLAGS];
  list_flags(caps->target, CC_CLANG, flags); /* of all features */
  if (!status) tn_output_add(key, w.identity, strlen(w.identity));
  for (size_t i = 0; flags[i]; i++) tn_output_add(key, flags[i], strlen(flags[i]));
  arena_free(&w.arena);
  return status;
}

/** Loads a compiler's first object: if that fails, the compiler's arguments may be the reason. */
static void prove_compiler(compiling *w) {
  elf_image *code;
  tn_status status = elf_load(&code, w->object.data, w->object.bytes, &w->compiler->mem, &w->diag);
  elf_free(code);
  if (status == TN_ERR_FORMAT || status == TN_ERR_UNSUPPORTED)
    diag_prefix(&w->diag, "the output of the C compiler %s cannot be loaded",
                w->compiler->cc.shown);
  if (status) diag_rethrow(&w->diag);
  atomic_store(&w->compiler->is_proven, true);
}

static void compile_c(void *arg) {
  compiling *w = arg;
  str text = str_new(&w->arena);
  render_c_prelude(&c_gnu, &text);
  for (size_t i = 0; i < w->n; i++)
    str_add_bytes(&text, w->specs[i]->source, w->specs[i]->source_bytes);
  const char *flags[MOST_FLAGS];
  list_flags(w->caps->target, w->compiler->cc.kind, flags);
  cc compiler = w->compiler->cc;
  compiler.cancel = w->cancel;
  if (cc_compile(&compiler, str_text(&text), text.n, flags, &w->arena, &w->object, &w->diag))
    diag_rethrow(&w->diag);
  if (!atomic_load(&w->compiler->is_proven)) prove_compiler(w);
}

static tn_status compiler_compile(void *c, const tn_capabilities *caps,
                                  const tn_program_spec *const specs[], size_t n, tn_output *code,
                                  tn_failure *f) {
  compiling w = {.compiler = c, .caps = caps, .specs = specs, .n = n, .cancel = code->cancel};
  arena_init(&w.arena, &w.compiler->mem, &w.diag);
  tn_status status = diag_catch(&w.diag, compile_c, &w);
  if (status) *f = w.diag.failure;
  if (!status) tn_output_add(code, w.object.data, w.object.bytes);
  arena_free(&w.arena);
  return status;
}

/* ---- Programs ---- */

typedef void kernel_function(void *const *bufs, const int64_t *vals);

typedef struct module {
  cpu *cpu;
  elf_image *code; /* NULL: it is the product */
  tn_product product;
} module;

typedef struct program {
  cpu *cpu;
  kernel_function *function; /* NULL: it is the product */
  tn_product product;
  size_t n_values;
  int64_t core_id; /* the index of the worker's number among the values; −1: none */
} program;

/** Loads kernels, or a product with the library that computes it. */
static tn_status load_code(module *m, const tn_code *code, tn_failure *f) {
  diag d = {0};
  if (code->kind == TN_CODE_PRODUCT) {
    tn_status status = openblas_load(f);
    return status ? status : product_read(code, &m->product, f);
  }
  tn_status status = elf_load(&m->code, code->data, code->bytes, &m->cpu->mem, &d);
  if (status) *f = d.failure;
  return status;
}

static tn_status cpu_load(void *device, const tn_code *code, void **out, tn_failure *f) {
  cpu *c = device;
  module *m = mem_calloc(&c->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->cpu = c;
  tn_status status = load_code(m, code, f);
  if (status) {
    mem_free(&c->mem, m, sizeof *m);
    return status;
  }
  *out = m;
  return TN_OK;
}

static void cpu_unload(void *arg) {
  module *m = arg;
  if (m->code) elf_free(m->code);
  mem_free(&m->cpu->mem, m, sizeof *m);
}

static tn_status cpu_program(void *arg, const tn_program_facts *facts, void **out, tn_failure *f) {
  module *m = arg;
  void *symbol = m->code ? elf_symbol(m->code, facts->entry) : NULL;
  if (m->code && !symbol)
    return tn_fail(f, TN_ERR_INTERNAL, "the kernel object has no function %s", facts->entry);
  program *p = mem_calloc(&m->cpu->mem, 1, sizeof *p);
  if (!p) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  *p = (program){
      .cpu = m->cpu, .product = m->product, .n_values = facts->n_values, .core_id = facts->core_id};
  memcpy(&p->function, &symbol, sizeof symbol);
  *out = p;
  return TN_OK;
}

static void cpu_program_free(void *arg) {
  program *p = arg;
  mem_free(&p->cpu->mem, p, sizeof *p);
}

/** A launch, shared by its workers. */
typedef struct launch {
  const program *program;
  void *const *bufs;
  const int64_t *vals;
  atomic_bool failed; /* memory ran out */
} launch;

/** Calls the kernel for one worker: with the launch's values, but for the worker's number. */
static void run_worker(void *arg, size_t number) {
  launch *r = arg;
  const program *p = r->program;
  int64_t few[FEW], *vals = few;
  size_t bytes = p->n_values * sizeof *vals;
  if (p->n_values > FEW && !(vals = mem_alloc(&p->cpu->mem, bytes))) {
    atomic_store(&r->failed, true);
    return;
  }
  memcpy(vals, r->vals, bytes);
  vals[p->core_id] = (int64_t)number;
  p->function(r->bufs, vals);
  if (vals != few) mem_free(&p->cpu->mem, vals, bytes);
}

/** Runs a program: rendered kernels have no groups. */
static tn_status cpu_execute(void *device, const tn_work *work, tn_failure *f) {
  (void)device;
  const program *p = work->program;
  const tn_launch *l = work->launch;
  if (!p->function) return openblas_run(p->cpu, &p->product, l, f);
  void *few[FEW], **bufs = few;
  size_t bytes = l->n_buffers * sizeof *bufs;
  if (l->n_buffers > FEW && !(bufs = mem_alloc(&p->cpu->mem, bytes)))
    return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < l->n_buffers; i++)
    bufs[i] = (char *)l->buffers[i].memory + l->buffers[i].offset;
  launch r = {.program = p, .bufs = bufs, .vals = l->values};
  atomic_init(&r.failed, false);
  const tn_workers *w = &p->cpu->host.workers;
  if (p->core_id < 0)
    p->function(bufs, l->values);
  else if (work->global[0] == 1)
    run_worker(&r, 0);
  else
    w->run(w->user, run_worker, &r, (size_t)work->global[0]);
  if (bufs != few) mem_free(&p->cpu->mem, bufs, bytes);
  return atomic_load(&r.failed) ? tn_fail(f, TN_ERR_MEMORY, "out of memory") : TN_OK;
}

/* ---- The backend ---- */

static const tn_renderer c_renderer = {.size = sizeof c_renderer,
                                       .name = "c",
                                       .describe = cpu_describe,
                                       .render = c_render,
                                       .prelude = c_prelude};

static const tn_compiler cc_compiler = {.size = sizeof cc_compiler,
                                        .name = "cc",
                                        .kind = TN_CODE_BYTES,
                                        .open = compiler_open,
                                        .close = compiler_close,
                                        .key = compiler_key,
                                        .compile = compiler_compile,
                                        .lasting = true,
                                        .stamp = compiler_stamp};

static const tn_pair pairs[] = {{&c_renderer, &cc_compiler, compiler_present},
                                {&llvm_renderer, &llvm_compiler, llvm_present}};

const tn_backend cpu_backend = {.size = sizeof cpu_backend,
                                .name = "CPU",
                                .pairs = pairs,
                                .n_pairs = sizeof pairs / sizeof *pairs,
                                .probe = cpu_probe,
                                .open = cpu_open,
                                .close = cpu_close,
                                .alloc = cpu_alloc,
                                .free = cpu_free,
                                .host = cpu_host,
                                .import = cpu_import,
                                .load = cpu_load,
                                .unload = cpu_unload,
                                .program = cpu_program,
                                .program_free = cpu_program_free,
                                .execute = cpu_execute,
                                .products = &openblas_products};
