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

const char *var_user_name(const char *text) { return text + (*text == QUOTE); }
