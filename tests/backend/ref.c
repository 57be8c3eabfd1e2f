/* Implements a complete backend against the public headers alone, which tries each member of the
   backend interface: memory that the host cannot address, programs that are IR text run by the
   interpreter, streams that are threads, which delay work at random, and marks that are flags. */
#include "ref.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef REF_BUFFERS
#define REF_BUFFERS 6
#endif

enum { MOST_BUFFERS = REF_BUFFERS, BATCH = 3, MOST_NAME = 128, DEVICES = 4 };

/* Of a group, and of the memory that it shares. */
enum { TEAM_WORKERS = 32, WARP = 4, GROUP_BYTES = 8192, REGISTERS = 255 };

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
  bool is_staging; /* the host may address it */
} cell;

typedef struct ref_device {
  tn_allocator allocator;
  int32_t index;
  pthread_mutex_t lock; /* guards the cells, not their contents */
  cell *cells;          /* memory number n is cells[n − 1] */
  size_t n_cells;
} ref_device;

static atomic_bool ref_is_lost[DEVICES];
static atomic_bool ref_delays = true;
static atomic_bool ref_is_paused;                 /* no stream begins a work */
static atomic_size_t ref_works;                   /* that streams have begun */
static atomic_int ref_refuses;                    /* the status of hand-overs; 0: none fails */
static atomic_bool ref_fails_make, ref_fails_set; /* of graphs */
static atomic_int ref_fails_run;                  /* the status of runs of graphs; 0: none fails */
static atomic_bool ref_loses_run;        /* the device is lost before the first work of a graph */
static _Atomic uint64_t ref_lacks_types; /* set of 1 << tn_dtype */
static atomic_size_t ref_makes, ref_sets, ref_runs; /* of graphs, that succeeded */

static tn_status ref_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  if (index >= DEVICES) return tn_fail(f, TN_ERR_DEVICE, "there are REF:0 to REF:3");
  ref_device *v = take(&host->allocator, sizeof *v);
  if (!v) return no_memory(f);
  v->allocator = host->allocator;
  v->index = index;
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

