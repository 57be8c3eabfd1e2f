/* Implements modules and programs: code that the driver has loaded, and functions in it; or a
   product of matrices, which is cuBLAS's. */
#include "device/cuda/cuda_device.h"
#include "device/program/product.h"

#include <stdio.h>
#include <string.h>

typedef struct cuda_loaded {
  cuda_device *device;
  cuda_module module; /* NULL: it is the product */
  tn_product product;
} cuda_loaded;

/** Loads code by the driver; the device is entered. */
static tn_status load_image(cuda_loaded *m, const tn_code *code, tn_failure *f) {
  enum { OPTIONS = 2 };
  char log[1024] = "", call[sizeof log + 64];
  int options[OPTIONS] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
  void *values[OPTIONS] = {log, (void *)(uintptr_t)sizeof log};
  cuda_status s = m->device->cu.ModuleLoadDataEx(&m->module, code->data, OPTIONS, options, values);
  log[sizeof log - 1] = 0;
  snprintf(call, sizeof call, *log ? "cuModuleLoadDataEx [%s]" : "cuModuleLoadDataEx", log);
  return s ? cuda_fail(m->device, call, s, TN_ERR_FORMAT, f) : TN_OK;
}

static tn_status load_product(cuda_loaded *m, const tn_code *code, tn_failure *f) {
  tn_status status = cuda_product_library.open(m->device, f);
  return status ? status : product_read(code, &m->product, f);
}

tn_status cuda_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  cuda_device *v = device;
  cuda_loaded *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->device = v;
  tn_status status = cuda_enter(v, f);
  if (!status) {
    status = code->kind == TN_CODE_PRODUCT ? load_product(m, code, f) : load_image(m, code, f);
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
  if (m->module && !cuda_enter(v, &unread)) {
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
  p->product = m->product;
  tn_status status = m->module ? cuda_enter(v, f) : TN_OK;
  if (!status && m->module) {
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
