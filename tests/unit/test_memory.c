/* Tests the memory planner, which packs buffers into one arena by live ranges: random plans have no
   overlaps and need little more than what is live at once, hand-made ones have known sizes, and
   overflow is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schedule/memory/memory_plan.h"

#include "../random/random.h"

#include <stdlib.h>

enum { PLANS = 300, MOST_SLOTS = 120, MOST_STEPS = 60 };

typedef struct plan {
  diag d;
  arena a;
  memory_plan_slot slots[MOST_SLOTS];
  size_t n;
  uint64_t total;
} plan;

static void place(void *arg) {
  plan *p = arg;
  p->total = memory_plan_place(&p->a, p->slots, p->n);
}

static tn_status run(plan *p) {
  arena_init(&p->a, &mem_system, &p->d);
  tn_status status = diag_catch(&p->d, place, p);
  arena_free(&p->a);
  return status;
}

static int by_first(const void *a, const void *b) {
  size_t x = ((const memory_plan_slot *)a)->first, y = ((const memory_plan_slot *)b)->first;
  return (x > y) - (x < y);
}

static void make_random(plan *p, uint64_t seed) {
  rng r = {seed};
  p->n = rng_below(&r, MOST_SLOTS + 1);
  for (size_t i = 0; i < p->n; i++) {
    size_t first = rng_below(&r, MOST_STEPS), longest = rng_chance(&r, 20) ? MOST_STEPS : 6;
    uint64_t bytes = rng_chance(&r, 10) ? 0 : 1 + rng_below(&r, rng_chance(&r, 30) ? 5000 : 200);
    p->slots[i] = (memory_plan_slot){.first = first,
                                     .last = first + rng_below(&r, longest),
                                     .bytes = bytes,
                                     .offset = UINT64_MAX};
  }
  qsort(p->slots, p->n, sizeof *p->slots, by_first);
}

static bool meet(const memory_plan_slot *a, const memory_plan_slot *b) {
  bool in_time = a->first <= b->last && b->first <= a->last;
  bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
  return in_time && in_space && a->bytes && b->bytes;
}

static uint64_t rounded(uint64_t bytes) {
  return (bytes + MEMORY_PLAN_ALIGN - 1) / MEMORY_PLAN_ALIGN * MEMORY_PLAN_ALIGN;
}

/** Returns the bytes alive at the worst step, a lower bound for any plan. */
static uint64_t least_total(const plan *p) {
  uint64_t most = 0;
  for (size_t step = 0; step < 2 * MOST_STEPS; step++) {
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
      if (p->slots[i].first <= step && step <= p->slots[i].last) sum += rounded(p->slots[i].bytes);
    if (sum > most) most = sum;
  }
  return most;
}

static void check_places(const plan *p) {
  for (size_t i = 0; i < p->n; i++) {
    const memory_plan_slot *s = &p->slots[i];
    assert_int_equal(s->offset % MEMORY_PLAN_ALIGN, 0);
    assert_true(s->offset + s->bytes <= p->total);
    for (size_t k = 0; k < i; k++) assert_false(meet(s, &p->slots[k]));
  }
  assert_false(memory_plan_overlaps(p->slots, p->n));
}

static void random_slots_never_overlap(void **state) {
  (void)state;
  uint64_t needed = 0, least = 0, sum = 0;
  for (uint64_t seed = 0; seed < PLANS; seed++) {
    plan p = {0};
    make_random(&p, seed);
    assert_int_equal(run(&p), TN_OK);
    check_places(&p);
    assert_true(p.total >= least_total(&p));
    needed += p.total;
    least += least_total(&p);
    for (size_t i = 0; i < p.n; i++) sum += rounded(p.slots[i].bytes);
  }
  print_message("%.2f of what must live at once, %.2f of the sum of all\n",
                (double)needed / (double)least, (double)needed / (double)sum);
  assert_true((double)needed < 1.1 * (double)least);
}

static void overlaps_are_seen(void **state) {
  (void)state;
  memory_plan_slot slots[] = {{0, 3, 100, 0}, {1, 1, 10, 128}, {3, 5, 10, 64}};
  assert_true(memory_plan_overlaps(slots, 3)); /* the third overlaps the first at step 3 */
  slots[2].first = 4;
  assert_false(memory_plan_overlaps(slots, 3));
  slots[1].offset = 99;
  assert_true(memory_plan_overlaps(slots, 3));
}

