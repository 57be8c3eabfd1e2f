/* Tests command lists, queues and signals (timeline semaphores): order of commands, waits between
   queues and devices, failures that spread to waiters, cancellation, threads, and timestamps, on
   the CPU and on a backend with queues of its own. */
#include "../backend/ref.c"
#include "../backend/sample.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/queue/command_list.h"
#include "device/queue/queue.h"
#include "device/registry/device_registry.h"
#include "support/counting_mem.h"
#include "support/zero.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

enum { MS = 1000000 };

static counting_mem counted;
static const mem counting = {counting_mem_alloc, counting_mem_release, &counted};

typedef struct fixture {
  diag diag;
  registry *registry;
  tn_device *device[2]; /* CPU, REF */
  tn_device *null;
  tn_failure failure;
  tn_ir *ir;
} fixture;

enum { CPU, REF };

static void ok(fixture *f, tn_status status) {
  if (status) fail_msg("%s", f->diag.text);
}

/** Checks the status of a public function. */
static void fine(fixture *f, tn_status status) {
  if (status) fail_msg("%s: %s", tn_status_text(status), f->failure.text);
}

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  ok(&f, registry_open(&f.registry, &(registry_desc){.mem = &counting, .threads = 2}, &f.diag));
  ok(&f, registry_add_backend(f.registry, &ref_backend, &f.diag));
  ok(&f, registry_open_device(f.registry, "CPU", &f.device[CPU], &f.diag));
  ok(&f, registry_open_device(f.registry, "REF", &f.device[REF], &f.diag));
  ok(&f, registry_open_device(f.registry, "NULL", &f.null, &f.diag));
  assert_int_equal(tn_ir_open(NULL, &f.ir), TN_OK);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  tn_ir_close(f->ir);
  registry_close(f->registry);
  return 0;
}

static tn_signal *new_signal(fixture *f, int device) {
  tn_signal *s;
  fine(f, tn_signal_open(f->device[device], 0, &s, &f->failure));
  return s;
}

static tn_queue *new_queue(fixture *f, int device, tn_queue_kind kind) {
  tn_queue *q;
  fine(f, tn_queue_open(f->device[device], kind, &q, &f->failure));
  return q;
}

static void submit(fixture *f, tn_queue *q) { fine(f, tn_queue_submit(q, &f->failure)); }

static void await(fixture *f, tn_signal *s, uint64_t value) {
  fine(f, tn_signal_wait(s, value, -1, &f->failure));
}

static void fails(fixture *f, tn_signal *s, uint64_t value, tn_status status, const char *text) {
  assert_int_equal(tn_signal_wait(s, value, -1, &f->failure), status);
  assert_string_equal(f->failure.text, text);
}

/* Signals. */

static void signals_only_rise(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_signal *s;
    fine(f, tn_signal_open(f->device[d], 5, &s, &f->failure));
    assert_int_equal(tn_signal_get(s), 5);
    tn_signal_set(s, 9);
    tn_signal_set(s, 7);
    assert_int_equal(tn_signal_get(s), 9);
    await(f, s, 9);
    await(f, s, 0);
    tn_signal_set(s, UINT64_MAX);
    await(f, s, UINT64_MAX);
    assert_ptr_equal(tn_signal_retain(s), s);
    tn_signal_free(s);
    assert_int_equal(tn_signal_get(s), UINT64_MAX);
    tn_signal_free(s);
  }
  tn_signal_free(NULL);
}

static void waits_end_in_time(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_signal *s = new_signal(f, d);
    assert_int_equal(tn_signal_wait(s, 1, 0, &f->failure), TN_ERR_TIMEOUT);
    int64_t start = now();
    assert_int_equal(tn_signal_wait(s, 1, 20 * MS, NULL), TN_ERR_TIMEOUT);
    int64_t waited = now() - start;
    assert_true(waited >= 20 * MS && waited < 2000 * (int64_t)MS);
    tn_signal_set(s, 1);
    fine(f, tn_signal_wait(s, 1, INT64_MAX, &f->failure));
    fine(f, tn_signal_wait(s, 1, 0, &f->failure));
    tn_signal_free(s);
  }
}

static void failures_are_told_by_value(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_signal *s = new_signal(f, d);
    tn_signal_set(s, 3);
    tn_signal_fail(s, 5, TN_ERR_COMPILE, "broken");
    tn_signal_fail(s, 5, TN_ERR_IO, "too late");
    assert_int_equal(tn_signal_get(s), 5);
    await(f, s, 3);
    fails(f, s, 4, TN_ERR_COMPILE, "broken");
    fails(f, s, 5, TN_ERR_COMPILE, "broken");
    assert_int_equal(tn_signal_wait(s, 6, 0, &f->failure), TN_ERR_TIMEOUT);
    tn_signal_fail(s, 6, TN_ERR_CANCELLED, "because of that");
    fails(f, s, 4, TN_ERR_COMPILE, "broken");
    fails(f, s, 6, TN_ERR_COMPILE, "broken");
    tn_signal_set(s, 7);
    await(f, s, 7);
    fails(f, s, 5, TN_ERR_COMPILE, "broken");
    tn_signal_fail(s, 9, TN_ERR_IO, "again");
    fails(f, s, 8, TN_ERR_IO, "again");
    await(f, s, 7);
    tn_signal_set(s, 10);
    tn_signal_fail(s, 11, TN_ERR_IO, "");
    fails(f, s, 11, TN_ERR_IO, tn_status_text(TN_ERR_IO));
    tn_signal_free(s);
  }
}

/** A failed value never counts as reached, however many others follow and without memory for them.
 */
static void no_failure_is_forgotten(void **state) {
  enum { FAILURES = 200 };
  fixture *f = *state;
  tn_signal *s = new_signal(f, 0);
  const mem *usual = s->device->mem;
  counting_mem none = {.limit = 1};
  const mem exhausted = counting_mem_of(&none);
  for (int round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < FAILURES; i++) {
      tn_signal_fail(s, 2 * i + 1, TN_ERR_IO, "a failure");
      tn_signal_set(s, 2 * i + 2);
    }
    for (uint64_t i = 0; i < FAILURES; i++) fails(f, s, 2 * i + 1, TN_ERR_IO, "a failure");
    await(f, s, 2 * FAILURES);
    s->device->mem = usual;
    tn_signal_free(s);
    if (round) return;
    s = new_signal(f, 0);
    s->device->mem = &exhausted;
  }
}

typedef struct players {
  tn_signal *ball[2];
  int rounds;
} players;

static void *play(void *arg) {
  players *p = arg;
  for (uint64_t i = 1; i <= (uint64_t)p->rounds; i++) {
    if (tn_signal_wait(p->ball[0], i, -1, NULL)) abort();
    tn_signal_set(p->ball[1], i);
  }
  return NULL;
}

