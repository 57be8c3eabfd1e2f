/* Tests the last-read notification of executions: an input of nested loops is reported exactly
   once, when no step will read it again, and may be overwritten from then on. */
#include "runtime/execution.h"

#include "device/memory/span.h"
#include "ir/text/parse.h"
#include "runtime/build_executable.h"
#include "support/tensor_check.h"
#include "support/zero.h"
#include "tensor/context/context.h" /* before cmocka, which has a macro fail */

enum { ROWS = 5, MOST_TOLD = 16 };

/* A step reads x; a loop reads `first` as it begins, `each` in all its trips and `both` in the
   trips of an inner loop; a step after both reads `last`. */
static const char text[] =
    "%n = const index 5\n%m = const index 2\n"
    "%x = buffer f32 4 [uid=1 version=0]\n%first = buffer f32 4 [uid=2 version=0]\n"
    "%each = buffer f32 5 4 [uid=3 version=0]\n%both = buffer f32 2 4 [uid=4 version=0]\n"
    "%last = buffer f32 4 [uid=5 version=0]\n"
    "%r = range index %n [id=0 kind=loop axis=0 tail=0]\n"
    "%s = range index %m [id=1 kind=loop axis=0 tail=0]\n"
    "%q = carry f32 %r 4 [component=0]\n%p = carry f32 %s 4 [component=0]\n"
    "%row = slice f32 %each %r 0 1 4 [1 1]\n%flat = reshape f32 %row 4\n"
    "%inner_row = slice f32 %both %s 0 1 4 [1 1]\n%inner_flat = reshape f32 %inner_row 4\n"
    "%inner_step = add f32 %p %inner_flat\n%begin = add f32 %q %flat\n"
    "%inner = loop void %s %begin %inner_step [states=1 emits=0]\n"
    "%inner_end = result f32 %inner 4 [component=0 inputs=1 number=0]\n"
    "%l = loop void %r %first %inner_end [states=1 emits=0]\n"
    "%end = result f32 %l 4 [component=0 inputs=1 number=0]\n"
    "%e = exp f32 %x\n%f = mul f32 %end %last\n"
    "return %e %f\n";

typedef struct job {
  diag diag;
  ir *ir;
  executable_request request;
  executable *made;
  execution *run;
  size_t told[MOST_TOLD], n; /* reported buffers */
} job;

static void make(void *arg) {
  job *j = arg;
  node_list roots = parse_graph(j->ir, ir_arena(j->ir), text, sizeof text - 1);
  j->request.name = "told";
  j->request.roots = roots.at;
  j->request.n_roots = roots.n;
  if (executable_build(&j->made, &j->request, &mem_system, &j->diag)) diag_rethrow(&j->diag);
}

/** Overwrites a reported buffer, which must not be read any more. */
static void note(void *user, size_t buffer) {
  job *j = user;
  tn_span span;
  assert_true(j->n < MOST_TOLD);
  j->told[j->n++] = buffer;
  assert_int_equal(buffer_span(execution_buffer(j->run, buffer), &span, &j->diag), TN_OK);
  assert_int_equal(zero_span(&span, &j->diag), TN_OK);
}

static size_t times_told(const job *j, int64_t uid) {
  size_t n = 0, buffer = executable_input(j->made, uid, 0);
  for (size_t i = 0; i < j->n; i++) n += j->told[i] == buffer;
  return n;
}

static void give(job *j, int64_t uid, size_t rows, tn_device *device) {
  size_t at = executable_input(j->made, uid, 0);
  float ones[ROWS * 4];
  tn_buffer *memory;
  tn_span span;
  for (size_t i = 0; i < rows * 4; i++) ones[i] = 1;
  assert_int_equal(buffer_open(device, rows * 4 * sizeof *ones, &memory, &j->diag), TN_OK);
  assert_int_equal(buffer_span(memory, &span, &j->diag), TN_OK);
  span.bytes = rows * 4 * sizeof *ones;
  assert_int_equal(span_write(&span, DT_F32, DT_F32, ones, rows * 4, &j->diag), TN_OK);
  assert_int_equal(execution_set_buffer(j->run, at, memory, &j->diag), TN_OK);
  buffer_release(memory);
}

static void inputs_are_told_of_when_all_trips_are_done(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  job j = {.request = {.target = c->target, .math = (int)c->math}};
  tn_span span;
  float got[4];
  j.ir = ir_new(&mem_system, &j.diag, false);
  if (diag_catch(&j.diag, make, &j)) fail_msg("%s", j.diag.text);
  assert_int_equal(execution_open(&j.run, j.made, NULL, &j.diag), TN_OK);
  execution_on_last_read(j.run, note, &j);
  for (int64_t uid = 1; uid <= 5; uid++)
    give(&j, uid, uid == 3 ? ROWS : uid == 4 ? 2 : 1, c->device);
  if (execution_run(j.run, &j.diag)) fail_msg("%s", j.diag.text);
  for (int64_t uid = 1; uid <= 5; uid++) assert_int_equal(times_told(&j, uid), 1);
  assert_int_equal(j.n, 5);
  tn_buffer *end = execution_buffer(j.run, executable_output(j.made, 1));
  assert_int_equal(buffer_span(end, &span, &j.diag), TN_OK);
  assert_int_equal(span_read(&span, DT_F32, DT_F32, got, 4, &j.diag), TN_OK);
  for (int i = 0; i < 4; i++) assert_true(got[i] == 1 + ROWS * (1 + 2));
  execution_close(j.run);
  executable_release(j.made);
  ir_free(j.ir);
  check_ok(c, tn_close(c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_are_told_of_when_all_trips_are_done),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