static tn_status ref_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                           tn_failure *f) {
  ref_device *v = device;
  void *data = take(&v->allocator, (size_t)bytes);
  if (!data) return no_memory(f);
  memset(data, 0xcd, (size_t)bytes);
  pthread_mutex_lock(&v->lock);
  size_t i = free_cell(v);
  if (i != SIZE_MAX) v->cells[i] = (cell){data, bytes, use == TN_MEMORY_STAGING};
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

static void *ref_host(void *device, void *memory) {
  ref_device *v = device;
  pthread_mutex_lock(&v->lock);
  cell c = v->cells[(uintptr_t)memory - 1];
  pthread_mutex_unlock(&v->lock);
  return c.is_staging ? c.data : NULL;
}

/** REF:0 and REF:1 copy from each other, as do REF:2 and REF:3. */
static tn_peer ref_peer(void *device, void *other) {
  const ref_device *a = device, *b = other;
  return a->index / 2 == b->index / 2 ? TN_PEER_COPY : TN_PEER_NONE;
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
  caps->dtypes = ~ref_lacks_types;
  caps->lacks = lacks;
  caps->registers = REGISTERS;
  caps->team_workers = TEAM_WORKERS;
  caps->warp = WARP;
  caps->group_bytes = GROUP_BYTES;
  caps->copy_bytes = 4 | 8 | 16;
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

/** Runs a launch in teams: all groups, with the workers of each in random order. */
static tn_status run_teams(const ref_run *r, int64_t groups, int64_t workers) {
  static atomic_ullong seed;
  ref_program *p = r->program;
  tn_ir_teams teams = {sizeof teams, groups, workers, WARP, atomic_fetch_add(&seed, 1)};
  return tn_ir_execute_in_teams(p->ir, p->linear, r->buffers, r->n_buffers, r->values,
                                r->n_values - LAUNCH_INDICES, &teams);
}

static tn_status run_threads(const ref_run *r, const int64_t global[3], const int64_t local[3],
                             bool is_team, tn_failure *f) {
  ref_program *p = r->program;
  int64_t n = 1;
  for (int axis = 0; axis < 3; axis++) n *= global[axis] * local[axis];
  tn_status status = TN_OK;
  pthread_mutex_lock(&p->lock);
  if (is_team)
    status = run_teams(r, global[0], local[0]);
  else
    for (int64_t i = 0; i < n && !status; i++) status = run_thread(r, global, local, i);
  if (status) tn_fail(f, status, "%s", tn_ir_message(p->ir));
  pthread_mutex_unlock(&p->lock);
  return status;
}

static tn_status run_program(const tn_work *w, tn_failure *f) {
  static const int64_t alone[3] = {1, 1, 1};
  const tn_launch *l = w->launch;
  ref_program *p = w->program;
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
  bool is_team =
      w->local[0] && w->local[1] == 1 && w->local[2] == 1 && w->global[1] == 1 && w->global[2] == 1;
  tn_status status = run_threads(&r, w->global, w->local[0] ? w->local : alone, is_team, f);
  give(a, values, n * sizeof *values);
  return status;
}

/* ---- Marks ---- */

/** A flag. Its creator's handle, the stream that will set it, and streams that wait for it hold a
    reference each. */
typedef struct ref_mark {
  tn_allocator allocator;
  atomic_int count;
  int32_t device; /* that sets it */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_done, is_lost;
  int64_t time;
} ref_mark;

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

static void ref_mark_free(void *mark) {
  ref_mark *m = mark;
  if (atomic_fetch_sub(&m->count, 1) != 1) return;
  tn_allocator a = m->allocator;
  pthread_cond_destroy(&m->changed);
  pthread_mutex_destroy(&m->lock);
  give(&a, m, sizeof *m);
}

/** Sets a mark, by the device's clock, which differs from the host's. */
static void set_mark(ref_mark *m) {
  pthread_mutex_lock(&m->lock);
  m->is_done = true;
  m->is_lost = atomic_load(&ref_is_lost[m->device]);
  m->time = now() - (INT64_C(1) << 60);
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
}

static void wait_for_mark(ref_mark *m) {
  pthread_mutex_lock(&m->lock);
  while (!m->is_done) pthread_cond_wait(&m->changed, &m->lock);
  pthread_mutex_unlock(&m->lock);
}

static tn_status ref_sync(void *mark, int64_t timeout_ns, tn_failure *f) {
  ref_mark *m = mark;
  int64_t end = now() + timeout_ns;
  struct timespec t = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
  int late = 0;
  pthread_mutex_lock(&m->lock);
  while (!m->is_done && !late)
    late = timeout_ns < 0 ? pthread_cond_wait(&m->changed, &m->lock)
                          : pthread_cond_timedwait(&m->changed, &m->lock, &t);
  bool is_done = m->is_done, is_lost = m->is_lost;
  pthread_mutex_unlock(&m->lock);
  if (!is_done) return tn_fail(f, TN_ERR_TIMEOUT, "a mark of REF is not done");
  return is_lost ? tn_fail(f, TN_ERR_DEVICE, "the device was lost") : TN_OK;
}

static int64_t ref_time(void *mark) { return ((ref_mark *)mark)->time; }

/* ---- Streams ---- */

typedef enum item_kind { ITEM_WORK, ITEM_SET, ITEM_AWAIT } item_kind;

/** Something that a stream does, with copies of what its work points to. */
typedef struct item {
  struct item *next;
  size_t bytes;
  item_kind kind;
  ref_mark *mark; /* SET, AWAIT */
  tn_work work;
  tn_launch launch;
  char copies[]; /* spans, then values */
} item;

typedef struct ref_stream {
  ref_device *device;
  tn_queue_kind kind;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  item *first, **last;
  bool stop;
  uint64_t random;
} ref_stream;

/** Lets other threads go first, now and then for a while. */
static void delay_at_random(ref_stream *q) {
  q->random = q->random * 6364136223846793005u + 1442695040888963407u;
  unsigned r = (unsigned)(q->random >> 33);
  if (!atomic_load(&ref_delays)) return;
  if (r % 4 == 0) sched_yield();
  if (r % 64 == 1) nanosleep(&(struct timespec){0, (long)(r / 64 % 100000)}, NULL);
}

/** Locates a span of a device, or of a peer; other backends of tests are copies of this one. */
static char *locate_span(ref_device *v, const tn_span *s) {
  ref_device *own = tn_device_native(s->device, &ref_backend);
  return locate(own ? own : v, s->memory, s->offset, s->bytes);
}

static tn_status run_transfer(ref_device *v, const tn_work *w, tn_failure *f) {
  const tn_span *from = &w->from, *to = &w->to;
  bool reads = w->kind == TN_WORK_READ || w->kind == TN_WORK_COPY, writes = w->kind != TN_WORK_READ;
  char *a = NULL, *b = NULL;
  if (reads && !(a = locate_span(v, from))) return outside(f, from->offset, from->bytes);
  if (writes && !(b = locate_span(v, to))) return outside(f, to->offset, to->bytes);
  switch (w->kind) {
  case TN_WORK_COPY: memmove(b, a, (size_t)to->bytes); break;
  case TN_WORK_READ: memcpy(w->host, a, (size_t)from->bytes); break;
  case TN_WORK_WRITE: memcpy(b, w->host, (size_t)to->bytes); break;
  default: memset(b, w->fill, (size_t)to->bytes);
  }
  return TN_OK;
}

/** Does an item. A work that fails, which only a fault of the library's explains, loses the
    device. */
static void run_item(ref_stream *q, item *i) {
  tn_failure f;
  delay_at_random(q);
  while (i->kind == ITEM_WORK && atomic_load(&ref_is_paused))
    nanosleep(&(struct timespec){0, 100000}, NULL);
  if (i->kind == ITEM_WORK) atomic_fetch_add(&ref_works, 1);
  if (i->kind == ITEM_SET) {
    set_mark(i->mark);
    ref_mark_free(i->mark);
  } else if (i->kind == ITEM_AWAIT) {
    wait_for_mark(i->mark);
    ref_mark_free(i->mark);
  } else if (!atomic_load(&ref_is_lost[q->device->index]) &&
             (i->work.kind == TN_WORK_EXEC ? run_program(&i->work, &f)
                                           : run_transfer(q->device, &i->work, &f))) {
    fprintf(stderr, "REF:%d: %s\n", (int)q->device->index, f.text);
    atomic_store(&ref_is_lost[q->device->index], true);
  }
}

static void *run_stream(void *arg) {
  ref_stream *q = arg;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    while (!q->first && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
    item *i = q->first;
    if (!i) break;
    q->first = i->next;
    if (!q->first) q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
    run_item(q, i);
    give(&q->device->allocator, i, i->bytes);
    pthread_mutex_lock(&q->lock);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static tn_status ref_stream_open(void *device, tn_queue_kind kind, void **stream, tn_failure *f) {
  ref_device *v = device;
  ref_stream *q = take(&v->allocator, sizeof *q);
  if (!q) return no_memory(f);
  q->device = v;
  q->kind = kind;
  q->last = &q->first;
  q->random = (uintptr_t)q;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  if (!pthread_create(&q->thread, NULL, run_stream, q)) {
    *stream = q;
    return TN_OK;
  }
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  give(&v->allocator, q, sizeof *q);
  return tn_fail(f, TN_ERR_DEVICE, "no thread for a stream");
}

static void ref_stream_free(void *stream) {
  ref_stream *q = stream;
  pthread_mutex_lock(&q->lock);
  q->stop = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  tn_allocator a = q->device->allocator;
  give(&a, q, sizeof *q);
}

/** Makes an item for a work (NULL: none); NULL without memory. */
static item *new_item(const ref_device *v, item_kind kind, const tn_work *w) {
  const tn_launch *l = w && w->kind == TN_WORK_EXEC ? w->launch : NULL;
  size_t spans = l ? l->n_buffers * sizeof *l->buffers : 0;
  size_t values = l ? l->n_values * sizeof *l->values : 0;
  item *i = take(&v->allocator, sizeof *i + spans + values);
  if (!i) return NULL;
  i->bytes = sizeof *i + spans + values;
  i->kind = kind;
  if (w) i->work = *w;
  if (!l) return i;
  if (spans) memcpy(i->copies, l->buffers, spans);
  if (values) memcpy(i->copies + spans, l->values, values);
  i->launch =
      (tn_launch){(void *)i->copies, l->n_buffers, (void *)(i->copies + spans), l->n_values};
  i->work.launch = &i->launch;
  return i;
}

/** Posts an item, or a list of items. */
static void post(ref_stream *q, item *i) {
  pthread_mutex_lock(&q->lock);
  *q->last = i;
  for (; i; i = i->next) q->last = &i->next;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

static tn_status ref_enqueue(void *stream, const tn_work works[], size_t n, tn_failure *f) {
  ref_stream *q = stream;
  if (atomic_load(&ref_is_lost[q->device->index]))
    return tn_fail(f, TN_ERR_DEVICE, "device REF:%d was lost", (int)q->device->index);
  int refused = atomic_load(&ref_refuses);
  if (refused) return tn_fail(f, (tn_status)refused, "REF takes no works");
  for (size_t k = 0; k < n; k++) {
    if (works[k].kind == TN_WORK_EXEC && q->kind == TN_QUEUE_COPY)
      return tn_fail(f, TN_ERR_INTERNAL, "a program in a copy stream");
    item *i = new_item(q->device, ITEM_WORK, &works[k]);
    if (!i) return no_memory(f);
    post(q, i);
  }
  return TN_OK;
}

static tn_status ref_mark_make(void *stream, bool timed, void **mark, tn_failure *f) {
  (void)timed;
  ref_stream *q = stream;
  ref_mark *m = take(&q->device->allocator, sizeof *m);
  item *i = m ? new_item(q->device, ITEM_SET, NULL) : NULL;
  if (!i) {
    give(&q->device->allocator, m, sizeof *m);
    return no_memory(f);
  }
  m->allocator = q->device->allocator;
  m->device = q->device->index;
  atomic_init(&m->count, 2);
  pthread_mutex_init(&m->lock, NULL);
  make_condition(&m->changed);
  i->mark = *mark = m;
  post(q, i);
  return TN_OK;
}

static tn_status ref_await(void *stream, void *mark, tn_failure *f) {
  ref_stream *q = stream;
  ref_mark *m = mark;
  item *i = new_item(q->device, ITEM_AWAIT, NULL);
  if (!i) return no_memory(f);
  atomic_fetch_add(&m->count, 1);
  i->mark = m;
  post(q, i);
  return TN_OK;
}

static const tn_stream_functions streams = {.size = sizeof streams,
                                            .open = ref_stream_open,
                                            .free = ref_stream_free,
                                            .enqueue = ref_enqueue,
                                            .mark = ref_mark_make,
                                            .await = ref_await,
                                            .sync = ref_sync,
                                            .time = ref_time,
                                            .mark_free = ref_mark_free};

/* ---- Graphs ---- */

/** Works, which each run posts in a random order that the edges allow. */
typedef struct ref_graph {
  ref_device *device;
  size_t n, n_edges;
  item **items;
  bool *is_posted; /* in the run at hand */
  tn_work_edge *edges;
  uint64_t random;
} ref_graph;

static void ref_graph_free(void *graph) {
  ref_graph *g = graph;
  tn_allocator a = g->device->allocator;
  for (size_t i = 0; g->items && i < g->n; i++)
    if (g->items[i]) give(&a, g->items[i], g->items[i]->bytes);
  give(&a, g->items, g->n * sizeof(item *));
  give(&a, g->is_posted, g->n * sizeof *g->is_posted);
  give(&a, g->edges, g->n_edges * sizeof *g->edges);
  give(&a, g, sizeof *g);
}

static bool fill_graph(ref_graph *g, const tn_work works[], const tn_work_edge edges[]) {
  const tn_allocator *a = &g->device->allocator;
  g->items = take(a, g->n * sizeof(item *));
  g->is_posted = take(a, g->n * sizeof *g->is_posted);
  g->edges = take(a, g->n_edges * sizeof *g->edges);
  if (!g->items || !g->is_posted || !g->edges) return false;
  if (g->n_edges) memcpy(g->edges, edges, g->n_edges * sizeof *edges);
  for (size_t i = 0; i < g->n; i++)
    if (!(g->items[i] = new_item(g->device, ITEM_WORK, &works[i]))) return false;
  return true;
}

static tn_status ref_graph_make(void *device, const tn_work works[], size_t n,
                                const tn_work_edge edges[], size_t n_edges, void **graph,
                                tn_failure *f) {
  ref_device *v = device;
  if (atomic_load(&ref_fails_make)) return tn_fail(f, TN_ERR_UNSUPPORTED, "REF makes no graph");
  for (size_t i = 0; i < n_edges; i++)
    if (edges[i].before >= edges[i].after || edges[i].after >= n)
      return tn_fail(f, TN_ERR_INTERNAL, "an edge of a graph leads backwards or outside");
  ref_graph *g = take(&v->allocator, sizeof *g);
  if (!g) return no_memory(f);
  *g = (ref_graph){.device = v, .n = n, .n_edges = n_edges, .random = (uintptr_t)g};
  if (!fill_graph(g, works, edges)) {
    ref_graph_free(g);
    return no_memory(f);
  }
  atomic_fetch_add(&ref_makes, 1);
  *graph = g;
  return TN_OK;
}

static tn_status ref_graph_set(void *graph, size_t i, const tn_work *work, tn_failure *f) {
  ref_graph *g = graph;
  if (atomic_load(&ref_fails_set)) return tn_fail(f, TN_ERR_UNSUPPORTED, "REF sets no work");
  if (work->program != g->items[i]->work.program)
    return tn_fail(f, TN_ERR_INTERNAL, "another program in a graph");
  item *new = new_item(g->device, ITEM_WORK, work);
  if (!new) return no_memory(f);
  give(&g->device->allocator, g->items[i], g->items[i]->bytes);
  g->items[i] = new;
  atomic_fetch_add(&ref_sets, 1);
  return TN_OK;
}

/** True if no edge keeps a work from being posted next. */
static bool is_ready(const ref_graph *g, size_t i) {
  bool is_ready = !g->is_posted[i];
  for (size_t k = 0; k < g->n_edges; k++)
    is_ready &= g->edges[k].after != i || g->is_posted[g->edges[k].before];
  return is_ready;
}

/** A random work among those that may be next. */
static size_t choose_work(ref_graph *g) {
  size_t chosen = 0, n = 0;
  for (size_t i = 0; i < g->n; i++) {
    if (!is_ready(g, i)) continue;
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    if (!((g->random >> 33) % ++n)) chosen = i;
  }
  return chosen;
}

/** Copies the works in the order of a run; NULL without memory. */
static item *copy_works(ref_graph *g) {
  const tn_allocator *a = &g->device->allocator;
  item *first = NULL, **last = &first;
  memset(g->is_posted, 0, g->n * sizeof *g->is_posted);
  for (size_t i = 0; i < g->n; i++) {
    size_t next = choose_work(g);
    *last = new_item(g->device, ITEM_WORK, &g->items[next]->work);
    if (!*last) break;
    last = &(*last)->next;
    g->is_posted[next] = true;
    if (i + 1 == g->n) return first;
  }
  for (item *i; (i = first); give(a, i, i->bytes)) first = i->next;
  return NULL;
}

/** Hands over all works, or none. */
static tn_status ref_graph_run(void *stream, void *graph, tn_failure *f) {
  ref_stream *q = stream;
  ref_graph *g = graph;
  int status = atomic_load(&ref_fails_run);
  if (status) return tn_fail(f, (tn_status)status, "REF runs no graph");
  if (atomic_load(&ref_is_lost[q->device->index]))
    return tn_fail(f, TN_ERR_DEVICE, "device REF:%d was lost", (int)q->device->index);
  item *works = copy_works(g);
  if (!works) return no_memory(f);
  if (atomic_load(&ref_loses_run)) atomic_store(&ref_is_lost[q->device->index], true);
  post(q, works);
  atomic_fetch_add(&ref_runs, 1);
  return TN_OK;
}

static const tn_graph_functions graphs = {.size = sizeof graphs,
                                          .make = ref_graph_make,
                                          .set = ref_graph_set,
                                          .run = ref_graph_run,
                                          .free = ref_graph_free};

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

static const tn_pair pairs[] = {{&renderer, &compiler, NULL}};

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
                                .host = ref_host,
                                .peer = ref_peer,
                                .load = ref_load,
                                .unload = ref_unload,
                                .program = ref_program_make,
                                .program_free = ref_program_free,
                                .streams = &streams,
                                .graphs = &graphs};
