/* Implements timeline signals in host memory, for backends that have none: a 64-bit counter that
   only rises. It rises under the lock that waiters sleep on, so no wake-up is lost; a waiter spins
   before it sleeps. A range of values may be failures, whose waits return the failure. */
#include "device/queue/signal.h"
#include "device/threads/spin.h"

enum { SPIN_NS = 20000 };

typedef struct host_signal {
  const mem *mem;
  _Atomic uint64_t value;
  atomic_bool has_failed;
  mutex lock; /* of changes, and of the fields below */
  condition risen;
  size_t waiting;
  uint64_t failed_above, failed_to; /* values above the one, up to the other, are failures */
  tn_failure failure;
} host_signal;

static tn_status host_signal_open(void *device, uint64_t value, void **signal, tn_failure *f) {
  const mem *m = ((tn_device *)device)->mem;
  host_signal *h = mem_calloc(m, 1, sizeof *h);
  if (!h) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  h->mem = m;
  atomic_init(&h->value, value);
  atomic_init(&h->has_failed, false);
  mutex_init(&h->lock);
  condition_init(&h->risen);
  *signal = h;
  return TN_OK;
}

static void host_signal_free(void *signal) {
  host_signal *h = signal;
  condition_free(&h->risen);
  mutex_free(&h->lock);
  mem_free(h->mem, h, sizeof *h);
}

static uint64_t host_signal_get(void *signal) {
  return atomic_load(&((host_signal *)signal)->value);
}

/** Under the lock. */
static void raise_value(host_signal *h, uint64_t value) {
  atomic_store(&h->value, value);
  if (h->waiting) condition_broadcast(&h->risen);
}

static void host_signal_set(void *signal, uint64_t value) {
  host_signal *h = signal;
  mutex_lock(&h->lock);
  if (value > atomic_load(&h->value)) raise_value(h, value);
  mutex_unlock(&h->lock);
}

/** Raises the signal to a failure. One that follows another at once extends it: the values up to
    here fail for the first one's reason. */
static void host_signal_fail(void *signal, uint64_t value, tn_status status, const char *text) {
  host_signal *h = signal;
  mutex_lock(&h->lock);
  uint64_t now = atomic_load(&h->value);
  if (value > now) {
    if (!atomic_load(&h->has_failed) || h->failed_to != now) {
      h->failed_above = now;
      tn_fail(&h->failure, status, "%s", text);
    }
    h->failed_to = value;
    atomic_store(&h->has_failed, true);
    raise_value(h, value);
  }
  mutex_unlock(&h->lock);
}

/** The failure of a value that was reached, if it is one. */
static tn_status check_value(host_signal *h, uint64_t value, tn_failure *f) {
  if (!atomic_load(&h->has_failed)) return TN_OK;
  tn_status status = TN_OK;
  mutex_lock(&h->lock);
  if (value > h->failed_above && value <= h->failed_to) *f = h->failure, status = f->status;
  mutex_unlock(&h->lock);
  return status;
}

typedef struct value_wait {
  const host_signal *signal;
  uint64_t value;
} value_wait;

static bool is_reached(const void *arg) {
  const value_wait *w = arg;
  return atomic_load_explicit(&w->signal->value, memory_order_acquire) >= w->value;
}

/** Sleeps until the value is reached; false if the deadline (negative: none) passes before. */
static bool sleep_until(host_signal *h, uint64_t value, int64_t deadline) {
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

static tn_status host_signal_wait(void *signal, uint64_t value, int64_t timeout_ns, tn_failure *f) {
  host_signal *h = signal;
  if (host_signal_get(h) >= value) return check_value(h, value, f);
  int64_t now = clock_now_ns();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
  const value_wait w = {h, value};
  if (timeout_ns && (spin_until(is_reached, &w, SPIN_NS) || sleep_until(h, value, deadline)))
    return check_value(h, value, f);
  return tn_fail(f, TN_ERR_TIMEOUT, "the signal has value %llu, not %llu, after %lld ns",
                 (unsigned long long)host_signal_get(h), (unsigned long long)value,
                 (long long)timeout_ns);
}

const tn_signal_functions host_signal_functions = {.size = sizeof(tn_signal_functions),
                                                   .open = host_signal_open,
                                                   .free = host_signal_free,
                                                   .get = host_signal_get,
                                                   .set = host_signal_set,
                                                   .fail = host_signal_fail,
                                                   .wait = host_signal_wait};
