/* Regular expressions by PCRE2 (libpcre2-8), with the meanings that RE2 gives those that it knows:
   `$` is the end alone, classes are those of ASCII. Its functions are declared here as its
   interface, unchanged since 10.0, states them. */
#include "formats/host/regex_step.h"

#include "base/library.h"

#include <stdbool.h>

enum { PCRE2_NO_MATCH = -1 };
#define PCRE2_ANCHORED       UINT32_C(0x80000000)
#define PCRE2_ENDANCHORED    UINT32_C(0x20000000)
#define PCRE2_UTF            UINT32_C(0x00080000)
#define PCRE2_DOLLAR_ENDONLY UINT32_C(0x00000010)

typedef struct pcre2 {
  void *(*compile)(const uint8_t *pattern, size_t n, uint32_t options, int *error, size_t *offset,
                   void *context);
  void (*code_free)(void *code);
  void *(*match_data_create)(const void *code, void *context);
  void (*match_data_free)(void *data);
  int (*match)(const void *code, const uint8_t *subject, size_t n, size_t start, uint32_t options,
               void *data, void *context);
  int (*message)(int error, uint8_t *text, size_t bytes);
} pcre2;

static tn_status open_pcre2(pcre2 *p, diag *d) {
  static const char *const names[] = {
      "pcre2_compile_8",         "pcre2_code_free_8", "pcre2_match_data_create_from_pattern_8",
      "pcre2_match_data_free_8", "pcre2_match_8",     "pcre2_get_error_message_8"};
  static const library l = {.file = "libpcre2-8.so.0",
                            .what = "PCRE2, for regular expressions,",
                            .version = "PCRE2 10.30",
                            .hint = "install libpcre2-8-0",
                            .names = names,
                            .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof *p, "a pointer for each name");
  return library_open(&l, p, d) == TN_OK ? TN_OK : diag_complete(d, TN_ERR_UNSUPPORTED);
}

tn_status regex_open(const char *pattern, size_t n, void **out, diag *d) {
  pcre2 p = {0};
  int error;
  size_t offset;
  uint8_t text[256] = "";
  tn_status s = open_pcre2(&p, d);
  *out = NULL;
  if (s != TN_OK) return s;
  uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_DOLLAR_ENDONLY;
  *out = p.compile((const uint8_t *)pattern, n, options, &error, &offset, NULL);
  if (*out) return TN_OK;
  p.message(error, text, sizeof text);
  return diag_set(d, TN_ERR_FORMAT, "the pattern '%.200s' is no regular expression: %s at byte %zu",
                  pattern, (const char *)text, offset);
}

void regex_close(const void *pattern) {
  pcre2 p = {0};
  diag ignored = {0};
  if (pattern && open_pcre2(&p, &ignored) == TN_OK) p.code_free((void *)pattern);
}

static tn_status match_all(const pcre2 *p, const void *pattern, void *data, string_table *t,
                           const host_arrays *a, tn_failure *f) {
  const int64_t *x = a->data[0];
  bool *out = a->data[1];
  for (size_t i = 0; i < a->bytes[1]; i++) {
    size_t n;
    uint8_t text[256] = "";
    const char *at = string_table_get(t, x[i], &n);
    if (!at)
      return tn_fail(f, TN_ERR_ARGUMENT, "%lld is the number of no string of the model",
                     (long long)x[i]);
    int found = p->match(pattern, (const uint8_t *)at, n, 0, 0, data, NULL);
    out[i] = found >= 0;
    if (found >= PCRE2_NO_MATCH) continue;
    p->message(found, text, sizeof text);
    return tn_fail(f, TN_ERR_UNSUPPORTED, "string %zu cannot be matched: %s", i,
                   (const char *)text);
  }
  return TN_OK;
}

tn_status regex_match_all(const void *pattern, string_table *t, const host_arrays *a,
                          tn_failure *f) {
  pcre2 p = {0};
  diag d = {0};
  if (open_pcre2(&p, &d) != TN_OK) return tn_fail(f, d.status, "%.1500s", d.text);
  void *data = p.match_data_create(pattern, NULL);
  if (!data) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  tn_status s = match_all(&p, pattern, data, t, a, f);
  p.match_data_free(data);
  return s;
}
