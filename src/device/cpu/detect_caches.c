/* Reads the sizes of caches from cpuinfo: L1 and L2 as the share of one core, L3 whole, with the
   number of cores that share it. */
#include "device/cpu/detect_caches.h"

#include <cpuinfo.h>
#include <unistd.h>

typedef const struct cpuinfo_cache *cache_at(uint32_t i);

/** The number of physical cores that share a cache. */
static uint32_t count_sharing_cores(const struct cpuinfo_cache *c) {
  const struct cpuinfo_core *last = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->processor_count; i++) {
    const struct cpuinfo_processor *p = cpuinfo_get_processor(c->processor_start + i);
    n += p && p->core != last;
    if (p) last = p->core;
  }
  return n ? n : 1;
}

/** The smallest share of a core in one of n caches, in bytes; 0: not known. */
static uint64_t least_share(cache_at *at, uint32_t n) {
  uint64_t least = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t share = at(i)->size / count_sharing_cores(at(i));
    if (!i || share < least) least = share;
  }
  return least;
}

static void set_last_level(tn_hardware *h) {
  for (uint32_t i = 0; i < cpuinfo_get_l3_caches_count(); i++) {
    const struct cpuinfo_cache *c = cpuinfo_get_l3_cache(i);
    if (i && c->size >= h->l3_bytes) continue;
    h->l3_bytes = c->size;
    h->l3_cores = count_sharing_cores(c);
  }
}

tn_hardware cpu_hardware(void) {
  tn_hardware h = {0};
  long page = sysconf(_SC_PAGESIZE);
  if (page > 0 && page <= UINT32_MAX) h.page_bytes = (uint32_t)page;
  if (!cpuinfo_initialize()) return h;
  h.cores = cpuinfo_get_cores_count();
  h.l1_bytes = least_share(cpuinfo_get_l1d_cache, cpuinfo_get_l1d_caches_count());
  h.l2_bytes = least_share(cpuinfo_get_l2_cache, cpuinfo_get_l2_caches_count());
  if (cpuinfo_get_l1d_caches_count()) h.line_bytes = cpuinfo_get_l1d_cache(0)->line_size;
  set_last_level(&h);
  return h;
}
