/* Implements the NULL backend, for measurements of overhead: a renderer and a compiler that write
   only the kernel's name, and launches that do nothing. */
#include "device/null/null_backend.h"

#include "base/memory_limit.h"
#include "ir/core/op.h"
#include "target/hardware.h"
#include "target/machine.h"

#include <stdint.h>
#include <string.h>

typedef struct null_device {
  mem mem;
} null_device;

static tn_status null_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  (void)index;
  mem m = {host->allocator.alloc, host->allocator.release, host->allocator.user};
  null_device *v = mem_calloc(&m, 1, sizeof *v);
  if (!v) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  v->mem = m;
  *device = v;
  return TN_OK;
}

static void null_close(void *device) {
  mem m = ((null_device *)device)->mem;
  mem_free(&m, device, sizeof(null_device));
}

static tn_status null_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  static const char text[] = "computes nothing";
  (void)index, (void)bytes, (void)f;
  tn_output_add(about, text, sizeof text - 1);
  return TN_OK;
}

static tn_status null_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                            tn_failure *f) {
  (void)use;
  const mem *m = &((null_device *)device)->mem;
  *memory = bytes <= SIZE_MAX ? mem_calloc(m, (size_t)bytes, 1) : NULL;
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (*memory) return TN_OK;
  return tn_fail(f, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(m, bytes, none));
}

static void null_free(void *device, void *memory, uint64_t bytes) {
  mem_free(&((null_device *)device)->mem, memory, (size_t)bytes);
}

static void *null_host(void *device, void *memory) {
  (void)device;
  return memory;
}

static tn_status null_describe(void *device, const char *limit, tn_capabilities *caps,
                               tn_failure *f) {
  (void)device, (void)limit, (void)f;
  memcpy(caps->target, "null", sizeof "null");
  caps->vector_bytes = MACHINE_X86_64_V3_VECTOR_BYTES;
  caps->registers = MACHINE_X86_64_V3_REGISTERS;
  caps->f16_casts = MACHINE_X86_64_V3_F16C;
  caps->threads = true;
  caps->dtypes = UINT64_MAX;
  caps->hardware = hardware_with_defaults(&(tn_hardware){0});
  return TN_OK;
}

/** A kernel's name stands for its source and code, which may not be empty. */
static tn_status null_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                             tn_output *source, tn_failure *f) {
  (void)caps, (void)ir, (void)f;
  tn_output_add(source, spec->entry, strlen(spec->entry));
  return TN_OK;
}

static tn_status null_key(void *compiler, const tn_capabilities *caps, tn_output *key,
                          tn_failure *f) {
  (void)compiler, (void)caps, (void)key, (void)f;
  return TN_OK;
}

static tn_status null_compile(void *compiler, const tn_capabilities *caps,
                              const tn_program_spec *const specs[], size_t n, tn_output *code,
                              tn_failure *f) {
  (void)compiler, (void)caps, (void)f;
  for (size_t i = 0; i < n; i++) tn_output_add(code, specs[i]->source, specs[i]->source_bytes);
  return TN_OK;
}

static tn_status null_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  (void)code, (void)f;
  *module = device;
  return TN_OK;
}

static tn_status null_program(void *module, const tn_program_facts *facts, void **program,
                              tn_failure *f) {
  (void)facts, (void)f;
  *program = module;
  return TN_OK;
}

static void free_nothing(void *arg) { (void)arg; }

static tn_status null_execute(void *device, const tn_work *work, tn_failure *f) {
  (void)device, (void)work, (void)f;
  return TN_OK;
}

static const tn_renderer renderer = {
    .size = sizeof renderer, .name = "null", .describe = null_describe, .render = null_render};

static const tn_compiler compiler = {
    .size = sizeof compiler, .name = "null", .key = null_key, .compile = null_compile};

static const tn_pair pairs[] = {{&renderer, &compiler, NULL}};

const tn_backend null_backend = {.size = sizeof null_backend,
                                 .name = "NULL",
                                 .pairs = pairs,
                                 .n_pairs = 1,
                                 .probe = null_probe,
                                 .open = null_open,
                                 .close = null_close,
                                 .alloc = null_alloc,
                                 .free = null_free,
                                 .host = null_host,
                                 .load = null_load,
                                 .unload = free_nothing,
                                 .program = null_program,
                                 .program_free = free_nothing,
                                 .execute = null_execute};
