/* The functions that kernels may call: those of symbols.def and no others. */
#ifndef TENON_DEVICE_CPU_SYMBOLS_H
#define TENON_DEVICE_CPU_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/** The address of a function by its name in object files, or 0. */
uint64_t symbol_address(const char *name);

/** Whether this library is built with a sanitizer whose instrumented kernels it accepts. Their
    constructors only start the sanitizer, which runs already. */
bool symbols_sanitized(void);

#endif
