/* Builds the keys of the caches of kernels, plans and compiler identities. A kernel's key contains
   everything that decides its machine code, and is known before any code is generated. */
#ifndef TENON_COMPILE_CACHE_KEYS_H
#define TENON_COMPILE_CACHE_KEYS_H

#include "base/str.h"
#include "device/core/device_target.h"
#include "ir/core/ir.h"

/** A key: equal contents have equal bytes, and are compared by them. */
typedef struct cache_key {
  uint64_t hash[2]; /* XXH3: finds and names entries, never identifies them */
  const void *data;
  size_t bytes;
} cache_key;

/** The part of a kernel's key that depends on its graph and math mode alone. */
typedef struct kernel_graph_key {
  const void *data;
  size_t bytes;
} kernel_graph_key;

/** The graph part of a kernel's key. The kernel is a SINK, from which code is generated in math
   mode `math`, or a PROGRAM(SINK, DEVICE, LINEAR). The part contains the graph, without the
   kernel's name and the numbers of its ranges and allocs. In the arena. */
kernel_graph_key kernel_graph_key_make(arena *a, int math, const node *kernel);

/** The key of a kernel: its graph; the decisions of a tuned schedule ("": none); the backend's
    name; the target with its capabilities; the renderer; the compiler and its `identity` (the text
    of its `key`); and build_id. In the arena. */
cache_key kernel_key_make(arena *a, const device_target *t, const char *identity, const char *tuned,
                          kernel_graph_key graph);

/** The graph's part of a kernel's key, in place. */
kernel_graph_key kernel_key_graph(const void *data, size_t bytes);

/** The name of a kernel in stores of tuned schedules: hashes of its graph, of the target with its
    hardware, and of the compiler, in hexadecimal, separated by spaces. build_id is not among them:
    a record states the decisions that it is for. A record of another kernel that has the same
    hashes gives a slower schedule, never another result. In the arena. */
const char *tuned_key_make(arena *a, const device_target *t, const char *identity,
                           kernel_graph_key graph);

/** The key of a plan for a target: begins a string, to which the caller appends all else that
    decides the plan, and ends it. A compiler does not: kernels are found by keys of their own. */
str plan_key_begin(arena *a, const device_target *t);
cache_key plan_key_end(const str *s);
bool plan_key_is(const cache_key *k);

/** The key under which the disk cache keeps the identity of a target's compiler: made of the
    compiler's fingerprint (`stamp`), the target and build_id; no kernel's key equals it. In the
    arena. */
cache_key compiler_identity_key_make(arena *a, const device_target *t, const char *stamp);
bool compiler_identity_key_is(const cache_key *k);

/** The same with imported_stamp in place of a fingerprint, for a target as keys have it: the
    identity of the compiler that made imported kernels. In the arena. */
cache_key imported_identity_key_make(arena *a, const void *target_key, size_t bytes);
extern const char imported_stamp[];

/** The part of keys that is a target's: build_id, the backend's name, the target with its
    capabilities and hardware, the renderer, the compiler. In the arena. */
str target_key_make(arena *a, const device_target *t);

/** The beginning of a key of a kernel, a plan or a compiler identity, in place. */
typedef struct cache_key_parts {
  bool is_plan, is_compiler;
  const char *build, *backend, *target, *renderer, *compiler;
  tn_hardware hardware;
  const char *target_key; /* as of target_key_make */
  size_t target_key_bytes;
  const char *rest; /* of a kernel: the identity of its compiler; of an identity: the stamp */
} cache_key_parts;

/** Reads a key; false if it is malformed. */
bool cache_key_read(const void *data, size_t bytes, cache_key_parts *p);

/** The key of these bytes, which it refers to. */
cache_key cache_key_of(const void *data, size_t bytes);

/** The hash of keys (128 bits of XXH3), of any bytes. */
void cache_keys_hash(const void *data, size_t bytes, uint64_t hash[2]);

/** A digest of the sources that decide how kernels are compiled. */
extern const char build_id[];

#endif
