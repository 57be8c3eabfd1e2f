/* Resolves the external functions that a kernel's object may call when it is linked into the
   process: those of kernel_imports.def and no others. */
#ifndef TENON_DEVICE_CPU_KERNEL_IMPORTS_H
#define TENON_DEVICE_CPU_KERNEL_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/** The address of a function by its name in object files; 0 if kernels may not call it. */
uint64_t kernel_import_address(const char *name);

/** True if this library is built with a sanitizer, and so accepts kernels that are instrumented for
    it. Their constructors only start the sanitizer, which runs already. */
bool kernel_imports_accept_sanitizer(void);

#endif
