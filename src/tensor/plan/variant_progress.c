/* Implements the progress of a variant: adds the kernels of executables before, and leaves out the
   end of an executable that another one follows. Units of an unknown total are passed on. */
#include "tensor/plan/variant_progress.h"

static bool report(void *user, const char *what, uint64_t done, uint64_t total) {
  const variant_progress *p = user;
  if (p->background) return !atomic_load(p->background);
  if (done > total) return p->caller->step(p->caller->user, what, done, total);
  if (p->goes_on && done == total) return true;
  return p->caller->step(p->caller->user, what, p->before + done, p->before + total);
}

void variant_progress_attach(variant_progress *p, executable_request *r) {
  bool is_followed = p->background || p->caller->step;
  p->step = (tn_progress){report, p, NULL};
  r->background = p->background;
  r->progress = is_followed ? &p->step : NULL;
}
