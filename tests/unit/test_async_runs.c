/* Tests runs that a device goes on with after they were handed over: realising and ending a scope
   return at once, what reads a value waits for it and is told its failure, queues wait for each
   other's use of a buffer, and freed blocks are reused without a fault. */
#include "../backend/ref.c"
#include "device/memory/buffer.h"
#include "device/memory/caching_allocator.h"
#include "device/memory/span.h"
#include "device/queue/queue.h"
#include "tensor/context/context.h"

#include "support/tensor_check.h"

#include <unistd.h>

enum { N = 8, MS = 1000000 };
#define MINUTE_NS ((int64_t)60000 * MS)

/** Ends a pause after a while, so that a call which waits for the device fails a test instead of
    hanging. */
typedef struct pause {
  pthread_t thread;
  atomic_bool is_over; /* ended by the test */
  atomic_bool has_expired;
} pause_;

static void *expire(void *arg) {
  pause_ *p = arg;
  for (int i = 0; i < 5000 && !atomic_load(&p->is_over); i++) usleep(1000);
  if (!atomic_exchange(&p->is_over, true)) atomic_store(&p->has_expired, true);
  atomic_store(&ref_is_paused, false);
  return NULL;
}

static void begin_pause(pause_ *p) {
  atomic_store(&p->is_over, false);
  atomic_store(&p->has_expired, false);
  atomic_store(&ref_is_paused, true);
  assert_int_equal(pthread_create(&p->thread, NULL, expire, p), 0);
}

static void end_pause(pause_ *p) {
  atomic_store(&p->is_over, true);
  pthread_join(p->thread, NULL);
  assert_false(atomic_load(&p->has_expired));
}

static int set_up(void **state) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.threads = 1; /* devices of its own */
  tn_context *first = tn_open(&desc);
  if (!first || tn_backend_add(first, &ref_backend) != TN_OK) return 1;
  *state = first;
  return 0;
}

static int tear_down(void **state) {
  for (int i = 0; i < DEVICES; i++) atomic_store(&ref_is_lost[i], false);
  atomic_store(&ref_is_paused, false);
  return tn_close(*state) != TN_OK;
}

/** A context on REF, which shares the process's devices. */
static tn_context *open_ref(void) {
  tn_context *c = tn_open(NULL);
  assert_int_equal(tn_backend_add(c, &ref_backend), TN_OK);
  tn_close(c);
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = "REF";
  c = tn_open(&desc);
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  assert_int_equal(tn_context_get(c, &info), TN_OK);
  return c;
}

static tn_tensor *ramp(tn_context *c) {
  float x[N];
  for (int i = 0; i < N; i++) x[i] = (float)i;
  return tn_from_host(c, tn_shape(N), TN_F32, x, sizeof x);
}

/** x · 3 + 1, realised. */
static tn_tensor *realise_affine(tn_context *c, tn_tensor *x) {
  tn_tensor *y = tn_add(tn_mul(x, tn_num(c, 3)), tn_num(c, 1));
  check_ok(c, tn_realize(c, &y, 1));
  return y;
}

static void check_affine(tn_context *c, tn_tensor *y, int times) {
  float got[N];
  check_ok(c, tn_read(y, TN_F32, got, sizeof got));
  for (int i = 0; i < N; i++) {
    float expected = (float)i;
    for (int k = 0; k < times; k++) expected = expected * 3 + 1;
    assert_true(got[i] == expected);
  }
}

static void realising_does_not_wait(void **state) {
  (void)state;
  pause_ p;
  tn_queue *q;
  tn_context *c = open_ref();
  tn_tensor *x = ramp(c);
  check_ok(c, tn_realize(c, &x, 1));
  check_affine(c, realise_affine(c, x), 1); /* compiled from here on */
  assert_int_equal(queue_pool_get(&c->queues, c->device, TN_QUEUE_COMPUTE, &q, &c->diag), TN_OK);
  uint64_t before = queue_last_number(q);
  begin_pause(&p);
  tn_tensor *y = realise_affine(c, x);
  y = realise_affine(c, y);
  y = realise_affine(c, y); /* one after the other */
  end_pause(&p);
  assert_int_equal(queue_last_number(q), before + 3); /* each is one list */
  check_affine(c, y, 3);
  tn_close(c);
}

