/* Public function of the tuner: tn_tune. */
#include "tensor/context/descriptor.h"
#include "tune/tuner.h"

#include <math.h>

static tn_status tune(tn_binding *b, const tn_tune_desc *desc, tn_tuning *result) {
  tn_tune_desc o = TN_TUNE_DESC_INIT;
  tn_tuning info = TN_TUNING_INIT;
  tn_status s = descriptor_read(&b->diag, &o, desc, sizeof o, "tn_tune_desc");
  if (s == TN_OK && !(o.seconds >= 0 && isfinite(o.seconds)))
    s = diag_set(&b->diag, TN_ERR_ARGUMENT, "%g is no number of seconds", o.seconds);
  if (s == TN_OK && result) s = descriptor_write(&b->diag, result, &info, sizeof info, "tn_tuning");
  if (s == TN_OK) s = binding_check_caller(b);
  if (s != TN_OK) return s;
  s = tuner_run(b, &o, &info);
  if (result) descriptor_write(&(diag){0}, result, &info, sizeof info, "tn_tuning");
  return s;
}

tn_status tn_tune(tn_binding *b, const tn_tune_desc *desc, tn_tuning *result) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = binding_show_failure(b, tune(b, desc, result));
  binding_leave(b);
  return s;
}
