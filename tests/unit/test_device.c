/* Tests the device layer below queues: the registry of backends and devices, targets and compilers
   by name, compilation and launches of programs, the thread pool, and the in-memory kernel cache
   with compilations by several threads. Every allocation may fail. */
#include "../backend/ref.c"
#include "../backend/sample.h"
#include "base/file.h"
#include "compile/compile_kernels.h"
#include "compile/kernel_cache.h"
#include "device/cpu/cpu_backend.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/queue/command_list.h"
#include "device/queue/queue.h"
#include "device/threads/thread_pool.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "support/counting_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/temporary.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
  diag diag;
  counting_mem counting;
  mem mem;
  registry *registry;
  tn_ir *ir;
} fixture;

static void ok(fixture *f, tn_status status) {
  if (status) fail_msg("%s", f->diag.text);
}

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  f.mem = counting_mem_of(&f.counting);
  ok(&f, registry_open(&f.registry, &(registry_desc){.mem = &f.mem, .threads = 3}, &f.diag));
  ok(&f, registry_add_backend(f.registry, &ref_backend, &f.diag));
  assert_int_equal(tn_ir_open(NULL, &f.ir), TN_OK);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  tn_ir_close(f->ir);
  registry_close(f->registry);
  return f->counting.bytes != 0;
}

static tn_device *device(fixture *f, const char *name) {
  tn_device *v;
  ok(f, registry_open_device(f->registry, name, &v, &f->diag));
  return v;
}

/* The registry. */

static void devices_by_name(void **state) {
  fixture *f = *state;
  assert_ptr_equal(device(f, "CPU"), device(f, "CPU:0"));
  assert_ptr_not_equal(device(f, "CPU"), device(f, "CPU:1"));
  assert_string_equal(device(f, "CPU:1")->name, "CPU:1");
  assert_string_equal(device(f, "REF:1")->backend->name, "REF");
  assert_string_equal(device(f, "NULL")->name, "NULL:0");
}

/** Names differ in case as well; only one that is exact stands for a backend where two do. */
static void case_of_names(void **state) {
  fixture *f = *state;
  assert_ptr_equal(device(f, "cpu"), device(f, "CPU"));
  assert_ptr_equal(device(f, "Ref:1"), device(f, "REF:1"));
  static tn_backend twin;
  twin = ref_backend;
  twin.name = "Ref";
  ok(f, registry_add_backend(f->registry, &twin, &f->diag));
  assert_ptr_equal(device(f, "Ref")->backend, &twin);
  assert_ptr_equal(device(f, "REF")->backend, &ref_backend);
  tn_device *v;
  assert_int_equal(registry_open_device(f->registry, "ref", &v, &f->diag), TN_ERR_DEVICE);
  assert_non_null(strstr(f->diag.text, "unknown device \"ref\"; expected one of "));
}

static void names_that_are_none(void **state) {
  fixture *f = *state;
  static const char *const names[] = {"", "GPU", "CP", "CPUS:1", "GPU:x", ":0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tn_device *v;
    assert_int_equal(registry_open_device(f->registry, names[i], &v, &f->diag), TN_ERR_DEVICE);
    assert_null(v);
    assert_non_null(strstr(
        f->diag.text,
        "expected one of CPU, NULL, OPENCL, CUDA, REF, optionally with a number, as in CPU:1"));
  }
  static const char *const numbers[] = {"", "x", "-1", "1x", "99999", "1:1", " 1"};
  tn_device *v;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char name[16], expected[80];
    snprintf(name, sizeof name, "CPU:%s", numbers[i]);
    snprintf(expected, sizeof expected, "device \"%s\": \"%s\" is no number from 0 to 9999", name,
             numbers[i]);
    assert_int_equal(registry_open_device(f->registry, name, &v, &f->diag), TN_ERR_DEVICE);
    assert_null(v);
    assert_string_equal(f->diag.text, expected);
  }
  char long_name[5001];
  memset(long_name, 'x', 5000);
  long_name[5000] = 0;
  assert_int_equal(registry_open_device(f->registry, long_name, &v, &f->diag), TN_ERR_DEVICE);
  assert_non_null(strstr(f->diag.text, "xxx…\"; expected one of CPU, "));
  assert_in_range(strlen(f->diag.text), 64, 250);
  assert_int_equal(registry_open_device(f->registry, "G\nP", &v, &f->diag), TN_ERR_DEVICE);
  assert_non_null(strstr(f->diag.text, "unknown device \"G\\nP\"; "));
  assert_int_equal(registry_open_device(f->registry, "CPU:\n\x01", &v, &f->diag), TN_ERR_DEVICE);
  assert_string_equal(f->diag.text,
                      "device \"CPU:\\n\\x01\": \"\\n\\x01\" is no number from 0 to 9999");
  assert_int_equal(registry_open_device(f->registry, "REF:7", &v, &f->diag), TN_ERR_DEVICE);
  assert_string_equal(f->diag.text, "device REF:7: there are REF:0 to REF:3");
  assert_int_equal(registry_open_device(f->registry, "CPU:16", &v, &f->diag), TN_ERR_DEVICE);
}

/** Facts of the i-th device, those of makers' drivers left out: there may be any number. */
static device_description *facts(fixture *f, size_t i, const char *compiler) {
  device_id place;
  device_description *k;
  for (size_t at = 0, n = 0; n <= i; at++) {
    assert_true(registry_device_at(f->registry, at, &place));
    n += strcmp(place.backend->name, "OPENCL") != 0 && strcmp(place.backend->name, "CUDA") != 0;
  }
  ok(f, registry_probe(f->registry, &place, compiler, &k, &f->diag));
  return k;
}

static tn_status broken_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  (void)index, (void)about, (void)bytes;
  return tn_fail(f, TN_ERR_DEVICE, "the driver is missing");
}

static void devices_are_listed(void **state) {
  fixture *f = *state;
  static tn_backend gone;
  gone = ref_backend;
  gone.name = "GONE";
  gone.probe = broken_probe;
  gone.count = NULL;
  ok(f, registry_add_backend(f->registry, &gone, &f->diag));
  static const char *const names[] = {"CPU:0", "NULL:0", "REF:0", "REF:1", "GONE:0"};
  device_id place;
  for (size_t i = 0; i < 5; i++) {
    device_description *k = facts(f, i, NULL);
    assert_string_equal(k->name, names[i]);
    if (i == 4) assert_string_equal(k->absent, "the driver is missing");
    if (i == 4) assert_string_equal(k->pairs, "");
    registry_free_description(f->registry, k);
  }
  device_description *none = facts(f, 0, "no-such-compiler"), *cpu = facts(f, 0, NULL);
  assert_string_equal(none->pairs, "");
  assert_non_null(strstr(none->absent, "\"no-such-compiler\""));
  assert_null(cpu->absent);
  assert_string_equal(cpu->pairs, "c/cc");
  assert_true(cpu->bytes > 0);
  assert_non_null(strchr(cpu->about, ','));
  registry_free_description(f->registry, none);
  registry_free_description(f->registry, cpu);
  size_t n = 5;
  while (registry_device_at(f->registry, n, &place)) n++;
  assert_true(n > 5); /* OPENCL:0 is listed even if it is absent */
}

static tn_status never_present(void *device, const char *compiler, tn_failure *f) {
  (void)device, (void)compiler;
  return tn_fail(f, TN_ERR_DEVICE, "the library libmissing.so\nis not found");
}

static tn_status never_opened(void *device, const tn_host *host, const char *name, void **compiler,
                              tn_failure *f) {
  (void)device, (void)host, (void)name, (void)compiler;
  return tn_fail(f, TN_ERR_INTERNAL, "an absent compiler is opened");
}