/** Two threads wait for each other in turns: a lost wake-up would block both. */
static void no_wake_up_is_lost(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    players p = {{new_signal(f, d), new_signal(f, 1 - d)}, 10000};
    pthread_t t;
    pthread_create(&t, NULL, play, &p);
    for (uint64_t i = 1; i <= (uint64_t)p.rounds; i++) {
      tn_signal_set(p.ball[0], i);
      fine(f, tn_signal_wait(p.ball[1], i, (int64_t)20000 * MS, &f->failure));
    }
    pthread_join(t, NULL);
    tn_signal_free(p.ball[0]);
    tn_signal_free(p.ball[1]);
  }
}

static tn_status count_hop(void *to, tn_failure *failure) {
  (void)failure;
  ++*(uint64_t *)to;
  return TN_OK;
}

static int by_time(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/** Two queues pass a counter to and fro by signals, a million times with TENON_LONG, in lists that
    are both submitted before the first hop: none is lost, and the median time of a hop is shown. */
static void devices_pass_memory_to_and_fro(void **state) {
  enum { LIST = 2000 };
  fixture *f = *state;
  tn_device *other;
  ok(f, registry_open_device(f->registry, "CPU:1", &other, &f->diag));
  int lists = getenv("TENON_LONG") ? 500 : 5;
  int64_t *hop = malloc((size_t)lists * sizeof *hop);
  uint64_t n = 0, hops = 0;
  tn_queue *q[2] = {new_queue(f, CPU, TN_QUEUE_COMPUTE)};
  fine(f, tn_queue_open(other, TN_QUEUE_COMPUTE, &q[1], &f->failure));
  tn_signal *s[2] = {new_signal(f, CPU), new_signal(f, CPU)};
  for (int l = 0; l < lists; l++) {
    int64_t at[2];
    for (int i = 0; i < LIST / 2; i++, n++)
      for (int d = 0; d < 2; d++) {
        tn_queue_wait(q[d], s[1 - d], d ? n + 1 : n);
        if (!i && !d) tn_queue_stamp(q[d], &at[0]);
        tn_queue_call(q[d], count_hop, &hops);
        if (i == LIST / 2 - 1 && d) tn_queue_stamp(q[d], &at[1]);
        tn_queue_signal(q[d], s[d], n + 1);
      }
    submit(f, q[1]);
    submit(f, q[0]);
    await(f, s[1], n);
    hop[l] = (at[1] - at[0]) / (LIST - 1);
  }
  assert_int_equal(hops, (uint64_t)lists * LIST);
  qsort(hop, (size_t)lists, sizeof *hop, by_time);
  print_message("a hop between two queues takes %lld ns at the median\n",
                (long long)hop[lists / 2]);
  free(hop);
  for (int d = 0; d < 2; d++) {
    tn_queue_free(q[d]);
    tn_signal_free(s[d]);
  }
}

typedef struct crowd {
  tn_signal *signal;
  atomic_int seen;
} crowd;

static void *watch(void *arg) {
  crowd *c = arg;
  for (uint64_t i = 1; i <= 100; i++) {
    if (tn_signal_wait(c->signal, i, -1, NULL) || tn_signal_get(c->signal) < i) abort();
    atomic_fetch_add(&c->seen, 1);
  }
  return NULL;
}

static void *raise_to_100(void *arg) {
  for (uint64_t i = 1; i <= 100; i++) tn_signal_set(((crowd *)arg)->signal, i);
  return NULL;
}

static void crowds_watch_one_signal(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    crowd c = {.signal = new_signal(f, d)};
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, i < 6 ? watch : raise_to_100, &c);
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    assert_int_equal(c.seen, 600);
    assert_int_equal(tn_signal_get(c.signal), 100);
    tn_signal_free(c.signal);
  }
}

/* Queues. */

typedef struct trace {
  atomic_int n;
  int order[64];
} trace;

typedef struct step {
  trace *trace;
  int number;
  tn_status status;
} step;

static tn_status take_step(void *user, tn_failure *f) {
  step *s = user;
  s->trace->order[atomic_fetch_add(&s->trace->n, 1)] = s->number;
  return s->status ? tn_fail(f, s->status, "step %d failed", s->number) : TN_OK;
}

static void commands_run_in_order(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *go = new_signal(f, 1 - d), *done = new_signal(f, d);
    trace t = {0};
    step steps[6];
    tn_queue_wait(q, go, 1);
    for (int i = 0; i < 6; i++) {
      steps[i] = (step){&t, i, TN_OK};
      tn_queue_call(q, take_step, &steps[i]);
      if (i % 2) tn_queue_memory_barrier(q);
      if (i % 3 == 2) submit(f, q);
    }
    tn_queue_signal(q, done, 1);
    submit(f, q);
    assert_int_equal(tn_signal_wait(done, 1, 30 * MS, NULL), TN_ERR_TIMEOUT);
    assert_int_equal(t.n, 0); /* nothing runs during the wait */
    assert_int_equal(tn_queue_finish(q, 0, &f->failure), TN_ERR_TIMEOUT);
    tn_signal_set(go, 1);
    await(f, done, 1);
    assert_int_equal(t.n, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(t.order[i], i);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    tn_queue_free(q);
    tn_signal_free(go);
    tn_signal_free(done);
  }
  tn_queue_free(NULL);
}

static tn_status take_time(void *user, tn_failure *f) {
  (void)user, (void)f;
  for (int64_t end = clock_now_ns() + 2 * MS; clock_now_ns() < end;) thread_spin_hint();
  return TN_OK;
}

/** Differences of stamps are elapsed times by the device's clock. */
static void stamps_tell_times(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    int64_t at[3];
    tn_queue_stamp(q, &at[0]);
    tn_queue_call(q, take_time, NULL);
    tn_queue_stamp(q, &at[1]);
    tn_queue_stamp(q, &at[2]);
    submit(f, q);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    assert_true(at[1] - at[0] >= 2 * MS);
    assert_true(at[2] >= at[1] && at[2] - at[1] < at[1] - at[0]);
    tn_queue_stamp(q, NULL);
    assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
    tn_queue_free(q);
  }
}

/** The first stamp of a list is of its own time, not of the end of the list before. */
static void stamps_leave_out_the_time_between_lists(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    int64_t at[2];
    for (int i = 0; i < 2; i++) {
      if (i) usleep(20000);
      tn_queue_stamp(q, &at[i]);
      submit(f, q);
      fine(f, tn_queue_finish(q, -1, &f->failure));
    }
    assert_true(at[1] - at[0] >= 20 * MS);
    tn_queue_free(q);
  }
}

