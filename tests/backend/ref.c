/* Implements a complete backend against the public headers alone, which tries each member of the
   backend interface: memory that the host cannot address, programs that are IR text run by the
   interpreter, short queues with threads of their own, and signals. */
#include "ref.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef REF_BUFFERS
#define REF_BUFFERS 6
#endif

enum { MOST_BUFFERS = REF_BUFFERS, RING = 4, BATCH = 3, MOST_NAME = 128 };

static void *take(const tn_allocator *a, size_t bytes) {
  void *at = a->alloc(a->user, bytes ? bytes : 1, sizeof(max_align_t));
  return at ? memset(at, 0, bytes) : NULL;
}

static void give(const tn_allocator *a, void *at, size_t bytes) {
  if (at) a->release(a->user, at, bytes ? bytes : 1);
}

static tn_status no_memory(tn_failure *f) { return tn_fail(f, TN_ERR_MEMORY, "out of memory"); }

/* ---- Devices and memory ---- */

typedef struct cell {
  void *data; /* NULL: free */
  uint64_t bytes;
} cell;

typedef struct ref_device {
  tn_allocator allocator;
  pthread_mutex_t lock; /* guards the cells, not their contents */
  cell *cells;          /* memory number n is cells[n − 1] */
  size_t n_cells;
} ref_device;

static tn_status ref_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  if (index > 3) return tn_fail(f, TN_ERR_DEVICE, "there are REF:0 to REF:3");
  ref_device *v = take(&host->allocator, sizeof *v);
  if (!v) return no_memory(f);
  v->allocator = host->allocator;
  pthread_mutex_init(&v->lock, NULL);
  *device = v;
  return TN_OK;
}

static void ref_close(void *device) {
  ref_device *v = device;
  tn_allocator a = v->allocator;
  pthread_mutex_destroy(&v->lock);
  give(&a, v->cells, v->n_cells * sizeof *v->cells);
  give(&a, v, sizeof *v);
}

static int32_t ref_count(void) { return 2; }

static tn_status ref_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  (void)index, (void)bytes, (void)f;
  static const char text[] = "the interpreter, with memory of its own";
  tn_output_add(about, text, sizeof text - 1);
  return TN_OK;
}

/** Returns a free cell, SIZE_MAX if memory is exhausted. Called under the lock. */
static size_t free_cell(ref_device *v) {
  for (size_t i = 0; i < v->n_cells; i++)
    if (!v->cells[i].data) return i;
  size_t n = v->n_cells * 2 + 8;
  cell *more = take(&v->allocator, n * sizeof *more);
  if (!more) return SIZE_MAX;
  if (v->n_cells) memcpy(more, v->cells, v->n_cells * sizeof *more);
  give(&v->allocator, v->cells, v->n_cells * sizeof *v->cells);
  size_t first = v->n_cells;
  v->cells = more;
  v->n_cells = n;
  return first;
}

static tn_status ref_alloc(void *device, uint64_t bytes, void **memory, tn_failure *f) {
  ref_device *v = device;
  void *data = take(&v->allocator, (size_t)bytes);
  if (!data) return no_memory(f);
  memset(data, 0xcd, (size_t)bytes);
  pthread_mutex_lock(&v->lock);
  size_t i = free_cell(v);
  if (i != SIZE_MAX) v->cells[i] = (cell){data, bytes};
  pthread_mutex_unlock(&v->lock);
  if (i == SIZE_MAX) {
    give(&v->allocator, data, (size_t)bytes);
    return no_memory(f);
  }
  *memory = (void *)(uintptr_t)(i + 1);
  return TN_OK;
}

static void ref_free(void *device, void *memory, uint64_t bytes) {
  ref_device *v = device;
  pthread_mutex_lock(&v->lock);
  cell *c = &v->cells[(uintptr_t)memory - 1];
  void *data = c->data;
  c->data = NULL;
  pthread_mutex_unlock(&v->lock);
  give(&v->allocator, data, (size_t)bytes);
}

