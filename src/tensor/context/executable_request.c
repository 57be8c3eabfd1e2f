/* Compiler settings of a context, for a request to build an executable. */
#include "tensor/context/executable_request.h"

executable_request context_executable_request(tn_context *c, const char *name,
                                              const node *const roots[], size_t n_roots) {
  return (executable_request){.name = name,
                              .roots = roots,
                              .n_roots = n_roots,
                              .target = c->target,
                              .math = (int)c->math,
                              .dump = &c->dump,
                              .progress = c->progress.step ? &c->progress : NULL,
                              .logger = &c->logger,
                              .disk = c->disk,
                              .reports = &c->report_lock};
}