static tn_buffer *new_buffer(fixture *f, int device, const float *data, size_t n) {
  tn_buffer *b;
  tn_span s;
  fine(f, tn_buffer_open(f->device[device], n * sizeof *data, &b, &f->failure));
  fine(f, tn_buffer_span(b, &s, &f->failure));
  fine(f, tn_span_write(&s, TN_F32, TN_F32, data, n, &f->failure));
  return b;
}

static tn_program *new_program(fixture *f, tn_device *device, int scale) {
  tn_program *p;
  tn_node node = sample_program(f->ir, "CPU", "sample", scale);
  fine(f, tn_program_compile(device, f->ir, &node, 1, &p, &f->failure));
  return p;
}

/** Kernels and copies on two devices, ordered only by signals of both. */
static void devices_work_together(void **state) {
  fixture *f = *state;
  enum { N = 600 };
  float a[SAMPLE_MOST], zero[SAMPLE_MOST] = {0}, out[N];
  for (int i = 0; i < SAMPLE_MOST; i++) a[i] = (float)i;
  tn_program *program[2];
  tn_queue *compute[2], *copy = new_queue(f, REF, TN_QUEUE_COPY);
  tn_signal *signal[2];
  tn_buffer *buffers[2][SAMPLE_BUFFERS];
  sample_launch launch[2];
  for (int d = 0; d < 2; d++) {
    program[d] = new_program(f, f->device[d], 2);
    compute[d] = new_queue(f, d, TN_QUEUE_COMPUTE);
    signal[d] = new_signal(f, d);
    for (int i = 0; i < SAMPLE_BUFFERS; i++)
      buffers[d][i] = new_buffer(f, d, i ? a : zero, SAMPLE_MOST);
    sample_set(&launch[d], buffers[d], N, 2);
  }
  /* out = 2a + b on the CPU, copied to REF as its a; out = 2a + b there, copied back as the CPU's
     b */
  for (uint64_t round = 0; round < 5; round++) {
    tn_queue_wait(compute[CPU], signal[REF], 2 * round);
    tn_queue_exec(compute[CPU], program[CPU], &launch[CPU].launch);
    tn_queue_signal(compute[CPU], signal[CPU], round + 1);
    tn_queue_wait(copy, signal[CPU], round + 1);
    tn_queue_copy(copy, &launch[REF].spans[1], &launch[CPU].spans[0]);
    tn_queue_signal(copy, signal[REF], 2 * round + 1);
    tn_queue_wait(compute[REF], signal[REF], 2 * round + 1);
    tn_queue_exec(compute[REF], program[REF], &launch[REF].launch);
    tn_queue_copy(compute[REF], &launch[CPU].spans[2], &launch[REF].spans[0]);
    tn_queue_signal(compute[REF], signal[REF], 2 * round + 2);
    submit(f, compute[REF]); /* in reverse order: submitting does not block */
    submit(f, copy);
    submit(f, compute[CPU]);
  }
  await(f, signal[REF], 10);
  double expected = 1;
  for (int round = 0; round < 5; round++) expected = 2 * (2 + expected) + 1;
  fine(f, tn_span_read(&launch[CPU].spans[2], TN_F32, TN_F32, out, N, &f->failure));
  for (int i = 0; i < N; i++) assert_true(out[i] == (float)(expected * i));
  tn_queue_free(copy);
  for (int d = 0; d < 2; d++) {
    tn_queue_free(compute[d]);
    tn_signal_free(signal[d]);
    tn_program_free(program[d]);
    for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[d][i]);
  }
}

/** The CPU waits for REF and REF for the CPU, all recorded before anything runs. */
static void queues_wait_for_each_other(void **state) {
  fixture *f = *state;
  enum { ROUNDS = 500 };
  tn_queue *q[2] = {new_queue(f, CPU, TN_QUEUE_COMPUTE), new_queue(f, REF, TN_QUEUE_COMPUTE)};
  tn_signal *s[2] = {new_signal(f, CPU), new_signal(f, REF)};
  for (uint64_t i = 1; i <= ROUNDS; i++)
    for (int d = 0; d < 2; d++) {
      tn_queue_wait(q[d], s[1 - d], d ? i : i - 1);
      tn_queue_signal(q[d], s[d], i);
    }
  submit(f, q[0]);
  submit(f, q[1]);
  await(f, s[0], ROUNDS);
  await(f, s[1], ROUNDS);
  for (int d = 0; d < 2; d++) {
    tn_queue_free(q[d]);
    tn_signal_free(s[d]);
  }
}

typedef struct flood {
  tn_queue *queue;
  tn_signal *done;
  atomic_int submitted;
} flood;

enum { LISTS = 200 };

static void *submit_many(void *arg) {
  flood *w = arg;
  for (int i = 1; i <= LISTS; i++) {
    tn_queue_signal(w->queue, w->done, (uint64_t)i);
    if (tn_queue_submit(w->queue, NULL)) abort();
    atomic_fetch_add(&w->submitted, 1);
  }
  return NULL;
}

/** A queue holds a limited number of lists; submitting more waits for room, and none is lost. */
static void submitting_waits_for_room_alone(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    flood w = {.queue = new_queue(f, d, TN_QUEUE_COMPUTE), .done = new_signal(f, d)};
    tn_signal *go = new_signal(f, d);
    pthread_t t;
    tn_queue_wait(w.queue, go, 1);
    submit(f, w.queue);
    pthread_create(&t, NULL, submit_many, &w);
    while (atomic_load(&w.submitted) < 3) usleep(1000);
    usleep(20000);
    assert_in_range(atomic_load(&w.submitted), 3, LISTS - 1);
    assert_int_equal(tn_signal_get(w.done), 0);
    tn_signal_set(go, 1);
    await(f, w.done, LISTS);
    pthread_join(t, NULL);
    tn_queue_free(w.queue);
    tn_signal_free(w.done);
    tn_signal_free(go);
  }
}

/** A function that a queue calls, and how the queue answers it. */
typedef struct own_call {
  tn_queue *queue;
  tn_commands *list;
  tn_signal *done;
  int submitted;
  tn_failure finish, full;
} own_call;

static tn_status use_own_queue(void *user, tn_failure *f) {
  own_call *c = user;
  (void)f;
  tn_queue_finish(c->queue, 20 * (int64_t)MS, &c->finish);
  for (; c->submitted < LISTS; c->submitted++)
    if (tn_queue_replay(c->queue, c->list, &c->full)) break;
  for (int i = 0; i < 20; i++, usleep(1000)) /* others wait for room meanwhile */
    if (tn_queue_replay(c->queue, c->list, NULL) != TN_ERR_BUSY) break;
  tn_signal_set(c->done, 1);
  return TN_OK;
}

