/* Tests custom operations that are kernels in the IR's text form: compilation, schedules, dynamic
   sizes, writes to states, and the kernels and arguments that are refused. Results are compared
   with the interpreter. */
#include "support/tensor_check.h"

#include "ir/interp/interp.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "support/interp_kernel.h"

#include <tenon/unstable/explain.h>
#include <tenon/unstable/ir.h>

enum { N = 1000 };

static const char square_add[] =
    "%x = param f32 1000 [slot=0]\n"
    "%z = param f32 1000 [slot=1]\n"
    "%y = param f32 1000 [slot=2]\n"
    "%i = range index 1000 [id=0 kind=loop axis=0 tail=0]\n"
    "%a = index f32 %x %i [component=0]\n"
    "%b = index f32 %z %i [component=0]\n"
    "%c = mul f32 %a %a\n"
    "%d = add f32 %c %b\n"
    "%s = stage void %d %i 1000 %i [values=1 ranges=1 pins=0 cut=1 1]\n"
    "%o = out void %y %s\n"
    "%k = sink void %o \"square_add\"\n"
    "return %k\n";

/** s[i] = 2 s[i] + x[i], for 4 of them. */
static const char advance[] = "%s = param f32 4 [slot=0]\n"
                              "%x = param f32 4 [slot=1]\n"
                              "%i = range index 4 [id=0 kind=loop axis=0 tail=0]\n"
                              "%a = index f32 %s %i [component=0]\n"
                              "%b = index f32 %x %i [component=0]\n"
                              "%c = add f32 %a %a\n"
                              "%d = add f32 %c %b\n"
                              "%t = stage void %d %i 4 %i [values=1 ranges=1 pins=0 cut=1 1]\n"
                              "%o = out void %s %t\n"
                              "%k = sink void %o \"\"\n"
                              "return %k\n";

/** s[2i] = s[3 − i], for i below 2. */
static const char crossing[] = "%s = param f32 4 [slot=0]\n"
                               "%i = range index 2 [id=0 kind=loop axis=0 tail=0]\n"
                               "%r = affine index %i [3 -1]\n"
                               "%e = affine index %i [0 2]\n"
                               "%a = index f32 %s %r [component=0]\n"
                               "%t = stage void %a %e 4 %i [values=1 ranges=1 pins=0 cut=1 1]\n"
                               "%o = out void %s %t\n"
                               "%k = sink void %o \"\"\n"
                               "return %k\n";

/** Computes the row sums and the positive elements of f32[n, 2]. */
static const char rows[] = "%n = var index [min=1 max=9] \"n\"\n"
                           "%x = param f32 %n 2 [slot=0]\n"
                           "%y = param f32 %n [slot=1]\n"
                           "%p = param bool %n 2 [slot=2]\n"
                           "%i = range index %n [id=0 kind=loop axis=0 tail=0]\n"
                           "%j = range index 2 [id=1 kind=loop axis=0 tail=0]\n"
                           "%a = index f32 %x %i 0 [component=0]\n"
                           "%b = index f32 %x %i 1 [component=0]\n"
                           "%c = index f32 %x %i %j [component=0]\n"
                           "%d = add f32 %a %b\n"
                           "%0 = const f32 0\n"
                           "%e = lt bool %0 %c\n"
                           "%s = stage void %d %e %i %i %j %n %n 2 %i %j [values=2 ranges=2 pins=0 "
                           "cut=1 1 2]\n"
                           "%o = out void %y %p %s\n"
                           "%k = sink void %o \"\"\n"
                           "return %k\n";

static tn_kernel *kernel_of(const char *text) {
  tn_ir *ir;
  tn_kernel *k;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node sink = tn_ir_parse(ir, text, strlen(text));
  if (!sink) fail_msg("%s", tn_ir_message(ir));
  if (tn_kernel_make(ir, sink, NULL, &k) != TN_OK) fail_msg("%s", tn_ir_message(ir));
  tn_ir_close(ir);
  return k;
}

/** Applies a kernel as a custom operation and frees the kernel. */
static void apply(tn_context *c, const char *text, uint64_t writes, tn_tensor *const in[],
                  size_t n_in, const tn_type types[], tn_tensor *out[], size_t n_out) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_kernel *k = kernel_of(text);
  assert_ptr_equal(tn_kernel_retain(k), k);
  tn_kernel_free(k);
  d.kernel = k;
  d.writes = writes;
  tn_custom(c, &d, in, n_in, types, out, n_out);
  tn_kernel_free(k);
}

