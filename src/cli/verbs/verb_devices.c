/* Implements `tenon devices`, which lists devices, the processor and compilers. It prints them
   before it fails for a context that cannot be opened as its environment asks. */
#include "cli/core/command.h"
#include "cli/core/text_format.h"
#include "cli/verbs/verb_table.h"

#include <stdio.h>
#include <string.h>

typedef struct devices_options {
  bool json;
} devices_options;

static const option options[] = {
    {"json", OPTION_FLAG, offsetof(devices_options, json), NULL, "print JSON", 0, 0, 0},
};

/* Text. */

static void print_device(command *c, const tn_device_info *d) {
  arena *a = &c->arena;
  printf("%-10s %s\n", d->name, *d->about ? text_escape(a, d->about) : d->absent ? "absent" : "");
  if (d->absent) printf("%-10s cannot be used: %s\n", "", text_escape(a, d->absent));
  if (*d->pairs)
    printf("%-10s pairs: %s\n", "", d->pairs);
  else if (!d->absent)
    printf("%-10s kernels: those of the cache alone; new ones need a compiler\n", "");
  for (const char *line = d->absent ? "" : d->absent_pairs; *line;) {
    size_t n = strcspn(line, "\n");
    printf("%-10s no %s\n", "", text_escape(a, arena_printf(a, "%.*s", (int)n, line)));
    line += n + (line[n] == '\n');
  }
  if (d->bytes) printf("%-10s memory: %s\n", "", text_bytes(a, d->bytes));
  if (d->absent) return;
  printf("%-10s queues: worked through by %s\n", "", d->queues);
  printf("%-10s copies: %s\n", "", d->copies);
  if (*d->library) printf("%-10s library: %s\n", "", text_escape(a, d->library));
}

static const char *bytes_or_unknown(arena *a, uint64_t bytes) {
  return bytes ? text_bytes(a, bytes) : "unknown";
}

static void print_caches(arena *a, const tn_processor_info *p) {
  printf("%-10s %s and %s per core; last level: %s", "caches", bytes_or_unknown(a, p->l1_bytes),
         bytes_or_unknown(a, p->l2_bytes), bytes_or_unknown(a, p->l3_bytes));
  if (p->l3_bytes) printf(" for %s", text_count(a, p->l3_cores, "core"));
  putchar('\n');
}

static void print_processor(arena *a, const tn_processor_info *p) {
  printf("\nprocessor  %s\n%-10s %u, with %s\n", text_escape(a, p->name), "cores", p->cores,
         text_count(a, p->threads, "thread"));
  print_caches(a, p);
  printf("%-10s kernels use %s, vectors of %u bits%s%s\n", "level", p->level, p->vector_bytes * 8,
         p->limit ? "; TENON_CPU is " : "", p->limit ? text_escape(a, p->limit) : "");
  printf("%-10s%s%s\n\n", "features", *p->features ? " " : "", p->features);
}

static void print_compilers(command *c) {
  arena *a = &c->arena;
  tn_compiler_info k = TN_COMPILER_INFO_INIT;
  size_t i = 0;
  for (; tn_compiler_get(c->context, i, &k) == TN_OK; i++)
    printf("%-10s %s (%s)%s\n", i ? "" : "compilers", text_escape(a, k.path),
           text_escape(a, k.version), k.used ? ", used" : "");
  if (!i)
    puts("compilers  none found; new kernels need gcc or clang, or LLVM (scripts/setup.sh --llvm)");
}

static void print_text(command *c, const tn_processor_info *p) {
  tn_device_info d = TN_DEVICE_INFO_INIT;
  for (size_t i = 0; tn_device_get(c->context, i, &d) == TN_OK; i++) print_device(c, &d);
  print_processor(&c->arena, p);
  print_compilers(c);
}

/* JSON. */

static json_t *json_lines(command *c, const char *lines) {
  json_t *list = json_array();
  for (size_t n; (n = strcspn(lines, "\n")); lines += n + (lines[n] == '\n'))
    json_array_append_new(list,
                          text_json(&c->arena, arena_printf(&c->arena, "%.*s", (int)n, lines)));
  return list;
}