static void scopes_do_not_wait(void **state) {
  (void)state;
  enum { STEPS = 6 };
  pause_ p;
  tn_context *c = open_ref();
  tn_tensor *s = tn_state(ramp(c));
  for (int i = 0; i < STEPS; i++) {
    tn_scope_begin(c);
    tn_assign(s, tn_add(tn_mul(s, tn_num(c, 3)), tn_num(c, 1)));
    check_ok(c, tn_scope_end(c));
    if (i == 1) begin_pause(&p); /* the first ones compile */
  }
  end_pause(&p);
  check_affine(c, s, STEPS);
  tn_close(c);
}

static void *lose_device(void *arg) {
  (void)arg;
  usleep(20000);
  atomic_store(&ref_is_lost[0], true);
  atomic_store(&ref_is_paused, false);
  return NULL;
}

static void reading_tells_the_loss(void **state) {
  (void)state;
  pthread_t t;
  float got[N];
  tn_context *c = open_ref();
  tn_tensor *x = ramp(c);
  check_ok(c, tn_realize(c, &x, 1));
  check_affine(c, realise_affine(c, x), 1);
  atomic_store(&ref_is_paused, true);
  tn_tensor *y = realise_affine(c, x);
  assert_int_equal(pthread_create(&t, NULL, lose_device, NULL), 0);
  assert_int_equal(tn_read(y, TN_F32, got, sizeof got), TN_ERR_DEVICE);
  assert_non_null(strstr(tn_message(c), "REF:0"));
  pthread_join(t, NULL);
  assert_int_equal(tn_realize(c, (tn_tensor *[]){tn_add(x, x)}, 1), TN_ERR_DEVICE);
  tn_close(c);
  atomic_store(&ref_is_lost[0], false);
}

/** A value that was computed of one that could not be computed is a failure too, on the same queue;
    one that only the failed run read is not. */
static void failures_go_on_to_readers(void **state) {
  (void)state;
  float got[N];
  tn_context *c = open_ref();
  tn_tensor *x = ramp(c);
  check_ok(c, tn_realize(c, &x, 1));
  check_affine(c, realise_affine(c, x), 1);
  atomic_store(&ref_refuses, TN_ERR_MEMORY);
  tn_tensor *y = realise_affine(c, x);
  atomic_store(&ref_refuses, 0);
  tn_tensor *z = realise_affine(c, y), *other = realise_affine(c, x);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tn_read(z, TN_F32, got, sizeof got), TN_ERR_MEMORY);
    check_text(tn_message(c), "REF takes no works");
    assert_int_equal(tn_read(y, TN_F32, got, sizeof got), TN_ERR_MEMORY);
  }
  check_affine(c, other, 1);
  check_affine(c, x, 0);
  assert_int_equal(tn_read(tn_neg(y), TN_F32, got, sizeof got), TN_ERR_MEMORY);
  tn_close(c);
}

/** Doubles an array, unless *user says that this fails. */
static tn_status run_custom(void *user, tn_call *call) {
  const tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  const atomic_bool *fails = user;
  if (atomic_load(fails)) {
    tn_call_fail(call, "it does not work");
    return TN_ERR_IO;
  }
  for (int i = 0; i < N; i++) ((float *)out.data)[i] = 2 * ((const float *)in.data)[i];
  return TN_OK;
}

static tn_tensor *doubled(tn_context *c, tn_tensor *x, atomic_bool *fails) {
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  const tn_type type = {TN_F32, tn_shape(N)};
  tn_tensor *y;
  desc.run = run_custom;
  desc.user = fails;
  tn_custom(c, &desc, &x, 1, &type, &y, 1);
  return y;
}

