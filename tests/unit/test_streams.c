/* Tests what queues make of a backend's streams and marks: waits left to the device, promises,
   copies through staging memory, the loss of a device, lack of memory, the time of a hop from one
   queue to another, and the overlap of a kernel with a copy. */
#include "../backend/ref.c"
#include "../backend/sample.h"
#include "base/memory_limit.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/queue/queue.h"
#include "device/registry/device_registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { MS = 1000000 };
#define MINUTE_NS ((int64_t)60000 * MS)

/* A backend of which calls are counted, and which fails when told to. */
static tn_stream_functions spy_streams;
static tn_backend spy;
static atomic_int awaits, marks_made, marks_freed;
static atomic_int pieces_made;
static atomic_bool lacks_staging, lacks_mark;

static tn_status spy_await(void *stream, void *mark, tn_failure *f) {
  atomic_fetch_add(&awaits, 1);
  return ref_await(stream, mark, f);
}

static tn_status spy_mark(void *stream, bool timed, void **mark, tn_failure *f) {
  if (atomic_load(&lacks_mark)) return no_memory(f);
  atomic_fetch_add(&marks_made, 1);
  return ref_mark_make(stream, timed, mark, f);
}

static void spy_mark_free(void *mark) {
  atomic_fetch_add(&marks_freed, 1);
  ref_mark_free(mark);
}

static tn_status spy_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                           tn_failure *f) {
  if (use == TN_MEMORY_STAGING && atomic_load(&lacks_staging)) return no_memory(f);
  tn_status status = ref_alloc(device, bytes, use, memory, f);
  pieces_made += !status && use == TN_MEMORY_STAGING;
  return status;
}

typedef struct fixture {
  diag diag;
  tn_failure failure;
  registry *registry, *other;
  tn_device *cpu[2], *ref[3], *spy;
} fixture;

static void ok(fixture *f, tn_status status) {
  if (status) fail_msg("%s", f->diag.text);
}

static void fine(fixture *f, tn_status status) {
  if (status) fail_msg("%s: %s", tn_status_text(status), f->failure.text);
}

static tn_device *open_device(fixture *f, registry *r, const char *name) {
  tn_device *v;
  ok(f, registry_open_device(r, name, &v, &f->diag));
  return v;
}

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  spy_streams = streams;
  spy_streams.await = spy_await;
  spy_streams.mark = spy_mark;
  spy_streams.mark_free = spy_mark_free;
  spy = ref_backend;
  spy.name = "SPY";
  spy.streams = &spy_streams;
  spy.alloc = spy_alloc;
  awaits = marks_made = marks_freed = 0;
  ok(&f, registry_open(&f.registry, &(registry_desc){.threads = 1}, &f.diag));
  ok(&f, registry_open(&f.other, &(registry_desc){.threads = 1}, &f.diag));
  ok(&f, registry_add_backend(f.registry, &ref_backend, &f.diag));
  ok(&f, registry_add_backend(f.registry, &spy, &f.diag));
  f.cpu[0] = open_device(&f, f.registry, "CPU");
  f.cpu[1] = open_device(&f, f.registry, "CPU:1");
  f.ref[0] = open_device(&f, f.registry, "REF");
  f.ref[1] = open_device(&f, f.registry, "REF:1");
  f.ref[2] = open_device(&f, f.registry, "REF:2");
  f.spy = open_device(&f, f.registry, "SPY");
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  for (int i = 0; i < DEVICES; i++) atomic_store(&ref_is_lost[i], false);
  registry_close(f->registry);
  registry_close(f->other);
  return marks_made != marks_freed;
}

static tn_queue *new_queue(fixture *f, tn_device *v, tn_queue_kind kind) {
  tn_queue *q;
  fine(f, tn_queue_open(v, kind, &q, &f->failure));
  return q;
}

static tn_signal *new_signal(fixture *f, tn_device *v) {
  tn_signal *s;
  fine(f, tn_signal_open(v, 0, &s, &f->failure));
  return s;
}

