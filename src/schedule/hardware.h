/* The hardware, for choices that only speed depends on. Nothing that it says can be relied on:
   virtual machines hide caches, or tell of a whole host's. */
#ifndef TENON_SCHEDULE_HARDWARE_H
#define TENON_SCHEDULE_HARDWARE_H

#include <tenon/unstable/backend.h>

/** The same, with what is usual in the place of what is not known (0) or cannot be. */
tn_hardware hardware_known(const tn_hardware *h);

/** Bytes of the last caches, of all cores together. */
double hardware_last_caches(const tn_hardware *h);

/** Bytes that the first cache of known hardware keeps of something that is read again and again,
    beside all else that is read. */
double hardware_first_keeps(const tn_hardware *known);

/** Bytes of arrays of its own that a kernel builds for each worker, so that they stay in a core's
    caches beside what it reads. `most`: that it may have; 0: any number. */
uint64_t hardware_scratch(const tn_hardware *h, uint64_t most);

#endif