/** Returns a text with a part replaced. */
static const char *with(const char *text, const char *part, const char *by, char *out) {
  const char *at = strstr(text, part);
  assert_non_null(at);
  sprintf(out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(part));
  return out;
}

static tn_context *open_with(int threads) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = threads;
  return tn_open(&d);
}

static void a_kernel_computes(void **state) {
  (void)state;
  static float x[N], z[N], y[N];
  for (int i = 0; i < N; i++) x[i] = (float)i, z[i] = (float)(N - i);
  for (int threads = 1; threads <= 2; threads++) {
    tn_context *c = open_with(threads);
    tn_tensor *in[] = {tn_neg(floats(c, N, x)), floats(c, N, z)}, *out;
    apply(c, square_add, 0, in, 2, &(tn_type){TN_F32, tn_shape(N)}, &out, 1);
    check_ok(c, tn_read(tn_add(out, tn_num(c, 1)), TN_F32, y, sizeof y));
    for (int i = 0; i < N; i++) assert_true(y[i] == x[i] * x[i] + z[i] + 1);
    check_ok(c, tn_read(out, TN_F32, y, sizeof y));
    assert_true(y[3] == 9 + N - 3);
    assert_int_equal(tn_close(c), TN_OK);
  }
}

static void a_kernel_writes_a_state(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    tn_context *c = open_with(threads);
    tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))), *x = floats(c, FLOATS(1, 1, 1, 1));
    tn_tensor *before = tn_add(s, x), *in[] = {s, x};
    apply(c, advance, 1, in, 2, NULL, NULL, 0);
    tn_tensor *after = tn_add(s, x);
    check_floats(c, after, FLOATS(4, 6, 8, 10));
    check_floats(c, before, FLOATS(2, 3, 4, 5));
    for (int k = 0; k < 3; k++) apply(c, advance, 1, in, 2, NULL, NULL, 0);
    check_floats(c, s, FLOATS(31, 47, 63, 79));
    check_floats(c, after, FLOATS(4, 6, 8, 10));
    assert_int_equal(tn_close(c), TN_OK);
  }
}

/** A kernel reads the contents before it ran; elements that it does not write stay. */
static void reads_are_of_old_contents(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4)));
  apply(c, crossing, 1, &s, 1, NULL, NULL, 0);
  check_floats(c, s, FLOATS(4, 2, 3, 4));
  apply(c, crossing, 1, &s, 1, NULL, NULL, 0);
  check_floats(c, s, FLOATS(4, 2, 3, 4));
  tn_assign(s, floats(c, FLOATS(5, 6, 7, 8)));
  apply(c, crossing, 1, &s, 1, NULL, NULL, 0);
  tn_assign(s, tn_mul(s, tn_num(c, 2)));
  check_floats(c, s, FLOATS(16, 12, 14, 16));
  tn_tensor *m = tn_state(tn_reshape(floats(c, FLOATS(1, 2, 3, 4, 5, 6, 7, 8)), tn_shape(2, 4)));
  tn_tensor *row = tn_reshape(tn_slice(m, 0, 1, 2, 1), tn_shape(4));
  apply(c, crossing, 1, &row, 1, NULL, NULL, 0);
  check_floats(c, tn_reshape(m, tn_shape(8)), FLOATS(1, 2, 3, 4, 8, 6, 7, 8));
}

static void check_rows(tn_context *c, const char *text, const char *size) {
  tn_dim n = tn_dim_var(c, size, 1, 9);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 2), TN_F32), *out[2];
  const tn_type types[] = {{TN_F32, tn_shape(n)}, {TN_BOOL, tn_shape(n, 2)}};
  apply(c, text, 0, &x, 1, types, out, 2);
  tn_tensor *all[] = {tn_neg(out[0]), out[1], out[0]};
  tn_binding *both = bind_compiled(c, all, 3, NULL), *one = bind_compiled(c, &out[1], 1, NULL);
  const float in[] = {1, 2, -3, 4, 5, -6};
  for (int k = 1; k <= 3; k++) {
    tn_binding_input(both, "x", tn_shape(k, 2), TN_F32, in, (size_t)k * 8);
    tn_binding_input(one, "x", tn_shape(k, 2), TN_F32, in, (size_t)k * 8);
    check_bound(both, tn_binding_run(both));
    check_bound(one, tn_binding_run(one));
    check_output_floats(both, "0", (size_t)k, (const float[]){-3, -1, 1});
    check_output_floats(both, "1", (size_t)k * 2, (const float[]){1, 1, 0, 1, 1, 0});
    check_output_floats(both, "2", (size_t)k, (const float[]){3, 1, -1});
    check_output_floats(one, "0", (size_t)k * 2, (const float[]){1, 1, 0, 1, 1, 0});
  }
}

