/* The interface between the library and the LLVM module, a shared object of its own that links
   libLLVM, so that a process which compiles nothing loads none of it. Both sides are built from
   this header; its number tells modules of other builds apart. */
#ifndef TENON_DEVICE_LLVM_LLVM_MODULE_H
#define TENON_DEVICE_LLVM_LLVM_MODULE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/** Changes with everything in this header. */
enum { LLVM_MODULE_INTERFACE = 2 };

typedef enum llvm_outcome {
  LLVM_COMPILED,
  LLVM_FAILED,    /* the message says why */
  LLVM_NO_MEMORY, /* likewise */
  LLVM_CANCELLED
} llvm_outcome;

/** One compilation of a text to an object. */
typedef struct llvm_job {
  const char *text; /* of `bytes` bytes and a NUL */
  size_t bytes;
  const char *cpu;           /* LLVM's name of the target's processor */
  const char *features;      /* beyond that processor's: "+avx512vnni" */
  unsigned vector_bytes;     /* of its widest vector */
  const atomic_bool *cancel; /* or NULL; read between the steps */
  void (*add)(void *user, const void *data, size_t bytes); /* receives the object */
  void *user;
  char message[1024];
} llvm_job;

/** The functions of the module, under the name tenon_llvm_module. */
typedef struct llvm_module {
  uint32_t interface;
  /** Writes the version of LLVM, the passes and the options, which decide an object's code. */
  void (*identify)(char *text, size_t bytes);
  /** Compiles a text; any number of threads at once. */
  llvm_outcome (*compile)(llvm_job *job);
} llvm_module;

#define LLVM_MODULE_SYMBOL "tenon_llvm_module"

#endif
