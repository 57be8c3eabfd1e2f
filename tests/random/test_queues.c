/* Runs random programs over four queues of three devices and compares them with a sequential model:
   kernels, fills, copies between devices, host functions and time stamps on buffers that the queues
   share, ordered by signals alone.

     test_queues [--seed=N] [--programs=N] [--long] [--opencl | --cuda]

   A program is a sequence of operations, each on one queue. An operation waits for the last ones of
   other queues that touch its buffers, and raises the timeline of its queue; so the sequence is one
   legal order, and all legal orders have its results. Queues are cut into lists, which are
   submitted in any order, by one thread or several: values are awaited before they are promised.
   Launches, spans and values of a list are overwritten as soon as it is submitted.

   Faults: a host function that fails, a launch that is refused, and (which has no model, but must
   end) the loss of a device at any time. TENON_SEED is a program's seed, to run it alone.

   --opencl, --cuda: beside devices of OpenCL or CUDA, two if there are (POCL_DEVICES="pthread
   basic" makes two of PoCL, tests/cuda stands in for two of CUDA). Without any, it is skipped (77).
 */
#include "../backend/ref.c"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/queue/queue.h"
#include "device/registry/device_registry.h"
#include "random/random.h"

#include <stdarg.h>
#include <unistd.h>

enum {
  USUAL = 300,
  TIMES_LONG = 34,
  QUEUES = 4,
  TRIO = 3,
  BUFFERS = 3, /* of each device */
  ELEMENTS = 16,
  MOST_OPS = 60,
  MOST_WAITS = QUEUES + 1,
  ALL_BUFFERS = TRIO * BUFFERS
};
enum { HANG_NS = 1000000000 };

enum { DEVICES_OPEN = 5, SKIPPED = 77 };
static const char *const usual[DEVICES_OPEN] = {"CPU", "CPU:1", "REF", "REF:1", "REF:2"};
static const char *const opencl[DEVICES_OPEN] = {"CPU", "REF", "REF:1", "OPENCL", "OPENCL:1"};
static const char *const cuda[DEVICES_OPEN] = {"CPU", "REF", "REF:1", "CUDA", "CUDA:1"};
static const char *const *names = usual;

/* out[i] = 3 a[i] + b[i] */
static const char kernel_text[] = "%n = var i64 [min=1 max=16] \"n\"\n"
                                  "%out = param u32 16 [slot=0]\n"
                                  "%a = param u32 16 [slot=1]\n"
                                  "%b = param u32 16 [slot=2]\n"
                                  "%three = const u32 3\n"
                                  "%i = range i64 %n [id=0 kind=loop axis=0 tail=0]\n"
                                  "%x = load u32 %a %i\n"
                                  "%y = load u32 %b %i\n"
                                  "%p = mul u32 %x %three\n"
                                  "%s = add u32 %p %y\n"
                                  "%put = store void %out %i %s\n"
                                  "%end = end void %i %put\n"
                                  "%l = linear void %i %x %y %p %s %put %end\n"
                                  "%k = sink void %end \"mix\"\n"
                                  "%d = device void \"CPU\"\n"
                                  "%program = program void %k %d %l\n"
                                  "return %program\n";

typedef struct world {
  registry *registry;
  tn_device *devices[DEVICES_OPEN];
  tn_program *programs[DEVICES_OPEN];
  int n_devices;
} world;

typedef enum operation_kind {
  DO_KERNEL,
  DO_FILL,
  DO_COPY,
  DO_CALL,
  DO_STAMP,
  DO_KINDS
} operation_kind;

/** An operation; buffers are numbered over all devices of the program. */
typedef struct operation {
  operation_kind kind;
  int queue;
  uint64_t value; /* of its queue's timeline: the number of the operation there, from 1 */
  int to, from[2];
  uint8_t byte;
  bool is_faulty;
  bool ends_list, waits_for_go;
  uint64_t waits[QUEUES]; /* values of other queues; 0: none */
  int number;
  int *calls; /* HOST: counts */
  int64_t stamp;
} operation;

