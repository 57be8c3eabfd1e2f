/* Lists the compilers of this machine for reports to users: the one in use, gcc and clang on the
   PATH, and LLVM. */
#ifndef TENON_DEVICE_CPU_LIST_COMPILERS_H
#define TENON_DEVICE_CPU_LIST_COMPILERS_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

typedef struct listed_compiler {
  const char *path, *version; /* of a program, and its first line for --version; of LLVM's module */
  bool is_used;
} listed_compiler;

typedef VEC(listed_compiler) listed_compilers;

/** Lists compilers, first the one in use: LLVM with `uses_llvm`, else the one that cc_find gives
   for `name`, where there is one. Starts each, and loads LLVM; one that does not start is left out.
    Lists and strings are in the arena, which raises. */
listed_compilers cc_list(const char *name, bool uses_llvm, arena *a);

#endif
