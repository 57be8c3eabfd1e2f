/* The pairs opencl/driver and opencl-teams/driver: render kernels as OpenCL C, which the device's
   driver compiles, and make programs of the result. A processor runs the workers of a group one
   after the other, on a core with vectors and caches of its own, so the first pair divides kernels
   among threads there, each a group of one worker. The second has groups on any device. Code is the
   driver's binary, or, where the driver gives none, the source, after two letters: which of both it
   is, and whether division is the driver's. */
#include "device/core/output.h"
#include "device/core/render_source.h"
#include "device/opencl/opencl_device.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "target/machine.h"

#include <stdio.h>
#include <string.h>

/* Rendering. */

/** Bytes of a kernel's arguments: left for its values, and of each buffer. Every driver takes
    LEAST_BYTES; more than MOST_BYTES are of no use. */
enum { VALUE_BYTES = 256, BUFFER_BYTES = 16, LEAST_BYTES = 1024, MOST_BYTES = 1 << 16 };

static uint64_t types_of(const opencl_facts *k) {
  return k->has_double ? render_dtypes() : render_dtypes() & ~(UINT64_C(1) << TN_F64);
}

static uint32_t vector_bytes(const opencl_facts *k) {
  return k->vector_floats > 1 ? k->vector_floats * (uint32_t)sizeof(float) : 0;
}

/** Cores with vectors, which share a kernel's units. */
static void describe_threads(const opencl_facts *k, tn_capabilities *caps) {
  caps->vector_bytes = vector_bytes(k);
  caps->registers = caps->vector_bytes < MACHINE_X86_64_V4_VECTOR_BYTES
                        ? MACHINE_GENERIC_REGISTERS
                        : MACHINE_X86_64_V4_REGISTERS;
  caps->threads = true;
  caps->max_scratch = MACHINE_TEAM_PRIVATE_BYTES;
}

static void describe_teams(const opencl_facts *k, tn_capabilities *caps) {
  size_t workers = opencl_is_processor(k) ? MACHINE_TEAM_WORKERS_CPU : MACHINE_TEAM_WORKERS;
  caps->team_workers = (uint32_t)(k->workers < workers ? k->workers : workers);
  caps->vector_bytes = opencl_is_processor(k) ? vector_bytes(k) : MACHINE_TEAM_VECTOR_BYTES;
  caps->registers = MACHINE_TEAM_REGISTERS;
  caps->group_bytes = k->group_bytes;
  caps->max_scratch = MACHINE_TEAM_PRIVATE_BYTES / caps->team_workers;
}

static void describe(const opencl_device *v, bool has_threads, tn_capabilities *caps) {
  const opencl_facts *k = &v->facts;
  if (has_threads)
    describe_threads(k, caps);
  else
    describe_teams(k, caps);
  snprintf(caps->target, sizeof caps->target, "opencl%s%s%s%s", k->has_double ? "+double" : "",
           k->is_rounded ? "+rounded" : "", k->has_subnormals ? "" : "+flush",
           has_threads ? "+threads" : "");
  caps->max_lanes = c_opencl.most_lanes;
  caps->index32 = true;
  size_t bytes = k->parameter_bytes > LEAST_BYTES ? k->parameter_bytes : LEAST_BYTES;
  if (bytes > MOST_BYTES) bytes = MOST_BYTES;
  caps->max_buffers = (uint32_t)((bytes - VALUE_BYTES) / BUFFER_BYTES);
  caps->dtypes = types_of(k);
  caps->lacks = v->lacks;
  caps->hardware =
      (tn_hardware){.l3_bytes = k->cache_bytes, .line_bytes = k->line_bytes, .cores = k->units};
}

static tn_status opencl_describe(void *device, const char *limit, tn_capabilities *caps,
                                 tn_failure *f) {
  (void)limit, (void)f;
  const opencl_device *v = device;
  describe(v, opencl_is_processor(&v->facts), caps);
  return TN_OK;
}

static tn_status opencl_describe_teams(void *device, const char *limit, tn_capabilities *caps,
                                       tn_failure *f) {
  (void)limit, (void)f;
  describe(device, false, caps);
  return TN_OK;
}

static void write_program(const tn_capabilities *caps, const tn_program_spec *spec, str *out) {
  (void)caps;
  render_c(spec->ast->src[2], spec, &c_opencl, out);
}

static tn_status opencl_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                               tn_output *source, tn_failure *f) {
  return render_source(write_program, caps, ir, spec, source, f);
}

static void write_prelude(str *out) { render_c_prelude(&c_opencl, out); }

static tn_status opencl_prelude(const tn_capabilities *caps, tn_output *text, tn_failure *f) {
  (void)caps;
  return render_prelude(write_prelude, text, f);
}

const tn_renderer opencl_renderer = {.size = sizeof opencl_renderer,
                                     .name = "opencl",
                                     .describe = opencl_describe,
                                     .render = opencl_render,
                                     .prelude = opencl_prelude};

