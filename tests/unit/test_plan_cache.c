/* Tests executables on disk: what one process scheduled the next one finds, for any sizes and
   inputs; everything that decides a plan is in its key; a damaged or inconsistent record is refused
   and the plan scheduled anew. Each context has its own devices here, as another process would. */
#include "runtime/plan_cache.h"

#include "../fuzz/plan.h"
#include "../models/onnx/writer.h"
#include "compile/kernel_cache.h"
#include "ir/text/parse.h"
#include "runtime/build_executable.h"
#include "runtime/executable.h"
#include "runtime/execution.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/context/context.h" /* before cmocka, which has a macro fail */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <tenon/profile.h>
#include <unistd.h>

enum { N = 8, ROWS = 4 };

typedef struct fixture {
  diag diag;
  arena arena;
  const char *above, *folder;
  int remarks, found, plans;
  char remark[1024]; /* the first warning */
} fixture;

static void prepare(void *arg) {
  fixture *f = arg;
  f->above = temporary_folder(&f->arena);
  f->folder = arena_printf(&f->arena, "%s/cache", f->above);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->above, f);
}

/* Contexts that count kernels. */

static void take_log(void *user, tn_log_level level, const char *text) {
  fixture *f = user;
  f->found += strstr(text, "found on disk") != NULL;
  f->plans += strstr(text, " step") != NULL;
  if (level != TN_LOG_WARNING) return;
  if (!f->remarks++) snprintf(f->remark, sizeof f->remark, "%s", text);
}

static tn_open_desc desc_of(fixture *f) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 2;
  d.cache_dir = f->folder;
  d.logger = (tn_logger){take_log, f, NULL};
  f->remarks = f->found = f->plans = 0;
  f->remark[0] = 0;
  return d;
}

static tn_context *open_one(fixture *f) {
  tn_open_desc d = desc_of(f);
  return tn_open(&d);
}

static uint64_t compiled(const tn_context *c) {
  return kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled;
}

/** Paths of the cache's files: those of plans, or all others. */
typedef struct paths {
  size_t n;
  const char *at[64];
} paths;

static paths list(fixture *f, bool plans) {
  paths l = {0};
  DIR *d = opendir(f->folder);
  for (const struct dirent *e; d && (e = readdir(d));)
    if (strstr(e->d_name, ".tenon") && plans == (strstr(e->d_name, ".plan.") != NULL) && l.n < 64)
      l.at[l.n++] = arena_printf(&f->arena, "%s/%s", f->folder, e->d_name);
  if (d) closedir(d);
  return l;
}

/* A plan of several kernels over a variable size, with a state. */

typedef struct wanted {
  float shift;
  int64_t most;
  bool is_fixed; /* the size is the number ROWS */
} wanted;

static const wanted usual = {1, 64, false};

static tn_status make_plan(tn_context *c, const wanted *w, tn_plan **plan) {
  tn_dim rows = w->is_fixed ? ROWS : tn_dim_var(c, "rows", 1, w->most);
  tn_tensor *x = tn_input(c, "x", tn_shape(rows, N), TN_F32);
  tn_tensor *total = tn_state(tn_full(c, tn_shape(N), TN_F32, 0));
  tn_tensor *columns = tn_sum(tn_add(x, tn_num(c, w->shift)), tn_axes(0), false);
  tn_tensor *shared = tn_div(x, tn_sum(columns, tn_axes(0), false));
  tn_assign(total, tn_add(total, columns));
  tn_plan_desc at_once = TN_PLAN_DESC_INIT;
  at_once.variants = TN_VARIANTS_ONE;
  return tn_plan_compile(c, (tn_tensor *const[]){shared, total}, 2, &at_once, plan);
}

/** Runs the plan and checks its results; `before`: the sum added to the state so far. */
static void run_plan(tn_context *c, tn_plan *plan, const wanted *w, size_t rows, float before[N]) {
  float x[ROWS * N], got[ROWS * N], total[N], columns[N] = {0}, sum = 0;
  tn_binding *b;
  for (size_t i = 0; i < rows * N; i++) x[i] = (float)(i % 7);
  for (size_t i = 0; i < rows * N; i++) columns[i % N] += x[i] + w->shift;
  for (size_t i = 0; i < N; i++) sum += columns[i];
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_input(b, "x", tn_shape((tn_dim)rows, N), TN_F32, x, rows * N * sizeof *x));
  for (int turn = 0; turn < 2; turn++) {
    check_ok(c, tn_binding_run(b));
    check_ok(c, tn_binding_read(b, "0", TN_F32, got, rows * N * sizeof *got));
    check_ok(c, tn_binding_read(b, "1", TN_F32, total, sizeof total));
    for (size_t i = 0; i < rows * N; i++) assert_float_equal(got[i], x[i] / sum, 1e-6);
    for (size_t i = 0; i < N; i++) assert_true(total[i] == (before[i] += columns[i]));
  }
  tn_binding_free(b);
}

