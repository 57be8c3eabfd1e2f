/* Splits the text of a SINK, a kernel's root node, into the kernel's name, which ends at the first
   newline, and its schedule, which is all that follows; renames ranges in the schedule. */
#include "ir/text/sink_text.h"

#include "base/str.h"

#include <string.h>

static size_t sink_name_bytes(const node *sink) {
  const char *end = sink->n_text ? memchr(sink->text, '\n', sink->n_text) : NULL;
  return end ? (size_t)(end - sink->text) : sink->n_text;
}

const char *sink_name(arena *a, const node *sink) {
  size_t bytes = sink_name_bytes(sink);
  return bytes == sink->n_text ? sink->text : arena_printf(a, "%.*s", (int)bytes, sink->text);
}

const char *sink_schedule(const node *sink, size_t *bytes) {
  size_t name = sink_name_bytes(sink);
  if (name == sink->n_text) return NULL;
  *bytes = sink->n_text - name - 1;
  return sink->text + name + 1;
}

const node *sink_with_schedule(ir *g, const node *sink, const char *lines, size_t bytes) {
  str text = str_new(ir_arena(g));
  str_add_bytes(&text, sink->text, sink_name_bytes(sink));
  if (lines) str_add(&text, "\n");
  if (lines) str_add_bytes(&text, lines, bytes);
  node_spec s = node_spec_with_sources(sink, sink->src, sink->n_src);
  s.text = str_text(&text);
  s.n_text = text.n;
  return ir_make(g, &s);
}

/** Number of digits of the range name ("r12") that begins at `at`; 0 if none does. */
static size_t range_digits(const char *lines, size_t bytes, size_t at) {
  enum { MOST_DIGITS = 18 };
  size_t end = at + 1;
  if (lines[at] != 'r' || (at && lines[at - 1] != ' ')) return 0;
  while (end < bytes && lines[end] >= '0' && lines[end] <= '9') end++;
  return end - at - 1 <= MOST_DIGITS ? end - at - 1 : 0;
}

const char *sink_schedule_rename_ranges(arena *a, const char *lines, size_t bytes,
                                        int64_t (*name)(void *user, int64_t number), void *user) {
  str out = str_new(a);
  for (size_t at = 0; at < bytes; at++) {
    size_t digits = range_digits(lines, bytes, at);
    int64_t number = 0;
    str_add_bytes(&out, lines + at, 1);
    if (!digits) continue;
    for (; digits; digits--) number = number * 10 + (lines[++at] - '0');
    str_addf(&out, "%" PRId64, name(user, number));
  }
  return str_text(&out);
}
