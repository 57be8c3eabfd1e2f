/* Implements the refusal of values of ITEMs. */
#include "ir/index/item_bounds.h"

#include <stdbool.h>
#include <stdio.h>

/** Writes which sizes differ; "" where one is too large to be told. */
static void print_difference(int64_t value, char *to, size_t room) {
  int64_t both = ITEM_UNFIT - value, base = ITEM_UNFIT_MOST + 1;
  int64_t x = both / base, y = both % base;
  *to = 0;
  if (x < ITEM_UNFIT_MOST && y < ITEM_UNFIT_MOST)
    snprintf(to, room, ": %lld is not %lld", (long long)x, (long long)y);
}

/** True for the value of a check of sizes that differ. */
static bool is_unfit(int64_t value) {
  const int64_t range = (ITEM_UNFIT_MOST + 1) * (ITEM_UNFIT_MOST + 1);
  return value <= ITEM_UNFIT && value > ITEM_UNFIT - range;
}

/** Writes the bounds; the one alone that the value is beyond where the greatest is below the least,
    as of an empty axis. A variable has the least one as both then. */
static void print_bounds(int64_t value, int64_t least, int64_t most, char *to, size_t room) {
  if (most <= least && value < least)
    snprintf(to, room, "at least %lld", (long long)least);
  else if (most < least)
    snprintf(to, room, "at most %lld", (long long)most);
  else
    snprintf(to, room, "from %lld to %lld", (long long)least, (long long)most);
}

tn_status item_refuse(const char *title, const char *name, int64_t value, int64_t least,
                      int64_t most, diag *d) {
  const char *quote = *name ? "'" : "";
  char difference[64];
  if (is_unfit(value)) {
    print_difference(value, difference, sizeof difference);
    diag_set(d, TN_ERR_SHAPE, "%s%.200s%s%ssizes that the run computed do not fit together%s",
             quote, name, quote, *name ? ": " : "", difference);
  } else {
    char bounds[64];
    print_bounds(value, least, most, bounds, sizeof bounds);
    diag_set(d, TN_ERR_SHAPE, "a size is %lld, an element of %s%.200s%s; it must be %s",
             (long long)value, *name ? quote : "a tensor", name, quote, bounds);
  }
  return title ? diag_prefix(d, "%s", title) : TN_ERR_SHAPE;
}
