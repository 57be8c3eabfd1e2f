/* Lists C compilers for reports: asks the one in use, and the first gcc and clang on the PATH, for
   their versions. */
#include "device/cpu/list_compilers.h"

#include "base/process.h"
#include "device/cpu/c_compiler.h"

#include <string.h>

/** The first line that a program prints for --version; NULL if it fails. */
static const char *ask_version(const char *path, arena *a) {
  const char *const argv[] = {path, "--version", NULL};
  const process_request request = {.argv = argv, .limit_ns = 10000000000};
  process_result r;
  diag unreported = {0};
  if (process_run(&request, a, &r, &unreported) || r.exit_code) return NULL;
  return arena_printf(a, "%.*s", (int)strcspn(r.output, "\n"), r.output);
}

listed_compilers cc_list(const char *name, arena *a) {
  static const char *const others[] = {"gcc", "clang"};
  listed_compilers all = {0};
  cc used;
  diag unreported = {0};
  bool is_found = cc_find(&used, name, a, &unreported) == TN_OK;
  if (is_found) vec_push(a, &all, (listed_compiler){used.command[0], used.version, true});
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const char *path = process_find(a, others[i]);
    const char *version = path ? ask_version(path, a) : NULL;
    if (version && !(is_found && !strcmp(path, used.command[0])))
      vec_push(a, &all, (listed_compiler){path, version, false});
  }
  return all;
}
