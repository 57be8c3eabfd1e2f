/* Groups of processes that compute together: each process builds the same graph for its part of the
   data, and collectives exchange tensors between them. Data-parallel training sums gradients with
   tn_group_all_reduce; a product whose columns are divided joins them with tn_group_all_gather.
   Open MPI (libmpi.so.40, opened at run time) starts the processes, by mpirun -n 4 ./program, and
   carries data in the host's memory; NCCL (libnccl.so.2) carries data on devices of CUDA. "Several
   processes" in docs/library.md has an example. */
#ifndef TENON_GROUP_H
#define TENON_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/ops.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Processes that were started together; owned by its context, freed by tn_group_free. */
typedef struct tn_group tn_group;

/** Options of tn_group_open. Strings are copied. */
typedef struct tn_group_desc {
  size_t size; /**< sizeof(tn_group_desc) */
  /** "MPI": all data goes through the host's memory; "NCCL": data on the context's device, which is
      CUDA's, goes from device to device; NULL: NCCL where all processes can use it, else MPI, and
      the logger is told why. The same in all processes. */
  const char *engine;
  /** Time that a collective waits for the other processes, in seconds, for each 4 MiB of it; after
      that it fails with TN_ERR_TIMEOUT, and the group is lost; 0: 60 */
  double timeout;
} tn_group_desc;

#define TN_GROUP_DESC_INIT \
  { sizeof(tn_group_desc), NULL, 0 }

/** Opens the group of all processes that were started together; NULL: the usual descriptor. A
    program that has not initialised MPI gets that done, and ended with its last group, after which
    no other can be opened. All processes open it, and wait for each other. Free it with
   tn_group_free; tn_close frees it too. TN_ERR_DEVICE where Open MPI, or NCCL that was named, is
   missing (its text says how to get it), or does not serve all processes; TN_ERR_IO where it does
   not start; TN_ERR_TIMEOUT where a process does not come; TN_ERR_ARGUMENT for another engine. */
TN_API tn_status tn_group_open(tn_context *context, const tn_group_desc *desc, tn_group **group);

/** Frees the caller's group; graphs and plans with its collectives keep what they need. */
TN_API void tn_group_free(tn_group *group);

/** Returns the number of processes; −1 for NULL. Any thread. */
TN_API int64_t tn_group_size(const tn_group *group);

/** Returns the number of this process, from 0; −1 for NULL. Any thread. */
TN_API int64_t tn_group_rank(const tn_group *group);

/* Collectives are operations of the graph. All processes build the same ones in the same order, and
   run them in the same order with tensors of equal types and shapes; each is compared before it
   runs, and the group is lost where they differ (TN_ERR_ARGUMENT), where a process does not come
   (TN_ERR_TIMEOUT), or where an engine fails (TN_ERR_IO); the device stays usable. The host waits
   for them, they cannot stand in the body of tn_scan, and run in the order of the plan's steps,
   which is the same for equal graphs. */

/** Combines x elementwise over all processes; each gets the result, with x's shape and type. Sums
    and products of f16 and bf16 are computed in f32 and rounded once; the order of sums is the
    engine's. Maxima and minima are NaN where an element is, and -0 is less than 0. Sums of bools
    are "or", products "and". TN_ERR_DTYPE for storage types. TN_REDUCTION_NONE is TN_ERR_ARGUMENT.
    As torch.distributed.all_reduce. */
TN_API tn_tensor *tn_group_all_reduce(tn_group *group, tn_tensor *x, tn_reduction reduction);

/** Concatenates the x of all processes along an axis, in their order: size · n elements of n. As
    torch.distributed.all_gather_into_tensor. */
TN_API tn_tensor *tn_group_all_gather(tn_group *group, tn_tensor *x, int axis);

/** Combines x as tn_group_all_reduce does, and gives each process its part along an axis, whose
    size must be a multiple of the number of processes (TN_ERR_SHAPE). As
    torch.distributed.reduce_scatter_tensor. */
TN_API tn_tensor *tn_group_reduce_scatter(tn_group *group, tn_tensor *x, tn_reduction reduction,
                                          int axis);

/** Gives each process the x of one of them; TN_ERR_ARGUMENT where there is no such process. */
TN_API tn_tensor *tn_group_broadcast(tn_group *group, tn_tensor *x, int64_t root);

#ifdef __cplusplus
}
#endif
#endif