/** Returns the address of a range of a memory; NULL if it is out of bounds. */
static char *locate(ref_device *v, void *memory, uint64_t offset, uint64_t bytes) {
  uintptr_t number = (uintptr_t)memory;
  char *at = NULL;
  pthread_mutex_lock(&v->lock);
  if (number && number <= v->n_cells) {
    cell c = v->cells[number - 1];
    if (c.data && offset <= c.bytes && bytes <= c.bytes - offset) at = (char *)c.data + offset;
  }
  pthread_mutex_unlock(&v->lock);
  return at;
}

static tn_status outside(tn_failure *f, uint64_t offset, uint64_t bytes) {
  return tn_fail(f, TN_ERR_INTERNAL, "%" PRIu64 " bytes from %" PRIu64 " on are not memory of REF",
                 bytes, offset);
}

static tn_status ref_read(void *device, void *to, void *memory, uint64_t offset, uint64_t bytes,
                          tn_failure *f) {
  const char *at = locate(device, memory, offset, bytes);
  if (!at) return outside(f, offset, bytes);
  memcpy(to, at, (size_t)bytes);
  return TN_OK;
}

static tn_status ref_write(void *device, void *memory, uint64_t offset, const void *from,
                           uint64_t bytes, tn_failure *f) {
  char *at = locate(device, memory, offset, bytes);
  if (!at) return outside(f, offset, bytes);
  memcpy(at, from, (size_t)bytes);
  return TN_OK;
}

/* ---- Rendering and compiling ---- */

static tn_status ref_describe(void *device, const char *limit, tn_capabilities *caps,
                              tn_failure *f) {
  static const char *const lacks[] = {"neg", "abs", "max",   "min",  "floordiv", "mod",
                                      "shl", "shr", "floor", "ceil", "trunc",    NULL};
  (void)device, (void)limit, (void)f;
  strcpy(caps->target, "ref");
  caps->threads = true;
  caps->index32 = true;
  caps->max_buffers = MOST_BUFFERS;
  caps->dtypes = UINT64_MAX;
  caps->lacks = lacks;
  return TN_OK;
}

/** Returns the bits of 2 in a float type. */
static int64_t bits_of_two(const char *type) {
  if (!strcmp(type, "f64")) return INT64_C(0x4000000000000000);
  return strcmp(type, "f32") ? 0x4000 : 0x40000000; /* the same in f16 and bf16 */
}

/** Replaces exp2(x) by pow(2, x). The library leaves exp2 alone, as REF does not list it as
    lacking. */
static tn_node ref_decompose(const tn_capabilities *caps, tn_ir *ir, tn_node node) {
  (void)caps;
  if (strcmp(tn_node_op(node), "exp2")) return NULL;
  const tn_node *x;
  tn_node_sources(node, &x);
  tn_node_desc number = TN_NODE_DESC_INIT, power = TN_NODE_DESC_INIT;
  int64_t bits = bits_of_two(tn_node_type(node));
  number.op = "const";
  number.type = power.type = tn_node_type(node);
  number.ints = &bits;
  number.n_ints = 1;
  tn_node operands[] = {tn_ir_make(ir, &number), *x};
  power.op = "pow";
  power.sources = operands;
  power.n_sources = 2;
  return tn_ir_make(ir, &power);
}

/** True if a LINEAR contains an op that REF replaces. */
static bool has_exp2(tn_node linear) {
  const tn_node *at;
  size_t n = tn_node_sources(linear, &at);
  for (size_t i = 0; i < n; i++)
    if (!strcmp(tn_node_op(at[i]), "exp2")) return true;
  return false;
}

/** Writes a program's LINEAR as text after a line with its name and length. */
static tn_status ref_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                            tn_output *source, tn_failure *f) {
  (void)caps;
  const tn_node *stages;
  tn_node_sources(spec->ast, &stages);
  if (has_exp2(stages[2])) return tn_fail(f, TN_ERR_UNSUPPORTED, "REF has no exp2");
  const char *text = tn_ir_print(ir, stages[2]);
  if (!text) return tn_fail(f, TN_ERR_MEMORY, "%s", tn_ir_message(ir));
  char head[MOST_NAME + 32];
  int n = snprintf(head, sizeof head, "%s %zu\n", spec->entry, strlen(text));
  tn_output_add(source, head, (size_t)n);
  tn_output_add(source, text, strlen(text));
  return TN_OK;
}

