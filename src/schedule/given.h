/* Kernels that the graph brings along: KERNEL nodes as steps. */
#ifndef TENON_SCHEDULE_GIVEN_H
#define TENON_SCHEDULE_GIVEN_H

#include "ir/kernel.h"

/** The kernel with numbers of buffers as its slots: what slot i reads is in buffer from[i], what it
    writes goes to buffer to[i]. */
const node *given_kernel(ir *g, const kernel_form *f, const size_t from[], const size_t to[]);

/** Whether a kernel brings a schedule along: that applies to it with a buffer for each of its
    PARAMs. */
bool given_is_scheduled(const kernel_form *f);

/** Whether a kernel certainly writes every element of a slot. */
bool given_writes_all(ir *g, const kernel_form *f, size_t slot);

/** Whether the only result of a KERNEL may be stored over `old`: what the kernel reads of it is
   read where it is written, once. */
bool given_is_in_place(ir *g, const node *n, const node *old);

/** A kernel that copies one buffer to another, both like a PARAM. */
const node *given_copy(ir *g, const node *like, size_t from, size_t to);

#endif