static tn_buffer *new_buffer(fixture *f, tn_device *v, uint64_t bytes, tn_span *span) {
  tn_buffer *b;
  fine(f, tn_buffer_open(v, bytes, &b, &f->failure));
  fine(f, tn_buffer_span(b, span, &f->failure));
  return b;
}

static void submit(fixture *f, tn_queue *q) { fine(f, tn_queue_submit(q, &f->failure)); }

static void await(fixture *f, tn_signal *s, uint64_t value) {
  fine(f, tn_signal_wait(s, value, MINUTE_NS, &f->failure));
}

/* Waits. */

/** Two queues by turns, all submitted before the first list may begin: the device waits. */
static void the_device_waits_for_promises(void **state) {
  fixture *f = *state;
  enum { ROUNDS = 30 };
  tn_queue *q[2] = {new_queue(f, f->spy, TN_QUEUE_COMPUTE), new_queue(f, f->spy, TN_QUEUE_COPY)};
  tn_signal *s = new_signal(f, f->cpu[0]);
  tn_span span;
  tn_buffer *b = new_buffer(f, f->spy, 64, &span);
  for (uint64_t i = 0; i < ROUNDS; i++) {
    if (i) tn_queue_wait(q[i % 2], s, i);
    for (int k = 0; k < 40; k++) tn_queue_fill(q[i % 2], &span, (uint8_t)(i + 1));
    tn_queue_signal(q[i % 2], s, i + 1);
    submit(f, q[i % 2]);
  }
  await(f, s, ROUNDS);
  assert_true(atomic_load(&awaits) > ROUNDS / 2); /* the host may find some values reached */
  uint8_t seen[64];
  fine(f, tn_span_read(&span, TN_U8, TN_U8, seen, 64, &f->failure));
  for (int i = 0; i < 64; i++) assert_int_equal(seen[i], ROUNDS);
  for (int i = 0; i < 2; i++) tn_queue_free(q[i]);
  tn_buffer_release(b);
  tn_signal_free(s);
}

static tn_status fail_always(void *user, tn_failure *f) {
  (void)user;
  return tn_fail(f, TN_ERR_IO, "a host function failed");
}

/** A later value is promised while an earlier one is about to fail. */
static void a_promise_is_of_its_value_alone(void **state) {
  fixture *f = *state;
  tn_queue *q[2];
  tn_signal *s = new_signal(f, f->ref[0]), *done = new_signal(f, f->ref[0]);
  tn_span span;
  tn_buffer *b = new_buffer(f, f->ref[0], 64, &span);
  for (int i = 0; i < 2; i++) q[i] = new_queue(f, f->ref[0], TN_QUEUE_COMPUTE);
  for (int round = 0; round < 200; round++) {
    uint64_t v = 2 * (uint64_t)round;
    tn_queue_fill(q[0], &span, 1);
    tn_queue_exec(q[0], NULL, NULL);
    assert_int_equal(tn_queue_submit(q[0], &f->failure), TN_ERR_ARGUMENT);
    tn_queue_fill(q[0], &span, 1);
    tn_queue_call(q[0], fail_always, NULL);
    tn_queue_signal(q[0], s, v + 1);
    submit(f, q[0]);
    tn_queue_signal(q[0], s, v + 2);
    submit(f, q[0]);
    tn_queue_wait(q[1], s, v + 1);
    tn_queue_fill(q[1], &span, 2);
    tn_queue_signal(q[1], done, (uint64_t)round + 1);
    submit(f, q[1]);
    assert_int_equal(tn_signal_wait(done, (uint64_t)round + 1, MINUTE_NS, &f->failure), TN_ERR_IO);
    assert_string_equal(f->failure.text, "a host function failed");
    await(f, s, v + 2);
    uint8_t seen[64];
    fine(f, tn_span_read(&span, TN_U8, TN_U8, seen, 64, &f->failure));
    assert_int_equal(seen[0], 1);
  }
  for (int i = 0; i < 2; i++) tn_queue_free(q[i]);
  tn_buffer_release(b);
  tn_signal_free(s);
  tn_signal_free(done);
}

