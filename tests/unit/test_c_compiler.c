/* Tests the driver of the system's C compiler: finding and identifying compilers, flags, timeouts,
   error messages, kills and crashes, and that no process or temporary file is left behind. */
#include "base/file.h"
#include "base/process.h"
#include "base/str.h"
#include "base/thread.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/elf_loader.h"
#include "support/counting_mem.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/** A test's state. TMPDIR is a temporary folder, which must stay empty. */
typedef struct bench {
  arena arena;
  diag diag;
  char *temporary, *programs, *path, *before;
} bench;

static int make_bench(void **state) {
  bench *b = calloc(1, sizeof *b);
  arena_init(&b->arena, &mem_system, &b->diag);
  b->path = arena_printf(&b->arena, "%s", getenv("PATH"));
  b->before = getenv("TMPDIR") ? arena_printf(&b->arena, "%s", getenv("TMPDIR")) : NULL;
  *state = b;
  b->programs = temporary_folder(&b->arena);
  b->temporary = temporary_folder(&b->arena);
  return b->programs && b->temporary ? setenv("TMPDIR", b->temporary, 1) : -1;
}

static int count_files(const char *folder) {
  int n = 0;
  DIR *d = opendir(folder);
  for (const struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return d ? n : -1;
}

static int remove_bench(void **state) {
  bench *b = *state;
  int left = count_files(b->temporary);
  if (left) print_error("%d files left in %s\n", left, b->temporary);
  setenv("PATH", b->path, 1);
  if (b->before)
    setenv("TMPDIR", b->before, 1);
  else
    unsetenv("TMPDIR");
  unlink(arena_printf(&b->arena, "%s/fake", b->programs));
  rmdir(b->programs);
  rmdir(b->temporary);
  arena_free(&b->arena);
  free(b);
  return left;
}

static cc find(bench *b, const char *command) {
  cc c;
  if (cc_find(&c, command, &b->arena, &b->diag) != TN_OK) fail_msg("%s", b->diag.text);
  return c;
}

/** Writes a shell script that answers --version as gcc does and otherwise runs `body`. */
static const char *fake(bench *b, const char *body) {
  char *path = arena_printf(&b->arena, "%s/fake", b->programs);
  char *text = arena_printf(&b->arena,
                            "#!/bin/sh\nfor last; do :; done\n"
                            "case $last in --version) echo 'gcc 1 (fake)'; exit;; esac\n%s\n",
                            body);
  assert_int_equal(file_write(path, text, strlen(text), &b->diag), TN_OK);
  assert_int_equal(chmod(path, 0700), 0);
  return path;
}

static tn_status compile(bench *b, const cc *c, const char *source, cc_object *o) {
  diag_clear(&b->diag);
  return cc_compile(c, source, strlen(source), NULL, &b->arena, o, &b->diag);
}

static void expect_text(bench *b, const char *part) {
  if (!strstr(b->diag.text, part)) fail_msg("\"%s\" lacks \"%s\"", b->diag.text, part);
}

static int here(bench *b, const char *name) { return process_find(&b->arena, name) != NULL; }

/* Finding. */

static void kinds_are_told_apart(void **state) {
  bench *b = *state;
  int tried = 0;
  if (here(b, "gcc")) {
    cc c = find(b, "gcc");
    assert_int_equal(c.kind, CC_GCC);
    assert_non_null(strstr(c.version, "gcc"));
    assert_int_equal(c.command[0][0], '/');
    assert_null(c.command[1]);
    tried++;
  }
  if (here(b, "clang")) {
    cc c = find(b, "clang");
    assert_int_equal(c.kind, CC_CLANG);
    assert_non_null(strstr(c.version, "clang version"));
    assert_null(strchr(c.version, '\n'));
    tried++;
  }
  assert_true(tried > 0);
  cc usual = find(b, NULL);
  assert_non_null(usual.command[0]);
}

static void names_are_split_at_spaces(void **state) {
  bench *b = *state;
  cc c = find(b, here(b, "gcc") ? "  gcc -m64   -DX=7 " : "  clang -m64   -DX=7 ");
  assert_string_equal(c.command[1], "-m64");
  assert_string_equal(c.command[2], "-DX=7");
  assert_null(c.command[3]);
  cc_object o;
  assert_int_equal(compile(b, &c, "_Static_assert(X == 7, \"\"); int k;", &o), TN_OK);
  /* a compiler cache: a program with the compiler's name as its argument */
  char *wrapped = arena_printf(&b->arena, "%s %s", process_find(&b->arena, "env"), c.command[0]);
  cc w = find(b, wrapped);
  assert_int_equal(w.kind, c.kind);
  assert_int_equal(compile(b, &w, "int k;", &o), TN_OK);
}

static void not_found(bench *b, const char *name, const char *part) {
  cc c;
  diag_clear(&b->diag);
  assert_int_equal(cc_find(&c, name, &b->arena, &b->diag), TN_ERR_COMPILE);
  expect_text(b, part);
  expect_text(b, "apt install gcc, or apt install clang");
}

static void missing_compilers_are_reported(void **state) {
  bench *b = *state;
  not_found(b, "no-such-compiler -O1", "\"no-such-compiler -O1\"");
  not_found(b, process_find(&b->arena, "env"), "starts, but --version tells of no gcc or clang");
  not_found(b, "   ", "does not start: the name is empty");
  not_found(b, "", "does not start: the name is empty");
  setenv("PATH", b->temporary, 1);
  setenv("CC", "/usr/bin/gcc", 1); /* ignored */
  not_found(b, NULL, "no C compiler found (tried cc, gcc and clang)");
  unsetenv("CC");
}

/** A compiler that does not answer is another failure than one that does not start. */
static void hanging_compilers_are_reported(void **state) {
  bench *b = *state;
  cc c;
  const char *slow = arena_printf(&b->arena, "%s/fake", b->programs);
  assert_true(temporary_write(slow, 0700, "#!/bin/sh\nsleep 30\n", 19));
  diag_clear(&b->diag);
  assert_int_equal(cc_find_within(&c, slow, 200000000, &b->arena, &b->diag), TN_ERR_COMPILE);
  expect_text(b, "hangs: ");
  expect_text(b, "fake --version gave no answer within 0.2 s and was killed");
  expect_text(b, "set or unset the compiler");
  assert_null(strstr(b->diag.text, "does not start"));
}

/** Messages say why an existing compiler did not start. */
static void what_keeps_a_compiler_from_starting_is_told(void **state) {
  bench *b = *state;
  char *path = arena_printf(&b->arena, "%s/fake", b->programs);
  assert_int_equal(file_write(path, "not a program", 13, &b->diag), TN_OK);
  assert_int_equal(chmod(path, 0700), 0);
  not_found(b, path, "cannot start ");
  expect_text(b, "format error");
}

static void identity_tells_compilers_apart(void **state) {
  bench *b = *state;
  cc plain = find(b, NULL);
  const char *i = cc_identity(&plain, &b->arena);
  assert_non_null(strstr(i, plain.version));
  assert_non_null(strstr(i, plain.command[0]));
  assert_non_null(strstr(i, "-ffp-contract=off"));
  assert_string_equal(i, cc_identity(&plain, &b->arena));
  cc watched = plain;
  watched.instrument = CC_ADDRESS_SANITIZER;
  assert_string_not_equal(i, cc_identity(&watched, &b->arena));
  cc more = find(b, arena_printf(&b->arena, "%s -g", plain.command[0]));
  assert_string_not_equal(i, cc_identity(&more, &b->arena));
}

/* Compiling. */

static void objects_are_the_same_each_time(void **state) {
  bench *b = *state;
  static const char source[] = "static const double t[2] = {1, 2};\n"
                               "double k(int i) { return t[i] / 3; }\n";
  static const char *const names[] = {"gcc", "clang"};
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    cc_object one, two;
    assert_int_equal(compile(b, &c, source, &one), TN_OK);
    assert_int_equal(compile(b, &c, source, &two), TN_OK);
    assert_int_equal(one.bytes, two.bytes);
    assert_memory_equal(one.data, two.data, one.bytes);
  }
}