static tn_status ref_key(void *compiler, const tn_capabilities *caps, tn_output *key,
                         tn_failure *f) {
  (void)caps, (void)f;
  tn_output_add(key, compiler, strlen(compiler));
  return TN_OK;
}

static tn_status ref_compiler_open(void *device, const tn_host *host, const char *name,
                                   void **compiler, tn_failure *f) {
  static char version[] = "ref 1";
  (void)device, (void)host, (void)name, (void)f;
  *compiler = version;
  return TN_OK;
}

/** Computes the Fowler–Noll–Vo hash. */
static uint64_t hash(const char *at, size_t bytes) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)at[i]) * 1099511628211u;
  return h;
}

/** Concatenates the sources, each after a line with its length and hash. */
static tn_status ref_compile(void *compiler, const tn_capabilities *caps,
                             const tn_program_spec *const specs[], size_t n, tn_output *code,
                             tn_failure *f) {
  (void)compiler, (void)caps;
  if (n > BATCH) return tn_fail(f, TN_ERR_INTERNAL, "a batch of %zu programs", n);
  for (size_t i = 0; i < n; i++) {
    const tn_program_spec *s = specs[i];
    char head[64];
    if (s->n_globals > MOST_BUFFERS)
      return tn_fail(f, TN_ERR_INTERNAL, "kernel %s has %zu buffers", s->name, s->n_globals);
    int k = snprintf(head, sizeof head, "%zu %016" PRIx64 "\n", s->source_bytes,
                     hash(s->source, s->source_bytes));
    tn_output_add(code, head, (size_t)k);
    tn_output_add(code, s->source, s->source_bytes);
  }
  return TN_OK;
}

/* ---- Programs ---- */

typedef struct ref_module {
  ref_device *device;
  size_t bytes;
  char code[];
} ref_module;

typedef struct ref_program {
  ref_device *device;
  pthread_mutex_t lock; /* guards the graph during a run */
  tn_ir *ir;
  tn_node linear;
  const tn_program_facts *facts;
} ref_program;

static tn_status ref_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  ref_device *v = device;
  ref_module *m = take(&v->allocator, sizeof *m + code->bytes + 1);
  if (!m) return no_memory(f);
  m->device = v;
  m->bytes = code->bytes;
  memcpy(m->code, code->data, code->bytes);
  *module = m;
  return TN_OK;
}

static void ref_unload(void *module) {
  ref_module *m = module;
  tn_allocator a = m->device->allocator;
  give(&a, m, sizeof *m + m->bytes + 1);
}

/** Finds the text of an entry in a module's code and checks its hash; NULL if there is none. */
static const char *find_text(const ref_module *m, const char *entry, size_t *bytes) {
  const char *at = m->code, *end = m->code + m->bytes;
  while (at < end) {
    size_t length;
    uint64_t expected;
    int head, name;
    char found[MOST_NAME];
    if (sscanf(at, "%zu %" SCNx64 "%n", &length, &expected, &head) != 2) return NULL;
    at += head + 1;
    if ((size_t)(end - at) < length || hash(at, length) != expected) return NULL;
    if (sscanf(at, "%127s %zu%n", found, bytes, &name) != 2) return NULL;
    if (!strcmp(found, entry)) return at + name + 1;
    at += length;
  }
  return NULL;
}

static void ref_program_free(void *program) {
  ref_program *p = program;
  tn_allocator a = p->device->allocator;
  tn_ir_close(p->ir);
  pthread_mutex_destroy(&p->lock);
  give(&a, p, sizeof *p);
}

static tn_status ref_program_make(void *module, const tn_program_facts *facts, void **program,
                                  tn_failure *f) {
  ref_module *m = module;
  size_t bytes;
  const char *text = find_text(m, facts->entry, &bytes);
  if (!text) return tn_fail(f, TN_ERR_FORMAT, "no program %s in damaged code", facts->entry);
  ref_program *p = take(&m->device->allocator, sizeof *p);
  if (!p) return no_memory(f);
  p->device = m->device;
  p->facts = facts;
  pthread_mutex_init(&p->lock, NULL);
  tn_status status = tn_ir_open(&m->device->allocator, &p->ir);
  if (!status && !(p->linear = tn_ir_parse(p->ir, text, bytes)))
    status = tn_fail(f, tn_ir_status(p->ir), "%s", tn_ir_message(p->ir));
  if (status) {
    ref_program_free(p);
    return status;
  }
  *program = p;
  return TN_OK;
}

