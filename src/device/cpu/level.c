#include "device/cpu/level.h"

#include <cpuinfo.h>
#include <stdio.h>
#include <string.h>

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
static const cpu_level levels[] = {{"x86-64", "-march=x86-64", 16, 16, false, always},
                                   {"x86-64-v2", "-march=x86-64-v2", 16, 16, false, has_v2},
                                   {"x86-64-v3", "-march=x86-64-v3", 32, 16, true, has_v3},
                                   {"x86-64-v4", "-march=x86-64-v4", 64, 32, true, has_v4}};
#elif defined(__aarch64__)
static const cpu_level levels[] = {{"aarch64", NULL, 16, 32, true, always}};
#else
static const cpu_level levels[] = {{"generic", NULL, 16, 16, false, always}};
#endif

enum { LEVELS = sizeof levels / sizeof *levels };

const cpu_level *cpu_level_named(const char *name) {
  for (size_t i = 0; i < LEVELS; i++)
    if (!strcmp(levels[i].name, name)) return &levels[i];
  return NULL;
}

static tn_status unknown(const char *limit, tn_failure *f) {
  char known[128] = "";
  for (size_t i = 0; i < LEVELS; i++) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", levels[i].name);
  }
  return tn_fail(f, TN_ERR_ARGUMENT, "there is no processor level \"%s\"; there are %s", limit,
                 known);
}

tn_status cpu_level_find(const char *limit, const cpu_level **level, tn_failure *f) {
  const cpu_level *most = limit ? cpu_level_named(limit) : &levels[LEVELS - 1];
  if (!most) return unknown(limit, f);
  bool known = cpuinfo_initialize();
  *level = most;
  while (*level > levels && !(known && (*level)->here())) --*level;
  return TN_OK;
}

void cpu_level_about(char *text, size_t bytes) {
  const cpu_level *level;
  bool known = cpuinfo_initialize() && cpuinfo_get_packages_count();
  cpu_level_find(NULL, &level, NULL);
  snprintf(text, bytes, "%s, %s", known ? cpuinfo_get_package(0)->name : "unknown processor",
           level->name);
}
