/* Declares the part of NVRTC, NVIDIA's compiler of CUDA C, that is used, finds its library where
   toolkits put it, and opens it at run time. */
#ifndef TENON_DEVICE_CUDA_NVRTC_API_H
#define TENON_DEVICE_CUDA_NVRTC_API_H

#include "base/diag.h"
#include "device/cuda/find_toolkit.h"

#include <stddef.h>

typedef int nvrtc_status;
typedef struct nvrtc_program_object *nvrtc_program;

enum { NVRTC_OUT_OF_MEMORY = 1 };

/** The functions that are used. */
typedef struct nvrtc_api {
#define NVRTC(name, result, parameters) result(*name) parameters;
#include "device/cuda/nvrtc_functions.def"
#undef NVRTC
} nvrtc_api;

/** Finds NVRTC's file without opening it: TENON_NVRTC, or else the newest version in the first
   folder that has one. TN_ERR_COMPILE with a sentence that says how to get it if there is none. */
tn_status nvrtc_find(char path[TOOLKIT_PATH_BYTES], diag *d);

/** Finds and opens NVRTC. */
tn_status nvrtc_open(nvrtc_api *rtc, diag *d);

#endif