enum { LAUNCH_INDICES = 9 };

static const char *const index_names[LAUNCH_INDICES] = {"g0", "g1", "g2", "l0", "l1",
                                                        "l2", "i0", "i1", "i2"};

/** A run of a program: arguments of the interpreter. */
typedef struct ref_run {
  ref_program *program;
  const tn_ir_buffer *buffers;
  size_t n_buffers;
  tn_ir_value *values; /* values of the launch, then the launch indices */
  size_t n_values;
} ref_run;

/** Runs thread number `i` of a launch, at its position in the grid and in its group. */
static tn_status run_thread(const ref_run *r, const int64_t global[3], const int64_t local[3],
                            int64_t i) {
  const int64_t *sizes[] = {local, global};
  int64_t at[2][3];
  for (int kind = 0; kind < 2; kind++)
    for (int axis = 0; axis < 3; axis++) {
      at[kind][axis] = i % sizes[kind][axis];
      i /= sizes[kind][axis];
    }
  for (int k = 0; k < LAUNCH_INDICES; k++)
    r->values[r->n_values - LAUNCH_INDICES + k] =
        (tn_ir_value){index_names[k], at[k / 3 != 1][k % 3]};
  return tn_ir_execute(r->program->ir, r->program->linear, r->buffers, r->n_buffers, r->values,
                       r->n_values, at[1][0], global[0]);
}

static tn_status run_threads(const ref_run *r, const int64_t global[3], const int64_t local[3],
                             tn_failure *f) {
  ref_program *p = r->program;
  int64_t n = 1;
  for (int axis = 0; axis < 3; axis++) n *= global[axis] * local[axis];
  tn_status status = TN_OK;
  pthread_mutex_lock(&p->lock);
  for (int64_t i = 0; i < n && !status; i++) status = run_thread(r, global, local, i);
  if (status) tn_fail(f, status, "%s", tn_ir_message(p->ir));
  pthread_mutex_unlock(&p->lock);
  return status;
}

static tn_status ref_execute(void *program, const tn_launch *l, const int64_t global[3],
                             const int64_t *local, tn_failure *f) {
  static const int64_t alone[3] = {1, 1, 1};
  ref_program *p = program;
  const tn_allocator *a = &p->device->allocator;
  tn_ir_buffer buffers[MOST_BUFFERS];
  for (size_t i = 0; i < l->n_buffers; i++) {
    const tn_span *s = &l->buffers[i];
    char *at = locate(p->device, s->memory, s->offset, s->bytes);
    if (!at) return outside(f, s->offset, s->bytes);
    buffers[i] = (tn_ir_buffer){p->facts->globals[i], at, (size_t)s->bytes};
  }
  size_t n = l->n_values + LAUNCH_INDICES;
  tn_ir_value *values = take(a, n * sizeof *values);
  if (!values) return no_memory(f);
  for (size_t i = 0; i < l->n_values; i++)
    values[i] = (tn_ir_value){p->facts->value_names[i], l->values[i]};
  ref_run r = {p, buffers, l->n_buffers, values, n};
  tn_status status = run_threads(&r, global, local ? local : alone, f);
  give(a, values, n * sizeof *values);
  return status;
}

/* ---- Signals ---- */

