/* Loads compiled kernels: maps one relocatable ELF64 object (System V ABI; the psABI of x86-64 or
   AArch64), as `cc -c` or LLVM write it, into this process and relocates it. The object counts as
   hostile: every offset, size, index and string in it is checked. */
#ifndef TENON_DEVICE_CPU_ELF_LOADER_H
#define TENON_DEVICE_CPU_ELF_LOADER_H

#include "base/diag.h"
#include "base/mem.h"

#include <stddef.h>

typedef struct elf_image elf_image;

/** Loads an object of `bytes` bytes, which is not needed afterwards. It may refer to itself and to
    the functions of kernel_imports.def. Code ends up readable and executable, constants readable,
   data readable and writable; no page is ever both writable and executable. TN_ERR_FORMAT:
   malformed; TN_ERR_UNSUPPORTED: another machine, or something that no kernel needs (an unknown
   symbol or relocation, thread-local storage, constructors, common symbols, indirect functions);
   TN_ERR_MEMORY: there is no memory, or the process may have no more mappings, as the message says;
   TN_ERR_DEVICE: the system refuses executable memory. On success *out is freed with elf_free,
   otherwise it is NULL. */
tn_status elf_load(elf_image **out, const void *object, size_t bytes, const mem *m, diag *d);

/** The address of a global symbol that the object defines, or NULL. Valid until elf_free. */
void *elf_symbol(const elf_image *code, const char *name);

/** Unmaps the code. Nothing may be running in it. NULL is allowed. */
void elf_free(elf_image *code);

#endif