/** The first pair that is present is the default; absent ones are told, and loaded by nobody. */
static void absent_pairs_are_passed_over(void **state) {
  fixture *f = *state;
  static tn_compiler absent;
  static tn_pair two[2];
  static tn_backend b;
  absent = *ref_backend.pairs[0].compiler;
  absent.name = "gone";
  absent.open = never_opened;
  two[0] = (tn_pair){ref_backend.pairs[0].renderer, &absent, never_present};
  two[1] = ref_backend.pairs[0];
  b = ref_backend, b.name = "PAIRS", b.pairs = two, b.n_pairs = 2;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  tn_device *v = device(f, "PAIRS");
  const device_target *t;
  ok(f, device_target_find(v, NULL, &t, &f->diag));
  assert_string_equal(t->compiler->name, "ref");
  ok(f, device_target_find(v, &(device_target_desc){.pair = "ir/gone"}, &t, &f->diag));
  assert_string_equal(t->compiler->name, "gone"); /* as asked for, whatever becomes of it */
  device_description *k = facts(f, 4, NULL);
  assert_string_equal(k->name, "PAIRS:0");
  assert_null(k->absent);
  assert_string_equal(k->pairs, "ir/ref");
  assert_string_equal(k->absent_pairs, "ir/gone: the library libmissing.so is not found");
  registry_free_description(f->registry, k);
  two[1] = two[0];
  ok(f, device_target_find(device(f, "PAIRS:1"), NULL, &t, &f->diag));
  assert_string_equal(t->compiler->name, "gone"); /* which tells why when it compiles */
  k = facts(f, 5, NULL);
  assert_string_equal(k->absent, "the library libmissing.so\nis not found");
  registry_free_description(f->registry, k);
}

/** A shell script as a C compiler: it records that it was started, and answers --version once it is
    released. */
typedef struct slow_compiler {
  arena arena;
  char *folder, *script, *started, *go;
  fixture *f;
  device_description *facts;
} slow_compiler;

static void open_slow(slow_compiler *s, fixture *f) {
  *s = (slow_compiler){.f = f};
  arena *a = &s->arena;
  arena_init(a, &mem_system, &f->diag);
  s->folder = temporary_folder(a);
  assert_non_null(s->folder);
  s->script = arena_printf(a, "%s/cc", s->folder);
  s->started = arena_printf(a, "%s/started", s->folder);
  s->go = arena_printf(a, "%s/go", s->folder);
  char *text = arena_printf(a,
                            "#!/bin/sh\ntouch %s\nwhile [ ! -e %s ]; do sleep 0.02; done\n"
                            "echo 'gcc 1 (fake)'\n",
                            s->started, s->go);
  ok(f, file_write(s->script, text, strlen(text), &f->diag));
  assert_int_equal(chmod(s->script, 0700), 0);
}

static void close_slow(slow_compiler *s) {
  const char *const files[] = {s->script, s->started, s->go};
  for (size_t i = 0; i < 3; i++) unlink(files[i]);
  rmdir(s->folder);
  arena_free(&s->arena);
}

static void *ask_slowly(void *arg) {
  slow_compiler *s = arg;
  device_id place;
  diag d = {0};
  if (registry_device_at(s->f->registry, 0, &place))
    registry_probe(s->f->registry, &place, s->script, &s->facts, &d);
  return NULL;
}

/** A slow compiler blocks only the threads that need it. */
static void nobody_else_waits_for_a_compiler(void **state) {
  fixture *f = *state;
  slow_compiler s;
  pthread_t t;
  const device_target *target;
  open_slow(&s, f);
  assert_int_equal(pthread_create(&t, NULL, ask_slowly, &s), 0);
  while (access(s.started, F_OK)) sched_yield();
  ok(f, device_target_find(device(f, "CPU"), NULL, &target, &f->diag));
  ok(f, file_write(s.go, "", 0, &f->diag)); /* before its time limit */
  pthread_join(t, NULL);
  assert_non_null(s.facts);
  assert_null(s.facts->absent);
  registry_free_description(f->registry, s.facts);
  close_slow(&s);
}

static void backends_must_be_complete(void **state) {
  fixture *f = *state;
  tn_backend b = ref_backend;
  ok(f, registry_add_backend(f->registry, &ref_backend, &f->diag)); /* added a second time */
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend REF is already registered");
  b.alloc = NULL; /* a name that is taken is told first */
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend REF is already registered");
  assert_int_equal(registry_add_backend(f->registry, NULL, &f->diag), TN_ERR_ARGUMENT);
  b = ref_backend, b.name = "A:B";
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  b.name = "HALF";
  b.host = NULL;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend HALF: alloc, free or host is missing");
  b = ref_backend, b.name = "HALF", b.streams = NULL;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  b = ref_backend, b.name = "HALF", b.size--;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend HALF: field size is that of another version");
  b = (tn_backend){0};
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend ?: field size is 0, and must be sizeof(tn_backend)");
  tn_stream_functions q = *ref_backend.streams;
  q.mark_free = NULL;
  b = ref_backend, b.name = "HALF", b.streams = &q;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend HALF: the stream functions are incomplete");
  tn_graph_functions g = *ref_backend.graphs;
  g.set = NULL;
  b = ref_backend, b.name = "HALF", b.graphs = &g;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend HALF: the graph functions are incomplete");
  b = ref_backend, b.name = "HALF", b.streams = NULL, b.execute = cpu_backend.execute;
  assert_int_equal(registry_add_backend(f->registry, &b, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "backend HALF: there are graphs without streams");
}

/* Capabilities. */

static tn_capabilities stated; /* by `state_capabilities` */

static tn_status state_capabilities(void *v, const char *limit, tn_capabilities *caps,
                                    tn_failure *f) {
  (void)v, (void)limit, (void)f;
  *caps = stated;
  return TN_OK;
}

/** The members of capabilities that are checked. */
typedef struct stated_case {
  const char *target;
  uint64_t dtypes;
  uint32_t vector_bytes, registers, max_buffers, max_lanes, copy_bytes, team_workers;
  uint64_t group_bytes;
  const char *expected; /* NULL: nothing is wrong */
} stated_case;

static void capabilities_are_checked(void **state) {
  fixture *f = *state;
  static const stated_case cases[] = {
      {"t", 1, 0, 0, 0, 0, 0, 0, 0, NULL},
      {"t", 1, 32768, 65535, 65535, 65535, 65535, 8, 1, NULL},
      {"", 1, 0, 0, 0, 0, 0, 0, 0, "renderer odd gives its target no name"},
      {"t", 0, 0, 0, 0, 0, 0, 0, 0,
       "renderer odd states dtypes as 0; it must have the bit of at least one type"},
      {"t", 1, 24, 0, 0, 0, 0, 0, 0,
       "renderer odd states vector_bytes as 24; it must be a power of 2, or 0"},
      {"t", 1, 65536, 0, 0, 0, 0, 0, 0,
       "renderer odd states vector_bytes as 65536; it may be at most 65535"},
      {"t", 1, 0, 65536, 0, 0, 0, 0, 0,
       "renderer odd states registers as 65536; it may be at most 65535"},
      {"t", 1, 0, 0, 65536, 0, 0, 0, 0,
       "renderer odd states max_buffers as 65536; it may be at most 65535"},
      {"t", 1, 0, 0, 0, 65536, 0, 0, 0,
       "renderer odd states max_lanes as 65536; it may be at most 65535"},
      {"t", 1, 0, 0, 0, 0, 65536, 0, 0,
       "renderer odd states copy_bytes as 65536; it may be at most 65535"},
      {"t", 1, 0, 0, 0, 0, 0, 8, 0,
       "renderer odd states group_bytes as 0; it must be positive where team_workers is"},
  };
  static tn_renderer renderer;
  static tn_pair pair;
  static tn_backend b;
  renderer = *ref_backend.pairs[0].renderer;
  renderer.name = "odd";
  renderer.describe = state_capabilities;
  pair = (tn_pair){&renderer, ref_backend.pairs[0].compiler, NULL};
  b = ref_backend;
  b.name = "ODD";
  b.pairs = &pair;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const stated_case *k = &cases[i];
    char limit[16]; /* a target of its own */
    const device_target *t;
    stated = (tn_capabilities){.size = sizeof stated,
                               .dtypes = k->dtypes,
                               .vector_bytes = k->vector_bytes,
                               .registers = k->registers,
                               .max_buffers = k->max_buffers,
                               .max_lanes = k->max_lanes,
                               .copy_bytes = k->copy_bytes,
                               .team_workers = k->team_workers,
                               .group_bytes = k->group_bytes};
    snprintf(stated.target, sizeof stated.target, "%s", k->target);
    snprintf(limit, sizeof limit, "%zu", i);
    tn_status status =
        device_target_find(device(f, "ODD"), &(device_target_desc){.limit = limit}, &t, &f->diag);
    assert_int_equal(status, k->expected ? TN_ERR_DEVICE : TN_OK);
    if (k->expected) assert_string_equal(f->diag.text, k->expected);
  }
}

