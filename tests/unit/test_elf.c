/* Tests the in-process loader of ELF objects: kernels compiled by gcc and clang are relocated and
   run; truncated, mutated and hostile objects are refused; code pages are never writable and
   executable at once. */
#include "device/cpu/c_compiler.h"
#include "device/cpu/elf_loader.h"
#include "device/cpu/elf_machine.h"
#include "device/cpu/kernel_imports.h"
#include "support/counting_mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#define FEATURE(name) __has_feature(name)
#else
#define FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || FEATURE(address_sanitizer)
#define WITH_ADDRESS 1
#define WITH_THREAD  0
#elif defined(__SANITIZE_THREAD__) || FEATURE(thread_sanitizer)
#define WITH_ADDRESS 0
#define WITH_THREAD  1
#else
#define WITH_ADDRESS 0
#define WITH_THREAD  0
#endif

typedef void kernel(void *const *bufs, const int64_t *vals);

typedef struct bench {
  arena arena;
  diag diag;
  cc cc[2]; /* gcc and clang, as far as installed */
  int compilers;
} bench;

static int make_bench(void **state) {
  static const char *const names[] = {"gcc", "clang"};
  bench *b = calloc(1, sizeof *b);
  arena_init(&b->arena, &mem_system, &b->diag);
  for (int i = 0; i < 2; i++) {
    tn_status s = cc_find(&b->cc[b->compilers], names[i], &b->arena, &b->diag);
    if (s == TN_OK)
      b->compilers++;
    else
      print_message("without %s: %s\n", names[i], b->diag.text);
  }
  *state = b;
  return b->compilers ? 0 : -1;
}

static int remove_bench(void **state) {
  arena_free(&((bench *)*state)->arena);
  free(*state);
  return 0;
}

static cc_object compile_with(bench *b, const cc *c, const char *source, const char *const *flags) {
  cc_object o;
  if (cc_compile(c, source, strlen(source), flags, &b->arena, &o, &b->diag) != TN_OK)
    fail_msg("%s", b->diag.text);
  return o;
}

static cc_object compile(bench *b, const char *source) {
  return compile_with(b, &b->cc[0], source, NULL);
}

static elf_image *load(bench *b, cc_object o) {
  elf_image *code;
  if (elf_load(&code, o.data, o.bytes, &mem_system, &b->diag) != TN_OK)
    fail_msg("%s", b->diag.text);
  return code;
}

static kernel *find(const elf_image *code, const char *name) {
  void *at = elf_symbol(code, name);
  assert_non_null(at);
  return (kernel *)(uintptr_t)at;
}

static void run(const elf_image *code, void *const *bufs, const int64_t *vals) {
  find(code, "k")(bufs, vals);
}

static void refuse(bench *b, cc_object o, tn_status status, const char *said) {
  elf_image *code = (elf_image *)b;
  diag_clear(&b->diag);
  assert_int_equal(elf_load(&code, o.data, o.bytes, &mem_system, &b->diag), status);
  assert_null(code);
  if (!strstr(b->diag.text, said)) fail_msg("\"%s\" lacks \"%s\"", b->diag.text, said);
}

/* Kernels that run. */

static const char everything[] =
    "typedef float v8 __attribute__((vector_size(32), aligned(4)));\n"
    "typedef long i64;\n"
    "static const float table[5] = {2, 3, 5, 7, 11};\n"
    "static const char *const words[2] = {\"zero\", \"one\"};\n"
    "static i64 calls; static i64 start = 40;\n"
    "static __attribute__((noinline)) float choose(int i, float x) {\n"
    "  switch (i) { case 0: return x; case 1: return x * 2; case 2: return x - 3;\n"
    "  case 3: return x * x; case 4: return 1 / x; case 5: return -x; default: return 0.5f; }\n"
    "}\n"
    "i64 shared = 5;\n"
    "void helper(float *to, i64 n) { for (i64 i = 0; i < n; i++) to[i] += 1; }\n"
    "void k(void *const *b, const i64 *v) {\n"
    "  const float *x = b[0]; float *y = b[1]; char *text = b[2]; i64 *count = b[3];\n"
    "  i64 n = v[0];\n"
    "  __builtin_memcpy(y, x, n * sizeof *y);\n"
    "  for (i64 i = 0; i + 8 <= n; i += 8) *(v8 *)(y + i) = *(v8 *)(y + i) * 1.5f + 0.25f;\n"
    "  for (i64 i = 0; i < n; i++) y[i] = choose(i % 7, y[i]) + table[i % 5];\n"
    "  for (i64 i = 0; i < n; i++) y[i] = __builtin_fmaf(y[i], y[i], 1e-7f);\n"
    "  helper(y, n);\n"
    "  const char *w = words[v[1]]; while ((*text++ = *w++)) {}\n"
    "  count[0] = ++calls; count[1] = ++start; count[2] = ++shared;\n"
    "}\n";

static float choose(int i, float x) {
  switch (i) {
  case 0: return x;
  case 1: return x * 2;
  case 2: return x - 3;
  case 3: return x * x;
  case 4: return 1 / x;
  case 5: return -x;
  default: return 0.5f;
  }
}