/** A failed run spoils what it wrote, not what it read. */
static void failed_runs_leave_their_inputs(void **state) {
  (void)state;
  atomic_bool fails = true;
  tn_context *c = open_ref();
  tn_tensor *x = ramp(c), *y = doubled(c, x, &fails);
  check_ok(c, tn_realize(c, &x, 1));
  assert_int_equal(tn_realize(c, &y, 1), TN_ERR_IO);
  check_affine(c, x, 0);
  check_affine(c, realise_affine(c, x), 1);
  tn_close(c);
}

/** A step that failed, as its caller was told, does not fail the next one of the same state:
   neither a realisation nor the run of a plan, whose write the device refuses. */
static void states_go_on_after_failures(void **state) {
  (void)state;
  atomic_bool fails = false;
  float got[N];
  tn_plan *plan;
  tn_binding *b;
  tn_context *c = open_ref();
  tn_tensor *s = tn_state(ramp(c)), *one = tn_full(c, tn_shape(N), TN_F32, 1);
  for (int i = 0; i < 4; i++) {
    atomic_store(&fails, i == 1 || i == 2);
    tn_scope_begin(c);
    tn_assign(s, tn_add(s, doubled(c, one, &fails)));
    assert_int_equal(tn_scope_end(c), i == 1 || i == 2 ? TN_ERR_IO : TN_OK);
  }
  tn_assign(s, tn_add(s, one));
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  for (int i = 0; i < 4; i++) {
    atomic_store(&ref_refuses, i == 1 || i == 2 ? TN_ERR_MEMORY : 0);
    assert_int_equal(tn_binding_run(b), i == 1 || i == 2 ? TN_ERR_MEMORY : TN_OK);
  }
  check_ok(c, tn_read(s, TN_F32, got, sizeof got));
  for (int k = 0; k < N; k++) assert_true(got[k] == (float)k + 6);
  tn_plan_free(plan);
  tn_close(c);
}

/** A binding does not fail because another one failed that reads the same weights. */
static void bindings_do_not_fail_each_other(void **state) {
  (void)state;
  atomic_bool fails = false;
  tn_binding *b[2];
  tn_plan *plan;
  float x[N] = {1, 2, 3}, got[N];
  tn_context *c = open_ref();
  tn_tensor *weights = ramp(c);
  check_ok(c, tn_realize(c, &weights, 1));
  tn_tensor *in = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *y = doubled(c, tn_mul(in, weights), &fails);
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  for (int i = 0; i < 2; i++) {
    check_ok(c, tn_plan_bind(plan, &b[i]));
    check_bound(b[i], tn_binding_input(b[i], "x", tn_shape(N), TN_F32, x, sizeof x));
    check_bound(b[i], tn_binding_run(b[i]));
  }
  atomic_store(&fails, true);
  assert_int_equal(tn_binding_run(b[0]), TN_ERR_IO);
  atomic_store(&fails, false);
  for (int i = 3; i-- > 0;) {
    check_bound(b[i % 2], tn_binding_run(b[i % 2]));
    check_bound(b[i % 2], tn_binding_read(b[i % 2], "0", TN_F32, got, sizeof got));
    for (int k = 0; k < N; k++) assert_true(got[k] == 2 * x[k] * (float)k);
  }
  tn_plan_free(plan);
  tn_close(c);
}

static void add_step(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                     tn_tensor *next[], tn_tensor *y[]) {
  (void)user, (void)x, (void)y;
  next[0] = tn_add(tn_mul(state[0], tn_num(user, 2)), tn_cast(index, TN_F32));
}

static tn_tensor *realise_loop(tn_context *c, tn_tensor *init, int64_t steps) {
  tn_tensor *out;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = add_step;
  d.user = c;
  d.steps = steps;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  check_ok(c, tn_realize(c, &out, 1));
  return out;
}

/** The trips of a loop are handed over together. */
static void loops_do_not_wait(void **state) {
  (void)state;
  pause_ p;
  tn_context *c = open_ref();
  tn_tensor *x = ramp(c);
  check_ok(c, tn_realize(c, &x, 1));
  realise_loop(c, x, 9);
  for (int64_t steps = 0; steps < 10; steps += 3) {
    float got[N];
    realise_loop(c, x, steps);
    begin_pause(&p);
    tn_tensor *y = realise_loop(c, x, steps);
    end_pause(&p);
    check_ok(c, tn_read(y, TN_F32, got, sizeof got));
    for (int i = 0; i < N; i++) {
      float expected = (float)i;
      for (int64_t k = 0; k < steps; k++) expected = expected * 2 + (float)k;
      assert_true(got[i] == expected);
    }
  }
  tn_close(c);
}

