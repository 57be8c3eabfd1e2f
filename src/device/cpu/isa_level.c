/* Lists the instruction set levels of each architecture (x86-64 to x86-64-v4, …) and features
   beyond them, and detects by cpuinfo which of them this processor has. */
#include "device/cpu/isa_level.h"

#include "ir/core/tensor_rows.h"
#include "target/machine.h"

#include <cpuinfo.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/** A level by its row of target/machine.def. */
#define LEVEL(row, name, flag, cpu, here)                                                          \
  {                                                                                                \
    name, flag, cpu, MACHINE_##row##_VECTOR_BYTES, MACHINE_##row##_REGISTERS, MACHINE_##row##_FMA, \
        MACHINE_##row##_F16C, here                                                                 \
  }

static bool always(void) { return true; }

#if defined(__x86_64__)
/** cpuinfo does not know it. */
bool isa_has_avxvnni(void) {
  unsigned a = 0, b, c, d;
  return cpuinfo_has_x86_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

static bool has_v2(void) {
  return cpuinfo_has_x86_ssse3() && cpuinfo_has_x86_sse4_1() && cpuinfo_has_x86_sse4_2() &&
         cpuinfo_has_x86_popcnt() && cpuinfo_has_x86_cmpxchg16b();
}

static bool has_v3(void) {
  return has_v2() && cpuinfo_has_x86_avx() && cpuinfo_has_x86_avx2() && cpuinfo_has_x86_bmi() &&
         cpuinfo_has_x86_bmi2() && cpuinfo_has_x86_f16c() && cpuinfo_has_x86_fma3() &&
         cpuinfo_has_x86_lzcnt() && cpuinfo_has_x86_movbe();
}

static bool has_v4(void) {
  return has_v3() && cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512bw() &&
         cpuinfo_has_x86_avx512cd() && cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl();
}

/* Lowest first. */
static const isa_level levels[] = {
    LEVEL(X86_64, "x86-64", "-march=x86-64", "x86-64", always),
    LEVEL(X86_64_V2, "x86-64-v2", "-march=x86-64-v2", "x86-64-v2", has_v2),
    LEVEL(X86_64_V3, "x86-64-v3", "-march=x86-64-v3", "x86-64-v3", has_v3),
    LEVEL(X86_64_V4, "x86-64-v4", "-march=x86-64-v4", "x86-64-v4", has_v4)};

enum { ROW_I16 = 1 << TENSOR_ROW_DOT_I16, ROW_U8I8 = 1 << TENSOR_ROW_DOT_U8I8 };

/** The bit of a tile. */
#define TILE(name) (1 << (TENSOR_ROWS + TENSOR_TILE_##name))

/** True if Linux lets this process use the registers for tiles, which it does on request: threads
    then have room for them. A process keeps the permission, as do those that it starts. */
static bool may_use_tiles(void) {
#ifdef __linux__
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  return !syscall(SYS_arch_prctl, REQUEST, TILE_DATA);
#else
  return false;
#endif
}

/** True if the processor has a feature of tiles, the system saves their registers, and lets this
    process use them. cpuinfo does not ask the system. */
static bool has_tiles(unsigned bit) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false; /* OSXSAVE */
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1) || !(d >> bit & 1)) return false;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3 && may_use_tiles();
}

static bool has_amxbf16(void) { return has_tiles(22); }
static bool has_amxint8(void) { return has_tiles(25); }

/** Intel's cores take 4.4 cycles for each vdpbf16ps (measured on Sapphire Rapids), in which they
    multiply and add twice as many elements of f32: it is for what tiles leave over. */
static bool has_fast_dot_bf16(void) {
  bool is_amd = cpuinfo_get_cores_count() && cpuinfo_get_core(0)->vendor == cpuinfo_vendor_amd;
  return is_amd || has_amxbf16();
}

static const isa_feature features[] = {
    {"avxvnni", "-mavxvnni", "avxvnni", "x86-64-v3", ROW_U8I8, isa_has_avxvnni, always, false},
    {"avx512vnni", "-mavx512vnni", "avx512vnni", "x86-64-v4", ROW_U8I8, cpuinfo_has_x86_avx512vnni,
     always, false},
    {"avx512bf16", "-mavx512bf16", "avx512bf16", "x86-64-v4", 1 << TENSOR_ROW_DOT_BF16,
     cpuinfo_has_x86_avx512bf16, has_fast_dot_bf16, false},
    {"amxint8", "-mamx-int8", "amx-int8", "x86-64-v4", TILE(TILE_U8I8), has_amxint8, always, true},
    {"amxbf16", "-mamx-bf16", "amx-bf16", "x86-64-v4", TILE(TILE_BF16), has_amxbf16, always, true},
};

