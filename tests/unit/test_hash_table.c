/* Tests hash tables and maps: random operations against a linear search, long probe sequences,
   published values of SipHash-1-3, and collision attacks with keys that are equal under an unkeyed
   hash. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* SipHash-1-3 of 0, 1, 2, … under the key 0 … 15. The values come from an independent program by
   the authors' definition, which also gives their published vector of SipHash-2-4. */
static void hash_is_siphash_1_3(void **state) {
  static const struct {
    size_t bytes;
    uint64_t hash;
  } vectors[] = {{0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
                 {7, UINT64_C(0xd3927d989bb11140)},  {8, UINT64_C(0x369095118d299a8e)},
                 {15, UINT64_C(0xd320d86d2a519956)}, {63, UINT64_C(0x9d199062b7bbb3a8)}};
  unsigned char message[64];
  (void)state;
  for (size_t i = 0; i < sizeof message; i++) message[i] = (unsigned char)i;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    hasher h = hash_begin_keyed(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
    hash_add_bytes(&h, message, vectors[i].bytes);
    assert_int_equal(hash_end(&h), vectors[i].hash);
  }
}

static void key_is_of_the_process(void **state) {
  (void)state;
  hasher zero = hash_begin_keyed(0, 0), own = hash_begin();
  assert_memory_not_equal(&own, &zero, sizeof own);
  assert_int_equal(hash_text("name"), hash_bytes("names", 4));
  assert_int_not_equal(hash_text("name"), hash_text("names"));
}

/* Entries are bytes; many hashes are equal, or probe past the last slot. */

enum { ENTRIES = 40 };

static bool same_address(const void *entry, const void *wanted) { return entry == wanted; }

static void entries_come_and_go(void **state) {
  static char entry[ENTRIES];
  static const uint64_t hashes[] = {62, 63, 0, 62, 1, 63, 61, 62, 30, UINT64_MAX};
  bool there[ENTRIES] = {false};
  uint64_t seed = 1;
  hash_table t = {0};
  diag d = {0};
  (void)state;
  assert_null(hash_table_get(&t, 0, entry, same_address));
  for (int step = 0; step < 20000; step++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    size_t i = (seed >> 33) % ENTRIES, seen = 0;
    uint64_t hash = hashes[i % 10];
    if (there[i]) {
      hash_table_remove(&t, hash, &entry[i]);
    } else {
      hash_table_reserve(&t, &mem_system, &d);
      hash_table_insert(&t, hash_table_find(&t, hash, &entry[i], same_address), hash, &entry[i]);
    }
    there[i] = !there[i];
    for (size_t k = 0; k < ENTRIES; k++) {
      assert_ptr_equal(hash_table_get(&t, hashes[k % 10], &entry[k], same_address),
                       there[k] ? &entry[k] : NULL);
      seen += there[k];
    }
    assert_int_equal(t.n, seen);
    const char *e;
    for (size_t at = 0; (e = hash_table_next(&t, &at)); seen--) assert_true(there[e - entry]);
    assert_int_equal(seen, 0);
  }
  hash_table_free(&t, &mem_system);
}

static void maps_keep_order(void **state) {
  enum { N = 5000 };
  static char keys[N];
  diag d = {0};
  arena a;
  (void)state;
  arena_init(&a, &mem_system, &d);
  map m = {0};
  assert_null(map_get(&m, keys));
  assert_false(map_has(&m, keys));
  for (int i = 0; i < N; i += 2) {
    map_set(&a, &m, &keys[i], &keys[N - 1 - i]);
    assert_ptr_equal(map_get(&m, &keys[i]), &keys[N - 1 - i]);
  }
  for (int i = 0; i < N; i += 4) map_set(&a, &m, &keys[i], NULL);
  assert_int_equal(m.n, N / 2);
  for (size_t i = 0; i < m.n; i++) assert_ptr_equal(m.at[i].key, &keys[2 * i]);
  for (int i = 0; i < N; i++) {
    assert_int_equal(map_has(&m, &keys[i]), i % 2 == 0);
    assert_ptr_equal(map_get(&m, &keys[i]), i % 4 == 2 ? &keys[N - 1 - i] : NULL);
  }
  arena_free(&a);
}

static void maps_of_strings(void **state) {
  enum { N = 1000 };
  char other[16];
  diag d = {0};
  arena a;
  (void)state;
  arena_init(&a, &mem_system, &d);
  string_map m = {0};
  assert_null(string_map_get(&m, ""));
  for (int i = 0; i < N; i++) string_map_set(&a, &m, arena_printf(&a, "%d", i), &other[i % 16]);
  string_map_set(&a, &m, "", other);
  string_map_set(&a, &m, "7", &m);
  for (int i = 0; i < N; i++) {
    snprintf(other, sizeof other, "%d", i);
    assert_ptr_equal(string_map_get(&m, other), i == 7 ? (void *)&m : &other[i % 16]);
  }
  assert_ptr_equal(string_map_get(&m, ""), other);
  assert_null(string_map_get(&m, "07"));
  arena_free(&a);
}

/* Adversarial keys against hashes without a key. XXH3 of 8 bytes is a chain of invertible steps;
   the strings' hashes agree in the 32 bits of `hash ^ hash >> 32`. */

static uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; i++) x *= 2 - odd * x;
  return x;
}

