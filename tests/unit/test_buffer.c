/* Tests device memory: the caching allocator's reuse and budget of blocks, buffers with late
   allocation and reference counts, views, copies between devices, and typed reads and writes that
   convert elements, for memory that is visible to the host and memory that is not. */
#include "../backend/ref.c"
#include "device/memory/buffer.h"
#include "device/memory/caching_allocator.h"
#include "device/memory/convert_elements.h"
#include "device/memory/span.h"
#include "device/registry/device_registry.h"
#include "support/counting_mem.h"
#include "support/zero.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <time.h>

typedef struct fixture {
  diag diag;
  counting_mem counting;
  mem mem;
  registry *registry;
  tn_device *cpu, *ref, *other;
} fixture;

static void ok(fixture *f, tn_status status) {
  if (status) fail_msg("%s", f->diag.text);
}

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  f.mem = counting_mem_of(&f.counting);
  ok(&f, registry_open(&f.registry, &(registry_desc){.mem = &f.mem, .threads = 2}, &f.diag));
  ok(&f, registry_add_backend(f.registry, &ref_backend, &f.diag));
  ok(&f, registry_open_device(f.registry, "CPU", &f.cpu, &f.diag));
  ok(&f, registry_open_device(f.registry, "REF", &f.ref, &f.diag));
  ok(&f, registry_open_device(f.registry, "REF:1", &f.other, &f.diag));
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  registry_close(f->registry);
  return f->counting.bytes != 0;
}

/* Blocks. */

static block *take_block(fixture *f, uint64_t bytes) {
  block *b;
  ok(f, caching_allocator_alloc(f->cpu->allocator, bytes, NULL, &b, &f->diag));
  assert_true(b->bytes >= bytes && b->bytes <= bytes + bytes / 8 + 64);
  assert_int_equal((uintptr_t)b->memory % 64, 0);
  memset(b->memory, 1, bytes);
  return b;
}

static void blocks_are_reused(void **state) {
  fixture *f = *state;
  caching_allocator *b = f->cpu->allocator;
  block *first = take_block(f, 1000), *second = take_block(f, 5000);
  caching_allocator_release(b, first);
  assert_int_equal(caching_allocator_cached_bytes(b), first->bytes);
  size_t calls = f->counting.calls;
  assert_ptr_equal(take_block(f, 990), first);
  assert_int_equal(f->counting.calls, calls);
  assert_int_equal(caching_allocator_cached_bytes(b), 0);
  block *none = take_block(f, 0);
  assert_ptr_not_equal(none, first);
  caching_allocator_release(b, none);
  caching_allocator_release(b, first);
  caching_allocator_release(b, second);
  caching_allocator_release(b, NULL);
  block *large = take_block(f, 1 << 22);
  assert_int_equal((uintptr_t)large->memory % (1 << 21), 0);
  caching_allocator_release(b, large);
  caching_allocator_trim(b, 0);
  assert_int_equal(caching_allocator_cached_bytes(b), 0);
}

static void budget_bounds_what_is_kept(void **state) {
  fixture *f = *state;
  caching_allocator *b = f->cpu->allocator;
  block *k[8];
  caching_allocator_set_budget(b, 5 * 4096);
  for (int i = 0; i < 8; i++) k[i] = take_block(f, 4096);
  for (int i = 0; i < 8; i++) caching_allocator_release(b, k[i]);
  assert_int_equal(caching_allocator_cached_bytes(b), 5 * 4096);
  block *newest = take_block(f, 4096);
  assert_ptr_equal(newest, k[7]);
  caching_allocator_release(b, newest);
  caching_allocator_set_budget(b, 4096);
  assert_int_equal(caching_allocator_cached_bytes(b), 4096);
  assert_ptr_equal(take_block(f, 4096), k[7]);
  caching_allocator_release(b, k[7]);
  caching_allocator_release(b, take_block(f, 100000));
  assert_true(caching_allocator_cached_bytes(b) <= 4096);
}

