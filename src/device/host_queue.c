/* Queues of backends that have none of their own: a thread that runs the commands in order. It
   starts with the first list that no caller runs itself. */
#include "device/failure.h"
#include "device/queue.h"

enum { ROOM = 64, SPIN_NS = 50000 };

typedef struct host {
  const mem *mem;
  thread thread;
  mutex lock; /* of what follows */
  condition more, room;
  atomic_uint_fast64_t posted; /* submissions so far */
  uint64_t taken;
  bool started; /* the thread */
  bool running; /* a list, on the thread or on a caller's */
  bool sleeping, waiting, stop;
  tn_submission ring[ROOM];
} host;

/** Whether the thread has nothing to do now. Under the lock. */
static bool idle(const host *h) {
  return h->running || (atomic_load(&h->posted) == h->taken && !h->stop);
}

/** The thread's: the next submission, spinning a little, then sleeping; false when it is to stop.
 */
static bool next(host *h, tn_submission *s) {
  int64_t end = clock_now() + SPIN_NS;
  while (atomic_load(&h->posted) == h->taken && clock_now() < end)
    for (int i = 0; i < 32; i++) thread_pause();
  mutex_lock(&h->lock);
  h->sleeping = true;
  while (idle(h)) condition_wait(&h->more, &h->lock);
  h->sleeping = false;
  bool some = atomic_load(&h->posted) != h->taken;
  if (some) *s = h->ring[h->taken % ROOM];
  h->running = some;
  mutex_unlock(&h->lock);
  return some;
}

static void taken(host *h) {
  mutex_lock(&h->lock);
  h->taken++;
  h->running = false;
  if (h->waiting) condition_wake_all(&h->room);
  mutex_unlock(&h->lock);
}

static void *body(void *arg) {
  tn_submission s;
  while (next(arg, &s)) {
    submission_run(&s);
    taken(arg);
    tn_submission_done(&s);
  }
  return NULL;
}

static void host_end(host *h) {
  condition_free(&h->room);
  condition_free(&h->more);
  mutex_free(&h->lock);
  mem_free(h->mem, h, sizeof *h);
}

static tn_status host_open(void *device, tn_queue_kind kind, void **queue, tn_failure *f) {
  (void)kind;
  const mem *m = ((tn_device *)device)->mem;
  host *h = mem_calloc(m, 1, sizeof *h);
  if (!h) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  h->mem = m;
  mutex_init(&h->lock);
  condition_init(&h->more);
  condition_init(&h->room);
  atomic_init(&h->posted, 0);
  *queue = h;
  return TN_OK;
}

static void host_free(void *queue) {
  host *h = queue;
  mutex_lock(&h->lock);
  h->stop = true;
  condition_wake_all(&h->more);
  bool started = h->started;
  mutex_unlock(&h->lock);
  if (started) thread_join(h->thread);
  host_end(h);
}

/** Under the lock. */
static tn_status start(host *h, tn_failure *f) {
  if (h->started) return TN_OK;
  diag d;
  diag_clear(&d);
  if (thread_start(&h->thread, body, h, &d)) return failure_take(f, &d);
  h->started = true;
  return TN_OK;
}

/** Under the lock. */
static void post(host *h, const tn_submission *s) {
  uint64_t posted = atomic_load(&h->posted);
  h->waiting = posted - h->taken == ROOM;
  while (posted - h->taken == ROOM) condition_wait(&h->room, &h->lock);
  h->waiting = false;
  h->ring[posted % ROOM] = *s;
  atomic_store(&h->posted, posted + 1);
  if (h->sleeping) condition_wake_all(&h->more);
}

static tn_status host_submit(void *queue, const tn_submission *s, tn_failure *f) {
  host *h = queue;
  mutex_lock(&h->lock);
  tn_status status = start(h, f);
  if (!status) post(h, s);
  mutex_unlock(&h->lock);
  return status;
}

static bool host_enter(void *queue) {
  host *h = queue;
  mutex_lock(&h->lock);
  bool alone = !h->running && atomic_load(&h->posted) == h->taken;
  if (alone) h->running = true;
  mutex_unlock(&h->lock);
  return alone;
}

static void host_leave(void *queue) {
  host *h = queue;
  mutex_lock(&h->lock);
  h->running = false;
  if (h->sleeping && atomic_load(&h->posted) != h->taken) condition_wake_all(&h->more);
  mutex_unlock(&h->lock);
}

const tn_queue_functions host_queue = {.size = sizeof(tn_queue_functions),
                                       .open = host_open,
                                       .free = host_free,
                                       .submit = host_submit,
                                       .enter = host_enter,
                                       .leave = host_leave};
