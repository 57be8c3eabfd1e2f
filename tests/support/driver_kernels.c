/* Implements runs of rendered kernels by the functions of a backend, and buffers of the
   library's. */
#include "support/driver_kernels.h"

#include "device/core/device.h"
#include "device/core/output.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/stream/immediate_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 16 };

bool driver_kernels_open(driver_kernels *k, const tn_backend *backend) {
  const char *sanitizers = getenv("TENON_SANITIZE");
  *k = (driver_kernels){.backend = backend};
  if (sanitizers && *sanitizers)
    return diag_set(&k->diag, TN_ERR_UNSUPPORTED, "this build has sanitizers") == TN_OK;
  if (registry_open(&k->registry, &(registry_desc){.threads = 1}, &k->diag)) return false;
  if (!registry_open_device(k->registry, backend->name, &k->device, &k->diag)) return true;
  registry_close(k->registry);
  k->registry = NULL;
  return false;
}

void driver_kernels_close(driver_kernels *k) {
  if (k->module) k->backend->unload(k->module);
  registry_close(k->registry);
}

tn_status driver_kernels_compile(driver_kernels *k, const char *target,
                                 const tn_program_spec *const specs[], size_t n) {
  const tn_pair *pair = &k->backend->pairs[0];
  void *compiler, *device = k->device->state;
  tn_capabilities caps = {.size = sizeof caps};
  tn_failure *f = &k->diag.failure;
  tn_output code = output_new(&mem_system);
  diag_clear(&k->diag);
  if (k->module) k->backend->unload(k->module);
  k->module = NULL;
  tn_status status = pair->renderer->describe(device, NULL, &caps, f);
  if (target) snprintf(caps.target, sizeof caps.target, "%s", target);
  if (!status) status = pair->compiler->open(device, &k->device->host, NULL, &compiler, f);
  bool is_open = !status;
  if (!status) status = pair->compiler->compile(compiler, &caps, specs, n, &code, f);
  const tn_code loaded = {TN_CODE_BYTES, code.at, code.n};
  if (!status) status = k->backend->load(device, &loaded, &k->module, f);
  output_free(&code);
  if (is_open && pair->compiler->close) pair->compiler->close(compiler);
  return status;
}

static tn_status run(driver_kernels *k, const tn_program_spec *spec, const tn_launch *l,
                     int64_t groups, int64_t workers) {
  const tn_program_facts facts = {.entry = spec->entry,
                                  .n_globals = spec->n_globals,
                                  .n_values = spec->n_values,
                                  .core_id = spec->core_id,
                                  .value_names = spec->value_names,
                                  .globals = spec->globals};
  tn_failure *f = &k->diag.failure;
  tn_work w = {
      .kind = TN_WORK_EXEC, .global = {groups, 1, 1}, .local = {workers, 1, 1}, .launch = l};
  tn_status status = k->backend->program(k->module, &facts, &w.program, f);
  if (status) return status;
  status = immediate_run(k->device, &w, f);
  k->backend->program_free(w.program);
  return status;
}

tn_status driver_kernels_run(driver_kernels *k, const tn_program_spec *spec, void *const data[],
                             const size_t bytes[], const int64_t values[], int64_t groups,
                             int64_t workers) {
  tn_buffer *buffers[MOST_BUFFERS] = {0};
  tn_span spans[MOST_BUFFERS] = {0};
  tn_status status = TN_OK;
  diag *d = &k->diag;
  size_t n = spec->n_globals;
  for (size_t i = 0; i < n && !status; i++) {
    status = buffer_open(k->device, bytes[i] ? bytes[i] : 1, &buffers[i], d);
    if (!status) status = buffer_span(buffers[i], &spans[i], d);
    if (!status) status = span_write(&spans[i], DT_U8, DT_U8, data[i], bytes[i], d);
  }
  const tn_launch l = {spans, n, values, spec->n_values};
  diag_clear(d);
  if (!status) status = run(k, spec, &l, groups, workers);
  for (size_t i = 0; i < n && !status; i++)
    status = span_read(&spans[i], DT_U8, DT_U8, data[i], bytes[i], d);
  for (size_t i = 0; i < n; i++)
    if (buffers[i]) buffer_release(buffers[i]);
  return status;
}
