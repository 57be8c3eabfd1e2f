/* Tests the OPENCL backend on the first device (PoCL where tests run): groups that meet at barriers
   and share arrays, divisions of drivers that do not round correctly, marks and their times, and
   the failures of compilation, loading, launches and memory, which name the device. Skipped where
   there is none. Results of kernels are compared by unit.render, random.graphs and pairs.opencl,
   streams by random.queues. */
#include "base/library.h"
#include "compile/program_spec.h"
#include "device/core/device.h"
#include "device/core/output.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "device/opencl/opencl_backend.h"
#include "device/opencl/opencl_device.h"
#include "support/driver_kernels.h"
#include "support/driver_marks.h"
#include "support/driver_memory.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

static driver_kernels k;

static void ok(tn_status status) {
  if (status) fail_msg("%s", k.diag.text);
}

static void contains(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* Libraries. */

static void libraries_that_are_missing(void **state) {
  (void)state;
  void *at[2];
  diag d = {0};
  static const char *const names[] = {"malloc", "clGetNothing"};
  library l = {"libmissing.so.7", "the loader", "OpenCL 9.9", "install it", names, 2, 0};
  assert_int_equal(library_open(&l, at, &d), TN_ERR_DEVICE);
  contains(d.text, "the loader is missing (libmissing.so.7");
  contains(d.text, "install it");
  l.file = "libc.so.6";
  assert_int_equal(library_open(&l, at, &d), TN_ERR_DEVICE);
  assert_string_equal(d.text, "the loader has no clGetNothing (OpenCL 9.9 needed): install it");
  l.n_names = 1;
  assert_int_equal(library_open(&l, at, &d), TN_OK);
  assert_non_null(at[0]);
}

static void statuses_have_names(void **state) {
  (void)state;
  char text[OPENCL_STATUS_BYTES];
  assert_string_equal(opencl_status_name(-37, text), "CL_INVALID_HOST_PTR");
  assert_string_equal(opencl_status_name(-99, text), "status -99");
}

/* Kernels. */

/** A group turns an array and negates it in place: each value is read before the second barrier,
   and its place is stored to after that. */
static const char turn[] = "%n = const i64 8\n"
                           "%groups = const i64 3\n"
                           "%seven = const i64 7\n"
                           "%minus = const i64 -1\n"
                           "%out = param f32 24 [slot=0]\n"
                           "%x = param f32 24 [slot=1]\n"
                           "%g = special i64 %groups \"g0\"\n"
                           "%l = special i64 %n \"l0\"\n"
                           "%base = mul i64 %g %n\n"
                           "%at = add i64 %base %l\n"
                           "%back = mul i64 %l %minus\n"
                           "%other = add i64 %back %seven\n"
                           "%shared = alloc f32 %n [id=1 space=3]\n"
                           "%v = load f32 %x %at\n"
                           "%first = store void %shared %l %v\n"
                           "%met = barrier void [id=2 space=3]\n"
                           "%a = after f32 %shared %first\n"
                           "%w = load f32 %a %other\n"
                           "%again = barrier void [id=3 space=3]\n"
                           "%neg = neg f32 %w\n"
                           "%second = store void %a %l %neg\n"
                           "%last = barrier void [id=4 space=3]\n"
                           "%b = after f32 %a %second\n"
                           "%y = load f32 %b %other\n"
                           "%put = store void %out %at %y\n"
                           "%list = linear void %g %l %base %at %back %other %shared %v %first "
                           "%met %w %again %neg %second %last %y %put\n"
                           "%k = sink void %put \"turn\"\n"
                           "%d = device void \"OPENCL\"\n"
                           "%program = program void %k %d %list\n"
                           "return %program\n";

enum { TURNED = 24 };

static tn_program *compile_turn(tn_device *device) {
  tn_ir *ir;
  tn_failure f;
  tn_program *p;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node node = tn_ir_parse(ir, turn, sizeof turn - 1);
  if (!node) fail_msg("%s", tn_ir_message(ir));
  if (tn_program_compile(device, ir, &node, 1, &p, &f)) fail_msg("%s", f.text);
  tn_ir_close(ir);
  return p;
}

static void fill_numbers(float x[], int first) {
  for (int i = 0; i < TURNED; i++) x[i] = (float)(i * i - first);
}

/** Runs the kernel from one span to another and compares with what the first one held. */
static void check_turn(tn_program *p, tn_span to, tn_span from, const float x[]) {
  float y[TURNED];
  tn_failure f;
  if (tn_program_execute(p, &(tn_launch){(tn_span[]){to, from}, 2, NULL, 0}, &f))
    fail_msg("%s", f.text);
  ok(span_read(&to, DT_F32, DT_F32, y, TURNED, &k.diag));
  for (int i = 0; i < TURNED; i++) assert_float_equal(y[i], -x[i], 0);
}

static tn_span open_span(tn_device *device, tn_buffer **buffer) {
  tn_span span;
  ok(buffer_open(device, TURNED * sizeof(float), buffer, &k.diag));
  ok(buffer_span(*buffer, &span, &k.diag));
  return span;
}

static void run_turn(tn_device *device) {
  float x[TURNED];
  tn_buffer *buffers[2];
  tn_program *p = compile_turn(device);
  tn_span to = open_span(device, &buffers[0]), from = open_span(device, &buffers[1]);
  fill_numbers(x, 3);
  ok(span_write(&from, DT_F32, DT_F32, x, TURNED, &k.diag));
  check_turn(p, to, from, x);
  for (int i = 0; i < 2; i++) buffer_release(buffers[i]);
  tn_program_free(p);
}

static void groups_meet_at_barriers(void **state) {
  (void)state;
  run_turn(k.device);
}

/** Two devices of one driver that are equal but for their names have code of their own. */
static void code_is_a_devices_own(void **state) {
  (void)state;
  tn_device *other;
  if (registry_open_device(k.registry, "OPENCL:1", &other, &k.diag)) skip();
  run_turn(k.device);
  run_turn(other);
}

/** A driver for the processor reads the caller's memory, at any alignment, as it is at the time. */
static void memory_of_the_host_is_used_in_place(void **state) {
  (void)state;
  float data[TURNED + 1], *x = data + 1;
  const opencl_device *v = k.device->state;
  tn_buffer *imported, *result;
  tn_span from;
  tn_status s =
      buffer_import(k.device, x, sizeof data - sizeof *data, NULL, NULL, &imported, &k.diag);
  assert_int_equal(s, v->facts.type & CL_DEVICE_TYPE_CPU ? TN_OK : TN_ERR_UNSUPPORTED);
  if (s) return;
  tn_program *p = compile_turn(k.device);
  tn_span to = open_span(k.device, &result);
  ok(buffer_span(imported, &from, &k.diag));
  for (int first = 3; first < 5; first++) {
    fill_numbers(x, first);
    check_turn(p, to, from, x);
  }
  buffer_release(imported);
  buffer_release(result);
  tn_program_free(p);
}

static tn_program_spec spec_of(const char *entry, const char *source, size_t n_globals) {
  return (tn_program_spec){.name = entry,
                           .entry = entry,
                           .source = source,
                           .source_bytes = strlen(source),
                           .n_globals = n_globals,
                           .core_id = -1};
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/** A number of any exponent; now and then zero, a subnormal number, an infinity or NaN. */
static float any_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  uint32_t bits = (uint32_t)(*state >> 32);
  if (bits % 16 == 3) bits &= 0x80ffffff;
  if (bits % 16 == 5) bits &= 0xff800000;
  if (bits % 16 == 7) bits &= 0xffff0000;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void same(const char *what, float a, float b, float got, float want) {
  if (bits_of(got) != bits_of(want) && !(isnan(got) && isnan(want)))
    fail_msg("%s of %a and %a is %a, not %a", what, (double)a, (double)b, (double)got,
             (double)want);
}

/** Devices that need not round correctly get functions of the library's. */
static void own_divisions_are_correctly_rounded(void **state) {
  (void)state;
  enum { N = 1 << 16, BUFFERS = 4 };
  static const char source[] =
      "#ifdef ROUNDED\n#error the library's own division is not tested\n#endif\n"
      "__kernel void divide(__global uchar *b0, ulong o0, __global uchar *b1, ulong o1,\n"
      "                     __global uchar *b2, ulong o2, __global uchar *b3, ulong o3) {\n"
      "  __global const float *a = (__global float *)(b0 + o0), *b = (__global float *)(b1 + o1);\n"
      "  __global float *q = (__global float *)(b2 + o2), *r = (__global float *)(b3 + o3);\n"
      "  size_t i = 2 * get_global_id(0);\n"
      "  vstore2(divided_float2(vload2(0, a + i), vload2(0, b + i)), 0, q + i);\n"
      "  for (int n = 0; n < 2; n++) r[i + n] = root_float(a[i + n]);\n"
      "}\n";
  tn_program_spec s = spec_of("divide", source, BUFFERS);
  const tn_program_spec *all[] = {&s};
  ok(driver_kernels_compile(&k, "opencl", all, 1));
  static float a[N], b[N], q[N], r[N];
  uint64_t random = 1;
  for (int i = 0; i < N; i++) a[i] = any_number(&random), b[i] = any_number(&random);
  void *const data[BUFFERS] = {a, b, q, r};
  const size_t bytes[BUFFERS] = {sizeof a, sizeof b, sizeof q, sizeof r};
  ok(driver_kernels_run(&k, &s, data, bytes, NULL, N / 128, 64));
  for (int i = 0; i < N; i++) {
    same("the quotient", a[i], b[i], q[i], a[i] / b[i]);
    same("the root", a[i], 0, r[i], sqrtf(a[i]));
  }
}

/* Failures. */

static void refused_sources_show_the_drivers_log(void **state) {
  (void)state;
  tn_program_spec s = spec_of("wrong", "__kernel void wrong(int a) { return nobody_knows; }\n", 0);
  const tn_program_spec *all[] = {&s};
  assert_int_equal(driver_kernels_compile(&k, NULL, all, 1), TN_ERR_COMPILE);
  contains(k.diag.text, "OPENCL:0 (");
  contains(k.diag.text, "clBuildProgram of wrong fails with CL_BUILD_PROGRAM_FAILURE");
  contains(k.diag.text, "nobody_knows");
}

static void damaged_code_does_not_load(void **state) {
  (void)state;
  void *module;
  static const char *const texts[] = {"B", "BRno binary", "SR__kernel void f(int a { }", "S-"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tn_failure f;
    const tn_code code = {TN_CODE_BYTES, texts[i], strlen(texts[i])};
    tn_status status = opencl_backend.load(k.device->state, &code, &module, &f);
    if (!i) assert_int_equal(status, TN_ERR_FORMAT);
    if (status) continue;
    const tn_program_facts facts = {.entry = "f", .core_id = -1};
    void *program; /* a driver may see the damage when a kernel is asked for */
    assert_int_not_equal(opencl_backend.program(module, &facts, &program, &f), TN_OK);
    opencl_backend.unload(module);
  }
}

static void launches_that_the_driver_refuses_are_failures(void **state) {
  (void)state;
  static const char source[] =
      "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
      "void eight(__global uchar *b0, ulong o0) { b0[o0 + get_global_id(0)] = 8; }\n";
  tn_program_spec s = spec_of("eight", source, 1);
  const tn_program_spec *all[] = {&s};
  ok(driver_kernels_compile(&k, NULL, all, 1));
  uint8_t bytes[64] = {0};
  void *const data[] = {bytes};
  const size_t sizes[] = {sizeof bytes};
  ok(driver_kernels_run(&k, &s, data, sizes, NULL, 8, 8));
  for (int i = 0; i < 64; i++) assert_int_equal(bytes[i], 8);
  assert_int_equal(driver_kernels_run(&k, &s, data, sizes, NULL, 4, 16), TN_ERR_UNSUPPORTED);
  contains(k.diag.text, "OPENCL:0 (");
  contains(k.diag.text, "clEnqueueNDRangeKernel of kernel eight fails with CL_INVALID_WORK_GROUP");
}

static void too_much_memory_is_refused(void **state) {
  (void)state;
  tn_buffer *b;
  tn_span span;
  ok(buffer_open(k.device, UINT64_C(1) << 60, &b, &k.diag));
  assert_int_equal(buffer_span(b, &span, &k.diag), TN_ERR_MEMORY);
  contains(k.diag.text, "one buffer of OPENCL:0 has");
  buffer_release(b);
}

static void a_limit_counts_the_devices_memory(void **state) {
  (void)state;
  driver_memory_check(&opencl_backend);
}

static void devices_that_are_not_there(void **state) {
  (void)state;
  tn_device *v;
  diag d = {0};
  assert_int_equal(registry_open_device(k.registry, "OPENCL:77", &v, &d), TN_ERR_DEVICE);
  contains(d.text, "device OPENCL:77: there ");
}

/* Marks. */

static void marks_are_waited_for_and_timed(void **state) {
  (void)state;
  driver_marks_check(&k);
}

/* Losses. */

static cl_status no_marker(cl_queue queue, uint32_t n, const cl_event *events, cl_event *event) {
  (void)queue, (void)n, (void)events, (void)event;
  return -36;
}

/** Advice of the driver's leaves a device usable; only one that then fails its trial is lost. */
static void notifications_are_tried(void **state) {
  (void)state;
  const tn_stream_functions *s = opencl_backend.streams;
  opencl_device *v = k.device->state;
  void *stream, *mark;
  tn_failure *f = &k.diag.failure;
  ok(s->open(v, TN_QUEUE_COMPUTE, &stream, f));
  opencl_note("the work group is small", NULL, 0, v);
  ok(s->enqueue(stream, NULL, 0, f));
  ok(s->mark(stream, false, &mark, f));
  opencl_note("the work group is still small", NULL, 0, v);
  ok(s->sync(mark, -1, f));
  opencl_api own = v->cl;
  v->cl.EnqueueMarkerWithWaitList = no_marker;
  ok(s->enqueue(stream, NULL, 0, f)); /* nothing was noted since */
  opencl_note("the work group hangs", NULL, 0, v);
  assert_int_equal(s->enqueue(stream, NULL, 0, f), TN_ERR_DEVICE);
  contains(f->text, "was lost");
  v->cl = own;
  assert_int_equal(s->sync(mark, -1, f), TN_ERR_DEVICE);
  atomic_store(&v->is_lost, false);
  s->mark_free(mark);
  s->free(stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(libraries_that_are_missing),
      cmocka_unit_test(statuses_have_names),
      cmocka_unit_test(groups_meet_at_barriers),
      cmocka_unit_test(code_is_a_devices_own),
      cmocka_unit_test(memory_of_the_host_is_used_in_place),
      cmocka_unit_test(own_divisions_are_correctly_rounded),
      cmocka_unit_test(refused_sources_show_the_drivers_log),
      cmocka_unit_test(damaged_code_does_not_load),
      cmocka_unit_test(launches_that_the_driver_refuses_are_failures),
      cmocka_unit_test(too_much_memory_is_refused),
      cmocka_unit_test(a_limit_counts_the_devices_memory),
      cmocka_unit_test(devices_that_are_not_there),
      cmocka_unit_test(marks_are_waited_for_and_timed),
      cmocka_unit_test(notifications_are_tried),
  };
  setenv("POCL_DEVICES", "pthread basic", 0); /* PoCL: two devices of different names */
  setenv("POCL_MAX_PTHREAD_COUNT", "1", 0);   /* and of as many cores */
  if (!driver_kernels_open(&k, &opencl_backend)) {
    printf("SKIPPED: no OpenCL device (on Debian: apt install pocl-opencl-icd "
           "ocl-icd-libopencl1): %s\n",
           k.diag.text);
    return SKIPPED;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  driver_kernels_close(&k);
  return failed;
}
