/* Opens a shared library of a device's maker at run time, by a table of the names that are used of
   it: nothing of the maker is needed to build, and what is missing is said in a sentence. */
#ifndef TENON_BASE_LIBRARY_H
#define TENON_BASE_LIBRARY_H

#include "base/diag.h"

typedef struct library {
  const char *file;    /* "libOpenCL.so.1", as the dynamic linker finds it */
  const char *what;    /* "the OpenCL loader", for messages */
  const char *version; /* "OpenCL 1.2": has all functions */
  const char *hint;    /* how to get it */
  const char *const *names;
  size_t n_names;
  size_t n_variables; /* the last names: variables, whose addresses may be those of copies in a
                         program that is linked against the library */
} library;

/** Opens a library, which the process keeps, and writes the addresses of its functions and
   variables to a struct of that many pointers, in the order of their names; opening it again finds
   the same ones. TN_ERR_DEVICE with a sentence if it does not load or lacks one. */
tn_status library_open(const library *l, void *pointers, diag *d);

#endif