/** Compiles and runs in a context, as a process would; returns the number of kernels compiled. */
static uint64_t process_in(tn_context *c, const wanted *w) {
  tn_plan *plan;
  float before[N] = {0};
  check_ok(c, make_plan(c, w, &plan));
  run_plan(c, plan, w, ROWS, before);
  if (!w->is_fixed) run_plan(c, plan, w, 1, before);
  uint64_t n = compiled(c);
  check_ok(c, tn_close(c));
  return n;
}

static uint64_t process(fixture *f, const wanted *w) { return process_in(open_one(f), w); }

/* Finding. */

static void a_second_process_schedules_nothing(void **state) {
  fixture *f = *state;
  assert_true(process(f, &usual) > 1);
  assert_int_equal(f->found, 0);
  int plans = f->plans;
  assert_true(plans > 0);
  assert_int_equal(list(f, true).n, plans);
  for (int again = 0; again < 2; again++) {
    assert_int_equal(process(f, &usual), 0);
    assert_int_equal(f->found, plans);
    assert_int_equal(f->plans, plans);
    assert_int_equal(f->remarks, 0);
  }
  assert_int_equal(list(f, true).n, plans);
}

/** Names and work of a found plan's steps are those of the scheduled one. */
static void steps_are_told_alike(void **state) {
  fixture *f = *state;
  enum { MOST = 8 };
  tn_step steps[2][MOST];
  char names[2][MOST][128];
  size_t n[2] = {0};
  for (int k = 0; k < 2; k++) {
    static const float x[ROWS * N];
    tn_context *c = open_one(f);
    tn_plan *plan;
    tn_binding *b;
    check_ok(c, make_plan(c, &usual, &plan));
    assert_int_equal(f->found > 0, k);
    check_ok(c, tn_plan_bind(plan, &b));
    check_ok(c, tn_binding_input(b, "x", tn_shape(ROWS, N), TN_F32, x, sizeof x));
    check_ok(c, tn_binding_run(b));
    for (size_t i = 0; i < MOST; i++, n[k]++) {
      steps[k][i] = (tn_step)TN_STEP_INIT;
      if (tn_binding_step(b, i, &steps[k][i]) != TN_OK) break;
      snprintf(names[k][i], sizeof names[k][i], "%s", steps[k][i].name);
    }
    check_ok(c, tn_close(c));
  }
  assert_true(n[0] > 1 && n[0] == n[1]);
  for (size_t i = 0; i < n[0]; i++) {
    assert_string_equal(names[0][i], names[1][i]);
    assert_int_equal(steps[0][i].kernel, steps[1][i].kernel);
    assert_true(steps[0][i].operations == steps[1][i].operations);
    assert_true(steps[0][i].bytes == steps[1][i].bytes && steps[0][i].bytes > 0);
  }
}

typedef struct told {
  int calls, unfinished;
  uint64_t total;
} told;

static bool take_progress(void *user, const char *what, uint64_t done, uint64_t total) {
  told *t = user;
  if (!strcmp(what, "schedules")) return true;
  t->calls++;
  t->unfinished += done < total;
  t->total = total;
  return true;
}

/** A found plan reports progress once, at the end. */
static void progress_is_told_alike(void **state) {
  fixture *f = *state;
  told t[2] = {{0}};
  for (int again = 0; again < 2; again++) {
    tn_plan *plan;
    tn_open_desc d = desc_of(f);
    d.progress = (tn_progress){take_progress, &t[again], NULL};
    tn_context *c = tn_open(&d);
    check_ok(c, make_plan(c, &usual, &plan));
    assert_int_equal(f->found, again ? f->plans : 0);
    assert_int_equal(t[again].calls - t[again].unfinished, f->plans);
    check_ok(c, tn_close(c));
  }
  assert_true(t[0].unfinished > 1 && t[1].unfinished == 0 && t[1].total == t[0].total);
}

/** tn_realize finds plans on disk too. */
static void what_is_realised_is_found(void **state) {
  fixture *f = *state;
  for (int again = 0; again < 2; again++) {
    tn_context *c = open_one(f);
    tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *y = tn_sum(tn_mul(x, x), tn_axes(0), true);
    check_floats(c, tn_add(x, y), FLOATS(15, 16, 17));
    assert_int_equal(compiled(c) > 0, !again);
    assert_int_equal(f->found > 0, again);
    check_ok(c, tn_close(c));
  }
}

/** Runs one step with a number and an offset that vary. */
static void step_with(tn_context *c, float by, int at) {
  static const float x[4] = {1, 2, 3, 4};
  tn_scope_begin(c);
  tn_tensor *part = tn_slice(floats(c, 4, x), 0, at, at + 2, 1);
  check_floats(c, tn_mul(part, tn_num(c, (double)by)), FLOATS(x[at] * by, x[at + 1] * by));
  check_ok(c, tn_scope_end(c));
}

