/* Calls a function that uses LLVM, which ends the process where memory or something else fails it:
   its handlers are replaced by exceptions, which are caught here. What LLVM held then is lost. */
#ifndef TENON_DEVICE_LLVM_EXCEPTIONS_H
#define TENON_DEVICE_LLVM_EXCEPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum guard_outcome { GUARD_DONE, GUARD_NO_MEMORY, GUARD_FATAL } guard_outcome;

/** Installs the handlers. They leave calls alone that do not come through guard_call. */
void guard_install(void);

/** Calls `body`. GUARD_FATAL: `message` has LLVM's reason. */
guard_outcome guard_call(void (*body)(void *arg), void *arg, char *message, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