/** Size classes grow by at most an eighth and include the largest size. */
static void blocks_have_every_size(void **state) {
  fixture *f = *state;
  caching_allocator *b = f->cpu->allocator;
  uint64_t last = 0;
  for (uint64_t bytes = 1; bytes < 1 << 16; bytes++) {
    block *k;
    ok(f, caching_allocator_alloc(b, bytes, NULL, &k, &f->diag));
    assert_true(k->bytes >= bytes && k->bytes <= bytes + bytes / 8 + 64 && k->bytes >= last);
    last = k->bytes;
    caching_allocator_release(b, k);
  }
  caching_allocator_trim(b, 0);
  f->counting.limit = 1 << 20;
  block *none;
  assert_int_equal(caching_allocator_alloc(b, UINT64_MAX / 4, NULL, &none, &f->diag),
                   TN_ERR_MEMORY);
}

/** Returns processor seconds for allocating and freeing blocks of one size while `count` others are
    cached. */
static double time_of_blocks(fixture *f, size_t count) {
  caching_allocator *b = f->cpu->allocator;
  block **k = malloc(count * sizeof *k);
  clock_t start = clock();
  for (uint64_t bytes = 64; bytes <= 128; bytes += 64) {
    for (size_t i = 0; i < count; i++)
      ok(f, caching_allocator_alloc(b, bytes, NULL, &k[i], &f->diag));
    for (size_t i = 0; i < count; i++) caching_allocator_release(b, k[i]);
  }
  assert_int_equal(caching_allocator_cached_bytes(b), count * 192);
  caching_allocator_trim(b, 0);
  free(k);
  return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/** Allocation does not search the cache: a search would take a hundred times as long with ten times
    the blocks. */
static void many_blocks_are_kept(void **state) {
  double few = time_of_blocks(*state, 4000), many = time_of_blocks(*state, 40000);
  print_message("4,000 blocks %.2f s, 40,000 blocks %.2f s\n", few, many);
  assert_true(many < 40 * few + 0.5);
}

static void what_is_kept_goes_before_memory_runs_out(void **state) {
  fixture *f = *state;
  caching_allocator *b = f->cpu->allocator;
  caching_allocator_release(b, take_block(f, 1 << 20));
  f->counting.limit = f->counting.bytes + (1 << 18);
  block *k;
  ok(f, caching_allocator_alloc(b, 1 << 19, NULL, &k, &f->diag));
  assert_int_equal(caching_allocator_cached_bytes(b), 0);
  block *none;
  assert_int_equal(caching_allocator_alloc(b, 1 << 21, NULL, &none, &f->diag), TN_ERR_MEMORY);
  assert_null(none);
  assert_int_equal(caching_allocator_alloc(b, UINT64_MAX, NULL, &none, &f->diag), TN_ERR_MEMORY);
  f->counting.limit = 0;
  caching_allocator_release(b, k);
}

/* Buffers. */

static void buffers_allocate_late(void **state) {
  fixture *f = *state;
  tn_buffer *b, *v;
  tn_span s;
  block *waiting = take_block(f, 4096);
  uint64_t bytes = waiting->bytes;
  caching_allocator_release(f->cpu->allocator, waiting);
  ok(f, buffer_open(f->cpu, 4096, &b, &f->diag));
  ok(f, buffer_view(b, 1024, 512, &v, &f->diag));
  assert_int_equal(caching_allocator_cached_bytes(f->cpu->allocator), bytes);
  ok(f, buffer_span(v, &s, &f->diag));
  assert_int_equal(caching_allocator_cached_bytes(f->cpu->allocator), 0);
  assert_int_equal(s.offset, 1024);
  assert_int_equal(s.bytes, 512);
  assert_int_equal(buffer_bytes(v), 512);
  assert_ptr_equal(s.device, f->cpu);
  tn_span whole;
  ok(f, buffer_span(b, &whole, &f->diag));
  assert_ptr_equal(whole.memory, s.memory);
  buffer_release(b);
  assert_int_equal(caching_allocator_cached_bytes(f->cpu->allocator),
                   0); /* the view keeps the memory */
  buffer_release(v);
  assert_int_equal(caching_allocator_cached_bytes(f->cpu->allocator), bytes);
  buffer_release(NULL);
}

static void views_of_views(void **state) {
  fixture *f = *state;
  tn_buffer *b, *v, *w, *none;
  tn_span s;
  ok(f, buffer_open(f->ref, 100, &b, &f->diag));
  ok(f, buffer_view(b, 10, 80, &v, &f->diag));
  ok(f, buffer_view(v, 20, 60, &w, &f->diag));
  buffer_release(v);
  ok(f, buffer_span(w, &s, &f->diag));
  assert_int_equal(s.offset, 30);
  assert_int_equal(buffer_view(w, 20, 41, &none, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text,
                      "a view of 41 bytes at offset 20 exceeds the buffer of 60 bytes");
  assert_int_equal(buffer_view(w, 61, 0, &none, &f->diag), TN_ERR_ARGUMENT);
  assert_int_equal(buffer_view(w, 1, UINT64_MAX, &none, &f->diag), TN_ERR_ARGUMENT);
  assert_null(none);
  ok(f, buffer_view(w, 60, 0, &none, &f->diag));
  buffer_release(none);
  buffer_release(b);
  buffer_release(w);
}

static void buffers_are_cleared_when_asked(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu, f->ref};
  for (int i = 0; i < 2; i++) {
    tn_buffer *b;
    tn_span s;
    uint32_t seen[300];
    ok(f, buffer_open(devices[i], sizeof seen, &b, &f->diag));
    ok(f, zero_buffer(b, &f->diag));
    ok(f, buffer_span(b, &s, &f->diag));
    ok(f, span_read(&s, DT_U32, DT_U32, seen, 300, &f->diag));
    for (int k = 0; k < 300; k++) assert_int_equal(seen[k], 0);
    buffer_release(b);
  }
}

/** Reused memory, too, is 0 when a buffer is opened as zeroed, also through a view. */
static void buffers_open_zeroed(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu, f->ref};
  for (int i = 0; i < 4; i++) {
    tn_buffer *b, *view;
    tn_span s;
    tn_failure why;
    uint32_t seen[300], ones[300];
    memset(ones, 255, sizeof ones);
    if (tn_buffer_open_zeroed(devices[i % 2], sizeof seen, &b, &why)) fail_msg("%s", why.text);
    ok(f, buffer_view(b, 0, sizeof seen, &view, &f->diag));
    ok(f, buffer_span(view, &s, &f->diag));
    ok(f, span_read(&s, DT_U32, DT_U32, seen, 300, &f->diag));
    for (int k = 0; k < 300; k++) assert_int_equal(seen[k], 0);
    ok(f, span_write(&s, DT_U32, DT_U32, ones, 300, &f->diag));
    ok(f, buffer_span(b, &s, &f->diag)); /* only the first use sets them */
    ok(f, span_read(&s, DT_U32, DT_U32, seen, 300, &f->diag));
    assert_memory_equal(seen, ones, sizeof seen);
    buffer_release(view);
    buffer_release(b);
  }
  assert_int_equal(tn_buffer_open_zeroed(NULL, 1, &(tn_buffer *){NULL}, NULL), TN_ERR_ARGUMENT);
}

