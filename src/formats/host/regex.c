/* Regular expressions by PCRE2 (libpcre2-8), with the meanings that RE2 gives those that it knows:
   `$` is the end alone, classes are those of ASCII. Its functions are declared here as its
   interface, unchanged since 10.30, states them. All its memory is the model's. */
#include "formats/host/regex.h"

#include "base/library.h"

enum { PCRE2_NO_MATCH = -1, PCRE2_NO_MEMORY = -48, PCRE2_COMPILE_NO_MEMORY = 121 };
#define PCRE2_ANCHORED       UINT32_C(0x80000000)
#define PCRE2_NO_UTF_CHECK   UINT32_C(0x40000000)
#define PCRE2_ENDANCHORED    UINT32_C(0x20000000)
#define PCRE2_UTF            UINT32_C(0x00080000)
#define PCRE2_DOLLAR_ENDONLY UINT32_C(0x00000010)

/** The most memory of a search, for what it may have to take back. */
enum { SEARCH_KIB = 64 << 10 };

typedef struct pcre2 {
  void *(*general_create)(void *(*get)(size_t, void *), void (*release)(void *, void *), void *mem);
  void (*general_free)(void *general);
  void *(*compile_context_create)(void *general);
  void (*compile_context_free)(void *context);
  void *(*match_context_create)(void *general);
  void (*match_context_free)(void *context);
  int (*set_heap_limit)(void *context, uint32_t kib);
  void *(*compile)(const uint8_t *pattern, size_t n, uint32_t options, int *error, size_t *offset,
                   void *context);
  void (*code_free)(void *code);
  void *(*match_data_create)(uint32_t pairs, void *general);
  void (*match_data_free)(void *data);
  size_t *(*pairs)(void *data);
  int (*match)(const void *code, const uint8_t *subject, size_t n, size_t start, uint32_t options,
               void *data, void *context);
  int (*message)(int error, uint8_t *text, size_t bytes);
} pcre2;

struct regex {
  pcre2 p;
  const mem *mem;
  void *general, *limits, *code;
};

static tn_status open_pcre2(pcre2 *p, diag *d) {
  static const char *const names[] = {"pcre2_general_context_create_8",
                                      "pcre2_general_context_free_8",
                                      "pcre2_compile_context_create_8",
                                      "pcre2_compile_context_free_8",
                                      "pcre2_match_context_create_8",
                                      "pcre2_match_context_free_8",
                                      "pcre2_set_heap_limit_8",
                                      "pcre2_compile_8",
                                      "pcre2_code_free_8",
                                      "pcre2_match_data_create_8",
                                      "pcre2_match_data_free_8",
                                      "pcre2_get_ovector_pointer_8",
                                      "pcre2_match_8",
                                      "pcre2_get_error_message_8"};
  static const library l = {.file = "libpcre2-8.so.0",
                            .what = "PCRE2, for regular expressions,",
                            .version = "PCRE2 10.30",
                            .hint = "install libpcre2-8-0",
                            .names = names,
                            .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof *p, "a pointer for each name");
  return library_open(&l, p, d) == TN_OK ? TN_OK : diag_complete(d, TN_ERR_UNSUPPORTED);
}

/* Memory: a block is preceded by its size. */

typedef union block {
  size_t bytes;
  max_align_t align;
} block;

static void *get_block(size_t bytes, void *m) {
  block *b = bytes < SIZE_MAX / 2 ? mem_alloc(m, sizeof *b + bytes) : NULL;
  if (!b) return NULL;
  b->bytes = sizeof *b + bytes;
  return b + 1;
}

static void release_block(void *at, void *m) {
  block *b = at;
  if (b) mem_free(m, b - 1, b[-1].bytes);
}

/* Patterns. */

static tn_status fail_pattern(const pcre2 *p, const char *pattern, int error, size_t offset,
                              diag *d) {
  uint8_t text[256] = "";
  if (error == PCRE2_COMPILE_NO_MEMORY) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  p->message(error, text, sizeof text);
  return diag_set(d, TN_ERR_FORMAT, "the pattern '%.200s' is no regular expression: %s at byte %zu",
                  pattern, (const char *)text, offset);
}

static tn_status compile(regex *r, const char *pattern, size_t n, bool is_whole, diag *d) {
  const pcre2 *p = &r->p;
  uint32_t options =
      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | (is_whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
  int error;
  size_t offset;
  r->general = p->general_create(get_block, release_block, (void *)r->mem);
  r->limits = r->general ? p->match_context_create(r->general) : NULL;
  void *context = r->limits ? p->compile_context_create(r->general) : NULL;
  if (!context) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  p->set_heap_limit(r->limits, SEARCH_KIB);
  r->code = p->compile((const uint8_t *)pattern, n, options, &error, &offset, context);
  p->compile_context_free(context);
  return r->code ? TN_OK : fail_pattern(p, pattern, error, offset, d);
}

tn_status regex_open(const mem *m, const char *pattern, size_t n, bool is_whole, regex **out,
                     diag *d) {
  pcre2 p = {0};
  tn_status s = open_pcre2(&p, d);
  *out = NULL;
  if (s != TN_OK) return s;
  regex *r = mem_calloc(m, 1, sizeof *r);
  if (!r) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  *r = (regex){.p = p, .mem = m};
  s = compile(r, pattern, n, is_whole, d);
  if (s == TN_OK)
    *out = r;
  else
    regex_close(r);
  return s;
}

void regex_close(regex *r) {
  if (!r) return;
  if (r->code) r->p.code_free(r->code);
  if (r->limits) r->p.match_context_free(r->limits);
  if (r->general) r->p.general_free(r->general);
  mem_free(r->mem, r, sizeof *r);
}

/* Searches. */

void *regex_scratch_open(const regex *r) { return r->p.match_data_create(1, r->general); }

void regex_scratch_close(const regex *r, void *scratch) {
  if (scratch) r->p.match_data_free(scratch);
}

int regex_find(const regex *r, void *scratch, regex_text *t, size_t from) {
  uint32_t options = t->is_checked ? PCRE2_NO_UTF_CHECK : 0;
  int found = r->p.match(r->code, (const uint8_t *)t->at, t->n, from, options, scratch, r->limits);
  if (found < PCRE2_NO_MATCH) return found;
  t->is_checked = true;
  if (found == PCRE2_NO_MATCH) return 0;
  const size_t *pair = r->p.pairs(scratch);
  t->start = pair[0];
  t->end = pair[1];
  return 1;
}

tn_status regex_fail(const regex *r, int error, size_t i, tn_failure *f) {
  uint8_t text[256] = "";
  if (error == PCRE2_NO_MEMORY) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  r->p.message(error, text, sizeof text);
  return tn_fail(f, TN_ERR_UNSUPPORTED, "string %zu cannot be matched: %s", i, (const char *)text);
}
