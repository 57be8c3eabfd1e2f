/* Implements modules and programs: code that the driver has loaded, and functions in it. */
#include "device/cuda/cuda_device.h"

#include <stdio.h>
#include <string.h>

typedef struct cuda_loaded {
  cuda_device *device;
  cuda_module module;
} cuda_loaded;

tn_status cuda_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  cuda_device *v = device;
  enum { OPTIONS = 2 };
  char log[1024] = "", call[sizeof log + 64];
  int options[OPTIONS] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
  void *values[OPTIONS] = {log, (void *)(uintptr_t)sizeof log};
  cuda_loaded *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->device = v;
  tn_status status = cuda_enter(v, f);
  if (!status) {
    cuda_status s = v->cu.ModuleLoadDataEx(&m->module, code->data, OPTIONS, options, values);
    log[sizeof log - 1] = 0;
    snprintf(call, sizeof call, *log ? "cuModuleLoadDataEx [%s]" : "cuModuleLoadDataEx", log);
    if (s) status = cuda_fail(v, call, s, TN_ERR_FORMAT, f);
    cuda_leave(v);
  }
  if (status)
    mem_free(&v->mem, m, sizeof *m);
  else
    *module = m;
  return status;
}

void cuda_unload(void *module) {
  cuda_loaded *m = module;
  cuda_device *v = m->device;
  tn_failure unread;
  if (!cuda_enter(v, &unread)) {
    v->cu.ModuleUnload(m->module);
    cuda_leave(v);
  }
  mem_free(&v->mem, m, sizeof *m);
}

tn_status cuda_program_make(void *module, const tn_program_facts *facts, void **program,
                            tn_failure *f) {
  cuda_loaded *m = module;
  cuda_device *v = m->device;
  cuda_program *p = mem_calloc(&v->mem, 1, sizeof *p);
  if (!p) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  p->device = v;
  p->facts = facts;
  tn_status status = cuda_enter(v, f);
  if (!status) {
    cuda_status s = v->cu.ModuleGetFunction(&p->function, m->module, facts->entry);
    if (s) status = cuda_fail(v, "cuModuleGetFunction", s, TN_ERR_FORMAT, f);
    cuda_leave(v);
  }
  if (status)
    cuda_program_free(p);
  else
    *program = p;
  return status;
}

void cuda_program_free(void *program) {
  cuda_program *p = program;
  mem_free(&p->device->mem, p, sizeof *p);
}
