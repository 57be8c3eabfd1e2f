/* Declares the NULL backend, whose device accepts every kernel and computes nothing, so that all
   that is left to measure is overhead. Its memory is the host's, and starts as zeros. */
#ifndef TENON_DEVICE_NULL_NULL_BACKEND_H
#define TENON_DEVICE_NULL_NULL_BACKEND_H

#include <tenon/unstable/backend.h>

extern const tn_backend null_backend;

#endif
