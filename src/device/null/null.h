/* A device that accepts everything and computes nothing: what is left is overhead. Its memory is
   the host's and starts as zeros. */
#ifndef TENON_DEVICE_NULL_NULL_H
#define TENON_DEVICE_NULL_NULL_H

#include <tenon/unstable/backend.h>

extern const tn_backend null_backend;

#endif
