/* Tests reentrancy: calls into the library from user callbacks (allocator, logger, progress,
   workers, destructors, host functions) fail with TN_ERR_BUSY where they could deadlock, and work
   elsewhere. An alarm ends a test that hangs. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include <pthread.h>
#include <sched.h>
#include <tenon/unstable/queue.h>
#include <unistd.h>

enum { SECONDS = 200, ROWS = 3, SIDE = 512 };

static bytes file; /* layer_model's */

static int make_file(void **state) {
  (void)state;
  layer_model(&file);
  return 0;
}

static int begin(void **state) {
  (void)state;
  alarm(SECONDS);
  return 0;
}

/** A context with one object of each kind, and the results of a callback's calls. */
typedef struct scene {
  tn_context *c;
  tn_model *model, *other;
  tn_plan *plan;
  tn_binding *binding;
  tn_tensor *x;
  atomic_bool is_armed;
  atomic_size_t calls;
  _Atomic(const char *) allowed; /* name of a call that was not refused */
} scene;

/** Makes every call that must be refused. Returns the name of the first that was not; NULL: all
    were. */
static const char *first_allowed(const scene *s) {
  float f[4] = {0};
  tn_model *m;
  tn_plan *p;
  tn_binding *b;
  tn_device *device;
  tn_failure failure;
  tn_step step = TN_STEP_INIT;
  tn_device_info info = TN_DEVICE_INFO_INIT;
  tn_tensor *sum = tn_add(s->x, s->x);
  const struct {
    const char *call;
    tn_status status;
  } all[] = {
      {"tn_model_bind", tn_model_bind(s->model, &b)},
      {"tn_model_bind of another", tn_model_bind(s->other, &b)},
      {"tn_model_bind of no place", tn_model_bind(s->model, NULL)},
      {"tn_model_load", tn_model_load_bytes(s->c, file.at, file.n, NULL, &m)},
      {"tn_plan_compile", tn_plan_compile(s->c, &s->x, 1, NULL, &p)},
      {"tn_plan_bind", tn_plan_bind(s->plan, &b)},
      {"tn_binding_input", tn_binding_input(s->binding, "v", tn_shape(4), TN_F32, f, sizeof f)},
      {"tn_binding_run", tn_binding_run(s->binding)},
      {"tn_binding_start", tn_binding_start(s->binding, NULL, 0, NULL, 0)},
      {"tn_binding_read", tn_binding_read(s->binding, "0", TN_F32, f, sizeof f)},
      {"tn_binding_step", tn_binding_step(s->binding, 0, &step)},
      {"tn_read", tn_read(s->x, TN_F32, f, sizeof f)},
      {"tn_read of what was built", tn_read(sum, TN_F32, f, sizeof f)},
      {"tn_realize", tn_realize(s->c, &s->x, 1)},
      {"tn_scope_end", tn_scope_end(s->c)},
      {"tn_device_get", tn_device_get(s->c, 0, &info)},
      {"tn_device_open", tn_device_open(s->c, NULL, &device, &failure)},
      {"tn_close", tn_close(s->c)},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].status != TN_ERR_BUSY) return all[i].call;
  tn_model_free(s->model);
  tn_plan_free(s->plan);
  tn_binding_free(s->binding);
  return NULL;
}

static void try_all(scene *s) {
  if (!atomic_load(&s->is_armed)) return;
  const char *allowed = first_allowed(s);
  atomic_fetch_add(&s->calls, 1);
  if (allowed) atomic_store(&s->allowed, allowed);
}

/* The callbacks of a descriptor. */

static void *try_and_alloc(void *user, size_t n, size_t align) {
  size_t least = align < sizeof(void *) ? sizeof(void *) : align;
  try_all(user);
  return aligned_alloc(least, (n + least - 1) / least * least);
}

static void try_and_release(void *user, void *at, size_t n) {
  (void)n;
  try_all(user);
  free(at);
}

static void try_and_run(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  try_all(user);
  for (size_t i = 0; i < n; i++) task(arg, i);
}

static void try_and_log(void *user, tn_log_level level, const char *text) {
  (void)level, (void)text;
  try_all(user);
}

static bool try_and_go_on(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  try_all(user);
  return true;
}

static void try_last(void *user) { try_all(user); }

static tn_plan *plan_of(tn_context *c, tn_tensor *out) {
  tn_plan *p;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &p));
  return p;
}

static tn_binding *binding_of(tn_context *c, tn_plan *p) {
  tn_binding *b;
  check_ok(c, tn_plan_bind(p, &b));
  return b;
}