static void *open_global(void *arg) {
  diag d = {0};
  if (registry_global(arg, &d)) abort();
  return NULL;
}

static void one_table_for_the_process(void **state) {
  (void)state;
  registry *seen[8];
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, open_global, &seen[i]);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < 8; i++) assert_ptr_equal(seen[i], seen[0]);
  assert_int_equal(thread_pool_size(registry_thread_pool(seen[0])), thread_pool_physical_cores());
}

/* The pool. */

enum { MOST_TASKS = 1000 };

typedef struct tasks {
  thread_pool *pool;
  atomic_int runs[MOST_TASKS];
  size_t inner;
} tasks;

static void count_task(void *arg, size_t i) { atomic_fetch_add(&((tasks *)arg)->runs[i], 1); }

static void outer_task(void *arg, size_t i) {
  tasks *t = arg, inside = {0};
  thread_pool_run(t->pool, count_task, &inside, t->inner);
  for (size_t k = 0; k < t->inner; k++)
    if (inside.runs[k] != 1) abort();
  atomic_fetch_add(&t->runs[i], 1);
}

static void each_task_runs_once(void **state) {
  fixture *f = *state;
  thread_pool *p = registry_thread_pool(f->registry);
  static const size_t counts[] = {0, 1, 2, 3, 7, 255, 256, 257, 1000};
  assert_int_equal(thread_pool_size(p), 3);
  for (int again = 0; again < 200; again++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      tasks t = {0};
      thread_pool_run(p, count_task, &t, counts[c]);
      for (size_t i = 0; i < MOST_TASKS; i++) assert_int_equal(t.runs[i], i < counts[c]);
    }
}

static void *run_some(void *arg) {
  for (int i = 0; i < 300; i++) {
    tasks t = {.pool = arg, .inner = 5};
    thread_pool_run(arg, outer_task, &t, 4);
    for (int k = 0; k < 4; k++)
      if (t.runs[k] != 1) abort();
  }
  return NULL;
}

static void many_callers_share_the_pool(void **state) {
  fixture *f = *state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, run_some, registry_thread_pool(f->registry));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

typedef struct own_workers {
  int calls;
} own_workers;

static void run_backwards(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  ((own_workers *)user)->calls++;
  while (n--) task(arg, n);
}

static void callers_bring_their_threads(void **state) {
  (void)state;
  own_workers own = {0};
  tn_workers w = {run_backwards, &own, NULL};
  thread_pool *p = thread_pool_open(&mem_system, 4, &w);
  tasks t = {0};
  thread_pool_run(p, count_task, &t, 10);
  assert_int_equal(own.calls, 1);
  for (int i = 0; i < 10; i++) assert_int_equal(t.runs[i], 1);
  thread_pool_close(p);
  thread_pool_close(NULL);
  p = thread_pool_open(&mem_system, INT32_MAX, NULL);
  assert_int_equal(thread_pool_size(p), THREAD_POOL_MAX);
  thread_pool_close(p);
}

typedef struct long_work {
  thread_pool *pool;
  atomic_int begun, ended;
} long_work;

static void wait_for_end(void *arg, size_t i) {
  long_work *k = arg;
  atomic_store(&k->begun, 1);
  while (!i && !atomic_load(&k->ended)) sched_yield();
}

static void *work_long(void *arg) {
  thread_pool_run_long(((long_work *)arg)->pool, wait_for_end, arg, 2);
  return NULL;
}

/** Work on the pool does not wait for caller threads that compile. */
static void long_work_holds_up_no_other(void **state) {
  (void)state;
  own_workers own = {0};
  tn_workers w = {run_backwards, &own, NULL};
  thread_pool *p = thread_pool_open(&mem_system, 4, &w);
  long_work k = {.pool = p};
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, work_long, &k), 0);
  while (!atomic_load(&k.begun)) sched_yield();
  tasks done = {0};
  thread_pool_run(p, count_task, &done, 10);
  for (int i = 0; i < 10; i++) assert_int_equal(done.runs[i], 1);
  atomic_store(&k.ended, 1);
  pthread_join(t, NULL);
  assert_int_equal(own.calls, 1);
  thread_pool_run(p, count_task, &done, 10);
  assert_int_equal(own.calls, 2);
  thread_pool_close(p);
}

static void check_signals(void *arg, size_t i) {
  (void)i;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  bool caller = pthread_equal(pthread_self(), *(pthread_t *)arg);
  if (!caller && (!sigismember(&mask, SIGINT) || sigismember(&mask, SIGSEGV))) abort();
}

/** Pool threads block all signals; starting them leaves the caller's mask unchanged. */
static void the_pool_takes_no_signals(void **state) {
  fixture *f = *state;
  pthread_t self = pthread_self();
  sigset_t mask;
  for (int i = 0; i < 100; i++)
    thread_pool_run(registry_thread_pool(f->registry), check_signals, &self, 64);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert_false(sigismember(&mask, SIGINT));
}

/* Targets. */

static void targets(void **state) {
  fixture *f = *state;
  tn_device *cpu = device(f, "CPU");
  const device_target *t, *again, *least;
  ok(f, device_target_find(cpu, NULL, &t, &f->diag));
  ok(f, device_target_find(cpu, &(device_target_desc){.pair = "c/cc"}, &again, &f->diag));
  assert_ptr_equal(t, again);
  assert_true(t->target.threads && t->target.vector_bytes >= 16);
  assert_true(rule_target_lacks_op(&t->target.rules, OP_EXP) &&
              !rule_target_lacks_op(&t->target.rules, OP_ADD));
  assert_false(t->target.rules.f16);
  assert_true(t->target.scratch > 0 && t->caps.scratch_buffer);
  ok(f, device_target_find(device(f, "REF"), NULL, &again, &f->diag));
  assert_true(rule_target_lacks_op(&again->target.rules, OP_MAX) && again->target.rules.f16);
  assert_int_equal(again->target.arguments, 6);
  assert_ptr_equal(again->renderer->decompose, ref_decompose);
#ifdef __x86_64__
  ok(f, device_target_find(cpu, &(device_target_desc){.limit = "x86-64"}, &least, &f->diag));
  assert_ptr_not_equal(t, least);
  assert_int_equal(least->target.vector_bytes, 16);
  assert_string_equal(least->caps.target, "x86-64");
  assert_false(least->target.rules.f16_casts);
  assert_true(t->target.rules.f16_casts == (t->target.vector_bytes >= 32));
  assert_true(rule_target_lacks_op(&least->target.rules, OP_FMA));
#endif
  device_target_desc wrong = {.pair = "c/gcc"};
  assert_int_equal(device_target_find(cpu, &wrong, &least, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "device CPU:0 has no renderer/compiler pair "
                                    "\"c/gcc\"; available: c/cc, llvm/llvm");
  assert_null(least);
  wrong = (device_target_desc){.limit = "pentium"};
  assert_int_equal(device_target_find(cpu, &wrong, &least, &f->diag), TN_ERR_ARGUMENT);
  assert_non_null(strstr(f->diag.text, "unknown processor level \"pentium\"; expected one of "));
}

/* Compiling and running. */

static tn_program *compile(fixture *f, const char *name, const char *kernel, int scale) {
  tn_node node = sample_program(f->ir, "CPU", kernel, scale);
  if (!node) fail_msg("%s", tn_ir_message(f->ir));
  tn_program *p;
  tn_failure why = {TN_OK, ""};
  if (tn_program_compile(device(f, name), f->ir, &node, 1, &p, &why)) fail_msg("%s", why.text);
  return p;
}

/** The ir still tells of its last failure. */
static void compiling_keeps_failures(void **state) {
  fixture *f = *state;
  assert_null(tn_ir_parse(f->ir, "return", 6));
  tn_status status = tn_ir_status(f->ir);
  char *message = strdup(tn_ir_message(f->ir));
  assert_int_not_equal(status, TN_OK);
  tn_program_free(compile(f, "CPU", "k", 2));
  assert_int_equal(tn_ir_status(f->ir), status);
  assert_string_equal(tn_ir_message(f->ir), message);
  free(message);
}

typedef struct run {
  tn_buffer *buffers[SAMPLE_BUFFERS];
  sample_launch launch;
} run;

static void run_open(fixture *f, run *r, const char *name, int64_t n, int64_t workers) {
  for (int i = 0; i < SAMPLE_BUFFERS; i++) {
    tn_span s;
    float in[SAMPLE_MOST];
    for (int k = 0; k < SAMPLE_MOST; k++) in[k] = (float)(i * k % 1000);
    ok(f, buffer_open(device(f, name), sizeof in, &r->buffers[i], &f->diag));
    ok(f, buffer_span(r->buffers[i], &s, &f->diag));
    ok(f, span_write(&s, DT_F32, DT_F32, in, SAMPLE_MOST, &f->diag));
  }
  sample_set(&r->launch, r->buffers, n, workers);
}

static void run_close(run *r) {
  for (int i = 0; i < SAMPLE_BUFFERS; i++) buffer_release(r->buffers[i]);
}

static void check_result(fixture *f, run *r, int64_t n, int scale) {
  float out[SAMPLE_MOST];
  ok(f, span_read(&r->launch.spans[0], DT_F32, DT_F32, out, SAMPLE_MOST, &f->diag));
  for (int k = 0; k < SAMPLE_MOST; k++) {
    float expected = k < n ? (float)(k % 1000 * scale + 2 * k % 1000) : 0;
    if (out[k] != expected) fail_msg("element %d is %g, not %g", k, out[k], expected);
  }
}

static void runs_on(fixture *f, const char *name, int64_t n, int64_t workers) {
  tn_program *p = compile(f, name, "scaled add", 3);
  assert_string_equal(tn_program_name(p), "scaled add");
  run r;
  tn_failure why = {TN_OK, ""};
  run_open(f, &r, name, n, workers);
  if (tn_program_execute(p, &r.launch.launch, &why)) fail_msg("%s", why.text);
  check_result(f, &r, n, 3);
  run_close(&r);
  program_release(p);
}

static void programs_run(void **state) {
  fixture *f = *state;
  static const int64_t workers[] = {1, 2, 3, 7, 300};
  for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
    runs_on(f, "CPU", 50001, workers[i]);
    runs_on(f, "REF:1", 501, workers[i]);
  }
  runs_on(f, "CPU:1", 0, 2);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).compiled, 2);
}

