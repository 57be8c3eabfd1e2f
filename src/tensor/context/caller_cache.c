/* Implements kernel caches of callers. The registry is opened with the threads of the first
   context, and closed with the last reference: that of the caller or of a context. */
#include "tensor/context/caller_cache.h"

#include "base/thread.h"
#include "compile/kernel_cache.h"
#include "tensor/context/descriptor.h"

#include <stdatomic.h>

struct tn_kernel_cache {
  atomic_size_t count; /* references */
  mutex lock;          /* of the two below */
  registry *registry;  /* NULL: no context so far */
  int32_t threads;     /* of its contexts, as in tn_open_desc */
  uint64_t kernels, bytes;
  char *folder; /* NULL: none */
};

tn_status tn_kernel_cache_open(const tn_kernel_cache_desc *desc, tn_kernel_cache **out) {
  diag d = {0};
  tn_kernel_cache_desc o = TN_KERNEL_CACHE_DESC_INIT;
  if (!out) return TN_ERR_ARGUMENT;
  *out = NULL;
  tn_status s = descriptor_read(&d, &o, desc, sizeof o, "tn_kernel_cache_desc");
  if (s != TN_OK) return s;
  tn_kernel_cache *k = mem_calloc(&mem_system, 1, sizeof *k);
  if (!k) return TN_ERR_MEMORY;
  atomic_init(&k->count, 1);
  mutex_init(&k->lock);
  k->kernels = o.kernels;
  k->bytes = o.bytes;
  k->folder = o.folder ? mem_strdup(&mem_system, o.folder) : NULL;
  if (o.folder && !k->folder) {
    tn_kernel_cache_free(k);
    return TN_ERR_MEMORY;
  }
  *out = k;
  return TN_OK;
}

void caller_cache_leave(tn_kernel_cache *k) {
  if (!k || atomic_fetch_sub(&k->count, 1) != 1) return;
  registry_close(k->registry);
  mutex_free(&k->lock);
  mem_strfree(&mem_system, k->folder);
  mem_free(&mem_system, k, sizeof *k);
}

void tn_kernel_cache_free(tn_kernel_cache *k) { caller_cache_leave(k); }

const char *caller_cache_folder(const tn_kernel_cache *k) { return k->folder ? k->folder : "off"; }

static size_t limit_of(uint64_t n) { return n < SIZE_MAX ? (size_t)n : SIZE_MAX; }

/** Under the lock. */
static tn_status open_registry(tn_kernel_cache *k, int32_t threads, diag *d) {
  tn_status s = registry_open(&k->registry, &(registry_desc){.threads = threads}, d);
  if (s != TN_OK) return s;
  kernel_cache *own = kernel_cache_of(k->registry);
  if (own) {
    kernel_cache_set_limits(own, limit_of(k->kernels), limit_of(k->bytes));
    k->threads = threads;
    return TN_OK;
  }
  registry_close(k->registry);
  k->registry = NULL;
  return diag_set(d, TN_ERR_MEMORY, "out of memory");
}

tn_status caller_cache_enter(tn_kernel_cache *k, int32_t threads, registry **r, diag *d) {
  tn_status s = TN_OK;
  mutex_lock(&k->lock);
  if (!k->registry)
    s = open_registry(k, threads, d);
  else if (k->threads != threads)
    s = diag_set(d, TN_ERR_ARGUMENT,
                 "the contexts of a kernel cache share their threads: %d, not %d", (int)k->threads,
                 (int)threads);
  *r = k->registry;
  mutex_unlock(&k->lock);
  if (s == TN_OK) atomic_fetch_add(&k->count, 1);
  return s;
}
