/* Kernel caches that callers own (tn_kernel_cache): a registry of devices with a kernel cache of
   its own, which the contexts that are given the cache share, and a folder. */
#ifndef TENON_TENSOR_CONTEXT_CALLER_CACHE_H
#define TENON_TENSOR_CONTEXT_CALLER_CACHE_H

#include "device/registry/device_registry.h"

#include <tenon/cache.h>

/** Retains a cache for a context, and finds its registry, which the first context opens.
    TN_ERR_ARGUMENT, without a reference, where other contexts of it have another number of
    threads. */
tn_status caller_cache_enter(tn_kernel_cache *k, int32_t threads, registry **r, diag *d);

/** Drops the reference of a context. NULL is allowed. */
void caller_cache_leave(tn_kernel_cache *k);

/** The folder of its kernels and plans; "off": none. */
const char *caller_cache_folder(const tn_kernel_cache *k);

#endif
