/* Writes the kernels and plans of a disk cache for one target to a file, and adds such a file to
   another disk cache: a frozen cache, which a machine without a compiler runs. The file states
   the rows (target_rows.h) that its kernels were made for; an import keeps them, so that the
   kernels are looked up by the facts of the machine that made them. */
#ifndef TENON_COMPILE_FROZEN_CACHE_H
#define TENON_COMPILE_FROZEN_CACHE_H

#include "compile/disk_cache_trim.h"
#include "compile/target_rows.h"

/** Exports the entries for a target, with any facts of a machine, to a file that is replaced as a
    whole; *content counts them. */
tn_status frozen_cache_export(disk_cache *k, const device_target *t, const char *path,
                              disk_cache_usage *content, diag *d);

/** Imports a file; *content counts its entries. A failure adds nothing: TN_ERR_FORMAT for a file
    that is damaged or none of these, TN_ERR_UNSUPPORTED for one of another build or backend, or for
    a processor with features that the device's lacks. */
tn_status frozen_cache_import(disk_cache *k, tn_device *device, const char *path,
                              disk_cache_usage *content, diag *d);

/** The level and the features of a target ("x86-64-v4+avx512vnni") that another lacks, separated by
    commas. In the arena. */
const char *frozen_cache_missing_features(arena *a, const char *wanted, const char *here);

#endif
