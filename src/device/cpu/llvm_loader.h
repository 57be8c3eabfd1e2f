/* Finds and opens the LLVM module: a shared object beside the library, which links libLLVM. */
#ifndef TENON_DEVICE_CPU_LLVM_LOADER_H
#define TENON_DEVICE_CPU_LLVM_LOADER_H

#include "base/diag.h"
#include "device/llvm/llvm_module.h"

#include <stdbool.h>

enum { LLVM_PATH_BYTES = 4096 };

/** The path of the module: TENON_LLVM, else the first of these that exists: in the folder of the
    library (or of the program that contains it), in ../lib… of that, and where it was installed.
    TN_ERR_COMPILE if there is none, or TENON_LLVM is "off"; opens nothing. */
tn_status llvm_module_find(char path[LLVM_PATH_BYTES], diag *d);

/** Opens the module, which the process keeps. TN_ERR_COMPILE if there is none, or it
    cannot be loaded, or is of another build of the library. */
tn_status llvm_module_open(const llvm_module **module, diag *d);

#endif
