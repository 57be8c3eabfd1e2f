/* Signals in host memory. The value rises under the lock that waiters sleep on, so no wake-up is
   lost. */
#include "device/signal.h"

#include "device/failure.h"

enum { SPIN_NS = 20000 };

typedef struct host {
  const mem *mem;
  _Atomic uint64_t value;
  atomic_bool has_failed;
  mutex lock; /* of changes, and of what follows */
  condition risen;
  size_t waiting;
  uint64_t failed_above, failed_to; /* values above the one, up to the other, are failures */
  tn_failure failure;
} host;

static tn_status host_open(void *device, uint64_t value, void **signal, tn_failure *f) {
  const mem *m = ((tn_device *)device)->mem;
  host *h = mem_calloc(m, 1, sizeof *h);
  if (!h) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  h->mem = m;
  atomic_init(&h->value, value);
  atomic_init(&h->has_failed, false);
  mutex_init(&h->lock);
  condition_init(&h->risen);
  *signal = h;
  return TN_OK;
}

static void host_free(void *signal) {
  host *h = signal;
  condition_free(&h->risen);
  mutex_free(&h->lock);
  mem_free(h->mem, h, sizeof *h);
}

static uint64_t host_get(void *signal) { return atomic_load(&((host *)signal)->value); }

/** Under the lock. */
static void rise(host *h, uint64_t value) {
  atomic_store(&h->value, value);
  if (h->waiting) condition_wake_all(&h->risen);
}

static void host_set(void *signal, uint64_t value) {
  host *h = signal;
  mutex_lock(&h->lock);
  if (value > atomic_load(&h->value)) rise(h, value);
  mutex_unlock(&h->lock);
}

/** Under the lock. What follows a failure is a failure for the same reason. */
static void note_failure(host *h, uint64_t value, tn_status status, const char *text) {
  uint64_t now = atomic_load(&h->value);
  if (!atomic_load(&h->has_failed) || h->failed_to != now) {
    h->failed_above = now;
    tn_fail(&h->failure, status, "%s", text);
  }
  h->failed_to = value;
  atomic_store(&h->has_failed, true);
}

static void host_fail(void *signal, uint64_t value, tn_status status, const char *text) {
  host *h = signal;
  mutex_lock(&h->lock);
  if (value > atomic_load(&h->value)) {
    note_failure(h, value, status, text);
    rise(h, value);
  }
  mutex_unlock(&h->lock);
}

/** What became of a value that was reached. */
static tn_status outcome(host *h, uint64_t value, tn_failure *f) {
  if (!atomic_load(&h->has_failed)) return TN_OK;
  tn_status status = TN_OK;
  mutex_lock(&h->lock);
  if (value > h->failed_above && value <= h->failed_to)
    status = tn_fail(f, h->failure.status, "%s", h->failure.text);
  mutex_unlock(&h->lock);
  return status;
}

static bool spin(host *h, uint64_t value) {
  int64_t end = clock_now() + SPIN_NS;
  do {
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(&h->value, memory_order_acquire) >= value) return true;
      thread_pause();
    }
  } while (clock_now() < end);
  return false;
}

/** Sleeps until the value is reached; false when the deadline (negative: none) passed before. */
static bool sleep_until(host *h, uint64_t value, int64_t deadline) {
  bool in_time = true;
  mutex_lock(&h->lock);
  h->waiting++;
  while (atomic_load(&h->value) < value && in_time)
    in_time = condition_wait_until(&h->risen, &h->lock, deadline);
  h->waiting--;
  bool reached = atomic_load(&h->value) >= value;
  mutex_unlock(&h->lock);
  return reached;
}

static tn_status host_wait(void *signal, uint64_t value, int64_t timeout_ns, tn_failure *f) {
  host *h = signal;
  if (host_get(h) >= value) return outcome(h, value, f);
  int64_t now = clock_now();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
  bool reached = timeout_ns != 0 && (spin(h, value) || sleep_until(h, value, deadline));
  if (reached) return outcome(h, value, f);
  return tn_fail(f, TN_ERR_TIMEOUT, "a signal is at %llu, not at %llu, after %lld ns",
                 (unsigned long long)host_get(h), (unsigned long long)value, (long long)timeout_ns);
}

const tn_signal_functions host_signal = {.size = sizeof(tn_signal_functions),
                                         .open = host_open,
                                         .free = host_free,
                                         .get = host_get,
                                         .set = host_set,
                                         .fail = host_fail,
                                         .wait = host_wait};
