/* Parses --math. It overrides TENON_MATH, so the variable is removed: the library would read it for
   the default mode. */
#include "cli/core/math_option.h"

#include "cli/core/text_format.h"

#include <stdlib.h>
#include <string.h>

void math_option_parse(command *c, const char *name) {
#define NAME(mode, text)   text,
#define MODE(mode, text)   mode,
#define LISTED(mode, text) ", " text
  static const char *const names[] = {TN_MATH_LIST(NAME)};
  static const tn_math modes[] = {TN_MATH_LIST(MODE)};
  const char *all = TN_MATH_LIST(LISTED);
#undef NAME
#undef MODE
#undef LISTED
  size_t n = sizeof names / sizeof *names, i = 0;
  if (!name) return;
  while (i < n && strcmp(names[i], name)) i++;
  if (i == n)
    command_usage_error(c, "--math is \"%s\", not one of %s%s", name, all + 2,
                        text_suggestion(&c->arena, text_nearest_word(name, names, n)));
  c->math = modes[i];
  unsetenv("TENON_MATH");
}
