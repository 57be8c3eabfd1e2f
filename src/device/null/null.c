#include "device/null/null.h"

#include "base/mem.h"
#include "ir/op.h"

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

static tn_status null_alloc(void *device, uint64_t bytes, void **memory, tn_failure *f) {
  *memory = bytes <= SIZE_MAX ? mem_calloc(&((null_device *)device)->mem, (size_t)bytes, 1) : NULL;
  char none[MEM_TEXT];
  return *memory ? TN_OK : tn_fail(f, TN_ERR_MEMORY, "%s", mem_none(bytes, none));
}

static void null_free(void *device, void *memory, uint64_t bytes) {
  mem_free(&((null_device *)device)->mem, memory, (size_t)bytes);
}

static void *null_host(void *device, void *memory) {
  (void)device;
  return memory;
}

/** What it is taken for, on any machine. */
static const tn_hardware hardware = {.l1_bytes = 32 << 10,
                                     .l2_bytes = 1 << 20,
                                     .l3_bytes = 32 << 20,
                                     .l3_cores = 2,
                                     .line_bytes = 64,
                                     .page_bytes = 4096,
                                     .cores = 2};

static tn_status null_describe(void *device, const char *limit, tn_capabilities *caps,
                               tn_failure *f) {
  (void)device, (void)limit, (void)f;
  memcpy(caps->target, "null", sizeof "null");
  caps->vector_bytes = 32;
  caps->registers = 16;
  caps->threads = true;
  caps->dtypes = UINT64_MAX;
  caps->hardware = hardware;
  return TN_OK;
}

/** Source and code are names: neither may be empty. */
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

static void null_drop(void *arg) { (void)arg; }

static tn_status null_execute(void *program, const tn_launch *launch, const int64_t global[3],
                              const int64_t *local, tn_failure *f) {
  (void)program, (void)launch, (void)global, (void)local, (void)f;
  return TN_OK;
}

static const tn_renderer renderer = {
    .size = sizeof renderer, .name = "null", .describe = null_describe, .render = null_render};

static const tn_compiler compiler = {
    .size = sizeof compiler, .name = "null", .key = null_key, .compile = null_compile};

static const tn_pair pairs[] = {{&renderer, &compiler}};

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
                                 .unload = null_drop,
                                 .program = null_program,
                                 .program_free = null_drop,
                                 .execute = null_execute};
