/* Tests the interpreter of teams on programs as text: what a barrier parts is no race, and what
   none parts is one; teams that do not meet, elements that nobody wrote, and warps. */
#include "base/diag.h"

#include <tenon/unstable/ir.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { WORKERS = 8, WARP = 4 };

/* Each worker writes its element of a shared array and reads that of its neighbour. */
#define SHARE(space, share, list)                   \
  "%n = const i64 8\n"                              \
  "%w = special i64 %n \"l0\"\n"                    \
  "%one = const i64 1\n%four = const i64 4\n"       \
  "%other = xor i64 %w " share "\n"                 \
  "%out = param i64 8 [slot=0]\n"                   \
  "%a = alloc i64 %n [id=0 space=" space "]\n"      \
  "%put = store void %a %w %w\n"                    \
  "%meet = barrier void [id=1 space=" space "]\n"   \
  "%done = after i64 %a %put\n"                     \
  "%get = load i64 %done %other\n"                  \
  "%store = store void %out %w %get\n"              \
  "%l = linear void %w %other %a " list " %store\n" \
  "return %l\n"

static tn_status launch(const char *text, int64_t out[WORKERS], const tn_ir_teams *teams,
                        char why[256]) {
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node linear = tn_ir_parse(ir, text, strlen(text));
  if (!linear) fail_msg("%s", tn_ir_message(ir));
  tn_ir_buffer buffer = {0, out, WORKERS * sizeof *out};
  tn_status s = tn_ir_execute_in_teams(ir, linear, &buffer, 1, NULL, 0, teams);
  strncpy(why, s ? tn_ir_message(ir) : "", 255);
  tn_ir_close(ir);
  return s;
}

static tn_status run(const char *text, int64_t out[WORKERS], uint64_t seed, char why[256]) {
  return launch(text, out, &(tn_ir_teams){sizeof(tn_ir_teams), 1, WORKERS, WARP, seed}, why);
}

/** Runs a program with several orders of the workers, which fails with a text in each. */
static void breaks(const char *text, const char *expected) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    char why[256] = "";
    int64_t out[WORKERS] = {0, 1, 2, 3, 4, 5, 6, 7};
    assert_int_equal(run(text, out, seed, why), TN_ERR_INTERNAL);
    if (!strstr(why, expected)) fail_msg("got '%s' instead of '%s'", why, expected);
  }
}

static void works(const char *text, int64_t mask) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    char why[256] = "";
    int64_t out[WORKERS] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (run(text, out, seed, why)) fail_msg("%s", why);
    for (int64_t i = 0; i < WORKERS; i++) assert_int_equal(out[i], i ^ mask);
  }
}

static void barriers_part_accesses(void **state) {
  (void)state;
  works(SHARE("3", "%one", "%put %meet %get"), 1);
  works(SHARE("3", "%four", "%put %meet %get"), 4);
}

static void races_are_found(void **state) {
  (void)state;
  breaks(SHARE("3", "%one", "%put %get %meet"), "of alloc");
  breaks(SHARE("3", "%one", "%meet %put %get"), "of alloc");
}

/* A warp's memory is its own: other warps have an array each. */
static void warps_share_their_own(void **state) {
  (void)state;
  works(SHARE("2", "%one", "%put %meet %get"), 1);
  breaks(SHARE("2", "%four", "%put %meet %get"), "which was not written");
}

/* All workers store the first element. */
static void params_are_watched(void **state) {
  (void)state;
  breaks("%n = const i64 8\n%zero = const i64 0\n%w = special i64 %n \"l0\"\n"
         "%out = param i64 8 [slot=0]\n%put = store void %out %zero %w\n"
         "%l = linear void %w %put\nreturn %l\n",
         "without a barrier");
}

/* A worker passes a barrier of a space as often as `trips` says. */
#define PART(space, trips)                                                                 \
  "%n = const i64 8\n%four = const i64 4\n%w = special i64 %n \"l0\"\n%out = param i64 8 " \
  "[slot=0]\n"                                                                             \
  "%late = and i64 %w %four\n%r = range i64 " trips " [id=0 kind=loop axis=0 tail=0]\n"    \
  "%meet = barrier void [id=1 space=" space "]\n%put = store void %out %w %r\n"            \
  "%end = end void %r %put\n%l = linear void %w %late %r %meet %put %end\nreturn %l\n"

