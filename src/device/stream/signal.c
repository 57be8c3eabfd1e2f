/* Implements timeline signals. A signal rises under the lock that waiters sleep on, so no wake-up
   is lost; a waiter spins before it sleeps. The number of failed ranges is bounded,
   and one is part of the signal: where there is no room for another, the two oldest become one, and
   values that were reached between them fail as well. */
#include "device/stream/signal.h"

#include "device/threads/spin.h"

#include <string.h>

enum { SPIN_NS = 20000, MOST_FAILED_RANGES = 64 };

tn_status signal_open(tn_device *device, uint64_t value, tn_signal **signal, diag *d) {
  tn_signal *s = *signal = mem_calloc(device->mem, 1, sizeof *s);
  if (!s) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  s->device = device;
  atomic_init(&s->count, 1);
  atomic_init(&s->value, value);
  atomic_init(&s->has_failed, false);
  s->failed = &s->own;
  s->cap_failed = 1;
  mutex_init(&s->lock);
  condition_init(&s->risen);
  return TN_OK;
}

tn_signal *signal_retain(tn_signal *s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  return s;
}

void signal_release(tn_signal *s) {
  if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) != 1) return;
  const mem *m = s->device->mem;
  for (size_t i = 0; i < s->n_promises; i++) stream_mark_release(s->promises[i].mark);
  mem_free(m, s->promises, s->cap_promises * sizeof *s->promises);
  if (s->failed != &s->own) mem_free(m, s->failed, s->cap_failed * sizeof *s->failed);
  condition_free(&s->risen);
  mutex_free(&s->lock);
  mem_free(m, s, sizeof *s);
}

/* Rising. Under the lock. */

static void wake_watches(const tn_signal *s) {
  for (const signal_watch *w = s->watches; w; w = w->next) w->wake(w->user);
}

static void raise_value(tn_signal *s, uint64_t value) {
  size_t kept = 0, gone = 0;
  atomic_store(&s->value, value);
  while (gone < s->n_promises && s->promises[gone].value <= value)
    stream_mark_release(s->promises[gone++].mark);
  if (gone) {
    for (; gone + kept < s->n_promises; kept++) s->promises[kept] = s->promises[gone + kept];
    s->n_promises = kept;
  }
  if (s->sleeping) condition_broadcast(&s->risen);
  wake_watches(s);
}

/** Doubles the room for ranges, if there is memory. */
static void grow_failed(tn_signal *s) {
  const mem *m = s->device->mem;
  size_t bytes = s->cap_failed * sizeof *s->failed;
  failed_range *more = mem_alloc(m, 2 * bytes);
  if (!more) return;
  memcpy(more, s->failed, bytes);
  if (s->failed != &s->own) mem_free(m, s->failed, bytes);
  s->failed = more;
  s->cap_failed *= 2;
}

/** Room for one more range; NULL: the only one has to be extended. */
static failed_range *new_range(tn_signal *s) {
  if (s->n_failed == s->cap_failed && s->cap_failed < MOST_FAILED_RANGES) grow_failed(s);
  if (s->n_failed == s->cap_failed) {
    if (s->cap_failed == 1) return NULL;
    s->failed[0].to = s->failed[1].to;
    memmove(s->failed + 1, s->failed + 2, (--s->n_failed - 1) * sizeof *s->failed);
  }
  return &s->failed[s->n_failed++];
}

/** Records that the values above the present one, up to `value`, fail. Those that follow other
    failed ones at once extend their range: they fail for the first one's reason. */
static void add_failed(tn_signal *s, uint64_t value, tn_status status, const char *text) {
  uint64_t now = signal_get(s);
  failed_range *last = s->n_failed ? &s->failed[s->n_failed - 1] : NULL;
  failed_range *added = last && last->to == now ? NULL : new_range(s);
  if (added) {
    added->above = now;
    tn_fail(&added->why, status, "%s", text[0] ? text : tn_status_text(status));
    last = added;
  }
  last->to = value;
  atomic_store(&s->has_failed, true);
}

void signal_set(tn_signal *s, uint64_t value) {
  mutex_lock(&s->lock);
  if (value > signal_get(s)) raise_value(s, value);
  mutex_unlock(&s->lock);
}