static void open_scene(scene *s, tn_open_desc *d) {
  const float v[] = {1, 2, 3, 4};
  d->cache_dir = "off";
  d->threads = 4;
  tn_context *c = s->c = tn_open(d);
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &s->model));
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &s->other));
  s->x = tn_own(floats(c, 4, v));
  tn_tensor *y = tn_add(tn_input(c, "v", tn_shape(4), TN_F32), tn_num(c, 1));
  s->plan = plan_of(c, y);
  s->binding = binding_of(c, s->plan);
}

static void check_model(tn_context *c, tn_model *m) {
  float x[ROWS][LAYER_IN], y[ROWS][LAYER_OUT];
  tn_binding *b;
  for (size_t i = 0; i < ROWS * LAYER_IN; i++) x[i / LAYER_IN][i % LAYER_IN] = (float)(i % 5) - 2;
  check_ok(c, tn_model_bind(m, &b));
  tn_binding_input(b, "x", tn_shape(ROWS, LAYER_IN), TN_F32, x, sizeof x);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "y", TN_F32, y, sizeof y));
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < LAYER_OUT; k++) assert_true(y[i][k] == layer_expected(x[i], k));
}

static void check_plan(const scene *s) {
  const float v[] = {1, 2, 3, 4};
  float y[4];
  tn_binding_input(s->binding, "v", tn_shape(4), TN_F32, v, sizeof v);
  check_bound(s->binding, tn_binding_run(s->binding));
  check_bound(s->binding, tn_binding_read(s->binding, "0", TN_F32, y, sizeof y));
  for (size_t i = 0; i < 4; i++) assert_true(y[i] == v[i] + 1);
}

/** Multiplies matrices large enough for several threads. */
static void check_product(tn_context *c) {
  tn_tensor *x = tn_rand(c, tn_shape(SIDE, SIDE), TN_F32);
  float f;
  check_ok(c, tn_read(tn_max(tn_matmul(x, tn_exp(x)), TN_ALL, false), TN_F32, &f, 4));
  assert_true(f > 0 && f < 3 * SIDE);
}

/** Does work of each kind with the callbacks installed. */
static void do_all(scene *s) {
  atomic_store(&s->is_armed, true);
  check_model(s->c, s->model);
  check_model(s->c, s->other);
  check_plan(s);
  check_product(s->c);
  tn_plan_free(plan_of(s->c, tn_exp(s->x)));
}

/** Checks that no refused call had an effect. */
static void check_left(scene *s) {
  const char *allowed = atomic_load(&s->allowed);
  if (allowed) fail_msg("%s was allowed", allowed);
  assert_true(atomic_load(&s->calls) > 0);
  atomic_store(&s->is_armed, false);
  check_model(s->c, s->model);
  check_plan(s);
  check_floats(s->c, s->x, FLOATS(1, 2, 3, 4));
}

static void check_refused(scene *s, tn_open_desc *d) {
  open_scene(s, d);
  do_all(s);
  check_left(s);
  assert_int_equal(tn_close(s->c), TN_OK);
}

static void progress_calls_nothing(void **state) {
  (void)state;
  scene s = {.calls = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){try_and_go_on, &s, NULL};
  check_refused(&s, &d);
}

