/* Estimates a size that is known only at run time for cost models: a typical value, clamped to the
   size's bounds. */
#include "schedule/core/size_estimate.h"

#include "target/machine.h"

double size_estimate(const node *size) {
  if (size->lo == size->hi) return (double)size->hi;
  int64_t least = size->lo > 1 ? size->lo : 1;
  if (least >= MACHINE_TYPICAL_SIZE) return (double)least;
  return size->hi < MACHINE_TYPICAL_SIZE ? (double)size->hi : MACHINE_TYPICAL_SIZE;
}
