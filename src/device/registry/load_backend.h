/* Loads backends from shared objects, which stay loaded until the process ends. */
#ifndef TENON_DEVICE_REGISTRY_LOAD_BACKEND_H
#define TENON_DEVICE_REGISTRY_LOAD_BACKEND_H

#include "device/registry/device_registry.h"

/** Registers the backend of a shared object; a path without a slash is in the current folder. The
    message of a failure names the file. */
tn_status load_backend(registry *r, const char *path, diag *d);

#endif
