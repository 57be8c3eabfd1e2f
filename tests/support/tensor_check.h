/* Helpers of tests of the public interface: checks of tensors, statuses and messages, an allocator
   that counts live bytes and fails at a chosen call, and the process's resident memory. */
#ifndef TENON_TESTS_TENSOR_CHECK_H
#define TENON_TESTS_TENSOR_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

/** Allocator that counts calls and allocated bytes, and fails at one call. */
typedef struct counting {
  atomic_size_t calls, out;
  size_t fail_at; /* 0: never */
  int destroyed;
} counting;

static inline void *counting_alloc(void *user, size_t bytes, size_t align) {
  counting *c = user;
  if (atomic_fetch_add(&c->calls, 1) + 1 == c->fail_at) return NULL;
  size_t least = align < sizeof(void *) ? sizeof(void *) : align;
  void *at = aligned_alloc(least, (bytes + least - 1) / least * least);
  if (at) atomic_fetch_add(&c->out, bytes);
  return at;
}

static inline void counting_release(void *user, void *at, size_t bytes) {
  atomic_fetch_sub(&((counting *)user)->out, bytes);
  free(at);
}

static inline void counting_destroy(void *user) { ((counting *)user)->destroyed++; }

static inline tn_context *open_counting(counting *c, const char *device) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = device;
  d.threads = 1;
  d.allocator = (tn_allocator){counting_alloc, counting_release, c, counting_destroy};
  return tn_open(&d);
}

static inline void check_ok(tn_context *c, tn_status s) {
  if (s != TN_OK) fail_msg("status %d: %s", (int)s, tn_message(c));
}

/** Set-up and tear-down for cmocka: the state is a context of the default device. */
static inline int open_context(void **state) {
  *state = tn_open(NULL);
  return *state ? 0 : -1;
}

static inline int close_context(void **state) { return (int)tn_close(*state); }

static inline void check_bound(tn_binding *b, tn_status s) {
  if (s != TN_OK) fail_msg("status %d: %s", (int)s, tn_binding_message(b));
}

/** Makes a rank-1 f32 tensor. */
static inline tn_tensor *floats(tn_context *c, size_t n, const float *x) {
  return tn_from_host(c, tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x);
}

static inline void check_floats(tn_context *c, tn_tensor *t, size_t n, const float *expected) {
  float got[64];
  assert_true(n <= 64);
  check_ok(c, tn_read(t, TN_F32, got, n * sizeof *got));
  for (size_t i = 0; i < n; i++)
    if (got[i] != expected[i]) fail_msg("element %zu is %g, not %g", i, got[i], expected[i]);
}

/** Compiles a plan of `n` outputs and returns a binding of it; `desc` may be NULL. */
static inline tn_binding *bind_compiled(tn_context *c, tn_tensor *const out[], size_t n,
                                        const tn_plan_desc *desc) {
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, out, n, desc, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  tn_plan_free(plan);
  return b;
}

static inline void check_output_floats(tn_binding *b, const char *name, size_t n,
                                       const float *expected) {
  float got[64];
  assert_true(n <= 64);
  check_bound(b, tn_binding_read(b, name, TN_F32, got, n * sizeof *got));
  for (size_t i = 0; i < n; i++)
    if (got[i] != expected[i]) fail_msg("element %zu is %g, not %g", i, got[i], expected[i]);
}

#define FLOATS(...) \
  sizeof((float[]){__VA_ARGS__}) / sizeof(float), (const float[]) { __VA_ARGS__ }

static inline void check_text(const char *text, const char *part) {
  const char *said = text ? text : "";
  if (!strstr(said, part)) fail_msg("\"%s\" does not say \"%s\"", said, part);
}

/* 1 under a sanitizer that keeps freed memory, for checks of memory use. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

/** Returns the process's resident memory in KiB; 0 if unknown. */
static inline long resident_kib(void) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %ld", &kib);
  if (f) fclose(f);
  return kib;
}

#endif
