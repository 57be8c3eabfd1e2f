/* Schedules user kernels, which a KERNEL node (a call of a kernel written in the IR) brings along:
   binds their arguments to buffers and finds which may be written in place. */
#ifndef TENON_SCHEDULE_CORE_USER_KERNEL_H
#define TENON_SCHEDULE_CORE_USER_KERNEL_H

#include "ir/verify/kernel_signature.h"

/** The kernel with buffer numbers as its slots: slot i reads buffer from[i] and writes to[i]. */
const node *user_kernel_bind(ir *g, const kernel_signature *f, const size_t from[],
                             const size_t to[]);

/** True if a kernel brings a schedule along, which is for a kernel with a buffer for each PARAM. */
bool user_kernel_is_scheduled(const kernel_signature *f);

/** True if a kernel certainly writes every element of a slot. */
bool user_kernel_writes_all(ir *g, const kernel_signature *f, size_t slot);

/** True if the only result of a KERNEL may be stored over `old`: the kernel reads each element of
   it only where it writes that element, once. */
bool user_kernel_is_in_place(ir *g, const node *n, const node *old);

/** A kernel that copies one buffer to another, both like a PARAM. */
const node *user_kernel_copy(ir *g, const node *like, size_t from, size_t to);

#endif
