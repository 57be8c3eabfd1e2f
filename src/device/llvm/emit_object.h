/* Generates code with LLVM's passes but for one, which the C interface cannot leave out. */
#ifndef TENON_DEVICE_LLVM_EMIT_OBJECT_H
#define TENON_DEVICE_LLVM_EMIT_OBJECT_H

#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Passes an object of a module to `add`; false if the target cannot make objects. Instructions
   stay in the order of the text, in which few values are live: LLVM's scheduler would load all
   operands of a register tile first, and spill the tile. */
bool emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module,
                 void (*add)(void *user, const void *data, size_t bytes), void *user);

#ifdef __cplusplus
}
#endif
#endif
