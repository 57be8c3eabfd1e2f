/* Lists the schedule primitives of laws.def for users of the library: names, arguments and
   effects. */
#include <tenon/unstable/ir.h>

static const struct {
  const char *name, *arguments, *about;
} rows[] = {
#define LAW(name, function, arguments, made, file, about) {#name, arguments, about},
#include "laws/laws.def"
#define LAW_WORD(name, argument, about) {#name, NULL, about},
#include "laws/laws.def"
};

tn_status tn_law_get(size_t i, const char **name, const char **arguments, const char **about) {
  if (i >= sizeof rows / sizeof *rows) return TN_ERR_ARGUMENT;
  *name = rows[i].name;
  *arguments = rows[i].arguments;
  *about = rows[i].about;
  return TN_OK;
}
