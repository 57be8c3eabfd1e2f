/* A growing byte buffer, tn_output, that renderers, compilers and probes of a backend append to.
   When memory runs out, further bytes are dropped, and output_check reports it. */
#ifndef TENON_DEVICE_CORE_OUTPUT_H
#define TENON_DEVICE_CORE_OUTPUT_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <tenon/unstable/backend.h>

struct tn_output {
  const mem *mem;
  char *at; /* with a NUL at `n`, once bytes were added */
  size_t n, cap;
  bool failed;               /* memory ran out */
  const atomic_bool *cancel; /* the work that fills it may stop once this is set; or NULL */
};

static inline tn_output output_new(const mem *m) { return (tn_output){.mem = m}; }

/** Frees the bytes. */
void output_free(tn_output *o);

/** The bytes, with a NUL behind them; "" if there are none. */
static inline const char *output_text(const tn_output *o) { return o->at ? o->at : ""; }

/** TN_ERR_MEMORY if memory ran out. */
tn_status output_check(const tn_output *o, diag *d);

#endif