typedef struct test {
  rng r;
  uint64_t seed;
  const world *w;
  int trio[TRIO]; /* indices of devices */
  int queue_device[QUEUES];
  tn_queue *queues[QUEUES];
  tn_signal *timelines[QUEUES], *go;
  tn_buffer *buffers[ALL_BUFFERS];
  tn_span spans[ALL_BUFFERS];
  operation ops[MOST_OPS];
  int n_ops;
  uint64_t last[QUEUES];
  bool loses_device;
  /* The model: */
  uint32_t contents[ALL_BUFFERS][ELEMENTS];
  int calls[MOST_OPS], seen_calls[MOST_OPS];
  tn_status failed[QUEUES][MOST_OPS + 1];
  int cause[QUEUES][MOST_OPS + 1]; /* number of the operation whose failure is told */
} test;

static _Noreturn void fail(const test *t, const char *form, ...) {
  va_list list;
  va_start(list, form);
  fprintf(stderr, "seed %llu: ", (unsigned long long)t->seed);
  vfprintf(stderr, form, list);
  fputc('\n', stderr);
  va_end(list);
  abort();
}

static void check(const test *t, tn_status status, const tn_failure *f, const char *what) {
  if (status) fail(t, "%s: %s %s", what, tn_status_text(status), f->text);
}

/* Making a program. */

static int device_of(const test *t, int buffer) { return t->trio[buffer / BUFFERS]; }

/** A buffer of a device. */
static int pick_buffer(test *t, int device) {
  for (;;) {
    int b = (int)rng_below(&t->r, ALL_BUFFERS);
    if (device_of(t, b) == device) return b;
  }
}

static int pick_other(test *t, int device, int not_this, int nor_this) {
  int b;
  do b = pick_buffer(t, device);
  while (b == not_this || b == nor_this);
  return b;
}

static void make_operation(test *t, int i) {
  operation *o = &t->ops[i];
  rng *r = &t->r;
  *o = (operation){.number = i, .to = -1, .from = {-1, -1}, .calls = &t->seen_calls[i]};
  o->queue = (int)rng_below(r, QUEUES);
  o->kind = (operation_kind)rng_below(r, DO_KINDS);
  o->value = ++t->last[o->queue];
  int device = t->queue_device[o->queue];
  switch (o->kind) {
  case DO_KERNEL:
    o->to = pick_buffer(t, device);
    o->from[0] = pick_other(t, device, o->to, -1);
    o->from[1] = pick_other(t, device, o->to, o->from[0]);
    break;
  case DO_FILL:
    o->to = pick_buffer(t, device);
    o->byte = (uint8_t)rng_next(r);
    break;
  case DO_COPY:
    o->to = (int)rng_below(r, ALL_BUFFERS);
    do o->from[0] = (int)rng_below(r, ALL_BUFFERS);
    while (o->from[0] == o->to);
    break;
  default: break;
  }
  bool may_fail = o->kind == DO_KERNEL || o->kind == DO_CALL;
  o->is_faulty = may_fail && rng_chance(r, 6);
  o->ends_list = rng_chance(r, 35);
  o->waits_for_go = rng_chance(r, 4);
}

static bool touches(const operation *o, int buffer) {
  return buffer >= 0 && (o->to == buffer || o->from[0] == buffer || o->from[1] == buffer);
}

static bool conflicts(const operation *a, const operation *b) {
  return touches(b, a->to) || touches(a, b->to);
}

/** Has each operation wait for the last one of each other queue that it must follow. */
static void order_operations(test *t) {
  for (int i = 0; i < t->n_ops; i++) {
    operation *o = &t->ops[i];
    for (int k = 0; k < i; k++) {
      const operation *before = &t->ops[k];
      bool by_chance = rng_chance(&t->r, 1);
      if (before->queue != o->queue && (conflicts(o, before) || by_chance))
        o->waits[before->queue] = before->value;
    }
  }
}

/* The model. */

static void run_in_model(test *t, const operation *o) {
  uint32_t *to = o->to >= 0 ? t->contents[o->to] : NULL;
  const uint32_t *a = o->from[0] >= 0 ? t->contents[o->from[0]] : NULL;
  const uint32_t *b = o->from[1] >= 0 ? t->contents[o->from[1]] : NULL;
  for (int i = 0; i < ELEMENTS; i++) {
    if (o->kind == DO_KERNEL) to[i] = 3 * a[i] + b[i];
    if (o->kind == DO_FILL) memset(&to[i], o->byte, 4);
    if (o->kind == DO_COPY) to[i] = a[i];
  }
  if (o->kind == DO_CALL) t->calls[o->number]++;
}