/** Promises that nobody waits for are dropped with their signals, which may outlive the queue. */
static void signals_outlive_queues(void **state) {
  fixture *f = *state;
  tn_signal *s = new_signal(f, f->spy);
  for (uint64_t i = 0; i < 20; i++) {
    tn_queue *q = new_queue(f, f->spy, TN_QUEUE_COMPUTE);
    for (uint64_t k = 1; k <= 10; k++) tn_queue_signal(q, s, 10 * i + k);
    submit(f, q);
    tn_queue_free(q);
    await(f, s, 10 * i + 10);
  }
  tn_signal_free(s);
}

/* Copies. */

static void check_copy(fixture *f, tn_queue *q, const tn_span *to, const tn_span *from,
                       const char *data, char *seen) {
  tn_signal *s = new_signal(f, to->device);
  size_t n = (size_t)to->bytes;
  memset(seen, 0, n);
  fine(f, tn_span_write(to, TN_U8, TN_U8, seen, n, &f->failure));
  fine(f, tn_span_write(from, TN_U8, TN_U8, data, n, &f->failure));
  tn_queue_copy(q, to, from);
  tn_queue_signal(q, s, 1);
  submit(f, q);
  await(f, s, 1);
  fine(f, tn_span_read(to, TN_U8, TN_U8, seen, n, &f->failure));
  assert_memory_equal(seen, data, n);
  tn_signal_free(s);
}

/** More than two pieces of staging memory, to and from devices of all kinds. */
static void large_copies(void **state) {
  fixture *f = *state;
  enum { BYTES = (9 << 20) + 77 };
  tn_device *const devices[] = {f->cpu[0], f->ref[0], f->ref[1], f->ref[2], f->spy};
  enum { N = sizeof devices / sizeof *devices };
  char *data = malloc(BYTES), *seen = malloc(BYTES);
  tn_span spans[N];
  tn_buffer *buffers[N];
  for (int i = 0; i < BYTES; i++) data[i] = (char)((unsigned)i * 7919u >> 5);
  for (int i = 0; i < N; i++) buffers[i] = new_buffer(f, devices[i], BYTES, &spans[i]);
  for (int to = 0; to < N; to++) {
    tn_queue *q = new_queue(f, devices[to], TN_QUEUE_COPY);
    for (int from = 0; from < N; from++)
      if (from != to) check_copy(f, q, &spans[to], &spans[from], data, seen);
    tn_queue_free(q);
  }
  tn_queue *third = new_queue(f, f->ref[1], TN_QUEUE_COPY); /* of neither device */
  check_copy(f, third, &spans[4], &spans[3], data, seen);
  tn_queue_free(third);
  for (int i = 0; i < N; i++) tn_buffer_release(buffers[i]);
  free(data);
  free(seen);
}

/* Bad input. */

static void a_lost_device_is_named(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, f->ref[1], TN_QUEUE_COMPUTE);
  tn_queue *next = new_queue(f, f->cpu[0], TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, f->cpu[0]), *then = new_signal(f, f->cpu[0]);
  tn_span span;
  tn_buffer *b = new_buffer(f, f->ref[1], 64, &span);
  uint8_t byte;
  tn_queue_wait(next, s, 1);
  tn_queue_signal(next, then, 1);
  submit(f, next);
  atomic_store(&ref_is_lost[1], true);
  tn_queue_fill(q, &span, 1);
  tn_queue_signal(q, s, 1);
  submit(f, q);
  tn_signal *both[] = {s, then};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tn_signal_wait(both[i], 1, MINUTE_NS, &f->failure), TN_ERR_DEVICE);
    assert_non_null(strstr(f->failure.text, "REF:1"));
  }
  tn_queue_signal(next, then, 2); /* the CPU is not lost */
  submit(f, next);
  await(f, then, 2);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_DEVICE);
  assert_int_equal(tn_queue_finish(q, MINUTE_NS, &f->failure), TN_ERR_DEVICE);
  assert_int_equal(tn_span_read(&span, TN_U8, TN_U8, &byte, 1, &f->failure), TN_ERR_DEVICE);
  assert_non_null(strstr(f->failure.text, "REF:1"));
  tn_queue_free(q);
  tn_queue_free(next);
  tn_buffer_release(b);
  tn_signal_free(s);
  tn_signal_free(then);
}