static void check_everything(const elf_image *code) {
  enum { N = 61 };
  static const float table[5] = {2, 3, 5, 7, 11};
  float x[N], y[N + 1];
  char text[8];
  int64_t count[3];
  for (int i = 0; i < N; i++) x[i] = (float)i * 0.37f - 5;
  y[N] = 99;
  for (int64_t call = 0; call < 2; call++) {
    run(code, (void *[]){x, y, text, count}, (int64_t[]){N, call});
    assert_string_equal(text, call ? "one" : "zero");
    assert_int_equal(count[0], call + 1);
    assert_int_equal(count[1], call + 41);
    assert_int_equal(count[2], call + 6);
    for (int i = 0; i < N; i++) {
      float product = x[i] * 1.5f; /* two statements prevent contraction */
      float e = choose(i % 7, i < N / 8 * 8 ? product + 0.25f : x[i]) + table[i % 5];
      e = fmaf(e, e, 1e-7f) + 1;
      assert_memory_equal(&e, &y[i], sizeof e);
    }
    assert_true(y[N] == 99);
  }
  assert_int_equal(*(int64_t *)elf_symbol(code, "shared"), 7);
  assert_null(elf_symbol(code, "table"));
  assert_null(elf_symbol(code, "memcpy"));
  assert_null(elf_symbol(code, ""));
}

static void kernels_run(void **state) {
  bench *b = *state;
  static const char *const variants[][4] = {
      {NULL},
      {"-O0"},
      {"-O3", "-march=native"},
      {"-fno-plt"},
      {"-fvisibility=default", "-ffunction-sections", "-fdata-sections"},
      {"-fPIE", "-g", "-fasynchronous-unwind-tables"},
  };
  for (int c = 0; c < b->compilers; c++)
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
      elf_image *code = load(b, compile_with(b, &b->cc[c], everything, variants[i]));
      check_everything(code);
      elf_free(code);
    }
  elf_free(NULL);
}

static void kernels_reach_far(void **state) {
  bench *b = *state;
  static const char source[] =
      "static char before[400 << 20], after[500 << 20]; static long at = 3;\n"
      "void k(void *const *b, const long *v) {\n"
      "  before[v[0]] = 1; after[v[1]] = 2; long *r = b[0];\n"
      "  r[0] = before[v[0]] + after[v[1]] + at++; r[1] = before[v[0] - 1] + after[v[1] - 1]; }\n";
  for (int c = 0; c < b->compilers; c++) {
    elf_image *code = load(b, compile_with(b, &b->cc[c], source, NULL));
    int64_t r[2];
    run(code, (void *[]){r}, (int64_t[]){(400 << 20) - 1, (500 << 20) - 1});
    assert_int_equal(r[0], 6);
    assert_int_equal(r[1], 0);
    elf_free(code);
  }
  refuse(b, compile(b, "char big[(1l << 30) + 1]; void k(void) { big[0] = 1; }"),
         TN_ERR_UNSUPPORTED, "1 GiB");
}

static void weak_and_absolute_symbols(void **state) {
  bench *b = *state;
  static const char source[] =
      "__asm__(\".globl fixed\\n.set fixed, 0x1234\\n\");\n"
      "extern char fixed[]; __attribute__((weak, visibility(\"default\"))) long w = 8;\n"
      "void k(void *const *b, const long *v) { ((long *)b[0])[0] = (long)fixed + w; }\n";
  for (int c = 0; c < b->compilers; c++) {
    elf_image *code =
        load(b, compile_with(b, &b->cc[c], source, (const char *const[]){"-fno-pic", NULL}));
    int64_t r;
    run(code, (void *[]){&r}, NULL);
    assert_int_equal(r, 0x1234 + 8);
    assert_non_null(elf_symbol(code, "w"));
    elf_free(code);
  }
}

#ifdef __SIZEOF_INT128__
static void kernels_divide_128_bits(void **state) {
  bench *b = *state;
  static const char source[] =
      "typedef __int128 s; typedef unsigned __int128 u;\n"
      "void k(void *const *b, const long *v) {\n"
      "  s *x = b[0]; u *y = b[1]; x[2] = x[0] / x[1]; x[3] = x[0] % x[1];\n"
      "  y[2] = y[0] / y[1]; y[3] = y[0] % y[1]; }\n";
  for (int c = 0; c < b->compilers; c++) {
    elf_image *code = load(b, compile_with(b, &b->cc[c], source, NULL));
    uint64_t x[8] = {5, (uint64_t)-9, 77, 0}, y[8] = {5, (uint64_t)-9, 77, 0};
    run(code, (void *[]){x, y}, NULL);
    /* quotient · divisor + remainder modulo 2⁶⁴, and the size of the remainder */
    assert_true(x[4] * 77 + x[6] == 5);
    assert_true((int64_t)x[6] <= 0 && (int64_t)x[6] > -77 && x[7] == (x[6] ? UINT64_MAX : 0));
    assert_true(y[4] * 77 + y[6] == 5 && y[6] < 77 && y[7] == 0);
    elf_free(code);
  }
}
#endif

/* 16-bit floats, against the definition of rounding to nearest even. */

#ifdef __x86_64__

static long double narrow_value(int bits, int fraction, int bias) {
  int exponent = bits >> fraction & (2 * bias + 1), m = bits & ((1 << fraction) - 1);
  return exponent ? ldexpl(m + (1 << fraction), exponent - bias - fraction)
                  : ldexpl(m, 1 - bias - fraction);
}

