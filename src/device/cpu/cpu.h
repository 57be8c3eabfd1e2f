/* The CPU as a device: host memory, kernels in C that the system's compiler makes objects of, and
   threads. */
#ifndef TENON_DEVICE_CPU_CPU_H
#define TENON_DEVICE_CPU_CPU_H

#include <tenon/unstable/backend.h>

extern const tn_backend cpu_backend;

#endif