static void model(test *t) {
  int list_cause[QUEUES];
  for (int q = 0; q < QUEUES; q++) list_cause[q] = -1;
  for (int i = 0; i < t->n_ops; i++) {
    const operation *o = &t->ops[i];
    int *cause = &list_cause[o->queue];
    for (int q = 0; q < QUEUES && *cause < 0; q++)
      if (o->waits[q] && t->failed[q][o->waits[q]]) *cause = t->cause[q][o->waits[q]];
    if (*cause < 0 && o->kind == DO_CALL) t->calls[i] += o->is_faulty;
    if (*cause < 0 && o->is_faulty) *cause = i;
    if (*cause < 0) run_in_model(t, o);
    bool follows = o->value > 1 && t->failed[o->queue][o->value - 1];
    t->failed[o->queue][o->value] = *cause >= 0;
    t->cause[o->queue][o->value] =
        *cause >= 0 && follows ? t->cause[o->queue][o->value - 1] : *cause;
    if (o->ends_list || o->value == t->last[o->queue]) *cause = -1;
  }
}

/* Running. */

static tn_status call_host(void *user, tn_failure *f) {
  operation *o = user;
  ++*o->calls;
  return o->is_faulty ? tn_fail(f, TN_ERR_IO, "operation %d", o->number) : TN_OK;
}

/** Memory of the operations of a list, overwritten when the list is submitted. */
typedef struct list_memory {
  tn_span spans[MOST_OPS][3];
  int64_t values[MOST_OPS];
  tn_launch launches[MOST_OPS];
  uint64_t raised[MOST_OPS];
} list_memory;

static void record(test *t, operation *o, list_memory *m, int i) {
  tn_queue *q = t->queues[o->queue];
  if (o->waits_for_go) tn_queue_wait(q, t->go, 1);
  for (int k = 0; k < QUEUES; k++)
    if (o->waits[k]) tn_queue_wait(q, t->timelines[k], o->waits[k]);
  if (o->to >= 0) m->spans[i][0] = t->spans[o->to];
  for (int k = 0; k < 2; k++)
    if (o->from[k] >= 0) m->spans[i][k + 1] = t->spans[o->from[k]];
  m->values[i] = ELEMENTS;
  m->launches[i] = (tn_launch){m->spans[i], o->is_faulty ? 2 : 3, &m->values[i], 1};
  m->raised[i] = o->value;
  switch (o->kind) {
  case DO_KERNEL:
    tn_queue_exec(q, t->w->programs[t->queue_device[o->queue]], &m->launches[i]);
    break;
  case DO_FILL: tn_queue_fill(q, &m->spans[i][0], o->byte); break;
  case DO_COPY: tn_queue_copy(q, &m->spans[i][0], &m->spans[i][1]); break;
  case DO_CALL: tn_queue_call(q, call_host, o); break;
  default: tn_queue_stamp(q, &o->stamp); break;
  }
  tn_queue_signal_at(q, t->timelines[o->queue], &m->raised[i]);
}

/** Submits the next list of a queue, from operation `from` on; returns where the next one begins.
 */
static int submit_list(test *t, int queue, int from) {
  list_memory m;
  tn_failure f;
  int n = 0;
  bool has_ended = false;
  for (; from < t->n_ops && !has_ended; from++) {
    operation *o = &t->ops[from];
    if (o->queue != queue) continue;
    record(t, o, &m, n++);
    has_ended = o->ends_list;
  }
  if (!n) return from;
  tn_status status = tn_queue_submit(t->queues[queue], &f);
  if (!t->loses_device) check(t, status, &f, "submit");
  if (status == TN_ERR_DEVICE) /* nothing was submitted */
    tn_signal_fail(t->timelines[queue], t->last[queue], status, "lost");
  memset(&m, 0xa5, sizeof m);
  return from;
}

typedef struct submitter {
  test *t;
  int queue;
} submitter;

static void *submit_queue(void *arg) {
  submitter *s = arg;
  for (int at = 0; at < s->t->n_ops;) at = submit_list(s->t, s->queue, at);
  return NULL;
}

static void submit_by_threads(test *t) {
  pthread_t threads[QUEUES];
  submitter s[QUEUES];
  for (int q = 0; q < QUEUES; q++) {
    s[q] = (submitter){t, q};
    if (pthread_create(&threads[q], NULL, submit_queue, &s[q])) fail(t, "no thread");
  }
  for (int q = 0; q < QUEUES; q++) pthread_join(threads[q], NULL);
}