static void freed_blocks_are_trimmed(void **state) {
  fixture *f = *state;
  enum { BYTES = 1 << 16 };
  tn_device_trim(f->cpu, 0);
  size_t before = f->counting.bytes;
  for (int i = 1; i <= 3; i++) {
    tn_buffer *b;
    tn_span s;
    ok(f, buffer_open(f->cpu, (uint64_t)i * BYTES, &b, &f->diag));
    ok(f, buffer_span(b, &s, &f->diag));
    buffer_release(b);
  }
  assert_int_equal(tn_device_trim(f->cpu, 6 * BYTES), 6 * BYTES);
  assert_int_equal(tn_device_trim(f->cpu, 5 * BYTES), 5 * BYTES);
  assert_int_equal(tn_device_trim(f->cpu, 5 * BYTES - 1), 3 * BYTES);
  assert_int_equal(tn_device_trim(f->cpu, 0), 0);
  assert_int_equal(f->counting.bytes, before);
  assert_int_equal(tn_device_trim(NULL, 0), 0);
}

static void note(void *user) { ++*(int *)user; }

static void host_memory_is_used_as_it_is(void **state) {
  fixture *f = *state;
  float data[4] = {1, 2, 3, 4}, seen[2];
  int destroyed = 0;
  tn_buffer *b, *v;
  tn_span s;
  ok(f, buffer_import(f->cpu, data, sizeof data, note, &destroyed, &b, &f->diag));
  ok(f, buffer_view(b, 8, 8, &v, &f->diag));
  buffer_release(b);
  ok(f, buffer_span(v, &s, &f->diag));
  assert_ptr_equal(span_host_pointer(&s), data + 2);
  data[3] = 9;
  ok(f, span_read(&s, DT_F32, DT_F32, seen, 2, &f->diag));
  assert_true(seen[0] == 3 && seen[1] == 9);
  assert_int_equal(destroyed, 0);
  buffer_release(v);
  assert_int_equal(destroyed, 1);
  assert_int_equal(buffer_import(f->ref, data, sizeof data, note, &destroyed, &b, &f->diag),
                   TN_ERR_UNSUPPORTED);
  assert_null(b);
  assert_int_equal(destroyed, 2);
  for (int i = 0; i < 2; i++) {
    tn_device *v = i ? f->ref : f->cpu;
    assert_int_equal(buffer_import(v, NULL, 4, note, &destroyed, &b, &f->diag), TN_ERR_ARGUMENT);
    assert_string_equal(f->diag.text, "the memory to import is NULL");
  }
  assert_int_equal(destroyed, 4);
}