/** A plan is found for other values of its lifted scalars. */
static void what_varies_is_in_no_key(void **state) {
  fixture *f = *state;
  for (int again = 0; again < 3; again++) {
    tn_context *c = open_one(f);
    float other = (float)(again + 1);
    int at = again % 2 ? 2 : 0;
    step_with(c, 0.5f, 1);
    step_with(c, other, at);
    assert_int_equal(compiled(c), again ? 0 : 2);
    assert_int_equal(f->found, again ? 2 : 0);
    step_with(c, -other, 2 - at);
    assert_int_equal(compiled(c), again ? 0 : 2);
    assert_int_equal(f->remarks, 0);
    check_ok(c, tn_close(c));
  }
  assert_int_equal(list(f, true).n, 2);
}

static tn_status add_seven(void *user, tn_call *call) {
  const float *x = tn_call_in(call, 0).data;
  float *y = tn_call_out(call, 0).data;
  for (int i = 0; i < 3; i++) y[i] = x[i] + *(const float *)user;
  return TN_OK;
}

/** Plans with host functions are found, and call this process's functions. */
static void host_functions_are_steps_too(void **state) {
  fixture *f = *state;
  for (int again = 0; again < 2; again++) {
    tn_context *c = open_one(f);
    tn_tensor *x = tn_input(c, "x", tn_shape(3), TN_F32), *half = tn_mul(x, tn_num(c, 0.5)), *y;
    float added = again ? 9 : 7, got[3];
    tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
    desc.run = add_seven;
    desc.user = &added;
    tn_type type = {TN_F32, tn_shape(3)};
    if (again) tn_custom(c, &desc, &half, 1, &type, &y, 1); /* gives other node numbers */
    tn_custom(c, &desc, &half, 1, &type, &y, 1);
    y = tn_mul(y, tn_num(c, 2));
    tn_plan *plan;
    tn_binding *b;
    check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
    assert_int_equal(f->found, again);
    check_ok(c, tn_plan_bind(plan, &b));
    check_ok(c, tn_binding_input(b, "x", tn_shape(3), TN_F32, (float[]){2, 4, 6}, sizeof got));
    check_ok(c, tn_binding_run(b));
    check_ok(c, tn_binding_read(b, "0", TN_F32, got, sizeof got));
    for (int i = 0; i < 3; i++) assert_true(got[i] == 2 * (1 + (float)i + added));
    check_ok(c, tn_close(c));
  }
}

typedef struct arrival {
  tn_model *model;
  pthread_barrier_t *begin;
  float got[LAYER_OUT];
  tn_status status;
} arrival;

static void *bind_at_once(void *arg) {
  arrival *v = arg;
  static const float x[LAYER_IN] = {1, 2, 3, 4};
  tn_binding *b;
  pthread_barrier_wait(v->begin);
  v->status = tn_model_bind(v->model, &b);
  if (!v->status) v->status = tn_binding_input(b, "x", tn_shape(1, LAYER_IN), TN_F32, x, sizeof x);
  if (!v->status) v->status = tn_binding_run(b);
  if (!v->status) v->status = tn_binding_read(b, "y", TN_F32, v->got, sizeof v->got);
  return NULL;
}

/** A thread that finds a plan while another thread loads its kernels may schedule it anew. */
static void threads_find_one_plan(void **state) {
  fixture *f = *state;
  enum { THREADS = 3 };
  static bytes file;
  layer_model(&file);
  for (int turn = 0; turn < 8; turn++) {
    tn_context *c = open_one(f);
    pthread_t threads[THREADS];
    pthread_barrier_t begin;
    arrival visits[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
      visits[i] = (arrival){.begin = &begin};
      check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &visits[i].model));
    }
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, bind_at_once, &visits[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
    for (int i = 0; i < THREADS; i++) {
      check_ok(c, visits[i].status);
      for (size_t k = 0; k < LAYER_OUT; k++)
        assert_true(visits[i].got[k] == layer_expected((const float[]){1, 2, 3, 4}, k));
    }
    assert_int_equal(compiled(c) > 0, !turn);
    assert_true(!turn || f->found > 0);
    assert_int_equal(f->remarks, 0);
    check_ok(c, tn_close(c));
  }
}

/* Keys. */

static void what_differs_is_another_plan(void **state) {
  fixture *f = *state;
  static const wanted others[] = {{2, 64, false}, {1, 63, false}, {1, 64, true}};
  process(f, &usual);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    for (int again = 0; again < 2; again++) {
      tn_context *c = open_one(f);
      tn_plan *plan;
      check_ok(c, make_plan(c, &others[i], &plan));
      if (again != (f->found == f->plans)) fail_msg("%zu: %d of %d", i, f->found, f->plans);
      check_ok(c, tn_close(c));
      assert_int_equal(process(f, &others[i]), 0);
    }
}

static void settings_are_part_of_keys(void **state) {
  fixture *f = *state;
  process(f, &usual);
  for (int i = 0; i < 2; i++)
    for (int again = 0; again < 2; again++) {
      tn_open_desc d = desc_of(f);
      if (i == 0) d.math = TN_MATH_EXACT;
      if (i == 1) d.cpu = "x86-64";
#ifndef __x86_64__
      d.cpu = NULL;
#endif
      uint64_t n = process_in(tn_open(&d), &usual);
      if (i == 0 || d.cpu) assert_true((n > 0) == !again && (f->found == f->plans) == again);
    }
}