static void check_own_call(const own_call *c, bool is_crowded) {
  assert_int_equal(c->finish.status, TN_ERR_BUSY);
  assert_non_null(strstr(c->finish.text, "before the function that it calls returns"));
  assert_in_range(c->submitted, is_crowded ? 0 : 1, LISTS - 1);
  assert_int_equal(c->full.status, TN_ERR_BUSY);
  assert_non_null(strstr(c->full.text, "is full, and the function that it calls cannot wait"));
}

/** A function that a queue calls may submit to it while there is room, and never hangs. */
static void calls_never_wait_for_their_queue(void **state) {
  fixture *f = *state;
  for (int way = 0; way < 6; way++) { /* two devices; run by a caller; with another submitter */
    int d = way % 2;
    bool is_inline = way / 2 == 1, is_crowded = way / 2 == 2;
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    own_call c = {.queue = q, .done = new_signal(f, d)};
    flood w = {.queue = q, .done = new_signal(f, d)};
    tn_signal *go = new_signal(f, d);
    tn_commands *first;
    pthread_t t;
    tn_queue_memory_barrier(q);
    fine(f, tn_queue_record(q, &c.list, &f->failure));
    if (is_crowded) tn_queue_wait(q, go, 1);
    tn_queue_call(q, use_own_queue, &c);
    fine(f, tn_queue_record(q, &first, &f->failure));
    fine(f, (is_inline ? tn_queue_run : tn_queue_replay)(q, first, &f->failure));
    if (is_crowded) {
      pthread_create(&t, NULL, submit_many, &w);
      while (atomic_load(&w.submitted) < 3) usleep(1000);
      tn_signal_set(go, 1);
    }
    fine(f, tn_signal_wait(c.done, 1, 20000 * (int64_t)MS, &f->failure));
    if (is_crowded) pthread_join(t, NULL);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    check_own_call(&c, is_crowded);
    tn_commands_free(first);
    tn_commands_free(c.list);
    tn_queue_free(q);
    tn_signal_free(c.done);
    tn_signal_free(w.done);
    tn_signal_free(go);
  }
}

static void kinds_that_are_none(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q;
    assert_int_equal(tn_queue_open(f->device[d], (tn_queue_kind)7, &q, &f->failure),
                     TN_ERR_ARGUMENT);
    assert_string_equal(f->failure.text, "there is no kind 7 of queues");
    assert_null(q);
  }
}

/* Failures. */

static void signals_tell_failures(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d);
    trace t = {0};
    step good = {&t, 1, TN_OK}, bad = {&t, 2, TN_ERR_SHAPE}, never = {&t, 3, TN_OK};
    tn_queue_call(q, take_step, &good);
    tn_queue_signal(q, s, 1);
    tn_queue_call(q, take_step, &bad);
    tn_queue_call(q, take_step, &never);
    tn_queue_signal(q, s, 2);
    tn_queue_signal(q, s, 3);
    submit(f, q);
    await(f, s, 1);
    fails(f, s, 2, TN_ERR_SHAPE, "step 2 failed");
    fails(f, s, 3, TN_ERR_SHAPE, "step 2 failed");
    assert_int_equal(t.n, 2);
    tn_queue_call(q, take_step, &good); /* reported by a signal: the queue goes on */
    tn_queue_signal(q, s, 4);
    submit(f, q);
    await(f, s, 4);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    tn_queue_free(q);
    tn_signal_free(s);
  }
}

static void submitting_tells_other_failures(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d), *go = new_signal(f, d);
    trace t = {0};
    step good = {&t, 1, TN_OK}, bad = {&t, 2, TN_ERR_IO};
    tn_queue_wait(q, go, 1);
    tn_queue_signal(q, s, 1);
    tn_queue_call(q, take_step, &bad); /* without a later signal */
    submit(f, q);
    tn_queue_call(q, take_step, &good); /* skipped after the failure */
    tn_queue_signal(q, s, 2);
    submit(f, q);
    tn_signal_set(go, 1);
    fails(f, s, 2, TN_ERR_IO, "step 2 failed");
    assert_int_equal(t.n, 1);
    tn_queue_call(q, take_step, &good);
    tn_queue_signal(q, s, 3);
    assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_IO);
    assert_string_equal(f->failure.text, "step 2 failed");
    tn_queue_call(q, take_step, &good);
    tn_queue_signal(q, s, 3);
    submit(f, q);
    await(f, s, 3);
    assert_int_equal(t.n, 2);
    tn_queue_call(q, take_step, &bad);
    submit(f, q);
    assert_int_equal(tn_queue_finish(q, -1, &f->failure), TN_ERR_IO);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    tn_queue_free(q);
    tn_signal_free(s);
    tn_signal_free(go);
  }
}

/** Failures propagate through waits from the CPU to REF to the CPU. */
static void failures_spread_over_waits(void **state) {
  fixture *f = *state;
  tn_queue *q[3];
  tn_signal *s[3];
  trace t = {0};
  step bad = {&t, 1, TN_ERR_TIMEOUT},
       never = {&t, 2, TN_OK}; /* likewise for the statuses of waits */
  for (int i = 0; i < 3; i++) {
    q[i] = new_queue(f, i % 2, TN_QUEUE_COMPUTE);
    s[i] = new_signal(f, i % 2);
  }
  for (int i = 2; i > 0; i--) {
    tn_queue_wait(q[i], s[i - 1], 1);
    tn_queue_call(q[i], take_step, &never);
    tn_queue_signal(q[i], s[i], 1);
    submit(f, q[i]);
  }
  tn_queue_call(q[0], take_step, &bad);
  tn_queue_signal(q[0], s[0], 1);
  submit(f, q[0]);
  fails(f, s[2], 1, TN_ERR_TIMEOUT, "step 1 failed");
  assert_int_equal(t.n, 1);
  for (int i = 0; i < 3; i++) {
    tn_queue_free(q[i]);
    tn_signal_free(s[i]);
  }
}

static void programs_that_fail(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d);
    tn_program *p = new_program(f, f->device[d], 5);
    tn_launch launch = {.n_buffers = 1, .n_values = SAMPLE_VALUES};
    tn_queue_exec(q, p, &launch);
    tn_program_free(p); /* the list keeps it */
    tn_queue_signal(q, s, 1);
    submit(f, q);
    fails(f, s, 1, TN_ERR_ARGUMENT, "kernel sample expects 3 buffers, got 1");
    tn_queue_free(q);
    assert_int_equal(p->uses,
                     0); /* no reference of the list's or the test's is left, only the cache's */
    tn_signal_free(s);
  }
}

