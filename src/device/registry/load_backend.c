/* Implements the loading of backends: opens the shared object with all its symbols resolved, so
   that an absent library is reported now, calls its entry, and registers what that returns. */
#include "device/registry/load_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/** Gets the backend of a shared object. */
static tn_status get_backend(const char *path, const tn_backend **backend, diag *d) {
  char here[4096];
  union {
    void *symbol;
    tn_backend_entry *call;
  } entry;
  int n = snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
  if (n < 0 || (size_t)n >= sizeof here)
    return diag_set(d, TN_ERR_ARGUMENT, "the path of the backend is too long");
  void *object = dlopen(here, RTLD_NOW | RTLD_LOCAL);
  if (!object) return diag_set(d, TN_ERR_DEVICE, "backend %s: %s", path, dlerror());
  entry.symbol = dlsym(object, TN_BACKEND_ENTRY);
  if (!entry.symbol) {
    dlclose(object);
    return diag_set(d, TN_ERR_DEVICE, "backend %s: it has no function " TN_BACKEND_ENTRY, path);
  }
  *backend = entry.call();
  if (*backend) return TN_OK;
  dlclose(object);
  return diag_set(d, TN_ERR_DEVICE, "backend %s: " TN_BACKEND_ENTRY " returns NULL", path);
}

tn_status load_backend(registry *r, const char *path, diag *d) {
  const tn_backend *backend;
  if (!path || !*path) return diag_set(d, TN_ERR_ARGUMENT, "the path of the backend is empty");
  tn_status status = get_backend(path, &backend, d);
  if (status) return status;
  status = registry_add_backend(r, backend, d);
  return status ? diag_prefix(d, "%s", path) : TN_OK;
}
