/* Chooses a context's target by the rows of its disk cache: the targets, with facts of a machine
   and the identity of a compiler, that kernels in the cache were made for. A row is the file of a
   compiler's identity; those of imported kernels have a stamp of their own. Rows matter in two
   cases alone: where no compiler is there, and where the target is limited to a level that kernels
   were imported for. */
#ifndef TENON_COMPILE_TARGET_ROWS_H
#define TENON_COMPILE_TARGET_ROWS_H

#include "compile/disk_cache.h"
#include "device/core/device_target.h"

/** The target of a description, as device_target_find has it, unless rows of the cache (NULL: none)
    matter. Without a compiler it is a row's target, with the other rows as alternatives. With a
    limit of an imported row it has the row's facts of the machine, and the rows as alternatives. */
tn_status target_rows_choose(tn_device *device, const device_target_desc *desc, disk_cache *disk,
                             const device_target **target, diag *d);

#endif
