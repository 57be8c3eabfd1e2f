/* Fills the compiler settings of a context into a request to build an executable, in one place for
   evaluation (tensor/eval) and plans (tensor/plan). */
#include "tensor/context/fill_build_request.h"

executable_request context_executable_request(tn_context *c, const char *name,
                                              const node *const roots[], size_t n_roots) {
  return (executable_request){.name = name,
                              .roots = roots,
                              .n_roots = n_roots,
                              .target = c->target,
                              .math = (int)c->math,
                              .dump = &c->reports.dump,
                              .progress = c->progress.step ? &c->progress : NULL,
                              .logger = &c->reports.logger,
                              .disk = c->disk,
                              .tuned = {.store = c->tuned, .libraries = c->options.libraries},
                              .stop = stop_after(c->options.compile_seconds),
                              .reports = &c->reports.lock,
                              .more = c->devices.targets,
                              .n_more = atomic_load(&c->devices.n_targets)};
}
