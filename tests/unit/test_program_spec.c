/* Tests program specs, the facts of a kernel's launch (buffers, variables, sizes) derived from its
   graph, and PROGRAM nodes (a kernel with its compilation stages), built stage by stage and
   checked. */
#include "compile/program_node.h"
#include "compile/program_spec.h"
#include "ir/text/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

typedef struct fixture {
  diag diag;
  ir *ir;
  const char *text;
  const node *root;
  tn_program_spec spec;
  void (*step)(struct fixture *f);
} fixture;

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  f.ir = ir_new(&mem_system, &f.diag, false);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  ir_free(((fixture *)*state)->ir);
  return 0;
}

static void parse(void *arg) {
  fixture *f = arg;
  f->root = parse_graph(f->ir, ir_arena(f->ir), f->text, strlen(f->text)).at[0];
}

static const node *graph(fixture *f, const char *text) {
  f->text = text;
  if (diag_catch(&f->diag, parse, f)) fail_msg("%s", f->diag.text);
  return f->root;
}

static void derive_body(void *arg) {
  fixture *f = arg;
  program_spec_derive(f->ir, f->root, &f->spec);
}

static tn_status derive(fixture *f, const char *text) {
  graph(f, text);
  return diag_catch(&f->diag, derive_body, f);
}

static void run_step(void *arg) { ((fixture *)arg)->step(arg); }

static tn_status attempt(fixture *f, void (*step)(fixture *f)) {
  f->step = step;
  return diag_catch(&f->diag, run_step, f);
}

#define KERNEL                                             \
  "%count = var i64 [min=1 max=64] \"core_count\"\n"       \
  "%n = var i64 [min=1 max=9] \"n\"\n"                     \
  "%id = special i64 %count \"core_id\"\n"                 \
  "%out = param f32 9 [slot=3]\n"                          \
  "%in = param f32 9 [slot=7]\n"                           \
  "%both = param f32 9 [slot=1]\n"                         \
  "%r = range i64 %n [id=0 kind=loop axis=0 tail=0]\n"     \
  "%i = add i64 %r %id\n"                                  \
  "%x = load f32 %in %i\n"                                 \
  "%y = load f32 %both %i\n"                               \
  "%z = add f32 %x %y\n"                                   \
  "%put = store void %out %i %z\n"                         \
  "%after = after f32 %both %put\n"                        \
  "%again = store void %after %i %x\n"                     \
  "%end = end void %r %put %again\n"                       \
  "%l = linear void %id %r %i %x %y %z %put %again %end\n" \
  "%s = sink void %end \"shift\"\n"

static void slots_equal(const int64_t *slots, size_t n, const int64_t *expected,
                        size_t n_expected) {
  assert_int_equal(n, n_expected);
  for (size_t i = 0; i < n; i++) assert_int_equal(slots[i], expected[i]);
}

static void check_kernel(const tn_program_spec *s) {
  slots_equal(s->globals, s->n_globals, (int64_t[]){1, 3, 7}, 3);
  slots_equal(s->outs, s->n_outs, (int64_t[]){1, 3}, 2);
  slots_equal(s->ins, s->n_ins, (int64_t[]){1, 7}, 2);
  assert_int_equal(s->n_vars, 2);
  assert_string_equal(s->vars[0].name, "core_count");
  assert_int_equal(s->vars[0].max, 64);
  assert_string_equal(s->vars[1].name, "n");
  assert_int_equal(s->vars[1].min, 1);
  assert_int_equal(s->n_values, 3);
  assert_string_equal(s->value_names[0], "core_count");
  assert_string_equal(s->value_names[1], "core_id");
  assert_string_equal(s->value_names[2], "n");
  assert_int_equal(s->core_id, 1);
  assert_string_equal(s->global[0]->text, "core_count");
  assert_int_equal(s->global[1]->lo, 1);
  assert_int_equal(s->global[2]->hi, 1);
  assert_null(s->local[0]);
}

static void from_linear(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, KERNEL "return %l\n"), TN_OK);
  check_kernel(&f->spec);
  assert_string_equal(f->spec.name, "");
}

static void from_sink(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, KERNEL "return %s\n"), TN_OK);
  check_kernel(&f->spec);
  assert_string_equal(f->spec.name, "shift");
}

static void from_program(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, KERNEL "%d = device void \"CPU\"\n"
                                    "%t = source void \"text\"\n"
                                    "%p = program void %s %d %l %t\n"
                                    "return %p\n"),
                   TN_OK);
  check_kernel(&f->spec);
  assert_string_equal(f->spec.name, "shift");
  assert_string_equal(f->spec.device, "CPU");
  assert_ptr_equal(f->spec.ast, f->root);
}

