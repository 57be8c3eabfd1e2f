/* Queues that an owner keeps for its plans, one of each device and kind, since a queue has a thread
   and a stream to open. One thread at a time uses a pool. */
#ifndef TENON_DEVICE_QUEUE_QUEUE_POOL_H
#define TENON_DEVICE_QUEUE_QUEUE_POOL_H

#include "device/queue/queue.h"

typedef struct queue_pool {
  struct pooled_queue *first; /* NULL: an empty pool */
} queue_pool;

/** The pool's queue, opened on first use; it belongs to the pool. */
tn_status queue_pool_get(queue_pool *p, tn_device *device, tn_queue_kind kind, tn_queue **queue,
                         diag *d);

/** Closes all queues: the pool is empty. */
void queue_pool_close(queue_pool *p);

#endif