/** Dumps are written again: a context with a dump does not use the plan cache. */
static void dumps_are_written_again(void **state) {
  fixture *f = *state;
  for (int again = 0; again < 2; again++) {
    tn_open_desc d = desc_of(f);
    const char *folder = arena_printf(&f->arena, "%s/dump%d", f->above, again);
    d.dump = arena_printf(&f->arena, "%s:after:normalise", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    process_in(tn_open(&d), &usual);
    assert_int_equal(f->found, 0);
    assert_int_not_equal(rmdir(folder), 0); /* the folder is not empty */
  }
}

/* Damaged and forged files. */

/** If a kernel is missing, the plan is scheduled and compiled anew. */
static void plans_without_kernels_are_no_plans(void **state) {
  fixture *f = *state;
  uint64_t kernels = process(f, &usual);
  paths l = list(f, false);
  for (size_t i = 0; i < l.n; i++) unlink(l.at[i]);
  assert_int_equal(process(f, &usual), kernels);
  assert_int_equal(f->remarks, 0);
  int plans = f->plans;
  assert_int_equal(process(f, &usual), 0);
  assert_int_equal(f->found, plans);
}

static size_t load(const char *path, unsigned char *data, size_t most) {
  int fd = open(path, O_RDONLY);
  ssize_t n = fd < 0 ? -1 : read(fd, data, most);
  close(fd);
  assert_true(n > 0 && (size_t)n < most);
  return (size_t)n;
}

static void save(const char *path, const void *data, size_t bytes) {
  unlink(path);
  assert_true(temporary_write(path, 0600, data, bytes));
}

enum { MOST_BYTES = 1 << 16, HASHED = 24 };

/** Files with a changed byte, truncated files, and wrong contents with a valid hash. */
static void what_was_damaged_is_made_anew(void **state) {
  fixture *f = *state;
  static unsigned char data[MOST_BYTES];
  process(f, &usual);
  int plans = f->plans;
  for (int way = 0; way < 3; way++) {
    paths l = list(f, true);
    assert_int_equal(l.n, plans);
    for (size_t i = 0; i < l.n; i++) {
      size_t n = load(l.at[i], data, sizeof data);
      uint64_t hash[2];
      if (way == 0) data[n / 2] ^= 1;
      if (way == 2) { /* a plan ends with a buffer's number */
        memset(data + n - 8, 0x7f, 8);
        cache_keys_hash(data + HASHED, n - HASHED, hash);
        memcpy(data + 8, hash, sizeof hash);
      }
      save(l.at[i], data, way == 1 ? n - 1 : n);
    }
    assert_int_equal(process(f, &usual), 0);
    assert_int_equal(f->found, 0);
    assert_int_equal(f->remarks, 1 + (plans > 1)); /* the number of the others, on closing */
    check_text(f->remark, way == 2 ? "no plan of the graph" : "corrupt or truncated");
    assert_int_equal(process(f, &usual), 0);
    assert_int_equal(f->found, plans);
    assert_int_equal(f->remarks, 0);
  }
}

/* Serialisation of plan records. */

static const char text[] = PLAN_OVER("%a = buffer f32 %n 4 [uid=11 version=0]\n"
                                     "%b = buffer f32 4 [uid=11 version=5]\n");

typedef struct inner {
  diag diag;
  ir *ir;
  executable_request request;
  executable *made;
  plan_cache_graph graph;
  str kept;
} inner;

static void make_inner(void *arg) {
  inner *k = arg;
  executable_request *r = &k->request;
  arena *a = ir_arena(k->ir);
  plan_request(r, k->ir, text);
  if (executable_build(&k->made, r, &mem_system, &k->diag)) diag_rethrow(&k->diag);
  k->graph = plan_cache_graph_of(a, r);
  k->kept = str_new(a);
  plan_record_write(&k->kept, k->made, r, &k->graph);
}

static void open_inner(inner *k, const tn_context *c) {
  *k = (inner){.request = {.target = c->target, .math = (int)c->math}};
  k->ir = ir_new(&mem_system, &k->diag, false);
  if (diag_catch(&k->diag, make_inner, k)) fail_msg("%s", k->diag.text);
}

static void close_inner(inner *k) {
  executable_release(k->made);
  ir_free(k->ir);
}

typedef struct rereading {
  inner *k;
  executable p;
  const void *data;
  size_t bytes;
  program_record *records;
  size_t n_records;
  bool is_read;
} rereading;

static void read_body(void *arg) {
  rereading *j = arg;
  executable_set_targets(&j->p, &j->k->request, 1);
  j->is_read = plan_record_read(&j->p, &j->k->request, &j->k->graph, j->data, j->bytes,
                                ir_arena(j->k->ir), &j->records, &j->n_records);
}

/** Reads a copy of the exact size, so that sanitizers see overruns. */
static void reread(rereading *j, inner *k, const void *data, size_t bytes) {
  void *copy = memcpy(test_malloc(bytes + 1), data, bytes);
  arena_mark here = arena_save(ir_arena(k->ir));
  *j = (rereading){.k = k, .data = copy, .bytes = bytes};
  j->p.mem = &mem_system;
  arena_init(&j->p.arena, &mem_system, &k->diag);
  assert_int_equal(diag_catch(&k->diag, read_body, j), TN_OK);
  arena_rewind(ir_arena(k->ir), here);
  test_free(copy);
}

static void add_again(void *arg) {
  rereading *j = arg;
  inner *k = j->k;
  str again = str_new(ir_arena(k->ir));
  j->p.programs = k->made->programs;
  j->p.n_programs = k->made->n_programs;
  plan_record_write(&again, &j->p, &k->request, &k->graph);
  assert_int_equal(again.n, k->kept.n);
  assert_memory_equal(again.at, k->kept.at, again.n);
}

static void what_is_read_is_what_was_written(void **state) {
  fixture *f = *state;
  tn_context *c = open_one(f);
  inner k;
  rereading j;
  open_inner(&k, c);
  reread(&j, &k, k.kept.at, k.kept.n);
  assert_true(j.is_read);
  assert_int_equal(j.p.n_steps, k.made->n_steps);
  assert_int_equal(j.n_records, k.made->n_programs);
  assert_int_equal(j.p.n_vars, 2);
  assert_string_equal(j.p.vars[1].name, "n");
  assert_int_equal(executable_input(&j.p, 11, 0), executable_input(k.made, 11, 0));
  assert_int_equal(executable_input(&j.p, 11, 5), executable_input(k.made, 11, 5));
  assert_int_equal(executable_input(&j.p, 11, 1), SIZE_MAX);
  size_t customs = 0;
  for (size_t i = 0; i < j.p.n_steps; i++)
    customs +=
        j.p.steps[i].kind == STEP_CUSTOM && j.p.steps[i].uid == 9 && j.p.steps[i].output == 1;
  assert_int_equal(customs, 1);
  assert_int_equal(diag_catch(&k.diag, add_again, &j), TN_OK);
  arena_free(&j.p.arena);
  close_inner(&k);
  check_ok(c, tn_close(c));
}

static bool every_buffer(void *user, const node *buffer) {
  (void)user, (void)buffer;
  return true;
}

static void graph_body(void *arg) {
  inner *k = arg;
  k->graph = plan_cache_graph_of(ir_arena(k->ir), &k->request);
}

static cache_key key_of(inner *k) {
  assert_int_equal(diag_catch(&k->diag, graph_body, k), TN_OK);
  return k->graph.key;
}

/** Each part of a request changes its key. */
static void every_part_of_a_request_is_in_its_key(void **state) {
  fixture *f = *state;
  tn_context *c = open_one(f);
  inner k;
  open_inner(&k, c);
  const executable_request r = k.request;
  const schedule_label labels[] = {{r.roots[0], "one"}, {r.roots[0], "two"}, {r.roots[1], "one"}};
  const node *turned[] = {r.roots[1], r.roots[0]};
  cache_key keys[8];
  for (int i = 0; i <= 7; i++) {
    k.request = r;
    if (i == 1) k.request.math = !r.math;
    if (i == 2) k.request.roots = turned;
    if (i == 3) k.request.n_roots = 1;
    if (i == 4) k.request.may_overwrite = every_buffer;
    if (i >= 5) k.request.labels = &labels[i - 5], k.request.n_labels = 1;
    keys[i] = key_of(&k);
    for (int j = 0; j < i; j++)
      assert_memory_not_equal(keys[i].hash, keys[j].hash, sizeof keys[i].hash);
  }
  k.request = r;
  k.request.name = "another";
  cache_key same = key_of(&k);
  assert_memory_equal(same.hash, keys[0].hash, sizeof same.hash);
  assert_true(plan_key_is(&same));
  assert_non_null(memmem(same.data, same.bytes, build_id, strlen(build_id)));
  close_inner(&k);
  check_ok(c, tn_close(c));
}

static void check_loop(const executable *p, size_t step) {
  const executable_step *s = &p->steps[step];
  assert_true(s->n_steps < p->n_steps - step);
  assert_true(s->trips < p->sizes.n_results);
  assert_true(s->trip == SIZE_MAX || s->trip < p->n_vars);
  for (size_t i = 0; i < s->n_states; i++) {
    const schedule_state *x = &s->states[i];
    assert_true(x->init < p->n_buffers && x->result < p->n_buffers && x->spare < p->n_buffers);
    assert_true(x->now < p->n_buffers && x->next < p->n_buffers);
    assert_true(p->buffers[x->init].role != BUFFER_ROLE_STATE || s->parent != SIZE_MAX);
    assert_true(p->buffers[x->result].role != BUFFER_ROLE_INPUT);
  }
}

/** Checks that all indices in an executable are within its tables. */
static void check_inside(const rereading *j) {
  const executable *p = &j->p;
  int64_t values[8] = {1, 4}, *room = test_calloc(p->sizes.n_terms + 1, sizeof *room);
  int64_t *results = test_calloc(p->sizes.n_results + 1, sizeof *results);
  diag d = {0};
  assert_true(p->n_vars <= 8);
  assert_true(p->sizes.n_results > p->n_buffers);
  launch_exprs_eval(&p->sizes, values, room, results, &d);
  for (size_t i = 0; i < 2; i++) assert_true(p->outputs[i] < p->n_buffers);
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    for (size_t k = 0; k < s->n_buffers; k++) {
      const executable_buffer *b = &p->buffers[s->buffers[k]];
      assert_true(s->buffers[k] < p->n_buffers);
      assert_true(b->role != BUFFER_ROLE_SCRATCH || (b->first <= i && i <= b->last));
    }
    if (s->kind == STEP_KERNEL) assert_true(s->program < j->n_records);
    assert_true(s->kind == STEP_LOOP || !s->n_steps);
    if (s->kind == STEP_LOOP) check_loop(p, i);
  }
  test_free(room);
  test_free(results);
}

