/* Tests the cost model of scheduled kernels (target/kernel_cost.h): what a summary counts for each
   loop of a tiled product, and the order of predictions: operands that do not fit a cache, rows
   that compete for its sets, gathered lanes and dependent sums cost more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/ir.h"
#include "ir/core/math_mode.h"
#include "ir/text/parse.h"
#include "target/hardware.h"
#include "target/kernel_cost.h"
#include "target/machine.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const target machine = {.vector_bytes = 32,
                               .registers = 16,
                               .hardware = {.l1_bytes = 32 * KIB,
                                            .l2_bytes = MIB,
                                            .l3_bytes = 32 * MIB,
                                            .l3_cores = 2,
                                            .line_bytes = 64,
                                            .page_bytes = 4096,
                                            .cores = 2}};

typedef struct fixture {
  diag diag;
  arena arena;
  ir *g;
  const node *sink;
  kernel_summary summary;
  kernel_cost cost;
  char text[2048];
} fixture;

static void measure(void *arg) {
  fixture *f = arg;
  f->sink = parse_graph(f->g, &f->arena, f->text, strlen(f->text)).at[0];
  f->summary = kernel_summary_of(f->g, f->sink, &machine, MATH_DEFAULT);
  f->cost = kernel_cost_of(&f->arena, &f->summary, &machine);
}

static void open_fixture(fixture *f) {
  *f = (fixture){0};
  arena_init(&f->arena, &mem_system, &f->diag);
  f->g = ir_new(&mem_system, &f->diag, false);
  assert_non_null(f->g);
}

static void close_fixture(fixture *f) {
  ir_free(f->g);
  arena_free(&f->arena);
}

/** The cost of the kernel in f->text. */
static kernel_cost measured(fixture *f) {
  if (diag_catch(&f->diag, measure, f) != TN_OK) fail_msg("%s", f->diag.text);
  return f->cost;
}

/** y[8, 64] = a[8, 16] · b[16, 64], in tiles of 4 rows and a vector of 8 columns. */
static const char product[] =
    "%y = param f32 8 64 [slot=0]\n"
    "%a = param f32 8 16 [slot=1]\n"
    "%b = param f32 16 64 [slot=2]\n"
    "%i = range index 2 [id=0 kind=loop axis=0 tail=0]\n"
    "%r = range index 4 [id=1 kind=unroll axis=0 tail=0]\n"
    "%j = range index 8 [id=2 kind=loop axis=0 tail=0]\n"
    "%l = range index 8 [id=3 kind=vector axis=0 tail=0]\n"
    "%k = range index 16 [id=4 kind=loop axis=0 tail=0]\n"
    "%row = affine index %i %r [0 4 1]\n"
    "%column = affine index %j %l [0 8 1]\n"
    "%x = index f32 %a %row %k [component=0]\n"
    "%w = index f32 %b %k %column [component=0]\n"
    "%xw = mul f32 %x %w\n"
    "%zero = const f32 0\n"
    "%f = fold void %zero %xw %k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
    "%v = index f32 %f [component=0]\n"
    "%s = stage void %v %row %column 8 64 %i %j %r %l [values=1 ranges=4 pins=0 cut=1 2]\n"
    "%o = out void %y %s\n"
    "%sink = sink void %o \"product\"\n"
    "return %sink\n";

static void summarise_again(void *arg) {
  fixture *f = arg;
  f->summary = kernel_summary_of(f->g, f->sink, &machine, MATH_DEFAULT);
}

/** A search summarises a kernel up to 60 times. */
static void a_summary_is_in_scratch_memory(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  strcpy(f.text, product);
  measured(&f); /* makes the nodes of addresses */
  arena_mark before = arena_save(ir_arena(f.g));
  assert_int_equal(diag_catch(&f.diag, summarise_again, &f), TN_OK);
  arena_mark after = arena_save(ir_arena(f.g));
  assert_memory_equal(&before, &after, sizeof before);
  close_fixture(&f);
}

