/* The processor's caches and cores. */
#ifndef TENON_DEVICE_CPU_HARDWARE_H
#define TENON_DEVICE_CPU_HARDWARE_H

#include <tenon/unstable/backend.h>

/** What is known of the processor; of several kinds of cores, what the least of them has. It does
    not depend on which cores this process may use. */
tn_hardware cpu_hardware(void);

#endif