static void *resume_soon(void *arg) {
  (void)arg;
  usleep(20000);
  atomic_store(&ref_is_paused, false);
  return NULL;
}

/** A wait that was left to the device, for a signal whose device is lost after that. */
static void a_loss_reaches_waits_left_to_the_device(void **state) {
  fixture *f = *state;
  pthread_t t;
  tn_queue *q = new_queue(f, f->ref[1], TN_QUEUE_COMPUTE);
  tn_queue *next = new_queue(f, f->ref[0], TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, f->cpu[0]), *then = new_signal(f, f->cpu[0]);
  tn_span span, other;
  tn_buffer *b = new_buffer(f, f->ref[1], 64, &span), *c = new_buffer(f, f->ref[0], 64, &other);
  atomic_store(&ref_is_paused, true);
  tn_queue_fill(q, &span, 1);
  tn_queue_signal(q, s, 1);
  submit(f, q);
  tn_queue_wait(next, s, 1);
  tn_queue_fill(next, &other, 1);
  tn_queue_signal(next, then, 1);
  submit(f, next);
  atomic_store(&ref_is_lost[1], true);
  pthread_create(&t, NULL, resume_soon, NULL);
  assert_int_equal(tn_signal_wait(then, 1, MINUTE_NS, &f->failure), TN_ERR_DEVICE);
  assert_non_null(strstr(f->failure.text, "REF:1"));
  pthread_join(t, NULL);
  tn_queue_fill(next, &other, 2);
  tn_queue_signal(next, then, 2);
  submit(f, next); /* REF:0 is not lost */
  await(f, then, 2);
  tn_queue_free(q);
  tn_queue_free(next);
  tn_buffer_release(b);
  tn_buffer_release(c);
  tn_signal_free(s);
  tn_signal_free(then);
}

static void lack_of_staging_memory_is_told(void **state) {
  fixture *f = *state;
  tn_span span;
  tn_buffer *b = new_buffer(f, f->spy, 5000, &span);
  uint8_t data[5000] = {0};
  atomic_store(&lacks_staging, true);
  tn_status status = tn_span_write(&span, TN_U8, TN_U8, data, 5000, &f->failure);
  atomic_store(&lacks_staging, false);
  assert_int_equal(status, TN_ERR_MEMORY);
  assert_string_equal(f->failure.text, "device SPY:0: staging memory of 8192 bytes: out of memory");
  fine(f, tn_span_write(&span, TN_U8, TN_U8, data, 5000, &f->failure));
  tn_buffer_release(b);
}

/** Larger transfers pass through the pieces that are there. */
static void staging_memory_stays_where_more_is_lacking(void **state) {
  fixture *f = *state;
  enum { BYTES = 100000 };
  static uint8_t data[BYTES], seen[BYTES];
  tn_span span;
  tn_buffer *b = new_buffer(f, f->spy, BYTES, &span);
  for (int i = 0; i < BYTES; i++) data[i] = (uint8_t)(i * 7 + i / 4096);
  const tn_span part = {span.device, span.memory, span.offset, 5000};
  fine(f, tn_span_write(&part, TN_U8, TN_U8, data, 5000, &f->failure));
  atomic_store(&lacks_staging, true);
  tn_status status = tn_span_write(&span, TN_U8, TN_U8, data, BYTES, &f->failure);
  atomic_store(&lacks_staging, false);
  fine(f, status);
  fine(f, tn_span_read(&span, TN_U8, TN_U8, seen, BYTES, &f->failure));
  assert_memory_equal(seen, data, BYTES);
  tn_buffer_release(b);
}