static void *resume_soon(void *arg) {
  usleep(20000);
  atomic_store(&((pause_ *)arg)->is_over, true);
  return NULL;
}

/** A binding's run, on a queue of its own, waits for the states that were handed over before. */
static void plans_wait_for_states(void **state) {
  (void)state;
  enum { ROUNDS = 5, STEPS = 6 };
  tn_context *c = open_ref();
  tn_tensor *s = tn_state(ramp(c)), *out = tn_mul(s, tn_num(c, 1));
  tn_plan *plan;
  tn_binding *b;
  float got[N], expected[N];
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  assert_int_equal(tn_binding_run(b), TN_OK);
  for (int i = 0; i < N; i++) expected[i] = (float)i;
  for (int round = 0; round < ROUNDS; round++) {
    pause_ p;
    pthread_t t;
    if (round) begin_pause(&p); /* the first round compiles */
    for (int step = 0; step < STEPS; step++) {
      tn_scope_begin(c);
      tn_assign(s, tn_add(s, tn_num(c, 1)));
      check_ok(c, tn_scope_end(c));
      for (int i = 0; i < N; i++) expected[i] += 1;
    }
    if (round) assert_int_equal(pthread_create(&t, NULL, resume_soon, &p), 0);
    assert_int_equal(tn_binding_run(b), TN_OK);
    if (round) pthread_join(t, NULL);
    if (round) end_pause(&p);
    assert_int_equal(tn_binding_read(b, "0", TN_F32, got, sizeof got), TN_OK);
    assert_memory_equal(got, expected, sizeof got);
  }
  tn_close(c);
}

/* Blocks. */

typedef struct blocks {
  diag diag;
  tn_failure failure;
  registry *registry;
  tn_device *device;
  tn_queue *queues[2];
} blocks;

static void open_blocks(blocks *b) {
  memset(b, 0, sizeof *b);
  assert_int_equal(registry_open(&b->registry, &(registry_desc){.threads = 1}, &b->diag), TN_OK);
  assert_int_equal(registry_add_backend(b->registry, &ref_backend, &b->diag), TN_OK);
  assert_int_equal(registry_open_device(b->registry, "REF", &b->device, &b->diag), TN_OK);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tn_queue_open(b->device, TN_QUEUE_COMPUTE, &b->queues[i], NULL), TN_OK);
}

static void close_blocks(blocks *b) {
  for (int i = 0; i < 2; i++) tn_queue_free(b->queues[i]);
  registry_close(b->registry);
}

/** Submits a fill of a buffer, and notes it as its use. */
static void fill(blocks *b, int queue, tn_buffer *buffer, uint8_t byte) {
  tn_span span;
  tn_queue *q = b->queues[queue];
  assert_int_equal(buffer_span_on(buffer, queue_timeline(q), &span, &b->diag), TN_OK);
  tn_queue_fill(q, &span, byte);
  assert_int_equal(tn_queue_submit(q, NULL), TN_OK);
  buffer_note_use(buffer, queue_timeline(q), queue_last_number(q), POINT_WRITES);
}

static void *memory_of(blocks *b, tn_buffer *buffer, const tn_queue *q) {
  tn_span span;
  tn_status s = q ? buffer_span_on(buffer, queue_timeline(q), &span, &b->diag)
                  : buffer_span(buffer, &span, &b->diag);
  assert_int_equal(s, TN_OK);
  return span.memory;
}

static tn_buffer *open_buffer(blocks *b) {
  tn_buffer *made;
  assert_int_equal(buffer_open(b->device, 4096, &made, &b->diag), TN_OK);
  return made;
}

static void count_wait(void *user, tn_signal *timeline, uint64_t value, bool ends) {
  (void)timeline, (void)value, (void)ends;
  ++*(int *)user;
}

