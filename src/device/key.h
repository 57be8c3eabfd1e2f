/* Keys of kernels: all that decides what code a kernel becomes, known before any is made; and keys
   of plans. */
#ifndef TENON_DEVICE_KEY_H
#define TENON_DEVICE_KEY_H

#include "base/str.h"
#include "device/device.h"
#include "ir/ir.h"

/** Equal kernels have equal bytes; the hash (XXH3) is for finding and naming alone. */
typedef struct kernel_key {
  uint64_t hash[2];
  const void *data;
  size_t bytes;
} kernel_key;

/** The key of a kernel: a SINK, from which code is generated in math mode `math`, or a
   PROGRAM(SINK, DEVICE, LINEAR). It has the graph, without the kernel's name and whatever numbers
   its ranges and allocs got; the backend's name; the target and its capabilities; the renderer; the
   compiler and what identifies it (`identity`, of its `key`); and build_id. In the arena. */
kernel_key key_make(arena *a, const device_target *t, const char *identity, int math,
                    const node *kernel);

/** What of a kernel's key neither the target nor its compiler decides, in place; and the key that a
    kernel has whose key once had that. */
const void *key_own(const void *data, size_t bytes, size_t *own);
kernel_key key_make_again(arena *a, const device_target *t, const char *identity, const void *own,
                          size_t bytes);

/** The key of a plan for a target: begun, to be ended when what else decides it was appended. No
    compiler does: kernels are found by keys of their own. */
str key_begin_plan(arena *a, const device_target *t);
kernel_key key_end_plan(const str *s);
bool key_is_plan(const kernel_key *k);

/** The key of what identifies a target's compiler: its `stamp`, the target and build_id. No kernel
    has it. In the arena. */
kernel_key key_make_identity(arena *a, const device_target *t, const char *stamp);

/** The hash that keys have, of any bytes. */
void key_hash(const void *data, size_t bytes, uint64_t hash[2]);

/** Changes with every change of the sources that decide what a kernel becomes. */
extern const char build_id[];

#endif
