/* The system's C compiler: found at run time, started without a shell, stopped when it takes too
   long. It reads its source from memory and writes its object to memory, so nothing stays behind,
   not even when this process is killed. */
#ifndef TENON_DEVICE_CPU_CC_H
#define TENON_DEVICE_CPU_CC_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

typedef enum cc_kind { CC_GCC, CC_CLANG } cc_kind;

/** Which sanitizer watches the kernels. elf_load takes instrumented objects only in a library built
    with the same sanitizer. */
typedef enum cc_instrument { CC_PLAIN, CC_ADDRESS, CC_THREAD } cc_instrument;

/** A compiler. All it points to is in the arena given to cc_find; it may be shared by threads. */
typedef struct cc {
  cc_kind kind;
  const char *const
      *command;             /* path of the program and the arguments that come first, up to NULL */
  const char *version;      /* first line of what it says to --version */
  const char *shown;        /* for messages: its path or, where it was named, how and by what */
  cc_instrument instrument; /* CC_PLAIN from cc_find; set it before compiling */
  int64_t limit_ns;         /* 180 s from cc_find */
} cc;

/** A relocatable object, in an arena. */
typedef struct cc_object {
  const unsigned char *data;
  size_t bytes;
} cc_object;

/** The compiler of a name or path, with arguments after spaces ("ccache gcc"); NULL: the first of
    cc, gcc and clang on the PATH. TN_ERR_COMPILE if there is none, or none that is gcc or clang;
   the message says what to install. Raises when `a` is out of memory. */
tn_status cc_find(cc *c, const char *name, arena *a, diag *d);

/** Everything that is known of what cc_find would find without starting it: where the programs are
    that `name` may stand for, and when they were written; also those further on along the PATH, as
    one of them may start the next. A script that starts another compiler by its path hides that
    one. In the arena. */
const char *cc_stamp(const char *name, arena *a);

/** Everything about the compiler that decides what a source becomes (kind, version, command, flags
    that are always given), as one line, for cache keys. In the arena. */
const char *cc_identity(const cc *c, arena *a);

/** Compiles `bytes` bytes of C to a position-independent object that elf_load takes. `flags`, up to
    NULL or NULL itself, come after the flags that are always given. TN_ERR_COMPILE: the compiler
    failed, and the message has the beginning of what it said; TN_ERR_TIMEOUT; TN_ERR_IO;
    TN_ERR_MEMORY. Does not raise. Where somebody else takes the compiler's exit code (SIGCHLD is
    ignored), silence and an object stand for success. */
tn_status cc_compile(const cc *c, const char *source, size_t bytes, const char *const flags[],
                     arena *a, cc_object *object, diag *d);

#endif