static int count_waits(tn_buffer *b, const tn_queue *q) {
  int n = 0;
  buffer_for_waits(b, queue_timeline(q), false, count_wait, &n);
  return n;
}

typedef struct reading {
  tn_buffer *buffer;
  atomic_bool is_done;
} reading;

static void *read_buffer(void *arg) {
  reading *r = arg;
  tn_span span;
  diag d;
  diag_clear(&d);
  tn_status s = buffer_span(r->buffer, &span, &d);
  atomic_store(&r->is_done, true);
  return s ? arg : NULL;
}

/** A reader waits for the uses of a buffer; other threads may submit more of them meanwhile. */
static void readers_hold_up_nobody(void **state) {
  (void)state;
  blocks b;
  pause_ p;
  pthread_t thread;
  void *failed;
  open_blocks(&b);
  begin_pause(&p);
  reading r = {.buffer = open_buffer(&b)};
  fill(&b, 0, r.buffer, 1);
  assert_int_equal(pthread_create(&thread, NULL, read_buffer, &r), 0);
  usleep(20000); /* the reader waits by now */
  fill(&b, 1, r.buffer, 2);
  assert_false(atomic_load(&r.is_done));
  end_pause(&p);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  buffer_release(r.buffer);
  close_blocks(&b);
}

static void freed_blocks_are_reused_by_order(void **state) {
  (void)state;
  blocks b;
  pause_ p;
  open_blocks(&b);
  begin_pause(&p);
  tn_buffer *first = open_buffer(&b), *again = open_buffer(&b), *host = open_buffer(&b);
  fill(&b, 0, first, 1);
  void *place = memory_of(&b, first, b.queues[0]);
  buffer_release(first);
  uint64_t cached = caching_allocator_cached_bytes(b.device->allocator);
  caching_allocator_trim(b.device->allocator, 0); /* frees nothing that is in use */
  assert_int_equal(caching_allocator_cached_bytes(b.device->allocator), cached);
  assert_true(memory_of(&b, host, NULL) != place); /* does not wait */
  assert_ptr_equal(memory_of(&b, again, b.queues[0]), place);
  assert_int_equal(count_waits(again, b.queues[0]), 0); /* the queue's own order is enough */
  fill(&b, 0, again, 2);
  buffer_release(again);
  tn_buffer *other = open_buffer(&b);
  assert_ptr_equal(memory_of(&b, other, b.queues[1]), place);
  assert_int_equal(count_waits(other, b.queues[1]), 1); /* this one has to wait */
  end_pause(&p);
  uint8_t seen;
  tn_span span;
  assert_int_equal(buffer_span(other, &span, &b.diag), TN_OK); /* waits */
  assert_int_equal(span_read(&span, DT_U8, DT_U8, &seen, 1, &b.diag), TN_OK);
  assert_int_equal(seen, 2);
  buffer_release(other);
  tn_buffer *done = open_buffer(&b);
  memory_of(&b, done, b.queues[0]);
  assert_int_equal(count_waits(done, b.queues[0]), 0); /* a block that is done goes first */
  buffer_release(done);
  buffer_release(host);
  close_blocks(&b);
}

static void *end_second(void *arg) {
  usleep(20000);
  tn_signal_set(arg, 1);
  return NULL;
}

/** Memory is unused only when all its uses have ended, also where the first of them failed. */
static void failed_uses_are_not_the_end(void **state) {
  (void)state;
  blocks b;
  pthread_t thread;
  timeline_points p = {0};
  tn_signal *failed, *open;
  open_blocks(&b);
  assert_int_equal(tn_signal_open(b.device, 0, &failed, NULL), TN_OK);
  assert_int_equal(tn_signal_open(b.device, 0, &open, NULL), TN_OK);
  timeline_points_add(&p, &mem_system, failed, 1, POINT_WRITES);
  timeline_points_add(&p, &mem_system, open, 1, POINT_READS);
  tn_signal_fail(failed, 1, TN_ERR_IO, "broken");
  diag_clear(&b.diag);
  assert_int_equal(timeline_points_wait(&p, 0, &b.diag), TN_ERR_TIMEOUT);
  assert_int_equal(pthread_create(&thread, NULL, end_second, open), 0);
  assert_int_equal(timeline_points_wait(&p, -1, &b.diag), TN_ERR_IO);
  assert_int_equal(tn_signal_get(open), 1);
  timeline_points_forget_writes(&p, NULL);
  assert_int_equal(timeline_points_wait(&p, -1, &b.diag), TN_OK);
  timeline_points_clear(&p, &mem_system);
  pthread_join(thread, NULL);
  tn_signal_free(failed);
  tn_signal_free(open);
  close_blocks(&b);
}

