/* Describes the host's processor for reports: reads its name, caches, cores and instruction set
   level through cpuinfo. */
#include "device/cpu/describe_processor.h"

#include "device/cpu/detect_caches.h"
#include "device/cpu/isa_level.h"
#include "device/threads/thread_pool.h"

#include <cpuinfo.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  bool (*is_present)(void);
} features[] = {
#if defined(__x86_64__)
    {"sse4.2", cpuinfo_has_x86_sse4_2},
    {"avx", cpuinfo_has_x86_avx},
    {"f16c", cpuinfo_has_x86_f16c},
    {"fma", cpuinfo_has_x86_fma3},
    {"avx2", cpuinfo_has_x86_avx2},
    {"avx512f", cpuinfo_has_x86_avx512f},
    {"avx512bw", cpuinfo_has_x86_avx512bw},
    {"avx512dq", cpuinfo_has_x86_avx512dq},
    {"avx512vl", cpuinfo_has_x86_avx512vl},
    {"avxvnni", isa_has_avxvnni},
    {"avx512vnni", cpuinfo_has_x86_avx512vnni},
    {"avx512bf16", cpuinfo_has_x86_avx512bf16},
#elif defined(__aarch64__)
    {"neon", cpuinfo_has_arm_neon},
    {"fp16", cpuinfo_has_arm_neon_fp16_arith},
    {"dot", cpuinfo_has_arm_neon_dot},
    {"bf16", cpuinfo_has_arm_bf16},
    {"i8mm", cpuinfo_has_arm_i8mm},
    {"sve", cpuinfo_has_arm_sve},
#endif
    {NULL, NULL},
};

static void list_features(char *text, size_t bytes) {
  for (size_t i = 0, n = 0; features[i].name; i++)
    if (features[i].is_present() && n < bytes)
      n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? " " : "", features[i].name);
}

processor processor_describe(const char *limit) {
  isa_target target;
  processor p = {.name = "unknown", .usable_cores = (uint32_t)thread_pool_physical_cores()};
  if (isa_target_find(limit, &target, NULL)) isa_target_find(NULL, &target, NULL);
  p.level = target.level->name;
  p.vector_bytes = target.level->vector_bytes;
  p.hardware = cpu_hardware();
  if (!cpuinfo_initialize()) return p;
  if (cpuinfo_get_packages_count()) p.name = cpuinfo_get_package(0)->name;
  p.cores = cpuinfo_get_cores_count();
  p.logical_cores = cpuinfo_get_processors_count();
  list_features(p.features, sizeof p.features);
  return p;
}
