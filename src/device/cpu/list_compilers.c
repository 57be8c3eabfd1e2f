/* Lists compilers for reports: asks the one in use, the first gcc and clang on the PATH, and LLVM,
   for their versions. */
#include "device/cpu/list_compilers.h"

#include "base/process.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/llvm_loader.h"

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

/** Describes LLVM; false where its module is not there or does not load. */
static bool describe_llvm(arena *a, listed_compiler *llvm) {
  char path[LLVM_PATH_BYTES], text[256];
  const llvm_module *m;
  diag unreported = {0};
  if (CPU_INSTRUMENT != CC_NO_SANITIZER || llvm_module_find(path, &unreported) ||
      llvm_module_open(&m, &unreported))
    return false;
  m->identify(text, sizeof text);
  llvm->path = arena_printf(a, "%s", path);
  llvm->version = arena_printf(a, "%.*s", (int)strcspn(text, ";"), text);
  return true;
}

listed_compilers cc_list(const char *name, bool uses_llvm, arena *a) {
  static const char *const others[] = {"gcc", "clang"};
  listed_compilers all = {0};
  cc used;
  diag unreported = {0};
  bool is_found = cc_find(&used, name, a, &unreported) == TN_OK;
  listed_compiler llvm = {.is_used = uses_llvm};
  bool has_llvm = describe_llvm(a, &llvm);
  if (has_llvm && uses_llvm) vec_push(a, &all, llvm);
  if (is_found) vec_push(a, &all, (listed_compiler){used.command[0], used.version, !uses_llvm});
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const char *path = process_find(a, others[i]);
    const char *version = path ? ask_version(path, a) : NULL;
    if (version && !(is_found && !strcmp(path, used.command[0])))
      vec_push(a, &all, (listed_compiler){path, version, false});
  }
  if (has_llvm && !uses_llvm) vec_push(a, &all, llvm);
  return all;
}