static void whatever_is_read_is_whole(void **state) {
  fixture *f = *state;
  tn_context *c = open_one(f);
  inner k;
  rereading j;
  size_t accepted = 0;
  open_inner(&k, c);
  for (size_t i = 0; i < k.kept.n; i++) {
    reread(&j, &k, k.kept.at, i);
    assert_false(j.is_read);
    arena_free(&j.p.arena);
  }
  for (size_t i = 0; i < 8 * k.kept.n; i++) {
    k.kept.at[i / 8] = (char)(k.kept.at[i / 8] ^ 1 << i % 8);
    reread(&j, &k, k.kept.at, k.kept.n);
    if (j.is_read) check_inside(&j);
    accepted += j.is_read;
    arena_free(&j.p.arena);
    k.kept.at[i / 8] = (char)(k.kept.at[i / 8] ^ 1 << i % 8);
  }
  assert_true(accepted > 0 && accepted < 8 * k.kept.n);
  close_inner(&k);
  check_ok(c, tn_close(c));
}

/* Records that would write out of bounds. */

static executable_step *step_of(inner *k, step_kind kind) {
  executable_step *s = k->made->steps;
  while (s->kind != kind) s++;
  return s;
}

/** Makes a state of the loop, in place or double-buffered. */
static schedule_state *state_of(inner *k, bool by_turns) {
  schedule_state *s = (schedule_state *)step_of(k, STEP_LOOP)->states;
  while ((s->now != s->next) != by_turns) s++;
  return s;
}

