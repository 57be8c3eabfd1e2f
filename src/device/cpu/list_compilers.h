/* Lists the C compilers of this machine for reports to users: the one in use, and gcc and clang on
   the PATH. */
#ifndef TENON_DEVICE_CPU_LIST_COMPILERS_H
#define TENON_DEVICE_CPU_LIST_COMPILERS_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

typedef struct listed_compiler {
  const char *path, *version; /* version: the first line for --version */
  bool is_used;
} listed_compiler;

typedef VEC(listed_compiler) listed_compilers;

/** Lists compilers, the one that cc_find gives for `name` first, where there is one. Starts each;
    one that does not start is left out. Lists and strings are in the arena, which raises. */
listed_compilers cc_list(const char *name, arena *a);

#endif
