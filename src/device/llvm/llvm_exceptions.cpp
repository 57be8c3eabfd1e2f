/* Implements the guard around calls of LLVM. The only C++ of the project: a C++ library's failure
   to allocate is an exception, which C cannot catch. */
#include "llvm_exceptions.h"

#include <llvm-c/ErrorHandling.h>
#include <llvm/Support/ErrorHandling.h>

#include <cstdio>
#include <new>

namespace {

thread_local bool is_inside;

/** A fatal error of LLVM, whose reason is in the caller's message. */
struct fatal_error {};

thread_local char *reason;
thread_local size_t reason_bytes;

void on_no_memory(void *, const char *, bool) {
  if (is_inside) throw std::bad_alloc();
}

void on_fatal(const char *text) {
  if (!is_inside) return;
  std::snprintf(reason, reason_bytes, "%s", text);
  throw fatal_error();
}

} // namespace

extern "C" void guard_install(void) {
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(on_no_memory);
  LLVMInstallFatalErrorHandler(on_fatal);
}

extern "C" guard_outcome guard_call(void (*body)(void *), void *arg, char *message, size_t bytes) {
  guard_outcome outcome = GUARD_DONE;
  try { /* allocates what the C++ library keeps for a thread that throws */
    throw fatal_error();
  } catch (const fatal_error &) {}
  is_inside = true;
  reason = message;
  reason_bytes = bytes;
  try {
    body(arg);
  } catch (const std::bad_alloc &) { outcome = GUARD_NO_MEMORY; } catch (const fatal_error &) {
    outcome = GUARD_FATAL;
  }
  is_inside = false;
  return outcome;
}