typedef struct ref_signal {
  tn_allocator allocator;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t value, failed_above, failed_to;
  tn_failure failure;
} ref_signal;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void make_condition(pthread_cond_t *c) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(c, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

static tn_status ref_signal_open(void *device, uint64_t value, void **signal, tn_failure *f) {
  ref_device *v = device;
  ref_signal *s = take(&v->allocator, sizeof *s);
  if (!s) return no_memory(f);
  s->allocator = v->allocator;
  s->value = value;
  pthread_mutex_init(&s->lock, NULL);
  make_condition(&s->changed);
  *signal = s;
  return TN_OK;
}

static void ref_signal_free(void *signal) {
  ref_signal *s = signal;
  tn_allocator a = s->allocator;
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  give(&a, s, sizeof *s);
}

static uint64_t ref_signal_get(void *signal) {
  ref_signal *s = signal;
  pthread_mutex_lock(&s->lock);
  uint64_t value = s->value;
  pthread_mutex_unlock(&s->lock);
  return value;
}

static void ref_signal_rise(ref_signal *s, uint64_t value, tn_status status, const char *text) {
  pthread_mutex_lock(&s->lock);
  if (value > s->value) {
    if (status && (s->failed_to != s->value || s->failed_above == s->failed_to)) {
      s->failed_above = s->value;
      tn_fail(&s->failure, status, "%s", text);
    }
    if (status) s->failed_to = value;
    s->value = value;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
}

static void ref_signal_set(void *signal, uint64_t value) {
  ref_signal_rise(signal, value, TN_OK, "");
}

static void ref_signal_fail(void *signal, uint64_t value, tn_status status, const char *text) {
  ref_signal_rise(signal, value, status, text);
}

/** False when the deadline (negative: none) has passed. Under the lock. */
static bool wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t deadline) {
  if (deadline < 0) return !pthread_cond_wait(c, m);
  struct timespec t = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
  return pthread_cond_timedwait(c, m, &t) == 0;
}

static tn_status ref_signal_wait(void *signal, uint64_t value, int64_t timeout_ns, tn_failure *f) {
  ref_signal *s = signal;
  int64_t start = now();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - start ? -1 : start + timeout_ns;
  tn_status status = TN_OK;
  pthread_mutex_lock(&s->lock);
  while (s->value < value && wait_until(&s->changed, &s->lock, deadline)) continue;
  if (s->value < value)
    status = tn_fail(f, TN_ERR_TIMEOUT, "a signal of REF is at %" PRIu64 ", not at %" PRIu64,
                     s->value, value);
  else if (value > s->failed_above && value <= s->failed_to)
    status = tn_fail(f, s->failure.status, "%s", s->failure.text);
  pthread_mutex_unlock(&s->lock);
  return status;
}

static const tn_signal_functions signals = {.size = sizeof signals,
                                            .open = ref_signal_open,
                                            .free = ref_signal_free,
                                            .get = ref_signal_get,
                                            .set = ref_signal_set,
                                            .fail = ref_signal_fail,
                                            .wait = ref_signal_wait};

/* ---- Queues ---- */

typedef struct ref_queue {
  ref_device *device;
  tn_queue_kind kind;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t posted, taken;
  bool stop;
  tn_submission ring[RING];
} ref_queue;

/** Waits for a signal of REF by its own function, in short intervals, as the queue may be freed. */
static tn_status ref_queue_wait(ref_queue *q, const tn_submission *s, size_t i, tn_failure *f) {
  const tn_command *c = &s->commands[i];
  void *own = tn_signal_native(c->signal, &ref_backend);
  uint64_t value = c->value_at ? *c->value_at : c->value;
  for (;;) {
    if (!own) return tn_submission_run(s, i, f);
    tn_status status = ref_signal_wait(own, value, 5000000, f);
    if (status != TN_ERR_TIMEOUT) return status;
    if (ref_signal_get(own) >= value)
      return ref_signal_wait(own, value, 0, f); /* the value was reached in the meantime */
    pthread_mutex_lock(&q->lock);
    bool stop = q->stop;
    pthread_mutex_unlock(&q->lock);
    if (stop) return tn_fail(f, TN_ERR_CANCELLED, "a queue of REF was freed");
  }
}

/** Returns the time of the device's clock, which differs from the host's. */
static int64_t ref_clock(void) { return now() - (INT64_C(1) << 60); }

static tn_status ref_queue_command(ref_queue *q, const tn_submission *s, size_t i, tn_failure *f) {
  const tn_command *c = &s->commands[i];
  switch (c->kind) {
  case TN_COMMAND_WAIT: return ref_queue_wait(q, s, i, f);
  case TN_COMMAND_SIGNAL:
    tn_signal_set(c->signal, c->value_at ? *c->value_at : c->value);
    return TN_OK;
  case TN_COMMAND_EXEC:
    if (q->kind == TN_QUEUE_COPY)
      return tn_fail(f, TN_ERR_UNSUPPORTED, "a copy queue runs no programs");
    return tn_program_execute(c->owner, c->launch, f);
  case TN_COMMAND_COPY: return tn_span_copy(c->to, c->from, f);
  case TN_COMMAND_CALL: return c->call(c->user, f);
  case TN_COMMAND_STAMP: *c->stamp = ref_clock(); return TN_OK;
  default: return TN_OK;
  }
}

static void ref_queue_run(ref_queue *q, const tn_submission *s) {
  tn_failure f = {TN_OK, ""};
  tn_status status = tn_submission_begin(s, &f);
  for (size_t i = 0; i < s->n_commands && !status; i++) {
    f.text[0] = 0;
    status = f.status = ref_queue_command(q, s, i, &f);
    if (status) tn_submission_fail(s, i, &f);
  }
  tn_submission_done(s);
}

static void *ref_queue_body(void *arg) {
  ref_queue *q = arg;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    while (q->posted == q->taken && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
    if (q->posted == q->taken) break;
    tn_submission s = q->ring[q->taken++ % RING];
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    ref_queue_run(q, &s);
    pthread_mutex_lock(&q->lock);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static void ref_queue_end(ref_queue *q) {
  tn_allocator a = q->device->allocator;
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  give(&a, q, sizeof *q);
}

static tn_status ref_queue_open(void *device, tn_queue_kind kind, void **queue, tn_failure *f) {
  ref_device *v = device;
  ref_queue *q = take(&v->allocator, sizeof *q);
  if (!q) return no_memory(f);
  q->device = v;
  q->kind = kind;
  pthread_mutex_init(&q->lock, NULL);
  make_condition(&q->changed);
  if (pthread_create(&q->thread, NULL, ref_queue_body, q)) {
    ref_queue_end(q);
    return tn_fail(f, TN_ERR_DEVICE, "no thread for a queue of REF");
  }
  *queue = q;
  return TN_OK;
}

static void ref_queue_free(void *queue) {
  ref_queue *q = queue;
  pthread_mutex_lock(&q->lock);
  q->stop = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  ref_queue_end(q);
}

static tn_status ref_queue_submit(void *queue, const tn_submission *s, tn_failure *f) {
  (void)f;
  ref_queue *q = queue;
  pthread_mutex_lock(&q->lock);
  while (q->posted - q->taken == RING) pthread_cond_wait(&q->changed, &q->lock);
  q->ring[q->posted++ % RING] = *s;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return TN_OK;
}

static const tn_queue_functions queues = {.size = sizeof queues,
                                          .open = ref_queue_open,
                                          .free = ref_queue_free,
                                          .submit = ref_queue_submit};

/* ---- */

static const tn_renderer renderer = {.size = sizeof renderer,
                                     .name = "ir",
                                     .describe = ref_describe,
                                     .decompose = ref_decompose,
                                     .render = ref_render};

static const tn_compiler compiler = {.size = sizeof compiler,
                                     .name = "ref",
                                     .kind = TN_CODE_BYTES,
                                     .most = BATCH,
                                     .open = ref_compiler_open,
                                     .key = ref_key,
                                     .compile = ref_compile};

static const tn_pair pairs[] = {{&renderer, &compiler}};

const tn_backend ref_backend = {.size = sizeof ref_backend,
                                .name = "REF",
                                .pairs = pairs,
                                .n_pairs = 1,
                                .count = ref_count,
                                .probe = ref_probe,
                                .open = ref_open,
                                .close = ref_close,
                                .alloc = ref_alloc,
                                .free = ref_free,
                                .read = ref_read,
                                .write = ref_write,
                                .load = ref_load,
                                .unload = ref_unload,
                                .program = ref_program_make,
                                .program_free = ref_program_free,
                                .execute = ref_execute,
                                .queue = &queues,
                                .signal = &signals};