typedef struct sharing {
  tn_buffer *buffer;
  tn_span seen;
} sharing;

static void *share(void *arg) {
  sharing *s = arg;
  for (int i = 0; i < 2000; i++) {
    diag d = {0};
    tn_buffer *v;
    if (buffer_view(s->buffer, 64, 64, &v, &d)) abort();
    if (buffer_span(buffer_retain(v), &s->seen, &d)) abort();
    buffer_release(v);
    buffer_release(v);
  }
  return NULL;
}

static void buffers_are_shared_by_threads(void **state) {
  fixture *f = *state;
  tn_buffer *b;
  pthread_t threads[4];
  sharing sharers[4];
  ok(f, buffer_open(f->cpu, 256, &b, &f->diag));
  for (int i = 0; i < 4; i++) {
    sharers[i].buffer = b;
    pthread_create(&threads[i], NULL, share, &sharers[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < 4; i++) assert_ptr_equal(sharers[i].seen.memory, sharers[0].seen.memory);
  buffer_release(b);
  uint64_t kept = caching_allocator_cached_bytes(f->cpu->allocator);
  assert_true(kept >= 256 && kept < 2 * 256); /* one block, whichever thread allocated it */
}

/* Typed access. */

enum { SAMPLES = 700 };

/** Edge cases of conversions first, then random bits. */
static uint64_t sample(dtype t, size_t i) {
  static const double hard[] = {
      0,         -0.0,   1,          -1,     0.5,    -0.5,  1.5,   2.5,  127,  128,
      255,       256,    -128,       -129,   32767,  65535, 65536, 1e9,  -1e9, 2147483647,
      3e9,       -3e9,   4e9,        1e18,   -1e18,  1e19,  2e19,  1e-8, 6e-8, 1e38,
      1e39,      1e300,  65504,      65519,  65520,  1e-45, 0.1,   1e4,  NAN,  INFINITY,
      -INFINITY, 0x1p24, 0x1p24 + 1, 0x1p53, 0x1p63, 0x1p64};
  if (i < sizeof hard / sizeof *hard) return scalar_from_double(t, hard[i]);
  uint64_t bits = (i + 1) * 0x9E3779B97F4A7C15u;
  bits ^= bits >> 29;
  unsigned char memory[8];
  memcpy(memory, &bits, 8);
  return t == DT_BOOL ? bits & 1 : scalar_load(t, memory);
}

static bool same(dtype t, uint64_t a, uint64_t b) {
  if (!dtype_is_float(t)) return a == b;
  double x = scalar_to_double(t, a), y = scalar_to_double(t, b);
  return isnan(x) ? isnan(y) : a == b;
}

static void check_pair(fixture *f, tn_device *v, dtype held, dtype host) {
  tn_buffer *b;
  tn_span s;
  unsigned char in[SAMPLES * 8], out[SAMPLES * 8];
  ok(f, buffer_open(v, SAMPLES * dtype_bytes(held), &b, &f->diag));
  ok(f, buffer_span(b, &s, &f->diag));
  for (size_t i = 0; i < SAMPLES; i++)
    scalar_store(host, in + i * dtype_bytes(host), sample(host, i));
  ok(f, span_write(&s, held, host, in, SAMPLES, &f->diag));
  ok(f, span_read(&s, held, held, out, SAMPLES, &f->diag));
  for (size_t i = 0; i < SAMPLES; i++) {
    uint64_t got = scalar_load(held, out + i * dtype_bytes(held));
    uint64_t expected = scalar_cast(held, host, sample(host, i));
    if (!same(held, got, expected))
      fail_msg("%s to %s, element %zu: %llx is not %llx", dtype_name(host), dtype_name(held), i,
               (unsigned long long)got, (unsigned long long)expected);
  }
  ok(f, span_read(&s, held, host, out, SAMPLES, &f->diag));
  for (size_t i = 0; i < SAMPLES; i++) {
    uint64_t got = scalar_load(host, out + i * dtype_bytes(host));
    uint64_t back = scalar_cast(host, held, scalar_cast(held, host, sample(host, i)));
    assert_true(same(host, got, back));
  }
  buffer_release(b);
}

static void every_type_converts(void **state) {
  fixture *f = *state;
  for (int held = 0; held < DT_LIMIT; held++)
    for (int host = 0; host < DT_LIMIT; host++)
      if (dtype_is_data((dtype)held) && dtype_is_data((dtype)host)) {
        check_pair(f, f->cpu, (dtype)held, (dtype)host);
        check_pair(f, f->ref, (dtype)held, (dtype)host);
      }
}

static void bools_are_zero_or_one(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu, f->ref};
  for (int i = 0; i < 2; i++) {
    tn_buffer *b;
    tn_span s;
    const uint8_t in[4] = {0, 1, 2, 255};
    uint8_t out[4];
    ok(f, buffer_open(devices[i], 4, &b, &f->diag));
    ok(f, buffer_span(b, &s, &f->diag));
    ok(f, span_write(&s, DT_BOOL, DT_BOOL, in, 4, &f->diag));
    ok(f, span_read(&s, DT_U8, DT_U8, out, 4, &f->diag));
    assert_memory_equal(out, ((uint8_t[]){0, 1, 1, 1}), 4);
    buffer_release(b);
  }
}

static void too_much_is_refused(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu, f->ref};
  for (int i = 0; i < 2; i++) {
    tn_buffer *b, *slot;
    tn_span whole, s;
    float in[5] = {1, 2, 3, 4, 5}, out[8] = {0};
    ok(f, buffer_open(devices[i], 32, &b, &f->diag));
    ok(f, zero_buffer(b, &f->diag));
    ok(f, buffer_view(b, 8, 18, &slot, &f->diag));
    ok(f, buffer_span(slot, &s, &f->diag));
    ok(f, buffer_span(b, &whole, &f->diag));
    assert_int_equal(span_write(&s, DT_F32, DT_F32, in, 5, &f->diag), TN_ERR_SHAPE);
    assert_string_equal(f->diag.text, "5 elements of type f32 do not fit in 18 bytes");
    assert_int_equal(span_write(&s, DT_F64, DT_F32, in, 3, &f->diag), TN_ERR_SHAPE);
    assert_int_equal(span_read(&s, DT_F32, DT_F16, out, 5, &f->diag), TN_ERR_SHAPE);
    ok(f, span_read(&whole, DT_F32, DT_F32, out, 8, &f->diag));
    for (int k = 0; k < 8; k++) assert_true(out[k] == 0);
    ok(f, span_write(&s, DT_F32, DT_F32, in, 4, &f->diag));
    ok(f, span_write(&s, DT_F32, DT_F32, NULL, 0, &f->diag));
    ok(f, span_read(&whole, DT_F32, DT_F32, out, 8, &f->diag));
    assert_true(out[1] == 0 && out[2] == 1 && out[5] == 4 && out[6] == 0);
    buffer_release(slot);
    buffer_release(b);
  }
}