static void flags_are_passed(void **state) {
  bench *b = *state;
  cc c = find(b, NULL);
  cc_object o;
  static const char source[] = "_Static_assert(WHO == 3, \"\"); int k(void) { return WHO; }";
  const char *const flags[] = {"-DWHO=3", NULL};
  assert_int_equal(cc_compile(&c, source, sizeof source - 1, flags, &b->arena, &o, &b->diag),
                   TN_OK);
  assert_int_equal(compile(b, &c, source, &o), TN_ERR_COMPILE);
  assert_null(o.data);
}

static void products_are_not_contracted(void **state) {
  bench *b = *state;
  static const char source[] = "void k(double *x) { x[0] = x[1] * x[2] + x[3]; }";
  const char *const flags[] = {"-march=native", "-O3", NULL};
  static const char *const names[] = {"gcc", "clang"};
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    cc_object o;
    elf_image *code;
    assert_int_equal(cc_compile(&c, source, sizeof source - 1, flags, &b->arena, &o, &b->diag),
                     TN_OK);
    assert_int_equal(elf_load(&code, o.data, o.bytes, &mem_system, &b->diag), TN_OK);
    double x[4] = {0, 1 + 0x1p-30, 1 - 0x1p-30, -1};
    ((void (*)(double *))(uintptr_t)elf_symbol(code, "k"))(x);
    assert_true(x[0] == 0); /* −2⁻⁶⁰ if contracted */
    elf_free(code);
  }
}

