/* Reads the processor's caches, pages and cores, as cpuinfo and the system report them, for the
   cost models. */
#ifndef TENON_DEVICE_CPU_DETECT_CACHES_H
#define TENON_DEVICE_CPU_DETECT_CACHES_H

#include <tenon/unstable/backend.h>

/** The facts of the processor that cost models use; 0 where not known. Of several kinds of cores,
    the smallest caches count. The same whichever cores this process may use. */
tn_hardware cpu_hardware(void);

#endif