static void copies_between_devices(void **state) {
  fixture *f = *state;
  tn_device *const devices[] = {f->cpu, f->ref, f->other};
  enum { N = 400000 }; /* larger than the staging buffer */
  uint32_t *data = test_malloc(N * sizeof *data), *seen = test_malloc(N * sizeof *seen);
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      tn_buffer *from, *to;
      tn_span s, t, short_one;
      for (uint32_t i = 0; i < N; i++) data[i] = i * 2654435761u + (uint32_t)(3 * a + b);
      ok(f, buffer_open(devices[a], N * 4, &from, &f->diag));
      ok(f, buffer_open(devices[b], N * 4, &to, &f->diag));
      ok(f, buffer_span(from, &s, &f->diag));
      ok(f, buffer_span(to, &t, &f->diag));
      ok(f, span_write(&s, DT_U32, DT_U32, data, N, &f->diag));
      ok(f, span_copy(&t, &s, &f->diag));
      ok(f, span_read(&t, DT_U32, DT_U32, seen, N, &f->diag));
      assert_memory_equal(data, seen, N * 4);
      short_one = span_slice(&t, 4, 8);
      assert_int_equal(span_copy(&short_one, &s, &f->diag), TN_ERR_ARGUMENT);
      buffer_release(from);
      buffer_release(to);
    }
  test_free(data);
  test_free(seen);
}