static void from_kernel_graph(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, "%in = param f32 8 [slot=4]\n"
                             "%out = param f32 8 [slot=2]\n"
                             "%r = range index 8 [id=0 kind=loop axis=0 tail=0]\n"
                             "%x = index f32 %in %r [component=0]\n"
                             "%st = stage void %x %r 8 %r [values=1 ranges=1 pins=0 cut=0 1]\n"
                             "%o = out void %out %st\n"
                             "%s = sink void %o \"copy\"\n"
                             "return %s\n"),
                   TN_OK);
  slots_equal(f->spec.globals, f->spec.n_globals, (int64_t[]){2, 4}, 2);
  slots_equal(f->spec.outs, f->spec.n_outs, (int64_t[]){2}, 1);
  slots_equal(f->spec.ins, f->spec.n_ins, (int64_t[]){4}, 1);
  assert_int_equal(f->spec.core_id, -1);
  assert_int_equal(f->spec.n_values, 0);
}

typedef struct termed {
  fixture *f;
  launch_limits terms;
} termed;

static void terms_body(void *arg) {
  termed *t = arg;
  t->terms = program_spec_limits(t->f->ir, ir_arena(t->f->ir), &t->f->spec);
}

/** Bounds derived for each buffer; none for one whose size no launch computes. */
static void terms_of_launches(void **state) {
  fixture *f = *state;
  termed t = {.f = f};
  static const char kernel[] =
      "%%n = var index [min=1 max=9] \"n\"\n%%a = cast i64 %%n\n%%b = shl i64 %%a %%a\n"
      "%%c = lt bool %%a %%b\n%%w = where index %%c %%n 2\n"
      "%%in = param f64 %s 3 [slot=4]\n%%out = param f32 %%n [slot=2]\n"
      "%%r = range index %%n [id=0 kind=loop axis=0 tail=0]\n"
      "%%x = index f64 %%in %%r 0 [component=0]\n%%y = cast f32 %%x\n"
      "%%st = stage void %%y %%r %%n %%r [values=1 ranges=1 pins=0 cut=0 1]\n"
      "%%o = out void %%out %%st\n%%s = sink void %%o \"copy\"\nreturn %%s\n";
  for (int computed = 1; computed >= 0; computed--) {
    char text[sizeof kernel + 8];
    int64_t seven = 7, room[16], dims[3];
    snprintf(text, sizeof text, kernel, computed ? "%n" : "%w");
    if (derive(f, text)) fail_msg("%s", f->diag.text);
    assert_int_equal(diag_catch(&f->diag, terms_body, &t), TN_OK);
    assert_int_equal(f->diag.status, TN_OK);
    assert_true(t.terms.arrays[0].is_stored && !t.terms.arrays[1].is_stored);
    assert_int_equal(t.terms.bounds[0], 1);
    assert_int_equal(t.terms.bounds[1], 9);
    assert_int_equal(t.terms.arrays[0].element, 4);
    assert_int_equal(t.terms.arrays[1].element, computed ? 8 : 0);
    assert_int_equal(t.terms.dims.n_results, computed ? 3 : 1);
    assert_true(t.terms.dims.n_terms <= 16);
    assert_int_equal(launch_exprs_eval(&t.terms.dims, &seven, room, dims, &f->diag), TN_OK);
    assert_int_equal(dims[0], 7);
    assert_true(!computed || (dims[1] == 7 && dims[2] == 3));
    assert_int_equal(t.terms.arrays[0].rank, 1);
    assert_int_equal(t.terms.arrays[1].rank, computed ? 2 : 0);
  }
}

/** A program with two launch indices of given names and sizes. */
#define TWO_INDICES(first, a, second, b) \
  "%a = const i32 " a "\n"               \
  "%b = const i32 " b "\n"               \
  "%x = special i32 %a \"" first "\"\n"  \
  "%y = special i32 %b \"" second "\"\n" \
  "%out = param i32 99 [slot=0]\n"       \
  "%z = add i32 %x %y\n"                 \
  "%put = store void %out %z %z\n"       \
  "%l = linear void %x %y %z %put\n"     \
  "return %l\n"

