/* Implements the refusal of values of ITEMs. */
#include "ir/index/item_bounds.h"

tn_status item_refuse(const char *title, const char *name, int64_t value, int64_t least,
                      int64_t most, diag *d) {
  const char *quote = *name ? "'" : "";
  if (value == ITEM_UNFIT)
    diag_set(d, TN_ERR_SHAPE, "%s%.200s%s%ssizes that the run computed do not fit together", quote,
             name, quote, *name ? ": " : "");
  else
    diag_set(d, TN_ERR_SHAPE,
             "a size is %lld, an element of %s%.200s%s; it must be from %lld to %lld",
             (long long)value, *name ? quote : "a tensor", name, quote, (long long)least,
             (long long)most);
  return title ? diag_prefix(d, "%s", title) : TN_ERR_SHAPE;
}