/** Under a limit too: no transfer gives memory away that it could not get again. */
static void staging_memory_stays_under_a_limit(void **state) {
  fixture *f = *state;
  enum { BYTES = 1 << 20, LIMIT = 16 * BYTES };
  static uint8_t data[BYTES];
  memory_limit l;
  mem m = memory_limit_begin(&l, mem_system, LIMIT, 0);
  registry *r;
  tn_span span;
  ok(f, registry_open(&r, &(registry_desc){.mem = &m, .threads = 1}, &f->diag));
  ok(f, registry_add_backend(r, &spy, &f->diag));
  tn_device *v = open_device(f, r, "SPY");
  tn_buffer *b = new_buffer(f, v, BYTES, &span);
  uint64_t rest = LIMIT - atomic_load(&l.used) - BYTES / 2 - BYTES / 8;
  assert_true(memory_limit_count(&m, rest));
  fine(f, tn_span_write(&span, TN_U8, TN_U8, data, BYTES, &f->failure));
  int before = pieces_made;
  uint64_t small = v->immediate.staging.bytes;
  assert_in_range(small, BYTES / 32, BYTES / 4);
  for (int i = 0; i < 3; i++) fine(f, tn_span_write(&span, TN_U8, TN_U8, data, BYTES, &f->failure));
  assert_int_equal(pieces_made, before);
  memory_limit_uncount(&m, rest);
  fine(f, tn_span_write(&span, TN_U8, TN_U8, data, BYTES, &f->failure));
  assert_true(v->immediate.staging.bytes > small); /* as there is room */
  tn_buffer_release(b);
  registry_close(r);
  assert_int_equal(atomic_load(&l.used), 0);
}

/** A transfer whose end cannot be marked has ended when its failure is returned: the next one uses
    the same staging memory. */
static void a_transfer_without_a_mark_has_ended(void **state) {
  fixture *f = *state;
  tn_span span;
  tn_buffer *b = new_buffer(f, f->spy, 5000, &span);
  uint8_t data[5000] = {1, 2, 3}, seen[5000];
  pthread_t thread;
  fine(f, tn_span_write(&span, TN_U8, TN_U8, data, 5000, &f->failure));
  atomic_store(&ref_is_paused, true);
  atomic_store(&lacks_mark, true);
  pthread_create(&thread, NULL, resume_soon, NULL);
  tn_status status = tn_span_write(&span, TN_U8, TN_U8, data, 5000, &f->failure);
  bool has_ended = !atomic_load(&ref_is_paused);
  atomic_store(&lacks_mark, false);
  pthread_join(thread, NULL);
  assert_int_equal(status, TN_ERR_MEMORY);
  assert_true(has_ended);
  fine(f, tn_span_read(&span, TN_U8, TN_U8, seen, 5000, &f->failure));
  assert_memory_equal(seen, data, 5000);
  tn_buffer_release(b);
}

/** A list that failed before the device was lost still tells of the loss: nothing says when the
    memory that it uses is free. */
static void a_loss_is_kept_after_a_failure(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, f->spy, TN_QUEUE_COMPUTE);
  tn_span span;
  tn_buffer *b = new_buffer(f, f->spy, 64, &span);
  const tn_span nowhere = {f->spy, NULL, 0, 64};
  tn_queue_fill(q, &span, 1);
  tn_queue_copy(q, &span, &nowhere);
  atomic_store(&lacks_mark, true);
  submit(f, q);
  assert_int_equal(tn_queue_finish(q, MINUTE_NS, &f->failure), TN_ERR_DEVICE);
  atomic_store(&lacks_mark, false);
  for (int i = 0; i < 2; i++) assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_DEVICE);
  tn_queue_free(q);
  tn_buffer_release(b);
}

static void signals_of_other_contexts_are_refused(void **state) {
  fixture *f = *state;
  tn_signal *s = new_signal(f, open_device(f, f->other, "CPU"));
  tn_queue *q = new_queue(f, f->cpu[0], TN_QUEUE_COMPUTE);
  tn_queue_wait(q, s, 1);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  assert_non_null(strstr(f->failure.text, "CPU:0 of another context"));
  tn_queue_signal(q, s, 1);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  assert_int_equal(tn_signal_get(s), 0);
  tn_queue_free(q);
  tn_signal_free(s);
}