/** Buffers of another device are refused, even of the same backend or of the same name in another
    registry. */
static void buffers_are_of_the_programs_device(void **state) {
  fixture *f = *state;
  fixture other = {.ir = f->ir};
  ok(f, registry_open(&other.registry, &(registry_desc){.threads = 1}, &f->diag));
  tn_program *p = compile(f, "CPU", "k", 3), *p1 = compile(f, "CPU:1", "k", 3);
  run here, beside, elsewhere;
  tn_failure why = {TN_OK, ""};
  run_open(f, &here, "CPU", 10, 2);
  run_open(f, &beside, "CPU:1", 10, 2);
  run_open(&other, &elsewhere, "CPU", 10, 2);
  assert_int_equal(program_execute(p, &beside.launch.launch, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k runs on CPU:0, but buffer 0 is on CPU:1");
  assert_int_equal(program_execute(p1, &here.launch.launch, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k runs on CPU:1, but buffer 0 is on CPU:0");
  assert_int_equal(program_execute(p, &elsewhere.launch.launch, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text,
                      "kernel k runs on CPU:0, but buffer 0 is on another registry's CPU:0");
  assert_int_equal(program_execute(p, &here.launch.launch, &why), TN_OK);
  run_close(&here);
  run_close(&beside);
  run_close(&elsewhere);
  program_release(p);
  program_release(p1);
  registry_close(other.registry);
}

static void launches_are_checked(void **state) {
  fixture *f = *state;
  tn_program *p = compile(f, "CPU", "k", 3), *q = compile(f, "REF", "k", 3);
  run r, foreign;
  tn_failure why = {TN_OK, ""};
  run_open(f, &r, "CPU", 10, 2);
  run_open(f, &foreign, "REF", 10, 2);
  tn_launch l = r.launch.launch;
  l.n_buffers--;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k expects 3 buffers, got 2");
  l = r.launch.launch, l.n_values++;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k expects 3 values, got 4");
  l = r.launch.launch, l.buffers = NULL;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k: the list of buffers is NULL");
  l = r.launch.launch, l.values = NULL;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k: the list of values is NULL");
  l = r.launch.launch;
  r.launch.values[SAMPLE_COUNT] = 0;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel k: variable core_count is 0, not between 1 and 4096");
  r.launch.values[SAMPLE_COUNT] = 2;
  assert_int_equal(program_execute(p, &foreign.launch.launch, &why), TN_ERR_ARGUMENT);
  assert_int_equal(program_execute(q, &r.launch.launch, &why), TN_ERR_ARGUMENT);
  l = r.launch.launch;
  tn_span nowhere[SAMPLE_BUFFERS] = {{0}};
  l.buffers = nowhere;
  assert_int_equal(program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  run_close(&r);
  run_close(&foreign);
  program_release(p);
  program_release(q);
}

/* Launch indices: out[i] = i·i for i below n, rounded down to whole groups. */

#define INDEXED(ids, index)                                         \
  "%n = var i64 [min=1 max=64] \"n\"\n"                             \
  "%four = const i64 4\n"                                           \
  "%out = param i64 64 [slot=0]\n" ids index "%x = mul i64 %i %i\n" \
  "%put = store void %out %i %x\n"

static const char grouped[] =
    INDEXED("%groups = cdiv i64 %n %four\n"
            "%g = special i64 %groups \"g0\"\n"
            "%l = special i64 %four \"l0\"\n"
            "%a = mul i64 %g %four\n",
            "%i = add i64 %a %l\n") "%lin = linear void %groups %g %l %a %i %x %put\n"
                                    "%k = sink void %put \"squares\"\n"
                                    "%d = device void \"REF\"\n"
                                    "%p = program void %k %d %lin\n"
                                    "return %p\n";

static const char direct[] =
    INDEXED("", "%i = special i64 %n \"i0\"\n") "%lin = linear void %i %x %put\n"
                                                "%k = sink void %put \"squares\"\n"
                                                "%d = device void \"REF\"\n"
                                                "%p = program void %k %d %lin\n"
                                                "return %p\n";

static tn_node parse(fixture *f, const char *text) {
  tn_node n = tn_ir_parse(f->ir, text, strlen(text));
  if (!n) fail_msg("%s", tn_ir_message(f->ir));
  return n;
}

/** Sizes of the last launch. */
static int64_t seen_global[3], seen_local[3];

static tn_status spy_enqueue(void *stream, const tn_work works[], size_t n, tn_failure *f) {
  for (size_t i = 0; i < n; i++) {
    if (works[i].kind != TN_WORK_EXEC) continue;
    memcpy(seen_global, works[i].global, sizeof seen_global);
    memcpy(seen_local, works[i].local, sizeof seen_local);
  }
  return ref_enqueue(stream, works, n, f);
}

static void check_squares(fixture *f, tn_program *p, tn_buffer *b, int64_t n, int64_t expected) {
  tn_span s;
  int64_t out[64] = {0};
  tn_failure why = {TN_OK, ""};
  ok(f, buffer_span(b, &s, &f->diag));
  ok(f, span_write(&s, DT_I64, DT_I64, out, 64, &f->diag));
  tn_launch l = {.buffers = &s, .n_buffers = 1, .values = &n, .n_values = 1};
  if (program_execute(p, &l, &why)) fail_msg("%s", why.text);
  ok(f, span_read(&s, DT_I64, DT_I64, out, 64, &f->diag));
  for (int64_t i = 0; i < 64; i++) assert_int_equal(out[i], i < expected ? i * i : 0);
}

static void launch_indices_are_sized(void **state) {
  fixture *f = *state;
  static tn_backend spy;
  spy = ref_backend;
  spy.name = "SPY";
  static tn_stream_functions spy_streams;
  spy_streams = streams;
  spy_streams.enqueue = spy_enqueue;
  spy.streams = &spy_streams;
  ok(f, registry_add_backend(f->registry, &spy, &f->diag));
  tn_node nodes[] = {parse(f, grouped), parse(f, direct)};
  tn_program *p[2];
  tn_buffer *b;
  tn_failure why = {TN_OK, ""};
  tn_device *v = device(f, "SPY");
  if (tn_program_compile(v, f->ir, nodes, 2, p, &why)) fail_msg("%s", why.text);
  ok(f, buffer_open(v, 64 * sizeof(int64_t), &b, &f->diag));
  check_squares(f, p[0], b, 17, 16);
  assert_memory_equal(seen_global, ((int64_t[]){4, 1, 1}), sizeof seen_global);
  assert_memory_equal(seen_local, ((int64_t[]){4, 1, 1}), sizeof seen_local);
  check_squares(f, p[0], b, 64, 64);
  assert_int_equal(seen_global[0], 16);
  check_squares(f, p[1], b, 17, 17);
  assert_memory_equal(seen_global, ((int64_t[]){17, 1, 1}), sizeof seen_global);
  assert_memory_equal(seen_local, ((int64_t[]){0, 0, 0}), sizeof seen_local);
  tn_span s;
  ok(f, buffer_span(b, &s, &f->diag));
  tn_launch l = {.buffers = &s, .n_buffers = 1, .values = (int64_t[]){3}, .n_values = 1};
  assert_int_equal(program_execute(p[0], &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel squares: global size 0 is 0, expected a positive number");
  l.values = (int64_t[]){65};
  assert_int_equal(program_execute(p[1], &l, &why), TN_ERR_ARGUMENT);
  assert_string_equal(why.text, "kernel squares: variable n is 65, not between 1 and 64");
  buffer_release(b);
  program_release(p[0]);
  program_release(p[1]);
}

/* Scratch arrays: each worker counts up in its own and outputs it from the end. */
static const char counted[] = "%%count = var i64 [min=1 max=8] \"core_count\"\n"
                              "%%out = param i64 128 [slot=0]\n"
                              "%%one = const i64 1\n"
                              "%%most = const i64 %lld\n"
                              "%%ten = const i64 10\n"
                              "%%nine = const i64 9\n"
                              "%%id = special i64 %%count \"core_id\"\n"
                              "%%s = alloc i64 %%most [id=5 space=1]\n"
                              "%%i = range i64 %%ten [id=0 kind=loop axis=0 tail=0]\n"
                              "%%x = add i64 %%i %%id\n"
                              "%%put = store void %%s %%i %%x\n"
                              "%%end = end void %%i %%put\n"
                              "%%full = after i64 %%s %%end\n"
                              "%%k = range i64 %%ten [id=1 kind=loop axis=0 tail=0]\n"
                              "%%at = sub i64 %%nine %%k\n"
                              "%%y = load i64 %%full %%at\n"
                              "%%first = mul i64 %%id %%ten\n"
                              "%%to = add i64 %%first %%k\n"
                              "%%give = store void %%out %%to %%y\n"
                              "%%done = end void %%k %%give\n"
                              "%%l = linear void %%id %%s %%first %%i %%x %%put %%end %%k %%at "
                              "%%y %%to %%give %%done\n"
                              "%%sink = sink void %%done \"counting\"\n"
                              "%%d = device void \"%s\"\n"
                              "%%program = program void %%sink %%d %%l\n"
                              "return %%program\n";

static tn_status compile_counting(fixture *f, const char *name, int64_t most, tn_program **p,
                                  tn_failure *why) {
  char text[sizeof counted + 64];
  snprintf(text, sizeof text, counted, (long long)most, name);
  tn_node node = parse(f, text);
  return tn_program_compile(device(f, name), f->ir, &node, 1, p, why);
}

static tn_buffer *new_buffer(fixture *f, const char *name, uint64_t bytes, tn_span *s) {
  tn_buffer *b;
  ok(f, buffer_open(device(f, name), bytes, &b, &f->diag));
  ok(f, buffer_span(b, s, &f->diag));
  return b;
}

static void workers_count(fixture *f, const char *name, bool brings_memory) {
  tn_program *p;
  tn_span s[2];
  tn_failure why = {TN_OK, ""};
  int64_t out[128], values[2] = {4, 0};
  if (compile_counting(f, name, 10, &p, &why)) fail_msg("%s", why.text);
  assert_int_equal(tn_program_scratch(p) >= 80, brings_memory);
  tn_buffer *b = new_buffer(f, name, sizeof out, &s[0]);
  tn_buffer *own = new_buffer(f, name, 4 * tn_program_scratch(p) + 1, &s[1]);
  tn_launch l = {.buffers = s, .n_buffers = 1 + brings_memory, .values = values, .n_values = 2};
  if (tn_program_execute(p, &l, &why)) fail_msg("%s", why.text);
  ok(f, span_read(&s[0], DT_I64, DT_I64, out, 128, &f->diag));
  for (int i = 0; i < 40; i++) assert_int_equal(out[i], 9 - i % 10 + i / 10);
  values[0] = 5;
  assert_int_equal(tn_program_execute(p, &l, &why), brings_memory ? TN_ERR_ARGUMENT : TN_OK);
  l.n_buffers = 2 - brings_memory;
  assert_int_equal(tn_program_execute(p, &l, &why), TN_ERR_ARGUMENT);
  buffer_release(own);
  buffer_release(b);
  program_release(p);
}

static void arrays_of_a_kernel(void **state) {
  fixture *f = *state;
  tn_program *p;
  tn_failure why = {TN_OK, ""};
  workers_count(f, "CPU", true);
  workers_count(f, "REF", false);
  assert_int_equal(compile_counting(f, "CPU", 1 << 20, &p, &why), TN_ERR_UNSUPPORTED);
  assert_string_equal(why.text,
                      "counting: the scratch arrays of the kernel need 8388608 bytes; this "
                      "device allows 1048576");
}

static void launch_indices_that_a_device_lacks(void **state) {
  fixture *f = *state;
  const char *const texts[] = {grouped, direct};
  const char *const messages[] = {"squares: there is no launch index g0",
                                  "squares: there is no launch index i0"};
  for (int i = 0; i < 2; i++) {
    tn_node node = parse(f, texts[i]);
    tn_program *p;
    tn_failure why = {TN_OK, ""};
    assert_int_equal(tn_program_compile(device(f, "CPU"), f->ir, &node, 1, &p, &why),
                     TN_ERR_UNSUPPORTED);
    assert_string_equal(why.text, messages[i]);
  }
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).kernels, 0);
}

/* The kernel cache. */

static void equal_kernels_are_one(void **state) {
  fixture *f = *state;
  tn_program *a = compile(f, "CPU", "first", 3), *b = compile(f, "CPU", "second", 3);
  tn_program *c = compile(f, "CPU", "first", 4), *d = compile(f, "CPU:1", "first", 3);
  assert_ptr_equal(a, b);
  assert_ptr_not_equal(a, c);
  assert_ptr_not_equal(a, d);
  kernel_cache_stats n = kernel_cache_get_stats(kernel_cache_of(f->registry));
  assert_int_equal(n.compiled, 2);
  assert_int_equal(n.found, 2);
  assert_int_equal(n.kernels, 2);
  tn_program *programs[] = {a, b, c, d};
  for (int i = 0; i < 4; i++) program_release(programs[i]);
}

static void levels_are_kept_apart(void **state) {
  fixture *f = *state;
  const device_target *t;
  tn_program *p;
  tn_node node = sample_program(f->ir, "CPU", "k", 3);
  static const char *const limits[] = {NULL, "x86-64"};
  tn_device *cpu = device(f, "CPU");
#ifdef __x86_64__
  for (int i = 0; i < 2; i++) {
    ok(f, device_target_find(cpu, &(device_target_desc){.limit = limits[i]}, &t, &f->diag));
    ok(f, compile_kernels(&(compile_options){.target = t}, f->ir, &node, 1, &p, &f->diag));
    program_release(p);
  }
  ok(f, device_target_find(cpu, NULL, &t, &f->diag));
  bool differ = strcmp(t->caps.target, "x86-64") != 0;
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).compiled, 1 + differ);
#else
  (void)limits, (void)cpu, (void)t, (void)p, (void)node;
#endif
}

static void many_in_one_call(void **state) {
  fixture *f = *state;
  enum { N = 8 };
  static const char *const names[] = {"CPU", "REF"};
  for (int d = 0; d < 2; d++) {
    tn_node nodes[N];
    tn_program *p[N];
    tn_failure why = {TN_OK, ""};
    for (int i = 0; i < N; i++) nodes[i] = sample_program(f->ir, "CPU", "k", i % 7);
    if (tn_program_compile(device(f, names[d]), f->ir, nodes, N, p, &why)) fail_msg("%s", why.text);
    assert_ptr_equal(p[0], p[7]);
    for (int i = 0; i < N; i++) {
      run r;
      run_open(f, &r, names[d], 100, 2);
      if (program_execute(p[i], &r.launch.launch, &why)) fail_msg("%s", why.text);
      check_result(f, &r, 100, i % 7);
      run_close(&r);
      program_release(p[i]);
    }
  }
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).compiled, 14);
}

typedef struct racer {
  fixture *f;
  tn_program *program;
  int scale;
} racer;

static void *race(void *arg) {
  racer *r = arg;
  tn_ir *ir;
  if (tn_ir_open(NULL, &ir)) abort();
  tn_device *v;
  diag d = {0};
  if (registry_open_device(r->f->registry, "CPU", &v, &d)) abort();
  tn_node nodes[2];
  tn_program *p[2];
  for (int i = 0; i < 2; i++) nodes[i] = sample_program(ir, "CPU", "k", (r->scale + i) % 2);
  if (tn_program_compile(v, ir, nodes, 2, p, NULL)) abort();
  r->program = p[r->scale];
  program_release(p[1 - r->scale]);
  tn_ir_close(ir);
  return NULL;
}

static void racing_threads_compile_once(void **state) {
  fixture *f = *state;
  enum { N = 8 };
  pthread_t threads[N];
  racer racers[N];
  for (int i = 0; i < N; i++) {
    racers[i] = (racer){f, NULL, i % 2};
    pthread_create(&threads[i], NULL, race, &racers[i]);
  }
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).compiled, 2);
  for (int i = 0; i < N; i++) program_release(racers[i].program);
}

