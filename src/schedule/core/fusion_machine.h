/* The machine model of the scheduler's cost model: cores, cache sizes, and times in ns. */
#ifndef TENON_SCHEDULE_CORE_FUSION_MACHINE_H
#define TENON_SCHEDULE_CORE_FUSION_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/** A machine as the cost model of the schedule sees it. */
typedef struct machine {
  double cores;     /* that work on one kernel */
  double operation; /* ns of one core for an elementwise operation, in vectors */
  double tile;      /* how many times as long a contraction takes without register tiles */
  double launch;    /* ns to start a kernel on all cores */
  double scratch;   /* bytes that a kernel may have of its own */
  double cache[2];  /* bytes of a core's own caches */
  double shared;    /* bytes of the last cache */
  double vector;    /* bytes of a vector; 0: there are none */
  double page;      /* bytes of a page of memory; 0: addresses cost the same wherever they are */
  double tlb;       /* pages whose addresses a core holds */
  bool teams;      /* teams of workers compute a kernel: each worker runs the FOLDs that it reads */
  bool warp_tiles; /* warps compute tiles of products of words (tensor_rows.def) */
  /* Machines of devices 1 …, in a plan of several; this one is that of device 0, and of others. */
  const struct machine *more;
  size_t n_more;
} machine;

/** The machine of a device, by its number + 1; 0: anybody's. */
static inline const machine *machine_of_device(const machine *m, size_t device) {
  return device > 1 && device - 1 <= m->n_more ? &m->more[device - 2] : m;
}

#endif
