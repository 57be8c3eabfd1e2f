/* OpenBLAS, a library of products of matrices on processors, opened at run time where it is
   installed. */
#ifndef TENON_DEVICE_CPU_OPENBLAS_H
#define TENON_DEVICE_CPU_OPENBLAS_H

#include "device/cpu/cpu_device.h"

/** The CPU's library of products. */
extern const tn_product_library openblas_products;

/** Opens libopenblas.so.0, or the file that TENON_OPENBLAS names, which the process keeps, and
    changes nothing of it. TN_ERR_DEVICE with a sentence that says what is missing. */
tn_status openblas_open(void *device, tn_failure *f);

/** Opens it for products, and sets its own threads to one. */
tn_status openblas_load(tn_failure *f);

/** Computes a product on the host's threads; the library is open. */
tn_status openblas_run(const cpu *c, const tn_product *p, const tn_launch *l, tn_failure *f);

#endif
