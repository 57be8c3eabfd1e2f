#include "ir/var.h"

#include <string.h>

enum { QUOTE = '\'' };

const char *var_text(arena *a, const char *name) {
  static const char reserved[] = "core_";
  bool needs_quote = *name == QUOTE || !strncmp(name, reserved, sizeof reserved - 1);
  return needs_quote ? arena_printf(a, "%c%s", QUOTE, name) : name;
}

bool var_is_trip(const char *text) { return !strncmp(text, VAR_TRIP, sizeof VAR_TRIP - 1); }

const char *var_name(const char *text) { return text + (*text == QUOTE); }
