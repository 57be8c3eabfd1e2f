/* Implements pools of queues as lists, which are as long as a context has devices. */
#include "device/queue/queue_pool.h"

typedef struct pooled_queue {
  struct pooled_queue *next;
  tn_queue *queue;
  tn_queue_kind kind;
} pooled_queue;

tn_status queue_pool_get(queue_pool *p, tn_device *device, tn_queue_kind kind, tn_queue **queue,
                         diag *d) {
  *queue = NULL;
  for (pooled_queue *k = p->first; k && !*queue; k = k->next)
    if (k->kind == kind && queue_device(k->queue) == device) *queue = k->queue;
  if (*queue) return TN_OK;
  pooled_queue *k = mem_calloc(device->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = queue_open(device, kind, &k->queue, d);
  if (s != TN_OK) {
    mem_free(device->mem, k, sizeof *k);
    return s;
  }
  k->kind = kind;
  k->next = p->first;
  p->first = k;
  *queue = k->queue;
  return TN_OK;
}

void queue_pool_close(queue_pool *p) {
  for (pooled_queue *k = p->first, *next; k; k = next) {
    const mem *m = queue_device(k->queue)->mem;
    next = k->next;
    queue_close(k->queue);
    mem_free(m, k, sizeof *k);
  }
  p->first = NULL;
}
