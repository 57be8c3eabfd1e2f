/* Finds the identity of a target's compiler (kind, version, flags), which is part of every kernel's
   cache key. A compiler with a fingerprint (its programs' paths, sizes and times: `stamp`) is asked
   once for each fingerprint: the disk cache keeps the answer, so a later process need not even
   start it. */
#ifndef TENON_COMPILE_COMPILER_IDENTITY_CACHE_H
#define TENON_COMPILE_COMPILER_IDENTITY_CACHE_H

#include "compile/disk_cache.h"
#include "device/core/device_target.h"

/** A target, and the means to ask its compiler. Both functions raise through the arena. */
typedef struct compiler_identity_request {
  const device_target *target;
  disk_cache *disk; /* NULL: identities are not kept */
  arena *arena;
  tn_output *output; /* empty before and, unless a failure is raised, after */
} compiler_identity_request;

/** The identity of a target's compiler, as it states it now or stated it to an earlier process.
    Lives as long as the target. */
const char *compiler_identity_get(const compiler_identity_request *q);

/** Opens the compiler, and asks it if `identity` is from the disk. *is_same: it states the same;
    else keys made with `identity` are another compiler's, and compiler_identity_get returns the
    right one from now on. */
void *compiler_identity_confirm(const compiler_identity_request *q, const char *identity,
                                bool *is_same);

#endif