const tn_renderer opencl_teams_renderer = {.size = sizeof opencl_teams_renderer,
                                           .name = "opencl-teams",
                                           .describe = opencl_describe_teams,
                                           .render = opencl_render,
                                           .prelude = opencl_prelude};

/* Compiling. */

enum { CODE_BINARY = 'B', CODE_SOURCE = 'S', CODE_ROUNDED = 'R', CODE_NOT_ROUNDED = '-' };
enum { CODE_HEAD = 2 };

static void add_head(tn_output *code, char kind, bool is_rounded) {
  const char head[CODE_HEAD] = {kind, is_rounded ? CODE_ROUNDED : CODE_NOT_ROUNDED};
  tn_output_add(code, head, sizeof head);
}

static const char *options_of(bool is_rounded) {
  return is_rounded ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -DROUNDED"
                    : "-cl-std=CL1.2";
}

/** The compiler is the device's. */
static tn_status compiler_open(void *device, const tn_host *host, const char *name, void **compiler,
                               tn_failure *f) {
  (void)host, (void)name, (void)f;
  *compiler = device;
  return TN_OK;
}

static bool asks_rounded(const tn_capabilities *caps) { return strstr(caps->target, "+rounded"); }

static tn_status compiler_key(void *compiler, const tn_capabilities *caps, tn_output *key,
                              tn_failure *f) {
  (void)f;
  const opencl_facts *k = &((const opencl_device *)compiler)->facts;
  const char *const texts[] = {k->platform_name, k->name, k->driver,
                               options_of(asks_rounded(caps))};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (i) tn_output_add(key, "\n", 1);
    tn_output_add(key, texts[i], strlen(texts[i]));
  }
  return TN_OK;
}

/** Fails with the driver's messages about a program. */
static tn_status fail_build(const opencl_device *v, cl_program p, const char *call, cl_status s,
                            const char *names, tn_failure *f) {
  char log[1024], text[OPENCL_STATUS_BYTES];
  size_t bytes = 0;
  v->cl.GetProgramBuildInfo(p, v->facts.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  char *all = bytes ? mem_calloc(&v->mem, bytes + 1, 1) : NULL;
  if (all) v->cl.GetProgramBuildInfo(p, v->facts.id, CL_PROGRAM_BUILD_LOG, bytes, all, NULL);
  snprintf(log, sizeof log, "%s", all ? all : "");
  mem_free(&v->mem, all, bytes + 1);
  return tn_fail(f, TN_ERR_COMPILE, "OPENCL:%d (%s): %s of %s fails with %s: %s", (int)v->index,
                 v->facts.name, call, names, opencl_status_name(s, text), log);
}

static tn_status build(const opencl_device *v, cl_program p, const char *options, const char *names,
                       tn_failure *f) {
  cl_status s = v->cl.BuildProgram(p, 1, &v->facts.id, options, NULL, NULL);
  return s ? fail_build(v, p, "clBuildProgram", s, names, f) : TN_OK;
}

/** Appends a program's binary, if the driver gives it; false: it does not. */
static bool add_binary(const opencl_device *v, cl_program p, bool is_rounded, tn_output *code) {
  size_t bytes = 0;
  if (v->cl.GetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) || !bytes)
    return false;
  unsigned char *data = mem_alloc(&v->mem, bytes);
  bool has = data && !v->cl.GetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
  if (has) add_head(code, CODE_BINARY, is_rounded);
  if (has) tn_output_add(code, data, bytes);
  mem_free(&v->mem, data, bytes);
  return has;
}

/** Source texts of kernels, with the prelude first. */
typedef struct sources {
  size_t n;
  const char **texts;
  size_t *bytes;
} sources;

static tn_status build_sources(const opencl_device *v, const tn_capabilities *caps,
                               const sources *s, const char *names, tn_output *code,
                               tn_failure *f) {
  cl_status e = 0;
  cl_program p = v->cl.CreateProgramWithSource(v->context, (uint32_t)s->n, s->texts, s->bytes, &e);
  if (!p) return opencl_fail(v, "clCreateProgramWithSource", e, TN_ERR_COMPILE, f);
  bool is_rounded = asks_rounded(caps);
  tn_status status = build(v, p, options_of(is_rounded), names, f);
  if (!status && !add_binary(v, p, is_rounded, code)) {
    add_head(code, CODE_SOURCE, is_rounded);
    for (size_t i = 0; i < s->n; i++) tn_output_add(code, s->texts[i], s->bytes[i]);
  }
  v->cl.ReleaseProgram(p);
  return status;
}