static void a_lost_device_stays_lost(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d), *go = new_signal(f, d);
    trace t = {0};
    step lost = {&t, 7, TN_ERR_DEVICE};
    tn_queue_wait(q, go, 1);
    tn_queue_call(q, take_step, &lost);
    tn_queue_signal(q, s, 1);
    submit(f, q);
    tn_queue_signal(q, s, 2);
    submit(f, q);
    tn_signal_set(go, 1);
    fails(f, s, 1, TN_ERR_DEVICE, "step 7 failed");
    fails(f, s, 2, TN_ERR_DEVICE, "step 7 failed");
    for (int i = 0; i < 2; i++) {
      assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_DEVICE);
      assert_string_equal(f->failure.text, "step 7 failed");
      assert_int_equal(tn_queue_finish(q, -1, NULL), TN_ERR_DEVICE);
    }
    tn_queue_free(q);
    tn_signal_free(s);
    tn_signal_free(go);
  }
}

/** Commands that are refused fail what was submitted, and lose no device. */
static void a_refused_command_loses_no_device(void **state) {
  fixture *f = *state;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.threads = 1; /* a context with devices of its own */
  tn_context *other = tn_open(&desc);
  tn_device *elsewhere;
  tn_buffer *foreign;
  tn_span far_away, here;
  const float x = 1;
  fine(f, tn_device_open(other, "CPU", &elsewhere, &f->failure));
  fine(f, tn_buffer_open(elsewhere, sizeof x, &foreign, &f->failure));
  fine(f, tn_buffer_span(foreign, &far_away, &f->failure));
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d);
    tn_buffer *b = new_buffer(f, d, &x, 1);
    fine(f, tn_buffer_span(b, &here, &f->failure));
    const tn_span nowhere = {f->device[d], NULL, 0, sizeof x};
    const tn_span *from[] = {&far_away, &nowhere};
    for (int i = 0; i < 2; i++) {
      tn_queue_copy(q, &here, from[i]);
      submit(f, q);
      assert_int_equal(tn_queue_finish(q, -1, &f->failure), TN_ERR_ARGUMENT);
      assert_non_null(strstr(f->failure.text, i ? "has no memory" : "of different contexts"));
      tn_queue_copy(q, &here, &here);
      tn_queue_signal(q, s, (uint64_t)i + 1);
      submit(f, q);
      await(f, s, (uint64_t)i + 1);
    }
    assert_int_equal(tn_span_copy(&here, &nowhere, &f->failure), TN_ERR_ARGUMENT);
    tn_buffer_release(b);
    tn_signal_free(s);
    tn_queue_free(q);
  }
  tn_buffer_release(foreign);
  tn_close(other);
}

/** A hand-over that a driver refuses fails the list, also where no signal follows, and not the
    queue. */
static void a_refused_hand_over_loses_no_queue(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, REF, TN_QUEUE_COMPUTE);
  const float x = 1;
  tn_span span;
  tn_buffer *b = new_buffer(f, REF, &x, 1);
  fine(f, tn_buffer_span(b, &span, &f->failure));
  atomic_store(&ref_refuses, TN_ERR_MEMORY);
  tn_queue_fill(q, &span, 1);
  submit(f, q);
  assert_int_equal(tn_queue_finish(q, -1, &f->failure), TN_ERR_MEMORY);
  assert_string_equal(f->failure.text, "REF takes no works");
  atomic_store(&ref_refuses, 0);
  tn_queue_fill(q, &span, 1);
  submit(f, q);
  fine(f, tn_queue_finish(q, -1, &f->failure));
  tn_buffer_release(b);
  tn_queue_free(q);
}

/** A list that was handed over before an earlier one failed is skipped as well: its signals fail.
 */
static void lists_behind_a_late_failure_are_skipped(void **state) {
  fixture *f = *state;
  const float x = 1;
  tn_span here, there;
  tn_device *second;
  tn_buffer *far;
  tn_queue *q = new_queue(f, REF, TN_QUEUE_COMPUTE), *other;
  tn_signal *s = new_signal(f, REF), *done;
  tn_buffer *b = new_buffer(f, REF, &x, 1);
  ok(f, registry_open_device(f->registry, "REF:1", &second, &f->diag));
  fine(f, tn_queue_open(second, TN_QUEUE_COMPUTE, &other, &f->failure));
  fine(f, tn_signal_open(second, 0, &done, &f->failure));
  fine(f, tn_buffer_open(second, sizeof x, &far, &f->failure));
  fine(f, tn_buffer_span(b, &here, &f->failure));
  fine(f, tn_buffer_span(far, &there, &f->failure));
  atomic_store(&ref_is_paused, true);
  tn_queue_fill(other, &there, 1);
  tn_queue_signal(other, done, 1);
  submit(f, other);
  tn_queue_wait(q, done, 1);
  tn_queue_fill(q, &here, 1);
  submit(f, q);
  tn_queue_signal(q, s, 1);
  submit(f, q);
  atomic_store(&ref_is_lost[1], true);
  atomic_store(&ref_is_paused, false);
  assert_int_equal(tn_signal_wait(s, 1, -1, &f->failure), TN_ERR_DEVICE);
  assert_int_equal(tn_queue_finish(q, -1, &f->failure), TN_ERR_DEVICE);
  tn_queue_signal(q, s, 2); /* the failure is told, and its device another one */
  submit(f, q);
  await(f, s, 2);
  tn_buffer_release(b);
  tn_buffer_release(far);
  tn_queue_free(q);
  tn_queue_free(other);
  tn_signal_free(s);
  tn_signal_free(done);
  atomic_store(&ref_is_lost[1], false);
}

/** Empty spans have no memory, and copying them does nothing. */
static void empty_copies_do_nothing(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    const tn_span to = {f->device[d], NULL, 0, 0}, from = {f->device[1 - d], NULL, 0, 0};
    tn_queue_copy(q, &to, &from);
    submit(f, q);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    tn_queue_free(q);
  }
}

static void *free_queue(void *queue) {
  usleep(10000);
  tn_queue_free(queue);
  return NULL;
}

static void freeing_a_queue_cancels(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++)
    for (int whose = 0; whose < 2; whose++) {
      tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
      tn_signal *never = new_signal(f, whose), *s = new_signal(f, whose);
      pthread_t t;
      tn_queue_wait(q, never, 1);
      tn_queue_signal(q, s, 1);
      submit(f, q);
      tn_queue_signal(q, s, 2);
      submit(f, q);
      pthread_create(&t, NULL, free_queue, q);
      assert_int_equal(tn_signal_wait(s, 1, -1, &f->failure), TN_ERR_CANCELLED);
      assert_int_equal(tn_signal_wait(s, 2, -1, &f->failure), TN_ERR_CANCELLED);
      pthread_join(t, NULL);
      tn_signal_free(never);
      tn_signal_free(s);
    }
}