/** Returns the 16-bit float, finite or infinite, nearest to x, by bisection. */
static int nearest(long double x, int fraction, int bias) {
  int infinity = (2 * bias + 1) << fraction, low = 0, high = infinity;
  long double size = fabsl(x);
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (narrow_value(middle, fraction, bias) <= size)
      low = middle;
    else
      high = middle;
  }
  if (size >= ldexpl(1, bias + 1)) low = high = infinity;
  /* infinity counts as the successor of the largest value */
  long double below = size - narrow_value(low, fraction, bias);
  long double above = narrow_value(high, fraction, bias) - size;
  int r = below < above || (below == above && !(low & 1)) ? low : high;
  return r | (signbit(x) ? 0x8000 : 0);
}

/** Runs a kernel's convert(from[0 … n)) and compares. */
static void check_narrowing(const elf_image *code, const char *name, const double *from, int n,
                            int fraction, int bias) {
  for (int i = 0; i < n; i++) {
    long double x = !strcmp(name, "from_float")  ? (float)from[i]
                    : !strcmp(name, "from_long") ? (long double)(int64_t)from[i]
                                                 : from[i];
    uint16_t got = 0xdead;
    find(code, name)((void *[]){(void *)&from[i], &got}, NULL);
    int expected = nearest(x, fraction, bias);
    if (got != expected) fail_msg("%s(%La): %04x, expected %04x", name, x, got, expected);
  }
}

static uint64_t next_random(uint64_t *s) {
  *s ^= *s << 13, *s ^= *s >> 7;
  return *s ^= *s << 17;
}

enum { NARROWED = 6000 };

static void fill_narrowed(double *x, int fraction, int bias) {
  uint64_t s = 88172645463325252u;
  static const double delta[] = {0, 1e-15, -1e-15};
  for (int i = 0; i < NARROWED; i++) {
    int bits = (int)(next_random(&s) % ((2 * (unsigned)bias + 1) << fraction));
    double low = (double)narrow_value(bits, fraction, bias);
    double high = (double)narrow_value(bits + 1, fraction, bias);
    double share = i % 3 ? 0.5 : (double)(next_random(&s) >> 11) * 0x1p-53;
    x[i] = (low + (high - low) * share) * (1 + delta[next_random(&s) % 3]);
    if (next_random(&s) & 1) x[i] = -x[i];
  }
  const double special[] = {0, -0.0, INFINITY, -INFINITY, 1e300, -5e-324, 65519.999, 65520, 1};
  memcpy(x, special, sizeof special);
}

static void half_floats_round(void **state) {
  bench *b = *state;
  double *x = malloc(NARROWED * sizeof *x);
  fill_narrowed(x, 10, 15);
  for (int c = 0; c < b->compilers; c++) {
    bool gcc = b->cc[c].kind == CC_GCC;
    static const char source[] =
        "void from_float(void *const *b) { *(H *)b[1] = (float)*(double *)b[0]; }\n"
        "void from_double(void *const *b) { *(H *)b[1] = *(double *)b[0]; }\n"
        "void to_float(void *const *b) { *(float *)b[1] = *(H *)b[0]; }\n"
        "void to_double(void *const *b) { *(double *)b[1] = *(H *)b[0]; }\n"
        "void from_long(void *const *b) { *(H *)b[1] = (long)*(double *)b[0]; }\n";
    const char *flags[] = {gcc ? "-DH=_Float16" : "-DH=__fp16", "-mno-f16c", NULL};
    elf_image *code = load(b, compile_with(b, &b->cc[c], source, flags));
    check_narrowing(code, "from_float", x, NARROWED, 10, 15);
    check_narrowing(code, "from_double", x, NARROWED, 10, 15);
    double whole[2000];
    for (int i = 0; i < 2000; i++) whole[i] = trunc(x[16 + i] * (i % 2 ? 1 : 1000));
    if (gcc) check_narrowing(code, "from_long", whole, 2000, 10, 15);
    for (uint32_t h = 0; h < 0x10000; h++) {
      uint16_t bits = (uint16_t)h;
      float f;
      double d;
      find(code, "to_float")((void *[]){&bits, &f}, NULL);
      find(code, "to_double")((void *[]){&bits, &d}, NULL);
      if ((h & 0x7fff) > 0x7c00) {
        assert_true(isnan(f) && isnan(d));
        uint16_t back;
        double wide = f;
        find(code, "from_float")((void *[]){&wide, &back}, NULL);
        assert_int_equal(back, h | 0x200);
        continue;
      }
      long double e = (h & 0x7fff) == 0x7c00 ? INFINITY : narrow_value(h & 0x7fff, 10, 15);
      assert_true(fabsf(f) == e && fabs(d) == e);
      assert_int_equal(!!signbit(f), h >> 15);
      assert_int_equal(!!signbit(d), h >> 15);
    }
    elf_free(code);
  }
  free(x);
}

