/* Implements command queues in host memory, for backends that have none: a ring of submissions and
   a thread that runs them in order. The thread starts with the first submission; a caller may run a
   list on its own thread instead (enter, leave) while the queue is idle. */
#include "device/queue/queue.h"
#include "device/threads/spin.h"

#include <stdatomic.h>

enum { RING_SIZE = 64, SPIN_NS = 50000 };

typedef struct host_queue {
  const mem *mem;
  thread thread;
  mutex lock; /* of the fields below */
  condition more, less;
  atomic_uint_fast64_t posted; /* submissions so far */
  uint64_t ended;              /* of these, by the thread */
  bool started;                /* the thread */
  bool running;                /* a list, on the thread or on a caller's */
  bool sleeping, waiting;      /* the thread, for more; a caller, for less in the ring */
  bool stop;
  tn_submission ring[RING_SIZE];
} host_queue;

static bool has_submissions(const void *arg) {
  const host_queue *h = arg;
  return atomic_load(&h->posted) != h->ended;
}

/** The queue's thread: runs submissions, also those that are left when the queue is freed, until
    it is stopped and there are no more. Spins for the next one before it sleeps. */
static void *run_submissions(void *arg) {
  host_queue *h = arg;
  for (;;) {
    spin_until(has_submissions, h, SPIN_NS);
    mutex_lock(&h->lock);
    h->sleeping = true;
    while (h->running || (!has_submissions(h) && !h->stop)) condition_wait(&h->more, &h->lock);
    h->sleeping = false;
    if (!has_submissions(h)) break;
    const tn_submission s = h->ring[h->ended % RING_SIZE];
    h->running = true;
    mutex_unlock(&h->lock);

    submission_run(&s);

    mutex_lock(&h->lock);
    h->ended++;
    h->running = false;
    if (h->waiting) condition_broadcast(&h->less);
    mutex_unlock(&h->lock);
    tn_submission_done(&s);
  }
  mutex_unlock(&h->lock);
  return NULL;
}

static tn_status host_queue_open(void *device, tn_queue_kind kind, void **queue, tn_failure *f) {
  (void)kind;
  const mem *m = ((tn_device *)device)->mem;
  host_queue *h = mem_calloc(m, 1, sizeof *h);
  if (!h) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  h->mem = m;
  mutex_init(&h->lock);
  condition_init(&h->more);
  condition_init(&h->less);
  atomic_init(&h->posted, 0);
  *queue = h;
  return TN_OK;
}

static void host_queue_free(void *queue) {
  host_queue *h = queue;
  mutex_lock(&h->lock);
  h->stop = true;
  condition_broadcast(&h->more);
  bool started = h->started;
  mutex_unlock(&h->lock);
  if (started) thread_join(h->thread);
  condition_free(&h->less);
  condition_free(&h->more);
  mutex_free(&h->lock);
  mem_free(h->mem, h, sizeof *h);
}

/** Under the lock. */
static tn_status start_thread(host_queue *h, tn_failure *f) {
  if (h->started) return TN_OK;
  diag d;
  diag_clear(&d);
  tn_status status = thread_start(&h->thread, run_submissions, h, &d);
  h->started = !status;
  if (status) *f = d.failure;
  return status;
}

/** Waits while the ring is full. Under the lock. */
static void post_submission(host_queue *h, const tn_submission *s) {
  uint64_t posted = atomic_load(&h->posted);
  h->waiting = posted - h->ended == RING_SIZE;
  while (posted - h->ended == RING_SIZE) condition_wait(&h->less, &h->lock);
  h->waiting = false;
  h->ring[posted % RING_SIZE] = *s;
  atomic_store(&h->posted, posted + 1);
  if (h->sleeping) condition_broadcast(&h->more);
}

static tn_status host_queue_submit(void *queue, const tn_submission *s, tn_failure *f) {
  host_queue *h = queue;
  mutex_lock(&h->lock);
  tn_status status = start_thread(h, f);
  if (!status) post_submission(h, s);
  mutex_unlock(&h->lock);
  return status;
}

static bool host_queue_enter(void *queue) {
  host_queue *h = queue;
  mutex_lock(&h->lock);
  bool is_idle = !h->running && !has_submissions(h);
  if (is_idle) h->running = true;
  mutex_unlock(&h->lock);
  return is_idle;
}

static void host_queue_leave(void *queue) {
  host_queue *h = queue;
  mutex_lock(&h->lock);
  h->running = false;
  if (h->sleeping && has_submissions(h)) condition_broadcast(&h->more);
  mutex_unlock(&h->lock);
}

const tn_queue_functions host_queue_functions = {.size = sizeof(tn_queue_functions),
                                                 .open = host_queue_open,
                                                 .free = host_queue_free,
                                                 .submit = host_queue_submit,
                                                 .enter = host_queue_enter,
                                                 .leave = host_queue_leave};
