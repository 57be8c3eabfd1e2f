/* Loads backends from shared objects, which stay loaded until the process ends. */
#ifndef TENON_DEVICE_REGISTRY_LOAD_BACKEND_H
#define TENON_DEVICE_REGISTRY_LOAD_BACKEND_H

#include "base/diag.h"

#include <tenon/unstable/backend.h>

/** The backend of a shared object; a path without a slash is in the current folder. */
tn_status load_backend(const char *path, const tn_backend **backend, diag *d);

#endif