static size_t buffer_of(inner *k, buffer_role role) {
  size_t i = 0;
  while (k->made->buffers[i].role != role) i++;
  return i;
}

static void states_are_one(inner *k) { *state_of(k, false) = *state_of(k, true); }

static void state_takes_turns_with_another(inner *k) {
  state_of(k, true)->spare = state_of(k, false)->result;
}

static void state_grows(inner *k) {
  uint32_t *sizes = (uint32_t *)k->made->sizes.results;
  sizes[state_of(k, true)->spare] = sizes[state_of(k, false)->result];
}

static void state_begins_in_a_result(inner *k) {
  state_of(k, true)->init = state_of(k, true)->result;
}

static void step_of_a_state_is_elsewhere(inner *k) {
  schedule_state *s = state_of(k, true);
  s->next = s->now;
}

static void buffer_never_dies(inner *k) {
  k->made->buffers[buffer_of(k, BUFFER_ROLE_SCRATCH)].last = SIZE_MAX;
}

static void buffer_dies_in_a_loop(inner *k) {
  const executable_step *loop = step_of(k, STEP_LOOP);
  size_t at = (size_t)(loop - k->made->steps);
  for (size_t i = 0; i < loop->n_buffers; i++)
    if (k->made->buffers[loop->buffers[i]].role == BUFFER_ROLE_SCRATCH)
      k->made->buffers[loop->buffers[i]].last = at;
}

static void custom_fills_an_input(inner *k) {
  const executable_step *s = step_of(k, STEP_CUSTOM);
  ((size_t *)s->buffers)[s->n_buffers - 1] = s->buffers[1];
}

static void trips_begin_elsewhere(inner *k) { k->made->vars[step_of(k, STEP_LOOP)->trip].min = -1; }

/** Makes the first scratch buffer a part of another buffer, from an element on. */
static void make_view(inner *k, size_t within, uint64_t start) {
  executable_buffer *b = &k->made->buffers[buffer_of(k, BUFFER_ROLE_SCRATCH)];
  b->role = BUFFER_ROLE_VIEW;
  b->dtype = k->made->buffers[within].dtype;
  b->within = within;
  b->start = start;
}

static void part_is_of_an_input(inner *k) { make_view(k, buffer_of(k, BUFFER_ROLE_INPUT), 0); }

static void part_is_of_itself(inner *k) { make_view(k, buffer_of(k, BUFFER_ROLE_SCRATCH), 0); }

static void add_changed(void *arg) {
  inner *k = arg;
  k->kept = str_new(ir_arena(k->ir));
  plan_record_write(&k->kept, k->made, &k->request, &k->graph);
}