static void bfloats_round(void **state) {
  (void)state;
  /* gcc and clang do not call these from C, LLVM does; called here with their calling
     convention. */
  typedef float narrow_float(float);
  typedef float narrow_double(double);
  narrow_float *from_float = (narrow_float *)(uintptr_t)kernel_import_address("__truncsfbf2");
  narrow_double *from_double = (narrow_double *)(uintptr_t)kernel_import_address("__truncdfbf2");
  narrow_float *to_float = (narrow_float *)(uintptr_t)kernel_import_address("__extendbfsf2");
  double *x = malloc(NARROWED * sizeof *x);
  fill_narrowed(x, 7, 127);
  for (int i = 0; i < NARROWED; i++) {
    float wide = (float)x[i], sse = from_float(wide), sse2 = from_double(x[i]);
    uint16_t got, got2;
    memcpy(&got, &sse, sizeof got);
    memcpy(&got2, &sse2, sizeof got2);
    assert_int_equal(got, nearest(wide, 7, 127));
    assert_int_equal(got2, nearest(x[i], 7, 127));
    uint32_t bits = (uint32_t)got << 16;
    float back = to_float(sse), expected;
    memcpy(&expected, &bits, sizeof expected);
    assert_true(back == expected);
  }
  free(x);
}

#endif

/* Protection. */

/** Reads the permissions of the page at an address from /proc/self/maps ("r-xp"). */
static void permissions(const void *address, char text[5]) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  strcpy(text, "none");
  while (fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    char p[8];
    if (sscanf(line, "%lx-%lx %7s", &from, &to, p) != 3) continue;
    if (!strncmp(p, "rwx", 3) || !strncmp(p, "-wx", 3))
      fail_msg("writable and executable: %s", line);
    if (from <= (uintptr_t)address && (uintptr_t)address < to) memcpy(text, p, 4);
  }
  fclose(maps);
}

static void no_page_is_writable_and_executable(void **state) {
  bench *b = *state;
  static const char source[] =
      "static const int constant[2] = {4, 5}; int data = 1; int zero[9];\n"
      "void k(void *const *b, const long *v) {\n"
      "  const void **r = b[0]; r[0] = constant; r[1] = &data; r[2] = zero;\n"
      "  __builtin_memmove(b[1], b[2], v[0]); }\n";
  elf_image *code = load(b, compile(b, source));
  const void *at[3];
  char p[5];
  run(code, (void *[]){at, p, p}, (int64_t[]){0});
  permissions(elf_symbol(code, "k"), p);
  assert_string_equal(p, "r-xp");
  permissions(at[0], p);
  assert_string_equal(p, "r--p");
  permissions(at[1], p);
  assert_string_equal(p, "rw-p");
  permissions(at[2], p);
  assert_string_equal(p, "rw-p");
  elf_free(code);
  permissions(at[1], p);
  assert_string_not_equal(p, "r-xp");
}

/* Unsupported objects. */

static void strange_objects_are_refused(void **state) {
  bench *b = *state;
  const tn_status no = TN_ERR_UNSUPPORTED;
  refuse(b, compile(b, "int puts(const char *); void k(void) { puts(\"\"); }"), no, "uses puts,");
  refuse(b, compile(b, "extern int environ; int *k(void) { return &environ; }"), no, "environ");
  refuse(b, compile(b, "extern int ghost __attribute__((weak)); int *k(void) { return &ghost; }"),
         no, "ghost");
  refuse(b, compile(b, "static _Thread_local int t; int *k(void) { return &t; }"), no,
         "thread-local");
  refuse(b,
         compile_with(b, &b->cc[0], "int c; int *k(void) { return &c; }",
                      (const char *const[]){"-fcommon", "-fvisibility=default", NULL}),
         no, "common");
  refuse(b,
         compile(b, "static int f(void) { return 1; } static void *r(void) { return f; }\n"
                    "int g(void) __attribute__((ifunc(\"r\"))); int k(void) { return g(); }"),
         no, "indirect");
  refuse(b, compile(b, "__attribute__((section(\".wx,\\\"awx\\\"#\"))) void k(void) {}"), no,
         "writable code");
  refuse(b, compile(b, "_Alignas(1 << 20) char k[3] = {1};"), no, "page");
  refuse(b, compile(b, ""), TN_ERR_FORMAT, "no code");
  if (!kernel_imports_accept_sanitizer())
    refuse(b, compile(b, "int x; __attribute__((constructor)) void k(void) { x = 1; }"), no,
           "constructors");
}

#ifdef __x86_64__
static void far_code_models_are_refused(void **state) {
  bench *b = *state;
  const tn_status no = TN_ERR_UNSUPPORTED;
  static const char source[] = "static int x; int *k(int i) { x += i; return &x + i; }";
  const char *const absolute[] = {"-fno-pic", "-fno-pie", "-mcmodel=small", NULL};
  refuse(b, compile_with(b, &b->cc[0], source, absolute), no, "-fPIC");
  const char *const large[] = {"-mcmodel=large", NULL};
  refuse(b, compile_with(b, &b->cc[0], source, large), no, "relocation");
  refuse(b, compile_with(b, &b->cc[0], source, large), no, "_GLOBAL_OFFSET_TABLE_");
}

static void other_machines_are_refused(void **state) {
  bench *b = *state;
  bool tried = false;
  for (int c = 0; c < b->compilers; c++) {
    if (b->cc[c].kind != CC_CLANG) continue;
    tried = true;
    const char *const arm[] = {"--target=aarch64-linux-gnu", NULL};
    refuse(b, compile_with(b, &b->cc[c], "void k(void) {}", arm), TN_ERR_UNSUPPORTED,
           "for ELF machine 183");
    const char *const narrow[] = {"-m32", NULL};
    refuse(b, compile_with(b, &b->cc[c], "void k(void) {}", narrow), TN_ERR_UNSUPPORTED, "64-bit");
  }
  if (!tried) {
    print_message("skipped: no compiler makes code for another processor\n");
    skip();
  }
}
#endif