static void plans_have_kernels_of_sizes_that_vary(void **state) {
  char text[2000];
  check_rows(*state, rows, "n");
  check_rows(*state, with(rows, "\"n\"", "\"core_count\"", text), "core_count");
}

static void plans_have_kernels_that_write(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(0, 0, 0, 0))),
            *x = tn_input(c, "x", tn_shape(4), TN_F32);
  check_ok(c, tn_realize(c, &s, 1));
  tn_tensor *in[] = {s, x}, *before = tn_add(s, x);
  apply(c, advance, 1, in, 2, NULL, NULL, 0);
  tn_tensor *out[] = {before, tn_neg(s)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  const float given[] = {1, 2, 3, 4};
  tn_binding_input(b, "x", tn_shape(4), TN_F32, given, sizeof given);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(2, 4, 6, 8));
  check_output_floats(b, "1", FLOATS(-3, -6, -9, -12));
  check_floats(c, s, FLOATS(3, 6, 9, 12));
}

/** Counts the steps of the last plan from the log. */
static void note_steps(void *user, tn_log_level level, const char *text) {
  const char *at = strstr(text, " step");
  (void)level;
  while (at && at > text && at[-1] != ' ') at--;
  if (at) *(int *)user = atoi(at);
}

/** A kernel that reads a state only where it writes it needs no copy. */
static void states_are_written_in_place(void **state) {
  (void)state;
  int steps = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.logger = (tn_logger){.log = note_steps, .user = &steps};
  tn_context *c = tn_open(&d);
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))),
            *x = tn_input(c, "x", tn_shape(4), TN_F32);
  check_ok(c, tn_realize(c, &s, 1));
  tn_tensor *in[] = {s, x};
  apply(c, advance, 1, in, 2, NULL, NULL, 0);
  tn_binding *b = bind_compiled(c, NULL, 0, NULL);
  assert_int_equal(steps, 1);
  const float given[] = {1, 2, 3, 4};
  tn_binding_input(b, "x", tn_shape(4), TN_F32, given, sizeof given);
  check_bound(b, tn_binding_run(b));
  check_floats(c, s, FLOATS(3, 6, 9, 12));
  in[1] = s;
  apply(c, advance, 1, in, 2, NULL, NULL, 0);
  check_floats(c, s, FLOATS(9, 18, 27, 36));
  assert_int_equal(tn_close(c), TN_OK);
}

/** A result that becomes a state's contents and is read elsewhere, and one of which a part is
    unused. */
static void results_go_where_they_are_needed(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))), *in[] = {s, s};
  apply(c, advance, 1, in, 2, NULL, NULL, 0);
  tn_tensor *last = tn_neg(s), *flipped = tn_neg(tn_flip(s, tn_axes(0)));
  apply(c, crossing, 1, &s, 1, NULL, NULL, 0);
  check_floats(c, tn_add(tn_add(last, flipped), s), FLOATS(-3, -9, -6, -3));
  check_floats(c, s, FLOATS(12, 6, 9, 12));
}

/* Given schedules. */

static tn_kernel *kernel_with(const char *text, const char *schedule) {
  tn_ir *ir;
  tn_kernel *k;
  tn_kernel_desc desc = TN_KERNEL_DESC_INIT;
  desc.schedule = schedule;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node sink = tn_ir_parse(ir, text, strlen(text));
  if (!sink) fail_msg("%s", tn_ir_message(ir));
  if (tn_kernel_make(ir, sink, &desc, &k) != TN_OK) fail_msg("%s", tn_ir_message(ir));
  tn_ir_close(ir);
  return k;
}

