/* Implements the loading of backends: opens the shared object with all its symbols resolved, so
   that an absent library is reported now, and calls its entry. */
#include "device/registry/load_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

tn_status load_backend(const char *path, const tn_backend **backend, diag *d) {
  char here[4096];
  union {
    void *symbol;
    tn_backend_entry *call;
  } entry;
  *backend = NULL;
  if (!path || !*path) return diag_set(d, TN_ERR_ARGUMENT, "the path of the backend is empty");
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
