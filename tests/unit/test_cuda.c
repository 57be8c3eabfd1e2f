/* Tests the CUDA backend over the stand-in driver (tests/cuda): marks and their times, the thread's
   own context, failures of the driver at any call, which name the device and the call, the loss of
   a device, and code that is kept on disk, which needs no compiler. Kernels are compared by
   unit.render, random.graphs_cuda and pairs.cuda, streams by random.queues_cuda. Skipped (77) where
   LD_LIBRARY_PATH does not lead to the stand-in. */
#include "compile/program_spec.h"
#include "cuda/stand_in.h"
#include "device/core/device.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvrtc_api.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "support/driver_kernels.h"
#include "support/driver_marks.h"
#include "support/driver_memory.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SKIPPED = 77, BYTES = 1 << 16 };

static driver_kernels k;

/* Of the stand-in. */
static void (*fail_at)(const char *fault);
static cuda_api driver;

static void ok(tn_status status) {
  if (status) fail_msg("%s", k.diag.text);
}

static void contains(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static cuda_device *own(void) { return k.device->state; }

/* Kernels. */

static const char twice[] =
    "extern \"C\" __global__ void __launch_bounds__(8) twice(float *__restrict__ b0, const float "
    "*__restrict__ b1, long long v0_n) {\n"
    "  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < v0_n) b0[i] = 2.0f * b1[i];\n"
    "}\n";

static tn_program_spec spec_of(const char *entry, const char *source, size_t n_globals) {
  return (tn_program_spec){.name = entry,
                           .entry = entry,
                           .source = source,
                           .source_bytes = strlen(source),
                           .n_globals = n_globals,
                           .core_id = -1};
}

static tn_status compile(const char *entry, const char *source, size_t n_globals) {
  tn_program_spec s = spec_of(entry, source, n_globals);
  const tn_program_spec *all[] = {&s};
  return driver_kernels_compile(&k, NULL, all, 1);
}

/** Runs `twice` on 20 elements by groups of some workers. */
static tn_status run_twice(int64_t workers) {
  enum { N = 20 };
  float x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = -1;
  tn_program_spec s = spec_of("twice", twice, 2);
  s.n_values = 1;
  static const char *const names[] = {"n"};
  s.value_names = names;
  void *const data[] = {y, x};
  const size_t bytes[] = {sizeof y, sizeof x};
  const int64_t values[] = {N - 1};
  tn_status status =
      driver_kernels_run(&k, &s, data, bytes, values, (N + workers - 1) / workers, workers);
  for (int i = 0; i < N && !status; i++) assert_float_equal(y[i], i < N - 1 ? 2 * i : -1, 0);
  return status;
}

static void kernels_get_buffers_and_values(void **state) {
  (void)state;
  ok(compile("twice", twice, 2));
  ok(run_twice(8));
}

/** The library's calls leave the context of the thread as it was. */
static void the_threads_context_is_left_alone(void **state) {
  (void)state;
  cuda_context other, now;
  assert_int_equal(driver.DevicePrimaryCtxRetain(&other, 1), 0);
  assert_int_equal(driver.CtxPushCurrent_v2(other), 0);
  ok(compile("twice", twice, 2));
  ok(run_twice(8));
  assert_int_equal(driver.CtxPopCurrent_v2(&now), 0);
  assert_ptr_equal(now, other);
  assert_int_not_equal(driver.CtxPopCurrent_v2(&now), 0); /* none was left behind */
  assert_int_equal(driver.DevicePrimaryCtxRelease_v2(1), 0);
}

/* Marks. */

static void marks_are_waited_for_and_timed(void **state) {
  (void)state;
  driver_marks_check(&k);
}

/** Times are counted from a mark that is never more than some seconds ago. */
static void times_are_counted_from_what_is_near(void **state) {
  (void)state;
  const tn_stream_functions *s = cuda_backend.streams;
  tn_failure *f = &k.diag.failure;
  void *stream, *marks[2];
  ok(s->open(own(), TN_QUEUE_COMPUTE, &stream, f));
  for (int i = 0; i < 2; i++) {
    ok(s->mark(stream, true, &marks[i], f));
    ok(s->sync(marks[i], -1, f));
    if (!i) nanosleep(&(struct timespec){1, 100000000}, NULL);
  }
  int64_t before = s->time(marks[0]);
  const cuda_shared_event *origin = own()->origin;
  int64_t after = s->time(marks[1]);
  assert_true(after - before > 1000000000 && after - before < 30000000000);
  assert_ptr_not_equal(own()->origin, origin);
  for (int i = 0; i < 2; i++) s->mark_free(marks[i]); /* the origin stays */
  ok(s->mark(stream, true, &marks[0], f));
  ok(s->sync(marks[0], -1, f));
  assert_true(s->time(marks[0]) >= after);
  s->mark_free(marks[0]);
  s->free(stream);
}

/* Failures. */

static void refused_sources_show_the_compilers_log(void **state) {
  (void)state;
  static const char wrong[] = "extern \"C\" __global__ void wrong(int a) { nobody_knows(a); }\n";
  assert_int_equal(compile("wrong", wrong, 0), TN_ERR_COMPILE);
  contains(k.diag.text, "fails with NVRTC_ERROR_COMPILATION for wrong (sm_90a): ");
  contains(k.diag.text, "nobody_knows");
}

static void damaged_code_does_not_load(void **state) {
  (void)state;
  static const char damaged[64] = "no image";
  void *module;
  tn_failure f;
  const tn_code code = {TN_CODE_BYTES, damaged, sizeof damaged};
  assert_int_equal(cuda_backend.load(own(), &code, &module, &f), TN_ERR_FORMAT);
  contains(f.text, "CUDA:0 (stand-in 0): cuModuleLoadDataEx");
  contains(f.text, "[no image of the stand-in]");
  contains(f.text, "CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)");
  image_head head = {.magic = IMAGE_MAGIC, .target = "sm_80"};
  const tn_code other = {TN_CODE_BYTES, &head, sizeof head};
  assert_int_equal(cuda_backend.load(own(), &other, &module, &f), TN_ERR_FORMAT);
  contains(f.text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
}

static void functions_that_are_missing(void **state) {
  (void)state;
  ok(compile("twice", twice, 2));
  const tn_program_facts facts = {.entry = "thrice", .core_id = -1};
  void *program;
  tn_failure f;
  assert_int_equal(cuda_backend.program(k.module, &facts, &program, &f), TN_ERR_FORMAT);
  contains(f.text, "cuModuleGetFunction fails with CUDA_ERROR_NOT_FOUND");
}

static void launches_that_are_refused_are_failures(void **state) {
  (void)state;
  ok(compile("twice", twice, 2));
  assert_int_equal(run_twice(2048), TN_ERR_UNSUPPORTED);
  contains(k.diag.text, "CUDA:0 (stand-in 0): cuLaunchKernel of kernel twice fails with "
                        "CUDA_ERROR_INVALID_VALUE");
  fail_at("cuLaunchKernel:701");
  assert_int_equal(run_twice(8), TN_ERR_UNSUPPORTED);
  contains(k.diag.text, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (too many resources requested");
  fail_at(NULL);
  ok(run_twice(8)); /* the device is not lost */
}

static void launches_beyond_what_a_launch_can_state_are_refused(void **state) {
  (void)state;
  ok(compile("twice", twice, 2));
  tn_program_spec s = spec_of("twice", twice, 0);
  diag_clear(&k.diag);
  assert_int_equal(driver_kernels_run(&k, &s, NULL, NULL, NULL, INT64_C(1) << 32, 8),
                   TN_ERR_UNSUPPORTED);
  contains(k.diag.text, "the launch of kernel twice has too many arguments or groups");
}

static void too_much_memory_is_refused(void **state) {
  (void)state;
  tn_buffer *b;
  tn_span span;
  ok(buffer_open(k.device, UINT64_C(1) << 60, &b, &k.diag));
  assert_int_equal(buffer_span(b, &span, &k.diag), TN_ERR_MEMORY);
  contains(k.diag.text, "CUDA:0 (stand-in 0): cuMemAlloc fails with CUDA_ERROR_OUT_OF_MEMORY");
  buffer_release(b);
}

static void a_limit_counts_the_devices_memory(void **state) {
  (void)state;
  driver_memory_check(&cuda_backend);
}

/** Fails at each call that can fail, and goes on when it does not any more. */
static void failures_of_each_call_are_told(void **state) {
  (void)state;
  static const struct {
    const char *fault, *said;
    tn_status status;
  } all[] = {
      {"cuMemAlloc:2", "cuMemAlloc fails with CUDA_ERROR_OUT_OF_MEMORY", TN_ERR_MEMORY},
      {"cuMemHostAlloc:2", "cuMemHostAlloc fails with CUDA_ERROR_OUT_OF_MEMORY", TN_ERR_MEMORY},
      {"cuMemcpyHtoDAsync:1", "cuMemcpyHtoDAsync fails with CUDA_ERROR_INVALID_VALUE",
       TN_ERR_DEVICE},
      {"cuMemcpyDtoHAsync:1", "cuMemcpyDtoHAsync fails with CUDA_ERROR_INVALID_VALUE",
       TN_ERR_DEVICE},
      {"cuMemsetD8Async:1", "cuMemsetD8Async fails with CUDA_ERROR_INVALID_VALUE", TN_ERR_DEVICE},
      {"cuMemcpyDtoDAsync:1", "cuMemcpyDtoDAsync fails with CUDA_ERROR_INVALID_VALUE",
       TN_ERR_DEVICE},
      {"cuStreamCreate:2", "cuStreamCreate fails with CUDA_ERROR_OUT_OF_MEMORY", TN_ERR_MEMORY},
      {"cuEventCreate:2", "cuEventCreate fails with CUDA_ERROR_OUT_OF_MEMORY", TN_ERR_MEMORY},
      {"cuEventRecord:400", "cuEventRecord fails with CUDA_ERROR_INVALID_HANDLE", TN_ERR_DEVICE},
      {"cuStreamWaitEvent:400", "cuStreamWaitEvent fails with CUDA_ERROR_INVALID_HANDLE",
       TN_ERR_DEVICE},
      {"cuEventSynchronize:1", "cuEventSynchronize fails with CUDA_ERROR_INVALID_VALUE",
       TN_ERR_DEVICE},
      {"cuCtxPushCurrent:201", "cuCtxPushCurrent fails with CUDA_ERROR_INVALID_CONTEXT",
       TN_ERR_DEVICE},
      {"cuModuleLoadDataEx:218", "cuModuleLoadDataEx fails with an unknown status", TN_ERR_FORMAT},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const tn_stream_functions *s = cuda_backend.streams;
    tn_failure f = {0};
    void *stream = NULL, *mark = NULL, *memory = NULL, *staging = NULL, *module = NULL;
    tn_status status = TN_OK;
    bool loads = strstr(all[i].fault, "Module") != NULL;
    image_head none = {.magic = IMAGE_MAGIC, .target = "sm_90a"};
    fail_at(all[i].fault);
    if (loads)
      status = cuda_backend.load(own(), &(tn_code){TN_CODE_BYTES, &none, sizeof none}, &module, &f);
    if (!status) status = cuda_backend.alloc(own(), BYTES, TN_MEMORY_DEVICE, &memory, &f);
    if (!status) status = cuda_backend.alloc(own(), BYTES, TN_MEMORY_STAGING, &staging, &f);
    if (!status) status = s->open(own(), TN_QUEUE_COPY, &stream, &f);
    if (!status) {
      const tn_span span = {k.device, memory, 0, BYTES / 2},
                    rest = {k.device, memory, BYTES / 2, BYTES / 2};
      void *host = cuda_backend.host(own(), staging);
      memset(host, 1, BYTES);
      const tn_work works[] = {{.kind = TN_WORK_FILL, .to = span, .fill = 1},
                               {.kind = TN_WORK_WRITE, .to = rest, .host = host},
                               {.kind = TN_WORK_COPY, .to = rest, .from = span},
                               {.kind = TN_WORK_READ, .from = rest, .host = host}};
      status = s->enqueue(stream, works, 4, &f);
    }
    if (!status) status = s->mark(stream, false, &mark, &f);
    if (!status) status = s->await(stream, mark, &f);
    if (!status) status = s->sync(mark, -1, &f);
    fail_at(NULL);
    if (status != all[i].status) fail_msg("%s: %d, %s", all[i].fault, (int)status, f.text);
    contains(f.text, "CUDA:0 (stand-in 0): ");
    contains(f.text, all[i].said);
    if (mark) s->mark_free(mark);
    if (stream) s->free(stream);
    if (staging) cuda_backend.free(own(), staging, BYTES);
    if (memory) cuda_backend.free(own(), memory, BYTES);
  }
}

/* Graphs. */

enum { ELEMENTS = 20, ARRAYS = 3 };

/** Launches of `twice` from one array to the next one, as a graph. */
typedef struct doubling {
  void *program, *stream, *graph;
  void *memory[ARRAYS];
  tn_span spans[ARRAYS - 1][2];
  int64_t n;
  tn_launch launches[ARRAYS - 1];
  tn_work works[ARRAYS - 1];
  tn_failure f;
} doubling;

static tn_span array_of(const doubling *g, size_t i) {
  return (tn_span){k.device, g->memory[i], 0, ELEMENTS * sizeof(float)};
}

static void set_doubling(doubling *g, size_t i, size_t to, size_t from) {
  g->spans[i][0] = array_of(g, to);
  g->spans[i][1] = array_of(g, from);
  g->launches[i] = (tn_launch){g->spans[i], 2, &g->n, 1};
  g->works[i] = (tn_work){.kind = TN_WORK_EXEC,
                          .program = g->program,
                          .global = {3, 1, 1},
                          .local = {8, 1, 1},
                          .launch = &g->launches[i]};
}

static tn_status make_doubling(doubling *g) {
  static const tn_work_edge edges[] = {{0, 1}};
  return cuda_backend.graphs->make(own(), g->works, ARRAYS - 1, edges, 1, &g->graph, &g->f);
}

static void open_doubling(doubling *g) {
  static const char *const names[] = {"n"};
  static const int64_t slots[] = {0, 1};
  static const tn_program_facts facts = {"twice", 2, 1, 0, -1, names, slots};
  memset(g, 0, sizeof *g);
  ok(compile("twice", twice, 2));
  ok(cuda_backend.program(k.module, &facts, &g->program, &g->f));
  ok(cuda_backend.streams->open(own(), TN_QUEUE_COMPUTE, &g->stream, &g->f));
  for (size_t i = 0; i < ARRAYS; i++)
    ok(cuda_backend.alloc(own(), ELEMENTS * sizeof(float), TN_MEMORY_DEVICE, &g->memory[i], &g->f));
  g->n = ELEMENTS;
  for (size_t i = 0; i + 1 < ARRAYS; i++) set_doubling(g, i, i + 1, i);
}

static void close_doubling(doubling *g) {
  if (g->graph) cuda_backend.graphs->free(g->graph);
  cuda_backend.streams->free(g->stream);
  cuda_backend.program_free(g->program);
  for (size_t i = 0; i < ARRAYS; i++)
    cuda_backend.free(own(), g->memory[i], ELEMENTS * sizeof(float));
}

/** Runs the graph on 0, 1, …, and compares the last array. */
static void check_doubling(doubling *g, float times) {
  float x[ELEMENTS], y[ELEMENTS];
  void *mark;
  tn_failure *f = &g->f;
  const tn_work write = {.kind = TN_WORK_WRITE, .to = array_of(g, 0), .host = x};
  const tn_work read = {.kind = TN_WORK_READ, .from = array_of(g, ARRAYS - 1), .host = y};
  for (int i = 0; i < ELEMENTS; i++) x[i] = (float)i;
  ok(cuda_backend.streams->enqueue(g->stream, &write, 1, f));
  ok(cuda_backend.graphs->run(g->stream, g->graph, f));
  ok(cuda_backend.streams->enqueue(g->stream, &read, 1, f));
  ok(cuda_backend.streams->mark(g->stream, false, &mark, f));
  ok(cuda_backend.streams->sync(mark, -1, f));
  cuda_backend.streams->mark_free(mark);
  for (int i = 0; i < ELEMENTS; i++) assert_float_equal(y[i], times * (float)i, 0);
}

static void graphs_run_and_change(void **state) {
  (void)state;
  doubling g;
  open_doubling(&g);
  ok(make_doubling(&g));
  for (int i = 0; i < 3; i++) check_doubling(&g, 4);
  set_doubling(&g, 1, 2, 0); /* no longer from the result of the first */
  ok(cuda_backend.graphs->set(g.graph, 1, &g.works[1], &g.f));
  check_doubling(&g, 2);
  set_doubling(&g, 1, 2, 1);
  ok(cuda_backend.graphs->set(g.graph, 1, &g.works[1], &g.f));
  check_doubling(&g, 4);
  close_doubling(&g);
}

/** Each call of the driver about graphs fails once; the next try succeeds. */
static void failures_of_graphs_are_told(void **state) {
  (void)state;
  static const struct {
    const char *fault, *said;
    tn_status status;
  } all[] = {
      {"cuGraphCreate:1", "cuGraphCreate fails with CUDA_ERROR_INVALID_VALUE", TN_ERR_UNSUPPORTED},
      {"cuGraphAddKernelNode:400", "cuGraphAddKernelNode fails with CUDA_ERROR_INVALID_HANDLE",
       TN_ERR_UNSUPPORTED},
      {"cuGraphAddKernelNode:400:2", "cuGraphAddKernelNode fails with", TN_ERR_UNSUPPORTED},
      {"cuGraphInstantiate:2", "cuGraphInstantiate fails with CUDA_ERROR_OUT_OF_MEMORY",
       TN_ERR_MEMORY},
      {"cuGraphExecKernelNodeSetParams:1", "cuGraphExecKernelNodeSetParams fails with",
       TN_ERR_UNSUPPORTED},
      {"cuGraphLaunch:701", "cuGraphLaunch fails with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
       TN_ERR_UNSUPPORTED},
      {"cuCtxPushCurrent:201", "cuCtxPushCurrent fails with", TN_ERR_DEVICE},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    doubling g;
    open_doubling(&g);
    fail_at(all[i].fault);
    tn_status status = make_doubling(&g);
    if (!status) status = cuda_backend.graphs->set(g.graph, 1, &g.works[1], &g.f);
    if (!status) status = cuda_backend.graphs->run(g.stream, g.graph, &g.f);
    fail_at(NULL);
    if (status != all[i].status) fail_msg("%s: %d, %s", all[i].fault, (int)status, g.f.text);
    contains(g.f.text, "CUDA:0 (stand-in 0): ");
    contains(g.f.text, all[i].said);
    if (!g.graph) ok(make_doubling(&g));
    check_doubling(&g, 4);
    close_doubling(&g);
  }
}

/** A kernel that fails loses the device: everything fails from then on, and says so. */
static void a_device_is_lost(void **state) {
  (void)state;
  ok(compile("twice", twice, 2));
  fail_at("kernel:700");
  assert_int_equal(run_twice(8), TN_ERR_DEVICE);
  contains(k.diag.text, "CUDA:0 (stand-in 0): ");
  contains(k.diag.text, "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  assert_true(atomic_load(&own()->is_lost));
  tn_failure f;
  void *memory;
  assert_int_equal(cuda_backend.alloc(own(), BYTES, TN_MEMORY_DEVICE, &memory, &f), TN_ERR_DEVICE);
  contains(f.text, "cuMemAlloc fails with CUDA_ERROR_ILLEGAL_ADDRESS");
  fail_at(NULL);
  void *stream;
  ok(cuda_backend.streams->open(own(), TN_QUEUE_COMPUTE, &stream, &f));
  assert_int_equal(cuda_backend.streams->enqueue(stream, NULL, 0, &f), TN_ERR_DEVICE);
  assert_string_equal(f.text, "CUDA:0 (stand-in 0) was lost");
  cuda_backend.streams->free(stream);
  atomic_store(&own()->is_lost, false); /* the stand-in found it again */
  ok(run_twice(8));
}

/** Workers of a group who wait at different barriers end the launch, as on hardware nobody knows.
 */
static void groups_that_part_are_found(void **state) {
  (void)state;
  static const char parts[] = "extern \"C\" __global__ void parts(float *b0) {\n"
                              "  if (threadIdx.x) __syncthreads();\n"
                              "}\n";
  tn_program_spec s = spec_of("parts", parts, 1);
  float x = 0;
  void *const data[] = {&x};
  const size_t bytes[] = {sizeof x};
  ok(compile("parts", parts, 1));
  assert_int_equal(driver_kernels_run(&k, &s, data, bytes, NULL, 1, 8), TN_ERR_DEVICE);
  contains(k.diag.text, "CUDA_ERROR_LAUNCH_FAILED");
  fail_at(NULL);
  atomic_store(&own()->is_lost, false);
}

/* Devices. */

static void devices_that_are_not_there(void **state) {
  (void)state;
  tn_device *v;
  diag d = {0};
  assert_int_equal(registry_open_device(k.registry, "CUDA:7", &v, &d), TN_ERR_DEVICE);
  assert_string_equal(d.text, "device CUDA:7: there are CUDA:0 to CUDA:1");
  fail_at("cuInit:999");
  assert_int_equal(registry_open_device(k.registry, "CUDA:1", &v, &d), TN_ERR_DEVICE);
  contains(d.text, "the CUDA driver does not start: cuInit fails with an unknown status");
  fail_at("cuDevicePrimaryCtxRetain:2");
  assert_int_equal(registry_open_device(k.registry, "CUDA:1", &v, &d), TN_ERR_DEVICE);
  contains(d.text, "cuDevicePrimaryCtxRetain fails with CUDA_ERROR_OUT_OF_MEMORY");
  fail_at(NULL);
}

/** NVRTC is found by its variable, or along folders, without being opened. */
static void nvrtc_is_found(void **state) {
  (void)state;
  char path[TOOLKIT_PATH_BYTES];
  diag d = {0};
  assert_int_equal(nvrtc_find(path, &d), TN_OK);
  contains(path, "/tests/cuda/libnvrtc.so.12");
  assert_int_equal(setenv("TENON_NVRTC", "/nowhere/libnvrtc.so.12", 1), 0);
  assert_int_equal(nvrtc_find(path, &d), TN_ERR_COMPILE);
  contains(d.text, "is missing (/nowhere/libnvrtc.so.12): install CUDA's toolkit");
  tn_failure f;
  assert_int_equal(cuda_backend.pairs[0].present(own(), NULL, &f), TN_ERR_COMPILE);
  assert_int_equal(compile("twice", twice, 2), TN_ERR_COMPILE);
  assert_int_equal(unsetenv("TENON_NVRTC"), 0);
  assert_int_equal(cuda_backend.pairs[0].present(own(), NULL, &f), TN_OK);
}

/** Finds the switches of the stand-in; false: the driver is another one, or none. */
static bool find_stand_in(void) {
  union {
    void *symbol;
    void (*call)(const char *);
  } found;
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  found.symbol = handle ? dlsym(handle, "stand_in_fail") : NULL;
  fail_at = found.call;
  return fail_at && !cuda_api_open(&driver, &k.diag);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_get_buffers_and_values),
      cmocka_unit_test(the_threads_context_is_left_alone),
      cmocka_unit_test(marks_are_waited_for_and_timed),
      cmocka_unit_test(times_are_counted_from_what_is_near),
      cmocka_unit_test(refused_sources_show_the_compilers_log),
      cmocka_unit_test(damaged_code_does_not_load),
      cmocka_unit_test(functions_that_are_missing),
      cmocka_unit_test(launches_that_are_refused_are_failures),
      cmocka_unit_test(launches_beyond_what_a_launch_can_state_are_refused),
      cmocka_unit_test(too_much_memory_is_refused),
      cmocka_unit_test(a_limit_counts_the_devices_memory),
      cmocka_unit_test(failures_of_each_call_are_told),
      cmocka_unit_test(graphs_run_and_change),
      cmocka_unit_test(failures_of_graphs_are_told),
      cmocka_unit_test(a_device_is_lost),
      cmocka_unit_test(groups_that_part_are_found),
      cmocka_unit_test(devices_that_are_not_there),
      cmocka_unit_test(nvrtc_is_found),
  };
  if (!driver_kernels_open(&k, &cuda_backend) || !find_stand_in()) {
    printf("SKIPPED: LD_LIBRARY_PATH does not lead to the stand-in driver: %s\n", k.diag.text);
    return SKIPPED;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  driver_kernels_close(&k);
  return failed;
}