/** Checks that code compiled by a command with -ffast-math and the like is exact. */
static void check_numbers(bench *b, const char *command) {
  static const char source[] =
      "void k(const double *x, double *o) {\n"
      "  o[0] = x[0] != x[0]; o[1] = 1 / (x[1] + 0.0); o[2] = x[2] / 49; o[3] = (x[3] + x[4]) - "
      "x[3];\n"
      "  o[4] = x[5] * x[6] + x[7]; o[5] = x[0] > 0 ? x[0] : 0; o[6] = x[8] * 0.1; }";
  cc c = find(b, command);
  cc_object o;
  elf_image *code;
  if (cc_compile(&c, source, sizeof source - 1, NULL, &b->arena, &o, &b->diag))
    fail_msg("%s: %s", command, b->diag.text);
  assert_int_equal(elf_load(&code, o.data, o.bytes, &mem_system, &b->diag), TN_OK);
  const volatile double by = 49, tenth = 0.1;
  const double x[9] = {(double)NAN, -0.0, 5, 1e30, 1, 1 + 0x1p-30, 1 - 0x1p-30, -1, 3};
  const double e[7] = {1, (double)INFINITY, x[2] / by, 0, 0, 0, x[8] * tenth};
  double got[7];
  ((void (*)(const double *, double *))(uintptr_t)elf_symbol(code, "k"))(x, got);
  for (int i = 0; i < 7; i++)
    if (got[i] != e[i]) fail_msg("%s: number %d is %a, not %a", command, i, got[i], e[i]);
  elf_free(code);
}