static void the_cache_is_bounded(void **state) {
  fixture *f = *state;
  registry *small;
  tn_device *v;
  ok(f, registry_open(&small, &(registry_desc){0}, &f->diag));
  kernel_cache_set_limits(kernel_cache_of(small), 3, KERNEL_CACHE_MOST_IDLE_BYTES);
  ok(f, registry_add_backend(small, &ref_backend, &f->diag));
  ok(f, registry_open_device(small, "REF", &v, &f->diag));
  tn_program *kept = NULL;
  for (int i = 0; i < 20; i++) {
    tn_node node = sample_program(f->ir, "REF", "k", i);
    tn_program *p;
    assert_int_equal(tn_program_compile(v, f->ir, &node, 1, &p, NULL), TN_OK);
    if (i == 2)
      kept = p;
    else
      program_release(p);
  }
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(small)).idle, 3);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(small)).kernels, 4);
  tn_node node = sample_program(f->ir, "REF", "k", 2); /* in use: not evicted */
  tn_program *again;
  assert_int_equal(tn_program_compile(v, f->ir, &node, 1, &again, NULL), TN_OK);
  assert_ptr_equal(again, kept);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(small)).compiled, 20);
  program_release(again);
  program_release(kept);
  registry_close(small);
}

static atomic_int decomposed, rendered, compiled;

