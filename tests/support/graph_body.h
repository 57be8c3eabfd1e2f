/* Runs the body of a cmocka test in a new graph, which is freed afterwards. The body may raise
   (base/diag.h); what it raises fails the test. */
#ifndef TENON_TESTS_SUPPORT_GRAPH_BODY_H
#define TENON_TESTS_SUPPORT_GRAPH_BODY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/ir.h"

/** Opens a graph into `*g`, calls `body(test)` and frees the graph; `d` is the test's own. A
   failure's message names the seed. */
static inline void run_in_graph(ir **g, bool is_counted, diag *d, void (*body)(void *test),
                                void *test, uint64_t seed) {
  *g = ir_new(&mem_system, d, is_counted);
  assert_non_null(*g);
  tn_status status = diag_catch(d, body, test);
  ir_free(*g);
  if (status != TN_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, d->text);
}

/** Defines a test of cmocka from the body of the function name_body(test *t), which follows; `run`
    is the expression that calls it, by run_in_graph. */
#define BODY_TEST(name, run)        \
  static void name##_body(test *t); \
  static void name(void **state) {  \
    (void)state;                    \
    run;                            \
  }                                 \
  static void name##_body(test *t)

#endif
