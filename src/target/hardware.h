/* Sanitises the hardware facts that a device reports (cores, caches, …), which cost estimates read
   and only speed depends on. Reports are not reliable: virtual machines hide caches or report a
   whole host's, so values outside of the plausible ranges of machine.def are replaced by its
   defaults. */
#ifndef TENON_TARGET_HARDWARE_H
#define TENON_TARGET_HARDWARE_H

#include <tenon/unstable/backend.h>

/** Reported hardware with defaults for facts that are unknown (0) or implausible. */
tn_hardware hardware_with_defaults(const tn_hardware *h);

/** Bytes of all last-level caches together. */
double hardware_llc_bytes(const tn_hardware *h);

/** Bytes of data, read again and again, that stay in the first cache beside everything else.
    `known`: with defaults. */
double hardware_l1_resident_bytes(const tn_hardware *known);

/** Bytes of a cache whose sets repeat every page that rows `apart` bytes from each other occupy:
   the set that holds the most rows counts for all sets. Rows within a line count as their bytes.
    `known`: with defaults. */
double hardware_rows_bytes(const tn_hardware *known, int64_t apart, double rows);

/** Pages that rows `apart` bytes from each other lie in, where most rows begin another page; else
   0. `page`: bytes of one; 0: addresses cost the same wherever they are. */
double hardware_pages_read(double page, double apart, double rows);

/** Bytes of a kernel's own arrays per worker that stay in a core's caches beside its operands.
    `most`: the backend's limit; 0: none. */
uint64_t hardware_scratch_bytes(const tn_hardware *h, uint64_t most);

#endif
