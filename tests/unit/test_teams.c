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

static tn_status run(const char *text, int64_t out[WORKERS], uint64_t seed, char why[256]) {
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node linear = tn_ir_parse(ir, text, strlen(text));
  if (!linear) fail_msg("%s", tn_ir_message(ir));
  tn_ir_buffer buffer = {0, out, WORKERS * sizeof *out};
  tn_ir_teams teams = {sizeof teams, 1, WORKERS, WARP, seed};
  tn_status s = tn_ir_execute_in_teams(ir, linear, &buffer, 1, NULL, 0, &teams);
  strncpy(why, s ? tn_ir_message(ir) : "", 255);
  tn_ir_close(ir);
  return s;
}

/** Runs a program with several orders of the workers, which fails with a text in each. */
static void breaks(const char *text, const char *expected) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    char why[256] = "";
    int64_t out[WORKERS];
    assert_int_equal(run(text, out, seed, why), TN_ERR_INTERNAL);
    if (!strstr(why, expected)) fail_msg("got '%s' instead of '%s'", why, expected);
  }
}

static void works(const char *text, int64_t mask) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    char why[256] = "";
    int64_t out[WORKERS];
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

/* Worker w passes a barrier w times. */
static void teams_that_part_are_found(void **state) {
  (void)state;
  breaks("%n = const i64 8\n%w = special i64 %n \"l0\"\n%out = param i64 8 [slot=0]\n"
         "%r = range i64 %w [id=0 kind=loop axis=0 tail=0]\n%meet = barrier void [id=1 space=3]\n"
         "%put = store void %out %w %r\n%end = end void %r %put\n"
         "%l = linear void %w %r %meet %put %end\nreturn %l\n",
         "some of a team do not meet");
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers_part_accesses), cmocka_unit_test(races_are_found),
      cmocka_unit_test(warps_share_their_own), cmocka_unit_test(params_are_watched),
      cmocka_unit_test(teams_that_part_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
