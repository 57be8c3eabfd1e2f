/* Tests the search among schedules (codegen/choose/schedule_search.c): on a convolution with a
   stride of two, whose weights come from the second cache for each tile, it finds a schedule that
   the cost model prefers; it finds the same one again; and a kernel that is too small to search
   keeps the steps' own decisions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/stop.h"
#include "codegen/choose/choice.h"
#include "ir/core/ir.h"
#include "ir/core/math_mode.h"
#include "ir/text/parse.h"
#include "target/machine.h"

#include <stdio.h>
#include <string.h>

static target machine = {.vector_bytes = 64,
                         .registers = 32,
                         .threads = 2,
                         .hardware = {.l1_bytes = 32 << 10,
                                      .l2_bytes = 1 << 20,
                                      .l3_bytes = 32 << 20,
                                      .l3_cores = 2,
                                      .line_bytes = 64,
                                      .page_bytes = 4096,
                                      .cores = 2}};

/** y[s, s, 128] of x[2s + 1, 2s + 1, c] and w[8, c, 3, 3, 16], in steps of two, as a format. */
static const char convolution[] =
    "%%y = param f32 %d %d 128 [slot=0]\n"
    "%%x = param f32 %d %d %d [slot=1]\n"
    "%%w = param f32 8 %d 3 3 16 [slot=2]\n"
    "%%i = range index %d [id=0 kind=loop axis=0 tail=0]\n"
    "%%j = range index %d [id=1 kind=loop axis=0 tail=0]\n"
    "%%n = range index 8 [id=2 kind=loop axis=0 tail=0]\n"
    "%%l = range index 16 [id=3 kind=loop axis=0 tail=0]\n"
    "%%c = range index %d [id=4 kind=loop axis=0 tail=0]\n"
    "%%p = range index 3 [id=5 kind=loop axis=0 tail=0]\n"
    "%%q = range index 3 [id=6 kind=loop axis=0 tail=0]\n"
    "%%row = affine index %%i %%p [0 2 1]\n"
    "%%column = affine index %%j %%q [0 2 1]\n"
    "%%to = affine index %%n %%l [0 16 1]\n"
    "%%a = index f32 %%x %%row %%column %%c [component=0]\n"
    "%%b = index f32 %%w %%n %%c %%p %%q %%l [component=0]\n"
    "%%ab = mul f32 %%a %%b\n"
    "%%zero = const f32 0\n"
    "%%f = fold void %%zero %%ab %%c %%p %%q [states=1 emits=0 ranges=3 pins=0 add -1]\n"
    "%%v = index f32 %%f [component=0]\n"
    "%%s = stage void %%v %%i %%j %%to %d %d 128 %%i %%j %%n %%l "
    "[values=1 ranges=4 pins=0 cut=1 3]\n"
    "%%o = out void %%y %%s\n"
    "%%sink = sink void %%o \"convolution\"\n"
    "return %%sink\n";

/** y[i, h, d], the sum over j of x[i, h, j] · v[j, h, d], where x[i, h, j] is that over c of
    q[i, h, c] · k[j, h, c]: products of rows by heads, whose scattered k is the same for all rows
   of a head. */
static const char heads[] =
    "%y = param f32 384 12 64 [slot=0]\n"
    "%q = param f32 384 12 64 [slot=1]\n"
    "%k = param f32 384 12 64 [slot=2]\n"
    "%v = param f32 384 12 64 [slot=3]\n"
    "%i = range index 384 [id=0 kind=loop axis=0 tail=0]\n"
    "%h = range index 12 [id=1 kind=loop axis=0 tail=0]\n"
    "%d = range index 64 [id=2 kind=loop axis=0 tail=0]\n"
    "%j = range index 384 [id=3 kind=loop axis=0 tail=0]\n"
    "%c = range index 64 [id=4 kind=loop axis=0 tail=0]\n"
    "%r = range index 384 [id=5 kind=loop axis=0 tail=0]\n"
    "%zero = const f32 0\n"
    "%a = index f32 %q %i %h %c [component=0]\n"
    "%b = index f32 %k %j %h %c [component=0]\n"
    "%ab = mul f32 %a %b\n"
    "%f = fold void %zero %ab %c [states=1 emits=0 ranges=1 pins=0 add -1]\n"
    "%e = index f32 %f [component=0]\n"
    "%x = stage void %e %j 384 %j [values=1 ranges=1 pins=0 cut=0 1]\n"
    "%xr = index f32 %x %r [component=0]\n"
    "%vr = index f32 %v %r %h %d [component=0]\n"
    "%xv = mul f32 %xr %vr\n"
    "%g = fold void %zero %xv %r [states=1 emits=0 ranges=1 pins=0 add -1]\n"
    "%w = index f32 %g [component=0]\n"
    "%s = stage void %w %i %h %d 384 12 64 %i %h %d [values=1 ranges=3 pins=0 cut=1 3]\n"
    "%o = out void %y %s\n"
    "%sink = sink void %o \"heads\"\n"
    "return %sink\n";

typedef struct fixture {
  diag diag;
  arena arena;
  ir *g;
  int size, channels;  /* s, c of a convolution; 0: the products by heads */
  decision_list found; /* by the search */
  decision_list usual; /* by the steps alone */
  decision_list made;  /* by the steps, with those of the search wanted */
  double before, after;
  double ns;          /* of one thread, by the steps alone */
  double found_bytes; /* of arrays, as found */
} fixture;

/** The predicted time of a kernel with some decisions, as the search weighs it; and that of one
    thread, and the bytes of arrays. */