/** Runs square_add and checks its schedule. */
static void check_scheduled(tn_context *c, const char *text, const char *schedule,
                            const char *expected, bool alike) {
  static float x[N], y[N];
  tn_explanation *told;
  tn_explained_kernel kernel = TN_EXPLAINED_KERNEL_INIT;
  for (int i = 0; i < N; i++) x[i] = (float)(i % 50);
  tn_tensor *a = floats(c, N, x), *b = tn_add(a, tn_num(c, alike ? 0 : 1)), *out;
  tn_tensor *in[] = {a, alike ? a : b};
  tn_kernel *k = kernel_with(text, schedule);
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  d.kernel = k;
  tn_type type = {TN_F32, tn_shape(N)};
  tn_custom(c, &d, in, 2, &type, &out, 1);
  tn_kernel_free(k);
  check_ok(c, tn_explain(c, true, &told));
  tn_binding *bound = bind_compiled(c, &out, 1, NULL);
  check_bound(bound, tn_binding_run(bound));
  check_bound(bound, tn_binding_read(bound, "0", TN_F32, y, sizeof y));
  for (int i = 0; i < N; i++) assert_true(y[i] == x[i] * x[i] + x[i] + (float)!alike);
  bool found = false;
  for (size_t i = 0; tn_explanation_kernel(told, i, &kernel) == TN_OK; i++) {
    char all[2000] = "";
    for (size_t j = 0, at = 0; j < kernel.n_schedule; j++)
      at += (size_t)snprintf(all + at, sizeof all - at, "%s\n", kernel.schedule[j]);
    found |= !strcmp(all, expected);
    if (schedule && *schedule && !strcmp(all, expected)) assert_true(kernel.predicted.total == 0);
  }
  tn_explanation_free(told);
  if (!found) fail_msg("no kernel is scheduled by\n%s", expected);
}

static void kernels_run_as_they_say(void **state) {
  tn_context *c = *state;
  char text[2000];
  check_scheduled(c, square_add, "SPLIT r0 by 8: r1 r2\nKIND r2 vector",
                  "SPLIT r0 by 8: r1 r2\nKIND r2 vector\n", false);
  check_scheduled(c, square_add, "SPLIT r0 by 40: r9 r7 ; blocks\nKIND r9 thread",
                  "SPLIT r0 by 40: r1 r2\nKIND r1 thread\n", false);
  check_scheduled(c, square_add, "", "", false);
  with(square_add, "id=0", "id=7", text);
  check_scheduled(c, text, "SPLIT r7 by 8: r0 r1\nKIND r1 unroll\n",
                  "SPLIT r0 by 8: r1 r2\nKIND r2 unroll\n", false);
  with(square_add, "square_add", "square_add\\nORDER r0 to 0\\nSPLIT r0 by 10: r5 r6", text);
  check_scheduled(c, text, NULL, "ORDER r0 to 0\nSPLIT r0 by 10: r1 r2\n", false);
  check_scheduled(c, text, "KIND r0 loop", "KIND r0 loop\n", false);
}

/** The same tensor passed twice is two arrays to a schedule. */
static void schedules_are_for_the_arrays_there_are(void **state) {
  static const char lines[] = "SPLIT r0 by 8: r1 r2\nDATA e3 inside r2 along r2: r3\n"
                              "DATA e0 inside r2 along r2: r4\nOVERLAP r1 by 7: r5 r6\n";
  check_scheduled(*state, square_add, lines, lines, false);
  check_scheduled(*state, square_add, lines, lines, true);
}

static void check_unscheduled(const char *schedule, tn_status status, const char *why) {
  tn_ir *ir;
  tn_kernel *k = (tn_kernel *)&k;
  tn_kernel_desc desc = TN_KERNEL_DESC_INIT;
  desc.schedule = schedule;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_node sink = tn_ir_parse(ir, square_add, strlen(square_add));
  assert_int_equal(tn_kernel_make(ir, sink, &desc, &k), status);
  assert_null(k);
  check_text(tn_ir_message(ir), why);
  desc.size--;
  assert_int_equal(tn_kernel_make(ir, sink, &desc, &k), TN_ERR_ARGUMENT);
  check_text(tn_ir_message(ir), "initialise it with TN_KERNEL_DESC_INIT");
  tn_ir_close(ir);
}

static void schedules_that_do_not_apply_are_refused(void **state) {
  (void)state;
  check_unscheduled("SPLIT r0 by 8\nSPLIT r0 by 8", TN_ERR_ARGUMENT,
                    "law 2 of the schedule, \"SPLIT r0 by 8\", is refused: the kernel has no range "
                    "r0 at this point");
  check_unscheduled("KIND r0 vector", TN_ERR_ARGUMENT, "the extent is not a number of lanes");
  for (int lanes = 3; lanes < 8; lanes++) {
    char lines[64];
    sprintf(lines, "OVERLAP r0 by %d: r1 r2\nKIND r2 vector", lanes);
    if (lanes != 4) check_unscheduled(lines, TN_ERR_ARGUMENT, "lanes (a power of two up to 64)");
  }
  check_unscheduled("KIND r0 local", TN_ERR_ARGUMENT, "the kind is not supported on this target");
  check_unscheduled("PARTITION r0 at 8: r1 r2\nKIND r1 thread", TN_ERR_ARGUMENT,
                    "parallelises one nest of the kernel but not another");
  check_unscheduled("split r0 by 8", TN_ERR_FORMAT,
                    "line 1 of the schedule: expected the name of a law, found 'split'");
}