/** A caller of the public interface may release a buffer whose commands were submitted. */
static void exposed_buffers_count_all_commands(void **state) {
  (void)state;
  blocks b;
  pause_ p;
  open_blocks(&b);
  begin_pause(&p);
  tn_buffer *first;
  tn_span span;
  assert_int_equal(tn_buffer_open(b.device, 4096, &first, NULL), TN_OK);
  assert_int_equal(tn_buffer_span(first, &span, NULL), TN_OK);
  void *place = span.memory;
  tn_queue_fill(b.queues[0], &span, 7);
  assert_int_equal(tn_queue_submit(b.queues[0], NULL), TN_OK);
  tn_buffer_release(first);
  tn_buffer *next = open_buffer(&b), *other = open_buffer(&b);
  assert_true(memory_of(&b, next, NULL) != place);
  assert_ptr_equal(memory_of(&b, other, b.queues[1]), place);
  assert_int_equal(count_waits(other, b.queues[1]), 1);
  end_pause(&p);
  buffer_release(next);
  buffer_release(other);
  close_blocks(&b);
}

/** Lists that the library's thread runs keep a released buffer's block too. */
static void blocks_of_the_cpu_wait_for_its_queues(void **state) {
  (void)state;
  blocks b;
  tn_device *cpu;
  tn_queue *q;
  tn_signal *go;
  tn_buffer *first, *next;
  tn_span span, other;
  open_blocks(&b);
  assert_int_equal(registry_open_device(b.registry, "CPU", &cpu, &b.diag), TN_OK);
  assert_int_equal(tn_queue_open(cpu, TN_QUEUE_COMPUTE, &q, NULL), TN_OK);
  assert_int_equal(tn_signal_open(cpu, 0, &go, NULL), TN_OK);
  assert_int_equal(tn_buffer_open(cpu, 4096, &first, NULL), TN_OK);
  assert_int_equal(tn_buffer_span(first, &span, NULL), TN_OK);
  tn_queue_wait(q, go, 1);
  tn_queue_fill(q, &span, 7);
  assert_int_equal(tn_queue_submit(q, NULL), TN_OK);
  tn_buffer_release(first);
  assert_int_equal(tn_buffer_open(cpu, 4096, &next, NULL), TN_OK);
  assert_int_equal(tn_buffer_span(next, &other, NULL), TN_OK);
  assert_true(other.memory != span.memory);
  tn_buffer_release(next);
  tn_signal_set(go, 1);
  assert_int_equal(tn_queue_finish(q, MINUTE_NS, NULL), TN_OK);
  tn_queue_free(q);
  tn_signal_free(go);
  close_blocks(&b);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(realising_does_not_wait),
                                     TEST(scopes_do_not_wait),
                                     TEST(reading_tells_the_loss),
                                     TEST(failures_go_on_to_readers),
                                     TEST(failed_runs_leave_their_inputs),
                                     TEST(states_go_on_after_failures),
                                     TEST(bindings_do_not_fail_each_other),
                                     TEST(loops_do_not_wait),
                                     TEST(plans_wait_for_states),
                                     TEST(readers_hold_up_nobody),
                                     TEST(freed_blocks_are_reused_by_order),
                                     TEST(failed_uses_are_not_the_end),
                                     TEST(exposed_buffers_count_all_commands),
                                     TEST(blocks_of_the_cpu_wait_for_its_queues)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
