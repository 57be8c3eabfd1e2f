/* The CUDA backend: NVIDIA's GPUs, by the driver's interface. */
#ifndef TENON_DEVICE_CUDA_CUDA_BACKEND_H
#define TENON_DEVICE_CUDA_CUDA_BACKEND_H

#include <tenon/unstable/backend.h>

extern const tn_backend cuda_backend;

#endif