static json_t *json_devices(command *c) {
  json_t *list = json_array();
  tn_device_info d = TN_DEVICE_INFO_INIT;
  for (size_t i = 0; tn_device_get(c->context, i, &d) == TN_OK; i++)
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:s, s:s, s:o}", "name", d.name, "about",
                        text_json(&c->arena, d.about), "absent", text_json(&c->arena, d.absent),
                        "pairs", d.pairs, "absent_pairs", json_lines(c, d.absent_pairs), "bytes",
                        d.bytes ? json_integer((json_int_t)d.bytes) : json_null(), "queues",
                        d.queues, "copies", d.copies, "library", text_json(&c->arena, d.library)));
  return list;
}

static json_t *number_or_null(uint64_t n) {
  return n && n <= INT64_MAX ? json_integer((json_int_t)n) : json_null();
}

static json_t *json_caches(const tn_processor_info *p) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "l1_bytes", number_or_null(p->l1_bytes), "l2_bytes",
                   number_or_null(p->l2_bytes), "l3_bytes", number_or_null(p->l3_bytes), "l3_cores",
                   number_or_null(p->l3_cores), "line_bytes", number_or_null(p->line_bytes));
}

static json_t *json_features(const char *names) {
  json_t *list = json_array();
  for (size_t n; (n = strcspn(names, " ")); names += n + (names[n] == ' '))
    json_array_append_new(list, json_stringn(names, n));
  return list;
}

static json_t *json_processor(command *c, const tn_processor_info *p) {
  return json_pack("{s:o, s:i, s:i, s:i, s:s, s:i, s:o, s:o}", "name",
                   text_json(&c->arena, p->name), "cores", (int)p->cores, "usable_cores",
                   (int)p->usable_cores, "threads", (int)p->threads, "level", p->level,
                   "vector_bytes", (int)p->vector_bytes, "caches", json_caches(p), "features",
                   json_features(p->features));
}

static json_t *json_compilers(command *c) {
  json_t *list = json_array();
  tn_compiler_info k = TN_COMPILER_INFO_INIT;
  for (size_t i = 0; tn_compiler_get(c->context, i, &k) == TN_OK; i++)
    json_array_append_new(list, json_pack("{s:o, s:o, s:b}", "path", text_json(&c->arena, k.path),
                                          "version", text_json(&c->arena, k.version), "used",
                                          (int)k.used));
  return list;
}

static int act(command *c) {
  const devices_options *o = c->options;
  command_open_context(c, NULL, -1, NULL);
  tn_device_info first = TN_DEVICE_INFO_INIT;
  tn_processor_info p = TN_PROCESSOR_INFO_INIT;
  command_check_status(c, tn_device_get(c->context, 0, &first));
  command_check_status(c, tn_processor_get(c->context, &p));
  if (o->json)
    text_json_print(&c->arena, json_pack("{s:o, s:o, s:o}", "devices", json_devices(c), "processor",
                                         json_processor(c, &p), "compilers", json_compilers(c)));
  else
    print_text(c, &p);
  command_check_context(c);
  return EXIT_DONE;
}

const verb verb_devices = {
    .name = "devices",
    .summary = "List devices, including absent ones, the processor and compilers",
    .examples = "tenon devices\n"
                "tenon devices --json",
    .about =
        "A pair RENDERER/COMPILER compiles kernels for a device; TENON_PAIR selects one.\n\n"
        "--json: devices, each with name, about, absent (the reason; null if usable), pairs,\n"
        "absent_pairs (each with the reason), bytes (of memory; null if unknown), queues (who\n"
        "works through them), copies (how data gets there), library (of products of\n"
        "matrices, with the reason if it cannot be used; null: none); processor with name, cores,\n"
        "usable_cores (by this process), threads, level (of the instruction set of kernels),\n"
        "vector_bytes, caches (l1_bytes and l2_bytes per core, l3_bytes, l3_cores that share it,\n"
        "line_bytes; null if unknown), features; compilers, each with path, version, used.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(devices_options),
    .act = act,
};
