/* Tests the table of the machine model (target/machine.def): names are unique, units are known,
   each row has a meaning and a source, and defaults lie within their ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target/machine.h"

#include <string.h>

typedef struct row {
  const char *name, *unit, *meaning, *source;
} row;

static const row rows[] = {
#define MACHINE_SIZE(name, least, most, usual, unit, meaning, source) \
  {#name, unit, meaning, source},
#define MACHINE_ISA(name, vector_bytes, registers, fma, f16c, meaning, source) \
  {#name, "bytes", meaning, source},
#define MACHINE_INTEGER(name, value, unit, meaning, source) {#name, unit, meaning, source},
#define MACHINE_REAL(name, value, unit, meaning, source)    {#name, unit, meaning, source},
#include "target/machine.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *const units[] = {
    "bytes",   "cores",  "threads",    "registers",    "vectors",    "lines",   "pages", "elements",
    "indices", "units",  "blocks",     "streams",      "launches",   "nests",   "loops", "levels",
    "loads",   "terms",  "operations", "instructions", "conditions", "buffers", "times", "power",
    "share",   "cycles", "ns"};

/** Units that may stand in a denominator. */
static const char *const divisors[] = {"byte", "operation", "cycle", "line", "lane", "core", "ns"};

static bool is_listed(const char *text, size_t bytes, const char *const list[], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strlen(list[i]) == bytes && !memcmp(list[i], text, bytes)) return true;
  return false;
}

static void units_are_known(void **state) {
  (void)state;
  for (size_t i = 0; i < ROWS; i++) {
    const char *per = strchr(rows[i].unit, '/');
    size_t bytes = per ? (size_t)(per - rows[i].unit) : strlen(rows[i].unit);
    if (!is_listed(rows[i].unit, bytes, units, sizeof units / sizeof *units))
      fail_msg("%s: unknown unit \"%s\"", rows[i].name, rows[i].unit);
    if (per && !is_listed(per + 1, strlen(per + 1), divisors, sizeof divisors / sizeof *divisors))
      fail_msg("%s: unknown unit \"%s\"", rows[i].name, rows[i].unit);
  }
}

static void rows_have_meaning_and_source(void **state) {
  static const char *const sources[] = {"measured: ", "manual: ", "chosen: ", "assumed: "};
  (void)state;
  for (size_t i = 0; i < ROWS; i++) {
    bool known = false;
    for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
      size_t bytes = strlen(sources[k]);
      known |= !strncmp(rows[i].source, sources[k], bytes) && rows[i].source[bytes];
    }
    if (!known) fail_msg("%s: no source in \"%s\"", rows[i].name, rows[i].source);
    if (strlen(rows[i].meaning) < 4) fail_msg("%s: no meaning", rows[i].name);
  }
}

static void names_are_unique(void **state) {
  (void)state;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < i; k++) assert_string_not_equal(rows[i].name, rows[k].name);
}

static void values_are_plausible(void **state) {
  (void)state;
#define MACHINE_SIZE(name, least, most, usual, unit, meaning, source) \
  assert_true((least) <= (usual) && (usual) <= (most));
#define MACHINE_INTEGER(name, value, unit, meaning, source) assert_true((value) > 0);
#define MACHINE_REAL(name, value, unit, meaning, source) \
  assert_true((value) > 0);                              \
  assert_true(strcmp(unit, "share") || (value) <= 1);
#include "target/machine.def"
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(units_are_known),
      cmocka_unit_test(rows_have_meaning_and_source),
      cmocka_unit_test(names_are_unique),
      cmocka_unit_test(values_are_plausible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
