/* The pair llvm/llvm of the CPU backend: renders kernels as LLVM's intermediate representation
   (render/llvm), which the LLVM module compiles in this process. */
#include "base/arena.h"
#include "base/str.h"
#include "device/core/output.h"
#include "device/core/render_source.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/isa_level.h"
#include "device/cpu/llvm_loader.h"
#include "ir/core/ir.h"
#include "render/llvm/render_llvm.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Rendering. */

static void render_program(const tn_capabilities *caps, const tn_program_spec *spec, str *out) {
  isa_target target = isa_target_parse(caps->target);
  render_llvm(spec->ast->src[2], spec, isa_target_rows(&target), caps->vector_bytes, out);
}

static tn_status llvm_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                             tn_output *source, tn_failure *f) {
  return render_source(render_program, caps, ir, spec, source, f);
}

/* Compiling. */

static tn_status llvm_open(void *device, const tn_host *host, const char *name, void **compiler,
                           tn_failure *f) {
  (void)device, (void)host, (void)name;
  diag d = {0};
  const llvm_module *m;
  tn_status status = llvm_module_open(&m, &d);
  if (status) *f = d.failure;
  *compiler = (void *)m;
  return status;
}

/** Writes the features of a target in LLVM's form: "+avx512vnni,+avx512bf16". */
static void list_features(const isa_target *t, char *text, size_t bytes) {
  *text = 0;
  for (size_t i = 0; i < t->n_features; i++) {
    size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s+%s", i ? "," : "", t->features[i]->llvm);
  }
}

static tn_status llvm_key(void *compiler, const tn_capabilities *caps, tn_output *key,
                          tn_failure *f) {
  (void)f;
  const llvm_module *m = compiler;
  char text[512];
  m->identify(text, sizeof text);
  tn_output_add(key, text, strlen(text));
  isa_target target = isa_target_parse(caps->target);
  char features[ISA_TARGET_BYTES];
  list_features(&target, features, sizeof features);
  tn_output_add(key, target.level->llvm_cpu, strlen(target.level->llvm_cpu));
  tn_output_add(key, features, strlen(features));
  return TN_OK;
}

static void add_object(void *user, const void *data, size_t bytes) {
  tn_output_add(user, data, bytes);
}

/** A call of the compiler, in an arena of its own. */
typedef struct compiling {
  const tn_program_spec *const *specs;
  size_t n;
  arena arena;
  str text;
} compiling;

static void join_sources(void *arg) {
  compiling *c = arg;
  c->text = str_new(&c->arena);
  render_llvm_prelude(&c->text);
  for (size_t i = 0; i < c->n; i++)
    str_add_bytes(&c->text, c->specs[i]->source, c->specs[i]->source_bytes);
}

static tn_status llvm_compile(void *compiler, const tn_capabilities *caps,
                              const tn_program_spec *const specs[], size_t n, tn_output *code,
                              tn_failure *f) {
  const llvm_module *m = compiler;
  diag d = {0};
  compiling c = {.specs = specs, .n = n};
  isa_target target = isa_target_parse(caps->target);
  char features[ISA_TARGET_BYTES];
  list_features(&target, features, sizeof features);
  arena_init(&c.arena, code->mem, &d);
  tn_status status = diag_catch(&d, join_sources, &c);
  if (status) *f = d.failure;
  if (!status) {
    llvm_job job = {.text = str_text(&c.text),
                    .bytes = c.text.n,
                    .cpu = target.level->llvm_cpu,
                    .features = features,
                    .vector_bytes = caps->vector_bytes,
                    .cancel = code->cancel,
                    .add = add_object,
                    .user = code};
    switch (m->compile(&job)) {
    case LLVM_COMPILED: break;
    case LLVM_NO_MEMORY: status = tn_fail(f, TN_ERR_MEMORY, "LLVM is out of memory"); break;
    case LLVM_CANCELLED: status = tn_fail(f, TN_ERR_CANCELLED, "compiling was cancelled"); break;
    case LLVM_FAILED: status = tn_fail(f, TN_ERR_COMPILE, "%s", job.message); break;
    }
  }
  arena_free(&c.arena);
  return status;
}

/* Finding. */

tn_status llvm_present(void *device, const char *compiler, tn_failure *f) {
  (void)device;
  char path[LLVM_PATH_BYTES];
  diag d = {0};
  if (CPU_INSTRUMENT != CC_NO_SANITIZER)
    return tn_fail(f, TN_ERR_UNSUPPORTED, "the C compiler instruments the kernels of this build");
  if (compiler) return tn_fail(f, TN_ERR_UNSUPPORTED, "a C compiler is named");
  if (!llvm_module_find(path, &d)) return TN_OK;
  *f = d.failure;
  return d.status;
}

static void add_fingerprint(tn_output *stamp, const char *path) {
  struct stat s;
  char text[LLVM_PATH_BYTES + 128];
  if (stat(path, &s)) return;
  int n = snprintf(text, sizeof text, "%s %llu %llu %lld %lld.%09ld\n", path,
                   (unsigned long long)s.st_dev, (unsigned long long)s.st_ino, (long long)s.st_size,
                   (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  tn_output_add(stamp, text, (size_t)n);
}

static tn_status llvm_stamp(void *device, const char *name, tn_output *stamp, tn_failure *f) {
  (void)device, (void)name, (void)f;
  char path[LLVM_PATH_BYTES];
  diag none;
  tn_output_add(stamp, "llvm\n", 5);
  if (!llvm_module_find(path, &none)) add_fingerprint(stamp, path);
#ifdef TENON_LLVM_LIBRARY
  add_fingerprint(stamp, TENON_LLVM_LIBRARY);
#endif
  return TN_OK;
}

static tn_status llvm_prelude(const tn_capabilities *caps, tn_output *text, tn_failure *f) {
  (void)caps;
  return render_prelude(render_llvm_prelude, text, f);
}

const tn_renderer llvm_renderer = {.size = sizeof llvm_renderer,
                                   .name = "llvm",
                                   .describe = cpu_describe,
                                   .render = llvm_render,
                                   .prelude = llvm_prelude};

const tn_compiler llvm_compiler = {.size = sizeof llvm_compiler,
                                   .name = "llvm",
                                   .kind = TN_CODE_BYTES,
                                   .open = llvm_open,
                                   .key = llvm_key,
                                   .compile = llvm_compile,
                                   .lasting = true,
                                   .stamp = llvm_stamp};