static void a_summary_counts_a_tile(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  strcpy(f.text, product);
  measured(&f);
  assert_int_equal(f.summary.loops.n, 4); /* the body, i, j and k */
  assert_int_equal(f.summary.accesses.n, 3);
  const summary_loop *j = &f.summary.loops.at[2], *k = &f.summary.loops.at[3];
  assert_int_equal(k->parent, 2);
  assert_true(k->trips == 16 && k->runs == 2 * 8 * 16);
  assert_true(k->operations == 4); /* multiply-adds */
  assert_true(k->loads == 5);      /* four scalars and a vector */
  assert_true(k->stores == 0 && k->lanes_moved == 0);
  assert_true(k->chain > 0 && k->steps == 16);
  assert_true(j->stores == 4 && j->operations == 0);
  /* 5 loads at two a cycle bound an iteration of k, and loops cost a cycle or two more. */
  double cycles = f.cost.core * MACHINE_CYCLES_PER_NS;
  assert_true(cycles >= 2.5 * k->runs && cycles < 4.5 * k->runs);
  assert_true(f.cost.memory[2] == 0); /* all of it fits the last cache */
  close_fixture(&f);
}

/** y[r] = Σ over 64 times of the sum of 256 rows' lines that lie `stride` floats apart. */
static kernel_cost rows_apart(fixture *f, int rows, int stride) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 8 [slot=0]\n"
           "%%a = param f32 %d %d [slot=1]\n"
           "%%l = range index 8 [id=0 kind=vector axis=0 tail=0]\n"
           "%%t = range index 64 [id=1 kind=loop axis=0 tail=0]\n"
           "%%k = range index %d [id=2 kind=loop axis=0 tail=0]\n"
           "%%x = index f32 %%a %%k %%l [component=0]\n"
           "%%zero = const f32 0\n"
           "%%f = fold void %%zero %%x %%t %%k [states=1 emits=0 ranges=2 pins=0 add -1]\n"
           "%%v = index f32 %%f [component=0]\n"
           "%%s = stage void %%v %%l 8 %%l [values=1 ranges=1 pins=0 cut=1 1]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"rows\"\n"
           "return %%sink\n",
           rows, stride, rows);
  return measured(f);
}

static void rows_compete_for_sets(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost apart = rows_apart(&f, 64, 1024 + 16), together = rows_apart(&f, 64, 1024);
  assert_true(together.core == apart.core);
  assert_true(together.memory[0] > 8 * apart.memory[0]); /* 64 lines in one set of 8 ways */
  close_fixture(&f);
}

/** y[r, l] = Σ a[r, k] · b[k, l] over 32 rows of copies, `stride` floats apart, and 256 columns. */
static kernel_cost tall_tile(fixture *f, int stride) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 32 8 [slot=0]\n"
           "%%a = param f32 32 %d [slot=1]\n"
           "%%b = param f32 256 8 [slot=2]\n"
           "%%r = range index 32 [id=0 kind=unroll axis=0 tail=0]\n"
           "%%l = range index 8 [id=1 kind=vector axis=0 tail=0]\n"
           "%%k = range index 256 [id=2 kind=loop axis=0 tail=0]\n"
           "%%x = index f32 %%a %%r %%k [component=0]\n"
           "%%w = index f32 %%b %%k %%l [component=0]\n"
           "%%xw = mul f32 %%x %%w\n"
           "%%zero = const f32 0\n"
           "%%f = fold void %%zero %%xw %%k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
           "%%v = index f32 %%f [component=0]\n"
           "%%s = stage void %%v %%r %%l 32 8 %%r %%l [values=1 ranges=2 pins=0 cut=1 2]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"tile\"\n"
           "return %%sink\n",
           stride);
  return measured(f);
}

/** Rows of a tile in one set: each line is read again for each of its elements. */
static void rows_of_a_tile_compete_for_sets(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost apart = tall_tile(&f, 2048 + 16), together = tall_tile(&f, 2048);
  assert_true(together.core == apart.core);
  assert_true(together.memory[0] > 8 * apart.memory[0]);
  close_fixture(&f);
}