static void what_would_write_elsewhere_is_no_plan(void **state) {
  static void (*const changes[])(inner * k) = {NULL,
                                               states_are_one,
                                               state_takes_turns_with_another,
                                               state_grows,
                                               state_begins_in_a_result,
                                               step_of_a_state_is_elsewhere,
                                               buffer_never_dies,
                                               buffer_dies_in_a_loop,
                                               custom_fills_an_input,
                                               part_is_of_an_input,
                                               part_is_of_itself,
                                               trips_begin_elsewhere};
  tn_context *c = open_one(*state);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    inner k;
    rereading j;
    open_inner(&k, c);
    if (changes[i]) changes[i](&k);
    assert_int_equal(diag_catch(&k.diag, add_changed, &k), TN_OK);
    reread(&j, &k, k.kept.at, k.kept.n);
    if (j.is_read != !changes[i]) fail_msg("change %zu: %d", i, j.is_read);
    arena_free(&j.p.arena);
    close_inner(&k);
  }
  check_ok(c, tn_close(c));
}

/* Records with kernels. */

static void write_changed(void *arg) {
  inner *k = arg;
  plan_cache_store(k->made, &k->request, &k->graph);
}

typedef struct search {
  inner *k;
  executable p;
  bool found;
} search;

static void find_changed(void *arg) {
  search *s = arg;
  executable_set_targets(&s->p, &s->k->request, 1);
  s->found = plan_cache_find(&s->p, &s->k->request, &s->k->graph);
}

static void kernels_store_to_an_input(inner *k) {
  size_t input = buffer_of(k, BUFFER_ROLE_INPUT);
  for (executable_step *s = k->made->steps; s < k->made->steps + k->made->n_steps; s++)
    for (size_t i = 0; i < s->n_buffers && s->kind == STEP_KERNEL; i++)
      if (k->made->buffers[s->buffers[i]].role == BUFFER_ROLE_OUTPUT)
        ((size_t *)s->buffers)[i] = input;
}

static void kernel_stores_to_where_a_state_is(inner *k) {
  schedule_state *s = state_of(k, true);
  size_t next = s->next;
  s->next = s->now;
  s->now = next;
}

/** A record with a wider range of `n` than the 9 that the code is made for. */
static void values_go_further(inner *k) { k->made->vars[1].max = 1000; }

static void nothing(inner *k) { (void)k; }

static void kernels_are_launched_as_they_are_made(void **state) {
  static void (*const changes[])(inner * k) = {
      nothing, kernels_store_to_an_input, kernel_stores_to_where_a_state_is, values_go_further};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    tn_context *c = open_one(f);
    inner k;
    open_inner(&k, c);
    k.request.disk = c->disk;
    changes[i](&k);
    assert_int_equal(diag_catch(&k.diag, write_changed, &k), TN_OK);
    search s = {.k = &k, .p = {.mem = &mem_system, .target = c->target, .name = "inner"}};
    arena_init(&s.p.arena, &mem_system, &k.diag);
    assert_int_equal(diag_catch(&k.diag, find_changed, &s), TN_OK);
    if (s.found != !i) fail_msg("change %zu: %d", i, s.found);
    if (i) check_text(f->remark, "launches do not match the kernels");
    if (i) assert_true(!s.p.n_steps && !s.p.steps && !s.p.vars && !s.p.programs);
    assert_string_equal(s.p.name, "inner");
    for (size_t at = 0; at < s.p.n_programs; at++) program_release(s.p.programs[at]);
    arena_free(&s.p.arena);
    close_inner(&k);
    check_ok(c, tn_close(c));
  }
}

static void output_is_small(inner *k) {
  uint32_t *sizes = (uint32_t *)k->made->sizes.results;
  sizes[k->made->outputs[1]] = sizes[k->made->outputs[0]];
}

static void trips_are_few(inner *k) { k->made->vars[step_of(k, STEP_LOOP)->trip].max = 1; }

static void part_is_outside(inner *k) { make_view(k, k->made->outputs[0], 1000); }

static void part_is_larger(inner *k) {
  make_view(k, k->made->outputs[0], 1);
  uint32_t *sizes = (uint32_t *)k->made->sizes.results;
  sizes[buffer_of(k, BUFFER_ROLE_VIEW)] = sizes[k->made->outputs[0]];
}