static void an_endless_wait_is_named(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu[0], f->ref[0]};
  for (int i = 0; i < 2; i++) {
    tn_queue *q = new_queue(f, devices[i], TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, f->ref[2]);
    char expected[256];
    tn_queue_memory_barrier(q);
    submit(f, q);
    tn_queue_memory_barrier(q);
    tn_queue_wait(q, s, 3);
    submit(f, q);
    assert_int_equal(tn_queue_finish(q, 300 * MS, &f->failure), TN_ERR_TIMEOUT);
    snprintf(expected, sizeof expected,
             "the queue of device %s is not finished after 300000000 ns: command 2 of submission 2 "
             "waits until a signal of device REF:2, now at 0, is at 3",
             tn_device_name(devices[i]));
    assert_string_equal(f->failure.text, expected);
    assert_int_equal(tn_signal_wait(s, 3, 5 * MS, &f->failure), TN_ERR_TIMEOUT);
    assert_non_null(strstr(f->failure.text, "a signal of device REF:2 is at 0, not at 3"));
    tn_queue_free(q);
    tn_signal_free(s);
  }
}

/* Times. */

typedef struct hops {
  int64_t *counter; /* in the buffer that is passed */
  int64_t *times;
} hops;

static tn_status hop(void *user, tn_failure *f) {
  hops *h = user;
  (void)f;
  int64_t n = (*h->counter)++;
  h->times[n] = clock_now_ns();
  return TN_OK;
}