/* Hostile objects: each is a copy of a real one with one field changed. */

typedef struct hostile {
  bench *bench;
  unsigned char *file; /* of exactly `bytes` bytes, so that sanitizers see overruns */
  size_t bytes;
} hostile;

static hostile copy_of(bench *b, cc_object o) {
  hostile h = {b, malloc(o.bytes), o.bytes};
  memcpy(h.file, o.data, o.bytes);
  return h;
}

static Elf64_Ehdr *header(hostile *h) { return (Elf64_Ehdr *)h->file; }

static Elf64_Shdr *section(hostile *h, uint32_t type) {
  Elf64_Shdr *s = (Elf64_Shdr *)(h->file + header(h)->e_shoff);
  for (int i = 0; i < header(h)->e_shnum; i++)
    if (s[i].sh_type == type && s[i].sh_size) return &s[i];
  fail_msg("no section of type %u", type);
  return NULL;
}

static Elf64_Sym *symbols(hostile *h) {
  return (Elf64_Sym *)(h->file + section(h, SHT_SYMTAB)->sh_offset);
}

static Elf64_Sym *last_symbol(hostile *h) {
  return symbols(h) + section(h, SHT_SYMTAB)->sh_size / sizeof(Elf64_Sym) - 1;
}

static Elf64_Rela *relocation(hostile *h) {
  return (Elf64_Rela *)(h->file + section(h, SHT_RELA)->sh_offset);
}

static void expect(hostile *h, tn_status status, const char *said) {
  refuse(h->bench, (cc_object){h->file, h->bytes}, status, said);
  free(h->file);
}

/** Copies `o`, changes the copy by `change` (which may use `h`), and expects a refusal. */
#define PLANT(change, status, said)   \
  do {                                \
    hostile h_ = copy_of(b, o);       \
    hostile *h = &h_;                 \
    change;                           \
    expect(h, TN_ERR_##status, said); \
  } while (0)

static const char referring[] =
    "static const float t[3] = {1, 2, 3};\n"
    "void k(void *const *b, const long *v) {\n"
    "  __builtin_memcpy(b[0], b[1], v[0]); ((float *)b[0])[v[1]] = t[v[2]]; }";

static void hostile_headers_are_refused(void **state) {
  bench *b = *state;
  cc_object o = compile(b, referring);
  PLANT(header(h)->e_ident[0] = 0, FORMAT, "not an ELF");
  PLANT(header(h)->e_ident[EI_CLASS] = ELFCLASS32, UNSUPPORTED, "64-bit");
  PLANT(header(h)->e_ident[EI_DATA] = ELFDATA2MSB, UNSUPPORTED, "little-endian");
  PLANT(header(h)->e_ident[EI_VERSION] = 2, FORMAT, "version");
  PLANT(header(h)->e_version = 0, FORMAT, "version");
  PLANT(header(h)->e_machine = EM_PPC64, UNSUPPORTED, "machine 21");
  PLANT(header(h)->e_type = ET_DYN, FORMAT, "relocatable");
  PLANT(header(h)->e_shentsize = 40, FORMAT, "the wrong size");
  PLANT(header(h)->e_shnum = 0, FORMAT, "no sections");
  PLANT(header(h)->e_shnum = 0xff00, FORMAT, "no sections");
  PLANT(header(h)->e_shnum += 1, FORMAT, "outside the file");
  PLANT(header(h)->e_shoff = UINT64_MAX - 8, FORMAT, "outside the file");
  PLANT(header(h)->e_shoff += 8, FORMAT, "");
}

static void hostile_sections_are_refused(void **state) {
  bench *b = *state;
  cc_object o = compile(b, referring);
  PLANT(section(h, SHT_PROGBITS)->sh_size = UINT64_MAX, FORMAT, "section outside");
  PLANT(section(h, SHT_PROGBITS)->sh_offset = UINT64_MAX, FORMAT, "section outside");
  PLANT(section(h, SHT_PROGBITS)->sh_offset = h->bytes, FORMAT, "section outside");
  PLANT(section(h, SHT_PROGBITS)->sh_offset = h->bytes - 1, FORMAT, "section outside");
  PLANT(section(h, SHT_PROGBITS)->sh_addralign = 24, FORMAT, "alignment");
  PLANT(section(h, SHT_PROGBITS)->sh_addralign = (uint64_t)1 << 63, UNSUPPORTED, "page");
  PLANT(section(h, SHT_PROGBITS)->sh_flags |= SHF_TLS, UNSUPPORTED, "thread-local");
  PLANT(section(h, SHT_PROGBITS)->sh_flags |= SHF_WRITE, UNSUPPORTED, "writable code");
  PLANT(section(h, SHT_PROGBITS)->sh_flags |= SHF_COMPRESSED, UNSUPPORTED, "compressed");
  PLANT(section(h, SHT_PROGBITS)->sh_type = 0x12345678, UNSUPPORTED, "unknown type");
  PLANT(section(h, SHT_PROGBITS)->sh_type = SHT_NOBITS, FORMAT, "outside its section");
  PLANT(section(h, SHT_PROGBITS)->sh_type = SHT_SYMTAB, FORMAT, "two symbol tables");
  PLANT(
      {
        Elf64_Shdr *constants = section(h, SHT_PROGBITS);
        while (constants->sh_type != SHT_PROGBITS || constants->sh_flags != SHF_ALLOC) constants++;
        constants->sh_size = UINT64_MAX;
        constants->sh_type = SHT_NOBITS;
      },
      UNSUPPORTED, "1 GiB");
}

static void hostile_symbols_are_refused(void **state) {
  bench *b = *state;
  cc_object o = compile(b, referring);
  PLANT(section(h, SHT_SYMTAB)->sh_entsize = 16, FORMAT, "the wrong size");
  PLANT(section(h, SHT_SYMTAB)->sh_size -= 1, FORMAT, "the wrong size");
  PLANT(section(h, SHT_SYMTAB)->sh_link = 0, FORMAT, "without names");
  PLANT(section(h, SHT_SYMTAB)->sh_link = 1 << 20, FORMAT, "without names");
  PLANT(section(h, SHT_SYMTAB)->sh_link = 1, FORMAT, "without names");
  PLANT(section(h, SHT_SYMTAB)->sh_type = SHT_PROGBITS, FORMAT, "without symbols");
  PLANT(section(h, SHT_STRTAB)->sh_size -= 1, FORMAT, "without a terminating NUL");
  PLANT(last_symbol(h)->st_name = 1 << 30, FORMAT, "name outside");
  PLANT(symbols(h)->st_name = UINT32_MAX, FORMAT, "name outside");
  PLANT(last_symbol(h)->st_shndx = 1000, FORMAT, "missing section");
  PLANT(last_symbol(h)->st_shndx = SHN_COMMON, UNSUPPORTED, "common");
  PLANT(last_symbol(h)->st_shndx = SHN_XINDEX, FORMAT, "not loaded");
  PLANT(last_symbol(h)->st_shndx = header(h)->e_shstrndx, FORMAT, "not loaded");
  PLANT(last_symbol(h)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS), UNSUPPORTED, "thread-local");
  PLANT(
      {
        last_symbol(h)->st_shndx = 1;
        last_symbol(h)->st_value = UINT64_MAX;
      },
      FORMAT, "symbol outside its section");
  PLANT(section(h, SHT_STRTAB)->sh_size = 1, FORMAT, "name outside");
}