static tn_status opencl_compile(void *compiler, const tn_capabilities *caps,
                                const tn_program_spec *const specs[], size_t n, tn_output *code,
                                tn_failure *f) {
  const opencl_device *v = compiler;
  if (code->cancel && atomic_load(code->cancel))
    return tn_fail(f, TN_ERR_CANCELLED, "compiling was cancelled");
  tn_output prelude = output_new(&v->mem);
  tn_status status = opencl_prelude(caps, &prelude, f);
  sources s = {n + 1, mem_calloc(&v->mem, n + 1, sizeof *s.texts),
               mem_calloc(&v->mem, n + 1, sizeof *s.bytes)};
  if (!status && (!s.texts || !s.bytes || prelude.failed))
    status = tn_fail(f, TN_ERR_MEMORY, "out of memory");
  if (!status) {
    char names[160];
    snprintf(names, sizeof names, n > 1 ? "%.120s and %zu more" : "%.120s", specs[0]->name, n - 1);
    s.texts[0] = output_text(&prelude), s.bytes[0] = prelude.n;
    for (size_t i = 0; i < n; i++)
      s.texts[i + 1] = specs[i]->source, s.bytes[i + 1] = specs[i]->source_bytes;
    status = build_sources(v, caps, &s, names, code, f);
  }
  mem_free(&v->mem, s.texts, (n + 1) * sizeof *s.texts);
  mem_free(&v->mem, s.bytes, (n + 1) * sizeof *s.bytes);
  output_free(&prelude);
  return status;
}

const tn_compiler opencl_compiler = {.size = sizeof opencl_compiler,
                                     .name = "driver",
                                     .kind = TN_CODE_BYTES,
                                     .open = compiler_open,
                                     .key = compiler_key,
                                     .compile = opencl_compile,
                                     .lasting = true};

/* Programs. */

typedef struct opencl_module {
  opencl_device *device;
  cl_program program;
} opencl_module;

static cl_program create(const opencl_device *v, const tn_code *code, cl_status *s) {
  const char *text = (const char *)code->data + CODE_HEAD;
  size_t bytes = code->bytes - CODE_HEAD;
  if (*(const char *)code->data == CODE_SOURCE)
    return v->cl.CreateProgramWithSource(v->context, 1, &text, &bytes, s);
  cl_status own = 0;
  const unsigned char *binary = (const unsigned char *)text;
  return v->cl.CreateProgramWithBinary(v->context, 1, &v->facts.id, &bytes, &binary, &own, s);
}

tn_status opencl_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  opencl_device *v = device;
  cl_status s = 0;
  const char *head = code->data;
  if (code->bytes <= CODE_HEAD) return tn_fail(f, TN_ERR_FORMAT, "the code is damaged");
  opencl_module *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->device = v;
  m->program = create(v, code, &s);
  tn_status status =
      m->program ? build(v, m->program, options_of(head[1] == CODE_ROUNDED), "loaded code", f)
                 : opencl_fail(v, "clCreateProgramWithBinary", s, TN_ERR_FORMAT, f);
  if (status)
    opencl_unload(m);
  else
    *module = m;
  return status;
}

void opencl_unload(void *module) {
  opencl_module *m = module;
  if (m->program) m->device->cl.ReleaseProgram(m->program);
  mem_free(&m->device->mem, m, sizeof *m);
}

/** Refuses a kernel whose groups the device cannot run, as registers are too few. */
static tn_status check_group(const opencl_program *p, tn_failure *f) {
  const opencl_device *v = p->device;
  size_t wanted[3] = {0}, most = 0;
  v->cl.GetKernelWorkGroupInfo(p->kernel, v->facts.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                               sizeof wanted, wanted, NULL);
  if (v->cl.GetKernelWorkGroupInfo(p->kernel, v->facts.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most,
                                   &most, NULL) ||
      wanted[0] <= most)
    return TN_OK;
  return tn_fail(
      f, TN_ERR_UNSUPPORTED,
      "OPENCL:%d (%s): the kernel %s needs groups of %zu workers, and the device runs it "
      "with %zu at most",
      (int)v->index, v->facts.name, p->facts->entry, wanted[0], most);
}

tn_status opencl_program_make(void *module, const tn_program_facts *facts, void **program,
                              tn_failure *f) {
  opencl_module *m = module;
  opencl_device *v = m->device;
  cl_status s = 0;
  opencl_program *p = mem_calloc(&v->mem, 1, sizeof *p);
  if (!p) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  p->device = v;
  p->facts = facts;
  mutex_init(&p->lock);
  p->kernel = v->cl.CreateKernel(m->program, facts->entry, &s);
  tn_status status =
      p->kernel ? check_group(p, f) : opencl_fail(v, "clCreateKernel", s, TN_ERR_FORMAT, f);
  if (status)
    opencl_program_free(p);
  else
    *program = p;
  return status;
}

void opencl_program_free(void *program) {
  opencl_program *p = program;
  if (p->kernel) p->device->cl.ReleaseKernel(p->kernel);
  mutex_free(&p->lock);
  mem_free(&p->device->mem, p, sizeof *p);
}
