/* Bytes that a backend makes: a growing block of memory. */
#ifndef TENON_DEVICE_OUTPUT_H
#define TENON_DEVICE_OUTPUT_H

#include "base/diag.h"
#include "base/mem.h"

#include <tenon/unstable/backend.h>

struct tn_output {
  const mem *mem;
  char *at; /* ends in a NUL beyond `n`, once something was added */
  size_t n, cap;
  bool failed; /* memory ran out */
};

static inline tn_output output_new(const mem *m) { return (tn_output){.mem = m}; }

/** Frees what was made. */
void output_free(tn_output *o);

/** What was made, "" if nothing was. */
static inline const char *output_text(const tn_output *o) { return o->at ? o->at : ""; }

/** TN_ERR_MEMORY if something could not be added. */
tn_status output_check(const tn_output *o, diag *d);

#endif