static void hostile_relocations_are_refused(void **state) {
  bench *b = *state;
  cc_object o = compile(b, referring);
  PLANT(section(h, SHT_RELA)->sh_info = 1 << 20, FORMAT, "missing section");
  PLANT(section(h, SHT_RELA)->sh_link = 1, FORMAT, "without symbols");
  PLANT(section(h, SHT_RELA)->sh_entsize = 8, FORMAT, "the wrong size");
  PLANT(section(h, SHT_RELA)->sh_size -= 1, FORMAT, "the wrong size");
  PLANT(section(h, SHT_RELA)->sh_type = SHT_REL, UNSUPPORTED, "addends");
  PLANT(relocation(h)->r_offset = UINT64_MAX, FORMAT, "outside its section");
  PLANT(relocation(h)->r_offset = section(h, SHT_PROGBITS)->sh_size - 3, FORMAT,
        "outside its section");
  PLANT(relocation(h)->r_info = ELF64_R_INFO(1 << 20, 2), FORMAT, "missing symbol");
  PLANT(relocation(h)->r_info |= 200, UNSUPPORTED, "relocation 2");
  PLANT(relocation(h)->r_info = ELF64_R_INFO(0, 2), UNSUPPORTED, "(no name)");
  PLANT(relocation(h)->r_addend = (int64_t)1 << 31, UNSUPPORTED, "does not reach");
  PLANT(relocation(h)->r_addend = INT64_MIN, UNSUPPORTED, "does not reach");
}

static void hostile_names_are_shown_safely(void **state) {
  bench *b = *state;
  cc_object o = compile(b, "void evil(void); void k(void) { evil(); }");
  hostile h = copy_of(b, o);
  for (size_t i = 0; i + 5 < h.bytes; i++)
    if (!memcmp(h.file + i, "evil", 5)) memcpy(h.file + i, "\033[2J", 4);
  expect(&h, TN_ERR_UNSUPPORTED, "uses ?[2J,");
}

static void truncated_objects_are_refused(void **state) {
  bench *b = *state;
  for (int c = 0; c < b->compilers; c++) {
    cc_object o = compile_with(b, &b->cc[c], referring, NULL);
    for (size_t n = 0; n < o.bytes; n++) {
      hostile h = copy_of(b, (cc_object){o.data, n});
      expect(&h, TN_ERR_FORMAT, "malformed");
    }
  }
}

static void unaligned_objects_load(void **state) {
  bench *b = *state;
  cc_object o = compile(b, everything);
  for (size_t shift = 1; shift < 8; shift++) {
    unsigned char *moved = malloc(o.bytes + shift);
    memcpy(moved + shift, o.data, o.bytes);
    elf_image *code = load(b, (cc_object){moved + shift, o.bytes});
    free(moved); /* not needed after loading */
    check_everything(code);
    elf_free(code);
  }
}

