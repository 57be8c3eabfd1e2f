/* Builds a sample program for tests of devices and queues: out[i] = a[i] * scale + b[i] for i below
   n, divided among any number of workers. */
#ifndef TENON_TESTS_BACKEND_SAMPLE_H
#define TENON_TESTS_BACKEND_SAMPLE_H

#include <stdio.h>
#include <string.h>

#include <tenon/unstable/backend.h>

/* Values of a launch are core_count, core_id, n; buffers are out, a, b. */
enum { SAMPLE_COUNT, SAMPLE_ID, SAMPLE_N, SAMPLE_VALUES, SAMPLE_BUFFERS = 3, SAMPLE_MOST = 65536 };

/** Makes a program named `name`; NULL on failure. */
static inline tn_node sample_program(tn_ir *ir, const char *device, const char *name, int scale) {
  static const char form[] =
      "%%count = var i64 [min=1 max=4096] \"core_count\"\n"
      "%%n = var i64 [min=0 max=65536] \"n\"\n"
      "%%out = param f32 65536 [slot=0]\n"
      "%%a = param f32 65536 [slot=1]\n"
      "%%b = param f32 65536 [slot=2]\n"
      "%%one = const i64 1\n"
      "%%scale = const f32 %d.0\n"
      "%%id = special i64 %%count \"core_id\"\n"
      "%%low = mul i64 %%id %%n\n"
      "%%first = cdiv i64 %%low %%count\n"
      "%%next = add i64 %%id %%one\n"
      "%%high = mul i64 %%next %%n\n"
      "%%last = cdiv i64 %%high %%count\n"
      "%%share = sub i64 %%last %%first\n"
      "%%r = range i64 %%share [id=0 kind=loop axis=0 tail=0]\n"
      "%%i = add i64 %%first %%r\n"
      "%%x = load f32 %%a %%i\n"
      "%%y = load f32 %%b %%i\n"
      "%%p = mul f32 %%x %%scale\n"
      "%%s = add f32 %%p %%y\n"
      "%%put = store void %%out %%i %%s\n"
      "%%end = end void %%r %%put\n"
      "%%l = linear void %%id %%low %%first %%next %%high %%last %%share %%r %%i %%x %%y %%p %%s "
      "%%put %%end\n"
      "%%k = sink void %%end \"%s\"\n"
      "%%d = device void \"%s\"\n"
      "%%program = program void %%k %%d %%l\n"
      "return %%program\n";
  char text[sizeof form + 128];
  int n = snprintf(text, sizeof text, form, scale, name, device);
  return tn_ir_parse(ir, text, (size_t)n);
}

/** Arguments of a launch and the memory that they point to. */
typedef struct sample_launch {
  tn_span spans[SAMPLE_BUFFERS];
  int64_t values[SAMPLE_VALUES];
  tn_launch launch;
} sample_launch;

static inline void sample_set(sample_launch *l, tn_buffer *const buffers[SAMPLE_BUFFERS], int64_t n,
                              int64_t workers) {
  memset(l, 0, sizeof *l);
  for (int i = 0; i < SAMPLE_BUFFERS; i++) tn_buffer_span(buffers[i], &l->spans[i], NULL);
  l->values[SAMPLE_COUNT] = workers;
  l->values[SAMPLE_N] = n;
  l->launch.buffers = l->spans;
  l->launch.n_buffers = SAMPLE_BUFFERS;
  l->launch.values = l->values;
  l->launch.n_values = SAMPLE_VALUES;
}

#endif