static tn_node spy_decompose(const tn_capabilities *caps, tn_ir *ir, tn_node node) {
  atomic_fetch_add(&decomposed, 1);
  return ref_decompose(caps, ir, node);
}

static tn_status spy_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                            tn_output *source, tn_failure *f) {
  atomic_fetch_add(&rendered, 1);
  return ref_render(caps, ir, spec, source, f);
}

static tn_status spy_compile(void *compiler, const tn_capabilities *caps,
                             const tn_program_spec *const specs[], size_t n, tn_output *code,
                             tn_failure *f) {
  atomic_fetch_add(&compiled, 1);
  return ref_compile(compiler, caps, specs, n, code, f);
}

/** Makes a kernel that is not linearised, with ranges numbered from `range`. */
static tn_node plain_kernel(tn_ir *ir, const char *name, int range, int size) {
  char text[1024];
  int n = snprintf(text, sizeof text,
                   "%%in = param f32 %d [slot=0]\n"
                   "%%out = param f32 %d [slot=1]\n"
                   "%%r = range index %d [id=%d kind=loop axis=0 tail=0]\n"
                   "%%x = index f32 %%in %%r [component=0]\n"
                   "%%y = exp2 f32 %%x\n"
                   "%%st = stage void %%y %%r %d %%r [values=1 ranges=1 pins=0 cut=0 1]\n"
                   "%%o = out void %%out %%st\n"
                   "%%s = sink void %%o \"%s\"\n"
                   "return %%s\n",
                   size, size, size, range, size, name);
  return tn_ir_parse(ir, text, (size_t)n);
}

/** A kernel found in the cache is not linearised. */
static void found_kernels_cost_nothing(void **state) {
  fixture *f = *state;
  static tn_renderer renderer;
  static tn_compiler compiler;
  static tn_pair pair;
  static tn_backend b;
  renderer = *ref_backend.pairs[0].renderer;
  renderer.decompose = spy_decompose;
  renderer.render = spy_render;
  compiler = *ref_backend.pairs[0].compiler;
  compiler.compile = spy_compile;
  pair = (tn_pair){&renderer, &compiler, NULL};
  b = ref_backend;
  b.name = "SPY";
  b.pairs = &pair;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  tn_device *v = device(f, "SPY");
  tn_program *p[4] = {0};
  decomposed = rendered = compiled = 0;
  for (int i = 0; i < 4; i++) {
    tn_ir *ir;
    tn_failure why = {TN_OK, ""};
    assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
    tn_node node = plain_kernel(ir, i ? "again" : "first", i * 7, i < 3 ? 10 : 11);
    if (!node) fail_msg("%s", tn_ir_message(ir));
    if (tn_program_compile(v, ir, &node, 1, &p[i], &why)) fail_msg("%s", why.text);
    tn_ir_close(ir);
    if (!i) assert_true(decomposed > 0);
    if (i < 3) {
      assert_ptr_equal(p[i], p[0]);
      assert_int_equal(rendered, 1);
      assert_int_equal(compiled, 1);
    }
    if (i < 2) decomposed = 0;
    if (i == 2) assert_int_equal(decomposed, 0);
  }
  assert_ptr_not_equal(p[3], p[0]);
  assert_int_equal(rendered, 2);
  assert_string_equal(tn_program_name(p[1]), "first");
  for (int i = 0; i < 4; i++) program_release(p[i]);
}

static void made_linear_and_run(void **state) {
  fixture *f = *state;
  static const char *const names[] = {"CPU", "REF"};
  for (int d = 0; d < 2; d++) {
    tn_device *v = device(f, names[d]);
    tn_node node = plain_kernel(f->ir, "exp2", 0, 6);
    tn_program *p;
    tn_buffer *b[2];
    tn_span s[2];
    tn_failure why = {TN_OK, ""};
    float in[6] = {0, 1, 2, -1, 10, 3}, out[6];
    if (tn_program_compile(v, f->ir, &node, 1, &p, &why)) fail_msg("%s", why.text);
    for (int i = 0; i < 2; i++) {
      ok(f, buffer_open(v, sizeof in, &b[i], &f->diag));
      ok(f, buffer_span(b[i], &s[i], &f->diag));
    }
    ok(f, span_write(&s[0], DT_F32, DT_F32, in, 6, &f->diag));
    int64_t values[2] = {1, 0}; /* core_count and core_id, if parallel */
    assert_true(p->facts.n_values <= 2);
    tn_launch l = {s, 2, values, p->facts.n_values};
    if (program_execute(p, &l, &why)) fail_msg("%s", why.text);
    ok(f, span_read(&s[1], DT_F32, DT_F32, out, 6, &f->diag));
    for (int i = 0; i < 6; i++) assert_true(out[i] == exp2f(in[i]));
    for (int i = 0; i < 2; i++) buffer_release(b[i]);
    program_release(p);
  }
  tn_node broken = parse(f, "%out = param f32 9 [slot=1]\n"
                            "%r = range index 8 [id=0 kind=loop axis=0 tail=0]\n"
                            "%one = const f32 1.0\n"
                            "%st = stage void %one %r 9 [values=1 ranges=0 pins=0 cut=0 1]\n"
                            "%o = out void %out %st\n"
                            "%s = sink void %o \"k\"\n"
                            "return %s\n");
  tn_program *p;
  assert_int_equal(tn_program_compile(device(f, "CPU"), f->ir, &broken, 1, &p, NULL),
                   TN_ERR_INTERNAL);
  assert_null(p);
}