/* Refused kernels. */

static void check_unmade(const char *text, const char *why) {
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  tn_kernel *k = (tn_kernel *)&k;
  tn_node sink = tn_ir_parse(ir, text, strlen(text));
  if (!sink) fail_msg("%s", tn_ir_message(ir));
  assert_int_equal(tn_kernel_make(ir, sink, NULL, &k), TN_ERR_ARGUMENT);
  assert_null(k);
  check_text(tn_ir_message(ir), why);
  assert_int_equal(tn_ir_status(ir), TN_ERR_ARGUMENT);
  tn_ir_close(ir);
}

static void what_is_no_kernel_is_not_made(void **state) {
  (void)state;
  char t[2000], u[2000];
  check_unmade("%x = buffer f32 4 [uid=0 version=0]\nreturn %x\n",
               "the op does not belong to this stage");
  check_unmade("%k = sink void \"\"\nreturn %k\n", "one out");
  check_unmade(with(square_add, "return %k", "return %d", t), "the range has no binder");
  check_unmade(with(square_add, "[slot=1]", "[slot=3]", t), "there are 3, one with slot 3");
  check_unmade(with(square_add, "f32 1000 [slot=1]", "f32 2000 [slot=0]", t),
               "the number belongs to another node too");
  with(square_add, "[values=1 ranges=1 pins=0 cut=1 1]", "[values=2 ranges=1 pins=0 cut=1 1 1]", t);
  with(t, "%d %i 1000 %i", "%d %d %i %i 1000 1000 %i", u);
  check_unmade(with(u, "out void %y", "out void %y %y", t), "writes slot 2 twice");
  with(square_add, "range index 1000", "range index %n", t);
  with(t, "%x = param", "%n = var index [min=1 max=8] \"n\"\n%x = param", u);
  check_unmade(u, "variable n is in no param's shape");
  check_unmade(with(square_add, "kind=loop", "kind=thread", t),
               "range r0 of the kernel is of kind thread: it must be a loop");
  with(square_add, "%a = index f32 %x %i", "%m = mod index %i -3\n%a = index f32 %x %m", t);
  check_unmade(t, "the kernel takes mod of an index by what may be -3: it must be positive");
  with(rows, "%a = index f32 %x %i", "%m = floordiv index %i %j\n%a = index f32 %x %m", t);
  check_unmade(t, "the kernel takes floordiv of an index by what may be 0: it must be positive");
  with(rows, "%a = index f32 %x %i", "%m = mod index %i %n\n%a = index f32 %x %m", t);
  tn_kernel_free(kernel_of(t));
  tn_kernel *k;
  assert_int_equal(tn_kernel_make(NULL, NULL, NULL, &k), TN_ERR_ARGUMENT);
  assert_null(k);
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  assert_int_equal(tn_kernel_make(ir, NULL, NULL, &k), TN_ERR_ARGUMENT);
  check_text(tn_ir_message(ir), "the sink is NULL");
  tn_ir_close(ir);
  tn_kernel_free(NULL);
  assert_null(tn_kernel_retain(NULL));
}

/* Coordinates of writes. */

/** Returns a kernel that writes x[i, j], i below 4 and j below 5, to y of 100 or 10 × 10 elements
    at the coordinates that `lines` compute. */
static const char *writing(const char *lines, const char *coords, char *out) {
  static const char text[] =
      "%%x = param i32 4 5 [slot=0]\n"
      "%%y = param i32 %s [slot=1]\n"
      "%%i = range index 4 [id=0 kind=loop axis=0 tail=0]\n"
      "%%j = range index 5 [id=1 kind=loop axis=0 tail=0]\n"
      "%%ij = affine index %%i %%j [0 5 1]\n"
      "%%a = index i32 %%x %%i %%j [component=0]\n%s"
      "%%s = stage void %%a %s %s %%i %%j [values=1 ranges=2 pins=0 cut=1 %s]\n"
      "%%o = out void %%y %%s\n"
      "%%k = sink void %%o \"\"\n"
      "return %%k\n";
  bool two = strchr(coords, ' ');
  const char *dims = two ? "10 10" : "100";
  sprintf(out, text, dims, lines, coords, dims, two ? "2" : "1");
  return out;
}

