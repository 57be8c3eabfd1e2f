/* Declares the CPU backend: memory of the host, kernels rendered to C and compiled by the system's
   compiler to objects, which the library loads itself, and parallel loops on the registry's
   threads. */
#ifndef TENON_DEVICE_CPU_CPU_BACKEND_H
#define TENON_DEVICE_CPU_CPU_BACKEND_H

#include <tenon/unstable/backend.h>

extern const tn_backend cpu_backend;

#endif
