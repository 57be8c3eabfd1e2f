/* Lists the instruction set levels of each architecture (x86-64 to x86-64-v4, …), and detects by
   cpuinfo which of them this processor has. */
#include "device/cpu/isa_level.h"

#include "target/machine.h"

#include <cpuinfo.h>
#include <stdio.h>
#include <string.h>

/** A level by its row of target/machine.def. */
#define LEVEL(row, name, flag, cpu, here)                                                          \
  {                                                                                                \
    name, flag, cpu, MACHINE_##row##_VECTOR_BYTES, MACHINE_##row##_REGISTERS, MACHINE_##row##_FMA, \
        here                                                                                       \
  }

static bool always(void) { return true; }

#if defined(__x86_64__)
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
#elif defined(__aarch64__)
static const isa_level levels[] = {LEVEL(AARCH64, "aarch64", NULL, "generic", always)};
#else
static const isa_level levels[] = {LEVEL(GENERIC, "generic", NULL, "generic", always)};
#endif

enum { LEVELS = sizeof levels / sizeof *levels };

const isa_level *isa_level_by_name(const char *name) {
  for (size_t i = 0; i < LEVELS; i++)
    if (!strcmp(levels[i].name, name)) return &levels[i];
  return NULL;
}

static tn_status refuse_name(const char *limit, tn_failure *f) {
  char known[128] = "";
  for (size_t i = 0; i < LEVELS; i++) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", levels[i].name);
  }
  return tn_fail(f, TN_ERR_ARGUMENT, "unknown processor level \"%s\"; expected one of %s", limit,
                 known);
}

tn_status isa_level_find(const char *limit, const isa_level **level, tn_failure *f) {
  const isa_level *most = limit ? isa_level_by_name(limit) : &levels[LEVELS - 1];
  if (!most) return refuse_name(limit, f);
  bool known = cpuinfo_initialize();
  *level = most;
  while (*level > levels && !(known && (*level)->here())) --*level;
  return TN_OK;
}

void isa_level_describe(char *text, size_t bytes) {
  const isa_level *level;
  bool known = cpuinfo_initialize() && cpuinfo_get_packages_count();
  isa_level_find(NULL, &level, NULL);
  snprintf(text, bytes, "%s, %s", known ? cpuinfo_get_package(0)->name : "unknown processor",
           level->name);
}
