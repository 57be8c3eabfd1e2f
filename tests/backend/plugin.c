/* Exports the reference backend from a shared object that is loaded at run time. */
#include "ref.h"

const tn_backend *ref_backend_get(void) { return &ref_backend; }
