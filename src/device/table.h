/* The table of devices: the backends known, the devices open, and what these share: the threads and
   the kernels compiled. One table serves the whole process; a context that brings its own memory or
   threads brings its own table. Any thread. */
#ifndef TENON_DEVICE_TABLE_H
#define TENON_DEVICE_TABLE_H

#include "base/diag.h"
#include "base/mem.h"

#include <tenon/device.h>
#include <tenon/unstable/backend.h>

typedef struct table table;
typedef struct kernel_cache kernel_cache;
typedef struct pool pool;

/** What a cache of kernels keeps that nobody holds, unless it is told otherwise: so many, and so
    many bytes, counted as cache_open does. context.h says so too. */
enum { TABLE_KERNELS = 1024, TABLE_KERNEL_BYTES = 64 << 20 };

/** What a table of one's own is made of. */
typedef struct table_desc {
  const mem *mem;      /* NULL: the C library's; else copied */
  int32_t threads;     /* 0: as many as physical cores; at most POOL_MOST */
  tn_workers workers;  /* run == NULL: the table's own threads; `destroy` is the caller's to call */
  size_t most_kernels; /* that the cache keeps and nobody holds; 0: TABLE_KERNELS */
  size_t kernel_bytes; /* likewise; 0: TABLE_KERNEL_BYTES */
} table_desc;

/** The table of the process, made by the first call and never freed. */
tn_status table_global(table **t, diag *d);

tn_status table_open(table **t, const table_desc *desc, diag *d);

/** Closes all devices of a table of one's own and frees it. No buffer, signal, queue, list or
    program of its devices may be left. NULL is allowed. */
void table_close(table *t);

/** Makes a backend known; one that is known already stays. TN_ERR_ARGUMENT if it is not complete or
    its name is taken by another. */
tn_status table_add(table *t, const tn_backend *b, diag *d);

/** The device of a name, opened if need be: "CPU" is "CPU:0". The message for a name that is none
    lists the names there are. The device stays open until the table is closed. */
tn_status table_device(table *t, const char *name, tn_device **device, diag *d);

/** A device that there may be. */
typedef struct device_place {
  const tn_backend *backend;
  int32_t index;
} device_place;

/** The `i`-th device of all, absent ones included; false past the last. */
bool table_place(table *t, size_t i, device_place *place);

/** What tn_device_get tells. Strings of its own. */
typedef struct device_facts {
  device_place place;
  char name[48];
  char *about, *absent, *pairs; /* absent: NULL if it can be used */
  uint64_t bytes;
  struct device_facts *next; /* for who keeps them */
} device_facts;

/** Finds out what a device is and what works there; `compiler` is as in tn_open_desc. It is found
    out anew each time, which may take as long as a compiler takes to say its version: nobody else
    waits for that. What goes wrong is a fact, but for TN_ERR_MEMORY. */
tn_status table_ask(table *t, const device_place *place, const char *compiler, device_facts **facts,
                    diag *d);
void table_forget(table *t, device_facts *facts); /* frees them; NULL is allowed */

const mem *table_mem(const table *t);
kernel_cache *table_kernels(table *t);
pool *table_pool(table *t);

#endif