static void launch_indices(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, TWO_INDICES("g1", "5", "l0", "32")), TN_OK);
  assert_int_equal(f->spec.global[0]->ints[0], 1);
  assert_int_equal(f->spec.global[1]->ints[0], 5);
  assert_int_equal(f->spec.local[0]->ints[0], 32);
  assert_int_equal(f->spec.local[2]->ints[0], 1);
  assert_int_equal(f->spec.n_values, 0);
  assert_int_equal(derive(f, TWO_INDICES("i0", "7", "i2", "3")), TN_OK);
  assert_int_equal(f->spec.global[0]->ints[0], 7);
  assert_int_equal(f->spec.global[2]->ints[0], 3);
  assert_null(f->spec.local[0]);
}

static void contradictions(void **state) {
  fixture *f = *state;
  assert_int_equal(derive(f, TWO_INDICES("g0", "5", "i0", "3")), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "a kernel mixes worker numbers, global ids and ids in groups");
  assert_int_equal(derive(f, TWO_INDICES("core_id", "5", "l0", "3")), TN_ERR_INTERNAL);
  assert_int_equal(derive(f, TWO_INDICES("g0", "5", "g0", "3")), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "special g0 has two sizes in one kernel");
  assert_int_equal(derive(f, TWO_INDICES("g0", "5", "g3", "3")), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "unknown special \"g3\"");
  assert_int_equal(derive(f, "%a = var i32 [min=0 max=5] \"n\"\n"
                             "%b = var i64 [min=0 max=6] \"n\"\n"
                             "%c = cast i64 %a\n"
                             "%d = add i64 %b %c\n"
                             "%out = param i64 9 [slot=0]\n"
                             "%put = store void %out %b %d\n"
                             "%l = linear void %c %d %put\n"
                             "return %l\n"),
                   TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "variable n has two bounds in one kernel");
}

/* Stages. */

#define PROGRAM KERNEL "%d = device void \"CPU\"\n%p = program void %s %d %l\nreturn %p\n"

static void make_all_stages(fixture *f) {
  const node *p = program_node_source(f->ir, f->root, "int x;", 6);
  f->root = program_node_binary(f->ir, p, "\x7f\0ELF", 5);
  program_node_check(f->ir, f->root);
}

static void stages_in_order(void **state) {
  fixture *f = *state;
  graph(f, PROGRAM);
  assert_int_equal(attempt(f, make_all_stages), TN_OK);
  assert_int_equal(f->root->n_src, 5);
  assert_int_equal(f->root->src[4]->n_text, 5);
  assert_string_equal(f->root->src[1]->text, "CPU");
}

static void skip_linear(fixture *f) { program_node_source(f->ir, f->root, "x", 1); }
static void skip_source(fixture *f) { program_node_binary(f->ir, f->root, "x", 1); }
static void empty_source(fixture *f) { program_node_source(f->ir, f->root, "", 0); }
static void empty_binary(fixture *f) {
  program_node_binary(f->ir, program_node_source(f->ir, f->root, "x", 1), "", 0);
}
static void check_only(fixture *f) { program_node_check(f->ir, f->root); }

static void stages_are_checked(void **state) {
  fixture *f = *state;
  graph(f, KERNEL "%d = device void \"CPU\"\n%p = program void %s %d\nreturn %p\n");
  assert_int_equal(attempt(f, skip_linear), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "a program's stages are not made in order");
  graph(f, PROGRAM);
  assert_int_equal(attempt(f, skip_source), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "a program's stages are not made in order");
  assert_int_equal(attempt(f, empty_source), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "a program's source is empty");
  assert_int_equal(attempt(f, empty_binary), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "a program's binary is empty");
  graph(f, KERNEL "return %l\n");
  assert_int_equal(attempt(f, check_only), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text, "expected a program, got linear");
}

static void linear_is_verified(void **state) {
  fixture *f = *state;
  graph(f, KERNEL "%bad = linear void %r %i %put\n"
                  "%d = device void \"CPU\"\n%p = program void %s %d %bad\nreturn %p\n");
  assert_int_equal(attempt(f, check_only), TN_ERR_INTERNAL);
  graph(f, KERNEL "%other = param f32 9 [slot=5]\n"
                  "%k = const i64 0\n%v = load f32 %other %k\n"
                  "%more = linear void %v\n"
                  "%d = device void \"CPU\"\n%p = program void %s %d %more\nreturn %p\n");
  assert_int_equal(attempt(f, check_only), TN_ERR_INTERNAL);
  assert_string_equal(f->diag.text,
                      "a program's linear form uses a buffer that is not in its kernel");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(from_linear),        TEST(from_sink),
                                     TEST(from_program),       TEST(terms_of_launches),
                                     TEST(from_kernel_graph),  TEST(launch_indices),
                                     TEST(contradictions),     TEST(stages_in_order),
                                     TEST(stages_are_checked), TEST(linear_is_verified)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