/** Lists that the device has are not cancelled. */
static void freeing_a_queue_waits_for_the_device(void **state) {
  fixture *f = *state;
  const float x = 1;
  tn_span span;
  pthread_t t;
  tn_queue *q = new_queue(f, REF, TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, REF);
  tn_buffer *b = new_buffer(f, REF, &x, 1);
  fine(f, tn_buffer_span(b, &span, &f->failure));
  atomic_store(&ref_is_paused, true);
  for (uint64_t i = 1; i <= 2; i++) {
    tn_queue_fill(q, &span, 1);
    tn_queue_signal(q, s, i);
    submit(f, q);
  }
  pthread_create(&t, NULL, free_queue, q);
  usleep(50000); /* the queue is being freed by now */
  atomic_store(&ref_is_paused, false);
  for (uint64_t i = 1; i <= 2; i++) await(f, s, i);
  pthread_join(t, NULL);
  tn_buffer_release(b);
  tn_signal_free(s);
}

/** Counts the threads of this process. */
static int count_threads(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  for (const struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

static void threads_start_when_needed(void **state) {
  fixture *f = *state;
  enum { N = 50 };
  tn_queue *q[N];
  trace t = {0};
  step one = {&t, 1, TN_OK};
  int before = count_threads();
  for (int i = 0; i < N; i++) {
    tn_commands *c;
    q[i] = new_queue(f, CPU, TN_QUEUE_COMPUTE);
    tn_queue_call(q[i], take_step, &one);
    fine(f, tn_queue_record(q[i], &c, &f->failure));
    fine(f, tn_queue_run(q[i], c, &f->failure));
    tn_commands_free(c);
  }
  assert_int_equal(t.n, N);
  assert_int_equal(count_threads(), before);
  for (int i = 0; i < 2; i++) {
    tn_queue_call(q[0], take_step, &one);
    submit(f, q[0]);
  }
  assert_int_equal(count_threads(), before + 1);
  fine(f, tn_queue_finish(q[0], -1, &f->failure));
  assert_int_equal(t.n, N + 2);
  for (int i = 0; i < N; i++) tn_queue_free(q[i]);
}

static void a_thread_that_does_not_start_fails_the_submission(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, CPU, TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, CPU);
  pthread_attr_t usual, huge;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  assert_int_equal(pthread_attr_init(&huge), 0);
  assert_int_equal(pthread_attr_setstacksize(&huge, ((size_t)1 << 47) - (1 << 16)), 0);
  assert_int_equal(pthread_setattr_default_np(&huge), 0);
  tn_queue_signal(q, s, 1);
  tn_status status = tn_queue_submit(q, &f->failure);
  assert_int_equal(pthread_setattr_default_np(&usual), 0);
  assert_int_equal(status, TN_ERR_DEVICE);
  assert_non_null(strstr(f->failure.text, "cannot start a thread"));
  assert_int_equal(tn_signal_get(s), 0);
  tn_queue_signal(q, s, 2); /* the next submission starts a thread */
  submit(f, q);
  await(f, s, 2);
  tn_queue_free(q);
  tn_signal_free(s);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
}

static void bad_commands_are_told(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, CPU, TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, CPU);
  tn_program *foreign = new_program(f, f->device[REF], 1);
  tn_launch launch = {0};
  tn_commands *c;
  tn_queue_wait(q, NULL, 1);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  tn_queue_signal_at(q, s, NULL);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  tn_queue_exec(q, foreign, &launch);
  assert_int_equal(tn_queue_record(q, &c, &f->failure), TN_ERR_ARGUMENT);
  assert_null(c);
  tn_queue_copy(q, NULL, NULL);
  tn_queue_signal(q, s, 1);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  tn_queue_call(q, NULL, NULL);
  assert_int_equal(tn_queue_submit(q, &f->failure), TN_ERR_ARGUMENT);
  assert_int_equal(tn_signal_get(s), 0);
  tn_queue *other = new_queue(f, REF, TN_QUEUE_COMPUTE);
  tn_queue_signal(other, s, 1);
  fine(f, tn_queue_record(other, &c, &f->failure));
  assert_int_equal(tn_queue_replay(q, c, &f->failure), TN_ERR_ARGUMENT);
  assert_string_equal(f->failure.text,
                      "commands for device REF:0 cannot be submitted to a queue of device CPU:0");
  fine(f, tn_queue_replay(other, c, &f->failure));
  tn_commands_free(c); /* returns at once; the list still runs */
  await(f, s, 1);
  assert_int_equal(tn_queue_submit(NULL, &f->failure), TN_ERR_ARGUMENT);
  tn_program_free(foreign);
  tn_queue_free(q);
  tn_queue_free(other);
  tn_signal_free(s);
}

/* Resubmitted lists. */

static void lists_see_what_changed(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    float a[SAMPLE_MOST], out[10];
    for (int i = 0; i < SAMPLE_MOST; i++) a[i] = (float)i;
    tn_buffer *buffers[2][SAMPLE_BUFFERS];
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < SAMPLE_BUFFERS; i++) buffers[k][i] = new_buffer(f, d, a, SAMPLE_MOST);
    sample_launch launch;
    tn_program *p = new_program(f, f->device[d], 3);
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d);
    tn_commands *c;
    uint64_t value = 0;
    tn_queue_wait_at(q, s, &value);
    tn_queue_exec(q, p, &launch.launch);
    tn_queue_signal(q, s, 1);
    tn_queue_signal_at(q, s, &value);
    fine(f, tn_queue_record(q, &c, &f->failure));
    for (int k = 0; k < 2; k++) {
      sample_set(&launch, buffers[k], k ? 4 : 8, 1 + k);
      fine(f, tn_queue_replay(q, c, &f->failure));
      fine(f, tn_queue_finish(q, -1, &f->failure));
      value = 1;
      fine(f, tn_span_read(&launch.spans[0], TN_F32, TN_F32, out, 10, &f->failure));
      for (int i = 0; i < 10; i++) assert_true(out[i] == (float)(i < (k ? 4 : 8) ? 4 * i : i));
    }
    tn_commands_free(c);
    tn_queue_free(q);
    tn_signal_free(s);
    tn_program_free(p);
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[k][i]);
  }
}

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/** Submits a list many times: no allocations, constant memory. */
static void resubmit(fixture *f, tn_device *v, const char *what, int times, int64_t workers,
                     tn_status (*hand)(tn_queue *q, tn_commands *c, tn_failure *why)) {
  enum { TIMED = 5000 };
  static int64_t submitting[TIMED], whole[TIMED];
  tn_program *p = new_program(f, v, 2);
  tn_queue *q;
  tn_signal *s;
  tn_buffer *buffers[SAMPLE_BUFFERS];
  for (int i = 0; i < SAMPLE_BUFFERS; i++) {
    fine(f, tn_buffer_open(v, 4 * SAMPLE_MOST, &buffers[i], &f->failure));
    ok(f, zero_buffer(buffers[i], &f->diag));
  }
  sample_launch launch;
  sample_set(&launch, buffers, 16, workers);
  fine(f, tn_queue_open(v, TN_QUEUE_COMPUTE, &q, &f->failure));
  fine(f, tn_signal_open(v, 0, &s, &f->failure));
  tn_commands *c;
  uint64_t value = 0;
  tn_queue_exec(q, p, &launch.launch);
  tn_queue_signal_at(q, s, &value);
  fine(f, tn_queue_record(q, &c, &f->failure));
  long resident = 0;
  size_t allocations = 0;
  for (int i = 0; i < 8; i++) fine(f, hand(q, c, &f->failure)); /* copies of as many lists */
  fine(f, tn_queue_finish(q, -1, &f->failure));
  for (int i = 0; i < times; i++) {
    if (i == times / 10) resident = resident_kib(), allocations = atomic_load(&counted.calls);
    value = (uint64_t)i + 1;
    int64_t start = now();
    fine(f, hand(q, c, &f->failure));
    int64_t submitted = now();
    await(f, s, value);
    if (i >= times - TIMED) {
      submitting[i - (times - TIMED)] = submitted - start;
      whole[i - (times - TIMED)] = now() - start;
    }
  }
  assert_int_equal(atomic_load(&counted.calls), allocations);
  assert_true(resident_kib() <= resident + 1024);
  qsort(submitting, TIMED, sizeof *submitting, by_time);
  qsort(whole, TIMED, sizeof *whole, by_time);
  print_message("%s: submit %.2f us (median) %.2f us (p99); done after %.2f us, %.2f us\n", what,
                submitting[TIMED / 2] / 1e3, submitting[TIMED * 99 / 100] / 1e3,
                whole[TIMED / 2] / 1e3, whole[TIMED * 99 / 100] / 1e3);
  tn_commands_free(c);
  tn_queue_free(q);
  tn_signal_free(s);
  tn_program_free(p);
  for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[i]);
}

