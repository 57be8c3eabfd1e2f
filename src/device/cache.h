/* Kernels that are compiled, in memory. A kernel is found by its whole key (key.h), never by a hash
   alone. Devices of a type share kernels. What nobody holds is kept within bounds: beyond them the
   least recently used goes first. Kernels compiled together are one piece of code, which goes with
   the last of them. Any thread. */
#ifndef TENON_DEVICE_CACHE_H
#define TENON_DEVICE_CACHE_H

#include "base/visit.h"
#include "device/key.h"
#include "device/program.h"

typedef struct kernel kernel;

/** An empty cache that keeps at most so many kernels that nobody holds, and so many bytes of these:
    their keys and code, which counts once more where it is loaded. NULL without memory. */
kernel_cache *cache_open(const mem *m, size_t most, size_t bytes);

/** Sets the bounds anew, and drops what is beyond them. */
void cache_limit(kernel_cache *c, size_t most, size_t bytes);

/** Unloads everything. No program may be in use. NULL is allowed. */
void cache_close(kernel_cache *c);

/** What cache_ask found: the kernel; none, and the caller is now the one who compiles it; or
    another thread that is compiling it. */
typedef enum cache_answer { CACHE_FOUND, CACHE_CLAIMED, CACHE_BUSY } cache_answer;

/** The threads in functions of callers whose kernels it keeps. */
visits *cache_visits(kernel_cache *c);

/** Looks a key up. Unless the answer is BUSY, *k is held for the caller, who gives it back with
    cache_drop. With `wait`, a kernel that is being compiled is waited for, and the answer is not
    BUSY; but a thread in a function of the caller's claims it once more, as it may be in the midst
    of compiling it. Who claimed a kernel must publish or drop it, and must not wait for another
    before. */
tn_status cache_ask(kernel_cache *c, const kernel_key *key, bool wait, cache_answer *answer,
                    kernel **k, diag *d);

/** A name for a kernel's function: its key's hash, and a number where others have the same hash,
   so that no two kernels there have one name. Lives as long as the kernel is held. */
const char *cache_entry(const kernel *k);

/** A kernel's key, in the cache's memory. Lives as long as the kernel is held. */
const void *cache_key(const kernel *k, size_t *bytes);

/** What a claimed kernel became. */
typedef struct made_kernel {
  kernel *kernel;
  const tn_program_spec *spec;
  launch_code sizes;
  launch_terms terms;
} made_kernel;

/** Says what claimed kernels were compiled to, or `found` to have been before: one piece of code
   for all `n`, in which they have the entries of their specs. All is copied. */
tn_status cache_publish(kernel_cache *c, const made_kernel made[], size_t n, const tn_code *code,
                        bool found, diag *d);

/** Gives a kernel back. One that is claimed and not published goes; who waits for it asks anew. */
void cache_drop(kernel_cache *c, kernel *k);

/** The program of a published kernel on a device, loaded if it was not; held once more. Where there
    is no memory to load it, all that nobody holds is dropped, and it is tried once more. */
tn_status cache_program(kernel_cache *c, kernel *k, tn_device *device, tn_program **program,
                        diag *d);

/** Gives a program back: program_release's, for what may be the last hold. */
void cache_release(tn_program *p);

/** Unloads all programs of a device, none of which is in use. */
void cache_forget(kernel_cache *c, const tn_device *device);

typedef struct cache_counts {
  uint64_t found, compiled; /* since the cache was opened; found on disk too */
  size_t kernels, bytes;    /* now */
  size_t idle, idle_bytes;  /* of these, what nobody holds */
} cache_counts;
cache_counts cache_count(kernel_cache *c);

#endif
