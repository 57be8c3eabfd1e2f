/* Implements the quoting of user-chosen variable names that could be taken for names that passes
   make. */
#include "ir/core/var_names.h"

#include <string.h>

enum { QUOTE = '\'' };

const char *var_name_in_graph(arena *a, const char *name) {
  static const char reserved[] = "core_";
  bool needs_quote = *name == QUOTE || !strncmp(name, reserved, sizeof reserved - 1);
  return needs_quote ? arena_printf(a, "%c%s", QUOTE, name) : name;
}

bool var_is_trip(const char *text) {
  return !strncmp(text, VAR_TRIP_PREFIX, sizeof VAR_TRIP_PREFIX - 1);
}

bool var_is_late(const char *text) {
  return !strncmp(text, VAR_LATE_PREFIX, sizeof VAR_LATE_PREFIX - 1);
}

static const char numbered[] = "core_size";

const char *var_name_numbered(arena *a, const char *name, size_t number) {
  return number ? arena_printf(a, "%s%zu_%s", numbered, number, name) : var_name_in_graph(a, name);
}

const char *var_user_name(const char *text) {
  size_t n = sizeof numbered - 1;
  if (strncmp(text, numbered, n)) return text + (*text == QUOTE);
  return text + n + strspn(text + n, "0123456789") + 1;
}
