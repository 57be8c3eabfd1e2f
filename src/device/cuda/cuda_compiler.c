/* The compiler of the pair cuda/nvrtc: NVRTC, which is looked for when something is compiled, and
   makes code of the device's instructions (a cubin). That loads by the driver alone. */
#include "device/core/output.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvrtc_api.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct cuda_nvrtc {
  mem mem;
  nvrtc_api rtc;
  int major, minor;
} cuda_nvrtc;

/* Rounding as on processors: no contraction, and subnormal numbers, division and root as IEEE 754
   says, which is NVRTC's default. */
static const char *const options[] = {"--std=c++17",     "--fmad=false",     "--ftz=false",
                                      "--prec-div=true", "--prec-sqrt=true", NULL};

static tn_status nvrtc_compiler_open(void *device, const tn_host *host, const char *name,
                                     void **compiler, tn_failure *f) {
  (void)host, (void)name;
  const cuda_device *v = device;
  diag d = {0};
  cuda_nvrtc *c = mem_calloc(&v->mem, 1, sizeof *c);
  if (!c) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  c->mem = v->mem;
  if (nvrtc_open(&c->rtc, &d) || c->rtc.Version(&c->major, &c->minor)) {
    mem_free(&v->mem, c, sizeof *c);
    return tn_fail(f, TN_ERR_COMPILE, "%s", d.status ? d.text : "NVRTC does not tell its version");
  }
  *compiler = c;
  return TN_OK;
}

static void nvrtc_compiler_close(void *compiler) {
  cuda_nvrtc *c = compiler;
  mem m = c->mem;
  mem_free(&m, c, sizeof *c);
}

static tn_status nvrtc_key(void *compiler, const tn_capabilities *caps, tn_output *key,
                           tn_failure *f) {
  (void)f;
  const cuda_nvrtc *c = compiler;
  char text[64];
  int n = snprintf(text, sizeof text, "NVRTC %d.%d %s", c->major, c->minor, caps->target);
  tn_output_add(key, text, (size_t)n);
  for (size_t i = 0; options[i]; i++) {
    tn_output_add(key, " ", 1);
    tn_output_add(key, options[i], strlen(options[i]));
  }
  return TN_OK;
}

/* Finding. */

static tn_status nvrtc_stamp(void *device, const char *name, tn_output *stamp, tn_failure *f) {
  (void)device, (void)name, (void)f;
  char path[TOOLKIT_PATH_BYTES], text[TOOLKIT_PATH_BYTES + 128];
  struct stat s;
  diag none;
  tn_output_add(stamp, "nvrtc\n", 6);
  if (nvrtc_find(path, &none) || stat(path, &s)) return TN_OK;
  int n = snprintf(text, sizeof text, "%s %llu %llu %lld %lld.%09ld\n", path,
                   (unsigned long long)s.st_dev, (unsigned long long)s.st_ino, (long long)s.st_size,
                   (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  tn_output_add(stamp, text, (size_t)n);
  return TN_OK;
}

tn_status cuda_compiler_present(void *device, const char *compiler, tn_failure *f) {
  (void)device, (void)compiler;
  char path[TOOLKIT_PATH_BYTES];
  diag d = {0};
  if (!nvrtc_find(path, &d)) return TN_OK;
  *f = d.failure;
  return d.status;
}

/* Compiling. */

static char *join_sources(const cuda_nvrtc *c, const tn_program_spec *const specs[], size_t n,
                          size_t *bytes) {
  *bytes = 1;
  for (size_t i = 0; i < n; i++) *bytes += specs[i]->source_bytes;
  char *text = mem_alloc(&c->mem, *bytes), *at = text;
  for (size_t i = 0; i < n && text; i++) {
    memcpy(at, specs[i]->source, specs[i]->source_bytes);
    at += specs[i]->source_bytes;
  }
  if (text) *at = 0;
  return text;
}

/** Fails with the compiler's messages. */
static tn_status fail_compile(const cuda_nvrtc *c, nvrtc_program p, nvrtc_status s,
                              const char *names, const char *target, tn_failure *f) {
  char log[1024];
  size_t bytes = 0;
  if (c->rtc.GetProgramLogSize(p, &bytes)) bytes = 0;
  char *all = bytes ? mem_calloc(&c->mem, bytes + 1, 1) : NULL;
  if (all) c->rtc.GetProgramLog(p, all);
  snprintf(log, sizeof log, "%s", all ? all : "");
  mem_free(&c->mem, all, bytes + 1);
  return tn_fail(f, s == NVRTC_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_COMPILE,
                 "NVRTC %d.%d fails with %s for %s (%s): %s", c->major, c->minor,
                 c->rtc.GetErrorString(s), names, target, log);
}

/** Appends the code of a program that is compiled. */
static nvrtc_status add_code(const cuda_nvrtc *c, nvrtc_program p, tn_output *code) {
  size_t bytes = 0;
  nvrtc_status s = c->rtc.GetCUBINSize(p, &bytes);
  if (s) return s;
  char *data = mem_alloc(&c->mem, bytes + 1);
  if (!data) return NVRTC_OUT_OF_MEMORY;
  s = c->rtc.GetCUBIN(p, data);
  if (!s) tn_output_add(code, data, bytes);
  mem_free(&c->mem, data, bytes + 1);
  return s;
}

static tn_status nvrtc_compile(void *compiler, const tn_capabilities *caps,
                               const tn_program_spec *const specs[], size_t n, tn_output *code,
                               tn_failure *f) {
  enum { OPTIONS = sizeof options / sizeof *options };
  const cuda_nvrtc *c = compiler;
  char arch[96], names[160];
  const char *all[OPTIONS];
  nvrtc_program p;
  size_t bytes;
  if (code->cancel && atomic_load(code->cancel))
    return tn_fail(f, TN_ERR_CANCELLED, "compiling was cancelled");
  char *text = join_sources(c, specs, n, &bytes);
  if (!text) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  snprintf(names, sizeof names, n > 1 ? "%.120s and %zu more" : "%.120s", specs[0]->name, n - 1);
  snprintf(arch, sizeof arch, "--gpu-architecture=%s", caps->target);
  for (size_t i = 0; i < OPTIONS - 1; i++) all[i] = options[i];
  all[OPTIONS - 1] = arch;
  nvrtc_status s = c->rtc.CreateProgram(&p, text, "tenon.cu", 0, NULL, NULL);
  mem_free(&c->mem, text, bytes);
  if (s)
    return tn_fail(f, TN_ERR_COMPILE, "nvrtcCreateProgram fails with %s", c->rtc.GetErrorString(s));
  s = c->rtc.CompileProgram(p, OPTIONS, all);
  if (!s) s = add_code(c, p, code);
  tn_status status = s ? fail_compile(c, p, s, names, caps->target, f) : TN_OK;
  c->rtc.DestroyProgram(&p);
  return status;
}

const tn_compiler cuda_compiler = {.size = sizeof cuda_compiler,
                                   .name = "nvrtc",
                                   .kind = TN_CODE_BYTES,
                                   .open = nvrtc_compiler_open,
                                   .close = nvrtc_compiler_close,
                                   .key = nvrtc_key,
                                   .compile = nvrtc_compile,
                                   .lasting = true,
                                   .stamp = nvrtc_stamp};