static void mutated_objects_do_no_harm(void **state) {
  bench *b = *state;
  uint64_t s = 0x9E3779B97F4A7C15u;
  int loaded = 0, refused = 0;
  for (int c = 0; c < b->compilers; c++) {
    cc_object o = compile_with(b, &b->cc[c], everything, NULL);
    for (int i = 0; i < 10000; i++) {
      hostile h = copy_of(b, o);
      for (uint64_t k = s % 4 + 1; k; k--) {
        static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff};
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        h.file[s % h.bytes] = s >> 60 < 8 ? odd[s >> 40 & 3] : (unsigned char)(s >> 32);
      }
      elf_image *code;
      tn_status status = elf_load(&code, h.file, h.bytes, &mem_system, &b->diag);
      assert_int_equal(status == TN_OK, code != NULL);
      if (code) {
        elf_symbol(code, "k");
        elf_free(code);
      }
      code ? loaded++ : refused++;
      free(h.file);
    }
  }
  assert_true(loaded > 100 && refused > 100);
}

/* Memory. */

static void every_allocation_may_fail(void **state) {
  bench *b = *state;
  cc_object o = compile(b, everything);
  for (size_t n = 1;; n++) {
    counting_mem c = {.fail_at = n};
    mem m = counting_mem_of(&c);
    elf_image *code;
    tn_status s = elf_load(&code, o.data, o.bytes, &m, &b->diag);
    if (s == TN_OK) {
      assert_true(n > 2);
      elf_free(code);
      assert_int_equal(c.bytes, 0);
      return;
    }
    assert_int_equal(s, TN_ERR_MEMORY);
    assert_int_equal(c.bytes, 0);
  }
}

/* AArch64's relocation fields, checked on every machine. */

static uint32_t arm(uint32_t type, uint32_t word, uint64_t place, uint64_t value, bool fits) {
  assert_int_equal(elf_aarch64.apply(type, (unsigned char *)&word, place, value), fits);
  return word;
}

static void aarch64_fields(void **state) {
  (void)state;
  const uint64_t p = 0x7f0000001000;
  assert_int_equal(arm(R_AARCH64_CALL26, 0x94000000, p, p + 4, true), 0x94000001);
  assert_int_equal(arm(R_AARCH64_JUMP26, 0x14000000, p, p - 4, true), 0x17ffffff);
  arm(R_AARCH64_CALL26, 0x94000000, p, p + (1 << 27) - 4, true);
  arm(R_AARCH64_CALL26, 0x94000000, p, p + (1 << 27), false);
  arm(R_AARCH64_CALL26, 0x94000000, p, p - (1 << 27), true);
  arm(R_AARCH64_CALL26, 0x94000000, p, p + 2, false);
  assert_int_equal(arm(R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, p, p + 0x1000, true), 0xb0000000);
  assert_int_equal(arm(R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, p, p + 0x4fff, true), 0x90000020);
  assert_int_equal(arm(R_AARCH64_ADR_PREL_PG_HI21, 0x90000001, p, p - 1, true), 0xf0ffffe1);
  arm(R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, p, p + ((uint64_t)1 << 32), false);
  assert_int_equal(arm(R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, p, 0x5123, true), 0x91048c00);
  assert_int_equal(arm(R_AARCH64_LDST8_ABS_LO12_NC, 0x39400000, p, 0x5123, true), 0x39448c00);
  assert_int_equal(arm(R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, p, 0x5124, true), 0xb9412400);
  arm(R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, p, 0x5122, false);
  assert_int_equal(arm(R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, p, 0x5120, true), 0x3dc04800);
  arm(R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, p, 0x5124, false);
  assert_int_equal(arm(R_AARCH64_PREL32, 0, p, p - 2, true), 0xfffffffe);
  arm(R_AARCH64_PREL32, 0, p, p + 0x80000000u, false);
}

/* Sanitizers report planted faults inside instrumented kernels. */

#if WITH_ADDRESS

/** Runs a kernel with n elements on buffers of 8 in a child process and returns the child's
    output. */
static void run_in_child(const elf_image *code, int64_t n, char *said, size_t room, int *status) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (!pid) {
    dup2(ends[1], STDERR_FILENO);
    float *x = calloc(8, sizeof *x), *y = calloc(8, sizeof *y);
    run(code, (void *[]){x, y}, &n);
    _exit(y[0] == 1 ? 0 : 9);
  }
  close(ends[1]);
  size_t got = 0;
  for (ssize_t k; (k = read(ends[0], said + got, room - 1 - got)) > 0;) got += (size_t)k;
  said[got] = 0;
  close(ends[0]);
  assert_int_equal(waitpid(pid, status, 0), pid);
}