typedef struct sizing {
  fixture *f;
  compiled_kernel *made;
} sizing;

static void make_sizes(void *arg) {
  sizing *s = arg;
  const node *one = parse(s->f, "%one = const i64 1\nreturn %one\n");
  s->made->sizes = launch_grid_compile(ir_arena(s->f->ir), (const node *[]){one, one, one},
                                       (const node *[3]){NULL}, NULL, 0);
}

/** Kernels with equal hashes are distinct and have distinct function names. */
static void equal_hashes_are_not_equal_keys(void **state) {
  fixture *f = *state;
  reentrancy_list visits;
  reentrancy_init(&visits);
  kernel_cache *c = kernel_cache_open(&mem_system, &visits);
  cache_key keys[3] = {{{1, 2}, "one", 3}, {{1, 2}, "two", 3}, {{1, 2}, "three", 5}};
  kernel *k[3], *again;
  kernel_cache_result answer;
  tn_program_spec spec = {.name = "k", .entry = "k"};
  tn_code code = {TN_CODE_BYTES, "code", 4};
  static const char *const names[] = {"tn_00000000000000010000000000000002",
                                      "tn_00000000000000010000000000000002_1",
                                      "tn_00000000000000010000000000000002_2"};
  for (int i = 0; i < 3; i++) {
    compiled_kernel made = {.spec = &spec};
    sizing s = {f, &made};
    assert_int_equal(diag_catch(ir_diag(f->ir), make_sizes, &s), TN_OK);
    ok(f, kernel_cache_lookup(c, &keys[i], 0, &answer, &k[i], &f->diag));
    assert_int_equal(answer, KERNEL_CACHE_CLAIMED);
    assert_string_equal(kernel_entry_name(k[i]), names[i]);
    made.kernel = k[i];
    if (i < 2) ok(f, kernel_cache_publish(c, &made, 1, &code, NULL, &f->diag));
  }
  for (int i = 0; i < 2; i++) {
    ok(f, kernel_cache_lookup(c, &keys[i], 0, &answer, &again, &f->diag));
    assert_int_equal(answer, KERNEL_CACHE_HIT);
    assert_ptr_equal(again, k[i]);
    kernel_cache_release(c, again);
  }
  kernel_cache_release(c, k[2]); /* not published: removed, its number reusable */
  ok(f, kernel_cache_lookup(c, &keys[2], 0, &answer, &k[2], &f->diag));
  assert_int_equal(answer, KERNEL_CACHE_CLAIMED);
  assert_string_equal(kernel_entry_name(k[2]), names[2]);
  for (int i = 0; i < 3; i++) kernel_cache_release(c, k[i]);
  kernel_cache_close(c);
  reentrancy_free(&visits);
}

static void compilers_by_name(void **state) {
  fixture *f = *state;
  tn_node node = sample_program(f->ir, "CPU", "k", 3);
  tn_program *p[2];
  static const char *const names[] = {"gcc", "clang"};
  int n = 0;
  for (int i = 0; i < 2; i++) {
    compile_options o = {0};
    ok(f, device_target_find(device(f, "CPU"), &(device_target_desc){.compiler = names[i]},
                             &o.target, &f->diag));
    if (compile_kernels(&o, f->ir, &node, 1, &p[n], &f->diag) == TN_OK) n++;
  }
  assert_true(n > 0);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).compiled, n);
  if (n == 2) assert_ptr_not_equal(p[0], p[1]);
  while (n) program_release(p[--n]);
  compile_options o = {0};
  ok(f, device_target_find(device(f, "CPU"), &(device_target_desc){.compiler = "no-such-one"},
                           &o.target, &f->diag));
  assert_int_equal(compile_kernels(&o, f->ir, &node, 1, &p[0], &f->diag), TN_ERR_COMPILE);
  assert_non_null(strstr(f->diag.text, "\"no-such-one\""));
}

static tn_status write_nothing(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                               tn_output *source, tn_failure *f) {
  (void)caps, (void)ir, (void)spec, (void)source, (void)f;
  return TN_OK;
}

static tn_status compile_nothing(void *compiler, const tn_capabilities *caps,
                                 const tn_program_spec *const specs[], size_t n, tn_output *code,
                                 tn_failure *f) {
  (void)compiler, (void)caps, (void)specs, (void)n, (void)code, (void)f;
  return TN_OK;
}

/** Messages name the kernel, and the part of the backend that wrote nothing for it. */
static void empty_sources_and_code_are_told(void **state) {
  fixture *f = *state;
  static tn_renderer renderer;
  static tn_compiler compiler;
  static tn_pair pairs[2];
  static tn_backend b[2];
  static const char *const names[] = {"MUTE", "IDLE"};
  static const char *const expected[] = {
      "k: renderer ir of backend MUTE wrote no source of function ",
      "k: compiler ref of backend IDLE wrote no code of function "};
  renderer = *ref_backend.pairs[0].renderer;
  renderer.render = write_nothing;
  compiler = *ref_backend.pairs[0].compiler;
  compiler.compile = compile_nothing;
  pairs[0] = (tn_pair){&renderer, ref_backend.pairs[0].compiler, NULL};
  pairs[1] = (tn_pair){ref_backend.pairs[0].renderer, &compiler, NULL};
  for (int i = 0; i < 2; i++) {
    tn_program *p;
    tn_failure why = {TN_OK, ""};
    b[i] = ref_backend;
    b[i].name = names[i];
    b[i].pairs = &pairs[i];
    ok(f, registry_add_backend(f->registry, &b[i], &f->diag));
    tn_node node = sample_program(f->ir, names[i], "k", 1);
    assert_int_equal(tn_program_compile(device(f, names[i]), f->ir, &node, 1, &p, &why),
                     TN_ERR_DEVICE);
    assert_memory_equal(why.text, expected[i], strlen(expected[i]));
    assert_true(why.text[strlen(expected[i])]);
  }
}

static tn_status key_of_two_texts(void *compiler, const tn_capabilities *caps, tn_output *key,
                                  tn_failure *f) {
  (void)compiler, (void)caps, (void)f;
  tn_output_add(key, "ref\0of a model", 15);
  return TN_OK;
}

/** A key is a text: what follows a NUL would tell no compilers apart. */
static void keys_hold_no_nul(void **state) {
  fixture *f = *state;
  static tn_compiler compiler;
  static tn_pair pair;
  static tn_backend b;
  tn_program *p;
  tn_failure why = {TN_OK, ""};
  compiler = *ref_backend.pairs[0].compiler;
  compiler.key = key_of_two_texts;
  pair = (tn_pair){ref_backend.pairs[0].renderer, &compiler, NULL};
  b = ref_backend;
  b.name = "CUT";
  b.pairs = &pair, b.n_pairs = 1;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  tn_node node = sample_program(f->ir, "CUT", "k", 1);
  assert_int_equal(tn_program_compile(device(f, "CUT"), f->ir, &node, 1, &p, &why), TN_ERR_DEVICE);
  assert_non_null(strstr(why.text, "compiler ref of backend CUT wrote a key with a NUL"));
  assert_null(p);
}

static tn_status quiet_execute(void *v, const tn_work *work, tn_failure *f) {
  (void)v, (void)f;
  return work->kind == TN_WORK_EXEC ? TN_ERR_UNSUPPORTED : TN_OK;
}

