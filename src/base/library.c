/* Implements the opening of shared libraries by dlopen. A library is never closed: drivers leave
   threads and handlers behind. */
#include "base/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

tn_status library_open(const library *l, void *pointers, diag *d) {
  void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle)
    return diag_set(d, TN_ERR_DEVICE, "%s is missing (%s): %s", l->what, dlerror(), l->hint);
  tn_status status = TN_OK;
  for (size_t i = 0; i < l->n_names && !status; i++) {
    bool is_variable = i >= l->n_names - l->n_variables;
    void *address = is_variable ? dlsym(RTLD_DEFAULT, l->names[i]) : NULL;
    if (!address) address = dlsym(handle, l->names[i]);
    memcpy((char *)pointers + i * sizeof address, &address, sizeof address);
    if (!address)
      status = diag_set(d, TN_ERR_DEVICE, "%s has no %s (%s needed): %s", l->what, l->names[i],
                        l->version, l->hint);
  }
  dlclose(handle); /* it stays all the same */
  return status;
}