static double time_with(choice c, const decision_list *wanted, decision_list *made, double *ns,
                        double *bytes) {
  c.wanted = *wanted;
  for (size_t i = 0; i < CHOICE_STEPS; i++) choice_steps[i].apply(&c);
  *made = c.made;
  kernel_cost cost = choice_cost(&c);
  *ns = cost.total;
  *bytes = choice_array_bytes(&c);
  return kernel_cost_searched(&cost);
}

static void search_body(void *arg) {
  fixture *f = arg;
  char text[4096];
  int s = f->size, t = 2 * s + 1;
  int n = !s ? snprintf(text, sizeof text, "%s", heads)
             : snprintf(text, sizeof text, convolution, s, s, t, t, f->channels, f->channels, s, s,
                        f->channels, s, s);
  node_list roots = parse_graph(f->g, &f->arena, text, (size_t)n);
  choice c = {.laws = {.g = f->g}, .target = &machine, .math = MATH_DEFAULT, .sink = roots.at[0]};
  f->found = choice_search(&c);
  double ns, bytes;
  f->before = time_with(c, &(decision_list){0}, &f->usual, &f->ns, &bytes);
  f->after = time_with(c, &f->found, &f->made, &ns, &f->found_bytes);
}

static void search(fixture *f, int size, int channels) {
  *f = (fixture){.size = size, .channels = channels};
  arena_init(&f->arena, &mem_system, &f->diag);
  f->g = ir_new(&mem_system, &f->diag, false);
  assert_non_null(f->g);
  if (diag_catch(&f->diag, search_body, f) != TN_OK) fail_msg("%s", f->diag.text);
}

static void end(fixture *f) {
  ir_free(f->g);
  arena_free(&f->arena);
}

static bool is_changed(const decision_list *d) {
  bool changed = false;
  for (size_t i = 0; i < d->n; i++) changed |= d->at[i].taken != 0;
  return changed;
}

/** A search ends before its next attempt. */
static void searches_are_cancelled(void **state) {
  (void)state;
  atomic_bool cancelled;
  atomic_init(&cancelled, true);
  const stop_condition stop = {.cancelled = &cancelled};
  fixture f = {.size = 28, .channels = 64};
  f.diag.stop = &stop;
  arena_init(&f.arena, &mem_system, &f.diag);
  f.g = ir_new(&mem_system, &f.diag, false);
  assert_non_null(f.g);
  assert_int_equal(diag_catch(&f.diag, search_body, &f), TN_ERR_CANCELLED);
  end(&f);
}

static void a_better_schedule_is_found(void **state) {
  (void)state;
  fixture f;
  search(&f, 28, 128);
  assert_true(f.found.n > 0 && is_changed(&f.found));
  assert_true(f.after <= MACHINE_ALTERNATIVE_GAIN * f.before);
  assert_int_equal(f.made.n, f.found.n); /* on the kernel itself as on its copy */
  for (size_t i = 0; i < f.made.n; i++) {
    assert_int_equal(f.made.at[i].kind, f.found.at[i].kind);
    assert_int_equal(f.made.at[i].n, f.found.at[i].n);
    assert_int_equal(f.made.at[i].taken, f.found.at[i].taken);
  }
  end(&f);
}

static void the_same_schedule_is_found_again(void **state) {
  (void)state;
  fixture f, again;
  search(&f, 28, 128);
  search(&again, 28, 128);
  assert_int_equal(f.found.n, again.found.n);
  for (size_t i = 0; i < f.found.n; i++)
    assert_int_equal(f.found.at[i].taken, again.found.at[i].taken);
  end(&f);
  end(&again);
}

static void small_kernel_is_not_searched(void) {
  fixture f;
  search(&f, 3, 8);
  bool has_alternatives = false;
  for (size_t i = 0; i < f.usual.n; i++) has_alternatives |= f.usual.at[i].n > 1;
  assert_true(has_alternatives && f.ns < MACHINE_SEARCHED_KERNEL_NS);
  assert_false(is_changed(&f.found));
  end(&f);
}

/** The time of a kernel decides, which does not grow with the number of cores that would wait. */
static void small_kernels_are_not_searched(void **state) {
  (void)state;
  small_kernel_is_not_searched();
  machine.hardware.cores = 96;
  small_kernel_is_not_searched();
  machine.hardware.cores = 2;
}

static void heads_are_outermost_where_rows_share_their_operands(void **state) {
  (void)state;
  fixture f;
  search(&f, 0, 0);
  size_t outermost = 0;
  for (size_t i = 0; i < f.found.n; i++)
    outermost += f.found.at[i].kind == DECISION_OUTERMOST && f.found.at[i].taken == 1;
  assert_int_equal(outermost, 1);
  assert_true(f.after < f.before);
  end(&f);
}

/** The schedule that is found without a limit has arrays of 8648 bytes. */
static void arrays_stay_within_scratch_memory(void **state) {
  (void)state;
  fixture f;
  machine.scratch = 8192;
  search(&f, 0, 0);
  assert_true(f.found_bytes > 0 && f.found_bytes <= 8192);
  end(&f);
  machine.scratch = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_better_schedule_is_found),
      cmocka_unit_test(the_same_schedule_is_found_again),
      cmocka_unit_test(arrays_stay_within_scratch_memory),
      cmocka_unit_test(searches_are_cancelled),
      cmocka_unit_test(small_kernels_are_not_searched),
      cmocka_unit_test(heads_are_outermost_where_rows_share_their_operands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
