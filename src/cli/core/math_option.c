/* Parses --math. It overrides TENON_MATH, so the variable is removed: the library would read it for
   the default mode. */
#include "cli/core/math_option.h"

#include "cli/core/text_format.h"

#include <stdlib.h>
#include <string.h>

void math_option_parse(command *c, const char *name) {
  static const char *const names[] = {"exact", "contract", "sum", "flush", "default", "fast"};
  static const tn_math modes[] = {TN_MATH_EXACT, TN_MATH_CONTRACT, TN_MATH_SUM,
                                  TN_MATH_FLUSH, TN_MATH_DEFAULT,  TN_MATH_FAST};
  size_t n = sizeof names / sizeof *names, i = 0;
  if (!name) return;
  while (i < n && strcmp(names[i], name)) i++;
  if (i == n)
    command_usage_error(c,
                        "--math must be exact, contract, sum, flush, default or fast, not \"%s\"%s",
                        name, text_suggestion(&c->arena, text_nearest_word(name, names, n)));
  c->math = modes[i];
  unsetenv("TENON_MATH");
}
