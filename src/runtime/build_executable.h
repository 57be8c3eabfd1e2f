/* Builds executables: schedules a graph, compiles its kernels, and lists its steps, buffers and
   sizes; or loads all of that from the disk cache. */
#ifndef TENON_RUNTIME_BUILD_EXECUTABLE_H
#define TENON_RUNTIME_BUILD_EXECUTABLE_H

#include "runtime/executable.h"

/** Schedules and compiles, or loads from the disk cache. The caller owns a reference to *out. On
    failure *out is NULL and request->host.release is called. */
tn_status executable_build(executable **out, const executable_request *r, const mem *m, diag *d);

/** Fills the request's view with the schedule that an executable would be built of, and compiles
    nothing. */
tn_status executable_view(const executable_request *r, const mem *m, diag *d);

#endif
