/* OpenCL devices as the parts of the backend see them: what a driver says of a device, an open
   device, and failures that name the device and the call. */
#ifndef TENON_DEVICE_OPENCL_OPENCL_DEVICE_H
#define TENON_DEVICE_OPENCL_OPENCL_DEVICE_H

#include "base/mem.h"
#include "base/thread.h"
#include "device/opencl/opencl_api.h"
#include "ir/core/op.h"

#include <stdatomic.h>
#include <tenon/unstable/backend.h>

/** Facts about a device, as its driver states them. */
typedef struct opencl_facts {
  cl_platform platform;
  cl_device id;
  char name[128], platform_name[64], driver[64]; /* driver: its version */
  int version;                                   /* 10 · major + minor */
  uint64_t type;                                 /* CL_DEVICE_TYPE_… */
  uint64_t bytes, buffer_bytes, group_bytes, cache_bytes;
  size_t workers, parameter_bytes;
  uint32_t units, line_bytes, vector_floats; /* vector_floats: in the widest vector; 0: none */
  bool has_double, has_subnormals;           /* has_subnormals: of f32, else they count as 0 */
  bool is_unified;                           /* it uses the host's memory */
  bool is_rounded;                           /* division and root of f32 may be rounded correctly */
} opencl_facts;

/** True for a driver of the processor, whose memory is the host's. */
static inline bool opencl_is_processor(const opencl_facts *k) {
  return k->type & CL_DEVICE_TYPE_CPU;
}

/** The number of devices of all drivers, or 1 that is absent if there are none. */
int32_t opencl_device_count(void);

/** Finds the functions and the facts of a device; TN_ERR_DEVICE with a sentence that says why it
    cannot be used. */
tn_status opencl_device_find(int32_t index, opencl_api *cl, opencl_facts *facts, tn_failure *f);

typedef struct opencl_device {
  mem mem;
  opencl_api cl;
  int32_t index;
  opencl_facts facts;
  cl_context context;
  mutex lock;                      /* of the queue and the event below */
  cl_queue mappings;               /* maps staging memory */
  cl_event trial;                  /* of an empty command that tries the device; NULL: none */
  atomic_bool is_tried;            /* there is one */
  atomic_uint noted;               /* notifications of the driver's about something that ran */
  atomic_uint tried;               /* of these, those after which the device was tried */
  atomic_bool is_lost;             /* it did not pass the trial */
  const char *lacks[OP_LIMIT + 1]; /* ops that OpenCL C lacks, up to NULL */
} opencl_device;

/** Memory: a buffer, which the host can address if it is staging memory or its own. */
typedef struct opencl_memory {
  cl_memory buffer;
  void *host;
} opencl_memory;

/** A kernel, whose arguments and launch are one step under the lock. */
typedef struct opencl_program {
  opencl_device *device;
  cl_kernel kernel;
  mutex lock;
  const tn_program_facts *facts;
} opencl_program;

/** Fails with "NAME of OPENCL:0 (…): CL_…": as want of memory where the status says that, else with
    `usual`. */
tn_status opencl_fail(const opencl_device *v, const char *call, cl_status status, tn_status usual,
                      tn_failure *f);

/** Called by the driver about something that it runs: a failure, or advice. The device is tried
    when it is next used. */
void opencl_note(const char *text, const void *data, size_t bytes, void *device);

/** True if the device is lost: it does nothing any more after a notification of the driver's. */
bool opencl_is_lost(opencl_device *v);

/* The pairs, and programs (opencl_program.c). */
extern const tn_renderer opencl_renderer, opencl_teams_renderer;
extern const tn_compiler opencl_compiler;
tn_status opencl_load(void *device, const tn_code *code, void **module, tn_failure *f);
void opencl_unload(void *module);
tn_status opencl_program_make(void *module, const tn_program_facts *facts, void **program,
                              tn_failure *f);
void opencl_program_free(void *program);

/* Streams and marks (opencl_stream.c). */
extern const tn_stream_functions opencl_streams;

#endif