static void submit_by_turns(test *t) {
  int at[QUEUES] = {0}, left = QUEUES;
  while (left) {
    int q = (int)rng_below(&t->r, QUEUES);
    if (at[q] >= t->n_ops) continue;
    at[q] = submit_list(t, q, at[q]);
    left -= at[q] >= t->n_ops;
  }
}

static void open_test(test *t) {
  tn_failure f;
  diag d = {0};
  for (int i = 0; i < TRIO; i++) {
    bool is_used;
    do {
      t->trio[i] = (int)rng_below(&t->r, (size_t)t->w->n_devices);
      is_used = false;
      for (int k = 0; k < i; k++) is_used |= t->trio[k] == t->trio[i];
    } while (is_used);
  }
  for (int b = 0; b < ALL_BUFFERS; b++) {
    tn_device *v = t->w->devices[device_of(t, b)];
    check(t, tn_buffer_open(v, sizeof t->contents[b], &t->buffers[b], &f), &f, "buffer");
    check(t, tn_buffer_span(t->buffers[b], &t->spans[b], &f), &f, "span");
    for (int i = 0; i < ELEMENTS; i++) t->contents[b][i] = (uint32_t)rng_next(&t->r);
    if (span_write(&t->spans[b], DT_U32, DT_U32, t->contents[b], ELEMENTS, &d))
      fail(t, "write: %s", d.text);
  }
  for (int q = 0; q < QUEUES; q++) {
    t->queue_device[q] = t->trio[q < TRIO ? q : (int)rng_below(&t->r, TRIO)];
    tn_device *v = t->w->devices[t->queue_device[q]],
              *any = t->w->devices[rng_below(&t->r, (size_t)t->w->n_devices)];
    check(t, tn_queue_open(v, TN_QUEUE_COMPUTE, &t->queues[q], &f), &f, "queue");
    check(t, tn_signal_open(any, 0, &t->timelines[q], &f), &f, "signal");
  }
  check(t, tn_signal_open(t->w->devices[0], 0, &t->go, &f), &f, "signal");
}

static void close_test(test *t) {
  for (int q = 0; q < QUEUES; q++) tn_queue_free(t->queues[q]);
  for (int q = 0; q < QUEUES; q++) tn_signal_free(t->timelines[q]);
  tn_signal_free(t->go);
  for (int b = 0; b < ALL_BUFFERS; b++) tn_buffer_release(t->buffers[b]);
}

/** Waits for the last value of each timeline. */
static void await_end(test *t) {
  tn_failure f;
  for (int q = 0; q < QUEUES; q++) {
    if (!t->last[q]) continue;
    tn_status status = tn_signal_wait(t->timelines[q], t->last[q], (int64_t)60 * HANG_NS, &f);
    if (status == TN_ERR_TIMEOUT) fail(t, "queue %d hangs: %s", q, f.text);
    status = tn_queue_finish(t->queues[q], (int64_t)60 * HANG_NS, &f);
    if (status == TN_ERR_TIMEOUT) fail(t, "queue %d does not finish: %s", q, f.text);
    if (!t->loses_device) check(t, status, &f, "finish");
  }
}

static void compare_signals(test *t) {
  for (int q = 0; q < QUEUES; q++)
    for (uint64_t v = 1; v <= t->last[q]; v++) {
      tn_failure f;
      char expected[64];
      tn_status status = tn_signal_wait(t->timelines[q], v, 0, &f);
      if (t->loses_device) continue;
      if (!status != !t->failed[q][v])
        fail(t, "queue %d, value %llu: %s", q, (unsigned long long)v, tn_status_text(status));
      const operation *o = &t->ops[status ? t->cause[q][v] : 0];
      snprintf(expected, sizeof expected, "operation %d", o->number);
      if (o->kind == DO_KERNEL)
        snprintf(expected, sizeof expected, "kernel mix expects 3 buffers, got 2");
      if (status && strcmp(expected, f.text))
        fail(t, "queue %d, value %llu: \"%s\" instead of \"%s\"", q, (unsigned long long)v, f.text,
             expected);
    }
}

