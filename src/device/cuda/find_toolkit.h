/* Finds libraries of CUDA's toolkit, which the dynamic linker's usual folders often lack. */
#ifndef TENON_DEVICE_CUDA_FIND_TOOLKIT_H
#define TENON_DEVICE_CUDA_FIND_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOLKIT_PATH_BYTES = 1024 };

/** Finds a library without opening it: the file `given`, or, where that is NULL, the first of
    `files` in the first folder of LD_LIBRARY_PATH, or of where toolkits are installed, that has
   one. False if there is none. */
bool toolkit_find(char path[TOOLKIT_PATH_BYTES], const char *given, const char *const files[],
                  size_t n);

#endif