/** Rotates by any number of bits, 0 included, which XXH_rotl64 excludes. */
static uint64_t rotate(uint64_t x, int bits) { return bits % 64 ? XXH_rotl64(x, bits % 64) : x; }

/** Inverts XXH3: returns the 8 bytes whose hash with seed 0 is `hash`. */
static uint64_t xxh3_undone(uint64_t hash) {
  uint64_t h = hash, undo = inverse(UINT64_C(0x9FB21C651E98DF25));
  h ^= h >> 28;
  h ^= h >> 56;
  h *= undo;
  h ^= (h >> 35) + 8;
  h *= undo;
  for (int k = 0; k < 6; k++) h ^= rotate(h, 49 << k) ^ rotate(h, 24 << k);
  h ^= XXH_readLE64(XXH3_kSecret + 8) ^ XXH_readLE64(XXH3_kSecret + 16);
  return h << 32 | h >> 32;
}

enum { KEYS = 30000 };

static char (*colliding_names(void))[9] {
  static char names[KEYS][9];
  size_t n = 0;
  for (uint32_t i = 1; n < KEYS; i++) {
    uint64_t bytes = xxh3_undone((uint64_t)i << 32 | (i ^ 0x1234567));
    memcpy(names[n], &bytes, 8);
    n += !memchr(names[n], 0, 8);
  }
  uint64_t first = XXH3_64bits(names[0], 8), last = XXH3_64bits(names[KEYS - 1], 8);
  assert_int_equal((uint32_t)(first ^ first >> 32), (uint32_t)(last ^ last >> 32));
  return names;
}

static int64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/** Returns the nanoseconds of setting and getting all of some names. */
static int64_t time_names(char (*names)[9]) {
  diag d = {0};
  arena a;
  string_map m = {0};
  arena_init(&a, &mem_system, &d);
  int64_t begin = cpu_ns();
  for (size_t i = 0; i < KEYS; i++) string_map_set(&a, &m, names[i], names[i]);
  for (size_t i = 0; i < KEYS; i++) assert_ptr_equal(string_map_get(&m, names[i]), names[i]);
  int64_t ns = cpu_ns() - begin;
  arena_free(&a);
  return ns;
}

static int64_t time_numbers(uint64_t factor) {
  diag d = {0};
  arena a;
  map m = {0};
  arena_init(&a, &mem_system, &d);
  int64_t begin = cpu_ns();
  for (uintptr_t i = 1; i <= KEYS; i++) map_set(&a, &m, (void *)(i * factor), &m);
  for (uintptr_t i = 1; i <= KEYS; i++) assert_true(map_has(&m, (void *)(i * factor)));
  int64_t ns = cpu_ns() - begin;
  arena_free(&a);
  return ns;
}

/** The bound is far below quadratic time, and above any noise. */
static void assert_linear(int64_t chosen_ns, int64_t usual_ns) {
  assert_in_range(chosen_ns, 0, 10 * usual_ns + 50000000);
}

static void chosen_names_cost_no_more(void **state) {
  static char usual[KEYS][9];
  (void)state;
  for (size_t i = 0; i < KEYS; i++)
    for (size_t k = 0, number = i; k < 8; k++, number /= 10)
      usual[i][k] = (char)('0' + number % 10);
  assert_linear(time_names(colliding_names()), time_names(usual));
}

/** Keys are multiples of 2^44 times the inverse of Fibonacci hashing's factor, 2^64 / φ. */
static void chosen_numbers_cost_no_more(void **state) {
  uint64_t factor = inverse(UINT64_C(0x9E3779B97F4A7C15)) << 44;
  (void)state;
  assert_linear(time_numbers(factor), time_numbers(64));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hash_is_siphash_1_3),
      cmocka_unit_test(key_is_of_the_process),
      cmocka_unit_test(entries_come_and_go),
      cmocka_unit_test(maps_keep_order),
      cmocka_unit_test(maps_of_strings),
      cmocka_unit_test(chosen_names_cost_no_more),
      cmocka_unit_test(chosen_numbers_cost_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