static void elements_are_written_once(void **state) {
  (void)state;
  char t[2000], u[2000];
  static const char *const once[][2] = {
      {"", "%ij"},
      {"%c = affine index %i %j [19 -5 -1]\n", "%c"},
      {"%c = affine index %i %j [1 3 12]\n", "%c"},
      {"%d = floordiv index %ij 10\n%m = mod index %ij 10\n", "%d %m"},
      {"%c = affine index %i %j [0 3 12]\n%d = floordiv index %c 6\n%m = mod index %c 6\n",
       "%d %m"},
      {"%d = floordiv index %i 2\n%m = mod index %i 2\n%c = affine index %d %j [0 5 1]\n", "%m %c"},
      {"%c = affine index %i %j [0 1 1]\n", "%j %c"},
      {"%m = mod index %ij 10\n%d = floordiv index %ij 10\n%c = affine index %m %d [0 1 1]\n",
       "%c %m"},
  };
  static const char *const twice[][2] = {
      {"%c = affine index %i %j [0 1 1]\n", "%c"},
      {"%c = affine index %i %j [0 4 1]\n", "%c"},
      {"%c = affine index %i %j [0 4 -1]\n", "%c"},
      {"", "%i"},
      {"%m = mod index %ij 10\n", "%m"},
      {"%d = floordiv index %ij 2\n", "%d"},
      {"%d = floordiv index %ij 10\n%m = mod index %ij 5\n", "%d %m"},
      {"%c = min index %j 3\n", "%i %c"},
      {"%c = cast index %a\n", "%i %c"},
  };
  for (size_t i = 0; i < sizeof once / sizeof *once; i++)
    tn_kernel_free(kernel_of(writing(once[i][0], once[i][1], t)));
  writing("%d = floordiv index %ij 2\n%m = mod index %ij 2\n", "%d %m", t);
  with(t, "10 10", "10 2", u);
  tn_kernel_free(kernel_of(with(u, "10 10", "10 2", t))); /* rows one after the other */
  for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
    check_unmade(writing(twice[i][0], twice[i][1], t), "may write elements twice: value 0");
}

/** A value that does not depend on a range may be written repeatedly along it. */
static void elements_are_written_twice_alike(void **state) {
  (void)state;
  char t[2000], u[2000];
  writing("%c = affine index %i %j [0 1 1]\n", "%i %c", t);
  tn_kernel_free(kernel_of(with(t, "%x %i %j", "%x %i 3", u)));
  writing("%c = affine index %i %j [0 1 1]\n", "%c", t);
  check_unmade(with(t, "%x %i %j", "%x %i 3", u), "value 0 varies along range r0");
  tn_kernel_free(kernel_of(with(t, "%x %i %j", "%x 2 3", u)));
}

/** Writes x[k], k from 0 to 7, to element k mod 4 in order, then sums up what was written. */
static const char in_order[] =
    "%x = param f32 8 [slot=0]\n"
    "%y = param f32 4 [slot=1]\n"
    "%k = range index 8 [id=0 kind=loop axis=0 tail=0]\n"
    "%i = range index 4 [id=1 kind=loop axis=0 tail=0]\n"
    "%a = index f32 %x %k [component=0]\n"
    "%m = mod index %k 4\n"
    "%zero = const f32 0\n"
    "%f = fold void %zero %a %a %m 4 %k [states=1 emits=1 ranges=1 pins=0 add -1 1]\n"
    "%v = index f32 %f %i [component=1]\n"
    "%s = stage void %v %i 4 %i [values=1 ranges=1 pins=0 cut=1 1]\n"
    "%o = out void %y %s\n"
    "%z = sink void %o \"\"\n"
    "return %z\n";

static void folds_write_in_order(void **state) {
  static const char *const schedules[] = {"", NULL, "SPLIT r0 by 2: r2 r3\nKIND r3 unroll\n",
                                          "SPLIT r1 by 2: r2 r3\nORDER r3 to 0\n"};
  tn_context *c = *state;
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
    tn_tensor *x = floats(c, FLOATS(1, 2, 3, 4, 5, 6, 7, 8)), *y;
    tn_custom_desc d = TN_CUSTOM_DESC_INIT;
    tn_kernel *k = kernel_with(in_order, schedules[i]);
    d.kernel = k;
    tn_custom(c, &d, &x, 1, &(tn_type){TN_F32, tn_shape(4)}, &y, 1);
    tn_kernel_free(k);
    check_floats(c, y, FLOATS(5, 6, 7, 8));
  }
}