/** Checks at run time, when sizes are known. */
static void runs_keep_to_what_kernels_are_made_for(void **state) {
  static void (*const changes[])(inner * k) = {output_is_small, trips_are_few, part_is_outside,
                                               part_is_larger};
  static const char *const told[] = {
      "needs 48 bytes of a buffer of 16", "a loop has 3 iterations, but was compiled for 2",
      "a part of a buffer is outside of it", "a part of a buffer is outside of it"};
  tn_context *c = open_one(*state);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    inner k;
    execution *e;
    open_inner(&k, c);
    changes[i](&k);
    assert_int_equal(execution_open(&e, k.made, NULL, &k.diag), TN_OK);
    assert_int_equal(execution_set_var(e, executable_var(k.made, "n"), 3, &k.diag), TN_OK);
    for (size_t b = 0; b < k.made->n_buffers; b++) {
      tn_buffer *memory;
      if (k.made->buffers[b].role != BUFFER_ROLE_INPUT) continue;
      assert_int_equal(buffer_open(c->device, 48, &memory, &k.diag), TN_OK);
      assert_int_equal(execution_set_buffer(e, b, memory, &k.diag), TN_OK);
      buffer_release(memory);
    }
    assert_int_equal(execution_run(e, &k.diag), TN_ERR_INTERNAL);
    check_text(k.diag.text, told[i]);
    execution_close(e);
    close_inner(&k);
  }
  check_ok(c, tn_close(c));
}

/** A value name that is not a variable is not the number of workers. */
static void values_of_kernels_are_known(void **state) {
  tn_context *c = open_one(*state);
  inner k;
  size_t var;
  open_inner(&k, c);
  assert_true(executable_resolve_value(k.made, "n", &var) && var == executable_var(k.made, "n"));
  assert_true(executable_resolve_value(k.made, "core_id", &var) && var == SIZE_MAX);
  assert_true(executable_resolve_value(k.made, "core_count", &var) && var == SIZE_MAX);
  assert_false(executable_resolve_value(k.made, "m", &var));
  assert_false(executable_resolve_value(k.made, "core_k0", &var));
  close_inner(&k);
  check_ok(c, tn_close(c));
}

/** Each allocation fails in turn while a plan is found. */
static void memory_may_run_out(void **state) {
  fixture *f = *state;
  counting m = {.fail_at = 0};
  process(f, &usual);
  for (size_t at = 1;; at++) {
    tn_open_desc d = desc_of(f);
    d.allocator = (tn_allocator){counting_alloc, counting_release, &m, counting_destroy};
    m = (counting){.fail_at = 0};
    tn_context *c = tn_open(&d);
    tn_plan *plan = NULL;
    m.calls = 0;
    m.fail_at = at;
    tn_status s = make_plan(c, &usual, &plan);
    bool is_over = m.calls < at;
    m.fail_at = 0;
    if (s != TN_OK) check_text(tn_message(c), "memory");
    if (s == TN_OK) run_plan(c, plan, &usual, ROWS, (float[N]){0});
    check_ok(c, tn_close(c));
    assert_int_equal(m.out, 0);
    if (is_over) break;
  }
}

/** Makes a plan whose kernels are on disk, with one failing allocation; returns the number of plans
    stored. */
static size_t make_failing(fixture *f, size_t fail_at, tn_status *s) {
  counting m = {.fail_at = 0};
  tn_open_desc d = desc_of(f);
  tn_plan *plan = NULL;
  d.allocator = (tn_allocator){counting_alloc, counting_release, &m, counting_destroy};
  paths l = list(f, true);
  for (size_t i = 0; i < l.n; i++) unlink(l.at[i]);
  tn_context *c = tn_open(&d);
  m.calls = 0;
  m.fail_at = fail_at;
  *s = make_plan(c, &usual, &plan);
  size_t calls = m.calls;
  m.fail_at = 0;
  if (*s == TN_OK) run_plan(c, plan, &usual, ROWS, (float[N]){0});
  check_ok(c, tn_close(c));
  assert_int_equal(m.out, 0);
  return calls;
}

/** A plan is usable even if there is no memory to store it. */
static void memory_may_run_out_for_the_file(void **state) {
  fixture *f = *state;
  tn_status s;
  size_t unwritten = 0;
  process(f, &usual);
  for (size_t at = make_failing(f, 0, &s); at && !unwritten; at--) {
    make_failing(f, at, &s);
    if (!strstr(f->remark, "cannot write a file: out of memory")) continue;
    unwritten++;
    assert_int_equal(s, TN_OK);
    assert_int_equal(f->remarks, 1);
    assert_int_equal(process(f, &usual), 0);
  }
  assert_true(unwritten > 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(a_second_process_schedules_nothing),
      WITH(steps_are_told_alike),
      WITH(progress_is_told_alike),
      WITH(what_is_realised_is_found),
      WITH(what_varies_is_in_no_key),
      WITH(host_functions_are_steps_too),
      WITH(threads_find_one_plan),
      WITH(what_differs_is_another_plan),
      WITH(settings_are_part_of_keys),
      WITH(dumps_are_written_again),
      WITH(plans_without_kernels_are_no_plans),
      WITH(what_was_damaged_is_made_anew),
      WITH(what_is_read_is_what_was_written),
      WITH(every_part_of_a_request_is_in_its_key),
      WITH(whatever_is_read_is_whole),
      WITH(what_would_write_elsewhere_is_no_plan),
      WITH(kernels_are_launched_as_they_are_made),
      WITH(runs_keep_to_what_kernels_are_made_for),
      WITH(values_of_kernels_are_known),
      WITH(memory_may_run_out),
      WITH(memory_may_run_out_for_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
