/* CUDA devices as the parts of the backend see them: what the driver says of a device, an open
   device, entries into its context, and failures that name the device and the call. */
#ifndef TENON_DEVICE_CUDA_CUDA_DEVICE_H
#define TENON_DEVICE_CUDA_CUDA_DEVICE_H

#include "base/mem.h"
#include "base/thread.h"
#include "device/cuda/cublas_api.h"
#include "device/cuda/cuda_api.h"
#include "ir/core/op.h"

#include <stdatomic.h>
#include <tenon/unstable/backend.h>

/** Facts about a device, as the driver states them. */
typedef struct cuda_facts {
  cuda_ordinal ordinal;
  char name[128];
  int driver;       /* the newest version of CUDA that it supports: 1000 · major + 10 · minor */
  int major, minor; /* the compute capability */
  size_t bytes;
  int group_bytes, workers, units, cache_bytes;
} cuda_facts;

/** The number of devices, or 1 that is absent if there are none. */
int32_t cuda_device_count(void);

/** Finds the functions and the facts of a device; TN_ERR_DEVICE with a sentence that says why it
    cannot be used. */
tn_status cuda_device_find(int32_t index, cuda_api *cu, cuda_facts *facts, tn_failure *f);

/** An event, with the number of its owners. */
typedef struct cuda_shared_event {
  atomic_int owners;
  cuda_event event;
} cuda_shared_event;

typedef struct cuda_device {
  mem mem;
  cuda_api cu;
  int32_t index;
  cuda_facts facts;
  cuda_context context;            /* the primary one, which other libraries of the process share */
  atomic_bool is_lost;             /* the driver said so */
  const char *lacks[OP_LIMIT + 1]; /* ops that CUDA C lacks, up to NULL */
  cublas_api blas;                 /* if has_blas, from when on it stays */
  mutex lock;                      /* of what is below */
  bool has_blas;
  cuda_shared_event *origin; /* times are counted from it; NULL: none was asked for */
  int64_t origin_ns;
} cuda_device;

/** Memory of the device, or of the host for staging, which the device addresses likewise. */
typedef struct cuda_memory {
  cuda_address address;
  void *host; /* NULL: the device's */
} cuda_memory;

typedef struct cuda_program {
  cuda_device *device;
  cuda_function function; /* NULL: it is the product */
  tn_product product;
  const tn_program_facts *facts;
} cuda_program;

/** Makes the device's context the calling thread's, until `cuda_leave` brings its former one back.
 */
tn_status cuda_enter(cuda_device *v, tn_failure *f);
void cuda_leave(const cuda_device *v);

/** Fails with "CUDA:0 (…): CALL fails with CUDA_ERROR_… (…)": as want of memory or as the loss of
    the device, which is noted, where the status says that, else with `usual`. */
tn_status cuda_fail(cuda_device *v, const char *call, cuda_status status, tn_status usual,
                    tn_failure *f);

/** Fails as lost. */
tn_status cuda_fail_lost(const cuda_device *v, tn_failure *f);

/* The pair cuda/nvrtc (cuda_renderer.c, cuda_compiler.c), and programs (cuda_program.c). */
extern const tn_renderer cuda_renderer;
extern const tn_compiler cuda_compiler;
tn_status cuda_compiler_present(void *device, const char *compiler, tn_failure *f);
tn_status cuda_load(void *device, const tn_code *code, void **module, tn_failure *f);
void cuda_unload(void *module);
tn_status cuda_program_make(void *module, const tn_program_facts *facts, void **program,
                            tn_failure *f);
void cuda_program_free(void *program);

/* Products of matrices (cuda_products.c). */
extern const tn_product_library cuda_product_library;
/** Hands a product to a stream, whose handle of cuBLAS is made if it is NULL. Within cuda_enter. */
tn_status cuda_product_run(cuda_device *v, cuda_stream stream, cublas_handle *handle,
                           const tn_product *p, const tn_launch *l, tn_failure *f);

/* Workers of a warp. */
enum { CUDA_WARP = 32 };

/* Bytes of a kernel's arguments: all of them, and what is left for its values. */
enum { CUDA_ARGUMENT_BYTES = 4096, CUDA_VALUE_BYTES = 256 };

enum { CUDA_MOST_ARGUMENTS = CUDA_ARGUMENT_BYTES / sizeof(cuda_address) };

/** A launch as the driver takes it. */
typedef struct cuda_launch {
  cuda_function function;
  unsigned grid[3], group[3];
  cuda_address addresses[CUDA_MOST_ARGUMENTS];
  void *arguments[CUDA_MOST_ARGUMENTS]; /* addresses, then the work's values */
} cuda_launch;

/** Fills the launch of a kernel, which is valid as long as the work. */
tn_status cuda_launch_fill(cuda_launch *l, const cuda_device *v, const tn_work *w, tn_failure *f);

/* Streams and marks (cuda_stream.c), and graphs (cuda_graph.c). */
typedef struct cuda_queue {
  cuda_device *device;
  cuda_stream stream;
  cublas_handle blas; /* NULL: no product ran so far */
} cuda_queue;
extern const tn_stream_functions cuda_streams;
extern const tn_graph_functions cuda_graphs;
void cuda_shared_event_release(cuda_device *v, cuda_shared_event *e);

#endif