#if defined(__linux__) && defined(MADV_HUGEPAGE)

/** True if madvise requested large pages for the mapping of an address. */
static bool has_large_pages(const void *address) {
  char line[512];
  bool is_there = false, asked = false;
  uintptr_t from, to, at = (uintptr_t)address;
  FILE *f = fopen("/proc/self/smaps", "r");
  while (f && fgets(line, sizeof line, f)) {
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
      is_there = from <= at && at < to;
    if (is_there && !strncmp(line, "VmFlags:", 8)) asked = strstr(line, " hg") != NULL;
  }
  if (f) fclose(f);
  return asked;
}

static bool asks_for_large_pages(fixture *f, const mem *m) {
  registry *t;
  tn_device *device;
  tn_buffer *b;
  tn_span span;
  ok(f, registry_open(&t, &(registry_desc){.mem = m, .threads = 1}, &f->diag));
  ok(f, registry_open_device(t, "CPU", &device, &f->diag));
  ok(f, buffer_open(device, 8 << 20, &b, &f->diag));
  ok(f, buffer_span(b, &span, &f->diag));
  bool asked = has_large_pages(span_host_pointer(&span));
  buffer_release(b);
  registry_close(t);
  return asked;
}

/** Memory of a caller's allocator keeps its page size: the library does not call madvise on it. */
static void pages_of_other_allocators_are_left_alone(void **state) {
  fixture *f = *state;
  void *probe = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(probe, MAP_FAILED);
  bool can = !madvise(probe, 4 << 20, MADV_HUGEPAGE) && has_large_pages(probe);
  munmap(probe, 4 << 20);
  assert_false(asks_for_large_pages(f, &f->mem));
  assert_int_equal(asks_for_large_pages(f, &mem_system), can);
}

#endif

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    TEST(pages_of_other_allocators_are_left_alone),
#endif
    TEST(blocks_are_reused),
    TEST(budget_bounds_what_is_kept),
    TEST(blocks_have_every_size),
    TEST(many_blocks_are_kept),
    TEST(what_is_kept_goes_before_memory_runs_out),
    TEST(buffers_allocate_late),
    TEST(views_of_views),
    TEST(buffers_are_cleared_when_asked),
    TEST(buffers_open_zeroed),
    TEST(freed_blocks_are_trimmed),
    TEST(host_memory_is_used_as_it_is),
    TEST(buffers_are_shared_by_threads),
    TEST(every_type_converts),
    TEST(bools_are_zero_or_one),
    TEST(too_much_is_refused),
    TEST(copies_between_devices)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
