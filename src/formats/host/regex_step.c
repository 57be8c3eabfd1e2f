/* Implements the host step that matches strings with a pattern. */
#include "formats/host/regex_step.h"

#include "formats/host/regex.h"

void regex_step_close(const void *pattern) { regex_close((regex *)pattern); }

static tn_status match_all(const regex *r, void *scratch, string_table *t, const host_arrays *a,
                           tn_failure *f) {
  const int64_t *x = a->data[0];
  bool *out = a->data[1];
  for (size_t i = 0; i < a->bytes[1]; i++) {
    regex_text text = {0};
    text.at = string_table_get(t, x[i], &text.n);
    if (!text.at)
      return tn_fail(f, TN_ERR_ARGUMENT, "%lld is the number of no string of the model",
                     (long long)x[i]);
    int found = regex_find(r, scratch, &text, 0);
    if (found < 0) return regex_fail(r, found, i, f);
    out[i] = found > 0;
  }
  return TN_OK;
}

tn_status regex_match_all(const void *pattern, string_table *t, const host_arrays *a,
                          tn_failure *f) {
  const regex *r = pattern;
  void *scratch = regex_scratch_open(r);
  if (!scratch) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  tn_status s = match_all(r, scratch, t, a, f);
  regex_scratch_close(r, scratch);
  return s;
}