static void overruns_in_kernels_are_seen(void **state) {
  bench *b = *state;
  static const char source[] =
      "typedef float v8 __attribute__((vector_size(32), aligned(4))); static float keep[4];\n"
      "void k(void *const *b, const long *v) { const float *x = b[0]; float *y = b[1];\n"
      "  float t[16]; __builtin_memcpy(t, x, 8 * v[0] / v[0] * 4); keep[v[0] & 3] = t[v[0] & 7];\n"
      "  for (long i = 0; i < v[0]; i++) y[i] = x[i] + 1;\n"
      "  if (v[0] < 0) *(v8 *)(y - v[0]) = *(v8 *)x + keep[0]; }\n";
  for (int c = 0; c < b->compilers; c++) {
    cc watched = b->cc[c];
    watched.instrument = CC_ADDRESS_SANITIZER;
    elf_image *code = load(b, compile_with(b, &watched, source, NULL));
    char said[8192];
    int status;
    run_in_child(code, 8, said, sizeof said, &status);
    assert_int_equal(status, 0);
    run_in_child(code, 9, said, sizeof said, &status);
    assert_int_not_equal(status, 0);
    assert_non_null(strstr(said, "heap-buffer-overflow"));
    run_in_child(code, -8, said, sizeof said, &status);
    assert_non_null(strstr(said, "heap-buffer-overflow"));
    elf_free(code);
  }
}

static void instrumented_kernels_run(void **state) {
  bench *b = *state;
  for (int c = 0; c < b->compilers; c++) {
    cc watched = b->cc[c];
    watched.instrument = CC_ADDRESS_SANITIZER;
    static const char *const calls[][4] = {
        {"-O0", NULL},
        {"-O3", "-march=native", NULL},
        {"--param=asan-instrumentation-with-call-threshold=0", NULL},
        {"-mllvm", "-asan-instrumentation-with-call-threshold=0", NULL},
    };
    for (int i = 0; i < 4; i++) {
      if (i >= 2 && (i == 2) != (watched.kind == CC_GCC)) continue;
      elf_image *code = load(b, compile_with(b, &watched, everything, calls[i]));
      check_everything(code);
      elf_free(code);
    }
  }
}

#elif WITH_THREAD

static void *run_thread(void *arg) {
  void **a = arg;
  for (int i = 0; i < 1000; i++) run(a[0], &a[1], (int64_t[]){1});
  return NULL;
}

static int race_in_child(const elf_image *code, void *x, void *y) {
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (!pid) {
    if (!freopen("/dev/null", "w", stderr)) _exit(9);
    pthread_t t[2];
    void *arg[2][2] = {{(void *)code, x}, {(void *)code, y}};
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, run_thread, arg[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    exit(0);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WEXITSTATUS(status);
}

static void races_in_kernels_are_seen(void **state) {
  bench *b = *state;
  static const char source[] =
      "void k(void *const *b, const long *v) { float *x = b[0]; x[v[0]] += 1; }\n";
  for (int c = 0; c < b->compilers; c++) {
    cc watched = b->cc[c];
    watched.instrument = CC_THREAD_SANITIZER;
    elf_image *code = load(b, compile_with(b, &watched, source, NULL));
    float x[2] = {0}, y[2] = {0};
    assert_int_equal(race_in_child(code, x, y), 0);
    assert_int_equal(race_in_child(code, x, x), 66); /* ThreadSanitizer's exit code */
    elf_free(code);
  }
}

static void instrumented_kernels_run(void **state) {
  bench *b = *state;
  for (int c = 0; c < b->compilers; c++) {
    cc watched = b->cc[c];
    watched.instrument = CC_THREAD_SANITIZER;
    static const char *const flags[][3] = {{"-O0"}, {"-O3", "-march=native"}};
    for (int i = 0; i < 2; i++) {
      elf_image *code = load(b, compile_with(b, &watched, everything, flags[i]));
      check_everything(code);
      elf_free(code);
    }
  }
}

#else

static void instrumented_objects_are_refused(void **state) {
  bench *b = *state;
  for (int c = 0; c < b->compilers; c++) {
    cc watched = b->cc[c];
    watched.instrument = CC_ADDRESS_SANITIZER;
    refuse(b, compile_with(b, &watched, everything, NULL), TN_ERR_UNSUPPORTED, "constructors");
  }
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_run),
    cmocka_unit_test(kernels_reach_far),
    cmocka_unit_test(weak_and_absolute_symbols),
#ifdef __SIZEOF_INT128__
    cmocka_unit_test(kernels_divide_128_bits),
#endif
#ifdef __x86_64__
    cmocka_unit_test(half_floats_round),
    cmocka_unit_test(bfloats_round),
    cmocka_unit_test(far_code_models_are_refused),
    cmocka_unit_test(other_machines_are_refused),
#endif
    cmocka_unit_test(no_page_is_writable_and_executable),
    cmocka_unit_test(strange_objects_are_refused),
    cmocka_unit_test(hostile_headers_are_refused),
    cmocka_unit_test(hostile_sections_are_refused),
    cmocka_unit_test(hostile_symbols_are_refused),
    cmocka_unit_test(hostile_relocations_are_refused),
    cmocka_unit_test(hostile_names_are_shown_safely),
    cmocka_unit_test(truncated_objects_are_refused),
    cmocka_unit_test(unaligned_objects_load),
    cmocka_unit_test(mutated_objects_do_no_harm),
    cmocka_unit_test(every_allocation_may_fail),
    cmocka_unit_test(aarch64_fields),
#if WITH_ADDRESS
    cmocka_unit_test(overruns_in_kernels_are_seen),
    cmocka_unit_test(instrumented_kernels_run),
#elif WITH_THREAD
    cmocka_unit_test(races_in_kernels_are_seen),
    cmocka_unit_test(instrumented_kernels_run),
#else
    cmocka_unit_test(instrumented_objects_are_refused),
#endif
  };
  return cmocka_run_group_tests(tests, make_bench, remove_bench);
}
