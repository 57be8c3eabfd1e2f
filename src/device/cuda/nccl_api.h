/* Declares the part of NCCL, NVIDIA's library of collectives between GPUs, that is used, with
   numbers from the published interface, and opens it at run time. */
#ifndef TENON_DEVICE_CUDA_NCCL_API_H
#define TENON_DEVICE_CUDA_NCCL_API_H

#include "device/cuda/cuda_api.h"

#include <stddef.h>

typedef int nccl_result;
typedef struct nccl_communicator_object *nccl_communicator;

enum {
  NCCL_SUCCESS = 0,
  NCCL_IN_PROGRESS = 7, /* of a communicator that does not block */

  NCCL_ID_BYTES = 128,
  NCCL_CONFIG_VERSION = 21400 /* of the fields below; what later versions add is usual then */
};

#define NCCL_CONFIG_MAGIC 0xcafebeefu

/** Names a communicator to all processes that join it. */
typedef struct nccl_id {
  char bytes[NCCL_ID_BYTES];
} nccl_id;

typedef struct nccl_config {
  size_t size;
  unsigned magic, version;
  int blocking;
} nccl_config;

/** The functions that are used. */
typedef struct nccl_api {
#define NCCL(name, result, parameters) result(*name) parameters;
#include "device/cuda/nccl_functions.def"
} nccl_api;

/** Opens the file that TENON_NCCL names, or else libnccl.so.2 in the first folder that has it.
   TN_ERR_DEVICE with a sentence that says what is missing. */
tn_status nccl_open(nccl_api *nccl, diag *d);

/** NCCL's name of a failure: "ncclSystemError". */
const char *nccl_result_name(nccl_result r);

#endif