/** Arguments that relax floating-point arithmetic have no effect: only the math mode decides. */
static void words_take_no_liberties_with_numbers(void **state) {
  bench *b = *state;
  static const char *const commands[] = {
      "gcc -ffast-math",
      "gcc -Ofast -march=native",
      "gcc -funsafe-math-optimizations -fsingle-precision-constant",
      "gcc -ffinite-math-only -fno-signed-zeros -freciprocal-math -fassociative-math "
      "-fno-trapping-math",
      "clang -ffast-math",
      "clang -Ofast -march=native",
      "clang -funsafe-math-optimizations",
      "clang -ffinite-math-only -fno-signed-zeros -freciprocal-math -fassociative-math "
      "-fno-trapping-math"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (here(b, *commands[i] == 'g' ? "gcc" : "clang")) check_numbers(b, commands[i]);
}

/** -fno-trapping-math changes no value: special values pass through the affected operations, and
    the same source compiled with traps gives equal results. */
static void ignoring_traps_keeps_results(void **state) {
  bench *b = *state;
  static const char source[] =
      "void k(const float *x, const float *y, float *o, int *w, long n) {\n"
      "  for (long i = 0; i < n; i++) { float a = x[i], c = y[i]; float *r = o + 12 * i;\n"
      "    r[0] = a < c ? a : c; r[1] = a > c ? a : c; r[2] = !(a <= c) ? a : c;\n"
      "    r[3] = a / c; r[4] = __builtin_sqrtf(a); r[5] = __builtin_floorf(a);\n"
      "    r[6] = __builtin_fabsf(a) < 1e9f ? (float)(int)a : 0; r[7] = a - c; r[8] = a * 0;\n"
      "    r[9] = __builtin_rintf(a); r[10] = a + 0; r[11] = __builtin_truncf(a);\n"
      "    w[i] = (a == c) | (a != c) << 1 | (a < c) << 2 | (a >= c) << 3 |\n"
      "           __builtin_isunordered(a, c) << 4; } }\n";
  static const char *const trapping[] = {"-ftrapping-math", NULL};
  static const char *const names[] = {"gcc", "clang"};
  const float special[] = {0,
                           -0.0f,
                           1,
                           -1,
                           0.5f,
                           -2.5f,
                           3e38f,
                           -3e38f,
                           1e-45f,
                           -1e-45f,
                           (float)INFINITY,
                           -(float)INFINITY,
                           (float)NAN,
                           1e9f,
                           8388609,
                           1.5f};
  enum { N = sizeof special / sizeof *special, PAIRS = N * N };
  float *x = malloc(PAIRS * sizeof *x), *y = malloc(PAIRS * sizeof *y);
  for (int i = 0; i < PAIRS; i++) x[i] = special[i / N], y[i] = special[i % N];
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    float *o[2];
    int *w[2];
    for (int v = 0; v < 2; v++) {
      cc_object object;
      elf_image *code;
      o[v] = calloc(12 * PAIRS, sizeof **o);
      w[v] = calloc(PAIRS, sizeof **w);
      assert_int_equal(cc_compile(&c, source, sizeof source - 1, v ? trapping : NULL, &b->arena,
                                  &object, &b->diag),
                       TN_OK);
      assert_int_equal(elf_load(&code, object.data, object.bytes, &mem_system, &b->diag), TN_OK);
      typedef void kernel(const float *, const float *, float *, int *, long);
      ((kernel *)(uintptr_t)elf_symbol(code, "k"))(x, y, o[v], w[v], PAIRS);
      elf_free(code);
    }
    assert_memory_equal(w[0], w[1], PAIRS * sizeof **w);
    for (int k = 0; k < 12 * PAIRS; k++)
      if (o[0][k] == o[0][k] || o[1][k] == o[1][k])
        assert_memory_equal(&o[0][k], &o[1][k],
                            sizeof **o); /* compares signs of zeros; NaN equals NaN */
    for (int v = 0; v < 2; v++) free(o[v]), free(w[v]);
  }
  free(x);
  free(y);
}

/* Failing. */

static void errors_show_what_the_compiler_said(void **state) {
  bench *b = *state;
  cc c = find(b, NULL);
  cc_object o;
  assert_int_equal(compile(b, &c, "int k(void) {\n  return missing; }", &o), TN_ERR_COMPILE);
  expect_text(b, c.command[0]);
  expect_text(b, "exit code 1)\n");
  assert_int_not_equal(b->diag.text[strlen(b->diag.text) - 1], '\n');
  expect_text(b, "\n<stdin>:");
  expect_text(b, "missing");
  assert_null(strstr(b->diag.text, b->temporary));
  assert_null(o.data);
  str many = str_new(&b->arena);
  for (int i = 0; i < 500; i++) str_addf(&many, "int f%d(void) { return no%d; }\n", i, i);
  assert_int_equal(compile(b, &c, str_text(&many), &o), TN_ERR_COMPILE);
  assert_true(strlen(b->diag.text) < DIAG_TEXT_BYTES - 100);
}

static void signals_and_missing_objects_are_errors(void **state) {
  bench *b = *state;
  cc_object o;
  cc c = find(b, fake(b, "kill -SEGV $$"));
  assert_int_equal(compile(b, &c, "", &o), TN_ERR_COMPILE);
  expect_text(b, "signal");
  assert_int_not_equal(b->diag.text[strlen(b->diag.text) - 1], '\n');
  c = find(b, fake(b, "exit 0"));
  assert_int_equal(compile(b, &c, "", &o), TN_ERR_COMPILE);
  expect_text(b, "created no object file");
  c = find(b, fake(b, "echo bad > $last; exit 4"));
  assert_int_equal(compile(b, &c, "", &o), TN_ERR_COMPILE);
  expect_text(b, "exit code 4");
  assert_null(o.data);
}