static void lists_run_again_and_again(void **state) {
  fixture *f = *state;
  tn_device *cpu = f->device[CPU];
  resubmit(f, cpu, "CPU, one worker", 100000, 1, tn_queue_replay);
  resubmit(f, cpu, "CPU, two workers", 20000, 2, tn_queue_replay);
  resubmit(f, f->null, "NULL", 20000, 1, tn_queue_replay);
  resubmit(f, cpu, "CPU, one worker, on the caller's thread", 100000, 1, tn_queue_run);
  resubmit(f, cpu, "CPU, two workers, on the caller's thread", 20000, 2, tn_queue_run);
}

/** Measures lists of many small kernels: no thread sleeps in between. */
static void long_lists(void **state) {
  fixture *f = *state;
  enum { KERNELS = 1000, TIMES = 20 };
  tn_program *p = new_program(f, f->device[CPU], 2);
  tn_queue *q = new_queue(f, CPU, TN_QUEUE_COMPUTE);
  tn_signal *s = new_signal(f, CPU);
  tn_buffer *buffers[SAMPLE_BUFFERS];
  for (int i = 0; i < SAMPLE_BUFFERS; i++) {
    fine(f, tn_buffer_open(f->device[CPU], 4 * SAMPLE_MOST, &buffers[i], &f->failure));
    ok(f, zero_buffer(buffers[i], &f->diag));
  }
  for (int64_t workers = 1; workers <= 2; workers++) {
    sample_launch launch;
    sample_set(&launch, buffers, 16, workers);
    for (int i = 0; i < KERNELS; i++) tn_queue_exec(q, p, &launch.launch);
    uint64_t value = tn_signal_get(s);
    tn_queue_signal_at(q, s, &value);
    tn_commands *c;
    fine(f, tn_queue_record(q, &c, &f->failure));
    int64_t best = INT64_MAX;
    for (int i = 0; i < TIMES; i++) {
      value++;
      int64_t start = now();
      fine(f, tn_queue_replay(q, c, &f->failure));
      await(f, s, value);
      if (now() - start < best) best = now() - start;
    }
    print_message("a kernel in a list, %d worker(s): %.3f us\n", (int)workers,
                  best / 1e3 / KERNELS);
    tn_commands_free(c);
  }
  tn_queue_free(q);
  tn_signal_free(s);
  tn_program_free(p);
  for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[i]);
}

typedef struct submitter {
  tn_queue *queue;
  tn_commands *list;
  atomic_bool started;
} submitter;

static tn_status add_one(void *user, tn_failure *f) {
  (void)f;
  int before = *(int *)user; /* a queue runs one list at a time */
  for (int i = 0; i < 100; i++) thread_spin_hint();
  *(int *)user = before + 1;
  return TN_OK;
}

static void *replay_often(void *arg) {
  submitter *s = arg;
  for (int i = 0; i < 1000; i++)
    if ((i % 3 ? tn_queue_replay : tn_queue_run)(s->queue, s->list, NULL)) abort();
  return NULL;
}

static void *run_here(void *arg) {
  submitter *s = arg;
  atomic_store(&s->started, true);
  if (tn_queue_run(s->queue, s->list, NULL)) abort();
  return NULL;
}

/** tn_queue_run runs a list on the caller's thread if the queue is idle, else after earlier
    lists. */
static void callers_run_lists(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    tn_signal *s = new_signal(f, d), *go = new_signal(f, d);
    submitter here = {.queue = q};
    trace t = {0};
    step first = {&t, 1, TN_OK}, second = {&t, 2, TN_OK}, bad = {&t, 3, TN_ERR_IO};
    pthread_t thread;
    tn_queue_call(q, take_step, &second);
    tn_queue_signal(q, s, 1);
    fine(f, tn_queue_record(q, &here.list, &f->failure));
    tn_queue_wait(q, go, 1);
    tn_queue_call(q, take_step, &first);
    submit(f, q);
    pthread_create(&thread, NULL, run_here, &here);
    while (!atomic_load(&here.started)) usleep(1000);
    usleep(20000);
    tn_signal_set(go, 1);
    await(f, s, 1);
    pthread_join(thread, NULL);
    assert_true(t.n == 2 && t.order[0] == 1 && t.order[1] == 2);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    fine(f, tn_queue_run(q, here.list, &f->failure));
    fine(f, tn_queue_finish(q, -1, &f->failure));
    assert_int_equal(t.n, 3);
    tn_commands_free(here.list);
    tn_queue_call(q, take_step, &bad);
    fine(f, tn_queue_record(q, &here.list, &f->failure));
    fine(f, tn_queue_run(q, here.list, &f->failure));
    assert_int_equal(tn_queue_finish(q, -1, &f->failure), TN_ERR_IO);
    tn_commands_free(here.list);
    tn_queue_free(q);
    tn_signal_free(s);
    tn_signal_free(go);
  }
}