static int by_time(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/** Two devices pass one buffer back and forth. */
static void devices_pass_a_buffer(void **state) {
  fixture *f = *state;
  enum { PER_LIST = 250, SPIN_WINDOW_NS = 20000 };
  size_t n = getenv("TENON_LONG") ? 1000000 : 50000, in_window = 0;
  tn_queue *q[2];
  tn_signal *s = new_signal(f, f->cpu[0]);
  tn_span span;
  tn_buffer *b = new_buffer(f, f->cpu[0], 64, &span);
  hops h = {.counter = span_host_pointer(&span), .times = calloc(n, sizeof *h.times)};
  assert_non_null(h.times);
  *h.counter = 0;
  for (int i = 0; i < 2; i++) q[i] = new_queue(f, f->cpu[i], TN_QUEUE_COMPUTE);
  for (size_t first = 0; first < n; first += 2 * PER_LIST)
    for (int d = 0; d < 2; d++) {
      for (uint64_t i = first + (uint64_t)d; i < first + 2 * PER_LIST; i += 2) {
        tn_queue_wait(q[d], s, i);
        tn_queue_call(q[d], hop, &h);
        tn_queue_signal(q[d], s, i + 1);
      }
      submit(f, q[d]);
    }
  fine(f, tn_signal_wait(s, n, 10 * MINUTE_NS, &f->failure));
  assert_int_equal(*h.counter, n);
  for (size_t i = 0; i + 1 < n; i++) {
    int64_t took = h.times[i + 1] - h.times[i];
    assert_true(took >= 0);
    if (took < SPIN_WINDOW_NS) h.times[in_window++] = took;
  }
  qsort(h.times, in_window, sizeof *h.times, by_time);
  print_message("%zu hops, %zu within the spin window: median %.2f us, p99 %.2f us\n", n, in_window,
                in_window ? h.times[in_window / 2] / 1e3 : 0,
                in_window ? h.times[in_window * 99 / 100] / 1e3 : 0);
  for (int i = 0; i < 2; i++) tn_queue_free(q[i]);
  free(h.times);
  tn_buffer_release(b);
  tn_signal_free(s);
}

/** A kernel of one worker on one queue and copies of about the same duration on another. */
typedef struct pair_of_queues {
  tn_queue *compute, *copy;
  tn_program *program;
  sample_launch launch;
  tn_span to, from;
  int kernels, copies;
  int64_t stamps[4]; /* begin and end of the kernels, and of the copies */
} pair_of_queues;

static void record_kernels(pair_of_queues *p) {
  tn_queue_stamp(p->compute, &p->stamps[0]);
  for (int i = 0; i < p->kernels; i++) tn_queue_exec(p->compute, p->program, &p->launch.launch);
  tn_queue_stamp(p->compute, &p->stamps[1]);
}

static void record_copies(pair_of_queues *p) {
  tn_queue_stamp(p->copy, &p->stamps[2]);
  for (int i = 0; i < p->copies; i++) tn_queue_copy(p->copy, &p->to, &p->from);
  tn_queue_stamp(p->copy, &p->stamps[3]);
}

/** Runs both; apart: the copies after the kernels. Returns the time. */
static int64_t run_pair(fixture *f, pair_of_queues *p, bool is_apart) {
  int64_t start = clock_now_ns();
  record_kernels(p);
  submit(f, p->compute);
  if (is_apart) fine(f, tn_queue_finish(p->compute, MINUTE_NS, &f->failure));
  record_copies(p);
  submit(f, p->copy);
  fine(f, tn_queue_finish(p->compute, MINUTE_NS, &f->failure));
  fine(f, tn_queue_finish(p->copy, MINUTE_NS, &f->failure));
  return clock_now_ns() - start;
}

static void kernels_and_copies_overlap(void **state) {
  fixture *f = *state;
  enum { COPIED = 1 << 20, REPEATS = 5 };
  tn_device *v = f->cpu[0];
  pair_of_queues p = {.kernels = 1, .copies = 1};
  tn_ir *ir;
  tn_buffer *buffers[SAMPLE_BUFFERS], *to = new_buffer(f, v, COPIED, &p.to);
  tn_buffer *from = new_buffer(f, v, COPIED, &p.from);
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node node = sample_program(ir, "CPU", "sample", 2);
  fine(f, tn_program_compile(v, ir, &node, 1, &p.program, &f->failure));
  tn_span span;
  for (int i = 0; i < SAMPLE_BUFFERS; i++) {
    buffers[i] = new_buffer(f, v, 4 * SAMPLE_MOST, &span);
    fine(f, tn_span_write(&span, TN_U8, TN_U8, (char[4]){0}, 4, &f->failure));
  }
  sample_set(&p.launch, buffers, SAMPLE_MOST, 1);
  p.compute = new_queue(f, v, TN_QUEUE_COMPUTE);
  p.copy = new_queue(f, v, TN_QUEUE_COPY);
  run_pair(f, &p, true);
  run_pair(f, &p, true);
  p.kernels = (int)(20 * MS / (p.stamps[1] - p.stamps[0] + 1)) + 1;
  p.copies = (int)(20 * MS / (p.stamps[3] - p.stamps[2] + 1)) + 1;
  int64_t apart = INT64_MAX, together = INT64_MAX;
  bool have_overlapped = false;
  for (int i = 0; i < REPEATS; i++) {
    int64_t a = run_pair(f, &p, true), b = run_pair(f, &p, false);
    apart = a < apart ? a : apart;
    together = b < together ? b : together;
    have_overlapped |= p.stamps[0] < p.stamps[3] && p.stamps[2] < p.stamps[1];
  }
  print_message("a kernel, then a copy: %.2f ms; on two queues: %.2f ms, %.2f times as fast\n",
                (double)apart / MS, (double)together / MS, (double)apart / (double)together);
  assert_true(have_overlapped);
  tn_queue_free(p.compute);
  tn_queue_free(p.copy);
  tn_program_free(p.program);
  for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[i]);
  tn_buffer_release(to);
  tn_buffer_release(from);
  tn_ir_close(ir);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(the_device_waits_for_promises),
                                     TEST(a_promise_is_of_its_value_alone),
                                     TEST(signals_outlive_queues),
                                     TEST(large_copies),
                                     TEST(a_lost_device_is_named),
                                     TEST(a_loss_reaches_waits_left_to_the_device),
                                     TEST(lack_of_staging_memory_is_told),
                                     TEST(staging_memory_stays_where_more_is_lacking),
                                     TEST(staging_memory_stays_under_a_limit),
                                     TEST(a_transfer_without_a_mark_has_ended),
                                     TEST(a_loss_is_kept_after_a_failure),
                                     TEST(signals_of_other_contexts_are_refused),
                                     TEST(an_endless_wait_is_named),
                                     TEST(devices_pass_a_buffer),
                                     TEST(kernels_and_copies_overlap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