static void slow_compilers_are_stopped(void **state) {
  bench *b = *state;
  cc_object o;
  cc c = find(b, fake(b, "echo half > $last; sleep 30 & sleep 30"));
  assert_int_equal(c.limit_ns, 180 * (int64_t)1000000000);
  c.limit_ns = 300 * 1000000;
  int64_t start = clock_now_ns();
  assert_int_equal(compile(b, &c, "", &o), TN_ERR_TIMEOUT);
  assert_true(clock_now_ns() - start < 10 * (int64_t)1000000000);
  expect_text(b, "300 ms");
  /* a real compiler with a long input */
  cc real = find(b, NULL);
  real.limit_ns = 200 * 1000000;
  str slow = str_new(&b->arena);
  for (int i = 0; i < 20000; i++)
    str_addf(&slow, "int f%d(int x) { for (int i = 0; i < x; i++) x ^= x * %d; return x; }\n", i,
             i);
  assert_int_equal(compile(b, &real, str_text(&slow), &o), TN_ERR_TIMEOUT);
}

/** Compiles without a usable TMPDIR. */
static void no_place_is_needed(void **state) {
  bench *b = *state;
  static const char *const names[] = {"gcc", "clang"};
  setenv("TMPDIR", "/nonexistent/place", 1);
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    cc_object o;
    if (compile(b, &c, "int k;", &o)) fail_msg("%s: %s", names[i], b->diag.text);
    assert_int_equal(compile(b, &c, "int k", &o), TN_ERR_COMPILE);
  }
  setenv("TMPDIR", b->temporary, 1);
}

static void crashes_leave_nothing(void **state) {
  bench *b = *state;
  cc_object o;
  if (!here(b, "clang")) {
    print_message("skipped: there is no clang\n");
    skip();
  }
  cc c = find(b, "clang");
  assert_int_equal(compile(b, &c, "int k;\n#pragma clang __debug crash\n", &o), TN_ERR_COMPILE);
  assert_int_equal(count_files(b->temporary), 0);
}

/** A process killed while compiling leaves no files. */
static void killed_processes_leave_nothing(void **state) {
  bench *b = *state;
  static const char *const names[] = {"gcc", "clang"};
  str slow = str_new(&b->arena);
  for (int i = 0; i < 4000; i++)
    str_addf(&slow, "int f%d(int x) { for (int i = 0; i < x; i++) x ^= x * %d; return x; }\n", i,
             i);
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    pid_t child = fork();
    if (!child) {
      cc_object o;
      compile(b, &c, str_text(&slow), &o);
      _exit(0);
    }
    for (int k = 0; k < 3; k++) {
      nanosleep(&(struct timespec){0, 100000000}, NULL);
      assert_int_equal(count_files(b->temporary), 0);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(count_files(b->temporary), 0);
  }
}

/** A compiler and all its children end with the killed host process. They hold a pipe open while
    they live. */
static void compilers_end_with_their_host(void **state) {
  bench *b = *state;
  char *path = arena_printf(&b->arena, "%s/alive", b->temporary), said[16];
  cc c = find(b, fake(b, arena_printf(&b->arena,
                                      "exec 9>'%s'; echo x >&9; sleep 60 & sleep 60; exit", path)));
  assert_int_equal(mkfifo(path, 0600), 0);
  int alive = open(path, O_RDONLY | O_NONBLOCK);
  pid_t host = fork();
  if (!host) {
    cc_object o;
    close(alive);
    compile(b, &c, "", &o);
    _exit(1);
  }
  struct pollfd waits = {.fd = alive, .events = POLLIN};
  assert_int_equal(poll(&waits, 1, 20000), 1);
  assert_int_equal(read(alive, said, sizeof said), 2);
  nanosleep(&(struct timespec){0, 500000000}, NULL); /* the host arms the lifeline after spawning */
  kill(host, SIGKILL);
  waitpid(host, NULL, 0);
  ssize_t more = poll(&waits, 1, 10000) == 1 ? read(alive, said, sizeof said) : -1;
  close(alive);
  unlink(path);
  assert_int_equal(more, 0);
}