static void loggers_call_nothing(void **state) {
  (void)state;
  scene s = {.calls = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.logger = (tn_logger){try_and_log, &s, NULL};
  check_refused(&s, &d);
}

static void workers_call_nothing(void **state) {
  (void)state;
  scene s = {.calls = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.workers = (tn_workers){try_and_run, &s, NULL};
  check_refused(&s, &d);
}

/** Allocators are called under locks, from any thread, and while the context closes. */
static void allocators_call_nothing(void **state) {
  (void)state;
  scene s = {.calls = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.allocator = (tn_allocator){try_and_alloc, try_and_release, &s, NULL};
  check_refused(&s, &d);
}

/* Payloads. */

static const float wrapped[SIDE];

/** Destructors of wrapped memory run at the end of a scope, and where a plan is freed from outside
    of any call on the context. */
static void wrapped_memory_calls_nothing(void **state) {
  (void)state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  for (int is_beside = 0; is_beside < 2; is_beside++) {
    scene s = {.calls = 0};
    open_scene(&s, &d);
    tn_context *c = s.c;
    tn_scope_begin(c);
    tn_tensor *x =
        tn_own(tn_wrap_host(c, tn_shape(SIDE), TN_F32, wrapped, sizeof wrapped, try_last, &s));
    tn_plan *p = is_beside ? plan_of(c, tn_neg(x)) : NULL;
    atomic_store(&s.is_armed, !is_beside);
    tn_release(x);
    check_ok(c, tn_scope_end(c));
    assert_int_equal(atomic_load(&s.calls), !is_beside);
    atomic_store(&s.is_armed, true);
    tn_plan_free(p);
    assert_int_equal(atomic_load(&s.calls), 1);
    check_left(&s);
    assert_int_equal(tn_close(c), TN_OK);
  }
}

/* Deferred releases: tn_release while the context is in use takes effect when that use ends. */

/** Wrapped memory whose destructor releases another tensor, like a language binding's finaliser. */
typedef struct finaliser {
  tn_tensor *next;
  int *destroyed;
} finaliser;

static void release_next(void *user) {
  const finaliser *f = user;
  ++*f->destroyed;
  tn_release(f->next);
}

static tn_tensor *wrap(tn_context *c, finaliser *f) {
  return tn_wrap_host(c, tn_shape(SIDE), TN_F32, wrapped, sizeof wrapped, release_next, f);
}

static void destructors_release_tensors(void **state) {
  (void)state;
  enum { LENGTH = 5 };
  int destroyed = 0;
  finaliser chain[LENGTH];
  tn_context *c = tn_open(NULL);
  for (size_t i = 0; i < LENGTH; i++) {
    chain[i] = (finaliser){i ? tn_own(wrap(c, &chain[i - 1])) : NULL, &destroyed};
    if (i) assert_non_null(chain[i].next);
  }
  tn_tensor *first = tn_own(wrap(c, &chain[LENGTH - 1]));
  assert_int_equal(destroyed, 0);
  tn_release(first);
  assert_int_equal(destroyed, LENGTH);
  assert_string_equal(tn_message(c), "");
  assert_int_equal(tn_close(c), TN_OK);
}

/** tn_close frees every owned tensor, whose destructors release one another. */
static void destructors_release_tensors_of_a_closing_context(void **state) {
  (void)state;
  int destroyed = 0;
  finaliser of[2] = {{NULL, &destroyed}, {NULL, &destroyed}};
  tn_context *c = tn_open(NULL);
  tn_tensor *a = tn_own(wrap(c, &of[0])), *b = tn_own(wrap(c, &of[1]));
  of[0].next = b;
  of[1].next = a;
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(destroyed, 2);
}

enum { RELEASERS = 4, RELEASED = 50 };

/** Tensors with one reference for each of the threads that release them. */
typedef struct releasers {
  tn_context *c;
  tn_tensor *tensors[RELEASED];
  finaliser finalisers[RELEASED];
  int destroyed, destroyed_inside;
} releasers;

static void *release_all(void *user) {
  releasers *r = user;
  for (size_t i = 0; i < RELEASED; i++) tn_release(r->tensors[i]);
  return NULL;
}

/** Custom operation during which other threads release tensors of its context. */
static tn_status release_from_threads(void *user, tn_call *call) {
  releasers *r = user;
  pthread_t threads[RELEASERS];
  for (size_t i = 0; i < RELEASERS; i++)
    if (pthread_create(&threads[i], NULL, release_all, r)) return TN_ERR_INTERNAL;
  for (size_t i = 0; i < RELEASERS; i++) pthread_join(threads[i], NULL);
  r->destroyed_inside = r->destroyed;
  *(float *)tn_call_out(call, 0).data = 1;
  return TN_OK;
}

static void open_releasers(releasers *r) {
  r->c = tn_open(NULL);
  for (size_t i = 0; i < RELEASED; i++) {
    r->finalisers[i] = (finaliser){NULL, &r->destroyed};
    r->tensors[i] = tn_own(wrap(r->c, &r->finalisers[i]));
    for (size_t k = 1; k < RELEASERS; k++) tn_retain(r->tensors[i]);
  }
}

static void busy_contexts_release_tensors_later(void **state) {
  (void)state;
  releasers r = {.destroyed = 0};
  open_releasers(&r);
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_tensor *out;
  d.run = release_from_threads;
  d.user = &r;
  tn_custom(r.c, &d, NULL, 0, &(tn_type){TN_F32, TN_SCALAR}, &out, 1);
  check_floats(r.c, tn_reshape(out, tn_shape(1)), FLOATS(1));
  assert_int_equal(r.destroyed_inside, 0);
  assert_int_equal(r.destroyed, RELEASED);
  assert_string_equal(tn_message(r.c), "");
  assert_int_equal(tn_close(r.c), TN_OK);
}

typedef struct adder {
  tn_context *c;
  atomic_bool is_over;
} adder;

/** Keeps the context busy, so that most releases are deferred. */
static void *add_always(void *user) {
  adder *a = user;
  while (!atomic_load(&a->is_over)) {
    tn_scope_begin(a->c);
    tn_tensor *x = tn_full(a->c, tn_shape(4), TN_F32, 1);
    for (int i = 0; i < 20; i++) x = tn_add(x, x);
    tn_scope_end(a->c);
  }
  return NULL;
}

static void threads_release_tensors_of_a_used_context(void **state) {
  (void)state;
  releasers r = {.destroyed = 0};
  open_releasers(&r);
  adder a = {.c = r.c};
  pthread_t user, threads[RELEASERS];
  assert_int_equal(pthread_create(&user, NULL, add_always, &a), 0);
  for (size_t i = 0; i < RELEASERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, release_all, &r), 0);
  for (size_t i = 0; i < RELEASERS; i++) pthread_join(threads[i], NULL);
  atomic_store(&a.is_over, true);
  pthread_join(user, NULL);
  tn_seed(r.c, 1); /* the next call carries out later releases */
  assert_int_equal(r.destroyed, RELEASED);
  assert_int_equal(tn_close(r.c), TN_OK);
}

/* Custom operations. */

typedef struct host {
  const scene *scene;
  tn_binding *plain, *custom; /* of plans without and with a custom operation */
  tn_status plan, model, plain_run, custom_run;
  float got;
} host;

static tn_status use_bindings(void *user, tn_call *call) {
  host *h = user;
  tn_binding *b;
  h->plan = tn_plan_bind(h->scene->plan, &b);
  h->model = tn_model_bind(h->scene->model, &b);
  if (h->custom) h->custom_run = tn_binding_run(h->custom);
  h->plain_run = tn_binding_run(h->plain);
  tn_binding_read(h->plain, "0", TN_F32, &h->got, 4);
  tn_binding_free(h->plain);
  *(float *)tn_call_out(call, 0).data = 5;
  return TN_OK;
}

static tn_tensor *custom_of(tn_context *c, host *h) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_tensor *out;
  d.run = use_bindings;
  d.user = h;
  tn_custom(c, &d, NULL, 0, &(tn_type){TN_F32, TN_SCALAR}, &out, 1);
  return out;
}

static void host_functions_use_plain_bindings(void **state) {
  (void)state;
  scene s = {.calls = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  open_scene(&s, &d);
  host h = {.scene = &s, .plan = TN_OK, .model = TN_OK, .plain_run = TN_ERR_INTERNAL};
  tn_tensor *custom = custom_of(s.c, &h);
  tn_plan *p = plan_of(s.c, custom);
  h.plain = binding_of(s.c, plan_of(s.c, tn_sum(s.x, TN_ALL, false)));
  h.custom = binding_of(s.c, p);
  tn_binding *outer = binding_of(s.c, p);
  check_bound(outer, tn_binding_run(outer));
  assert_int_equal(h.plan, TN_ERR_BUSY);
  assert_int_equal(h.model, TN_ERR_BUSY);
  assert_int_equal(h.custom_run, TN_ERR_BUSY);
  check_text(tn_binding_message(h.custom), "callback");
  check_bound(h.plain, h.plain_run);
  assert_true(h.got == 10);
  check_floats(s.c, tn_reshape(custom, tn_shape(1)), FLOATS(5));
  assert_int_equal(tn_close(s.c), TN_OK);
}

/* Other threads, and other contexts. */

typedef struct meeting {
  scene scene;
  pthread_t binders[2];
  tn_status bound[2], ran;
  bool is_over;
} meeting;

static void *bind_the_same(void *arg) {
  meeting *m = arg;
  tn_binding *b;
  m->bound[0] = tn_model_bind(m->scene.model, &b);
  return NULL;
}

static void *bind_another(void *arg) {
  meeting *m = arg;
  tn_binding *b;
  m->bound[1] = tn_model_bind(m->scene.other, &b);
  return NULL;
}

static void *run_beside(void *arg) {
  meeting *m = arg;
  tn_binding *b;
  const float v[] = {1, 2, 3, 4};
  m->ran = tn_plan_bind(m->scene.plan, &b);
  if (m->ran == TN_OK) tn_binding_input(b, "v", tn_shape(4), TN_F32, v, sizeof v);
  if (m->ran == TN_OK) m->ran = tn_binding_run(b);
  if (m->ran == TN_OK && tn_read(m->scene.x, TN_F32, (float[4]){0}, 16) != TN_OK)
    m->ran = TN_ERR_INTERNAL;
  tn_binding_free(b);
  return NULL;
}

/** Waits in a progress callback for another thread's call: independent calls end before the
    callback does, dependent ones have begun. */
static bool meet(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  meeting *m = user;
  pthread_t t;
  if (!atomic_exchange(&m->scene.is_armed, false)) return true;
  m->is_over = !pthread_create(&t, NULL, run_beside, m) && !pthread_join(t, NULL) &&
               !pthread_create(&m->binders[0], NULL, bind_the_same, m) &&
               !pthread_create(&m->binders[1], NULL, bind_another, m);
  usleep(20000);
  return true;
}

static void other_threads_go_on(void **state) {
  (void)state;
  meeting m = {.ran = TN_ERR_INTERNAL, .bound = {TN_ERR_INTERNAL, TN_ERR_INTERNAL}};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){meet, &m, NULL};
  open_scene(&m.scene, &d);
  atomic_store(&m.scene.is_armed, true);
  check_model(m.scene.c, m.scene.model);
  assert_true(m.is_over);
  for (size_t i = 0; i < 2; i++) pthread_join(m.binders[i], NULL);
  check_ok(m.scene.c, m.ran);
  check_ok(m.scene.c, m.bound[0]);
  check_ok(m.scene.c, m.bound[1]);
  assert_int_equal(tn_close(m.scene.c), TN_OK);
}

/** A context whose callback runs the same computation in a second context on the same device. */
typedef struct pair {
  tn_context *other;
  int depth;
  int size; /* of the computation */
  float got;
  bool is_cancelled; /* the callback cancels afterwards */
} pair;

static tn_status compute(tn_context *c, int size, float *x) {
  tn_tensor *t = tn_add(tn_full(c, tn_shape(size), TN_F32, 2), tn_arange(c, 0, size, 1, TN_F32));
  return tn_read(tn_sum(tn_tanh(tn_sin(t)), TN_ALL, false), TN_F32, x, sizeof *x);
}

static float value_in(tn_context *c, int size) {
  float x = 0;
  check_ok(c, compute(c, size, &x));
  return x;
}

static bool compute_in_other(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  pair *p = user;
  if (!p->depth++) p->got = value_in(p->other, p->size);
  return !p->is_cancelled;
}

static void other_contexts_compile_the_same(void **state) {
  (void)state;
  pair p = {.size = 7, .got = -9};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.cache_dir = "off";
  p.other = tn_open(&d);
  d.progress = (tn_progress){compute_in_other, &p, NULL};
  tn_context *c = tn_open(&d);
  float x = value_in(c, 7);
  assert_true(p.depth > 0 && p.got == x);
  assert_true(value_in(p.other, 7) == x);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(tn_close(p.other), TN_OK);
}

/** The kernel that is cancelled leaves the cache beside its twin, which stays in use. */
static void kernels_compiled_twice_are_dropped_apart(void **state) {
  (void)state;
  pair p = {.size = 11, .got = -9, .is_cancelled = true};
  float x;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.cache_dir = "off";
  p.other = tn_open(&d);
  d.progress = (tn_progress){compute_in_other, &p, NULL};
  tn_context *c = tn_open(&d);
  assert_int_equal(compute(c, 11, &x), TN_ERR_CANCELLED);
  assert_true(p.depth > 0);
  assert_int_equal(tn_close(c), TN_OK);
  assert_true(value_in(p.other, 11) == p.got);
  assert_int_equal(tn_close(p.other), TN_OK);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(progress_calls_nothing),
      TEST(loggers_call_nothing),
      TEST(workers_call_nothing),
      TEST(allocators_call_nothing),
      TEST(wrapped_memory_calls_nothing),
      TEST(host_functions_use_plain_bindings),
      TEST(other_threads_go_on),
      TEST(other_contexts_compile_the_same),
      TEST(kernels_compiled_twice_are_dropped_apart),
      TEST(destructors_release_tensors),
      TEST(destructors_release_tensors_of_a_closing_context),
      TEST(busy_contexts_release_tensors_later),
      TEST(threads_release_tensors_of_a_used_context),
  };
  return cmocka_run_group_tests_name("callbacks", tests, make_file, NULL);
}