static void compare(test *t) {
  compare_signals(t);
  for (int i = 0; i < t->n_ops && !t->loses_device; i++)
    if (t->calls[i] != t->seen_calls[i]) fail(t, "operation %d: %d calls", i, t->seen_calls[i]);
  for (int b = 0; b < ALL_BUFFERS && !t->loses_device; b++) {
    uint32_t seen[ELEMENTS];
    diag d = {0};
    if (span_read(&t->spans[b], DT_U32, DT_U32, seen, ELEMENTS, &d)) fail(t, "read: %s", d.text);
    if (memcmp(seen, t->contents[b], sizeof seen))
      fail(t, "buffer %d of %s: %08x instead of %08x", b, names[device_of(t, b)], seen[0],
           t->contents[b][0]);
  }
}

static void run_program_of_seed(const world *w, uint64_t seed) {
  static test t;
  memset(&t, 0, sizeof t);
  t.seed = seed;
  t.r.state = seed;
  t.w = w;
  t.loses_device = rng_chance(&t.r, 8);
  open_test(&t);
  t.n_ops = (int)rng_between(&t.r, 1, MOST_OPS);
  for (int i = 0; i < t.n_ops; i++) make_operation(&t, i);
  order_operations(&t);
  model(&t);
  if (rng_chance(&t.r, 50))
    submit_by_threads(&t);
  else
    submit_by_turns(&t);
  if (t.loses_device) {
    usleep((unsigned)rng_below(&t.r, 500));
    atomic_store(&ref_is_lost[rng_below(&t.r, 3)], true);
  }
  tn_signal_set(t.go, 1);
  await_end(&t);
  compare(&t);
  close_test(&t);
  for (int i = 0; i < DEVICES; i++) atomic_store(&ref_is_lost[i], false);
}

static void open_world(world *w) {
  diag d = {0};
  tn_ir *ir;
  tn_failure f;
  tn_status status = registry_open(&w->registry, &(registry_desc){.threads = 2}, &d);
  if (!status) status = registry_add_backend(w->registry, &ref_backend, &d);
  for (int i = 0; i < DEVICES_OPEN && !status; i++) {
    status = registry_open_device(w->registry, names[i], &w->devices[i], &d);
    if (!status) w->n_devices++;
  }
  if (status && names != usual && w->n_devices >= DEVICES_OPEN - 2) {
    printf("%s: %s\n", w->n_devices < DEVICES_OPEN - 1 ? "SKIPPED" : "one such device alone",
           d.text);
    if (w->n_devices < DEVICES_OPEN - 1) exit(SKIPPED);
    status = TN_OK;
  }
  if (!status) status = tn_ir_open(NULL, &ir);
  tn_node node = status ? NULL : tn_ir_parse(ir, kernel_text, sizeof kernel_text - 1);
  if (!status && !node) fprintf(stderr, "%s\n", tn_ir_message(ir));
  for (int i = 0; i < w->n_devices && node && !status; i++)
    if ((status = tn_program_compile(w->devices[i], ir, &node, 1, &w->programs[i], &f)))
      fprintf(stderr, "%s\n", f.text);
  if (status || !node) {
    fprintf(stderr, "%s\n", d.text);
    exit(1);
  }
  tn_ir_close(ir);
}

int main(int n, char *arguments[]) {
  const char *alone = getenv("TENON_SEED"), *is_long = getenv("TENON_LONG");
  uint64_t seed = 1;
  size_t programs = USUAL;
  for (int i = 1; i < n; i++) {
    if (!strncmp(arguments[i], "--seed=", 7)) seed = strtoull(arguments[i] + 7, NULL, 10);
    if (!strncmp(arguments[i], "--programs=", 11)) programs = strtoull(arguments[i] + 11, NULL, 10);
    if (!strcmp(arguments[i], "--long")) is_long = "1";
    if (!strcmp(arguments[i], "--opencl")) names = opencl;
    if (!strcmp(arguments[i], "--cuda")) names = cuda;
  }
  if (is_long) programs *= TIMES_LONG;
  if (alone) seed = strtoull(alone, NULL, 10), programs = 1;
  world w = {0};
  open_world(&w);
  for (size_t i = 0; i < programs; i++) run_program_of_seed(&w, alone ? seed : seed * 1000003 + i);
  for (int i = 0; i < w.n_devices; i++) tn_program_free(w.programs[i]);
  registry_close(w.registry);
  printf("%zu programs\n", programs);
  return 0;
}