/** A program that ignores SIGCHLD, or waits for all children, reaps the compiler's exit code. */
static void exit_codes_may_be_lost(void **state) {
  bench *b = *state;
  static const char *const names[] = {"gcc", "clang"};
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 2; i++) {
    if (!here(b, names[i])) continue;
    cc c = find(b, names[i]);
    cc_object o;
    elf_image *code;
    if (compile(b, &c, "int k(void) { return 5; }", &o)) fail_msg("%s", b->diag.text);
    assert_int_equal(elf_load(&code, o.data, o.bytes, &mem_system, &b->diag), TN_OK);
    assert_int_equal(((int (*)(void))(uintptr_t)elf_symbol(code, "k"))(), 5);
    elf_free(code);
    assert_int_equal(compile(b, &c, "int k(void) { return missing; }", &o), TN_ERR_COMPILE);
    expect_text(b, "missing");
    assert_null(o.data);
  }
  cc silent = find(b, fake(b, "exit 1"));
  cc_object o;
  assert_int_equal(compile(b, &silent, "", &o), TN_ERR_COMPILE);
  expect_text(b, "created no object file");
  signal(SIGCHLD, before);
}

static void every_allocation_may_fail(void **state) {
  bench *b = *state;
  cc c = find(b, NULL);
  /* a large object: copying it is among the allocations that fail */
  static const char source[] = "char k[300000] = {1};";
  for (size_t n = 1; n < 50; n++) {
    counting_mem count = {.fail_at = n};
    mem m = counting_mem_of(&count);
    arena a;
    diag inner = {0};
    cc_object o;
    arena_init(&a, &m, &inner);
    diag_clear(&b->diag);
    tn_status s = cc_compile(&c, source, sizeof source - 1, NULL, &a, &o, &b->diag);
    if (s == TN_OK) assert_true(o.bytes > 300000);
    arena_free(&a);
    assert_int_equal(count.bytes, 0);
    assert_int_equal(count_files(b->temporary), 0);
    if (s == TN_OK) {
      assert_true(n > 1);
      return;
    }
    assert_int_equal(s, TN_ERR_MEMORY);
    assert_int_equal(b->diag.status, TN_ERR_MEMORY);
  }
  fail();
}

/* Threads. */

enum { THREADS = 4 };

typedef struct job {
  const cc *c;
  int number, got;
} job;

static void *compile_and_run(void *arg) {
  job *j = arg;
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  for (int i = 0; i < 3; i++) {
    cc_object o;
    elf_image *code;
    char *source = arena_printf(&a, "int k(void) { return %d; }", j->number);
    if (cc_compile(j->c, source, strlen(source), NULL, &a, &o, &d) ||
        elf_load(&code, o.data, o.bytes, &mem_system, &d))
      break;
    j->got += ((int (*)(void))(uintptr_t)elf_symbol(code, "k"))();
    elf_free(code);
  }
  arena_free(&a);
  return NULL;
}

static void threads_share_a_compiler(void **state) {
  bench *b = *state;
  cc c = find(b, NULL);
  thread t[THREADS];
  job jobs[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){&c, i + 100, 0};
    assert_int_equal(thread_start(&t[i], compile_and_run, &jobs[i], &b->diag), TN_OK);
  }
  for (int i = 0; i < THREADS; i++) {
    thread_join(t[i]);
    assert_int_equal(jobs[i].got, 3 * (i + 100));
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_bench, remove_bench)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(kinds_are_told_apart),
      TEST(names_are_split_at_spaces),
      TEST(missing_compilers_are_reported),
      TEST(hanging_compilers_are_reported),
      TEST(what_keeps_a_compiler_from_starting_is_told),
      TEST(identity_tells_compilers_apart),
      TEST(objects_are_the_same_each_time),
      TEST(flags_are_passed),
      TEST(products_are_not_contracted),
      TEST(words_take_no_liberties_with_numbers),
      TEST(ignoring_traps_keeps_results),
      TEST(errors_show_what_the_compiler_said),
      TEST(signals_and_missing_objects_are_errors),
      TEST(slow_compilers_are_stopped),
      TEST(no_place_is_needed),
      TEST(crashes_leave_nothing),
      TEST(killed_processes_leave_nothing),
      TEST(compilers_end_with_their_host),
      TEST(exit_codes_may_be_lost),
      TEST(every_allocation_may_fail),
      TEST(threads_share_a_compiler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
