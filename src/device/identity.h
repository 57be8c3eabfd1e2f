/* What identifies a target's compiler, for keys. One that can be told by its stamp is asked once
   for each stamp: what it says is kept on disk, and who finds it there need not even open it. */
#ifndef TENON_DEVICE_IDENTITY_H
#define TENON_DEVICE_IDENTITY_H

#include "device/device.h"
#include "device/disk.h"

/** Where compilers are asked. Both functions raise through the arena. */
typedef struct identity_ask {
  const device_target *target;
  disk *disk; /* NULL: nothing is kept */
  arena *arena;
  tn_output *output; /* empty, and is so again unless something is raised */
} identity_ask;

/** What the compiler of a target says of itself, or said to an earlier process. Stays as long as
   the target. */
const char *identity_get(const identity_ask *q);

/** Opens the compiler, and asks it if `identity` is only remembered. *is_same: it says that indeed;
    else keys made of `identity` are another compiler's, and identity_get is right from now on. */
void *identity_confirm(const identity_ask *q, const char *identity, bool *is_same);

#endif
