#include "schedule/hardware.h"

/** A range of values, and what is usual. */
typedef struct fact {
  uint64_t least, most, usual;
} fact;

static const uint64_t KIB = 1 << 10, MIB = 1 << 20;

static uint64_t known(uint64_t value, fact f) {
  return value < f.least || value > f.most ? f.usual : value;
}

static uint32_t known_power(uint32_t value, fact f) {
  return (uint32_t)(value & (value - 1) ? f.usual : known(value, f));
}

tn_hardware hardware_known(const tn_hardware *h) {
  tn_hardware k;
  k.l1_bytes = known(h->l1_bytes, (fact){4 * KIB, MIB, 32 * KIB});
  k.l2_bytes = known(h->l2_bytes, (fact){k.l1_bytes, 64 * MIB, MIB});
  k.l3_bytes = known(h->l3_bytes, (fact){k.l1_bytes, 4096 * MIB, 32 * MIB});
  k.line_bytes = known_power(h->line_bytes, (fact){16, KIB, 64});
  k.page_bytes = known_power(h->page_bytes, (fact){KIB, 2 * MIB, 4 * KIB});
  k.cores = (uint32_t)known(h->cores, (fact){1, 4096, 2});
  k.l3_cores = (uint32_t)known(h->l3_cores, (fact){1, k.cores, k.cores});
  return k;
}

double hardware_last_caches(const tn_hardware *h) {
  tn_hardware k = hardware_known(h);
  uint32_t n = k.cores / k.l3_cores;
  return (double)k.l3_bytes * (n ? n : 1);
}

double hardware_first_keeps(const tn_hardware *known) { return 0.75 * (double)known->l1_bytes; }

uint64_t hardware_scratch(const tn_hardware *h, uint64_t most) {
  uint64_t part = hardware_known(h).l2_bytes / 4;
  return most && most < part ? most : part;
}