/** A status that a backend does not explain is told by its own text, at once and in a queue. */
static void unexplained_failures_have_a_text(void **state) {
  fixture *f = *state;
  static tn_backend b;
  b = ref_backend;
  b.name = "QUIET";
  b.streams = NULL, b.graphs = NULL, b.execute = quiet_execute;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  tn_program *p = compile(f, "QUIET", "k", 3);
  run r;
  run_open(f, &r, "QUIET", 10, 2);
  tn_failure why = {TN_OK, "of another call"};
  const char *text = tn_status_text(TN_ERR_UNSUPPORTED);
  assert_int_equal(tn_program_execute(p, &r.launch.launch, &why), TN_ERR_UNSUPPORTED);
  assert_string_equal(why.text, text);
  tn_queue *q;
  tn_signal *s;
  assert_int_equal(tn_queue_open(device(f, "QUIET"), TN_QUEUE_COMPUTE, &q, &why), TN_OK);
  assert_int_equal(tn_signal_open(device(f, "QUIET"), 0, &s, &why), TN_OK);
  tn_queue_exec(q, p, &r.launch.launch);
  tn_queue_signal(q, s, 1);
  assert_int_equal(tn_queue_submit(q, &why), TN_OK);
  assert_int_equal(tn_signal_wait(s, 1, -1, &why), TN_ERR_UNSUPPORTED);
  assert_string_equal(why.text, text);
  tn_queue_free(q);
  tn_signal_free(s);
  run_close(&r);
  program_release(p);
}

static tn_status failing_compile(void *compiler, const tn_capabilities *caps,
                                 const tn_program_spec *const specs[], size_t n, tn_output *code,
                                 tn_failure *f) {
  static atomic_int calls;
  (void)compiler, (void)caps, (void)specs, (void)n, (void)code;
  return tn_fail(f, TN_ERR_COMPILE, "failure number %d", atomic_fetch_add(&calls, 1) + 1);
}

static void failures_leave_nothing(void **state) {
  fixture *f = *state;
  static tn_compiler compiler;
  static tn_pair pair;
  static tn_backend b;
  compiler = *ref_backend.pairs[0].compiler;
  compiler.compile = failing_compile;
  pair = (tn_pair){ref_backend.pairs[0].renderer, &compiler, NULL};
  b = ref_backend;
  b.name = "BAD";
  b.pairs = &pair;
  ok(f, registry_add_backend(f->registry, &b, &f->diag));
  tn_node nodes[2] = {sample_program(f->ir, "BAD", "k", 1), sample_program(f->ir, "BAD", "k", 2)};
  tn_program *p[2];
  tn_failure why = {TN_OK, ""};
  for (int i = 1; i < 3; i++) {
    char expected[64];
    snprintf(expected, sizeof expected, "kernels: failure number %d", i);
    assert_int_equal(tn_program_compile(device(f, "BAD"), f->ir, nodes, 2, p, &why),
                     TN_ERR_COMPILE);
    assert_string_equal(why.text, expected);
    assert_true(!p[0] && !p[1]);
  }
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(f->registry)).kernels, 0);
}

static void only_programs_are_compiled(void **state) {
  fixture *f = *state;
  tn_node program = sample_program(f->ir, "CPU", "k", 1);
  const tn_node *stages;
  tn_program *p;
  tn_failure why = {TN_OK, ""};
  tn_node_sources(program, &stages);
  assert_int_equal(tn_program_compile(device(f, "CPU"), f->ir, &stages[2], 1, &p, &why),
                   TN_ERR_INTERNAL);
  assert_non_null(strstr(why.text, "not from linear"));
  assert_int_equal(tn_program_compile(NULL, f->ir, &program, 1, &p, &why), TN_ERR_ARGUMENT);
  tn_node none = NULL;
  assert_int_equal(tn_program_compile(device(f, "CPU"), f->ir, &none, 1, &p, &why),
                   TN_ERR_ARGUMENT);
}

/* Exhausted memory. */

/** Opens, compiles, runs and closes; returns the first failure. */
static tn_status whole_life(const mem *m, diag *d) {
  registry *t = NULL;
  tn_device *v = NULL;
  tn_ir *ir = NULL;
  tn_program *p = NULL;
  tn_buffer *b = NULL;
  tn_queue *q = NULL;
  tn_signal *g = NULL;
  tn_span s;
  tn_failure f = {TN_OK, ""};
  tn_allocator a = {m->alloc, m->release, m->user, NULL};
  tn_status status = registry_open(&t, &(registry_desc){.mem = m, .threads = 2}, d);
  if (!status) status = registry_add_backend(t, &ref_backend, d);
  if (!status) status = registry_open_device(t, "REF", &v, d);
  if (!status) status = tn_ir_open(&a, &ir);
  tn_node node = status ? NULL : sample_program(ir, "REF", "k", 2);
  if (!status && !node) status = tn_ir_status(ir);
  if (!status) status = tn_program_compile(v, ir, &node, 1, &p, &f);
  if (!status) status = tn_buffer_open(v, 64, &b, &f);
  if (!status) status = tn_buffer_span(b, &s, &f);
  if (!status) status = tn_queue_open(v, TN_QUEUE_COMPUTE, &q, &f);
  if (!status) status = tn_signal_open(v, 0, &g, &f);
  for (int i = 0; i < 20 && !status; i++) tn_queue_signal(q, g, (uint64_t)i);
  if (!status) status = tn_queue_submit(q, &f);
  if (!status) status = tn_queue_finish(q, -1, &f);
  if (!status) status = tn_signal_wait(g, 19, -1, &f);
  tn_queue_free(q);
  tn_signal_free(g);
  tn_buffer_release(b);
  tn_program_free(p);
  tn_ir_close(ir);
  registry_close(t);
  return status;
}

/** Promises of signals may lack memory, which only delays waits; a mark that a stream cannot make
    loses its device. */
static void memory_may_run_out_anywhere(void **state) {
  fixture *f = *state;
  int n_spared = 0;
  counting_mem c = {.fail_at = 0};
  mem m = counting_mem_of(&c);
  ok(f, whole_life(&m, &f->diag));
  size_t calls = c.calls;
  assert_true(calls > 50);
  for (size_t n = 1; n <= calls; n++) {
    c.calls = 0;
    c.fail_at = n;
    tn_status status = whole_life(&m, &f->diag);
    if (!status && ++n_spared > 4) fail_msg("allocation %zu is not missed", n);
    if (status && status != TN_ERR_MEMORY && status != TN_ERR_DEVICE)
      fail_msg("allocation %zu: %s", n, tn_status_text(status));
    assert_int_equal(c.bytes, 0);
  }
}

int main(void) {
  setenv("TENON_LLVM", "off", 1); /* so the default pair is C's */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(devices_by_name),
                                     TEST(case_of_names),
                                     TEST(names_that_are_none),
                                     TEST(devices_are_listed),
                                     TEST(absent_pairs_are_passed_over),
                                     TEST(nobody_else_waits_for_a_compiler),
                                     TEST(backends_must_be_complete),
                                     TEST(capabilities_are_checked),
                                     TEST(one_table_for_the_process),
                                     TEST(each_task_runs_once),
                                     TEST(many_callers_share_the_pool),
                                     TEST(callers_bring_their_threads),
                                     TEST(long_work_holds_up_no_other),
                                     TEST(the_pool_takes_no_signals),
                                     TEST(targets),
                                     TEST(programs_run),
                                     TEST(buffers_are_of_the_programs_device),
                                     TEST(launches_are_checked),
                                     TEST(launch_indices_are_sized),
                                     TEST(arrays_of_a_kernel),
                                     TEST(launch_indices_that_a_device_lacks),
                                     TEST(equal_kernels_are_one),
                                     TEST(found_kernels_cost_nothing),
                                     TEST(made_linear_and_run),
                                     TEST(equal_hashes_are_not_equal_keys),
                                     TEST(compilers_by_name),
                                     TEST(levels_are_kept_apart),
                                     TEST(many_in_one_call),
                                     TEST(racing_threads_compile_once),
                                     TEST(compiling_keeps_failures),
                                     TEST(the_cache_is_bounded),
                                     TEST(empty_sources_and_code_are_told),
                                     TEST(keys_hold_no_nul),
                                     TEST(unexplained_failures_have_a_text),
                                     TEST(failures_leave_nothing),
                                     TEST(only_programs_are_compiled),
                                     TEST(memory_may_run_out_anywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
