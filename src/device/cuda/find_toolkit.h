/* Finds and opens libraries of CUDA's toolkit, which the dynamic linker's usual folders often lack.
 */
#ifndef TENON_DEVICE_CUDA_FIND_TOOLKIT_H
#define TENON_DEVICE_CUDA_FIND_TOOLKIT_H

#include "base/diag.h"

#include <stddef.h>

enum { TOOLKIT_PATH_BYTES = 1024 };

/** A library of the toolkit, or beside it. */
typedef struct toolkit_library {
  const char *what;         /* in messages: "cuBLAS" */
  const char *variable;     /* of the environment, which names another file */
  const char *const *files; /* the best one first */
  size_t n_files;
  const char *shown;   /* the files, in messages */
  const char *version; /* the oldest one that has all functions */
  const char *hint;    /* how to get it */
  tn_status missing;   /* the status of its absence */
} toolkit_library;

/** Finds a library without opening it: the file that its variable names, or else the first of its
    files in the first folder of LD_LIBRARY_PATH, or of where toolkits are installed, that has one.
    A sentence that says how to get it if there is none. */
tn_status toolkit_find(const toolkit_library *l, char path[TOOLKIT_PATH_BYTES], diag *d);

/** Finds and opens a library, and fills `functions` with the addresses of the n names. */
tn_status toolkit_open(const toolkit_library *l, const char *const names[], size_t n,
                       void *functions, diag *d);

#endif
