/* Declares the part of OpenCL 1.2 that is used, with numbers from the published interface, and
   opens its loader (the ICD loader, libOpenCL.so.1) at run time: no headers are needed to build. */
#ifndef TENON_DEVICE_OPENCL_OPENCL_API_H
#define TENON_DEVICE_OPENCL_OPENCL_API_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef int32_t cl_status;
typedef struct cl_platform_object *cl_platform;
typedef struct cl_device_object *cl_device;
typedef struct cl_context_object *cl_context;
typedef struct cl_queue_object *cl_queue;
typedef struct cl_memory_object *cl_memory;
typedef struct cl_program_object *cl_program;
typedef struct cl_kernel_object *cl_kernel;
typedef struct cl_event_object *cl_event;
typedef void cl_context_callback(const char *text, const void *data, size_t bytes, void *user);
typedef void cl_event_callback(cl_event event, cl_status status, void *user);

enum {
  CL_PLATFORM_VERSION = 0x0901,
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
  CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE = 0x101d,
  CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101e,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_ENDIAN_LITTLE = 0x1026,
  CL_DEVICE_AVAILABLE = 0x1027,
  CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
  CL_DEVICE_NAME = 0x102b,
  CL_DRIVER_VERSION = 0x102d,
  CL_DEVICE_VERSION = 0x102f,
  CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
  CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103a,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11b0,
  CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11b1,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3,
  CL_PROFILING_COMMAND_END = 0x1283,

  CL_DEVICE_TYPE_CPU = 1 << 1,
  CL_DEVICE_TYPE_GPU = 1 << 2,
  CL_DEVICE_TYPE_ACCELERATOR = 1 << 3,
  CL_FP_DENORM = 1 << 0,
  CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
  CL_QUEUE_PROFILING_ENABLE = 1 << 1,
  CL_MEM_READ_WRITE = 1 << 0,
  CL_MEM_USE_HOST_PTR = 1 << 3,
  CL_MEM_ALLOC_HOST_PTR = 1 << 4,
  CL_MAP_READ_WRITE = 1 << 0 | 1 << 1,
  CL_COMPLETE = 0,
};

/** The functions that are used. */
typedef struct opencl_api {
#define OPENCL(name, result, parameters) result(*name) parameters;
#include "device/opencl/opencl_functions.def"
#undef OPENCL
} opencl_api;

/** Opens the loader and finds all functions. TN_ERR_DEVICE with what is missing. */
tn_status opencl_api_open(opencl_api *cl, diag *d);

/** The name of a status, "CL_OUT_OF_RESOURCES"; "CL_…" with the number for others. `text` has room
    for unknown ones. */
enum { OPENCL_STATUS_BYTES = 24 };
const char *opencl_status_name(cl_status status, char text[OPENCL_STATUS_BYTES]);

#endif
