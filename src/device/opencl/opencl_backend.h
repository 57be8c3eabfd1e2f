/* The OPENCL backend: devices of the OpenCL drivers that are installed, from version 1.2. */
#ifndef TENON_DEVICE_OPENCL_OPENCL_BACKEND_H
#define TENON_DEVICE_OPENCL_OPENCL_BACKEND_H

#include <tenon/unstable/backend.h>

extern const tn_backend opencl_backend;

#endif