/** A chain of equal slots, each read by the step after its writer, needs two. */
static void chains_reuse_two_slots(void **state) {
  (void)state;
  plan p = {.n = MOST_SLOTS};
  for (size_t i = 0; i < p.n; i++)
    p.slots[i] = (memory_plan_slot){.first = i, .last = i + 1, .bytes = 1000};
  assert_int_equal(run(&p), TN_OK);
  check_places(&p);
  assert_int_equal(p.total, 2 * rounded(1000));
}

/** Adjacent free blocks are merged, so that a larger slot fits. */
static void holes_join(void **state) {
  (void)state;
  plan p = {.n = 4,
            .slots = {{.first = 0, .last = 1, .bytes = 64},
                      {.first = 0, .last = 2, .bytes = 64},
                      {.first = 0, .last = 1, .bytes = 64},
                      {.first = 3, .last = 4, .bytes = 192}}};
  assert_int_equal(run(&p), TN_OK);
  check_places(&p);
  assert_int_equal(p.total, 192);
}

/** Each step's result is larger than the one before and alive with it: the plan needs the last
    two. */
static void what_grows_takes_the_room_at_the_end(void **state) {
  (void)state;
  enum { GROWING = 64, UNIT = 1 << 10 };
  plan p = {.n = GROWING};
  for (size_t i = 0; i < p.n; i++)
    p.slots[i] = (memory_plan_slot){.first = i, .last = i + 1, .bytes = (i + 1) * UNIT};
  assert_int_equal(run(&p), TN_OK);
  check_places(&p);
  assert_int_equal(p.total, (2 * GROWING - 1) * UNIT);
  for (size_t i = 0; i < p.n; i++) /* grows, then shrinks */
    p.slots[i].bytes = (i < GROWING / 2 ? i + 1 : GROWING - i) * UNIT;
  assert_int_equal(run(&p), TN_OK);
  check_places(&p);
  assert_int_equal(p.total, GROWING * UNIT);
}

static void the_smallest_hole_is_taken(void **state) {
  (void)state;
  plan p = {.n = 5,
            .slots = {{.first = 0, .last = 0, .bytes = 256},
                      {.first = 0, .last = 9, .bytes = 64},
                      {.first = 0, .last = 0, .bytes = 128},
                      {.first = 0, .last = 9, .bytes = 64},
                      {.first = 1, .last = 2, .bytes = 100}}};
  assert_int_equal(run(&p), TN_OK);
  check_places(&p);
  assert_int_equal(p.slots[4].offset, 256 + 64);
}

/** Enough slots that only one placement order is tried. */
static void many_slots(void *arg) {
  plan *p = arg;
  enum { MANY = 3000, UNIT = 1 << 10 };
  memory_plan_slot *slots = arena_alloc(&p->a, MANY * sizeof *slots);
  for (size_t i = 0; i < MANY; i++)
    slots[i] = (memory_plan_slot){.first = i, .last = i + 1, .bytes = (i + 1) * UNIT};
  p->total = memory_plan_place(&p->a, slots, MANY);
  assert_false(memory_plan_overlaps(slots, MANY));
  assert_true(p->total <= (3 * MANY - 3) * (uint64_t)UNIT);
}

static void many_that_grow(void **state) {
  (void)state;
  plan p = {0};
  arena_init(&p.a, &mem_system, &p.d);
  assert_int_equal(diag_catch(&p.d, many_slots, &p), TN_OK);
  arena_free(&p.a);
}

static void nothing_needs_nothing(void **state) {
  (void)state;
  plan p = {.n = 2, .slots = {{.first = 0, .last = 3}, {.first = 1, .last = 2}}};
  assert_int_equal(run(&p), TN_OK);
  assert_int_equal(p.total, 0);
  p.n = 0;
  assert_int_equal(run(&p), TN_OK);
  assert_int_equal(p.total, 0);
}

static void too_much_is_an_error(void **state) {
  (void)state;
  const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2 + 100};
  for (size_t i = 0; i < 3; i++) {
    plan p = {.n = 2,
              .slots = {{.first = 0, .last = 3, .bytes = sizes[i]},
                        {.first = 1, .last = 2, .bytes = sizes[i]}}};
    assert_int_equal(run(&p), TN_ERR_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_slots_never_overlap),
      cmocka_unit_test(overlaps_are_seen),
      cmocka_unit_test(chains_reuse_two_slots),
      cmocka_unit_test(holes_join),
      cmocka_unit_test(what_grows_takes_the_room_at_the_end),
      cmocka_unit_test(the_smallest_hole_is_taken),
      cmocka_unit_test(many_that_grow),
      cmocka_unit_test(nothing_needs_nothing),
      cmocka_unit_test(too_much_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
