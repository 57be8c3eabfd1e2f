/* What a shared object with the backend exports. */
#include "ref.h"

const tn_backend *ref_backend_get(void) { return &ref_backend; }
