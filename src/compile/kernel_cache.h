/* The memory cache of compiled kernels: a hash table by key, with least-recently-used eviction of
   kernels that nothing refers to. Equal hashes are told apart by the whole key (cache_keys.h).
   Devices of a backend share kernels; kernels of one compiler call share their code, which is freed
   with the last of them. Two threads that want one kernel compile it once: the first claims and
   publishes it, the others wait; but none waits for the background. Any thread may call it. */
#ifndef TENON_COMPILE_KERNEL_CACHE_H
#define TENON_COMPILE_KERNEL_CACHE_H

#include "compile/cache_keys.h"
#include "device/program/program.h"
#include "device/registry/device_registry.h"

typedef struct kernel kernel;
typedef struct kernel_cache kernel_cache;

/** Limits on idle kernels, to which nothing refers, unless kernel_cache_set_limits changes them;
    context.h states them too. */
enum { KERNEL_CACHE_MOST_IDLE = 1024, KERNEL_CACHE_MOST_IDLE_BYTES = 64 << 20 };

/** The kernel cache of a registry, opened by the first call; NULL without memory. */
kernel_cache *kernel_cache_of(registry *r);

/** An empty cache. `visits` are the threads in functions of callers, who may be in the midst of
    compiling. NULL without memory. */
kernel_cache *kernel_cache_open(const mem *m, reentrancy_list *visits);

/** Unloads everything. No program may be in use. NULL is allowed. */
void kernel_cache_close(kernel_cache *c);

/** Limits idle kernels to `most`, and their bytes to `bytes` (keys and code, which counts once more
    for each device it is loaded on), and evicts those beyond the limits. */
void kernel_cache_set_limits(kernel_cache *c, size_t most, size_t bytes);

/** Evicts idle kernels until at most `most` of at most `bytes` bytes are left; limits stay. */
void kernel_cache_trim(kernel_cache *c, size_t most, size_t bytes);

/** Results of kernel_cache_lookup. */
typedef enum kernel_cache_result {
  KERNEL_CACHE_HIT,
  KERNEL_CACHE_CLAIMED, /* not there: the caller compiles it */
  KERNEL_CACHE_PENDING  /* another thread is compiling it */
} kernel_cache_result;

/** Flags of kernel_cache_lookup. */
enum {
  KERNEL_CACHE_WAIT = 1, /* for a kernel that is being compiled, instead of returning PENDING */
  KERNEL_CACHE_BACKGROUND = 2, /* compiled at low priority: others do not wait for it */
  KERNEL_CACHE_TRIAL = 4 /* claimed anew: other lookups do not find it, and it is dropped with its
                            last reference */
};

/** Looks a key up. Unless the result is PENDING, *k has a reference for the caller, who drops it
    with kernel_cache_release. A kernel that is being compiled is claimed a second time by whom it
    may keep for long: a kernel of the background by a caller that is not in it, and one to wait for
    by a thread in a function of a caller's, which may itself be in the midst of compiling it.
    Whoever claimed a kernel must publish or release it, and must not wait for another one before.
 */
tn_status kernel_cache_lookup(kernel_cache *c, const cache_key *key, unsigned flags,
                              kernel_cache_result *result, kernel **k, diag *d);

/** A name for a kernel's function: its key's hash, and a number where other kernels have that hash,
    so that no two kernels in the cache have one name. Valid while the kernel is referred to. */
const char *kernel_entry_name(const kernel *k);

/** A kernel's key, in the cache's memory. Valid while the kernel is referred to. */
const void *kernel_key_bytes(const kernel *k, size_t *bytes);

/** The kernel of a program that this cache loaded. */
const kernel *kernel_of_program(const tn_program *p);

/** A claimed kernel with the facts of its code. */
typedef struct compiled_kernel {
  kernel *kernel;
  const tn_program_spec *spec; /* whose entry is the function's name in the code */
  launch_exprs sizes;
  launch_limits limits;
} compiled_kernel;

/** Code that was found on disk, and the module that it was loaded as to check it. */
typedef struct found_code {
  tn_device *device;
  void *module; /* the backend's; NULL: not loaded, for want of memory */
} found_code;

/** Publishes the code of `n` claimed kernels, which is copied with their facts. `found` is NULL if
    the code was compiled just now; its module belongs to the cache afterwards, but not if this
    fails, which it does with TN_ERR_MEMORY alone. */
tn_status kernel_cache_publish(kernel_cache *c, const compiled_kernel compiled[], size_t n,
                               const tn_code *code, const found_code *found, diag *d);

/** Drops a reference. A claimed kernel that is not published is removed, and threads that wait for
    it look it up anew. */
void kernel_cache_release(kernel_cache *c, kernel *k);

/** Has no lookup find a kernel any more, to which the caller has a reference: it goes with its last
    one. False, and changes nothing, if its code was compiled just now and not found on disk. */
bool kernel_cache_forget(kernel_cache *c, kernel *k);

/** The program of a published kernel on a device, loaded if it was not, with a reference. If there
    is no memory to load it, evicts all idle kernels and tries once more. */
tn_status kernel_cache_load_program(kernel_cache *c, kernel *k, tn_device *device,
                                    tn_program **program, diag *d);

typedef struct kernel_cache_stats {
  uint64_t found, compiled; /* since the cache was opened; found: in memory or on disk */
  size_t kernels, bytes;    /* now */
  size_t idle, idle_bytes;  /* of these */
} kernel_cache_stats;
kernel_cache_stats kernel_cache_get_stats(kernel_cache *c);

#endif
