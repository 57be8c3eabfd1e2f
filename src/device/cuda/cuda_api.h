/* Declares the part of CUDA's driver that is used, with numbers from the published interface, and
   opens it (libcuda.so.1) at run time: no headers are needed to build. */
#ifndef TENON_DEVICE_CUDA_CUDA_API_H
#define TENON_DEVICE_CUDA_CUDA_API_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef int cuda_status;
typedef int cuda_ordinal; /* a device as the driver numbers it */
typedef unsigned long long cuda_address;
typedef struct cuda_context_object *cuda_context;
typedef struct cuda_module_object *cuda_module;
typedef struct cuda_function_object *cuda_function;
typedef struct cuda_stream_object *cuda_stream;
typedef struct cuda_event_object *cuda_event;
typedef struct cuda_graph_object *cuda_graph;
typedef struct cuda_graph_exec_object *cuda_graph_exec;
typedef struct cuda_node_object *cuda_node;

/** A launch as a node of a graph. */
typedef struct cuda_node_launch {
  cuda_function function;
  unsigned grid[3], group[3];
  unsigned shared_bytes;
  void **arguments, **extra;
} cuda_node_launch;

enum {
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NOT_READY = 600,

  CUDA_MAX_THREADS_PER_BLOCK = 1,
  CUDA_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CUDA_MULTIPROCESSOR_COUNT = 16,
  CUDA_L2_CACHE_SIZE = 38,
  CUDA_UNIFIED_ADDRESSING = 41,
  CUDA_COMPUTE_CAPABILITY_MAJOR = 75,
  CUDA_COMPUTE_CAPABILITY_MINOR = 76,

  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_EVENT_DISABLE_TIMING = 2,
  CUDA_HOST_PORTABLE = 1,
  CUDA_JIT_ERROR_LOG = 5,
  CUDA_JIT_ERROR_LOG_BYTES = 6,
};

/** The functions that are used. */
typedef struct cuda_api {
#define CUDA(name, parameters) cuda_status(*name) parameters;
#include "device/cuda/cuda_functions.def"
#undef CUDA
} cuda_api;

/** Opens the driver and finds all functions. TN_ERR_DEVICE with what is missing. */
tn_status cuda_api_open(cuda_api *cu, diag *d);

/** True for a status after which the driver refuses all further work of the process on a device. */
bool cuda_status_is_loss(cuda_status status);

/** Writes the driver's name of a status and what it says of it:
    "CUDA_ERROR_OUT_OF_MEMORY (out of memory)". */
enum { CUDA_STATUS_BYTES = 160 };
const char *cuda_status_text(const cuda_api *cu, cuda_status status, char text[CUDA_STATUS_BYTES]);

#endif
