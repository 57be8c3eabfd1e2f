/* The library's version and build (tn_version, tn_build_id), and the texts of status codes
   (tn_status_text), from the list in <tenon/status.h>. */
#include "compile/cache_keys.h"

#include <tenon/context.h>

int32_t tn_version(void) { return TN_VERSION; }

const char *tn_build_id(void) { return build_id; }

const char *tn_status_text(tn_status status) {
  switch (status) {
#define STATUS_TEXT(name, number, text) \
  case name: return text;
    TN_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
  default: return "unknown status";
  }
}