static void data_beyond_a_cache_is_read_again(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost fits = rows_apart(&f, 256, 16), large = rows_apart(&f, 1024, 16);
  assert_true(large.memory[0] > 32 * fits.memory[0]); /* four times the rows, 64 times each */
  kernel_cost huge = rows_apart(&f, 1 << 20, 16);
  assert_true(fits.memory[2] == 0 && huge.memory[2] > huge.core);
  close_fixture(&f);
}

/** y[i, j] = z[i, 1 + j] - Σ x[i, shift + k], of `columns` columns; `same`: z is x. */
static kernel_cost rows_less_sums(fixture *f, int rows, int columns, int shift, bool same) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 %d %d [slot=0]\n"
           "%%x = param f32 %d %d [slot=1]\n"
           "%%z = param f32 %d %d [slot=2]\n"
           "%%i = range index %d [id=0 kind=loop axis=0 tail=0]\n"
           "%%j = range index %d [id=1 kind=loop axis=0 tail=0]\n"
           "%%k = range index %d [id=2 kind=loop axis=0 tail=0]\n"
           "%%at = affine index %%k [%d 1]\n"
           "%%v = index f32 %%x %%i %%at [component=0]\n"
           "%%zero = const f32 0\n"
           "%%f = fold void %%zero %%v %%k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
           "%%sum = index f32 %%f [component=0]\n"
           "%%one = affine index %%j [1 1]\n"
           "%%w = index f32 %%%s %%i %%one [component=0]\n"
           "%%d = sub f32 %%w %%sum\n"
           "%%s = stage void %%d %%i %%j %d %d %%i %%j [values=1 ranges=2 pins=0 cut=1 2]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"less\"\n"
           "return %%sink\n",
           rows, columns, rows, columns + shift, rows, columns + shift, rows, columns, columns,
           shift, same ? "x" : "z", rows, columns);
  return measured(f);
}

static void data_that_an_earlier_read_covers_comes_in_once(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost same = rows_less_sums(&f, 4096, 512, 1, true),
              other = rows_less_sums(&f, 4096, 512, 1, false);
  assert_true(same.memory[1] < 0.8 * other.memory[1]); /* one of two reads, and a store */
  same = rows_less_sums(&f, 4096, 512, 513, true);
  other = rows_less_sums(&f, 4096, 512, 513, false);
  assert_true(same.memory[1] == other.memory[1]); /* other columns */
  same = rows_less_sums(&f, 8, 1 << 19, 1, true);
  other = rows_less_sums(&f, 8, 1 << 19, 1, false);
  assert_true(same.memory[1] == other.memory[1]); /* a row is larger than the cache */
  close_fixture(&f);
}

/** y[i, j] = t[first + j] + Σ t[k] for an array t of 1024 elements of row i of x. */
static kernel_cost array_read_twice(fixture *f, int first) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 4096 256 [slot=0]\n"
           "%%x = param f32 4096 1024 [slot=1]\n"
           "%%i = range index 4096 [id=0 kind=loop axis=0 tail=0]\n"
           "%%j = range index 256 [id=1 kind=loop axis=0 tail=0]\n"
           "%%k = range index 256 [id=2 kind=loop axis=0 tail=0]\n"
           "%%e = range index 1024 [id=3 kind=loop axis=0 tail=0]\n"
           "%%v = index f32 %%x %%i %%e [component=0]\n"
           "%%t = stage void %%v %%e 1024 %%e [values=1 ranges=1 pins=0 cut=0 1]\n"
           "%%one = affine index %%k [1 1]\n"
           "%%u = index f32 %%t %%one [component=0]\n"
           "%%zero = const f32 0\n"
           "%%f = fold void %%zero %%u %%k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
           "%%sum = index f32 %%f [component=0]\n"
           "%%at = affine index %%j [%d 1]\n"
           "%%w = index f32 %%t %%at [component=0]\n"
           "%%d = add f32 %%w %%sum\n"
           "%%s = stage void %%d %%i %%j 4096 256 %%i %%j [values=1 ranges=2 pins=0 cut=1 2]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"twice\"\n"
           "return %%sink\n",
           first);
  return measured(f);
}