static void check_refused(tn_context *c, const char *text, uint64_t writes, tn_tensor *const in[],
                          size_t n_in, tn_type type, size_t n_out, tn_status s, const char *why) {
  tn_type types[] = {type, type};
  tn_tensor *out[2] = {NULL};
  float x;
  tn_scope_begin(c);
  apply(c, text, writes, in, n_in, types, out, n_out);
  check_text(tn_message(c), why);
  if (n_out) assert_int_equal(tn_read(out[0], TN_F32, &x, 4), s);
  tn_scope_end(c);
}

static void other_arrays_are_refused(void **state) {
  tn_context *c = *state;
  char t[2000];
  static const char read[] = "%e = index f32 %y %i [component=0]\n%c = mul f32 %a %e";
  const tn_type n = {TN_F32, tn_shape(N)}, four = {TN_F32, tn_shape(4)};
  tn_tensor *x = tn_full(c, tn_shape(N), TN_F32, 1), *i = tn_full(c, tn_shape(N), TN_I32, 1);
  tn_tensor *s = tn_state(x), *small = tn_full(c, tn_shape(4), TN_F32, 1);
  check_refused(c, square_add, 0, (tn_tensor *[]){x}, 1, n, 1, TN_ERR_ARGUMENT,
                "the kernel has 3 params; there are 1 inputs and 1 outputs");
  check_refused(c, square_add, 0, (tn_tensor *[]){x, i}, 2, n, 1, TN_ERR_DTYPE,
                "the kernel's param of slot 1 is f32[1000], input 1 is i32[1000]");
  check_refused(c, square_add, 0, (tn_tensor *[]){small, x}, 2, n, 1, TN_ERR_SHAPE,
                "the kernel's param of slot 0 is f32[1000], input 0 is f32[4]");
  check_refused(c, square_add, 0, (tn_tensor *[]){x, x}, 2, four, 1, TN_ERR_SHAPE,
                "the kernel's param of slot 2 is f32[1000], output 0 is f32[4]");
  check_refused(c, square_add, 1, (tn_tensor *[]){s, x}, 2, n, 1, TN_ERR_ARGUMENT,
                "the kernel does not write slot 0, and `writes` names input 0");
  check_refused(c, advance, 0, (tn_tensor *[]){small}, 1, four, 1, TN_ERR_ARGUMENT,
                "the kernel writes slot 0, and `writes` does not name input 0");
  check_refused(c, with(square_add, "%c = mul f32 %a %a", read, t), 0, (tn_tensor *[]){x, x}, 2, n,
                1, TN_ERR_ARGUMENT, "the kernel reads slot 2, an output");
  check_refused(c, advance, 1, (tn_tensor *[]){small, small}, 2, four, 0, TN_ERR_ARGUMENT,
                "only a state");
  tn_dim m = tn_dim_var(c, "n", 1, 10);
  tn_tensor *v = tn_input(c, "x", tn_shape(m, 2), TN_F32);
  check_refused(c, rows, 0, &v, 1, (tn_type){TN_F32, tn_shape(m)}, 2, TN_ERR_SHAPE,
                "slot 0 is f32[n from 1 to 9,2], input 0 is f32[n from 1 to 10,2]");
}

/* A refused operation's payload is destroyed at once. */

static void count_call(void *user) { ++*(int *)user; }

static void payloads_are_let_go(void **state) {
  tn_context *c = *state;
  int destroyed = 0;
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_kernel *k = kernel_of(advance);
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))), *in[] = {s, s};
  d.kernel = k;
  d.user = &destroyed;
  d.destroy = count_call;
  d.writes = 1;
  tn_custom(c, &d, in, 2, NULL, NULL, 0);
  assert_int_equal(destroyed, 1);
  check_floats(c, s, FLOATS(3, 6, 9, 12));
  tn_kernel_free(k);
}

/* Exhausted memory. */

static void memory_may_run_out(void **state) {
  (void)state;
  for (size_t fail_at = 0, calls = 1; fail_at <= calls; fail_at++) {
    counting n = {.fail_at = fail_at};
    const tn_allocator own = {counting_alloc, counting_release, &n, NULL};
    tn_ir *ir;
    tn_kernel *k = NULL;
    if (tn_ir_open(&own, &ir) == TN_OK) {
      tn_node sink = tn_ir_parse(ir, advance, strlen(advance));
      tn_kernel_desc desc = TN_KERNEL_DESC_INIT;
      desc.schedule = "SPLIT r0 by 2: r1 r2\nKIND r2 unroll\n";
      tn_status s = sink ? tn_kernel_make(ir, sink, &desc, &k) : tn_ir_status(ir);
      assert_int_equal(s, k ? TN_OK : TN_ERR_MEMORY);
    }
    tn_ir_close(ir);
    if (fail_at) assert_null(k);
    if (!fail_at) calls = n.calls;
    tn_kernel_free(k);
    assert_int_equal(n.out, 0);
  }
}