/** A host call that reports that it runs, and returns when it is released. */
typedef struct long_call {
  tn_queue *queue;
  atomic_bool runs, may_end, is_freed;
} long_call;

static tn_status take_long(void *user, tn_failure *f) {
  long_call *c = user;
  (void)f;
  atomic_store(&c->runs, true);
  while (!atomic_load(&c->may_end)) usleep(1000);
  return TN_OK;
}

static void *free_busy_queue(void *arg) {
  long_call *c = arg;
  tn_queue_free(c->queue);
  atomic_store(&c->is_freed, true);
  return NULL;
}

/** Freeing a queue waits for a list that runs on a caller's thread. */
static void freeing_waits_for_callers(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, CPU, TN_QUEUE_COMPUTE);
  submitter here = {.queue = q};
  long_call call = {.queue = q};
  pthread_t runner, freer;
  tn_queue_call(q, take_long, &call);
  fine(f, tn_queue_record(q, &here.list, &f->failure));
  pthread_create(&runner, NULL, run_here, &here);
  while (!atomic_load(&call.runs)) usleep(1000);
  pthread_create(&freer, NULL, free_busy_queue, &call);
  usleep(50000);
  bool was_freed = atomic_load(&call.is_freed);
  atomic_store(&call.may_end, true);
  if (!was_freed) {
    pthread_join(runner, NULL);
    pthread_join(freer, NULL);
  }
  assert_false(was_freed);
  assert_true(atomic_load(&call.is_freed));
  tn_commands_free(here.list);
}

static void threads_share_queues_and_lists(void **state) {
  fixture *f = *state;
  for (int d = 0; d < 2; d++) {
    tn_queue *q = new_queue(f, d, TN_QUEUE_COMPUTE);
    submitter s = {.queue = q};
    pthread_t t[4];
    int sum = 0;
    tn_queue_call(q, add_one, &sum);
    fine(f, tn_queue_record(q, &s.list, &f->failure));
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, replay_often, &s);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    fine(f, tn_queue_finish(q, -1, &f->failure));
    assert_int_equal(sum, 4000);
    tn_commands_free(s.list);
    tn_queue_free(q);
  }
}

typedef struct runner {
  fixture *f;
  tn_program *program;
} runner;

/** Queues of several threads run one program at once, on the shared pool. */
static void *run_alone(void *arg) {
  runner *r = arg;
  fixture *f = r->f;
  tn_queue *q;
  tn_signal *s;
  tn_buffer *buffers[SAMPLE_BUFFERS];
  static float ones[SAMPLE_MOST];
  sample_launch launch;
  float out[1000];
  if (tn_queue_open(f->device[CPU], TN_QUEUE_COMPUTE, &q, NULL) ||
      tn_signal_open(f->device[CPU], 0, &s, NULL))
    abort();
  for (int i = 0; i < SAMPLE_BUFFERS; i++)
    if (tn_buffer_open(f->device[CPU], sizeof ones, &buffers[i], NULL)) abort();
  sample_set(&launch, buffers, 1000, 2);
  for (int i = 1; i <= 200; i++) {
    float values[1000];
    for (int k = 0; k < 1000; k++) values[k] = (float)(i + k);
    for (int k = 1; k < 3; k++)
      if (tn_span_write(&launch.spans[k], TN_F32, TN_F32, values, 1000, NULL)) abort();
    tn_queue_exec(q, r->program, &launch.launch);
    tn_queue_signal(q, s, (uint64_t)i);
    if (tn_queue_submit(q, NULL) || tn_signal_wait(s, (uint64_t)i, -1, NULL)) abort();
    if (tn_span_read(&launch.spans[0], TN_F32, TN_F32, out, 1000, NULL)) abort();
    for (int k = 0; k < 1000; k++)
      if (out[k] != (float)(3 * (i + k))) abort();
  }
  for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_release(buffers[i]);
  tn_queue_free(q);
  tn_signal_free(s);
  return NULL;
}

static void programs_are_reentrant(void **state) {
  fixture *f = *state;
  runner r = {f, new_program(f, f->device[CPU], 2)};
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, run_alone, &r);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  tn_program_free(r.program);
}

static void copy_queues_run_no_programs(void **state) {
  fixture *f = *state;
  tn_queue *q = new_queue(f, REF, TN_QUEUE_COPY);
  tn_signal *s = new_signal(f, REF);
  tn_program *p = new_program(f, f->device[REF], 1);
  tn_launch launch = {0};
  tn_queue_exec(q, p, &launch);
  tn_queue_signal(q, s, 1);
  submit(f, q);
  fails(f, s, 1, TN_ERR_UNSUPPORTED,
        "kernel sample: a copy queue of device REF:0 runs no programs");
  tn_program_free(p);
  tn_queue_free(q);
  tn_signal_free(s);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(signals_only_rise),
                                     TEST(waits_end_in_time),
                                     TEST(failures_are_told_by_value),
                                     TEST(no_failure_is_forgotten),
                                     TEST(no_wake_up_is_lost),
                                     TEST(devices_pass_memory_to_and_fro),
                                     TEST(crowds_watch_one_signal),
                                     TEST(commands_run_in_order),
                                     TEST(stamps_tell_times),
                                     TEST(stamps_leave_out_the_time_between_lists),
                                     TEST(devices_work_together),
                                     TEST(queues_wait_for_each_other),
                                     TEST(submitting_waits_for_room_alone),
                                     TEST(calls_never_wait_for_their_queue),
                                     TEST(kinds_that_are_none),
                                     TEST(signals_tell_failures),
                                     TEST(submitting_tells_other_failures),
                                     TEST(failures_spread_over_waits),
                                     TEST(programs_that_fail),
                                     TEST(a_lost_device_stays_lost),
                                     TEST(a_refused_hand_over_loses_no_queue),
                                     TEST(lists_behind_a_late_failure_are_skipped),
                                     TEST(empty_copies_do_nothing),
                                     TEST(a_refused_command_loses_no_device),
                                     TEST(freeing_a_queue_cancels),
                                     TEST(freeing_a_queue_waits_for_the_device),
                                     TEST(threads_start_when_needed),
                                     TEST(a_thread_that_does_not_start_fails_the_submission),
                                     TEST(bad_commands_are_told),
                                     TEST(lists_see_what_changed),
                                     TEST(lists_run_again_and_again),
                                     TEST(long_lists),
                                     TEST(threads_share_queues_and_lists),
                                     TEST(callers_run_lists),
                                     TEST(freeing_waits_for_callers),
                                     TEST(programs_are_reentrant),
                                     TEST(copy_queues_run_no_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
