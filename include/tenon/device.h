/* Devices, which are named by strings: "CPU", "CUDA:1". CPU:1 to CPU:15 are further devices on the
   one processor that CPU, or CPU:0, is: for programs of several devices. They are not listed. */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device that this library knows. Strings live as long as the context. */
typedef struct tn_device_info {
  size_t size;        /**< sizeof(tn_device_info), set by the caller */
  const char *name;   /**< as in tn_open_desc */
  const char *about;  /**< what it is, for people: the model, its features */
  const char *absent; /**< why it cannot be used; NULL: it can */
  const char *pairs;  /**< its renderers and compilers that can be used here, the first one first,
                           each as in tn_open_desc, with spaces between */
  uint64_t bytes;     /**< of its memory; 0: not known */
} tn_device_info;

#define TN_DEVICE_INFO_INIT \
  { sizeof(tn_device_info), NULL, NULL, NULL, NULL, 0 }

/** Describes the `i`-th device, those that are absent included, which are looked for again each
    time; the first is the CPU. Past the last: TN_ERR_ARGUMENT, which leaves *info and the message
    alone, so that a loop ends there. */
TN_API tn_status tn_device_get(tn_context *context, size_t i, tn_device_info *info);

#ifdef __cplusplus
}
#endif
#endif
