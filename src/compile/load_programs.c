/* Loads the programs of published kernels on the device. A file of the disk cache may have code
   that the device loads no more, as after a change of its driver. */
#include "compile/compilation.h"

/** Drops rejected code that was found on disk; false for other code, and for other failures to load
    it. */
static bool drop_rejected(compilation *c, request *r, tn_status status) {
  if (status != TN_ERR_FORMAT && status != TN_ERR_COMPILE) return false;
  if (!kernel_cache_forget(c->cache, r->kernel)) return false;
  if (c->disk) disk_cache_reject(c->disk, &r->key, "no code that the device loads");
  kernel_cache_release(c->cache, r->kernel);
  r->kernel = NULL;
  diag_clear(c->diag);
  return true;
}

tn_status compilation_load_program(compilation *c, size_t i) {
  return kernel_cache_load_program(c->cache, c->work.requests[i].kernel, c->target->device,
                                   &c->work.programs[i], c->diag);
}

size_t compilation_load_programs(compilation *c) {
  const work *w = &c->work;
  size_t dropped = 0;
  for (size_t i = 0; i < w->n; i++) {
    tn_status status = compilation_load_program(c, i);
    if (!status) continue;
    if (!drop_rejected(c, &w->requests[i], status)) diag_rethrow(c->diag);
    dropped++;
  }
  return dropped;
}