static void reads_of_other_elements_of_an_array_count(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost same = array_read_twice(&f, 1), other = array_read_twice(&f, 513);
  assert_true(other.memory[0] > same.memory[0]);
  close_fixture(&f);
}

static void a_core_has_a_share_of_the_last_cache(void **state) {
  (void)state;
  const tn_hardware virtual = {.l3_bytes = 480 * MIB, .cores = 2, .l3_cores = 2};
  assert_int_equal(hardware_with_defaults(&virtual).l3_bytes, 2 * MACHINE_L3_CORE_BYTES);
  assert_int_equal(hardware_with_defaults(&machine.hardware).l3_bytes, 32 * MIB);
}

/** y[64] = x[i · stride] in vectors. */
static kernel_cost strided_copy(fixture *f, int stride) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 64 [slot=0]\n"
           "%%x = param f32 %d [slot=1]\n"
           "%%i = range index 8 [id=0 kind=loop axis=0 tail=0]\n"
           "%%l = range index 8 [id=1 kind=vector axis=0 tail=0]\n"
           "%%at = affine index %%i %%l [0 8 1]\n"
           "%%from = affine index %%i %%l [0 %d %d]\n"
           "%%v = index f32 %%x %%from [component=0]\n"
           "%%s = stage void %%v %%at 64 %%i %%l [values=1 ranges=2 pins=0 cut=1 1]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"copy\"\n"
           "return %%sink\n",
           64 * stride, 8 * stride, stride);
  return measured(f);
}

static void scattered_lanes_are_inserted(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  kernel_cost consecutive = strided_copy(&f, 1);
  assert_true(f.summary.loops.at[1].loads == 1 && f.summary.loops.at[1].lanes_moved == 0);
  kernel_cost scattered = strided_copy(&f, 3);
  assert_true(f.summary.loops.at[1].loads == 8 && f.summary.loops.at[1].lanes_moved == 8);
  assert_true(scattered.core > 2 * consecutive.core);
  close_fixture(&f);
}

/** A copy of `extent` vectors, divided among threads or not. */
static kernel_cost divided_copy(fixture *f, int extent, const char *kind) {
  snprintf(f->text, sizeof f->text,
           "%%y = param f32 24 [slot=0]\n"
           "%%x = param f32 24 [slot=1]\n"
           "%%i = range index %d [id=0 kind=%s axis=0 tail=0]\n"
           "%%l = range index 8 [id=1 kind=vector axis=0 tail=0]\n"
           "%%at = affine index %%i %%l [0 8 1]\n"
           "%%v = index f32 %%x %%at [component=0]\n"
           "%%s = stage void %%v %%at 24 %%i %%l [values=1 ranges=2 pins=0 cut=1 1]\n"
           "%%o = out void %%y %%s\n"
           "%%sink = sink void %%o \"copy\"\n"
           "return %%sink\n",
           extent, kind);
  return measured(f);
}

/** Of two threads, one does all of the work, or two of three units. */
static void the_slowest_thread_counts(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  assert_true(divided_copy(&f, 3, "loop").imbalance == 2);
  double imbalance = divided_copy(&f, 3, "thread").imbalance;
  assert_true(imbalance >= 4. / 3 && imbalance < 1.5); /* a little is outside of the loop */
  assert_true(divided_copy(&f, 0, "thread").imbalance >= 1);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_summary_counts_a_tile),
      cmocka_unit_test(a_summary_is_in_scratch_memory),
      cmocka_unit_test(rows_compete_for_sets),
      cmocka_unit_test(rows_of_a_tile_compete_for_sets),
      cmocka_unit_test(data_beyond_a_cache_is_read_again),
      cmocka_unit_test(data_that_an_earlier_read_covers_comes_in_once),
      cmocka_unit_test(reads_of_other_elements_of_an_array_count),
      cmocka_unit_test(a_core_has_a_share_of_the_last_cache),
      cmocka_unit_test(scattered_lanes_are_inserted),
      cmocka_unit_test(the_slowest_thread_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
