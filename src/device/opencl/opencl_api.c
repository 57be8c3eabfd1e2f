/* Implements the opening of OpenCL's loader, and names of statuses. */
#include "device/opencl/opencl_api.h"

#include "base/library.h"

#include <stdio.h>

tn_status opencl_api_open(opencl_api *cl, diag *d) {
#define OPENCL(name, result, parameters) "cl" #name,
  static const char *const names[] = {
#include "device/opencl/opencl_functions.def"
  };
#undef OPENCL
  enum { FUNCTIONS = sizeof names / sizeof *names };
  static const library loader = {.file = "libOpenCL.so.1",
                                 .what = "the OpenCL loader",
                                 .version = "OpenCL 1.2",
                                 .hint = "install it (on Debian: apt install ocl-icd-libopencl1) "
                                         "and the device's driver",
                                 .names = names,
                                 .n_names = FUNCTIONS};
  _Static_assert(sizeof names == sizeof *cl, "a pointer for each name");
  return library_open(&loader, cl, d);
}

const char *opencl_status_name(cl_status status, char text[OPENCL_STATUS_BYTES]) {
  static const struct {
    cl_status status;
    const char *name;
  } names[] = {{-1, "CL_DEVICE_NOT_FOUND"},
               {-2, "CL_DEVICE_NOT_AVAILABLE"},
               {-3, "CL_COMPILER_NOT_AVAILABLE"},
               {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
               {-5, "CL_OUT_OF_RESOURCES"},
               {-6, "CL_OUT_OF_HOST_MEMORY"},
               {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
               {-8, "CL_MEM_COPY_OVERLAP"},
               {-11, "CL_BUILD_PROGRAM_FAILURE"},
               {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
               {-30, "CL_INVALID_VALUE"},
               {-33, "CL_INVALID_DEVICE"},
               {-34, "CL_INVALID_CONTEXT"},
               {-36, "CL_INVALID_COMMAND_QUEUE"},
               {-37, "CL_INVALID_HOST_PTR"},
               {-38, "CL_INVALID_MEM_OBJECT"},
               {-42, "CL_INVALID_BINARY"},
               {-43, "CL_INVALID_BUILD_OPTIONS"},
               {-44, "CL_INVALID_PROGRAM"},
               {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
               {-46, "CL_INVALID_KERNEL_NAME"},
               {-48, "CL_INVALID_KERNEL"},
               {-49, "CL_INVALID_ARG_INDEX"},
               {-51, "CL_INVALID_ARG_SIZE"},
               {-52, "CL_INVALID_KERNEL_ARGS"},
               {-54, "CL_INVALID_WORK_GROUP_SIZE"},
               {-55, "CL_INVALID_WORK_ITEM_SIZE"},
               {-58, "CL_INVALID_EVENT"},
               {-61, "CL_INVALID_BUFFER_SIZE"},
               {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
               {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].status == status) return names[i].name;
  snprintf(text, OPENCL_STATUS_BYTES, "status %d", (int)status);
  return text;
}
