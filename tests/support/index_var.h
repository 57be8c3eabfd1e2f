/* Index variables: VARs for sizes that vary. */
#ifndef TENON_TESTS_SUPPORT_INDEX_VAR_H
#define TENON_TESTS_SUPPORT_INDEX_VAR_H

#include "ir/core/ir.h"

#include <string.h>

/** Makes a VAR of type `t` between `min` and `max`. */
static inline const node *make_var(ir *g, dtype t, const char *name, int64_t min, int64_t max) {
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = t,
                                 .ints = (int64_t[]){min, max},
                                 .n_int = 2,
                                 .text = name,
                                 .n_text = strlen(name)});
}

/** Makes an index VAR between `min` and `max`. */
static inline const node *index_var(ir *g, const char *name, int64_t min, int64_t max) {
  return make_var(g, DT_INDEX, name, min, max);
}

#endif
