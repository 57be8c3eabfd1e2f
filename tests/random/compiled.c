/* Compiles random graphs for the CPU with gcc, with clang and by the LLVM module, runs the
   executables with one to three workers, and compares their outputs bit by bit with the results of
   the linear-program interpreter. One executable in 16 is built a second time, and must then come
   from the disk cache. The device claims tiny caches, so that small arrays reach what is meant for
   large ones. On another device results are compared with the expected values. */
#include "compiled.h"

#include "device/cpu/isa_level.h"
#include "device/memory/span.h"
#include "ir/core/var_names.h"
#include "runtime/build_executable.h"
#include "runtime/execution.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** Every KEPT_EVERYth graph is stored in the plan cache, and the stored plan is run. */
enum { MOST_WORKERS = 3, KEPT_EVERY = 16 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Opening. */

/** Caches as small as random graphs' arrays, so that choices for arrays beyond the caches apply. */
static const tn_hardware small = {
    .l1_bytes = 4096, .l3_bytes = 4096, .l3_cores = 2, .line_bytes = 16, .cores = 2};

/** The target with the most instructions for small types. Those that are slow here, which no target
    has without being named, must be right too. NULL: the usual one. */
static const char *widest_limit(void) {
  static const char limit[] = "x86-64-v4+avx512vnni+avx512bf16";
  isa_target named, usual;
  tn_failure failure;
  if (!isa_level_by_name("x86-64") || isa_target_find(limit, &named, &failure) ||
      isa_target_find(NULL, &usual, &failure))
    return NULL;
  return isa_target_rows(&named) & ~isa_target_rows(&usual) ? limit : NULL;
}

/** Opens the devices beside the first one: further ones of the CPU. */
static bool open_more(compiled *c, const device_target_desc *desc) {
  size_t i = c->n;
  for (size_t k = 0; k + 1 < SPREAD_DEVICES; k++) {
    tn_device *device;
    char name[16];
    snprintf(name, sizeof name, "CPU:%zu", k + 1);
    if (registry_open_device(c->tables[i], name, &device, &c->d) ||
        device_target_find(device, desc, &c->more[i][k], &c->d))
      return false;
    ((device_target *)c->more[i][k])->target.hardware = small;
  }
  return true;
}

static bool open_target(compiled *c, const char *on, const device_target_desc *desc,
                        const char *name) {
  size_t i = c->n;
  tn_device *device;
  void *compiler;
  if (registry_open(&c->tables[i], &(registry_desc){.mem = &mem_system, .threads = MOST_WORKERS},
                    &c->d))
    return false;
  if (registry_open_device(c->tables[i], on, &device, &c->d) ||
      device_target_find(device, desc, &c->targets[i], &c->d) ||
      device_target_open_compiler(c->targets[i], &compiler, &c->d)) {
    registry_close(c->tables[i]);
    return false;
  }
  ((device_target *)c->targets[i])->target.hardware = small;
  if (!open_more(c, strcmp(on, "CPU") ? NULL : desc)) {
    registry_close(c->tables[i]);
    return false;
  }
  c->names[i] = name;
  c->n++;
  return true;
}

/** `name`: a C compiler, or NULL for the LLVM module. */
static bool open_one(compiled *c, const char *name) {
  const device_target_desc desc = {
      .pair = name ? "c/cc" : "llvm/llvm", .limit = widest_limit(), .compiler = name};
  return open_target(c, "CPU", &desc, name ? name : "LLVM");
}

/* Keeping. */

static void take_remark(void *user, const char *text) {
  snprintf(((compiled *)user)->remark, sizeof((compiled *)user)->remark, "%s", text);
}

static void take_log(void *user, tn_log_level level, const char *text) {
  (void)level;
  ((compiled *)user)->found += strstr(text, "found on disk") != NULL;
}

static void make_folder(void *arg) {
  compiled *c = arg;
  c->folder = temporary_folder(&c->arena);
}

static bool open_disk(compiled *c) {
  arena_init(&c->arena, &mem_system, &c->d);
  return diag_catch(&c->d, make_folder, c) == TN_OK && c->folder &&
         disk_cache_open(&c->disk, c->folder, take_remark, c, &mem_system);
}

static void close_disk(compiled *c) {
  char command[256];
  disk_cache_close(c->disk);
  snprintf(command, sizeof command, "rm -rf '%s'", c->folder);
  if (c->folder && system(command)) fprintf(stderr, "%s is left\n", c->folder);
  arena_free(&c->arena);
}

bool compiled_open(compiled *c) {
  static const char *const all[][3] = {{"gcc", "gcc-12", NULL}, {"clang", "clang-14", NULL}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (const char *const *name = all[i]; *name; name++)
      if (open_one(c, *name)) break;
  if (!open_one(c, NULL)) printf("without LLVM: %s\n", c->d.text);
  return open_disk(c) && c->n > 0;
}

bool compiled_open_device(compiled *c, const char *name) {
  return open_target(c, name, NULL, name) && open_disk(c);
}

void compiled_close(compiled *c) {
  for (size_t i = 0; i < c->n; i++) registry_close(c->tables[i]);
  close_disk(c);
}

const target *compiled_target(const compiled *c) { return &c->targets[0]->target; }

/* Host functions. */

static tn_status call_host(void *user, const executable_call *call, tn_failure *failure) {
  const graph *g = user;
  (void)failure;
  const node *found = NULL;
  for (size_t i = 0; i < g->customs.n; i++) {
    const node *n = g->customs.at[i];
    if (n->ints[0] == call->uid && n->ints[1] == call->output) found = n;
  }
  size_t counts[16], n = call->n_inputs;
  dtype from = (dtype)(call->uid & 0xff), to = (dtype)found->dtype;
  for (size_t i = 0; i < n && i < 16; i++) counts[i] = call->bytes[i] / dtype_bytes(from);
  graph_custom(call->uid, call->output, n, (const void *const *)call->data, counts, to,
               call->data[n], call->bytes[n] / dtype_bytes(to));
  return TN_OK;
}

/* Running. */

typedef struct bound {
  const compiled *c;
  const graph *g;
  report *r;
  executable *p;
  execution *b;
  tn_device *device;
  tn_buffer **inputs; /* by the graph's buffers; NULL: no input */
  diag *d;
} bound;

static bool fine(bound *x, tn_status s) {
  if (s != TN_OK) report_fail(x->r, "%s", x->d->text);
  return !x->r->failed;
}

/** A copy of a buffer's bytes, which `free` frees; NULL on failure. */
static char *bytes_of(bound *x, tn_buffer *b, size_t bytes) {
  tn_span span = {0};
  char *copy = malloc(bytes + 1);
  if (fine(x, buffer_span(b, &span, x->d)) &&
      fine(x, span_read(&span, DT_U8, DT_U8, copy, bytes, x->d)))
    return copy;
  free(copy);
  return NULL;
}

static void give_input(bound *x, size_t i) {
  const graph_buffer *from = &x->g->buffers.at[i];
  size_t number = executable_input(x->p, from->n->ints[0], from->n->ints[1]);
  if (number == SIZE_MAX) return;
  if (!fine(x, buffer_open(executable_device_of(x->p, number), from->array.bytes + 1, &x->inputs[i],
                           x->d)))
    return;
  tn_span span = {0};
  if (fine(x, buffer_span(x->inputs[i], &span, x->d)))
    fine(x, span_write(&span, DT_U8, DT_U8, from->array.data, from->array.bytes, x->d));
  fine(x, execution_set_buffer(x->b, number, x->inputs[i], x->d));
}

static void check_results(bound *x, void *const want[]) {
  for (size_t i = 0; i < x->g->n_roots && !x->r->failed; i++) {
    const node *root = x->g->roots[i];
    dtype t = (dtype)root->dtype;
    size_t count = (size_t)graph_count(x->g, root);
    char *got =
        bytes_of(x, execution_buffer(x->b, executable_output(x->p, i)), count * dtype_bytes(t));
    for (size_t k = 0; k < count && got; k++) {
      uint64_t w = scalar_load(t, (const char *)want[i] + k * dtype_bytes(t));
      uint64_t v = scalar_load(t, got + k * dtype_bytes(t));
      char what[32];
      snprintf(what, sizeof what, "root %zu", i);
      if (!same_scalar(t, w, v)) report_element(x->r, what, k, t, w, v);
    }
    free(got);
  }
}

static void check_expected(bound *x, const expected *e) {
  size_t n = x->g->n_roots;
  void **data = calloc(n + 1, sizeof *data);
  for (size_t i = 0; i < n && !x->r->failed; i++)
    data[i] = bytes_of(x, execution_buffer(x->b, executable_output(x->p, i)), e[i].value.bytes);
  if (!x->r->failed) check_roots(x->r, x->g, e, data);
  for (size_t i = 0; i < n; i++) free(data[i]);
  free(data);
}

static void check_inputs(bound *x) {
  for (size_t i = 0; i < x->g->buffers.n && !x->r->failed; i++) {
    const graph_buffer *from = &x->g->buffers.at[i];
    if (!x->inputs[i]) continue;
    size_t number = executable_input(x->p, from->n->ints[0], from->n->ints[1]);
    if (executable_buffer_at(x->p, number)->is_written) continue;
    char *at = bytes_of(x, x->inputs[i], from->array.bytes);
    if (at && memcmp(at, from->array.data, from->array.bytes))
      report_fail(x->r, "input %zu has changed", i);
    free(at);
  }
}

/** `want`: bits; NULL: `e`, expected values. */
static void run_once(bound *x, void *const want[], const expected *e, int32_t workers) {
  x->device->host.threads = workers; /* number of tasks */
  if (!fine(x, execution_open(&x->b, x->p, NULL, x->d))) return;
  x->inputs = calloc(x->g->buffers.n + 1, sizeof(tn_buffer *));
  for (size_t i = 0; i < x->g->buffers.n && !x->r->failed; i++) give_input(x, i);
  for (size_t i = 0; i < x->g->vars.n && !x->r->failed; i++) {
    const interp_var *v = &x->g->vars.at[i];
    size_t var = executable_var(x->p, v->name);
    bool is_given = var != SIZE_MAX && !var_is_late(v->name);
    if (is_given) fine(x, execution_set_var(x->b, var, v->value, x->d));
  }
  if (!x->r->failed && fine(x, execution_run(x->b, x->d))) {
    if (want)
      check_results(x, want);
    else
      check_expected(x, e);
  }
  if (!x->r->failed) check_inputs(x);
  execution_close(x->b);
  for (size_t i = 0; i < x->g->buffers.n; i++)
    if (x->inputs[i]) buffer_release(x->inputs[i]);
  free(x->inputs);
  x->device->host.threads = MOST_WORKERS;
}

/** Builds an executable; for a stored one builds it again, from the cache. */
static bool make(bound *x, compiled *c, executable_request *request) {
  bool is_kept = c->made++ % KEPT_EVERY == 0;
  request->disk = is_kept ? c->disk : NULL;
  *c->remark = 0;
  if (!fine(x, executable_build(&x->p, request, &mem_system, x->d)) || !is_kept) return x->p;
  size_t found = c->found;
  executable_release(x->p);
  if (!fine(x, executable_build(&x->p, request, &mem_system, x->d))) return false;
  if (c->found == found) report_fail(x->r, "it is not found on disk");
  if (*c->remark) report_fail(x->r, "%s", c->remark);
  return true;
}

static void check_with(compiled *c, size_t i, const graph *g, void *const want[], const expected *e,
                       report *r) {
  bound x = {.c = c, .g = g, .r = r, .device = c->targets[i]->device, .d = &c->d};
  tn_logger logger = {take_log, c, NULL};
  executable_request request = {.name = "random",
                                .logger = &logger,
                                .roots = g->roots,
                                .n_roots = g->n_roots,
                                .target = c->targets[i],
                                .more = c->more[i],
                                .n_more = SPREAD_DEVICES - 1,
                                .math = g->math,
                                .may_overwrite = graph_may_overwrite,
                                .host = {.call = call_host, .user = (void *)g}};
  report_stage(r, "executable by %s", c->names[i]);
  double start = now();
  if (!make(&x, c, &request)) return;
  c->compiling += now() - start;
  c->kernels += executable_kernels(x.p);
  for (int32_t workers = 1; workers <= (want ? MOST_WORKERS : 1) && !r->failed; workers++) {
    report_stage(r, "compiled by %s, %d workers", c->names[i], workers);
    run_once(&x, want, e, workers);
  }
  executable_release(x.p);
}

void compiled_check(compiled *c, const graph *g, void *const want[], report *r) {
  *r = (report){0};
  for (size_t i = 0; i < c->n && !r->failed; i++) check_with(c, i, g, want, NULL, r);
}

void compiled_check_expected(compiled *c, const graph *g, const expected *e, report *r) {
  *r = (report){0};
  check_with(c, 0, g, NULL, e, r);
}
