/* tenon devices: what there is to run on. */
#include "base/process.h"
#include "cli/command.h"
#include "cli/text.h"
#include "device/cpu/cc.h"
#include "device/cpu/hardware.h"
#include "device/cpu/level.h"
#include "device/pool.h"

#include <cpuinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct devices_options {
  bool json;
} devices_options;

static const option options[] = {
    {"json", OPTION_FLAG, offsetof(devices_options, json), NULL, "print JSON", 0, 0, 0},
};

/* The processor. */

typedef struct feature {
  const char *name;
  bool (*here)(void);
} feature;

static const feature features[] = {
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

typedef struct processor {
  const char *name, *level, *limit; /* limit: the value of TENON_CPU, or NULL */
  uint32_t cores, logical, vector_bytes;
  int32_t usable; /* physical cores that this process may use */
  tn_hardware hardware;
} processor;

static processor find_processor(void) {
  const cpu_level *level;
  tn_failure f = {0};
  processor p = {.name = "unknown", .usable = pool_cores(), .limit = getenv("TENON_CPU")};
  if (cpu_level_find(p.limit, &level, &f)) cpu_level_find(NULL, &level, &f);
  p.level = level->name;
  p.vector_bytes = level->vector_bytes;
  p.hardware = cpu_hardware();
  if (!cpuinfo_initialize()) return p;
  if (cpuinfo_get_packages_count()) p.name = cpuinfo_get_package(0)->name;
  p.cores = cpuinfo_get_cores_count();
  p.logical = cpuinfo_get_processors_count();
  return p;
}

/* Compilers. */

typedef struct found_compiler {
  const char *path, *version;
  bool used;
} found_compiler;

typedef VEC(found_compiler) found_compilers;

static const char *ask_version(command *c, const char *path) {
  const char *const argv[] = {path, "--version", NULL};
  process_result r;
  process_request q = {.argv = argv, .limit_ns = 10000000000};
  if (process_run(&q, &c->arena, &r, &c->diag) || r.exit_code) return NULL;
  return arena_printf(&c->arena, "%.*s", (int)strcspn(r.output, "\n"), r.output);
}

/** The one that kernels are compiled with, then what else there is. */
static found_compilers find_compilers(command *c) {
  static const char *const others[] = {"gcc", "clang"};
  found_compilers all = {0};
  cc used;
  bool found = cc_find(&used, command_compiler(), &c->arena, &c->diag) == TN_OK;
  if (found) vec_push(&c->arena, &all, (found_compiler){used.command[0], used.version, true});
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const char *path = process_find(&c->arena, others[i]);
    const char *version = path ? ask_version(c, path) : NULL;
    if (version && !(found && !strcmp(path, used.command[0])))
      vec_push(&c->arena, &all, (found_compiler){path, version, false});
  }
  return all;
}

/* For people. */

static void print_device(command *c, const tn_device_info *d) {
  arena *a = &c->arena;
  printf("%-10s %s\n", d->name, *d->about ? text_safe(a, d->about) : d->absent ? "absent" : "");
  if (d->absent) printf("%-10s cannot be used: %s\n", "", text_safe(a, d->absent));
  if (*d->pairs) printf("%-10s pairs: %s\n", "", d->pairs);
  if (d->bytes) printf("%-10s memory: %s\n", "", text_bytes(a, d->bytes));
}

static const char *bytes_or_unknown(arena *a, uint64_t bytes) {
  return bytes ? text_bytes(a, bytes) : "not known";
}

static void print_caches(arena *a, const tn_hardware *h) {
  printf("%-10s %s and %s a core; last: %s", "caches", bytes_or_unknown(a, h->l1_bytes),
         bytes_or_unknown(a, h->l2_bytes), bytes_or_unknown(a, h->l3_bytes));
  if (h->l3_bytes) printf(" for %s", text_count(a, h->l3_cores, "core"));
  putchar('\n');
}

