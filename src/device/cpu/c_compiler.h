/* Runs the system's C compiler, gcc or clang, on the C source of kernels: found at run time,
   started without a shell, and stopped after a time limit. It reads the source from memory and
   writes the object to memory, so no file is left behind, not even when this process is killed. */
#ifndef TENON_DEVICE_CPU_C_COMPILER_H
#define TENON_DEVICE_CPU_C_COMPILER_H

#include "base/arena.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cc_kind { CC_GCC, CC_CLANG } cc_kind;

/** The sanitizer that kernels are instrumented for. elf_load accepts instrumented objects only in a
    library that is built with the same sanitizer. */
typedef enum cc_sanitizer {
  CC_NO_SANITIZER,
  CC_ADDRESS_SANITIZER,
  CC_THREAD_SANITIZER
} cc_sanitizer;

/** A compiler. All it points to is in the arena given to cc_find. Threads may share it. */
typedef struct cc {
  cc_kind kind;
  const char *const *command; /* path of the program and its first arguments, up to NULL */
  const char *version;        /* first line of its answer to --version */
  const char *shown; /* for messages: its path, or the name it was given and by which option */
  cc_sanitizer instrument;   /* CC_NO_SANITIZER from cc_find; set it before compiling */
  int64_t limit_ns;          /* 180 s from cc_find */
  const atomic_bool *cancel; /* compiling stops once this is set; NULL from cc_find */
} cc;

/** A relocatable object, in an arena. */
typedef struct cc_object {
  const unsigned char *data;
  size_t bytes;
} cc_object;

/** The compiler of a name or path, with arguments after spaces ("ccache gcc"); NULL: the first of
    cc, gcc and clang on the PATH. TN_ERR_COMPILE if there is none, or none that is gcc or clang;
   the message says which to install. Raises when `a` is out of memory. */
tn_status cc_find(cc *c, const char *name, arena *a, diag *d);

/** As cc_find, where a program may take that long to tell its version, instead of 10 s. */
tn_status cc_find_within(cc *c, const char *name, int64_t limit_ns, arena *a, diag *d);

/** Tells whether cc_find has a program to try, without starting it. TN_ERR_COMPILE if not. Raises
    when `a` is out of memory. */
tn_status cc_check_present(const char *name, arena *a, diag *d);

/** A fingerprint of the compiler that cc_find would find, without starting it: path, device, inode,
    size and times of each program that `name` may stand for, also of those further on along the
   PATH, as one of them may start the next. A script that starts another compiler by its path hides
   that one. In the arena. */
const char *cc_fingerprint(const char *name, arena *a);

/** The compiler's identity for cache keys: everything that decides which object it makes of a
   source (kind, version, command, the flags that are always given), as one line. In the arena. */
const char *cc_identity(const cc *c, arena *a);

/** Compiles `bytes` bytes of C to a position-independent object for elf_load. `flags`, up to NULL
   or NULL itself, come after the flags that are always given. TN_ERR_COMPILE: the compiler failed,
   and the message has the first lines of its output; TN_ERR_TIMEOUT; TN_ERR_IO; TN_ERR_MEMORY. Does
   not raise. If the compiler's exit code is lost (the process ignores SIGCHLD), no output and an
   object count as success. */
tn_status cc_compile(const cc *c, const char *source, size_t bytes, const char *const flags[],
                     arena *a, cc_object *object, diag *d);

#endif
