/* The machine model of the scheduler's cost model: cores, cache sizes, and times in ns. */
#ifndef TENON_SCHEDULE_CORE_FUSION_MACHINE_H
#define TENON_SCHEDULE_CORE_FUSION_MACHINE_H

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
} machine;

#endif
