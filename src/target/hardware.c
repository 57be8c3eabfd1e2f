/* Replaces unknown or implausible hardware facts by defaults, and computes the shares of caches
   that cost estimates count with (machine.def). */
#include "target/hardware.h"

#include "target/machine.h"

#include <math.h>
#include <string.h>

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/** A reported value, or the default where it lies outside of its plausible range. */
static uint64_t value_in_range(uint64_t value, uint64_t least, uint64_t most, uint64_t usual) {
  return value < least || value > most ? usual : value;
}

/** A reported power of two, or the default. */
static uint32_t power_in_range(uint32_t value, uint64_t least, uint64_t most, uint64_t usual) {
  return (uint32_t)(value & (value - 1) ? usual : value_in_range(value, least, most, usual));
}

tn_hardware hardware_with_defaults(const tn_hardware *h) {
  tn_hardware k;
  k.l1_bytes = value_in_range(h->l1_bytes, MACHINE_L1_BYTES_LEAST, MACHINE_L1_BYTES_MOST,
                              MACHINE_L1_BYTES_DEFAULT);
  k.l2_bytes = value_in_range(h->l2_bytes, larger(k.l1_bytes, MACHINE_L2_BYTES_LEAST),
                              MACHINE_L2_BYTES_MOST, MACHINE_L2_BYTES_DEFAULT);
  k.l3_bytes = value_in_range(h->l3_bytes, larger(k.l1_bytes, MACHINE_L3_BYTES_LEAST),
                              MACHINE_L3_BYTES_MOST, MACHINE_L3_BYTES_DEFAULT);
  k.line_bytes = power_in_range(h->line_bytes, MACHINE_LINE_BYTES_LEAST, MACHINE_LINE_BYTES_MOST,
                                MACHINE_LINE_BYTES_DEFAULT);
  k.page_bytes = power_in_range(h->page_bytes, MACHINE_PAGE_BYTES_LEAST, MACHINE_PAGE_BYTES_MOST,
                                MACHINE_PAGE_BYTES_DEFAULT);
  k.cores = (uint32_t)value_in_range(h->cores, MACHINE_CORES_LEAST, MACHINE_CORES_MOST,
                                     MACHINE_CORES_DEFAULT);
  k.l3_cores = (uint32_t)value_in_range(h->l3_cores, 1, k.cores, k.cores);
  k.l3_bytes =
      smaller(k.l3_bytes, larger(k.l2_bytes, (uint64_t)k.l3_cores * MACHINE_L3_CORE_BYTES));
  return k;
}

double hardware_llc_bytes(const tn_hardware *h) {
  tn_hardware k = hardware_with_defaults(h);
  uint32_t n = k.cores / k.l3_cores;
  return (double)k.l3_bytes * (n ? n : 1);
}

double hardware_l1_resident_bytes(const tn_hardware *known) {
  return MACHINE_L1_RESIDENT_SHARE * (double)known->l1_bytes;
}

double hardware_rows_bytes(const tn_hardware *known, int64_t apart, double rows) {
  enum { MOST_ROWS = 1 << 12, MOST_SETS = 1 << 10 };
  uint16_t held[MOST_SETS];
  size_t most = 0, sets = known->page_bytes / known->line_bytes;
  size_t n = rows < MOST_ROWS ? (size_t)rows : MOST_ROWS;
  if (apart < 0) apart = -apart;
  if ((uint64_t)apart < known->line_bytes || sets > MOST_SETS || !n) return (double)apart * rows;
  memset(held, 0, sets * sizeof *held);
  for (size_t i = 0; i < n; i++) {
    size_t set = i * (size_t)apart % known->page_bytes / known->line_bytes;
    if (++held[set] > most) most = held[set];
  }
  return (double)(most * known->page_bytes) * rows / (double)n;
}

double hardware_pages_read(double page, double apart, double rows) {
  double share = page > 0 ? fabs(apart) / page : 0;
  return share > MACHINE_PAGE_STEP_LEAST ? (share < 1 ? share : 1) * rows : 0;
}

uint64_t hardware_scratch_bytes(const tn_hardware *h, uint64_t most) {
  uint64_t part = (uint64_t)(MACHINE_SCRATCH_L2_SHARE * (double)hardware_with_defaults(h).l2_bytes);
  return most && most < part ? most : part;
}
