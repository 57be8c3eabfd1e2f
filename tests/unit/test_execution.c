/* Tests executions. The last-read notification: an input of nested loops is reported exactly once,
   when no step will read it again, and may be overwritten from then on. Scratch memory: where
   executions share it, each uses the block that is there now. */
#include "runtime/execution.h"

#include "device/memory/span.h"
#include "ir/text/parse.h"
#include "runtime/build_executable.h"
#include "support/tensor_check.h"
#include "support/zero.h"
#include "tensor/context/context.h" /* before cmocka, which has a macro fail */

enum { ROWS = 5, FEW = 4, MANY = 400, MOST_TOLD = 16 };

/* A step reads x; a loop reads `first` as it begins, `each` in all its trips and `both` in the
   trips of an inner loop; a step after both reads `last`. Each row has FEW columns. */
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

enum { INPUTS = 5 };

typedef struct job {
  tn_buffer *aside[INPUTS + 1]; /* memory of inputs, given when they are read */
  size_t begun;
  diag diag;
  size_t columns;
  ir *ir;
  executable_request request;
  executable *made;
  execution *run;
  size_t told[MOST_TOLD], n; /* reported buffers */
} job;

/** The graph with other columns. */
static const char *text_of_columns(arena *a, size_t columns) {
  str s = str_new(a);
  for (const char *at = text; *at; at++) {
    if (at[0] == ' ' && at[1] == '0' + FEW)
      str_addf(&s, " %zu", columns), at++;
    else
      str_addf(&s, "%c", *at);
  }
  return str_text(&s);
}

static void make(void *arg) {
  job *j = arg;
  const char *sized = text_of_columns(ir_arena(j->ir), j->columns);
  node_list roots = parse_graph(j->ir, ir_arena(j->ir), sized, strlen(sized));
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
  size_t at = executable_input(j->made, uid, 0), n = rows * j->columns;
  float ones[ROWS * MANY];
  tn_buffer *memory;
  tn_span span;
  for (size_t i = 0; i < n; i++) ones[i] = 1;
  assert_int_equal(buffer_open(device, n * sizeof *ones, &memory, &j->diag), TN_OK);
  assert_int_equal(buffer_span(memory, &span, &j->diag), TN_OK);
  span.bytes = n * sizeof *ones;
  assert_int_equal(span_write(&span, DT_F32, DT_F32, ones, n, &j->diag), TN_OK);
  assert_int_equal(execution_set_buffer(j->run, at, memory, &j->diag), TN_OK);
  buffer_release(memory);
}

/** Opens an execution of the graph, whose inputs are ones. */
static void open_job(job *j, const tn_context *c, size_t columns) {
  *j = (job){.columns = columns, .request = {.target = c->target, .math = (int)c->math}};
  j->ir = ir_new(&mem_system, &j->diag, false);
  if (diag_catch(&j->diag, make, j)) fail_msg("%s", j->diag.text);
  assert_int_equal(execution_open(&j->run, j->made, NULL, &j->diag), TN_OK);
  for (int64_t uid = 1; uid <= 5; uid++)
    give(j, uid, uid == 3 ? ROWS : uid == 4 ? 2 : 1, c->device);
}

static void close_job(job *j) {
  execution_close(j->run);
  executable_release(j->made);
  ir_free(j->ir);
}

static void check_run(job *j) {
  tn_span span;
  float got[MANY];
  if (execution_run(j->run, &j->diag)) fail_msg("%s", j->diag.text);
  tn_buffer *end = execution_buffer(j->run, executable_output(j->made, 1));
  assert_int_equal(buffer_span(end, &span, &j->diag), TN_OK);
  assert_int_equal(span_read(&span, DT_F32, DT_F32, got, j->columns, &j->diag), TN_OK);
  for (size_t i = 0; i < j->columns; i++) assert_true(got[i] == 1 + ROWS * (1 + 2));
}

