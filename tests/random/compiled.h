/* Compiles random graphs for the CPU with gcc, with clang and by the LLVM module, runs the
   executables with one to three workers, and compares their outputs bit by bit with the results of
   the linear-program interpreter; or for another device, whose sums have an order of their own, and
   compares with the expected values. */
#ifndef TENON_TESTS_RANDOM_COMPILED_H
#define TENON_TESTS_RANDOM_COMPILED_H

#include "check.h"
#include "spread.h"

#include "compile/disk_cache.h"
#include "device/registry/device_registry.h"

enum { COMPILERS = 3 };

/** The CPU device with each compiler, or one other device. */
typedef struct compiled {
  diag d;
  const char *names[COMPILERS];
  registry *tables[COMPILERS];
  const struct device_target *targets[COMPILERS];
  const struct device_target *more[COMPILERS][SPREAD_DEVICES - 1]; /* of devices 1 … */
  size_t n;                                                        /* number of compilers */
  size_t kernels;                                                  /* kernels compiled so far */
  double compiling;                                                /* seconds */
  arena arena;
  const char *folder; /* folder of the disk cache */
  disk_cache *disk;
  size_t made, found; /* executables made; found on disk */
  char remark[1024];
} compiled;

/** Opens those compilers that are installed; false and a message if none is. Does not raise. */
bool compiled_open(compiled *c);
/** Opens a device alone, with its default pair; false and a message if it is absent. */
bool compiled_open_device(compiled *c, const char *name);
void compiled_close(compiled *c);

/** Returns the target of code generation. */
const target *compiled_target(const compiled *c);

/** Compiles a graph as one plan by each compiler, runs it with one, two and three workers, each
    time on fresh inputs, and compares the roots bit by bit with `want`, the results of the linear
    programs by the interpreter. Inputs that are not written must stay as they are. Some are kept on
    disk, and run as they are found there. */
void compiled_check(compiled *c, const graph *g, void *const want[], report *r);

/** The same, run once and compared with the expected values. */
void compiled_check_expected(compiled *c, const graph *g, const expected *e, report *r);

#endif