void signal_fail(tn_signal *s, uint64_t value, tn_status status, const char *text) {
  mutex_lock(&s->lock);
  if (value > signal_get(s)) {
    add_failed(s, value, status, text);
    raise_value(s, value);
  }
  mutex_unlock(&s->lock);
}

/* Looking and waiting. */

/** The failure of a value that was reached, if it is one. */
static tn_status check_value(tn_signal *s, uint64_t value, tn_failure *f) {
  if (!atomic_load(&s->has_failed)) return TN_OK;
  tn_status status = TN_OK;
  mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n_failed && !status; i++) {
    const failed_range *r = &s->failed[i];
    if (value > r->above && value <= r->to) status = tn_fail(f, r->why.status, "%s", r->why.text);
  }
  mutex_unlock(&s->lock);
  return status;
}

typedef struct value_wait {
  const tn_signal *signal;
  uint64_t value;
} value_wait;

static bool is_reached(const void *arg) {
  const value_wait *w = arg;
  return signal_get(w->signal) >= w->value;
}

bool signal_spin(tn_signal *s, uint64_t value) {
  const value_wait w = {s, value};
  return spin_until(is_reached, &w, SPIN_NS);
}

/** Sleeps until the value is reached; false if the deadline (negative: none) passes before. */
static bool sleep_until(tn_signal *s, uint64_t value, int64_t deadline) {
  bool in_time = true;
  mutex_lock(&s->lock);
  s->sleeping++;
  while (signal_get(s) < value && in_time)
    in_time = condition_wait_until(&s->risen, &s->lock, deadline);
  s->sleeping--;
  bool reached = signal_get(s) >= value;
  mutex_unlock(&s->lock);
  return reached;
}

tn_status signal_wait(tn_signal *s, uint64_t value, int64_t timeout_ns, diag *d) {
  if (signal_get(s) < value) {
    int64_t now = clock_now_ns();
    int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
    if (!timeout_ns || (!signal_spin(s, value) && !sleep_until(s, value, deadline)))
      return diag_set(d, TN_ERR_TIMEOUT,
                      "a signal of device %s is at %llu, not at %llu, after %lld ns",
                      s->device->name, (unsigned long long)signal_get(s), (unsigned long long)value,
                      (long long)timeout_ns);
  }
  return check_value(s, value, &d->failure);
}

/* Promises. */

value_state signal_look(tn_signal *s, uint64_t value, const tn_backend *backend, stream_mark **mark,
                        tn_failure *f) {
  if (signal_get(s) >= value) return check_value(s, value, f) ? VALUE_FAILED : VALUE_REACHED;
  if (!backend) return VALUE_OPEN;
  value_state state = VALUE_OPEN;
  mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n_promises && state == VALUE_OPEN; i++) {
    promise *p = &s->promises[i];
    if (p->value != value || p->mark->device->backend != backend) continue;
    *mark = stream_mark_retain(p->mark);
    state = VALUE_PROMISED;
  }
  bool has_risen = signal_get(s) >= value;
  mutex_unlock(&s->lock);
  if (state == VALUE_OPEN && has_risen)
    return check_value(s, value, f) ? VALUE_FAILED : VALUE_REACHED;
  return state;
}

void signal_promise(tn_signal *s, uint64_t value, stream_mark *mark) {
  mutex_lock(&s->lock);
  if (s->n_promises == s->cap_promises) {
    size_t cap = s->cap_promises ? s->cap_promises * 2 : 4;
    promise *more =
        mem_resize(s->device->mem, s->promises, s->cap_promises * sizeof *more, cap * sizeof *more);
    if (more) s->promises = more, s->cap_promises = cap;
  }
  if (value > signal_get(s) && s->n_promises < s->cap_promises) {
    size_t i = s->n_promises++;
    for (; i && s->promises[i - 1].value > value; i--) s->promises[i] = s->promises[i - 1];
    s->promises[i] = (promise){value, stream_mark_retain(mark)};
    wake_watches(s);
  }
  mutex_unlock(&s->lock);
}

void signal_watch_begin(tn_signal *s, signal_watch *w) {
  mutex_lock(&s->lock);
  w->next = s->watches;
  s->watches = w;
  mutex_unlock(&s->lock);
}

void signal_watch_end(tn_signal *s, signal_watch *w) {
  mutex_lock(&s->lock);
  signal_watch **at = &s->watches;
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  mutex_unlock(&s->lock);
}
