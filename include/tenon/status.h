/* Status codes, which functions that can fail return. The message behind a failure is kept by the
   object that failed (see tn_message in context.h). */
#ifndef TENON_STATUS_H
#define TENON_STATUS_H

#include <tenon/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(name, number, text): every status. Numbers are part of the ABI and never reused. */
#define TN_STATUS_LIST(X)                    \
  X(TN_OK, 0, "ok")                          \
  X(TN_ERR_ARGUMENT, 1, "bad argument")      \
  X(TN_ERR_SHAPE, 2, "bad shape")            \
  X(TN_ERR_DTYPE, 3, "bad data type")        \
  X(TN_ERR_MEMORY, 4, "out of memory")       \
  X(TN_ERR_IO, 5, "input or output failed")  \
  X(TN_ERR_FORMAT, 6, "malformed file")      \
  X(TN_ERR_UNSUPPORTED, 7, "not supported")  \
  X(TN_ERR_DEVICE, 8, "device failed")       \
  X(TN_ERR_COMPILE, 9, "compilation failed") \
  X(TN_ERR_TIMEOUT, 10, "timed out")         \
  X(TN_ERR_CANCELLED, 11, "cancelled")       \
  X(TN_ERR_BUSY, 12, "busy")                 \
  X(TN_ERR_INTERNAL, 13, "internal error")

typedef enum tn_status {
#define TN_STATUS_ENUM(name, number, text) name = number,
  TN_STATUS_LIST(TN_STATUS_ENUM)
#undef TN_STATUS_ENUM
      TN_STATUS_MAX_ENUM = 0x7fffffff
} tn_status;

/** Returns a short English text of a status ("out of memory"); "unknown status" for any other
    number. The string is static. */
TN_API const char *tn_status_text(tn_status status);

#ifdef __cplusplus
}
#endif
#endif