static void teams_that_part_are_found(void **state) {
  (void)state;
  breaks(PART("3", "%w"), "some of a team do not meet");
  breaks(PART("2", "%w"), "some of a team do not meet");
  breaks(PART("3", "%late"), "some of a team do not meet"); /* several have ended */
  char why[256];
  int64_t out[WORKERS];
  assert_int_equal(run(PART("2", "%late"), out, 0, why), TN_OK); /* other warps may */
}

/* All workers read the first element; that of number 0 of the second group then stores it. */
static void no_barrier_parts_groups(void **state) {
  (void)state;
  const char *text = "%n = const i64 2\n%zero = const i64 0\n%one = const i64 1\n"
                     "%g = special i64 %n \"g0\"\n%w = special i64 %n \"l0\"\n"
                     "%not = xor i64 %w %one\n%trips = and i64 %g %not\n"
                     "%out = param i64 8 [slot=0]\n%get = load i64 %out %zero\n"
                     "%meet = barrier void [id=1 space=3]\n"
                     "%r = range i64 %trips [id=0 kind=loop axis=0 tail=0]\n"
                     "%at = mul i64 %r %get\n%put = store void %out %zero %at\n"
                     "%end = end void %r %put\n"
                     "%l = linear void %g %w %not %trips %get %meet %r %at %put %end\nreturn %l\n";
  for (uint64_t seed = 0; seed < 8; seed++) {
    char why[256];
    int64_t out[WORKERS] = {0};
    const tn_ir_teams teams = {sizeof teams, 2, 2, 1, seed};
    assert_int_equal(launch(text, out, &teams, why), TN_ERR_INTERNAL);
    if (!strstr(why, "without a barrier")) fail_msg("%s", why);
  }
}

static void launches_that_are_none(void **state) {
  (void)state;
  const tn_ir_teams all[] = {{0, 1, 1, 1, 0},
                             {sizeof *all, -1, 1, 1, 0},
                             {sizeof *all, 1, 0, 1, 0},
                             {sizeof *all, 1, 1, 0, 0},
                             {sizeof *all, INT64_MAX, 2, 1, 0},
                             {sizeof *all, 2, INT64_MAX, 1, 0}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char why[256];
    int64_t out[WORKERS];
    assert_int_equal(launch(PART("3", "%n"), out, &all[i], why), TN_ERR_ARGUMENT);
  }
}

/* Each worker copies its element to a shared array, and reads that of its neighbour. */
#define COPY(pending, list)                                   \
  "%n = const i64 8\n%one = const i64 1\n"                    \
  "%w = special i64 %n \"l0\"\n%other = xor i64 %w %one\n"    \
  "%out = param i64 8 [slot=0]\n"                             \
  "%a = alloc i64 %n [id=0 space=3]\n"                        \
  "%x = load i64 %out %w\n%put = store void %a %w %x [2]\n"   \
  "%wait = wait void [pending=" pending "]\n"                 \
  "%meet = barrier void [id=1 space=3]\n"                     \
  "%done = after i64 %a %put\n%get = load i64 %done %other\n" \
  "%store = store void %out %w %get\n"                        \
  "%l = linear void %w %other %a %x %put " list " %store\nreturn %l\n"

static void copies_are_there_after_a_wait(void **state) {
  (void)state;
  works(COPY("0", "%wait %meet %get"), 1);
  breaks(COPY("0", "%meet %get"), "before a wait for its copy");
  breaks(COPY("1", "%wait %meet %get"), "before a wait for its copy");
  breaks(COPY("-1", "%wait %meet %get"), "before a wait for its copy");
  breaks(COPY("0", "%meet %wait %get"), "before a wait for its copy"); /* the other worker's */
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers_part_accesses),    cmocka_unit_test(races_are_found),
      cmocka_unit_test(warps_share_their_own),     cmocka_unit_test(params_are_watched),
      cmocka_unit_test(teams_that_part_are_found), cmocka_unit_test(no_barrier_parts_groups),
      cmocka_unit_test(launches_that_are_none),    cmocka_unit_test(copies_are_there_after_a_wait)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