static void inputs_are_told_of_when_all_trips_are_done(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  job j;
  open_job(&j, c, FEW);
  execution_set_readers(j.run, &(input_readers){.end = note, .user = &j});
  check_run(&j);
  for (int64_t uid = 1; uid <= 5; uid++) assert_int_equal(times_told(&j, uid), 1);
  assert_int_equal(j.n, 5);
  close_job(&j);
  check_ok(c, tn_close(c));
}

/** Gives an input memory, which `zero_aside` overwrites when it is not read any more. */
static tn_status give_aside(void *user, size_t buffer, tn_span *to, tn_failure *failure) {
  job *j = user;
  (void)failure;
  for (int64_t uid = 1; uid <= INPUTS; uid++)
    if (executable_input(j->made, uid, 0) == buffer) {
      j->begun++;
      return buffer_span(j->aside[uid], to, &j->diag);
    }
  return TN_ERR_INTERNAL;
}

static void zero_aside(void *user, size_t buffer) {
  job *j = user;
  tn_span span;
  j->n++;
  for (int64_t uid = 1; uid <= INPUTS; uid++)
    if (executable_input(j->made, uid, 0) == buffer) {
      assert_int_equal(buffer_span(j->aside[uid], &span, &j->diag), TN_OK);
      assert_int_equal(zero_span(&span, &j->diag), TN_OK);
    }
}

static tn_status give_none(void *user, size_t buffer, tn_span *to, tn_failure *failure) {
  (void)user, (void)buffer, (void)to;
  return tn_fail(failure, TN_ERR_IO, "the file was cut");
}

static void inputs_get_memory_when_they_are_read(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  job j;
  open_job(&j, c, FEW);
  for (int64_t uid = 1; uid <= INPUTS; uid++) {
    size_t at = executable_input(j.made, uid, 0);
    j.aside[uid] = buffer_retain(execution_buffer(j.run, at));
    assert_int_equal(execution_set_buffer(j.run, at, NULL, &j.diag), TN_OK);
  }
  execution_set_readers(j.run, &(input_readers){give_none, zero_aside, &j});
  assert_int_equal(execution_run(j.run, &j.diag), TN_ERR_IO);
  assert_non_null(strstr(j.diag.text, "the file was cut"));
  execution_set_readers(j.run, &(input_readers){give_aside, zero_aside, &j});
  check_run(&j);
  assert_int_equal(j.begun, INPUTS);
  assert_int_equal(j.n, INPUTS);
  for (int64_t uid = 1; uid <= INPUTS; uid++) buffer_release(j.aside[uid]);
  close_job(&j);
  check_ok(c, tn_close(c));
}

static void check_zeros(tn_buffer *b, diag *d) {
  tn_span span;
  assert_int_equal(buffer_span(b, &span, d), TN_OK);
  unsigned char *bytes = malloc(span.bytes);
  assert_int_equal(span_read(&span, DT_U8, DT_U8, bytes, span.bytes, d), TN_OK);
  for (size_t i = 0; i < span.bytes; i++) assert_int_equal(bytes[i], 0);
  free(bytes);
}

/** A block that another execution has replaced by a larger one is not written any more. */
static void shared_scratch_memory_is_found_again(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_buffer *slot = NULL;
  job few, many;
  open_job(&few, c, FEW);
  open_job(&many, c, MANY);
  execution_share_scratch(few.run, &slot);
  execution_share_scratch(many.run, &slot);
  check_run(&few);
  tn_buffer *first = buffer_retain(slot);
  check_run(&many);
  assert_ptr_not_equal(slot, first);
  assert_int_equal(zero_buffer(first, &few.diag), TN_OK);
  check_run(&few);
  check_run(&many);
  check_zeros(first, &few.diag);
  buffer_release(first);
  close_job(&few);
  close_job(&many);
  buffer_release(slot);
  check_ok(c, tn_close(c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_are_told_of_when_all_trips_are_done),
      cmocka_unit_test(inputs_get_memory_when_they_are_read),
      cmocka_unit_test(shared_scratch_memory_is_found_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