/** Rows that every level has instructions for: pmaddwd. */
static const uint32_t common_rows = ROW_I16;
#elif defined(__aarch64__)
static const isa_level levels[] = {LEVEL(AARCH64, "aarch64", NULL, "generic", always)};
static const isa_feature features[] = {{NULL, NULL, NULL, NULL, 0, NULL, NULL, false}};
static const uint32_t common_rows = 0;
#else
static const isa_level levels[] = {LEVEL(GENERIC, "generic", NULL, "generic", always)};
static const isa_feature features[] = {{NULL, NULL, NULL, NULL, 0, NULL, NULL, false}};
static const uint32_t common_rows = 0;
#endif

enum { LEVELS = sizeof levels / sizeof *levels, FEATURES = sizeof features / sizeof *features };
_Static_assert((int)FEATURES <= (int)ISA_MOST_FEATURES, "");

static bool is_text(const char *name, const char *text, size_t n) {
  return strlen(name) == n && !memcmp(name, text, n);
}

static const isa_level *level_by_name(const char *name, size_t n) {
  for (size_t i = 0; i < LEVELS; i++)
    if (is_text(levels[i].name, name, n)) return &levels[i];
  return NULL;
}

const isa_level *isa_level_by_name(const char *name) { return level_by_name(name, strlen(name)); }

static const isa_feature *feature_by_name(const char *name, size_t n) {
  for (size_t i = 0; i < FEATURES; i++)
    if (features[i].name && is_text(features[i].name, name, n)) return &features[i];
  return NULL;
}

static void add_name(char *text, size_t bytes, const char *before, const char *name) {
  size_t n = strlen(text);
  snprintf(text + n, bytes - n, "%s%s", before, name);
}

static tn_status refuse_name(const char *limit, tn_failure *f) {
  char known[256] = "";
  for (size_t i = 0; i < LEVELS; i++)
    add_name(known, sizeof known, *known ? ", " : "", levels[i].name);
  for (size_t i = 0; i < FEATURES; i++)
    if (features[i].name)
      add_name(known, sizeof known, i ? ", +" : "; with features as +", features[i].name);
  return tn_fail(f, TN_ERR_ARGUMENT, "unknown processor level \"%s\"; expected one of %s", limit,
                 known);
}

/** Reads the features behind a level; false if one is unknown. */
static bool parse_features(const char *text, isa_target *t) {
  while (*text == '+') {
    size_t n = strcspn(++text, "+");
    const isa_feature *x = feature_by_name(text, n);
    if (!x) return false;
    bool is_there = strcmp(x->level, t->level->name) != 0;
    for (size_t i = 0; i < t->n_features; i++) is_there |= t->features[i] == x;
    if (!is_there) t->features[t->n_features++] = x;
    text += n;
  }
  return true;
}

static bool parse_target(const char *text, isa_target *t) {
  size_t n = strcspn(text, "+");
  *t = (isa_target){.level = level_by_name(text, n)};
  return t->level && parse_features(text + n, t);
}

isa_target isa_target_parse(const char *text) {
  isa_target t;
  if (!parse_target(text, &t)) t = (isa_target){.level = levels};
  return t;
}

/** The highest level here that is at most `most`. */
static const isa_level *level_here(const isa_level *most, bool known) {
  while (most > levels && !(known && most->here())) --most;
  return most;
}

tn_status isa_target_find(const char *limit, isa_target *target, tn_failure *f) {
  isa_target most = {.level = &levels[LEVELS - 1]};
  if (limit && !parse_target(limit, &most)) return refuse_name(limit, f);
  bool known = cpuinfo_initialize();
  *target = (isa_target){.level = level_here(most.level, known)};
  for (size_t i = 0; i < FEATURES && known; i++) {
    const isa_feature *x = &features[i];
    bool allowed = !limit && x->name && x->fast();
    for (size_t k = 0; k < most.n_features; k++) allowed |= most.features[k] == x;
    if (allowed && x->name && !strcmp(x->level, target->level->name) && x->here())
      target->features[target->n_features++] = x;
  }
  return TN_OK;
}

void isa_target_text(const isa_target *t, char *text, size_t bytes) {
  snprintf(text, bytes, "%s", t->level->name);
  for (size_t i = 0; i < t->n_features; i++) add_name(text, bytes, "+", t->features[i]->name);
}

uint32_t isa_target_rows(const isa_target *t) {
  uint32_t rows = common_rows;
  for (size_t i = 0; i < t->n_features; i++) rows |= t->features[i]->rows;
  return rows;
}

void isa_level_describe(char *text, size_t bytes) {
  isa_target t;
  char target[ISA_TARGET_BYTES];
  bool known = cpuinfo_initialize() && cpuinfo_get_packages_count();
  isa_target_find(NULL, &t, NULL);
  isa_target_text(&t, target, sizeof target);
  snprintf(text, bytes, "%s, %s", known ? cpuinfo_get_package(0)->name : "unknown processor",
           target);
}