static void contexts_may_run_out(void **state) {
  (void)state;
  tn_kernel *k = kernel_of(advance);
  for (size_t fail_at = 0, calls = 1; fail_at <= calls; fail_at += 1 + fail_at / 40) {
    counting n = {.fail_at = fail_at};
    tn_context *c = open_counting(&n, "NULL");
    tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))), *in[] = {s, s};
    tn_custom_desc d = TN_CUSTOM_DESC_INIT;
    float got[4];
    d.kernel = k;
    d.writes = 1;
    if (c) tn_custom(c, &d, in, 2, NULL, NULL, 0);
    tn_status status = c ? tn_read(s, TN_F32, got, sizeof got) : TN_ERR_MEMORY;
    if (status != TN_OK) assert_int_equal(status, TN_ERR_MEMORY);
    if (!fail_at) assert_int_equal(status, TN_OK);
    if (!fail_at) calls = n.calls;
    tn_close(c);
    assert_int_equal(n.out, 0);
  }
  tn_kernel_free(k);
}

/* Equality with the interpreter of tensor graphs. */

typedef struct interpreting {
  ir *g;
  float old[4], x[4];
  interp_array array[2], got;
} interpreting;

static const interp_array *contents(void *user, int64_t uid, int64_t version) {
  (void)version;
  return &((interpreting *)user)->array[uid];
}

static void interpret(void *arg) {
  interpreting *t = arg;
  arena *a = ir_arena(t->g);
  str s = str_new(a);
  str_add(&s, "%s = buffer f32 4 [uid=0 version=0]\n"
              "%x = buffer f32 4 [uid=1 version=0]\n"
              "%y = neg f32 %x\n"
              "%k = kernel f32 %s %y 4 [slot=0 inputs=2] ");
  print_quoted(&s, advance, strlen(advance));
  str_add(&s, "\nreturn %k\n");
  node_list roots = parse_graph(t->g, a, str_text(&s), strlen(str_text(&s)));
  interp_env e = {.buffer = contents, .user = t};
  assert_int_equal(interp_tensor(&e, roots.at, 1, &t->got, a), TN_ERR_ARGUMENT);
  e.kernel = interp_kernel_node;
  if (interp_tensor(&e, roots.at, 1, &t->got, a)) diag_rethrow(ir_diag(t->g));
}

static void the_interpreter_runs_kernels(void **state) {
  (void)state;
  diag d = {0};
  interpreting t = {.g = ir_new(&mem_system, &d, false), .old = {1, 2, 3, 4}, .x = {1, 1, 2, 2}};
  t.array[0] = (interp_array){DT_F32, 1, {4}, t.old, sizeof t.old};
  t.array[1] = (interp_array){DT_F32, 1, {4}, t.x, sizeof t.x};
  if (diag_catch(&d, interpret, &t)) fail_msg("%s", d.text);
  const float expected[] = {1, 3, 4, 6};
  assert_memory_equal(t.got.data, expected, sizeof expected);
  assert_true(t.old[0] == 1 && t.old[3] == 4);
  ir_free(t.g);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_computes),
      cmocka_unit_test(a_kernel_writes_a_state),
      WITH(reads_are_of_old_contents),
      WITH(plans_have_kernels_of_sizes_that_vary),
      WITH(plans_have_kernels_that_write),
      cmocka_unit_test(states_are_written_in_place),
      WITH(results_go_where_they_are_needed),
      WITH(kernels_run_as_they_say),
      WITH(schedules_are_for_the_arrays_there_are),
      cmocka_unit_test(schedules_that_do_not_apply_are_refused),
      cmocka_unit_test(what_is_no_kernel_is_not_made),
      cmocka_unit_test(elements_are_written_once),
      cmocka_unit_test(elements_are_written_twice_alike),
      WITH(folds_write_in_order),
      WITH(other_arrays_are_refused),
      WITH(payloads_are_let_go),
      cmocka_unit_test(memory_may_run_out),
      cmocka_unit_test(contexts_may_run_out),
      cmocka_unit_test(the_interpreter_runs_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