static void print_text(command *c, const processor *p, const found_compilers *compilers) {
  arena *a = &c->arena;
  tn_device_info d = TN_DEVICE_INFO_INIT;
  for (size_t i = 0; tn_device_get(c->context, i, &d) == TN_OK; i++) print_device(c, &d);
  printf("\nprocessor  %s\n%-10s %u, with %s\n", text_safe(a, p->name), "cores", p->cores,
         text_count(a, p->logical, "thread"));
  print_caches(a, &p->hardware);
  printf("%-10s kernels use %s, vectors of %u bits%s%s\n%-10s", "level", p->level,
         p->vector_bytes * 8, p->limit ? "; TENON_CPU is " : "",
         p->limit ? text_safe(a, p->limit) : "", "features");
  for (const feature *f = features; f->name; f++)
    if (f->here()) printf(" %s", f->name);
  puts("\n");
  if (!compilers->n) puts("compilers  none was found: install gcc or clang");
  for (size_t i = 0; i < compilers->n; i++)
    printf("%-10s %s (%s)%s\n", i ? "" : "compilers", text_safe(a, compilers->at[i].path),
           text_safe(a, compilers->at[i].version), compilers->at[i].used ? ", used" : "");
}

/* For programs. */

static json_t *json_devices(command *c) {
  json_t *list = json_array();
  tn_device_info d = TN_DEVICE_INFO_INIT;
  for (size_t i = 0; tn_device_get(c->context, i, &d) == TN_OK; i++)
    json_array_append_new(list,
                          json_pack("{s:s, s:o, s:o, s:s, s:o}", "name", d.name, "about",
                                    text_json(&c->arena, d.about), "absent",
                                    text_json(&c->arena, d.absent), "pairs", d.pairs, "bytes",
                                    d.bytes ? json_integer((json_int_t)d.bytes) : json_null()));
  return list;
}

static json_t *number_or_null(uint64_t n) {
  return n && n <= INT64_MAX ? json_integer((json_int_t)n) : json_null();
}

static json_t *json_caches(const tn_hardware *h) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "l1_bytes", number_or_null(h->l1_bytes), "l2_bytes",
                   number_or_null(h->l2_bytes), "l3_bytes", number_or_null(h->l3_bytes), "l3_cores",
                   number_or_null(h->l3_cores), "line_bytes", number_or_null(h->line_bytes));
}

static json_t *json_processor(command *c, const processor *p) {
  json_t *list = json_array();
  for (const feature *f = features; f->name; f++)
    if (f->here()) json_array_append_new(list, json_string(f->name));
  return json_pack("{s:o, s:i, s:i, s:i, s:s, s:i, s:o, s:o}", "name",
                   text_json(&c->arena, p->name), "cores", (int)p->cores, "usable_cores",
                   (int)p->usable, "threads", (int)p->logical, "level", p->level, "vector_bytes",
                   (int)p->vector_bytes, "caches", json_caches(&p->hardware), "features", list);
}

static json_t *json_compilers(command *c, const found_compilers *compilers) {
  json_t *list = json_array();
  for (size_t i = 0; i < compilers->n; i++) {
    const found_compiler *f = &compilers->at[i];
    json_array_append_new(list, json_pack("{s:o, s:o, s:b}", "path", text_json(&c->arena, f->path),
                                          "version", text_json(&c->arena, f->version), "used",
                                          (int)f->used));
  }
  return list;
}

static int act(command *c) {
  const devices_options *o = c->options;
  command_open(c, NULL, 0);
  tn_device_info first = TN_DEVICE_INFO_INIT;
  command_check(c, tn_device_get(c->context, 0, &first));
  processor p = find_processor();
  found_compilers compilers = find_compilers(c);
  if (o->json)
    text_json_print(&c->arena,
                    json_pack("{s:o, s:o, s:o}", "devices", json_devices(c), "processor",
                              json_processor(c, &p), "compilers", json_compilers(c, &compilers)));
  else
    print_text(c, &p, &compilers);
  command_check_open(c);
  return EXIT_DONE;
}

const verb verb_devices = {
    .name = "devices",
    .summary = "Lists devices, also those that are absent, the processor and compilers",
    .about =
        "A pair, RENDERER/COMPILER, is a way to make kernels; TENON_PAIR chooses one.\n\n"
        "--json: devices, each with name, about, absent (why it cannot be used; null: it can),\n"
        "pairs, bytes (of memory; null: not known); processor with name, cores, usable_cores (by\n"
        "this process), threads, level (the instructions that kernels use), vector_bytes,\n"
        "caches (l1_bytes and l2_bytes of a core, l3_bytes of a last cache, l3_cores sharing it,\n"
        "line_bytes; null: not known), features; compilers, each with path, version, used.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(devices_options),
    .act = act,
};
