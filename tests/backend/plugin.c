/* Exports the reference backend from a shared object that is loaded at run time. */
#include "ref.h"

TN_API const tn_backend *tn_backend_get(void);

const tn_backend *tn_backend_get(void) { return &ref_backend; }
